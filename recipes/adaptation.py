"""A trained neural model plain, with a neural cache and by dynamic evaluation: three numbers, never mixed.

    python recipes/awd_lstm.py --data FOLDER --epochs 320 --save MODEL
    python recipes/adaptation.py --data FOLDER --model MODEL
    python recipes/adaptation.py --data FOLDER --model MODEL --words 20000        valid cut short for choosing

The first row adapts to nothing. The others listen to the text they are scored on: the cache looks back at it, dynamic
evaluation learns from it. The train split says how far dynamic evaluation may move each weight; the valid split chooses
every setting; the test split is then scored once each way, from its first word to its last.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from awd_lstm import corpora, talk

from foreword.mix.neural_cache import NeuralCache
from foreword.neural.dynamic import DynamicEvaluation
from foreword.neural.model import NeuralLM
from foreword.storage.folder import load
from foreword.tokens.corpus import Corpus


@dataclass(frozen=True, slots=True)
class Row:
    """way: plain, neural cache or dynamic. seconds: choosing and scoring. settings: what valid chose."""

    way: str
    settings: str
    seconds: float
    valid: float
    test: float


def rows(model: NeuralLM, data: dict[str, Corpus], words: int) -> list[Row]:
    few = Corpus.from_ids([data["valid"].ids[: words - 1]], model.vocab)
    found = [measured("plain", model, "", data, time.perf_counter())]
    began = time.perf_counter()
    cache = NeuralCache.tuned(model, data["valid"])
    told = f"size {cache.size}, theta {cache.theta:g}, weight {cache.weight:.3f}"
    found.append(measured("neural cache", cache, told, data, began))
    began = time.perf_counter()
    dynamic = DynamicEvaluation(model).measure_gradients(data["train"]).tune(few)
    told = f"rate {dynamic.rate:.3g}, decay {dynamic.decay:g}, steps {dynamic.steps}"
    found.append(measured("dynamic evaluation", dynamic, told, data, began))
    return found


def measured(way: str, model: Any, settings: str, data: dict[str, Corpus], began: float) -> Row:
    scores = [math.exp(-model.score(data[split])) for split in ("valid", "test")]
    row = Row(way, settings, time.perf_counter() - began, *scores)
    talk(f"{row}")
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that the model was trained on")
    parser.add_argument("--model", type=Path, required=True, help="what --save wrote")
    parser.add_argument("--words", type=int, default=1 << 62, help="of valid, for choosing rate and decay")
    parser.add_argument("--json", action="store_true", help="the table for machines")
    given = parser.parse_args()
    model, data = load(given.model), corpora(given.data)
    if not isinstance(model, NeuralLM) or model.vocab != data["train"].vocab:
        parser.error(f"{given.model} is no neural model of this text's vocabulary")
    torch.backends.cuda.matmul.allow_tf32 = False
    found = rows(model, data, given.words)
    if given.json:
        sys.stdout.write(json.dumps([asdict(row) for row in found]) + "\n")
        return
    sys.stdout.write("| | settings | seconds | valid | test |\n|---|---|---|---|---|\n")
    for row in found:
        sys.stdout.write(f"| {row.way} | {row.settings} | {row.seconds:.0f} | {row.valid:.2f} | {row.test:.2f} |\n")


if __name__ == "__main__":
    main()
