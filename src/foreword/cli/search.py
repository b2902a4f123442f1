"""``foreword search``: index documents, and find those that a query is about."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from foreword import kinds
from foreword.cli.options import (
    READING,
    ErrorsOption,
    MinCount,
    OutputOptions,
    Overwrite,
    ReadingOptions,
    SetOption,
    Texts,
    Threads,
    TokenizerOption,
    add_command,
    command_group,
    examples,
)

if TYPE_CHECKING:
    from foreword.pipeline.search import Hit, TextSearch
    from foreword.protocols import Ranker

Ranking: TypeAlias = Literal["lucene", "robertson", "atire", "bm25l", "bm25+", "tfidf"]

INDEX_EXAMPLES = examples(
    "foreword search index notes/ -o index --document file",
    "foreword search index news.jsonl.zst -o index --id-field url",
    "foreword search index 20newsgroups:train -o index --id-field id --variant bm25+ --set delta=1",
    "foreword search query index 'happy people'",
)
ADD_EXAMPLES = examples("foreword search add index new.txt", "foreword search add index changed.jsonl --id-field id")
REMOVE_EXAMPLES = examples("foreword search remove index notes.txt#3 old.txt")
QUERY_EXAMPLES = examples(
    "foreword search query index 'happy people'",
    "foreword search query index 'happy people' 'sad people' -k 3 --explain",
    "foreword search query index --file queries.txt --json | jq -r '.hits[0].name'",
    "echo 'happy people' | foreword search query index | cut -f 4",
)

IndexFolder: TypeAlias = Annotated[str, typer.Argument(metavar="INDEX", help="A saved index.")]
IdField: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--id-field", metavar="NAME", help="Field of the document's name in JSONL or Parquet.",
        show_default="the file and a number", rich_help_panel=READING,
    ),
]  # fmt: skip

app = command_group("search", "Index documents; search them.", INDEX_EXAMPLES)


def index(
    texts: Texts,
    out: Annotated[str, typer.Option("--out", "-o", metavar="INDEX", help="Folder to save the index in.")],
    *,
    variant: Annotated[Ranking, typer.Option(help="Variant of BM25, or tfidf: cosine of TF-IDF vectors.")] = "lucene",
    settings: SetOption = None,
    tokenizer: TokenizerOption = None,
    min_count: MinCount = None,
    stop_words: Annotated[
        str | None, typer.Option(metavar="FILE", help="Words to ignore in queries, one per line.", show_default="none")
    ] = None,
    text: Annotated[bool, typer.Option("--text/--no-text", help="Store the documents, to show them.")] = True,
    id_field: IdField = None,
    overwrite: Overwrite = False,
    threads: Threads = None,
    reading: ReadingOptions,
    output: OutputOptions,
) -> None:  # fmt: skip
    """Index documents, so that they can be searched.

    By default a document is a line, and words are runs of letters and digits, or punctuation marks, in lower case. The
    name of a document is the field that --id-field names, or its file, with a number where the file holds several:
    notes.txt#3. BM25 has the settings k1 (1.5: how slowly repeating a word stops mattering), b (0.75: length
    normalisation) and, for bm25l and bm25+, delta (0.5: raises the weight of terms in long documents).
    """
    ranker = ranker_of(variant, settings)
    if tokenizer is not None and min_count is not None:
        raise typer.BadParameter("the tokenizer has its vocabulary already", param_hint="'--min-count'")
    if id_field is not None and reading.format == "text":
        raise typer.BadParameter("plain text has no fields", param_hint="'--id-field'")
    with_words = {"tokenizer": tokenizer, "min_count": min_count, "stop_words": stop_words, "keep_text": text,
                  "overwrite": overwrite}  # fmt: skip
    _index(texts, out, ranker, with_words, id_field, threads, reading, output, variant)


def _index(
    texts: list[str], out: str, ranker: Ranker, words: dict[str, Any], id_field: str | None, threads: int | None,
    reading: ReadingOptions, output: OutputOptions, variant: str,
) -> None:  # fmt: skip
    from foreword.cli.models import check_output, load_tokenizer
    from foreword.cli.progress import job
    from foreword.cli.search_reading import named_blocks
    from foreword.pipeline.search import TextSearch
    from foreword.storage.atomic import nearest_existing
    from foreword.storage.folder import save
    from foreword.text.sources import read_documents
    from foreword.tokens.words import WordTokenizer

    check_output(out, folder=True, kind="text-search", overwrite=words["overwrite"])
    stop_words = [word.strip() for word in read_documents(words["stop_words"])] if words["stop_words"] else []
    tokenizer = None if words["tokenizer"] is None else load_tokenizer(words["tokenizer"])
    search = TextSearch(tokenizer, ranker, keep_text=words["keep_text"], stop_words=stop_words)
    if words["min_count"] is not None and isinstance(search.tokenizer, WordTokenizer):
        search.tokenizer.min_count = words["min_count"]
    with job(output, out, variant=variant) as work:
        blocks, names = named_blocks(texts, reading.reading(), id_field, work.meter)
        search.fit_blocks(blocks, names, threads=threads, scratch=nearest_existing(out), meter=work.meter)
        save(search, out)
        work.facts |= {"documents": len(search), "vocabulary": len(search.vocab)}
        work.summary = f"{work.count('documents')}, {work.count('vocabulary', 'word')}"


def add(
    index: IndexFolder,
    texts: Texts,
    *,
    id_field: IdField = None,
    threads: Threads = None,
    reading: ReadingOptions,
    output: OutputOptions,
) -> None:
    """Add documents to an index; documents of the same name, or of a file of the same name, are replaced.

    All stored texts are indexed again, so that the result is that of indexing everything at once.
    """
    from foreword.cli.models import load_able
    from foreword.cli.progress import job
    from foreword.cli.search_reading import named_blocks
    from foreword.storage.folder import save

    search: TextSearch = load_able(index, "search")
    before = len(search)
    with job(output, index) as work:
        blocks, names = named_blocks(texts, reading.reading(), id_field, work.meter)
        search.add_blocks(blocks, names, threads=threads, meter=work.meter)
        save(search, index)
        replaced = before + len(names) - len(search)
        work.facts |= {"documents": len(search), "new": len(names), "replaced": replaced}
        added = work.count("new", "document")
        work.summary = f"{added} added, {replaced:,} of them in place of others, {len(search):,} in all"


def remove(
    index: IndexFolder,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Names of documents or files, as hits show them.")],
    *,
    threads: Threads = None,
    output: OutputOptions,
) -> None:
    """Remove documents from an index by their names; the name of a file removes all its documents."""
    from foreword.cli.models import load_able
    from foreword.cli.progress import job
    from foreword.storage.folder import save

    search: TextSearch = load_able(index, "search")
    before = len(search)
    with job(output, index) as work:
        search.remove(names, threads=threads, meter=work.meter)
        save(search, index)
        work.facts |= {"documents": len(search), "removed": before - len(search)}
        work.summary = f"{work.count('removed', 'document')} removed, {len(search):,} in all"


def ranker_of(variant: Ranking, settings: list[str] | None) -> Ranker:
    """Return the ranker of a variant with its settings."""
    from foreword.cli.settings import parse_settings
    from foreword.search.bm25 import BM25
    from foreword.search.cosine import CosineSearch

    if variant == "tfidf":
        return CosineSearch(**parse_settings(settings, "tfidf", CosineSearch))
    without = ["variant"] if variant in ("bm25l", "bm25+") else ["variant", "delta"]
    given = parse_settings(settings, variant, BM25, without=without)
    return BM25(variant, **{name: float(value) for name, value in given.items()})


def query(
    index: IndexFolder,
    queries: Annotated[list[str] | None, typer.Argument(metavar="QUERY", help="Queries.", show_default=False)] = None,
    *,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of documents to show.")] = 10,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Queries, one per line; - is standard input.", show_default="- without a QUERY"
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each word adds to a score.")] = False,
    threads: Threads = None,
    errors: ErrorsOption = "strict",
    output: OutputOptions,
) -> None:
    """Find the documents that contain words of the query, the best first.

    Documents with equal scores are in the order in which they were indexed. A terminal shows a table; other output has
    lines of query, rank, score, name and snippet, separated by tabs. With --json each query gives one object.
    """
    if queries and file is not None:
        raise typer.BadParameter("queries come as arguments or from a file", param_hint="'--file'")

    from foreword.cli.lines import line_batches
    from foreword.cli.models import load_able
    from foreword.cli.printing import flush, write_json, write_text

    batches = iter([queries]) if queries else (batch.lines for batch in line_batches(file or "-", errors))
    search: TextSearch = load_able(index, "search")
    for batch in batches:
        for asked, hits in zip(batch, search.query_batch(batch, k, threads=threads), strict=True):
            reasons = [search.explain(asked, hit.document) for hit in hits] if explain else None
            if output.as_json:
                write_json(as_object(asked, hits, reasons))
            elif sys.stdout.isatty():
                show(asked, hits, reasons)
            else:
                write_text("".join(lines_of(asked, hits, reasons)))
        flush()


add_command(app, index, INDEX_EXAMPLES, lambda _: ("bm25", kinds.KINDS["bm25"]))
add_command(app, query, QUERY_EXAMPLES)
add_command(app, add, ADD_EXAMPLES)
add_command(app, remove, REMOVE_EXAMPLES)


def as_object(asked: str, hits: list[Hit], reasons: list[dict[str, float]] | None) -> dict[str, Any]:
    """Return the hits of one query as JSON."""
    told = [asdict(hit) for hit in hits]
    for place, reason in enumerate(reasons or []):
        told[place]["contributions"] = reason
    return {"query": asked, "hits": told}


def lines_of(asked: str, hits: list[Hit], reasons: list[dict[str, float]] | None) -> Iterator[str]:
    """Yield the hits of one query as tab-separated lines."""
    for place, hit in enumerate(hits):
        cells = [asked, str(hit.rank), f"{hit.score:.7g}", hit.name, hit.snippet]
        if reasons:
            cells.append(why(reasons[place]))
        yield "\t".join(" ".join(cell.split()) for cell in cells) + "\n"


def why(reason: dict[str, float]) -> str:
    """Return the contributions of words as text, the greatest first, without those that are zero."""
    parts = sorted(reason.items(), key=lambda item: (-item[1], item[0]))
    return " + ".join(f"{word} {value:.3g}" for word, value in parts if value) or "0"


def show(asked: str, hits: list[Hit], reasons: list[dict[str, float]] | None) -> None:
    """Print the hits of one query with their snippets."""
    from rich.text import Text

    from foreword.cli.printing import plain_table, print_message, print_table

    if not hits:
        print_message(f"no document holds a word of {asked!r}")
        return
    columns = ["", "score", "document", "text", *(["why"] if reasons else [])]
    table = plain_table(*columns, numbers=("", "score"), title=asked)
    for place, hit in enumerate(hits):
        snippet = Text(hit.snippet)
        for start, stop in hit.marks:
            snippet.stylize("bold", start, stop)
        row = [Text(str(hit.rank)), Text(f"{hit.score:.3f}"), Text(hit.name), snippet]
        table.add_row(*row, *([Text(why(reasons[place]))] if reasons else []))
    print_table(table)
