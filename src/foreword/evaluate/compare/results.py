"""What a comparison tells: events while it runs, a row a model, and everything together at the end.

Values only. ``compare.py`` makes them; the command line, its JSON and the report read them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TypeAlias

from foreword.evaluate.compare.facts import TextFacts
from foreword.evaluate.compare.growth import Growth
from foreword.evaluate.compare.mixing import Mixed
from foreword.evaluate.compare.sampling import Sampled
from foreword.evaluate.compare.wordlists import Merged, Neighbourhood
from foreword.measures.perplexity import Measures, finite
from foreword.protocols import Json


@dataclass(frozen=True, slots=True)
class Plan:
    """The models that will be trained, in their order."""

    titles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is: ``done`` of ``total`` steps, and what comes now.

    model: the place in the plan of the model it is about, if it is about one.
    share: how much of that model's training is done, 0 to 1, and left: seconds until it is; None where not known.
    """

    phase: str
    done: int
    total: int
    model: int | None = None
    share: float | None = None
    left: float | None = None


@dataclass(frozen=True, slots=True)
class Resumed:
    """Models that an earlier run had finished before it was stopped; they are not trained again."""

    titles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """How a network learnt. Perplexities over seconds of training.

    train: (seconds, perplexity) of the stretches that were just learnt from, as the training saw them: with dropout,
    and in a large vocabulary by drawn words. valid: the same of the tuning part, whenever a look at it found a new
    best.
    """

    train: tuple[tuple[float, float], ...] = ()
    valid: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Gates:
    """A gate's name → a row a token of the passage's beginning, a number from 0 to 1 for each unit."""

    tokens: tuple[str, ...]
    traces: dict[str, tuple[tuple[float, ...], ...]]


@dataclass(frozen=True, slots=True)
class Row:
    """One model's line of the table, measured on the test part, and what was seen inside it.

    parameters: how many numbers the saved model holds. disk_bytes: what its folder weighs.
    surprisal: bits for each piece of the passage in the text's facts.
    curve: how it learnt, for networks. gradient: for recurrent ones, how much a word so many steps back is taught by
    one loss: the mean norm at lag 0, 1, 2, …. gates: for those that have some, on the passage.
    """

    name: str
    title: str
    measures: Measures
    parameters: int
    disk_bytes: int
    train_seconds: float
    train_tokens_per_second: float
    score_tokens_per_second: float
    sample: str
    surprisal: tuple[float, ...]
    curve: Curve | None = None
    gradient: tuple[float, ...] = ()
    gates: Gates | None = None

    def to_json(self) -> dict[str, Json]:
        """The measures stand among the other keys, as ``foreword evaluate`` prints them; infinite numbers are null."""
        told: dict[str, Json] = {
            "name": self.name,
            "title": self.title,
            **self.measures.to_json(),
            "parameters": self.parameters,
            "disk_bytes": self.disk_bytes,
            "train_seconds": self.train_seconds,
            "train_tokens_per_second": self.train_tokens_per_second,
            "score_tokens_per_second": self.score_tokens_per_second,
            "sample": self.sample,
            "surprisal": [finite(bits) for bits in self.surprisal],
        }
        if self.curve is not None:
            told["learning"] = {
                part: [[seconds, finite(perplexity)] for seconds, perplexity in points]
                for part, points in (("train", self.curve.train), ("valid", self.curve.valid))
            }
        if self.gradient:
            told["gradient_by_lag"] = [finite(norm) for norm in self.gradient]
        if self.gates is not None:
            means: dict[str, Json] = {
                name: [sum(units) / len(units) for units in trace] for name, trace in self.gates.traces.items()
            }
            told["gates"] = {"tokens": list(self.gates.tokens), "means": means}
        return told


@dataclass(frozen=True, slots=True)
class Comparison:
    """A text and what every model made of it.

    left_out: names of models that need torch, which is not there. sampled: where the text was too large to take whole.
    growth: the n-grams of the training part, order by order, and which share of the test part's they lack; none for a
    text of too many tokens. mixed: the two models that are best together. neighbours: words and those nearest to them.
    merges: how byte-pair encoding would cut this text.
    """

    text: TextFacts
    rows: tuple[Row, ...]
    left_out: tuple[str, ...] = ()
    growth: tuple[Growth, ...] = ()
    sampled: Sampled | None = None
    mixed: Mixed | None = None
    neighbours: tuple[Neighbourhood, ...] = ()
    merges: Merged | None = None

    def to_json(self) -> dict[str, Json]:
        told: dict[str, Json] = {"text": self.text.to_json(), "models": [row.to_json() for row in self.rows]}
        if self.growth:
            told["ngrams"] = [each.to_json() for each in self.growth]
        if self.sampled is not None:
            told["sampled"] = asdict(self.sampled)
        if self.mixed is not None:
            told["interpolation"] = self.mixed.to_json()
        if self.neighbours:
            told["nearest"] = {each.word: [list(pair) for pair in each.nearest] for each in self.neighbours}
        if self.merges is not None:
            told["merges"] = self.merges.to_json()
        return told | ({"left_out": list(self.left_out)} if self.left_out else {})


Event: TypeAlias = Plan | Progress | Sampled | TextFacts | Resumed | Row | Comparison
