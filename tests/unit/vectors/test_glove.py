"""GloVe: counts against their definition and Stanford's program, the kernel against its plain twin, a model's life."""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreword
from foreword.errors import ForewordError, InputError, SettingError
from foreword.protocols import Parts
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer
from foreword.vectors.cooccurrence import Cooccurrence, weights_of
from foreword.vectors.glove import GloVe, residuals
from foreword.vectors.kernels_glove import RECORD, gather_block, train_block
from foreword.vectors.plain import cooccurrence, glove_step, pair_loss


def corpus_of(texts: list[str], min_count: int = 1) -> Corpus:
    return Corpus.from_texts(texts, WordTokenizer(min_count=min_count).fit(texts))


def topics(documents: int = 400, length: int = 50) -> Corpus:
    """Twenty words that all documents share and forty of each of five topics, by Zipf's law."""
    rng = np.random.default_rng(7)
    shares = 1 / np.arange(1, 61)
    drawn = [rng.choice(60, length, p=shares / shares.sum()) for _ in range(documents)]
    return corpus_of([" ".join(f"w{w}" if w < 20 else f"t{n % 5}{w}" for w in words) for n, words in enumerate(drawn)])


def small(times: int = 40) -> Corpus:
    return topics(times, 20)


# Counting


STANFORD = {
    ("the", "grass"): 1.833333, ("the", "the"): 0.666667, ("cow", "grass"): 0.666667, ("cow", "the"): 2.5,
    ("eats", "grass"): 1.5, ("eats", "the"): 2.333333, ("eats", "cow"): 1.0, ("and", "grass"): 1.0,
    ("and", "the"): 1.0, ("and", "cow"): 0.5, ("and", "eats"): 0.5, ("goat", "grass"): 0.5, ("goat", "the"): 1.0,
    ("goat", "eats"): 1.0, ("goat", "and"): 0.333333,
}  # fmt: skip
"""What Stanford's ``cooccur -window-size 3`` writes for the text below, less the most frequent word with itself: that
one pair it counts twice.
"""


def test_counts_are_those_of_stanfords_program() -> None:
    """Row E07: X."""
    texts = ["the cow eats the grass", "the goat eats grass and the cow", "", "ice", "grass grass"]
    X = Cooccurrence.of(corpus_of(texts), 3)
    for pair, count in STANFORD.items():
        assert X[pair] == X[pair[::-1]] == pytest.approx(count, abs=1e-6)
    assert X["grass", "grass"] == 2.0
    assert X["ice", "the"] == 0.0
    assert len(X) == 2 * len(STANFORD)  # of these "the the" has one order, and "grass grass" the other
    with pytest.raises(KeyError, match="snow"):
        X["snow", "ice"]


@pytest.mark.parametrize("window", [1, 4, 15, 30, 100])
def test_counts_are_what_the_definition_says(window: int) -> None:
    corpus = small(30)
    X, plain = Cooccurrence.of(corpus, window), cooccurrence(corpus, window)
    assert len(X) == len(plain)
    whole = X.matrix().tocoo()
    found = dict(zip(zip(whole.row.tolist(), whole.col.tolist(), strict=True), whole.data.tolist(), strict=True))
    assert found.keys() == plain.keys()
    for pair, count in plain.items():
        assert found[pair] == np.float32(float(count)) if window <= 22 else abs(found[pair] / count - 1) < 1e-6
    sums = np.zeros(len(corpus.vocab))
    for (i, _), count in plain.items():
        sums[i] += float(count)
    np.testing.assert_allclose(X.totals, sums, rtol=1e-6)


def test_unknown_words_take_no_room_and_ends_are_walls() -> None:
    corpus = corpus_of(["a rare b", "b b a a", "a b"], min_count=2)
    X = Cooccurrence.of(corpus, 1)
    assert X["a", "b"] == 3.0  # "rare" is not there, and no window goes from one line to the next
    assert X["a", "a"] == X["b", "b"] == 2.0
    assert X.totals[[corpus.vocab.end, corpus.vocab.unknown or 0]].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_limit_changes_nothing(threads: int, tmp_path: Path) -> None:
    """A text of three parts, cut in the midst of its documents, is counted as if it were one."""
    rng = np.random.default_rng(3)
    ids = rng.zipf(1.3, 150_000) % 400
    ids[rng.random(len(ids)) < 0.002] = 1
    corpus = Corpus.from_ids(np.split(ids, 5), Vocab(["<unk>", "</s>", *(f"w{n}" for n in range(398))]))
    free = Cooccurrence.of(corpus, 15)
    told: list[tuple[str, int, int | None]] = []
    bound = Cooccurrence.of(
        corpus, 15, memory=1 << 20, scratch=str(tmp_path), threads=threads, meter=lambda *news: told.append(news)
    )
    for name in ("offsets", "columns", "counts"):
        np.testing.assert_array_equal(getattr(bound, name), getattr(free, name))
    assert {phase for phase, _, _ in told} == {"counting pairs", "adding up pairs"}
    assert list(tmp_path.iterdir()) == []


