"""The Penn Treebank ladder: every kind of language model on one text, in one table (row M02).

    python recipes/ptb_ladder.py --data FOLDER --out FOLDER                        all rows
    python recipes/ptb_ladder.py --data FOLDER --out FOLDER --rows lstm-medium,awd-lstm
    python recipes/ptb_ladder.py --data FOLDER --out FOLDER --rows awd-lstm --seconds 440     no longer than that
    python recipes/ptb_ladder.py --data FOLDER --out FOLDER --words 3000 --epochs 1     whether it runs

The data are ptb.train.txt, ptb.valid.txt and ptb.test.txt (.xz will do). Each model learns from the first alone; the
second chooses among epochs and averages, and the weights of a mixture; the third is scored once, in float32. Neural
models read a split from end to end with state carried, as is usual there; n-grams and Bengio's network read lines.
Every word counts, the end of a line too.

Each row leaves ROW.json and its log-probabilities, ROW.valid.npy and ROW.test.npy, in the folder; a row that is there
already is not run again, and one that was cut short resumes from ROW.checkpoint. At the end all rows that are there are
printed as one table and written to ptb_ladder.json, docs/results/ptb_ladder.json among them: rows of that file that
were not run again stay, those without a commit marked as legacy, and ``not_run`` names the rows that nobody has run.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foreword.arrays import Logs
from foreword.lessons.claims.results import provenance, stored_rows, write_result
from foreword.neural.awd_lstm import AWDLSTM
from foreword.neural.bengio import BengioLM
from foreword.neural.model import NeuralLM
from foreword.neural.recurrent import MODEST, RecurrentLM
from foreword.neural.transformer import TransformerLM
from foreword.ngram.model import NgramLM
from foreword.nn.dropout import Dropout
from foreword.storage.checkpoint import Checkpoint
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.settings import Training

SPLITS = ("train", "valid", "test")
RESULT = Path(__file__).parents[1] / "docs" / "results" / "ptb_ladder.json"
HALF = "float16" if torch.cuda.is_available() else "float32"

STEADY = replace(MODEST, epochs=40, batch=32, steps=35, rate=2e-3, last_rate=0.02, clip=1.0, precision=HALF)
"""Adam, the rate falling as a cosine: for the models that have no published recipe of their own here."""


def zaremba(*, epochs: int, full_epochs: int, decay: float, steps: int) -> Training:
    """Plain gradient descent at rate 1 with a clip of 5. There a loss is summed over the steps, here it is their mean:
    the rate is that many times larger and the clip smaller.
    """
    return Training(
        epochs=epochs,
        batch=20,
        steps=steps,
        schedule="step",
        full_epochs=full_epochs,
        decay=decay,
        rate=float(steps),
        clip=5.0 / steps,
        weight_decay=0.0,
        activation=0.0,
        change=0.0,
        averages=(),
        precision=HALF,
    )


def units(share: float, *, words: float = 0.0, recurrent: float = 0.0) -> Dropout:
    return Dropout(words=words, input=share, between=share, output=share, recurrent=recurrent)


SMALL = zaremba(epochs=13, full_epochs=4, decay=0.5, steps=20)
MEDIUM = zaremba(epochs=39, full_epochs=6, decay=1 / 1.2, steps=35)
AWD = Training(epochs=240, averages=(3.0, 10.0), evaluate_every=12, precision=HALF)
HIGH = replace(AWD, epochs=100, activation=0.0, change=0.0)
"""A rate that stays high, as AWD-LSTM's: with one that falls from the sixth epoch on a tied LSTM, which takes longer to
begin, ended at 91.6.
"""


class FromZeroBiases(RecurrentLM):
    """An LSTM whose output biases begin at zero: from the words' frequencies the published rate makes no progress."""

    COUNTED_BIAS = False


@dataclass(frozen=True, slots=True)
class Rung:
    """A row of the table. title: what it is. build: the model. lines: documents are lines. published: on the test."""

    title: str
    build: Callable[[], Any]
    lines: bool = False
    published: float | None = None


