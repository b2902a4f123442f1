"""Reading sentences on a CPU, nothing of it twice: what ``TaggerNetwork.emissions`` gives, several times as fast.

Sentences lie side by side, the longest first, so that at every step those that still have a word are the first few: a
step reads exactly them, and no padding. From the end it is the same backwards, and a sentence joins, with a state of
zero, at its own last word. Products with the input are made once for each distinct word, in the first layer, and only
looked up at its places; those with the state are one matrix product a step for all sentences, and the gates a kernel.

Shapes: B sentences, T words of the longest, N words in all, D distinct words, H units in each direction, K tags.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear

from foreword.nn.fused import read_lstm
from foreword.nn.network import Weights
from foreword.tag.bilstm_network import PARTS, TaggerNetwork


class Reader:
    """What a network makes of sentences of these words. vectors: (D, inputs), as ``word_vectors`` gives them."""

    def __init__(self, network: TaggerNetwork, weights: Weights, vectors: Tensor) -> None:
        self._network, self._weights = network, weights
        self._tables = [self._products(0, way, vectors) for way in network.directions]

    def emissions(self, places: Tensor, lengths: Tensor) -> Tensor:
        """(B, T, K), zero behind a sentence's end. places: (T, B) of words; lengths: (B,), at least 1, falling."""
        network, weights = self._network, self._weights
        there = torch.arange(len(places))[:, None] < lengths
        counts = there.sum(1).tolist()
        words, x = places[there], places.new_empty(0).float()
        for layer in range(network.layers):
            out = torch.empty(len(words), network.hidden)
            for number, way in enumerate(network.directions):
                table = self._products(layer, way, x) if layer else self._tables[number]
                part = out[:, number * network.units : (number + 1) * network.units]
                recurrent = weights[f"layer{layer}.{way}.recurrent"]
                read_lstm(table, None if layer else words, counts, recurrent, part, from_end=way == "behind")
            x = out
        scores = torch.zeros(*places.shape, network.tags)
        scores[there] = linear(x, weights["output"], weights["bias"])
        return scores.transpose(0, 1)

    def _products(self, layer: int, way: str, x: Tensor) -> Tensor:
        """(…, 4H): with both biases."""
        w_x, _, b_x, b_h = (self._weights[f"layer{layer}.{way}.{part}"] for part in PARTS)
        return torch.addmm(b_x + b_h, x, w_x.t())
