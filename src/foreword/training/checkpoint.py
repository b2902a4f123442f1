"""A run that was stopped and goes on: everything that the next epoch depends on, in one file.

Epochs draw their random numbers from seeds of their own, so that between two of them a run is its weights, their
averages, the best of those so far, and a few numbers; a run that goes on from there ends as one that was never stopped.
The file is written beside the old one and put in its place when it is whole. What is in it is arrays, never code.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from foreword.errors import InputError
from foreword.io.atomic import atomic_file
from foreword.io.safetensors import read_arrays, write_arrays
from foreword.protocols import Array, Json

RUN = "run"
"""The name of the run's fingerprint among the arrays."""


class Checkpoint:
    """Where a run is kept, and how often: at the first end of an epoch after each ``every`` seconds.

    written: how often it has been.
    """

    def __init__(self, path: str | Path, *, every: float = 60.0) -> None:
        self.path = Path(path)
        self.every = every
        self.written = 0
        self._last = time.monotonic()

    def due(self) -> bool:
        return time.monotonic() - self._last >= self.every

    def write(self, arrays: Mapping[str, Array], run: str) -> None:
        with atomic_file(self.path) as new:
            write_arrays(new, {**arrays, RUN: np.frombuffer(run.encode(), np.uint8)})
        self.written += 1
        self._last = time.monotonic()

    def read(self, like: Mapping[str, Array], run: str) -> dict[str, Array] | None:
        """What was kept, or None where nothing was; ``like`` says what it must look like."""
        if not self.path.exists():
            return None
        arrays = read_arrays(self.path)
        found = arrays.pop(RUN, np.empty(0, np.uint8)).tobytes()
        if found != run.encode():
            raise InputError(f"{self.path}: the checkpoint of another run: other text, settings or seed")
        for name, wanted in like.items():
            if name not in arrays or arrays[name].shape != wanted.shape or arrays[name].dtype != wanted.dtype:
                raise InputError(f"{self.path}: a damaged checkpoint: {name} is not {wanted.dtype} {wanted.shape}")
        return {name: np.array(arrays[name]) for name in like}


def fingerprint(settings: Mapping[str, Json], *texts: Array) -> str:
    """What a run is: its settings and the ids it reads."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for ids in texts:
        digest.update(np.ascontiguousarray(ids).data)
    return digest.hexdigest()
