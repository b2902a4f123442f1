"""``foreword tag predict``: words in, tags out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from foreword.cli.options import READING, ErrorsOption, ModelFolder, OutputOptions, examples
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.cli.lines import FileLines
    from foreword.protocols import TreebankTagger
    from foreword.tag.conll import Sentence
    from foreword.tag.conllu import SentenceBlock

OutputFormat: TypeAlias = Literal["conllu", "conll", "tsv", "text"]
InputFormat: TypeAlias = Literal["conllu", "conll", "text"]
RawOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--raw", help="Split running text into sentences and words, as the treebank does.", rich_help_panel=READING
    ),
]

PREDICT_EXAMPLES = examples(
    "echo 'Time flies like an arrow .' | foreword tag predict tagger",
    "foreword tag predict tagger book.txt --raw > tagged.txt",
    "foreword tag predict tagger sentences.txt --format tsv",
    "foreword tag predict tagger untagged.conllu > tagged.conllu",
    "foreword tag predict names eng.testb --input conll > tagged.conll",
    "foreword tag predict tagger sentences.txt.gz --json | jq -c .tags",
)


def predict(
    model: ModelFolder,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Text, CoNLL-U or CoNLL columns, compressed or not; - is standard input."),
    ] = "-",
    *,
    format: Annotated[
        OutputFormat | None,
        typer.Option("--format", help="Output: word_TAG, one word per line, or a treebank.", show_default="as read"),
    ] = None,
    input_format: Annotated[
        InputFormat | None,
        typer.Option("--input", help="Input format.", show_default="by its lines", rich_help_panel=READING),
    ] = None,
    raw: RawOption = False,
    errors: ErrorsOption = "strict",
    output: OutputOptions,
) -> None:
    """Tag every word.

    Text has one sentence per line, its words and punctuation marks separated by white space; --raw splits running text,
    and then a line gives a line for each of its sentences. Each line is answered as soon as it is read; a blank line
    gives a blank line. CoNLL-U is printed as it was read, with the column filled that
    the tagger has learnt. So is CoNLL, which is recognised by --input or a file name in .conll; if it has only words, a
    second column is added. With --json every sentence is an object with words and tags.
    """
    if output.as_json and format is not None:
        raise typer.BadParameter("--json is a format of its own", param_hint="'--format'")
    if raw and input_format not in (None, "text"):
        raise typer.BadParameter(f"{input_format} has its words split already", param_hint="'--raw'")

    from foreword.cli.lines import line_batches
    from foreword.cli.models import load_able
    from foreword.cli.printing import flush, write_text

    batches = line_batches(file, errors)
    tagger: TreebankTagger = load_able(model, "tag")
    format_of_output = "json" if output.as_json else format
    if raw:
        found = tagged_running_text(tagger, (batch.lines for batch in batches), format_of_output or "text")
    else:
        found = answers(tagger, batches, input_format, format_of_output)
    for written in found:
        write_text(written)
        flush()


def answers(
    tagger: TreebankTagger, batches: Iterator[FileLines], input_format: InputFormat | None, format: str | None
) -> Iterator[str]:
    """Yield the output for the input lines, batch by batch."""
    for name, lines in _files(batches):
        kind, lines = (input_format, lines) if input_format else detected_format(name, lines)
        if kind == "conllu":
            yield from tagged_conllu(tagger, name, lines, format or "conllu")
        elif kind == "conll":
            yield from tagged_conll(tagger, name, lines, format or "conll")
        else:
            yield from tagged_text(tagger, lines, format or "text")


def _files(batches: Iterator[FileLines]) -> Iterator[tuple[str, Iterator[list[str]]]]:
    """Yield each file with batches of its lines."""
    held = next(batches, None)

    def lines_of(name: str) -> Iterator[list[str]]:
        nonlocal held
        while held is not None and held.name == name:
            yield held.lines
            held = next(batches, None)

    while held is not None:
        yield held.name, lines_of(held.name)


def detected_format(name: str, batches: Iterator[list[str]]) -> tuple[InputFormat, Iterator[list[str]]]:
    """Return the input format and the lines: the format by the file name, else by the first line that is neither blank
    nor a comment.

    A stream that begins with comments is buffered until that line has come.
    """
    from foreword.tag.conllu import COLUMNS
    from foreword.text.compression import without_suffix

    suffix = PurePath(without_suffix(name)).suffix.lower()
    if suffix in (".conllu", ".conll-u", ".conll"):
        return "conll" if suffix == ".conll" else "conllu", batches
    seen: list[list[str]] = []
    for lines in batches:
        seen.append(lines)
        first = next((line for line in lines if line.strip() and not line.startswith("#")), None)
        if first is not None or not any(line.startswith("#") for line in lines):
            columns = (first or "").split("\t")
            is_conllu = len(columns) == len(COLUMNS) and columns[0][:1].isdecimal()
            return "conllu" if is_conllu else "text", chain(seen, batches)
    return "text", iter(seen)


def is_number(column: str) -> bool:
    """Return whether a column is a number, as in CoNLL; the columns of CoNLL-U have names."""
    return column.removeprefix("-").isdecimal()


# Text


def tagged_text(tagger: TreebankTagger, batches: Iterable[list[str]], format: str) -> Iterator[str]:
    """Yield the tags of running text, one line per sentence."""
    for lines in batches:
        sentences = [line.split() for line in lines]
        tags = tagger.predict(sentences)
        yield "".join(written(tagger, *pair, format) for pair in zip(sentences, tags, strict=True))


def tagged_running_text(tagger: TreebankTagger, batches: Iterable[list[str]], format: str) -> Iterator[str]:
    """Yield the tags of text that is not split: one line per sentence, a blank line for a blank one."""
    from foreword.tag.running_text import Splitter

    splitter = Splitter.of(tagger.known_words())
    for lines in batches:
        sentences = [words for line in lines for words in (list(splitter.sentences(line)) or [[]])]
        tags = tagger.predict(sentences)
        yield "".join(written(tagger, *pair, format) for pair in zip(sentences, tags, strict=True))


def written(tagger: TreebankTagger, words: Sequence[str], tags: Sequence[str], format: str) -> str:
    """Return a tagged sentence as text; nothing for an empty one in a format with one word per line."""
    from foreword.tag.conll import Sentence
    from foreword.tag.conll import sentence_text as conll_text
    from foreword.tag.conllu import sentence_text

    if format == "json":
        return json.dumps({"words": list(words), "tags": list(tags)}, ensure_ascii=False) + "\n"
    if format == "text":
        return " ".join(f"{word}_{tag}" for word, tag in zip(words, tags, strict=True)) + "\n"
    if not words:
        return ""
    if format == "conll":
        return conll_text(Sentence([list(pair) for pair in zip(words, tags, strict=True)]))
    if format == "tsv":
        return "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True)) + "\n"
    return sentence_text(words, tags, tagger.column)


# CoNLL-U


def tagged_conllu(tagger: TreebankTagger, name: str, batches: Iterable[list[str]], format: str) -> Iterator[str]:
    """Yield a CoNLL-U file with its tags predicted."""
    from foreword.tag.conllu import BlockReader

    reader = BlockReader(name)
    for lines in batches:
        yield _tagged_blocks(tagger, list(reader.read(lines)), format)
    yield _tagged_blocks(tagger, list(reader.rest()), format)


def _tagged_blocks(tagger: TreebankTagger, blocks: list[SentenceBlock], format: str) -> str:
    sentences = [block.forms for block in blocks]
    tagged = zip(blocks, sentences, tagger.predict(sentences), strict=True)
    if format == "conllu":
        return "".join(block.filled(tags, tagger.column) for block, _, tags in tagged)
    return "".join(written(tagger, words, tags, format) for block, words, tags in tagged if words)


# CoNLL

AT_ONCE = 256
"""Sentences that are tagged together."""


def tagged_conll(tagger: TreebankTagger, name: str, batches: Iterable[list[str]], format: str) -> Iterator[str]:
    """Yield a file of CoNLL columns with its tags predicted."""
    from foreword.tag.conll import parse_conll

    coming = parse_conll(chain.from_iterable(batches), name)
    while sentences := list(islice(coming, AT_ONCE)):
        tagged = zip(sentences, tagger.predict([each.words for each in sentences]), strict=True)
        yield "".join(_filled(tagger, name, each, tags, format) for each, tags in tagged)


def _filled(tagger: TreebankTagger, name: str, sentence: Sentence, tags: Sequence[str], format: str) -> str:
    """Return a sentence with its tags in the column that was learnt, or after the words where that is the only one."""
    from foreword.tag.conll import Sentence, sentence_text

    if format != "conll":
        return written(tagger, sentence.words, tags, format) if sentence.rows else ""
    rows = [list(row) for row in sentence.rows]
    if rows and len(rows[0]) == 1:
        rows = [[*row, tag] for row, tag in zip(rows, tags, strict=True)]
    else:
        column = int(tagger.column) if is_number(tagger.column) else 0
        if rows and (column == 0 or not -len(rows[0]) < column < len(rows[0])):
            raise InputError(f"{name}: it has {len(rows[0])} columns, and the tagger fills column {tagger.column}")
        for row, tag in zip(rows, tags, strict=True):
            row[column] = tag
    return sentence_text(Sentence(rows, sentence.openings, sentence.line))
