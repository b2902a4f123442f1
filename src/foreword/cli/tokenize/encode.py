"""``foreword tokenize encode``: text in, ids out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli.options import (
    TEXT_HELP,
    AsJson,
    DocumentOption,
    ErrorsOption,
    FieldOption,
    FormatOption,
    Quiet,
    Threads,
    TokenizerPath,
    examples,
    reading_of,
)

if TYPE_CHECKING:
    from foreword.protocols import TextTokenizer
    from foreword.text.block import Block
    from foreword.tokens.corpus import Encoded
    from foreword.tokens.vocab import Vocab

EXAMPLES = examples(
    "foreword tokenize encode tokenizer notes.txt > ids.txt",
    "echo 'a new word' | foreword tokenize encode tokenizer --tokens",
    "foreword tokenize encode tokenizer ptb:train --corpus ptb-ids",
)


def encode(
    tokenizer: TokenizerPath,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help=TEXT_HELP, show_default="standard input")
    ] = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Print tokens instead of ids.")] = False,
    corpus: Annotated[
        str | None,
        typer.Option("--corpus", "-o", metavar="FOLDER", help="Write a corpus for training instead of printing."),
    ] = None,
    threads: Threads = None,
    document: DocumentOption = "line",
    field: FieldOption = "text",
    format: FormatOption = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Turn text into ids: a line a document, ids with blanks between them, without the end of the document.

    With --json a line is a JSON list, the only form in which tokens that hold white space come out exactly:
    otherwise ▁ stands for a blank in a token. Blank documents are skipped.
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
    reading = reading_of(document, field, format, errors)
    prints_here = corpus is None and sys.stdout.isatty()  # ids and a bar on one terminal would spoil each other
    with progress(quiet or prints_here) as meter:
        blocks = blocks_in(texts or ["-"], reading, meter)
        loaded = load_tokenizer(tokenizer)
        if corpus is not None:
            write_corpus(blocks, loaded, corpus, threads, as_json, quiet)
            return
        lines = Lines(spellings(loaded.vocab, tokens, as_json), as_json)
        for encoded in ordered_map(loaded.encode_block, blocks, threads):
            write_text(lines.of(encoded))


def write_corpus(
    blocks: Iterator[Block], tokenizer: TextTokenizer, folder: str, threads: int | None, as_json: bool, quiet: bool
) -> None:
    from foreword.cli.printing import print_message, write_json
    from foreword.tokens.corpus import Corpus

    corpus = Corpus.from_blocks(blocks, tokenizer, threads=threads, folder=folder)
    if as_json:
        write_json({"documents": len(corpus), "tokens": len(corpus.ids), "output": folder})
    elif not quiet:
        print_message(f"{len(corpus):,} documents, {len(corpus.ids):,} tokens, saved in {folder}")


def spellings(vocab: Vocab, tokens: bool, as_json: bool) -> list[str]:
    """How each id is written."""
    if not tokens:
        return [str(id) for id in range(len(vocab))]
    return [json.dumps(token, ensure_ascii=False) if as_json else visible(token) for token in vocab]


def visible(token: str) -> str:
    """A token in which no white space can be taken for the end of it."""
    return "".join("▁" if sign == " " else repr(sign)[1:-1] if sign.isspace() else sign for sign in token)


class Lines:
    """A line for every document, though a long one may come in the pieces of several blocks."""

    def __init__(self, spellings: list[str], as_json: bool) -> None:
        self._spellings = spellings
        self._start, self._between, self._end = ("[", ", ", "]\n") if as_json else ("", " ", "\n")
        self._glue = ""  # what goes before the next id
        self._begun = False  # whether the start of a line is written

    def of(self, encoded: Encoded) -> str:
        """What to write now."""
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