def test_no_sum_can_overflow() -> None:
    for window in (1, 15, 22, 23, 1024):
        for tokens in (10, 10**9, 10**13):
            unit, weights = weights_of(window, tokens)
            assert 2 * tokens * sum(weights.tolist()) < 2**63
            assert abs(Fraction(int(weights[-1]), unit) - Fraction(1, window)) <= Fraction(1, 2 * unit)
    assert weights_of(15, 10**9)[0] == 360360


def test_saved_counts_are_the_same(tmp_path: Path) -> None:
    X = Cooccurrence.of(small(), 5)
    foreword.save(X, tmp_path / "counts")
    loaded = foreword.load(tmp_path / "counts")
    assert loaded.window == 5
    np.testing.assert_array_equal(loaded.counts, X.counts)
    np.testing.assert_array_equal(loaded.columns, X.columns)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [("columns", -1, 10**6), ("columns", 3, -1), ("counts", 0, np.nan), ("counts", 0, 0), ("offsets", 5, 10**6)],
)
def test_a_damaged_file_is_refused(name: str, place: int, value: float) -> None:
    parts = Cooccurrence.of(small(), 5).to_parts()
    parts.arrays[name] = parts.arrays[name].copy()
    parts.arrays[name][place] = value
    with pytest.raises(ValueError, match="must"):
        Cooccurrence.from_parts(parts)


# Training


def test_gradient_is_the_slope_of_the_loss() -> None:
    """Row E07: finite differences."""
    rng = np.random.default_rng(0)
    w, c = rng.normal(size=(2, 6))
    for x in (0.3, 40.0, 500.0):
        _, of_w, of_c, of_bias = pair_loss(w, c, 0.3, -0.2, x, 100.0, 0.75)

        def loss(change: Any, x: float = x) -> float:
            w1, c1 = w + change[:6], c + change[6:12]
            return pair_loss(w1, c1, 0.3 + change[12], -0.2 + change[13], x, 100.0, 0.75)[0]

        small = 1e-6 * np.eye(14)
        slopes = [(loss(step) - loss(-step)) / 2e-6 for step in small]
        np.testing.assert_allclose(np.concatenate((of_w, of_c, [of_bias, of_bias])), slopes, rtol=1e-6, atol=1e-9)


def test_kernel_and_plain_twin_take_the_same_steps() -> None:
    """Row E07: one epoch, both orders of each pair, the records in the order the kernel has shuffled them to."""
    corpus = small()
    X = Cooccurrence.of(corpus, 5)
    model = GloVe(20, window=5, x_max=5.0, epochs=1, rate=0.1, seed=4)
    model._initialise(X)
    parts = model.to_parts().arrays
    W, C, squares_W, squares_C = (
        parts[name].astype(np.float64) for name in ("words", "contexts", "word_squares", "context_squares")
    )
    records = np.empty(RECORD * len(X.columns), np.int32)
    values, report = records.view(np.float32), np.zeros(2)
    every = np.arange(len(corpus.vocab), dtype=np.int32)
    random = np.array([9], np.uint64)
    size = gather_block(every, X.offsets, X.columns, X.counts, 5.0, 0.75, random, records, values)
    pairs = records.reshape(-1, RECORD)[:, :2]
    assert size == len(X.columns) == len(np.unique(pairs, axis=0))
    assert not np.array_equal(pairs[:, 0], np.sort(pairs[:, 0]))
    train_block(records, values, size, model._rows.reshape(-1), model._rows.shape[2], np.float32(0.1), report)
    loss, dense = 0.0, X.matrix().toarray()
    for i, j in pairs.tolist():
        for one, other in [(i, j), (j, i)] if i != j else [(i, j)]:
            x = float(dense[i, j])
            loss += glove_step(W, C, squares_W, squares_C, one, other, x, rate=0.1, x_max=5.0, alpha=0.75)
    np.testing.assert_allclose(model.words_, W[:, :-1], atol=2e-5)
    np.testing.assert_allclose(model.contexts_, C[:, :-1], atol=2e-5)
    np.testing.assert_allclose(model.biases_, np.stack((W[:, -1], C[:, -1]), axis=1), atol=2e-5)
    np.testing.assert_allclose(model.to_parts().arrays["word_squares"], squares_W, rtol=1e-4)
    assert report[0] == pytest.approx(loss, rel=1e-5)
    assert report[1] == len(X)
    rows = model._rows
    assert (rows[:, 0, 21] == 1).all()
    assert (rows[:, 1, 20] == 1).all()
    assert not rows[:, :2, 22:].any()


