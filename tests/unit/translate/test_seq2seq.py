"""The translator: factors, masks, what it reads in training, schedules, stopping and going on, saving."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch.nn.functional import cross_entropy, linear

from foreword.errors import ForewordError, InputError, SettingError
from foreword.nn.dropout import NO_DROPOUT
from foreword.nn.recurrent_layer import CELLS, IDENTITY
from foreword.protocols import Parts
from foreword.storage.checkpoint import Checkpoint
from foreword.storage.folder import load, save
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.engine import Trainer
from foreword.training.gradients import new_flat, views
from foreword.translate.network import ATTENTIONS, NOTHING_DROPPED, Drop, TranslationNetwork
from foreword.translate.pairs import Pairs, batch_of, bucketed, documents_of
from foreword.translate.seq2seq import Seq2Seq
from foreword.translate.training import TranslationTask, truth_after

WORDS = 9
VOCAB = Vocab(["<unk>", "</s>", *(f"w{place}" for place in range(WORDS))])
SMALL: dict[str, Any] = {"units": 8, "words": 6, "epochs": 1, "batch": 60, "device": "cpu"}
KINDS = [
    {"cell": cell, "attention": attention, "layers": layers, "both_ways": both_ways, "feed": feed}
    for cell, attention, layers, both_ways, feed in (
        ("lstm", "additive", 1, True, False),
        ("lstm", "general", 2, True, True),
        ("lstm", "dot", 1, False, False),
        ("gru", "scaled", 2, True, False),
        ("gru", "none", 1, True, True),
        ("lstm", "none", 2, False, False),
    )
] + [
    {"cell": cell, "attention": "none", "layers": layers, "one_network": True}
    for cell, layers in (("lstm", 2), ("gru", 1))
]
OTHERS: list[dict[str, Any]] = [
    {"cell": cell, **options}
    for cell in CELLS
    if cell not in ("lstm", "gru")
    for options in (
        {"attention": "additive"},
        {"attention": "general", "layers": 2, "feed": True},
        {"attention": "none", "one_network": True},
    )
]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def reversed_pairs(count: int, seed: int = 0, longest: int = 6) -> Pairs:
    """A text and itself from its end."""
    random = np.random.default_rng(seed)
    sources = [random.integers(2, WORDS + 2, random.integers(0, longest + 1)) for _ in range(count)]
    return Pairs(Corpus.from_ids(sources, VOCAB), Corpus.from_ids([each[::-1] for each in sources], VOCAB))


def trained(pairs: Pairs, **settings: Any) -> Seq2Seq:
    return Seq2Seq(**{**SMALL, **settings}).fit(pairs)


@pytest.mark.parametrize("kind", KINDS + OTHERS, ids=lambda kind: "-".join(map(str, kind.values())))
def test_q01_the_probability_of_a_target_is_the_product_of_its_steps(kind: dict[str, Any]) -> None:
    """Q01: log p(d | e) = Σ_t log p(d_t | d_<t, e), and each step's probabilities sum to one."""
    pairs = reversed_pairs(12)
    model = trained(pairs, **kind)
    for place, logs in enumerate(model.logprobs(pairs)):
        one = pairs[place : place + 1]
        stepped, total = model.condition(one.sources), 0.0
        state = stepped.start()
        for step, id in enumerate(one.targets.ids.tolist()):
            next_logs = stepped.next_logprobs(state)
            assert_allclose(np.exp(next_logs).sum(1), 1, atol=1e-6)
            assert_allclose(next_logs[0, id], logs[step], atol=2e-5)
            total += next_logs[0, id]
            state = stepped.advance(state, np.array([id]))
        assert_allclose(total, logs.sum(), atol=1e-4)


def test_q01_a_translation_stops_at_its_end() -> None:
    pairs = reversed_pairs(400, longest=4)
    model = Seq2Seq(32, words=16, epochs=25, batch=150, rate=1e-2, dropout=0.0, device="cpu").fit(pairs)
    found = model.search(pairs.sources[:50], width=2)
    assert all(texts[0].finished for texts in found)
    right = [
        list(texts[0].ids) == ids[:-1].tolist()
        for texts, ids in zip(found, pairs.targets[:50].documents(), strict=True)
    ]
    assert np.mean(right) > 0.9


