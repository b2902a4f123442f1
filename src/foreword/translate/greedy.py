"""Greedy translation by LSTMs on a CPU: what ``search`` with a width of 1 finds, more than twice as fast.

Nothing is made twice. Products of a word's vector are made when the word is first met, and looked up after that; those
of the source are made once a sentence, the readout's part of them too: W (Σ_j a_j h_j) = Σ_j a_j (W h_j). Sentences
that have ended leave the batch. Sources lie the longest first, and no padding is read.

Shapes: B sources, S ids of the longest, V words, E units of a word, H of the decoder, K of the encoder.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foreword.kernels.recurrent_step import lstm_gates
from foreword.lm.neural_network import Weights
from foreword.nn.reading import flat_of, read_lstm
from foreword.translate.network import PARTS, TranslationNetwork

ENDED = 0.125
"""When this share of a batch has ended, it is made smaller."""


class Products:
    """W_x x + b of the words of a vocabulary, each made when it is first asked for."""

    def __init__(self, table: Tensor, weight: Tensor, bias: Tensor) -> None:
        self._table, self._weight, self._bias = table, weight, bias
        self.rows = torch.empty(len(table), len(weight))  # memory is only taken up by rows that are written
        self._made = np.zeros(len(table), bool)

    def make(self, ids: NDArray[np.int64]) -> None:
        """Have those of these words in ``rows``."""
        lacking = ids[~self._made[ids]]
        if len(lacking):
            new = torch.from_numpy(np.unique(lacking))
            self.rows[new] = torch.addmm(self._bias, self._table[new], self._weight.t())
            self._made[lacking] = True


class Greedy:
    """A network of LSTMs that says the likeliest word at each step."""

    def __init__(self, network: TranslationNetwork, weights: Weights) -> None:
        self.network, self.weights = network, weights
        scale = math.sqrt(network.words)
        target = weights["target"] * scale
        source = target if network.shared else weights["source"] * scale
        self.sources = [self._products(f"encoder0.{way}", source) for way in network.directions]
        self.targets = self._products("decoder0", target)
        context = network.encoder if network.attention != "none" else 0
        self.of_context, self.of_state = weights["readout"][:, :context], weights["readout"][:, context:].contiguous()
        self.table = network.table(weights).t()

    def _products(self, name: str, table: Tensor) -> Products:
        w_x, _, b_x, b_h = self._held(name)
        return Products(table, w_x[:, : table.shape[1]], b_x + b_h)  # what is fed comes behind the word

    def _held(self, name: str) -> list[Tensor]:
        return [self.weights[f"{name}.{part}"] for part in PARTS]

    def translate(self, sources: Sequence[NDArray[np.int64]], end: int, max_tokens: int) -> list[list[int]]:
        """The words said for each source, without the end. sources: the longest first, each with its end."""
        values, mask, ends = self._encode(sources)
        begin = torch.tanh(torch.addmm(self.weights["bridge_bias"], ends, self.weights["bridge"].t()))
        return _Decoding(self, values, mask, begin, end).run(max_tokens)

    def _encode(self, sources: Sequence[NDArray[np.int64]]) -> tuple[Tensor, Tensor, Tensor]:
        """Values (B, S, K), zero behind a source's end; the mask (B, S); the last states of both ways (B, K)."""
        network, lengths = self.network, torch.tensor([len(each) for each in sources])
        there = torch.arange(int(lengths[0]))[:, None] < lengths
        places = torch.zeros(there.shape, dtype=torch.int64)
        for column, each in enumerate(sources):
            places[: len(each), column] = torch.from_numpy(each)
        words, counts = places[there], there.sum(1).tolist()
        x, half = words.new_empty(0).float(), network.encoder // len(network.directions)
        for layer in range(network.layers):
            out = torch.empty(len(words), network.encoder)
            for number, way in enumerate(network.directions):
                w_x, recurrent, b_x, b_h = self._held(f"encoder{layer}.{way}")
                part = out[:, number * half : (number + 1) * half]
                if layer:
                    products, looked_up = torch.addmm(b_x + b_h, x, w_x.t()), None
                else:
                    self.sources[number].make(words.numpy())
                    products, looked_up = self.sources[number].rows, words
                read_lstm(products, looked_up, counts, recurrent, part, from_end=way == "behind")
            x = out
        values = torch.zeros(*there.shape, network.encoder)
        values[there] = x
        ends = values[0].clone()  # the second way ends at the first word
        ends[:, :half] = values[lengths - 1, torch.arange(len(lengths)), :half]
        return values.transpose(0, 1).contiguous(), there.t().contiguous(), ends


