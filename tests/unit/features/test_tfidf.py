"""TF-IDF by hand and by the plain equations; streams and files are tested with the bags (test_bag.py)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from foreword.errors import SettingError
from foreword.features.bag import BagOfWords
from foreword.features.tfidf import Idf, Norm, TfIdf

TEXTS = ["the cat", "the dog the the", "the fish", ""]


def by_the_book(counts: Any, idf: Idf | None, sublinear: bool, norm: Norm | None) -> Any:
    """The equations at the head of tfidf.py, number by number."""
    counts = counts.toarray()
    n, width = counts.shape
    weighed = np.zeros((n, width))
    for row in range(n):
        for column in range(width):
            df = int((counts[:, column] != 0).sum())
            tf = float(counts[row, column])
            if sublinear and tf:
                tf = 1 + math.log(tf)
            weight = {
                "smooth": math.log((1 + n) / (1 + df)) + 1,
                "plain": math.log(n / df),
                "plain+1": math.log(n / df) + 1,
                None: 1.0,
            }[idf]
            weighed[row, column] = tf * weight
        length = {"l1": np.abs(weighed[row]).sum(), "l2": math.sqrt((weighed[row] ** 2).sum()), None: 1.0}[norm]
        if length > 0:
            weighed[row] /= length
    return weighed


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.lists(st.sampled_from(["aa", "bb", "cc", "dd"]), max_size=8).map(" ".join), max_size=6),
    idf=st.sampled_from(["smooth", "plain", "plain+1", None]),
    sublinear=st.booleans(),
    norm=st.sampled_from(["l1", "l2", None]),
    binary=st.booleans(),
)
def test_the_equations(texts: list[str], idf: Idf | None, sublinear: bool, norm: Norm | None, binary: bool) -> None:
    texts = ["aa bb", *texts]
    weighed = TfIdf(idf=idf, sublinear=sublinear, norm=norm, binary=binary).fit_transform(texts)
    counts = BagOfWords(binary=binary).fit_transform(texts)
    assert_allclose(weighed.toarray(), by_the_book(counts, idf, sublinear, norm), rtol=1e-13, atol=1e-15)
    assert_array_equal(weighed.indices, counts.indices)


def test_two_rows_by_hand() -> None:
    """N = 4; "the" stands in 3 documents, the others in 1."""
    weights = TfIdf(norm=None).fit(TEXTS)
    assert weights.get_feature_names_out().tolist() == ["cat", "dog", "fish", "the"]
    assert_allclose(weights.idf_, [math.log(5 / 2) + 1] * 3 + [math.log(5 / 4) + 1], rtol=1e-15)
    assert weights.decode(weights.transform(["the the dog"])) == pytest.approx(
        {"dog": math.log(5 / 2) + 1, "the": 2 * (math.log(5 / 4) + 1)}
    )
    plain = TfIdf(norm=None, idf="plain", sublinear=True).fit(TEXTS)
    assert plain.decode(plain.transform(["the the dog"])) == pytest.approx(
        {"dog": math.log(4), "the": (1 + math.log(2)) * math.log(4 / 3)}
    )


def test_every_row_has_length_one_or_is_empty() -> None:
    rows = TfIdf().fit_transform(TEXTS)
    assert_allclose(np.sqrt(rows.multiply(rows).sum(axis=1)).ravel(), [[1, 1, 1, 0]], rtol=1e-15)


def test_a_row_of_terms_that_stand_everywhere_stays_zero() -> None:
    """ln(N / df) is zero for them; nothing is divided by that."""
    rows = TfIdf(idf="plain").fit_transform(["aa", "aa bb"])
    assert rows.toarray().tolist() == [[0, 0], [0, 1]]


def test_document_frequencies_add_up_in_partial_fit() -> None:
    weights = TfIdf(idf="plain", norm=None).partial_fit(["aa bb"])
    assert weights.idf_.tolist() == [0, 0]
    weights.partial_fit(["aa", "aa", "cc"])
    assert_allclose(weights.idf_, [math.log(4 / 3), math.log(4), math.log(4)], rtol=1e-15)


def test_signed_hashed_counts_keep_their_sign() -> None:
    for sublinear in (False, True):
        signed = TfIdf(columns=64, signed=True, sublinear=sublinear, norm="l1").fit_transform(TEXTS)
        counts = BagOfWords(columns=64, signed=True).fit_transform(TEXTS)
        assert_array_equal(np.sign(signed.data), np.sign(counts.data))
        assert_allclose(np.abs(signed).sum(axis=1).ravel(), [[1, 1, 1, 0]])


def test_float32_is_the_same_rounded() -> None:
    single, double = (TfIdf(dtype=kind).fit_transform(TEXTS) for kind in ("float32", "float64"))
    assert single.dtype == np.float32
    assert_array_equal(single.data, double.data.astype(np.float32))


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"idf": "sharp"}, "idf is 'sharp': expected smooth or plain or plain.1"),
        ({"norm": "l3"}, "norm is 'l3': expected l1 or l2"),
        ({"dtype": "int64"}, "dtype='int64': expected float64 or float32"),
        ({"ngrams": (3, 2)}, "ngrams"),
    ],
)
def test_settings_that_make_no_sense_are_named(chosen: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        TfIdf(**chosen).fit(TEXTS)
