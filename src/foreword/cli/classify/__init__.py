"""``foreword classify``: learn labels from labelled texts, label texts, say why."""

from __future__ import annotations

import typer

from foreword.cli.classify import explain, predict, train
from foreword.cli.options import add_command

app = typer.Typer(
    name="classify",
    help="Learn labels from labelled texts; label texts; say why.",
    no_args_is_help=True,
    epilog=train.EXAMPLES,
)
add_command(app, train.train, train.EXAMPLES)
add_command(app, predict.predict, predict.EXAMPLES)
add_command(app, explain.explain, explain.EXAMPLES)