def test_loss_falls_as_stanfords_does() -> None:
    """Row E07: on this text, with these settings, Stanford's program shows a cost of .0292 to .0297 after 25
    iterations, for three seeds. On the way there it differs, for its biases learn at a rate of 1.
    """
    corpus = topics()
    model = GloVe(20, window=3, x_max=10, epochs=25, rate=0.05)
    X = model.count(corpus)
    losses = [step.loss for step in model.train(X)]
    assert len(X) == 11564  # the records that its cooccur writes
    assert losses[-1] == pytest.approx(0.0294, rel=0.04)
    assert all(after < before for before, after in itertools.pairwise(losses))


def test_residuals_are_reported() -> None:
    """Row E07: w·w̃ + b + b̃ against log X, on all pairs and on frequent ones."""
    corpus = topics()
    model = GloVe(20, window=3, epochs=25, x_max=5)
    X = model.count(corpus)
    steps = model.train(X)
    next(steps)
    early = residuals(model, X, least=model.x_max)
    for _ in steps:
        pass
    late, all_pairs = residuals(model, X, least=model.x_max), residuals(model, X)
    errors, weights = [], []
    whole = X.matrix().tocoo()
    for i, j, x in zip(whole.row, whole.col, whole.data, strict=True):
        error = model.words_[i] @ model.contexts_[j] + model.biases_[i, 0] + model.biases_[j, 1] - np.log(x)
        errors.append(error)
        weights.append(min(1.0, (x / 5) ** 0.75))
    assert all_pairs.pairs == len(X)
    assert all_pairs.rms == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-4)
    assert all_pairs.weighted == pytest.approx(np.sqrt(np.average(np.square(errors), weights=weights)), rel=1e-4)
    assert late.weighted < early.weighted / 2
    assert late.rms == late.weighted  # all of them weigh 1
    with pytest.raises(InputError, match="no pair"):
        residuals(model, X, least=1e9)


def test_words_of_a_topic_end_up_near_each_other() -> None:
    """Four words in five are of the document's topic. All pairs are seen: of others GloVe learns nothing."""
    rng = np.random.default_rng(1)
    topic, own, word = np.arange(300)[:, None] % 5, rng.random((300, 40)) < 0.8, rng.integers(0, 8, (300, 40))
    drawn = np.where(own, topic, rng.integers(0, 5, (300, 40)))
    corpus = corpus_of(
        [" ".join(f"t{t}-{w}" for t, w in zip(*row, strict=True)) for row in zip(drawn, word, strict=True)]
    )
    vectors = GloVe(10, window=5, x_max=20, epochs=40).fit(corpus).vectors
    for n in range(5):
        assert {name[:2] for name, _ in vectors.nearest(f"t{n}-0", 7)} == {f"t{n}"}


def test_vectors_are_the_sum_or_the_words_alone() -> None:
    corpus = small()
    model = GloVe(8, window=3, epochs=2).fit(corpus)
    id = corpus.vocab.id("w3")
    np.testing.assert_array_equal(model.vectors["w3"], model.words_[id] + model.contexts_[id])
    model.combine = "words"
    np.testing.assert_array_equal(model.vectors["w3"], model.words_[id])
    assert "</s>" not in model.vectors


def test_the_seed_settles_everything() -> None:
    corpus = small()
    one, again, other = (GloVe(8, window=3, epochs=3, seed=seed).fit(corpus) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.words_, again.words_)
    assert not np.array_equal(one.words_, other.words_)


