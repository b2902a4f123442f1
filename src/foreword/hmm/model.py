"""The hidden Markov model: words are emitted by states that nobody sees, and the states form a chain.

    p(x_1 … x_N, z_1 … z_N) = π(z_1) Π A(z_(n-1), z_n) Π B(z_n, x_n)

Summing over the states makes a language model of it, p(x_n | x_<n) = Σ_z B(z, x_n) p(z_n = z | x_<n): what is
remembered of a text is a *belief*, one probability a state. Reading a word moves it in two steps:

    predict    p(z_n | x_<n) = Σ_i p(z_(n-1) = i | x_<n) A(i, z_n)
    correct    p(z_n | x_≤n) ∝ B(z_n, x_n) p(z_n | x_<n)

Its size does not depend on how long the text is, (S − 1) + S(S − 1) + S(K − 1) parameters, where a table of n-grams
grows as Kⁿ. In return old words fade: ``lessons/fading.py`` measures how fast.

The parameters are learnt by expectation and maximisation: the expected number of times each state was begun in, left
for another, and emitted a word, given the text, become the new probabilities. The likelihood never falls. With
``smoothing`` each of those counts is that much larger than it was, which is EM for the posterior under a Dirichlet
prior; then the posterior never falls.

Boundaries are as everywhere: ``</s>`` is an ordinary word that some state emits, and each document starts from π.

L. E. Baum, T. Petrie, G. Soules and N. Weiss, "A maximization technique occurring in the statistical analysis of
probabilistic functions of Markov chains", Annals of Mathematical Statistics 41 (1970). L. R. Rabiner, "A tutorial on
hidden Markov models and selected applications in speech recognition", Proceedings of the IEEE 77 (1989).
Shapes: S = states, K = words in the vocabulary, N = tokens, n = texts read side by side.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from foreword.arrays import Doubles, Ids, Ints, Logs, Longs, Reals
from foreword.checks import check_ids
from foreword.errors import ForewordError, InputError, NotFittedError, SettingError
from foreword.hmm import kernels
from foreword.hmm.kernels import Batch, document_groups
from foreword.hmm.tables import AXES, Counts, Parameters, check_shapes, frozen
from foreword.native.parallel import cores, ordered_map
from foreword.protocols import Parts
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

Out = TypeVar("Out")

ROW_TOLERANCE = {"float64": 1e-9, "float32": 1e-5}
"""How far from one a row of given parameters may sum."""

NOISE = {"float64": 1e-10, "float32": 1e-6}
"""How much of itself an objective may seem to fall by rounding alone."""

PATIENCE = 3
"""Rounds without a gain on the text to tune on before training ends."""


@dataclass(frozen=True, slots=True)
class Step:
    """One round of EM.

    log_likelihood: of the training text under the parameters that the round began with.
    objective: what the round cannot have lowered: the same, and the prior where there is smoothing.
    score: log-likelihood per token; perplexity is exp(-score). valid_score: that of the text to tune on, if any.
    """

    number: int
    log_likelihood: float
    objective: float
    score: float
    valid_score: float | None = None


class _Best(NamedTuple):
    """The round after which the text to tune on was likeliest."""

    number: int
    score: float
    parameters: Parameters


class HMM:
    """A hidden Markov model over ids.

    states: S. iterations: rounds of EM at most.
    tolerance: training ends when a round gains less than this, in nats a token. From random beginnings the first rounds
        gain little, so a large one may end it before it has begun.
    smoothing: how many times each event counts as seen beyond the times it was. 0 is maximum likelihood, which gives
        a word that was never seen no probability.
    dtype: float32 halves memory and nearly doubles the speed; sums are in float64 either way.
    threads: all cores by default; the results do not depend on it. Beside the tables EM takes about 50 bytes a token
        and, on each thread, two times 65,536 rows of S numbers, however long a document is; Viterbi 16,384 rows.
    start_ (S,), transition_ (S, S), emission_ (S, K): the parameters; each row sums to one; read-only.
    """

    def __init__(
        self,
        states: int = 32,
        *,
        iterations: int = 60,
        tolerance: float = 1e-4,
        smoothing: float = 0.01,
        seed: int = 0,
        dtype: Literal["float64", "float32"] = "float64",
        threads: int | None = None,
    ) -> None:
        self.states = states
        self.iterations = iterations
        self.tolerance = tolerance
        self.smoothing = smoothing
        self.seed = seed
        self.dtype = dtype
        self.threads = threads
        self._learnt: tuple[Parameters, Vocab] | None = None

    def __repr__(self) -> str:
        return f"HMM(states={self.states}, smoothing={self.smoothing!r}, seed={self.seed}, dtype={self.dtype!r})"

    @classmethod
    def from_parameters(
        cls, start: ArrayLike, transition: ArrayLike, emission: ArrayLike, vocab: Vocab, **settings: Any
    ) -> Self:
        """A model with given π (S,), A (S, S) and B (S, K). They are kept as they are, not scaled to sum to one."""
        model = cls(np.size(start), **settings)
        model._check_settings()
        start, transition, by_word = (
            np.asarray(table, model.dtype) for table in (start, transition, np.transpose(emission))
        )
        return model._take(Parameters(start, transition, by_word), vocab)

    @classmethod
    def from_counts(
        cls, start: ArrayLike, transition: ArrayLike, emission: ArrayLike, vocab: Vocab, **settings: Any
    ) -> Self:
        """Supervised learning: how often each state began a document (S,), was followed by each other (S, S), and
        emitted each word (S, K). ``hmm_tables.count_paths`` counts them; ``smoothing`` is added to each.
        """
        model = cls(np.size(start), **settings)
        model._check_settings()
        counts = Counts(*(np.asarray(table, np.float64) for table in (start, transition, np.transpose(emission))))
        check_shapes(counts, model.states, len(vocab))
        if not all(np.isfinite(table).all() and table.min() >= 0 for table in counts):
            raise SettingError("counts must be numbers that are not negative")
        return model._take(model._shares(counts), vocab)

    @property
    def vocab(self) -> Vocab:
        return self._what_was_learnt()[1]

    @property
    def _known(self) -> Parameters:
        return self._what_was_learnt()[0]

    def _what_was_learnt(self) -> tuple[Parameters, Vocab]:
        if self._learnt is None:
            raise NotFittedError(self, "corpus")
        return self._learnt

    @property
    def start_(self) -> Reals:
        return self._known.start

    @property
    def transition_(self) -> Reals:
        return self._known.transition

    @property
    def emission_(self) -> Reals:
        """(S, K), a view: it is stored a row a word."""
        return self._known.emission.T

    @property
    def parameter_count(self) -> int:
        """(S − 1) + S(S − 1) + S(K − 1): each row has one number less than entries, for it sums to one."""
        states, words = self.states, len(self.vocab)
        return (states - 1) + states * (states - 1) + states * (words - 1)

    # Learning

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None) -> Self:
        """Learn from random beginnings until a round gains too little; see ``train``."""
        for _ in self.train(corpus, valid=valid):
            pass
        return self

    def train(self, corpus: Corpus, *, valid: Corpus | None = None) -> Iterator[Step]:
        """The rounds of ``fit``, one by one. Who stops reading keeps what was learnt so far."""
        self._check_settings()
        corpus.check_ids()
        _refuse_empty(corpus)
        self._take(self._shares(self._random_counts(corpus)), corpus.vocab)
        return self.improve(corpus, valid=valid)

    def improve(self, corpus: Corpus, *, valid: Corpus | None = None) -> Iterator[Step]:
        """Rounds of EM from the parameters that are there, as ``from_parameters`` or an earlier training left them.

        With ``valid`` they end when that text has not become likelier for three of them, and the best are kept.
        """
        self._check_settings()
        self._check_corpus(corpus)
        _refuse_empty(corpus)
        return self._rounds(corpus, valid)

    def _rounds(self, corpus: Corpus, valid: Corpus | None) -> Iterator[Step]:
        last: Step | None = None
        best: _Best | None = None
        for number in range(1, self.iterations + 1):
            before = self._known
            counts, log_likelihood = self._expect(corpus)
            objective = log_likelihood + self._log_prior()
            self._refuse_fall(last, objective)
            self._take(self._shares(counts, before), self.vocab)
            valid_score = None if valid is None else self.score(valid)
            if valid_score is not None and (best is None or valid_score > best.score):
                best = _Best(number, valid_score, self._known)
            step = Step(number, log_likelihood, objective, log_likelihood / len(corpus.ids), valid_score)
            yield step
            if last is not None and objective - last.objective < self.tolerance * len(corpus.ids):
                break
            if best is not None and number - best.number >= PATIENCE:
                break
            last = step
        if best is not None:
            self._take(best.parameters, self.vocab)

    def _random_counts(self, corpus: Corpus) -> Counts:
        """A beginning that EM can tell states apart in: each word's count, shared out among them at random."""
        random = np.random.default_rng(self.seed)
        seen = np.bincount(corpus.ids, minlength=len(corpus.vocab))
        shares = random.standard_exponential((len(seen), self.states))
        shares *= (seen / shares.sum(axis=1))[:, None]
        start = len(corpus) * random.dirichlet(np.ones(self.states))
        return Counts(start, len(corpus.ids) * random.dirichlet(np.ones(self.states), self.states), shares)

    def _expect(self, corpus: Corpus) -> tuple[Counts, float]:
        """What EM counts, and the log-likelihood. Sums are taken in the order of the batches, whoever computed them."""
        states = self.states
        counts = Counts(np.zeros(states), np.zeros((states, states)), np.zeros((len(self.vocab), states)))
        log_likelihood = 0.0
        for batch, found in self._map(kernels.expect_batch, corpus):
            if not found.scales.all():
                place = int(batch.places[np.flatnonzero(found.scales == 0)].min())
                document = int(np.searchsorted(corpus.offsets, place, side="right")) - 1
                raise InputError(f"document {document} has no probability under this model, so EM cannot learn from it")
            log_likelihood += float(np.log(found.scales, dtype=np.float64).sum())
            counts.start[:] += found.start
            counts.transition[:] += found.pairs
            kernels.add_rows(counts.emission, found.words, found.rows)
        counts.transition[:] *= self.transition_
        return counts, log_likelihood

    def _shares(self, counts: Counts, before: Parameters | None = None) -> Parameters:
        """Counts as probabilities. A state that nothing was counted for keeps what it had ``before``."""
        shares = []
        for place, (table, axis) in enumerate(zip(counts, AXES, strict=True)):
            smoothed = table + self.smoothing
            totals = smoothed.sum(axis=axis, keepdims=True)
            if before is not None:
                smoothed = np.where(totals > 0, smoothed, before[place])
                totals = np.where(totals > 0, totals, 1)
            elif not totals.all():
                raise SettingError("a state was never seen, and without smoothing nothing is known of it")
            shares.append((smoothed / totals).astype(self.dtype, copy=False))
        return Parameters(*shares)

    def _log_prior(self) -> float:
        if self.smoothing == 0:
            return 0.0
        return self.smoothing * sum(float(np.log(table, dtype=np.float64).sum()) for table in self._known)

    def _refuse_fall(self, last: Step | None, objective: float) -> None:
        if last is None or objective >= last.objective - NOISE[self.dtype] * abs(last.objective):
            return
        raise ForewordError(
            f"round {last.number} of EM lowered what it must raise, from {last.objective!r} to {objective!r}: "
            "this is not convergence; float64 or more smoothing may help"
        )

    # Reading

    def logprobs(self, corpus: Corpus) -> Logs:
        """(tokens,): the log-probability of each id given those before it in its document."""
        self._check_corpus(corpus)
        logs = np.empty(len(corpus.ids), self.dtype)
        with np.errstate(divide="ignore"):
            for batch, scales in self._map(kernels.scale_batch, corpus):
                logs[batch.places] = np.log(scales)
        return logs

    def score(self, corpus: Corpus) -> float:
        if len(corpus.ids) == 0:
            raise InputError("the text is empty: there is nothing to score")
        return float(self.logprobs(corpus).mean())

    def beliefs(self, corpus: Corpus) -> Reals:
        """(tokens, S): p(z_n | x_1 … x_n), what each document says of its state when it has been read that far."""
        return self._rows(kernels.filtered, corpus)

    def posteriors(self, corpus: Corpus) -> Reals:
        """(tokens, S): p(z_n | x_1 … x_N), what each whole document says of every state in it."""
        return self._rows(kernels.smoothed, corpus)

    def _rows(self, work: Any, corpus: Corpus) -> Reals:
        self._check_corpus(corpus)
        rows = np.empty((len(corpus.ids), self.states), self.dtype)

        def fill(*parameters: Any) -> None:
            batch: Batch = parameters[-1]
            for part in work(*parameters):
                rows[batch.places[part.first : part.last]] = part.rows

        for _ in self._map(fill, corpus):
            pass
        return rows

    def viterbi(self, corpus: Corpus) -> Ints:
        """(tokens,): the states of each document's likeliest path; among equals the lowest."""
        self._check_corpus(corpus)
        path = np.empty(len(corpus.ids), np.int32)
        words, rows = self._rows_needed(corpus.ids)
        with np.errstate(divide="ignore"):
            logs = np.log(self.start_), np.log(self.transition_), np.log(rows)

        def work(documents: tuple[int, int]) -> None:
            first, last = documents
            longest = int(np.diff(corpus.offsets[first : last + 1]).max())
            best = np.empty((max(1, min(longest, kernels.VITERBI_ROWS)), self.states), self.dtype)
            marks = np.empty((longest // len(best), self.states), self.dtype)
            kernels.viterbi(*logs, words, corpus.offsets, first, last, best, marks, path)

        threads = self.threads or cores()
        for _ in ordered_map(work, kernels.document_ranges(corpus.offsets, threads), threads):
            pass
        return path

    def joint_logprob(self, ids: Ids, path: Ids) -> float:
        """Log p(x, z) of a document's words and the states behind them, both (N,)."""
        words, states = np.asarray(ids), np.asarray(path)
        if words.shape != states.shape or words.ndim != 1:
            raise SettingError(f"{words.shape} words but {states.shape} states")
        if len(words) == 0:
            return 0.0
        check_ids(words, len(self.vocab))
        if not 0 <= states.min() <= states.max() < self.states:
            raise SettingError(f"a state is not one of the {self.states}, which are counted from 0")
        with np.errstate(divide="ignore"):
            first = np.log(self.start_[states[0]])
            moves = np.log(self.transition_[states[:-1], states[1:]])
            return float(first + moves.sum() + np.log(self._known.emission[words, states]).sum())

    # A step at a time

    def start(self, n: int = 1) -> Reals:
        """(n, S): p(z_1) before anything has been read."""
        return np.tile(self.start_, (n, 1))

    def next_logprobs(self, state: Reals) -> Logs:
        """(n, K): log Σ_z p(z_n = z | x_<n) B(z, ·)."""
        with np.errstate(divide="ignore"):
            logs: Logs = np.log(state @ self.emission_)
        return logs

    def advance(self, state: Reals, ids: Ids) -> Reals:
        """(n, S) p(z_n | x_<n) to p(z_(n+1) | x_≤n): correct by the words, then predict."""
        if len(ids) != len(state):
            raise ValueError(f"{len(state)} texts but {len(ids)} next tokens")
        return self.predict(self.correct(state, ids))

    def predict(self, belief: Reals) -> Reals:
        """One step of the chain, before anything is read: (…, S) p(z_n | x_≤n) to p(z_(n+1) | x_≤n)."""
        predicted: Reals = belief @ self.transition_
        return predicted

    def correct(self, belief: Reals, ids: int | Ids) -> Reals:
        """Weigh by the words read, Bayes' rule: (…, S) p(z_n | x_<n) to p(z_n | x_≤n).

        A word that no reachable state emits tells nothing; the belief stays as it was.
        """
        check_ids(np.asarray(ids), len(self.vocab))
        joint = belief * self._known.emission[ids]
        total = joint.sum(axis=-1, keepdims=True)
        return np.where(total > 0, joint / np.where(total > 0, total, 1), belief)

    def sample(self, tokens: int, *, seed: int = 0) -> tuple[Ints, Ints]:
        """(N,) words and (N,) states, drawn as the model says they come about: z_1, x_1, z_2, x_2, …

        ``</s>`` is a word like others and stops nothing; ``generate`` stops there.
        """
        if tokens < 0:
            raise SettingError(f"tokens={tokens} must not be negative")
        random = np.random.default_rng(seed)
        path = self._sample_path(random.random(tokens))
        words, points = np.empty(tokens, np.int32), random.random(tokens)
        for state in np.unique(path):
            here = np.flatnonzero(path == state)
            edges = self.emission_[state].cumsum(dtype=np.float64)
            words[here] = np.searchsorted(edges, points[here] * edges[-1], side="right")
        return words, path

    def _sample_path(self, points: Doubles) -> Ints:
        rows = [row.cumsum(dtype=np.float64).tolist() for row in (self.start_, *self.transition_)]
        path, row = np.empty(len(points), np.int32), rows[0]
        for place, point in enumerate(points.tolist()):
            path[place] = bisect_right(row, point * row[-1])  # right: what has no probability is never drawn
            row = rows[path[place] + 1]
        return path

    # Saving

    def to_parts(self) -> Parts:
        vocab = self.vocab
        arrays = dict(zip(_SAVED_ARRAYS, self._known, strict=True))
        return Parts(
            {
                "states": self.states,
                "iterations": self.iterations,
                "tolerance": float(self.tolerance),
                "smoothing": float(self.smoothing),
                "seed": self.seed,
                "dtype": self.dtype,
            },
            arrays,
            vocab,
        )

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        settings: dict[str, Any] = dict(parts.settings)
        if parts.vocab is None or sorted(settings) != _SAVED_SETTINGS:
            raise ValueError(f"expected a vocabulary and the settings {', '.join(_SAVED_SETTINGS)}")
        model = cls(**settings)
        model._check_settings()
        tables = Parameters(*(parts.arrays[name] for name in _SAVED_ARRAYS))
        for name, table in zip(_SAVED_ARRAYS, tables, strict=True):
            if table.dtype != np.dtype(model.dtype):
                raise ValueError(f"{name} is {table.dtype}, not {model.dtype}")
        return model._take(tables, parts.vocab)

    # Keeping parameters

    def _take(self, parameters: Parameters, vocab: Vocab) -> Self:
        """Every parameter comes in through here, given, learnt or loaded."""
        check_shapes(parameters, self.states, len(vocab))
        for name, table, axis in zip(Parameters._fields, parameters, AXES, strict=True):
            sums = table.sum(axis=axis, dtype=np.float64)
            if not (table.min() >= 0 and np.abs(sums - 1).max() <= ROW_TOLERANCE[self.dtype]):
                raise SettingError(f"{name} has a row that is no distribution: negative, or not summing to one")
        self._learnt = Parameters(*(frozen(table) for table in parameters)), vocab
        return self

    def _map(self, work: Any, corpus: Corpus) -> Iterator[tuple[Batch, Any]]:
        """A kernel on every batch of documents of like length, on all cores, in a fixed order."""
        groups = list(document_groups(np.diff(corpus.offsets), self.states))
        threads = min(self.threads or cores(), max(len(groups), 1))

        def run(documents: Longs) -> tuple[Batch, Any]:
            batch = kernels.pack(corpus.ids, corpus.offsets, documents)
            return batch, work(*self._known, batch)

        return ordered_map(run, groups, threads)

    def _rows_needed(self, ids: Ids) -> tuple[Ids, Reals]:
        """Where each token's row of the emission table is. For a few words the others need no logarithm."""
        if len(ids) >= len(self.vocab):
            return ids, self._known.emission
        return np.arange(len(ids), dtype=np.int32), self._known.emission[ids]

    # Refusing

    def _check_settings(self) -> None:
        for name, least in (("states", 1), ("iterations", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise SettingError(f"{name}={value} must be a whole number, at least {least}")
        for name in ("tolerance", "smoothing"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
                raise SettingError(f"{name}={value} must be zero or a positive number")
        if self.dtype not in ROW_TOLERANCE:
            raise SettingError(f"dtype={self.dtype!r} must be 'float64' or 'float32'")
        if self.threads is not None and self.threads < 1:
            raise SettingError(f"threads={self.threads} must be at least 1, or None for all cores")

    def _check_corpus(self, corpus: Corpus) -> None:
        if corpus.vocab != self.vocab:
            raise InputError("the text was turned into ids with another vocabulary than the model's")
        corpus.check_ids()


def _refuse_empty(corpus: Corpus) -> None:
    if len(corpus.ids) == 0:
        raise InputError("the training text is empty: a hidden Markov model needs at least one document")


_SAVED_SETTINGS = ["dtype", "iterations", "seed", "smoothing", "states", "tolerance"]
_SAVED_ARRAYS = ("start", "transition", "emission_by_word")
