"""Words of a file, counted and numbered, against Python's Counter and Polars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars

from benchmarks.data import ENWIKI, WIKITEXT, megabytes, plain_file
from benchmarks.measure import interleaved, one_core
from benchmarks.report import Row, compared
from foreword.text.sources import read_blocks
from foreword.tokens.vocab import END
from foreword.tokens.words import WordTokenizer

TITLE = "Words"
HOW = (
    "From file to vocabulary and ids, words as Python's `str.split` has them. "
    "The peers give the counts of the words, and no ids. Polars in two forms: the quickest found that gives these "
    "counts, which splits at blanks and looks for other white space in the distinct words only, and the plain one."
)

Counts = Counter[str] | polars.DataFrame

WORD = polars.col("word")


def run(quick: bool) -> list[Row]:
    text = WIKITEXT if quick else ENWIKI
    with one_core():
        return [
            _row(text, "Counter, split by line", count_lines, 6),
            _row(text, "Polars, split at blanks first", split_at_blanks, 2.5),
            _row(text, "Polars, split at `\\s+`", split_at_white_space, 2.5),
        ]


def _row(text: str, peer: str, count: Callable[[Path], Counts], bar: float) -> Row:
    path = plain_file(text)
    pairs = interleaved(f"words of {text}, {peer}", lambda: number_words(path), lambda: count(path), agree)
    return compared(text, peer, pairs, bar=bar, size=megabytes(path))


def number_words(path: Path) -> WordTokenizer:
    tokenizer = WordTokenizer()
    tokenizer.fit_corpus(read_blocks(path), threads=1)
    return tokenizer


def count_lines(path: Path) -> Counts:
    """The quickest plain form: the whole file at once took 1.2 times as long, a megabyte at a time 1.03 times."""
    counter: Counter[str] = Counter()
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            counter.update(line.split())
    return counter


def split_at_blanks(path: Path) -> Counts:
    """The quickest way found to the counts of ``str.split``: other white space is only looked for in distinct words."""
    blank_free = _lines(path).select(WORD.str.split(" ").explode()).group_by(WORD).len()
    words = blank_free.with_columns(WORD.str.extract_all(r"\S+")).explode("word").drop_nulls()
    return words.group_by(WORD).agg(polars.col("len").sum()).collect(engine="streaming")


def split_at_white_space(path: Path) -> Counts:
    """What one would write first."""
    words = _lines(path).select(WORD.str.split(r"\s+", literal=False).explode()).filter(WORD != "")
    return words.group_by(WORD).len().collect(engine="streaming")


def _lines(path: Path) -> polars.LazyFrame:
    # A table of one column whose separator never comes: quicker than scan_lines, and far quicker than read_csv.
    return polars.scan_csv(path, has_header=False, separator="\x01", quote_char=None, new_columns=["word"])


def agree(tokenizer: WordTokenizer, counts: Counts) -> bool:
    numbers = tokenizer.vocab.counts
    assert numbers is not None
    ours = {word: count for word, count in zip(tokenizer.vocab, numbers.tolist(), strict=True) if count and word != END}
    return ours == (dict(counts.iter_rows()) if isinstance(counts, polars.DataFrame) else counts)
