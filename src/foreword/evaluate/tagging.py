"""Evaluation of taggers: accuracy, the spans they find, and what each group of features is worth.

A span (a name or a chunk) is right if its kind and both its ends are:

    precision = right / predicted    recall = right / gold    F1 = 2 · right / (predicted + gold)

Micro counts all spans together, as the CoNLL tasks do; macro is the mean over kinds; weighted is that mean with each
kind weighted by its spans in the truth. 0/0 counts as 0.

``ablation`` leaves out one group of features at a time, and then uses one alone at a time. The two say different
things: a group that does well alone may hardly be missed, because others encode the same (a word's suffix follows from
the word), and one that is missed may do badly alone (the previous tag).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from foreword.errors import InputError
from foreword.evaluate.classification import Confusion, confusion, share
from foreword.measures.perplexity import finite
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json, Sentences, Tags, TreebankTagger
from foreword.tag.attributes import WORD_GROUPS
from foreword.tag.conllu import Tagged
from foreword.tag.features import FeatureTagger
from foreword.tag.schemes import Span, letters_of, read_as, read_spans, whole_spans
from foreword.tag.tagger import Accuracies, accuracies_of, check_pairs


@dataclass(frozen=True, slots=True)
class TagMeasures(ShownInNotebook):
    """The measures of a tagger. sentences_right: those without a mistake. spans: if its tags are those of a scheme."""

    accuracies: Accuracies
    confusion: Confusion
    sentences: int
    sentences_right: int
    spans: SpanMeasures | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the measures; ``known_accuracy`` and ``unknown_accuracy`` are null if there is no such word."""
        spans: dict[str, Json] = {} if self.spans is None else {"spans": self.spans.to_json()}
        return {
            **spans,
            "accuracy": self.accuracies.all,
            "accuracy_interval": list(self.confusion.interval),
            "known_accuracy": finite(self.accuracies.known),
            "unknown_accuracy": finite(self.accuracies.unknown),
            "unknown_share": self.accuracies.unknown_share,
            "f1": self.confusion.macro_f1,
            "tokens": self.confusion.texts,
            "right": self.confusion.right,
            "sentences": self.sentences,
            "sentences_right": self.sentences_right,
            "unseen_tags": dict(self.confusion.unseen),
            "tags": {
                tag.label: {
                    "precision": tag.precision,
                    "recall": tag.recall,
                    "f1": tag.f1,
                    "tokens": tag.texts,
                    "predicted": tag.predicted,
                }
                for tag in self.confusion.classes
            },
        }


def measure_tagger(tagger: TreebankTagger, sentences: Sentences, tags: Tags) -> TagMeasures:
    """Tag sentences and compare with their tags."""
    check_pairs(sentences, tags)
    scheme = getattr(tagger, "scheme", None)
    if scheme is not None:  # the truth may be written in another scheme, or not well formed
        tags = [read_as(each, scheme) for each in tags]
    predicted = tagger.predict(sentences)
    accuracies = accuracies_of(predicted, sentences, tags, tagger.knows)
    truth, named = (list(chain.from_iterable(each)) for each in (tags, predicted))
    right = sum(list(ours) == list(theirs) for ours, theirs in zip(predicted, tags, strict=True))
    spans = None if scheme is None else measure_spans(predicted, tags)
    return TagMeasures(accuracies, confusion(truth, named, known=set(tagger.tags_)), len(sentences), right, spans)


@dataclass(frozen=True, slots=True)
class Ablated:
    """A tagger with some groups of features. name: such as ``without suffix``. features: those with a weight."""

    name: str
    groups: tuple[str, ...]
    features: int
    accuracies: Accuracies


