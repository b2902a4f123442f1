"""Language models made of language models.

``interpolate`` mixes the predictions of several models,

    p(w | h) = Σ_i λ_i p_i(w | h),    λ_i ≥ 0,    Σ_i λ_i = 1

and learns the weights by EM from text that none of them was trained on: each word is credited to the models in
proportion to the probability they gave it, and a model's new weight is its share of all the credit,

    λ_i ← λ_i g_i,    g_i = (1/N) Σ_n p_i(w_n | h_n) / p(w_n | h_n)

The likelihood never falls. It is concave in λ, so there is one maximum, and no weights score more than log max_i g_i
above the current ones: Σ_i λ*_i g_i is the mean of p*/p, and the mean of a logarithm is at most the logarithm of the
mean. So the possible gain is known at every step. For similar models plain EM is slow, so a step is over-relaxed to
λ_i g_i^η, with η growing until the likelihood would fall.

``cached`` mixes a model with the words of the document so far, because a word once used is likely to recur,

    p(w | h) = (1 − λ) p_model(w | h) + λ count(w among the last words) / number of the last words

F. Jelinek and R. L. Mercer, "Interpolated estimation of Markov source parameters from sparse data", Pattern Recognition
in Practice (1980). T. M. Cover, "An algorithm for maximizing expected log investment return", IEEE Transactions on
Information Theory 30 (1984), for the bound. R. Salakhutdinov and S. Roweis, "Adaptive overrelaxed bound optimization
methods", ICML 2003, for over-relaxation. R. Kuhn and R. De Mori, "A cache-based natural language model for speech
recognition", IEEE Transactions on Pattern Analysis and Machine Intelligence 12 (1990); E. Grave, A. Joulin and
N. Usunier, "Improving neural language models with a continuous cache", ICLR 2017, for neural ones.
Shapes: M = models mixed, N = tokens, V = tokens in the vocabulary, n = batch of texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self, cast

import numpy as np

from foreword.arrays import Doubles, Ids, Logs, Longs
from foreword.checks import check_held_out, check_number, saveable
from foreword.errors import ForewordError, InputError, SettingError
from foreword.measures.perplexity import M, MeanScore, WrappedModel
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json, LanguageModel, Parts, Rows
from foreword.storage.folder import nest, unnest
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

NEAR_ENOUGH = 1e-6
"""Weights are learnt until no others could gain more than this, in nats per token."""


FAINTEST = 1e-12
"""Lower bound of learnt weights, so that one that a long step has taken too low can rise again."""


def interpolate(
    models: Sequence[LanguageModel[Any]], weights: Sequence[float] | None = None, *, by_length: bool = False
) -> Mixture:
    """Mix models that share a vocabulary. Without weights they are equal until ``learn_weights`` or ``fit``.

    by_length: learn weights for each length that an ∞-gram model among them has matched (``matched.py``).
    """
    if by_length:
        from foreword.mix.matched import MatchedMixture

        return MatchedMixture(models, weights)
    return Mixture(models, weights)


def cached(model: LanguageModel[Any], *, weight: float = 0.1, size: int = 500) -> Cached:
    """Add a cache of the last ``size`` words of the document to a model."""
    return Cached(model, weight=weight, size=size)


# Several models


@dataclass(frozen=True, slots=True)
class MixtureState:
    """The states of all models of a mixture after the same n texts."""

    of_models: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.of_models[0])

    def __getitem__(self, rows: Rows) -> MixtureState:
        return MixtureState(tuple(state[rows] for state in self.of_models))


class Mixture(ShownInNotebook, MeanScore):
    """Linear interpolation of models: Σ_i λ_i p_i(w | h).

    weights: float64 (M,), the initial ones; weights_: the current ones, learnt if there was held-out text.
    """

    def __init__(self, models: Sequence[LanguageModel[Any]], weights: Sequence[float] | None = None) -> None:
        if not models:
            raise SettingError("a mixture needs at least one model")
        self.models = tuple(models)
        self.weights = _equal(len(models)) if weights is None else _checked(weights, len(models))
        self.weights_ = self.weights
        _check_shared([vocab for vocab in map(_vocab_if_learnt, models) if vocab is not None])

    def __repr__(self) -> str:
        return f"Mixture({list(self.models)!r}, {self.weights_.tolist()!r})"

    @property
    def vocab(self) -> Vocab:
        """Return the vocabulary that the models share; raise an InputError if they do not."""
        vocabs = [model.vocab for model in self.models]
        _check_shared(vocabs)
        return vocabs[0]

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None) -> Self:
        """Fit every model, then learn the weights from ``valid``.

        Without ``valid`` the weights stay as they were given: on its own training text the model that remembers most
        would get all the weight. Models that have learnt already need only ``learn_weights``.
        """
        for model in self.models:
            model.fit(corpus, valid=valid)
        self.weights_ = self.weights
        return self if valid is None else self.learn_weights(valid)

    def learn_weights(self, held_out: Corpus) -> Self:
        """Learn the maximum-likelihood weights on held-out text by EM, within ``NEAR_ENOUGH``."""
        check_held_out(held_out)
        logs = np.stack([np.asarray(model.logprobs(held_out), np.float64) for model in self.models])
        for step in weight_steps(logs):
            self.weights_ = step.weights
            if step.gain_left < NEAR_ENOUGH:
                break
        return self

    def logprobs(self, corpus: Corpus) -> Logs:
        """Return the log-probability of every id: float64 (ids,)."""
        return self._mix(model.logprobs(corpus) for model in self.models)

    def start(self, n: int = 1) -> MixtureState:
        """Return the state of n texts that have read ``<s>``."""
        _ = self.vocab  # which refuses models of different vocabularies
        return MixtureState(tuple(model.start(n) for model in self.models))

    def next_logprobs(self, state: MixtureState) -> Logs:
        """Return the log-probabilities of the next token: (n, V)."""
        return self._mix(model.next_logprobs(own) for model, own in zip(self.models, state.of_models, strict=True))

    def advance(self, state: MixtureState, ids: Ids) -> MixtureState:
        """Return the state after one more token per text."""
        pairs = zip(self.models, state.of_models, strict=True)
        return MixtureState(tuple(model.advance(own, ids) for model, own in pairs))

    def _mix(self, logs: Iterable[Logs]) -> Doubles:
        """Return the log of the weighted sum, for any shape; the logs of one model are in memory at a time."""
        with np.errstate(divide="ignore"):  # a weight of zero
            log_weights = np.log(self.weights_).tolist()
        weighted = (np.asarray(each, np.float64) + weight for each, weight in zip(logs, log_weights, strict=True))
        return reduce(np.logaddexp, weighted)

    def to_parts(self) -> Parts:
        """Return the settings, arrays and vocabulary to save."""
        learnt = cast(Json, self.weights_.tolist())
        parts = Parts({"weights": cast(Json, self.weights.tolist()), "learnt_weights": learnt}, vocab=self.vocab)
        for number, model in enumerate(self.models):
            nest(f"model-{number}", saveable(model), parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Rebuild the model from what was saved."""
        weights, learnt = (_numbers(parts.settings.get(name)) for name in ("weights", "learnt_weights"))
        mixture = cls([_nested_model(f"model-{number}", parts) for number in range(len(weights))], weights)
        mixture.weights_ = _checked(learnt, len(weights))
        return mixture


