"""Tokens per word against the size of the vocabulary, from single characters up to whole words (row K06).

    python recipes/vocabulary_sweep.py                    the embedded text
    python recipes/vocabulary_sweep.py enwiki             a named dataset
    python recipes/vocabulary_sweep.py a.txt b.txt.gz     files

The vocabulary is learnt once, at the largest size, by the sources' rule (characters, nothing merged over the start of
white space); a smaller one is the same merges stopped earlier. The text is read as a stream, and counted in no more
memory than ``memory`` allows.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from foreword.text.block import Block, blocks_of
from foreword.text.datasets import DATASETS, dataset
from foreword.text.embedded import embedded_text
from foreword.text.sources import read_blocks
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.counting import Counted, count_pieces_of
from foreword.tokens.pieces import WORDS

SIZES = (500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 100_000)
"""Up to what is used in practice: 30,000 to 100,000."""

MEMORY = 1 << 30

Blocks = Callable[[], Iterable[Block]]
"""The text, from its beginning, each time it is called."""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the curve."""

    vocabulary: int
    tokens: int
    words: int

    @property
    def tokens_per_word(self) -> float:
        return self.tokens / self.words


def sweep(blocks: Blocks, sizes: Sequence[int] = SIZES, *, memory: int = MEMORY) -> Iterator[Point]:
    """The curve: first the alphabet alone, then each size that the text has pairs for."""
    words = count_pieces_of(blocks(), WORDS, memory=memory // 4)
    largest = BPETokenizer(max(sizes), kind="characters")
    counted = largest.count(blocks(), memory=memory)
    largest.fit_counted(counted, memory=memory)
    alphabet = len(largest.standing) + sum(len(token) == 1 for token in largest.vocab)
    for size in sorted({alphabet, len(largest.vocab), *sizes}):
        if alphabet <= size <= len(largest.vocab):
            tokens = tokens_of(smaller(largest, size), counted)
            yield Point(size, tokens, int(words.counts[1:].sum()))


def smaller(tokenizer: BPETokenizer, size: int) -> BPETokenizer:
    """The tokenizer as it was when it had ``size`` tokens."""
    record = tokenizer.record_[tokenizer.record_[:, 2] < size]
    names = tokenizer.vocab.tokens[:size]
    return BPETokenizer(size, kind=tokenizer.kind).with_merges(names, record)


def tokens_of(tokenizer: BPETokenizer, counted: Counted) -> int:
    """How many tokens the counted text has: every distinct piece is encoded once."""
    pieces = Block(counted.data, counted.offsets[:-1], counted.offsets[1:])
    ends = tokenizer.encode_block(pieces).ends
    lengths = np.diff(ends, prepend=0) - 1  # without the end of a document
    return int(lengths @ counted.counts)


def text_of(names: Sequence[str]) -> Blocks:
    if not names:
        texts = embedded_text("train")
        return lambda: blocks_of(texts)
    files = [str(dataset(name).path()) if name in DATASETS else name for name in names]
    return lambda: read_blocks(files)


def main() -> None:
    table = Table("vocabulary", "tokens", "tokens per word", title=" ".join(sys.argv[1:]) or "the embedded text")
    for point in sweep(text_of(sys.argv[1:])):
        table.add_row(f"{point.vocabulary:,}", f"{point.tokens:,}", f"{point.tokens_per_word:.3f}")
    console = Console()
    console.print(table)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    console.print(f"peak memory {peak / (1 << 10 if sys.platform != 'darwin' else 1 << 20):,.0f} MB")


if __name__ == "__main__":
    main()
