"""Recurrent language models beyond the contract: every cell against torch's own, beginnings, settings, files."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from foreword.decode import generate
from foreword.errors import ForewordError, InputError, SettingError
from foreword.neural.awd_lstm import AWDLSTM
from foreword.neural.recurrent import RecurrentLM
from foreword.neural.training import UnknownWords
from foreword.nn.dropout import NO_DROPOUT, Dropout
from foreword.nn.gated import GATED
from foreword.nn.recurrent_layer import CELLS, GATES, IDENTITY, layer_names
from foreword.nn.recurrent_network import RecurrentNetwork
from foreword.pipeline.language import TextLM
from foreword.protocols import Parts
from foreword.text.embedded import embedded_text
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.characters import CharacterTokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer
from foreword.training.gradients import new_flat, views
from foreword.training.settings import Training

torch.set_num_threads(1)
VOCAB = Vocab(["<unk>", "</s>", "a", "b", "c", "d"])
CORPUS = Corpus.from_ids([[2, 3, 4, 5] * 4 for _ in range(12)], VOCAB)
QUICK = replace(RecurrentLM.TRAINING, epochs=16, batch=4, steps=6, rate=0.04)


def small(cell: str = "lstm", **settings: Any) -> RecurrentLM:
    return RecurrentLM(cell, 8, 10, 2, **{"training": QUICK, "dropout": NO_DROPOUT, "device": "cpu", **settings})


def random_weights(network: RecurrentNetwork) -> dict[str, Tensor]:
    weights = views(new_flat(network.tensors(), torch.device("cpu")), network.tensors())
    network.initialise(weights, torch.Generator().manual_seed(0))
    return weights


def ids_of(steps: int, texts: int) -> Tensor:
    return torch.randint(6, (steps, texts), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("cell", "peer"), [("rnn", torch.nn.RNN), ("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU)])
def test_the_network_is_torch_s_own_stacked(cell: str, peer: Any) -> None:
    network = RecurrentNetwork(6, 4, 5, 3, cell=cell)
    weights = random_weights(network)
    x = weights["embedding"][ids_of(7, 2)]
    for layer, (inputs, units) in enumerate(network.layer_sizes()):
        theirs = peer(inputs, units)
        with torch.no_grad():
            for parameter, name in zip(theirs.parameters(), layer_names(layer), strict=True):
                parameter.copy_(weights[name])
        x, _ = theirs(x)
    ours, _ = network.read(weights, ids_of(7, 2), network.start(2, weights["bias"]))
    torch.testing.assert_close(ours, x)


@pytest.mark.parametrize("cell", CELLS)
def test_p01_reading_in_two_stretches_is_reading_at_once(cell: str) -> None:
    """P01: states equal the full forward, for every cell."""
    network = RecurrentNetwork(6, 4, 5, 2, cell=cell)
    weights, ids = random_weights(network), ids_of(9, 3)
    whole, last = network.read(weights, ids, network.start(3, weights["bias"]))
    first, state = network.read(weights, ids[:4], network.start(3, weights["bias"]))
    second, end = network.read(weights, ids[4:], state)
    torch.testing.assert_close(torch.cat([first, second]), whole)
    torch.testing.assert_close(end, last)


@pytest.mark.parametrize("cell", CELLS)
def test_r05_the_number_of_parameters_is_that_of_the_equations(cell: str) -> None:
    """R05: shared weights; nothing depends on the length of the text."""
    still = replace(QUICK, epochs=1, batch=100, steps=50, rate=1e-5)
    short, long = (small(cell, training=still) for _ in range(2))
    short.fit(Corpus.from_ids([[]], VOCAB))
    long.fit(Corpus.from_ids([[2, 3] * 5000], VOCAB))
    assert short.parameter_count == long.parameter_count
    biases, recurrent = (1, 0) if cell == "min-gru" else (2, 1)
    layers = sum(GATES[cell] * units * (inputs + recurrent * units + biases) for inputs, units in ((8, 10), (10, 8)))
    further = GATED[cell].extra if cell in GATED else None
    rows = 0 if further is None else further[1]
    assert short.parameter_count == 6 * 8 + 6 + layers + rows * (10 + 8)


@pytest.mark.parametrize("cell", CELLS)
def test_every_cell_learns_a_text_that_repeats_itself(cell: str) -> None:
    model = small(cell).fit(CORPUS, valid=CORPUS[:3])
    assert math.exp(-model.score(CORPUS)) < (5 if cell == "irnn" else 3)
    assert model.valid_score_ > -math.log(len(VOCAB))
    assert list(generate(model, seed=0)) == list(generate(model, seed=0))


def test_beginnings() -> None:
    """Forget gates begin open; a ReLU network begins by remembering everything."""
    lstm = random_weights(RecurrentNetwork(6, 4, 5, 1, cell="lstm", last=5, forget_bias=1.0))
    both = lstm["layer0.input_bias"] + lstm["layer0.recurrent_bias"]
    assert (both[5:10] == 1).all()
    assert (both[:5] != 1).all()
    irnn = random_weights(RecurrentNetwork(6, 4, 5, 1, cell="irnn", last=5))
    assert torch.equal(irnn["layer0.recurrent"], IDENTITY * torch.eye(5))
    assert not irnn["layer0.input_bias"].any()


def test_p05_tied_weights_are_one_tensor_and_save_a_vocabulary_of_parameters() -> None:
    """P05: one tensor; V · D parameters fewer where the layers are the same."""
    tied, untied = (RecurrentNetwork(100, 8, 8, 1, tied, last=8) for tied in (True, False))
    assert set(untied.tensors()) - set(tied.tensors()) == {"output"}
    assert untied.tensors()["output"] == (100, 8)


def test_p06_locked_dropout_is_the_same_at_every_step_and_ordinary_dropout_is_not() -> None:
    """P06: the mask is equal over t and new for each stretch."""
    network = RecurrentNetwork(40, 16, 16, 2)
    random = torch.Generator().manual_seed(0)
    one, other = (network.masks(Dropout(), 3, torch.empty(0), random) for _ in range(2))
    x = torch.ones(5, 3, 16)
    dropped = x * one.between[0]
    assert all(torch.equal(step, dropped[0]) for step in dropped)
    assert not torch.equal(one.between[0], other.between[0])
    ordinary = torch.nn.functional.dropout(x, 0.3)
    assert not all(torch.equal(step, ordinary[0]) for step in ordinary)


def test_a_long_document_is_scored_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small("gru").fit(CORPUS)
    long = Corpus.from_ids([[2, 3, 4, 5] * 30, [3], [2, 2]], VOCAB)
    whole = model.logprobs(long)
    monkeypatch.setattr("foreword.neural.model.READ_AT_ONCE", 7)
    monkeypatch.setattr("foreword.nn.softmax.LOGITS_AT_ONCE", 20)
    np.testing.assert_allclose(model.logprobs(long), whole, rtol=1e-5)


@pytest.mark.parametrize(
    "tokenizer", [CharacterTokenizer(), BPETokenizer(vocab_size=280, kind="bytes")], ids=["characters", "pieces"]
)
def test_characters_and_pieces_work_through_the_pipeline(tokenizer: Any) -> None:
    texts = ["the cat sat on the mat", "the dog sat on the log"] * 4
    model = TextLM(tokenizer, small("gru")).fit(texts, valid=texts[:2])
    assert model.perplexity(texts) < len(model.vocab)
    assert isinstance(model.generate("the ", max_tokens=5), str)


def test_a_cell_that_there_is_not() -> None:
    with pytest.raises(SettingError, match="cell is 'gpt': expected rnn"):
        small("gpt").fit(CORPUS)


@pytest.mark.parametrize(
    "settings", [{"schedule": "plateau"}, {"patience": 1}, {"schedule": "nt-asgd", "averages": (0.0,)}]
)
def test_what_looks_at_a_held_out_text_asks_for_one(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="held-out"):
        small(training=replace(QUICK, **settings)).fit(CORPUS)


def test_a_rate_that_explodes_is_told() -> None:
    wild = replace(QUICK, optimiser="sgd", rate=1e30, clip=0.0)
    with pytest.raises(ForewordError, match="rate than 1e"):
        small("irnn", training=wild).fit(CORPUS)


@pytest.mark.parametrize("tokens", [0, 1])
def test_a_text_shorter_than_anything(tokens: int) -> None:
    model = small(training=replace(QUICK, batch=64, steps=35)).fit(Corpus.from_ids([[2] * tokens], VOCAB))
    assert math.isfinite(model.score(CORPUS))


def test_sequence_length_one() -> None:
    model = small(training=replace(QUICK, steps=1, activation=1.0, change=1.0)).fit(CORPUS)
    assert math.isfinite(model.score(CORPUS))


def test_a_text_in_another_vocabulary_is_refused() -> None:
    with pytest.raises(InputError, match="another vocabulary"):
        small().fit(CORPUS, valid=Corpus.from_ids([[0]], Vocab(["<unk>", "</s>"])))


def test_ids_out_of_range_are_refused_when_stepping() -> None:
    model = small(training=replace(QUICK, epochs=1)).fit(CORPUS)
    for id in (-1, len(VOCAB)):
        with pytest.raises(ValueError, match="not in the vocabulary"):
            model.advance(model.start(), np.array([id]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cell", 3),
        ("cell", "gpt"),
        ("layers", True),
        ("embedding", 9),
        ("forget_bias", "1"),
        ("training", []),
        ("dropout", 0.1),
    ],
)
def test_settings_of_a_file_that_do_not_fit_are_refused(name: str, value: Any) -> None:
    parts = small(training=replace(QUICK, epochs=1)).fit(CORPUS).to_parts()
    with pytest.raises((ValueError, TypeError, SettingError)):
        RecurrentLM.from_parts(Parts({**parts.settings, name: value}, parts.arrays, parts.vocab))


def test_settings_left_out_of_an_older_file_are_the_usual_ones() -> None:
    parts = small(training=replace(QUICK, epochs=1)).fit(CORPUS).to_parts()
    training = dict(parts.settings["training"])  # type: ignore[arg-type]
    del training["sampled"]
    loaded = RecurrentLM.from_parts(Parts({**parts.settings, "training": training}, parts.arrays, parts.vocab))
    assert loaded.training == replace(QUICK, epochs=1)


def test_training_tells_its_progress_to_a_meter() -> None:
    told: list[tuple[str, int, int | None]] = []
    small(training=replace(QUICK, epochs=2)).fit(CORPUS, meter=lambda *report: told.append(report))
    assert told[-1][1] == told[-1][2]
    assert all(phase.startswith("training, loss ") for phase, _, _ in told)


def test_precision_of_the_output_layer_on_a_cpu_hardly_matters() -> None:
    exact, rough = (
        small(training=replace(QUICK, precision=precision)).fit(CORPUS) for precision in ("float32", "bfloat16")
    )
    assert rough.score(CORPUS) == pytest.approx(exact.score(CORPUS), abs=0.2)


def test_training_is_a_value() -> None:
    assert Training() == Training()
    assert small().training is QUICK


def test_words_begin_as_frequent_as_they_are() -> None:
    """Before anything is learnt a model with small weights is the unigram model, one more counted of each word."""
    model = RecurrentLM("gru", 4, 6, 1, training=replace(RecurrentLM.TRAINING, epochs=1), device="cpu")
    corpus = Corpus.from_ids([[2, 2, 2, 3]], Vocab(["<unk>", "</s>", "a", "b", "c"]))
    trainer = model.trainer(corpus)
    bias = views(trainer.weights, trainer.shapes)["bias"].exp()
    torch.testing.assert_close(bias, torch.tensor([1.5, 2.0, 4.0, 1.5, 1.0]) / 10)  # b, seen once, is half unknown
    plain = AWDLSTM(4, 6, 1, training=replace(RecurrentLM.TRAINING, epochs=1), device="cpu").trainer(corpus)
    assert not views(plain.weights, plain.shapes)["bias"].any()


def test_an_irnn_learns_a_text_with_its_defaults() -> None:
    """Beginning with the whole identity, its state grew from chunk to chunk until training diverged."""
    texts = embedded_text("valid")
    corpus = Corpus.from_texts(texts, WordTokenizer(max_size=500).fit(texts))
    training = replace(RecurrentLM.TRAINING, epochs=2)
    model = RecurrentLM("irnn", 32, 32, training=training, device="cpu").fit(corpus)
    unigram = np.bincount(corpus.ids, minlength=500) / len(corpus.ids)
    entropy = -float(np.sum(unigram * np.log(np.maximum(unigram, 1e-12))))
    assert -model.score(corpus) < entropy


def test_words_seen_once_are_read_as_unknown_half_of_the_time() -> None:
    texts = [f"the word number w{place} is new" for place in range(200)]
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    found = UnknownWords.of(corpus, 0.5)
    assert found is not None
    assert len(found.positions) == 200
    ids = torch.from_numpy(np.asarray(corpus.ids, np.int64))
    one, other = (found.replaced(ids, np.random.default_rng(seed)) for seed in (0, 1))
    for replaced in (one, other):
        changed = (replaced != ids).nonzero().flatten()
        assert 70 < len(changed) < 130
        assert set(replaced[changed].tolist()) == {corpus.vocab.unknown}
    assert not torch.equal(one, other)
    assert torch.equal(ids, torch.from_numpy(np.asarray(corpus.ids, np.int64)))  # the text itself stays


def test_a_text_that_has_unknown_words_is_read_as_it_is() -> None:
    texts = ["a a b", "a <unk> c"]
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    assert UnknownWords.of(corpus, 0.5) is None
    without = Corpus.from_texts(["a b b"], WordTokenizer().fit(["a b b"]))
    assert UnknownWords.of(without, 0.0) is None


def test_a_network_of_all_words_gives_an_unknown_word_its_share() -> None:
    texts = [f"the word number w{place} is new" for place in range(60)]
    tokenizer = WordTokenizer().fit(texts)
    corpus = Corpus.from_texts(texts, tokenizer)
    new = Corpus.from_texts(["the word number neverseen is new"], tokenizer)
    learnt, not_learnt = (
        RecurrentLM(
            "gru", 16, 16, layers=1, training=replace(RecurrentLM.TRAINING, epochs=20, rate=0.02, unknown=share),
            device="cpu",
        ).fit(corpus)
        for share in (0.5, 0.0)
    )  # fmt: skip
    assert learnt.logprobs(new)[3] > math.log(0.1) > not_learnt.logprobs(new)[3]


def test_masks_can_differ_at_every_step_and_drop_the_state() -> None:
    """With locked masks the network sees one set of units in a whole chunk, with fresh ones another at each step."""
    locked, fresh = (small(dropout=Dropout(0, 0.5, 0, 0, 0, state=0.3, fresh=each)) for each in (False, True))
    for model, long in ((locked, 1), (fresh, 5)):
        masks = model.network(VOCAB).masks(model.dropout, 2, torch.zeros(1), None, steps=5)
        assert masks.input.shape == (long, 2, 8)
        assert [mask.shape for mask in masks.state] == [(2, 10), (2, 8)]
        model.fit(CORPUS)
    assert not torch.equal(locked.flat_weights(), fresh.flat_weights())


def test_only_an_lstm_drops_its_state() -> None:
    with pytest.raises(SettingError, match="only cell 'lstm' has it, not 'gru'"):
        small("gru", dropout=Dropout(0, 0, 0, 0, 0, state=0.3)).fit(CORPUS)
