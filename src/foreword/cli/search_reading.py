"""Documents with their names: what a hit is called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foreword.cli.texts import blocks_in, is_dataset, is_embedded, path_of
from foreword.protocols import Meter
from foreword.search.documents import Names
from foreword.text.block import Block
from foreword.text.files import SourceFile, find_files
from foreword.text.labelled import LabelledReading, read_labelled_blocks
from foreword.text.sources import Reading, blocks_of_files, gather_blocks, not_empty


def named_blocks(
    texts: Sequence[str], reading: Reading, id_field: str | None, meter: Meter | None
) -> tuple[Iterator[Block], Names]:
    """Return the documents of the texts, and their names, which are known once the documents are read.

    A text that does not exist is reported at once.
    """
    names = Names()
    if id_field is not None:
        return _with_ids(texts, reading, id_field, names, meter), names
    sources = [source for text in texts for source in _sources(text)]
    return gather_blocks(not_empty(_with_files(sources, reading, names, meter), texts)), names


# --- names from a field


def _with_ids(
    texts: Sequence[str], reading: Reading, id_field: str, names: Names, meter: Meter | None
) -> Iterator[Block]:
    """Yield documents whose names are in a field: read as labelled texts, the name as the label."""
    rows = LabelledReading(
        format=None if reading.format == "text" else reading.format,
        text_column=reading.field,
        label_column=id_field,
        errors=reading.errors,
        block_bytes=reading.block_bytes,
    )
    found = read_labelled_blocks([path_of(text, meter) for text in texts], rows, meter=meter)

    def blocks() -> Iterator[Block]:
        for block in found:
            for name in block.labels:
                names.add(name)
            yield block.texts

    return blocks()


# --- names from files


def _sources(text: str) -> list[SourceFile | str]:
    """Return the files of a text; standard input, data sets and the embedded text by their names."""
    if text == "-" or is_dataset(text) or is_embedded(text):
        return [text]
    return [*find_files(text)]


def _with_files(
    sources: list[SourceFile | str], reading: Reading, names: Names, meter: Meter | None
) -> Iterator[Block]:
    sizes = [source.size for source in sources if isinstance(source, SourceFile)]
    total = None if None in sizes or len(sizes) < len(sources) else sum(size for size in sizes if size)
    before = 0
    for source in sources:

        def tell(phase: str, done: int, of: int | None, before: int = before) -> None:
            if meter:
                meter(phase, before + done, total)

        documents = 0
        for block in _blocks_of(source, reading, tell):
            documents += len(block) - block.open
            yield block
        if isinstance(source, SourceFile):
            before += source.size or 0
        names.add(source.name if isinstance(source, SourceFile) else _called(source), documents)


def _blocks_of(source: SourceFile | str, reading: Reading, meter: Meter) -> Iterator[Block]:
    if isinstance(source, str):
        return blocks_in([source], reading, meter)
    return blocks_of_files([source], reading, meter)


def _called(source: str) -> str:
    return "standard input" if source == "-" else source