@pytest.mark.parametrize("kind", KINDS + OTHERS, ids=lambda kind: "-".join(map(str, kind.values())))
def test_neighbours_in_a_batch_change_nothing(kind: dict[str, Any]) -> None:
    pairs = reversed_pairs(20)
    model = trained(pairs, **kind)
    together = model.logprobs(pairs)
    for place in range(len(pairs)):
        assert_allclose(model.logprobs(pairs[place : place + 1])[0], together[place], atol=1e-5)
    if model.attention != "none":
        for weights in model.attend(pairs):
            assert_allclose(weights.sum(1), 1, atol=1e-6)


@pytest.mark.parametrize("cell", CELLS)
def test_g09_one_network_reads_the_source_then_start_then_its_own_words(cell: str) -> None:
    """Row G09: the probabilities are those of one network that reads e, ``<start>``, d in a single pass from zeros."""
    pairs = reversed_pairs(10)
    model = trained(pairs, cell=cell, attention="none", one_network=True, layers=2)
    network, weights = model.network_, model.weights_
    assert not any(name.startswith(("encoder", "bridge")) for name in weights)
    for source, target, logs in zip(
        pairs.sources.documents(), pairs.targets.documents(), model.logprobs(pairs), strict=True
    ):
        words = torch.tensor([*source.tolist(), *target[:-1].tolist()])[:, None]  # the source's </s> is <start>
        nothing = (torch.zeros(1, model.units),) * (2 * network.states)
        with torch.no_grad():
            read, _ = network._layers(weights, network._vectors(weights["target"], words), nothing, NOTHING_DROPPED)
            out = torch.tanh(linear(read[len(source) - 1 :, 0], weights["readout"], weights["readout_bias"]))
            expected = torch.log_softmax(linear(out, network.table(weights), weights["bias"]), 1)
        assert_allclose(expected[range(len(target)), target.tolist()], logs, atol=2e-5)


def test_g09_one_network_learns_saves_and_refuses_what_it_has_not(tmp_path: Path) -> None:
    """Row G09: short sequences are reversed by one network fed with its own words."""
    pairs = reversed_pairs(400, longest=3)
    settings: dict[str, Any] = {"attention": "none", "one_network": True, "dropout": 0.0, "device": "cpu"}
    model = Seq2Seq(32, words=16, epochs=30, batch=150, rate=1e-2, **settings).fit(pairs)
    save(model, tmp_path / "one")
    again = load(tmp_path / "one")
    for width in (1, 3):
        said = again.translate(pairs.sources[:60], width=width)
        assert [each.tolist() for each in said] == [
            each.tolist() for each in model.translate(pairs.sources[:60], width=width)
        ]
        right = [
            each.tolist() == true[:-1].tolist() for each, true in zip(said, pairs.targets.documents(), strict=False)
        ]
        assert np.mean(right) > 0.9
    with pytest.raises(SettingError, match="has no encoder"):
        Seq2Seq(one_network=True)


def test_attention_is_that_of_the_formulas() -> None:
    """Products that are made once for all steps are those of nn/attention.py, which is held to NumPy."""
    from foreword.nn.attention import additive_scores, attend, dot_scores, general_scores, scaled_scores

    for kind in ATTENTIONS[:4]:
        network = TranslationNetwork(9, 9, True, 6, 8, 8, 1, "lstm", True, kind, False, True)
        weights = views(new_flat(network.tensors(), torch.device("cpu")), network.tensors())
        network.initialise(weights, torch.Generator().manual_seed(1))
        memory = network.encode(weights, torch.tensor([[3, 4], [5, 6], [7, 1]]), torch.tensor([3, 2]))
        queries = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(2))
        values = memory.values
        scores = {
            "additive": lambda: additive_scores(queries, values, weights["query"], weights["key"], weights["score"]),  # noqa: B023
            "dot": lambda: dot_scores(queries, values),  # noqa: B023
            "general": lambda: general_scores(queries, values, weights["key"]),  # noqa: B023
            "scaled": lambda: scaled_scores(queries, values),  # noqa: B023
        }[kind]()
        expected = attend(scores, values, memory.mask)
        found = network.look(weights, memory, queries)
        assert_allclose(found.weights.numpy(), expected.weights.numpy(), atol=1e-6)
        assert_allclose(found.context.numpy(), expected.context.numpy(), atol=1e-6)
        assert float(found.weights[1, :, 2].abs().max()) == 0


