"""A plain PyTorch loop as the oracle of a step of training: the same losses and the same weights, update by update."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from foreword.neural.recurrent import RecurrentLM
from foreword.nn.dropout import NO_DROPOUT
from foreword.nn.weights import to_torch
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.training.engine import Trainer
from foreword.training.gradients import views
from foreword.training.settings import Training

VOCAB, UNITS, TEXTS, STEPS, UPDATES, RATE, CLIP = 60, 12, 5, 7, 25, 2.0, 0.1

PLAIN = Training(
    epochs=1, batch=TEXTS, steps=STEPS, rate=RATE, schedule="constant", clip=CLIP, weight_decay=0.0, activation=0.0,
    change=0.0, averages=(),
)  # fmt: skip


def random_corpus() -> Corpus:
    tokenizer = WordTokenizer().fit([" ".join(f"w{word}" for word in range(VOCAB))])
    drawn = np.random.default_rng(0).zipf(1.5, TEXTS * STEPS * UPDATES) % VOCAB
    return Corpus.from_texts([" ".join(f"w{word}" for word in drawn)], tokenizer)


class Plain(torch.nn.Module):
    """nn.Embedding, one of torch's recurrent modules, nn.Linear, F.cross_entropy, clipping and SGD."""

    def __init__(self, trainer: Trainer, cell: str, tied: bool) -> None:
        super().__init__()
        held = {name: part.numpy() for name, part in zip(trainer.shapes, _parts(trainer), strict=True)}
        vocab = len(held["bias"])
        kinds = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}
        self.embedding = torch.nn.Embedding(vocab, UNITS)
        self.layers = kinds[cell](UNITS, UNITS, 2)
        self.output = torch.nn.Linear(UNITS, vocab)
        self.layers.load_state_dict({name: torch.from_numpy(part.copy()) for name, part in to_torch(held).items()})
        with torch.no_grad():
            self.embedding.weight.copy_(torch.from_numpy(held["embedding"]))
            self.output.weight.copy_(torch.from_numpy(held["embedding" if tied else "output"]))
            self.output.bias.copy_(torch.from_numpy(held["bias"]))
        if tied:
            self.output.weight = self.embedding.weight
        self.optimiser = torch.optim.SGD(self.parameters(), lr=RATE)
        self.state: tuple[Tensor, ...] | Tensor | None = None

    def update(self, inputs: Tensor, targets: Tensor) -> float:
        self.optimiser.zero_grad()
        hidden, state = self.layers(self.embedding(inputs), self.state)
        self.state = tuple(part.detach() for part in state) if isinstance(state, tuple) else state.detach()
        loss = cross_entropy(self.output(hidden).flatten(0, 1), targets.flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.parameters(), CLIP)
        self.optimiser.step()
        return loss.item()


def _parts(trainer: Trainer) -> list[Tensor]:
    return [part.clone() for part in views(trainer.weights, trainer.shapes).values()]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_losses_and_weights_are_those_of_the_plain_loop(cell: str, tied: bool) -> None:
    """Rows P01, P02: 25 updates with clipping, state carried and the gradient cut, tied and not."""
    model = RecurrentLM(cell, UNITS, UNITS, 2, tied=tied, dropout=NO_DROPOUT, training=PLAIN, device="cpu")
    trainer = model.trainer(random_corpus())
    plain = Plain(trainer, cell, tied)
    trainer.begin_epoch(1)
    task: Any = trainer.task
    inputs, targets = task.inputs.clone(), task.targets.clone()
    first = None
    for begin in range(0, (UPDATES - 1) * STEPS, STEPS):
        ours = trainer.run(1)
        theirs = plain.update(inputs[begin : begin + STEPS], targets[begin : begin + STEPS])
        assert ours == pytest.approx(theirs, rel=2e-5)
        first = ours if first is None else first
    assert first is not None
    assert ours < first - 0.05  # something was learnt
    learnt = dict(zip(trainer.shapes, _parts(trainer), strict=True))
    torch.testing.assert_close(learnt["embedding"], plain.embedding.weight.detach(), rtol=0, atol=1e-4)
    torch.testing.assert_close(learnt["layer1.recurrent"], plain.layers.weight_hh_l1.detach(), rtol=0, atol=1e-4)
