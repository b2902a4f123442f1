"""A small Transformer, the yardstick: every word attends directly to the words before it.

    x ← x + Attention(norm(x)),    x ← x + W₂ gelu(W₁ norm(x))        in each layer
    Attention: softmax(q·k / √d − m (i − j)) v,  over the last ``context`` words j ≤ i

Position enters by distance alone, which is subtracted with a slope m of its own for each head (ALiBi), so that a
text may be longer than anything seen in training. What is remembered is the keys and values of the last ``context − 1``
words, in training as in stepping: a chunk of text attends to the one before (as in Transformer-XL), and no
gradient goes there.

A. Vaswani et al., "Attention is all you need" (2017); Z. Dai et al., "Transformer-XL" (2019); O. Press, N. Smith and
M. Lewis, "Train short, test long: attention with linear biases" (2022); R. Xiong et al., "On layer normalization in the
Transformer architecture" (2020) for norms before the layers.
Shapes: T steps, B texts of a batch, V words, D units, h heads, C = context − 1 words remembered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from foreword.errors import MissingExtraError, SettingError

try:
    import torch
    from torch import Tensor
    from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention
except ImportError:
    raise MissingExtraError("torch", "neural", "a neural language model") from None

from foreword.checks import check_numbers
from foreword.neural.model import NeuralLM
from foreword.neural.recurrent import MODEST
from foreword.nn.dropout import Dropout, draw_mask, locked_mask
from foreword.nn.network import State, Weights, embed, initialise_words, word_tensors
from foreword.tokens.vocab import Vocab
from foreword.training.settings import Training

NORM = "norm"
WIDER = 4
"""The hidden layer of the feed-forward part has this many times the units."""


@dataclass(frozen=True, slots=True)
class BlockMasks:
    """words (V,); input and output (1, B, D); between: one (1, B, D) for each of the two halves of each layer."""

    words: Tensor
    input: Tensor
    between: tuple[Tensor, ...]
    output: Tensor


@dataclass(frozen=True, slots=True)
class TransformerNetwork:
    vocab: int
    units: int
    layers: int
    heads: int
    context: int
    tied: bool = True

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of the weights."""
        shapes = word_tensors(self.vocab, self.units, None if self.tied else self.units)
        shapes[NORM] = (self.units,)
        for layer in range(self.layers):
            shapes |= {f"layer{layer}.{name}": shape for name, shape in self._layer_tensors().items()}
        return shapes

    def _layer_tensors(self) -> dict[str, tuple[int, ...]]:
        units, wide = self.units, WIDER * self.units
        return {
            "attention_norm": (units,),
            "query_key_value": (3 * units, units),
            "attention": (units, units),
            "forward_norm": (units,),
            "up": (wide, units),
            "up_bias": (wide,),
            "down": (units, wide),
            "down_bias": (units,),
        }

    def initialise(self, weights: Weights, generator: torch.Generator) -> None:
        """Draw the weights; those of the residual branches are scaled down by the number of layers."""
        initialise_words(weights, generator)
        weights[NORM].fill_(1.0)
        for layer in range(self.layers):
            for name, shape in self._layer_tensors().items():
                weight = weights[f"layer{layer}.{name}"]
                if len(shape) == 1:
                    weight.fill_(1.0 if name.endswith("norm") else 0.0)
                    continue
                scale = (2 * self.layers) ** -0.5 if name in ("attention", "down") else 1.0
                weight.normal_(0.0, scale * shape[1] ** -0.5, generator=generator)

    def start(self, texts: int, like: Tensor) -> State:
        """Return the number of cached words (B,), then keys and values of each layer (B, C, 2 D), the newest last."""
        filled = torch.zeros(texts, dtype=torch.int64, device=like.device)
        return filled, *(like.new_zeros(texts, self.context - 1, 2 * self.units) for _ in range(self.layers))

    def masks(self, dropout: Dropout, texts: int, like: Tensor, generator: torch.Generator | None) -> BlockMasks:
        """Draw the dropout masks of a chunk."""
        return BlockMasks(
            draw_mask((self.vocab,), dropout.words, like, generator),
            locked_mask(texts, self.units, dropout.input, like, generator),
            tuple(locked_mask(texts, self.units, dropout.between, like, generator) for _ in range(2 * self.layers)),
            locked_mask(texts, self.units, dropout.output, like, generator),
        )

    def read(
        self, weights: Weights, ids: Tensor, state: State, masks: BlockMasks | None = None
    ) -> tuple[Tensor, State]:
        """Return the output at each word and the new state, ``context`` words at a time to bound the memory."""
        out = []
        for piece in torch.split(ids, self.context):
            hidden, state = self._read_piece(weights, piece, state, masks)
            out.append(hidden)
        return torch.cat(out), state

    def _read_piece(
        self, weights: Weights, ids: Tensor, state: State, masks: BlockMasks | None
    ) -> tuple[Tensor, State]:
        filled, *remembered = state
        x = embed(weights, ids, masks)
        bias = self._bias(len(ids), filled, x)
        new: list[Tensor] = []
        for layer, cache in enumerate(remembered):
            own = {name: weights[f"layer{layer}.{name}"] for name in self._layer_tensors()}
            attended, cache = self._attend(own, layer_norm(x, (self.units,), own["attention_norm"]), cache, bias)
            x = x + (attended if masks is None else attended * masks.between[2 * layer])
            y = layer_norm(x, (self.units,), own["forward_norm"])
            y = linear(gelu(linear(y, own["up"], own["up_bias"])), own["down"], own["down_bias"])
            x = x + (y if masks is None else y * masks.between[2 * layer + 1])
            new.append(cache)
        filled = (filled + len(ids)).clamp(max=self.context - 1)
        return layer_norm(x, (self.units,), weights[NORM]), (filled, *new)

    def _attend(self, own: Weights, x: Tensor, cache: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Attend from x (T, B, D) to the cache and to x itself; return the result, and the new cache."""
        projected = linear(x, own["query_key_value"]).transpose(0, 1)
        query, new = projected[..., : self.units], projected[..., self.units :]
        seen = torch.cat((cache, new), 1)
        q, k, v = (self._by_head(part) for part in (query, *seen.chunk(2, -1)))
        out = scaled_dot_product_attention(q, k, v, attn_mask=bias)
        joined = out.transpose(1, 2).flatten(2).transpose(0, 1)
        return linear(joined, own["attention"]), seen[:, seen.shape[1] - self.context + 1 :]

    def _by_head(self, x: Tensor) -> Tensor:
        """Reshape (B, n, D) to (B, h, n, D / h)."""
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)

    def _bias(self, steps: int, filled: Tensor, like: Tensor) -> Tensor:
        """Return (B, h, T, C + T): minus slope · distance where a word may be looked at, −∞ elsewhere."""
        remembered, device = self.context - 1, like.device
        place = torch.arange(remembered + steps, device=device)
        distance = place[remembered:, None] - place
        near = (distance >= 0) & (distance < self.context)
        there = place >= remembered - filled[:, None]
        heads = torch.arange(1, self.heads + 1, device=device)
        slopes = torch.exp2(-8.0 * heads / self.heads)[:, None, None]
        bias = (-slopes * distance).expand(len(filled), -1, -1, -1)
        return bias.masked_fill(~(near & there[:, None, None]), -torch.inf).to(like.dtype)


class TransformerLM(NeuralLM):
    """A Transformer that reads from left to right.

    units: model dimension. heads: attention heads; must divide the model dimension. context: words that attention
    covers, the current one included.
    tied: embedding and output layer are one tensor.
    """

    TRAINING: ClassVar[Training] = replace(MODEST, rate=1e-3, warm_up=100, clip=1.0)
    DROPOUT: ClassVar[Dropout] = Dropout(words=0.0, input=0.1, between=0.1, output=0.1, recurrent=0.0)

    def __init__(
        self,
        units: int = 192,
        layers: int = 4,
        heads: int = 4,
        context: int = 64,
        *,
        tied: bool = True,
        dropout: Dropout | None = None,
        training: Training | None = None,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        super().__init__(dropout, training, seed, device)
        self.units = units
        self.layers = layers
        self.heads = heads
        self.context = context
        self.tied = tied

    def network(self, vocab: Vocab) -> TransformerNetwork:
        """Return the network for a vocabulary."""
        check_numbers(self, "units", "layers", "heads", "context", least=1)
        if self.units % self.heads:
            raise SettingError(f"{self.units} hidden units cannot be shared evenly by {self.heads} heads")
        return TransformerNetwork(len(vocab), self.units, self.layers, self.heads, self.context, self.tied)