@dataclass(frozen=True, slots=True)
class WeightStep:
    """One round of EM.

    weights: float64 (M,), that the round began with. score: log-probability per token under them.
    gains: float64 (M,), g, by which plain EM would multiply the weights.
    """

    weights: Doubles
    gains: Doubles
    score: float

    @property
    def gain_left(self) -> float:
        """Return an upper bound of what any other weights could gain over ``score``."""
        return math.log(self.gains.max())

    def next_weights(self, eta: float) -> Doubles:
        """Return the weights after an over-relaxed EM update; eta: η, 1 for plain EM."""
        with np.errstate(divide="ignore"):  # a model that gives no token any probability
            logs = np.log(self.weights) + eta * np.log(self.gains)
        weights: Doubles = np.maximum(np.exp(logs - logs.max()), FAINTEST)
        weights /= weights.sum()
        return weights


def weight_steps(logs: Doubles) -> Iterator[WeightStep]:
    """Yield the steps of EM for the weights of a mixture, from equal ones on, without end; logs: (M, N), of each model.

    A token that no model gives a probability is left out: no weights could help it.
    """
    best = logs.max(axis=0)
    if not (best < np.inf).all():
        raise ForewordError("a model of the mixture gave a token a log-probability that is infinite or not a number")
    possible = best > -np.inf
    if not possible.any():
        raise InputError("no model of the mixture gives any token of the held-out text a probability")
    best = best[possible]
    relative = np.exp(logs[:, possible] - best)  # to the best model of each token, so that nothing underflows
    step, eta = _weigh(_equal(len(logs)), relative, best), 1.0
    while True:
        yield step
        further = _weigh(step.next_weights(eta), relative, best)
        if further.score < step.score:
            further, eta = _weigh(step.next_weights(1.0), relative, best), 1.0
        step, eta = further, 1.5 * eta


