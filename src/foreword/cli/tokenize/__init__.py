"""``foreword tokenize``: learn a tokenizer, turn text into ids, turn ids into text."""

from __future__ import annotations

import typer

from foreword.cli.options import add_command
from foreword.cli.tokenize import decode, encode, train

app = typer.Typer(
    name="tokenize",
    help="Learn a tokenizer; turn text into ids and back.",
    no_args_is_help=True,
    epilog=train.EXAMPLES,
)
add_command(app, train.train, train.EXAMPLES)
add_command(app, encode.encode, encode.EXAMPLES)
add_command(app, decode.decode, decode.EXAMPLES)
