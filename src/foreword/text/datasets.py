"""Datasets by name: where each is, what it holds, and what its bytes must be.

A name with a split, such as ``ptb:train``, stands for one file. The file is looked up in ``$FOREWORD_DATA``, then in
the user's cache, plain or as ``.xz``, and otherwise downloaded from its official address, pinned to a commit so that
the bytes cannot change. Datasets whose owners ship another packing, or ask for an agreement first, must be fetched by
hand; the error then says from where, and where to put the file. A file that is found is not read through before use;
``is_intact`` compares it with its checksum.

The datasets themselves are listed in ``datasets.json`` in this folder.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from foreword.errors import InputError, SettingError
from foreword.text.download import cache_folder, download

if TYPE_CHECKING:
    from io import BufferedReader
    from lzma import LZMAFile

    from foreword.protocols import Meter

Place: TypeAlias = Literal["data folder", "cache", "not here"]

Task: TypeAlias = Literal["lm", "classification", "tagging", "translation", "analogy", "similarity", "bias", "speech"]

Format: TypeAlias = Literal[
    "lines",  # one sentence, paragraph or article per line; the languages of a translation set match line by line
    "jsonl",  # one object per line with a label and a text
    "label-tab-text",
    "label-space-text",
    "label-comma-text",  # quoted as in CSV; the text may have several fields
    "text-tab-label",  # under a line with the names of the columns
    "conll",  # one word per line with its tags, a blank line after each sentence
    "conllu",
    "analogies",  # four words per line below headings that start with a colon
    "word-pairs",  # two words and a number per line
    "json",
    "csv",
    "zip",
    "recordings",  # a tar archive of WAV files whose names begin with what is said
]


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a dataset.

    name: its path below the data folder; ``name + ".xz"`` is accepted too.
    bytes, sha256: of the plain file.
    download: an address that gives exactly these bytes; None if there is none.
    """

    split: str
    name: str
    bytes: int
    sha256: str
    download: str | None
    format: Format


