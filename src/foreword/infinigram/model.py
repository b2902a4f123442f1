"""The ∞-gram language model: at every position the longest context that the corpus has ever seen.

    p(w | h) = count(h' w) / count(h')        h': the longest end of h that occurs in the corpus

J. Liu, S. Min, L. Zettlemoyer, Y. Choi and H. Hajishirzi, "Infini-gram: scaling unbounded n-gram language models to a
trillion tokens", COLM 2024. Most words that follow a long context were never seen after it, so that this has zeros.
Smoothed, a context that is longer than an n-gram model's is a sample that updates the n-gram model's estimate, with a
Dirichlet prior of ``strength`` imaginary occurrences (D. MacKay and L. Bauman Peto, "A hierarchical Dirichlet language
model", Natural Language Engineering 1995), and shorter ones are left to the n-gram model:

    p(w | h) = (count(h' w) + strength · p_n-gram(w | h)) / (count(h') + strength)

Rows sum to one, and nothing is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from foreword.arrays import Doubles, Ids, Logs, Longs
from foreword.checks import check_corpus, check_ids, check_number
from foreword.errors import NotFittedError, SettingError
from foreword.infinigram.index import Matches, SuffixIndex
from foreword.measures.perplexity import MeanScore
from foreword.ngram.model import NgramLM
from foreword.notebook import ShownInNotebook
from foreword.protocols import Meter, Parts, Rows
from foreword.storage.folder import nest, unnest
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab


@dataclass(frozen=True, slots=True)
class InfiniGramState:
    """The matched contexts of n texts.

    contexts: int64 (n, longest), flush right, filled up with -1; ``</s>`` in front is the beginning of the document.
    of_ngram: the n-gram model's state, None without one.
    """

    contexts: Longs
    of_ngram: Any

    def __len__(self) -> int:
        return len(self.contexts)

    @property
    def lengths(self) -> Longs:
        """The number of tokens of each context, int64 (n,)."""
        lengths: Longs = np.count_nonzero(self.contexts >= 0, axis=1)
        return lengths

    def __getitem__(self, rows: Rows) -> InfiniGramState:
        return InfiniGramState(self.contexts[rows], None if self.of_ngram is None else self.of_ngram[rows])


class InfiniGramLM(ShownInNotebook, MeanScore):
    """An ∞-gram model: counts of the longest context that the corpus has, smoothed by an n-gram model.

    order: order of the n-gram model; 0 for none, which leaves probabilities of zero. smoothing: smoothing of the n-gram
    model. strength: weight of the n-gram model's estimate, in counts.
    """

    def __init__(self, order: int = 5, smoothing: str = "modified-kneser-ney", *, strength: float = 4.0) -> None:
        check_number("order", order, whole=True)
        check_number("strength", strength, above=0)
        self.order = order
        self.smoothing = smoothing
        self.strength = strength
        self.ngram = NgramLM(order, smoothing) if order else None

    def __repr__(self) -> str:
        return f"InfiniGramLM(order={self.order}, smoothing={self.smoothing!r}, strength={self.strength})"

    @property
    def vocab(self) -> Vocab:
        """The vocabulary of the training text."""
        return self.index.vocab

    @property
    def index(self) -> SuffixIndex:
        """The index of the training text."""
        if not hasattr(self, "index_"):
            raise NotFittedError(self, "corpus")
        return self.index_

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None, meter: Meter | None = None) -> Self:
        """Index a corpus, and fit the n-gram model; ``valid`` is not used."""
        self.index_ = SuffixIndex.build(corpus)
        if self.ngram is not None:
            self.ngram.fit(corpus, meter=meter)
        return self

    # Reading

    def start(self, n: int = 1) -> InfiniGramState:
        """Return the state of n texts of which nothing has been read."""
        return InfiniGramState(np.full((n, 1), self.vocab.end), None if self.ngram is None else self.ngram.start(n))

    def advance(self, state: InfiniGramState, ids: Ids) -> InfiniGramState:
        """Return the state after one more token per text."""
        words = np.asarray(ids, np.int64)
        if words.shape != (len(state),):
            raise SettingError(f"{len(state)} texts need as many next words, not {words.size}")
        check_ids(words, len(self.vocab))
        longer = np.column_stack((state.contexts, words))
        lengths = [int(self.index.match(row[row >= 0]).lengths[-1]) for row in longer]
        width = max(lengths, default=0)
        contexts: Longs = longer[:, longer.shape[1] - width :]
        for row, length in zip(contexts, lengths, strict=True):
            row[: width - length] = -1
        of_ngram = None if self.ngram is None else self.ngram.advance(state.of_ngram, ids)
        return InfiniGramState(contexts, of_ngram)

    def next_logprobs(self, state: InfiniGramState) -> Logs:
        """Return the log-probabilities of the next token: (n, V)."""
        shape = (len(state), len(self.vocab))
        logs = np.full(shape, -np.inf) if self.ngram is None else np.array(self.ngram.next_logprobs(state.of_ngram))
        for row, context in zip(logs, state.contexts, strict=True):
            found = self.index.context(context[context >= 0])
            if found.length >= self.order:
                counts = np.zeros(len(row), np.int64)
                counts[found.tokens] = found.counts
                row[:] = self._smoothed(row, counts, found.counts.sum())
        return logs

    def logprobs(self, corpus: Corpus) -> Logs:
        """Return the log-probability of every id: float64 (ids,)."""
        check_corpus(corpus, self.vocab)
        matches = self.matches(corpus)
        contexts, counts = self.index.count_next(matches, np.asarray(corpus.ids, np.int64))
        if self.ngram is None:
            return self._smoothed(np.empty(0), counts, contexts)
        logs = self.ngram.logprobs(corpus)
        longer = matches.lengths >= self.order
        return np.where(longer, self._smoothed(logs, counts, np.maximum(contexts, 1)), logs)

    def matches(self, corpus: Corpus) -> Matches:
        """Return the longest context in the index before each id of a corpus; ``</s>`` begins every document."""
        contexts = np.concatenate((np.array([self.vocab.end]), corpus.ids[:-1])) if len(corpus.ids) else corpus.ids
        return self.index.match(contexts, corpus.offsets)

    def _smoothed(self, logs: Logs, counts: Longs, contexts: Longs) -> Doubles:
        """Return the log-probabilities of tokens that were seen ``counts`` times after ``contexts`` contexts."""
        smoothed: Doubles
        with np.errstate(divide="ignore"):
            if self.ngram is None:
                smoothed = np.log(counts / contexts)
            else:
                smoothed = np.log((counts + self.strength * np.exp(logs)) / (contexts + self.strength))
        return smoothed

    # Saving

    def to_parts(self) -> Parts:
        """Return the settings, arrays and vocabulary to save."""
        parts = Parts({"order": self.order, "smoothing": self.smoothing, "strength": float(self.strength)})
        nest("index", self.index, parts)
        if self.ngram is not None:
            nest("ngram", self.ngram, parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Rebuild the model from what was saved."""
        settings: dict[str, Any] = {name: parts.settings[name] for name in ("order", "smoothing", "strength")}
        model = cls(settings.pop("order"), **settings)
        index = unnest("index", parts)
        ngram = unnest("ngram", parts) if model.order else None
        if not isinstance(index, SuffixIndex) or not isinstance(ngram, NgramLM if model.order else type(None)):
            raise ValueError("expected an index, and an n-gram model of the same order")
        if ngram is not None and ngram.order != model.order:
            raise ValueError(f"the n-gram model has order {ngram.order}, not {model.order}")
        model.index_, model.ngram = index, ngram
        return model
