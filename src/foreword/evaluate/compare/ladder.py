"""The ladder: every kind of language model on one text, one split, one vocabulary, and one measure.

``compare`` is a generator. The command line's table, its JSON and the report read the same events: how far it is,
what the text is, a row as soon as a model is done, and the whole comparison last. Who only wants that takes it with

    *_, comparison = compare(texts)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import foreword
from foreword.arrays import Doubles, Logs
from foreword.checks import check_not_string
from foreword.decode import generate
from foreword.errors import InputError, NotSaveableError, SettingError
from foreword.evaluate.compare.growth import ngram_growth
from foreword.evaluate.compare.insides import gradient_norms, layers_of, passage_gates
from foreword.evaluate.compare.mixing import best_pair
from foreword.evaluate.compare.results import Comparison, Curve, Event, Plan, Progress, Resumed, Row
from foreword.evaluate.compare.run_cache import Finished, Kept, Tolerant, run_name
from foreword.evaluate.compare.sampling import Streams
from foreword.evaluate.compare.setup import MOST_BYTES, Bench, prepare, take
from foreword.evaluate.compare.splits import Splits
from foreword.evaluate.compare.wordlists import merged, neighbourhoods
from foreword.hmm.model import HMM
from foreword.measures.perplexity import Measures, measure, surprisal
from foreword.ngram.model import NgramLM
from foreword.ngram.unigram import UnigramLM
from foreword.protocols import Json, LanguageModel, Saveable, Step, TextTokenizer, Tokenizer
from foreword.storage.folder import save
from foreword.tokens.corpus import Corpus


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of the ladder: a short name for the command line, a title for people, and how to make the model.

    neural: it needs torch, and learns for as long as it is given.
    """

    name: str
    title: str
    build: Callable[[], Any]
    neural: bool = False


def _recurrent(cell: str, rate: float) -> Callable[[], Any]:
    """Imported when it is built: torch takes a second, and need not be there."""

    def build() -> Any:
        from foreword.neural.recurrent import RecurrentLM

        training = replace(RecurrentLM.TRAINING, rate=rate)
        return RecurrentLM(cell, NEURAL_UNITS, NEURAL_UNITS, layers=1, training=training)

    return build


def _bengio() -> Any:
    from foreword.neural.bengio import BengioLM

    training = replace(BengioLM.TRAINING, rate=8e-3)
    return BengioLM(5, NEURAL_UNITS, NEURAL_UNITS, tied=True, training=training)


def _transformer() -> Any:
    from foreword.neural.transformer import TransformerLM

    training = replace(TransformerLM.TRAINING, rate=4e-3)
    return TransformerLM(NEURAL_UNITS, layers=2, heads=4, context=32, training=training)


NEURAL_UNITS = 128
"""Units of every neural model: small enough that two cores read the embedded text several times in half a minute."""

LADDER = [
    Rung("unigram", "Unigram", UnigramLM),
    Rung("bigram", "Bigram, Kneser-Ney", lambda: NgramLM(2)),
    Rung("trigram", "Trigram, Kneser-Ney", lambda: NgramLM(3)),
    Rung("5-gram", "5-gram, Kneser-Ney", lambda: NgramLM(5)),
    Rung("hmm", "HMM, 64 states", lambda: HMM(64, iterations=40, dtype="float32")),
    Rung("bengio", "Bengio’s network, 4 words", _bengio, neural=True),
    Rung("rnn", "RNN", _recurrent("rnn", 3e-3), neural=True),
    Rung("lstm", "LSTM", _recurrent("lstm", 8e-3), neural=True),
    Rung("gru", "GRU", _recurrent("gru", 6e-3), neural=True),
    Rung("transformer", "Transformer, 2 layers", _transformer, neural=True),
    Rung("min-gru", "Minimal GRU", _recurrent("min-gru", 1e-2), neural=True),
]
"""From the oldest idea to the newest. A model joins by adding its line."""

TIME_BUDGET = 180.0
"""Seconds for all models together, about."""

NEURAL_BATCH, NEURAL_STEPS, NEURAL_SAMPLED = 20, 20, 500
"""Places, words at a time and words drawn for the softmax: many small updates learn most in little time."""

LEAST_UPDATES, LOOK_AFTER, PATIENCE = 300, 30, 3
"""Updates that the smallest text gets; updates between two looks at the tuning part, at least; and looks that bring
nothing new, after which a neural model stops."""

