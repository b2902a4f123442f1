"""The AWD-LSTM: a plain stacked LSTM that is regularised in every place where it can be.

    x_t = E[w_t],    h_t = LSTM_3(LSTM_2(LSTM_1(x_t))),    p(w_(t+1) = v | w_≤t) = softmax(E h_t + b)_v

Nothing about the network is new; what took the Penn Treebank from 78 to 57 is how it is kept from learning by heart:
weights between states are dropped (DropConnect), units are dropped by masks that stay the same over time, whole words
are dropped, large and jumpy states are penalised, the embedding E serves twice, and what is kept in the end is an
average of the weights over many steps of a large, constant learning rate.

What is different here: layers are 512-1024-1024-512 where the paper has 400-1150-1150-400, since cuDNN has a far faster
kernel for such sizes; chunks of text have one length, and the text is cut elsewhere in each epoch instead (``vary``
gives the paper's); the average runs from the first step with the beginning fading (``training/schedules.py``), where
the paper waits for the held-out loss to stall (the schedule ``nt-asgd``).

Two options go past it, the Mogrifier and a mixture of softmaxes: published 50.1 and 54.4 where it has 57.3.

S. Merity, N. Keskar and R. Socher, "Regularizing and optimizing LSTM language models" (2018); H. Inan et al., "Tying
word vectors and word classifiers" (2017).
"""

from __future__ import annotations

from typing import ClassVar

from foreword.checks import check_numbers
from foreword.neural.model import NeuralLM
from foreword.nn.dropout import Dropout
from foreword.nn.recurrent_network import RecurrentNetwork
from foreword.tokens.vocab import Vocab
from foreword.training.settings import Training

RECIPE = Training(averages=(3.0, 10.0), precision="auto", unknown=0.5)
"""40 epochs, in half precision on a GPU; with ``epochs=320`` the recipe of docs/awd_lstm.md, 56.3 in eight minutes."""


class AWDLSTM(NeuralLM):
    """A language model of stacked LSTM layers.

    embedding: units of the embedding and of the last layer. hidden: units of the other layers. On a GPU multiples of
    128 up to 1024 are fastest.
    tied: embedding and output layer are one tensor.
    mogrify: rounds in which input and state of an LSTM layer gate each other before its cell (Mogrifier): 5 in the
        paper, 0 for none; slow on a CPU, and on a GPU unless ``embedding`` and ``hidden`` are equal.
    softmaxes: number of components of a mixture of softmaxes; 15 in the paper.
    dropout: dropout rates by place. training: optimiser, schedule and batches.
    device: "cuda" or "cpu"; by default the GPU, where there is one.
    """

    COUNTED_BIAS: ClassVar[bool] = False  # as in the paper, and in the runs of docs/awd_lstm.md
    TRAINING: ClassVar[Training] = RECIPE

    def __init__(
        self,
        embedding: int = 512,
        hidden: int = 1024,
        layers: int = 3,
        *,
        tied: bool = True,
        mogrify: int = 0,
        softmaxes: int = 1,
        dropout: Dropout | None = None,
        training: Training | None = None,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        super().__init__(dropout, training, seed, device)
        self.embedding = embedding
        self.hidden = hidden
        self.layers = layers
        self.tied = tied
        self.mogrify = mogrify
        self.softmaxes = softmaxes

    def network(self, vocab: Vocab) -> RecurrentNetwork:
        """Return the network for a vocabulary."""
        check_numbers(self, "embedding", "hidden", "layers", "softmaxes", least=1)
        check_numbers(self, "mogrify", least=0)
        sizes = (len(vocab), self.embedding, self.hidden, self.layers)
        return RecurrentNetwork(*sizes, self.tied, mogrify=self.mogrify, softmaxes=self.softmaxes)
