"""A run whose finished shards go to an address that fsspec knows, such as ``s3://bucket/kept``.

Shards are made in a scratch folder on this machine, which has the ledger of parts, and are then put there. What is
finished is remembered there too, so that another machine can go on::

    OUT/.foreword-filter/run.jsonl     the run's settings, and who writes here
    OUT/.foreword-filter/done/*.jsonl  one for each finished shard, and one for thresholds
    OUT/.foreword-filter/new/          a shard on its way, where a file can be seen before all of it has arrived

An object store shows an object when all of it has arrived; other systems get it under another name, which is then
moved. A store has no locks, so whoever begins a run puts a mark of its own there, and looks for it before each shard:
of two runs the one that began first finds another mark and ends. Until then both wrote the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from stat import S_ISDIR
from typing import Any

from foreword.errors import ForewordError, InputError, MissingExtraError
from foreword.filtering.ledger import FOLDER, VERSION, Ledger, changed, line_of, parsed
from foreword.filtering.output import WriteError

WHOLE_AT_ONCE = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci"}
"""Stores in which an object appears whole, and where to move one would be to copy it."""


class AddressLedger(Ledger):
    """A scratch folder with the parts, and an address for what is finished."""

    at_once = 4

    def __init__(
        self, address: str, settings: Mapping[str, Any], restart: bool = False, scratch: str | Path | None = None
    ) -> None:
        self.address = address.rstrip("/")
        self._system, self._root = _opened(self.address)
        self._hidden = f"{self._root}/{FOLDER}"
        self._mark = secrets.token_hex(8)
        self._sizes: dict[str, int] = {}
        found = self._found(settings, restart)
        self._is_temporary = scratch is None
        place = _temporary(self.address, settings) if scratch is None else Path(scratch)
        super().__init__(place, {**settings, "out": self.address}, restart)
        self._records.update(found)

    def record(self, key: str, **facts: Any) -> None:
        if not key.startswith("shard ") and key != "thresholds":
            super().record(key, **facts)
            return
        self._records[key] = facts
        name = hashlib.sha256(key.encode()).hexdigest()[:32]
        with _telling(self.place(f"{FOLDER}/done/{name}.jsonl")):
            self._write(f"{self._hidden}/done/{name}.jsonl", line_of({"key": key, **facts}))

    def place(self, relative: str) -> str:
        return f"{self.address}/{relative}"

    def stored(self, relative: str) -> int | None:
        return self._sizes.get(relative)  # as it was when the run began: to ask for each is a request for each

    def put(self, made: Path, relative: str) -> None:
        with _telling(self.place(relative)):
            if not self._is_mine():
                raise ForewordError(f"another foreword filter has begun to write to {self.address}; this one ends")
            path = PurePosixPath(self._root, relative)
            if self._is_store():
                self._system.put_file(str(made), str(path))
            else:
                new = PurePosixPath(self._hidden, "new", f"{self._mark}-{made.name}")
                for folder in (path.parent, new.parent):
                    self._system.makedirs(str(folder), exist_ok=True)
                self._system.put_file(str(made), str(new))
                self._system.mv(str(new), str(path))
            made.unlink()

    def close(self, finished: bool = False) -> None:
        with suppress(Exception):  # an empty list of what is finished does no harm
            if self._is_mine() and not self._listed(f"{self._hidden}/done"):
                self._system.rm(self._hidden, recursive=True)
        super().close(finished)
        if finished:  # what is known here of it has gone where the shards are
            shutil.rmtree(self.out if self._is_temporary else self.folder, ignore_errors=True)

    # What is there

    def _found(self, settings: Mapping[str, Any], restart: bool) -> dict[str, dict[str, Any]]:
        """What earlier runs have finished there; from now on it is this one's."""
        with _telling(self.address):
            if self._system.isfile(self._root):
                raise InputError(f"cannot write {self.address}: a file of that name is there, and OUT is a folder")
            path = f"{self._hidden}/run.jsonl"
            self._system.invalidate_cache()
            before = parsed(self._system.cat_file(path).rstrip(b"\n")) if self._system.exists(path) else {}
            if before == {} and any(PurePosixPath(each).name != FOLDER for each in self._listed(self._root)):
                raise InputError(
                    f"cannot write {self.address}: the folder is not empty and holds no run of foreword filter"
                )
            for old in [self._hidden] if restart else [f"{self._hidden}/new"]:  # what a killed run had begun to put
                if self._system.exists(old):
                    self._system.rm(old, recursive=True)
            wanted = line_of({"format": "foreword-filter", "version": VERSION, "settings": dict(settings)})
            mine = parsed(wanted.rstrip(b"\n")) or {}
            names = [] if restart else self._listed(f"{self._hidden}/done")
            if names and (before is None or before.get("version") != VERSION):
                raise InputError(f"{self.address}: another Foreword has written there; --restart begins anew")
            if names and before and before.get("settings") != mine["settings"]:
                other = changed(before.get("settings"), mine["settings"])
                raise InputError(
                    f"{self.address} holds a run with another {other}; --restart begins anew, or name another folder"
                )
            self._write(path, line_of({**mine, "mark": self._mark}))
            if names:
                listed = self._system.find(self._root, detail=True)
                self._sizes = {
                    str(PurePosixPath(each).relative_to(self._root)): listed[each]["size"] for each in listed
                }
            records = [parsed(data.rstrip(b"\n")) for data in self._system.cat(names).values()] if names else []
        return {record.pop("key"): record for record in records if record is not None and "key" in record}

    def _is_mine(self) -> bool:
        """Whether no other run has begun to write to the same place."""
        seen = parsed(self._system.cat_file(f"{self._hidden}/run.jsonl").rstrip(b"\n")) or {}
        return bool(seen.get("mark") == self._mark)

    def _listed(self, folder: str) -> list[str]:
        try:
            return sorted(self._system.ls(folder, detail=False, refresh=True))
        except TypeError:  # not all systems know what a refreshed list is
            return sorted(self._system.ls(folder, detail=False))
        except FileNotFoundError:
            return []

    def _write(self, path: str, data: bytes) -> None:
        if not self._is_store():
            self._system.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
        self._system.pipe_file(path, data)

    def _is_store(self) -> bool:
        kinds = self._system.protocol
        return not WHOLE_AT_ONCE.isdisjoint([kinds] if isinstance(kinds, str) else kinds)


def _opened(address: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError("fsspec", "data", f"writing {address}") from None
    with _telling(address):
        system, path = url_to_fs(address)
        return system, path.rstrip("/")


def _temporary(address: str, settings: Mapping[str, Any]) -> Path:
    """A folder that the same run will find again on this machine, and that nobody else may have laid there."""
    key = hashlib.sha256(address.encode() + line_of(settings)).hexdigest()[:24]
    folder = Path(tempfile.gettempdir(), f"foreword-filter-{key}")
    with _telling(str(folder)):
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    if not S_ISDIR(status.st_mode) or (hasattr(os, "getuid") and status.st_uid != os.getuid()):
        raise WriteError(f"{folder} belongs to somebody else; --scratch names another folder")
    return folder


@contextmanager
def _telling(name: str) -> Iterator[None]:
    """Whatever goes wrong, in one line: a file system behind an address raises what its network library does."""
    try:
        yield
    except (ForewordError, MemoryError):
        raise
    except Exception as error:
        reason = (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0]
        raise WriteError(f"cannot write {name}: {reason}") from error
