"""Texts in memory into sparse matrices of counts and weights, against scikit-learn's vectorisers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from benchmarks.measure import FEW_PAIRS, PAIRS, interleaved, one_core
from benchmarks.progress import say
from benchmarks.report import Row, compared
from foreword.features.bag import BagOfWords
from foreword.features.tfidf import TfIdf
from foreword.text.datasets import labelled

TITLE = "Bags of words"
HOW = (
    "`fit_transform` of IMDB's training reviews: a list of strings in memory into a CSR matrix with its vocabulary. "
    "Both sides have the same terms in the same columns and the same numbers, weights to 1e-9; ours has sorted rows."
)

BAR = 6
FEW = 5_000
"""Reviews for runs of characters, and for everything in a quick run."""

Fitted = tuple[Any, Any]
"""A vectoriser and its matrix."""


def run(quick: bool) -> list[Row]:
    say("reading imdb:train")
    texts = [text for _, text in islice(labelled("imdb:train"), FEW if quick else None)]
    with one_core():
        return [
            _row(texts, "counts of words", BagOfWords, CountVectorizer, bar=BAR),
            _row(texts, "TF-IDF of words", TfIdf, TfidfVectorizer, bar=BAR),
            _row(
                texts, "counts of words and pairs", lambda: BagOfWords(ngrams=(1, 2)),
                lambda: CountVectorizer(ngram_range=(1, 2)), pairs=FEW_PAIRS,
            ),
            _row(
                texts[:FEW], "counts of 3 to 5 characters in words",
                lambda: BagOfWords(split="characters in words", ngrams=(3, 5)),
                lambda: CountVectorizer(analyzer="char_wb", ngram_range=(3, 5)), pairs=FEW_PAIRS,
            ),
        ]  # fmt: skip


def _row(
    texts: list[str],
    job: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    bar: float | None = None,
    pairs: int = PAIRS,
) -> Row:
    job = f"{job}, {len(texts):,} reviews"
    measured = interleaved(job, lambda: fitted(ours(), texts), lambda: fitted(theirs(), texts), agree, pairs=pairs)
    return compared(job, theirs().__class__.__name__, measured, bar=bar, size=sum(map(len, texts)) / 1e6)


def fitted(vectoriser: Any, texts: list[str]) -> Fitted:
    return vectoriser, vectoriser.fit_transform(texts)


def agree(ours: Fitted, theirs: Fitted) -> bool:
    (bag, found), (peer, wanted) = ours, theirs
    wanted.sort_indices()
    return (
        bag.vocabulary_ == peer.vocabulary_
        and found.shape == wanted.shape
        and np.array_equal(found.indptr, wanted.indptr)
        and np.array_equal(found.indices, wanted.indices)
        and np.allclose(found.data, wanted.data, rtol=0, atol=1e-9)
    )