# Cells


@pytest.mark.parametrize("cell", CELLS)
def test_every_cell_of_a_language_model_translates_and_is_saved(cell: Any, tmp_path: Path) -> None:
    pairs = reversed_pairs(60)
    model = Seq2Seq(**{**SMALL, "epochs": 8}, cell=cell, layers=2, rate=1e-2, dropout=0.1)
    losses = [step.loss for step in model.train(pairs)]
    assert np.mean(losses[-4:]) < np.mean(losses[:4]) - 0.05
    save(model, tmp_path / "model")
    again: Any = load(tmp_path / "model")
    assert again.cell == cell
    assert torch.equal(again.flat_weights(), model.flat_weights())
    for ours, theirs in zip(model.logprobs(pairs), again.logprobs(pairs), strict=True):
        assert_array_equal(ours, theirs)
    assert model.search(pairs.sources, width=3) == again.search(pairs.sources, width=3)


@pytest.mark.parametrize("cell", CELLS)
def test_every_cell_begins_as_it_does_in_a_language_model(cell: str) -> None:
    """Forget gates are open, an IRNN begins as the identity, gains are one; the bridge sets h, and c if it exists."""
    network = TranslationNetwork(9, 9, True, 6, 8, 8, 2, cell, True, "general", False, True)
    weights = views(new_flat(network.tensors(), torch.device("cpu")), network.tensors())
    network.initialise(weights, torch.Generator().manual_seed(1))
    for layer, units in (("encoder1.behind", 4), ("decoder0", 8)):
        bias = weights[f"{layer}.input_bias"].view(-1, units)
        forget = {"cifg": 0, "lstm": 1, "peephole": 1, "ln-lstm": 1, "slstm": 1}.get(cell)
        assert bias.sum(1).tolist() == [units * (gate == forget) for gate in range(len(bias))]
    if cell == "irnn":
        assert torch.equal(weights["decoder1.recurrent"], IDENTITY * torch.eye(8))
    if cell == "ln-lstm":
        assert weights["encoder0.ahead.norm"].sum(1).tolist() == [4.0] * 9 + [0.0]
    assert len(weights["bridge"]) == 2 * 8 * (2 if cell in ("lstm", "cifg", "peephole", "ln-lstm", "slstm") else 1)


def test_the_decoder_of_an_slstm_begins_with_a_mean_of_one_value() -> None:
    """h = o · c / n is bounded by 1 whatever the bridge gives, since n begins at 1 and |c| ≤ n."""
    network = TranslationNetwork(9, 9, True, 6, 8, 8, 1, "slstm", True, "general", False, True)
    weights = views(new_flat(network.tensors(), torch.device("cpu")), network.tensors())
    for part in weights.values():
        part.normal_(0, 1, generator=torch.Generator().manual_seed(2))
    memory = network.encode(weights, torch.tensor([[3, 4], [5, 6], [7, 1]]), torch.tensor([3, 2]))
    h, c, n, m = memory.state
    assert (n == 1).all()
    assert (m == 0).all()
    x = network._vectors(weights["target"], torch.tensor([[1, 1], [2, 8], [4, 5]]))
    out, (_, c, n, _) = network._layers(weights, x, (h, c, n, m), NOTHING_DROPPED)
    assert float(out.abs().max()) <= 1 + 1e-6
    assert (c.abs() <= n + 1e-6).all()


