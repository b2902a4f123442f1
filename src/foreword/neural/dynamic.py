"""Dynamic evaluation: a neural model continues to learn from the text that it is scored on.

A chunk of words is scored first; then its loss L moves the weights w a little, and the next chunk is read with what
they have become. Weights are drawn back towards the trained ones w₀, so that what was learnt is not forgotten:

    w ← w − rate · ∂L/∂w / (r + ε) + min(1, decay · r) (w₀ − w)

r is how large the weight's gradients were on the training text: the root of their mean square, divided by the mean of
these roots over all weights. A weight whose gradients are small takes longer steps, and is pulled back less. Without
a training text to measure it by, r is 1 for all. (The paper divides by the root itself; here the rate is that of plain
gradient descent, and the paper's is this one divided by the mean root.)

This is adaptation to the text that is scored. Numbers by dynamic evaluation are not comparable with others.

B. Krause, E. Kahembwe, I. Murray and S. Renals, "Dynamic evaluation of neural sequence models", ICML 2018.
Shapes: N words of a document, T words of a chunk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Self

import numpy as np
import torch
from torch import Tensor

from foreword.arrays import Ids, Logs
from foreword.checks import check_corpus, check_held_out, check_number
from foreword.errors import ForewordError, InputError
from foreword.measures.perplexity import WrappedModel
from foreword.neural.model import NeuralLM, neural_model
from foreword.nn.network import BIAS, TEMPERATURE, mixed, output_weight, word_logs
from foreword.nn.softmax import linear_cross_entropy
from foreword.protocols import Meter
from foreword.tokens.corpus import Corpus
from foreword.training.graphs import Graphed
from foreword.training.model import gpu_memory

RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
DECAYS = (0.0, 0.0003, 0.001, 0.003, 0.01, 0.03)
"""Values that are tried where a held-out text chooses the settings."""

EPSILON = 0.05
"""The smallest r that counts, about: a weight that training never moved must not run away."""

TEXTS, UPDATES = 20, 500
"""Positions at which the training text is read in parallel to measure gradients, and chunks that are read, at most."""


class DynamicEvaluation(WrappedModel[NeuralLM]):
    """A neural language model that learns while it is scored; a document begins with the trained weights.

    rate, decay: of the update above. steps: words between two updates.
    roots_: r by weight, all 1 until ``measure_gradients``.
    """

    def __init__(self, model: NeuralLM, *, rate: float = 0.1, decay: float = 0.001, steps: int = 5) -> None:
        self.model = neural_model(model, "dynamic evaluation")
        check_number("rate", rate)
        check_number("decay", decay)
        check_number("steps", steps, whole=True, least=1)
        self.rate = rate
        self.decay = decay
        self.steps = steps
        self.roots_: dict[str, Tensor] = {}

    def __repr__(self) -> str:
        return f"DynamicEvaluation({self.model!r}, rate={self.rate:g}, decay={self.decay:g}, steps={self.steps})"

    def measure_gradients(
        self, corpus: Corpus, *, texts: int = TEXTS, updates: int = UPDATES, meter: Meter | None = None
    ) -> Self:
        """Learn r from the training text: chunks of ``steps`` words at ``texts`` positions, spread over all of it."""
        check_corpus(corpus, self.vocab)
        rows = min(texts, len(corpus.ids) // (self.steps + 1))
        if rows == 0:
            raise InputError(f"the training text has {len(corpus.ids)} tokens: expected more than {self.steps}")
        length = len(corpus.ids) // rows
        updates = min(updates, (length - 1) // self.steps)
        ids = torch.from_numpy(np.asarray(corpus.ids[: rows * length], np.int64)).view(rows, length).t()
        leaves = _leaves(self._trained())
        squares = {name: torch.zeros_like(part) for name, part in leaves.items()}
        state = self._start(rows)
        for number in range(updates):
            begin = number * self.steps
            words = ids[begin : begin + self.steps + 1].to(leaves[BIAS].device)
            with self._memory():
                loss, _, state = _read(self.model, leaves, words, state, scored=False)
                gradients = _gradients(loss, leaves)
            for name, gradient in gradients.items():
                squares[name].addcmul_(gradient, gradient)
            if meter is not None:
                meter("measuring gradients", number + 1, updates)
        roots = {name: part.div_(updates).sqrt_() for name, part in squares.items()}
        count = sum(part.numel() for part in roots.values())
        mean = sum(float(part.sum(dtype=torch.float64)) for part in roots.values()) / count
        if not 0 < mean < math.inf:
            raise ForewordError("the gradients of the training text are all zero, or no numbers")
        self.roots_ = {name: part.div_(mean) for name, part in roots.items()}
        return self

    def tune(
        self,
        held_out: Corpus,
        *,
        rates: Sequence[float] = RATES,
        decays: Sequence[float] = DECAYS,
        meter: Meter | None = None,
    ) -> Self:
        """Choose rate and decay by a held-out text: rates from the lowest on until it gets worse, then decays, then the
        rates next to the best once more.
        """
        check_held_out(held_out, self.vocab)
        tried: dict[tuple[float, float], float] = {}

        def score(rate: float, decay: float) -> float:
            """Return the mean log-probability of an id, each document adapted to as it is read."""
            if (rate, decay) not in tried:
                self.rate, self.decay = rate, decay
                tried[rate, decay] = self._score_or_worst(held_out, meter)
            return tried[rate, decay]

        decay = self.decay
        best = score(rates[0], decay)
        for rate in rates[1:]:
            if score(rate, decay) < best:
                break
            best = score(rate, decay)
        (rate, _), _ = max(tried.items(), key=lambda each: each[1])
        for decay in decays:
            score(rate, decay)
        (rate, decay), _ = max(tried.items(), key=lambda each: each[1])
        for low, high in pairwise(rates):
            if rate in (low, high):
                score(math.sqrt(low * high), decay)
        (self.rate, self.decay), _ = max(tried.items(), key=lambda each: each[1])
        return self

    def _score_or_worst(self, corpus: Corpus, meter: Meter | None) -> float:
        """Return the score, −∞ where a learning rate was too large and the weights diverged."""
        logs = self.logprobs(corpus, meter=meter)
        return float(logs.mean()) if np.isfinite(logs).all() else -math.inf

    def logprobs(self, corpus: Corpus, *, meter: Meter | None = None) -> Logs:
        """Return float64 (ids,). To have it learn through a test set, make that one document: ``corpus.joined()``."""
        check_corpus(corpus, self.vocab)
        logs = np.empty(len(corpus.ids))
        if not len(logs):
            return logs
        trained = self._trained()
        longest = int(np.diff(corpus.offsets).max())
        with self._memory():
            learner = _Learner(self.model, trained, self._speeds(trained), self._pulls(trained), self.steps, longest)
            for number, ids in enumerate(corpus.documents()):
                logs[corpus.offsets[number] : corpus.offsets[number + 1]] = learner.document(ids, meter)
            learner.close()
        return logs

    def _memory(self) -> AbstractContextManager[None]:
        """Say which setting to lower where the GPU's memory does not suffice."""
        return gpu_memory("dynamic evaluation", f"fewer steps than {self.steps} or a smaller model")

    def _trained(self) -> dict[str, Tensor]:
        """Return the weights that are learnt; the softmax's temperature is not one of them."""
        return {name: part for name, part in self.model.weights_.items() if name != TEMPERATURE}

    def _start(self, texts: int) -> tuple[Tensor, ...]:
        return self.model.network(self.vocab).start(texts, self.model.weights_[BIAS])

    def _speeds(self, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the learning rate of each weight: rate / (r + ε)."""
        if not self.roots_:
            return {name: part.new_full((1,), self.rate).expand_as(part) for name, part in like.items()}
        return {name: self.rate / (part + EPSILON) for name, part in self.roots_.items()}

    def _pulls(self, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the decay of each weight towards its trained value: min(1, decay · r)."""
        if not self.roots_:
            return {name: part.new_full((1,), min(1.0, self.decay)).expand_as(part) for name, part in like.items()}
        return {name: (self.decay * part).clamp(max=1.0) for name, part in self.roots_.items()}


class _Learner:
    """Reads documents and learns from them; every document begins with the trained weights.

    speeds, pulls: learning rate and decay of each weight. steps: words of a chunk. longest: words of a document, at
    most. On a GPU a chunk is one CUDA graph, so that everything is in tensors that stay where they are.
    """

    def __init__(
        self,
        model: NeuralLM,
        trained: Mapping[str, Tensor],
        speeds: Mapping[str, Tensor],
        pulls: Mapping[str, Tensor],
        steps: int,
        longest: int,
    ) -> None:
        self._model, self._steps, self._trained = model, steps, trained
        self._speeds, self._pulls = speeds, pulls
        self._leaves = _leaves({name: part.clone() for name, part in trained.items()})
        self._first = model.network(model.vocab).start(1, trained[BIAS])
        self._state = tuple(part.clone() for part in self._first)
        device = trained[BIAS].device
        self._words = torch.zeros(longest + 1, dtype=torch.int64, device=device)
        self._logs = torch.zeros(longest, device=device)
        self._at = torch.zeros((), dtype=torch.int64, device=device)
        self._window = torch.arange(steps + 1, device=device)
        self._step: Callable[[], None] = self._chunk if device.type == "cpu" else Graphed(self._chunk)

    def document(self, ids: Ids, meter: Meter | None) -> Logs:
        """Return the log-probabilities of a document's ids; it learns from each chunk once that is scored."""
        count, steps = len(ids), self._steps
        words = torch.from_numpy(np.append(self._model.vocab.end, np.asarray(ids, np.int64)))
        self._words[: count + 1].copy_(words)
        self._at.zero_()
        with torch.no_grad():
            for kept, first in zip(self._state, self._first, strict=True):
                kept.copy_(first)
            for name, leaf in self._leaves.items():
                leaf.copy_(self._trained[name])
        whole = count - count % steps
        for begin in range(0, whole, steps):
            self._step()
            if meter is not None:
                meter("learning while scoring", begin, count)
        if whole < count:
            rest = self._words[whole : count + 1, None]
            self._logs[whole:count] = _read(self._model, self._leaves, rest, self._state)[1]
        return self._logs[:count].double().cpu().numpy()

    def close(self) -> None:
        """Free the graph and its memory now, not when garbage is collected."""
        self._step = self._chunk

    def _chunk(self) -> None:
        words = self._words.index_select(0, self._at + self._window)[:, None]
        loss, logs, state = _read(self._model, self._leaves, words, self._state)
        gradients = _gradients(loss, self._leaves)
        self._logs.index_copy_(0, self._at + self._window[:-1], logs.to(self._logs.dtype))
        self._at += self._steps
        with torch.no_grad():
            for kept, new in zip(self._state, state, strict=True):
                kept.copy_(new)
            for name, leaf in self._leaves.items():
                leaf.addcmul_(gradients[name], self._speeds[name], value=-1).lerp_(
                    self._trained[name], self._pulls[name]
                )


def _read(
    model: NeuralLM, leaves: Mapping[str, Tensor], words: Tensor, state: tuple[Tensor, ...], *, scored: bool = True
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Return the mean loss of words (T + 1, B), log-probabilities (T,) if ``scored``, and the detached state."""
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        hidden, after = model.network(model.vocab).read(leaves, words[:-1], state)
    temperature, flat, targets = model.temperature_, hidden.flatten(0, 1), words[1:].flatten()
    if mixed(leaves):
        weights = {**leaves, TEMPERATURE: hidden.new_full((1,), temperature)}
        nats = -word_logs(weights, flat, targets)
        return nats.mean(), -nats.detach(), tuple(part.detach() for part in after)
    layer = flat / temperature, output_weight(leaves), leaves[BIAS] / temperature
    if not scored:
        return linear_cross_entropy(*layer, targets), targets, tuple(part.detach() for part in after)
    nats = torch.nn.functional.cross_entropy(torch.nn.functional.linear(*layer), targets, reduction="none")
    return nats.mean(), -nats.detach(), tuple(part.detach() for part in after)


def _leaves(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: part.detach().requires_grad_() for name, part in weights.items()}


def _gradients(loss: Tensor, leaves: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
