"""Stacked recurrent layers between an embedding and a softmax, for any cell.

DropConnect masks a weight before it is passed on; ``nn/layers.py`` and ``nn/gated.py`` do the rest, and on a GPU
``nn/mogrifier_gpu.py`` and ``nn/gated_gpu.py`` for what cuDNN does not have: rounds, a capped gate, a dropped state,
and the cells of ``nn/gated.py``. Both run several layers of one size as a wavefront. Where the weights of an LSTM stay
on the chip, ``nn/persistent_gpu.py`` runs it layer after layer.
``nn/recurrent_layer.py`` has one layer alone. Shapes: T steps, a batch of B texts, V words, D units of the embedding, H
units of a layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import linear

from foreword.nn.dropout import Dropout, draw_mask
from foreword.nn.fused import only_read, read_words
from foreword.nn.gated_gpu import gated_stack
from foreword.nn.gpu import warn_once
from foreword.nn.layers import mogrifier_lstm
from foreword.nn.mogrifier_gpu import Stack, kernels_apply, run_stack
from foreword.nn.network import (
    BIAS,
    EMBEDDING,
    MIXTURE,
    OUTPUT,
    State,
    Weights,
    embed,
    initialise_words,
    mixture_tensors,
    word_tensors,
)
from foreword.nn.persistent_gpu import runs_persistent
from foreword.nn.recurrent_layer import (
    GATES,
    initialise_cell,
    layer_names,
    layer_shapes,
    layer_weights,
    run_layer,
    runs_gated,
    states_of,
)
from foreword.nn.rounds import GatingRounds


@dataclass(frozen=True, slots=True)
class Masks:
    """The dropout masks of one segment of text. words (V,) or (B, V), input (1, B, D), between[l] (1, B, H), output
    (1, B, units), recurrent[l] (gates · H, H), latent (1, B, softmaxes · D) where there is a mixture of softmaxes,
    state[l] (B, H). The masks of units are (T, B, …) where every step has its own.
    """

    words: Tensor
    input: Tensor
    between: tuple[Tensor, ...]
    output: Tensor
    recurrent: tuple[Tensor, ...]
    latent: Tensor | None = None
    state: tuple[Tensor, ...] = ()


def latent_mask(masks: Masks, steps: int) -> Tensor | None:
    """Return the mask of a mixture's units as (steps · B, softmaxes · D)."""
    return None if masks.latent is None else masks.latent.expand(steps, -1, -1).flatten(0, 1)


@dataclass(frozen=True, slots=True)
class Variant:
    """What G. Melis et al. changed about the LSTM of a language model.

    rank: of the rounds' matrices, 0 for full ones. round_bias: rounds have a bias. capped: the input gate is at most
    1 − f. summed: the softmax reads the sum of all layers' outputs instead of the last one's. truncated: weights begin
    as truncated normals of variance 1 / fan-in. projected: all layers have H units; one matrix maps the D units of a
    word's vector to those, and another maps the output to the D that the softmax reads; a mixture of softmaxes does so
    itself.
    """

    rank: int = 0
    round_bias: bool = False
    capped: bool = False
    summed: bool = False
    truncated: bool = False
    projected: bool = False


PLAIN = Variant()

UP, DOWN = "projection.input", "projection.output"
"""Weights of a projected network: (H, D) from a word's vector to the first layer, (D, H) from layers to softmax."""


