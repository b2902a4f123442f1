"""What a run has finished, so that one that was killed goes on where it was.

Beside its results an output folder has a hidden one, ``.foreword-filter``::

    ledger.jsonl   the run's settings, then a line for each part and each shard that is finished
    parts/         parts of shards that are not put together yet, and what the first of two passes keeps
    models/        foreign models in our own form, which processes share

A line is written when what it says is on the disk; what a killed run has done without telling is done again, to the
same bytes. A line is JSON, a tab and its CRC-32: one that broke off or was damaged counts for nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from foreword.errors import InputError
from foreword.filtering.output import sync_folder, telling

FOLDER = ".foreword-filter"
VERSION = 2


class Ledger:
    """An output folder that this process alone writes to."""

    at_once = 0
    """How many threads may put shards in place; to rename a file takes none."""

    def __init__(self, out: str | Path, settings: Mapping[str, Any], restart: bool = False) -> None:
        self.out = Path(out)
        self.folder = self.out / FOLDER
        self.parts, self.models = self.folder / "parts", self.folder / "models"
        self._path = self.folder / "ledger.jsonl"
        self._settings = json.loads(json.dumps(settings))  # as it will be read back
        self._records: dict[str, dict[str, Any]] = {}
        _check_folder(self.out)
        self._made = not self.out.exists()
        with telling(str(out)):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = self._locked()
            try:
                if restart:
                    self._forget()
                self.parts.mkdir(exist_ok=True)
                self._begin()
            except BaseException:
                os.close(self._lock)
                raise

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def __getitem__(self, key: str) -> dict[str, Any]:
        return self._records[key]

    def get(self, key: str) -> dict[str, Any] | None:
        return self._records.get(key)

    def record(self, key: str, **facts: Any) -> None:
        """Write down that something is finished; it is on the disk when this returns."""
        self._records[key] = facts
        with telling(str(self._path)):
            self._append({"key": key, **facts})

    # Finished shards

    def place(self, relative: str) -> str:
        """What messages call a finished shard."""
        return str(self.out / relative)

    def stored(self, relative: str) -> int | None:
        """How many bytes a finished shard has; None where it is not there."""
        path = self.out / relative
        return path.stat().st_size if path.is_file() else None

    def put(self, made: Path, relative: str) -> None:
        """Put a shard in place, whole; ``made`` is gone then."""
        target = self.out / relative
        with telling(str(target)):
            target.parent.mkdir(parents=True, exist_ok=True)
            made.replace(target)
            sync_folder(target.parent)

    def close(self, finished: bool = False) -> None:
        """Let others in. What only a run under way needs goes when it is finished; all of it if nothing was done."""
        if finished:
            for folder in (self.parts, self.models):
                shutil.rmtree(folder, ignore_errors=True)
        elif not self._records:
            shutil.rmtree(self.folder, ignore_errors=True)
            if self._made:
                with suppress(OSError):  # not empty
                    self.out.rmdir()
        os.close(self._file)
        os.close(self._lock)

    def _begin(self) -> None:
        lines = self._path.read_bytes().split(b"\n") if self._path.exists() else []
        whole = lines[:-1]
        if whole and (parsed(whole[0]) or {}).get("version") != VERSION:
            raise InputError(f"{self._path}: is damaged, or was written by another Foreword; --restart begins anew")
        records = [record for line in whole if (record := parsed(line)) is not None]
        if len(records) == 1:  # nothing was done yet, so that other settings may be tried
            records, whole = [], []
        if records and records[0].get("settings") != self._settings:
            other = changed(records[0].get("settings"), self._settings)
            raise InputError(
                f"{self.out} holds a run with another {other}; --restart begins anew, or name another folder"
            )
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        end = sum(len(line) + 1 for line in whole)
        os.ftruncate(self._file, end)  # a line that broke off
        os.lseek(self._file, end, os.SEEK_SET)
        self._records = {record.pop("key"): record for record in records[1:] if "key" in record}
        if not records:
            self._append({"format": "foreword-filter", "version": VERSION, "settings": self._settings})
            sync_folder(self.folder)

    def _append(self, record: Mapping[str, Any]) -> None:
        data = line_of(record)
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)

    def _forget(self) -> None:
        self._path.unlink(missing_ok=True)
        for folder in (self.parts, self.models):
            shutil.rmtree(folder, ignore_errors=True)

    def _locked(self) -> int:
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # Windows, where two runs into one folder are the user's own fault
            pass
        except OSError:
            os.close(handle)
            raise InputError(f"another foreword filter is writing to {self.out}") from None
        return handle


def _check_folder(out: Path) -> None:
    """Refuse a folder that holds what is not ours."""
    if out.exists() and not out.is_dir():
        raise InputError(f"cannot write {out}: a file of that name is there, and OUT is a folder")
    if out.is_dir() and any(out.iterdir()) and not (out / FOLDER).is_dir():
        raise InputError(f"cannot write {out}: the folder is not empty and holds no run of foreword filter")


def line_of(record: Mapping[str, Any]) -> bytes:
    data = json.dumps(record, ensure_ascii=False).encode()
    return b"%s\t%08x\n" % (data, zlib.crc32(data))


def parsed(line: bytes) -> dict[str, Any] | None:
    data, _, checksum = line.rpartition(b"\t")
    if checksum != b"%08x" % zlib.crc32(data):  # torn by a machine that went down, or damaged since
        return None
    record = json.loads(data)
    assert isinstance(record, dict)
    return record


def changed(old: Any, new: Mapping[str, Any]) -> str:
    """The first setting that is not the same."""
    if not isinstance(old, dict):
        return "form"
    return next((name for name in (*new, *old) if old.get(name) != new.get(name)), "form").replace("_", " ")
