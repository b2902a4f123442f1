"""The measures of ``foreword evaluate``, for people: a few figures, and tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from foreword.evaluate.classification import Confusion
    from foreword.evaluate.vectors import AnalogyMeasures, SimilarityMeasures
    from foreword.measures.perplexity import Measures
    from foreword.protocols import Json, Meter
    from foreword.vectors.wordvectors import WordVectors

# Language models


def print_measures(measures: Measures, how: dict[str, Json] | None = None) -> None:
    """Print perplexity, bits per byte and unknown words. how: the settings of a way of scoring."""
    from foreword.cli.printing import print_facts
    from foreword.picture.picture import readable

    share = measures.oov / measures.tokens
    title = "networks with dropout" if how is not None and how["kind"] == "mc" else "adapted to the text"
    rows = {} if how is None else {title: settings_in_words(how)}
    rows |= {
        "perplexity": readable(measures.perplexity),
        "without unknown words": readable(measures.perplexity_excluding_oov),
        "bits per byte": readable(measures.bits_per_byte),
        "unknown words": f"{measures.oov:,} ({share:.2%})",
        "tokens": f"{measures.tokens:,}",
        "documents": f"{measures.documents:,}",
    }
    print_facts(rows, justify="right")


def settings_in_words(how: dict[str, Json]) -> str:
    """Describe a way of scoring: the kind and its numbers."""
    numbers = ", ".join(f"{name} {value:.4g}" for name, value in how.items() if isinstance(value, int | float))
    return f"{str(how['kind']).replace('-', ' ')}: {numbers}"


# Classifiers

MOST_CLASSES = 40
MOST_CONFUSED = 10
"""The most classes for which a table or a confusion matrix is printed; --json always has them."""


def print_confusion(measures: Confusion, title: str | None = None) -> None:
    """Print accuracy, F1 per class and the most frequent confusions."""
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
    """Return a line about labels that were not in the training data."""
    if not measures.unseen:
        return None
    named = ", ".join(f"{label} ({count})" for label, count in list(measures.unseen.items())[:5])
    more = f" and {len(measures.unseen) - 5} more" if len(measures.unseen) > 5 else ""
    return f"labels never seen in training, whose texts count as wrong: {named}{more}"


# Word vectors

DEFAULT_SETS = ("questions-words", "word-sim")


@dataclass(frozen=True, slots=True)
class VectorMeasures:
    """Measures by the names of their sets."""

    analogies: dict[str, AnalogyMeasures]
    similarities: list[SimilarityMeasures]

    def to_json(self) -> dict[str, Json]:
        """Return the measures by set; accuracy: of the first set of analogies, null without one."""
        first = next(iter(self.analogies.values()), None)
        return {
            "accuracy": None if first is None else first.accuracy,
            "analogies": {name: measures.to_json() for name, measures in self.analogies.items()},
            "similarity": [measures.to_json() for measures in self.similarities],
        }


def measure_vectors(vectors: WordVectors, names: list[str], meter: Meter | None) -> VectorMeasures:
    """Measure on sets by name, and on files: questions if they have headings with a colon, else pairs of words."""
    from foreword.cli.texts import is_dataset
    from foreword.evaluate.vectors import measure_analogies, measure_similarity, read_pairs, read_questions
    from foreword.text.datasets import dataset

    analogies: dict[str, AnalogyMeasures] = {}
    similarities: list[SimilarityMeasures] = []
    for name in names or DEFAULT_SETS:
        files = {name: name}
        if is_dataset(name):
            head, colon, split = name.partition(":")
            found = dataset(head)
            splits = [split] if colon else list(found.splits)
            files = {
                one if len(found.splits) > 1 else head: str(found.path(found.file(one).split, meter=meter))
                for one in splits
            }
        for title, path in files.items():
            if _has_headings(path):
                analogies[title] = measure_analogies(vectors, read_questions(path))
            else:
                similarities.append(measure_similarity(vectors, read_pairs(path), name=title))
    return VectorMeasures(analogies, similarities)


def _has_headings(path: str) -> bool:
    from foreword.text.sources import read_lines

    return next((line for line in read_lines(path) if line.strip()), "").startswith(":")


def print_vector_measures(measured: VectorMeasures) -> None:
    """Print the share of analogies answered and the rank correlations with human judgements."""
    from foreword.cli.printing import plain_table, print_table

    for name, measures in measured.analogies.items():
        title = f"{name}, {measures.vocabulary:,} words"
        numbers = ("right", "asked", "accuracy", "skipped")
        table = plain_table("section", *numbers, numbers=numbers, title=title)
        for section in (*measures.sections, measures.semantic, measures.syntactic, measures.total):
            shown = (f"{section.right:,}", f"{section.asked:,}", f"{section.accuracy:.1%}", f"{section.skipped:,}")
            table.add_row(section.name or "questions", *shown)
        print_table(table)
    if measured.similarities:
        table = plain_table("word similarity", "Spearman", "pairs", "unknown", numbers=("Spearman", "pairs", "unknown"))
        for each in measured.similarities:
            table.add_row(each.name, f"{each.spearman:.3f}", f"{each.pairs:,}", f"{each.oov:,}")
        print_table(table)
