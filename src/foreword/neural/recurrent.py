"""Recurrent language models: one cell, read a word, remember, tell the next.

    x_t = E[w_t],    h_t = cell(x_t, h_(t−1)),    p(w_(t+1) = v | w_≤t) = softmax(W h_t + b)_v

The same weights at every step, so the number of parameters does not depend on how long a text is, and no word is ever
out of reach in principle. How far back the cell really remembers is what the cells differ in: ``nn/cells.py`` has
their equations.

T. Mikolov et al., "Recurrent neural network based language model" (2010); W. Zaremba, I. Sutskever and O. Vinyals,
"Recurrent neural network regularization" (2014); R. Jozefowicz, W. Zaremba and I. Sutskever, "An empirical exploration
of recurrent network architectures" (2015) for the forget bias of 1; L. Feng et al., "Were RNNs all we needed?" (2024).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypedDict, Unpack

from foreword.checks import check_numbers
from foreword.errors import SettingError
from foreword.neural.model import NeuralLM
from foreword.nn.dropout import Dropout
from foreword.nn.recurrent_layer import CELLS
from foreword.nn.recurrent_network import RecurrentNetwork
from foreword.tokens.vocab import Vocab
from foreword.training.settings import Training, options_from

MODEST = Training(
    epochs=10,
    batch=20,
    optimiser="adam",
    rate=2e-3,
    hold=0.0,
    last_rate=0.05,
    clip=5.0,
    weight_decay=0.0,
    activation=0.0,
    change=0.0,
    averages=(),
    shuffle=True,
    unknown=0.5,
)
"""How small models are usually trained: by Adam, the rate falling as a cosine."""


class RecurrentOptions(TypedDict, total=False):
    """Options of ``RecurrentLM``."""

    forget_bias: float
    mogrify: int
    softmaxes: int


class RecurrentLM(NeuralLM):
    """A language model of stacked recurrent layers.

    cell: "rnn", "irnn" (ReLU, beginning with the identity), "lstm", "gru" or "min-gru"; or one of ``nn/gated.py``:
        "cifg", "peephole", "ln-lstm", "slstm" or "gru-before".
    embedding: units of the embedding. hidden: units of a layer.
    tied: embedding and output layer are one tensor, and the last layer has as many units as the embedding.
    forget_bias: initial bias of the forget gates.
    mogrify: rounds in which input and state of an LSTM layer gate each other before its cell (Mogrifier): 5 in the
        paper, 0 for none; slow on a CPU, and on a GPU unless ``embedding`` and ``hidden`` are equal.
    softmaxes: number of components of a mixture of softmaxes; 15 in the paper.
    dropout: dropout rates by place. training: optimiser, schedule and batches.
    device: "cuda" or "cpu"; by default the GPU, where there is one.
    """

    OPTIONS: ClassVar[Mapping[str, Any]] = {"forget_bias": 1.0, "mogrify": 0, "softmaxes": 1}
    TRAINING: ClassVar[Training] = MODEST
    DROPOUT: ClassVar[Dropout] = Dropout(words=0.0, input=0.2, between=0.2, output=0.2, recurrent=0.0)
    PLACES: ClassVar[tuple[str, ...]] = (*NeuralLM.PLACES, "state", "fresh")

    def __init__(
        self,
        cell: str = "lstm",
        embedding: int = 200,
        hidden: int = 200,
        layers: int = 2,
        *,
        tied: bool = True,
        dropout: Dropout | None = None,
        training: Training | None = None,
        seed: int = 0,
        device: str | None = None,
        **options: Unpack[RecurrentOptions],
    ) -> None:
        super().__init__(dropout, training, seed, device)
        self.cell = cell
        self.embedding = embedding
        self.hidden = hidden
        self.layers = layers
        self.tied = tied
        chosen = options_from(self.OPTIONS, options)
        self.forget_bias: float = chosen["forget_bias"]
        self.mogrify: int = chosen["mogrify"]
        self.softmaxes: int = chosen["softmaxes"]

    def network(self, vocab: Vocab) -> RecurrentNetwork:
        """Return the network for a vocabulary."""
        check_numbers(self, "embedding", "hidden", "layers", "softmaxes", least=1)
        check_numbers(self, "mogrify", least=0)
        if self.cell not in CELLS:
            raise SettingError(f"cell is {self.cell!r}: expected {', '.join(CELLS)}")
        if self.mogrify and self.cell != "lstm":
            raise SettingError(f"mogrify is {self.mogrify}, which is for cell 'lstm', not {self.cell!r}")
        if self.dropout.state and self.cell != "lstm":
            raise SettingError(f"dropout of state is {self.dropout.state}: only cell 'lstm' has it, not {self.cell!r}")
        last = self.embedding if self.tied else self.hidden
        sizes = (len(vocab), self.embedding, self.hidden, self.layers)
        return RecurrentNetwork(*sizes, self.tied, self.cell, last, self.forget_bias, self.mogrify, self.softmaxes)
