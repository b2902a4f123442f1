"""The default text: English that every Python carries with it.

It is made of the help topics (``pydoc_data``) and the docstrings of the standard library, about two hundred thousand
words, and so needs no network. The sources are parsed and never imported, because modules such as ``antigravity`` act
when imported. One document is one paragraph with its white space collapsed; code, grammar rules and tables are left
out.

Every Python is given the same text: ``shared_paragraphs.crc32`` lists the checksums of the paragraphs that Python 3.11,
3.12 and 3.13 have in common, in the order in which they are read, and others are left out. A later Python that has
changed some of them has a slightly smaller text. ``recipes/embedded_text.py`` writes the list. Which split a document
is in depends on its own text alone, so that it stays there when the rest of the library changes.
"""

from __future__ import annotations

import os
import re
import struct
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias, get_args
from zlib import crc32

from foreword.errors import InputError, SettingError
from foreword.text.download import cache_folder

Split: TypeAlias = Literal["train", "valid", "test"]

RULE = 2
"""Increased with every change to what is collected or how it is cleaned, so that older caches are not used."""

SHARED = Path(__file__).with_name("shared_paragraphs.crc32")
"""CRC-32 of each paragraph that the supported versions of Python share, as little-endian 32-bit integers."""

SKIPPED_FOLDERS = frozenset(
    {"__pycache__", "dist-packages", "idlelib", "lib2to3", "site-packages", "test", "tests", "turtledemo"}
)
"""Not the library itself: installed packages, its tests, and programs that come with it."""

MIN_WORDS = 4
MIN_PLAIN_SHARE = 0.6
"""A paragraph is prose if at least this share of it is plain words; checked by hand, code stays well below."""


def embedded_text(split: Split = "train") -> list[str]:
    """Return the documents of one split: 90 % ``train``, 5 % ``valid``, 5 % ``test``."""
    if split not in get_args(Split):
        raise SettingError(f"no split {split!r} in the embedded text: expected {', '.join(get_args(Split))}")
    return [text for text in _documents() if split_of(text) == split]


def split_of(text: str) -> Split:
    """Return the split that a document is in, by its checksum."""
    match crc32(text.encode()) % 20:
        case 0:
            return "test"
        case 1:
            return "valid"
        case _:
            return "train"


def _documents() -> list[str]:
    """Return all documents in a fixed order, from the cache if there is one."""
    cache = _cache_file()
    texts = _read(cache) if cache else []
    if not texts:
        texts = collect()
        if cache:
            _write(cache, texts)
    return texts


def collect() -> list[str]:
    """Collect the documents that every supported Python has, in an order that is the same for all of them."""
    by_checksum = {crc32(text.encode()): text for text in paragraphs()}
    texts = [by_checksum[checksum] for checksum in shared_checksums() if checksum in by_checksum]
    if not texts:
        raise InputError("this Python carries neither help topics nor library sources: name a text of your own")
    return texts


def shared_checksums() -> list[int]:
    """Return the checksums of the documents that every supported Python has."""
    return [checksum for (checksum,) in struct.iter_unpack("<I", SHARED.read_bytes())]


def paragraphs() -> list[str]:
    """Return every paragraph of prose that this Python carries, without exact repeats."""
    sources = [*_topics(), *_docstrings()]
    cleaned = (clean(paragraph) for source in sources for paragraph in re.split(r"\n\s*\n", source))
    return list(dict.fromkeys(text for text in cleaned if is_prose(text)))


def _topics() -> list[str]:
    try:
        from pydoc_data.topics import topics
    except ImportError:  # some slim installations leave it out
        return []
    return [topics[name] for name in sorted(topics)]


def _docstrings() -> Iterator[str]:
    """Yield every docstring in the library's sources; none where Python comes zipped or compiled only."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old modules hold escapes that the parser frowns on
        for path in _library_sources():
            yield from docstrings_in(path.read_bytes())


def _library_sources() -> Iterator[Path]:
    for folder, subfolders, names in os.walk(sysconfig.get_path("stdlib")):
        subfolders[:] = sorted(
            name for name in subfolders if name not in SKIPPED_FOLDERS
        )  # os.walk continues with these
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(".py"))


def docstrings_in(source: bytes) -> Iterator[str]:
    """Yield the docstrings of a module, its classes and its functions, in the order of the text."""
    import ast

    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    try:
        waiting: list[ast.AST] = [ast.parse(source)]
    except (SyntaxError, ValueError):  # templates and fixtures that only look like Python
        return
    while waiting:
        node = waiting.pop()
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield text
        # Expressions hold no docstrings: leaving them out halves the time.
        inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.stmt, ast.excepthandler))]
        waiting.extend(reversed(inner))


_RULER = re.compile(r"[^\w\s]{3,}")
_DIRECTIVE = re.compile(r"\.\. [\w-]+::\s*")
_BULLET = re.compile(r"^[*-] +")
_BROKEN_WORD = re.compile(r"(?<=[a-z]-)\n\s*(?=[a-z])")
_ROLE = re.compile(r":[\w:+-]+:`([^`]*)`")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,2})(\w(?:[\w’: -]*[\w:])?)\1(?![\w*])")


def clean(paragraph: str) -> str:
    """Return a paragraph as one line, without the markup of reStructuredText and without interactive examples."""
    lines: list[str] = []
    for line in map(str.strip, _BROKEN_WORD.sub("", paragraph).split("\n")):
        if line.startswith((">>>", "...")):
            break  # what follows an example is its output
        if not _RULER.fullmatch(line):
            lines.append(_DIRECTIVE.sub("", line))
    text = _BULLET.sub("", " ".join(" ".join(lines).split()))
    text = _EMPHASIS.sub(r"\2", _ROLE.sub(r"\1", text))
    return text.replace("``", "")


def is_prose(text: str) -> bool:
    """Return whether a text is mostly plain words, and printable (a docstring may hold half a surrogate pair)."""
    words = text.split()
    plain = sum(word.strip(".,;:!?()\"'*`“”‘’").isalpha() for word in words)
    enough = plain >= max(MIN_WORDS, MIN_PLAIN_SHARE * len(words))
    return enough and "::=" not in text and text.isprintable()  # ::= is a rule of the grammar


def _cache_file() -> Path | None:
    """Return the cache's path. Two Pythons of one version may differ, so the library's location is part of the name."""
    folder = cache_folder()
    if folder is None:
        return None
    python = f"{sys.implementation.name}-{'.'.join(map(str, sys.version_info[:3]))}"
    location = crc32(sysconfig.get_path("stdlib").encode())
    return folder / f"embedded-{python}-{location:08x}-rule{RULE}.txt"


def _read(cache: Path) -> list[str]:
    try:
        return cache.read_text(encoding="utf-8").split("\n")[:-1]
    except (OSError, UnicodeDecodeError):
        return []


def _write(cache: Path, texts: list[str]) -> None:
    """Write the documents, one per line, if possible: a read-only home is no error."""
    draft = cache.with_name(f"{cache.name}.{os.getpid()}")
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{text}\n" for text in texts)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(cache)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
