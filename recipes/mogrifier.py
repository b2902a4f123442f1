"""The Mogrifier LSTM on the Penn Treebank, WikiText-2 or characters: a run on one GPU, and docs/results/mogrifier.json.

    python recipes/mogrifier.py --data FOLDER --seconds 915 --marks 300,450      one run, measured on its way
    python recipes/mogrifier.py --data FOLDER --seconds 150 --rounds 0           the plain LSTM by the same recipe
    python recipes/mogrifier.py --data FOLDER --updates 15000 --without capped   one ingredient switched off, valid only
    python recipes/mogrifier.py --data FOLDER --updates 15000 --dropout-scale 1.1 --l2-scale 2 --two-tailed
    python recipes/mogrifier.py --data FOLDER --seconds 915 --rank 0 --reset 0   full rank, states never dropped
    python recipes/mogrifier.py --text wikitext-2 --data FOLDER --seconds 1200 --l2-scale 1.6
    python recipes/mogrifier.py --text wikitext-2 --data FOLDER --seconds 1200 --embedding 256 --softmaxes 2
    python recipes/mogrifier.py --text characters --data FOLDER --seconds 300    letters of enwiki2014, as in text8

Validation text chooses everything: weights, averages, the softmax's temperature, and for Monte Carlo dropout the scale
of its rates. The test text is read once per row, from its first word to its last at batch 1 in float32; Monte Carlo
samples are rows of a batch, in float16, and so are valid and test of characters, five million each. Seconds count from
the first update and include validation; compiling the kernels, which happens once per machine, comes before. A run may
pause into ``--checkpoint`` and continue there. Rows of another machine's file are added by ``--take FILE``.
"""

from __future__ import annotations

import argparse
import lzma
import math
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from awd_lstm import corpora, talk
from torch import Tensor

from foreword.lessons.claims.results import provenance, stored_rows, take_rows, write_result
from foreword.neural.mogrifier import RECIPE, Mogrifier
from foreword.neural.rows import TEMPERATURES, RowReader, monte_carlo_losses
from foreword.neural.training import LanguageModelTask
from foreword.nn.dropout import Dropout
from foreword.nn.recurrent_network import RecurrentNetwork
from foreword.storage.checkpoint import Checkpoint
from foreword.storage.folder import save
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.settings import Training

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "mogrifier.json"
MEASURE = (
    "perplexity of the whole text at batch 1, the state carried, nothing adapted; test in float32, valid in float16; "
    "temperature chosen on valid; mc: mean of dropout samples in float16, scale and temperature chosen on valid with 64"
)


@dataclass(frozen=True, slots=True)
class Text:
    """What a text's model differs in from the Penn Treebank's, which its authors tuned.

    embedding: units of a word's vector; 0 for as many as the layers have. softmaxes: how many are mixed. rounds, rank:
    of the Mogrifier. mc: samples of Monte Carlo dropout. rows: rows in which valid and test are read; more than one in
    half precision.
    """

    dropout: Dropout
    training: Training
    units: int = 896
    embedding: int = 0
    softmaxes: int = 1
    rounds: int = 5
    rank: int = 88
    mc: int = 192
    rows: int = 1


PTB, FALLING = Mogrifier.DROPOUT, replace(RECIPE, schedule="cosine", last_rate=0.3)
TEXTS = {
    "ptb": Text(PTB, FALLING),
    "wikitext-2": Text(
        replace(PTB, input=0.65, between=0.25, output=0.65, state=0.35),
        replace(FALLING, l2=1.6e-6, evaluate_every=6),
    ),
    "characters": Text(
        replace(PTB, input=0.0, between=0.05, output=0.05, state=0.05),
        replace(FALLING, batch=128, steps=140, rate=1.5e-3, l2=0.0, last_rate=0.05, evaluate_every=1),
        units=1280,
        mc=0,
        rows=64,
    ),
}
"""The model's authors tuned the Penn Treebank's settings. Of WikiText-2, twice as long, L2 is half and dropout a little
less. A run of minutes reads the characters three or four times, which leaves little to overfit. Neither was tuned."""

WITHOUT: dict[str, dict[str, Any]] = {
    "nothing": {},
    "rounds": {"rounds": 0},
    "low rank": {"rank": 0},
    "capped": {"capped": False},
    "summed": {"summed": False},
    "fresh": {"dropout": {"fresh": False}},
    "state": {"dropout": {"state": 0.0}},
    "beta1": {"training": {"beta1": 0.9}},
    "l2": {"training": {"l2": 0.0}},
    "reset": {"training": {"reset": 0.0}},
    "averages": {"training": {"averages": ()}},
    "bias": {},
    "jitter": {},
}
"""Ingredients, and what the model has instead of each; ``ABLATIONS`` has the models of the last two."""