# Training


def run_of(model: Seq2Seq, pairs: Pairs) -> Any:
    return model.trainer(pairs)


def recorded_inputs(monkeypatch: pytest.MonkeyPatch, run: Trainer, pairs: Pairs) -> list[np.ndarray]:
    """The words that the decoder reads while it learns from one batch."""
    read: list[np.ndarray] = []
    network = TranslationNetwork
    decode, by_steps = network.decode, network.decode_by_steps

    def noted(self: Any, weights: Any, memory: Any, inputs: torch.Tensor, *rest: Any) -> Any:
        read.append(inputs.numpy().copy())
        return decode(self, weights, memory, inputs, *rest)

    def noted_steps(self: Any, weights: Any, memory: Any, word: Any, *rest: Any) -> Any:
        words: list[np.ndarray] = []

        def noted_word(step: int, before: torch.Tensor | None) -> torch.Tensor:
            found: torch.Tensor = word(step, before)
            words.append(found.numpy().copy())
            return found

        result = by_steps(self, weights, memory, noted_word, *rest)
        read.append(np.array(words))
        return result

    monkeypatch.setattr(network, "decode", noted)
    monkeypatch.setattr(network, "decode_by_steps", noted_steps)
    sources, targets = documents_of(pairs.sources), documents_of(pairs.targets)
    batch = batch_of(sources, targets, VOCAB.end, VOCAB.end)
    assert isinstance(run.task, TranslationTask)
    run.task.loss_of(run.leaves, batch, run)
    return [*read, batch.inputs.numpy()]


@pytest.mark.parametrize("feed", [False, True])
def test_q03_taught_by_the_truth_the_decoder_reads_the_target_shifted_by_one(
    monkeypatch: pytest.MonkeyPatch, feed: bool
) -> None:
    """Q03: with teacher forcing it reads </s>, d_1, d_2 …; without, its own words, which are others."""
    pairs = reversed_pairs(6)
    taught = recorded_inputs(monkeypatch, run_of(Seq2Seq(**SMALL, feed=feed), pairs), pairs)
    for column, ids in enumerate(pairs.targets.documents()):
        expected = [VOCAB.end, *ids[:-1].tolist()]
        assert taught[0][: len(expected), column].tolist() == expected
    monkeypatch.undo()
    alone = recorded_inputs(monkeypatch, run_of(Seq2Seq(**SMALL, feed=feed, teacher=False), pairs), pairs)
    assert (alone[0][0] == VOCAB.end).all()
    assert (alone[0] != alone[-1]).any()