def _weigh(weights: Doubles, relative: Doubles, best: Doubles) -> WeightStep:
    """Evaluate weights; ``relative`` (M, N) is what each model gave each token relative to ``best`` (N,)."""
    # Not products of matrices: in what order those add up depends on the threads there are.
    mixed = np.einsum("m,mn->n", weights, relative)
    gains = np.einsum("mn,n->m", relative, 1 / mixed) / len(mixed)
    return WeightStep(weights, gains, float((np.log(mixed) + best).mean()))


# A model and the document's own words


@dataclass(frozen=True, slots=True)
class CachedState:
    """The state of the model after n texts, and the last words of each.

    recent: int64 (n, words), oldest first. All rows have read equally many tokens, so they have one length.
    """

    of_model: Any
    recent: Longs

    def __len__(self) -> int:
        return len(self.recent)

    def __getitem__(self, rows: Rows) -> CachedState:
        return CachedState(self.of_model[rows], self.recent[rows])


class ModelWithCache(ShownInNotebook, WrappedModel[M]):
    """A model and a cache of the document's own words."""

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None) -> Self:
        """Fit the model; the cache fills while a text is read."""
        self.model.fit(corpus, valid=valid)
        return self


class Cached(ModelWithCache[LanguageModel[Any]]):
    """A unigram cache: (1 − λ) p_model(w | h) + λ count(w among the last words) / number of the last words.

    weight: λ; size: words in the cache, which is empty at the start of each document.
    """

    def __init__(self, model: LanguageModel[Any], *, weight: float = 0.1, size: int = 500) -> None:
        check_number("weight", weight, below=1)
        check_number("size", size, whole=True, least=1)
        self.model = model
        self.weight = weight
        self.size = size

    def __repr__(self) -> str:
        return f"Cached({self.model!r}, weight={self.weight!r}, size={self.size})"

    def logprobs(self, corpus: Corpus) -> Logs:
        """Return the log-probability of every id: float64 (ids,)."""
        logs = np.asarray(self.model.logprobs(corpus), np.float64)
        counts, words = recent_counts(corpus, self.size)
        return np.where(words > 0, self._mix(logs, counts, np.maximum(words, 1)), logs)

    def start(self, n: int = 1) -> CachedState:
        """Return the state of n texts that have read ``<s>``."""
        return CachedState(self.model.start(n), np.empty((n, 0), np.int64))

    def next_logprobs(self, state: CachedState) -> Logs:
        """Return the log-probabilities of the next token: (n, V)."""
        logs = self.model.next_logprobs(state.of_model)
        words = state.recent.shape[1]
        if words == 0:
            return logs
        mixed = np.asarray(logs, np.float64) + math.log1p(-self.weight)
        for row, recent in enumerate(state.recent):
            seen, counts = np.unique(recent, return_counts=True)
            mixed[row, seen] = self._mix(logs[row, seen], counts, words)
        return mixed

    def advance(self, state: CachedState, ids: Ids) -> CachedState:
        """Return the state after one more token per text."""
        keep = max(0, state.recent.shape[1] + 1 - self.size)
        recent = np.column_stack((state.recent[:, keep:], np.asarray(ids, np.int64)))
        return CachedState(self.model.advance(state.of_model, ids), recent)

    def _mix(self, logs: Logs, counts: Longs, words: Longs | int) -> Doubles:
        """Mix the log-probabilities of tokens with their counts among the last words."""
        with np.errstate(divide="ignore"):  # not one of them, or no weight
            from_cache = np.log(self.weight * counts / words)
        mixed: Doubles = np.logaddexp(np.asarray(logs, np.float64) + math.log1p(-self.weight), from_cache)
        return mixed

    def to_parts(self) -> Parts:
        """Return the settings, arrays and vocabulary to save."""
        parts = Parts({"weight": float(self.weight), "size": self.size}, vocab=self.vocab)
        nest("model", saveable(self.model), parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Rebuild the model from what was saved."""
        size = parts.settings.get("size")
        if isinstance(size, bool) or not isinstance(size, int):
            raise ValueError("expected 'size', a whole number")
        return cls(_nested_model("model", parts), weight=_number(parts.settings.get("weight")), size=size)


def recent_counts(corpus: Corpus, size: int) -> tuple[Longs, Longs]:
    """For each token, count how often it occurs among the ``size`` tokens before it in its document, and those tokens.

    Equal tokens of a document are sorted by position, and a binary search finds the first that is near enough.
    """
    positions = np.arange(len(corpus.ids))
    reach = min(size, len(positions))
    documents = np.repeat(np.arange(len(corpus)), np.diff(corpus.offsets))
    order = np.lexsort((corpus.ids, documents))
    ids, sorted_documents = corpus.ids[order], documents[order]
    groups = np.cumsum((np.diff(ids, prepend=ids[:1]) != 0) | (np.diff(sorted_documents, prepend=0) != 0))
    keys = groups * (len(positions) + reach) + order  # so far apart that no group reaches back into another
    counts = np.empty(len(positions), np.int64)
    counts[order] = positions - np.searchsorted(keys, keys - reach)
    return counts, np.minimum(positions - corpus.offsets[documents], reach)


# Small parts


def _equal(count: int) -> Doubles:
    """Return equal weights."""
    return np.full(count, 1 / count)


def _checked(weights: Sequence[float], count: int) -> Doubles:
    """Return the weights as an array; raise a SettingError if they are not a distribution."""
    checked = np.array(weights, np.float64)
    if checked.shape != (count,):
        raise SettingError(f"{count} models but {len(weights)} weights")
    if not (checked >= 0).all() or not math.isclose(checked.sum(), 1, rel_tol=1e-9):
        raise SettingError(f"weights={checked.tolist()} must not be negative and must sum to one")
    return checked


def _check_shared(vocabs: Sequence[Vocab]) -> None:
    """Raise an InputError unless all vocabularies are equal."""
    if any(vocab != vocabs[0] for vocab in vocabs):
        raise InputError("the models of a mixture must share one vocabulary, but these do not")


def _vocab_if_learnt(model: LanguageModel[Any]) -> Vocab | None:
    """Return the vocabulary of a fitted model, None of an unfitted one."""
    try:
        return model.vocab
    except ForewordError:  # fit will give it one
        return None


def _numbers(values: Json) -> list[float]:
    """Return a list of numbers from JSON."""
    if not isinstance(values, list):
        raise ValueError("expected a list of weights")
    return [_number(value) for value in values]


def _number(value: Json) -> float:
    """Return a number from JSON."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"a weight should be a number, not a {type(value).__name__}")
    return float(value)


def _nested_model(prefix: str, parts: Parts) -> LanguageModel[Any]:
    """Return a language model from nested parts."""
    model = unnest(prefix, parts)
    if not isinstance(model, LanguageModel):
        raise ValueError(f"a {type(model).__name__} is not a language model")
    return model