LADDER: dict[str, Rung] = {
    "3-gram": Rung("trigram, modified Kneser-Ney", lambda: NgramLM(3), lines=True),
    "5-gram": Rung("5-gram, modified Kneser-Ney", lambda: NgramLM(5), lines=True, published=141.2),
    "bengio": Rung(
        "Bengio’s network, 4 words",
        lambda: BengioLM(
            5, 200, 400, dropout=units(0.4), training=replace(STEADY, epochs=30, batch=64, steps=8, rate=1e-3)
        ),
        lines=True,
    ),
    "rnn": Rung(
        "RNN, 2 × 512, tied",
        lambda: RecurrentLM("rnn", 512, 512, dropout=units(0.4), training=replace(STEADY, rate=5e-4)),
        published=124.7,
    ),
    "gru": Rung("GRU, 2 × 512, tied", lambda: RecurrentLM("gru", 512, 512, dropout=units(0.5), training=STEADY)),
    "min-gru": Rung(
        "minimal GRU, 3 × 512, tied",
        lambda: RecurrentLM("min-gru", 512, 512, 3, dropout=units(0.5), training=STEADY),
    ),
    "lstm-small": Rung(
        "LSTM, 2 × 200, no dropout",
        lambda: RecurrentLM("lstm", 200, 200, tied=False, dropout=units(0.0), training=SMALL),
        published=114.5,
    ),
    "lstm-medium": Rung(
        "LSTM, 2 × 650, dropout",
        lambda: FromZeroBiases("lstm", 650, 650, tied=False, dropout=replace(units(0.5), fresh=True), training=MEDIUM),
        published=82.7,
    ),
    "lstm-tied": Rung(
        "LSTM, 2 × 650, tied, dropout",
        lambda: RecurrentLM("lstm", 650, 650, dropout=replace(units(0.5), fresh=True), training=HIGH),
    ),
    "lstm-untied": Rung(
        "LSTM, 2 × 650, as above but not tied",
        lambda: RecurrentLM("lstm", 650, 650, tied=False, dropout=replace(units(0.5), fresh=True), training=HIGH),
        published=82.7,
    ),
    "lstm-variational": Rung(
        "LSTM, 2 × 640, tied, variational dropout",
        lambda: RecurrentLM("lstm", 640, 640, dropout=replace(units(0.5, words=0.1), state=0.25), training=HIGH),
        published=73.4,
    ),
    "transformer": Rung(
        "Transformer, 4 × 512, tied",
        lambda: TransformerLM(
            512, 4, 8, 128, dropout=units(0.4, words=0.1), training=replace(STEADY, epochs=60, rate=5e-4, warm_up=500)
        ),
    ),
    "awd-lstm": Rung("AWD-LSTM, 512-1024-1024-512", lambda: AWDLSTM(training=AWD), published=57.3),
}

MIXTURES = {"5-gram+lstm": ("5-gram", "lstm-untied"), "5-gram+awd-lstm": ("5-gram", "awd-lstm")}
"""Rows that are made of others: p = λ p₁ + (1 − λ) p₂, λ chosen on valid."""


def read_lines(folder: Path, split: str, words: int | None) -> list[list[str]]:
    """The lines of a split; with ``words``, only the first."""
    path = folder / f"ptb.{split}.txt"
    text = path.read_text() if path.exists() else lzma.decompress(Path(f"{path}.xz").read_bytes()).decode()
    lines = [line.split() for line in text.splitlines()]
    ends = np.cumsum([len(line) + 1 for line in lines])
    return lines if words is None else lines[: int(np.searchsorted(ends, words)) + 1]


def corpora(folder: Path, words: int | None) -> dict[bool, dict[str, Corpus]]:
    """Each split as lines (True) and as one document (False): the same ids in the same order."""
    read = {split: read_lines(folder, split, words) for split in SPLITS}
    vocab = Vocab(sorted({"<unk>", "</s>", *(word for line in read["train"] for word in line)}))
    kept: dict[bool, dict[str, Corpus]] = {True: {}, False: {}}
    for split, lines in read.items():
        ids = [[vocab.id(word) for word in line] for line in lines]
        joined = [id for line in ids for id in (*line, vocab.end)][:-1]  # the last end is added there
        kept[True][split] = Corpus.from_ids(ids, vocab)
        kept[False][split] = Corpus.from_ids([joined], vocab)
    return kept


def run(name: str, data: dict[bool, dict[str, Corpus]], given: argparse.Namespace) -> None:
    """Train one row and measure it."""
    rung, began, out = LADDER[name], time.perf_counter(), given.out
    texts, model = data[rung.lines], rung.build()
    facts: dict[str, Any] = {"row": name, "title": rung.title, "published": rung.published}
    if isinstance(model, NeuralLM):
        model.seed = given.seed
        model.training = replace(model.training, seconds=given.seconds)
        if given.epochs is not None:
            model.training = replace(model.training, epochs=given.epochs, evaluate_every=1)
        seconds, epochs = train(name, model, texts, Checkpoint(out / f"{name}.checkpoint", every=60.0))
        facts |= {"epochs": round(epochs, 1), "parameters": model.parameter_count}
        if given.together > 1:
            facts["runs_at_once"] = given.together
    else:
        model.fit(texts["train"])
        seconds = time.perf_counter() - began
        facts |= {"parameters": sum(array.size for array in model.to_parts().arrays.values())}
    logs = {split: model.logprobs(texts[split]) for split in ("valid", "test")}
    keep(out, facts | provenance(given.seed, seconds, commit=given.commit), logs)
    (out / f"{name}.checkpoint").unlink(missing_ok=True)


