"""What a run has finished, so that a run that was killed can be resumed.

Next to its results an output folder has a hidden folder, ``.foreword-filter``::

    ledger.jsonl   the run's settings, then a line for each part and each shard that is finished
    parts/         parts of shards that are not put together yet, and what the first of two passes has written
    models/        foreign models in our own format, which processes share

A line is written when its result is on the disk, and synced four times a second; what a run has done without recording
it is done again, to the same bytes. A line is JSON, a tab and its CRC-32: an incomplete or damaged line is ignored.

Where the output is an address that fsspec knows, such as ``s3://bucket/kept``, shards are made in a scratch folder on
this machine, which has the ledger of parts, and are then sent there. What is finished is recorded there too, so that
another machine can resume::

    OUT/.foreword-filter/run.jsonl     the run's settings, and a mark of the run that writes here
    OUT/.foreword-filter/done/*.jsonl  one for each finished shard, and one for thresholds
    OUT/.foreword-filter/new/          a shard that is being sent, where a file can be seen before it is complete

An object store shows an object when it is complete; other systems receive it under another name, and it is then moved.
A store has no locks, so a run that begins puts a mark of its own there, and checks it before each shard: of two runs
the one that began first finds another mark and ends. Until then both wrote the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import tempfile
import time
import zlib
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path, PurePosixPath
from stat import S_ISDIR
from typing import Any

from foreword.errors import ForewordError, InputError, MissingExtraError, explained
from foreword.filtering.output import WriteError
from foreword.storage.atomic import make_folders, sync_entries
from foreword.text.strict_json import parse_json

FOLDER = ".foreword-filter"
VERSION = 2

SYNC_EVERY = 0.25
"""Seconds between two syncs: tiny shards share one, which takes longer than to make them. What a power cut takes of the
last moment is done again."""


class Ledger:
    """An output folder that this process alone writes to."""

    at_once = 0
    """How many threads put shards in place; renaming a file takes none."""

    def __init__(self, out: str | Path, settings: Mapping[str, Any], restart: bool = False) -> None:
        self.out = Path(out)
        self.folder = self.out / FOLDER
        self.parts, self.models = self.folder / "parts", self.folder / "models"
        self._path = self.folder / "ledger.jsonl"
        self._settings = json.loads(json.dumps(settings))  # as it will be read back
        self._records: dict[str, dict[str, Any]] = {}
        self._unsynced, self._synced = set[Path](), 0.0
        _check_folder(self.out)
        self._made = not self.out.exists()
        with _write_errors(str(out)):
            make_folders(self.folder)
            self._lock = self._locked()
            try:
                if restart:
                    self._path.unlink(missing_ok=True)
                self._begin()
                self.parts.mkdir(exist_ok=True)
            except BaseException:
                os.close(self._lock)
                raise

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def __getitem__(self, key: str) -> dict[str, Any]:
        return self._records[key]

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a record; None if there is none."""
        return self._records.get(key)

    def record(self, key: str, **facts: Any) -> None:
        """Record that something is finished; the record survives this process, and soon a power cut."""
        self._records[key] = facts
        with _write_errors(str(self._path)):
            self._append({"key": key, **facts})
            if time.monotonic() - self._synced > SYNC_EVERY:
                self.sync()

    def sync(self) -> None:
        """Sync the records, and the names of the shards that have been put in place."""
        with _write_errors(str(self._path)):
            while self._unsynced:
                sync_entries(self._unsynced.pop())
            os.fsync(self._file)
        self._synced = time.monotonic()

    # Finished shards

    def place(self, relative: str) -> str:
        """Return the name of a finished shard, for messages."""
        return str(self.out / relative)

    def stored(self, relative: str) -> int | None:
        """Return the size of a finished shard; None if it is not there."""
        path = self.out / relative
        return path.stat().st_size if path.is_file() else None

    def put(self, made: Path, relative: str) -> None:
        """Move a complete shard from ``made`` to its place."""
        target = self.out / relative
        with _write_errors(str(target)):
            if not target.parent.is_dir():
                make_folders(target.parent)
            is_new = not target.exists()
            made.replace(target)
            if is_new:  # if the rename is lost there is no file, and its record is not believed
                self._unsynced.add(target.parent)
            else:
                sync_entries(target.parent)

    def close(self, finished: bool = False) -> None:
        """Release the folder; delete what only a run in progress needs, or all of it if nothing was done."""
        if finished:
            for folder in (self.parts, self.models):
                shutil.rmtree(folder, ignore_errors=True)
        else:
            with suppress(WriteError):  # what is lost is done again
                self.sync()
        if not finished and not self._records:
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
            raise InputError(f"{self._path}: is damaged, or was written by another Foreword; --restart begins again")
        records = [record for line in whole if (record := parsed(line)) is not None]
        if len(records) == 1:  # nothing was done yet: other settings may be tried
            records, whole = [], []
        if records and records[0].get("settings") != self._settings:
            other = changed(records[0].get("settings"), self._settings)
            raise InputError(
                f"{self.out} holds a run with other settings ({other}); --restart begins again, or name another output"
            )
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        end = sum(len(line) + 1 for line in whole)
        os.ftruncate(self._file, end)  # a line that broke off
        os.lseek(self._file, end, os.SEEK_SET)
        self._records = {record.pop("key"): record for record in records[1:] if "key" in record}
        if not records:
            self._drop_parts()  # of a run that recorded nothing: its parts and models may be another's
            self._append({"format": "foreword-filter", "version": VERSION, "settings": self._settings})
            self._unsynced.add(self.folder)
            self.sync()

    def _append(self, record: Mapping[str, Any]) -> None:
        data = line_of(record)
        while data:
            data = data[os.write(self._file, data) :]

    def _drop_parts(self) -> None:
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
    """Return a record as a line with its checksum."""
    data = json.dumps(record, ensure_ascii=False).encode()
    return b"%s\t%08x\n" % (data, zlib.crc32(data))


