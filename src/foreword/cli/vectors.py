"""Word vectors on the command line: opened from wherever they are, and trained."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from foreword.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.protocols import Meter, Step
    from foreword.tokens.corpus import Corpus
    from foreword.vectors.wordvectors import WordVectors

MIN_COUNT = 5
"""Words seen less often get no vector: there is too little to learn them from. word2vec's and fastText's default."""

SAVE_EVERY = 300.0
"""Seconds between two savings of what has been learnt."""

VectorsPath: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="VECTORS",
        help="A folder that foreword train wrote, or a file: word2vec text or binary, GloVe, .vec, compressed or not.",
    ),
]


def load_vectors(path: str) -> WordVectors:
    """Vectors from a folder, which is mapped at once, or from a file, which is read, with progress."""
    from foreword.cli.models import load_any
    from foreword.cli.progress import progress
    from foreword.vectors.word2vec_file import looks_like_vectors, read_vectors

    if Path(path).is_file() and looks_like_vectors(path):
        with progress() as meter:
            return read_vectors(path, meter=meter)
    return vectors_in(load_any(path), path)


def has_vectors(found: object) -> bool:
    """Whether something that was loaded is word vectors, or a model that has learnt some."""
    from foreword.vectors.wordvectors import WordVectors

    return isinstance(found, WordVectors) or hasattr(type(found), "vectors")


def vectors_in(found: Any, path: str) -> WordVectors:
    """The vectors themselves, or those that a trained model holds."""
    from foreword.storage.folder import kind_of
    from foreword.vectors.wordvectors import WordVectors

    if not has_vectors(found):
        raise InputError(
            f"{path}: its kind is {kind_of(found)}, which has no word vectors: foreword train word2vec makes some"
        )
    held: WordVectors = found if isinstance(found, WordVectors) else found.vectors
    return held


def begin_or_resume(kind_class: type[Any], settings: dict[str, Any], out: str, *, resume: bool) -> Any:
    """A model to be trained: a fresh one, or the stopped one at ``out``, which must have been given the same settings.

    Where nothing is there yet, ``--resume`` begins: the same line can be repeated until the work is done.
    """
    if not resume or not Path(out).exists():
        return kind_class(**settings)
    from foreword.storage.folder import load

    model = load(out)
    if not isinstance(model, kind_class):
        raise InputError(f"{out}: a {type(model).__name__}, not a {kind_class.__name__}: it cannot be gone on with")
    for name, value in settings.items():
        if name in ("memory", "scratch"):  # where the work is done changes nothing of it
            setattr(model, name, value)
        elif getattr(model, name) != value:
            was = getattr(model, name)
            raise InputError(f"{out}: training began with {name}={was}, and --set now says {value}")
    return model


def train_model(model: Any, corpus: Corpus, out: str, meter: Meter | None) -> float | None:
    """Train to the end, saving on the way; the loss of the last step, None if there was none left to do.

    Ctrl-C stops after the step at hand, saves, and says how to go on.
    """
    from foreword.storage.folder import save

    counted = model.count(corpus, meter) if hasattr(model, "count") else corpus
    phase = "training" if counted is corpus else "training on pairs"
    loss = run_steps(model, model.train(counted), out, meter, phase)
    save(model, out)
    return loss


def run_steps(
    model: Any, steps: Iterator[Step], out: str, meter: Meter | None, phase: str = "training"
) -> float | None:
    """Go through the steps of training, saving on the way but not at the end; the loss of the last one."""
    from foreword.storage.checkpoint import deferred_interrupt
    from foreword.storage.folder import save

    loss, saved = None, time.monotonic()
    with deferred_interrupt() as stopped:
        for step in steps:
            loss = step.loss
            if meter:
                meter(f"{phase}, loss {step.loss:.4f}", step.done, step.total)
            if stopped.is_set() and step.done < step.total:
                save(model, out)
                share = step.done / step.total
                raise KeyboardInterrupt(f"stopped after {share:.0%}; what was learnt is in {out}, --resume goes on")
            if time.monotonic() - saved >= SAVE_EVERY:
                save(model, out)
                saved = time.monotonic()
    return loss
