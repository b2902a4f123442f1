"""``foreword tokenize``: learn a tokenizer, turn text into ids, turn ids into text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli.options import (
    TEXT_HELP,
    OutputOptions,
    ReadingOptions,
    Threads,
    TokenizerPath,
    add_command,
    command_group,
    examples,
    kind_by_option,
)
from foreword.cli.tokenize_train import TRAIN_EXAMPLES, train
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.cli.lines import FileLines
    from foreword.protocols import TextTokenizer
    from foreword.text.block import Block
    from foreword.tokens.corpus import Encoded
    from foreword.tokens.vocab import Vocab

ENCODE_EXAMPLES = examples(
    "foreword tokenize encode tokenizer notes.txt > ids.txt",
    "echo 'a new word' | foreword tokenize encode tokenizer --tokens",
    "foreword tokenize encode tokenizer ptb:train --corpus ptb-ids",
)
DECODE_EXAMPLES = examples(
    "foreword tokenize decode tokenizer ids.txt",
    "echo '412 7 88' | foreword tokenize decode tokenizer",
)

app = command_group("tokenize", "Learn a tokenizer; turn text into ids and back.", TRAIN_EXAMPLES)


def encode(
    tokenizer: TokenizerPath,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help=TEXT_HELP, show_default="standard input")
    ] = None,
    *,
    tokens: Annotated[bool, typer.Option("--tokens", help="Print tokens instead of ids.")] = False,
    corpus: Annotated[
        str | None,
        typer.Option("--corpus", "-o", metavar="FOLDER", help="Save a corpus for training instead of printing."),
    ] = None,
    threads: Threads = None,
    reading: ReadingOptions,
    output: OutputOptions,
) -> None:
    """Turn text into ids: one line per document, ids separated by blanks, without the end of the document.

    Blank documents are skipped. With --json a line is a JSON list; otherwise ▁ stands for a blank in a token.
    """
    if tokens and corpus is not None:
        raise typer.BadParameter("a corpus holds ids", param_hint="'--tokens'")

    from foreword.cli.models import check_output, load_tokenizer
    from foreword.cli.printing import write_text
    from foreword.cli.progress import progress
    from foreword.cli.texts import blocks_in
    from foreword.native.parallel import ordered_map

    if corpus is not None:
        check_output(corpus, folder=True)
    prints_here = corpus is None and sys.stdout.isatty()  # ids and a bar on one terminal would spoil each other
    with progress(output.quiet or prints_here) as meter:
        blocks = blocks_in(texts or ["-"], reading.reading(), meter)
        loaded = load_tokenizer(tokenizer)
        if corpus is not None:
            write_corpus(blocks, loaded, corpus, threads, output)
            return
        lines = DocumentLines(spellings(loaded.vocab, tokens, output.as_json), output.as_json)
        for encoded in ordered_map(loaded.encode_block, blocks, threads):
            write_text(lines.of(encoded))


def decode(
    tokenizer: TokenizerPath,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Ids, one line per document; - is standard input.")] = "-",
    *,
    output: OutputOptions,
) -> None:
    """Turn ids into text, line by line.

    A text that contains line ends keeps them, and takes several lines. With --json the input has JSON lists, and each
    text is printed as a JSON string on one line.
    """
    from foreword.cli.lines import line_batches
    from foreword.cli.models import load_tokenizer
    from foreword.cli.printing import flush, write_text

    batches = line_batches(file)
    loaded = load_tokenizer(tokenizer)
    for batch in batches:
        written: list[str] = []
        for number in range(len(batch.lines)):
            text = loaded.decode(ids_in(batch, number, output.as_json, len(loaded.vocab)))
            written.append(f"{json.dumps(text, ensure_ascii=False) if output.as_json else text}\n")
        write_text("".join(written))
        flush()


add_command(app, train, TRAIN_EXAMPLES, kind_by_option("tokenizer", "bpe"))
add_command(app, encode, ENCODE_EXAMPLES)
add_command(app, decode, DECODE_EXAMPLES)

# Encoding


def write_corpus(
    blocks: Iterator[Block], tokenizer: TextTokenizer, folder: str, threads: int | None, output: OutputOptions
) -> None:
    """Encode the text and save it as a corpus."""
    from foreword.cli.printing import print_message, write_json
    from foreword.picture.picture import plural
    from foreword.tokens.corpus import Corpus

    corpus = Corpus.from_blocks(blocks, tokenizer, threads=threads, folder=folder)
    if output.as_json:
        write_json({"documents": len(corpus), "tokens": len(corpus.ids), "output": folder})
    elif not output.quiet:
        print_message(f"{plural(len(corpus), 'document')}, {plural(len(corpus.ids), 'token')}, saved in {folder}")


def spellings(vocab: Vocab, tokens: bool, as_json: bool) -> list[str]:
    """Return the text that stands for each id."""
    if not tokens:
        return [str(id) for id in range(len(vocab))]
    return [json.dumps(token, ensure_ascii=False) if as_json else visible(token) for token in vocab]


def visible(token: str) -> str:
    """Return a token with its white space made visible."""
    return "".join("▁" if sign == " " else repr(sign)[1:-1] if sign.isspace() else sign for sign in token)


class DocumentLines:
    """A line for every document, though a long one may come in the pieces of several blocks."""

    def __init__(self, spellings: list[str], as_json: bool) -> None:
        self._spellings = spellings
        self._start, self._between, self._end = ("[", ", ", "]\n") if as_json else ("", " ", "\n")
        self._glue = ""  # what goes before the next id
        self._begun = False  # whether the start of a line is written

    def of(self, encoded: Encoded) -> str:
        """Return the text for the next block of ids."""
        ids, start = encoded.ids.tolist(), 0
        written: list[str] = []
        for end in encoded.ends.tolist():
            written += [self._go_on(ids[start : end - 1]), self._end]  # the last id is that of the end
            self._begun = False
            start = end
        if start < len(ids):
            written.append(self._go_on(ids[start:]))
        return "".join(written)

    def _go_on(self, ids: list[int]) -> str:
        if not self._begun:
            self._begun, self._glue = True, ""
            return self._start + self._go_on(ids)
        before, self._glue = self._glue, self._between if ids else self._glue
        return (before if ids else "") + self._between.join([self._spellings[id] for id in ids])


# Decoding


def ids_in(batch: FileLines, number: int, as_json: bool, size: int) -> list[int]:
    """Return the ids on one line, each of which must be in a vocabulary of ``size`` tokens."""
    from foreword.text.strict_json import parse_json

    line = batch.lines[number]
    try:
        ids = parse_json(line.encode()) if as_json else [int(word) for word in line.split()]
    except ValueError:
        expected = "a JSON list of ids" if as_json else "ids with blanks between them"
        raise InputError(f"{batch.place(number)} is not {expected}") from None
    if not isinstance(ids, list) or not all(type(id) is int for id in ids):
        raise InputError(f"{batch.place(number)} is not a JSON list of ids")
    for id in ids:
        if not 0 <= id < size:
            raise InputError(f"{batch.place(number)} has the id {id}, but the vocabulary ends at {size - 1}")
    return ids
