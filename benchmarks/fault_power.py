"""Power cuts: what a disk holds when everything that was not synced is lost, or some of it.

Work runs with a recorder that looks at its folder before and after every call that syncs, renames, creates or deletes
something there (audit hooks, and replacements for the calls that have none). A file's bytes are safe as of the last
``fsync`` of that file, the names in a folder as of the last ``fsync`` of that folder. At each of these moments the
power may go, and the disk may then hold any mixture of what was safe and what was there: the recorder builds some of
them. Each is put into a fresh folder and checked; then the work is done again, and has to end in the same bytes.
"""

from __future__ import annotations

import os
import pickle
import random
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fault_disk import Fault, answer_of
from benchmarks.fault_kills import MODEL, Work, files_of
from foreword.storage import atomic

WATCHED = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree"}
"""Audit events that come before something in a folder may change."""

Names = dict[str, int]


@dataclass
class Disk:
    """What the disk holds at one moment, by number of inode.

    files: bytes, as they are and as they were last synced. names: what is in each folder, likewise.
    """

    files: dict[int, tuple[bytes, bytes]]
    names: dict[int, tuple[Names, Names]]
    root: int
    safe_model: bool = False


@dataclass
class Recorder:
    """Follows what happens below a folder while work runs."""

    folder: Path
    moments: list[Disk] = field(default_factory=list)
    _synced: dict[int, bytes] = field(default_factory=dict)
    _names: dict[int, Names] = field(default_factory=dict)
    _held: dict[int, int] = field(default_factory=dict)
    _busy: bool = False
    _had_model: bool = False

    @contextmanager
    def recording(self) -> Iterator[None]:
        self._look(sync=True)
        sys.addaudithook(self._audited)  # which cannot be removed: the work runs in a fork
        fsync, exchanged = os.fsync, atomic._exchanged

        def synced(handle: Any) -> None:
            self.look()
            fsync(handle)
            self._note_sync(handle if isinstance(handle, int) else handle.fileno())
            self.look()

        flush = np.memmap.flush

        def flushed(mapped: Any) -> None:
            self.look()
            flush(mapped)
            with Path(mapped.filename).open("rb") as file:
                self._note_sync(file.fileno())
            self.look()

        def swapped(one: Path, other: Path) -> bool:
            self.look()
            done = exchanged(one, other)
            self.look()
            return done

        os.fsync, atomic._exchanged = synced, swapped  # type: ignore[assignment]
        np.memmap.flush = flushed  # type: ignore[assignment, method-assign]
        try:
            yield
            self.look()
        finally:
            os.fsync, atomic._exchanged, np.memmap.flush = fsync, exchanged, flush  # type: ignore[method-assign]

    def _audited(self, event: str, args: tuple[Any, ...]) -> None:
        if event in WATCHED and not self._busy and args and str(args[0]).startswith(str(self.folder)):
            self.look()

    def look(self) -> None:
        """Note the state of the folder, if it has changed."""
        if not self._busy:
            self._busy = True
            try:
                self._look()
            finally:
                self._busy = False

    def _look(self, sync: bool = False) -> None:
        files: dict[int, tuple[bytes, bytes]] = {}
        names: dict[int, tuple[Names, Names]] = {}
        for folder, folders, inside in os.walk(self.folder):
            here = Path(folder)
            entries = {name: (here / name).stat().st_ino for name in (*folders, *inside)}
            number = here.stat().st_ino
            self._hold(here, number)
            if sync:
                self._names[number] = entries
            self._names.setdefault(number, {})  # once it is deleted, its number still is that of a folder
            names[number] = entries, self._names[number]
            for name in inside:
                data = (here / name).read_bytes()
                self._hold(here / name, entries[name])
                if sync:
                    self._synced[entries[name]] = data
                files[entries[name]] = data, self._synced.get(entries[name], b"")
        # What is deleted may still be there after a cut: of files that are gone now only what was synced is known.
        files |= {number: (data, data) for number, data in self._synced.items() if number not in files}
        names |= {number: (known, known) for number, known in self._names.items() if number not in names}
        root = self.folder.stat().st_ino
        self._had_model = self._had_model or MODEL in self._names.get(root, {})
        disk = Disk(files, names, root, self._had_model)
        if not self.moments or disk != self.moments[-1]:
            self.moments.append(disk)

    def _hold(self, path: Path, number: int) -> None:
        """Keep the inode, so that its number is not given to another file."""
        if number not in self._held:
            self._held[number] = os.open(path, os.O_RDONLY)

    def _note_sync(self, handle: int) -> None:
        number = os.fstat(handle).st_ino
        for folder, folders, inside in os.walk(self.folder):
            here = Path(folder)
            if here.stat().st_ino == number:
                self._names[number] = {name: (here / name).stat().st_ino for name in (*folders, *inside)}
            for name in inside:
                if (here / name).stat().st_ino == number:
                    self._synced[number] = (here / name).read_bytes()


