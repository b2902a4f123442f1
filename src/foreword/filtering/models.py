"""How models are named: a path; a pair, ``en.arpa.bin+en.sp.model``; or one of these for each label of another model.

``{lid_label}.arpa.bin+{lid_label}.sp.model`` stands for as many models as there are files of such names; each row is
scored by the one of its label.
"""

from __future__ import annotations

import glob
import hashlib
import re
from functools import lru_cache
from pathlib import Path

from foreword.errors import InputError, SettingError

JOINT = "+"
"""Between the two files of a pair."""

WHOLE, END, SAMPLE, SAMPLES = 1 << 30, 1 << 20, 1 << 16, 1024
"""Bytes of a file that is checksummed whole, at each end of a larger one, in a block between, and how many blocks."""

_COLUMN = re.compile(r"\{(\w+)\}")


def is_pair(path: str) -> bool:
    """Return whether a path names a KenLM file and its sentencepiece file."""
    return JOINT in path and not Path(path).exists()


def pair_of(path: str) -> tuple[str, str]:
    """Return the two files of a pair."""
    first, _, second = path.partition(JOINT)
    return first, second


def column_in(path: str) -> str | None:
    """Return the column whose labels complete a path, ``lid_label``; None for a path that needs none."""
    if Path(path).exists():
        return None
    found = set(_COLUMN.findall(path))
    if len(found) > 1:
        raise SettingError(f"{path}: expected one column in braces, not {' and '.join(sorted(found))}")
    return found.pop() if found else None


def path_for(path: str, label: str) -> str:
    """Return the path of the model for one label."""
    return _COLUMN.sub(lambda _: label, path)


def files_of(path: str) -> list[str]:
    """Return the files or folders of a model, those for all labels included; an InputError if there are none."""
    parts = pair_of(path) if is_pair(path) else (path,)
    if column_in(path) is None:
        return list(parts)
    found = [name for part in parts for name in sorted(glob.glob(_COLUMN.sub("*", part)))]  # noqa: PTH207
    if not found:
        raise InputError(f"{path}: no file is named so, whatever the label")
    return found


def has_model(path: str) -> bool:
    """Return whether the files of a model exist."""
    return all(Path(part).exists() for part in (pair_of(path) if is_pair(path) else (path,)))


def fingerprint(path: str) -> list[int | str]:
    """Identify a model by its content: by the checksums of its folders, or of its files.

    Files up to ``WHOLE`` bytes are read whole. Of larger ones, a megabyte at both ends and ``SAMPLES`` blocks between
    them are read: a file that was rewritten is noticed, a few bytes changed in place need not be.
    """
    return [each for file in files_of(path) for each in _fingerprint(file)]


def _fingerprint(path: str) -> list[int | str]:
    location = Path(path)
    try:
        if location.is_dir():
            return [hashlib.sha256((location / "model.json").read_bytes()).hexdigest()]
        state = location.stat()
        return [state.st_size, _digest(path, state.st_size, state.st_mtime_ns, state.st_ctime_ns)]
    except OSError as error:
        raise InputError(f"{path}: no model there: {error.strerror}") from error


@lru_cache(maxsize=64)
def _digest(path: str, size: int, modified: int, changed: int) -> str:
    """Return the checksum of a file; a run asks for it more than once."""
    with Path(path).open("rb") as file:
        digest = hashlib.sha256(file.read(END))
        middle = size - 2 * END
        if 0 < middle <= WHOLE:
            while (left := size - END - file.tell()) > 0:
                digest.update(file.read(min(END, left)))
        elif middle > 0:
            for number in range(SAMPLES):
                file.seek(END + number * middle // SAMPLES)
                digest.update(file.read(SAMPLE))
        file.seek(max(0, size - END))
        digest.update(file.read())
    return digest.hexdigest()
