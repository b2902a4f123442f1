"""Spans, such as names and chunks, written as one tag per word, and the tags that a tagger of spans computes with.

    scheme   a span of one word   of three                  two that touch
    bio      B-PER                B-PER I-PER I-PER         B-PER I-PER B-PER      also called IOB2
    iob1     I-PER                I-PER I-PER I-PER         I-PER I-PER B-PER      B- only where the span before touches
    bioes    S-PER                B-PER I-PER E-PER         B-PER E-PER S-PER      also called IOBES

and ``O`` everywhere else. One rule, ``may_follow``, defines what is well formed; the rest follows from it.

A tagger does better with more letters: a name of one word, S-PER, and the last of a longer one, E-PER, look different.
So a ``Scheme`` learns tags of ``bio`` and ``iob1`` as ``bioes`` and returns them as they were. Every kind of span gets
all its letters, seen or not, and there is always O, so that sentences of every length have an allowed path.

L. Ramshaw and M. Marcus, "Text chunking using transformation-based learning" (1995) for IOB1; E. Tjong Kim Sang and
J. Veenstra, "Representing text chunks" (1999) for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from foreword.arrays import Bools, Doubles, Longs
from foreword.errors import InputError, SettingError
from foreword.protocols import Tags

SCHEMES = {"bio": "OBI", "iob1": "OBI", "bioes": "OBIES"}
"""Each scheme and the first letters of its tags."""

OUTSIDE = "O"


class Span(NamedTuple):
    """A span of this kind: the words ``start`` to ``stop``, the last not included."""

    kind: str
    start: int
    stop: int


class Allowed(NamedTuple):
    """The tags that may begin a sentence (K,), follow each other (K, K), from row to column, and end it (K,)."""

    start: Bools
    moves: Bools
    end: Bools


def parsed(tag: str) -> tuple[str, str]:
    """Split a tag into its letter and kind: ``B-PER`` is B and PER, ``O`` has no kind."""
    letter, kind = tag[:1], tag[2:]
    if tag != OUTSIDE and not (letter in ("B", "I", "E", "S") and tag[1:2] == "-" and kind):
        raise InputError(f"tag {tag!r}: expected O, or B-, I-, E- or S- and a kind")
    return letter, kind


def may_follow(before: str | None, after: str | None, scheme: str) -> bool:
    """Return whether a scheme allows ``after`` directly behind ``before``; None is outside the sentence."""
    letter, kind = parsed(before or OUTSIDE)
    next_letter, next_kind = parsed(after or OUTSIDE)
    if {letter, next_letter} - set(letters_of(scheme)):
        return False
    same = kind == next_kind
    if scheme == "iob1":
        return next_letter != "B" or (letter != "O" and same)
    if scheme == "bio":
        return next_letter != "I" or (letter != "O" and same)
    is_open, continues = letter in ("B", "I"), next_letter in ("I", "E")
    return is_open == continues and (same or not is_open)


def allowed_moves(tags: Sequence[str], scheme: str) -> Allowed:
    """Return the moves of well-formed tags, for a decoder; a tag of another scheme is allowed nowhere."""
    return Allowed(
        np.array([may_follow(None, tag, scheme) for tag in tags], bool),
        np.array([[may_follow(before, after, scheme) for after in tags] for before in tags], bool),
        np.array([may_follow(tag, None, scheme) for tag in tags], bool),
    )


def spans_of(tags: Sequence[str], scheme: str, name: str = "the sentence") -> list[Span]:
    """Return the spans of a sentence, which must be well formed; name: of the sentence, for messages."""
    _refuse_ill_formed(tags, scheme, name)
    return read_spans(tags)


def read_spans(tags: Sequence[str]) -> list[Span]:
    """Return the spans of tags of any scheme, well formed or not, as the CoNLL tasks score them: a span continues from
    one word to the next where the kinds are equal, the first tag is B- or I-, and the second I- or E-.
    """
    found: list[Span] = []
    start, before, kind = 0, OUTSIDE, ""
    for index, tag in enumerate([*tags, OUTSIDE]):
        letter, next_kind = parsed(tag)
        if kind == next_kind and before in ("B", "I") and letter in ("I", "E"):
            before = letter
            continue
        if before != OUTSIDE:
            found.append(Span(kind, start, index))
        start, before, kind = index, letter, next_kind
    return found


def read_as(tags: Sequence[str], scheme: str) -> list[str]:
    """Return the tags of any scheme, well formed or not, as this scheme writes the spans that ``read_spans`` finds."""
    return tags_of(read_spans(tags), len(tags), scheme)


def fits(tags: Sequence[str], scheme: str) -> bool:
    """Return whether the tags of a sentence are well formed in a scheme."""
    return all(may_follow(*pair, scheme) for pair in zip([None, *tags], [*tags, None], strict=True))


def whole_spans(tags: Sequence[str], scheme: str) -> list[Span]:
    """Return only those spans of a sentence that are well formed in the scheme; broken ones are left out."""
    unknown = {tag for tag in tags if parsed(tag)[0] not in letters_of(scheme)}
    if unknown:
        raise InputError(f"tag {min(unknown)!r} is not of the scheme {scheme!r}")
    return [span for span in read_spans(tags) if _is_whole(tags, span, scheme)]


def tags_of(spans: Iterable[Span], length: int, scheme: str) -> list[str]:
    """Return a sentence's tags from its spans, which are in order and do not overlap."""
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
    """Convert one sentence from a scheme to another."""
    return tags_of(spans_of(tags, source), len(tags), target)


