"""What a comparison reports: events while it runs, one row per model, and everything together at the end.

Values only. ``ladder.py`` makes them; the command line, its JSON and the report read them.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from html import escape
from typing import TypeAlias

from foreword.measures.perplexity import Measures, finite
from foreword.notebook import ShownInNotebook, html_table
from foreword.protocols import Json

# Events while it runs


@dataclass(frozen=True, slots=True)
class Plan:
    """The models that will be trained, in their order."""

    titles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComparisonProgress:
    """The state of a comparison: ``done`` of ``total`` steps, and the phase that begins now.

    model: the index in the plan of the model in question, if there is one.
    share: the share of that model's training that is done, 0 to 1; left: seconds until it is; None if not known.
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


# About the text


@dataclass(frozen=True, slots=True)
class Sampled:
    """How much of a text there was, and how much of it was taken; one byte is counted for the end of each document."""

    documents: int
    bytes: int
    kept_documents: int
    kept_bytes: int


@dataclass(frozen=True, slots=True)
class Passage:
    """Some text, token by token.

    pieces: one for each token, that spell the text when joined; a token that ends within a character has an empty one.
    unknown: indices of the pieces that are words outside the vocabulary.
    """

    pieces: tuple[str, ...]
    unknown: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TextFacts:
    """A text in numbers.

    unit: what is counted, ``word``, or ``character`` where the text is written without spaces.
    documents: without blank ones. bytes: their UTF-8, and one for the end of each line.
    units, types, once: the number of units, of different ones, and of different ones that occur a single time.
    frequencies: (rank, count) from the commonest unit to the rarest, thinned out.
    landmarks: (rank, unit) at ranks 1, 10, 100, ...
    vocabulary: tokens every model may predict, ``<unk>`` and ``</s>`` among them.
    train_tokens, valid_tokens, test_tokens: the number of ids in each part, one ``</s>`` per document included.
    test_share: the share of the test part that is read, where the networks have no time for all of it.
    test_documents, test_unknown: how many documents are tested on, and how many of their tokens are ``<unk>``.
    tokens: what a token is, in words. digest: SHA-256 of the documents, one per line, by which a text is recognised.
    passage: the beginning of a test document, for every model to read.
    """

    name: str
    unit: str
    documents: int
    bytes: int
    units: int
    types: int
    once: int
    frequencies: tuple[tuple[int, int], ...]
    landmarks: tuple[tuple[int, str], ...]
    vocabulary: int
    train_tokens: int
    valid_tokens: int
    test_tokens: int
    test_share: float
    test_documents: int
    test_unknown: int
    tokens: str
    digest: str
    passage: Passage

    @property
    def unknown_share(self) -> float:
        """The share of test tokens that are ``<unk>``."""
        return self.test_unknown / max(1, self.test_tokens)

    def to_json(self) -> dict[str, Json]:
        """Return the facts as JSON can hold them."""
        return asdict(self) | {"unknown_share": self.unknown_share}


