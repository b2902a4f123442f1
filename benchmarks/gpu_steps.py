"""A whole step of training on a GPU against the eager loop that everybody writes: ``python -m benchmarks.gpu_steps``.

It stands apart from the others because it needs another machine: ``--out FILE`` writes its section, and
``python -m benchmarks --take FILE`` puts that into the document.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.report import Row, section_of
from foreword.neural.recurrent import RecurrentLM
from foreword.nn.dropout import NO_DROPOUT
from foreword.nn.network import BIAS, output_weight
from foreword.nn.recurrent_layer import layer_names
from foreword.nn.recurrent_network import RecurrentNetwork
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import END, UNKNOWN, Vocab
from foreword.training.engine import PLANNED, Trainer
from foreword.training.gradients import views
from foreword.training.settings import Training

TITLE = "Training steps on a GPU"
HOW = (
    "Words in, loss, gradients, clipping, update: the whole step of a stacked LSTM language model without dropout. The "
    "eager loop is `nn.LSTM`, `nn.Linear`, `cross_entropy`, `clip_grad_norm_` and SGD with TF32 products; ours is one "
    "recorded graph with products in half precision. Both begin with the same weights and read the same text; the mean "
    "loss of steps 250 to 300 may differ by 1 %. Median of five runs of 100 steps, in turn, on the clock on the wall."
)

STEPS, RUNS, CURVE, TAIL = 100, 5, 300, 50

SPECIAL = (UNKNOWN, END)
"""Tokens that every vocabulary has; here they come first."""


@dataclass(frozen=True, slots=True)
class Job:
    shape: RecurrentNetwork
    texts: int
    steps: int
    bar: float

    @property
    def title(self) -> str:
        shape = self.shape
        sizes = f"V={shape.vocab:,}, E={shape.embedding}, H={shape.hidden}, L={shape.layers}"
        return f"{sizes}, B={self.texts}, T={self.steps}"


JOBS = (
    Job(RecurrentNetwork(10_000, 650, 650, 2, tied=False), 20, 35, 3.0),
    Job(RecurrentNetwork(33_278, 400, 1150, 3, tied=True), 80, 70, 1.6),
)


class Plain(nn.Module):
    """The model as one would write it."""

    def __init__(self, shape: RecurrentNetwork, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.vocab, shape.embedding)
        sizes = shape.layer_sizes()
        same = len(set(sizes)) == 1
        stacks = [(*sizes[0], len(sizes))] if same else [(read, written, 1) for read, written in sizes]
        self.layers = nn.ModuleList(nn.LSTM(read, written, depth) for read, written, depth in stacks)
        self.output = nn.Linear(shape.embedding, shape.vocab)
        with torch.no_grad():
            self.embedding.weight.copy_(weights["embedding"])
            self.output.weight.copy_(output_weight(weights))
            self.output.bias.copy_(weights[BIAS])
            modules: Iterator[tuple[Any, int]] = (
                (layer, place)
                for layer, (_, _, depth) in zip(self.layers, stacks, strict=True)
                for place in range(depth)
            )
            for number, (layer, place) in enumerate(modules):
                names = [f"{name}_l{place}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
                for mine, theirs in zip(layer_names(number), names, strict=True):
                    getattr(layer, theirs).copy_(weights[mine])
        if shape.tied:
            self.output.weight = self.embedding.weight

    def forward(self, ids: Tensor, states: list[Any]) -> tuple[Tensor, list[Any]]:
        x = self.embedding(ids)
        new = []
        for layer, state in zip(self.layers, states, strict=True):
            x, state = layer(x, state)
            new.append(tuple(part.detach() for part in state))
        return self.output(x), new


def their_loop(job: Job, weights: dict[str, Tensor], inputs: Tensor, targets: Tensor) -> Callable[[int], list[float]]:
    """Return a function that runs a number of steps and returns their losses."""
    model = Plain(job.shape, weights).cuda()
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    states: list[Any] = [None] * len(model.layers)
    at = 0

    def run(steps: int) -> list[float]:
        nonlocal states, at
        losses = []
        for _ in range(steps):
            x, y = inputs[at : at + job.steps], targets[at : at + job.steps]
            optimiser.zero_grad()
            logits, states = model(x, states)
            loss = cross_entropy(logits.flatten(0, 1), y.flatten())
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimiser.step()
            losses.append(loss.detach())
            at += job.steps
        return [float(loss) for loss in torch.stack(losses).cpu()]

    return run


def our_trainer(job: Job, corpus: Corpus) -> Trainer:
    """The trainer of the model itself, with nothing dropped and nothing penalised."""
    shape = job.shape
    settings = Training(
        epochs=1, batch=job.texts, steps=job.steps, rate=1.0, hold=1.0, clip=5.0, weight_decay=0.0, averages=(),
        activation=0.0, change=0.0, precision="float16",
    )  # fmt: skip
    model = RecurrentLM(
        "lstm", shape.embedding, shape.hidden, shape.layers, tied=shape.tied, dropout=NO_DROPOUT, training=settings
    )
    return model.trainer(corpus)


def text(vocab: int, length: int) -> Corpus:
    """Words with Zipf's frequencies, half of which follow from the word before: something can be learnt."""
    random = np.random.default_rng(0)
    known = Vocab([*SPECIAL, *(f"w{number}" for number in range(vocab - len(SPECIAL)))])
    words = np.minimum(random.zipf(1.2, length), vocab - len(SPECIAL)) - 1
    follows = random.permutation(vocab - len(SPECIAL))
    for place in np.flatnonzero(random.random(length) < 0.5)[1:]:
        words[place] = follows[words[place - 1]]
    return Corpus.from_ids([(words + len(SPECIAL)).tolist()], known)


