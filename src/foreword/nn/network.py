"""What every neural language model shares, as functions of weights: the embedding and the softmax layer.

Weights come in as a dictionary of tensors; nothing is stored in modules, so a weight may be anything that was computed.
Shapes: T steps, a batch of B texts, V words, D units that the softmax reads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear

from foreword.nn.mixture import mixture_logs, mixture_word_logs
from foreword.nn.softmax import linear_word_logs

Weights = Mapping[str, Tensor]
State = tuple[Tensor, ...]
"""The state of a network: tensors whose first dimension is the text."""

EMBEDDING, OUTPUT, BIAS = "embedding", "output", "bias"

TEMPERATURE = "temperature"
"""Among the weights of a model that is scored at another temperature than 1: float32 (1,), by which logits are divided.
It is chosen on held-out text after training, so no network lists it among its tensors.
"""

MIXTURE = ("mixture.prior", "mixture.latent", "mixture.latent_bias")
"""Weights of a mixture of K softmaxes that reads H units, usually D: P (K, H), L (K · D, H), l (K · D,); see
``nn/mixture.py``.
"""


class Network(Protocol):
    """The interface of a network: its weights, their initialisation, its state, and how it reads."""

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of the weights, in the order of storage."""

    def initialise(self, weights: Weights, generator: torch.Generator) -> None:
        """Draw the initial weights, in place."""

    def start(self, texts: int, like: Tensor) -> State:
        """Return the state before the first word."""

    def masks(self, dropout: Any, texts: int, like: Tensor, generator: torch.Generator | None) -> Any:
        """Draw the dropout masks of a batch."""

    def read(self, weights: Weights, ids: Tensor, state: State, masks: Any = None) -> tuple[Tensor, State]:
        """Return the output at each id, and the state after the last."""


@dataclass(frozen=True, slots=True)
class WordMasks:
    """Dropout masks of any network: words (V,), units of the embedding (1, B, units), units before the softmax."""

    words: Tensor
    input: Tensor
    output: Tensor


def parameter_count(network: Network) -> int:
    """Count the weights of a network."""
    return sum(math.prod(shape) for shape in network.tensors().values())


def word_tensors(vocab: int, units: int, output: int | None) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the embedding, the words' bias, and the output layer unless ``output`` is None: tied."""
    shapes: dict[str, tuple[int, ...]] = {EMBEDDING: (vocab, units), BIAS: (vocab,)}
    return shapes if output is None else {**shapes, OUTPUT: (vocab, output)}


def mixture_tensors(softmaxes: int, read: int, units: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the weights of a mixture that reads H units, each softmax D; none for a single softmax."""
    wide = softmaxes * units
    shapes = ((softmaxes, read), (wide, read), (wide,))
    return dict(zip(MIXTURE, shapes, strict=True)) if softmaxes > 1 else {}


def initialise_words(weights: Weights, generator: torch.Generator) -> None:
    """Draw the embedding and the output layer from ±0.1, and set the words' bias to zero."""
    for name in (EMBEDDING, OUTPUT):
        if name in weights:
            weights[name].uniform_(-0.1, 0.1, generator=generator)
    weights[BIAS].zero_()


def embed(weights: Weights, ids: Tensor, masks: Any = None) -> Tensor:
    """Look up (T, B) ids as (T, B, units). With masks, in training, words and units are dropped, and on a CPU the
    gradient is sparse: it holds only the rows of words that were read.
    """
    x = embedding(ids, weights[EMBEDDING], sparse=masks is not None and ids.device.type == "cpu")
    if masks is None:
        return x
    words = masks.words[ids] if masks.words.dim() == 1 else masks.words.t().gather(0, ids)
    dropped: Tensor = x * words.unsqueeze(-1) * masks.input
    return dropped


def output_weight(weights: Weights) -> Tensor:
    """Return the output layer's weight (V, D): the embedding itself where the two are tied."""
    return weights[OUTPUT] if OUTPUT in weights else weights[EMBEDDING]


def tempered(weights: Weights, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """Return what a softmax reads and the words' bias, both divided by the model's temperature."""
    if TEMPERATURE not in weights:
        return hidden, weights[BIAS]
    return hidden / weights[TEMPERATURE], weights[BIAS] / weights[TEMPERATURE]


def mixed(weights: Weights) -> bool:
    """Return whether the output is a mixture of softmaxes."""
    return MIXTURE[0] in weights


def read_units(weights: Weights) -> int:
    """Return how many units the softmax, or the mixture of softmaxes, reads."""
    return (weights[MIXTURE[1]] if mixed(weights) else output_weight(weights)).shape[1]


def mixture_of(weights: Weights, hidden: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Map (N, H) to each softmax's input (N, K, D), and the logs of their shares (N, K) in float32. mask (N, K · D)."""
    prior, latent, bias = (weights[name] for name in MIXTURE)
    z = torch.tanh(linear(hidden, latent, bias))
    z = z if mask is None else z * mask
    each = z.view(len(hidden), len(prior), len(bias) // len(prior))
    return each, torch.log_softmax(linear(hidden, prior), 1, dtype=torch.float32)


def next_logs(weights: Weights, hidden: Tensor) -> Tensor:
    """Map (n, D) to log-probabilities (n, V), in float64 so that a row sums to one to the precision of float32."""
    if mixed(weights):
        z, log_shares = mixture_of(weights, hidden)
        log_shares = log_shares.double()
        exact_shares = log_shares - torch.logsumexp(log_shares, 1, keepdim=True)
        z, bias = tempered(weights, z)
        return mixture_logs(z, exact_shares, output_weight(weights), bias)
    hidden, bias = tempered(weights, hidden)
    return torch.log_softmax(linear(hidden, output_weight(weights), bias).double(), -1)


def word_logs(weights: Weights, hidden: Tensor, ids: Tensor) -> Tensor:
    """Return log-probabilities of given words: hidden (…, D) and ids (…) to float32 (…)."""
    if mixed(weights):
        z, log_shares = mixture_of(weights, hidden.flatten(0, -2))
        z, bias = tempered(weights, z)
        return mixture_word_logs(z, log_shares, output_weight(weights), bias, ids.reshape(-1)).view_as(ids)
    hidden, bias = tempered(weights, hidden)
    flat_logs = linear_word_logs(hidden.flatten(0, -2), output_weight(weights), bias, ids.reshape(-1))
    return flat_logs.view_as(ids)
