"""What docs/elmo.md shows: a small ELMo from Wikipedia, words of two senses, and a tagger that reads with it.

    python recipes/elmo_page.py --data FOLDER --words 1000000 --sentences 300

The text is enwiki2014, cut into sentences at full stops; the tagger learns universal parts of speech from the first few
sentences of UD English-EWT and is measured on its dev part: with nothing beside its own words and letters, with the
first layer of ELMo alone (a vector for every word, the same wherever it stands), and with all layers mixed, the mix
learnt from the same few sentences. Two seeds of the tagger each.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foreword import BiLSTMTagger, ELMo, load, read_documents, save
from foreword.tag.conllu import Tagged, read_conllu
from foreword.text.datasets import find

PIECES = re.compile(r"\w+|[^\w\s]")
STOPS = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
SEEDS = 2

PAIRS = [
    ("bank", "The data bank holds millions of records .", "The bank manager gave them a loan ."),
    ("Java", "They sailed to the island of Java .", "The program is written in Java ."),
]


def sentences(documents: Iterable[str], words: int) -> Iterator[list[str]]:
    """So many words of them, in sentences of 4 to 60."""
    left = words
    for document in documents:
        for line in STOPS.split(document):
            found = PIECES.findall(line)
            if 4 <= len(found) <= 60:
                yield found
                left -= len(found)
            if left <= 0:
                return


def learnt(documents: Iterable[str], words: int, epochs: int, folder: Path | None) -> ELMo:
    """A small ELMo that has read so many words, or the one that is in the folder."""
    if folder is not None and folder.exists():
        kept: ELMo = load(folder)
        return kept
    read = list(sentences(documents, words))
    train, held = read[:-200], read[-200:]
    model = ELMo(units=128, sampled=1000, words=20_000, epochs=epochs, dropout=0.0)
    began = told = time.perf_counter()
    for step in model.train(train):
        now = time.perf_counter()
        if now - told > 10:
            told = now
            talk(f"{now - began:5.0f} s  {step.done / step.total:4.0%}  {step.done / (now - began):6.0f} words/s"
                 f"  loss {step.loss:.3f}")  # fmt: skip
    talk(f"perplexity of held-out sentences, both ways: {np.exp(-model.score(held)):.1f}")
    if folder is not None:
        save(model, folder)
    return model


def distances(model: ELMo) -> list[dict[str, Any]]:
    """1 − cosine between the two places of a word, layer by layer."""
    found = []
    for word, one, other in PAIRS:
        both = [each.split() for each in (one, other)]
        a, b = (rows[:, words.index(word)] for rows, words in zip(model.layered(both), both, strict=True))
        cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        found.append({"word": word, "one": one, "other": other, "distances": (1 - cosines).round(4).tolist()})
    return found


def gains(model: ELMo, count: int, epochs: int) -> dict[str, list[float]]:
    """The share of right tags on the dev part, by what the tagger reads with."""
    whole, valid = (read_conllu(find(f"ud_english_ewt:{split}")) for split in ("train", "valid"))
    few = Tagged(*(part[:count] for part in whole))
    by_letters, mixed = (ELMo.from_parts(model.to_parts()) for _ in range(2))
    by_letters.mix_ = np.eye(model.layers + 1)[0]
    mixed.fit_mix(*few)
    talk(f"the mix: {mixed.mix_.round(3).tolist()}, gamma {mixed.gamma_:.2f}")
    found: dict[str, list[float]] = {"nothing": [], "static": [], "contextual": []}
    for seed in range(SEEDS):
        for name, embedder in zip(found, (None, by_letters, mixed), strict=True):
            tagger = BiLSTMTagger(crf=False, epochs=epochs, embedder=embedder, seed=seed).fit(*few)
            found[name].append(round(tagger.score(*valid), 4))
            talk(f"seed {seed}, {name}: {found[name][-1]:.4f}")
    return found


def talk(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of data sets; FOREWORD_DATA where it is not given")
    parser.add_argument("--words", type=int, default=1_000_000, help="of Wikipedia")
    parser.add_argument("--epochs", type=int, default=1, help="of ELMo")
    parser.add_argument("--sentences", type=int, default=300, help="that the tagger learns from")
    parser.add_argument("--tagger-epochs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="keep ELMo in this folder, or take it from there")
    given = parser.parse_args()
    if given.data:
        os.environ["FOREWORD_DATA"] = str(given.data)
    torch.set_num_threads(given.threads)
    model = learnt(read_documents(find("enwiki")), given.words, given.epochs, given.keep)
    facts = {"distances": distances(model), "accuracy": gains(model, given.sentences, given.tagger_epochs)}
    sys.stdout.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
