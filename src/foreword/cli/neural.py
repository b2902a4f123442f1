"""Neural language models on the command line: their settings, and training that can be stopped and gone on with."""

from __future__ import annotations

import math
import shutil
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from foreword.cli.settings import HINT, parse_settings
from foreword.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from foreword.neural.model import NeuralLM
    from foreword.protocols import Meter
    from foreword.tokens.corpus import Corpus

NEURAL = {
    "bengio": "foreword.neural.bengio:BengioLM",
    "rnn": "foreword.neural.recurrent:RecurrentLM",
    "irnn": "foreword.neural.recurrent:RecurrentLM",
    "gru": "foreword.neural.recurrent:RecurrentLM",
    "lstm": "foreword.neural.recurrent:RecurrentLM",
    "min-gru": "foreword.neural.recurrent:RecurrentLM",
    "awd-lstm": "foreword.neural.awd_lstm:AWDLSTM",
    "transformer": "foreword.neural.transformer:TransformerLM",
}
"""Kinds that need torch, and where their classes live."""

MIN_COUNT = 2
"""A word seen once counts as <unk>, so that the model learns what an unknown word is."""

DROPOUT = "dropout"


def new_model(kind: str, settings: Iterable[str], model: type[Any], device: str | None) -> NeuralLM:
    """A model with the settings of ``--set``: those of its constructor, of its training, and of its dropout."""
    from foreword.nn.dropout import Dropout
    from foreword.training.settings import Training

    own = [name for name in signature(model).parameters if name not in ("training", DROPOUT, "device", "cell")]
    places = [each.name for each in fields(Dropout)]
    known = [*own, *(each.name for each in fields(Training)), DROPOUT, *(f"{DROPOUT}.{place}" for place in places)]
    of_model: list[str] = []
    of_training: list[str] = []
    of_dropout: list[str] = []
    for setting in settings:
        name = setting.partition("=")[0].replace("-", "_")
        if "=" in setting and name not in known:
            raise typer.BadParameter(f"{kind} has no setting {name!r}: expected {', '.join(known)}", param_hint=HINT)
        if name.startswith(DROPOUT):
            of_dropout.append(setting)
        else:
            (of_model if name in own else of_training).append(setting)
    given = parse_settings(of_model, kind, model)
    if model.__name__ == "RecurrentLM":
        given["cell"] = kind
    training = parse_settings(of_training, kind, Training)
    if "averages" in training:
        training["averages"] = tuple(training["averages"])
    dropout = _dropout(of_dropout, kind, model.DROPOUT, Dropout)
    made: NeuralLM = model(**given, training=replace(model.TRAINING, **training), dropout=dropout, device=device)
    return made


def _dropout(settings: Iterable[str], kind: str, usual: Any, dropout: type[Any]) -> Any:
    """``dropout=0.3`` is for inputs, outputs and what lies between; ``dropout.recurrent=0.5`` for one place."""
    named: list[str] = []
    for setting in settings:
        name, _, value = setting.partition("=")
        places = ("input", "between", "output") if name == DROPOUT else (name.removeprefix(f"{DROPOUT}."),)
        named += [f"{place}={value}" for place in places]
    return replace(usual, **parse_settings(named, kind, dropout))


def checkpoint_of(out: str) -> Path:
    """Where a run is kept while it goes on: beside the model that it will be."""
    return Path(f"{out.rstrip('/')}.checkpoint")


def forget_run(out: str) -> None:
    """The model is saved: what its run has kept, a file, or with --ray a folder, may go."""
    kept = checkpoint_of(out)
    if kept.is_dir():
        shutil.rmtree(kept)
    kept.unlink(missing_ok=True)


def train_neural(
    model: NeuralLM,
    corpus: Corpus,
    valid: Corpus | None,
    out: str,
    meter: Meter | None,
    *,
    resume: bool,
    threads: int | None = None,
) -> None:
    """Train to the end, keeping the run in a file on the way.

    Ctrl-C stops after the updates at hand, writes that file, and says how to go on.
    """
    import torch

    from foreword.storage.checkpoint import deferred_interrupt
    from foreword.training.checkpoint import Checkpoint

    if threads is not None:
        torch.set_num_threads(threads)
    checkpoint = Checkpoint(checkpoint_of(out))
    if not resume:
        forget_run(out)
    elif checkpoint.path.is_dir():
        raise SettingError(f"{checkpoint.path} keeps a run on Ray: go on with it by --ray")
    asked_at = 0
    with deferred_interrupt() as stopped:
        for step in model.train(corpus, valid=valid, checkpoint=checkpoint):
            if meter:
                seen = f", valid {math.exp(-model.valid_score_):.1f}" if math.isfinite(model.valid_score_) else ""
                meter(f"training, loss {step.loss:.3f}{seen}", step.done, step.total)
            if stopped.is_set() and asked_at == checkpoint.written:
                checkpoint.ask()
            elif stopped.is_set():
                share = step.done / max(1, step.total)
                raise KeyboardInterrupt(f"stopped after {share:.0%}; {checkpoint.path} keeps it, --resume goes on")
            else:
                asked_at = checkpoint.written
