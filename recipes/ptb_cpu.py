"""Penn Treebank below a perplexity of 120 on a laptop: an LSTM that learns on two CPU cores in minutes.

    python recipes/ptb_cpu.py --data FOLDER

A sampled softmax does it: a thousand words stand for the ten thousand in each update, so that the last layer, which
is nearly all the work otherwise, costs a tenth. The valid split chooses the epoch; the test split is scored once, from
its first word to its last, over the whole vocabulary.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch
from ptb_ladder import corpora

from foreword.neural.recurrent import MODEST, RecurrentLM
from foreword.nn.dropout import Dropout


def model(epochs: int, units: int, seed: int) -> RecurrentLM:
    training = replace(
        MODEST, epochs=epochs, batch=20, steps=35, rate=3e-3, hold=0.3, last_rate=0.01, clip=1.0, sampled=1000
    )
    dropout = Dropout(words=0.0, input=0.3, between=0.3, output=0.3, recurrent=0.0)
    return RecurrentLM("lstm", units, units, layers=1, dropout=dropout, training=training, seed=seed, device="cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("FOREWORD_DATA", "."), "ptb"))
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--units", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--words", type=int, help="read only the first N words of each split")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    data = corpora(given.data, given.words)[False]
    learner = model(given.epochs, given.units, given.seed)
    began, worked, told = time.perf_counter(), time.process_time(), 0.0
    for step in learner.train(data["train"], valid=data["valid"]):
        seconds = time.perf_counter() - began
        if seconds - told > 10:
            told = seconds
            sys.stderr.write(
                f"{seconds:6.0f} s  {step.done / step.total:4.0%}  {step.done / seconds:6.0f} words/s"
                f"  loss {step.loss:.2f}  valid {math.exp(-learner.valid_score_):.1f}\n"
            )
    facts = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - worked}
    facts |= {split: math.exp(-learner.score(data[split])) for split in ("valid", "test")}
    facts |= {"parameters": learner.parameter_count, "threads": given.threads}
    sys.stdout.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
