"""Texts by name: where each is, what it holds, and what its bytes must be.

A name with a split, such as ``ptb:train``, stands for one file. It is looked for in ``$FOREWORD_DATA``, then in the
user's cache, plain or as ``.xz``, and at last downloaded from its official address, at a fixed commit so that the bytes
cannot change. Sets whose owners ship another packing, or ask for an agreement first, have to be had by hand: then the
error says from where and where to put them. A file that is found is not read through before use; ``is_intact`` compares
it with its checksum.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from foreword.errors import InputError, SettingError
from foreword.text.download import cache_folder, download
from foreword.text.register import DATASETS, DataFile, Dataset, Format

if TYPE_CHECKING:
    from io import BufferedReader
    from lzma import LZMAFile

    from foreword.protocols import Meter

Place: TypeAlias = Literal["data folder", "cache", "not here"]


@dataclass(frozen=True, slots=True)
class Availability:
    """What of a set is on this machine; ``bytes`` as they lie there, compressed or not."""

    where: Place
    files: int
    bytes: int


def path_of(dataset: Dataset, file: DataFile, *, may_download: bool, meter: Meter | None) -> Path:
    """A file of a set, plain or ``.xz``, downloaded first if need be and allowed."""
    _, found = locate(file)
    if found is not None:
        _refuse_other_size(dataset, file, found)
        return found
    if not may_download:
        raise _missing(dataset, file)
    return _bring(dataset, file, meter)


def dataset(name: str) -> Dataset:
    """A data set by its name, such as ``ptb``; its ``path(split)`` finds the file, and fetches it if need be."""
    if name not in DATASETS:
        raise SettingError(f"no dataset named {name!r}: expected {', '.join(_likeliest_first(name))}")
    return DATASETS[name]


def lookup(spec: str) -> tuple[Dataset, DataFile]:
    """The set and the file that ``name`` or ``name:split`` stands for."""
    name, colon, split = spec.partition(":")
    found = dataset(name)
    return found, found.file(split if colon else None)


def find(spec: str, *, meter: Meter | None = None) -> Path:
    """The file that ``name`` or ``name:split`` stands for, on this machine."""
    found, file = lookup(spec)
    return found.path(file.split, meter=meter)


def availability(dataset: Dataset) -> Availability:
    places = [locate(file) for file in dataset.files]
    here = [(place, path) for place, path in places if path is not None]
    if not here:
        return Availability("not here", 0, 0)
    return Availability(here[0][0], len(here), sum(path.stat().st_size for _, path in here))


def locate(file: DataFile) -> tuple[Place, Path | None]:
    """Where a file is on this machine, without fetching it."""
    for place, root in _roots():
        for name in (file.name, file.name + ".xz"):
            if (root / name).is_file():
                return place, root / name
    return "not here", None


def is_intact(path: Path, file: DataFile) -> bool:
    """Whether a file found at ``path``, plain or ``.xz``, has the recorded checksum."""
    import hashlib
    from lzma import LZMAError

    try:
        with _open_plain(path) as plain:
            return hashlib.file_digest(plain, "sha256").hexdigest() == file.sha256
    except (EOFError, LZMAError):
        return False


def labelled(spec: str, *, meter: Meter | None = None) -> Iterator[tuple[str, str]]:
    """The examples of a classification set, each a label and a text, labels as the file has them."""
    found, file = lookup(spec)
    if not (file.format == "jsonl" or "label" in file.format):
        raise SettingError(f"{found.name}:{file.split} has no labels: its format is {file.format}")
    return _examples(found, file, found.path(file.split, meter=meter))


# Finding


def _roots() -> list[tuple[Place, Path]]:
    """Where files may be, best first. Read from the environment every time, so that nothing is remembered wrongly."""
    roots: list[tuple[Place, Path]] = []
    if named := os.environ.get("FOREWORD_DATA"):
        roots.append(("data folder", Path(named).expanduser()))
    if cache := cache_folder():
        roots.append(("cache", cache / "data"))
    return roots


def _likeliest_first(name: str) -> list[str]:
    from difflib import get_close_matches

    below = [known for known, one in DATASETS.items() if one.files[0].name.startswith(f"{name}/")]
    close = get_close_matches(name.lower(), DATASETS, n=3)
    return list(dict.fromkeys([*below, *close, *sorted(DATASETS)]))


def _bring(dataset: Dataset, file: DataFile, meter: Meter | None) -> Path:
    cache = cache_folder()
    if file.download is None or cache is None:
        raise _missing(dataset, file)
    target = cache / "data" / file.name
    download(file.download, target, sha256=file.sha256, size=file.bytes, meter=meter)
    return target


def _missing(dataset: Dataset, file: DataFile) -> InputError:
    """How to get a file that is not here."""
    roots = _roots()
    put = roots[0][1] / file.name if roots else f"$FOREWORD_DATA/{file.name}"
    source = file.download or f"{dataset.address} (by hand: {dataset.by_hand})"
    return InputError(f"{dataset.name}:{file.split} is not here: get it from {source} and put it at {put}")


def _refuse_other_size(dataset: Dataset, file: DataFile, path: Path) -> None:
    """A cut or strange copy would give wrong numbers under a known name. Sets packed by hand may differ."""
    size = path.stat().st_size
    if file.download and path.suffix != ".xz" and size != file.bytes:
        raise InputError(
            f"{path} has {size} bytes, expected {file.bytes} for {dataset.name}:{file.split}: move it away"
        )


# Reading


def _open_plain(path: Path) -> BufferedReader | LZMAFile:
    if path.suffix == ".xz":
        from lzma import LZMAFile

        return LZMAFile(path)
    return path.open("rb")


def _lines(path: Path, encoding: str) -> Iterator[str]:
    """The lines of a file, ended by a line feed and nothing else: texts may hold other separators."""
    from lzma import LZMAError

    try:
        with _open_plain(path) as plain:
            for line in plain:
                yield line.decode(encoding).rstrip("\r\n")
    except (EOFError, LZMAError) as error:
        raise InputError(f"{path}: expected a whole .xz file: {error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected text in {encoding}: {error}") from error


def _examples(dataset: Dataset, file: DataFile, path: Path) -> Iterator[tuple[str, str]]:
    lines = enumerate(_lines(path, dataset.encoding), start=1)
    if file.format == "text-tab-label":
        next(lines, None)
    for number, line in lines:
        if not line:
            continue
        try:
            yield _example(dataset, file.format, line)
        except (ValueError, LookupError, TypeError) as error:
            raise InputError(f"{path}, line {number}: expected {file.format}: {error}") from error


def _example(dataset: Dataset, format: Format, line: str) -> tuple[str, str]:
    match format:
        case "jsonl":
            import json

            record = json.loads(line)
            return str(record[dataset.label_field]), str(record[dataset.text_field])
        case "label-tab-text":
            label, text = line.split("\t", 1)
        case "label-space-text":
            label, text = line.split(" ", 1)
        case "text-tab-label":
            text, label = line.rsplit("\t", 1)
        case "label-comma-text":
            import csv

            label, *fields = next(csv.reader([line]))
            text = " ".join(fields)
        case _:
            raise ValueError("no labels")
    return label, text.strip()
