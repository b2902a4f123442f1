"""What the sources say of bags of words, one-hot vectors and TF-IDF, run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from foreword.features.bag import BagOfWords, OneHot
from foreword.features.tfidf import TfIdf

CHASE = ["The cat chases the mouse", "The mouse chases the cat"]
BITE = ["dog bites man", "man bites dog"]


def test_t01_a_sentence_becomes_a_bag_of_counts() -> None:
    """T01: "The cat chases the mouse" is {cat: 1, chases: 1, the: 2, mouse: 1}, in lower case."""
    bag = BagOfWords()
    rows = bag.fit_transform(CHASE[:1])
    assert bag.decode(rows[0]) == {"cat": 1, "chases": 1, "the": 2, "mouse": 1}


@pytest.mark.parametrize("pair", [CHASE, BITE], ids=["chase", "bite"])
def test_t02_a_bag_forgets_the_order_and_pairs_of_words_do_not(pair: list[str]) -> None:
    """T02: the two bags are 100 % identical; the counts of bigrams differ."""
    words, pairs = (BagOfWords(ngrams=(n, n)).fit_transform(pair).toarray() for n in (1, 2))
    assert_array_equal(words[0], words[1])
    assert (pairs[0] != pairs[1]).any()


def test_t03_a_row_of_170_000_columns_stores_two_numbers() -> None:
    """T03: "Hello Matteo" is two ones and 169,998 zeros; stored in under 200 bytes, where a dense row takes 1.36 MB."""
    size = 170_000
    bag = BagOfWords(dtype="float64").fit([" ".join(["hello", "matteo", *(f"word{n}" for n in range(size - 2))])])
    row = bag.transform(["Hello Matteo"])
    assert row.shape == (1, size)
    assert row.nnz == 2
    assert size - row.nnz == 169_998
    assert row.data.nbytes + row.indices.nbytes + row.indptr.nbytes < 200
    assert row.toarray().nbytes == 1_360_000
    assert bag.decode(row) == {"hello": 1, "matteo": 1}


def test_t04_a_one_hot_vector_has_a_single_one() -> None:
    """T04: aardwolf, the third word, is (0, 0, 1, 0, ..., 0)."""
    words = OneHot().fit(["aardvark", "a", "zebra", "cat", "aardwolf", "dog"])
    x = words.transform(["aardwolf"]).toarray()[0]
    assert x[2] == 1
    assert x.sum() == 1
    assert x.tolist() == [0, 0, 1, 0, 0, 0]


def test_t04_all_words_are_equally_far_apart() -> None:
    """T04: any two one-hots of 50,000 dimensions dot to 0, and every distance is √2: cat is as far from dog as from
    democracy, and happy is orthogonal to glad.
    """
    vocabulary = ["cat", "dog", "democracy", "happy", "glad", *(f"word{n}" for n in range(49_995))]
    rows = OneHot().fit(vocabulary).transform(vocabulary)
    assert rows.shape == (50_000, 50_000)
    dots = rows @ rows.T
    assert dots.nnz == 50_000  # only with themselves
    assert_array_equal(dots.diagonal(), np.ones(50_000))
    cat, dog, democracy, happy, glad = rows[:5].toarray()
    for one, other in ((cat, dog), (cat, democracy), (happy, glad), (happy, dog)):
        assert np.linalg.norm(one - other) == math.sqrt(2)  # |a - b|² = 1 + 1 - 2 a·b for all of them


@pytest.mark.parametrize("features", [BagOfWords(), TfIdf(), TfIdf(idf="plain")], ids=["counts", "smooth", "plain"])
def test_t05_a_search_for_happy_does_not_see_glad(features: BagOfWords) -> None:
    """T05: the score of the glad document is 0, and that of one about a dishwasher is the same."""
    documents = ["people who are happy", "people who are glad", "people who own a dishwasher"]
    scores = (features.fit_transform(documents) @ features.transform(["happy"]).T).toarray().ravel()
    assert scores[0] > 0
    assert scores[1] == scores[2] == 0


def test_t06_a_word_in_one_of_a_thousand_documents_weighs_ln_1000() -> None:
    """T06: "Bank" in 1 of 1,000 documents: ln 1000 = 6.908, and 7.216 with scikit-learn's smooth idf."""
    documents = ["the river of the town", "the bank of the town", *["the town of the north"] * 998]
    weight = {idf: float(TfIdf(idf=idf).fit(documents).idf_[0]) for idf in ("plain", "smooth")}
    assert TfIdf().fit(documents).get_feature_names_out()[0] == "bank"
    assert weight["plain"] == pytest.approx(math.log(1000), abs=1e-12)
    assert weight == pytest.approx({"plain": 6.908, "smooth": 7.216}, abs=5e-4)


def test_t06_common_words_are_turned_down_and_rare_ones_up() -> None:
    """T06: "the" and "of" weigh less than in the plain counts, "Starship", "Microscope", "Renaissance" more."""
    documents = [
        "the Starship of the fleet",
        "the Microscope of the school",
        "the art of the Renaissance",
        *(f"the story number{n} of the day" for n in range(50)),
    ]
    counts, weighed = (features(norm="l2").fit(documents) for features in (_normed_counts, TfIdf))
    for document, rare in zip(documents, ["starship", "microscope", "renaissance"], strict=False):
        before = counts.decode(counts.transform([document]))
        after = weighed.decode(weighed.transform([document]))
        assert after["the"] < before["the"]
        assert after["of"] < before["of"]
        assert after[rare] > before[rare]
        assert before["the"] > before[rare]
        assert after[rare] > after["the"] > after["of"]


def _normed_counts(norm: str) -> TfIdf:
    return TfIdf(idf=None, norm=norm)  # type: ignore[arg-type]