SAMPLE_TOKENS = 60
"""A sample that is read at a glance."""

LEAST_SHARE, TESTING_SHARE = 0.1, 0.1
"""Of the budget that neural models get even if the others took it all; of the first one's part that is left for its
test, after which it is known how long that takes here."""

CLOSING_SHARE, ROUNDS_SHARE = 0.01, 0.15
"""Of the budget that is kept for what comes after the models, and that a model may take which learns in rounds."""

SCORED_SHARE, SCORES_A_SECOND = 0.02, 80e6
"""Of the budget that one network may take to read the test part, and how many scores of a word one thread works out."""

MOST_COUNTED = 20_000_000
"""Tokens of a text whose n-grams are all counted for the picture of their growth."""

SHORTEST_TIMING = 0.05
"""Seconds: a test that is scored faster is scored again and again until the clock can be believed."""

WARM_UP_TOKENS, CURVE_POINTS = 200, 80
"""Tokens that a model is tried on before the clock runs; points that draw how it learnt."""


def compare(
    texts: Iterable[str] | Splits | Streams,
    *,
    name: str = "your text",
    models: Sequence[str] | None = None,
    tokenizer: TextTokenizer | None = None,
    min_count: int | None = None,
    max_size: int | None = None,
    time_budget: float = TIME_BUDGET,
    seed: int = 0,
    most_bytes: int = MOST_BYTES,
    keep: Path | None = None,
    resume: bool = True,
    wordlists: bool = True,
) -> Iterator[Event]:
    """Train every rung of the ladder on a text and measure it on a part that none has seen.

    texts: documents, split here by a fixed rule, or ``Splits`` that are already made. Fifty words are enough.
    models: names of rungs, in the order wanted; all of them by default, or those that need no torch where it is absent.
    time_budget: seconds for all together, about: what the others leave, neural models share. A test part that they
        could not read in time is made shorter.
    tokenizer: used as it is. By default one is made of the training part: words, or characters where the text is
        written without spaces, with ``min_count`` and ``max_size`` for its vocabulary. A word seen once counts as
        ``<unk>``, so that every model learns what an unknown word is, unless the text is so small that next to
        nothing would be left.
    most_bytes: of a larger text every second document is taken, or every fourth, and so on; an event tells.
    keep: a folder in which finished models are kept until all are: a run that is stopped goes on when it is asked for
        again, with the same text and settings, unless ``resume`` is False.
    wordlists: also learn byte-pair merges and the nearest words, for the report.
    """
    rungs = _rungs(models)
    if tokenizer is not None and (min_count is not None or max_size is not None):
        raise SettingError("min_count and max_size are for the tokenizer made here: set them on the one you give")
    if seed < 0:
        raise SettingError(f"seed={seed} must not be negative")
    check_not_string(texts)
    if not time_budget > 0:
        raise SettingError(f"time_budget={time_budget} must be more than 0 seconds")
    if most_bytes < 1:
        raise SettingError(f"most_bytes={most_bytes} must be at least 1")
    left_out = () if models is not None or _torch_is_there() else tuple(rung.name for rung in rungs if rung.neural)
    rungs = [rung for rung in rungs if rung.name not in left_out]
    settings = _Settings(name, tokenizer, min_count, max_size, seed, time_budget, left_out, most_bytes)
    return _run(texts, rungs, settings, keep, resume=resume, wordlists=wordlists)


def _rungs(names: Sequence[str] | None) -> list[Rung]:
    known = {rung.name: rung for rung in LADDER}
    for name in names or ():
        if name not in known:
            raise SettingError(f"no model {name!r} on the ladder: expected {', '.join(known)}")
    return LADDER if names is None else [known[name] for name in names]


def _torch_is_there() -> bool:
    try:
        return find_spec("torch") is not None
    except ValueError:  # something stands in its place
        return False


@dataclass(frozen=True, slots=True)
class _Settings:
    name: str
    tokenizer: TextTokenizer | None
    min_count: int | None
    max_size: int | None
    seed: int
    time_budget: float
    left_out: tuple[str, ...]
    most_bytes: int


