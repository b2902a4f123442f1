"""Word2Vec: the kernel against its plain twin, the gradients against PyTorch, and the life of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreword
from foreword.errors import InputError, SettingError
from foreword.fasttext.vectors import FastText
from foreword.text.datasets import find
from foreword.text.sources import read_blocks
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer
from foreword.vectors import plain
from foreword.vectors.kernels_training import Paths, make_workspace, train_windows
from foreword.vectors.training import (
    alias_table,
    epochs_for,
    huffman_paths,
    keep_shares,
    padded,
    sample_for,
    widened,
    word_counts,
)
from foreword.vectors.word2vec import Word2Vec

FARM = ["the", "cow", "eats", "grass", "goat", "king", "rules", "land", "queen", "."]


def farm(times: int = 60) -> Corpus:
    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice(FARM, 12)) for _ in range(times)]
    tokenizer = WordTokenizer().fit(texts)
    return Corpus.from_texts(texts, tokenizer)


@pytest.mark.parametrize("cbow", [False, True])
@pytest.mark.parametrize(("negatives", "fixed"), [(0, False), (5, False), (5, True), (9, False)])
def test_kernel_and_plain_twin_take_the_same_steps(cbow: bool, negatives: int, fixed: bool) -> None:
    """Row E06: negative sampling, hierarchical softmax and subsampling, fast and plain."""
    rng = np.random.default_rng(1)
    words, d = 60, 20
    counts = rng.integers(1, 50, words)
    counts[:2] = 0
    noise, paths, keep = alias_table(counts**0.75), huffman_paths(counts), keep_shares(counts, 0.01)
    # No word stands twice in a window: there the kernel sees the first one's change already.
    documents = [(rng.permutation(words - 2) + 2).tolist() for _ in range(4)]
    E, U = rng.normal(size=(words, d)) * 0.1, rng.normal(size=(words, d)) * 0.1
    inputs, outputs = widened(E.astype(np.float32)), widened(U.astype(np.float32))
    ids = np.array([id for document in documents for id in (*document, 1)], np.uint16)
    report, random = np.zeros(3), np.array([7], np.uint64)
    train_windows(
        ids, 0, len(ids), 1, keep, 4, fixed, cbow, negatives, noise, paths, inputs.reshape(-1), outputs.reshape(-1),
        padded(d), np.float32(0.05), random, make_workspace(padded(d), 100), report,
    )  # fmt: skip
    twin = plain.SplitMix(7)
    total = sum(
        plain.train_windows(document, keep, 4, cbow, negatives, noise, paths, E, U, 0.05, twin, fixed)
        for document in documents
    )
    np.testing.assert_allclose(inputs[:, :d], E, atol=2e-6)
    np.testing.assert_allclose(outputs[:, :d], U, atol=2e-6)
    assert report[0] == pytest.approx(total, rel=1e-5)
    assert int(random[0]) == twin.state
    assert not inputs[:, d:].any()


def test_pairs_of_a_window_follow_the_formula() -> None:
    """Row E05: M = 5, j from −M to M without 0, clipped to the text."""
    length, window = 12, 5
    expected = [(t, t + j) for t in range(length) for j in range(-window, window + 1) if j and 0 <= t + j < length]
    assert sorted(plain.pairs(length, window)) == sorted(expected)
    assert len(expected) == 2 * (window * length - window * (window + 1) // 2)


@pytest.mark.parametrize("model", ["skip-gram", "cbow"])
def test_full_softmax_has_the_gradients_of_autograd(model: str) -> None:
    """Rows E03, E04, by the equations in NumPy; both matrices are there to see (Z10)."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    E, U, centre, contexts = rng.normal(size=(9, 4)), rng.normal(size=(9, 4)), 3, np.array([1, 5, 5, 8])
    e, u = (torch.tensor(matrix, requires_grad=True) for matrix in (E, U))
    if model == "cbow":
        scores = u @ e[contexts].mean(0)
        expected = -torch.log_softmax(scores, 0)[centre]
        loss, of_e, of_u = plain.cbow_softmax(E, U, centre, contexts)
    else:
        expected = -torch.log_softmax(u @ e[centre], 0)[contexts].sum()
        loss, of_e, of_u = plain.skip_gram_softmax(E, U, centre, contexts)
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-12)
    np.testing.assert_allclose(of_e, e.grad.numpy(), atol=1e-12)
    np.testing.assert_allclose(of_u, u.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize("model", ["skip-gram", "cbow"])
def test_a_full_softmax_is_trained_by_the_steps_of_autograd(model: str) -> None:
    """Rows E03, E04, E05: ``Word2Vec(loss="softmax", window="fixed:3")`` takes PyTorch's steps of gradient descent,
    window after window, over the pairs of the formula. Words repeat, also within a window.
    """
    torch = pytest.importorskip("torch")
    texts = [" ".join(np.random.default_rng(5).choice(FARM, 60))]
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    settings: Any = {"model": model, "loss": "softmax", "window": "fixed:3", "sample": 0, "epochs": 1, "rate": 0.1}
    trained, start = Word2Vec(10, **settings), Word2Vec(10, **settings)
    losses = [step.loss for step in trained.train(corpus)]
    start._initialise(corpus, word_counts(corpus))
    words = np.flatnonzero(word_counts(corpus))  # <unk> and </s> are no words: nothing predicts them
    e, u = (
        torch.tensor(each[words].astype(np.float64), requires_grad=True) for each in (start.inputs_, start.outputs_)
    )
    ids = np.searchsorted(words, corpus.ids[:-1])
    total, count = 0.0, 0
    for centre in range(len(ids)):
        around = ids[[other for at, other in plain.pairs(len(ids), 3) if at == centre]]
        one = e[around].mean(0) if model == "cbow" else e[ids[centre]]
        wanted = [ids[centre]] if model == "cbow" else around
        loss = -torch.log_softmax(u @ one, 0)[wanted].sum()
        loss.backward()
        with torch.no_grad():
            for matrix in (e, u):
                matrix -= 0.1 * matrix.grad
                matrix.grad = None
        total, count = total + loss.item(), count + len(wanted)
    np.testing.assert_allclose(trained.inputs_[words], e.detach(), atol=2e-6)
    np.testing.assert_allclose(trained.outputs_[words], u.detach(), atol=2e-6)
    assert losses[0] == pytest.approx(total / count, rel=1e-5)
    assert count == (60 if model == "cbow" else 2 * (3 * 60 - 6))


@pytest.mark.parametrize("threads", [1, 3])
def test_the_pairs_that_are_trained_are_those_of_the_formula(threads: int) -> None:
    """Row E05: M = 5 in documents of several lengths, at any number of threads; a drawn window has fewer."""
    rng = np.random.default_rng(6)
    lengths = rng.integers(1, 30, 40).tolist()
    texts = [" ".join(rng.choice(FARM, length)) for length in lengths]
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    formula = sum(1 for length in lengths for _ in plain.pairs(length, 5))
    counts = {}
    for window in ("fixed", 5):
        model = Word2Vec(8, loss="softmax", window=window, sample=0, epochs=2, threads=threads).fit(corpus)
        counts[window] = model._state.report[:, 1].sum()
    assert counts["fixed"] == 2 * formula
    assert counts[5] < 1.6 * formula


@pytest.mark.parametrize("model", ["skip-gram", "cbow"])
def test_a_full_softmax_learns_which_words_are_alike(model: Any, tmp_path: Path) -> None:
    """Rows E03, E04: words that stand in the same contexts get like vectors; the model is saved and resumed."""
    rng = np.random.default_rng(7)
    forms = [(["cow", "goat"], "eats green grass"), (["king", "queen"], "rules wide land")]
    texts = [f"the {rng.choice(form[0])} {form[1]}" for form in forms for _ in range(100)]
    texts = [texts[at] for at in rng.permutation(len(texts))]
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    settings: Any = {"model": model, "loss": "softmax", "window": "fixed:3", "sample": 0, "rate": 0.1, "epochs": 20}
    losses = [(step.done, step.loss) for step in Word2Vec(8, **settings).train(corpus)]
    assert losses[-1][1] < losses[0][1] - 0.5
    stopped = Word2Vec(8, **settings)
    for _ in zip(range(30), stopped.train(corpus), strict=False):
        pass
    foreword.save(stopped, tmp_path / "model")
    found = foreword.load(tmp_path / "model").fit(corpus)
    np.testing.assert_array_equal(found.inputs_, Word2Vec(8, **settings).fit(corpus).inputs_)
    near = found.vectors.similarity
    assert min(near("cow", "goat"), near("king", "queen")) > max(near("cow", "king"), near("goat", "queen")) + 0.3


def test_skip_gram_gives_every_offset_the_same_distribution() -> None:
    """Row E04: the loss does not change when the contexts change places."""
    rng = np.random.default_rng(3)
    E, U, contexts = rng.normal(size=(7, 3)), rng.normal(size=(7, 3)), np.array([1, 2, 4, 6])
    losses = [plain.skip_gram_softmax(E, U, 0, rng.permutation(contexts))[0] for _ in range(5)]
    np.testing.assert_allclose(losses, losses[0], rtol=1e-14)


def test_alias_table_draws_in_proportion() -> None:
    weights = np.array([0.0, 1, 2, 3, 10])
    table = alias_table(weights)
    shares = np.zeros(5)
    for place in range(5):
        kept = table.accept[place] / 2**32
        shares[place] += kept / 5
        shares[table.other[place]] += (1 - kept) / 5
    np.testing.assert_allclose(shares, weights / weights.sum(), atol=1e-8)


def test_the_fast_alias_table_is_the_plain_one() -> None:
    rng = np.random.default_rng(0)
    for weights in (np.array([3.0]), np.ones(7), rng.random(1000) ** 4, np.sort(rng.zipf(1.5, 500) ** 0.75)[::-1]):
        for fast, slow in zip(alias_table(weights), plain.alias_table(weights), strict=True):
            np.testing.assert_array_equal(fast, slow)


def test_words_are_counted_the_same_at_any_number_of_threads() -> None:
    vocab = Vocab(["<unk>", "</s>", *"abcdefg"])
    ids = np.random.default_rng(0).integers(0, len(vocab), 1001)
    corpus = Corpus.from_ids([ids], vocab)
    expected = np.bincount(ids, minlength=len(vocab))
    expected[:2] = 0
    for threads in (1, 2, 5):
        np.testing.assert_array_equal(word_counts(corpus, threads), expected)


def test_huffman_paths_spell_an_optimal_prefix_code() -> None:
    counts = np.array([0, 0, 45, 13, 12, 16, 9, 5])
    paths = huffman_paths(counts)
    lengths = np.diff(paths.offsets)
    assert lengths.tolist() == [0, 0, 1, 3, 3, 3, 4, 4]
    codes = {tuple(paths.turns[paths.offsets[w] : paths.offsets[w + 1]].tolist()) for w in range(2, 8)}
    assert len(codes) == 6
    assert all(a == b or a != b[: len(a)] for a in codes for b in codes)
    assert paths.nodes.max() == 4  # six words have five inner nodes; the root is the last


@pytest.mark.parametrize("settings", [{}, {"model": "cbow"}, {"loss": "hierarchical-softmax"}])
def test_loss_falls_and_the_seed_settles_everything(settings: dict[str, Any]) -> None:
    corpus = farm()
    model = Word2Vec(10, sample=0, epochs=30, rate=0.1, **settings)
    losses = [step.loss for step in model.train(corpus)]
    assert np.mean(losses[-10:]) < np.mean(losses[:10])
    again = Word2Vec(10, sample=0, epochs=30, rate=0.1, **settings).fit(corpus)
    np.testing.assert_array_equal(model.inputs_, again.inputs_)
    other = Word2Vec(10, sample=0, epochs=30, rate=0.1, seed=1, **settings).fit(corpus)
    assert not np.array_equal(model.inputs_, other.inputs_)


def test_a_stopped_run_ends_in_the_same_bits(tmp_path: Path) -> None:
    corpus = farm()
    whole = Word2Vec(10, sample=0.01, epochs=3).fit(corpus)
    stopped = Word2Vec(10, sample=0.01, epochs=3)
    for number, _ in enumerate(stopped.train(corpus)):
        if number == 20:
            break
    foreword.save(stopped, tmp_path / "model")
    resumed = foreword.load(tmp_path / "model").fit(corpus)
    np.testing.assert_array_equal(resumed.inputs_, whole.inputs_)
    np.testing.assert_array_equal(resumed.outputs_, whole.outputs_)


def test_steps_reach_the_end_at_any_number_of_threads() -> None:
    corpus = farm()
    for threads in (1, 2, 3):
        *_, last = Word2Vec(8, epochs=2, threads=threads).train(corpus)
        assert last.done == last.total == 2 * len(corpus.ids)


def test_unknown_words_are_stepped_over() -> None:
    """Words below the minimum count have no vector and take no place in a window, as in word2vec."""
    texts = ["a b rare c a b c"] * 3 + ["odd a b c"]
    tokenizer = WordTokenizer(min_count=3).fit(texts)
    corpus = Corpus.from_texts(texts, tokenizer)
    model = Word2Vec(4, epochs=1).fit(corpus)
    assert corpus.vocab.unknown is not None
    assert not model.inputs_[corpus.vocab.unknown].any()
    assert "rare" in model.vectors
    assert "odd" not in model.vectors
    assert "</s>" not in model.vectors


def test_counts_leave_out_what_is_no_word() -> None:
    corpus = Corpus.from_ids([[2, 2, 0]], Vocab(["<unk>", "</s>", "a"]))
    assert word_counts(corpus).tolist() == [0, 0, 2]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"dimensions": 0}, "dimensions is 0"),
        ({"window": 0}, "window is 0"),
        ({"window": 1000}, "window is 1000"),
        ({"window": "wide"}, "window is 'wide': expected a whole number, 'fixed'"),
        ({"window": "fixed:0"}, "window is 0"),
        ({"negatives": 0}, "negatives is 0"),
        ({"negatives": 500}, "negatives is 500"),
        ({"epochs": 0}, "epochs is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"model": "glove"}, "model is 'glove'"),
        ({"loss": "hinge"}, "loss is 'hinge'"),
        ({"sample": -1.0}, "sample is -1.0"),
        ({"rate": float("nan")}, "rate is nan"),
    ],
)
def test_senseless_settings_are_named(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingError, match=named):
        Word2Vec(**settings).fit(farm(2))


