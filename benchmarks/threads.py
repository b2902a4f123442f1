"""Two threads against one, on whole files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.data import ENWIKI, WIKITEXT, megabytes, plain_file
from benchmarks.measure import FEW_PAIRS, PAIRS, interleaved
from benchmarks.report import Row, compared
from foreword.text.sources import read_blocks
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

TITLE = "Threads"
HOW = (
    "Whole files to ids with two threads (ours) and with one (peer), wall time, no core set apart. "
    "The results are identical."
)

BAR = 1.6
BPE_SIZE = 32_000

Work = Callable[[Path, int], Corpus]


def run(quick: bool) -> list[Row]:
    # Enwiki in a quick run too: a file of ten megabytes is only three blocks, which two threads cannot share.
    pairs = FEW_PAIRS if quick else PAIRS
    works = {"words, vocabulary and ids": number_words, "words to ids": encoder_of_words(), "BPE": encoder_of_bpe()}
    return [_row(f"{ENWIKI}, {job}", work, pairs) for job, work in works.items()]


def _row(job: str, work: Work, pairs: int) -> Row:
    path = plain_file(ENWIKI)
    measured = interleaved(
        f"threads, {job}", lambda: work(path, 2), lambda: work(path, 1), same_corpus, pairs=pairs, wall=True
    )  # fmt: skip
    return compared(job, "one thread", measured, bar=BAR, size=megabytes(path))


def number_words(path: Path, threads: int) -> Corpus:
    return WordTokenizer().fit_corpus(read_blocks(path), threads=threads)


def encoder_of_words() -> Work:
    tokenizer = WordTokenizer().fit_blocks(read_blocks(plain_file(ENWIKI)))
    return lambda path, threads: Corpus.from_blocks(read_blocks(path), tokenizer, threads=threads)


def encoder_of_bpe() -> Work:
    """Make a new tokenizer each time, because one that has seen the file encodes it faster."""
    parts = BPETokenizer(BPE_SIZE).fit_blocks(read_blocks(plain_file(WIKITEXT))).to_parts()
    return lambda path, threads: Corpus.from_blocks(read_blocks(path), BPETokenizer.from_parts(parts), threads=threads)


def same_corpus(two: Corpus, one: Corpus) -> bool:
    return np.array_equal(two.ids, one.ids) and np.array_equal(two.offsets, one.offsets) and two.vocab == one.vocab
