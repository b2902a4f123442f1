"""What a stopped comparison leaves for the next one: its finished models, and the network that was learning.

Each run has a folder, named after everything the run depends on: the text's ids, its facts, the settings. The folder
holds, for each finished model, its row as JSON and the log-probability of each token of the tuning and the test part;
for a network that is learning, a checkpoint with its curve, and the seconds it may learn. A run that completes deletes
its folder; one that is never resumed is deleted by a later run after a week.

Nothing here may stop a comparison: what cannot be written is not cached, and what cannot be read is trained again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from foreword.arrays import Array, Doubles
from foreword.errors import ForewordError
from foreword.evaluate.compare.results import Curve, Gates, Row
from foreword.measures.perplexity import Measures
from foreword.protocols import Json
from foreword.storage.atomic import atomic_file
from foreword.storage.checkpoint import ABOUT, Checkpoint
from foreword.storage.safetensors import read_arrays, write_arrays
from foreword.text.strict_json import parse_json

VERSION = 3
FORGOTTEN_AFTER = 7 * 24 * 3600.0
"""Seconds after which a folder that was not resumed is deleted."""

CHECKPOINT_EVERY = 10.0
"""Seconds of a network's training that are lost at most."""


def run_name(settings: Mapping[str, Json], *texts: Array) -> str:
    """Return a name that depends on the settings, as JSON can hold them, and the ids of the texts."""
    digest = hashlib.sha256(json.dumps([VERSION, settings], sort_keys=True).encode())
    for ids in texts:
        digest.update(np.ascontiguousarray(ids).data)
    return digest.hexdigest()[:24]


class Finished(NamedTuple):
    """A model's row, and its log-probabilities of the tuning and the test part. spent: seconds from the beginning of
    the comparison until the model was done.
    """

    row: Row
    valid: Doubles
    test: Doubles
    spent: float


@dataclass(slots=True)
class Learnt:
    """How a network has learnt so far. tokens: how many it has read; train, valid: the points of its ``Curve``."""

    tokens: int = 0
    train: list[tuple[float, float]] = field(default_factory=list)
    valid: list[tuple[float, float]] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Seconds of training until the last point."""
        return self.train[-1][0] if self.train else 0.0


class TolerantCheckpoint(Checkpoint):
    """A checkpoint that also holds how the network has learnt, and that is not written where the disk is full.

    Both are in one file, so that they agree whenever the process is killed.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, every=CHECKPOINT_EVERY)
        self.learnt = self._stored()

    def write(self, arrays: Mapping[str, Array], kind: str, run: str, facts: Mapping[str, Json] | None = None) -> None:
        """Write the arrays of a run if there is space for them."""
        with suppress(OSError, ForewordError):
            super().write(arrays, kind, run, {**(facts or {}), "learnt": asdict(self.learnt)})

    def discard(self) -> None:
        """Delete the file, and forget how the network learnt."""
        self.path.unlink(missing_ok=True)
        self.learnt = Learnt()

    def _stored(self) -> Learnt:
        """Return how the network had learnt when the file was written; nothing if it cannot be read."""
        try:
            found = parse_json(read_arrays(self.path)[ABOUT].tobytes())["learnt"]
            curve = _curve(found)
            return Learnt(int(_number(found["tokens"])), list(curve.train), list(curve.valid))
        except (OSError, ValueError, TypeError, LookupError, AttributeError, ForewordError):
            return Learnt()


class RunCache:
    """The folder of one run, or nothing at all if ``root`` is None."""

    def __init__(self, root: Path | None, name: str) -> None:
        self.folder = None if root is None else root / name
        if root is not None:
            _delete_old(root, time.time())

    def finished(self, model: str) -> Finished | None:
        """Return a model that an earlier run finished, if there is one and it can be read."""
        if self.folder is None:
            return None
        try:
            found = parse_json(self._file(model, "json").read_bytes())
            row, spent = _row(found["row"]), float(found["spent"])
            arrays = read_arrays(self._file(model, "safetensors"))
            valid, test = (np.array(arrays[part], np.float64).ravel() for part in ("valid", "test"))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, ForewordError):
            return None
        return Finished(row, valid, test, spent)

    def finish(self, row: Row, valid: Doubles, test: Doubles, spent: float) -> None:
        """Write a finished model, and delete its checkpoint."""
        if self.folder is None:
            return
        model = row.name
        with suppress(OSError, ForewordError):
            with atomic_file(self._file(model, "safetensors")) as new:
                write_arrays(new, {"valid": valid, "test": test})
            with atomic_file(self._file(model, "json")) as new:  # last: where it is, the other is whole
                new.write_text(json.dumps({"row": asdict(row), "spent": spent}), encoding="utf-8")
            self._file(model, "checkpoint").unlink(missing_ok=True)

    def checkpoint(self, model: str) -> TolerantCheckpoint | None:
        """Return the checkpoint of a network in training, or None if nothing is cached."""
        return None if self.folder is None else TolerantCheckpoint(self._file(model, "checkpoint"))

    def seconds(self, model: str, wanted: float) -> float:
        """Return the seconds a network may learn, those it had when it began: its rate falls by that clock."""
        if self.folder is None:
            return wanted
        note = self._file(model, "learning.json")
        with suppress(OSError, ValueError, TypeError, LookupError):
            return float(_number(parse_json(note.read_bytes())["seconds"]))
        with suppress(OSError, ForewordError), atomic_file(note) as new:
            new.write_text(json.dumps({"seconds": wanted}), encoding="utf-8")
        return wanted

    def close(self) -> None:
        """Delete the folder of a run that has completed."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, model: str, suffix: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{model}.{suffix}"


def _delete_old(root: Path, now: float) -> None:
    with suppress(OSError):
        for folder in list(root.iterdir()):
            if folder.is_dir() and now - folder.stat().st_mtime > FORGOTTEN_AFTER:
                shutil.rmtree(folder, ignore_errors=True)


def _row(found: dict[str, Any]) -> Row:
    """Rebuild a row from its ``asdict``; a value of another type raises."""
    gates = found["gates"]
    return Row(
        name=_text(found["name"]),
        title=_text(found["title"]),
        measures=Measures(**{name: _number(value) for name, value in found["measures"].items()}),
        interval=(_number(found["interval"][0]), _number(found["interval"][1])),
        parameters=int(found["parameters"]),
        disk_bytes=int(found["disk_bytes"]),
        train_seconds=_number(found["train_seconds"]),
        epochs=_number(found["epochs"]),
        train_tokens_per_second=_number(found["train_tokens_per_second"]),
        score_tokens_per_second=_number(found["score_tokens_per_second"]),
        sample=_text(found["sample"]),
        surprisal=tuple(map(_number, found["surprisal"])),
        curve=None if found["curve"] is None else _curve(found["curve"]),
        gradient=tuple(map(_number, found["gradient"])),
        gates=None if gates is None else _gates(gates),
    )


def _gates(found: dict[str, Any]) -> Gates:
    tokens = tuple(map(_text, found["tokens"]))
    traces = {_text(name): tuple(tuple(map(_number, row)) for row in rows) for name, rows in found["traces"].items()}
    if not all(len(rows) == len(tokens) and len(set(map(len, rows))) == 1 for rows in traces.values()):
        raise ValueError("gates of another shape")
    return Gates(tokens, traces)


def _curve(found: dict[str, Any]) -> Curve:
    train, valid = (
        tuple((_number(seconds), _number(value)) for seconds, value in found.get(part, ()))
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
