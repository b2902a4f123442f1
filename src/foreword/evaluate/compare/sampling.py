"""A large text made small: every second document, every fourth, every eighth, until what is left fits.

Documents are taken as they stream by, so that never more than the limit is held, and evenly, so that a text which
changes on its way (letters of one year after those of another) is seen in all its parts. The same text gives the same
documents. A document that is too long by itself is cut short at a space.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sampled:
    """How much of a text there was, and how much of it was taken; one byte is counted for the end of each document."""

    documents: int
    bytes: int
    kept_documents: int
    kept_bytes: int


@dataclass(frozen=True, slots=True)
class Streams:
    """A text in three parts as somebody split it, each read only once, from its beginning to its end."""

    train: Iterable[str]
    valid: Iterable[str]
    test: Iterable[str]


def evenly(documents: Iterable[str], most_bytes: int) -> tuple[list[str], Sampled]:
    """At most so many bytes of them, or more than half as many where they are no longer than that themselves."""
    kept: list[str] = []
    every = 1
    seen = seen_bytes = held = 0
    for document in documents:
        length = _bytes_of(document)
        seen, seen_bytes = seen + 1, seen_bytes + length
        if (seen - 1) % every:
            continue
        kept.append(document)
        held += length
        while held > most_bytes and len(kept) > 1:
            kept, every = kept[::2], 2 * every
            held = sum(map(_bytes_of, kept))
        if held > most_bytes:
            kept = [shortened(kept[0], most_bytes)]
            held = _bytes_of(kept[0])
    return kept, Sampled(seen, seen_bytes, len(kept), held)


def together(parts: Iterable[Sampled]) -> Sampled:
    """Several as one."""
    columns = zip(*((part.documents, part.bytes, part.kept_documents, part.kept_bytes) for part in parts), strict=True)
    return Sampled(*map(sum, columns))


def shortened(document: str, most_bytes: int) -> str:
    """Its beginning, to the last space that fits."""
    beginning = document.encode("utf-8", "surrogatepass")[: max(1, most_bytes - 1)].decode("utf-8", "ignore")
    return beginning.rpartition(" ")[0] or beginning


def _bytes_of(document: str) -> int:
    return (len(document) if document.isascii() else len(document.encode("utf-8", "surrogatepass"))) + 1
