"""``foreword tag``: learn a tagger from a treebank, tag text, measure it, see what its features are worth."""

from __future__ import annotations

import typer

from foreword.cli.options import add_command
from foreword.cli.tag import ablate, evaluate, predict, train

app = typer.Typer(
    name="tag",
    help="Learn a tagger of words; tag text.",
    no_args_is_help=True,
    epilog=train.EXAMPLES,
)
add_command(app, train.train, train.EXAMPLES)
add_command(app, predict.predict, predict.EXAMPLES)
add_command(app, evaluate.evaluate, evaluate.EXAMPLES)
add_command(app, ablate.ablate, ablate.EXAMPLES)