def _run(
    texts: Iterable[str] | Splits | Streams,
    rungs: Sequence[Rung],
    settings: _Settings,
    keep: Path | None,
    *,
    resume: bool,
    wordlists: bool,
) -> Iterator[Event]:
    began = time.perf_counter()
    steps = 3 + 2 * len(rungs)
    yield Plan(tuple(rung.title for rung in rungs))
    yield Progress("reading the text", 0, steps)
    taken = take(texts, settings.most_bytes)
    if taken.sampled.kept_bytes < taken.sampled.bytes:
        yield taken.sampled
    yield Progress("making the vocabulary and lists of words", 1, steps)
    scores = SCORED_SHARE * settings.time_budget * SCORES_A_SECOND if any(rung.neural for rung in rungs) else None
    bench = prepare(settings.name, taken, settings.tokenizer, settings.min_count, settings.max_size, scores)
    yield bench.facts
    # Before the networks, which share what is left of the time: where kernels are not compiled yet, this takes longer.
    neighbours = neighbourhoods(bench.train, settings.seed) if wordlists else ()
    merges = merged(bench.splits.train, "".join(bench.facts.passage.pieces[:-1])) if wordlists else None
    kept = Kept(keep, _run_name(rungs, bench, settings))
    if not resume:
        kept.close()
    ladder = _Ladder(rungs, bench, kept, settings, began)
    if ladder.there:
        yield Resumed(tuple(rung.title for rung in rungs if rung.name in ladder.there))
    yield from ladder.climb()
    yield Progress("counting n-grams", steps - 1, steps)
    growth = ngram_growth(bench.train, bench.test) if len(bench.train.ids) <= MOST_COUNTED else []
    kept.close()
    yield Progress("done", steps, steps)
    yield Comparison(
        bench.facts,
        tuple(ladder.rows),
        settings.left_out,
        tuple(growth),
        sampled=taken.sampled if taken.sampled.kept_bytes < taken.sampled.bytes else None,
        mixed=best_pair(ladder.valid_logs, ladder.test_logs) if bench.valid is not None else None,
        neighbours=neighbours,
        merges=merges,
    )


def _run_name(rungs: Sequence[Rung], bench: Bench, settings: _Settings) -> str:
    """All that a row depends on, the clock aside."""
    told: dict[str, Json] = {
        "foreword": foreword.__version__,
        "models": [rung.name for rung in rungs],
        "seed": settings.seed,
        "time_budget": settings.time_budget,
        "text": bench.facts.to_json(),
    }
    parts = (bench.train, bench.valid or bench.test, bench.test)
    return run_name(told, *(part.ids for part in parts))