@dataclass(frozen=True, slots=True)
class Dataset:
    """A named set of files.

    address: the page that describes it.
    files: the first is the default.
    by_hand: for files without ``download``, how to make them from what the address offers.
    text_field, label_field: where a ``jsonl`` file has its text and its label.
    """

    name: str
    title: str
    task: Task
    licence: str
    citation: str
    address: str
    files: tuple[DataFile, ...]
    by_hand: str = ""
    encoding: str = "utf-8"
    text_field: str = "text"
    label_field: str = "label"

    @property
    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits, the default first."""
        return tuple(file.split for file in self.files)

    @property
    def format(self) -> Format:
        """Return the format of the default split; the others seldom differ."""
        return self.files[0].format

    def file(self, split: str | None = None) -> DataFile:
        """Return the file of a split; None is the default split."""
        for file in self.files:
            if split is None or file.split == split:
                return file
        raise SettingError(f"no split {split!r} in {self.name}: expected {', '.join(self.splits)}")

    def path(self, split: str | None = None, *, download: bool = True, meter: Meter | None = None) -> Path:
        """Return the file of a split, plain or ``.xz``; download it first if it is missing and ``download`` is set."""
        file = self.file(split)
        _, found = locate(file)
        if found is not None:
            _check_size(self, file, found)
            return found
        if not download:
            raise _missing(self, file)
        return _downloaded(self, file, meter)


@dataclass(frozen=True, slots=True)
class Availability:
    """How much of a dataset is on this machine. bytes: as stored, compressed or not."""

    where: Place
    files: int
    bytes: int


def _load_register() -> dict[str, Dataset]:
    """Read ``datasets.json``: every upstream folder is pinned to a commit whose files have the sums listed there."""
    text = files("foreword.text").joinpath("datasets.json").read_text("utf-8")
    return {name: parse_dataset(name, entry) for name, entry in json.loads(text).items()}


def parse_dataset(name: str, entry: dict[str, Any]) -> Dataset:
    """Build one dataset from its entry in ``datasets.json``; raise ValueError if the entry is malformed."""
    entry = dict(entry)
    entry.pop("note", None)
    found = tuple(file for group in entry.pop("files") for file in _parse_files(name, group))
    try:
        dataset = Dataset(name=name, files=found, **entry)
    except TypeError as error:
        raise ValueError(f"{name}: {error}") from error
    if dataset.task not in get_args(Task):
        raise ValueError(f"{name}: no task {dataset.task!r}: expected one of {', '.join(get_args(Task))}")
    if not found or len(set(dataset.splits)) < len(found):
        raise ValueError(f"{name}: expected at least one file, and different names for the splits")
    if not dataset.by_hand and any(file.download is None for file in found):
        raise ValueError(f"{name}: files without a download need by_hand")
    return dataset


def _parse_files(name: str, group: dict[str, Any]) -> Iterator[DataFile]:
    folder, upstream, format = group["folder"], group["upstream"], group["format"]
    if format not in get_args(Format):
        raise ValueError(f"{name}: no format {format!r}: expected one of {', '.join(get_args(Format))}")
    for split, (file, size, sha256) in group["splits"].items():
        if not (isinstance(size, int) and size > 0 and re.fullmatch("[0-9a-f]{64}", sha256)):
            raise ValueError(f"{name}: expected a size and a sha256 for {file}")
        yield DataFile(split, f"{folder}/{file}", size, sha256, upstream and upstream + file, format)


DATASETS = _load_register()
"""Every dataset by its name."""


def dataset(name: str) -> Dataset:
    """Return a dataset by its name, such as ``ptb``; its ``path(split)`` finds the file, or downloads it."""
    if name not in DATASETS:
        raise SettingError(f"no dataset named {name!r}: expected {', '.join(_closest_names(name))}")
    return DATASETS[name]


def lookup(spec: str) -> tuple[Dataset, DataFile]:
    """Return the dataset and the file that ``name`` or ``name:split`` stands for."""
    name, colon, split = spec.partition(":")
    found = dataset(name)
    return found, found.file(split if colon else None)


def find(spec: str, *, meter: Meter | None = None) -> Path:
    """Return the path of the file that ``name`` or ``name:split`` stands for; download it if it is missing."""
    found, file = lookup(spec)
    return found.path(file.split, meter=meter)


def availability(dataset: Dataset) -> Availability:
    """Return how much of a dataset is on this machine."""
    places = [locate(file) for file in dataset.files]
    here = [(place, path) for place, path in places if path is not None]
    if not here:
        return Availability("not here", 0, 0)
    return Availability(here[0][0], len(here), sum(path.stat().st_size for _, path in here))


def locate(file: DataFile) -> tuple[Place, Path | None]:
    """Find a file on this machine, without downloading it."""
    for place, root in _roots():
        for name in (file.name, file.name + ".xz"):
            if (root / name).is_file():
                return place, root / name
    return "not here", None


def is_intact(path: Path, file: DataFile) -> bool:
    """Return whether a file at ``path``, plain or ``.xz``, has the recorded checksum."""
    import hashlib
    from lzma import LZMAError

    try:
        with _open_plain(path) as plain:
            return hashlib.file_digest(plain, "sha256").hexdigest() == file.sha256
    except (EOFError, LZMAError):
        return False


def labelled(spec: str, *, meter: Meter | None = None) -> Iterator[tuple[str, str]]:
    """Yield the examples of a classification set, each a label and a text, labels as the file has them."""
    found, file = lookup(spec)
    if not (file.format == "jsonl" or "label" in file.format):
        raise SettingError(f"{found.name}:{file.split} has no labels: its format is {file.format}")
    return _examples(found, file, found.path(file.split, meter=meter))


# Finding


def _roots() -> list[tuple[Place, Path]]:
    """Return the folders that are searched, in order. The environment is read every time, as it may change."""
    roots: list[tuple[Place, Path]] = []
    if named := os.environ.get("FOREWORD_DATA"):
        roots.append(("data folder", Path(named).expanduser()))
    if cache := cache_folder():
        roots.append(("cache", cache / "data"))
    return roots


def _closest_names(name: str) -> list[str]:
    from difflib import get_close_matches

    below = [known for known, one in DATASETS.items() if one.files[0].name.startswith(f"{name}/")]
    close = get_close_matches(name.lower(), DATASETS, n=3)
    return list(dict.fromkeys([*below, *close, *sorted(DATASETS)]))


def _downloaded(dataset: Dataset, file: DataFile, meter: Meter | None) -> Path:
    cache = cache_folder()
    if file.download is None or cache is None:
        raise _missing(dataset, file)
    target = cache / "data" / file.name
    download(file.download, target, sha256=file.sha256, size=file.bytes, meter=meter)
    return target


def _missing(dataset: Dataset, file: DataFile) -> InputError:
    """Return the error that says how to get a file that is not here."""
    roots = _roots()
    put = roots[0][1] / file.name if roots else f"$FOREWORD_DATA/{file.name}"
    source = file.download or f"{dataset.address} (by hand: {dataset.by_hand})"
    return InputError(f"{dataset.name}:{file.split} is not here: get it from {source} and put it at {put}")


def _check_size(dataset: Dataset, file: DataFile, path: Path) -> None:
    """Refuse a truncated or altered copy, which would give wrong numbers. Sets packed by hand may differ."""
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
    """Yield the lines of a file, which end in a line feed and nothing else: texts may hold other separators."""
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
            from foreword.text.strict_json import parse_json

            record = parse_json(line.encode())
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
