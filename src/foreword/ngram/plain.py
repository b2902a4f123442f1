"""The plain versions of what n-gram kernels do: the same results, an entry or a word at a time, for reading and
testing.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from foreword.ngram.arpa import (
    NO_UNKNOWN,
    START,
    ArpaLines,
    check_words,
    natural,
    open_section,
    read_end,
    read_entry,
    read_header,
    repeated,
)
from foreword.ngram.hash_layout import LoggedOrder
from foreword.ngram.log10 import NEVER
from foreword.ngram.merge import Windows
from foreword.ngram.model import NgramLM
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import END, UNKNOWN, Vocab


def read_arpa(path: str | Path) -> NgramLM:
    """Read an ARPA file as ``arpa.read_arpa`` does, an entry at a time; some thirty times slower."""
    lines = ArpaLines(path)
    sizes = read_header(lines)
    found: dict[str, tuple[float, float]] = {}
    for index in range(sizes[0]):
        words, log, backoff = read_entry(lines, 1, index, sizes[0])
        if words[0] in found:
            raise repeated(lines, words)
        found[words[0]] = natural(log), natural(backoff)
    vocab = Vocab([UNKNOWN, END, *(token for token in found if token not in (UNKNOWN, END, START))])
    ids = {token: id for id, token in enumerate(vocab)} | {START: len(vocab)}
    orders = _Orders(len(vocab))
    orders.logs[0][ids[UNKNOWN]] = natural(NO_UNKNOWN)
    for token, (log, backoff) in found.items():
        orders.logs[0][ids[token]], orders.backoffs[0][ids[token]] = log, backoff
    for order, size in enumerate(sizes[1:], 2):
        open_section(lines, order)
        orders.open_order()
        for index in range(size):
            words, log, backoff = read_entry(lines, order, index, size)
            ngram = tuple(ids.get(word, -1) for word in words)
            check_words(lines, words, ngram)
            if not orders.add(ngram, natural(log), 0.0 if order == len(sizes) else natural(backoff)):
                raise repeated(lines, words)
    read_end(lines)
    return NgramLM.from_logs(vocab, orders.logged())


class _Orders:
    """The n-grams read so far: for each order a dictionary from (number of the prefix, last word) to a number."""

    def __init__(self, vocab_size: int) -> None:
        self.numbers: list[dict[tuple[int, int], int]] = [{}]
        self.parents: list[list[int]] = [[0] * (vocab_size + 1)]
        self.words: list[list[int]] = [list(range(vocab_size + 1))]
        self.logs: list[list[float]] = [[natural(NEVER)] * (vocab_size + 1)]
        self.backoffs: list[list[float]] = [[0.0] * (vocab_size + 1)]

    def open_order(self) -> None:
        """Begin the next order."""
        self.numbers.append({})
        for values in (self.parents, self.words, self.logs, self.backoffs):
            values.append([])

    def find(self, ngram: tuple[int, ...]) -> int | None:
        """Return the number of an n-gram, or None."""
        number: int | None = ngram[0]
        for depth, word in enumerate(ngram[1:], 1):
            if number is None:
                return None
            number = self.numbers[depth].get((number, word))
        return number

    def add(self, ngram: tuple[int, ...], log: float, backoff: float) -> bool:
        """Add an n-gram, and its shorter ends where they are missing; return False if it exists already."""
        depth = len(ngram) - 1
        parent = self.require(ngram[:-1])
        self.require(ngram[1:])
        key = (parent, ngram[-1])
        if key in self.numbers[depth]:
            return False
        self.numbers[depth][key] = len(self.words[depth])
        self.parents[depth].append(parent)
        self.words[depth].append(ngram[-1])
        self.logs[depth].append(log)
        self.backoffs[depth].append(backoff)
        return True

    def require(self, ngram: tuple[int, ...]) -> int:
        """Return the number of an n-gram, which is added with its backed-off probability if it is missing."""
        number = self.find(ngram)
        if number is None:
            context, shorter = self.require(ngram[:-1]), self.require(ngram[1:])
            log = self.backoffs[len(ngram) - 2][context] + self.logs[len(ngram) - 2][shorter]
            self.add(ngram, float(np.float32(log)), 0.0)
            number = self.find(ngram)
            assert number is not None
        return number

    def logged(self) -> list[LoggedOrder]:
        """Return the tables of all orders."""
        return [
            LoggedOrder(
                np.array(words, np.int32),
                np.array(parents, np.int32),
                np.array(logs, np.float32),
                np.array(backoffs, np.float32),
            )
            for words, parents, logs, backoffs in zip(self.words, self.parents, self.logs, self.backoffs, strict=True)
        ]


def windows_of(corpus: Corpus, order: int) -> Windows:
    """List the distinct windows of a text as ``merge.windows_of`` does, word by word."""
    start, seen = len(corpus.vocab) + 1, Counter[tuple[int, ...]]()
    for document in corpus.documents():
        words = [start, *(int(id) + 1 for id in document)]
        for index in range(len(words)):
            window = words[index : index + order]
            seen[*window, *[0] * (order - len(window))] += 1
    rows = sorted(seen)
    counts = np.array([seen[row] for row in rows], np.int64)
    return Windows(np.array(rows, np.int32).reshape(-1, order), counts)
