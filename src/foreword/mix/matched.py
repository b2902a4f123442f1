"""Interpolation whose weights depend on how much of the context an ∞-gram model has matched.

    p(w | h) = Σ_i λ_i(b) p_i(w | h),    b: the bin of the length of the longest end of h that the corpus has

A long match is nearly certain to be continued as it was, a short one says little: one weight for both wastes either.
The weights of each bin are learnt by EM, as ``combine.py`` has it, from the held-out tokens of that bin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self, cast

import numpy as np

from foreword.arrays import Doubles, Logs, Longs
from foreword.errors import InputError, SettingError
from foreword.infinigram.model import InfiniGramLM
from foreword.mix.combine import NEAR_ENOUGH, Mixture, MixtureState, weight_steps
from foreword.protocols import LanguageModel, Parts
from foreword.tokens.corpus import Corpus

EDGES = (1, 2, 3, 4, 5, 6, 8, 12, 16, 32)
"""The first length of each bin but the first."""

ENOUGH = 100
"""Held-out tokens of a bin; with fewer the weights of all tokens are taken."""


class MatchedMixture(Mixture):
    """A mixture of models, one of them an ``InfiniGramLM``, with weights for each length that it matches.

    weights_by_length_: float64 (bins, M).
    """

    def __init__(self, models: Sequence[LanguageModel[Any]], weights: Sequence[float] | None = None) -> None:
        super().__init__(models, weights)
        found = [number for number, model in enumerate(models) if isinstance(model, InfiniGramLM)]
        if not found:
            raise SettingError("weights by matched length need an InfiniGramLM among the models")
        self._matcher = found[0]
        self._spread(self.weights)

    def _spread(self, weights: Doubles) -> None:
        self.weights_by_length_ = np.tile(weights, (len(EDGES) + 1, 1))

    @property
    def matcher(self) -> InfiniGramLM:
        """The model whose matched length chooses the weights."""
        return cast(InfiniGramLM, self.models[self._matcher])

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None) -> Self:
        """Fit every model, then learn the weights of each length from ``valid``."""
        self._spread(self.weights)
        return super().fit(corpus, valid=valid)

    def learn_weights(self, held_out: Corpus) -> Self:
        """Learn the weights of each length on held-out text by EM."""
        super().learn_weights(held_out)
        self._spread(self.weights_)
        logs = np.stack([np.asarray(model.logprobs(held_out), np.float64) for model in self.models])
        bins = _bin(self.matcher.matches(held_out).lengths)
        for bin in np.flatnonzero(np.bincount(bins) >= ENOUGH).tolist():
            for step in weight_steps(logs[:, bins == bin]):
                self.weights_by_length_[bin] = step.weights
                if step.gain_left < NEAR_ENOUGH:
                    break
        return self

    def logprobs(self, corpus: Corpus) -> Logs:
        """Return the log-probability of every id: float64 (ids,)."""
        logs = [model.logprobs(corpus) for model in self.models]  # which refuse a corpus of another vocabulary
        return self._weigh(logs, self.matcher.matches(corpus).lengths)

    def next_logprobs(self, state: MixtureState) -> Logs:
        """Return the log-probabilities of the next token: (n, V)."""
        logs = (model.next_logprobs(own) for model, own in zip(self.models, state.of_models, strict=True))
        return self._weigh(logs, state.of_models[self._matcher].lengths)

    def _weigh(self, logs: Iterable[Logs], lengths: Longs) -> Doubles:
        """Return the log of the weighted sum. logs: of each model, (n,) or (n, V); lengths: (n,)."""
        with np.errstate(divide="ignore"):  # a weight of zero
            weights = np.log(self.weights_by_length_[_bin(lengths)])
        total: Doubles | None = None
        for each, weight in zip(logs, weights.T, strict=True):
            weighted = np.asarray(each, np.float64) + (weight if np.ndim(each) == 1 else weight[:, None])
            total = weighted if total is None else np.logaddexp(total, weighted)
        assert total is not None
        return total

    def to_parts(self) -> Parts:
        """Return the settings, arrays and vocabulary to save."""
        parts = super().to_parts()
        parts.arrays["weights_by_length"] = self.weights_by_length_
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Rebuild the model from what was saved."""
        mixture = super().from_parts(parts)
        weights = parts.arrays["weights_by_length"]
        if weights.dtype != np.float64 or weights.shape != mixture.weights_by_length_.shape:
            raise InputError(f"the weights are {weights.dtype} {weights.shape}")
        if not (weights >= 0).all() or not np.allclose(weights.sum(axis=1), 1):
            raise InputError("the weights of a length do not sum to one")
        mixture.weights_by_length_ = weights
        return mixture


def _bin(lengths: Longs) -> Longs:
    return np.searchsorted(EDGES, lengths, side="right")