@dataclass(frozen=True, slots=True)
class RecurrentNetwork:
    """A stack of recurrent layers. vocab: V. embedding: D. hidden: H. tied: the embedding is the output weight too.

    last: units of the last layer; D where it is tied. forget_bias: initial bias of an LSTM's forget gates; None to draw
    it as the others. mogrify: rounds in which an LSTM's input and state gate each other, see ``nn/layers.py``.
    softmaxes: of the output, see ``nn/mixture.py``. variant: what else is different.
    """

    vocab: int
    embedding: int
    hidden: int
    layers: int
    tied: bool = True
    cell: str = "lstm"
    last: int | None = None
    forget_bias: float | None = None
    mogrify: int = 0
    softmaxes: int = 1
    variant: Variant = PLAIN

    def layer_sizes(self) -> list[tuple[int, int]]:
        """Return the inputs and units of each layer: D→H, H→H, …, H→last; H→H where words are projected."""
        if self.variant.projected:
            return [(self.hidden, self.hidden)] * self.layers
        last = self.embedding if self.last is None else self.last
        return list(pairwise([self.embedding, *[self.hidden] * (self.layers - 1), last]))

    def output_units(self) -> int:
        """Return how many units the softmax, or the mixture of softmaxes, reads."""
        return self.embedding if self._maps_down() else self.layer_sizes()[-1][1]

    def _maps_down(self) -> bool:
        """Return whether a matrix of its own maps the layers' output to the units of a word's vector."""
        return self.variant.projected and self.softmaxes == 1

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of all weights."""
        shapes = word_tensors(self.vocab, self.embedding, None if self.tied else self._word_units())
        shapes |= {UP: (self.hidden, self.embedding)} if self.variant.projected else {}
        shapes |= {DOWN: (self.embedding, self.hidden)} if self._maps_down() else {}
        shapes |= self._mixture_shapes()
        for layer, (read, written) in enumerate(self.layer_sizes()):
            parts = layer_shapes(self.cell, read, written, f"layer{layer}.")
            extra = {name: parts.pop(name) for name in list(parts) if name not in layer_names(layer)}
            shapes |= parts | self.rounds().shapes(layer, read, written) | extra
        return shapes

    def _word_units(self) -> int:
        """Return how many units a word has in the output layer."""
        return self.embedding if self.variant.projected else self.layer_sizes()[-1][1]

    def _mixture_shapes(self) -> dict[str, tuple[int, ...]]:
        return mixture_tensors(self.softmaxes, self.output_units(), self._word_units())

    def rounds(self) -> GatingRounds:
        """Return the rounds of every layer."""
        return GatingRounds(self.mogrify, self.variant.rank, self.variant.round_bias)

    def initialise(self, weights: Weights, generator: torch.Generator) -> None:
        """Draw recurrent weights from ±1 / √units, and words' as ``initialise_words`` does."""
        if self.variant.truncated:
            self._truncated(weights, generator)
            return
        initialise_words(weights, generator)
        for layer, (read, units) in enumerate(self.layer_sizes()):
            for name in (*layer_names(layer), *self.rounds().shapes(layer, read, units)):
                if name not in weights:
                    continue
                weights[name].uniform_(-(units**-0.5), units**-0.5, generator=generator)
            initialise_cell(self.cell, weights, f"layer{layer}", self.forget_bias)
        reach = self.output_units() ** -0.5
        for name in self._mixture_shapes():
            weights[name].uniform_(-reach, reach, generator=generator)
        for name in (UP, DOWN):
            if name in weights:
                reach = weights[name].shape[1] ** -0.5
                weights[name].uniform_(-reach, reach, generator=generator)

    def _truncated(self, weights: Weights, generator: torch.Generator) -> None:
        """Draw truncated normals of variance 1 / fan-in; two thin matrices share the deviation of their product."""
        weights[BIAS].zero_()
        prior, latent, latent_bias = MIXTURE
        for name in (EMBEDDING, OUTPUT, UP, DOWN, prior, latent):
            if name in weights:
                _draw_truncated(weights[name], weights[name].shape[1] ** -0.5, generator)
        if latent_bias in weights:
            weights[latent_bias].zero_()
        for layer, (read, units) in enumerate(self.layer_sizes()):
            w_x, w_h, b_x, b_h = layer_names(layer)
            for name in (w_x, w_h):
                _draw_truncated(weights[name], (read + units) ** -0.5, generator)
            _draw_truncated(weights[b_x], units**-0.5, generator)
            weights[b_x][units : 2 * units] += self.forget_bias or 0.0
            weights[b_h].zero_()
            for name, shape in self.rounds().shapes(layer, read, units).items():
                if name.endswith("_bias"):
                    weights[name].zero_()
                else:
                    fan_in = shape[1] * (self.variant.rank or shape[1])
                    _draw_truncated(weights[name], fan_in**-0.25, generator)

    def start(self, texts: int, like: Tensor) -> State:
        """Return zeros for the first layer's h, and c if it has one, …, then the second's, …; each (B, units).

        h has the precision of ``like``; all others have at least float32, as within the kernels, so that a sum over
        many words is not rounded at the end of every window.
        """
        wide = torch.promote_types(like.dtype, torch.float32)
        return tuple(
            like.new_zeros(texts, units, dtype=wide if number else like.dtype)
            for _, units in self.layer_sizes()
            for number in range(states_of(self.cell))
        )

    def masks(
        self,
        dropout: Dropout,
        texts: int,
        like: Tensor,
        generator: torch.Generator | None,
        *,
        steps: int = 1,
        per_text: bool = False,
    ) -> Masks:
        """Draw the masks of one segment of text. steps: its length, where every step has its own masks.

        per_text: every text has masks of its own, as samples of a Monte Carlo average need them. Words are then drawn
        for each text, and weights, which the texts of a batch share, are not dropped.
        """
        sizes = self.layer_sizes()
        none = self.cell == "min-gru" or dropout.recurrent == 0 or per_text
        recurrent = [] if none else [units for _, units in sizes]
        long = steps if dropout.fresh else 1

        def of_units(units: int, share: float) -> Tensor:
            return draw_mask((long, texts, units), share, like, generator)

        latent = self.softmaxes * self._word_units()
        return Masks(
            draw_mask((texts, self.vocab) if per_text else (self.vocab,), dropout.words, like, generator),
            of_units(self.embedding, dropout.input),
            tuple(of_units(units, dropout.between) for _, units in sizes[:-1]),
            of_units(self.output_units(), dropout.output),
            tuple(draw_mask((GATES[self.cell] * u, u), dropout.recurrent, like, generator) for u in recurrent),
            None if self.softmaxes == 1 else of_units(latent, dropout.between),
            tuple(draw_mask((texts, units), dropout.state, like, generator) for _, units in sizes)
            if dropout.state
            else (),
        )

    def read(
        self,
        weights: Weights,
        ids: Tensor,
        state: State,
        masks: Masks | None = None,
        more: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        """Read words (T, B): what the softmax reads at each step (T, B, units), before dropout, and the state.

        more (T, B, D): added to the words' vectors. lengths (B,): of the texts, the longest first, where the output
        behind their ends does not matter.
        """
        out, state = self._read(weights, ids, state, masks, more, lengths)
        return linear(out, weights[DOWN]) if self._maps_down() else out, state

    def _read(
        self,
        weights: Weights,
        ids: Tensor,
        state: State,
        masks: Masks | None,
        more: Tensor | None,
        lengths: Tensor | None,
    ) -> tuple[Tensor, State]:
        """Read words; return the layers' output at each step."""
        first: list[Tensor] = []
        if masks is None and more is None and self._reads_words(weights, ids, state):
            of_layer = [weights[name] for name in layer_names(0)]
            distinct, rows = torch.unique(ids, return_inverse=True)
            x, *first = read_words(self._input(weights, distinct), rows, state[0], state[1], of_layer, lengths)
        else:
            x = self._input(weights, ids, masks, more)
        if self._by_kernels(x, masks):
            return self._read_by_kernels(weights, x, state, masks)
        if self._stacks_gated(x, masks):
            of_layers = [self._weights_of(weights, layer, masks) for layer in range(self.layers)]
            between = None if masks is None else torch.stack(masks.between)
            out, *after = gated_stack(self.cell, x, state, of_layers, between)
            return out, tuple(after)
        new, outputs = first, [x] if first else []
        for layer in range(1 if first else 0, self.layers):
            count = states_of(self.cell)
            parts = state[count * layer : count * (layer + 1)]
            of_layer = self._weights_of(weights, layer, masks)
            if self._is_variant(masks):
                rounds, biases = self.rounds().of_layer(weights, layer, thin=ids.numel() <= self.hidden)
                kept = masks.state[layer] if masks is not None and masks.state else None
                capped = self.variant.capped
                h, c = parts
                x, *after = mogrifier_lstm(x, h, c, of_layer, rounds, biases, capped=capped, state_mask=kept)
            else:
                x, *after = run_layer(self.cell, x, parts, of_layer, lengths)
            new += after
            outputs.append(x)
            if masks is not None and layer < self.layers - 1:
                x = x * masks.between[layer]
        return sum(outputs[1:], outputs[0]) if self.variant.summed else x, tuple(new)

    def _input(
        self, weights: Weights, ids: Tensor, masks: Masks | None = None, more: Tensor | None = None
    ) -> Tensor:  # fmt: skip
        """Return what the first layer reads."""
        x = embed(weights, ids, masks)
        x = x if more is None else x + more
        return linear(x, weights[UP]) if self.variant.projected else x

    def _weights_of(self, weights: Weights, layer: int, masks: Masks | None) -> list[Tensor]:
        """Return a layer's weights, those between states dropped where there is a mask for them."""
        of_layer = layer_weights(self.cell, weights, f"layer{layer}")
        if masks is not None and masks.recurrent:
            of_layer[1] = of_layer[1] * masks.recurrent[layer]
        return of_layer

    def _is_variant(self, masks: Masks | None) -> bool:
        """Return whether this is an LSTM that neither cuDNN nor our CPU kernels have."""
        return bool(self.mogrify or self.variant.capped or (masks is not None and masks.state))

    def _by_kernels(self, x: Tensor, masks: Masks | None) -> bool:
        """Return whether the stack runs by ``nn/mogrifier_gpu.py``: an LSTM with layers of one size on a GPU.

        Layers whose weights stay on the chip are faster one by one. Plain layers only if there are several, in
        bfloat16: cuDNN does not run those as a wavefront. Variants with layers of several sizes run step by step, and
        a warning says so, once.
        """
        sizes = {size for sizes in self.layer_sizes() for size in sizes}
        variant = self._is_variant(masks)
        wanted = variant or (x.dtype == torch.bfloat16 and self.cell == "lstm" and self.layers > 1)
        if not wanted or x.numel() == 0 or not kernels_apply(x) or self._stays_on_chip(x):
            return False
        if len(sizes) > 1 and variant:
            listed = " and ".join(map(str, sorted(sizes)))
            warn_once(f"layers of {listed} units run step by step, many times slower: set embedding and hidden alike")
        return len(sizes) == 1

    def _stays_on_chip(self, x: Tensor) -> bool:
        """Return whether all layers run by ``nn/persistent_gpu.py``: an LSTM without rounds, of sizes that fit."""
        plain = self.cell == "lstm" and not self.mogrify
        return plain and all(runs_persistent(x, units) for _, units in self.layer_sizes())

    def _stacks_gated(self, x: Tensor, masks: Masks | None) -> bool:
        """Return whether the layers run as a wavefront by ``nn/gated_gpu.py``: several of one width on a GPU."""
        same = self.layers > 1 and len({units for _, units in self.layer_sizes()}) == 1
        plain = not self.variant.summed and not self._is_variant(masks)
        return same and plain and runs_gated(self.cell, x) and x.numel() > 0 and kernels_apply(x)

    def _read_by_kernels(
        self, weights: Weights, x: Tensor, state: State, masks: Masks | None
    ) -> tuple[Tensor, State]:  # fmt: skip
        layers = range(self.layers)
        w_x, w_h, b_x, b_h = map(
            torch.stack, zip(*(self._weights_of(weights, layer, masks) for layer in layers), strict=True)
        )
        rounds, biases = self.rounds().stacked(weights, self.layers)
        kept = torch.stack(masks.state) if masks is not None and masks.state else None
        between = torch.stack(masks.between) if masks is not None and masks.between else None
        stack = Stack(w_x, w_h, b_x + b_h, rounds, biases, kept, between, self.variant.capped)
        out, h, c = run_stack(x, torch.stack(state[0::2]), torch.stack(state[1::2]), stack)
        after = tuple(part for layer in layers for part in (h[layer], c[layer]))
        return out.sum(0) if self.variant.summed else out[-1], after

    def _reads_words(self, weights: Weights, ids: Tensor, state: State) -> bool:
        """Return whether the first layer multiplies each distinct word once, and looks it up afterwards."""
        of_layer = [weights[name] for name in layer_names(0) if name in weights]
        plain = self.cell == "lstm" and not self._is_variant(None) and ids.numel() > 0
        return plain and only_read(weights[EMBEDDING], state[0], state[1], of_layer)


def _draw_truncated(weight: Tensor, deviation: float, generator: torch.Generator) -> None:
    """Draw a normal, cut off at two standard deviations, whose own standard deviation is ``deviation``."""
    wide = deviation / TRUNCATED
    torch.nn.init.trunc_normal_(weight, 0.0, wide, -2 * wide, 2 * wide, generator=generator)


TRUNCATED = 0.87962566
"""The standard deviation of a standard normal that is cut off at −2 and 2."""
