"""An LSTM over sentences of many lengths on a CPU, without a step for padding.

Sentences lie side by side, the longest first, so that at every step those that still have a word are the first few.
Shapes: N words in all, D distinct words, H units.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foreword.kernels.recurrent_step import lstm_gates


def read_lstm(
    table: Tensor, words: Tensor | None, counts: list[int], recurrent: Tensor, out: Tensor, *, from_end: bool
) -> None:
    """One layer in one direction: ``out`` (N, H) becomes its states, those of the first words of all sentences first.

    table: (D, 4H) and words: (N,) rows of it, or (N, 4H) in order and None; counts: sentences at each step.
    """
    most, units = counts[0], out.shape[1]
    h, c = torch.zeros(most, units), torch.zeros(most, units)
    from_x, from_h = torch.empty(most, 4 * units), torch.empty(most, 4 * units)
    states, cells, looked_up, moved = (flat_of(each) for each in (h, c, from_x, from_h))
    ends = np.cumsum(counts).tolist()
    turned = recurrent.t()
    steps = range(len(counts))
    for step in reversed(steps) if from_end else steps:
        count, end = counts[step], ends[step]
        begin = end - count
        if words is None:
            looked_up = flat_of(table[begin:end])
        else:
            torch.index_select(table, 0, words[begin:end], out=from_x[:count])
        torch.mm(h[:count], turned, out=from_h[:count])
        lstm_gates(looked_up, moved, states, cells, count, units)
        out[begin:end] = h[:count]


def flat_of(tensor: Tensor) -> NDArray[np.float32]:
    """The tensor's own memory, which lies in a row."""
    flat: NDArray[np.float32] = tensor.view(-1).numpy()
    return flat
