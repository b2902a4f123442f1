"""Penn Treebank or WikiText-2 by AWD-LSTM (row P07): perplexity against seconds of training on one GPU.

    python recipes/awd_lstm.py --data FOLDER --epochs 320 --marks 100,200,300
    python recipes/awd_lstm.py --text wikitext-2 --data FOLDER --epochs 220
    python recipes/awd_lstm.py --data FOLDER --epochs 320 --mogrify 5 --softmaxes 15       options that cost their time
    python recipes/awd_lstm.py --data FOLDER --epochs 320 --save MODEL      then recipes/adaptation.py --model MODEL
    python recipes/awd_lstm.py --data FOLDER --epochs 320 --out FOLDER      the last row into FOLDER/awd_lstm.json
    python recipes/awd_lstm.py --text wikitext-2 --logprobs FOLDER          of every word, for recipes/infinigram.py
    python recipes/awd_lstm.py --epochs 0 --out FOLDER                      the stored rows alone, in today's form

The folder holds ptb.train.txt, ptb.valid.txt and ptb.test.txt, or train.txt and so on (.xz will do). The model learns
from the first alone; the second chooses among averages and epochs; the third is read at the very end, once for each row
of the table, from its first word to its last with batch 1 in float32. No other text is used, and nothing is adapted
while testing. A row of the table is the model that had been chosen when that many seconds had passed since training
began, looks at the held-out text included. awd_lstm.json has the rows of docs/results/awd_lstm.json too; those without
a commit are marked as legacy.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import os
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foreword.lessons.claims.results import provenance, stored_rows, write_result
from foreword.neural.awd_lstm import AWDLSTM
from foreword.nn.dropout import Dropout
from foreword.protocols import Parts
from foreword.storage.checkpoint import Checkpoint
from foreword.storage.folder import save
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.settings import Training

PUBLISHED = {"ptb": 57.3, "wikitext-2": 65.8}
"""S. Merity, N. Keskar and R. Socher, "Regularizing and optimizing LSTM language models" (2018)."""

RESULT = Path(__file__).parents[1] / "docs" / "results" / "awd_lstm.json"
MARKS = (100.0, 200.0, 300.0, 400.0, 500.0)


@dataclass(frozen=True, slots=True)
class Row:
    """The model that valid had chosen after a number of seconds. epochs: read until then."""

    seconds: float
    epochs: float
    valid: float
    test: float


@dataclass(frozen=True, slots=True)
class Pause:
    """A run in parts: stop this part after a number of seconds and save it. already: seconds of those before."""

    path: Path
    seconds: float
    already: float


def read_words(folder: Path, split: str) -> list[str]:
    """A split as one text, every line ended by ``</s>``."""
    names = (f"ptb.{split}.txt", f"{split}.txt")
    path = next((folder / name for name in names if any(folder.glob(f"{name}*"))), folder / names[0])
    text = path.read_text() if path.exists() else lzma.decompress(Path(f"{path}.xz").read_bytes()).decode()
    return [word for line in text.splitlines() for word in (*line.split(), "</s>")]


def corpora(folder: Path) -> dict[str, Corpus]:
    """Each split as one document, so that state is carried through all of it."""
    words = {split: read_words(folder, split) for split in ("train", "valid", "test")}
    vocab = Vocab(sorted(set(words["train"])))
    return {
        split: Corpus.from_ids([[vocab.id(word) for word in read[:-1]]], vocab)  # the last end is added there
        for split, read in words.items()
    }


def settings(epochs: int, rate: float | None = None) -> Training:
    """What reached a test perplexity of 56.3 on the Penn Treebank in 320 epochs, eight minutes on one H200."""
    on_gpu = torch.cuda.is_available()
    training = Training(
        epochs=epochs,
        averages=(3.0, 10.0),
        evaluate_every=max(1, min(12, epochs // 10)),
        precision="float16" if on_gpu else "float32",
    )
    return training if rate is None else replace(training, rate=rate)


DROPOUT = {"ptb": Dropout(), "wikitext-2": Dropout(words=0.1, input=0.6, between=0.2, output=0.4, recurrent=0.5)}
"""A text twice as long needs to be kept from being learnt by heart a little less."""


def train(
    data: dict[str, Corpus],
    dropout: Dropout,
    epochs: int,
    marks: tuple[float, ...],
    seed: int,
    pause: Pause | None = None,
    save_to: Path | None = None,
    mogrify: int = 0,
    softmaxes: int = 1,
    rate: float | None = None,
    logprobs: Path | None = None,
) -> list[Row]:
    training = settings(epochs, rate)
    model = AWDLSTM(mogrify=mogrify, softmaxes=softmaxes, dropout=dropout, training=training, seed=seed)
    kept: list[tuple[float, float, Parts]] = []
    checkpoint = None if pause is None else Checkpoint(pause.path, every=pause.seconds)
    before = 0.0 if pause is None else pause.already
    began = told = time.perf_counter() - before
    waiting = sorted(mark for mark in marks if mark > before)
    for step in model.train(data["train"], valid=data["valid"], checkpoint=checkpoint):
        now = time.perf_counter()
        seconds, share = now - began, step.done / step.total
        if now - told > 10:
            told = now
            talk(f"{seconds:6.0f} s  epoch {share * epochs:6.1f}  train {math.exp(step.loss):7.2f}"
                 f"  valid {math.exp(-model.valid_score_):7.2f}  rate {step.rate:.1f}")  # fmt: skip
        if waiting and seconds >= waiting[0]:
            waiting.pop(0)
            kept.append((seconds, share * epochs, model.to_parts()))
        if checkpoint is not None and checkpoint.written:
            talk(f"paused after {seconds:.1f} s: resume with --already {seconds:.1f}")
            break
    else:
        kept.append((time.perf_counter() - began, float(epochs), model.to_parts()))
        if save_to is not None:
            save(model, save_to)
            talk(f"the model is in {save_to}")
    return [measured(seconds, read, parts, data, logprobs) for seconds, read, parts in kept]


def measured(seconds: float, epochs: float, parts: Parts, data: dict[str, Corpus], logprobs: Path | None) -> Row:
    """Score the held-out splits; the log-probabilities of the last row stay in a folder, if one is given."""
    model = AWDLSTM.from_parts(parts)
    logs = {split: model.logprobs(data[split]) for split in ("valid", "test")}
    if logprobs is not None:
        logprobs.mkdir(parents=True, exist_ok=True)
        for split, found in logs.items():
            np.save(logprobs / f"awd-lstm.{split}.npy", found)
    row = Row(seconds, epochs, *(math.exp(-float(np.asarray(found, np.float64).mean())) for found in logs.values()))
    talk(f"{row}")
    return row


def write_rows(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write awd_lstm.json: the stored rows of other texts and epochs, and these."""
    new = {(row["text"], row["epochs"]) for row in rows}
    rows = [row for row in stored_rows(RESULT) if (row["text"], row["epochs"]) not in new] + rows
    measure = "perplexity at batch 1 in float32, nothing adapted while testing"
    write_result(folder / RESULT.name, {"measure": measure, "date": max(row["date"] for row in rows), "rows": rows})


