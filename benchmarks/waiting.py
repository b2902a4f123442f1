"""Threads of PyTorch that sleep while they wait, as ``import foreword`` asks for, against ones that keep a core busy.

A process of its own for each time, because OpenMP reads the setting once. With a busy machine a loop in another process
keeps one core busy, as a browser or a second training does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.measure import FEW_PAIRS, PAIRS, Pairs
from benchmarks.progress import say
from benchmarks.report import Row, compared

TITLE = "Threads that wait"
HOW = (
    "Seconds of an update of a language model by its defaults, wall time, mean of eight; 7,000 random words, all "
    "cores. Ours: OpenMP's threads sleep while they wait (`OMP_WAIT_POLICY=passive`, which `import foreword` sets "
    "unless it is set). Peer: the same update by OpenMP's own setting, where they try again and again. Busy: another "
    "process keeps one core busy."
)

UPDATES = 8
MODELS = ("lstm", "cifg", "transformer")
UPDATE = f"""
import os, sys, time
import foreword
if sys.argv[2] == "busy waiting":
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
    rows = [_row(model, "", pairs) for model in MODELS]
    with _busy_core():
        return [*rows, *(_row(model, ", busy", pairs) for model in MODELS)]


def _row(model: str, where: str, pairs: int) -> Row:
    taken = []
    for number in range(1, pairs + 1):
        taken.append((_seconds(model, "asleep"), _seconds(model, "busy waiting")))
        say(f"waiting, {model}{where}: pair {number} of {pairs}: {taken[-1][0]:.3f} s against {taken[-1][1]:.3f} s")
    return compared(f"{model}{where}", "busy waiting", Pairs([a for a, _ in taken], [b for _, b in taken]))


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
