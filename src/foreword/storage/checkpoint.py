"""Checkpoints: unfinished work in one file, from which it can be resumed.

A checkpoint is a safetensors file of the arrays that the rest of the work depends on. One more array, ``about``, is a
JSON object that describes what they belong to::

    {"version": 2, "kind": "AWDLSTM", "run": "9f86d081884c7d65...", ...}

``kind`` names the work, ``run`` is the fingerprint of its settings and input, and further facts may follow. A
checkpoint of another run is refused. The file is replaced in one step, so that a process killed while it writes leaves
the previous one; it holds arrays, never code.
"""

from __future__ import annotations

import hashlib
import json
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import numpy as np

from foreword.arrays import Array
from foreword.errors import InputError
from foreword.protocols import Json
from foreword.storage.atomic import atomic_file
from foreword.storage.safetensors import read_arrays, write_arrays
from foreword.text.strict_json import parse_json, shown

VERSION = 2
ABOUT = "about"

Upgrade = Callable[[dict[str, Array], Mapping[str, Array]], dict[str, Array]]


def fingerprint(settings: Mapping[str, Json], *texts: Array) -> str:
    """Return the SHA-256 of what a run depends on: its settings and the arrays it reads."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for ids in texts:
        digest.update(np.ascontiguousarray(ids).data)
    return digest.hexdigest()


def text_array(texts: Iterable[Iterable[str]]) -> Array:
    """Return lists of words, labels or texts as bytes, for a fingerprint."""
    joined = "\x1e".join("\x1f".join(each) for each in texts)
    return np.frombuffer(joined.encode("utf-8", "surrogatepass"), np.uint8)


def write_checkpoint(
    path: str | Path, arrays: Mapping[str, Array], *, kind: str, run: str, facts: Mapping[str, Json] | None = None
) -> None:
    """Write a checkpoint. kind: of what work; run: its fingerprint; facts: anything else, as JSON can hold it."""
    about = json.dumps({"version": VERSION, "kind": kind, "run": run, **(facts or {})}).encode()
    with atomic_file(path) as new:
        write_arrays(new, {**arrays, ABOUT: np.frombuffer(about, np.uint8)})


def read_checkpoint(path: str | Path, *, kind: str, run: str) -> tuple[dict[str, Array], dict[str, Json]]:
    """Return the arrays, mapped from the file, and the facts; an ``InputError`` unless it belongs to this very run."""
    arrays = read_arrays(path)
    try:
        facts = parse_json(arrays.pop(ABOUT).tobytes())
        if "fingerprint" in facts:  # as 0.1.0 wrote the counts of a tokenizer
            facts = {"version": VERSION, "kind": kind, "run": facts.pop("fingerprint"), **facts}
        version, found, of_run = facts.pop("version"), facts.pop("kind"), facts.pop("run")
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(f"{path}: not a checkpoint that this version of Foreword reads") from None
    if version != VERSION:
        raise InputError(f"{path}: a checkpoint of version {shown(version)}, where {VERSION} was expected")
    if found != kind:
        raise InputError(f"{path}: the checkpoint of another model: {shown(found)}, not {kind!r}")
    if of_run != run:
        differs = "other text, settings or seed; leave out --resume to start again"
        raise InputError(f"{path}: the checkpoint of another run: {differs}")
    return arrays, facts


class Checkpoint:
    """The checkpoint file of a run that writes it every ``every`` seconds.

    written: how many times it has been written. asked: whether it is to be written at the next opportunity.
    """

    def __init__(self, path: str | Path, *, every: float = 60.0) -> None:
        self.path = Path(path)
        self.every = every
        self.written = 0
        self.asked = False
        self._last = time.monotonic()

    def ask(self) -> None:
        """Request that it be written at the next opportunity."""
        self.asked = True

    def due(self) -> bool:
        """Return whether it should be written now."""
        return self.asked or time.monotonic() - self._last >= self.every

    def stored_run(self) -> str | None:
        """Return the fingerprint of the run that wrote the file; None if there is no such file."""
        try:
            return str(parse_json(read_arrays(self.path)[ABOUT].tobytes())["run"])
        except (InputError, LookupError, ValueError, TypeError):
            return None

    def write(self, arrays: Mapping[str, Array], kind: str, run: str, facts: Mapping[str, Json] | None = None) -> None:
        """Write the arrays of a run in place of the previous checkpoint."""
        write_checkpoint(self.path, arrays, kind=kind, run=run, facts=facts)
        self.written += 1
        self.asked = False
        self._last = time.monotonic()

    def read(
        self, like: Mapping[str, Array], kind: str, run: str, upgrade: Upgrade | None = None
    ) -> dict[str, Array] | None:
        """Return copies of the arrays named in ``like``, of the same dtypes and shapes; None if there is no file.

        upgrade: converts arrays that an older version wrote, given them and ``like``.
        """
        if not self.path.exists():
            return None
        arrays, _ = read_checkpoint(self.path, kind=kind, run=run)
        arrays = arrays if upgrade is None else upgrade(arrays, like)
        for name, wanted in like.items():
            if name not in arrays or arrays[name].shape != wanted.shape or arrays[name].dtype != wanted.dtype:
                raise InputError(f"{self.path}: a damaged checkpoint: {name} is not {wanted.dtype} {wanted.shape}")
        return {name: np.array(arrays[name]) for name in like}


@contextmanager
def deferred_interrupt() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event, so that work can stop where it is safe; a second one stops it at once.

    Outside the main thread, where Python delivers no signals, nothing changes.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return

    def note(signal_number: int, frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
