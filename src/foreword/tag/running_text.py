"""Running text to sentences and words, in the convention of the treebank that a tagger has learnt from.

Treebanks differ in what a word is: UD English writes *do n't* and *well - known*, CoNLL-2003 leaves *well-known* whole,
UD Italian cuts *dell' opera*. No list of rules fits them all, but the tagger knows the words of its treebank, and those
show the convention: a piece is cut off where the treebank has that piece as a word.

    a chunk between blanks is cut at a clitic, if the treebank has both parts: it 's, do n't, dell' opera
    else it is a word, if the treebank has it
    else marks at both ends are cut off, but not the full stop of an abbreviation
    else a clitic is cut off that the treebank has, whatever remains
    else hyphens and slashes are cut out, if words of the treebank hardly ever contain them

A sentence ends after . ! or ? and closing quotation marks where the next chunk does not begin with a small letter,
unless the full stop belongs to an abbreviation.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

OPENING = re.compile(r"""(['"“”‘’«»„‚(\[{<>¿¡*_=~$€£+#`—–-])\1*""")
"""A mark, once or several times, that may be cut off at the start of a chunk."""

CLOSING = re.compile(r"""([,;:…'"“”‘’«»)\]}<>*_=~%—–-])\1*|[.!?]+""")
"""Marks that may be cut off at its end."""

ADDRESS = re.compile(r"(?:\w+://|www\.)\S*[\w/]|\S+@\S+\.\w+|\S+\.(?:com|org|net|edu|gov)(?:/(?:\S*[\w/])?)?")
NUMBER = re.compile(r"[-+]?\d+(?:[.,:/]\d+)*")
ABBREVIATION = re.compile(r"(?:[^\W\d]+\.)*[^\W\d]")
"""Initials and single letters, whose full stop belongs to them."""

APOSTROPHES = "'’"
JOINTS = re.compile(r"([-–/])")

RARE_JOINTS = 0.02
"""Share of the treebank's lower-case words with a hyphen or slash inside, below which words are cut there. It is 1.4 %
in UD English-EWT, which cuts them, 6.7 % in CoNLL-2003 and 9.0 % in CoNLL-2000, which do not.
"""


@dataclass(frozen=True, slots=True)
class Splitter:
    """Words known to a treebank, and whether words are cut at hyphens and slashes."""

    words: Collection[str]
    cuts_joints: bool

    @classmethod
    def of(cls, words: Collection[str]) -> Self:
        """Return the convention that the words of a treebank show."""
        letters = [word for word in words if word[:1].isalpha() and word[-1:].isalpha() and word.islower()]
        joined = sum(bool(JOINTS.search(word)) for word in letters)
        return cls(words, joined < RARE_JOINTS * max(len(letters), 1))

    def sentences(self, text: str) -> Iterator[list[str]]:
        """Yield the words of each sentence of a text."""
        chunks = text.split()
        words: list[str] = []
        for chunk, following in pairwise([*chunks, ""]):
            found = self.split(chunk)
            words += found
            if _ends_sentence(found) and not following[:1].islower():
                yield words
                words = []
        if words:
            yield words

    def split(self, chunk: str) -> list[str]:
        """Return the words of a chunk, which has no white space."""
        if cut := self._clitic(chunk, both=True):
            return [chunk[:cut], chunk[cut:]]
        if self._has(chunk) or ADDRESS.fullmatch(chunk):
            return [chunk]
        if (mark := OPENING.match(chunk)) and mark.end() < len(chunk) and not NUMBER.match(chunk):
            return [mark.group(), *self.split(chunk[mark.end() :])]
        if (mark := _closing(chunk)) and mark.start() and not self._is_abbreviation(chunk):
            return [*self.split(chunk[: mark.start()]), mark.group()]
        return self._inside(chunk)

    def _inside(self, core: str) -> list[str]:
        """Return the words of a chunk without marks at its ends."""
        if NUMBER.fullmatch(core) or self._is_abbreviation(core):
            return [core]
        if cut := self._clitic(core, both=False):
            return [*self.split(core[:cut]), *self.split(core[cut:])]
        if self.cuts_joints and (parts := [part for part in JOINTS.split(core) if part])[1:]:
            return [word for part in parts for word in self.split(part)]
        return [core]

    def _clitic(self, chunk: str, *, both: bool) -> int:
        """Return where a clitic is cut off that the treebank has, 0 for nowhere; both: it has the other part, too."""
        for at in (index for index, sign in enumerate(chunk) if sign in APOSTROPHES):
            for cut in (at - 1, at, at + 1):  # do|n't, it|'s, dell'|opera
                before, after = chunk[:cut], chunk[cut:]
                if not 0 < cut < len(chunk) or len(after if cut <= at else before) == 1:
                    continue
                if self._has(after if cut <= at else before) and (not both or (self._has(before) and self._has(after))):
                    return cut
        return 0

    def _has(self, word: str) -> bool:
        return word in self.words or word.lower() in self.words

    def _is_abbreviation(self, chunk: str) -> bool:
        """Return whether the full stop at the end of a chunk belongs to it."""
        return chunk.endswith(".") and (self._has(chunk) or ABBREVIATION.fullmatch(chunk[:-1]) is not None)


def _closing(chunk: str) -> re.Match[str] | None:
    """Return the mark at the end of a chunk."""
    start = len(chunk)
    while start and CLOSING.fullmatch(chunk, start - 1):
        start -= 1
    return CLOSING.fullmatch(chunk, start) if start < len(chunk) else None


def _ends_sentence(words: list[str]) -> bool:
    last = next((word for word in reversed(words) if word not in ("''", '"', "”", "’", "'", ")", "»")), "")
    return last != "" and not last.strip(".!?…")
