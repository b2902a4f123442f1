"""``foreword classify predict``: one label per line or row, or all labels of a classifier with several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from foreword.cli.labelled import ClassifierFolder, FieldOrColumn, Header
from foreword.cli.options import READING, ErrorsOption, OutputOptions, examples
from foreword.cli.score import as_object
from foreword.errors import SettingError
from foreword.text.formats import RowFormat

if TYPE_CHECKING:
    from foreword.protocols import LabelModel

PREDICT_EXAMPLES = examples(
    "foreword classify predict model messages.txt > labels.txt",
    "foreword classify predict model reviews.csv --json | jq 'select(.predicted == \"bad\")'",
    "tail -f inbox.txt | foreword classify predict model --probabilities",
)

FormatOfRows: TypeAlias = Annotated[
    RowFormat | None,
    typer.Option("--format", help="File format.", show_default="by file name", rich_help_panel=READING),
]

RowsFile: TypeAlias = Annotated[
    str, typer.Argument(metavar="FILE", help="Text, JSONL, Parquet, CSV or TSV; - is standard input.")
]
Probabilities: TypeAlias = Annotated[
    bool, typer.Option("--probabilities", "-p", help="Print the probability after the label.")
]
LabelCount: TypeAlias = Annotated[
    int | None,
    typer.Option("--k", "-k", min=1, help="Number of labels, the likeliest first.", show_default="1; all in JSON"),
]
NamedLabels: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="LABEL", help="Print the probability of this label instead of the best one."),
]

Ranked: TypeAlias = list[tuple[Any, float]]
"""Labels with their probabilities, the likeliest first."""


def predict(
    model: ClassifierFolder,
    file: RowsFile = "-",
    *,
    probabilities: Probabilities = False,
    k: LabelCount = None,
    label: NamedLabels = None,
    text_column: FieldOrColumn = None,
    header: Header = None,
    format: FormatOfRows = None,
    errors: ErrorsOption = "strict",
    output: OutputOptions,
) -> None:
    """Print the label of every line, as soon as it is read.

    Each line or row gives exactly one line; that of a blank line is blank. Several labels, and probabilities, are
    separated by tabs. With --json each line is an object: the text, or all fields of the row, then predicted,
    probability and, with -k or --probabilities, probabilities. With --label each line has the probabilities of the
    named labels instead, in JSON as p(LABEL) after the others.

    A classifier with several labels per text (OneVsRest) prints all labels that reach its threshold, and a blank line
    if none does; in JSON, predicted and probability are lists.
    """
    from foreword.cli.labelled import column
    from foreword.cli.models import load_able
    from foreword.cli.printing import flush, write_text
    from foreword.text.rows import RowReading, format_of, read_rows

    is_text = (format or format_of(file) or "text") == "text"
    if is_text and (text_column is not None or header is not None):
        raise SettingError(f"{file} is read as lines of text, which have no columns: --format tsv or csv reads columns")
    batches = read_rows(file, RowReading(column(text_column), format, errors, header=header))
    loaded = load_able(model, "classify")
    wanted = _known(label or [], loaded)
    least = _threshold(loaded) if k is None else None
    most = len(loaded.classes_) if wanted or least is not None or (output.as_json and k is None) else k or 1
    for number, rows in enumerate(batches):
        if is_text and number == 0:
            _warn_of_labels(list(rows.texts.strings()), loaded, file)
        found = ranked(loaded, list(rows.texts.strings()), most)
        if output.as_json:
            listed = k or (most if probabilities else 0)
            described = partial(as_facts, k=listed, wanted=wanted, least=least)
            write_text("".join(map(as_object, rows.fields(), map(described, found))))
        elif wanted:
            write_text("".join(as_shares(ranks, wanted) for ranks in found))
        else:
            write_text("".join(as_line(reached(ranks, least), probabilities) for ranks in found))
        flush()


def ranked(model: LabelModel, texts: list[str], k: int) -> Iterator[Ranked]:
    """Yield the likeliest labels of each text, none for a blank one."""
    from foreword.cli.labelled import lines_for

    found = iter(model.predict_best(lines_for(model, [text for text in texts if text.strip()]), k))
    for text in texts:
        yield list(next(found)) if text.strip() else []


def _threshold(model: LabelModel) -> float | None:
    """Return the least probability of a predicted label, for a classifier with several labels per text."""
    from foreword.classify.one_vs_rest import OneVsRest

    inner = getattr(model, "model", None)
    return inner.threshold if isinstance(inner, OneVsRest) else None


def reached(ranks: Ranked, least: float | None) -> Ranked:
    """Return the labels whose probability is at least ``least``, all of them if that is None."""
    return ranks if least is None else [(label, value) for label, value in ranks if value >= least]


def as_line(ranks: Ranked, probabilities: bool) -> str:
    """Return the labels of one text as a line, with their probabilities if asked for."""
    return "\t".join(f"{label}\t{value:.6g}" if probabilities else str(label) for label, value in ranks) + "\n"


def _warn_of_labels(lines: list[str], model: LabelModel, file: str) -> None:
    """Warn where the lines begin with labels, which would be read as words."""
    from foreword.cli.printing import print_message

    names = {str(name) for name in model.classes_}
    if lines and all("\t" in line and line.split("\t")[0] in names for line in lines):
        print_message(f"{file}: the lines begin with labels, which are read as words: --format tsv reads columns")


def _known(labels: list[str], model: LabelModel) -> list[str]:
    """Return the labels; refuse one that the model does not know."""
    names = [str(name) for name in model.classes_]
    for label in labels:
        if label not in names:
            shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
            raise SettingError(f"--label {label}: no label of the model; it has {shown}")
    return labels


def as_shares(ranks: Ranked, wanted: list[str]) -> str:
    """Return the probabilities of the wanted labels as a line; that of a blank text is blank."""
    chances = dict(ranks)
    return "\t".join(f"{chances.get(label, 0.0):.6g}" for label in wanted if ranks) + "\n"


def as_facts(ranks: Ranked, k: int, wanted: Sequence[str] = (), least: float | None = None) -> dict[str, Any]:
    """Return the likeliest label and its probability, those of the wanted labels, and if k is not 0 the k best.

    least: not None for a classifier with several labels, whose labels of at least this probability are listed.
    """
    if least is None or not ranks:
        label, value = ranks[0] if ranks else (None, None)
        found: dict[str, Any] = {"predicted": label, "probability": value}
    else:
        pairs = reached(ranks, least)
        found = {"predicted": [label for label, _ in pairs], "probability": [value for _, value in pairs]}
    chances = dict(ranks)
    found |= {f"p({label})": chances.get(label, 0.0) if ranks else None for label in wanted}
    return {**found, "probabilities": dict(ranks[:k])} if k else found
