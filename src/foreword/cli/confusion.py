"""How right a classifier is, for people: a few figures, a line for each class, who is taken for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from foreword.evaluate.classification import Confusion

MOST_CLASSES = 40
MOST_CONFUSED = 10
"""Beyond so many classes a table, or a square of counts, is for programs: --json has it."""


def print_confusion(measures: Confusion, title: str | None = None) -> None:
    from foreword.cli.printing import plain_table, print_facts, print_table

    low, high = measures.interval
    facts = {
        "accuracy": f"{measures.accuracy:.2%} (95 % between {low:.2%} and {high:.2%})",
        "macro F1": f"{measures.macro_f1:.4f}",
        "calibration error": "–" if measures.calibration_error is None else f"{measures.calibration_error:.4f}",
        "texts": f"{measures.texts:,}, {measures.right:,} right",
    }
    if title:
        typer.echo(title)
    print_facts(facts)
    if len(measures.labels) <= MOST_CLASSES:
        numbers = ("precision", "recall", "F1", "texts", "predicted")
        table = plain_table("class", *numbers, numbers=numbers)
        for each in measures.classes:
            shares = (f"{share:.4f}" for share in (each.precision, each.recall, each.f1))
            table.add_row(each.label, *shares, f"{each.texts:,}", f"{each.predicted:,}")
        print_table(table)
    if len(measures.labels) <= MOST_CONFUSED:
        said = tuple(f"said {label}" for label in measures.labels)
        table = plain_table("truth", *said, numbers=said)
        for label, row in zip(measures.labels, measures.counts.tolist(), strict=True):
            table.add_row(label, *(f"{count:,}" for count in row))
        print_table(table)


def unseen_note(measures: Confusion) -> str | None:
    """A line about labels that the model could not know."""
    if not measures.unseen:
        return None
    named = ", ".join(f"{label} ({count})" for label, count in list(measures.unseen.items())[:5])
    more = f" and {len(measures.unseen) - 5} more" if len(measures.unseen) > 5 else ""
    return f"labels never seen in training, whose texts count as wrong: {named}{more}"
