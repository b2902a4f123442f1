"""What the commands of ``foreword tag`` share: treebanks from where the user says they are, and taggers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.evaluate.tagging import SpanMeasures, TagMeasures
    from foreword.protocols import Meter, TreebankTagger
    from foreword.tag.conllu import Tagged

TREEBANK_HELP = (
    "CoNLL-U or CoNLL columns, compressed or not; [bold]-[/] for standard input, or a data set such as "
    "[bold]ud_english_ewt:train[/]."
)
Treebanks: TypeAlias = Annotated[list[str], typer.Argument(metavar="FILE", help=TREEBANK_HELP, show_default=False)]
ColumnOption: TypeAlias = Annotated[
    Literal["upos", "xpos"], typer.Option("--column", help="Which column to learn: universal tags, or the language's.")
]


def is_number(column: str) -> bool:
    """Columns of CoNLL-U have names; a number is a column of a file in the older format."""
    return column.removeprefix("-").isdecimal()


def usual_column(names: Sequence[str], scheme: str | None) -> str:
    """What is learnt where nobody says: the last column where the tags are spans, else universal tags."""
    from foreword.text.datasets import DATASETS, lookup

    sets = [name for name in names if name.partition(":")[0] in DATASETS and not os.path.exists(name)]  # noqa: PTH110
    return "-1" if scheme or any(lookup(name)[1].format == "conll" for name in sets) else "upos"


def read_treebanks(names: Sequence[str], column: str, meter: Meter | None = None) -> Tagged:
    """The sentences of all files, and a column of each: of CoNLL-U by its name, of CoNLL by its number."""
    from foreword.tag.conll import read_conll
    from foreword.tag.conllu import EMPTY, Tagged, read_conllu

    tagged = Tagged([], [])
    for name in names:
        if is_number(column):
            found = read_conll(treebank_path(name, "conll", meter), int(column))
        else:
            found = read_conllu(treebank_path(name, "conllu", meter), column)  # type: ignore[arg-type]
        if all(tag == EMPTY for tags in found.tags for tag in tags):
            raise InputError(f"{name}: its column {column} is empty")
        tagged.sentences.extend(found.sentences)
        tagged.tags.extend(found.tags)
    return tagged


def treebank_path(name: str, format: str, meter: Meter | None = None) -> str:
    """A file as it is, or that of a data set; a file always goes before a name."""
    from foreword.text.datasets import DATASETS, lookup

    if name == "-" or os.path.exists(name) or name.partition(":")[0] not in DATASETS:  # noqa: PTH110
        return name
    found, file = lookup(name)
    if file.format != format:
        expected = "CoNLL-U" if format == "conllu" else "CoNLL, in which columns have numbers"
        raise InputError(f"{name}: its format is {file.format}, not {expected}")
    return str(found.path(file.split, meter=meter))


def load_tagger(path: str) -> TreebankTagger:
    from foreword.cli.models import load_any
    from foreword.protocols import TreebankTagger
    from foreword.storage.folder import kind_of

    found = load_any(path)
    if not isinstance(found, TreebankTagger):
        raise InputError(f"{path}: its kind is {kind_of(found)}, not a tagger: foreword tag train makes one")
    return found


def measure_treebanks(tagger: TreebankTagger, names: Sequence[str], meter: Meter | None = None) -> TagMeasures:
    """What a tagger makes of treebanks, in the column it has learnt."""
    from foreword.evaluate.tagging import measure_tagger

    return measure_tagger(tagger, *read_treebanks(names, tagger.column, meter))


def print_tag_measures(measures: TagMeasures) -> None:
    from foreword.cli.printing import plain_table, print_facts, print_table

    low, high = measures.confusion.interval
    found = measures.accuracies
    print_facts(
        {
            "accuracy": f"{found.all:.2%} (95 % between {low:.2%} and {high:.2%})",
            "known words": _percent(found.known),
            "unknown words": f"{_percent(found.unknown)} ({found.unknown_share:.2%} of all)",
            "tokens": f"{measures.confusion.texts:,}, {measures.confusion.right:,} right",
            "sentences": f"{measures.sentences:,}, {measures.sentences_right:,} without a mistake",
        }
    )
    numbers = ("precision", "recall", "F1", "tokens", "predicted")
    table = plain_table("tag", *numbers, numbers=numbers)
    for each in measures.confusion.classes:
        shares = (f"{share:.4f}" for share in (each.precision, each.recall, each.f1))
        table.add_row(each.label, *shares, f"{each.texts:,}", f"{each.predicted:,}")
    print_table(table)
    if measures.spans is not None:
        print_spans(measures.spans)


def print_spans(measures: SpanMeasures) -> None:
    from foreword.cli.printing import plain_table, print_table

    numbers = ("precision", "recall", "F1", "spans", "predicted")
    table = plain_table("kind", *numbers, numbers=numbers)
    for each in (*measures.kinds, measures.micro):
        shares = (f"{share:.4f}" for share in (each.precision, each.recall, each.f1))
        table.add_row(each.kind, *shares, f"{each.gold:,}", f"{each.predicted:,}")
    print_table(table)


def _percent(share: float) -> str:
    return f"{share:.2%}" if share == share else "–"
