"""From the states of a recurrent network to scores of classes: one vector for a text, and a small network on it.

    last       h_T                                  all that was read, as far as it is remembered
    mean, max  1/T Σ h_t,    max_t h_t              nothing is forgotten, the order is
    attention  Σ a_t h_t,    a = softmax_t(u · tanh(W h_t + b))
    all        last, mean and max, one after the other

    scores = W₂ tanh(W₁ (pooled − centre) · scale + b₁) + b₂

The centre and the scale are those of the training texts as the language model reads them, so that a head that knows
nothing is given numbers of about one size; they are 0 and 1 where there is no language model. The layer between is a
tanh, since at the rates of the first stage units of a ReLU die. What pads a text comes behind its end and has no part
in any of them.

J. Howard and S. Ruder, "Universal language model fine-tuning for text classification" (2018) for "all"; Z. Yang et al.,
"Hierarchical attention networks for document classification" (2016) for attention.
Shapes: T words, B texts, D units of the last layer, P of the pooled vector, K classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear

from foreword.classify.kernels_pooling import last_sum_max
from foreword.nn.dropout import draw_mask
from foreword.nn.fused import flat
from foreword.nn.network import BIAS, EMBEDDING, OUTPUT, State, Weights
from foreword.nn.recurrent_network import Masks, RecurrentNetwork, layer_names

FIXED = ("centre", "scale", "context_centre", "context_scale")
"""Weights that are measured once and not trained."""

CONTEXT = "context"

POOLINGS = ("last", "mean", "max", "attention", "all")


@dataclass(frozen=True, slots=True)
class ClassifierNetwork:
    """encoder: what reads the words. pooling: one of POOLINGS. units: of the layer between. classes: K. context: n, the
    numbers that an embedder says of each word where it stands; less their mean in the training texts and over √n times
    their deviation there, they are multiplied by a matrix and added to the words' own vectors.
    """

    encoder: RecurrentNetwork
    pooling: str
    units: int
    classes: int
    context: int = 0

    @property
    def read_units(self) -> int:
        """D."""
        return self.encoder.layer_sizes()[-1][1]

    @property
    def pooled_units(self) -> int:
        """P."""
        return self.read_units * (3 if self.pooling == "all" else 1)

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """The encoder's without its softmax, then the head's."""
        read = self.read_units
        shapes = {name: shape for name, shape in self.encoder.tensors().items() if name not in (BIAS, OUTPUT)}
        shapes |= {"centre": (self.pooled_units,), "scale": (self.pooled_units,)}
        if self.context:
            shapes |= {"context_centre": (self.context,), "context_scale": (self.context,)}
            shapes |= {CONTEXT: (self.encoder.embedding, self.context)}
        if self.pooling == "attention":
            shapes |= {"attention": (read, read), "attention_bias": (read,), "attention_context": (read,)}
        shapes |= {"head": (self.units, self.pooled_units), "head_bias": (self.units,)}
        return shapes | {"classes": (self.classes, self.units), "classes_bias": (self.classes,)}

    def groups(self) -> list[list[str]]:
        """Names of weights that are trained at one rate: the head, then layers from the last to the first, then words.

        A layer that lies deeper knows more of language at large and less of the task.
        """
        names = set(self.tensors())
        layers = [[name for name in layer_names(layer) if name in names] for layer in range(self.encoder.layers)]
        below = [[EMBEDDING], *layers]
        head = [name for name in self.tensors() if name not in FIXED and not any(name in group for group in below)]
        return [head, *reversed(below)]

    def initialise_head(self, weights: Weights, generator: torch.Generator) -> None:
        for name in FIXED:
            if name in weights:
                weights[name].fill_(1.0 if name.endswith("scale") else 0.0)
        for name in self.groups()[0]:
            part = weights[name]
            reach = (6 / sum(part.shape)) ** 0.5 if part.dim() == 2 else part.shape[0] ** -0.5
            part.uniform_(-reach, reach, generator=generator)
            if name.endswith("bias"):
                part.zero_()

    def read(
        self,
        weights: Weights,
        ids: Tensor,
        reach: int,
        masks: Masks | None = None,
        context: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """(T, B) words to the states (T, B, D). Gradients go back ``reach`` words from the end of the batch; what comes
        before is read as well, and remembered. context (T, B, n). lengths (B,): of texts, the longest first, which are
        read whole, and nothing behind their ends.
        """
        more = None if context is None else linear(context.to(weights[CONTEXT].dtype), weights[CONTEXT])
        like = weights[layer_names(0)[0]]
        state: State = self.encoder.start(ids.shape[1], like)
        first = max(0, len(ids) - reach)
        if not first:
            return self.encoder.read(weights, ids, state, masks, more, lengths)[0]
        far, near = (None, None) if more is None else (more[:first], more[first:])
        with torch.no_grad():
            before, state = self.encoder.read(weights, ids[:first], state, masks, far)
        return torch.cat((before, self.encoder.read(weights, ids[first:], state, masks, near)[0]))

    def pooled(self, weights: Weights, states: Tensor, lengths: Tensor) -> Tensor:
        """(B, P), in float32."""
        learning = torch.is_grad_enabled() and states.requires_grad
        if self.pooling == "all" and states.device.type == "cpu" and states.dtype == torch.float32 and not learning:
            return _all_at_once(states, lengths)
        there = (torch.arange(len(states), device=states.device)[:, None] < lengths)[:, :, None]
        found = []
        if self.pooling in ("last", "all"):
            last = (lengths - 1)[None, :, None].expand(1, -1, states.shape[2])
            found.append(states.gather(0, last)[0].float())
        if self.pooling in ("mean", "all"):
            found.append((states * there).sum(0, dtype=torch.float32) / lengths[:, None])
        if self.pooling in ("max", "all"):
            found.append(states.masked_fill(~there, -torch.inf).amax(0).float())
        if self.pooling == "attention":
            found.append((attention(weights, states, there) * states.float()).sum(0))
        return torch.cat(found, 1)

    def scores(
        self, weights: Weights, pooled: Tensor, dropout: float = 0.0, generator: torch.Generator | None = None
    ) -> Tensor:
        """(B, K)."""
        x = (pooled - weights["centre"]) * weights["scale"]
        for name in ("head", "classes"):
            if dropout:
                x = x * draw_mask(tuple(x.shape), dropout, x, generator)
            x = linear(x, weights[name], weights[f"{name}_bias"])
            x = torch.tanh(x) if name == "head" else x
        return x


def _all_at_once(states: Tensor, lengths: Tensor) -> Tensor:
    """Last, mean and max by a kernel that looks at each state once."""
    steps, texts, units = states.shape
    sizes = lengths.numpy()
    if sizes.shape != (texts,) or (texts and not 1 <= sizes.min() <= sizes.max() <= steps):
        raise ValueError(f"expected {texts} lengths from 1 to {steps}")
    out = states.new_empty(texts, 3 * units)
    last_sum_max(flat(states), sizes, texts, units, out.view(-1).numpy())
    out[:, units : 2 * units] /= lengths[:, None]
    return out


def attention(weights: Weights, states: Tensor, there: Tensor) -> Tensor:
    """(T, B, 1): how much of each word is taken; what is not there has none, and a text's sum to one."""
    keys = torch.tanh(linear(states.float(), weights["attention"].float(), weights["attention_bias"].float()))
    scores = (keys @ weights["attention_context"].float())[:, :, None]
    return torch.softmax(scores.masked_fill(~there, -torch.inf), 0)
