"""FastText: the kernel against its plain twin, n-grams and hashes, words nobody has seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreword
from foreword.errors import InputError, SettingError
from foreword.fasttext.kernels_vectors import Subwords, make_subword_workspace, train_subwords
from foreword.fasttext.vectors import FastText
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.vectors import plain
from foreword.vectors.plain import character_ngrams
from foreword.vectors.training import alias_table, keep_shares, padded, widened
from foreword.vectors.words import fasttext_hash, hashed_ngrams

STEMS = ("eat", "walk", "jump", "read", "sing", "talk")
ENDINGS = ("", "s", "ing", "er", "ed")


def verbs(times: int = 150) -> Corpus:
    rng = np.random.default_rng(6)
    texts = []
    for _ in range(times):
        stem = str(rng.choice(STEMS))
        texts.append(" ".join(f"{stem}{ending}" for ending in rng.permutation(ENDINGS)))
    return Corpus.from_texts(texts, WordTokenizer().fit(texts))


@pytest.mark.parametrize("cbow", [False, True])
@pytest.mark.parametrize("negatives", [5, 20])
def test_kernel_and_plain_twin_take_the_same_steps(cbow: bool, negatives: int) -> None:
    rng = np.random.default_rng(1)
    words, parts, d = 60, 300, 20
    counts = rng.integers(1, 50, words)
    counts[:2] = 0
    noise, keep = alias_table(counts**0.5), keep_shares(counts, 0.05)
    # Every word has parts of its own: where words share a row, the kernel adds the change once for each of them.
    shuffled = rng.permutation(parts) + words
    rows_of = [[word, *(shuffled[word * 5 : word * 5 + word % 6].tolist())] for word in range(words)]
    subwords = Subwords(
        np.array([row for rows in rows_of for row in rows], np.int32), np.cumsum([0, *map(len, rows_of)])
    )
    documents = [(rng.permutation(words - 2) + 2).tolist() for _ in range(3)]
    E, U = rng.normal(size=(words + parts, d)) * 0.1, rng.normal(size=(words, d)) * 0.1
    inputs, outputs = widened(E.astype(np.float32)), widened(U.astype(np.float32))
    ids = np.array([id for document in documents for id in (*document, 1)], np.uint16)
    report, random = np.zeros(3), np.array([7], np.uint64)
    twin = plain.SplitMix(7)
    train_subwords(
        ids, 0, len(ids), 1, keep, 4, cbow, negatives, noise, subwords, inputs.reshape(-1), outputs.reshape(-1),
        padded(d), np.float32(0.05), random, make_subword_workspace(padded(d), 100), report,
    )  # fmt: skip
    total = sum(
        plain.train_subwords(document, keep, 4, cbow, negatives, noise, rows_of, E, U, 0.05, twin)
        for document in documents
    )
    assert int(random[0]) == twin.state
    np.testing.assert_allclose(inputs[:, :d], E, atol=2e-6)
    np.testing.assert_allclose(outputs[:, :d], U, atol=2e-6)
    assert report[0] == pytest.approx(total, rel=1e-5)


def test_ngrams_of_apple() -> None:
    """Row E09: the five parts of length 3, and the word itself beside them."""
    assert character_ngrams("apple", 3, 3) == ["<ap", "app", "ppl", "ple", "le>"]
    corpus = Corpus.from_texts(["apple pear"], WordTokenizer().fit(["apple pear"]))
    model = FastText(6, min_n=3, max_n=3, buckets=1000, epochs=1).fit(corpus)
    rows = [fasttext_hash(part) % 1000 for part in character_ngrams("apple", 3, 3)]
    parts = model.ngrams_[np.searchsorted(model._used, rows)]
    own = model.words_[corpus.vocab.id("apple")]
    np.testing.assert_allclose(model.vectors["apple"], (parts.sum(0) + own) / 6, rtol=1e-5)


@pytest.mark.parametrize("word", ["test", "тест", "テスト", "a", "", "😀x", "naïve"])
@pytest.mark.parametrize("lengths", [(3, 6), (1, 3), (2, 2)])
def test_kernel_hashes_the_ngrams_that_the_plain_list_has(word: str, lengths: tuple[int, int]) -> None:
    data = np.frombuffer(word.encode(), np.uint8)
    buckets, _ = hashed_ngrams(data, np.array([0, len(data)]), *lengths, 1000)
    assert buckets.tolist() == [fasttext_hash(part) % 1000 for part in character_ngrams(word, *lengths)]


def test_hashes_are_fasttexts_own() -> None:
    """Numbers that fastText printed, the signed bytes of Russian and Japanese included."""
    known = {
        "команда": 1725507386, "маленьких": 3011324125, "друзей": 737001801, "возит": 4225261911,
        "грузы": 1301826944, "всех": 706328732, "быстрей": 1379730754, "mysterious": 1903186891,
        "asteroid": 1988297200, "odyssey": 310195777, "introduction": 2848265721, "北海道": 4096045468,
        "札幌": 3909947444, "西区": 3653372632,
    }  # fmt: skip
    assert {word: fasttext_hash(word) for word in known} == known


@pytest.mark.parametrize("model", ["skip-gram", "cbow"])
def test_an_unseen_word_gets_a_vector_near_its_kin(model: Any) -> None:
    """Row E11: *eatable* is made of its parts, and its neighbours contain *eat*; so do typos'."""
    vectors = FastText(20, model=model, sample=0, epochs=60).fit(verbs()).vectors
    assert "eatable" not in vectors
    for unseen in ("eatable", "eatinng"):
        assert np.linalg.norm(vectors[unseen]) > 0
        assert any(word.startswith("eat") for word, _ in vectors.nearest(vectors[unseen], 5))
    with pytest.raises(KeyError):
        vectors["qqq"]