class _Ladder:
    """The rungs on their way. rows: of those that are done; valid_logs, test_logs: what they gave every token."""

    def __init__(self, rungs: Sequence[Rung], bench: Bench, kept: Kept, settings: _Settings, began: float) -> None:
        self.rungs, self.bench, self.kept, self.settings = rungs, bench, kept, settings
        found = {rung.name: kept.finished(rung.name) for rung in rungs}
        self.there = {name: each for name, each in found.items() if each is not None and self._fits(name, each)}
        self.began = began - max((each.spent for each in self.there.values()), default=0.0)
        self.besides: float | None = None  # seconds that the last network took when it did not learn
        self.rows: list[Row] = []
        self.valid_logs: dict[str, Doubles] = {}
        self.test_logs: dict[str, Doubles] = {}

    def _fits(self, name: str, found: Finished) -> bool:
        lengths = (len(self.bench.valid.ids) if self.bench.valid else 0, len(self.bench.test.ids))
        pieces = len(self.bench.facts.passage.pieces)
        return (found.row.name, len(found.valid), len(found.test)) == (name, *lengths) and (
            len(found.row.surprisal) == pieces
        )

    def climb(self) -> Iterator[Event]:
        for place, rung in enumerate(self.rungs):
            if rung.name in self.there:
                row, self.valid_logs[rung.name], self.test_logs[rung.name], _ = self.there[rung.name]
            else:
                row = yield from self._climb(place, rung)
            self.rows.append(row)
            yield row

    def _climb(self, place: int, rung: Rung) -> Generator[Event, None, Row]:
        bench, steps, began = self.bench, 3 + 2 * len(self.rungs), time.perf_counter()
        tell = _Telling(f"training {rung.title}", 2 + 2 * place, steps, place)
        yield tell.now()
        _warm_up(rung, bench.train)
        model = rung.build()
        if rung.neural:
            given = self.kept.seconds(rung.name, self._seconds_for(place))
            model = _within(model, given, bench)
            curve, seconds = yield from _learn(rung.name, model, bench, self.kept, tell)
        else:
            curve, seconds = None, (yield from self._fit(model, tell))
        yield Progress(f"testing {rung.title}", 3 + 2 * place, steps, place, share=1.0)
        row = self._test(rung, model, seconds, curve)
        if rung.neural:
            self.besides = max(0.0, time.perf_counter() - began - seconds)
        spent = time.perf_counter() - self.began
        self.kept.finish(row, self.valid_logs[rung.name], self.test_logs[rung.name], spent)
        return row

    def _seconds_for(self, place: int) -> float:
        """A network's even share of the time that is left, less what else it takes: to begin, and to be tested."""
        budget = (1 - CLOSING_SHARE) * self.settings.time_budget
        sharing = sum(rung.neural for rung in self.rungs[place:])
        share = (budget - (time.perf_counter() - self.began)) / sharing
        besides = TESTING_SHARE * share if self.besides is None else self.besides
        return max(share - besides, LEAST_SHARE * budget / sharing)

    def _fit(self, model: Any, tell: _Telling) -> Generator[Event, None, float]:
        """At once, or in rounds that end by the clock; how long it took."""
        bench, began = self.bench, time.perf_counter()
        if not isinstance(model, HMM):
            return _seconds(lambda: model.fit(bench.train, valid=bench.valid))
        for step in model.train(bench.train, valid=bench.valid):
            yield tell.now(step.number / model.iterations, f", round {step.number}")
            if time.perf_counter() - began > ROUNDS_SHARE * self.settings.time_budget:
                break
        return time.perf_counter() - began

    def _test(self, rung: Rung, model: LanguageModel[Any], train_seconds: float, curve: Curve | None) -> Row:
        bench = self.bench
        parameters, disk_bytes = weigh(model)
        measures, logs, speed = _measured(model, bench.test)
        self.test_logs[rung.name] = logs
        self.valid_logs[rung.name] = (
            np.empty(0) if bench.valid is None else np.asarray(model.logprobs(bench.valid), np.float64)
        )
        layers = layers_of(model)
        return Row(
            name=rung.name,
            title=rung.title,
            measures=measures,
            parameters=parameters,
            disk_bytes=disk_bytes,
            train_seconds=train_seconds,
            train_tokens_per_second=len(bench.train.ids) / train_seconds,
            score_tokens_per_second=speed,
            sample=draw_sample(model, bench.tokenizer, self.settings.seed),
            surprisal=tuple(surprisal(model, bench.passage)[: len(bench.facts.passage.pieces)].tolist()),
            curve=curve,
            gradient=() if layers is None else gradient_norms(layers, bench.test, bench.train),
            gates=None
            if layers is None
            else passage_gates(layers, bench.facts.passage, bench.passage.ids, bench.test.vocab.end),
        )


@dataclass(frozen=True, slots=True)
class _Telling:
    """Progress of one model's training."""

    phase: str
    done: int
    total: int
    model: int
    began: float = field(default_factory=time.perf_counter)

    def now(self, share: float | None = None, more: str = "") -> Progress:
        left = None if not share else (time.perf_counter() - self.began) * (1 - share) / share
        return Progress(f"{self.phase}{more}", self.done, self.total, self.model, share, left)


def _warm_up(rung: Rung, train: Corpus) -> None:
    """Kernels are compiled when they first run, once on every machine; that is not what learning a text takes."""
    first = rung.build()
    few = Corpus.from_ids([train.ids[:WARM_UP_TOKENS]], train.vocab)
    if rung.neural:
        first.training = replace(first.training, epochs=1)
    first.fit(few).score(few)


