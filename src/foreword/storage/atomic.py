"""All or nothing: what is written appears under its name when it is whole, and not before.

Everything goes to a hidden sibling first, is synced to the disk, and is then renamed. Whoever is killed on the way
leaves the old thing as it was; at worst a hidden sibling remains beside it, which the next one who writes there
deletes: its name says whose it is.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import secrets
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foreword.errors import InputError, explained, reason_of

MODEL_JSON = "model.json"
MODEL_MARK = b'"format": "foreword"'
MARK_WITHIN = 1 << 16
"""Enough of a ``model.json`` to meet its mark: before it come only the short facts about its files."""

DISK_REFUSES = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def atomic_folder(target: str | Path) -> Iterator[Path]:
    """Give an empty folder to write into, which becomes ``target`` at the end unless there was an exception.

    A target that is already there is replaced with all it holds, if it is empty or a saved model; a file or any other
    folder is refused.
    """
    real = Path(os.path.realpath(target))
    with explained(f"cannot write {target}"):
        check_replaceable(target)
        real.parent.mkdir(parents=True, exist_ok=True)
        clear_abandoned(real)
        new = _hidden_sibling(real, "new")
        new.mkdir()
    try:
        with _refusal_explained(target, new):
            yield new
        with explained(f"cannot write {target}"):
            _sync_folder(new)
            _put_in_place(new, real)
    finally:
        shutil.rmtree(new, ignore_errors=True)  # after a success it is no longer there


@contextmanager
def atomic_file(target: str | Path) -> Iterator[Path]:
    """Give a path to write to, which becomes ``target`` at the end unless there was an exception."""
    real = Path(os.path.realpath(target))
    with explained(f"cannot write {target}"):
        if real.exists() and not real.is_file():  # a folder, or a device such as /dev/null, which root could replace
            raise InputError(f"cannot write {target}: it is not a plain file")
        real.parent.mkdir(parents=True, exist_ok=True)
        clear_abandoned(real)
        new = _hidden_sibling(real, "new")
        new.touch(exist_ok=False)
    try:
        with _refusal_explained(target, new):
            yield new
        with explained(f"cannot write {target}"):
            _sync(new, os.O_RDWR)
            new.replace(real)
            _sync_entries(real.parent)
    finally:
        new.unlink(missing_ok=True)


def is_model_json(path: Path) -> bool:
    """Whether it is our own description of a model, and not that of another tool that uses the same name."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return MODEL_MARK in file.read(MARK_WITHIN)


def left_aside(target: Path) -> Path | None:
    """The old version of a folder that is missing, where whoever was replacing it was killed between two renames."""
    if target.exists() or not target.parent.is_dir():
        return None
    asides = (path for path in target.parent.iterdir() if path.name.startswith(f".{target.name}.old-"))
    return next(asides, None)


def check_replaceable(target: str | Path) -> None:
    """Refuse a target that ``atomic_folder`` would refuse, which is good to know before hours of work."""
    real = Path(os.path.realpath(target))
    if not real.exists():
        return
    if not real.is_dir():
        raise InputError(f"cannot write {target}: a file of that name is already there")
    if real == Path.cwd():
        # Its place would be taken by another folder, and the user would be left sitting in a deleted one.
        raise InputError(f"cannot write {target}: it is the current folder; name another")
    if any(real.iterdir()) and not is_model_json(real / MODEL_JSON):
        raise InputError(f"cannot write {target}: the folder is not empty and holds no Foreword model")


def nearest_existing(target: str | Path) -> Path:
    """Return the nearest path above the target that exists: a folder, unless the target cannot be written."""
    return next(path for path in Path(os.path.realpath(target)).parents if path.exists())


def clear_abandoned(target: Path) -> None:
    """Delete what those left beside ``target`` who were killed while they wrote it.

    An old version that was put aside stays as long as nothing stands in its place. What is not from this machine stays
    too, for on a shared disk nobody here knows whether its owner lives.
    """
    name = re.compile(rf"\.{re.escape(target.name)}\.(new|old)-{_machine()}-([0-9]+)-[0-9a-f]{{8}}")
    for path in list(target.parent.iterdir()):
        found = name.fullmatch(path.name)
        if found is None or is_running(int(found[2])) or (found[1] == "old" and not target.exists()):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def is_running(process: int) -> bool:
    """Whether there is a process of that number; where that cannot be asked, there may be."""
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _machine() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _hidden_sibling(target: Path, role: str) -> Path:
    return target.with_name(f".{target.name}.{role}-{_machine()}-{os.getpid()}-{secrets.token_hex(4)}")


def _put_in_place(new: Path, target: Path) -> None:
    """Let the new folder and the old one change places; where that cannot be done in one step, rename, with the old
    one kept whole beside it until the new one stands.
    """
    if _exchanged(new, target):  # ``new`` is the old one now, for the caller to delete
        _sync_entries(target.parent)
        return
    old = _hidden_sibling(target, "old")
    try:
        if target.exists():
            target.rename(old)
        new.rename(target)
        _sync_entries(target.parent)
    finally:  # also when the user presses Ctrl-C between the two
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
        elif old.exists():
            old.rename(target)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two folders change places at once, so that there is no moment without either; False where there is no second
    one, or the system cannot. Python has no function for it.
    """
    if os.name != "posix":
        return False
    import ctypes

    library: Any = ctypes.CDLL(None)
    if hasattr(library, "renameat2"):  # Linux; -100 is the current folder, 2 RENAME_EXCHANGE
        return bool(library.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) == 0)
    if hasattr(library, "renamex_np"):  # macOS; 2 is RENAME_SWAP
        return bool(library.renamex_np(os.fsencode(one), os.fsencode(other), 2) == 0)
    return False


def _sync_folder(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            _sync_folder(path)
        else:
            _sync(path, os.O_RDWR)
    _sync_entries(folder)


def _sync_entries(folder: Path) -> None:
    """Sync what a folder lists, which is what a rename changes."""
    if os.name != "nt":  # Windows neither can nor needs to
        _sync(folder, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _refusal_explained(target: str | Path, written: Path) -> Iterator[None]:
    """Turn an OSError of the caller's code into one line about the target, if the disk refused to write it.

    Such an error names no file, as a failed write does, or one within what is being written.
    """
    try:
        yield
    except OSError as error:
        of_another_file = error.filename is not None and not Path(str(error.filename)).is_relative_to(written)
        if error.errno not in DISK_REFUSES or of_another_file:
            raise
        raise InputError(f"cannot write {target}: {reason_of(error)}") from error
