"""The Mogrifier LSTM on the Penn Treebank: a run on one GPU, and docs/results/mogrifier.json from it.

    python recipes/mogrifier.py --data FOLDER --seconds 915 --marks 300,450      one run, measured on its way
    python recipes/mogrifier.py --data FOLDER --seconds 150 --rounds 0           the plain LSTM by the same recipe

Validation text chooses everything: weights, averages, the softmax's temperature, and for Monte Carlo dropout the scale
of its rates. The test text is read once per row, from its first word to its last at batch 1 in float32; Monte Carlo
samples are rows of a batch, in float16. Seconds count from the first update and include validation; compiling the
kernels, which happens once per machine, comes before. A run may pause into ``--checkpoint`` and continue there. Rows of
another machine's file are added by ``--take FILE``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from awd_lstm import corpora, talk
from torch import Tensor

from foreword.lessons.claims.results import provenance, stored_rows, write_result
from foreword.neural.mogrifier import RECIPE, Mogrifier
from foreword.neural.rows import TEMPERATURES, RowReader, monte_carlo_losses
from foreword.nn.dropout import Dropout
from foreword.storage.checkpoint import Checkpoint
from foreword.storage.folder import save
from foreword.tokens.corpus import Corpus
from foreword.training.settings import Training

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "mogrifier.json"
MEASURE = (
    "perplexity of the whole text at batch 1, the state carried, nothing adapted; test in float32, valid in float16; "
    "temperature chosen on valid; mc: mean of dropout samples in float16, scale and temperature chosen on valid with 64"
)

TWIN = Dropout(words=0.0, input=0.628, between=0.307, output=0.69, recurrent=0.0, state=0.369, fresh=True)
"""Rates of the plain LSTM, tuned by the same authors."""

SCALES, MC_TEMPERATURES = (0.6, 0.75), (1.0, 1.02, 1.04, 1.06, 1.08, 1.1, 1.12, 1.14)


@dataclass(frozen=True, slots=True)
class Row:
    """The best model on the validation text after a number of seconds; perplexities."""

    seconds: float
    epochs: float
    temperature: float
    valid: float
    test: float
    test_at_1: float
    mc_valid: float | None = None
    mc_test: float | None = None
    mc_scale: float | None = None
    mc_temperature: float | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """The best weights after a number of seconds."""

    seconds: float
    epochs: float
    weights: Tensor
    temperature: float


def settings(seconds: float, hold: float, *, plain: bool) -> Training:
    """Return the recipe for a run of ``seconds``; its rate falls to 0.3 of itself after ``hold`` of them."""
    training = replace(RECIPE, epochs=100_000, seconds=seconds, schedule="cosine", hold=hold, last_rate=0.3)
    return replace(training, rate=3e-3, l2=3.558e-6) if plain else training


def compile_kernels(model: Mogrifier, data: dict[str, Corpus]) -> None:
    """Run some updates and an evaluation of a run that is then dropped."""
    trainer = model.trainer(data["train"], valid=data["valid"])
    trainer.begin_epoch(1)
    trainer.run(5)
    trainer.evaluate()
    torch.cuda.synchronize() if torch.cuda.is_available() else None


def train(model: Mogrifier, data: dict[str, Corpus], given: argparse.Namespace) -> list[Mark]:
    """Train until the time is up or the pause is due; return the best weights at every mark and at the end."""
    checkpoint = None if given.checkpoint is None else Checkpoint(given.checkpoint, every=given.pause)
    waiting = sorted(mark for mark in given.marks if mark > given.already)
    marks: list[Mark] = []
    began = told = time.perf_counter() - given.already
    step = None

    def mark() -> Mark:
        done = 0.0 if step is None else step.done / len(data["train"].ids)
        return Mark(time.perf_counter() - began, done, model.flat_weights().clone(), model.temperature_)

    for step in model.train(data["train"], valid=data["valid"], checkpoint=checkpoint):
        now = time.perf_counter()
        if now - told > 10:
            told = now
            epochs, valid = step.done / len(data["train"].ids), math.exp(-model.valid_score_)
            talk(f"{now - began:6.0f} s  epoch {epochs:6.1f}  train {math.exp(step.loss):7.2f}  valid {valid:7.2f} "
                 f"at {model.temperature_}  rate {step.rate:.5f}")  # fmt: skip
        if waiting and now - began >= waiting[0]:
            waiting.pop(0)
            marks.append(mark())
        if checkpoint is not None and checkpoint.written:
            seconds = time.perf_counter() - began
            talk(f"paused after {seconds:.1f} s: continue with --already {seconds:.1f}")
            return marks
    marks.append(mark())
    return marks


def perplexities(
    model: Mogrifier, mark: Mark, corpus: Corpus, temperatures: tuple[float, ...], precision: str = "float32"
) -> list[float]:
    """Return the perplexity of one long document at each temperature, batch 1."""
    network, device = model.network(model.vocab), mark.weights.device
    reader = RowReader(network, device, rows=1, temperatures=temperatures, precision=precision)
    reader.use(mark.weights)
    words = torch.tensor([model.vocab.end, *corpus.ids.tolist()], device=mark.weights.device)
    return reader.losses(words[:, None]).double().mean((1, 2)).exp().tolist()


def measured(model: Mogrifier, mark: Mark, data: dict[str, Corpus], samples: int) -> Row:
    """Measure one mark on the validation and test texts."""
    half = "float32" if mark.weights.device.type == "cpu" else "float16"
    valid = perplexities(model, mark, data["valid"], TEMPERATURES, half)
    best = valid.index(min(valid))
    at_1, test = perplexities(model, mark, data["test"], (1.0, TEMPERATURES[best]))
    row = Row(mark.seconds, mark.epochs, TEMPERATURES[best], valid[best], test, at_1)
    if samples:
        row = sampled(model, mark, data, samples, row)
    talk(f"{row}")
    return row


def sampled(model: Mogrifier, mark: Mark, data: dict[str, Corpus], samples: int, row: Row) -> Row:
    """Add what Monte Carlo dropout gives: scale and temperature by the validation text, then the test text."""
    with model.using(mark.weights):
        tried = []
        for scale in SCALES:
            losses = monte_carlo_losses(model, data["valid"].ids, samples=64, scale=scale, temperatures=MC_TEMPERATURES)
            tried += [(loss, scale, t) for loss, t in zip(losses.mean(1).tolist(), MC_TEMPERATURES, strict=True)]
        loss, scale, temperature = min(tried)
        test = monte_carlo_losses(
            model, data["test"].ids, samples=samples, scale=scale, temperatures=(temperature,), seed=1
        )
    found = {"mc_valid": math.exp(loss), "mc_test": math.exp(float(test.mean()))}
    return replace(row, **found, mc_scale=scale, mc_temperature=temperature)


def record(path: Path, row: Row, given: argparse.Namespace, parameters: int) -> None:
    """Add a row to the results, with what it takes to repeat it."""
    results = json.loads(path.read_text("utf-8")) if path.exists() else {"measure": MEASURE, "rows": []}
    model = "mogrifier" if given.rounds else "plain LSTM"
    run = {"text": "ptb", "model": model, "rounds": given.rounds, "parameters": parameters}
    figures = {name: round(value, 4) for name, value in asdict(row).items() if value is not None}
    results["rows"].append(run | provenance(given.seed, row.seconds, commit=given.commit) | figures)
    write_result(path, results)


def take(path: Path, other: Path) -> None:
    """Add the rows of another file that are not there yet."""
    rows = stored_rows(path)
    rows += [row for row in stored_rows(other) if row not in rows]
    write_result(path, {"measure": MEASURE, "rows": rows})


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("FOREWORD_DATA", "."), "ptb"))
    parser.add_argument("--seconds", type=float, default=450.0, help="of the whole run")
    parser.add_argument("--hold", type=float, default=0.75, help="share of the run at the whole rate")
    parser.add_argument("--marks", type=lambda text: tuple(map(float, text.split(","))), default=())
    parser.add_argument("--rounds", type=int, default=5, help="0 for the plain LSTM")
    parser.add_argument("--units", type=int, default=896)
    parser.add_argument("--rank", type=int, default=88)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mc", type=int, default=192, help="samples of Monte Carlo dropout for the last row; 0: none")
    parser.add_argument("--checkpoint", type=Path, help="pause into this file, and continue from it")
    parser.add_argument("--pause", type=float, default=1e9, help="seconds of this part")
    parser.add_argument("--already", type=float, default=0.0, help="seconds of the parts before")
    parser.add_argument("--save", type=Path, help="where to put the model that valid chose in the end")
    parser.add_argument("--commit", help="of the code, where this is not a checkout")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument(
        "--take", type=Path, metavar="FILE", help="run nothing: add the rows that another machine wrote"
    )
    return parser.parse_args()


def main() -> None:
    given = options()
    if given.take is not None:
        take(given.out, given.take)
        return
    data = corpora(given.data)
    plain = given.rounds == 0
    training = settings(given.seconds, given.hold, plain=plain)
    dropout = TWIN if plain else None
    model = Mogrifier(given.units, 2, given.rounds, given.rank, dropout=dropout, training=training, seed=given.seed)
    compile_kernels(model, data)
    marks = train(model, data, given)
    ended = given.checkpoint is None or (bool(marks) and marks[-1].seconds >= given.seconds)
    for place, mark in enumerate(marks):
        row = measured(model, mark, data, given.mc if ended and place == len(marks) - 1 else 0)
        record(given.out, row, given, model.parameter_count)
    if given.save is not None:
        save(model, given.save)


if __name__ == "__main__":
    main()
