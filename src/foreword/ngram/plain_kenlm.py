"""The plain version of ``kernels_kenlm``: the same numbers, one word at a time, for reading and testing.

Every n-gram is an entry: log10 of its probability, log10 of its back-off weight, and where to look for the n-grams that
are one word longer to the left. How entries are found is all that hash tables and tries differ in.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from foreword.ngram import kenlm_format as form
from foreword.ngram.kenlm_format import FileLayout, read_layout

NO_EXTENSION = struct.pack("<f", -0.0)
MASK = (1 << 64) - 1


@dataclass(frozen=True)
class NgramEntry:
    """An n-gram. extends: whether it ends a longer one. place: its key, or the range of its children, for ``child``."""

    log: np.float32
    weight: np.float32
    extends: bool
    place: Any


@dataclass(frozen=True)
class PlainState:
    """The words of the context that count, the latest first, and the weight of each context."""

    words: tuple[int, ...] = ()
    weights: tuple[np.float32, ...] = ()


class PlainKenlm:
    """A KenLM binary, read into memory."""

    def __init__(self, path: str | Path) -> None:
        self.data = Path(path).read_bytes()
        self.layout = read_layout(np.frombuffer(self.data, np.uint8), str(path))
        search = _Trie if self.layout.header.is_trie else _HashTables
        self.ngrams: _Trie | _HashTables = search(self.data, self.layout)

    def word_id(self, word: str) -> int:
        """Return the file's id of a word, 0 if it is unknown."""
        return self.ngrams.word_id(hash_word(word.encode()))

    def start(self) -> PlainState:
        """Return the state after ``<s>``."""
        begin = self.word_id("<s>")
        return PlainState((begin,), (self.ngrams.unigram(begin).weight,))

    def step(self, state: PlainState, word: int) -> tuple[np.float32, int, PlainState]:
        """Read a word: log10 of its probability, the length of the n-gram that matched, and the new state."""
        entries = [self.ngrams.unigram(word)]
        for length, before in enumerate(state.words, 2):
            longer = self.ngrams.child(entries[-1], length, before) if entries[-1].extends else None
            if longer is None:
                break
            entries.append(longer)
        total = entries[-1].log
        for weight in state.weights[len(entries) - 1 :]:
            total = np.float32(total + weight)
        contexts = entries[: self.layout.header.order - 1]
        while contexts and struct.pack("<f", contexts[-1].weight) == NO_EXTENSION:
            contexts.pop()
        words = (word, *state.words)[: len(contexts)]
        return total, len(entries), PlainState(words, tuple(entry.weight for entry in contexts))

    def full_scores(self, words: list[str]) -> list[tuple[np.float32, int]]:
        """Return log10 and the length that matched for each word of a sentence and for its end."""
        state, found = self.start(), []
        for word in [*words, "</s>"]:
            log, length, state = self.step(state, self.word_id(word))
            found.append((log, length))
        return found


def hash_word(word: bytes) -> int:
    """Return MurmurHash64A (Appleby, 2008; public domain) with seed 0."""
    factor, shift = 0xC6A4A7935BD1E995, 47
    mixed = len(word) * factor & MASK
    whole = len(word) // 8 * 8
    for at in range(0, whole, 8):
        part = int.from_bytes(word[at : at + 8], "little") * factor & MASK
        part = (part ^ part >> shift) * factor & MASK
        mixed = (mixed ^ part) * factor & MASK
    if whole < len(word):
        mixed = (mixed ^ int.from_bytes(word[whole:], "little")) * factor & MASK
    mixed = (mixed ^ mixed >> shift) * factor & MASK
    return mixed ^ mixed >> shift


def chained(key: int, word: int) -> int:
    """Return the key of an n-gram that has one more word to the left."""
    return (key * 8978948897894561157 & MASK) ^ ((word + 1) * 17894857484156487943 & MASK)


