from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.errors import InputError, SettingError
from foreword.tag.schemes import (
    SCHEMES,
    Span,
    allowed_moves,
    convert_all,
    converted,
    may_follow,
    read_spans,
    spans_of,
    tags_of,
    whole_spans,
)

TABLE = {
    "bio": "B-PER I-PER I-PER B-PER O B-LOC B-PER",
    "iob1": "I-PER I-PER I-PER B-PER O I-LOC I-PER",
    "bioes": "B-PER I-PER E-PER S-PER O S-LOC S-PER",
}
SPANS = [Span("PER", 0, 3), Span("PER", 3, 4), Span("LOC", 5, 6), Span("PER", 6, 7)]


@pytest.mark.parametrize(("source", "target"), [*itertools.product(SCHEMES, SCHEMES)])
def test_s03_the_same_spans_in_every_scheme(source: str, target: str) -> None:
    """S03: BIO, IOB1 and BIOES, each into each."""
    tags = TABLE[source].split()
    assert spans_of(tags, source) == SPANS
    assert converted(tags, source, target) == TABLE[target].split()
    assert convert_all([[], tags], source, target) == [[], TABLE[target].split()]


@st.composite
def sentences(draw: st.DrawFn) -> tuple[list[Span], int]:
    spans, place = [], 0
    for gap, words, kind in draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from("XY")))):
        spans.append(Span(kind, place + gap, place + gap + words))
        place += gap + words
    return spans, place + draw(st.integers(0, 2))


@settings(deadline=None)
@given(sentences(), st.sampled_from([*SCHEMES]), st.sampled_from([*SCHEMES]))
def test_spans_survive_any_scheme_and_tags_any_conversion(
    sentence: tuple[list[Span], int], scheme: str, other: str
) -> None:
    spans, length = sentence
    tags = tags_of(spans, length, scheme)
    assert spans_of(tags, scheme) == read_spans(tags) == whole_spans(tags, scheme) == spans
    assert converted(converted(tags, scheme, other), other, scheme) == tags


@pytest.mark.parametrize("scheme", SCHEMES)
def test_allowed_moves_are_those_of_sentences_that_can_be_written(scheme: str) -> None:
    """All sentences of up to four words over two kinds: what stands side by side in them, and nothing else."""
    kinds = [f"{letter}-{kind}" for letter in SCHEMES[scheme][1:] for kind in "XY"]
    names = ["O", *kinds]
    begin, end = set(), set()
    moves: set[tuple[str, str]] = set()
    for length in (1, 2, 3, 4):
        for owners in itertools.product(["", "X1", "X2", "X3", "Y1", "Y2", "Y3"], repeat=length):
            runs = [(owner, len(list(run))) for owner, run in itertools.groupby(owners)]
            edges = list(itertools.accumulate((size for _, size in runs), initial=0))
            spans = [Span(owner[0], edges[place], edges[place + 1]) for place, (owner, _) in enumerate(runs) if owner]
            tags = tags_of(spans, length, scheme)
            begin.add(tags[0])
            end.add(tags[-1])
            moves.update(itertools.pairwise(tags))
    allowed = allowed_moves(names, scheme)
    np.testing.assert_array_equal(allowed.start, [name in begin for name in names])
    np.testing.assert_array_equal(allowed.end, [name in end for name in names])
    np.testing.assert_array_equal(allowed.moves, [[(before, after) in moves for after in names] for before in names])


def test_ill_formed_tags_are_read_as_conlleval_reads_them_or_not_at_all() -> None:
    tags = ["I-X", "I-X", "O", "I-Y", "B-X", "I-Y"]
    assert read_spans(tags) == [Span("X", 0, 2), Span("Y", 3, 4), Span("X", 4, 5), Span("Y", 5, 6)]
    assert whole_spans(tags, "bio") == [Span("X", 4, 5)]
    tags = ["B-X", "I-X", "O", "S-Y", "I-Y", "E-Y", "B-Y", "E-Y"]
    assert whole_spans(tags, "bioes") == [Span("Y", 3, 4), Span("Y", 6, 8)]


@pytest.mark.parametrize(
    ("tags", "scheme", "message"),
    [
        ("O I-PER I-PER", "bio", "word 1: I-PER may not follow O in the scheme 'bio'; .* well formed in 'iob1'"),
        ("I-PER", "bio", "word 0: I-PER may not follow nothing in the scheme 'bio'; .* 'iob1'"),
        ("B-PER I-PER", "iob1", "word 0: B-PER may not follow nothing in the scheme 'iob1'; .* 'bio'"),
        ("B-PER I-LOC", "bio", "word 1: I-LOC may not follow B-PER in the scheme 'bio'$"),
        ("B-PER I-PER", "bioes", "the end of the sentence: nothing may not follow I-PER .* 'bio'"),
        ("S-PER O", "bio", "word 0: S-PER may not follow nothing in the scheme 'bio'; .* 'bioes'"),
        ("NN VB", "bio", "tag 'NN': expected O, or B-, I-, E- or S- and a kind"),
        ("B-", "bio", "tag 'B-'"),
    ],
)
def test_tags_of_another_scheme_are_refused_in_one_line(tags: str, scheme: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        spans_of(tags.split(), scheme)
    assert "\n" not in str(caught.value)


def test_the_sentence_of_an_error_is_named() -> None:
    with pytest.raises(InputError, match="sentence 1, word 0"):
        convert_all([["B-X"], ["I-X"]], "bio", "bioes")


def test_unknown_schemes_and_impossible_spans_are_refused() -> None:
    with pytest.raises(SettingError, match="scheme='bilou' must be one of bio, iob1, bioes"):
        converted(["O"], "bilou", "bio")
    with pytest.raises(SettingError, match="scheme='bilou'"):
        converted([], "bio", "bilou")
    for spans in ([Span("X", 1, 3), Span("X", 2, 4)], [Span("X", 0, 9)], [Span("X", 1, 1)]):
        with pytest.raises(InputError, match="span X of words"):
            tags_of(spans, 5, "bio")
    with pytest.raises(InputError, match="'S-X' is not of the scheme 'bio'"):
        whole_spans(["S-X"], "bio")
    assert not may_follow("S-X", "O", "bio")
