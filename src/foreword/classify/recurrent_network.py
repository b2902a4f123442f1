"""The network of a recurrent classifier: the states of its layers are pooled to one vector, read by a small network.

    last       h_T                                  the last state, which may have forgotten the beginning
    mean, max  1/T Σ h_t,    max_t h_t              all states, without their order
    attention  Σ a_t h_t,    a = softmax_t(u · tanh(W h_t + b))
    all        last, mean and max, concatenated

    scores = W₂ tanh(W₁ (pooled − centre) · scale + b₁) + b₂

The centre and the scale are the mean and the inverse deviation of the pooled training texts as the language model reads
them, so that an untrained head gets standardised inputs; they are 0 and 1 without a language model. The layer between
is a tanh, since at the rates of the first stage units of a ReLU die. Padding comes after a text and is left out of the
pooling.

J. Howard and S. Ruder, "Universal language model fine-tuning for text classification" (2018) for "all"; Z. Yang et al.,
"Hierarchical attention networks for document classification" (2016) for attention.
Shapes: T words, B texts, D units of the last layer, P of the pooled vector, K classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from foreword.arrays import Array, Floats, Longs
from foreword.classify.kernels import last_sum_max
from foreword.nn.dropout import draw_mask
from foreword.nn.fused import flat
from foreword.nn.network import BIAS, EMBEDDING, OUTPUT, State, Weights
from foreword.nn.recurrent_layer import layer_names
from foreword.nn.recurrent_network import Masks, RecurrentNetwork
from foreword.protocols import Embedder, TextTokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.training.batches import padded_ids, padded_vectors, similar_lengths
from foreword.training.model import exact

FIXED = ("centre", "scale", "context_centre", "context_scale")
"""Weights that are measured once and not trained."""

WORDS_AT_ONCE = 1 << 15
"""Words that are read at once when classifying, in texts of similar length."""

CONTEXT = "context"

POOLINGS = ("last", "mean", "max", "attention", "all")


@dataclass(frozen=True, slots=True)
class ClassifierNetwork:
    """A recurrent encoder, a pooling and a head.

    encoder: what reads the words. pooling: one of POOLINGS. units: of the layer between. classes: K. context: n, the
    units of an embedder; less their mean in the training texts and over √n times their deviation there, they are
    multiplied by a matrix and added to the words' own vectors.
    """

    encoder: RecurrentNetwork
    pooling: str
    units: int
    classes: int
    context: int = 0

    @property
    def read_units(self) -> int:
        """The units of the last layer, D."""
        return self.encoder.layer_sizes()[-1][1]

    @property
    def pooled_units(self) -> int:
        """The units of the pooled vector, P."""
        return self.read_units * (3 if self.pooling == "all" else 1)

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of the weights: the encoder's without its softmax, then the head's."""
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
        """Return the names of weights that share a rate: the head, then layers from the last to the first, then words.

        A deeper layer knows more of language in general and less of the task.
        """
        names = list(self.tensors())
        layers = [[name for name in names if name.startswith(f"layer{at}.")] for at in range(self.encoder.layers)]
        below = [[EMBEDDING], *layers]
        head = [name for name in self.tensors() if name not in FIXED and not any(name in group for group in below)]
        return [head, *reversed(below)]

    def initialise_head(self, weights: Weights, generator: torch.Generator) -> None:
        """Draw the head's weights."""
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
        """Read words (T, B): the states (T, B, D). Gradients go back ``reach`` words from the end of the batch; what
        comes before is read without them. context (T, B, n). lengths (B,): of texts, the longest first, which are read
        whole, without their padding.
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
        """Pool the states: (B, P), in float32."""
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
        """Return the scores of classes, (B, K)."""
        x = (pooled - weights["centre"]) * weights["scale"]
        for name in ("head", "classes"):
            if dropout:
                x = x * draw_mask(tuple(x.shape), dropout, x, generator)
            x = linear(x, weights[name], weights[f"{name}_bias"])
            x = torch.tanh(x) if name == "head" else x
        return x


def _all_at_once(states: Tensor, lengths: Tensor) -> Tensor:
    """Return last, mean and max by a kernel that reads each state once."""
    steps, texts, units = states.shape
    sizes = lengths.numpy()
    if sizes.shape != (texts,) or (texts and not 1 <= sizes.min() <= sizes.max() <= steps):
        raise ValueError(f"expected {texts} lengths from 1 to {steps}")
    out = states.new_empty(texts, 3 * units)
    last_sum_max(flat(states), sizes, texts, units, out.view(-1).numpy())
    out[:, units : 2 * units] /= lengths[:, None]
    return out


def attention(weights: Weights, states: Tensor, there: Tensor) -> Tensor:
    """Return the weight of each word, (T, B, 1): zero for padding, and summing to one over a text."""
    keys = torch.tanh(linear(states.float(), weights["attention"].float(), weights["attention_bias"].float()))
    scores = (keys @ weights["attention_context"].float())[:, :, None]
    return torch.softmax(scores.masked_fill(~there, -torch.inf), 0)


@dataclass(frozen=True, slots=True)
class TextReader:
    """The inputs of a classifier's network from texts.

    words: read at most, the first and the last half of them where a text has more. from_end: read texts backwards.
    """

    tokenizer: TextTokenizer
    embedder: Embedder | None
    words: int
    from_end: bool

    def ids(self, texts: list[str]) -> list[Longs]:
        """Return the ids of each text between two ends, as a language model reads it."""
        corpus = Corpus.from_texts(texts, self.tokenizer)
        end = self.tokenizer.vocab.end
        if not self.from_end and int(np.diff(corpus.offsets).max(initial=0)) <= self.words:  # as most are
            joined = np.insert(corpus.ids.astype(np.int64), corpus.offsets[:-1], end)
            bounds = (corpus.offsets + np.arange(len(corpus.offsets))).tolist()
            return [joined[first:last] for first, last in pairwise(bounds)]
        read = (self._in_order(np.asarray(document[:-1], np.int64)) for document in corpus.documents())
        return [np.concatenate(([end], inner, [end])) for inner in read]

    def context(self, texts: list[str], weights: Weights) -> list[Floats] | None:
        """Return the embedder's standardised vectors of each text's words (length, n), zero at its two ends."""
        if self.embedder is None or not isinstance(self.tokenizer, WordTokenizer):
            return None
        centre, scale = (weights[f"context_{name}"].cpu().numpy() for name in ("centre", "scale"))
        found = self.embedder.embed([self.tokenizer.pieces(text) for text in texts])
        standardised = ((np.asarray(each, np.float32) - centre) * scale for each in found)
        return [np.pad(self._in_order(each), ((1, 1), (0, 0))) for each in standardised]

    def _in_order(self, inner: Array) -> Array:
        """Return one row per word, the middle of a long text left out, in the order of reading."""
        most = self.words
        if len(inner) > most:
            inner = np.concatenate((inner[: most - most // 2], inner[len(inner) - most // 2 :]))
        return inner[::-1] if self.from_end else inner


def read_texts(
    network: ClassifierNetwork, reader: TextReader, weights: Weights, texts: list[str]
) -> Iterator[tuple[list[int], Tensor]]:
    """Yield texts of similar length: their indices, and their pooled states (B, P)."""
    ids, device = reader.ids(texts), weights[EMBEDDING].device
    for group in similar_lengths([len(each) for each in ids], WORDS_AT_ONCE):
        with exact():
            words, lengths = padded_ids([ids[text] for text in group], device)
            around = reader.context([texts[text] for text in group], weights)
            context = None if around is None else padded_vectors(around, device)
            states = network.read(weights, words, len(words), context=context, lengths=lengths)
            yield group, network.pooled(weights, states, lengths)


def pooled_texts(network: ClassifierNetwork, reader: TextReader, weights: Weights, texts: list[str]) -> Floats:
    """Return (texts, P): what the head reads, one vector per text."""
    vectors = np.zeros((len(texts), network.pooled_units), np.float32)
    for group, pooled in read_texts(network, reader, weights, texts):
        vectors[group] = pooled.cpu().numpy()
    return vectors