TWIN = Dropout(words=0.0, input=0.628, between=0.307, output=0.69, recurrent=0.0, state=0.369, fresh=True)
"""Rates of the plain LSTM, tuned by the same authors."""

FOLDERS = {"characters": "enwiki2014"}
"""Folders of the data that are not called as their text."""

SHAPE = ("units", "embedding", "softmaxes", "rounds", "rank")
"""Settings of a model that are as its text has them, unless a run changes them."""

HOLD = 0.75
"""Share of a run at the whole rate."""

SCALES, MC_TEMPERATURES = (0.6, 0.75), (1.0, 1.02, 1.04, 1.06, 1.08, 1.1, 1.12, 1.14)


class SameCuts(LanguageModelTask):
    """Cuts the text at the same words in every epoch; usually each epoch has other ones (jittered starts)."""

    def begin_epoch(self, random: np.random.Generator) -> list[int]:
        """Begin every epoch with the same random numbers."""
        return super().begin_epoch(np.random.default_rng(0))


class WithoutJitter(Mogrifier):
    """The Mogrifier on a text that is cut at the same words in every epoch."""

    def task(self, data: Corpus, valid: Corpus | None) -> LanguageModelTask:
        """Begin a run."""
        usual = super().task(data, valid)
        parts = (usual.network, usual.corpus, usual.valid, usual.training, usual.dropout)
        return SameCuts(*parts, counted_bias=usual.counted_bias)


class WithoutBias(Mogrifier):
    """The Mogrifier whose rounds have no bias."""

    def network(self, vocab: Vocab) -> RecurrentNetwork:
        """Return the network."""
        network = super().network(vocab)
        return replace(network, variant=replace(network.variant, round_bias=False))


ABLATIONS = {"bias": WithoutBias, "jitter": WithoutJitter}
"""Ingredients that no setting switches, and the model without each."""


@dataclass(frozen=True, slots=True)
class Row:
    """The best model on the validation text after a number of seconds; perplexities."""

    seconds: float
    epochs: float
    temperature: float
    valid: float
    valid_at_1: float
    test: float | None = None
    test_at_1: float | None = None
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


def settings(given: argparse.Namespace, words: int) -> Training:
    """Return the recipe for a number of seconds or updates; the rate falls after the share ``hold`` of them."""
    training = replace(TEXTS[given.text].training, hold=given.hold, two_tailed=given.two_tailed)
    if given.rounds == 0:
        training = replace(training, rate=3e-3, l2=3.558e-6)
    rate, batch = given.rate or training.rate, given.batch or training.batch
    training = replace(training, rate=rate, l2=given.l2_scale * training.l2, batch=batch, reset=given.reset)
    training = replace(training, **WITHOUT[given.without].get("training", {}))
    if not given.updates:
        return replace(training, epochs=100_000, seconds=given.seconds)
    epochs = max(1, round(given.updates * training.batch * training.steps / words))
    return replace(training, epochs=epochs, evaluate_every=min(training.evaluate_every, epochs))


def build(given: argparse.Namespace, words: int) -> Mogrifier:
    """Return the model of a text, without an ingredient or with all."""
    text, changed = TEXTS[given.text], {**WITHOUT[given.without]}
    training = settings(given, words)
    changed.pop("training", None)
    dropout = (TWIN if given.rounds == 0 else text.dropout).scaled(given.dropout_scale)
    dropout = replace(dropout, **{**given.dropout, **changed.pop("dropout", {})})
    shape = {name: getattr(given, name) for name in SHAPE} | changed
    kind = ABLATIONS.get(given.without, Mogrifier)
    return kind(layers=2, **shape, dropout=dropout, training=training, seed=given.seed)


def changes(given: argparse.Namespace) -> dict[str, Any]:
    """Return what a run changes about the recipe of its text, for its row."""
    text, usual = TEXTS[given.text], TEXTS[given.text].training
    tried = {
        "two_tailed": (given.two_tailed, False),
        "dropout": (given.dropout, {}),
        "dropout_scale": (given.dropout_scale, 1.0),
        "rate": (given.rate or usual.rate, usual.rate),
        "l2_scale": (given.l2_scale, 1.0),
        "batch": (given.batch or usual.batch, usual.batch),
        "hold": (given.hold, HOLD),
        "reset": (given.reset, usual.reset),
    }
    tried |= {name: (getattr(given, name), getattr(text, name)) for name in SHAPE if name != "rounds"}
    return {name: value for name, (value, default) in tried.items() if value != default}