@dataclass(frozen=True, slots=True)
class Growth:
    """The n-grams of one order.

    possible: how many there could be, the vocabulary to the power of the order.
    seen: how many different ones the training text has; once: how many of those it has a single time.
    unseen_share: of the n-grams of the test text, one for each position, those that the training text does not have;
    NaN where the test text has no n-gram of that order.
    """

    order: int
    possible: int
    seen: int
    once: int
    unseen_share: float

    def to_json(self) -> dict[str, Json]:
        """Return the numbers with null for NaN."""
        return asdict(self) | {"unseen_share": None if math.isnan(self.unseen_share) else self.unseen_share}


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A word, and the words nearest to it with their cosines."""

    word: str
    nearest: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """Byte-pair merges. first: (left, right, count of the pair), in the order they were merged. learnt: the number of
    all. stages: (merges, the sentence in tokens) with more and more merges.
    """

    first: tuple[tuple[str, str, int], ...]
    learnt: int
    stages: tuple[tuple[int, tuple[str, ...]], ...]

    def to_json(self) -> dict[str, Json]:
        """Return the merges as JSON can hold them."""
        return {
            "first": [list(merge) for merge in self.first],
            "learnt": self.learnt,
            "stages": [{"merges": merges, "tokens": list(tokens)} for merges, tokens in self.stages],
        }


# About the models


@dataclass(frozen=True, slots=True)
class Curve:
    """How a network learnt: (seconds of training, perplexity).

    train: of the chunks that were just learnt from, as the training saw them: with dropout, and in a large vocabulary
    by sampled words. valid: of the tuning part, at each evaluation that found a new best.
    """

    train: tuple[tuple[float, float], ...] = ()
    valid: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Gates:
    """A gate's name → one row per token of the passage's beginning, a number from 0 to 1 for each unit."""

    tokens: tuple[str, ...]
    traces: dict[str, tuple[tuple[float, ...], ...]]


@dataclass(frozen=True, slots=True)
class Row:
    """One model's line of the table, measured on the test part, and what was seen inside it.

    interval: of the perplexity, 95 % by the bootstrap over test documents.
    parameters: the number of numbers in the saved model. disk_bytes: the size of its folder.
    epochs: how often it read the training part; a network may stop within one. train_tokens_per_second: tokens that it
    read in a second of training, those of all epochs.
    surprisal: bits for each piece of the passage in the text's facts.
    curve: how it learnt, for networks. gradient: for recurrent ones, the mean norm of one loss's gradient at the word
    0, 1, 2, … steps back. gates: for those that have some, on the passage.
    """

    name: str
    title: str
    measures: Measures
    interval: tuple[float, float]
    parameters: int
    disk_bytes: int
    train_seconds: float
    epochs: float
    train_tokens_per_second: float
    score_tokens_per_second: float
    sample: str
    surprisal: tuple[float, ...]
    curve: Curve | None = None
    gradient: tuple[float, ...] = ()
    gates: Gates | None = None

    def to_json(self) -> dict[str, Json]:
        """Return one flat object, the measures among its keys as ``foreword evaluate`` prints them; ∞ is null."""
        row: dict[str, Json] = {
            "name": self.name,
            "title": self.title,
            **self.measures.to_json(),
            "perplexity_interval": [finite(edge) for edge in self.interval],
            "parameters": self.parameters,
            "disk_bytes": self.disk_bytes,
            "train_seconds": self.train_seconds,
            "epochs": self.epochs,
            "train_tokens_per_second": self.train_tokens_per_second,
            "score_tokens_per_second": self.score_tokens_per_second,
            "sample": self.sample,
            "surprisal": [finite(bits) for bits in self.surprisal],
        }
        if self.curve is not None:
            row["learning"] = {
                part: [[seconds, finite(perplexity)] for seconds, perplexity in points]
                for part, points in (("train", self.curve.train), ("valid", self.curve.valid))
            }
        if self.gradient:
            row["gradient_by_lag"] = [finite(norm) for norm in self.gradient]
        if self.gates is not None:
            means: dict[str, Json] = {
                name: [sum(units) / len(units) for units in trace] for name, trace in self.gates.traces.items()
            }
            row["gates"] = {"tokens": list(self.gates.tokens), "means": means}
        return row


@dataclass(frozen=True, slots=True)
class Mixed:
    """Two models and the weight of the first. perplexity: of the mixture on the test part; alone: of each of the two.

    weights, curve: the test perplexity at weights from 0, the second model alone, to 1, the first.
    """

    names: tuple[str, str]
    weight: float
    perplexity: float
    alone: tuple[float, float]
    weights: tuple[float, ...]
    curve: tuple[float, ...]

    def to_json(self) -> dict[str, Json]:
        """Return the mixture as JSON can hold it."""
        return {
            "models": list(self.names),
            "weights": [self.weight, 1 - self.weight],
            "perplexity": finite(self.perplexity),
            "alone": [finite(each) for each in self.alone],
            "curve": [[weight, finite(each)] for weight, each in zip(self.weights, self.curve, strict=True)],
        }


@dataclass(frozen=True, slots=True)
class Lead:
    """The best model and the next best. ratio: the latter's perplexity divided by the former's; interval: 95 % of it,
    by the bootstrap over test documents.
    """

    best: str
    next_best: str
    ratio: float
    interval: tuple[float, float]

    def to_json(self) -> dict[str, Json]:
        """Return the lead as JSON can hold it."""
        edges: list[Json] = [finite(edge) for edge in self.interval]
        return {"best": self.best, "next_best": self.next_best, "ratio": finite(self.ratio), "interval": edges}


@dataclass(frozen=True, slots=True)
class Comparison(ShownInNotebook):
    """A text and what every model made of it.

    left_out: names of models that need torch, which is not installed. sampled: where the text was too large to take
    whole. growth: the n-grams of the training part, order by order, and which share of the test part's they lack; none
    for a text of too many tokens. mixed: the two models that are best together. neighbours: words and those nearest to
    them. merges: how byte-pair encoding would tokenize this text. lead: how far the best model is ahead; None for one
    model. conclusion: what won, why, and what to try next, in a few sentences (``conclusion.py``).
    """

    text: TextFacts
    rows: tuple[Row, ...]
    left_out: tuple[str, ...] = ()
    growth: tuple[Growth, ...] = ()
    sampled: Sampled | None = None
    mixed: Mixed | None = None
    neighbours: tuple[Neighbourhood, ...] = ()
    merges: Merged | None = None
    lead: Lead | None = None
    conclusion: str = ""

    def _repr_html_(self) -> str:
        columns = ("model", "perplexity", "95 % interval", "bits per byte", "parameters", "epochs", "learnt in s")
        rows = [
            (
                row.title,
                row.measures.perplexity,
                "–".join(f"{edge:.3g}" for edge in row.interval),
                row.measures.bits_per_byte,
                row.parameters,
                row.epochs,
                row.train_seconds,
            )
            for row in self.rows
        ]
        return html_table(self.text.name, columns, rows) + f"<p>{escape(self.conclusion)}</p>"

    def to_json(self) -> dict[str, Json]:
        """Return the whole comparison, without the keys of what was not measured."""
        whole: dict[str, Json] = {"text": self.text.to_json(), "models": [row.to_json() for row in self.rows]}
        if self.growth:
            whole["ngrams"] = [each.to_json() for each in self.growth]
        if self.sampled is not None:
            whole["sampled"] = asdict(self.sampled)
        if self.mixed is not None:
            whole["interpolation"] = self.mixed.to_json()
        if self.neighbours:
            whole["nearest"] = {each.word: [list(pair) for pair in each.nearest] for each in self.neighbours}
        if self.merges is not None:
            whole["merges"] = self.merges.to_json()
        if self.lead is not None:
            whole["lead"] = self.lead.to_json()
        if self.conclusion:
            whole["conclusion"] = self.conclusion
        return whole | ({"left_out": list(self.left_out)} if self.left_out else {})


Event: TypeAlias = Plan | ComparisonProgress | Sampled | TextFacts | Resumed | Row | Comparison
