"""Documents as a hit shows them: the name and the text of each, and a snippet around the words of the query.

Strings lie one after another in one buffer with offsets, so that a saved index maps into memory and only what is shown
is ever read.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from foreword.arrays import Array, Bytes, Longs
from foreword.storage.joined import check_joined, encoded
from foreword.text.block import Block
from foreword.tokens.strings import gather_strings

WIDTH = 160
"""Characters: two lines of a terminal."""

BEFORE = 30
"""Characters shown before the first match at least, if there are that many."""

_MOST_MATCHES = 10_000
"""A long document that repeats a word endlessly is not read to its end for the sake of a snippet."""


@dataclass(frozen=True, slots=True)
class Strings:
    """Strings in one buffer, uint8; string i is ``data[offsets[i]:offsets[i + 1]]``. offsets: int64 (strings + 1,)."""

    data: Bytes
    offsets: Longs

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> str:
        return bytes(self.data[self.offsets[index] : self.offsets[index + 1]]).decode("utf-8", "replace")

    def check(self, what: str) -> None:
        """Raise a ValueError unless the two fit together, as those read from a file may not."""
        check_joined(self.data, self.offsets, what)

    @classmethod
    def of(cls, strings: Iterable[str]) -> Self:
        """Encode strings into one buffer."""
        return cls(*encoded(strings, "replace"))


DOCUMENTS_AT_ONCE = 1 << 14
"""Documents in a block of those that are read again."""


def blocks_of_strings(strings: Strings, chosen: Longs) -> Iterator[Block]:
    """Yield some of the strings, in this order, as blocks of documents."""
    for first in range(0, len(chosen), DOCUMENTS_AT_ONCE):
        some = chosen[first : first + DOCUMENTS_AT_ONCE]
        low, high = strings.offsets[some[0]], strings.offsets[some[-1] + 1]
        yield Block(strings.data[low:high], strings.offsets[some] - low, strings.offsets[some + 1] - low)


NUMBERED = re.compile(r"#[0-9]+\Z")
"""The number of a document in its file, at the end of its name."""


class Names:
    """Names of documents, collected while these are read. One name may cover consecutive documents, as that of a file
    covers its lines, which are then numbered: ``notes.txt#3``.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._firsts: list[int] = []
        self._documents = 0

    @classmethod
    def of(cls, names: Iterable[str] | None) -> Self | None:
        """Name documents one by one; None if no names are given."""
        if names is None:
            return None
        given = cls()
        for name in names:
            given.add(str(name))
        return given

    def add(self, name: str, documents: int = 1) -> None:
        """Name the next documents."""
        if documents:
            self._names.append(name)
            self._firsts.append(self._documents)
            self._documents += documents

    def __len__(self) -> int:
        """Return the number of named documents."""
        return self._documents

    @property
    def given(self) -> list[str]:
        """The names as they were given, of files once for all their documents."""
        return self._names

    def extended(self, others: Names) -> Self:
        """Return these names followed by others."""
        for name, first, after in zip(others._names, others._firsts, [*others._firsts[1:], len(others)], strict=True):
            self.add(name, after - first)
        return self

    def finished(self) -> NameTable:
        """Return all names as a table."""
        return NameTable(Strings.of(self._names), np.array([*self._firsts, self._documents], np.int64))