def test_a_text_of_one_word_is_an_error() -> None:
    texts = ["a a a a"]
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    with pytest.raises(InputError, match="fewer than two different words"):
        Word2Vec(4).fit(corpus)


def test_going_on_with_another_vocabulary_is_refused() -> None:
    model = Word2Vec(4, epochs=1).fit(farm())
    texts = ["x y z x"]
    other = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    with pytest.raises(InputError, match="another vocabulary"):
        model.fit(other)


def test_paths_of_no_tree_are_empty() -> None:
    paths = huffman_paths(np.array([0, 3]))
    assert paths == Paths(paths.nodes, paths.turns, paths.offsets)
    assert paths.offsets.tolist() == [0, 0, 0]


@pytest.mark.data
@pytest.mark.parametrize("build", [Word2Vec, FastText])
def test_vectors_of_one_book_do_not_collapse_with_the_defaults(build: type) -> None:
    """With word2vec's threshold for large texts, in five epochs every two words had a cosine of 0.99."""
    words = WordTokenizer(min_count=5, split="punctuation", lowercase=True)
    corpus = words.fit_corpus(read_blocks(str(find("tinyshakespeare"))), threads=1)
    vectors = build(20, **({"buckets": 20_000} if build is FastText else {})).fit(corpus).vectors
    rows = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    one, other = np.random.default_rng(0).integers(len(rows), size=(2, 5000))
    assert (rows[one] * rows[other]).sum(axis=1).mean() < 0.6
    assert {word for word, _ in vectors.nearest("king", 20)} & {"edward", "henry", "richard", "prince", "queen"}


def test_defaults_depend_on_the_size_of_the_text() -> None:
    assert [sample_for(None, words) for words in (300_000, 10_000_000)] == [1e-3, 1e-4]
    assert [epochs_for(None, words) for words in (0, 1000, 300_000, 10**9)] == [30, 30, 16, 5]
    assert (sample_for(0.0, 1), epochs_for(2, 1)) == (0.0, 2)
