"""Checkpoints: everything that the rest of a training run depends on, in one file.

That is the weights, their averages, the best of those so far, the state of optimiser, network and random numbers, and
the position in the data. A run that resumes from there ends in the same bytes as one that was never stopped. The file
is written next to the old one and renamed when it is complete. It holds arrays, never code.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from foreword.arrays import Array
from foreword.errors import InputError
from foreword.protocols import Json
from foreword.storage.atomic import atomic_file
from foreword.storage.safetensors import read_arrays, write_arrays

VERSION = 2
ABOUT = "about"
"""The array that identifies the run: version, kind of model and fingerprint, as JSON."""


Upgrade = Callable[[dict[str, Array], Mapping[str, Array]], dict[str, Array]]


class Checkpoint:
    """A file that a run is written to every ``every`` seconds.

    written: how often it has been. asked: whether it is wanted sooner.
    """

    def __init__(self, path: str | Path, *, every: float = 60.0) -> None:
        self.path = Path(path)
        self.every = every
        self.written = 0
        self.asked = False
        self._last = time.monotonic()

    def ask(self) -> None:
        """Have it written at the next opportunity."""
        self.asked = True

    def due(self) -> bool:
        """Return whether it should be written now."""
        return self.asked or time.monotonic() - self._last >= self.every

    def write(self, arrays: Mapping[str, Array], kind: str, run: str) -> None:
        """Write the arrays of a run, replacing those before."""
        about = json.dumps({"version": VERSION, "kind": kind, "run": run}).encode()
        with atomic_file(self.path) as new:
            write_arrays(new, {**arrays, ABOUT: np.frombuffer(about, np.uint8)})
        self.written += 1
        self.asked = False
        self._last = time.monotonic()

    def read(
        self, like: Mapping[str, Array], kind: str, run: str, upgrade: Upgrade | None = None
    ) -> dict[str, Array] | None:
        """Return the arrays of the run, or None where there are none; types and shapes must be those of ``like``.

        upgrade: converts what an older version wrote.
        """
        if not self.path.exists():
            return None
        arrays: dict[str, Array] = dict(read_arrays(self.path))
        self._check(arrays.pop(ABOUT, None), kind, run)
        arrays = arrays if upgrade is None else upgrade(arrays, like)
        for name, wanted in like.items():
            if name not in arrays or arrays[name].shape != wanted.shape or arrays[name].dtype != wanted.dtype:
                raise InputError(f"{self.path}: a damaged checkpoint: {name} is not {wanted.dtype} {wanted.shape}")
        return {name: np.array(arrays[name]) for name in like}

    def _check(self, about: Array | None, kind: str, run: str) -> None:
        try:
            found = {} if about is None else json.loads(about.tobytes())
            version, model, fingerprinted = found["version"], found["kind"], found["run"]
        except (ValueError, TypeError, KeyError):
            raise InputError(f"{self.path}: not a checkpoint that this version of Foreword reads") from None
        if version != VERSION:
            raise InputError(f"{self.path}: a checkpoint of version {version}, where {VERSION} was expected")
        if model != kind:
            raise InputError(f"{self.path}: the checkpoint of another model: {model}, not {kind}")
        if fingerprinted != run:
            raise InputError(f"{self.path}: the checkpoint of another run: other text, settings or seed")


def fingerprint(settings: Mapping[str, Json], *texts: Array) -> str:
    """Return a hash of what identifies a run: its settings and its data."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for ids in texts:
        digest.update(np.ascontiguousarray(ids).data)
    return digest.hexdigest()


def text_array(texts: Iterable[Iterable[str]]) -> Array:
    """Return lists of words, labels or texts as bytes, for a fingerprint."""
    joined = "\x1e".join("\x1f".join(each) for each in texts)
    return np.frombuffer(joined.encode("utf-8", "surrogatepass"), np.uint8)
