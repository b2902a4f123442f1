"""How right a tagger is, and what each group of its features is worth.

The table of ``ablation`` takes one group away at a time, and then leaves one alone at a time. The two say different
things: a group that does well alone may hardly be missed, because others tell the same (a word's ending follows from
the word), and one that is missed may do badly alone (the tag before).

How many spans are found: precision, recall and F1 of names or chunks, of each kind and of all.

    precision = right / predicted    recall = right / gold    F1 = 2 · right / (predicted + gold)

A span is right if its kind and both its ends are. Micro counts all spans together, as the CoNLL tasks do; macro is the
mean over kinds, each counting the same; weighted is that mean with each kind counting as often as it is in the truth.
A share of nothing is zero.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from foreword.errors import InputError
from foreword.evaluate.classification import Confusion, confusion
from foreword.protocols import Json, Sentences, Tags, TreebankTagger
from foreword.tag.conllu import Tagged
from foreword.tag.features import ALL_GROUPS, FeatureTagger
from foreword.tag.schemes import Span, letters_of, read_spans, whole_spans
from foreword.tag.tagger import Accuracies, accuracies_of, check_pairs


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


@dataclass(frozen=True, slots=True)
class SpanCounts:
    """Spans of one kind, or of all: those in both, those predicted, those in the truth."""

    kind: str
    right: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        return _share(self.right, self.predicted)

    @property
    def recall(self) -> float:
        return _share(self.right, self.gold)

    @property
    def f1(self) -> float:
        return _share(2 * self.right, self.predicted + self.gold)

    def to_json(self) -> dict[str, Json]:
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "right": self.right,
            "predicted": self.predicted,
            "gold": self.gold,
        }


@dataclass(frozen=True, slots=True)
class Averages:
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class SpanMeasures:
    """micro: all spans together; kinds: each kind in the predictions or in the truth, by name."""

    micro: SpanCounts
    kinds: tuple[SpanCounts, ...]

    @property
    def macro(self) -> Averages:
        return _averages(self.kinds, [1] * len(self.kinds))

    @property
    def weighted(self) -> Averages:
        return _averages(self.kinds, [kind.gold for kind in self.kinds])

    def to_json(self) -> dict[str, Json]:
        means: dict[str, Json] = {
            name: {"precision": mean.precision, "recall": mean.recall, "f1": mean.f1}
            for name, mean in (("macro", self.macro), ("weighted", self.weighted))
        }
        return {"micro": self.micro.to_json(), **means, "kinds": {kind.kind: kind.to_json() for kind in self.kinds}}


def measure_spans(predicted: Tags, gold: Tags, *, scheme: str | None = None) -> SpanMeasures:
    """Compare the spans of tagged sentences.

    Without a scheme both sides are read generously, as the CoNLL tasks do: a span may begin with I-. With one, ``bio``,
    ``iob1`` or ``bioes``, only spans that are written as it has them count.
    """
    if scheme is not None:
        letters_of(scheme)
    if len(predicted) != len(gold):
        raise InputError(f"{len(predicted)} sentences are predicted but {len(gold)} are in the truth")
    right, said, true = Counter[str](), Counter[str](), Counter[str]()
    for place, (ours, theirs) in enumerate(zip(predicted, gold, strict=True)):
        if len(ours) != len(theirs):
            raise InputError(f"sentence {place} has {len(ours)} predicted tags but {len(theirs)} in the truth")
        found, wanted = _spans(ours, scheme), _spans(theirs, scheme)
        said.update(span.kind for span in found)
        true.update(span.kind for span in wanted)
        right.update(span.kind for span in found & wanted)
    kinds = (SpanCounts(kind, right[kind], said[kind], true[kind]) for kind in sorted(said | true))
    return SpanMeasures(SpanCounts("all", right.total(), said.total(), true.total()), tuple(kinds))


def _spans(tags: Sequence[str], scheme: str | None) -> set[Span]:
    return set(read_spans(tags) if scheme is None else whole_spans(tags, scheme))


def _averages(kinds: tuple[SpanCounts, ...], weights: list[int]) -> Averages:
    total = sum(weights)
    pairs = list(zip(kinds, weights, strict=True))
    return Averages(
        _share(sum(kind.precision * weight for kind, weight in pairs), total),
        _share(sum(kind.recall * weight for kind, weight in pairs), total),
        _share(sum(kind.f1 * weight for kind, weight in pairs), total),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
