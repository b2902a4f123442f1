"""Sampled softmax: the sum over the vocabulary is estimated from a few words drawn at random.

    loss = log Z − s_y,    Z = Σ_v exp(s_v)  ≈  exp(s_y) + 1/S Σ_(v drawn, v ≠ y) exp(s_v) / q(v)

with S words drawn from a noise distribution q, with replacement, the same ones for all rows. Dividing by q corrects for
how often a word is drawn, and makes the estimate of Z unbiased. Its logarithm is a little too small on average, less so
the more words are drawn. For training only: a probability needs the whole sum.

Y. Bengio and J.-S. Senécal, "Adaptive importance sampling to accelerate training of a neural probabilistic language
model" (2008); S. Jean et al., "On using very large target vocabulary for neural machine translation" (2015).
Shapes: N words to predict, D units, V words, S samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding

from foreword.errors import InputError, SettingError


@dataclass(frozen=True, slots=True)
class Noise:
    """A noise distribution q. logs: log q (V,), float32. cumulative: Σ q up to each word (V,), float64, to draw by."""

    logs: Tensor
    cumulative: Tensor

    def draw(self, samples: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw ids (S,)."""
        points = torch.rand(samples, generator=generator, dtype=torch.float64, device=self.logs.device)
        return torch.searchsorted(self.cumulative, points, right=True).clamp_(max=len(self.logs) - 1)


def log_uniform(vocab: int, device: torch.device | str = "cpu") -> Noise:
    """Return q(v) = log((v + 2) / (v + 1)) / log(V + 1): near Zipf's law for words in order of falling frequency."""
    if vocab < 1:
        raise SettingError(f"a vocabulary of {vocab} words: expected at least 1")
    ranks = torch.arange(1, vocab + 2, dtype=torch.float64, device=device).log()
    return _noise(ranks.diff() / math.log(vocab + 1))


def unigram(counts: Tensor, power: float = 1.0) -> Noise:
    """Return q(v) ∝ count(v)^power; counts (V,), of which zeros count as a half."""
    if counts.dim() != 1 or not len(counts) or not bool((counts >= 0).all()):
        raise InputError("the counts of a noise distribution: expected one number of 0 or more for each word")
    return _noise(counts.double().clamp(min=0.5) ** power)


def sampled_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    noise: Noise,
    samples: int,
    *,
    generator: torch.Generator | None = None,
    sparse: bool = False,
) -> Tensor:
    """Return the mean loss; hidden (N, D), weight (V, D), bias (V,), targets (N,).

    sparse: the weight's gradient is a sparse tensor of the rows it touches.
    """
    if samples < 1:
        raise SettingError(f"samples is {samples!r}: expected at least 1")
    drawn = noise.draw(samples, generator)
    own = (hidden * embedding(targets, weight, sparse=sparse)).sum(-1) + bias[targets]
    scores = torch.addmm(bias[drawn], hidden, embedding(drawn, weight, sparse=sparse).t())
    scores = scores - (noise.logs[drawn] + math.log(samples))
    scores = scores.masked_fill(drawn == targets[:, None], -torch.inf)  # the word itself is counted exactly
    return (torch.cat((own[:, None], scores), 1).logsumexp(1) - own).mean()


def _noise(shares: Tensor) -> Noise:
    shares = shares / shares.sum()
    return Noise(shares.log().float(), shares.cumsum(0))