def compared_on(job: Job) -> Row:
    warm, total = PLANNED, CURVE + PLANNED + STEPS * RUNS
    trainer = our_trainer(job, text(job.shape.vocab, job.texts * job.steps * (total + 1)))
    start = {name: part.clone() for name, part in views(trainer.weights, trainer.shapes).items()}
    trainer.begin_epoch(1)
    task: Any = trainer.task
    theirs = their_loop(job, start, task.inputs.clone(), task.targets.clone())

    def ours(steps: int) -> float:
        return statistics.mean(trainer.run(PLANNED) for _ in range(steps // PLANNED))

    ours(CURVE - TAIL)
    their_losses = theirs(CURVE)
    mine, other = ours(TAIL), statistics.mean(their_losses[-TAIL:])
    ours(warm), theirs(warm)
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(RUNS)]
    ratios = [b / a for a, b in pairs]
    tokens = job.texts * job.steps
    pace = [tokens / statistics.median(side) for side in zip(*pairs, strict=True)]
    same = abs(mine - other) <= 0.01 * other
    ratio = statistics.median(ratios)
    return Row(
        job.title,
        ours=f"{1e3 * tokens / pace[0]:.2f} ms, {pace[0] / 1e3:,.0f} k tokens/s",
        peer=f"eager: {1e3 * tokens / pace[1]:.2f} ms, {pace[1] / 1e3:,.0f} k tokens/s",
        ratio=f"**{ratio:.2f}** ({min(ratios):.2f}–{max(ratios):.2f})",
        bar=f"≥ {job.bar:g}",
        met=ratio >= job.bar and same,
        note=f"loss at the end of the curve: {mine:.4f} against {other:.4f}",
        figures={"ours": [a for a, _ in pairs], "theirs": [b for _, b in pairs], "ratio": ratio},
    )


def seconds(run: Callable[[int], object]) -> float:
    """Of one step."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    run(STEPS)
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / STEPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the section goes, as JSON")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    began = time.perf_counter()
    rows = []
    for job in JOBS:
        rows.append(compared_on(job))
        print(rows[-1], flush=True)
    card, library = torch.cuda.get_device_name(), f"torch {torch.__version__}"
    section = section_of(TITLE, HOW, rows, began) | {"machine": f"one {card}, {library}"}
    options.out.write_text(json.dumps({"gpu_steps": section}, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
