"""The continuous cache of a neural language model.

While a text is read, every word is stored with the hidden state h_i that predicted it. When the current state h is
similar to an earlier one, the word that followed then is likely to follow again,

    p_cache(w) ∝ Σ_i [w_i = w] exp(θ h · h_i),    p(w) = (1 − λ) p_model(w) + λ p_cache(w)

over the last words of the document. Nothing is trained. θ = 0 gives the cache of ``combine.py``, which counts.

This adapts the model to the text that is scored. Perplexities with a cache are not comparable with those without one.

E. Grave, A. Joulin and N. Usunier, "Improving neural language models with a continuous cache", ICLR 2017.
Shapes: n = batch of texts, k = words in the cache, T = words of a chunk, N = words of a document, D = units, V = words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from foreword.errors import MissingExtraError

try:
    import torch
    from torch import Tensor
except ImportError:
    raise MissingExtraError("torch", "neural", "a neural language model") from None

from foreword.arrays import Floats, Ids, Logs, Longs
from foreword.checks import check_corpus, check_held_out, check_number, saveable
from foreword.mix.combine import NEAR_ENOUGH, ModelWithCache, weight_steps
from foreword.neural.model import NeuralLM, NeuralState, neural_model
from foreword.nn.network import word_logs
from foreword.protocols import Json, Meter, Parts, Rows
from foreword.storage.folder import nest, unnest
from foreword.tokens.corpus import Corpus
from foreword.training.model import exact

CHUNK = 256
"""Words that are looked up at once: a larger chunk computes more products that are out of reach of all its words."""

THETAS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0)
SIZES = (100, 500, 2000, 5000)
"""The grid of ``tuned``."""


@dataclass(frozen=True, slots=True)
class NeuralCacheState:
    """keys (n, k, D): hidden states before the last words; words (n, k): those words; the oldest first."""

    of_model: NeuralState
    keys: Floats
    words: Longs

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, rows: Rows) -> NeuralCacheState:
        return NeuralCacheState(self.of_model[rows], self.keys[rows], self.words[rows])


class NeuralCache(ModelWithCache[NeuralLM]):
    """A neural language model with a continuous cache over the document it reads.

    size: words in the cache; theta: θ, how much similarity counts; weight: λ.
    """

    def __init__(self, model: NeuralLM, *, size: int = 500, theta: float = 0.3, weight: float = 0.1) -> None:
        self.model = neural_model(model, "a neural cache")
        check_number("size", size, whole=True, least=1)
        check_number("theta", theta)
        check_number("weight", weight, below=1)
        self.size = size
        self.theta = theta
        self.weight = weight

    def __repr__(self) -> str:
        return f"NeuralCache({self.model!r}, size={self.size}, theta={self.theta:g}, weight={self.weight:g})"

    @classmethod
    def tuned(
        cls,
        model: NeuralLM,
        held_out: Corpus,
        *,
        sizes: Sequence[int] = SIZES,
        thetas: Sequence[float] = THETAS,
        meter: Meter | None = None,
    ) -> Self:
        """Choose size and θ by grid search, and λ for each by EM, to maximise the likelihood of held-out text."""
        check_held_out(held_out, model.vocab)
        found = [_cache_lookup(model, ids, sizes, thetas, meter) for ids in held_out.documents()]
        logs, caches = np.concatenate([each[0] for each in found]), np.concatenate([each[1] for each in found], axis=2)
        best, chosen = -np.inf, (sizes[0], thetas[0], 0.0)
        for row, size in enumerate(sizes):
            for column, theta in enumerate(thetas):
                weight, score = _best_weight(logs, caches[row, column])
                if score > best:
                    best, chosen = score, (size, theta, weight)
        return cls(model, size=chosen[0], theta=chosen[1], weight=chosen[2])

    def logprobs(self, corpus: Corpus, *, meter: Meter | None = None) -> Logs:
        """Return float64 (ids,). To carry the cache through a test set, make it one document: ``corpus.joined()``."""
        check_corpus(corpus, self.vocab)
        logs = np.empty(len(corpus.ids))
        for number, ids in enumerate(corpus.documents()):
            plain, cache = _cache_lookup(self.model, ids, [self.size], [self.theta], meter)
            logs[corpus.offsets[number] : corpus.offsets[number + 1]] = self._mix(plain, cache[0, 0])
        return logs

    def start(self, n: int = 1) -> NeuralCacheState:
        """Return the state of n texts that have read ``<s>``."""
        state = self.model.start(n)
        keys = np.empty((n, 0, state.hidden.shape[1]), np.float32)
        return NeuralCacheState(state, keys, np.empty((n, 0), np.int64))

    def next_logprobs(self, state: NeuralCacheState) -> Logs:
        """Return the log-probabilities of the next token: (n, V)."""
        logs = np.asarray(self.model.next_logprobs(state.of_model), np.float64)
        if state.words.shape[1] == 0:
            return logs
        similarity = self.theta * np.einsum("nd,nkd->nk", state.of_model.hidden, state.keys).astype(np.float64)
        shares = np.exp(similarity - similarity.max(axis=1, initial=-np.inf, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        cache = np.zeros_like(logs)
        np.add.at(cache, (np.arange(len(cache))[:, None], state.words), shares)
        with np.errstate(divide="ignore"):  # words that are not in the cache
            return self._mix(logs, np.log(cache))

    def advance(self, state: NeuralCacheState, ids: Ids) -> NeuralCacheState:
        """Return the state after one more token per text."""
        after = self.model.advance(state.of_model, ids)
        first = max(0, state.words.shape[1] + 1 - self.size)
        keys = np.concatenate((state.keys[:, first:], state.of_model.hidden[:, None]), axis=1)
        words = np.column_stack((state.words[:, first:], np.asarray(ids, np.int64)))
        return NeuralCacheState(after, keys, words)

    def _mix(self, logs: Logs, cache: Logs) -> Logs:
        """Mix the two; NaN in the logs of the cache means that it was empty."""
        with np.errstate(divide="ignore", invalid="ignore"):  # no weight; nothing in it
            mixed = np.logaddexp(logs + math.log1p(-self.weight), cache + np.log(self.weight))
        found: Logs = np.where(np.isnan(cache), logs, mixed)
        return found

    def to_parts(self) -> Parts:
        """Return the settings, arrays and vocabulary to save."""
        settings: dict[str, Json] = {"size": self.size, "theta": float(self.theta), "weight": float(self.weight)}
        parts = Parts(settings, vocab=self.vocab)
        nest("model", saveable(self.model), parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Rebuild the model from what was saved."""
        size, theta, weight = (parts.settings.get(name) for name in ("size", "theta", "weight"))
        if type(size) is not int or type(theta) is not float or type(weight) is not float:
            raise ValueError("expected 'size', a whole number, 'theta' and 'weight', numbers")
        model: Any = unnest("model", parts)
        return cls(model, size=size, theta=theta, weight=weight)