def talk(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", choices=list(DROPOUT), default="ptb")
    parser.add_argument("--data", type=Path, help="the folder", default=None)
    parser.add_argument("--epochs", type=int, default=320)
    parser.add_argument("--marks", type=lambda text: tuple(map(float, text.split(","))), default=MARKS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path, help="save the run here, and resume it from here")
    parser.add_argument("--pause", type=float, default=1e9, help="seconds after which to stop and keep it")
    parser.add_argument("--already", type=float, default=0.0, help="seconds that the parts before this one took")
    parser.add_argument("--save", type=Path, help="where to put the model that valid has chosen in the end")
    parser.add_argument("--mogrify", type=int, default=0, help="rounds of the Mogrifier; 0 for none")
    parser.add_argument("--softmaxes", type=int, default=1, help="how many are mixed")
    parser.add_argument("--rate", type=float, help="of learning, at the beginning; mixtures want a smaller one")
    parser.add_argument("--json", action="store_true", help="the table for machines")
    parser.add_argument("--out", type=Path, help="a folder for awd_lstm.json")
    parser.add_argument("--logprobs", type=Path, help="a folder for awd-lstm.valid.npy and awd-lstm.test.npy")
    given = parser.parse_args()
    if given.epochs == 0:
        write_rows(given.out, [])
        return
    pause = None if given.checkpoint is None else Pause(given.checkpoint, given.pause, given.already)
    folder = given.data or Path(os.environ.get("FOREWORD_DATA", "."), given.text)
    options = {"mogrify": given.mogrify, "softmaxes": given.softmaxes, "rate": given.rate}
    data, dropout = corpora(folder), DROPOUT[given.text]
    rows = train(
        data, dropout, given.epochs, given.marks, given.seed, pause, given.save, logprobs=given.logprobs, **options
    )
    if given.out is not None and rows:
        facts = {"text": given.text, **options, "published": PUBLISHED[given.text]}
        write_rows(given.out, [facts | provenance(given.seed, rows[-1].seconds) | asdict(rows[-1])])
    if given.json:
        sys.stdout.write(json.dumps([asdict(row) for row in rows]) + "\n")
        return
    sys.stdout.write("| seconds trained | epochs | valid | test |\n|---|---|---|---|\n")
    for row in rows:
        sys.stdout.write(f"| {row.seconds:.0f} | {row.epochs:.0f} | {row.valid:.2f} | {row.test:.2f} |\n")


if __name__ == "__main__":
    main()