def _within(model: Any, seconds: float, bench: Bench) -> Any:
    """A neural model that stops by itself: by the clock, or when the tuning part gets no better."""
    updates = max(1, len(bench.train.ids) // (NEURAL_BATCH * NEURAL_STEPS))  # in one reading of the text
    model.training = replace(
        model.training,
        batch=NEURAL_BATCH,
        steps=NEURAL_STEPS,
        sampled=NEURAL_SAMPLED,
        hold=0.3,
        last_rate=0.01,
        epochs=max(100, LEAST_UPDATES // updates),
        evaluate_every=max(1, LOOK_AFTER // updates),
        patience=0 if bench.valid is None else PATIENCE,
        seconds=seconds,
    )
    return model


def _learn(
    name: str, model: Any, bench: Bench, kept: Kept, tell: _Telling
) -> Generator[Event, None, tuple[Curve, float]]:
    """Train a network, from its checkpoint where there is one: how it learnt, and for how many seconds."""
    checkpoint = None if kept.folder is None else Tolerant(kept.checkpoint(name))
    before = kept.curve(name) if checkpoint is not None and checkpoint.path.exists() else Curve()
    train, valid = list(before.train), list(before.valid)
    earlier = train[-1][0] if train else 0.0
    best, written, began = -math.inf, 0, time.perf_counter()
    for step in _steps(model, bench, checkpoint):
        seconds = earlier + time.perf_counter() - began
        train.append((seconds, _perplexity(step.loss)))
        if model.valid_score_ > best:
            best = model.valid_score_
            valid.append((seconds, _perplexity(-best)))
        if checkpoint is not None and checkpoint.written > written:
            written = checkpoint.written
            kept.note_curve(name, Curve(tuple(train), tuple(valid)))
        yield tell.now(step.done / max(1, step.total), f", loss {step.loss:.2f}")
    seconds = earlier + time.perf_counter() - began
    if model.valid_score_ > best:
        valid.append((seconds, _perplexity(-model.valid_score_)))
    every = max(1, math.ceil(len(train) / CURVE_POINTS))
    return Curve(tuple(train[::-every][::-1]), tuple(valid)), seconds


def _steps(model: Any, bench: Bench, checkpoint: Tolerant | None) -> Iterator[Step]:
    """A checkpoint that cannot be gone on from is thrown away."""
    steps: Iterator[Step] = model.train(bench.train, valid=bench.valid, checkpoint=checkpoint)
    if checkpoint is None or not checkpoint.path.exists():
        return steps
    try:
        first = next(steps, None)
    except InputError:
        checkpoint.path.unlink(missing_ok=True)
        return iter(model.train(bench.train, valid=bench.valid, checkpoint=checkpoint))
    return chain([] if first is None else [first], steps)


def _perplexity(nats: float) -> float:
    return math.exp(min(nats, 700.0))


def _measured(model: LanguageModel[Any], test: Corpus) -> tuple[Measures, Doubles, float]:
    """How well a model does, what it gave each token, and how many tokens it scores a second."""
    listening = _Listening(model)
    measures = measure(listening, test)
    while listening.seconds < SHORTEST_TIMING:
        listening.logprobs(test)
    return measures, np.concatenate(listening.logs)[: len(test.ids)], listening.tokens / listening.seconds


class _Listening:
    """A model whose answers are kept, and timed."""

    def __init__(self, model: LanguageModel[Any]) -> None:
        self.model = model
        self.logs: list[Doubles] = []
        self.tokens, self.seconds = 0, 0.0

    def logprobs(self, corpus: Corpus) -> Logs:
        began = time.perf_counter()
        logs = self.model.logprobs(corpus)
        self.seconds += max(time.perf_counter() - began, 1e-9)  # a clock may be too coarse to see it
        self.tokens += len(corpus.ids)
        self.logs.append(np.asarray(logs, np.float64))
        return logs


def weigh(model: LanguageModel[Any]) -> tuple[int, int]:
    """How many numbers the model holds, and how many bytes its saved folder."""
    if not isinstance(model, Saveable):
        raise NotSaveableError(model, ", so its size is unknown")
    with TemporaryDirectory(prefix="foreword-") as place:
        folder = Path(place, "model")
        save(model, folder)
        disk_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return sum(array.size for array in model.to_parts().arrays.values()), disk_bytes


def draw_sample(model: LanguageModel[Any], tokenizer: Tokenizer, seed: int) -> str:
    """Documents one below the other until there is enough to get an impression."""
    lines: list[str] = []
    left = SAMPLE_TOKENS
    while left > 0:
        ids = list(generate(model, max_tokens=left, seed=seed + SAMPLE_TOKENS - left))
        left -= len(ids) + 1  # an end costs one token, so that a model that only ends comes to an end here too
        lines.append(tokenizer.decode(ids))
    return "\n".join(line for line in lines if line)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return max(time.perf_counter() - began, 1e-9)  # a clock may be too coarse to see it
