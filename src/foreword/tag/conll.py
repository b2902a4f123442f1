"""CoNLL's columns: one word per line with its tags behind it, a blank line after each sentence.

    -DOCSTART- -X- O O          a document begins; stored separately, for it is not a word

    EU NNP I-NP I-ORG
    rejects VBZ I-VP O

CoNLL-2000 has word, part of speech and chunk; CoNLL-2003 a name as well, in IOB1. Blanks separate columns, or tabs if
a line has one, and every word has as many as the first.

Not every published file is well formed: CoNLL-2002's Spanish has I- where a name begins. With a scheme such tags are
read as ``conlleval`` and ``seqeval`` read them, with a warning that names the first.

https://www.clips.uantwerpen.be/conll2000/chunking/, https://www.clips.uantwerpen.be/conll2003/ner/
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from foreword.errors import InputError, SettingError
from foreword.protocols import Sentences, Tags
from foreword.storage.atomic import atomic_file
from foreword.tag.conllu import Tagged
from foreword.tag.schemes import SCHEMES, fits, read_as
from foreword.text.sources import read_lines
from foreword.text.unicode import Errors

DOCUMENT = "-DOCSTART-"


class IllFormedTagsWarning(UserWarning):
    """Tags of a file do not follow the scheme, and are read as the spans that the CoNLL tasks score."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in columns.

    rows: the columns of each word, the word itself first. openings: the lines that begin documents right before this
    sentence, in columns; a file that ends with one has a last sentence without words. line: that of the first word.
    """

    rows: list[list[str]]
    openings: list[list[str]] = field(default_factory=list)
    line: int = 0

    @property
    def words(self) -> list[str]:
        """The words."""
        return self.column(0)

    def column(self, index: int) -> list[str]:
        """Return one column of all words."""
        return [row[index] for row in self.rows]


def parse_conll(lines: Iterable[str], name: str | Path) -> Iterator[Sentence]:
    """Yield the sentences of lines, each as soon as it is complete. name: of the file, for messages."""
    now, first = Sentence([]), (0, 0)
    for number, line in enumerate(lines, 1):
        row = line.split("\t") if "\t" in line else line.split()
        if not any(row) or row[0] == DOCUMENT:
            if now.rows:
                yield now
                now = Sentence([])
            if any(row):
                now.openings.append(row)
            continue
        first = first if first[0] else (len(row), number)
        if len(row) != first[0]:
            columns = f"{len(row)} column{'s' * (len(row) > 1)}"
            raise InputError(f"{name}: line {number} has {columns}, not {first[0]} as line {first[1]} has")
        if not now.rows:
            now = Sentence([], now.openings, number)
        now.rows.append(row)
    if now.rows or now.openings:
        yield now


def stream_conll(path: str | Path, errors: Errors = "strict") -> Iterator[Sentence]:
    """Yield the sentences of a file, plain or compressed."""
    return parse_conll(read_lines(path, errors), path)


def read_conll(path: str | Path, column: int = -1, *, scheme: str | None = None, errors: Errors = "strict") -> Tagged:
    """Read the words of a file and one column: 1 the first behind the word, −1 the last.

    scheme: that of the tags returned. Tags of another scheme, and ill-formed ones, are rewritten, with a warning.
    """
    tagged = Tagged([], [])
    lines: list[int] = []
    for sentence in stream_conll(path, errors):
        if sentence.rows:
            _check_column(column, len(sentence.rows[0]), path)
            tagged.sentences.append(sentence.words)
            tagged.tags.append(sentence.column(column))
            lines.append(sentence.line)
    if not tagged.sentences:
        raise InputError(f"{path}: no sentence in it")
    return tagged if scheme is None else Tagged(tagged.sentences, _in_scheme(tagged.tags, lines, scheme, path))


def _in_scheme(tags: Tags, lines: list[int], scheme: str, path: str | Path) -> list[list[str]]:
    """Return the tags in the scheme; warn of those that change. lines: where each sentence begins."""
    found = [_read_sentence(sentence, line, scheme, path) for sentence, line in zip(tags, lines, strict=True)]
    changed = [
        (line + index, before, after)
        for line, old, new in zip(lines, tags, found, strict=True)
        for index, (before, after) in enumerate(zip(old, new, strict=True))
        if before != after
    ]
    if changed:
        line, before, after = changed[0]
        others = [name for name in SCHEMES if name != scheme and all(fits(sentence, name) for sentence in tags)]
        why = f"the tags are those of the scheme {others[0]}" if others else "as conlleval does"
        warnings.warn(
            f"{path}: line {line}: {before} is read as {after} in the scheme {scheme}, {why} "
            f"({len(changed):,} such tags)",
            IllFormedTagsWarning,
            stacklevel=3,
        )
    return found


def _read_sentence(tags: Sequence[str], line: int, scheme: str, path: str | Path) -> list[str]:
    try:
        return read_as(tags, scheme)
    except InputError as error:
        raise InputError(f"{path}: in the sentence at line {line}: {error}") from None


def columns_of(sentences: Sentences, *tags: Tags) -> Iterator[Sentence]:
    """Yield sentences to be written: words, and any number of tags for each of them."""
    for number, columns in enumerate(zip(sentences, *tags, strict=True)):
        if len(set(map(len, columns))) > 1:
            raise InputError(f"sentence {number} has {len(columns[0])} words but {len(columns[-1])} tags")
        yield Sentence([list(row) for row in zip(*columns, strict=True)])


def write_conll(path: str | Path, sentences: Iterable[Sentence], *, separator: str = " ") -> None:
    """Write sentences. separator: a blank, as in the CoNLL tasks, or a tab, if words contain blanks."""
    if separator not in (" ", "\t"):
        raise SettingError(f"separator={separator!r} must be a blank or a tab")
    with atomic_file(path) as new, new.open("w", encoding="utf-8", newline="\n") as file:
        for sentence in sentences:
            file.write(sentence_text(sentence, separator))


def sentence_text(sentence: Sentence, separator: str = " ") -> str:
    """Return one sentence with the blank line that ends it, and a blank line after each line that begins a document."""
    openings = [separator.join(row) + "\n\n" for row in sentence.openings]
    rows = [separator.join(_cells(row, separator)) + "\n" for row in sentence.rows]
    return "".join([*openings, *rows, "\n" if rows else ""])


def _cells(row: Sequence[str], separator: str) -> Sequence[str]:
    for cell in row:
        blank = not cell.strip() if separator == "\t" else cell.split() != [cell]
        if blank or "\t" in cell or "\n" in cell or "\r" in cell:
            expected = "no tabs or line ends" if separator == "\t" else "no blanks"
            raise InputError(f"{cell!r} cannot be written to a CoNLL file: a cell is not empty and has {expected}")
    if row[0] == DOCUMENT:
        raise InputError(f"the word {DOCUMENT} cannot be written: it would begin a document")
    if separator == "\t" and len(row) == 1 and " " in row[0]:
        raise InputError(f"{row[0]!r} cannot be alone on a line: without a tab its blanks would split it")
    return row


def _check_column(column: int, columns: int, path: str | Path) -> None:
    if column == 0 or not -columns < column < columns:
        raise SettingError(
            f"column={column}: {path} has {columns} columns, so expected 1 to {columns - 1} or -1 to {1 - columns}"
        )