class _Decoding:
    """One batch. rows: which sources are still being translated."""

    def __init__(self, model: Greedy, values: Tensor, mask: Tensor, begin: Tensor, end: int) -> None:
        network, weights = model.network, model.weights
        self.model, self.end = model, end
        self.rows = np.arange(len(mask))
        self.said: list[list[int]] = [[] for _ in self.rows]
        self.words = np.full(len(mask), end)
        parts = [part.contiguous() for part in begin.chunk(2 * network.layers, 1)]
        self.states, self.cells = parts[::2], parts[1::2]
        self.fed = torch.zeros(len(mask), network.words) if network.feed else None
        self.keys = self.values = self.hidden = torch.empty(0)
        if network.attention != "none":
            keys = values @ weights["key"].t() if network.attention in ("additive", "general") else values
            self.keys = keys / math.sqrt(network.units) if network.attention == "scaled" else keys
            self.values = values @ model.of_context.t()
            self.hidden = torch.zeros(mask.shape).masked_fill_(~mask, -torch.inf)

    def run(self, max_tokens: int) -> list[list[int]]:
        for _ in range(max_tokens):
            self._say(self._step())
            if len(self.rows) == 0:
                break
        return self.said

    def _step(self) -> NDArray[np.int64]:
        """Read a word each, and the likeliest that follows it."""
        model, weights = self.model, self.model.weights
        model.targets.make(self.words)
        from_x = model.targets.rows.index_select(0, torch.from_numpy(self.words))
        if self.fed is not None:
            from_x.addmm_(self.fed, weights["decoder0.input"][:, model.network.words :].t())
        for layer, (h, c) in enumerate(zip(self.states, self.cells, strict=True)):
            w_x, w_h, b_x, b_h = model._held(f"decoder{layer}")
            if layer:
                from_x = torch.addmm(b_x + b_h, self.states[layer - 1], w_x.t())
            from_h = torch.mm(h, w_h.t())
            lstm_gates(flat_of(from_x), flat_of(from_h), flat_of(h), flat_of(c), *h.shape)
        readout = self._readout(self.states[-1])
        if self.fed is not None:
            self.fed = readout
        return torch.addmm(weights["bias"], readout, model.table).argmax(1).numpy()

    def _readout(self, h: Tensor) -> Tensor:
        model, weights = self.model, self.model.weights
        readout = torch.addmm(weights["readout_bias"], h, model.of_state.t())
        if model.network.attention == "none":
            return readout.tanh_()
        if model.network.attention == "additive":
            asked = torch.mm(h, weights["query"].t())
            scores = torch.tanh(self.keys + asked[:, None]) @ weights["score"]
        else:
            scores = torch.bmm(self.keys, h[:, :, None])[:, :, 0]
        looked = torch.softmax(scores.add_(self.hidden), 1)
        return readout.add_(torch.bmm(looked[:, None], self.values)[:, 0]).tanh_()

    def _say(self, words: NDArray[np.int64]) -> None:
        ended = (words == self.end) | (self.rows < 0)
        for row, word, over in zip(self.rows.tolist(), words.tolist(), ended.tolist(), strict=True):
            if not over:
                self.said[row].append(word)
        self.words = words
        self.rows[ended] = -1
        if ended.sum() >= max(1, ENDED * len(ended)):
            self._keep(np.flatnonzero(~ended))

    def _keep(self, rows: NDArray[np.int64]) -> None:
        kept = torch.from_numpy(rows)
        self.rows, self.words = self.rows[rows], self.words[rows]
        self.states = [part.index_select(0, kept) for part in self.states]
        self.cells = [part.index_select(0, kept) for part in self.cells]
        if self.fed is not None:
            self.fed = self.fed.index_select(0, kept)
        if self.model.network.attention != "none":
            self.keys, self.values, self.hidden = (
                part.index_select(0, kept) for part in (self.keys, self.values, self.hidden)
            )
