"""Facts about embeddings on examples whose answers are known; pseudo-words; the two tables' refusals."""

from __future__ import annotations

import numpy as np
import pytest

from foreword.errors import InputError, SettingError
from foreword.lessons.embedding import (
    between,
    distinct_vectors,
    glove_against_fasttext,
    intrinsic_dimension,
    shared_ngrams,
    static_against_contextual,
    static_embedder,
    with_pseudo_word,
)
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.vectors.wordvectors import WordVectors


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_points_of_a_flat_sheet_have_its_dimension(dimension: int) -> None:
    """Row E15: whatever the space around it, and however it is turned."""
    rng = np.random.default_rng(0)
    flat = rng.uniform(size=(2000, dimension))
    turned = flat @ np.linalg.qr(rng.normal(size=(20, 20)))[0][:dimension]
    assert intrinsic_dimension(turned) == pytest.approx(dimension, rel=0.1)
    assert intrinsic_dimension(np.concatenate((turned, turned[:100]))) == pytest.approx(dimension, rel=0.1)


def test_too_few_points_tell_nothing() -> None:
    with pytest.raises(InputError, match="3 different points"):
        intrinsic_dimension(np.eye(3))
    with pytest.raises(SettingError, match="discard=1"):
        intrinsic_dimension(np.eye(20), discard=1)


def test_equal_vectors_are_counted_once() -> None:
    rows = np.array([[1, 2], [3, 4], [1, 2]], np.float32)
    assert distinct_vectors(WordVectors.of_words("abc", rows)) == 2


def test_shared_ngrams_by_hand() -> None:
    # <ga gat att tto to> and <ga gat att tti ti>: three of seven.
    assert shared_ngrams("gatto", "gatti", 3, 3) == pytest.approx(3 / 7)
    assert shared_ngrams("gatto", "gatto") == 1
    assert shared_ngrams("gatto", "zwerg") == 0
    assert shared_ngrams("", "", 3, 6) == 0


def test_a_pseudo_word_takes_as_many_places_of_each() -> None:
    """Row E19."""
    texts = ["river water " * 30, "money bank " * 10]
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    mixed, name = with_pseudo_word(corpus, "river", "money")
    assert name == "river|money"
    assert corpus.vocab.counts is not None
    counts = {word: int((mixed.ids == mixed.vocab.id(word)).sum()) for word in ("river", "money", name, "water")}
    assert counts == {"river": 25, "money": 5, name: 10, "water": 30}
    assert mixed.vocab.counts is not None
    assert mixed.vocab.counts[mixed.vocab.id(name)] == 10
    changed = np.flatnonzero(mixed.ids != corpus.ids)
    assert set(corpus.ids[changed].tolist()) == {corpus.vocab.id("river"), corpus.vocab.id("money")}
    again, _ = with_pseudo_word(corpus, "river", "money")
    np.testing.assert_array_equal(again.ids, mixed.ids)
    with pytest.raises(InputError, match="no such two words"):
        with_pseudo_word(corpus, "river", "lake")
    with pytest.raises(SettingError, match="share=1"):
        with_pseudo_word(corpus, "river", "money", share=1)


def test_between_by_hand() -> None:
    rows = np.array([[1, 1], [1, 0], [0, 1], [-1, -1]], np.float32)
    found = between(WordVectors.of_words(["m", "a", "b", "far"], rows), "m", "a", "b")
    assert found.middle == pytest.approx(1)
    assert found.one == found.other == pytest.approx(2**-0.5)
    assert found.senses == pytest.approx(0)
    assert found.usual == pytest.approx((1 + 2 * 2**-0.5 - 1) / 4)
    with pytest.raises(InputError, match="no vectors for all"):
        between(WordVectors.of_words(["m"], rows[:1]), "m", "a", "b")


def test_tables_refuse_what_would_prove_nothing() -> None:
    """Row E20."""
    vectors = WordVectors.of_words(["bank", "river"], np.eye(2, dtype=np.float32))
    with pytest.raises(InputError, match="'bank' is not an unseen word"):
        glove_against_fasttext(vectors, vectors, ["bank"])
    embed = static_embedder(vectors)
    with pytest.raises(InputError, match="two senses"):
        static_against_contextual(embed, embed, "bank", [[["bank"], ["bank"]]])
    with pytest.raises(InputError, match="is not in"):
        static_against_contextual(embed, embed, "bank", [[["bank"], ["river"]], [["bank"], ["bank"]]])
