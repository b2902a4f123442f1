"""Recurrent classifiers: pooling, stages, what they refuse, what they save; R07."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from foreword import kinds
from foreword.classify.recurrent import ClassificationTask, RecurrentClassifier
from foreword.classify.recurrent_network import POOLINGS, ClassifierNetwork, attention
from foreword.errors import ForewordError, InputError, SettingError
from foreword.neural.awd_lstm import AWDLSTM
from foreword.neural.recurrent import RecurrentLM
from foreword.ngram.model import NgramLM
from foreword.nn.dropout import Dropout
from foreword.nn.recurrent_layer import CELLS, CellName
from foreword.nn.recurrent_network import RecurrentNetwork
from foreword.pipeline.language import TextLM
from foreword.protocols import Classifier, Parts, Saveable
from foreword.storage.checkpoint import Checkpoint
from foreword.storage.folder import load, save
from foreword.tokens.words import WordTokenizer
from foreword.training.gradients import new_flat, views
from foreword.training.schedules import slanted
from foreword.training.settings import Training

SMALL: dict[str, Any] = {"embedding": 12, "hidden": 16, "units": 10, "min_count": 1, "batch": 8, "device": "cpu"}
GOOD, BAD = ["fine", "great", "lovely", "superb"], ["dull", "awful", "poor", "boring"]
FILLERS = ["the", "film", "was", "a", "plot", "and", "actors", "it", "seemed"]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def reviews(count: int, seed: int = 0, known: int = 4) -> tuple[list[str], list[str]]:
    """ "not" turns what comes after it round, so that a bag of words is not enough. known: words of each kind."""
    random = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(count):
        good, denied = random.random() < 0.5, random.random() < 0.3
        word = str(random.choice((GOOD if good else BAD)[:known]))
        before = random.choice(FILLERS, random.integers(1, 8)).tolist()
        after = random.choice(FILLERS, random.integers(0, 8)).tolist()
        texts.append(" ".join([*before, *(["not"] if denied else []), word, *after]))
        labels.append("good" if good != denied else "bad")
    return texts, labels


@pytest.fixture(scope="module")
def language_model() -> TextLM:
    torch.set_num_threads(1)
    training = Training(epochs=6, batch=16, steps=12, rate=0.01, optimiser="adam", activation=0.0, change=0.0)
    lm = RecurrentLM("lstm", 12, 16, 2, training=training, device="cpu")
    return TextLM(WordTokenizer(), lm).fit(reviews(300, seed=5)[0])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_negation_is_learnt_with_every_pooling(pooling: Any) -> None:
    model = RecurrentClassifier(**SMALL, pooling=pooling, epochs=12, rate=0.01, dropout=0.1).fit(*reviews(400))
    assert isinstance(model, Classifier)
    assert isinstance(model, Saveable)
    assert model.classes_ == ["bad", "good"]
    assert model.score(*reviews(150, seed=1)) > 0.93


@pytest.mark.parametrize("units", [1, 16, 21])
def test_all_poolings_at_once_are_the_three_one_by_one(units: int) -> None:
    encoder = RecurrentNetwork(5, units, units, 1, last=units)
    states = torch.randn(9, 4, units, generator=torch.Generator().manual_seed(units)) - 1
    lengths = torch.tensor([9, 5, 1, 8])
    parts = [ClassifierNetwork(encoder, name, 3, 2).pooled({}, states, lengths) for name in ("last", "mean", "max")]
    network = ClassifierNetwork(encoder, "all", 3, 2)
    found = network.pooled({}, states, lengths)
    assert_allclose(found, torch.cat(parts, 1), rtol=1e-6, atol=1e-6)
    assert_allclose(network.pooled({}, states.requires_grad_(), lengths).detach(), found, rtol=1e-6, atol=1e-6)
    for wrong in ([9, 5, 1, 10], [9, 5, 0, 8], [9, 5, 1]):
        with pytest.raises(ValueError, match="4 lengths from 1 to 9"):
            network.pooled({}, states.detach(), torch.tensor(wrong))


def test_pooling_by_hand() -> None:
    """Padding behind a text's end has no part in it."""
    encoder = RecurrentNetwork(5, 2, 2, 1, last=2)
    states = torch.tensor([[[1.0, -4.0]], [[3.0, -2.0]], [[99.0, 99.0]]])
    lengths, weights = torch.tensor([2]), {name: torch.zeros(2, 2) for name in ("attention",)}
    weights |= {"attention_bias": torch.zeros(2), "attention_context": torch.zeros(2)}
    wanted = {"last": [3, -2], "mean": [2, -3], "max": [3, -2], "attention": [2, -3], "all": [3, -2, 2, -3, 3, -2]}
    for pooling, expected in wanted.items():
        pooled = ClassifierNetwork(encoder, pooling, 3, 2).pooled(weights, states, lengths)
        assert_array_equal(pooled, [expected])
    weights["attention"], weights["attention_context"] = torch.eye(2), torch.tensor([1.0, 0.0])
    there = torch.tensor([[[True]], [[True]], [[False]]])
    a = np.exp(np.tanh([1.0, 3.0]))
    assert_allclose(attention(weights, states, there).flatten(), [*(a / a.sum()), 0], rtol=1e-6)


