"""The vocabulary of a KenLM binary: words are found by their hash, so that no list of words has to be read.

KenLM's id 0 is ``<unk>``, and ``<s>`` and ``</s>`` have ids among the words. Here ``<s>`` has none, because nothing
predicts it: our ids are those of the file, less one after that of ``<s>``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NoReturn, Self

import numpy as np

from foreword.arrays import Bytes, Ints, Longs
from foreword.errors import ForewordError, InputError
from foreword.ngram.kenlm_format import COLUMNS, HASHED_WORD, PROBING, TRIE, FileLayout
from foreword.ngram.kernels_kenlm import FULL, KenlmArrays, encode_words, find_words
from foreword.protocols import Json, Parts
from foreword.text.block import Block
from foreword.text.unicode import is_utf8
from foreword.tokens.corpus import Encoded, encode_text, encode_texts, max_ids
from foreword.tokens.vocab import END, Reader, Vocab

START = "<s>"


class HashedWords:
    """The words of a KenLM binary, as a tokenizer of text whose words are separated by ASCII's white space.

    A word is known by its hash alone, so the file need not store any words; without them ids cannot become text.
    model: the file, or its hashes alone. words: returns the words, those of the file in the order of its ids; None if
    they are not stored. begin, end: the file's id of ``<s>``, ours of ``</s>``.
    """

    def __init__(self, model: KenlmArrays, words: Reader | None, name: str = "the file") -> None:
        self.name = name
        self.has_words = words is not None
        self.model = model
        self.begin, end = self.file_ids([START.encode(), END.encode()]).tolist()
        if not end:
            raise InputError(
                f"{name}: has no {END}, the end of a sentence: build it again from an ARPA file that has one"
            )
        # Without <s>, which only a file made with unusual settings lacks, KenLM begins with <unk>: no id is left out.
        self.model = model._replace(begin=self.begin or model.bound)
        self.end = int(end) - (end > self.model.begin)
        read = partial(_no_words, name) if words is None else partial(self._without_start, words)
        self.vocab = Vocab.from_reader(model.bound - (self.begin > 0), read, unknown=0, end=self.end)

    @classmethod
    def in_file(cls, model: KenlmArrays, layout: FileLayout, name: str) -> Self:
        """Open the vocabulary of a mapped file."""
        words = None if layout.words is None else partial(read_words, model.data, layout.words, layout.bound, name)
        return cls(model, words, name)

    def __repr__(self) -> str:
        return f"HashedWords({self.name!r})"

    def fit(self, texts: Iterable[str]) -> Self:
        """Raise an error: the words are those of a file."""
        raise ForewordError(f"{self.name}: the words of a KenLM binary cannot be learnt again: make a WordTokenizer")

    def encode(self, text: str) -> Ints:
        """Return the ids of a text."""
        return encode_text(self, text)

    def encode_batch(self, texts: Iterable[str], *, threads: int | None = 1) -> list[Ints]:
        """Return the ids of many texts, faster than one by one."""
        return encode_texts(self, texts, threads)

    def encode_block(self, block: Block) -> Encoded:
        """Encode a block of documents; several threads may do so at once."""
        out, ends = np.empty(max_ids(block), np.int32), np.empty(len(block), np.int64)
        written = encode_words(self.model, block.data, block.starts, block.stops, block.open, self.end, out, ends)
        if written == FULL:
            raise full_table(self.name)
        return Encoded(out[:written].copy(), ends[: len(ends) - block.open])

    def decode(self, ids: Iterable[int]) -> str:
        """Return the words with a blank between them; the original white space is lost."""
        return " ".join(self.vocab[int(id)] for id in ids)

    def file_ids(self, words: Sequence[bytes]) -> Ints:
        """Return the file's ids of words, 0 for unknown ones; ``<s>`` and ``</s>`` are words here."""
        offsets = np.zeros(len(words) + 1, np.int64)
        np.cumsum([len(word) for word in words], out=offsets[1:])
        ids = np.empty(len(words), np.int32)
        if find_words(self.model, np.frombuffer(b"".join(words), np.uint8), offsets, ids) == FULL:
            raise full_table(self.name)
        return ids

    def ids(self, words: Iterable[str]) -> Ints:
        """Return our ids of words, 0 for unknown ones; a ``<s>`` or ``</s>`` in a text is unknown."""
        ids = self.file_ids([word.encode() for word in words])
        ids[ids == self.model.begin] = 0
        ids -= ids > self.model.begin
        ids[ids == self.end] = 0
        return ids

    def _without_start(self, words: Reader) -> tuple[Bytes, Longs]:
        data, offsets = words()
        if not self.begin:
            return data, offsets
        first, last = offsets[self.begin : self.begin + 2].tolist()
        offsets = np.delete(offsets, self.begin + 1)
        offsets[self.begin + 1 :] -= last - first
        return np.delete(data, slice(first, last)), offsets

    # Saving

    def to_parts(self) -> Parts:
        """Return the hashes, and the words where they are stored, for saving."""
        model, size = self.model, 8 if self.model.kind >= TRIE else HASHED_WORD
        settings: dict[str, Json] = {"sorted": model.kind >= TRIE, "bound": model.bound}
        hashes = model.data[model.vocabulary : model.vocabulary + size * model.hashes]
        return Parts(settings, {"hashes": hashes}, self.vocab if self.has_words else None)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a saved vocabulary."""
        parts.check_flags("sorted")
        hashes, bound = parts.arrays["hashes"], parts.settings["bound"]
        size = 8 if parts.settings["sorted"] else HASHED_WORD
        if hashes.dtype != np.uint8 or hashes.ndim != 1 or len(hashes) % size or not isinstance(bound, int):
            raise InputError("the hashes of the words have the wrong form")
        if not 0 < bound <= len(hashes) // size + 1:
            raise InputError("the hashes of the words do not fit their number")
        shapes = np.zeros((1, COLUMNS), np.int64)
        kind = TRIE if parts.settings["sorted"] else PROBING
        found = cls(KenlmArrays(hashes, kind, 1, 0, len(hashes) // size, bound, 0, shapes), None)
        if parts.vocab is not None:
            if len(parts.vocab) != len(found.vocab) or parts.vocab.end != found.end:
                raise InputError("the hashes of the words do not fit the words")
            found.vocab, found.has_words = parts.vocab, True
        return found


def read_words(data: Bytes, start: int, count: int, name: str) -> tuple[Bytes, Longs]:
    """Return the words that begin at ``start``, each ended by a NUL, and where each begins."""
    stops = np.flatnonzero(data[start:] == 0)[:count]
    if len(stops) < count:
        raise InputError(f"{name}: {len(stops):,} words are stored, not {count:,}: the file is cut")
    text = data[start : start + int(stops[-1]) + 1]
    if not is_utf8(text):
        raise InputError(f"{name}: a stored word is not UTF-8")
    return text[text != 0], np.concatenate((np.zeros(1, np.int64), stops - np.arange(count)))


def full_table(name: str) -> InputError:
    """Return the error for a hash table without a free slot."""
    return InputError(f"{name}: a hash table has no free slot: the file is damaged")


def _no_words(name: str) -> NoReturn:
    raise InputError(f"{name}: holds no words, only their hashes: it can score text, but not write or list any")
