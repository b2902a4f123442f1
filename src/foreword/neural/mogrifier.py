"""The Mogrifier LSTM with the recipe by which it is trained: 50.1 on the Penn Treebank where AWD-LSTM has 57.3.

    x ← 2 σ(A₁ B₁ h + b₁) · x,    h ← 2 σ(A₂ B₂ x + b₂) · h,    …        five rounds, before the cell sees either
    c = f·c + min(1 − f, i)·tanh(g),    h = o·tanh(c),                   p(w_(t+1) | w_≤t) = softmax(E (h¹ + h²) + b)

What its authors tuned is as much of the gain as the rounds: dropout masks that are fresh at every step, state dropout
with one mask per text, an input gate that is capped, the sum of both layers as output, L2 inside the gradient, Adam
with β₁ = 0 at a constant rate, weights averaged over the tail of the run, and a softmax temperature chosen on held-out
text. ``rounds=0`` is the plain LSTM by the same recipe.

What is different here: 896 units of rank 88 where the paper has 912 of rank 84, for the kernels' tiles
(``nn/mogrifier_gpu.py``); running averages of two tails instead of one that begins when the held-out loss stalls.

G. Melis, T. Kočiský and P. Blunsom, "Mogrifier LSTM" (2020); G. Melis et al., "Pushing the bounds of dropout" (2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypedDict, Unpack

from foreword.checks import check_choice, check_numbers
from foreword.neural.model import NeuralLM
from foreword.nn.dropout import Dropout
from foreword.nn.recurrent_network import RecurrentNetwork, Variant
from foreword.tokens.vocab import Vocab
from foreword.training.settings import Training, options_from

RECIPE = Training(
    epochs=310,
    batch=64,
    steps=70,
    optimiser="adam",
    beta1=0.0,
    rate=2.3e-3,
    schedule="constant",
    clip=10 / 70,
    weight_decay=0.0,
    l2=3.605e-6,
    activation=0.0,
    change=0.0,
    averages=(3.0, 12.0),
    evaluate_every=12,
    reset=0.01,
    tempered=True,
    precision="auto",
    unknown=0.5,
)
"""Tuned by the authors on the Penn Treebank's validation text; 310 epochs are about 450 seconds on one H200."""


class MogrifierOptions(TypedDict, total=False):
    """Options of ``Mogrifier``."""

    capped: bool
    summed: bool
    embedding: int
    softmaxes: int


class Mogrifier(NeuralLM):
    """A language model of stacked LSTM layers whose inputs and states gate each other.

    units: units of every layer; on a GPU a multiple of 64.
    rounds: rounds in which input and state gate each other; 0 for a plain LSTM. rank: rank of the matrices that
        gate; 0 for full rank.
    capped: the input gate is at most 1 − f. summed: the softmax reads the sum of all layers, not the last alone.
    embedding: units of a word's vector, which is the output layer too; 0 for as many as the layers have. With fewer
        the layers read and write them through two matrices, and a large vocabulary costs less.
    softmaxes: number of components of a mixture of softmaxes; 2 in the paper for WikiText-2.
    dropout: dropout rates by place. training: optimiser, schedule and batches.
    device: "cuda" or "cpu"; by default the GPU, where there is one.
    """

    OPTIONS: ClassVar[Mapping[str, Any]] = {"capped": True, "summed": True, "embedding": 0, "softmaxes": 1}
    COUNTED_BIAS: ClassVar[bool] = False
    PLAIN_CELLS: ClassVar[bool] = False
    TRAINING: ClassVar[Training] = RECIPE
    DROPOUT: ClassVar[Dropout] = Dropout(
        words=0.0, input=0.729, between=0.291, output=0.716, recurrent=0.0, state=0.387, fresh=True
    )
    PLACES: ClassVar[tuple[str, ...]] = (*NeuralLM.PLACES, "state", "fresh")

    def __init__(
        self,
        units: int = 896,
        layers: int = 2,
        rounds: int = 5,
        rank: int = 88,
        *,
        dropout: Dropout | None = None,
        training: Training | None = None,
        seed: int = 0,
        device: str | None = None,
        **options: Unpack[MogrifierOptions],
    ) -> None:
        super().__init__(dropout, training, seed, device)
        self.units = units
        self.layers = layers
        self.rounds = rounds
        self.rank = rank
        chosen = options_from(self.OPTIONS, options)
        self.capped: bool = chosen["capped"]
        self.summed: bool = chosen["summed"]
        self.embedding: int = chosen["embedding"]
        self.softmaxes: int = chosen["softmaxes"]

    def network(self, vocab: Vocab) -> RecurrentNetwork:
        """Return the network for a vocabulary."""
        check_numbers(self, "units", "layers", "softmaxes", least=1, whole=True)
        check_numbers(self, "rounds", "rank", "embedding", whole=True)
        for name in ("capped", "summed"):
            check_choice(self, name, (True, False))
        words = self.embedding or self.units
        variant = Variant(
            self.rank,
            round_bias=True,
            capped=self.capped,
            summed=self.summed,
            truncated=True,
            projected=words != self.units,
        )
        sizes = (len(vocab), words, self.units, self.layers)
        rounds, softmaxes = self.rounds, self.softmaxes
        return RecurrentNetwork(*sizes, forget_bias=1.0, mogrify=rounds, softmaxes=softmaxes, variant=variant)