def test_one_text_or_many_give_the_same_scores() -> None:
    texts, labels = reviews(60)
    texts[0] = " ".join(texts)  # some hundred words beside a few
    model = RecurrentClassifier(**SMALL, layers=2, epochs=1, pooling="all").fit(texts, labels)
    together = model.predict_log_proba([*texts, ""])
    alone = np.concatenate([model.predict_log_proba([text]) for text in [*texts, ""]])
    assert_allclose(together, alone, rtol=0, atol=1e-5)
    assert_allclose(np.exp(together).sum(1), 1, rtol=1e-12)
    assert model.predict([]) == []
    assert model.predict_log_proba([]).shape == (0, 2)
    assert [len(best) for best in model.predict_best(texts, k=2)] == [2] * 60


def test_gradients_go_back_so_many_words_and_no_further() -> None:
    encoder = RecurrentNetwork(6, 3, 4, 1, False, "lstm", 4)
    network = ClassifierNetwork(encoder, "last", 3, 2)
    flat = new_flat(encoder.tensors(), torch.device("cpu"))
    weights = views(flat, encoder.tensors())
    encoder.initialise(weights, torch.Generator().manual_seed(0))
    ids = torch.arange(6)[:, None]
    table = weights["embedding"].detach().requires_grad_()
    held = {**weights, "embedding": table}
    whole = network.read(held, ids, 6)
    for reach in (2, 6):
        states = network.read(held, ids, reach)
        assert_allclose(states.detach(), whole.detach(), rtol=0, atol=1e-6)  # what is read does not depend on it
        (slope,) = torch.autograd.grad(states[-1].sum(), table)
        assert (slope.abs().sum(1) > 0).tolist() == [place >= 6 - reach for place in range(6)]


