"""Bengio's neural probabilistic language model: an n-gram model that knows which words are alike.

    x = [E[w_(t−1)], …, E[w_(t−n+1)]],    h = tanh(d + H x),    p(w_t = v | …) = softmax(b + U h + W x)_v

The last n − 1 words are looked up, joined and read by one hidden layer. Words that are used alike come to have like
rows in E, so that what was learnt of "the cat sat" says something about "the dog sat", which an n-gram table cannot.
W, the direct connections, is optional, as in the paper. Nothing further back than n − 1 words is seen, and nothing
before the end of the last document.

Y. Bengio, R. Ducharme, P. Vincent and C. Jauvin, "A neural probabilistic language model" (2003).
Shapes: T steps, B texts of a batch, V words, D units of the embedding, H hidden units, C = n − 1 words of context.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from foreword.errors import MissingExtraError, SettingError

try:
    import torch
    from torch import Tensor
    from torch.nn.functional import embedding, linear
except ImportError:
    raise MissingExtraError("torch", "neural", "a neural language model") from None

from foreword.checks import check_numbers
from foreword.neural.model import NeuralLM
from foreword.neural.recurrent import MODEST
from foreword.nn.dropout import Dropout, draw_mask, locked_mask
from foreword.nn.network import (
    EMBEDDING,
    State,
    Weights,
    WordMasks,
    initialise_words,
    word_tensors,
)
from foreword.tokens.vocab import Vocab
from foreword.training.settings import Training

HIDDEN, HIDDEN_BIAS = "hidden", "hidden_bias"


@dataclass(frozen=True, slots=True)
class BengioNetwork:
    """vocab: V. context: C. embedding: D. hidden: H. end: the id that ends a document."""

    vocab: int
    context: int
    embedding: int
    hidden: int
    end: int
    direct: bool = False
    tied: bool = False

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of the weights."""
        joined = self.context * self.embedding
        read = self.hidden + (joined if self.direct else 0)
        return {
            **word_tensors(self.vocab, self.embedding, None if self.tied else read),
            HIDDEN: (self.hidden, joined),
            HIDDEN_BIAS: (self.hidden,),
        }

    def initialise(self, weights: Weights, generator: torch.Generator) -> None:
        """Draw the weights; the hidden layer by its number of inputs."""
        initialise_words(weights, generator)
        reach = (self.context * self.embedding) ** -0.5
        weights[HIDDEN].uniform_(-reach, reach, generator=generator)
        weights[HIDDEN_BIAS].zero_()

    def start(self, texts: int, like: Tensor) -> State:
        """Return (B, C − 1): the ids of the words before the next input, the oldest first."""
        return (torch.full((texts, self.context - 1), self.end, dtype=torch.int64, device=like.device),)

    def masks(self, dropout: Dropout, texts: int, like: Tensor, generator: torch.Generator | None) -> WordMasks:
        """Draw the dropout masks of a chunk."""
        joined = self.context * self.embedding
        read = self.hidden + (joined if self.direct else 0)
        return WordMasks(
            draw_mask((self.vocab,), dropout.words, like, generator),
            locked_mask(texts, joined, dropout.input, like, generator),
            locked_mask(texts, read, dropout.output, like, generator),
        )

    def read(self, weights: Weights, ids: Tensor, state: State, masks: WordMasks | None = None) -> tuple[Tensor, State]:
        """Return what the softmax reads at each step, and the new state."""
        seen = torch.cat((state[0].t(), ids))
        words = self._contexts(seen, len(ids))
        x = embedding(words, weights[EMBEDDING])
        if masks is not None:
            x = x * masks.words[words].unsqueeze(-1)
        x = x.flatten(2)
        if masks is not None:
            x = x * masks.input
        h = torch.tanh(linear(x, weights[HIDDEN], weights[HIDDEN_BIAS]))
        hidden = torch.cat((h, x), -1) if self.direct else h
        return hidden, (seen[len(seen) - self.context + 1 :].t().contiguous(),)

    def _contexts(self, seen: Tensor, steps: int) -> Tensor:
        """Return (T, B, C): the last words at each step, the newest first; what is older than an end is an end."""
        first = len(seen) - steps
        words = [seen[first:]]
        for back in range(1, self.context):
            older = seen[first - back : len(seen) - back]
            words.append(torch.where(words[-1] == self.end, self.end, older))
        return torch.stack(words, -1)


class BengioLM(NeuralLM):
    """A feed-forward language model over the last ``order − 1`` words.

    embedding: size of the word embedding. hidden: units of the hidden layer. direct: add direct connections from the
    words to the softmax.
    tied: the embedding is the output layer too; needs as many hidden units, and no direct connections.
    """

    TRAINING: ClassVar[Training] = replace(MODEST, batch=64, steps=8)
    DROPOUT: ClassVar[Dropout] = Dropout(words=0.0, input=0.1, between=0.0, output=0.3, recurrent=0.0)

    def __init__(
        self,
        order: int = 5,
        embedding: int = 100,
        hidden: int = 200,
        *,
        direct: bool = False,
        tied: bool = False,
        dropout: Dropout | None = None,
        training: Training | None = None,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        super().__init__(dropout, training, seed, device)
        self.order = order
        self.embedding = embedding
        self.hidden = hidden
        self.direct = direct
        self.tied = tied

    def network(self, vocab: Vocab) -> BengioNetwork:
        """Return the network for a vocabulary."""
        check_numbers(self, "embedding", "hidden", least=1)
        check_numbers(self, "order", least=2)
        if self.tied and (self.direct or self.hidden != self.embedding):
            raise SettingError("tied needs as many hidden units as the embedding has, and no direct connections")
        sizes = (len(vocab), self.order - 1, self.embedding, self.hidden, vocab.end)
        return BengioNetwork(*sizes, self.direct, self.tied)
