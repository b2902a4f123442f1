"""CoNLL-U: one word per line with its tags, ten columns between tabs, a blank line after each sentence.

    # comments
    1    The     the     DET     DT      …
    2-3  don't   _       _       _       …      a range of words written as one: skipped, for its words follow
    8.1  went    go      VERB    VBD     …      an empty node, not in the text: skipped

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
from foreword.text.unicode import Errors

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
class SentenceBlock:
    """The lines of a file up to a blank one, unchanged, and which of them are words.

    words: indices of words among the lines; none where there are only comments or the blank line.
    """

    lines: list[str]
    words: list[int]

    def column(self, index: int) -> list[str]:
        """Return one column of all words."""
        return [self.lines[word].split("\t")[index] for word in self.words]

    @property
    def forms(self) -> list[str]:
        """The words."""
        return self.column(FORM)

    def filled(self, tags: Sequence[str], column: str) -> str:
        """Return the lines with a tag for each word in that column, everything else unchanged."""
        index = column_index(column)
        lines = list(self.lines)
        for word, tag in zip(self.words, tags, strict=True):
            row = lines[word].split("\t")
            row[index] = _cell(tag)
            lines[word] = "\t".join(row)
        return "".join(f"{line}\n" for line in lines)


class BlockReader:
    """A parser of lines that yields blocks as soon as they are complete. name: of the file, for messages."""

    def __init__(self, name: str | Path) -> None:
        self._name = name
        self._number = 0
        self._lines: list[str] = []
        self._words: list[int] = []

    def read(self, lines: Iterable[str]) -> Iterator[SentenceBlock]:
        """Yield the blocks that end among these lines."""
        for line in lines:
            self._number += 1
            if self._is_word(line):
                self._words.append(len(self._lines))
            self._lines.append(line)
            if not line.strip():
                yield self._finished_block()

    def rest(self) -> Iterator[SentenceBlock]:
        """Yield what came after the last blank line, at the end of the file."""
        if self._lines:
            yield self._finished_block()

    def _finished_block(self) -> SentenceBlock:
        block = SentenceBlock(self._lines, self._words)
        self._lines, self._words = [], []
        return block

    def _is_word(self, line: str) -> bool:
        if line.startswith("#") or not line.strip():
            return False
        row = line.split("\t")
        where = f"{self._name}: line {self._number}"
        if len(row) != len(COLUMNS):
            blanks = len(row) == 1 and len(line.split()) > 1
            other = (
                "; where blanks separate the columns, name that of the tags by its number, --column 1 (column=1 in "
                "Python), or for spans the scheme, --scheme bio"
            )
            columns = f"{len(row)} column{'s' * (len(row) > 1)}"
            raise InputError(f"{where} has {columns}, not {len(COLUMNS)}: not CoNLL-U{other if blanks else ''}")
        if not row[0].replace("-", ".", 1).replace(".", "", 1).isdecimal():
            raise InputError(f"{where} begins with {row[0]!r}, not with a number: not CoNLL-U")
        return row[0].isdecimal()


def read_conllu(path: str | Path, column: Column = "upos", *, errors: Errors = "strict") -> Tagged:
    """Read the words of a file, plain or compressed, and one column."""
    index = column_index(column)
    reader = BlockReader(path)
    tagged = Tagged([], [])
    for block in chain(reader.read(read_lines(path, errors)), reader.rest()):
        if block.words:
            tagged.sentences.append(block.forms)
            tagged.tags.append(block.column(index))
    if not tagged.sentences:
        raise InputError(f"{path}: no sentence in it")
    return tagged


def write_conllu(path: str | Path, sentences: Sentences, tags: Tags, column: Column = "upos") -> None:
    """Write words and one column; the others are empty, written as ``_``."""
    column_index(column)
    if len(sentences) != len(tags) or any(map(_differ, sentences, tags)):
        raise SettingError("expected a tag for each word of each sentence")
    with atomic_file(path) as new, new.open("w", encoding="utf-8", newline="\n") as file:
        for words, tags_of_words in zip(sentences, tags, strict=True):
            file.write(sentence_text(words, tags_of_words, column))


def sentence_text(words: Sequence[str], tags: Sequence[str], column: str = "upos") -> str:
    """Return one sentence as CoNLL-U, with the blank line that ends it."""
    index = column_index(column)
    lines = []
    for number, (word, tag) in enumerate(zip(words, tags, strict=True), 1):
        row = [EMPTY] * len(COLUMNS)
        row[0], row[FORM], row[index] = str(number), word, tag
        lines.append("\t".join(map(_cell, row)) + "\n")
    return "".join([*lines, "\n"])


def column_index(column: str) -> int:
    """Return the index of a column by its name."""
    if column not in TAG_COLUMNS:
        raise SettingError(f"column={column!r} must be one of {', '.join(TAG_COLUMNS)}")
    return COLUMNS.index(column)


def _cell(text: str) -> str:
    if not text or "\t" in text or "\n" in text or "\r" in text:
        raise SettingError(
            f"{text!r} cannot be written to a CoNLL-U file: a cell is not empty and has no tabs or line ends"
        )
    return text


def _differ(words: Sequence[str], tags: Sequence[str]) -> bool:
    return len(words) != len(tags)
