"""Recurrent layers, a step of training and generation against plain PyTorch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmarks.measure import FEW_PAIRS, PAIRS, interleaved, one_core
from benchmarks.progress import say
from benchmarks.report import Row, compared
from foreword.neural.recurrent import RecurrentLM
from foreword.neural.streaming import Streaming
from foreword.nn.dropout import NO_DROPOUT
from foreword.nn.layers import gru, lstm, rnn
from foreword.nn.weights import to_torch
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.engine import Trainer
from foreword.training.gradients import views
from foreword.training.settings import Training

TITLE = "Recurrent nets"
HOW = (
    "Random weights and a random text, whose words follow Zipf's law. Layers are forward and backward, gradients of "
    "all weights and of the input included. A step of training is the whole of it, two LSTM layers, the softmax and "
    "its gradient, clipping and the update, against `nn.Embedding`, `nn.LSTM`, `nn.Linear`, `F.cross_entropy`, "
    "`clip_grad_norm_` and `optim.SGD`, which must lose the same (1e-4: a norm of a long vector is no more exact in "
    "torch). Memory is the most that a process had during its first steps, weights not counted, with large blocks "
    "given back to the system when they are freed, so that only what is in use counts. Generation is greedy, a token "
    "a call, and must give the same tokens (int8: log-probabilities alike); torch takes the largest score, and where "
    "the row says so both make log-probabilities of all words first, as drawing from all of them needs."
)

TEXTS, STEPS, LAYERS = 20, 35, 2
UPDATES, TOKENS = 3, 40
RATE, CLIP = 1.0, 0.25
WIKITEXT, PTB = (33_278, 200), (10_000, 650)
"""Words and units: of wikitext-2's vocabulary with small layers, of the Penn Treebank's with middling ones."""

KEPT = {"float32": 1e-4, "int16": 1e-3, "int8": 0.5}
"""How weights are kept for generation, and how far a log-probability may then be away from torch's."""

PLAIN = Training(
    epochs=1_000, batch=TEXTS, steps=STEPS, rate=RATE, schedule="constant", clip=CLIP, weight_decay=0.0,
    activation=0.0, change=0.0, averages=(),
)  # fmt: skip

MODULES: dict[str, Any] = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}


def run(quick: bool) -> list[Row]:
    torch.set_num_threads(1)
    pairs = FEW_PAIRS if quick else PAIRS
    with one_core():
        return [
            *(_layer(cell, (1000, 1, 256), bar, pairs) for cell, bar in (("gru", 3.0), ("rnn", 2.0))),
            *(_layer(cell, (35, 20, 200), 1.2, pairs) for cell in ("gru", "rnn")),
            _layer("lstm", (35, 20, 200), None, pairs),
            _step(*WIKITEXT, 1.3, pairs),
            _step(*PTB, 1.1, pairs),
            _memory(*WIKITEXT),
            _memory(*PTB),
            *(_generation("lstm", *PTB, kept, "greedy", 5.0, pairs) for kept in KEPT),
            _generation("lstm", *PTB, "float32", "all", None, pairs),
            *(_generation("lstm", *WIKITEXT, kept, "greedy", None, pairs) for kept in KEPT),
        ]


# Layers


def _layer(cell: str, size: tuple[int, int, int], bar: float | None, pairs: int) -> Row:
    steps, texts, units = size
    torch.manual_seed(0)
    peer = MODULES[cell](units, units)
    weights = list(peer.parameters())
    x = torch.randn(steps, texts, units, requires_grad=True)
    zeros, d_out = torch.zeros(texts, units), torch.randn(steps, texts, units)
    forward: dict[str, Callable[[], Tensor]] = {
        "rnn": lambda: rnn(x, zeros, weights)[0],
        "gru": lambda: gru(x, zeros, weights)[0],
        "lstm": lambda: lstm(x, zeros, zeros, weights)[0],
    }

    def both_ways(out: Tensor) -> list[Tensor]:
        return [out.detach(), *torch.autograd.grad(out, [x, *weights], d_out)]

    measured = interleaved(
        f"{cell}, {size}", lambda: both_ways(forward[cell]()), lambda: both_ways(peer(x)[0]), _close, pairs=pairs
    )
    job = f"{cell.upper()} layer, {texts} texts of {steps} steps, {units} units"
    row = compared(job, f"nn.{cell.upper()}", measured, bar=bar)
    return replace(row, note="torch's own kernel in both") if cell == "lstm" else row


