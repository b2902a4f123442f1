"""An encoder, a decoder and attention between them, as functions of weights.

    h_j = [RNN→(e_1 … e_j); RNN←(e_S … e_j)]                    the source, read both ways
    s_0 = tanh(W h_last + b)                                    what the decoder begins with; without attention, all
    s_t = RNN(s_(t−1), d_(t−1))                                 d: the word before; with feeding [d_(t−1); r_(t−1)]
    a_t = softmax_j score(s_t, h_j),    c_t = Σ_j a_tj h_j
    r_t = tanh(W_r [c_t; s_t] + b_r),   p(d_t | d_<t, e) = softmax(D r_t + b)

RNN is any cell of ``nn/recurrent_layer.py``, the same for both. s_0 has an h and, where the cell has one, a c; an
sLSTM also carries n = 1 and m = 0, so that its first c is a value of weight e⁰ among those it averages.

With ``one_network`` there is no encoder: s_0 = 0, and one RNN reads e_1 … e_S, then ``<start>``, then its own words.

Without feeding, and shown the truth, all target words are read by one call, and attention is two matrix products for
all of them: that is what makes it quick on a GPU. With feeding each step waits for the one before.

I. Sutskever, O. Vinyals and Q. Le, "Sequence to sequence learning with neural networks" (2014); D. Bahdanau, K. Cho and
Y. Bengio (2015) and M.-T. Luong, H. Pham and C. Manning (2015), see ``nn/attention.py``; O. Press and L. Wolf, "Using
the output embedding to improve language models" (2017) for D being the table of words.
Shapes: B sentences, S source and T target ids, V target words, E units of a word, H of the decoder, K of the encoder.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear, log_softmax

from foreword.errors import SettingError
from foreword.nn.attention import Attended, attend, dot_scores, scaled_scores
from foreword.nn.dropout import NO_DROPOUT, Dropout, draw_mask
from foreword.nn.layers import reversing, turned
from foreword.nn.network import Weights
from foreword.nn.recurrent_layer import (
    GATES,
    initialise_cell,
    layer_shapes,
    layer_weights,
    run_from_zeros,
    run_layer,
    states_of,
)

ATTENTIONS = ("additive", "dot", "general", "scaled", "none")

State = tuple[Tensor, ...]
"""What the decoder remembers: the states of each layer's cell, h first, (B, H); with feeding the last readout, (B, E).
"""


class EncoderMemory(NamedTuple):
    """What the encoder leaves: values (B, S, K), what scores are made with, (B, S, …), made once for all steps; mask
    (B, S), True at words; state, what the decoder begins with.
    """

    values: Tensor
    keys: Tensor
    mask: Tensor
    state: State

    def take(self, rows: Tensor) -> EncoderMemory:
        """Return the memory of some sources, in this order."""
        values = self.values.index_select(0, rows)
        keys = values if self.keys is self.values else self.keys.index_select(0, rows)
        state = tuple(part.index_select(0, rows) for part in self.state)
        return EncoderMemory(values, keys, self.mask.index_select(0, rows), state)


class Read(NamedTuple):
    """readout: (T, B, E); state: after the last step; weights: (B, T, S), None without attention."""

    readout: Tensor
    state: State
    weights: Tensor | None


@dataclass(frozen=True, slots=True)
class Drop:
    """Dropout of units and of whole words, drawn again at every position."""

    shares: Dropout = NO_DROPOUT
    generator: torch.Generator | None = None

    def input(self, x: Tensor) -> Tensor:
        """Drop units of word vectors (…, E), and whole words."""
        x = self._masked(x, self.shares.input)
        words = self.shares.words
        return x * draw_mask((*x.shape[:-1], 1), words, x, self.generator) if words else x

    def between(self, x: Tensor) -> Tensor:
        """Drop units between layers, and of what attention reads."""
        return self._masked(x, self.shares.between)

    def output(self, x: Tensor) -> Tensor:
        """Drop units before the softmax."""
        return self._masked(x, self.shares.output)

    def _masked(self, x: Tensor, share: float) -> Tensor:
        return x * draw_mask(tuple(x.shape), share, x, self.generator) if share else x


NOTHING_DROPPED = Drop()


@dataclass(frozen=True, slots=True)
class TranslationNetwork:
    """source, target: words of the vocabularies, ``shared`` where they are one. words: E; units: H; encoder: K, half of
    it for each way to read. cell: of all layers. tied: whether the output layer is the table of target words.
    one_network: the decoder reads the source as well.
    """

    source: int
    target: int
    shared: bool
    words: int
    units: int
    encoder: int
    layers: int
    cell: str
    both_ways: bool
    attention: str
    feed: bool
    tied: bool
    one_network: bool = False

    def __post_init__(self) -> None:
        if self.attention in ("dot", "scaled") and self.encoder != self.units:
            raise SettingError(
                f"attention={self.attention!r} takes an encoder and a decoder of equal size, not {self.encoder} and "
                f"{self.units} units: general or additive attention takes any"
            )

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions in which the source is read."""
        return ("ahead", "behind") if self.both_ways else ("ahead",)

    @property
    def states(self) -> int:
        """The number of tensors of a layer's state."""
        return states_of(self.cell)

    @property
    def bridged(self) -> int:
        """The number of tensors of a layer's state that the bridge sets: h, and c if there is one."""
        return min(self.states, 2)

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of the weights."""
        shapes: dict[str, tuple[int, ...]] = {"target": (self.target, self.words)}
        if not self.shared:
            shapes["source"] = (self.source, self.words)
        if not self.tied:
            shapes["output"] = (self.target, self.words)
        shapes["bias"] = (self.target,)
        each = self.encoder // len(self.directions)
        for layer in range(self.layers):
            for way in self.directions:
                inputs = self.encoder if layer else self.words
                if not self.one_network:
                    shapes |= layer_shapes(self.cell, inputs, each, f"encoder{layer}.{way}.")
            inputs = self.units if layer else self.words * (2 if self.feed else 1)
            shapes |= layer_shapes(self.cell, inputs, self.units, f"decoder{layer}.")
        if not self.one_network:
            begin = self.layers * self.bridged * self.units
            shapes |= {"bridge": (begin, self.encoder), "bridge_bias": (begin,)}
        if self.attention == "additive":
            shapes |= {"query": (self.units, self.units), "key": (self.units, self.encoder), "score": (self.units,)}
        if self.attention == "general":
            shapes["key"] = (self.units, self.encoder)
        seen = self.units + (self.encoder if self.attention != "none" else 0)
        return shapes | {"readout": (self.words, seen), "readout_bias": (self.words,)}

    def initialise(self, weights: Weights, generator: torch.Generator) -> None:
        """Draw tables so that a word's vector has the length 1, matrices by their inputs and outputs (Glorot); forget
        gates begin open, the rest zero.
        """
        for name, part in weights.items():
            if name in ("source", "target", "output"):
                reach = math.sqrt(3 / part.shape[1])
            elif name == "score":
                reach = math.sqrt(3 / len(part))
            elif part.dim() > 1:
                rows = len(part) // GATES[self.cell] if "." in name else len(part)
                reach = math.sqrt(6 / (part.shape[1] + rows))
            else:
                reach = 0.0
            part.uniform_(-reach, reach, generator=generator)
        for name in [name for name in weights if name.endswith(".input_bias")]:
            initialise_cell(self.cell, weights, name.removesuffix(".input_bias"), forget_bias=1.0)

    def table(self, weights: Weights) -> Tensor:
        """Return the output layer, (V, E)."""
        return weights["target" if self.tied else "output"]

    def target_logprobs(self, weights: Weights, read: Read, places: Tensor, targets: Tensor) -> Tensor:
        """Return (N,): the log-probability of each target after the decoder's output at its place, 1024 at a time."""
        table, hidden = self.table(weights), read.readout.flatten(0, 1).index_select(0, places)
        groups = zip(torch.split(hidden, 1024), torch.split(targets, 1024), strict=True)
        logs = [log_softmax(linear(h, table, weights["bias"]).float(), 1).gather(1, t[:, None]) for h, t in groups]
        return torch.cat(logs)[:, 0]

    def _vectors(self, table: Tensor, ids: Tensor) -> Tensor:
        """Return the vectors of words: a row of a table has the length 1, as an output layer should, and is scaled by
        √E to suit the layer that reads it (A. Vaswani et al., 2017).
        """
        return embedding(ids, table) * math.sqrt(self.words)

    # The source

    def encode(self, weights: Weights, source: Tensor, lengths: Tensor, drop: Drop = NOTHING_DROPPED) -> EncoderMemory:
        """Encode source (S, B), lengths (B,), at least 1. The result does not depend on the rest of the batch."""
        x = self._vectors(weights["target" if self.shared else "source"], source)
        mask = torch.arange(len(source), device=source.device) < lengths[:, None]
        if self.one_network:
            values = x.new_zeros(x.shape[1], len(x), 0)
            return EncoderMemory(values, values, mask, self._state_after(weights, x, lengths - 1, drop))
        back = reversing(lengths, len(source))
        for layer in range(self.layers):
            x = drop.between(x) if layer else drop.input(x)
            out = [run_from_zeros(self.cell, weights, f"encoder{layer}.ahead", x)]
            if self.both_ways:
                out.append(turned(run_from_zeros(self.cell, weights, f"encoder{layer}.behind", turned(x, back)), back))
            x = torch.cat(out, 2)
        half = out[0].shape[2]
        last = (lengths - 1)[None, :, None].expand(1, -1, half)
        ends = [out[0].gather(0, last)[0], *(each[0] for each in out[1:])]  # the second way ends at the first word
        state = self._start(torch.tanh(linear(torch.cat(ends, 1), weights["bridge"], weights["bridge_bias"])))
        if self.feed:
            state = (*state, x.new_zeros(x.shape[1], self.words))
        values = drop.between(x).transpose(0, 1)
        return EncoderMemory(values, self._keys(weights, values), mask, tuple(part.contiguous() for part in state))

    def _start(self, begin: Tensor) -> State:
        """Return the states of the decoder's layers from the output of the bridge, (B, layers · bridged · H)."""
        parts = begin.chunk(self.layers * self.bridged, 1)
        if self.cell != "slstm":
            return parts
        n, m = torch.ones_like(parts[0]), torch.zeros_like(parts[0])
        return tuple(part for h, c in zip(parts[::2], parts[1::2], strict=True) for part in (h, c, n, m))

    def _state_after(self, weights: Weights, x: Tensor, lengths: Tensor, drop: Drop) -> State:
        """Return the decoder's state after the first words of each source, (S, B, E), one step at a time: a source that
        has ended keeps its state. Its ``</s>`` is left to the decoder, which reads it as ``<start>``.
        """
        state: State = (x.new_zeros(x.shape[1], self.units),) * (self.layers * self.states)
        for step, words in enumerate(drop.input(x)):
            reading = (step < lengths)[:, None]
            new = self._layers(weights, words[None], state, drop)[1]
            state = tuple(torch.where(reading, after, before) for after, before in zip(new, state, strict=True))
        return state

    def _keys(self, weights: Weights, values: Tensor) -> Tensor:
        """Return the products with the source, which are the same at every step of the target."""
        return linear(values, weights["key"]) if self.attention in ("additive", "general") else values

    # The target

    def decode(
        self, weights: Weights, memory: EncoderMemory, inputs: Tensor, state: State, drop: Drop = NOTHING_DROPPED
    ) -> Read:
        """Read target words (T, B); the readout at t is of the word that follows the t-th."""
        if self.feed:
            return self.decode_by_steps(weights, memory, lambda step, _: inputs[step], len(inputs), state, drop)
        x = drop.input(self._vectors(weights["target"], inputs))
        x, state = self._layers(weights, x, state, drop)
        return self._readout(weights, memory, x, state)

    def decode_by_steps(
        self,
        weights: Weights,
        memory: EncoderMemory,
        word: Callable[[int, Tensor | None], Tensor],
        steps: int,
        state: State,
        drop: Drop = NOTHING_DROPPED,
    ) -> Read:
        """Decode one word (B,) at a time: ``word(t, readout)`` returns it, from the last readout, (B, E)."""
        outs: list[Tensor] = []
        looks: list[Tensor] = []
        for step in range(steps):
            x = drop.input(self._vectors(weights["target"], word(step, outs[-1] if outs else None)))[None]
            read = self._step(weights, memory, x, state, drop)
            state = read.state
            outs.append(read.readout[0])
            if read.weights is not None:
                looks.append(read.weights)
        return Read(torch.stack(outs), state, torch.cat(looks, 1) if looks else None)

    def step(self, weights: Weights, memory: EncoderMemory, ids: Tensor, state: State) -> Read:
        """Read one word each: (B,), or (B · W,) where every source has W texts."""
        return self._step(weights, memory, self._vectors(weights["target"], ids)[None], state, NOTHING_DROPPED)

    def _step(self, weights: Weights, memory: EncoderMemory, x: Tensor, state: State, drop: Drop) -> Read:
        if self.feed:
            state, fed = state[:-1], state[-1]
            x = torch.cat((x, fed[None]), 2)
        x, state = self._layers(weights, x, state, drop)
        read = self._readout(weights, memory, x, state)
        return read._replace(state=(*state, read.readout[0])) if self.feed else read

    def _layers(self, weights: Weights, x: Tensor, state: State, drop: Drop) -> tuple[Tensor, State]:
        new: list[Tensor] = []
        for layer in range(self.layers):
            x = drop.between(x) if layer else x
            before = state[layer * self.states : (layer + 1) * self.states]
            x, *after = run_layer(self.cell, x, before, layer_weights(self.cell, weights, f"decoder{layer}"))
            new += after
        return x, tuple(new)

    def _readout(self, weights: Weights, memory: EncoderMemory, x: Tensor, state: State) -> Read:
        seen, looked = x, None
        if self.attention != "none":
            beams = x.shape[1] != len(memory.values)  # several texts of one step look at the same source
            queries = x[0].view(len(memory.values), -1, x.shape[2]) if beams else x.transpose(0, 1)
            context, looked = self.look(weights, memory, queries)
            seen = torch.cat((context.flatten(0, 1)[None] if beams else context.transpose(0, 1), x), 2)
        return Read(torch.tanh(linear(seen, weights["readout"], weights["readout_bias"])), state, looked)

    def look(self, weights: Weights, memory: EncoderMemory, queries: Tensor) -> Attended:
        """Return the attention of queries (B, T, H): weights over the source, and the contexts."""
        if self.attention == "additive":
            asked = linear(queries, weights["query"])[:, :, None]
            scores = torch.tanh(asked + memory.keys[:, None]) @ weights["score"]
        elif self.attention == "scaled":
            scores = scaled_scores(queries, memory.keys)
        else:
            scores = dot_scores(queries, memory.keys)
        return attend(scores, memory.values, memory.mask)