# After the cut


def after_cut(disk: Disk, into: Path, rng: random.Random, kind: str) -> None:
    """Build what a disk may hold. kind: "synced", nothing else; "names", all names but synced bytes; or "mixed"."""

    def build(number: int, here: Path) -> None:
        here.mkdir(parents=True, exist_ok=True)
        now, safe = disk.names.get(number, ({}, {}))
        for name, inner in (now if kind == "names" or (kind == "mixed" and rng.random() < 0.5) else safe).items():
            if inner in disk.names:
                build(inner, here / name)
            else:
                (here / name).write_bytes(_torn(*disk.files.get(inner, (b"", b"")), rng, kind))

    build(disk.root, into)


def _torn(now: bytes, safe: bytes, rng: random.Random, kind: str) -> bytes:
    if kind != "mixed" or now == safe:
        return safe
    match rng.randrange(4):
        case 0:
            return safe
        case 1:
            return now
        case 2:
            return now[: rng.randrange(len(now) + 1)]
    return now[: len(safe)] + bytes(max(0, len(now) - len(safe)))  # the length arrived, the bytes did not


def cut_power(work: Work, cuts: int, folder: Path, seed: int = 0) -> Fault:
    """Do some work once, and resume it from ``cuts`` of the states that a cut could have left."""
    fault, rng = Fault(work.name), random.Random(f"{seed} {work.name}")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "first").mkdir(parents=True)
    work.do(folder / "first")  # compiles, and makes what several runs share
    whole = files_of(folder / "first")
    moments = _recorded(work, folder / "recorded")
    if files_of(folder / "recorded") != whole:
        fault.found.append("other bytes while it was recorded")
    after_cut(moments[-1], folder / "end", rng, "synced")
    if not whole.items() <= files_of(folder / "end").items():  # what was deleted may still be there
        fault.found.append("not all that was finished is on the disk")
    for number in range(cuts):
        kind = ("synced", "names", "mixed", "mixed")[number % 4]
        disk = rng.choice(moments)
        place = folder / f"cut{number}"
        after_cut(disk, place, rng, kind)
        fault.tried += 1
        said = answer_of(lambda disk=disk, place=place: _problem(work, disk, place, whole))  # type: ignore[misc]
        if said != "None":
            fault.found.append(f"{place.name}, {kind}: {said}")
        shutil.rmtree(place)
    return fault


def _recorded(work: Work, folder: Path) -> list[Disk]:
    """Do the work in a fork, which ends with the power."""
    folder.mkdir()
    notes = folder.with_suffix(".notes")

    def record() -> None:
        recorder = Recorder(folder)
        with recorder.recording():
            work.do(folder)
        notes.write_bytes(pickle.dumps(recorder.moments))

    said = answer_of(record)
    if said != "None":
        raise RuntimeError(f"{work.name} cannot be recorded: {said}")
    moments: list[Disk] = pickle.loads(notes.read_bytes())
    return moments


def _problem(work: Work, disk: Disk, place: Path, whole: dict[str, bytes]) -> str | None:
    if disk.safe_model and not (place / MODEL).exists():
        return "a model that had been saved is gone"
    work.check(place)
    work.do(place)
    found = files_of(place)
    return None if found == whole else f"ended in other bytes: {sorted(found.items() ^ whole.items())[:1]!r:.300}"
