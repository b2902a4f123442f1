"""An LSTM over sentences of many lengths on a CPU, without a step for padding.

Sentences lie side by side, the longest first, so that at every step those that still have a word are the first few.
Shapes: T steps, B sentences, N words in all, D distinct words, H units.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from foreword.arrays import Floats, Longs
from foreword.native.parallel import in_threads
from foreword.nn.fused import flat, packed
from foreword.nn.kernels_lstm_read import read_few, read_together
from foreword.nn.kernels_step import lstm_gates

TOGETHER, MANY = 4, 24
"""Sentences, and words in all, from which on it pays to lay the recurrent weights out for products of many states."""

TEXTS_OF_A_THREAD = 16
"""With fewer each would read the weights for little."""


def only_read(x: Tensor, h: Tensor, c: Tensor, weights: Sequence[Tensor]) -> bool:
    """Whether ``read_words`` takes it: float32 on the CPU, at least one step of one sentence, and nobody asks for
    gradients. x: (…, inputs).
    """
    parts = (x, h, c, *weights)
    if torch.is_grad_enabled() and any(part.requires_grad for part in parts):
        return False
    usual = all(part.dtype == torch.float32 and part.device.type == "cpu" for part in parts)
    return usual and x.numel() > 0 and h.shape == c.shape == (len(h), weights[1].shape[1]) and len(h) > 0


def read_words(
    vectors: Tensor, words: Tensor, h: Tensor, c: Tensor, weights: Sequence[Tensor], lengths: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """One layer over words (T, B), each a row of vectors (D, inputs): every state (T, B, H), the last state and cell.

    weights: as in ``layers.py``. lengths (B,): of the sentences, the longest first. Behind a sentence's end its states
    are zero, and what comes back as its last is that after its last word.
    """
    w_x, w_h, b_x, b_h = weights
    (steps, texts), units = words.shape, h.shape[1]
    table = torch.addmm(b_x + b_h, vectors, w_x.t())
    out = h.new_empty(steps, texts, units) if lengths is None else h.new_zeros(steps, texts, units)
    h, c = h.clone(memory_format=torch.contiguous_format), c.clone(memory_format=torch.contiguous_format)
    places, counts = flat_longs(words), _counts(steps, texts, lengths)
    if len(places) and not 0 <= places.min() <= places.max() < len(table):
        raise IndexError(f"a word is not among the {len(table)} that were given")
    given, held = (flat_of(table), places, counts), (flat_of(h), flat_of(c), flat_of(out))
    if texts < TOGETHER or steps * texts < MANY:
        read_few(*given, flat(w_h), np.zeros(4 * units, np.float32), _room(texts, units), *held, texts, units)
        return out, h, c
    turned = packed(w_h.t())

    def work(first: int, last: int) -> None:
        read_together(*given, turned, _room(last - first, units), *held, texts, first, last, units)

    in_threads(work, texts, min(torch.get_num_threads(), texts // TEXTS_OF_A_THREAD))
    return out, h, c


def _room(texts: int, units: int) -> Floats:
    """For the gates of one step."""
    return np.empty(4 * texts * units, np.float32)


def _counts(steps: int, texts: int, lengths: Tensor | None) -> Longs:
    """(T,): how many sentences have a word at each step."""
    if lengths is None:
        return np.full(steps, texts, np.int64)
    sizes = lengths.numpy()
    if sizes.shape != (texts,) or (np.diff(sizes) > 0).any():
        raise ValueError(f"expected {texts} lengths, the longest first")
    counts: Longs = np.searchsorted(-sizes, -np.arange(steps), side="left").astype(np.int64)
    return counts


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


def flat_of(tensor: Tensor) -> Floats:
    """The tensor's own memory, which lies in a row."""
    flat: Floats = tensor.view(-1).numpy()
    return flat


def flat_longs(tensor: Tensor) -> Longs:
    flat: Longs = tensor.contiguous().view(-1).numpy()
    return flat
