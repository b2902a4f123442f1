"""``foreword search``: index documents, ask for them."""

from __future__ import annotations

import typer

from foreword.cli.options import add_command
from foreword.cli.search import index, query

app = typer.Typer(
    name="search",
    help="Index documents; find those that hold the words of a query, best first.",
    no_args_is_help=True,
    epilog=index.EXAMPLES,
)
add_command(app, index.index, index.EXAMPLES)
add_command(app, query.query, query.EXAMPLES)
