"""A run that was stopped and goes on: everything that the rest of it depends on, in one file.

That is the weights, their averages, the best of those so far, what the optimiser and the network remember, the state of
the random numbers, and where in the text it is; a run that goes on from there ends as one that was never stopped. The
file is written beside the old one and put in its place when it is whole. What is in it is arrays, never code.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from foreword.arrays import Array
from foreword.errors import InputError
from foreword.protocols import Json
from foreword.storage.atomic import atomic_file
from foreword.storage.safetensors import read_arrays, write_arrays

VERSION = 2
ABOUT = "about"
"""The name among the arrays of what the run is: version, kind of model and fingerprint, as JSON."""


class Checkpoint:
    """Where a run is kept, and how often: every so many seconds.

    written: how often it has been. asked: whether it is wanted sooner.
    """

    def __init__(self, path: str | Path, *, every: float = 60.0) -> None:
        self.path = Path(path)
        self.every = every
        self.written = 0
        self.asked = False
        self._last = time.monotonic()

    def ask(self) -> None:
        """Have it written at the next occasion."""
        self.asked = True

    def due(self) -> bool:
        return self.asked or time.monotonic() - self._last >= self.every

    def write(self, arrays: Mapping[str, Array], kind: str, run: str) -> None:
        about = json.dumps({"version": VERSION, "kind": kind, "run": run}).encode()
        with atomic_file(self.path) as new:
            write_arrays(new, {**arrays, ABOUT: np.frombuffer(about, np.uint8)})
        self.written += 1
        self.asked = False
        self._last = time.monotonic()

    def read(self, like: Mapping[str, Array], kind: str, run: str) -> dict[str, Array] | None:
        """What was kept, or None where nothing was; ``like`` says what it must look like."""
        if not self.path.exists():
            return None
        arrays = read_arrays(self.path)
        self._check(arrays.pop(ABOUT, None), kind, run)
        for name, wanted in like.items():
            if name not in arrays or arrays[name].shape != wanted.shape or arrays[name].dtype != wanted.dtype:
                raise InputError(f"{self.path}: a damaged checkpoint: {name} is not {wanted.dtype} {wanted.shape}")
        return {name: np.array(arrays[name]) for name in like}

    def _check(self, about: Array | None, kind: str, run: str) -> None:
        try:
            told = {} if about is None else json.loads(about.tobytes())
            version, found, kept = told["version"], told["kind"], told["run"]
        except (ValueError, TypeError, KeyError):
            raise InputError(f"{self.path}: not a checkpoint that this version of Foreword reads") from None
        if version != VERSION:
            raise InputError(f"{self.path}: a checkpoint of version {version}, where {VERSION} was expected")
        if found != kind:
            raise InputError(f"{self.path}: the checkpoint of another model: {found}, not {kind}")
        if kept != run:
            raise InputError(f"{self.path}: the checkpoint of another run: other text, settings or seed")


def fingerprint(settings: Mapping[str, Json], *texts: Array) -> str:
    """What a run is: its settings and the ids it reads."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for ids in texts:
        digest.update(np.ascontiguousarray(ids).data)
    return digest.hexdigest()
