"""What TEXT stands for on the command line: files in all their forms, the embedded text, or a data set by its name.

A file always goes before a name: ``ptb`` is the data set only where nothing of that name lies on the disk.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import cast

from foreword.errors import InputError, SettingError
from foreword.protocols import Meter
from foreword.text.block import Block, blocks_of
from foreword.text.datasets import DATASETS, Dataset, dataset, labelled, lookup
from foreword.text.embedded import Split, embedded_text
from foreword.text.sources import Reading, find_files, read_blocks, read_documents

EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True)
class Files:
    """Neighbouring names that the reader of files takes."""

    names: list[str]


def blocks_in(names: Sequence[str], reading: Reading, meter: Meter | None = None) -> Iterator[Block]:
    """Return the documents of the texts, in blocks. A missing text is reported at once."""
    return chain.from_iterable(
        [
            read_blocks(part.names, reading, meter=meter) if isinstance(part, Files) else blocks_of(part)
            for part in _parts(names, meter)
        ]
    )


def documents_in(names: Sequence[str], reading: Reading, meter: Meter | None = None) -> Iterator[str]:
    """Return all documents of the texts, as strings."""
    return chain.from_iterable(
        [
            read_documents(part.names, reading, meter=meter) if isinstance(part, Files) else part
            for part in _parts(names, meter)
        ]
    )


def files_in(names: Sequence[str], meter: Meter | None = None) -> list[str]:
    """Return the texts as paths that other processes can open."""
    parts = _parts(names, meter)
    if any(not isinstance(part, Files) for part in parts) or "-" in names:
        raise SettingError("--ray reads files: standard input, embedded and labelled data sets are none")
    return [name for part in parts if isinstance(part, Files) for name in part.names]


def fingerprint(names: Sequence[str], reading: Reading) -> str | None:
    """Return the names, sizes and dates of the sources, so that stopped work resumes only with the same ones; None
    where they cannot be known.

    How to treat invalid bytes is left out: it changes nothing of what was read before the first of them, and a run
    that such a byte stopped may be resumed with ``--errors replace``.
    """
    if "-" in names:
        return None
    parts = _parts(names, None)
    files = [file for part in parts if isinstance(part, Files) for file in find_files(part.names)]
    if any(file.size is None for file in files):
        return None
    dates = [Path(file.name).stat().st_mtime_ns if Path(file.name).is_file() else None for file in files]
    facts = [[file.name, file.size, date] for file, date in zip(files, dates, strict=True)]
    return json.dumps([list(names), facts, reading.document, reading.field, reading.format, reading.block_bytes])


def whole_dataset(name: str) -> Dataset | None:
    """Return the data set of that name; None if there is none, or a split is named."""
    return dataset(name) if name in DATASETS and not _is_on_disk(name) else None


def is_embedded(name: str) -> bool:
    """Return whether a name means the embedded text and not a file."""
    return name.partition(":")[0] == EMBEDDED and not _is_on_disk(name)


def is_dataset(name: str) -> bool:
    """Return whether a name, with or without a split, is that of a data set."""
    return name.partition(":")[0] in DATASETS and not _is_on_disk(name)


def path_of(name: str, meter: Meter | None = None) -> str:
    """Return the path of a file, or of a split of a data set, which is downloaded if need be."""
    if not is_dataset(name):
        return name
    found, file = lookup(name)
    return str(found.path(file.split, meter=meter))


def _is_on_disk(name: str) -> bool:
    return os.path.exists(name)  # noqa: PTH110 - Path.exists raises where a name is too long to be one


def _parts(names: Sequence[str], meter: Meter | None) -> list[Files | Iterable[str]]:
    """Return the texts in order: adjacent files together, so that they share one progress bar, and lists of texts."""
    parts: list[Files | Iterable[str]] = []
    for found in (_resolve(name, meter) for name in names):
        if not isinstance(found, str):
            parts.append(found)
        elif parts and isinstance(parts[-1], Files):
            parts[-1].names.append(found)
        else:
            parts.append(Files([found]))
    return parts


def _resolve(name: str, meter: Meter | None) -> str | Iterable[str]:
    """Return a name that the file reader takes, or the documents themselves."""
    head, colon, split = name.partition(":")
    if _is_on_disk(name):
        return name
    if head == EMBEDDED:
        return embedded_text(cast(Split, split) if colon else "train")
    if head in DATASETS:
        return _in_dataset(name, meter)
    _check_spelling(head, name)
    return name


def _check_spelling(head: str, name: str) -> None:
    """Refuse a name that is nearly that of a data set and of no file; patterns and addresses are left alone."""
    from difflib import get_close_matches

    meant = get_close_matches(head, [EMBEDDED, *DATASETS], n=1, cutoff=0.7)
    if meant and not set(name) & set("*?[/\\"):
        raise InputError(f"no such file: {name}; did you mean the data set {meant[0]}{name[len(head) :]}?")


def _in_dataset(spec: str, meter: Meter | None) -> str | Iterable[str]:
    found, file = lookup(spec)
    if file.format == "lines":
        return str(found.path(file.split, meter=meter))
    if file.format == "jsonl" or "label" in file.format:
        return (text for _, text in labelled(spec, meter=meter))
    raise SettingError(f"{found.name}:{file.split} is not running text: its format is {file.format}")