def convert_all(tags: Tags, source: str, target: str) -> list[list[str]]:
    """Convert many sentences; an error names the one that is not well formed, by its number from 0."""
    return [
        tags_of(spans_of(sentence, source, f"sentence {index}"), len(sentence), target)
        for index, sentence in enumerate(tags)
    ]


def letters_of(scheme: str) -> str:
    """Return the first letters of a scheme's tags."""
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
    """Return whether a span is well formed. In IOB1 it may begin with either letter: what touched it may be broken."""
    letters = "".join(tag[0] for tag in tags[span.start : span.stop])
    return letters in {_letters(len(letters), scheme, touches) for touches in (False, True)}


def _refuse_ill_formed(tags: Sequence[str], scheme: str, name: str) -> None:
    for index, (before, after) in enumerate(zip([None, *tags], [*tags, None], strict=True)):
        if may_follow(before, after, scheme):
            continue
        hint = _better_scheme(tags, scheme)
        where = f"{name}, word {index}" if after else f"the end of {name}"
        raise InputError(
            f"{where}: {after or 'nothing'} may not follow {before or 'nothing'} in the scheme {scheme!r}{hint}"
        )


def _better_scheme(tags: Sequence[str], scheme: str) -> str:
    fitting = [repr(other) for other in SCHEMES if other != scheme and fits(tags, other)]
    return f"; its tags are well formed in {' and '.join(fitting)}" if fitting else ""


# Tags outside and inside a tagger


class Scheme:
    """The scheme of a file's tags, ``outside``, and of those that a tagger learns, ``inside``.

    outside: None for tags that are not spans, which are left as they are. outer, inner: all tags of both, sorted.
    allowed: the moves allowed between inner tags, None where all are.
    """

    def __init__(self, outside: str | None, inside: str, tags: Iterable[str]) -> None:
        self.outside, self.inside = outside, inside
        self.allowed: Allowed | None = None
        if outside is None:
            self.outer = self.inner = sorted(set(tags))
            return
        kinds = sorted({parsed(tag)[1] for tag in tags} - {""})
        self.outer, self.inner = (_all_tags(scheme, kinds) for scheme in (outside, inside))
        self.allowed = allowed_moves(self.inner, inside)

    @classmethod
    def learnt(cls, outside: str | None, inside: str, tags: Tags) -> Scheme:
        """Return the scheme with the tags of a training text."""
        return cls(outside, inside, chain.from_iterable(tags))

    def numbers(self, tags: Tags) -> list[Longs]:
        """Return a file's tags as indices of inner ones; raise for a sentence that is not well formed.

        But in IOB1 a B- is accepted where an I- would do, for it can mean nothing else: CoNLL-2003 has one.
        """
        number = {tag: index for index, tag in enumerate(self.inner)}
        if self.outside == "iob1":
            tags = [tags_of(whole_spans(sentence, "iob1"), len(sentence), self.inside) for sentence in tags]
        elif self.outside is not None:
            tags = convert_all(tags, self.outside, self.inside)
        return [np.array([number[tag] for tag in sentence], np.int64) for sentence in tags]

    def names(self, numbers: Sequence[int]) -> list[str]:
        """Return the tags of a sentence as a file has them."""
        if self.outside is None or self.outside == self.inside:
            return [self.inner[number] for number in numbers]
        if self.outside == "bio":
            return [_as_bio(self.inner[number]) for number in numbers]
        return read_as([self.inner[number] for number in numbers], self.outside)

    def gathering(self) -> Doubles | None:
        """Return (inner, outer) ones where an inner tag becomes an outer one, to sum probabilities; None if they are
        the same. In IOB1 the tag depends on the one before it, so it has no probability of its own.
        """
        if self.outside is None or self.outside == self.inside:
            return None
        if self.outside != "bio":
            raise SettingError(
                f"scheme={self.outside!r}: how a tag is written depends on the one before it, so that it has no "
                "probability of its own; scheme='bio' has"
            )
        column = {tag: number for number, tag in enumerate(self.outer)}
        table = np.zeros((len(self.inner), len(self.outer)))
        for number, tag in enumerate(self.inner):
            table[number, column[_as_bio(tag)]] = 1
        return table


def span_f1(predicted: Tags, gold: Tags) -> float:
    """Return F1 of all spans together, to choose the best epoch by; ``evaluate/spans.py`` reports more."""
    right = found = 0
    for ours, theirs in zip(predicted, gold, strict=True):
        predicted_spans, true_spans = set(read_spans(ours)), set(read_spans(theirs))
        right += len(predicted_spans & true_spans)
        found += len(predicted_spans) + len(true_spans)
    return 2 * right / found if found else 0.0


def _all_tags(scheme: str, kinds: Sequence[str]) -> list[str]:
    letters = [letter for letter in letters_of(scheme) if letter != OUTSIDE]
    return sorted([OUTSIDE, *(f"{letter}-{kind}" for letter in letters for kind in kinds)])


def _as_bio(tag: str) -> str:
    """Convert a tag of BIOES to BIO."""
    return {"S": "B", "E": "I"}.get(tag[0], tag[0]) + tag[1:]
