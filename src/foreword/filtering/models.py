"""How models are named: a path; a pair, ``en.arpa.bin+en.sp.model``; or one of these for each label of another model.

``{lid_label}.arpa.bin+{lid_label}.sp.model`` stands for as many models as there are files of such names; each row is
scored by the one of its label.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
from pathlib import Path

from foreword.errors import InputError, SettingError

JOINT = "+"
"""Between the two files of a pair."""

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
    """Identify a model without reading all of it: by the checksums of its folders, or the two ends of its files."""
    return [each for file in files_of(path) for each in _fingerprint(file)]


def _fingerprint(path: str) -> list[int | str]:
    location = Path(path)
    try:
        if location.is_dir():
            return [hashlib.sha256((location / "model.json").read_bytes()).hexdigest()]
        with location.open("rb") as file:
            digest = hashlib.sha256(file.read(1 << 20))
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - (1 << 20)))
            digest.update(file.read())
    except OSError as error:
        raise InputError(f"{path}: no model there: {error.strerror}") from error
    return [size, digest.hexdigest()]