def test_q04_scheduled_sampling_replaces_the_share_that_its_schedule_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Q04: linear, exponential and inverse sigmoid fall from 1 to the last chance; the words read are mixed so."""
    for schedule in ("linear", "exponential", "inverse-sigmoid"):
        chances = [truth_after(share, schedule, 0.4) for share in np.linspace(0, 1, 11)]
        assert_allclose([chances[0], chances[-1]], [1, 0.4], atol=1e-9)
        assert all(after <= before for before, after in pairwise(chances))
    assert truth_after(0.5, "linear", 0.4) == pytest.approx(0.7)
    assert truth_after(0.5, "exponential", 0.4) == pytest.approx(0.4**0.5)
    assert truth_after(0.5, "none", 0.4) == 1
    pairs = reversed_pairs(300)
    for feed in (False, True):
        model = Seq2Seq(**SMALL, sampling="linear", truth=0.25, feed=feed)
        run = run_of(model, pairs)
        monkeypatch.setattr(run, "share", lambda: 1.0)
        read = recorded_inputs(monkeypatch, run, pairs)
        mixed, true = read[-2], read[-1]
        assert (mixed[0] == VOCAB.end).all()
        changed = np.mean(mixed[1:] != true[1:])
        assert 0.4 < changed < 0.75  # of three quarters that were its own words, some are right
        monkeypatch.undo()


def test_smoothed_loss_is_that_of_torch() -> None:
    pairs = reversed_pairs(8)
    sources, targets = documents_of(pairs.sources), documents_of(pairs.targets)
    batch = batch_of(sources, targets, VOCAB.end, VOCAB.end)
    for smoothing in (0.0, 0.1, 0.5):
        run = run_of(Seq2Seq(**SMALL, smoothing=smoothing, dropout=0.0), pairs)
        ours = run.task.loss_of(run.leaves, batch, run)
        memory = run.task.network.encode(run.leaves, batch.source, batch.lengths)
        read = run.task.network.decode(run.leaves, memory, batch.inputs, memory.state).readout
        logits = linear(read.flatten(0, 1)[batch.places], run.leaves["target"], run.leaves["bias"])
        theirs = cross_entropy(logits, batch.targets, label_smoothing=smoothing)
        assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)
        leaves = list(run.leaves.values())
        for one, other in zip(torch.autograd.grad(ours, leaves), torch.autograd.grad(theirs, leaves), strict=True):
            assert_allclose(one.numpy(), other.numpy(), atol=2e-6)


def test_a_run_that_was_stopped_ends_as_one_that_was_not(tmp_path: Path) -> None:
    pairs, valid = reversed_pairs(60), reversed_pairs(20, seed=1)
    settings = {**SMALL, "epochs": 4}
    whole = Seq2Seq(**settings).fit(pairs, valid=valid)
    stopped = Seq2Seq(**settings)
    checkpoint = Checkpoint(tmp_path / "run", every=0)
    for _ in stopped.train(pairs, valid=valid, checkpoint=checkpoint):
        if checkpoint.written == 2:
            break
    resumed = Seq2Seq(**settings)
    for _ in resumed.train(pairs, valid=valid, checkpoint=Checkpoint(tmp_path / "run")):
        pass
    assert resumed.valid_score_ == whole.valid_score_
    for name, part in whole.weights_.items():
        assert_array_equal(resumed.weights_[name].numpy(), part.numpy())
    with pytest.raises(InputError, match="another run"):
        list(Seq2Seq(**{**settings, "seed": 1}).train(pairs, valid=valid, checkpoint=Checkpoint(tmp_path / "run")))


def test_training_ends_when_held_out_pairs_get_no_better() -> None:
    pairs = reversed_pairs(30)
    model = Seq2Seq(**{**SMALL, "epochs": 50}, patience=2)
    scores = iter([1.0, 3.0, 2.0, 2.5, 9.0])
    steps = list(model.train(pairs, measure=lambda _: next(scores)))
    assert model.valid_score_ == 3.0
    assert steps[-1].done == 4 * len(pairs.targets.ids)


def test_seconds_are_a_limit() -> None:
    model = Seq2Seq(**{**SMALL, "epochs": 10_000}, seconds=0.3).fit(reversed_pairs(30))
    assert model.weights_["bias"].abs().sum() > 0


def test_batches_hold_every_pair_once() -> None:
    random = np.random.default_rng(0)
    sources, targets = random.integers(1, 30, 200), random.integers(1, 40, 200)
    for drawn in (None, random):
        groups = bucketed(sources, targets, 300, drawn)
        assert sorted(place for group in groups for place in group) == list(range(200))
        assert all(len(group) * targets[group].max() <= 350 for group in groups if len(group) > 1)


# Saving and refusing


@pytest.mark.parametrize("shared", [True, False])
def test_a_saved_model_translates_as_before(tmp_path: Path, shared: bool) -> None:
    pairs = reversed_pairs(30)
    if not shared:
        other = Vocab(["</s>", "<unk>", *(f"v{place}" for place in range(WORDS + 3))], end="</s>")
        targets = [np.asarray(each[:-1]) + 1 for each in pairs.targets.documents()]
        pairs = Pairs(pairs.sources, Corpus.from_ids(targets, other))
    model = trained(pairs, attention="additive", feed=True)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.network_.shared is shared
    assert again.source_vocab == pairs.sources.vocab
    for ours, theirs in zip(model.logprobs(pairs), again.logprobs(pairs), strict=True):
        assert_array_equal(ours, theirs)
    assert model.search(pairs.sources, width=3) == again.search(pairs.sources, width=3)


def test_damaged_parts_are_refused() -> None:
    pairs = reversed_pairs(10)
    other = Corpus.from_ids([each[:-1] for each in pairs.targets.documents()], Vocab([*VOCAB, "more"]))
    parts = trained(Pairs(pairs.sources, other)).to_parts()

    def changed(**arrays: Any) -> Parts:
        return Parts(dict(parts.settings), {**parts.arrays, **arrays}, parts.vocab)

    bias = parts.arrays["weights.bias"]
    for damage in (
        {"weights.bias": bias[:-1]},
        {"weights.bias": bias.astype(np.float64)},
        {"weights.bias": np.full_like(bias, np.nan)},
        {"source.offsets": parts.arrays["source.offsets"][::-1].copy()},
        {"source.offsets": parts.arrays["source.offsets"] + 1},
        {"source.data": parts.arrays["source.data"].astype(np.int32)},
    ):
        with pytest.raises(ValueError, match=r"bias|source"):
            Seq2Seq.from_parts(changed(**damage))
    for place in (-1, 10_000, "1", None):
        settings: dict[str, Any] = {**parts.settings, "source": {"unknown": 0, "end": place}}
        with pytest.raises(ValueError, match="end is"):
            Seq2Seq.from_parts(Parts(settings, parts.arrays, parts.vocab))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"attention": "dot", "encoder": 16}, "equal size, not 16 and 8 units: general or additive"),
        ({"attention": "bilinear"}, "attention is 'bilinear': expected additive or dot"),
        ({"cell": "transformer"}, "cell is 'transformer': expected rnn or irnn or lstm or gru"),
        ({"units": 0}, "units is 0"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"sampling": "cosine"}, "sampling is 'cosine'"),
        ({"encoder": 7}, "encoder=7 must be even"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        Seq2Seq(**{**SMALL, **settings})


def test_q11_dot_attention_refuses_unequal_sizes() -> None:
    with pytest.raises(SettingError, match="takes an encoder and a decoder of equal size"):
        TranslationNetwork(9, 9, True, 6, 8, 10, 1, "lstm", True, "dot", False, True)


def test_bad_pairs() -> None:
    pairs = reversed_pairs(5)
    with pytest.raises(InputError, match="5 sources but 4 targets"):
        Pairs(pairs.sources, pairs.targets[:4])
    with pytest.raises(InputError, match="the training text is empty"):
        Seq2Seq(**SMALL).fit(pairs[:0])
    with pytest.raises(ForewordError, match="has learnt nothing yet"):
        Seq2Seq(**SMALL).translate(pairs.sources)
    model = trained(pairs, attention="none")
    with pytest.raises(SettingError, match="no attention"):
        model.attend(pairs)
    with pytest.raises(SettingError, match="coverage penalty needs attention"):
        model.search(pairs.sources, coverage=0.2)
    with pytest.raises(InputError, match="another vocabulary"):
        model.translate(Corpus.from_ids([[2]], Vocab(["<unk>", "</s>", "x"])))


def test_whole_words_are_dropped_position_by_position_and_are_a_setting_that_is_saved(tmp_path: Path) -> None:
    rates = replace(NO_DROPOUT, words=0.25)
    dropped = Drop(rates, torch.Generator().manual_seed(0)).input(torch.ones(200, 50, 4))
    assert_allclose(np.unique(dropped.numpy()), np.array([0, 1 / 0.75]), rtol=1e-6)
    assert (dropped == dropped[..., :1]).all()  # all units of a word, or none
    assert (dropped[..., 0] == 0).float().mean() == pytest.approx(0.25, abs=0.01)
    model = Seq2Seq(**SMALL, dropout=rates).fit(reversed_pairs(20))
    plain = Seq2Seq(**SMALL, dropout=0.0).fit(reversed_pairs(20))
    assert not torch.equal(model.flat_weights(), plain.flat_weights())
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").dropout == rates
