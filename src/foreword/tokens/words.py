"""Words: what is between white space, or that with punctuation split off."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from queue import SimpleQueue
from typing import Literal, Self

import numpy as np

from foreword.arrays import Ids, Ints, Longs
from foreword.errors import SettingError
from foreword.native.parallel import cores, ordered_map
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json, Parts
from foreword.storage.scratch import Scratch
from foreword.text.block import Block, blocks_of
from foreword.text.unicode import Cleaning, Form
from foreword.tokens.corpus import Corpus, DocumentOffsets, Encoded, EncodesBlocks, id_type, max_ids
from foreword.tokens.counting import Counted, count_pieces_of, merge_tables, pieces_of, with_base
from foreword.tokens.kernels import encode_words
from foreword.tokens.pieces import PUNCTUATION, WORDS, character_classes
from foreword.tokens.strings import BATCH, StringTable, renumber
from foreword.tokens.vocab import END, UNKNOWN, Vocab

Split = Literal["space", "punctuation"]
_PATTERNS: dict[str, int] = {"space": WORDS, "punctuation": PUNCTUATION}


class WordTokenizer(ShownInNotebook, EncodesBlocks):
    """A tokenizer of words; those not seen often enough are ``<unk>``, which is where word models fail.

    split: "space" is Python's ``str.split``; "punctuation" also makes a token of every character that is neither
    letter, mark, number nor white space.
    min_count, max_size: which words the vocabulary keeps; ``max_size`` counts ``<unk>`` and ``</s>``.
    """

    def __init__(
        self,
        *,
        split: Split = "space",
        min_count: int = 1,
        max_size: int | None = None,
        lowercase: bool = False,
        form: Form | None = None,
    ) -> None:
        if split not in _PATTERNS:
            raise SettingError(f"split={split!r}: expected 'space' or 'punctuation'")
        if max_size is not None and max_size < 2:
            raise SettingError(f"max_size={max_size} has no room for {UNKNOWN} and {END}")
        self.split = split
        self.min_count = min_count
        self.max_size = max_size
        self.cleaning = Cleaning(form, lowercase)

    def __repr__(self) -> str:
        size = f", {len(self.vocab_):,} words" if hasattr(self, "vocab_") else ""
        return f"WordTokenizer(split={self.split!r}, min_count={self.min_count}, max_size={self.max_size}{size})"

    def without_vocab(self) -> Self:
        """Return a tokenizer with the same settings that has learnt nothing."""
        cleaning = self.cleaning
        return type(self)(
            split=self.split, min_count=self.min_count, max_size=self.max_size, lowercase=cleaning.lowercase,
            form=cleaning.form,
        )  # fmt: skip

    def fit(self, texts: Iterable[str]) -> Self:
        """Learn the vocabulary from texts."""
        return self.fit_blocks(blocks_of(texts), threads=1)

    def fit_blocks(self, blocks: Iterable[Block], *, threads: int | None = None) -> Self:
        """Learn the vocabulary from a stream of documents, on all cores; the same at any number of threads."""
        return self.fit_counted(count_pieces_of(map(self.prepare, blocks), self.piece_pattern, threads=threads))

    def fit_counted(self, counted: Counted) -> Self:
        """Learn the vocabulary from words that were counted elsewhere."""
        self._learn(counted)
        return self

    @property
    def piece_pattern(self) -> int:
        """The pattern that cuts a text into words, see ``pieces.py``."""
        return _PATTERNS[self.split]

    def prepare(self, block: Block) -> Block:
        """Return the block cleaned, as the pattern is applied to it."""
        return self.cleaning.block(block)

    def fit_corpus(
        self, blocks: Iterable[Block], *, threads: int | None = None, scratch: Scratch | None = None
    ) -> Corpus:
        """Learn the vocabulary and encode the text in one pass: words are numbered as they come, and renumbered by
        frequency at the end. With a limit in ``scratch`` the ids are on disk; the vocabulary has to fit in memory.
        """
        threads, scratch = threads or cores(), scratch or Scratch()
        tables = [StringTable() for _ in range(threads)]
        rooms = [np.empty(0, np.int32) for _ in range(threads)]  # kept: fresh memory costs more than it seems
        free: SimpleQueue[int] = SimpleQueue()
        for number in range(threads):
            free.put(number)

        def work(item: tuple[int, Block]) -> tuple[int, Block, Ints, Longs]:
            base, block = item
            number = free.get()
            block = self.cleaning.block(block)
            if len(rooms[number]) < max_ids(block):
                rooms[number] = np.empty(max_ids(block), np.int32)
            ids = tables[number].count(block, _PATTERNS[self.split], base=base, out=rooms[number]).copy()
            free.put(number)
            return number, block, ids, np.flatnonzero(ids == 0) + 1

        layout = DocumentOffsets()
        held, owners = scratch.array_list(np.int32), []
        for number, block, ids, ends in ordered_map(work, with_base(blocks), threads):
            layout.add(block, ends, len(ids))
            held.append(ids)
            owners.append(number)
        pieces = list(zip(owners, held.finish(), strict=True))
        counted, places = merge_tables(tables)
        final = self._learn(counted)
        small = id_type(len(self.vocab))
        numbers: list[Ids] = [final[index].astype(small) for index in places]
        settled: Ids = scratch.empty(layout.tokens, small)
        until = np.cumsum([len(piece) for _, piece in pieces], dtype=np.int64)

        def settle(index: int) -> None:
            number, piece = pieces[index]
            renumber(piece, numbers[number], settled[until[index] - len(piece) : until[index]])

        for _ in ordered_map(settle, range(len(pieces)), threads):
            pass
        return Corpus(settled, layout.offsets(), layout.byte_offsets(), self.vocab)

    def _learn(self, counted: Counted) -> Ints:
        """Make the vocabulary; the final id of each counted string (number 0 is the end of a document)."""
        counts, n = counted.counts, len(counted.counts)
        special = counted.find([UNKNOWN, END])
        kept = counts >= self.min_count
        kept[0] = False
        kept[special[special >= 0]] = False  # a text may say <unk> and mean it; it cannot say </s>
        order = counted.by_frequency(np.flatnonzero(kept))
        if self.max_size is not None:
            order = order[: self.max_size - 2]
        final = np.zeros(n, np.int32)
        final[order] = np.arange(2, len(order) + 2)
        final[0] = 1
        ended = int(counts[0])
        unknown = int(counts.sum() - ended - counts[order].sum())
        data, offsets = counted.gather(order, (UNKNOWN, END))
        totals = np.concatenate((np.array([unknown, ended]), counts[order]))
        self.vocab_ = Vocab.from_bytes(data, offsets, totals, unknown=0, end=1)
        self.__dict__.pop("_table", None)
        return final

    def encode_block(self, block: Block) -> Encoded:
        """Encode a block of documents; several threads may do so at once."""
        block = self.cleaning.block(block)
        table = self._table
        out = np.empty(max_ids(block), np.int32)
        ends = np.empty(len(block), np.int64)
        batch, keys = np.empty(BATCH * 4, np.int64), np.empty(BATCH * 4, np.uint64)
        written = encode_words(
            block.data, block.starts, block.stops, block.open, _PATTERNS[self.split], character_classes(),
            table.slots, table.arena, table.starts, self._table_ids, self._unknown, out, ends,
            batch, keys, np.zeros(2, np.int64),
        )  # fmt: skip
        return Encoded(out[:written].copy(), ends[: len(ends) - block.open])

    def pieces(self, text: str) -> list[str]:
        """Return the words of a text as they are written, known or not."""
        return pieces_of(self.prepare(Block.from_texts([text], open=True)), self.piece_pattern)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the words with a blank between them; the original white space is lost."""
        vocab = self.vocab
        return " ".join([vocab[int(id)] for id in ids])

    @property
    def _unknown(self) -> int:
        assert self.vocab.unknown is not None  # a word vocabulary always has one
        return self.vocab.unknown

    @cached_property
    def _table(self) -> StringTable:
        vocab = self.vocab
        table = StringTable.over(vocab.data, vocab.offsets)
        ids = np.arange(-1, len(vocab), dtype=np.int32)
        ids[0] = vocab.end
        ids[vocab.end + 1] = self._unknown  # </s> written in a text is not the end of a document
        self._table_ids = ids
        return table

    def to_parts(self) -> Parts:
        """Return settings and vocabulary for saving."""
        settings: dict[str, Json] = {
            "split": self.split,
            "min_count": self.min_count,
            "max_size": self.max_size,
            "lowercase": self.cleaning.lowercase,
            "form": self.cleaning.form,
        }
        return Parts(settings, {}, self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a saved tokenizer."""
        parts.check_flags("lowercase")
        tokenizer = cls(**parts.settings)  # type: ignore[arg-type]
        tokenizer.vocab_ = parts.needed_vocab(unknown=True)
        return tokenizer