@pytest.mark.parametrize("stop", [1, 3, 4])
def test_a_stopped_run_ends_in_the_same_bits(stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foreword.vectors.glove.BLOCK", 300)
    corpus = small()
    whole = GloVe(8, window=5, epochs=2).fit(corpus)
    stopped = GloVe(8, window=5, epochs=2)
    steps = list(itertools.islice(stopped.train(corpus), stop))
    assert steps[-1].done < steps[-1].total
    foreword.save(stopped, tmp_path / "model")
    resumed = foreword.load(tmp_path / "model")
    *_, last = resumed.train(corpus)
    assert last.done == last.total
    np.testing.assert_array_equal(resumed.words_, whole.words_)
    np.testing.assert_array_equal(resumed.contexts_, whole.contexts_)
    np.testing.assert_array_equal(resumed.biases_, whole.biases_)
    assert list(resumed.train(corpus)) == []


def test_steps_reach_the_end_at_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foreword.vectors.glove.BLOCK", 300)
    corpus = small()
    told: list[str] = []
    for threads in (1, 2, 3):
        model = GloVe(8, window=3, epochs=2, threads=threads)
        steps = list(model.train(corpus))
        assert steps[-1].done == steps[-1].total
        assert steps[-1].loss < steps[0].loss
    GloVe(8, window=3, epochs=1).fit(corpus, meter=lambda phase, done, total: told.append(phase))
    assert told[0] == "counting pairs"
    assert told[-1].startswith("training, loss ")


def test_counts_may_be_given_in_place_of_the_text() -> None:
    corpus = small()
    model = GloVe(8, window=3, epochs=1)
    X = model.count(corpus)
    np.testing.assert_array_equal(model.fit(X).words_, GloVe(8, window=3, epochs=1).fit(corpus).words_)
    with pytest.raises(SettingError, match="window=4, but the pairs were counted within 3 words"):
        GloVe(8, window=4).fit(X)


# Bad input


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"dimensions": 0}, "dimensions is 0"),
        ({"window": 0}, "window is 0"),
        ({"window": 5000}, "window is 5000"),
        ({"epochs": 0}, "epochs is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"x_max": 0.0}, r"x_max is 0\.0"),
        ({"alpha": float("inf")}, "alpha is inf"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"rate": 1e30}, r"rate is 1e\+30"),
        ({"combine": "product"}, "combine is 'product'"),
        ({"memory": 10}, "memory=10"),
    ],
)
def test_senseless_settings_are_named(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingError, match=named):
        GloVe(**settings).fit(small(2))


@pytest.mark.parametrize("texts", [[], ["a a a a"]])
def test_a_text_of_one_word_or_none_is_an_error(texts: list[str]) -> None:
    with pytest.raises(InputError, match="fewer than two different words"):
        GloVe(4).fit(corpus_of(texts))


def test_words_that_never_meet_are_an_error() -> None:
    with pytest.raises(InputError, match="no two words of the text are near each other"):
        GloVe(4).fit(corpus_of(["a", "b", "c"]))


def test_numbers_that_are_none_are_told() -> None:
    corpus = small()
    parts = GloVe(4, window=2, epochs=2).fit(corpus).to_parts()
    parts.arrays["words"][:] = np.nan
    state = parts.settings["state"]
    assert isinstance(state, dict)
    state["epoch"] = 1
    with pytest.raises(InputError, match="the loss is NaN or infinite in epoch 2"):
        GloVe.from_parts(parts).fit(corpus)


def test_asking_too_early_is_an_error() -> None:
    with pytest.raises(ForewordError, match="learnt nothing yet"):
        _ = GloVe().vocab


def test_going_on_with_another_text_is_refused() -> None:
    model = GloVe(4, window=3, epochs=1).fit(small())
    with pytest.raises(InputError, match="not the text that training began with"):
        model.fit(small(30))


def test_a_damaged_model_is_refused() -> None:
    corpus = small()
    parts = GloVe(4, window=3, epochs=2).fit(corpus).to_parts()

    def changed(**settings: Any) -> Parts:
        return dataclasses.replace(parts, settings={**parts.settings, **settings})

    with pytest.raises(ValueError, match="'words'"):
        GloVe.from_parts(changed(dimensions=5))
    with pytest.raises(ValueError, match="'epoch'"):
        GloVe.from_parts(changed(state={"epoch": -1, "block": 0, "source": 0}))
    with pytest.raises(SettingError, match="window"):
        GloVe.from_parts(changed(window=0))
    state = parts.settings["state"]
    assert isinstance(state, dict)
    lost = GloVe.from_parts(changed(state={**state, "epoch": 1, "block": 99}))
    with pytest.raises(InputError, match="stopped in block 99"):
        lost.fit(corpus)
