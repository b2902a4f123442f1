"""``foreword tag predict``: words in, tags out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from foreword.cli.options import READING, AsJson, ErrorsOption, ModelFolder, examples

if TYPE_CHECKING:
    from foreword.cli.lines import Batch
    from foreword.evaluate.tagging import KnowingTagger
    from foreword.io.conllu import Block

OutputFormat: TypeAlias = Literal["conllu", "tsv", "text"]
InputFormat: TypeAlias = Literal["conllu", "text"]

EXAMPLES = examples(
    "echo 'Time flies like an arrow .' | foreword tag predict tagger",
    "foreword tag predict tagger sentences.txt --format tsv",
    "foreword tag predict tagger untagged.conllu > tagged.conllu",
    "foreword tag predict tagger sentences.txt.gz --json | jq -c .tags",
)


def predict(
    model: ModelFolder,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Text or CoNLL-U, compressed or not; - is standard input."),
    ] = "-",
    format: Annotated[
        OutputFormat | None,
        typer.Option(
            "--format", help="word_TAG, a word a line, or CoNLL-U.", show_default="CoNLL-U if read, else text"
        ),
    ] = None,
    input_format: Annotated[
        InputFormat | None,
        typer.Option("--input", help="What is read.", show_default="told by its lines", rich_help_panel=READING),
    ] = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
) -> None:
    """Tag every word.

    Text is a sentence a line, its words and marks between white space; each line is answered as soon as it is read,
    a blank one by a blank one. CoNLL-U comes out as it went in, with the column filled that the tagger has learnt.
    With --json every sentence is an object with words and tags.
    """
    if as_json and format is not None:
        raise typer.BadParameter("--json is a format of its own", param_hint="'--format'")

    from foreword.cli.lines import line_batches
    from foreword.cli.printing import flush, write_text
    from foreword.cli.tag.treebank import load_tagger

    batches = line_batches(file, errors)
    tagger = load_tagger(model)
    for written in answers(tagger, batches, input_format, "json" if as_json else format):
        write_text(written)
        flush()


def answers(
    tagger: KnowingTagger, batches: Iterator[Batch], input_format: InputFormat | None, format: str | None
) -> Iterator[str]:
    """What to write for the lines that came in, some at a time."""
    for name, lines in _files(batches):
        kind, lines = (input_format, lines) if input_format else told_format(name, lines)
        if kind == "conllu":
            yield from tagged_conllu(tagger, name, lines, format or "conllu")
        else:
            yield from tagged_text(tagger, lines, format or "text")


def _files(batches: Iterator[Batch]) -> Iterator[tuple[str, Iterator[list[str]]]]:
    """Each file with its lines, some at a time."""
    held = next(batches, None)

    def lines_of(name: str) -> Iterator[list[str]]:
        nonlocal held
        while held is not None and held.name == name:
            yield held.lines
            held = next(batches, None)

    while held is not None:
        yield held.name, lines_of(held.name)


def told_format(name: str, batches: Iterator[list[str]]) -> tuple[InputFormat, Iterator[list[str]]]:
    """CoNLL-U, if the name says so, or the first line that is neither blank nor a comment; and the lines, whole again.

    A stream that begins with comments is held back until that line has come.
    """
    from foreword.io.conllu import COLUMNS
    from foreword.text.compression import without_suffix

    if PurePath(without_suffix(name)).suffix.lower() in (".conllu", ".conll-u"):
        return "conllu", batches
    seen: list[list[str]] = []
    for lines in batches:
        seen.append(lines)
        first = next((line for line in lines if line.strip() and not line.startswith("#")), None)
        if first is not None or not any(line.startswith("#") for line in lines):
            columns = (first or "").split("\t")
            is_conllu = len(columns) == len(COLUMNS) and columns[0][:1].isdecimal()
            return "conllu" if is_conllu else "text", chain(seen, batches)
    return "text", iter(seen)


# Text


def tagged_text(tagger: KnowingTagger, batches: Iterable[list[str]], format: str) -> Iterator[str]:
    for lines in batches:
        sentences = [line.split() for line in lines]
        tags = tagger.predict(sentences)
        yield "".join(written(tagger, *pair, format) for pair in zip(sentences, tags, strict=True))


def written(tagger: KnowingTagger, words: Sequence[str], tags: Sequence[str], format: str) -> str:
    """A sentence. In a file with a word a line an empty one leaves nothing."""
    from foreword.io.conllu import sentence_text

    if format == "json":
        return json.dumps({"words": list(words), "tags": list(tags)}, ensure_ascii=False) + "\n"
    if format == "text":
        return " ".join(f"{word}_{tag}" for word, tag in zip(words, tags, strict=True)) + "\n"
    if not words:
        return ""
    if format == "tsv":
        return "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True)) + "\n"
    return sentence_text(words, tags, tagger.column)


# CoNLL-U


def tagged_conllu(tagger: KnowingTagger, name: str, batches: Iterable[list[str]], format: str) -> Iterator[str]:
    from foreword.io.conllu import BlockReader

    reader = BlockReader(name)
    for lines in batches:
        yield _tagged_blocks(tagger, list(reader.read(lines)), format)
    yield _tagged_blocks(tagger, list(reader.rest()), format)


def _tagged_blocks(tagger: KnowingTagger, blocks: list[Block], format: str) -> str:
    sentences = [block.forms for block in blocks]
    tagged = zip(blocks, sentences, tagger.predict(sentences), strict=True)
    if format == "conllu":
        return "".join(block.filled(tags, tagger.column) for block, _, tags in tagged)
    return "".join(written(tagger, words, tags, format) for block, words, tags in tagged if words)
