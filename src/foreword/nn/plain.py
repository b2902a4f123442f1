"""The plain versions of what the other files compute fast: to be read, and tested equal.

``cells.py`` has the recurrent cells, with their gradients written out. Shapes as in the files of the fast versions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from foreword.arrays import Logs


def linear_cross_entropy(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Return the mean loss of a softmax layer."""
    return cross_entropy(linear(hidden, weight, bias).float(), targets)


def linear_word_logs(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Return log-probabilities of given words (N,)."""
    return -cross_entropy(linear(hidden, weight, bias), targets, reduction="none")


def mixture_cross_entropy(z: Tensor, log_shares: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Return the mean loss of a mixture of softmaxes."""
    logs = torch.log_softmax(linear(z, weight, bias).to(log_shares.dtype), 2) + log_shares[:, :, None]
    return -torch.logsumexp(logs, 1).gather(1, targets[:, None]).mean()


def scan(keep: Tensor, add: Tensor, h: Tensor) -> Tensor:
    """Return ``h_t = keep_t · h_(t−1) + add_t`` for all t, one step after the other."""
    out = []
    for k, a in zip(keep, add, strict=True):
        h = k * h + a
        out.append(h)
    return torch.stack(out)


def viterbi(emissions: Logs, start: Logs, moves: Logs, end: Logs) -> tuple[list[int], float]:
    """Return the best tags of one sentence, emissions (T, K), and their score; of equals the lowest."""
    if len(emissions) == 0:
        return [], 0.0
    best = start + emissions[0]
    back = []
    for emission in emissions[1:]:
        through = best[:, None] + moves
        back.append(through.argmax(0))
        best = through.max(0) + emission
    best = best + end
    tags = [int(best.argmax())]
    for origins in reversed(back):
        tags.append(int(origins[tags[-1]]))
    return tags[::-1], float(best.max())


def ctc_log_likelihood(logs: Logs, labels: Sequence[int], blank: int) -> float:
    """Return log p(labels) of one text under log-probabilities (T, V)."""
    symbols = [blank]
    for label in labels:
        symbols += [label, blank]
    alpha = np.full(len(symbols), -np.inf)
    alpha[0] = 0  # before the first frame nothing is read
    for row in logs:
        before, alpha = alpha, np.full(len(symbols), -np.inf)
        for at, symbol in enumerate(symbols):
            origins = [before[at]]
            if at > 0:
                origins.append(before[at - 1])
            if at > 1 and symbol not in (blank, symbols[at - 2]):
                origins.append(before[at - 2])
            alpha[at] = np.logaddexp.reduce(origins) + row[symbol]
    return float(np.logaddexp.reduce(alpha[-2:]))
