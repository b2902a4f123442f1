"""What a recurrent classifier gains by ELMo: a small one from unlabelled film reviews, and a few labelled sentences.

    python recipes/elmo_classifier.py --data FOLDER --words 400000 --texts 500

ELMo reads sentences of IMDB's unlabelled reviews, in lower case. The classifier learns SST-2, whether a sentence likes
its film, from the first N of its train part, keeps the epoch that is best on the dev part, and is scored on the
test part: with words of its own alone, with the first layer of ELMo next to them (a vector for every word, the same
wherever it stands), and with all layers. Several seeds of the classifier each.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from statistics import mean

import numpy as np
import torch
from elmo_page import learnt, talk

from foreword import ELMo, RecurrentClassifier, read_documents, read_labelled
from foreword.text.datasets import find
from foreword.text.labelled import LabelledReading

STOPS = re.compile(r"(?<=[.!?])\s+|<br />")
"""Where sentences end that are in lower case."""


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
    lines = (line for text in read_documents(find("imdb:unsup")) for line in STOPS.split(text.lower()))
    model = learnt(lines, given.words, given.epochs, given.keep)
    found = gains(model, given.texts, given.seeds, given.classifier_epochs)
    sys.stdout.write(
        json.dumps({"accuracy": found, "means": {name: mean(each) for name, each in found.items()}}) + "\n"
    )


if __name__ == "__main__":
    main()
