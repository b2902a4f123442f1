"""``foreword translate``: learn a translator from sentences and their translations, translate, measure."""

from __future__ import annotations

import typer

from foreword.cli.options import add_command
from foreword.cli.translate import evaluate, predict, train

app = typer.Typer(
    name="translate",
    help="Learn a translator; translate text; see where it looks.",
    no_args_is_help=True,
    epilog=train.EXAMPLES,
)
add_command(app, train.train, train.EXAMPLES)
add_command(app, predict.predict, predict.EXAMPLES)
add_command(app, evaluate.evaluate, evaluate.EXAMPLES)