def test_a_language_model_is_taken_over_and_unfrozen_from_the_top(
    language_model: TextLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Head, then layer 1, layer 0, and the words: each is as it was until its stage comes."""
    texts, labels = reviews(40)
    model = RecurrentClassifier(language_model, units=8, epochs=1, batch=40, device="cpu")
    groups = ClassifierNetwork(RecurrentNetwork(9, 12, 16, 2), "all", 8, 2).groups()
    assert [group[0] for group in groups] == ["head", "layer1.input", "layer0.input", "embedding"]
    moved = []
    stages = model.task((texts, labels), None).stages(model.training)
    assert [stage.groups for stage in stages] == [1, 2, 3, 4]
    assert [stage.rate for stage in stages] == pytest.approx([model.training.rate * 0.6**k for k in range(4)])
    lm: Any = language_model.model
    for count in range(1, 5):
        limited = RecurrentClassifier(language_model, units=8, epochs=1, batch=40, device="cpu")
        with monkeypatch.context() as patched:
            patched.setattr(ClassificationTask, "stages", lambda *_, count=count: stages[:count])
            limited.fit(texts, labels)
        there = limited.weights_
        moved.append([name for name in ("layer1.input", "layer0.input", "embedding")
                      if not torch.equal(there[name], lm.weights_[name])])  # fmt: skip
    assert moved == [[], ["layer1.input"], ["layer1.input", "layer0.input"],
                     ["layer1.input", "layer0.input", "embedding"]]  # fmt: skip


def test_rates_fall_with_depth(language_model: TextLM) -> None:
    """After the first update Adam has moved every weight by its rate: layers by rate / 2.6 each deeper."""
    texts, labels = reviews(8)
    model = RecurrentClassifier(language_model, epochs=1, unfreeze=0, batch=8, dropout=0.0, rate=0.01, device="cpu")
    model.fit(texts, labels)
    lm: Any = language_model.model
    rate = 0.01 * slanted(0.0)
    for depth, name in enumerate(("layer1.recurrent", "layer0.recurrent"), 1):
        change = (model.weights_[name] - lm.weights_[name]).abs()
        assert_allclose(change[change > rate / 100].median(), rate * 2.6**-depth, rtol=0.02)


def test_what_was_learnt_without_labels_helps() -> None:
    """Twelve labelled texts that name two words of each kind; the language model has read of all four."""
    training = Training(epochs=25, batch=16, steps=12, rate=0.02, optimiser="adam", activation=0.0, change=0.0)
    random = np.random.default_rng(0)
    lines = [f"{'it' if k % 2 else 'film'} was {random.choice(GOOD if k % 2 else BAD)} {'yes' if k % 2 else 'no'}"
             for k in range(600)]  # fmt: skip
    lm = TextLM(WordTokenizer(), RecurrentLM("lstm", 12, 12, 1, training=training, device="cpu")).fit(lines)
    few = [f"was {word}" for word in (*GOOD[:2], *BAD[:2])] * 3
    labels = (["good"] * 2 + ["bad"] * 2) * 3
    others = [f"was {word}" for word in (*GOOD[2:], *BAD[2:])]
    wanted = ["good"] * 2 + ["bad"] * 2
    tuned = RecurrentClassifier(lm, epochs=20, unfreeze=10, batch=12, rate=0.02, dropout=0.0, device="cpu")
    fresh = RecurrentClassifier(**{**SMALL, "batch": 12}, epochs=40, rate=0.02, dropout=0.0)
    assert tuned.fit(few, labels).score(others, wanted) == 1.0
    assert fresh.fit(few, labels).score(others, wanted) < 1.0


def test_r07_three_heads_on_one_encoder(language_model: TextLM) -> None:
    """R07: the same states tell the next word, a class, and stand for the text."""
    texts, _ = reviews(200)
    labels = ["named" if text.split()[-1] in (*GOOD, *BAD) else "plain" for text in texts]
    model = RecurrentClassifier(
        language_model, frozen=True, epochs=30, rate=0.02, units=20, pooling="last", dropout=0.0, device="cpu"
    ).fit(texts, labels)
    lm: Any = language_model.model
    for name in ("embedding", "layer0.recurrent", "layer1.recurrent"):
        assert_array_equal(model.weights_[name], lm.weights_[name])
    state = lm.start()
    for id in [*language_model.tokenizer.encode(texts[0]).tolist(), language_model.vocab.end]:
        state = lm.advance(state, np.array([id]))
    assert_allclose(model.encode([texts[0]]), state.hidden, rtol=0, atol=1e-5)  # encoding: the state after the end
    assert np.exp(lm.next_logprobs(state)).sum() == pytest.approx(1)  # next token, from that very state
    assert model.score(texts, labels) > 0.8  # classification, from it too


def test_texts_read_from_the_end(language_model: TextLM) -> None:
    """Backwards is the same as giving every text backwards."""
    texts, labels = reviews(40)
    back = [" ".join(reversed(text.split())) for text in texts]
    one = RecurrentClassifier(language_model, epochs=1, from_end=True, device="cpu").fit(texts, labels)
    other = RecurrentClassifier(language_model, epochs=1, device="cpu").fit(back, labels)
    assert_array_equal(one.predict_log_proba(texts), other.predict_log_proba(back))
    assert (one.predict_log_proba(texts) != one.predict_log_proba(back)).any()


def test_of_a_long_text_the_middle_is_left_out() -> None:
    model = RecurrentClassifier(**SMALL, epochs=1, words=5).fit(["a b c", "d e f g h i j k"], ["x", "y"])
    assert_array_equal(model.encode(["a b c d e f g h i"]), model.encode(["a b c h i"]))
    assert (model.encode(["a b c d e"]) != model.encode(["a b c h i"])).any()


@pytest.mark.parametrize("pooling", ["attention", "all"])
def test_what_is_saved_says_the_same(language_model: TextLM, tmp_path: Path, pooling: Any) -> None:
    texts, labels = reviews(30)
    save(language_model, tmp_path / "lm")
    model = RecurrentClassifier(str(tmp_path / "lm"), pooling=pooling, epochs=1, device="cpu").fit(texts, labels)
    save(model, tmp_path / "model")
    found = load(tmp_path / "model")
    assert_array_equal(found.predict_log_proba(texts), model.predict_log_proba(texts))
    assert (found.classes_, found.pooling, found.layers) == (model.classes_, pooling, 2)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"classes": ["bad"]}, "at least two"),
        ({"classes": ["good", "bad"]}, "sorted"),
        ({"last": 0}, "'last' a number of units"),
        ({"units": 11}, "head is float32"),
        ({"layers": 2}, "layer1"),
        ({"layers": 10**12}, "layers, but only"),
        ({"pooling": "median"}, "pooling is 'median': expected last"),
    ],
)
def test_damaged_parts_are_refused(change: dict[str, Any], told: str) -> None:
    parts = RecurrentClassifier(**SMALL, epochs=1).fit(*reviews(10)).to_parts()
    with pytest.raises((ValueError, KeyError, SettingError), match=told):
        RecurrentClassifier.from_parts(Parts({**parts.settings, **change}, parts.arrays, parts.vocab))


def test_numbers_that_are_not_finite_are_refused() -> None:
    parts = RecurrentClassifier(**SMALL, epochs=1).fit(*reviews(10)).to_parts()
    parts.arrays["weights.head"] = np.full_like(parts.arrays["weights.head"], np.nan)
    with pytest.raises(ValueError, match="a number of head is not finite"):
        RecurrentClassifier.from_parts(parts)


def test_the_best_epoch_on_held_out_texts_is_kept() -> None:
    valid = reviews(40, seed=3)
    model = RecurrentClassifier(**SMALL, epochs=4).fit(*reviews(60), valid=valid)
    assert model.score(*valid) == model.valid_score_


def test_the_same_seed_gives_the_same_model() -> None:
    one, other = (RecurrentClassifier(**SMALL, epochs=1, seed=4).fit(*reviews(30)) for _ in range(2))
    assert torch.equal(one.flat_weights(), other.flat_weights())


def test_every_cell_of_a_language_model_has_a_name_here() -> None:
    """Type checkers accept what the check of settings does."""
    assert set(get_args(CellName)) == set(CELLS)


@pytest.mark.parametrize("cell", CELLS)
def test_every_cell_classifies_and_is_saved(cell: Any, tmp_path: Path) -> None:
    texts, labels = reviews(60)
    model = RecurrentClassifier(**SMALL, cell=cell, layers=2, epochs=2).fit(texts, labels)
    save(model, tmp_path / "model")
    again: Any = load(tmp_path / "model")
    assert_array_equal(again.predict_log_proba(texts), model.predict_log_proba(texts))


@pytest.mark.parametrize(("cell", "part"), [("ln-lstm", "norm"), ("peephole", "peephole")])
def test_a_further_weight_of_a_cell_belongs_to_its_layer(cell: str, part: str) -> None:
    """It is not drawn with the head, which would undo a language model's, and learns at its layer's rate."""
    network = ClassifierNetwork(RecurrentNetwork(9, 12, 16, 2, cell=cell), "all", 8, 2)
    assert [f"layer1.{part}" in group for group in network.groups()] == [False, True, False, False]
    weights = views(new_flat(network.tensors(), torch.device("cpu")), network.tensors())
    network.initialise_head(weights, torch.Generator().manual_seed(0))
    assert not weights[f"layer1.{part}"].any()


def test_other_language_models_are_taken_too() -> None:
    texts, labels = reviews(40)
    training = Training(epochs=1, batch=8, steps=8)
    lm = TextLM(WordTokenizer(), AWDLSTM(12, 16, 2, training=training, device="cpu")).fit(texts)
    assert RecurrentClassifier(lm, epochs=1, device="cpu").fit(texts, labels).score(texts, labels) > 0.4


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"pooling": "median"}, "pooling is 'median': expected last or mean or max or attention or all"),
        ({"epochs": 0}, "epochs is 0: expected at least 1"),
        ({"rate": 0.0}, "rate is 0.0: expected more than 0"),
        ({"dropout": 1.0}, "dropout of output is 1.0: expected at least 0 and less than 1"),
        ({"device": "tpu"}, "device is 'tpu': expected"),
    ],
)
def test_bad_settings(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingError, match=told):
        RecurrentClassifier(**settings)


def test_bad_input() -> None:
    model = RecurrentClassifier(**SMALL)
    with pytest.raises(ForewordError, match="has learnt nothing yet"):
        model.predict(["a"])
    with pytest.raises(InputError, match="1 texts and 2 labels"):
        model.fit(["a"], ["x", "y"])
    with pytest.raises(InputError, match="two classes at least"):
        model.fit(["a", "b"], ["x", "x"])
    with pytest.raises(InputError, match="a single string"):
        model.fit("a", ["x"])
    with pytest.raises(InputError, match="a NgramLM: expected a TextLM of a RecurrentLM or AWDLSTM"):
        RecurrentClassifier(TextLM(WordTokenizer(), NgramLM(2)).fit(["a b"]), device="cpu").fit(["a", "b"], ["x", "y"])
    with pytest.raises(SettingError, match="float16', which needs a GPU"):
        RecurrentClassifier(**SMALL, precision="float16").fit(["a", "b"], ["x", "y"])


@pytest.mark.parametrize("updates", [1, 4, 5])
def test_a_run_in_stages_that_was_stopped_ends_in_the_same_bytes(
    language_model: TextLM, tmp_path: Path, updates: int
) -> None:
    """In the middle of a stage, at its end, and in the next one."""
    texts, labels = reviews(16)

    def build() -> RecurrentClassifier:
        return RecurrentClassifier(language_model, units=4, epochs=1, batch=4, device="cpu")

    whole = build().fit(texts, labels, valid=(texts[:4], labels[:4]))
    checkpoint = Checkpoint(tmp_path / "run", every=0)
    for _ in build().train(texts, labels, valid=(texts[:4], labels[:4]), checkpoint=checkpoint):
        if checkpoint.written == updates:
            break
    resumed, path = build(), Checkpoint(tmp_path / "run")
    assert list(resumed.train((texts, labels), valid=(texts[:4], labels[:4]), checkpoint=path))
    assert torch.equal(resumed.flat_weights(), whole.flat_weights())
    with pytest.raises(InputError, match="another run"):
        next(build().train(texts[::-1], labels[::-1], checkpoint=path))


def test_dropout_is_two_numbers_or_one_of_each_place() -> None:
    assert RecurrentClassifier(dropout=0.2, layer_dropout=0.4).dropout == Dropout(0.1, 0.4, 0.4, 0.2, 0.4)
    assert RecurrentClassifier().dropout == Dropout(0.05 / 4, 0.05, 0.05, 0.3, 0.05)
    kind = kinds.KINDS["recurrent-classifier"]
    assert kinds.build(kind, {"dropout": 0.2}).dropout == Dropout(0.05 / 4, 0.05, 0.05, 0.2, 0.05)
    assert kinds.build(kind, {"layer_dropout": 0.4}).dropout == Dropout(0.1, 0.4, 0.4, 0.3, 0.4)
    whole = Dropout(0.0, 0.1, 0.2, 0.3, 0.4)
    texts, labels = reviews(8)
    model = RecurrentClassifier(**SMALL, dropout=whole).fit(texts, labels)
    settings = model.to_parts().settings
    assert (settings["dropout"], settings["layer_dropout"]) == (asdict(whole), None)
    assert RecurrentClassifier.from_parts(model.to_parts()).dropout == whole
    assert RecurrentClassifier(**SMALL).fit(texts, labels).to_parts().settings["dropout"] == 0.3
