"""What a hit shows: the name and the text of each document, kept beside the index.

Strings lie one after another in one buffer with offsets, so that a saved index maps into memory and only what is shown
is ever read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from foreword.arrays import Bytes, Longs
from foreword.text.block import Block
from foreword.tokens.strings import gather_strings


@dataclass(frozen=True, slots=True)
class Strings:
    """data: uint8 (bytes,); offsets: int64 (strings + 1,). String i is ``data[offsets[i]:offsets[i + 1]]``."""

    data: Bytes
    offsets: Longs

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, place: int) -> str:
        return bytes(self.data[self.offsets[place] : self.offsets[place + 1]]).decode("utf-8", "replace")

    def check(self, what: str) -> None:
        """Raise a ValueError unless the two fit together, as those read from a file may not."""
        if self.data.dtype != np.uint8 or self.data.ndim != 1 or self.offsets.dtype != np.int64:
            raise ValueError(f"the {what} are not bytes with int64 offsets")
        if self.offsets.ndim != 1 or not len(self.offsets) or self.offsets[0] != 0:
            raise ValueError(f"the offsets of the {what} do not begin with 0")
        if (np.diff(self.offsets) < 0).any() or self.offsets[-1] != len(self.data):
            raise ValueError(f"the offsets of the {what} do not rise to their end")

    @classmethod
    def of(cls, strings: Iterable[str]) -> Self:
        encoded = [string.encode("utf-8", "replace") for string in strings]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(each) for each in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)


class Names:
    """Names of documents, gathered while they are read. One name may cover several documents that follow each other,
    as that of a file covers its lines; they are then told apart by a number: ``notes.txt#3``.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._firsts: list[int] = []
        self._documents = 0

    def add(self, name: str, documents: int = 1) -> None:
        if documents:
            self._names.append(name)
            self._firsts.append(self._documents)
            self._documents += documents

    def __len__(self) -> int:
        """How many documents have a name."""
        return self._documents

    def finished(self) -> NameTable:
        return NameTable(Strings.of(self._names), np.array([*self._firsts, self._documents], np.int64))


@dataclass(frozen=True, slots=True)
class NameTable:
    """strings: the names. firsts: int64 (names + 1,), the first document of each, and how many there are in all."""

    strings: Strings
    firsts: Longs

    def __getitem__(self, document: int) -> str:
        place = int(np.searchsorted(self.firsts, document, side="right")) - 1
        first, after = self.firsts[place : place + 2].tolist()
        return self.strings[place] if after - first == 1 else f"{self.strings[place]}#{document - first + 1}"

    def check(self, documents: int) -> None:
        """Raise a ValueError unless every one of so many documents has a name."""
        self.strings.check("names")
        firsts = self.firsts
        if firsts.dtype != np.int64 or firsts.shape != (len(self.strings) + 1,):
            raise ValueError("the names' first documents are not an int64 for each name and one more")
        if firsts[0] != 0 or firsts[-1] != documents or (np.diff(firsts) <= 0).any():
            raise ValueError(f"the names do not cover {documents} documents")


class TextKeeper:
    """Keeps the text of blocks that go by, in memory or, with a ``folder``, in a file there that has no name."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = None if folder is None else tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._pieces: list[Bytes] = []
        self._lengths: list[Longs] = []
        self._unfinished = 0  # bytes of a document that goes on in the next block

    def __enter__(self) -> TextKeeper:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, block: Block) -> None:
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
        """All texts; where they are in a file, mapped from it, which needs it open no longer."""
        lengths = np.concatenate([np.empty(0, np.int64), *self._lengths])
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        if self._file is None or not offsets[-1]:
            return Strings(np.concatenate([np.empty(0, np.uint8), *self._pieces]), offsets)
        self._file.flush()
        return Strings(np.memmap(self._file, np.uint8, "r").view(np.ndarray), offsets)