def _best_weight(logs: Logs, cache: Logs) -> tuple[float, float]:
    """Return the best λ and its mean log-probability; where the cache is empty only the model counts."""
    empty = np.isnan(cache)
    if empty.all():
        return 0.0, float(logs.mean())
    for step in weight_steps(np.stack((logs[~empty], cache[~empty]))):
        if step.gain_left < NEAR_ENOUGH:
            break
    score = (step.score * np.count_nonzero(~empty) + logs[empty].sum()) / len(logs)
    return float(step.weights[1]), float(score)


def _cache_lookup(
    model: NeuralLM, ids: Ids, sizes: Sequence[int], thetas: Sequence[float], meter: Meter | None
) -> tuple[Logs, Logs]:
    """Return the logs of the model for the words of a document (N,), and those of the cache (sizes, thetas, N): −∞ for
    a word that is not in it, NaN where it is empty.
    """
    reach, plain, found = max(sizes), [np.empty(0)], [np.empty((len(sizes), len(thetas), 0))]
    keys, words = None, None
    for hidden, targets in model.hidden_states(ids):
        with exact():
            plain.append(word_logs(model.weights_, hidden, targets).double().cpu().numpy())
            for begin in range(0, len(hidden), CHUNK):
                part, wanted = hidden[begin : begin + CHUNK], targets[begin : begin + CHUNK]
                keys = part if keys is None else torch.cat((keys, part))
                words = wanted if words is None else torch.cat((words, wanted))
                found.append(_cache_logs(part, wanted, keys, words, sizes, thetas).cpu().numpy())
                keys, words = keys[-reach:], words[-reach:]
                if meter is not None:
                    meter("reading with a cache", sum(each.shape[2] for each in found), len(ids))
    return np.concatenate(plain), np.concatenate(found, axis=2)


def _cache_logs(
    hidden: Tensor, targets: Tensor, keys: Tensor, words: Tensor, sizes: Sequence[int], thetas: Sequence[float]
) -> Tensor:
    """Return the logs of the cache for a chunk (T, D), the last of the keys (k, D); each word sees those before it."""
    similarity = hidden @ keys.t()
    same = targets[:, None] == words
    positions = torch.arange(len(keys), device=keys.device)
    back = positions[-len(hidden) :, None] - positions
    found = torch.empty(len(sizes), len(thetas), len(hidden), dtype=torch.float64)
    for row, size in enumerate(sizes):
        within = slice(max(0, len(keys) - len(hidden) - size), None)
        hidden_from = (back[:, within] <= 0) | (back[:, within] > size)
        unlike, empty = hidden_from | ~same[:, within], hidden_from.all(1)
        for column, theta in enumerate(thetas):
            weighed = (theta * similarity[:, within]).masked_fill_(hidden_from, -torch.inf)
            all_of_it = torch.logsumexp(weighed, 1)
            logs = torch.logsumexp(weighed.masked_fill_(unlike, -torch.inf), 1) - all_of_it
            found[row, column] = logs.masked_fill(empty, torch.nan)
    return found
