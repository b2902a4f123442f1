"""``foreword search query``: a query in, the best documents out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli.options import AsJson, ErrorsOption, Threads, examples
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.pipeline.search import Hit, TextSearch

EXAMPLES = examples(
    "foreword search query index 'happy people'",
    "foreword search query index 'happy people' 'sad people' -k 3 --explain",
    "foreword search query index --file queries.txt --json | jq -r '.hits[0].name'",
    "echo 'happy people' | foreword search query index | cut -f 4",
)


def query(
    index: Annotated[str, typer.Argument(metavar="INDEX", help="A folder that foreword search index wrote.")],
    queries: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUERY", help="What to look for; each is a query of its own.", show_default="see --file"
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many documents to show at most.")] = 10,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Queries, one a line; - is standard input.", show_default="- if there is no QUERY"
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each word adds to a score.")] = False,
    threads: Threads = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
) -> None:
    """Find the documents that hold words of the query, the best first.

    Documents with the same score are in the order they were indexed in. A terminal gets a table, anything else
    lines of query, rank, score, name and snippet with tabs between them. With --json each query gives one object.
    """
    if queries and file is not None:
        raise typer.BadParameter("queries come as arguments or from a file", param_hint="'--file'")

    from foreword.cli.printing import flush, write_json, write_text

    batches = iter([queries]) if queries else query_batches(file or "-", errors)
    search = load_search(index)
    for batch in batches:
        for asked, hits in zip(batch, search.query_batch(batch, k, threads=threads), strict=True):
            reasons = [search.explain(asked, hit.document) for hit in hits] if explain else None
            if as_json:
                write_json(as_object(asked, hits, reasons))
            elif sys.stdout.isatty():
                show(asked, hits, reasons)
            else:
                write_text("".join(lines_of(asked, hits, reasons)))
        flush()


def query_batches(file: str, errors: Any) -> Iterator[list[str]]:
    from foreword.cli.lines import line_batches

    return (batch.lines for batch in line_batches(file, errors))


def load_search(path: str) -> TextSearch:
    from foreword.cli.models import load_any
    from foreword.pipeline.search import TextSearch
    from foreword.storage.folder import kind_of

    found = load_any(path)
    if not isinstance(found, TextSearch):
        raise InputError(f"{path}: its kind is {kind_of(found)}, not text-search: foreword search index makes one")
    return found


def as_object(asked: str, hits: list[Hit], reasons: list[dict[str, float]] | None) -> dict[str, Any]:
    told = [asdict(hit) for hit in hits]
    for place, reason in enumerate(reasons or []):
        told[place]["contributions"] = reason
    return {"query": asked, "hits": told}


def lines_of(asked: str, hits: list[Hit], reasons: list[dict[str, float]] | None) -> Iterator[str]:
    for place, hit in enumerate(hits):
        cells = [asked, str(hit.rank), f"{hit.score:.7g}", hit.name, hit.snippet]
        if reasons:
            cells.append(why(reasons[place]))
        yield "\t".join(" ".join(cell.split()) for cell in cells) + "\n"


def why(reason: dict[str, float]) -> str:
    """The greatest first; what adds nothing is not worth a word."""
    parts = sorted(reason.items(), key=lambda item: (-item[1], item[0]))
    return " + ".join(f"{word} {value:.3g}" for word, value in parts if value) or "0"


def show(asked: str, hits: list[Hit], reasons: list[dict[str, float]] | None) -> None:
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
