"""LSTM sizes that cuDNN likes.

In half precision cuDNN keeps the weights of a layer on the chip for the whole sequence, if its inputs and units are
multiples of 128 and at most 1024, and its texts a multiple of 8; other sizes take several times as long. Layers too
large for that still want multiples of 64, for the matrix units. So a layer of 650 units is run as one of 768, and one
of 1150 as 1152: the units that are added have no weights, hold zero at every step, and get no gradient.

Shapes as in ``layers.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

SMALL, LARGE, TEXTS, LARGEST = 128, 64, 8, 1024


def is_worth_padding(x: Tensor, h: Tensor) -> bool:
    """Whether the layer would be quick with other sizes and is not with these."""
    if not (x.is_cuda and x.dtype == torch.float16):
        return False
    multiple = _multiple(x.shape[2], h.shape[1])
    return h.shape[1] % multiple > 0 or x.shape[2] % multiple > 0 or x.shape[1] % TEXTS > 0


def padded(x: Tensor, h: Tensor, c: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    """The arguments of an LSTM, with texts, inputs and units that are zero."""
    units, inputs, gates = h.shape[1], x.shape[2], 4
    multiple = _multiple(inputs, units)
    more, more_inputs, more_texts = -units % multiple, -inputs % multiple, -len(h) % TEXTS
    w_x, w_h, b_x, b_h = weights
    tables = [
        pad(weight.view(gates, units, -1), (0, columns, 0, more)).flatten(0, 1)
        for weight, columns in ((w_x, more_inputs), (w_h, more))
    ]
    biases = [pad(bias.view(gates, units), (0, more)).flatten() for bias in (b_x, b_h)]
    h, c = (pad(part, (0, more, 0, more_texts)) for part in (h, c))
    return pad(x, (0, more_inputs, 0, more_texts)), h, c, tables + biases


def _multiple(inputs: int, units: int) -> int:
    return SMALL if max(inputs, units) <= LARGEST else LARGE