def letters(folder: Path) -> dict[str, Corpus]:
    """Return the letters a to z and spaces of a text, digits spelled out, as text8 has them: 90, 5 and 5 %."""
    raw = lzma.decompress((folder / "enwiki2014.part1.txt.xz").read_bytes()).lower()
    for digit, name in enumerate(b"zero one two three four five six seven eight nine".split()):
        raw = raw.replace(b"%d" % digit, b" " + name + b" ")
    kept = np.frombuffer(raw, np.uint8)
    kept = np.where((kept >= ord("a")) & (kept <= ord("z")), kept - ord("a") + 1, 0)
    kept = kept[np.append(True, (kept[1:] > 0) | (kept[:-1] > 0))]  # no two spaces in a row
    vocab = Vocab([" ", *map(chr, range(ord("a"), ord("z") + 1)), "<unk>", "</s>"])
    first, second = int(0.9 * len(kept)), int(0.95 * len(kept))
    parts = {"train": kept[:first], "valid": kept[first:second], "test": kept[second:]}
    return {split: Corpus.from_ids([part], vocab) for split, part in parts.items()}


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
    model: Mogrifier, mark: Mark, corpus: Corpus, temperatures: tuple[float, ...], precision: str, rows: int = 1
) -> list[float]:
    """Return the perplexity of one long document at each temperature; each of its rows begins with an empty state."""
    network, device = model.network(model.vocab), mark.weights.device
    reader = RowReader(network, device, rows=rows, temperatures=temperatures, precision=precision)
    reader.use(mark.weights)
    ids = torch.from_numpy(np.append(model.vocab.end, corpus.ids).astype(np.int64)).to(device)
    length = (len(ids) - 1) // rows
    at = torch.arange(length + 1, device=device)[:, None] + torch.arange(rows, device=device) * length
    return reader.losses(ids[at]).double().mean((1, 2)).exp().tolist()


def is_trial(given: argparse.Namespace) -> bool:
    """Return whether a run tries an ingredient, by a number of updates or without it: the test text is not read."""
    return bool(given.updates) or given.without != "nothing"


def measured(model: Mogrifier, mark: Mark, data: dict[str, Corpus], given: argparse.Namespace) -> Row:
    """Measure one mark on the validation text and, where it is no trial of an ingredient, on the test text."""
    half = "float32" if mark.weights.device.type == "cpu" else "float16"
    rows = TEXTS[given.text].rows
    exact = "float32" if rows == 1 else half
    valid = perplexities(model, mark, data["valid"], TEMPERATURES, half, rows)
    best = valid.index(min(valid))
    row = Row(mark.seconds, mark.epochs, TEMPERATURES[best], valid[best], valid[TEMPERATURES.index(1.0)])
    if not is_trial(given):
        at_1, test = perplexities(model, mark, data["test"], (1.0, row.temperature), exact, rows)
        row = replace(row, test=test, test_at_1=at_1)
    talk(f"{row}")
    return row


def sampled(model: Mogrifier, mark: Mark, data: dict[str, Corpus], samples: int, row: Row, *, with_test: bool) -> Row:
    """Add what Monte Carlo dropout gives: scale and temperature by the validation text, then the test text."""
    with model.using(mark.weights):
        tried = []
        for scale in SCALES:
            losses = monte_carlo_losses(model, data["valid"].ids, samples=64, scale=scale, temperatures=MC_TEMPERATURES)
            tried += [(loss, scale, t) for loss, t in zip(losses.mean(1).tolist(), MC_TEMPERATURES, strict=True)]
        loss, scale, temperature = min(tried)
        row = replace(row, mc_valid=math.exp(loss), mc_scale=scale, mc_temperature=temperature)
        if not with_test:
            return row
        test = monte_carlo_losses(
            model, data["test"].ids, samples=samples, scale=scale, temperatures=(temperature,), seed=1
        )
    return replace(row, mc_test=math.exp(float(test.mean())))


def record(path: Path, row: Row, given: argparse.Namespace, model: Mogrifier, *, again: bool = False) -> None:
    """Add a row to the results, with what it takes to repeat it; again: instead of the last one."""
    rows = stored_rows(path)
    if again:
        rows.pop()
    name = "mogrifier" if model.rounds else "plain LSTM"
    run: dict[str, Any] = {"text": given.text, "model": name, "rounds": model.rounds}
    run["parameters"] = model.parameter_count
    if is_trial(given):
        run |= {"updates": given.updates, "without": given.without}
    run |= changes(given)
    if given.together > 1:
        run["runs_at_once"] = given.together
    figures = {name: round(value, 4) for name, value in asdict(row).items() if value is not None}
    rows.append(run | provenance(given.seed, row.seconds, commit=given.commit) | figures)
    write_result(path, {"measure": MEASURE, "rows": rows})


