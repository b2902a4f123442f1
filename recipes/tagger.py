"""Names, chunks and parts of speech by the neural tagger: one table's row each.

    python recipes/tagger.py names  --data FOLDER           CoNLL-2003, IOB1 in the file, BIOES inside
    python recipes/tagger.py chunks --data FOLDER           CoNLL-2000, BIO
    python recipes/tagger.py words  --data FOLDER           UD English-EWT, universal parts of speech
    python recipes/tagger.py names  --data FOLDER --vectors FILE      with word vectors from before

The held-out part chooses the epoch: testa of CoNLL-2003, the dev part of EWT; CoNLL-2000 has none, so every tenth
sentence of its training part is kept back. The test part is tagged once, at the end. Each is meant to take less than
20 minutes on two CPU cores, and uses a GPU where there is one. A whole run is a row of docs/results/tagger.json and
replaces the row of the same name; a run with --sentences is not stored.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

from foreword import BiLSTMTagger, save
from foreword.evaluate.tagging import measure_spans
from foreword.lessons.claims.results import provenance, stored_rows, write_result
from foreword.tag.conll import read_conll
from foreword.tag.conllu import Tagged, read_conllu
from foreword.text.datasets import find

SETTINGS: dict[str, dict[str, Any]] = {
    "names": {"scheme": "iob1", "column": "-1", "characters": "lstm", "epochs": 14, "rate": 3e-3},
    "chunks": {"scheme": "bio", "column": "-1", "epochs": 20},
    "words": {"crf": False, "epochs": 9, "batch": 32, "rate": 3e-3},
}
KEPT_BACK = 10
"""Every tenth sentence, where there is no held-out part."""


def parts(task: str) -> dict[str, Tagged]:
    if task == "names":
        return {split: read_conll(find(f"conll2003:{split}")) for split in ("train", "valid", "test")}
    if task == "words":
        return {split: read_conllu(find(f"ud_english_ewt:{split}")) for split in ("train", "valid", "test")}
    whole = read_conll(find("conll2000:train"))
    pairs = list(zip(*whole, strict=True))
    kept = {place for place in range(len(pairs)) if place % KEPT_BACK == 0}
    split = {
        name: Tagged(
            *map(list, zip(*(pair for place, pair in enumerate(pairs) if (place in kept) == back), strict=True))
        )
        for name, back in (("train", False), ("valid", True))
    }
    return {**split, "test": read_conll(find("conll2000:test"))}


def learn(tagger: BiLSTMTagger, data: dict[str, Tagged]) -> None:
    """Tell every ten seconds how far it is."""
    began, told = time.perf_counter(), 0.0
    for step in tagger.train(*data["train"], valid=data["valid"]):
        seconds = time.perf_counter() - began
        if seconds - told > 10:
            told = seconds
            sys.stderr.write(
                f"{seconds:6.0f} s  {step.done / step.total:4.0%}  {step.done / seconds:6.0f} words/s"
                f"  loss {step.loss:.3f}  valid {tagger.valid_score_:.4f}\n"
            )


def measured(tagger: BiLSTMTagger, test: Tagged) -> dict[str, Any]:
    predicted = tagger.predict(test.sentences)
    pairs = [pair for both in zip(predicted, test.tags, strict=True) for pair in zip(*both, strict=True)]
    facts: dict[str, Any] = {"accuracy": sum(ours == theirs for ours, theirs in pairs) / len(pairs)}
    return facts if tagger.scheme is None else {**facts, "test": measure_spans(predicted, test.tags).to_json()}


def store(file: Path, row: dict[str, Any]) -> None:
    """Replace the row of the same name, or add it."""
    others = [each for each in stored_rows(file) if each["row"] != row["row"]]
    write_result(file, {"measure": "F1 of spans, or the share of right tags", "rows": [*others, row]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=SETTINGS)
    parser.add_argument("--data", type=Path, help="the folder of data sets; FOREWORD_DATA where it is not given")
    parser.add_argument("--vectors", help="word vectors in any format that foreword reads")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int, help="learn from the first N only, and leave the test part alone")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="a setting of the tagger")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="keep the tagger in this folder")
    parser.add_argument("--out", type=Path, default=Path("docs/results/tagger.json"))
    given = parser.parse_args()
    if given.data:
        os.environ["FOREWORD_DATA"] = str(given.data)
    torch.set_num_threads(given.threads)
    more = {name: json.loads(value) for name, _, value in (each.partition("=") for each in given.set)}
    settings = {**SETTINGS[given.task], "vectors": given.vectors, "seed": given.seed, **more}
    if given.epochs:
        settings["epochs"] = given.epochs
    data = parts(given.task)
    data["train"] = Tagged(*(part[: given.sentences] for part in data["train"]))
    tagger = BiLSTMTagger(**settings)
    began, worked = time.perf_counter(), time.process_time()
    learn(tagger, data)
    facts: dict[str, Any] = {"row": given.task + (" with vectors" if given.vectors else "")}
    facts |= provenance(given.seed, time.perf_counter() - began)
    facts |= {"cpu_seconds": round(time.process_time() - worked, 1), "threads": given.threads}
    facts |= {"epochs": settings["epochs"], "valid": round(tagger.valid_score_, 4)}
    if not given.sentences:  # the test part is for the whole recipe alone
        facts |= measured(tagger, data["test"])
        store(given.out, facts)
    if given.save:
        save(tagger, given.save)
    sys.stdout.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