class _HashTables:
    def __init__(self, data: bytes, layout: FileLayout) -> None:
        self.data = data
        self.layout = layout

    def word_id(self, key: int) -> int:
        """Return the id of the word with this hash; 0 if it is unknown."""
        at = self._find(self.layout.vocabulary, self.layout.hashes, form.HASHED_WORD, key)
        id = 0 if at is None else int.from_bytes(self.data[at + 8 : at + 12], "little")
        return id if id < self.layout.bound else 0

    def unigram(self, word: int) -> NgramEntry:
        """Return the entry of a word."""
        start, _, size = self.layout.shapes[0, :3].tolist()
        return self._entry(start + size * word, word, highest=False)

    def child(self, entry: NgramEntry, length: int, before: int) -> NgramEntry | None:
        """Return the entry of the n-gram with ``before`` put in front, or None."""
        key = chained(entry.place, before)
        start, slots, size = self.layout.shapes[length - 1, :3].tolist()
        at = self._find(start, slots, size, key)
        return None if at is None else self._entry(at + 8, key, highest=length == self.layout.header.order)

    def _find(self, start: int, slots: int, size: int, key: int) -> int | None:
        for turn in range(slots):
            at = start + (key + turn) % slots * size
            held = int.from_bytes(self.data[at : at + 8], "little")
            if held == key:
                return at
            if held == 0:
                return None
        raise ValueError("a hash table has no free slot")

    def _entry(self, at: int, key: int, *, highest: bool) -> NgramEntry:
        log, weight = struct.unpack_from("<ff", self.data + bytes(4), at)
        extends = not np.signbit(log)
        return NgramEntry(np.float32(-abs(log)), np.float32(0 if highest else weight), bool(extends), key)


class _Trie:
    def __init__(self, data: bytes, layout: FileLayout) -> None:
        self.data = data
        self.layout = layout

    def word_id(self, key: int) -> int:
        """Return the id of the word with this hash; 0 if it is unknown."""
        hashes = np.frombuffer(self.data, "<u8", self.layout.hashes, self.layout.vocabulary)
        index = int(np.searchsorted(hashes, np.uint64(key)))
        return index + 1 if index < len(hashes) and int(hashes[index]) == key else 0

    def unigram(self, word: int) -> NgramEntry:
        """Return the entry of a word."""
        log, weight = struct.unpack_from("<ff", self.data, int(self.layout.shapes[0, form.START]) + 16 * word)
        children = self._pointer(1, word), self._pointer(1, word + 1)
        return NgramEntry(np.float32(log), np.float32(weight), children[0] < children[1], children)

    def child(self, entry: NgramEntry, length: int, before: int) -> NgramEntry | None:
        """Return the entry of the n-gram with ``before`` put in front, or None."""
        first, last = entry.place
        for index in range(first, last):
            if self._field(length, index, 0, int(self._shape(length)[form.WORD_BITS])) == before:
                return self._entry(length, index)
        return None

    def _entry(self, length: int, index: int) -> NgramEntry:
        log = self._number(length, index, form.LOG_AT, form.LOG_BITS, form.LOG_TABLE)
        found = NgramEntry(log, np.float32(0), False, (0, 0))
        if length == self.layout.header.order:
            return found
        weight = self._number(length, index, form.WEIGHT_AT, form.WEIGHT_BITS, form.WEIGHT_TABLE)
        children = self._pointer(length, index), self._pointer(length, index + 1)
        return replace(found, weight=weight, extends=children[0] < children[1], place=children)

    def _shape(self, length: int) -> Any:
        return self.layout.shapes[length - 1]

    def _field(self, length: int, index: int, at: int, bits: int) -> int:
        shape = self._shape(length)
        bit = index * int(shape[form.RECORD]) + at
        start = int(shape[form.START]) + bit // 8
        return int.from_bytes(self.data[start : start + 8], "little") >> bit % 8 & ((1 << bits) - 1)

    def _number(self, length: int, index: int, at: int, bits: int, table: int) -> np.float32:
        """Return a float32: its bits, or its index in a table of quantized values."""
        shape = self._shape(length)
        found = self._field(length, index, int(shape[at]), int(shape[bits]))
        if shape[table]:
            return np.float32(struct.unpack_from("<f", self.data, int(shape[table]) + 4 * found)[0])
        # A log-probability is stored without its sign, which is always negative.
        return np.float32(struct.unpack("<f", struct.pack("<I", found | (shape[bits] == 31) << 31))[0])

    def _pointer(self, length: int, index: int) -> int:
        """Return where the children of a record begin."""
        shape = self._shape(length)
        if length == 1:
            return int(struct.unpack_from("<Q", self.data, int(shape[form.START]) + 16 * index + 8)[0])
        found = self._field(length, index, int(shape[form.NEXT_AT]), int(shape[form.NEXT_BITS]))
        if shape[form.HIGHS]:
            highs = np.frombuffer(self.data, "<u8", int(shape[form.HIGHS]), int(shape[form.HIGH_START]))
            high = int(np.searchsorted(highs, np.uint64(index), side="right")) - 1
            found |= high << int(shape[form.NEXT_BITS])
        return found
