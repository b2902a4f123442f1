"""``foreword search index``: documents in, an index out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from foreword.cli.options import (
    READING,
    AsJson,
    DocumentOption,
    ErrorsOption,
    FieldOption,
    FormatOption,
    MinCount,
    Quiet,
    Texts,
    Threads,
    examples,
    reading_of,
)

if TYPE_CHECKING:
    from foreword.protocols import Ranker

Ranking: TypeAlias = Literal["lucene", "robertson", "atire", "bm25l", "bm25+", "tfidf"]

EXAMPLES = examples(
    "foreword search index notes/ -o index --document file",
    "foreword search index news.jsonl.zst -o index --id-field url",
    "foreword search index 20newsgroups:train -o index --id-field id --variant bm25+",
    "foreword search query index 'happy people'",
)


def index(
    texts: Texts,
    out: Annotated[str, typer.Option("--out", "-o", metavar="INDEX", help="The folder to write.")],
    variant: Annotated[
        Ranking, typer.Option(help="Which BM25, or tfidf: the cosine between TF-IDF vectors.")
    ] = "lucene",
    k1: Annotated[
        float | None,
        typer.Option("--k1", min=0, help="How slowly repeating a word stops to matter.", show_default="1.5"),
    ] = None,
    b: Annotated[
        float | None,
        typer.Option("--b", min=0, max=1, help="How much a document's length matters.", show_default="0.75"),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(min=0, help="For bm25l and bm25+: what a word is worth at least.", show_default="0.5"),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            metavar="TOKENIZER", help="Use this tokenizer.", show_default="words and punctuation, in lower case"
        ),
    ] = None,
    min_count: MinCount = None,
    stop_words: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Words to leave out of queries, one a line.", show_default="none"),
    ] = None,
    text: Annotated[bool, typer.Option("--text/--no-text", help="Keep the documents' texts, to show them.")] = True,
    id_field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Where JSONL or Parquet has the document's name.",
            show_default="the file and a number", rich_help_panel=READING,
        ),
    ] = None,
    threads: Threads = None,
    document: DocumentOption = "line",
    field: FieldOption = "text",
    format: FormatOption = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Index documents, so that they can be searched.

    A document is a line unless told otherwise. It is called by the field that --id-field names, or by its file, with a
    number where the file holds several: notes.txt#3.
    """
    given = {"k1": k1, "b": b, "delta": delta}
    refuse_useless(variant, given, tokenizer, min_count, format, id_field)

    from foreword.cli.models import check_output, load_tokenizer
    from foreword.cli.printing import print_message, write_json
    from foreword.cli.progress import progress
    from foreword.cli.search.reading import named_blocks
    from foreword.pipeline.search import TextSearch
    from foreword.storage.atomic import nearest_existing
    from foreword.storage.folder import save
    from foreword.text.sources import read_documents
    from foreword.tokens.words import WordTokenizer

    check_output(out, folder=True)
    reading = reading_of(document, field, format, errors)
    stopped = [] if stop_words is None else [word.strip() for word in read_documents(stop_words)]
    words = (
        WordTokenizer(split="punctuation", lowercase=True, min_count=min_count or 1)
        if tokenizer is None
        else load_tokenizer(tokenizer)
    )
    began = time.perf_counter()
    with progress(quiet) as meter:
        blocks, names = named_blocks(texts, reading, id_field, meter)
        search = TextSearch(words, ranker_of(variant, given), keep_text=text, stop_words=stopped)
        search.fit_blocks(blocks, names, threads=threads, scratch=nearest_existing(out), meter=meter)
        save(search, out)
    seconds = time.perf_counter() - began
    if as_json:
        facts = {"variant": variant, "documents": len(search), "vocabulary": len(search.vocab)}
        write_json({**facts, "seconds": seconds, "output": out})
    elif not quiet:
        print_message(f"{len(search):,} documents, {len(search.vocab):,} words, {seconds:.1f} s, saved in {out}")


def refuse_useless(
    variant: Ranking,
    given: dict[str, float | None],
    tokenizer: str | None,
    min_count: int | None,
    format: str | None,
    id_field: str | None,
) -> None:
    """A wrong call is told before anything heavy is imported."""
    for name, value in given.items():
        if value is not None and (variant == "tfidf" or (name == "delta" and variant not in ("bm25l", "bm25+"))):
            raise typer.BadParameter(f"means nothing to --variant {variant}", param_hint=f"'--{name}'")
    if tokenizer is not None and min_count is not None:
        raise typer.BadParameter("the tokenizer has its vocabulary already", param_hint="'--min-count'")
    if id_field is not None and format == "text":
        raise typer.BadParameter("plain text has no fields", param_hint="'--id-field'")


def ranker_of(variant: Ranking, given: dict[str, float | None]) -> Ranker:
    from foreword.search.bm25 import BM25
    from foreword.search.cosine import CosineSearch

    if variant == "tfidf":
        return CosineSearch()
    return BM25(variant, **{name: value for name, value in given.items() if value is not None})