def rates(text: str) -> dict[str, float]:
    """Return dropout rates by place, from ``input=0.6,state=0.3``."""
    found = {place: float(rate) for place, _, rate in (each.partition("=") for each in text.split(","))}
    if not set(found) <= {"input", "between", "output", "state"}:
        raise argparse.ArgumentTypeError(f"{text}: expected input, between, output or state, each with a rate")
    return found


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", choices=list(TEXTS), default="ptb")
    parser.add_argument("--data", type=Path, help="the text's folder")
    parser.add_argument("--seconds", type=float, default=450.0, help="of the whole run")
    parser.add_argument("--updates", type=int, default=0, help="of the whole run, instead of seconds; test is not read")
    parser.add_argument("--without", choices=list(WITHOUT), default="nothing", help="switch an ingredient off")
    parser.add_argument("--hold", type=float, default=HOLD, help="share of the run at the whole rate")
    parser.add_argument("--two-tailed", action="store_true", help="two more averages, restarted by valid")
    parser.add_argument(
        "--dropout", type=rates, default={}, metavar="PLACE=P,…", help="input, between, output or state"
    )
    parser.add_argument("--dropout-scale", type=float, default=1.0, metavar="F", help="multiply all dropout rates")
    parser.add_argument("--l2-scale", type=float, default=1.0, metavar="F", help="multiply L2")
    parser.add_argument("--rate", type=float, default=0.0, help="of learning; 0: as the text has it")
    parser.add_argument("--batch", type=int, default=0, metavar="N", help="rows per update; 0: as the text has them")
    parser.add_argument("--marks", type=lambda text: tuple(map(float, text.split(","))), default=())
    parser.add_argument("--rounds", type=int, help="0 for the plain LSTM")
    parser.add_argument("--units", type=int, help="of a layer")
    parser.add_argument("--embedding", type=int, metavar="D", help="units of a word's vector; 0: as the layers")
    parser.add_argument("--softmaxes", type=int, metavar="K", help="how many are mixed")
    parser.add_argument("--rank", type=int, help="of the rounds' matrices; 0 for full rank")
    parser.add_argument(
        "--reset", type=float, default=RECIPE.reset, metavar="P", help="share of rows that lose their state"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mc", type=int, help="samples of Monte Carlo dropout for the last row; 0: none")
    parser.add_argument("--together", type=int, default=1, metavar="N", help="runs that share the GPU; is recorded")
    parser.add_argument("--checkpoint", type=Path, help="pause into this file, and continue from it")
    parser.add_argument("--pause", type=float, default=1e9, help="seconds of this part")
    parser.add_argument("--already", type=float, default=0.0, help="seconds of the parts before")
    parser.add_argument("--save", type=Path, help="where to put the model that valid chose in the end")
    parser.add_argument("--commit", help="of the code, where this is not a checkout")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument(
        "--take", type=Path, metavar="FILE", help="run nothing: add the rows that another machine wrote"
    )
    given = parser.parse_args()
    if given.save is not None and given.without in ABLATIONS:
        parser.error(f"--without {given.without} is a trial, whose model is not saved: leave --save out")
    for name in SHAPE:
        if getattr(given, name) is None:
            setattr(given, name, getattr(TEXTS[given.text], name))
    return given


def main() -> None:
    given = options()
    if given.take is not None:
        take_rows(given.out, given.take)
        return
    folder = given.data or Path(os.environ.get("FOREWORD_DATA", "."), FOLDERS.get(given.text, given.text))
    data = letters(folder) if given.text == "characters" else corpora(folder)
    model = build(given, len(data["train"].ids))
    compile_kernels(model, data)
    marks = train(model, data, given)
    ended = given.checkpoint is None or (bool(marks) and marks[-1].seconds >= given.seconds)
    samples = TEXTS[given.text].mc if given.mc is None and not is_trial(given) else given.mc or 0
    for mark in marks:
        row = measured(model, mark, data, given)
        record(given.out, row, given, model)
    if ended and samples and marks:  # takes minutes: what is measured already is not lost if it is cut short
        row = sampled(model, marks[-1], data, samples, row, with_test=not is_trial(given))
        talk(f"{row}")
        record(given.out, row, given, model, again=True)
    if given.save is not None:
        save(model, given.save)


if __name__ == "__main__":
    main()
