"""``foreword tag ablate``: what each group of features is worth."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli.options import AsJson, Quiet, examples
from foreword.cli.tag.treebank import TREEBANK_HELP, ColumnOption

if TYPE_CHECKING:
    from foreword.evaluate.tagging import Ablated

EXAMPLES = examples(
    "foreword tag ablate ud_english_ewt:train ud_english_ewt:valid",
    "foreword tag ablate train.conllu dev.conllu --column xpos --json",
)


def ablate(
    train: Annotated[str, typer.Argument(metavar="TRAIN", help=TREEBANK_HELP, show_default=False)],
    test: Annotated[str, typer.Argument(metavar="TEST", help="Another, to measure on.", show_default=False)],
    column: ColumnOption = "upos",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the tagger; may be given several times."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train the tagger of hand-made features without each group of them, and with each alone, and compare.

    With --json there is a line for each training, as soon as it is done.
    """
    from foreword.cli.printing import flush, write_text
    from foreword.cli.progress import progress
    from foreword.cli.settings import parse_settings
    from foreword.cli.tag.treebank import read_treebanks
    from foreword.evaluate.tagging import ablation
    from foreword.tag.features import ALL_GROUPS, FeatureTagger

    given = {"column": column, **parse_settings(settings or [], "features", FeatureTagger)}
    groups = given.pop("features", ALL_GROUPS)
    found: list[Ablated] = []
    with progress(quiet) as meter:
        learnt, measured = (read_treebanks([name], given["column"], meter) for name in (train, test))
        for row in ablation(learnt, measured, groups, **given):
            found.append(row)
            if as_json:
                write_text(json.dumps(_facts(row)) + "\n")
                flush()
            if meter:
                meter("training", len(found), 2 * len(groups) + 2)
    if not as_json:
        _print(found)


def _facts(row: Ablated) -> dict[str, object]:
    shares = {"accuracy": row.accuracies.all, "known": row.accuracies.known, "unknown": row.accuracies.unknown}
    told = {name: share if share == share else None for name, share in shares.items()}
    return {"name": row.name, "groups": list(row.groups), "features": row.features, **told}


def _print(found: list[Ablated]) -> None:
    from foreword.cli.printing import plain_table, print_table

    numbers = ("accuracy", "known words", "unknown words", "change", "features")
    table = plain_table("features of", *numbers, numbers=numbers)
    for row in found:
        shares = (f"{share:.2%}" if share == share else "–" for share in row.accuracies[:3])
        change = f"{100 * (row.accuracies.all - found[0].accuracies.all):+.2f}" if row is not found[0] else ""
        table.add_row(row.name, *shares, change, f"{row.features:,}")
    print_table(table)