def parsed(line: bytes) -> dict[str, Any] | None:
    """Parse a line; None if it is incomplete or damaged."""
    data, _, checksum = line.rpartition(b"\t")
    if checksum != b"%08x" % zlib.crc32(data):  # torn by a machine that went down, or damaged since
        return None
    try:
        record = parse_json(data)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def changed(old: Any, new: Mapping[str, Any]) -> str:
    """Return the name of the first setting that is not the same."""
    if not isinstance(old, dict):
        return "form"
    return next((name for name in (*new, *old) if old.get(name) != new.get(name)), "form").replace("_", " ")


# --- runs whose shards go to an address


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
        folder = _temporary(self.address, settings) if scratch is None else Path(scratch)
        super().__init__(folder, {**settings, "out": self.address}, restart)
        self._records.update(found)

    def record(self, key: str, **facts: Any) -> None:
        """Record a finished part on this machine; finished shards are recorded by what is at the address."""
        if not key.startswith("shard ") and key != "thresholds":
            super().record(key, **facts)
            return
        self._records[key] = facts
        name = hashlib.sha256(key.encode()).hexdigest()[:32]
        with _write_errors(self.place(f"{FOLDER}/done/{name}.jsonl"), Exception):
            self._write(f"{self._hidden}/done/{name}.jsonl", line_of({"key": key, **facts}))

    def place(self, relative: str) -> str:
        """Return the address of a file below the output."""
        return f"{self.address}/{relative}"

    def stored(self, relative: str) -> int | None:
        """Return the size that a file had at the address when the run began; None if it was not there."""
        return self._sizes.get(relative)  # as it was when the run began: asking again would be a request per shard

    def put(self, made: Path, relative: str) -> None:
        """Send a finished file to the address."""
        with _write_errors(self.place(relative), Exception):
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
        """Release the address for other runs."""
        with suppress(Exception):  # an empty list does no harm
            if self._is_mine() and not self._listed(f"{self._hidden}/done"):
                self._system.rm(self._hidden, recursive=True)
        super().close(finished)
        if finished:  # its records are where the shards are
            shutil.rmtree(self.out if self._is_temporary else self.folder, ignore_errors=True)

    # What is there

    def _found(self, settings: Mapping[str, Any], restart: bool) -> dict[str, dict[str, Any]]:
        """Return what earlier runs have finished there, and mark the address as this run's."""
        with _write_errors(self.address, Exception):
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
                raise InputError(f"{self.address}: another Foreword has written there; --restart begins again")
            if names and before and before.get("settings") != mine["settings"]:
                other = changed(before.get("settings"), mine["settings"])
                raise InputError(
                    f"{self.address} holds a run with other settings ({other}); --restart begins again, "
                    "or name another output"
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
        """Return whether no other run has begun to write to the same address."""
        seen = parsed(self._system.cat_file(f"{self._hidden}/run.jsonl").rstrip(b"\n")) or {}
        return bool(seen.get("mark") == self._mark)

    def _listed(self, folder: str) -> list[str]:
        try:
            return sorted(self._system.ls(folder, detail=False, refresh=True))
        except TypeError:  # not all systems can refresh a list
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
    with _write_errors(address, Exception):
        system, path = url_to_fs(address)
        return system, path.rstrip("/")


def _temporary(address: str, settings: Mapping[str, Any]) -> Path:
    """Return a folder that the same run finds again on this machine, and that no other run uses."""
    key = hashlib.sha256(address.encode() + line_of(settings)).hexdigest()[:24]
    folder = Path(tempfile.gettempdir(), f"foreword-filter-{key}")
    with _write_errors(str(folder), Exception):
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    if not S_ISDIR(status.st_mode) or (hasattr(os, "getuid") and status.st_uid != os.getuid()):
        raise WriteError(f"{folder} belongs to somebody else; --scratch names another folder")
    return folder


def _write_errors(name: str, catch: type[Exception] = OSError) -> AbstractContextManager[None]:
    """Turn errors into one line; a file system behind an address raises whatever its network library does."""
    return explained(f"cannot write {name}", catch=catch, raises=WriteError)