def ablation(train: Tagged, test: Tagged, groups: Sequence[str] = WORD_GROUPS, **settings: Any) -> Iterator[Ablated]:
    """Train with all groups, without each, with each alone, and with none, and measure each time."""
    trials = {"all": tuple(groups)}
    trials |= {f"without {left_out}": tuple(group for group in groups if group != left_out) for left_out in groups}
    trials |= {f"only {group}": (group,) for group in groups}
    trials |= {"none": ()}
    for name, chosen in trials.items():
        tagger = FeatureTagger(chosen, **settings).fit(*train)
        yield Ablated(name, chosen, len(tagger.weights_), tagger.accuracies(*test))


# Spans


@dataclass(frozen=True, slots=True)
class SpanCounts:
    """Counts of spans of one kind, or of all: right, predicted, and in the truth."""

    kind: str
    right: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        """The share of predicted spans that are right."""
        return share(self.right, self.predicted)

    @property
    def recall(self) -> float:
        """The share of the truth that was found."""
        return share(self.right, self.gold)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return share(2 * self.right, self.predicted + self.gold)

    def to_json(self) -> dict[str, Json]:
        """Return the shares and the counts."""
        counts: dict[str, Json] = {"right": self.right, "predicted": self.predicted, "gold": self.gold}
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, **counts}


@dataclass(frozen=True, slots=True)
class Averages:
    """Means over kinds of spans."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class SpanMeasures(ShownInNotebook):
    """The measures of spans. micro: all together; kinds: each kind in the predictions or in the truth, by name."""

    micro: SpanCounts
    kinds: tuple[SpanCounts, ...]

    @property
    def macro(self) -> Averages:
        """The mean over kinds."""
        return _averages(self.kinds, [1] * len(self.kinds))

    @property
    def weighted(self) -> Averages:
        """The mean over kinds, weighted by their spans in the truth."""
        return _averages(self.kinds, [kind.gold for kind in self.kinds])

    def to_json(self) -> dict[str, Json]:
        """Return micro, macro and weighted measures, and those of each kind."""
        means: dict[str, Json] = {"macro": asdict(self.macro), "weighted": asdict(self.weighted)}
        return {"micro": self.micro.to_json(), **means, "kinds": {kind.kind: kind.to_json() for kind in self.kinds}}


def measure_spans(predicted: Tags, gold: Tags, *, scheme: str | None = None) -> SpanMeasures:
    """Compare the spans of tagged sentences.

    Without a scheme both sides are read leniently, as the CoNLL tasks do: a span may begin with I-. With one, ``bio``,
    ``iob1`` or ``bioes``, only spans that follow it count.
    """
    if scheme is not None:
        letters_of(scheme)
    if len(predicted) != len(gold):
        raise InputError(f"{len(predicted)} sentences are predicted but {len(gold)} are in the truth")
    right, named, true = Counter[str](), Counter[str](), Counter[str]()
    for number, (ours, theirs) in enumerate(zip(predicted, gold, strict=True)):
        if len(ours) != len(theirs):
            raise InputError(f"sentence {number} has {len(ours)} predicted tags but {len(theirs)} in the truth")
        found, wanted = _spans(ours, scheme), _spans(theirs, scheme)
        named.update(span.kind for span in found)
        true.update(span.kind for span in wanted)
        right.update(span.kind for span in found & wanted)
    kinds = (SpanCounts(kind, right[kind], named[kind], true[kind]) for kind in sorted(named | true))
    return SpanMeasures(SpanCounts("all", right.total(), named.total(), true.total()), tuple(kinds))


def _spans(tags: Sequence[str], scheme: str | None) -> set[Span]:
    return set(read_spans(tags) if scheme is None else whole_spans(tags, scheme))


def _averages(kinds: tuple[SpanCounts, ...], weights: list[int]) -> Averages:
    total = sum(weights)
    pairs = list(zip(kinds, weights, strict=True))
    return Averages(
        share(sum(kind.precision * weight for kind, weight in pairs), total),
        share(sum(kind.recall * weight for kind, weight in pairs), total),
        share(sum(kind.f1 * weight for kind, weight in pairs), total),
    )
