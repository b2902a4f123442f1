"""IMDB by an LSTM that has read 75,000 reviews before it is told what they mean: accuracy on the test part.

    python recipes/imdb_lstm.py --folder RUN                              all of it: 5 minutes on one H200
    python recipes/imdb_lstm.py --folder RUN --pause 540                  as many times as it takes to end
    python recipes/imdb_lstm.py --folder RUN --directions 2               a second model that reads from the end
    python recipes/imdb_lstm.py --folder RUN --tiny                       a minute on a CPU, to see that it runs

A language model learns from the unlabelled reviews and the training part (no label is read), for a fixed time; the
classifier begins with it and learns from the training part. Every twentieth training review is kept back to watch both;
the test part is read once, at the end. With two directions the probabilities of both classifiers are multiplied. What
is done is saved in the folder, and a stopped run resumes from there.
Data: imdb:train, imdb:test and imdb:unsup in $FOREWORD_DATA.

A. Dai and Q. Le, "Semi-supervised sequence learning" (2015): 92.76 %; J. Howard and S. Ruder, "Universal language model
fine-tuning for text classification" (2018): 95.4 %, after 103 million words of Wikipedia and in both directions.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from foreword import AWDLSTM, RecurrentClassifier, TextLM, WordTokenizer, load, save
from foreword.nn.dropout import Dropout
from foreword.storage.checkpoint import Checkpoint
from foreword.text.datasets import find, labelled
from foreword.text.sources import read_documents
from foreword.tokens.corpus import Corpus
from foreword.training.settings import Training

CLASSIFYING = 240.0
"""Seconds that a classifier takes, at most: with fewer left before the pause it is not begun."""

KEPT_BACK = 20
"""Every twentieth training review is for watching."""

DROPOUT = Dropout(words=0.02, input=0.2, between=0.15, output=0.1, recurrent=0.2)
"""Thirty million words read a few times are hardly learnt by heart."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """tokens: of the vocabulary. reviews: of each part at most."""

    tokens: int = 30_000
    embedding: int = 512
    hidden: int = 1024
    layers: int = 3
    lm_batch: int = 128
    lm_steps: int = 70
    batch: int = 64
    epochs: int = 3
    reviews: int | None = None


TINY = Sizes(2000, 32, 32, 2, 16, 35, 16, 1, 120)


@dataclass(frozen=True, slots=True)
class Reviews:
    """Training texts and labels, those kept back, test texts and labels, and texts without a label."""

    train: tuple[list[str], list[str]]
    valid: tuple[list[str], list[str]]
    test: tuple[list[str], list[str]]
    unlabelled: list[str]


def reviews(sizes: Sizes) -> Reviews:
    def part(split: str) -> tuple[list[str], list[str]]:
        """Return the first ``count`` of each label, the labels in turn."""
        found = [(label, text.replace("<br />", " ")) for label, text in labelled(f"imdb:{split}")]
        if sizes.reviews is not None:
            kinds = sorted({label for label, _ in found})
            found = [each for kind in kinds for each in [pair for pair in found if pair[0] == kind][: sizes.reviews]]
        return [text for _, text in found], [label for label, _ in found]

    texts, labels = part("train")
    kept = [place % KEPT_BACK == 0 for place in range(len(texts))]
    split = [
        ([t for t, k in zip(texts, kept, strict=True) if k == back],
         [v for v, k in zip(labels, kept, strict=True) if k == back])
        for back in (False, True)
    ]  # fmt: skip
    unlabelled = [text.replace("<br />", " ") for text in read_documents(find("imdb:unsup"))]
    return Reviews(split[0], split[1], part("test"), unlabelled[: sizes.reviews])


def language_model(
    folder: Path, data: Reviews, sizes: Sizes, seconds: float, until: float, seed: int, *, from_end: bool
) -> TextLM | None:
    """The one that is in the folder, or the one that is trained; None where the time was up before the end."""
    if folder.exists():
        found: TextLM = load(folder)
        return found
    tokenizer = WordTokenizer(split="punctuation", lowercase=True, max_size=sizes.tokens)
    texts = [*data.unlabelled, *data.train[0]]
    tokenizer.fit(texts)
    train, valid = (Corpus.from_texts(part, tokenizer, threads=None) for part in (texts, data.valid[0]))
    if from_end:
        train, valid = turned(train), turned(valid)
    training = Training(
        epochs=1 if sizes.reviews else 100,  # the clock ends it
        batch=sizes.lm_batch,
        steps=sizes.lm_steps,
        shuffle=True,
        optimiser="adam",
        rate=1.5e-3,
        warm_up=200,
        hold=0.1,
        last_rate=0.02,
        clip=0.5,
        weight_decay=0.0,
        activation=1.0,
        change=0.5,
        averages=(20.0,),
        seconds=seconds,
        precision="float16" if torch.cuda.is_available() else "float32",
    )
    shape = (sizes.embedding, sizes.hidden, sizes.layers)
    model = AWDLSTM(*shape, dropout=DROPOUT, training=training, seed=seed)
    checkpoint = Checkpoint(folder.with_suffix(".checkpoint"), every=1e9)
    told = time.monotonic()
    talk(f"language model: {len(train.ids):,} tokens, {len(train.vocab):,} words, {model!r}")
    for step in model.train(train, valid=valid, checkpoint=checkpoint):
        now = time.monotonic()
        if now - told > 10:
            told = now
            talk(f"  {step.done / step.total:4.0%}  {step.done:,} tokens  train {math.exp(step.loss):.1f}"
                 f"  valid {math.exp(-model.valid_score_):.1f}  rate {step.rate:.2g}")  # fmt: skip
        if checkpoint.written:
            talk(f"paused: {checkpoint.path} holds it; the same command resumes")
            return None
        if now > until:
            checkpoint.ask()
    talk(f"  perplexity of reviews kept back: {math.exp(-model.valid_score_):.2f}")
    both = TextLM(tokenizer, model)
    save(both, folder)
    checkpoint.path.unlink(missing_ok=True)
    return both


def classifier(
    folder: Path, lm: TextLM, data: Reviews, sizes: Sizes, seed: int, more: dict[str, Any], *, from_end: bool
) -> RecurrentClassifier:
    if folder.exists():
        found: RecurrentClassifier = load(folder)
        return found
    usual: dict[str, Any] = {"words": 1200, "epochs": sizes.epochs, "batch": sizes.batch, "rate": 8e-3}
    usual |= {"dropout": 0.4, "layer_dropout": 0.1, "precision": "float16" if torch.cuda.is_available() else "float32"}
    model = RecurrentClassifier(lm, from_end=from_end, seed=seed, **{**usual, **more})
    began = told = time.monotonic()
    for step in model.train(*data.train, valid=data.valid):
        now = time.monotonic()
        if now - told > 10:
            told = now
            talk(f"  {step.done / step.total:4.0%}  loss {step.loss:.3f}  valid {model.valid_score_:.4f}"
                 f"  rate {step.rate:.2g}  {now - began:.0f} s")  # fmt: skip
    talk(f"  right of the reviews kept back: {model.valid_score_:.4f}")
    save(model, folder)
    return model


def measured(models: list[RecurrentClassifier], data: Reviews) -> dict[str, Any]:
    texts, labels = data.test
    logs = [model.predict_log_proba(texts) for model in models]

    def right(scores: NDArray[Any]) -> float:
        said = [models[0].classes_[place] for place in scores.argmax(1).tolist()]
        return float(np.mean([ours == theirs for ours, theirs in zip(said, labels, strict=True)]))

    return {"accuracy": right(np.sum(logs, axis=0)), "each": [right(each) for each in logs], "texts": len(texts)}


def turned(corpus: Corpus) -> Corpus:
    """Every review from its last word to its first."""
    return Corpus.from_ids([document[:-1][::-1] for document in corpus.documents()], corpus.vocab)


def talk(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where models and pauses are kept")
    parser.add_argument("--data", type=Path, help="the folder of data sets; FOREWORD_DATA where it is not given")
    parser.add_argument("--seconds", type=float, help="of each language model", default=None)
    parser.add_argument("--directions", type=int, choices=(1, 2), default=1)
    parser.add_argument("--pause", type=float, default=1e9, help="seconds after which a language model is put aside")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="a setting of the classifier")
    parser.add_argument("--tiny", action="store_true", help="a few reviews and a small network")
    given = parser.parse_args()
    until = time.monotonic() + given.pause
    if given.data:
        os.environ["FOREWORD_DATA"] = str(given.data)
    more = {name: json.loads(value) for name, _, value in (each.partition("=") for each in given.set)}
    sizes = TINY if given.tiny else Sizes()
    seconds = given.seconds or (0.0 if given.tiny else 210.0 / given.directions)
    given.folder.mkdir(parents=True, exist_ok=True)
    data = reviews(sizes)
    models, began = [], time.monotonic()
    for direction in ("forward", "backward")[: given.directions]:
        from_end = direction == "backward"
        place = given.folder / f"{direction}-lm"
        lm = language_model(place, data, sizes, seconds, until, given.seed, from_end=from_end)
        if lm is None:
            return
        if time.monotonic() > until - CLASSIFYING:
            talk(f"paused: {place} is there, the classifier comes next; the same command resumes")
            return
        place = given.folder / f"{direction}-classifier"
        models.append(classifier(place, lm, data, sizes, given.seed, more, from_end=from_end))
    facts = measured(models, data) | {"seconds": time.monotonic() - began}
    sys.stdout.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