def _close(ours: list[Tensor], theirs: list[Tensor]) -> bool:
    """Within 5e-6 of the largest number of each."""
    return all(
        float((one - other).abs().max()) <= 5e-6 * max(1.0, float(other.abs().max()))
        for one, other in zip(ours, theirs, strict=True)
    )


# A step of training


def random_text(vocab: int) -> Corpus:
    words = Vocab(["<unk>", "</s>", *(f"w{number}" for number in range(vocab - 2))])
    drawn = np.random.default_rng(0).zipf(1.2, TEXTS * STEPS * 60) % (vocab - 2) + 2
    return Corpus.from_ids([drawn], words)


def our_trainer(vocab: int, units: int) -> Trainer:
    model = RecurrentLM(
        "lstm", units, units, LAYERS, tied=False, dropout=NO_DROPOUT, training=PLAIN, device="cpu"
    )  # fmt: skip
    trainer = model.trainer(random_text(vocab))
    trainer.begin_epoch(1)
    return trainer


def our_updates(trainer: Trainer) -> list[float]:
    losses = []
    for _ in range(UPDATES):
        if trainer.epoch_done:
            trainer.begin_epoch(trainer.epoch + 1)
        losses.append(trainer.run(1))
    return losses


class PlainLoop(torch.nn.Module):
    """What one writes by hand."""

    def __init__(self, weights: dict[str, Any]) -> None:
        super().__init__()
        vocab, units = weights["embedding"].shape
        self.embedding = torch.nn.Embedding(vocab, units)
        self.layers = torch.nn.LSTM(units, units, LAYERS)
        self.output = torch.nn.Linear(units, vocab)
        self.layers.load_state_dict({name: torch.from_numpy(part.copy()) for name, part in to_torch(weights).items()})
        with torch.no_grad():
            self.embedding.weight.copy_(torch.from_numpy(weights["embedding"]))
            self.output.weight.copy_(torch.from_numpy(weights["output"]))
            self.output.bias.copy_(torch.from_numpy(weights["bias"]))
        self.optimiser = torch.optim.SGD(self.parameters(), lr=RATE)
        self.state: Any = None

    def update(self, inputs: Tensor, targets: Tensor) -> float:
        self.optimiser.zero_grad()
        hidden, state = self.layers(self.embedding(inputs), self.state)
        self.state = tuple(part.detach() for part in state)
        loss = cross_entropy(self.output(hidden).flatten(0, 1), targets.flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.parameters(), CLIP)
        self.optimiser.step()
        return loss.item()


def plain_loop(trainer: Trainer) -> Callable[[], list[float]]:
    """The same network at the same weights, on the same text."""
    plain = PlainLoop({name: part.numpy() for name, part in views(trainer.weights, trainer.shapes).items()})
    task: Any = trainer.task
    inputs, targets = task.inputs.clone(), task.targets.clone()
    places = iter(range(0, len(inputs) - STEPS + 1, STEPS))

    def updates() -> list[float]:
        stretches = [slice(begin, begin + STEPS) for begin in (next(places) for _ in range(UPDATES))]
        return [plain.update(inputs[stretch], targets[stretch]) for stretch in stretches]

    return updates


def _step(vocab: int, units: int, bar: float, pairs: int) -> Row:
    trainer = our_trainer(vocab, units)
    theirs = plain_loop(trainer)
    name = f"step of training, {vocab:,} words, {units} units"
    measured = interleaved(
        name, lambda: our_updates(trainer), theirs, lambda a, b: np.allclose(a, b, rtol=1e-4, atol=0), pairs=pairs
    )
    once = replace(
        measured, ours=[each / UPDATES for each in measured.ours], theirs=[each / UPDATES for each in measured.theirs]
    )
    return compared(name, "the plain loop", once, bar=bar)


