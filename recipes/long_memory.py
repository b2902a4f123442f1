"""LSTM against GRU on long memory: recall at growing lags, with equally many parameters and five seeds (row G02).

    python recipes/long_memory.py --out docs/results      about three minutes on one core
    python recipes/long_memory.py --lags 10 --updates 50  whether it runs

A symbol, ``lag`` distractors, a question: which symbol was it? 32 units of an LSTM have about as many weights as 37 of
a GRU. Both begin with normal weights, the LSTM with a forget bias of 1, and have the same updates of Adam. A run ends
when 95 % of new examples are right. long_memory.json has every run's share of right answers and its updates.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import torch

from foreword.lessons.claims.results import provenance, write_result
from foreword.lessons.horizon import MemoryTraining, Recall, first_weights, learn

UNITS = {"lstm": 32, "gru": 37}
SEEDS = range(5)


def parameters(kind: str) -> int:
    """Return the number of weights of the recurrent layer."""
    layer = first_weights(kind, Recall(1).inputs, UNITS[kind], torch.Generator())
    return sum(weight.numel() for weight in layer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lags", type=lambda text: [int(each) for each in text.split(",")], default=[100, 200, 400])
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--out", type=Path, help="a folder for long_memory.json")
    given = parser.parse_args()
    torch.set_num_threads(1)
    began, rows = time.perf_counter(), []
    for lag in given.lags:
        for kind in UNITS:
            learning = MemoryTraining(hidden=UNITS[kind], updates=given.updates)
            runs = [learn(Recall(lag), kind, learning, seed) for seed in SEEDS]
            right, updates = [round(run.right, 3) for run in runs], [run.updates for run in runs]
            solved = sum(share >= learning.solved for share in right)
            rows.append({"lag": lag, "kind": kind, "solved": solved, "right": right, "updates": updates})
            sys.stderr.write(f"lag {lag}, {kind}: {solved} of {len(SEEDS)} seeds, updates {updates}, right {right}\n")
    facts: dict[str, Any] = {
        "measure": "share of right answers at the last test; solved from 0.95 on",
        "seeds": list(SEEDS),
    }
    facts |= {"parameters": {kind: parameters(kind) for kind in UNITS}, "runs": rows}
    if given.out is not None:
        write_result(given.out / "long_memory.json", provenance(0, time.perf_counter() - began) | facts)


if __name__ == "__main__":
    main()
