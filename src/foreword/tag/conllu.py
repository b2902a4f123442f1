"""CoNLL-U: a word a line with its tags, ten columns between tabs, a blank line after each sentence.

    # comments
    1    The     the     DET     DT      …
    2-3  don't   _       _       _       …      a range of words written as one: skipped, for its words follow
    8.1  went    go      VERB    VBD     …      a word that nobody wrote: skipped

https://universaldependencies.org/format.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

from foreword.errors import InputError, SettingError
from foreword.protocols import Sentences, Tags
from foreword.storage.atomic import atomic_file
from foreword.text.sources import read_lines

Column: TypeAlias = Literal["id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"]

COLUMNS: tuple[str, ...] = get_args(Column)
FORM = COLUMNS.index("form")
EMPTY = "_"


TAG_COLUMNS = COLUMNS[FORM + 1 :]


class Tagged(NamedTuple):
    """Sentences of words, and one tag for each."""

    sentences: list[list[str]]
    tags: list[list[str]]


@dataclass(frozen=True, slots=True)
class Block:
    """Lines up to a blank one, as they stand in the file, and which of them are words.

    words: places of words among the lines; none where there are only comments or the blank line.
    """

    lines: list[str]
    words: list[int]

    def column(self, place: int) -> list[str]:
        return [self.lines[word].split("\t")[place] for word in self.words]

    @property
    def forms(self) -> list[str]:
        return self.column(FORM)

    def filled(self, tags: Sequence[str], column: str) -> str:
        """The lines with a tag for each word in that column, everything else as it was."""
        place = column_place(column)
        lines = list(self.lines)
        for word, tag in zip(self.words, tags, strict=True):
            row = lines[word].split("\t")
            row[place] = _cell(tag)
            lines[word] = "\t".join(row)
        return "".join(f"{line}\n" for line in lines)


class BlockReader:
    """Blocks out of lines, as soon as their last line has come. name: of the file, for messages."""

    def __init__(self, name: str | Path) -> None:
        self._name = name
        self._number = 0
        self._lines: list[str] = []
        self._words: list[int] = []

    def read(self, lines: Iterable[str]) -> Iterator[Block]:
        """The blocks that end among these lines."""
        for line in lines:
            self._number += 1
            if self._is_word(line):
                self._words.append(len(self._lines))
            self._lines.append(line)
            if not line.strip():
                yield self._taken()

    def rest(self) -> Iterator[Block]:
        """What came behind the last blank line, at the end of the file."""
        if self._lines:
            yield self._taken()

    def _taken(self) -> Block:
        block = Block(self._lines, self._words)
        self._lines, self._words = [], []
        return block

    def _is_word(self, line: str) -> bool:
        if line.startswith("#") or not line.strip():
            return False
        row = line.split("\t")
        place = f"{self._name}: line {self._number}"
        if len(row) != len(COLUMNS):
            raise InputError(f"{place} has {len(row)} columns, not {len(COLUMNS)}: not CoNLL-U")
        if not row[0].replace("-", ".", 1).replace(".", "", 1).isdecimal():
            raise InputError(f"{place} begins with {row[0]!r}, not with a number: not CoNLL-U")
        return row[0].isdecimal()


def read_conllu(path: str | Path, column: Column = "upos") -> Tagged:
    """The words of a file, plain or compressed, and what one column says of each."""
    place = column_place(column)
    reader = BlockReader(path)
    tagged = Tagged([], [])
    for block in chain(reader.read(read_lines(path)), reader.rest()):
        if block.words:
            tagged.sentences.append(block.forms)
            tagged.tags.append(block.column(place))
    if not tagged.sentences:
        raise InputError(f"{path}: no sentence in it")
    return tagged


def write_conllu(path: str | Path, sentences: Sentences, tags: Tags, column: Column = "upos") -> None:
    """Words and one column; the others are left empty, as ``_`` says."""
    column_place(column)
    if len(sentences) != len(tags) or any(map(_differ, sentences, tags)):
        raise SettingError("expected a tag for each word of each sentence")
    with atomic_file(path) as new, new.open("w", encoding="utf-8", newline="\n") as file:
        for words, tags_of_words in zip(sentences, tags, strict=True):
            file.write(sentence_text(words, tags_of_words, column))


def sentence_text(words: Sequence[str], tags: Sequence[str], column: str = "upos") -> str:
    """One sentence as CoNLL-U, with the blank line that ends it."""
    place = column_place(column)
    lines = []
    for number, (word, tag) in enumerate(zip(words, tags, strict=True), 1):
        row = [EMPTY] * len(COLUMNS)
        row[0], row[FORM], row[place] = str(number), word, tag
        lines.append("\t".join(map(_cell, row)) + "\n")
    return "".join([*lines, "\n"])


def column_place(column: str) -> int:
    if column not in TAG_COLUMNS:
        raise SettingError(f"column={column!r} must be one of {', '.join(TAG_COLUMNS)}")
    return COLUMNS.index(column)


def _cell(text: str) -> str:
    if not text or "\t" in text or "\n" in text or "\r" in text:
        raise SettingError(f"{text!r} cannot stand in a CoNLL-U file: a cell is not empty and has no tabs or line ends")
    return text


def _differ(words: Sequence[str], tags: Sequence[str]) -> bool:
    return len(words) != len(tags)
