"""PyTorch's threads that sleep while they wait, as ``import foreword`` sets them, against threads that spin.

Each time is taken in a process of its own, because OpenMP reads the setting once. The second half of the rows is
measured beside a process that keeps one core busy, as a browser or another training does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.measure import FEW_PAIRS, PAIRS, PATIENCE, Pairs
from benchmarks.progress import say
from benchmarks.quiet import undisturbed
from benchmarks.report import Row, compared

TITLE = "Threads that wait"
HOW = (
    "Seconds of an update of a language model by its defaults, wall time, mean of eight; 7,000 random words, all "
    "cores. Ours: OpenMP's threads sleep while they wait (`OMP_WAIT_POLICY=passive`, which `import foreword` sets "
    "unless it is set). Peer: the same update by OpenMP's default, with which they spin. Busy: another process keeps "
    "one core busy; the other rows are repeated while other work disturbs."
)

UPDATES = 8
MODELS = ("lstm", "cifg", "transformer")
UPDATE = f"""
import os, sys, time
import foreword
if sys.argv[2] == "spinning":
    del os.environ["OMP_WAIT_POLICY"]
import numpy as np
vocab = foreword.Vocab([*map(str, range(7000)), "<unk>", "</s>"])
ids = np.random.default_rng(0).integers(0, 7000, 100_000)
kind = sys.argv[1]
model = foreword.TransformerLM(device="cpu") if kind == "transformer" else foreword.RecurrentLM(kind, device="cpu")
trainer = model.trainer(foreword.Corpus.from_ids([ids], vocab))
trainer.begin_epoch(1)
trainer.run(2)
began = time.perf_counter()
trainer.run({UPDATES})
print((time.perf_counter() - began) / {UPDATES})
"""


def run(quick: bool) -> list[Row]:
    pairs = FEW_PAIRS if quick else PAIRS
    rows = [_row(model, pairs, busy=False) for model in MODELS]
    with _busy_core():
        return [*rows, *(_row(model, pairs, busy=True) for model in MODELS)]


def _row(model: str, pairs: int, *, busy: bool) -> Row:
    job = f"{model}, busy" if busy else model

    def pair() -> tuple[float, float]:
        return _seconds(model, "asleep"), _seconds(model, "spinning")

    until = time.perf_counter() + PATIENCE
    ours, theirs, disturbed = [], [], 0
    for number in range(1, pairs + 1):
        (asleep, spinning), quiet = (pair(), True) if busy else undisturbed(pair, until)
        disturbed += not quiet
        ours.append(asleep)
        theirs.append(spinning)
        say(f"waiting, {job}: pair {number} of {pairs}: {asleep:.3f} s against {spinning:.3f} s")
    return compared(job, "spinning", Pairs(ours, theirs, disturbed))


def _seconds(model: str, how: str) -> float:
    usual = {name: value for name, value in os.environ.items() if not name.startswith(("OMP", "GOMP", "KMP"))}
    words = [sys.executable, "-c", UPDATE, model, how]
    return float(subprocess.run(words, env=usual, capture_output=True, text=True, check=True).stdout)


@contextmanager
def _busy_core() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            yield
        finally:
            other.kill()
