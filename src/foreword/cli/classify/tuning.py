"""What only fastText classifiers can: settings found by trying them, and a smaller model."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from foreword import kinds

if TYPE_CHECKING:
    from foreword.fasttext.classifier import FastTextClassifier
    from foreword.protocols import Meter
    from foreword.text.block import Block
    from foreword.text.labelled import LabelledBlock, Tell

FASTTEXT = "fasttext"


def check_options(
    kind: str,
    autotune: float | None,
    valid: str | None,
    quantize: bool,
    cutoff: int | None,
    folds: int | None,
    *,
    resume: bool,
) -> None:
    """A call that makes no sense is refused before anything is read."""
    given = {"--autotune": autotune, "--valid": valid, "--quantize": quantize or None, "--cutoff": cutoff}
    given["--resume"] = resume or None
    for option, value in given.items():
        if value is not None and kind != FASTTEXT:
            raise typer.BadParameter(f"means nothing to {kind}, only to {FASTTEXT}", param_hint=f"'{option}'")
    if (autotune is None) != (valid is None):
        raise typer.BadParameter("goes with --valid, and neither alone", param_hint="'--autotune'")
    if cutoff is not None and not quantize:
        raise typer.BadParameter("rows are left out only with --quantize", param_hint="'--cutoff'")
    if autotune is not None and folds is not None:
        raise typer.BadParameter("settings are tried on --valid, not in folds", param_hint="'--folds'")
    if resume and (autotune is not None or folds is not None):
        raise typer.BadParameter("one training goes on, not trials or folds", param_hint="'--resume'")


def begun_or_resumed(settings: Iterable[str], out: str, *, resume: bool) -> FastTextClassifier:
    """A classifier to be trained: a fresh one, or the stopped one at ``out``; or a finished one that is there."""
    from foreword.cli.settings import parse_settings
    from foreword.fasttext.classifier import FastTextClassifier
    from foreword.pipeline.fitting import Output
    from foreword.storage.folder import load

    if resume and Path(out).exists():
        found = load(out)
        if isinstance(found, FastTextClassifier) and found.finished:
            return found
    given = parse_settings(settings, FASTTEXT, FastTextClassifier)
    begun: FastTextClassifier = Output(out, resume).build(kinds.KINDS["fasttext-classifier"], given)
    return begun


def tuned(
    texts: list[Block],
    labels: list[str],
    valid: Iterable[LabelledBlock],
    seconds: float,
    settings: Iterable[str],
    meter: Meter | None,
    say: Tell,
) -> tuple[FastTextClassifier, dict[str, Any]]:
    """The best classifier that was found in so many seconds, and how many were tried; ``settings`` stay as they are."""
    from foreword.cli.labelled import gathered, lines_for
    from foreword.cli.settings import parse_settings
    from foreword.fasttext.autotune import autotune
    from foreword.fasttext.classifier import FastTextClassifier

    def lines(blocks: list[Block]) -> list[str]:
        return lines_for(FastTextClassifier(), [text for block in blocks for text in block.strings()])

    fixed = parse_settings(settings, FASTTEXT, FastTextClassifier)
    seed = fixed.pop("seed", 0)
    held, held_labels = gathered(valid)
    began = time.monotonic()
    best = None
    for trial in autotune(lines(texts), labels, lines(held), held_labels, seconds=seconds, seed=seed, **fixed):
        if trial.best:
            best = trial
        if meter and best:
            spent = min(seconds, time.monotonic() - began)
            meter(f"trial {trial.number + 1}, best accuracy {best.accuracy:.4f}", int(spent * 10), int(seconds * 10))
    assert best is not None  # the first trial always runs
    shown = ", ".join(f"{name}={value:.3g}" for name, value in best.settings.items() if isinstance(value, int | float))
    say(f"best of {trial.number + 1} trials: accuracy {best.accuracy:.4f} with {shown}")
    return best.classifier, {"trials": trial.number + 1, "valid_accuracy": best.accuracy, "settings": best.settings}


def smaller(model: FastTextClassifier, cutoff: int | None) -> FastTextClassifier:
    """The quantised model; what it says is what its ``.ftz`` will say."""
    from foreword.fasttext.quantize import quantize

    return type(model).from_file(quantize(model, cutoff=cutoff))
