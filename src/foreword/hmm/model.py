"""The hidden Markov model: words are emitted by hidden states, and the states form a chain.

    p(x_1 … x_N, z_1 … z_N) = π(z_1) Π A(z_(n-1), z_n) Π B(z_n, x_n)

Summing over the states makes a language model of it, p(x_n | x_<n) = Σ_z B(z, x_n) p(z_n = z | x_<n): what is
remembered of a text is a *belief*, one probability per state. Reading a word updates it in two steps:

    predict    p(z_n | x_<n) = Σ_i p(z_(n-1) = i | x_<n) A(i, z_n)
    correct    p(z_n | x_≤n) ∝ B(z_n, x_n) p(z_n | x_<n)

Its size does not depend on how long the text is, (S − 1) + S(S − 1) + S(K − 1) parameters, where a table of n-grams
grows as Kⁿ. In return old words fade: ``lessons/fading.py`` measures how fast.

The parameters are learnt by EM (``learning.py``). ``</s>`` is an ordinary word that some state emits, and each document
starts from π.

L. E. Baum, T. Petrie, G. Soules and N. Weiss, "A maximization technique occurring in the statistical analysis of
probabilistic functions of Markov chains", Annals of Mathematical Statistics 41 (1970). L. R. Rabiner, "A tutorial on
hidden Markov models and selected applications in speech recognition", Proceedings of the IEEE 77 (1989).
Shapes: S = states, K = words in the vocabulary, N = tokens, n = texts in a batch.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from foreword.arrays import Ids, Ints, Logs, Reals
from foreword.checks import check_choice, check_corpus, check_ids, check_numbers
from foreword.errors import ForewordError, InputError, NotFittedError, SettingError
from foreword.hmm import kernels, learning
from foreword.hmm.kernels import BatchPart, DocumentBatch
from foreword.hmm.learning import Counts, Parameters
from foreword.measures.perplexity import MeanScore
from foreword.native.parallel import cores
from foreword.notebook import ShownInNotebook
from foreword.protocols import Parts, Step
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

T = TypeVar("T")

NOISE = {"float64": 1e-10, "float32": 1e-6}
"""The share by which an objective may seem to fall through rounding alone."""

PATIENCE = 3
"""Rounds without a gain on the validation text before training ends."""

_SAVED_SETTINGS = ["dtype", "iterations", "seed", "smoothing", "states", "tolerance"]
_SAVED_ARRAYS = ("start", "transition", "emission_by_word")


class _Fitted(NamedTuple):
    parameters: Parameters
    vocab: Vocab


@dataclass(eq=False, repr=False)
class HMM(ShownInNotebook, MeanScore):
    """A hidden Markov model over ids.

    states: number of hidden states, S. iterations: maximum number of EM iterations.
    tolerance: stop when an iteration gains less than this, in nats per token. After a random initialisation the first
        iterations gain little, so that a large tolerance may stop training too early.
    smoothing: added to each expected count. 0 is maximum likelihood, which gives unseen words no probability.
    dtype: float32 halves memory and nearly doubles the speed; sums are in float64 either way.
    threads: all cores by default; the results do not depend on it. In addition to the parameters EM takes about 50
        bytes per token and, on each thread, two times 65,536 rows of S numbers, however long a document is; Viterbi
        takes 16,384 rows.
    start_ (S,), transition_ (S, S), emission_ (S, K): the parameters; each row sums to one; read-only.
    objectives_: for each round of EM the log-likelihood of the text, plus the log-prior where there is smoothing, under
        the parameters that the round began with; it never falls. valid_score_: the score of the validation text.
    ended_: why the last training ended: "tolerance", the gains shrank below it; "plateau", a gain was below it but the
        next would be larger, as in the first rounds after a random initialisation; "validation", that text became no
        likelier; "last round"; "" while it runs, or if the caller stopped it. converged_: whether by tolerance.
    """

    states: int = 32
    _: KW_ONLY
    iterations: int = 60
    tolerance: float = 1e-4
    smoothing: float = 0.01
    seed: int = 0
    dtype: Literal["float64", "float32"] = "float64"
    threads: int | None = None

    def __post_init__(self) -> None:
        self.objectives_: list[float] = []
        self.valid_score_ = math.nan
        self.ended_: Literal["", "tolerance", "plateau", "validation", "last round"] = ""
        self._state: _Fitted | None = None

    def __repr__(self) -> str:
        return f"HMM(states={self.states}, smoothing={self.smoothing!r}, seed={self.seed}, dtype={self.dtype!r})"

    @classmethod
    def from_parameters(
        cls, start: ArrayLike, transition: ArrayLike, emission: ArrayLike, vocab: Vocab, **settings: Any
    ) -> Self:
        """Make a model of given π (S,), A (S, S) and B (S, K), which are not rescaled to sum to one."""
        model = cls(np.size(start), **settings)
        _check_settings(model)
        tables = (np.asarray(table, model.dtype) for table in (start, transition, np.transpose(emission)))
        return model._set(Parameters(*tables), vocab)

    @classmethod
    def from_counts(
        cls, start: ArrayLike, transition: ArrayLike, emission: ArrayLike, vocab: Vocab, **settings: Any
    ) -> Self:
        """Make a model from counts of known states: how often each state began a document (S,), was followed by each
        other (S, S), and emitted each word (S, K), as ``learning.count_paths`` counts them.
        """
        model = cls(np.size(start), **settings)
        _check_settings(model)
        counts = Counts(*(np.asarray(table, np.float64) for table in (start, transition, np.transpose(emission))))
        learning.check_shapes(counts, model.states, len(vocab))
        if not all(np.isfinite(table).all() and table.min() >= 0 for table in counts):
            raise SettingError("counts must be numbers that are not negative")
        return model._set(learning.normalised(counts, model.smoothing, model.dtype), vocab)

    @property
    def _fitted(self) -> _Fitted:
        if self._state is None:
            raise NotFittedError(self, "corpus")
        return self._state

    def _set(self, parameters: Parameters, vocab: Vocab) -> Self:
        """Check and store parameters, whether given, learnt or loaded."""
        self._state = _Fitted(learning.checked(parameters, self.states, len(vocab)), vocab)
        return self

    @property
    def vocab(self) -> Vocab:
        """The vocabulary of the training text."""
        return self._fitted.vocab

    @property
    def start_(self) -> Reals:
        """π (S,)."""
        return self._fitted.parameters.start

    @property
    def transition_(self) -> Reals:
        """A (S, S)."""
        return self._fitted.parameters.transition

    @property
    def emission_(self) -> Reals:
        """B (S, K), a view: it is stored one row per word."""
        return self._fitted.parameters.emission.T

    @property
    def parameter_count(self) -> int:
        """(S − 1) + S(S − 1) + S(K − 1): each row has one free number less than entries, for it sums to one."""
        states, words = self.states, len(self.vocab)
        return (states - 1) + states * (states - 1) + states * (words - 1)

    # Learning

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None) -> Self:
        """Learn from a random initialisation until a round of EM gains too little; see ``train``."""
        for _ in self.train(corpus, valid=valid):
            pass
        return self

    def train(self, corpus: Corpus, *, valid: Corpus | None = None) -> Iterator[Step]:
        """Yield after each round of ``fit``. If the caller stops early, the model keeps what was learnt so far."""
        _check_settings(self)
        check_corpus(corpus)
        corpus.check_ids()
        _refuse_empty(corpus)
        counts = learning.random_counts(corpus, self.states, self.seed)
        self._set(learning.normalised(counts, self.smoothing, self.dtype), corpus.vocab)
        return self.improve(corpus, valid=valid)

    def improve(self, corpus: Corpus, *, valid: Corpus | None = None) -> Iterator[Step]:
        """Run EM from the present parameters, as ``from_parameters`` or an earlier training left them.

        With ``valid`` it ends when the score of that text has not risen for three rounds, and the best round is kept.
        The loss of a step is the negative log-likelihood per token under the parameters that the round began with.
        """
        _check_settings(self)
        check_corpus(corpus, self.vocab)
        _refuse_empty(corpus)
        return self._rounds(corpus, valid)

    def _rounds(self, corpus: Corpus, valid: Corpus | None) -> Iterator[Step]:
        tokens = len(corpus.ids)
        self.objectives_, self.valid_score_, self.ended_ = [], math.nan, ""
        best: tuple[float, int, Parameters] | None = None
        for number in range(1, self.iterations + 1):
            before = self._fitted.parameters
            counts, log_likelihood = learning.expected_counts(before, corpus, self.threads)
            self._add_objective(log_likelihood + learning.log_prior(before, self.smoothing))
            self._set(learning.normalised(counts, self.smoothing, self.dtype, before), self.vocab)
            if valid is not None:
                self.valid_score_ = self.score(valid)
                if best is None or self.valid_score_ > best[0]:
                    best = self.valid_score_, number, self._fitted.parameters
            yield Step(number * tokens, self.iterations * tokens, -log_likelihood / tokens, 0.0)
            if number > 1 and self.objectives_[-1] - self.objectives_[-2] < self.tolerance * tokens:
                self.ended_ = "tolerance" if self._gains_shrink(corpus) else "plateau"
                break
            if best is not None and number - best[1] >= PATIENCE:
                self.ended_ = "validation"
                break
        else:
            self.ended_ = "last round"
        if best is not None:
            self._set(best[2], self.vocab)

    def _gains_shrink(self, corpus: Corpus) -> bool:
        """Return whether the next round would gain no more than the last one did: near an optimum EM's gains fall by a
        constant factor, and while it leaves a saddle point they grow.
        """
        objective = learning.expected_counts(self._fitted.parameters, corpus, self.threads)[1]
        objective += learning.log_prior(self._fitted.parameters, self.smoothing)
        before, last = self.objectives_[-2:]
        return objective - last <= last - before + NOISE[self.dtype] * abs(last)

    @property
    def converged_(self) -> bool:
        """Whether training ended because its gains shrank below the tolerance."""
        return self.ended_ == "tolerance"

    def _add_objective(self, objective: float) -> None:
        last = self.objectives_[-1] if self.objectives_ else -math.inf
        if objective < last - NOISE[self.dtype] * abs(last):
            raise ForewordError(
                f"round {len(self.objectives_)} of EM lowered what it must raise, from {last!r} to {objective!r}: "
                "this is not convergence; float64 or more smoothing may help"
            )
        self.objectives_.append(objective)

    # Scoring

    def logprobs(self, corpus: Corpus) -> Logs:
        """Return (tokens,): the log-probability of each id given those before it in its document."""
        check_corpus(corpus)
        logs = np.empty(len(corpus.ids), self.dtype)
        with np.errstate(divide="ignore"):
            for batch, scales in self._map(kernels.scale_batch, corpus):
                logs[batch.places] = np.log(scales)
        return logs

    def beliefs(self, corpus: Corpus) -> Reals:
        """Return (tokens, S): p(z_n | x_1 … x_n), the states given each document up to that token."""
        return self._rows(kernels.filtered, corpus)

    def posteriors(self, corpus: Corpus) -> Reals:
        """Return (tokens, S): p(z_n | x_1 … x_N), the states given each whole document."""
        return self._rows(kernels.smoothed, corpus)

    def _rows(self, work: kernels.BatchWork[Iterator[BatchPart]], corpus: Corpus) -> Reals:
        rows = np.empty((len(corpus.ids), self.states), self.dtype)

        def fill(start: Reals, transition: Reals, emission: Reals, batch: DocumentBatch) -> None:
            for part in work(start, transition, emission, batch):
                rows[batch.places[part.first : part.last]] = part.rows

        for _ in self._map(fill, corpus):
            pass
        return rows

    def _map(self, work: kernels.BatchWork[T], corpus: Corpus) -> Iterator[tuple[DocumentBatch, T]]:
        check_corpus(corpus, self.vocab)
        return kernels.map_batches(work, self._fitted.parameters, corpus.ids, corpus.offsets, self.threads)

    def viterbi(self, corpus: Corpus) -> Ints:
        """Return (tokens,): the states of each document's likeliest path; among equals the lowest."""
        check_corpus(corpus, self.vocab)
        documents = corpus.ranges(self.threads or cores())
        return kernels.likeliest_paths(self._fitted.parameters, corpus.ids, corpus.offsets, documents, self.threads)

    def joint_logprob(self, ids: Ids, path: Ids) -> float:
        """Return log p(x, z) of a document's words and the states behind them, both (N,)."""
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
            return float(first + moves.sum() + np.log(self.emission_[states, words]).sum())

    # One token at a time

    def start(self, n: int = 1) -> Reals:
        """Return (n, S): p(z_1) before anything has been read."""
        return np.tile(self.start_, (n, 1))

    def next_logprobs(self, state: Reals) -> Logs:
        """Return (n, K): log Σ_z p(z_n = z | x_<n) B(z, ·)."""
        with np.errstate(divide="ignore"):
            logs: Logs = np.log(state @ self.emission_)
        return logs

    def advance(self, state: Reals, ids: Ids) -> Reals:
        """Turn (n, S) p(z_n | x_<n) into p(z_(n+1) | x_≤n): correct by the words, then predict."""
        if len(ids) != len(state):
            raise ValueError(f"{len(state)} texts but {len(ids)} next tokens")
        return self.predict(self.correct(state, ids))

    def predict(self, belief: Reals) -> Reals:
        """Take one step of the chain: (…, S) p(z_n | x_≤n) to p(z_(n+1) | x_≤n)."""
        predicted: Reals = belief @ self.transition_
        return predicted

    def correct(self, belief: Reals, ids: int | Ids) -> Reals:
        """Apply Bayes' rule to the words read: (…, S) p(z_n | x_<n) to p(z_n | x_≤n).

        A word that no reachable state emits carries no information; the belief stays as it was.
        """
        check_ids(np.asarray(ids), len(self.vocab))
        joint = belief * self._fitted.parameters.emission[ids]
        total = joint.sum(axis=-1, keepdims=True)
        return np.where(total > 0, joint / np.where(total > 0, total, 1), belief)

    def sample(self, tokens: int, *, seed: int = 0) -> tuple[Ints, Ints]:
        """Draw (N,) words and (N,) states in the order in which the model generates them: z_1, x_1, z_2, x_2, …

        ``</s>`` is an ordinary word and does not end the sample; ``generate`` ends there.
        """
        if tokens < 0:
            raise SettingError(f"tokens={tokens} must not be negative")
        return _sampled(self._fitted.parameters, tokens, np.random.default_rng(seed))

    # Saving

    def to_parts(self) -> Parts:
        """Return settings, parameters and vocabulary for saving."""
        settings: dict[str, Any] = {name: getattr(self, name) for name in _SAVED_SETTINGS}
        settings |= {"tolerance": float(self.tolerance), "smoothing": float(self.smoothing)}
        return Parts(settings, dict(zip(_SAVED_ARRAYS, self._fitted.parameters, strict=True)), self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a saved model; a ValueError for parts that are not those of an HMM."""
        settings: dict[str, Any] = dict(parts.settings)
        if parts.vocab is None or sorted(settings) != _SAVED_SETTINGS:
            raise ValueError(f"expected a vocabulary and the settings {', '.join(_SAVED_SETTINGS)}")
        model = cls(**settings)
        _check_settings(model)
        tables = Parameters(*(parts.arrays[name] for name in _SAVED_ARRAYS))
        for name, table in zip(_SAVED_ARRAYS, tables, strict=True):
            if table.dtype != np.dtype(model.dtype):
                raise ValueError(f"{name} is {table.dtype}, not {model.dtype}")
        return model._set(tables, parts.vocab)


def _refuse_empty(corpus: Corpus) -> None:
    if len(corpus.ids) == 0:
        raise InputError("the training text is empty: a hidden Markov model needs at least one document")


def _check_settings(model: HMM) -> None:
    check_numbers(model, "states", "iterations", whole=True, least=1)
    check_numbers(model, "seed", whole=True)
    check_numbers(model, "tolerance", "smoothing")
    check_choice(model, "dtype", NOISE)
    if model.threads is not None:
        check_numbers(model, "threads", whole=True, least=1)


def _sampled(parameters: Parameters, tokens: int, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw a path of states, then a word from each."""
    start, transition, emission = parameters
    rows = [row.cumsum(dtype=np.float64).tolist() for row in (start, *transition)]
    path, row = np.empty(tokens, np.int32), rows[0]
    for position, point in enumerate(random.random(tokens).tolist()):
        path[position] = bisect_right(row, point * row[-1])  # right: what has no probability is never drawn
        row = rows[path[position] + 1]
    words, points = np.empty(tokens, np.int32), random.random(tokens)
    for state in np.unique(path):
        here = np.flatnonzero(path == state)
        edges = emission[:, state].cumsum(dtype=np.float64)
        words[here] = np.searchsorted(edges, points[here] * edges[-1], side="right")
    return words, path
