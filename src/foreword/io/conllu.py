"""CoNLL-U: a word a line with its tags, ten columns between tabs, a blank line after each sentence.

    # comments
    1    The     the     DET     DT      …
    2-3  don't   _       _       _       …      a range of words written as one: skipped, for its words follow
    8.1  went    go      VERB    VBD     …      a word that nobody wrote: skipped

https://universaldependencies.org/format.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

from foreword.errors import InputError, SettingError
from foreword.io.atomic import atomic_file
from foreword.protocols import Sentences, Tags
from foreword.text.sources import read_lines

Column: TypeAlias = Literal["id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"]

COLUMNS: tuple[str, ...] = get_args(Column)
FORM = COLUMNS.index("form")
EMPTY = "_"


class Tagged(NamedTuple):
    """Sentences of words, and one tag for each."""

    sentences: list[list[str]]
    tags: list[list[str]]


def read_conllu(path: str | Path, column: Column = "upos") -> Tagged:
    """The words of a file, plain or compressed, and what one column says of each."""
    place = _place(column)
    tagged = Tagged([], [])
    for rows in _sentences(path):
        tagged.sentences.append([row[FORM] for row in rows])
        tagged.tags.append([row[place] for row in rows])
    if not tagged.sentences:
        raise InputError(f"{path}: no sentence in it")
    return tagged


def write_conllu(path: str | Path, sentences: Sentences, tags: Tags, column: Column = "upos") -> None:
    """Words and one column; the others are left empty, as ``_`` says."""
    place = _place(column)
    if len(sentences) != len(tags) or any(map(_differ, sentences, tags)):
        raise SettingError("expected a tag for each word of each sentence")
    with atomic_file(path) as new, new.open("w", encoding="utf-8", newline="\n") as file:
        for words, tags_of_words in zip(sentences, tags, strict=True):
            for number, (word, tag) in enumerate(zip(words, tags_of_words, strict=True), 1):
                row = [EMPTY] * len(COLUMNS)
                row[0], row[FORM], row[place] = str(number), word, tag
                file.write("\t".join(map(_cell, row)) + "\n")
            file.write("\n")


def _place(column: str) -> int:
    if column not in COLUMNS[2:]:
        raise SettingError(f"column={column!r} must be one of {', '.join(COLUMNS[2:])}")
    return COLUMNS.index(column)


def _sentences(path: str | Path) -> Iterator[list[list[str]]]:
    rows: list[list[str]] = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            if rows:
                yield rows
            rows = []
        elif not line.startswith("#"):
            row = line.split("\t")
            if len(row) != len(COLUMNS):
                raise InputError(f"{path}: line {number} has {len(row)} columns, not {len(COLUMNS)}: not CoNLL-U")
            if row[0].isdecimal():
                rows.append(row)
            elif not row[0].replace("-", ".", 1).replace(".", "", 1).isdecimal():
                raise InputError(f"{path}: line {number} begins with {row[0]!r}, not with a number: not CoNLL-U")
    if rows:
        yield rows


def _cell(text: str) -> str:
    if not text or "\t" in text or "\n" in text or "\r" in text:
        raise SettingError(f"{text!r} cannot stand in a CoNLL-U file: a cell is not empty and has no tabs or line ends")
    return text


def _differ(words: Sequence[str], tags: Sequence[str]) -> bool:
    return len(words) != len(tags)
