"""Log-probabilities of given words under a softmax, where nobody asks for gradients.

    log p(y) = h · w_y + b_y − log Σ_v exp(h · w_v + b_v)

The plain way makes all N × V scores, some rows at a time, to take one of each row. On a CPU our kernel
(``nn/kernels_log_sums.py``) makes the sum without keeping the scores, in less than half the time.
Shapes: N words to score, D units, V words in the vocabulary.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear

from foreword.native.parallel import in_threads
from foreword.nn.fused import flat, packed
from foreword.nn.kernels_log_sums import WORDS, log_sums
from foreword.nn.kernels_recurrent import BLOCK

LOGITS_AT_ONCE = 1 << 22
"""Numbers that are held for scoring: 400 words at a vocabulary of 10,000."""

SCORES_OF_A_THREAD = 1 << 21
"""As many scores are worth a thread of their own."""


def linear_word_logs(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """(N,) in float32: hidden (N, D), weight (V, D), bias (V,), targets (N,)."""
    parts = (hidden, weight, bias)
    learning = torch.is_grad_enabled() and any(part.requires_grad for part in parts)
    usual = all(part.dtype == torch.float32 and part.device.type == "cpu" for part in parts)
    if learning or not usual or not len(targets):
        return plain_word_logs(*parts, targets)
    wanted = (hidden * weight[targets]).sum(1) + bias[targets]
    # What is nearly certain may come out above one by the rounding of two sums.
    return (wanted - _log_sums(*parts)).clamp_(max=0)


def plain_word_logs(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """The same written out, a few rows of scores at a time."""
    rows = max(1, LOGITS_AT_ONCE // len(bias))
    blocks = zip(torch.split(hidden, rows), torch.split(targets, rows), strict=True)
    return torch.cat([-cross_entropy(linear(part, weight, bias), aims, reduction="none") for part, aims in blocks])


def _log_sums(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(N,)."""
    (states, units), words = hidden.shape, len(bias)
    blocks = -(-states // BLOCK)
    tops, sums = np.empty((2, blocks * BLOCK), np.float32)
    given = flat(weight), flat(bias), packed(hidden.t())

    def work(first: int, last: int) -> None:
        room = np.empty(WORDS * BLOCK, np.float32)
        log_sums(*given, first, last, states, units, words, room, tops, sums)

    in_threads(work, blocks, min(torch.get_num_threads(), blocks, states * words // SCORES_OF_A_THREAD))
    return torch.from_numpy(tops[:states] + np.log(sums[:states]))
