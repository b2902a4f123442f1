"""What a recurrent classifier gains by ELMo: a small one from unlabelled film reviews, and a few labelled sentences.

    python recipes/elmo_classifier.py --data FOLDER --words 400000 --texts 500

ELMo reads sentences of IMDB's unlabelled reviews, in lower case. The classifier learns SST-2, whether a sentence likes
its film, from the first so many of its train part, keeps the epoch that is best on the dev part, and is scored on the
test part: with words of its own alone, with the first layer of ELMo beside them (a vector for every word, the same
wherever it stands), and with all layers. Several seeds of the classifier each.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import numpy as np
import torch

from foreword import ELMo, RecurrentClassifier, load, read_documents, read_labelled, save
from foreword.text.datasets import find
from foreword.text.examples import LabelledReading

PIECES = re.compile(r"\w+|[^\w\s]")
STOPS = re.compile(r"(?<=[.!?])\s+|<br />")


def sentences(words: int) -> Iterator[list[str]]:
    """So many words of reviews, in sentences of 4 to 60."""
    left = words
    for document in read_documents(find("imdb:unsup")):
        for line in STOPS.split(document.lower()):
            found = PIECES.findall(line)
            if 4 <= len(found) <= 60:
                yield found
                left -= len(found)
            if left <= 0:
                return


def learnt(words: int, epochs: int, folder: Path | None) -> ELMo:
    if folder is not None and folder.exists():
        kept: ELMo = load(folder)
        return kept
    read = list(sentences(words))
    train, held = read[:-200], read[-200:]
    model = ELMo(units=128, sampled=1000, words=20_000, epochs=epochs, dropout=0.0)
    began = told = time.perf_counter()
    for step in model.train(train):
        now = time.perf_counter()
        if now - told > 10:
            told = now
            talk(f"{now - began:5.0f} s  {step.done / step.total:4.0%}  loss {step.loss:.3f}")
    talk(f"perplexity of held-out sentences, both ways: {np.exp(-model.score(held)):.1f}")
    if folder is not None:
        save(model, folder)
    return model


def labelled(split: str) -> tuple[list[str], list[str]]:
    examples = list(read_labelled(find(f"sst2:{split}"), LabelledReading(format="label-first")))
    return [each.text for each in examples], [each.label for each in examples]


def gains(model: ELMo, count: int, seeds: int, epochs: int) -> dict[str, list[float]]:
    """The share of right labels on the test part, by what the classifier reads with."""
    train, valid, test = (labelled(split) for split in ("train", "valid", "test"))
    by_letters, mixed = (ELMo.from_parts(model.to_parts()) for _ in range(2))
    by_letters.mix_ = np.eye(model.layers + 1)[0]
    found: dict[str, list[float]] = {"nothing": [], "static": [], "contextual": []}
    for seed in range(seeds):
        for name, embedder in zip(found, (None, by_letters, mixed), strict=True):
            classifier = RecurrentClassifier(embedder=embedder, epochs=epochs, seed=seed, device="cpu")
            classifier.fit(train[0][:count], train[1][:count], valid=valid)
            found[name].append(round(classifier.score(*test), 4))
            talk(f"seed {seed}, {name}: valid {classifier.valid_score_:.4f}, test {found[name][-1]:.4f}")
    return found


def talk(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of data sets; FOREWORD_DATA where it is not given")
    parser.add_argument("--words", type=int, default=400_000, help="of reviews")
    parser.add_argument("--epochs", type=int, default=1, help="of ELMo")
    parser.add_argument("--texts", type=int, default=500, help="that the classifier learns from")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--classifier-epochs", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="keep ELMo in this folder, or take it from there")
    given = parser.parse_args()
    if given.data:
        os.environ["FOREWORD_DATA"] = str(given.data)
    torch.set_num_threads(given.threads)
    model = learnt(given.words, given.epochs, given.keep)
    found = gains(model, given.texts, given.seeds, given.classifier_epochs)
    sys.stdout.write(
        json.dumps({"accuracy": found, "means": {name: mean(each) for name, each in found.items()}}) + "\n"
    )


if __name__ == "__main__":
    main()
