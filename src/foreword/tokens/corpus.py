"""A corpus: every document's ids in one flat array. It is what models are trained on and scored with.

Each document ends in ``</s>``, an ordinary id. Because all ids lie in one array, a corpus maps into memory from disk,
and a slice or a shard of it is a view: nothing is copied.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from foreword.arrays import Array, Ids, Ints, Longs
from foreword.checks import check_ids
from foreword.errors import ForewordError, InputError, SettingError
from foreword.native.parallel import ordered_map
from foreword.protocols import Parts
from foreword.storage.scratch import Scratch
from foreword.text.block import Block, blocks_of
from foreword.tokens.vocab import Vocab


@dataclass(frozen=True, slots=True)
class Encoded:
    """The ids of a block. ends: int64, the number of ids up to the end of each document that ends in the block."""

    ids: Ints
    ends: Longs


class BlockEncoder(Protocol):
    """A tokenizer, as far as a corpus is concerned."""

    @property
    def vocab(self) -> Vocab: ...
    def encode_block(self, block: Block) -> Encoded: ...  # may be called from several threads at once


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents as ids.

    ids: uint16 or int32 (tokens,), every document ending in ``vocab.end``.
    offsets: int64 (documents + 1,); document i is ``ids[offsets[i]:offsets[i + 1]]``.
    byte_offsets: int64 (documents + 1,), the same for the text's bytes. A document counts its UTF-8 and one more for
    its line end, which ``</s>`` stands for.
    """

    ids: Ids
    offsets: Longs
    byte_offsets: Longs
    vocab: Vocab

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, documents: slice) -> Corpus:
        """Return a range of documents, as a view."""
        start, stop, step = documents.indices(len(self))
        if step != 1:
            raise SettingError("a corpus is sliced in steps of one")
        stop = max(start, stop)
        first, last = self.offsets[start], self.offsets[stop]
        return Corpus(
            self.ids[first:last],
            self.offsets[start : stop + 1] - first,
            self.byte_offsets[start : stop + 1] - self.byte_offsets[start],
            self.vocab,
        )

    def check_ids(self) -> None:
        """Raise an InputError if an id is not in the vocabulary.

        A corpus mapped from a file has not been read before; check it before using its ids as indices of an array.
        """
        if len(self.ids) and not 0 <= int(self.ids.min()) <= int(self.ids.max()) < len(self.vocab):
            raise InputError(f"the corpus is damaged: an id is not in its vocabulary of {len(self.vocab)} tokens")

    def check(self, vocab: Vocab) -> None:
        """Raise an InputError unless the ids are those of a model's vocabulary."""
        if self.vocab != vocab:
            raise InputError("the text was turned into ids with another vocabulary than the model's")
        self.check_ids()

    def documents(self) -> Iterator[Ids]:
        """Yield each document's ids, as a view."""
        ends = self.offsets.tolist()
        for start, stop in itertools.pairwise(ends):
            yield self.ids[start:stop]

    def shard(self, number: int, of: int) -> Corpus:
        """Return part ``number`` of ``of`` parts of whole documents with about equally many tokens."""
        if not 0 <= number < of:
            raise SettingError(f"shard {number} of {of}: expected 0 to {of - 1}")
        first, last = np.searchsorted(self.offsets, [len(self.ids) * number // of, len(self.ids) * (number + 1) // of])
        return self[int(first) : len(self) if number == of - 1 else int(last)]

    def ranges(self, threads: int) -> list[tuple[int, int]]:
        """Return ranges of documents with about equally many ids, enough of them to keep all threads busy."""
        pieces = 1 if threads == 1 else 8 * threads
        cuts = np.searchsorted(self.offsets, np.linspace(0, len(self.ids), pieces + 1)[1:-1])
        return list(itertools.pairwise(np.unique(np.concatenate(([0], cuts, [len(self)]))).tolist()))

    def joined(self) -> Corpus:
        """Return all documents as one, so that a model's state carries over from one to the next."""
        ends = [0, -1] if len(self) else [0]
        return Corpus(self.ids, self.offsets[ends], self.byte_offsets[ends], self.vocab)

    @property
    def text_bytes(self) -> int:
        """How many bytes of text the documents were."""
        return int(self.byte_offsets[-1] - self.byte_offsets[0])

    @classmethod
    def from_ids(cls, documents: Iterable[Sequence[int] | Ids], vocab: Vocab, *, text_bytes: int = 0) -> Corpus:
        """Make a corpus of documents of ids; the end is added to each, and the bytes are divided evenly."""
        held = [np.append(np.asarray(document, np.int64), vocab.end) for document in documents]
        ids = np.concatenate([np.empty(0, np.int64), *held])
        check_ids(ids, len(vocab))
        offsets = np.cumsum([0, *map(len, held)], dtype=np.int64)
        byte_offsets = np.linspace(0, text_bytes, len(held) + 1).astype(np.int64)
        return cls(ids.astype(id_type(len(vocab))), offsets, byte_offsets, vocab)

    @classmethod
    def from_texts(cls, texts: Iterable[str], tokenizer: BlockEncoder, *, threads: int | None = 1) -> Corpus:
        """Encode texts, one document each, empty ones included."""
        return cls.from_blocks(blocks_of(texts), tokenizer, threads=threads)

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[Block],
        tokenizer: BlockEncoder,
        *,
        threads: int | None = None,
        folder: str | Path | None = None,
        scratch: Scratch | None = None,
    ) -> Corpus:
        """Encode a stream of documents on all cores. With ``folder``, or a limit in ``scratch``, the ids go to disk as
        they come, and the corpus that is given back is mapped from there: it may be larger than memory.
        """
        if folder is not None:
            return cls._on_disk(blocks, tokenizer, threads, Path(folder))
        layout = DocumentOffsets()
        small = id_type(len(tokenizer.vocab))
        if scratch is not None and scratch.on_disk:
            held = scratch.growing(1, small)
            for ids in layout.of(blocks, tokenizer, threads):
                held.append(ids.astype(small))
            return cls(held.finish().reshape(-1), layout.offsets(), layout.byte_offsets(), tokenizer.vocab)
        pieces = [ids.astype(small) for ids in layout.of(blocks, tokenizer, threads)]
        ids = np.concatenate([np.empty(0, small), *pieces])
        return cls(ids, layout.offsets(), layout.byte_offsets(), tokenizer.vocab)

    @classmethod
    def _on_disk(cls, blocks: Iterable[Block], tokenizer: BlockEncoder, threads: int | None, folder: Path) -> Corpus:
        from foreword.storage.folder import load, save

        layout = DocumentOffsets()
        small = id_type(len(tokenizer.vocab))
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder.parent) as file:
            for ids in layout.of(blocks, tokenizer, threads):
                file.write(ids.astype(small).data)
            file.flush()
            held: Ids = np.memmap(file, small, "r") if layout.tokens else np.empty(0, small)
            save(cls(held, layout.offsets(), layout.byte_offsets(), tokenizer.vocab), folder)
        corpus: Corpus = load(folder)
        return corpus

    def to_parts(self) -> Parts:
        """Return ids, offsets and vocabulary for saving."""
        arrays = {"ids": self.ids, "offsets": self.offsets, "byte_offsets": self.byte_offsets}
        return Parts({}, arrays, self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a saved corpus."""
        ids, offsets, byte_offsets = (parts.arrays[name] for name in ("ids", "offsets", "byte_offsets"))
        corpus = cls(ids, offsets, byte_offsets, parts.needed_vocab())
        corpus._check()
        return corpus

    def _check(self) -> None:
        """Raise an InputError unless offsets rise and end where the ids do; the ids are not read."""
        if self.ids.dtype != id_type(len(self.vocab)) or self.ids.ndim != 1:
            raise InputError("the ids are not of the type that the vocabulary's size asks for")
        for name, offsets in (("offsets", self.offsets), ("byte_offsets", self.byte_offsets)):
            if offsets.dtype != np.int64 or offsets.ndim != 1 or not len(offsets) or offsets[0] != 0:
                raise InputError(f"{name} must be int64 and begin with 0")
            if (np.diff(offsets) < 0).any():
                raise InputError(f"{name} must rise")
        if self.offsets[-1] != len(self.ids) or len(self.offsets) != len(self.byte_offsets):
            raise InputError("the offsets do not fit the ids")


def id_type(tokens: int) -> type[np.uint16] | type[np.int32]:
    """Return the smaller of the two types that holds every id of a vocabulary."""
    return np.uint16 if tokens <= 1 << 16 else np.int32


class DocumentOffsets:
    """The offsets of documents, collected while blocks are encoded."""

    def __init__(self) -> None:
        self.tokens = 0
        self._bytes_open = 0
        self._ends: list[Longs] = [np.zeros(1, np.int64)]
        self._byte_lengths: list[Longs] = []

    def of(self, blocks: Iterable[Block], tokenizer: BlockEncoder, threads: int | None) -> Iterator[Ints]:
        """Encode blocks on several threads and yield their ids, recording where documents end."""

        def work(block: Block) -> tuple[Block, Encoded]:
            return block, tokenizer.encode_block(block)

        for block, encoded in ordered_map(work, blocks, threads):
            self.add(block, encoded.ends, len(encoded.ids))
            yield encoded.ids

    def add(self, block: Block, ends: Longs, tokens: int) -> None:
        """Record where the documents of a block end."""
        self._ends.append(ends + self.tokens)
        self.tokens += tokens
        lengths = block.stops - block.starts
        if len(lengths):
            lengths[0] += self._bytes_open
            self._bytes_open = int(lengths[-1]) if block.open else 0
            self._byte_lengths.append(lengths[:-1] if block.open else lengths)

    def offsets(self) -> Longs:
        """Return where documents begin and end in the ids, int64 (documents + 1,)."""
        return np.concatenate(self._ends)

    def byte_offsets(self) -> Longs:
        """Return where documents begin and end in the text, int64 (documents + 1,)."""
        lengths = np.concatenate([np.empty(0, np.int64), *self._byte_lengths])
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths + 1)))


def max_ids(block: Block) -> int:
    """Return the maximum number of ids of a block: one per byte and one for each document's end.

    Bytes between documents are counted, which is faster than to sum up their lengths.
    """
    return int(block.stops[-1] - block.starts[0]) + len(block) + 1 if len(block) else 1


def encode_text(tokenizer: BlockEncoder, text: str | bytes) -> Ints:
    """Return the ids of one text, without the end of a document."""
    return tokenizer.encode_block(Block.from_texts([text], open=True)).ids


def encode_texts(tokenizer: BlockEncoder, texts: Iterable[str], threads: int | None = 1) -> list[Array]:
    """Return the ids of many texts, each without the end of a document, far faster than one by one."""
    encoded: list[Array] = []
    for part in ordered_map(tokenizer.encode_block, blocks_of(texts), threads):
        ends = part.ends.tolist()
        encoded += [part.ids[start : stop - 1] for start, stop in zip([0, *ends], ends, strict=False)]
    return encoded


class EncodesBlocks:
    """What tokenizers share: a learnt vocabulary, ``vocab_``, and texts encoded by way of ``encode_block``."""

    vocab_: Vocab

    @property
    def vocab(self) -> Vocab:
        """The vocabulary; an error before ``fit``."""
        if not hasattr(self, "vocab_"):
            raise ForewordError(f"this {type(self).__name__} has no vocabulary yet: call fit(texts) first")
        return self.vocab_

    def encode_block(self, block: Block) -> Encoded:
        """Encode a block of documents."""
        raise NotImplementedError

    def encode(self, text: str) -> Ints:
        """Return the ids of a text."""
        return encode_text(self, text)

    def encode_batch(self, texts: Iterable[str], *, threads: int | None = 1) -> list[Ints]:
        """Return the ids of many texts, far faster than one by one."""
        return encode_texts(self, texts, threads)
