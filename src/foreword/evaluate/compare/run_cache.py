"""What a comparison that was stopped leaves for the next one: its finished models, and the network that was learning.

A folder for each run, named after everything the run depends on: the text's ids, its facts, the settings. In it, for
each finished model, its row as JSON and what it gave each token of the tuning and the test part; for a network that is
learning, a checkpoint and how long it may learn. A run that comes to its end deletes its folder; one that is never
taken up again is deleted by a later run after a week.

Nothing here may stop a comparison: what cannot be written is not kept, and what cannot be read is trained again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from foreword.arrays import Array, Doubles
from foreword.errors import ForewordError
from foreword.evaluate.compare.results import Curve, Gates, Row
from foreword.measures.perplexity import Measures
from foreword.protocols import Json
from foreword.storage.atomic import atomic_file
from foreword.storage.safetensors import read_arrays, write_arrays
from foreword.training.checkpoint import Checkpoint

VERSION = 1
FORGOTTEN_AFTER = 7 * 24 * 3600.0
"""Seconds after which a folder that nobody went on with is deleted."""

CHECKPOINT_EVERY = 10.0
"""Seconds of a network's training that are lost at most."""


def run_name(settings: Mapping[str, Json], *texts: Array) -> str:
    """The same for the same run: settings, as JSON can hold them, and ids."""
    digest = hashlib.sha256(json.dumps([VERSION, settings], sort_keys=True).encode())
    for ids in texts:
        digest.update(np.ascontiguousarray(ids).data)
    return digest.hexdigest()[:24]


class Finished(NamedTuple):
    """A model's row, and its log-probabilities of the tuning and the test part. spent: seconds of the whole comparison
    when it was done.
    """

    row: Row
    valid: Doubles
    test: Doubles
    spent: float


class Tolerant(Checkpoint):
    """A checkpoint that is not kept where the disk is full."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, every=CHECKPOINT_EVERY)

    def write(self, arrays: Mapping[str, Array], kind: str, run: str) -> None:
        with suppress(OSError, ForewordError):
            super().write(arrays, kind, run)


class Kept:
    """The folder of one run, or nothing at all where ``root`` is None."""

    def __init__(self, root: Path | None, name: str) -> None:
        self.folder = None if root is None else root / name
        if root is not None:
            _forget_old(root, time.time())

    def finished(self, model: str) -> Finished | None:
        """If an earlier run got that far."""
        if self.folder is None:
            return None
        try:
            told = json.loads((self.folder / f"{model}.json").read_text(encoding="utf-8"))
            row, spent = _row(told["row"]), float(told["spent"])
            arrays = read_arrays(self.folder / f"{model}.safetensors")
            valid, test = (np.array(arrays[part], np.float64).ravel() for part in ("valid", "test"))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, ForewordError):
            return None
        return Finished(row, valid, test, spent)

    def finish(self, row: Row, valid: Doubles, test: Doubles, spent: float) -> None:
        if self.folder is None:
            return
        model = row.name
        with suppress(OSError, ForewordError):
            with atomic_file(self.folder / f"{model}.safetensors") as new:
                write_arrays(new, {"valid": valid, "test": test})
            with atomic_file(self.folder / f"{model}.json") as new:  # last: where it is, the other is whole
                new.write_text(json.dumps({"row": asdict(row), "spent": spent}), encoding="utf-8")
            self.checkpoint(model).unlink(missing_ok=True)

    def checkpoint(self, model: str) -> Path:
        if self.folder is None:
            raise ForewordError("a run that is not kept has no checkpoints")
        return self.folder / f"{model}.checkpoint"

    def seconds(self, model: str, wanted: float) -> float:
        """How long a network may learn: what it was given when it began, for its rate falls by that clock."""
        return float(self._note(model, {"seconds": wanted})["seconds"])

    def curve(self, model: str) -> Curve:
        """How it learnt before it was stopped."""
        return _curve(self._note(model, {}).get("curve", {}))

    def note_curve(self, model: str, curve: Curve) -> None:
        if self.folder is not None:
            note = self._note(model, {}) | {"curve": asdict(curve)}
            with suppress(OSError, ForewordError), atomic_file(self._notes(model)) as new:
                new.write_text(json.dumps(note), encoding="utf-8")

    def close(self) -> None:
        """The run is over: nothing is left to go on with."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _notes(self, model: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{model}.learning.json"

    def _note(self, model: str, otherwise: dict[str, Any]) -> dict[str, Any]:
        """What was noted of a network in training; ``otherwise`` is noted where nothing was."""
        if self.folder is None:
            return otherwise
        with suppress(OSError, ValueError):
            told = json.loads(self._notes(model).read_text(encoding="utf-8"))
            if isinstance(told, dict) and isinstance(told.get("seconds"), float):
                return told
        if otherwise:
            with suppress(OSError, ForewordError), atomic_file(self._notes(model)) as new:
                new.write_text(json.dumps(otherwise), encoding="utf-8")
        return otherwise


def _forget_old(root: Path, now: float) -> None:
    with suppress(OSError):
        for folder in list(root.iterdir()):
            if folder.is_dir() and now - folder.stat().st_mtime > FORGOTTEN_AFTER:
                shutil.rmtree(folder, ignore_errors=True)


def _row(told: dict[str, Any]) -> Row:
    """From what ``asdict`` made of it; anything that is not of its type raises."""
    gates = told["gates"]
    return Row(
        name=_text(told["name"]),
        title=_text(told["title"]),
        measures=Measures(**{name: _number(value) for name, value in told["measures"].items()}),
        parameters=int(told["parameters"]),
        disk_bytes=int(told["disk_bytes"]),
        train_seconds=_number(told["train_seconds"]),
        train_tokens_per_second=_number(told["train_tokens_per_second"]),
        score_tokens_per_second=_number(told["score_tokens_per_second"]),
        sample=_text(told["sample"]),
        surprisal=tuple(map(_number, told["surprisal"])),
        curve=None if told["curve"] is None else _curve(told["curve"]),
        gradient=tuple(map(_number, told["gradient"])),
        gates=None if gates is None else _gates(gates),
    )


def _gates(told: dict[str, Any]) -> Gates:
    tokens = tuple(map(_text, told["tokens"]))
    traces = {_text(name): tuple(tuple(map(_number, row)) for row in rows) for name, rows in told["traces"].items()}
    if not all(len(rows) == len(tokens) and len(set(map(len, rows))) == 1 for rows in traces.values()):
        raise ValueError("gates of another shape")
    return Gates(tokens, traces)


def _curve(told: dict[str, Any]) -> Curve:
    train, valid = (
        tuple((_number(seconds), _number(value)) for seconds, value in told.get(part, ()))
        for part in ("train", "valid")
    )
    return Curve(train, valid)


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("expected a number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("expected text")
    return value
