"""Spans written as tags: which words a name, or a chunk, goes over, told one word at a time.

    scheme   a span of one word   of three                  two that touch
    bio      B-PER                B-PER I-PER I-PER         B-PER I-PER B-PER      also called IOB2
    iob1     I-PER                I-PER I-PER I-PER         I-PER I-PER B-PER      B- only where the span before touches
    bioes    S-PER                B-PER I-PER E-PER         B-PER E-PER S-PER      also called IOBES

and ``O`` everywhere else. One rule, ``may_follow``, says what is well formed; the rest is made from it.

L. Ramshaw and M. Marcus, "Text chunking using transformation-based learning" (1995) for IOB1; E. Tjong Kim Sang and
J. Veenstra, "Representing text chunks" (1999) for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from foreword.arrays import Bools
from foreword.errors import InputError, SettingError
from foreword.protocols import Tags

SCHEMES = {"bio": "OBI", "iob1": "OBI", "bioes": "OBIES"}
"""Each scheme and the first letters of its tags."""

OUTSIDE = "O"


class Span(NamedTuple):
    """The words ``start`` to ``stop``, the last not included, are one thing of this kind."""

    kind: str
    start: int
    stop: int


class Allowed(NamedTuple):
    """Which tags may begin a sentence (K,), follow each other (K, K), from row to column, and end it (K,)."""

    start: Bools
    moves: Bools
    end: Bools


def parsed(tag: str) -> tuple[str, str]:
    """The letter and the kind: ``B-PER`` is B and PER, ``O`` has no kind."""
    letter, kind = tag[:1], tag[2:]
    if tag != OUTSIDE and not (letter in ("B", "I", "E", "S") and tag[1:2] == "-" and kind):
        raise InputError(f"tag {tag!r}: expected O, or B-, I-, E- or S- and a kind")
    return letter, kind


def may_follow(before: str | None, after: str | None, scheme: str) -> bool:
    """Whether a scheme allows ``after`` right behind ``before``; None is what lies beyond either end of a sentence."""
    letter, kind = parsed(before or OUTSIDE)
    next_letter, next_kind = parsed(after or OUTSIDE)
    if {letter, next_letter} - set(letters_of(scheme)):
        return False
    same = kind == next_kind
    if scheme == "iob1":
        return next_letter != "B" or (letter != "O" and same)
    if scheme == "bio":
        return next_letter != "I" or (letter != "O" and same)
    is_open, goes_on = letter in ("B", "I"), next_letter in ("I", "E")
    return is_open == goes_on and (same or not is_open)


def allowed_moves(tags: Sequence[str], scheme: str) -> Allowed:
    """For a decoder that may only write what is well formed; a tag of another scheme may stand nowhere."""
    return Allowed(
        np.array([may_follow(None, tag, scheme) for tag in tags], bool),
        np.array([[may_follow(before, after, scheme) for after in tags] for before in tags], bool),
        np.array([may_follow(tag, None, scheme) for tag in tags], bool),
    )


def spans_of(tags: Sequence[str], scheme: str, name: str = "the sentence") -> list[Span]:
    """The spans of a sentence, which must be well formed; ``name`` is what a message calls it."""
    _refuse_ill_formed(tags, scheme, name)
    return read_spans(tags)


def read_spans(tags: Sequence[str]) -> list[Span]:
    """Spans of tags of any scheme, well formed or not, as the CoNLL tasks score them: a span goes on from one word to
    the next where the kinds are equal, the first tag is B- or I-, and the second I- or E-.
    """
    found: list[Span] = []
    start, before, kind = 0, OUTSIDE, ""
    for place, tag in enumerate([*tags, OUTSIDE]):
        letter, next_kind = parsed(tag)
        if kind == next_kind and before in ("B", "I") and letter in ("I", "E"):
            before = letter
            continue
        if before != OUTSIDE:
            found.append(Span(kind, start, place))
        start, before, kind = place, letter, next_kind
    return found


def whole_spans(tags: Sequence[str], scheme: str) -> list[Span]:
    """Only those spans of a sentence that are written as the scheme has them; what is broken counts for nothing."""
    unknown = {tag for tag in tags if parsed(tag)[0] not in letters_of(scheme)}
    if unknown:
        raise InputError(f"tag {min(unknown)!r} is not of the scheme {scheme!r}")
    return [span for span in read_spans(tags) if _is_whole(tags, span, scheme)]


def tags_of(spans: Iterable[Span], length: int, scheme: str) -> list[str]:
    """A sentence's tags from its spans, which are in order and do not overlap."""
    letters_of(scheme)
    tags, reached, last_kind = [OUTSIDE] * length, 0, ""
    for kind, start, stop in spans:
        if not reached <= start < stop <= length:
            raise InputError(f"span {kind} of words {start} to {stop}: expected one between {reached} and {length}")
        parsed(f"B-{kind}")
        touches = start > 0 and start == reached and kind == last_kind
        tags[start:stop] = [f"{letter}-{kind}" for letter in _letters(stop - start, scheme, touches)]
        reached, last_kind = stop, kind
    return tags


def converted(tags: Sequence[str], source: str, target: str) -> list[str]:
    """One sentence from a scheme to another."""
    return tags_of(spans_of(tags, source), len(tags), target)


def convert_all(tags: Tags, source: str, target: str) -> list[list[str]]:
    """Many sentences; the one that is not well formed is named, by its number from 0 on."""
    return [
        tags_of(spans_of(sentence, source, f"sentence {place}"), len(sentence), target)
        for place, sentence in enumerate(tags)
    ]


def letters_of(scheme: str) -> str:
    if scheme not in SCHEMES:
        raise SettingError(f"scheme={scheme!r} must be one of {', '.join(SCHEMES)}")
    return SCHEMES[scheme]


def _letters(words: int, scheme: str, touches: bool) -> str:
    if scheme == "iob1":
        return ("B" if touches else "I") + "I" * (words - 1)
    if scheme == "bio":
        return "B" + "I" * (words - 1)
    return "S" if words == 1 else "B" + "I" * (words - 2) + "E"


def _is_whole(tags: Sequence[str], span: Span, scheme: str) -> bool:
    """In IOB1 a span may begin with either letter, for what touched it may itself have been broken."""
    letters = "".join(tag[0] for tag in tags[span.start : span.stop])
    return letters in {_letters(len(letters), scheme, touches) for touches in (False, True)}


def _refuse_ill_formed(tags: Sequence[str], scheme: str, name: str) -> None:
    for place, (before, after) in enumerate(zip([None, *tags], [*tags, None], strict=True)):
        if may_follow(before, after, scheme):
            continue
        hint = _better_scheme(tags, scheme)
        where = f"{name}, word {place}" if after else f"the end of {name}"
        raise InputError(
            f"{where}: {after or 'nothing'} may not follow {before or 'nothing'} in the scheme {scheme!r}{hint}"
        )


def _better_scheme(tags: Sequence[str], scheme: str) -> str:
    pairs = list(zip([None, *tags], [*tags, None], strict=True))
    others = (other for other in SCHEMES if other != scheme)
    fitting = [repr(other) for other in others if all(may_follow(*pair, other) for pair in pairs)]
    return f"; its tags are well formed in {' and '.join(fitting)}" if fitting else ""
