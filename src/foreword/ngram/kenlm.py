"""KenLM's binary files as language models, queried where they lie.

A file is mapped and never read through: it opens in milliseconds whatever its size, takes no memory of the process, and
all processes on a machine share one copy. ``kenlm_format`` has the layout, ``kernels_kenlm`` the search.

KenLM computes in float32 and to the base ten. ``log10``, ``full_log10`` and ``totals`` return its numbers to the last
bit; ``logprobs`` and all else that other models have too return natural logarithms in float64.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NoReturn, Self

import numpy as np

from foreword.arrays import Bytes, Doubles, Floats, Ids, Ints, Logs, Longs
from foreword.checks import check_ids
from foreword.errors import ForewordError, InputError, SettingError
from foreword.measures.perplexity import MeanScore
from foreword.native.parallel import cores, ordered_map
from foreword.ngram import kernels_kenlm as kernels
from foreword.ngram.kenlm_format import TYPES, read_layout
from foreword.ngram.kenlm_words import HashedWords, full_table
from foreword.ngram.kernels_kenlm import FULL, KenlmArrays
from foreword.protocols import Parts
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

LOG10 = math.log(10)


class KenlmLM(MeanScore):
    """A KenLM binary file. words: its vocabulary, which is also a tokenizer. threads: for scoring; None is all cores.

    data: uint8, the mapped file. name: of the file, for messages.
    """

    def __init__(self, data: Bytes, name: str = "the file", *, threads: int | None = None) -> None:
        self.name = name
        self.threads = threads
        self.layout_ = read_layout(data, name)
        header = self.layout_.header
        self.order = header.order
        self.type = TYPES[header.kind]
        self.sizes_ = list(header.counts)
        arrays = KenlmArrays(
            data, header.kind, header.order, self.layout_.vocabulary, self.layout_.hashes, self.layout_.bound, 0,
            self.layout_.shapes,
        )  # fmt: skip
        self.words = HashedWords.in_file(arrays, self.layout_, name)
        self.model = self.words.model
        self._start = self.state_after_start()
        self._accepted = self.vocab

    @classmethod
    def open(cls, path: str | Path, *, threads: int | None = None) -> Self:
        """Map a file."""
        try:
            data = np.memmap(path, np.uint8, mode="r").view(np.ndarray)
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise InputError(f"{path}: an empty file is not a KenLM binary") from error
        return cls(data, str(path), threads=threads)

    def __repr__(self) -> str:
        return f"KenlmLM({self.name!r}, order={self.order}, {self.type})"

    @property
    def vocab(self) -> Vocab:
        """The words of the file; they are read on first use."""
        return self.words.vocab

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None) -> NoReturn:
        """Raise an error: a file is already trained."""
        raise ForewordError(f"{self.name}: a KenLM binary cannot be fitted: make an NgramLM")

    # Reading

    def null_state(self) -> Ints:
        """Return the state, int32 (1, 2 * order - 1), of a text of which nothing has been read, not even ``<s>``."""
        return np.zeros((1, 2 * self.order - 1), np.int32)

    def state_after_start(self) -> Ints:
        """Return the state of a text of which only ``<s>`` has been read."""
        state = self.null_state()
        state[0, 0], state[0, 1] = 1, self.words.begin
        state.view(np.float32)[0, self.order] = kernels.weight_of(self.model, self.words.begin)
        return state

    def start(self, n: int = 1) -> Ints:
        """Return the states, (n, 2 * order - 1), of n texts of which only ``<s>`` has been read."""
        return np.repeat(self._start, n, axis=0)

    def advance(self, state: Ints, ids: Ids) -> Ints:
        """Return the states after one more word each."""
        words = np.asarray(ids, np.int64)
        check_ids(words, len(self.vocab))
        return self.step(state, words + (words >= self.model.begin))[0]

    def step(self, state: Ints, words: Longs) -> tuple[Ints, Floats, Longs]:
        """Read one word, an id of the file, in each state: new states, log10, and the lengths that matched."""
        check_ids(words, self.model.bound)
        self._check_states(state, len(words))
        new, logs, matched = np.empty_like(state), np.empty(len(words), np.float32), np.empty(len(words), np.int64)
        if kernels.advance(self.model, state.reshape(-1), words, new.reshape(-1), logs, matched) == FULL:
            raise full_table(self.name)
        return new, logs, matched

    def _check_states(self, state: Ints, count: int) -> None:
        if state.dtype != np.int32 or state.shape != (count, 2 * self.order - 1):
            raise SettingError(f"{len(state)} texts need as many next words, not {count}")
        if count and not 0 <= state[:, 0].min() <= state[:, 0].max() < self.order:
            raise SettingError("not a state of this model")

    def log10(self, corpus: Corpus) -> Floats:
        """Return log10 of the probability of every id, float32 (tokens,)."""
        return self.full_log10(corpus, matched=False)[0]

    def full_log10(self, corpus: Corpus, *, matched: bool = True) -> tuple[Floats, Bytes]:
        """Return log10 of the probability of every id, and the length of the n-gram that matched."""
        self._check_corpus(corpus)
        logs = np.empty(len(corpus.ids), np.float32)
        lengths = np.empty(len(corpus.ids) if matched else 0, np.uint8)

        def work(part: tuple[int, int]) -> None:
            states = np.empty(kernels.LANES * 2 * (2 * self.order - 1), np.int32)
            at = np.empty(kernels.LANES * 2, np.int64)
            status = kernels.score(
                self.model, self._start[0], corpus.ids, corpus.offsets, part[0], part[1], states, at, logs, lengths
            )
            if status == FULL:
                raise full_table(self.name)

        for _ in ordered_map(work, corpus.ranges(self.threads or cores()), self.threads):
            pass
        return logs, lengths

    def totals(self, corpus: Corpus) -> Floats:
        """Return log10 of each document, its end included, added in float32 as ``kenlm.Model.score`` does."""
        totals = np.empty(len(corpus), np.float32)
        kernels.sum_documents(self.log10(corpus), corpus.offsets, totals)
        return totals

    def logprobs(self, corpus: Corpus) -> Logs:
        """Return the natural log-probability of every id, float64 (tokens,)."""
        return self.log10(corpus).astype(np.float64) * LOG10

    def full_scores(self, corpus: Corpus) -> tuple[Doubles, Bytes]:
        """Return the natural log-probability of every id, and the length of the n-gram that matched."""
        logs, lengths = self.full_log10(corpus)
        return logs.astype(np.float64) * LOG10, lengths

    def next_logprobs(self, state: Ints) -> Logs:
        """Return (n, words). Every word is looked up, for a file has no list of the words that follow a context."""
        self._check_states(state, len(state))
        logs = np.empty((len(state), len(self.vocab)), np.float32)
        scratch = np.empty(2 * self.order - 1, np.int32)
        for row, known in zip(logs, state, strict=True):
            if kernels.score_all(self.model, np.ascontiguousarray(known), scratch, row) == FULL:
                raise full_table(self.name)
        if not (logs < np.inf).all():
            raise InputError(f"{self.name}: a log-probability is not a number: the file is damaged")
        return logs.astype(np.float64) * LOG10

    def _check_corpus(self, corpus: Corpus) -> None:
        """Raise an error if a corpus has other ids; a file without words can only compare how many there are."""
        other = corpus.vocab
        if other is not self._accepted:
            if len(other) != len(self.vocab) or (self.words.has_words and other != self.vocab):
                raise ForewordError("the corpus was made with another vocabulary than the model")
            self._accepted = other
        corpus.check_ids()

    # Saving

    def to_parts(self) -> Parts:
        """Return the file itself for saving."""
        return Parts({}, {"file": self.model.data})

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a saved model."""
        data = parts.arrays["file"]
        if data.dtype != np.uint8 or data.ndim != 1:
            raise InputError("a KenLM binary is an array of bytes")
        return cls(data)