def _memory(vocab: int, units: int) -> Row:
    say(f"memory of a step, {vocab:,} words, {units} units")
    ours, theirs = (_peak(kind, vocab, units) for kind in ("ours", "plain"))
    shapes = our_trainer(vocab, units).shapes
    dense = 4 * sum(int(np.prod(shape)) for name, shape in shapes.items() if name != "embedding")
    return Row(
        f"memory of a step, {vocab:,} words, {units} units",
        ours=f"{ours / 1e6:.0f} MB",
        peer=f"the plain loop: {theirs / 1e6:.0f} MB",
        ratio=f"{theirs / ours:.2f}",
        bar="≥ 3",
        met=theirs >= 3 * ours,
        note=f"{dense / 1e6:.0f} MB are gradients of whole matrices, all of which a clip by their norm must wait for",
        figures={"ours": float(ours), "theirs": float(theirs)},
    )


def _peak(kind: str, vocab: int, units: int) -> int:
    command = [sys.executable, "-m", "benchmarks.recurrent_memory", kind, str(vocab), str(units)]
    env = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(1 << 20), "MALLOC_TRIM_THRESHOLD_": str(1 << 20)}
    return int(subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout)


# Generation


@cache
def _model(cell: str, vocab: int, units: int) -> RecurrentLM:
    """After one update; what it says is of no importance."""
    words = random_text(vocab)
    settings = replace(PLAIN, epochs=1)
    model = RecurrentLM(cell, units, units, LAYERS, tied=False, training=settings, dropout=NO_DROPOUT, device="cpu")
    return model.fit(Corpus.from_ids([words.ids[: TEXTS * STEPS]], words.vocab))


def _generation(cell: str, vocab: int, units: int, kept: str, how: str, bar: float | None, pairs: int) -> Row:
    model = _model(cell, vocab, units)
    stream = Streaming(model, int8=kept == "int8", int16=kept == "int16")
    plain = PlainLoop({name: part.numpy() for name, part in model.weights_.items()})
    take = _likeliest if how == "greedy" else _likeliest_of_all

    def ours() -> tuple[list[int], NDArray[np.float32]]:
        state, words = stream.start(), []
        for _ in range(TOKENS):
            words.append(take(stream, state))
            state = stream.advance(state, np.array(words[-1:]))
        return words, state

    def theirs() -> tuple[list[int], Any]:
        _, state = plain.layers(plain.embedding(torch.tensor([[model.vocab.end]])))
        words: list[int] = []
        with torch.no_grad():
            for _ in range(TOKENS):
                scores = plain.output(state[0][-1])[0]
                logs = scores if how == "greedy" else torch.log_softmax(scores, -1)
                words.append(int(logs.argmax()))
                _, state = plain.layers(plain.embedding(torch.tensor([words[-1:]])), state)
        return words, state

    def agree(one: tuple[list[int], Any], other: tuple[list[int], Any]) -> bool:
        logs = torch.log_softmax(plain.output(other[1][0][-1])[0], -1).detach().numpy()
        near = bool(np.abs(stream.next_logprobs(one[1])[0] - logs).max() < KEPT[kept])
        return near and (one[0] == other[0] or kept == "int8")

    name = f"generation, {vocab:,} words, {units} units, {kept}{'' if how == 'greedy' else ', logs of all words'}"
    measured = interleaved(name, ours, theirs, agree, pairs=pairs)
    once = replace(
        measured, ours=[each / TOKENS for each in measured.ours], theirs=[each / TOKENS for each in measured.theirs]
    )
    return replace(compared(name, "torch modules", once, bar=bar), note="seconds a token")


def _likeliest(stream: Streaming, state: NDArray[np.float32]) -> int:
    """As ``generate`` with a temperature of zero does it."""
    ids, logs = stream.shortlist(state, 1)
    return int(ids[logs.argmax()])


def _likeliest_of_all(stream: Streaming, state: NDArray[np.float32]) -> int:
    return int(stream.next_logprobs(state)[0].argmax())
