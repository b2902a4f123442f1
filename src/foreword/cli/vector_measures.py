"""What ``foreword evaluate`` says of word vectors: analogies answered, and similarity as people judge it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foreword.evaluate.vectors import AnalogyMeasures, SimilarityMeasures
    from foreword.protocols import Json, Meter
    from foreword.vectors.wordvectors import WordVectors

DEFAULT_SETS = ("questions-words", "word-sim")


@dataclass(frozen=True, slots=True)
class VectorMeasures:
    """Measures by the names of their sets."""

    analogies: dict[str, AnalogyMeasures]
    similarities: list[SimilarityMeasures]

    def to_json(self) -> dict[str, Json]:
        """accuracy: of the first set of analogies, null without one; everything else by its set."""
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