def test_words_without_ngrams_are_word2vecs() -> None:
    vectors = FastText(8, min_n=0, max_n=0, epochs=1).fit(verbs()).vectors
    with pytest.raises(KeyError):
        vectors["eatable"]


def test_a_stopped_run_ends_in_the_same_bits(tmp_path: Path) -> None:
    corpus = verbs()
    whole = FastText(10, epochs=3, buckets=500).fit(corpus)
    stopped = FastText(10, epochs=3, buckets=500)
    for number, _ in enumerate(stopped.train(corpus)):
        if number == 20:
            break
    foreword.save(stopped, tmp_path / "model")
    resumed = foreword.load(tmp_path / "model").fit(corpus)
    np.testing.assert_array_equal(resumed.vectors.matrix, whole.vectors.matrix)
    np.testing.assert_array_equal(resumed.outputs_, whole.outputs_)


def test_vectors_survive_saving(tmp_path: Path) -> None:
    vectors = FastText(10, epochs=1, buckets=500).fit(verbs()).vectors
    foreword.save(vectors, tmp_path / "vectors")
    loaded = foreword.load(tmp_path / "vectors")
    np.testing.assert_array_equal(loaded["eating"], vectors["eating"])
    np.testing.assert_array_equal(loaded["eatable"], vectors["eatable"])
    assert loaded.nearest("eating", 3) == vectors.nearest("eating", 3)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"min_n": 4, "max_n": 3}, "4 to 3"),
        ({"buckets": -1}, "-1 buckets"),
        ({"negatives": 0}, "negatives is 0"),
        ({"model": "bag"}, "model is 'bag'"),
        ({"rate": 0.0}, "rate is 0.0"),
    ],
)
def test_senseless_settings_are_named(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingError, match=named):
        FastText(**settings).fit(verbs(2))


def test_a_rate_that_runs_away_is_told() -> None:
    with pytest.raises(InputError, match="diverged"):
        FastText(8, rate=1e30, epochs=5).fit(verbs())
