"""The texts that are measured on, as plain files: unpacked once a run into a folder that goes away with it."""

from __future__ import annotations

import lzma
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.progress import say
from foreword.text.datasets import lookup

WIKITEXT = "wikitext-2:train"
ENWIKI = "enwiki:all"


def check_texts() -> None:
    """Raise InputError, which says what to do, if a text is not on this machine. Nothing is downloaded."""
    for spec in (WIKITEXT, ENWIKI):
        _stored(spec)


@cache
def plain_file(spec: str) -> Path:
    stored = _stored(spec)
    if stored.suffix != ".xz":
        return stored
    say(f"unpacking {spec}")
    plain = scratch_folder() / f"{spec.replace(':', '.')}.txt"
    with lzma.open(stored) as packed, plain.open("wb") as file:
        shutil.copyfileobj(packed, file, 1 << 20)
    return plain


def megabytes(path: Path) -> float:
    return path.stat().st_size / 1e6


def documents(path: Path) -> Iterator[str]:
    r"""The documents that ``read_blocks`` finds in a file: lines that are not blank, without their ``\n``."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            if not line.isspace():
                yield line.removesuffix("\n").removesuffix("\r")


def scratch_folder() -> Path:
    return Path(_scratch().name)


@cache
def _scratch() -> TemporaryDirectory[str]:
    """Deleted when the interpreter ends, which is when this cache lets go of it."""
    return TemporaryDirectory(prefix="foreword-benchmarks-")


def _stored(spec: str) -> Path:
    dataset, file = lookup(spec)
    return dataset.path(file.split, download=False)
