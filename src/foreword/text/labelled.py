"""Labelled texts from files: what a classifier learns from and is measured on.

=============  ======================================================================================
tsv            a row a line, tabs between the columns, nothing quoted: a quotation mark is text
csv            a row a line or, quoted, several; commas, semicolons or tabs between the columns
jsonl          an object a line
parquet        a row an example
fasttext       ``__label__x some text``: labels are the words at the start of a line that begin so
label-first    ``x some text``: the label is the first word
folders        a folder for each label, a file for each text
=============  ======================================================================================

Files are found, decompressed and checked as everywhere (``sources.py``), and streamed. Blank lines are skipped; a
label without a text is an example with an empty text. Whatever else is not a label and a text is an error that names
the line.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePath

from foreword.errors import InputError
from foreword.protocols import Meter
from foreword.text.block import Block
from foreword.text.compression import decompressed, without_suffix
from foreword.text.examples import (
    FASTTEXT,
    Agreed,
    Example,
    Format,
    LabelledBlock,
    LabelledReading,
    Tell,
    Told,
    csv_blocks,
    fasttext_blocks,
    jsonl_blocks,
    label_first_blocks,
    labelled,
    told_fields,
    tsv_blocks,
)
from foreword.text.files import Reader, Source, SourceFile, find_files, names_of, opened
from foreword.text.lines import Lines, whole_lines
from foreword.text.parquet import parquet_labelled
from foreword.text.utf8 import valid_utf8

FORMATS: dict[str, Format] = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
"""What the end of a name says; of other files the first line is looked at."""


GUESSED = LabelledReading()


def read_labelled(
    source: Source, reading: LabelledReading = GUESSED, *, tell: Tell | None = None, meter: Meter | None = None
) -> Iterator[Example]:
    """Texts with their labels one by one, the slow and simple road."""
    blocks = read_labelled_blocks(source, reading, tell=tell, meter=meter)
    return (example for block in blocks for example in map(Example, block.texts.strings(), block.labels))


def read_labelled_blocks(
    source: Source, reading: LabelledReading = GUESSED, *, tell: Tell | None = None, meter: Meter | None = None
) -> Iterator[LabelledBlock]:
    """Texts with their labels, a block at a time.

    Files are found at once, so that a wrong name is told here. ``tell`` hears, a line each, what was guessed; ``meter``
    the bytes read. A source without any example is an error.
    """
    names = names_of(source)
    tell = tell or (lambda line: None)
    if reading.format == "folders" or (reading.format is None and any(map(_holds_folders, names))):
        files = [found for name in names for found in _in_class_folders(name, tell)]
        return _not_empty(_folder_blocks(files, reading, meter), names)
    return _not_empty(_file_blocks(find_files(source), reading, tell, meter), names)


def _not_empty(blocks: Iterator[LabelledBlock], names: list[str]) -> Iterator[LabelledBlock]:
    empty = True
    for block in blocks:
        if block.labels:
            empty = False
            yield block
    if empty:
        named = ", ".join("standard input" if name == "-" else name for name in names[:3])
        raise InputError(f"{named}{f' and {len(names) - 3} more' if len(names) > 3 else ''}: no labelled text in it")


# --- a folder for each label


def _holds_folders(name: str) -> bool:
    folder = Path(name)
    try:
        return folder.is_dir() and any(each.is_dir() and not each.name.startswith(".") for each in folder.iterdir())
    except (OSError, ValueError):  # find_files says what is wrong with it
        return False


def _in_class_folders(name: str, tell: Tell) -> list[tuple[SourceFile, str]]:
    """The files, and the label of each: the name of its folder in the one named."""
    start = name.rstrip("/") + "/"
    split = [(file, file.name.removeprefix(start).partition("/")) for file in find_files(name)]
    found = [(file, label) for file, (label, slash, _) in split if slash and file.name.startswith(start)]
    if not found:
        raise InputError(f"{name}: no folders of texts in it; each label should have one")
    beside = len(split) - len(found)
    left_out = f"; {beside} files beside the folders are left out" if beside else ""
    tell(f"{name}: its {len({label for _, label in found})} folders are the labels, each file a text{left_out}")
    return found


def _folder_blocks(
    files: list[tuple[SourceFile, str]], reading: LabelledReading, meter: Meter | None
) -> Iterator[LabelledBlock]:
    texts: list[bytes] = []
    labels: list[str] = []
    done = held = 0
    total = sum(file.size or 0 for file, _ in files)
    for file, label in files:
        with opened(file) as reader:
            chunks = valid_utf8(decompressed(reader, reading.block_bytes), file.name, reading.errors)
            texts.append(b"".join(chunk.data.tobytes() for chunk in chunks))
            done += reader.taken
        labels.append(label)
        held += len(texts[-1])
        if held >= reading.block_bytes:
            if meter:
                meter("reading", done, total)
            yield LabelledBlock(Block.from_texts(texts), labels)
            texts, labels, held = [], [], 0
    yield LabelledBlock(Block.from_texts(texts), labels)


# --- files


def _file_blocks(
    files: list[SourceFile], reading: LabelledReading, tell: Tell, meter: Meter | None
) -> Iterator[LabelledBlock]:
    sizes = [file.size for file in files]
    total = None if None in sizes else sum(size for size in sizes if size)
    before = 0
    guesses: set[str] = set()
    agreed = Agreed()
    for file in files:

        def once(guess: str, name: str = file.name) -> None:
            """Of files that are alike the first is told of."""
            if guess not in guesses:
                tell(f"{name}: {guess}")
            guesses.add(guess)

        with opened(file) as reader:
            for block in _blocks(reader, Told(file.name, reading, once, agreed)):
                if meter:
                    meter("reading", before + reader.taken, total)
                yield block
            before += reader.taken


def _blocks(reader: Reader, told: Told) -> Iterator[LabelledBlock]:
    reading = told.reading
    format = reading.format or FORMATS.get(PurePath(without_suffix(reader.name)).suffix.lower())
    if format == "parquet":
        return _parquet_blocks(reader, told)
    batches = whole_lines(valid_utf8(decompressed(reader, reading.block_bytes), reader.name, reading.errors))
    opening = _up_to_text(batches)
    if not opening:
        return iter(())
    first = opening[-1].without_blank()[:1]
    line, number = next(iter(first)), int(first.numbers[0])
    if format is None:
        format = _format_of(line, reader.name)
        told.tell(f"read as {format}")
    batches = chain(opening, batches)
    match format:
        case "jsonl":
            return jsonl_blocks(batches, line, number, told)
        case "csv":
            return csv_blocks(batches, told)
        case "tsv":
            return tsv_blocks(batches, told)
        case "fasttext":
            return fasttext_blocks(batches, told)
        case _:
            return label_first_blocks(batches, told)


def _up_to_text(batches: Iterator[Lines]) -> list[Lines]:
    """The first batches, as far as the first line that is not blank; none if there is no such line."""
    read: list[Lines] = []
    for lines in batches:
        read.append(lines)
        if len(lines.without_blank()):
            return read
    return []


def _format_of(line: bytes, name: str) -> Format:
    """What the first line of a file says whose name says nothing."""
    if line.lstrip().startswith(FASTTEXT):
        return "fasttext"
    if line.lstrip().startswith(b"{"):
        return "jsonl"
    if b"\t" in line:
        return "tsv"
    raise InputError(
        f"{name}: where are its labels? Its first line has neither a tab nor {FASTTEXT.decode()}; "
        "--format says what it is, such as csv or label-first"
    )


def _parquet_blocks(reader: Reader, told: Told) -> Iterator[LabelledBlock]:
    reading = told.reading
    row = 1
    for texts, labels in parquet_labelled(
        reader, lambda names: told_fields(names, told), reading.errors, reading.block_bytes
    ):
        yield LabelledBlock(texts, [labelled(label, row + place, told) for place, label in enumerate(labels)])
        row += len(labels)