def train(name: str, model: NeuralLM, texts: dict[str, Corpus], checkpoint: Checkpoint) -> tuple[float, float]:
    """Return seconds of training, validation included (of a resumed run, only since then), and epochs."""
    began = told = time.perf_counter()
    done = 0
    for step in model.train(texts["train"], valid=texts["valid"], checkpoint=checkpoint):
        now, done = time.perf_counter(), step.done
        if now - told > 10:
            told = now
            talk(
                f"{name:12} {now - began:6.0f} s  {step.done / step.total:4.0%}  train {math.exp(step.loss):7.2f}"
                f"  valid {math.exp(-model.valid_score_):7.2f}  rate {step.rate:.3g}"
            )
    return time.perf_counter() - began, done / len(texts["train"].ids)


def mix(name: str, out: Path, commit: str | None) -> None:
    """Two rows that are there already, weighed by valid."""
    both = {split: [np.load(out / f"{part}.{split}.npy") for part in MIXTURES[name]] for split in ("valid", "test")}
    shares = np.linspace(0.01, 0.99, 99)
    share = max(shares, key=lambda each: mixed(each, both["valid"]).mean())
    rows = [json.loads((out / f"{part}.json").read_text()) for part in MIXTURES[name]]
    facts: dict[str, Any] = {
        "row": name,
        "title": f"{share:.2f} × {rows[0]['row']} + {1 - share:.2f} × {rows[1]['row']}",
    }
    facts |= provenance(rows[0]["seed"], sum(row["seconds"] for row in rows), commit=commit)
    facts |= {"parameters": sum(row["parameters"] for row in rows)}
    keep(out, facts, {split: mixed(share, logs) for split, logs in both.items()})


def mixed(share: float, logs: list[Logs]) -> Logs:
    found: Logs = np.logaddexp(math.log(share) + logs[0], math.log(1 - share) + logs[1])
    return found


def keep(out: Path, facts: dict[str, Any], logs: dict[str, Logs]) -> None:
    for split, found in logs.items():
        np.save(out / f"{facts['row']}.{split}.npy", found)
        facts[split] = math.exp(-found.mean())
    (out / f"{facts['row']}.json").write_text(json.dumps(facts, indent=1) + "\n")
    talk(f"{facts['row']}: valid {facts['valid']:.2f}, test {facts['test']:.2f}, {facts['seconds']:.0f} s")


def write_ladder(out: Path) -> None:
    """Write the rows that are in the folder, and those of the stored table that are not, in the order of the ladder."""
    rows = {row["row"]: row for row in stored_rows(RESULT)}
    names = [*LADDER, *MIXTURES]
    for name in names:
        if (out / f"{name}.json").exists():
            rows[name] = json.loads((out / f"{name}.json").read_text())
            rows[name]["published"] = LADDER[name].published if name in LADDER else None
    rows = {name: rows[name] for name in names if name in rows}
    facts: dict[str, Any] = {
        "text": "Penn Treebank",
        "measure": "perplexity, every word and every end of a line counted",
    }
    facts |= {
        "date": max(row["date"] for row in rows.values()),
        "not_run": [name for name in names if name not in rows],
    }
    write_result(out / RESULT.name, facts | {"rows": list(rows.values())})


def table(out: Path) -> str:
    lines = ["| model | parameters | seconds | valid | test | published |", "|---|---|---|---|---|---|"]
    for name in (*LADDER, *MIXTURES):
        if (out / f"{name}.json").exists():
            row = json.loads((out / f"{name}.json").read_text())
            lines.append(
                f"| {row['title']} | {row['parameters'] / 1e6:.1f} M | {row['seconds']:.0f} | {row['valid']:.1f}"
                f" | {row['test']:.1f} | {row.get('published') or ''} |"
            )
    return "\n".join(lines) + "\n"


def talk(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("FOREWORD_DATA", "."), "ptb"))
    parser.add_argument("--out", type=Path, required=True, help="where rows are kept")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=[*LADDER, *MIXTURES])
    parser.add_argument("--words", type=int, help="read only the first N words of each split")
    parser.add_argument("--epochs", type=int, help="another number of epochs for every neural row")
    parser.add_argument("--seconds", type=float, default=0.0, help="the most that a neural row may train; 0: no limit")
    parser.add_argument("--together", type=int, default=1, metavar="N", help="runs that share the GPU; is recorded")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commit", help="of the code, where this is no checkout")
    given = parser.parse_args()
    for name in given.rows:
        if name not in LADDER and name not in MIXTURES:
            parser.error(f"no row {name!r}: expected {', '.join((*LADDER, *MIXTURES))}")
    given.out.mkdir(parents=True, exist_ok=True)
    data = corpora(given.data, given.words)
    for name in given.rows:
        if (given.out / f"{name}.json").exists():
            talk(f"{name} is there already")
        elif name in LADDER:
            run(name, data, given)
        elif all((given.out / f"{part}.json").exists() for part in MIXTURES[name]):
            mix(name, given.out, given.commit)
        else:
            talk(f"{name} waits for {' and '.join(MIXTURES[name])}")
    if given.words is None and given.epochs is None:
        write_ladder(given.out)
    sys.stdout.write(table(given.out))


if __name__ == "__main__":
    main()
