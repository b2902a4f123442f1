"""A compressed index of texts: a tokenizer, bytes by default, and an FM-index of its ids. It counts, and no more."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Self

import numpy as np

from foreword.checks import check_not_string, saveable
from foreword.errors import InputError
from foreword.infinigram.compressed import CompressedIndex
from foreword.notebook import ShownInNotebook
from foreword.pipeline.index import encode_corpus, encode_run
from foreword.protocols import Meter, Parts, TextTokenizer
from foreword.storage.folder import nest, unnest
from foreword.text.block import Block, blocks_of
from foreword.tokens.characters import ByteTokenizer
from foreword.tokens.vocab import Vocab


class CompressedTextIndex(ShownInNotebook):
    """Counts of any string in texts, in less memory than the texts take.

    tokenizer: bytes by default; one with a small vocabulary.
    """

    def __init__(self, tokenizer: TextTokenizer | None = None) -> None:
        self.tokenizer = ByteTokenizer() if tokenizer is None else tokenizer

    def __repr__(self) -> str:
        return f"CompressedTextIndex({self.tokenizer!r}, {getattr(self, 'index_', None)!r})"

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.index)

    @property
    def index(self) -> CompressedIndex:
        """The index of ids."""
        if not hasattr(self, "index_"):
            raise InputError("this CompressedTextIndex is empty: call fit(texts) first")
        return self.index_

    @property
    def vocab(self) -> Vocab:
        """The vocabulary of the index."""
        return self.index.vocab

    def fit(self, texts: Iterable[str]) -> Self:
        """Index texts, one document each."""
        return self.fit_blocks(blocks_of(check_not_string(texts)), threads=1)

    def fit_blocks(
        self,
        blocks: Iterable[Block],
        *,
        threads: int | None = None,
        memory: int | None = None,
        folder: Path | None = None,
        meter: Meter | None = None,
    ) -> Self:
        """Index a stream of documents. memory, folder: a limit for sorting, as in ``TextIndex.fit_blocks``."""
        corpus = encode_corpus(blocks, self.tokenizer, threads, memory, folder)
        self.index_ = CompressedIndex.build(corpus, memory=memory, folder=folder, meter=meter)
        return self

    def count(self, text: str) -> int:
        """Return how often a text occurs in the index, as a sequence of tokens."""
        ids, unknown = encode_run(text, self.tokenizer, self.vocab)
        return 0 if np.count_nonzero(unknown) else self.index.count(ids)

    def to_parts(self) -> Parts:
        """Return the tokenizer and the index to save."""
        parts = Parts({})
        nest("tokenizer", saveable(self.tokenizer), parts)
        nest("index", self.index, parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Rebuild the index from what was saved."""
        tokenizer, index = unnest("tokenizer", parts), unnest("index", parts)
        if not isinstance(tokenizer, TextTokenizer) or not isinstance(index, CompressedIndex):
            raise ValueError(f"a {type(tokenizer).__name__} and a {type(index).__name__} make no compressed index")
        found = cls(tokenizer)
        found.index_ = index
        return found
