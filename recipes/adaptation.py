"""A trained neural model plain, with a neural cache and by dynamic evaluation: three numbers, never mixed.

    python recipes/awd_lstm.py --data FOLDER --epochs 320 --save MODEL
    python recipes/adaptation.py --data FOLDER --model MODEL           any neural language model of this text
    python recipes/adaptation.py --data FOLDER --model MODEL --words 20000        valid cut short for choosing

The first row adapts to nothing. The others listen to the text they are scored on: the cache looks back at it, dynamic
evaluation learns from it. The train split says how far dynamic evaluation may move each weight; the valid split chooses
every setting; the test split is then scored once each way, from its first word to its last. With ``--out`` the rows go
to a file, docs/results/adaptation.json, as they come; ``--title`` says there how the model was trained. Rows of another
machine's file are added by ``--take FILE``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from awd_lstm import corpora, talk

from foreword.lessons.claims.results import provenance, stored_rows, take_rows, write_result
from foreword.mix.neural_cache import NeuralCache
from foreword.neural.dynamic import DynamicEvaluation
from foreword.neural.model import NeuralLM
from foreword.storage.folder import load
from foreword.tokens.corpus import Corpus

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "adaptation.json"
MEASURE = (
    "perplexity of the whole text, the state carried; adapted to the text that is scored by a cache or by learning, so "
    "not comparable with rows of other tables; every setting chosen on valid"
)


@dataclass(frozen=True, slots=True)
class Row:
    """way: plain, neural cache or dynamic. seconds: choosing and scoring. settings: what valid chose."""

    way: str
    settings: str
    seconds: float
    valid: float
    test: float


def rows(model: NeuralLM, data: dict[str, Corpus], words: int) -> Iterator[Row]:
    few = Corpus.from_ids([data["valid"].ids[: words - 1]], model.vocab)
    yield measured("plain", model, "", data, time.perf_counter())
    began = time.perf_counter()
    cache = NeuralCache.tuned(model, data["valid"])
    told = f"size {cache.size}, theta {cache.theta:g}, weight {cache.weight:.3f}"
    yield measured("neural cache", cache, told, data, began)
    began = time.perf_counter()
    dynamic = DynamicEvaluation(model).measure_gradients(data["train"]).tune(few)
    told = f"rate {dynamic.rate:.3g}, decay {dynamic.decay:g}, steps {dynamic.steps}"
    yield measured("dynamic evaluation", dynamic, told, data, began)


def measured(way: str, model: Any, settings: str, data: dict[str, Corpus], began: float) -> Row:
    scores = [math.exp(-model.score(data[split])) for split in ("valid", "test")]
    row = Row(way, settings, time.perf_counter() - began, *scores)
    talk(f"{row}")
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder that the model was trained on")
    parser.add_argument("--model", type=Path, help="what --save wrote")
    parser.add_argument("--words", type=int, default=1 << 62, help="of valid, for choosing rate and decay")
    parser.add_argument("--title", default="", help="how the model was trained, for --out")
    parser.add_argument("--out", type=Path, help="a file of results; rows are added to it")
    parser.add_argument("--commit", help="of the code, where this is no checkout")
    parser.add_argument("--json", action="store_true", help="the table for machines")
    parser.add_argument("--take", type=Path, metavar="FILE", help="run nothing: add the rows of another machine's file")
    given = parser.parse_args()
    if given.take is not None:
        take_rows(given.out or RESULTS, given.take)
        return
    if given.data is None or given.model is None:
        parser.error("--data and --model are needed: the text's folder, and what --save wrote")
    model, data = load(given.model), corpora(given.data)
    if not isinstance(model, NeuralLM) or model.vocab != data["train"].vocab:
        parser.error(f"{given.model} is no neural model of this text's vocabulary")
    torch.backends.cuda.matmul.allow_tf32 = False
    found: list[Row] = []
    for row in rows(model, data, given.words):
        found.append(row)
        if given.out is not None:
            facts = {"model": given.title, **provenance(0, row.seconds, commit=given.commit), **asdict(row)}
            write_result(given.out, {"measure": MEASURE, "rows": [*stored_rows(given.out), facts]})
    if given.json:
        sys.stdout.write(json.dumps([asdict(row) for row in found]) + "\n")
        return
    sys.stdout.write("| | settings | seconds | valid | test |\n|---|---|---|---|---|\n")
    for row in found:
        sys.stdout.write(f"| {row.way} | {row.settings} | {row.seconds:.0f} | {row.valid:.2f} | {row.test:.2f} |\n")


if __name__ == "__main__":
    main()
