"""How right a tagger is, and what each group of its features is worth.

The table of ``ablation`` takes one group away at a time, and then leaves one alone at a time. The two say different
things: a group that does well alone may hardly be missed, because others tell the same (a word's ending follows from
the word), and one that is missed may do badly alone (the tag before).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from foreword.evaluate.classification import Confusion, confusion
from foreword.evaluate.spans import SpanMeasures, measure_spans
from foreword.protocols import Json, Sentences, Tags, TreebankTagger
from foreword.tag.accuracy import Accuracies, accuracies_of, check_pairs
from foreword.tag.conllu import Tagged
from foreword.tag.features import ALL_GROUPS, FeatureTagger


@dataclass(frozen=True, slots=True)
class TagMeasures:
    """What a tagger makes of a tagged text. sentences_right: those without a mistake. spans: where its tags are those
    of a scheme.
    """

    accuracies: Accuracies
    confusion: Confusion
    sentences: int
    sentences_right: int
    spans: SpanMeasures | None = None

    def to_json(self) -> dict[str, Json]:
        """``known_accuracy`` and ``unknown_accuracy`` are null where there is no such word."""
        spans: dict[str, Json] = {} if self.spans is None else {"spans": self.spans.to_json()}
        return {
            **spans,
            "accuracy": self.accuracies.all,
            "accuracy_interval": list(self.confusion.interval),
            "known_accuracy": _finite(self.accuracies.known),
            "unknown_accuracy": _finite(self.accuracies.unknown),
            "unknown_share": self.accuracies.unknown_share,
            "f1": self.confusion.macro_f1,
            "tokens": self.confusion.texts,
            "right": self.confusion.right,
            "sentences": self.sentences,
            "sentences_right": self.sentences_right,
            "unseen_tags": dict(self.confusion.unseen),
            "tags": {
                each.label: {
                    "precision": each.precision,
                    "recall": each.recall,
                    "f1": each.f1,
                    "tokens": each.texts,
                    "predicted": each.predicted,
                }
                for each in self.confusion.classes
            },
        }


def measure_tagger(tagger: TreebankTagger, sentences: Sentences, tags: Tags) -> TagMeasures:
    """Tag a text and compare."""
    check_pairs(sentences, tags)
    predicted = tagger.predict(sentences)
    accuracies = accuracies_of(predicted, sentences, tags, tagger.knows)
    truth, said = (list(chain.from_iterable(each)) for each in (tags, predicted))
    right = sum(list(ours) == list(theirs) for ours, theirs in zip(predicted, tags, strict=True))
    spans = None if getattr(tagger, "scheme", None) is None else measure_spans(predicted, tags)
    return TagMeasures(accuracies, confusion(truth, said, known=set(tagger.tags_)), len(sentences), right, spans)


@dataclass(frozen=True, slots=True)
class Ablated:
    """A tagger with some groups of features. name: as ``without suffix``. features: how many weigh something."""

    name: str
    groups: tuple[str, ...]
    features: int
    accuracies: Accuracies


def ablation(train: Tagged, test: Tagged, groups: Sequence[str] = ALL_GROUPS, **settings: Any) -> Iterator[Ablated]:
    """Train with all groups, without each, with each alone, and with none, and measure each time."""
    trials = {"all": tuple(groups)}
    trials |= {f"without {left_out}": tuple(group for group in groups if group != left_out) for left_out in groups}
    trials |= {f"only {group}": (group,) for group in groups}
    trials |= {"none": ()}
    for name, chosen in trials.items():
        tagger = FeatureTagger(chosen, **settings).fit(*train)
        yield Ablated(name, chosen, len(tagger.weights_), tagger.accuracies(*test))


def _finite(share: float) -> float | None:
    return None if math.isnan(share) else share
