"""Span scores against seqeval, on tags well formed and not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from foreword.evaluate.tagging import measure_spans

lenient = pytest.importorskip("seqeval.metrics.sequence_labeling")
strict = pytest.importorskip("seqeval.metrics.v1")
schemes = pytest.importorskip("seqeval.scheme")

PEER_SCHEMES = {"bio": schemes.IOB2, "bioes": schemes.IOBES}
Pair = tuple[list[str], list[str]]


def tagged(letters: str) -> st.SearchStrategy[list[Pair]]:
    """Sentences with what is predicted and what is true, mostly equal, as those of a tagger are."""
    tag = st.sampled_from(["O", *(f"{letter}-{kind}" for letter in letters for kind in ("X", "Y-Z"))])
    word = st.one_of(tag.map(lambda each: (each, each)), st.tuples(tag, tag))
    sentence = st.lists(word, min_size=1, max_size=8)
    return st.lists(sentence.map(lambda words: ([said for said, _ in words], [true for _, true in words])), min_size=1)


def compare(pairs: list[Pair], scheme: str | None) -> None:
    said, true = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    ours = measure_spans(said, true, scheme=scheme)
    assume(ours.kinds)  # where there is no span at all the peer divides by zero
    peer: Any = lenient if scheme is None else strict
    more = {} if scheme is None else {"scheme": PEER_SCHEMES[scheme]}

    def theirs(average: str | None) -> Any:
        return peer.precision_recall_fscore_support(true, said, average=average, zero_division=0, **more)

    for average, mine in (("micro", ours.micro), ("macro", ours.macro)):
        assert (mine.precision, mine.recall, mine.f1) == pytest.approx(theirs(average)[:3], rel=1e-12)
    if ours.micro.gold:
        mean = ours.weighted
        assert (mean.precision, mean.recall, mean.f1) == pytest.approx(theirs("weighted")[:3], rel=1e-12)
    precision, recall, f1, support = theirs(None)
    assert [kind.precision for kind in ours.kinds] == pytest.approx(list(precision), rel=1e-12)
    assert [kind.recall for kind in ours.kinds] == pytest.approx(list(recall), rel=1e-12)
    assert [kind.f1 for kind in ours.kinds] == pytest.approx(list(f1), rel=1e-12)
    assert [kind.gold for kind in ours.kinds] == list(support)


@settings(max_examples=50, deadline=None)
@given(tagged("BIES"))
def test_s03_default_mode(pairs: list[Pair]) -> None:
    """S03: any mixture of letters, read as conlleval does."""
    compare(pairs, None)


@settings(max_examples=50, deadline=None)
@given(tagged("BI"))
def test_s03_strict_bio(pairs: list[Pair]) -> None:
    compare(pairs, "bio")


@settings(max_examples=50, deadline=None)
@given(tagged("BIES"))
def test_s03_strict_bioes(pairs: list[Pair]) -> None:
    compare(pairs, "bioes")
