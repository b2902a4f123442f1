"""The index files of the infini-gram package, asked where they are: nothing is copied or sorted again.

A folder has shards, each of three files: ``tokenized.N``, the documents' ids, little-endian, in one, two or four bytes
each, with a separator of all ones in front of every document; ``table.N``, the suffix array, of which each entry is the
byte where a suffix begins in ``tokenized.N``, little-endian, in as few bytes as the size of that file needs; and
``offset.N``, uint64, where each document begins there. Suffixes are sorted by their bytes as they are in the file: in
the order of the ids with their bytes reversed. The files name no tokenizer. ``metadata`` files are not read.

J. Liu et al., "Infini-gram", COLM 2024; the format is that of https://github.com/liujch1998/infini-gram.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from foreword.arrays import Bytes, Longs
from foreword.errors import InputError
from foreword.infinigram.index import Segment, SuffixIndex
from foreword.tokens.vocab import Vocab

WIDTHS = (1, 2, 4)


@dataclass(frozen=True, slots=True)
class InfiniGramShard(Segment):
    """A shard: text and suffixes are uint8 (n, 1, width).

    tokens: how many the vocabulary has; end: its id of ``</s>``.
    """

    tokens: int
    end: int
    path: str

    @property
    def _separator(self) -> int:
        return (1 << 8 * int(self.text.shape[2])) - 1

    def _reversed(self, numbers: Longs) -> Longs:
        width = self.text.shape[2]
        return numbers.astype(f"<u{width}").view(f">u{width}").astype(np.int64)

    def keys(self, ids: Longs) -> Longs:
        """Return ids with their bytes reversed."""
        return np.where(ids == self.end, self._separator, self._reversed(ids))

    def ids(self, keys: Longs) -> Longs:
        """Return the ids of such keys."""
        ids = np.where(keys == self._separator, self.end, self._reversed(keys))
        if len(ids) and ids.max() >= self.tokens:
            raise InputError(
                f"{self.path}: holds token {ids.max()}, but the tokenizer has {self.tokens}: expected the tokenizer "
                "that the index was built with"
            )
        return ids

    def extended(self, tokens: int) -> Segment:
        """Return the shard for a vocabulary that has grown to ``tokens``."""
        return replace(self, tokens=tokens)

    @property
    def size(self) -> int:
        """The number of tokens, separators included."""
        return len(self.text)

    def read(self, begin: int, end: int) -> Longs:
        """Return the ids of a part of the text."""
        part = self.text[begin:end, 0].astype(np.int64)
        return self.ids(part @ (1 << 8 * np.arange(part.shape[1])[::-1]))

    def positions(self, low: int, high: int) -> Longs:
        """Return where the suffixes of a range begin, in no order."""
        entries = self.suffixes[low:high, 0].astype(np.int64)
        found: Longs = (entries << 8 * np.arange(entries.shape[1])).sum(axis=1) // self.text.shape[2]
        return found

    def next_tokens(self, low: int, high: int, length: int, tokens: int) -> tuple[Longs, Longs]:
        """Return the ids that follow the run of a range, rising, and how often each does."""
        ids, counts = Segment.next_tokens(self, low, high, length, tokens + 1)
        order = np.argsort(ids)
        return ids[order], counts[order]


def is_infini_gram(folder: str | Path) -> bool:
    """Return whether a folder holds an index of the infini-gram package."""
    return Path(folder, "tokenized.0").is_file()


def read_infini_gram(folder: str | Path, vocab: Vocab) -> SuffixIndex:
    """Open an index of the infini-gram package. vocab: that of the tokenizer it was built with."""
    names = sorted(Path(folder).glob("tokenized.*"), key=lambda path: (len(path.name), path.name))
    if not names:
        raise InputError(f"{folder}: there is no file tokenized.0: expected an index of infini-gram")
    return SuffixIndex([_shard(path, vocab) for path in names], vocab)


def _shard(path: Path, vocab: Vocab) -> InfiniGramShard:
    table, offset = (path.with_name(path.name.replace("tokenized", name)) for name in ("table", "offset"))
    text, suffixes, begins = (_mapped(file) for file in (path, table, offset))
    entry = (max(len(text) - 1, 1).bit_length() + 7) // 8
    width = len(text) * entry // len(suffixes)
    if width not in WIDTHS or width * len(suffixes) != len(text) * entry or len(text) % width:
        raise InputError(
            f"{table}: {len(suffixes):,} bytes do not fit the {len(text):,} bytes of {path.name}: truncated, or no "
            "index of infini-gram"
        )
    if len(vocab) - 1 > 1 << 8 * width:
        raise InputError(
            f"{path}: ids of {width} bytes, but the tokenizer has {len(vocab)} tokens: expected another one"
        )
    if len(begins) % 8:
        raise InputError(f"{offset}: {len(begins):,} bytes: expected 8 for each document")
    starts = begins.view("<u8").astype(np.int64) // width
    offsets = np.append(starts, len(text) // width) + 1
    if starts[0] != 0 or (np.diff(offsets) < 1).any():
        raise InputError(f"{offset}: the offsets of the documents do not rise from 0 to the end of {path.name}")
    tokens, entries = text.reshape(-1, 1, width), suffixes.reshape(-1, 1, entry)
    return InfiniGramShard(tokens, entries, np.zeros(0, np.int32), offsets, len(vocab), vocab.end, str(path))


def _mapped(path: Path) -> Bytes:
    try:
        mapped = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        raise InputError(f"{path}: cannot be read: expected an index of infini-gram ({error})") from error
    return mapped.view(np.ndarray)