@dataclass(frozen=True, slots=True)
class NameTable:
    """Names by document. firsts: int64 (names + 1,), the first document of each name, then the number of documents."""

    strings: Strings
    firsts: Longs

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays to save."""
        return {"names": self.strings.data, "name_offsets": self.strings.offsets, "name_firsts": self.firsts}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], documents: int) -> Self | None:
        """Rebuild the names of ``count`` documents from their saved form; None if they have none."""
        if "names" not in arrays:
            return None
        table = cls(Strings(arrays["names"], arrays["name_offsets"]), arrays["name_firsts"])
        table.check(documents)
        return table

    def followed_by(self, other: NameTable) -> NameTable:
        """Return these names and then those of further documents."""
        offsets = np.concatenate((self.strings.offsets, self.strings.offsets[-1] + other.strings.offsets[1:]))
        strings = Strings(np.concatenate((self.strings.data, other.strings.data)), offsets)
        return NameTable(strings, np.concatenate((self.firsts, self.firsts[-1] + other.firsts[1:])))

    def __getitem__(self, document: int) -> str:
        name = int(np.searchsorted(self.firsts, document, side="right")) - 1
        first, after = self.firsts[name : name + 2].tolist()
        return self.strings[name] if after - first == 1 else f"{self.strings[name]}#{document - first + 1}"

    def owner(self, document: int) -> str:
        """Return the name that covers a document: its own, or without its number that of its file."""
        name = self.strings[int(np.searchsorted(self.firsts, document, side="right")) - 1]
        return NUMBERED.sub("", name)

    def check(self, documents: int) -> None:
        """Raise a ValueError unless every document has a name."""
        self.strings.check("names")
        firsts = self.firsts
        if firsts.dtype != np.int64 or firsts.shape != (len(self.strings) + 1,):
            raise ValueError("the names' first documents are not an int64 for each name and one more")
        if firsts[0] != 0 or firsts[-1] != documents or (np.diff(firsts) <= 0).any():
            raise ValueError(f"the names do not cover {documents} documents")


class TextBuffer:
    """Collects the text of a stream of blocks, in memory or, with a ``folder``, in an unnamed file there."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = None if folder is None else tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._pieces: list[Bytes] = []
        self._lengths: list[Longs] = []
        self._unfinished = 0  # bytes of a document that continues in the next block

    def __enter__(self) -> TextBuffer:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, block: Block) -> None:
        """Append the text of a block."""
        lengths = block.stops - block.starts
        text = np.empty(int(lengths.sum()), np.uint8)
        borders = np.stack((block.starts, block.stops), axis=1).reshape(-1)
        gather_strings(block.data, borders, np.arange(0, len(borders), 2), text, 0)
        if self._file is None:
            self._pieces.append(text)
        else:
            self._file.write(text.data)
        if len(lengths):
            lengths[0] += self._unfinished
            self._unfinished = int(lengths[-1]) if block.open else 0
            self._lengths.append(lengths[:-1] if block.open else lengths)

    def finished(self) -> Strings:
        """Return all texts; if they are in a file, mapped from it, which need not stay open."""
        lengths = np.concatenate([np.empty(0, np.int64), *self._lengths])
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        if self._file is None or not offsets[-1]:
            return Strings(np.concatenate([np.empty(0, np.uint8), *self._pieces]), offsets)
        self._file.flush()
        return Strings(np.memmap(self._file, np.uint8, "r").view(np.ndarray), offsets)


@dataclass(frozen=True, slots=True)
class Snippet:
    """Part of a document on one line. marks: where words of the query occur in it, as (start, stop), rising."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


def snippet(text: str, words: Iterable[str], *, any_case: bool = True, width: int = WIDTH) -> Snippet:
    """Return the part of about ``width`` characters with the most different words; the beginning if none occurs."""
    pattern = _pattern(words, any_case)
    matches = _matches(pattern, text) if pattern else []
    start, stop = _window(text, matches, width)
    shown = " ".join(text[start:stop].split())
    shown = ("… " if text[:start].strip() else "") + shown + (" …" if text[stop:].strip() else "")
    return Snippet(shown, tuple(found.span() for found in pattern.finditer(shown)) if pattern else ())


def _pattern(words: Iterable[str], any_case: bool) -> re.Pattern[str] | None:
    """Match any of the words, whole: not followed or preceded by another word character."""
    spelled = sorted({word.strip() for word in words} - {""}, key=lambda word: (-len(word), word))
    if not spelled:
        return None
    choice = "|".join(
        (r"\b" if re.match(r"\w", word) else "") + re.escape(word) + (r"\b" if re.search(r"\w\Z", word) else "")
        for word in spelled
    )
    return re.compile(choice, re.IGNORECASE if any_case else 0)


def _matches(pattern: re.Pattern[str], text: str) -> list[tuple[int, int, str]]:
    found = []
    for match in pattern.finditer(text):
        found.append((*match.span(), match.group().lower()))
        if len(found) == _MOST_MATCHES:
            break
    return found


def _window(text: str, matches: list[tuple[int, int, str]], width: int) -> tuple[int, int]:
    """Return start and stop of the window with the most different words."""
    best, start, stop = 0, 0, 0
    last = 0
    counts: dict[str, int] = {}
    for first, (begin, end, _) in enumerate(matches):
        last = max(last, first)
        while last < len(matches) and matches[last][1] - begin <= max(width - BEFORE, end - begin):
            counts[matches[last][2]] = counts.get(matches[last][2], 0) + 1
            last += 1
        if len(counts) > best:
            best, start, stop = len(counts), begin, matches[last - 1][1]
        word = matches[first][2]
        counts[word] -= 1
        if not counts[word]:
            del counts[word]
    start = max(0, start - max(BEFORE, (width - (stop - start)) // 2))
    return _at_word(text, start, 0), _at_word(text, max(stop, min(start + width, len(text))), len(text))


def _at_word(text: str, place: int, edge: int) -> int:
    """Move a position outwards to the edge of a word, by a few characters at most."""
    step = -1 if edge == 0 else 1
    for _ in range(BEFORE):
        if place == edge or text[place - 1].isspace() or text[place : place + 1].isspace():
            break
        place += step
    return place
