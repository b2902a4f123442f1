"""The ladder: every kind of language model on one text, one split, one vocabulary, and one measure.

``compare`` is a generator. The command line's table, its JSON and the report read the same events: how far it is,
what the text is, a row as soon as a model is done, and the whole comparison last. Who only wants that takes it with

    *_, comparison = compare(texts)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from foreword.decode import generate
from foreword.errors import InputError, SettingError
from foreword.evaluate.facts import TextFacts, describe, passage_place, read_passage
from foreword.evaluate.growth import Growth, ngram_growth
from foreword.evaluate.perplexity import Measures, finite, measure, surprisal
from foreword.evaluate.splits import Splits, split, written_without_spaces
from foreword.io.folder import save
from foreword.lm.hmm import HMM
from foreword.lm.ngram import NgramLM
from foreword.lm.unigram import UnigramLM
from foreword.pipeline import TextTokenizer
from foreword.protocols import Json, LanguageModel, Saveable, Tokenizer
from foreword.tokens.characters import CharacterTokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer


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
        from foreword.lm.recurrent import RecurrentLM

        training = replace(RecurrentLM.TRAINING, rate=rate)
        return RecurrentLM(cell, NEURAL_UNITS, NEURAL_UNITS, layers=1, training=training)

    return build


def _bengio() -> Any:
    from foreword.lm.bengio import BengioLM

    training = replace(BengioLM.TRAINING, rate=8e-3)
    return BengioLM(5, NEURAL_UNITS, NEURAL_UNITS, tied=True, training=training)


def _transformer() -> Any:
    from foreword.lm.transformer import TransformerLM

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

LEAST_SHARE, TRAINING_SHARE = 0.1, 0.9
"""Of the budget that neural models get even if the others took it all; of a model's part that goes into training."""

MOST_COUNTED = 20_000_000
"""Tokens of a text whose n-grams are all counted for the picture of their growth."""

SHORTEST_TIMING = 0.05
"""Seconds: a test that is scored faster is scored again and again until the clock can be believed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is: ``done`` of ``total`` steps, and what comes now."""

    phase: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Row:
    """One model's line of the table, measured on the test part.

    parameters: how many numbers the saved model holds. disk_bytes: what its folder weighs.
    surprisal: bits for each piece of the passage in the text's facts.
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

    def to_json(self) -> dict[str, Json]:
        """The measures stand among the other keys, as ``foreword evaluate`` prints them; infinite numbers are null."""
        return {
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


@dataclass(frozen=True, slots=True)
class Comparison:
    """A text and what every model made of it. left_out: names of models that need torch, which is not there.
    growth: the n-grams of the training part, order by order, and which share of the test part's they lack; none for a
    text of more than MOST_COUNTED tokens.
    """

    text: TextFacts
    rows: tuple[Row, ...]
    left_out: tuple[str, ...] = ()
    growth: tuple[Growth, ...] = ()

    def to_json(self) -> dict[str, Json]:
        told: dict[str, Json] = {"text": self.text.to_json(), "models": [row.to_json() for row in self.rows]}
        if self.growth:
            told["ngrams"] = [each.to_json() for each in self.growth]
        return told | ({"left_out": list(self.left_out)} if self.left_out else {})


Event: TypeAlias = Progress | TextFacts | Row | Comparison


def compare(
    texts: Iterable[str] | Splits,
    *,
    name: str = "your text",
    models: Sequence[str] | None = None,
    tokenizer: TextTokenizer | None = None,
    min_count: int | None = None,
    max_size: int | None = None,
    time_budget: float = TIME_BUDGET,
    seed: int = 0,
) -> Iterator[Event]:
    """Train every rung of the ladder on a text and measure it on a part that none has seen.

    texts: documents, split here by a fixed rule, or ``Splits`` that are already made. Fifty words are enough.
    models: names of rungs, in the order wanted; all of them by default, or those that need no torch where it is absent.
    time_budget: seconds for all together, about: what the others leave, neural models share.
    tokenizer: used as it is. By default one is made of the training part: words, or characters where the text is
        written without spaces, with ``min_count`` and ``max_size`` for its vocabulary. A word seen once counts as
        ``<unk>``, so that every model learns what an unknown word is, unless the text is so small that next to
        nothing would be left.
    """
    rungs = _rungs(models)
    if tokenizer is not None and (min_count is not None or max_size is not None):
        raise SettingError("min_count and max_size are for the tokenizer made here: set them on the one you give")
    if seed < 0:
        raise SettingError(f"seed={seed} must not be negative")
    if isinstance(texts, str):
        raise InputError("expected a list of texts, one document each, but got a single string: put it in a list")
    if not time_budget > 0:
        raise SettingError(f"time_budget={time_budget} must be more than 0 seconds")
    left_out = () if models is not None or _torch_is_there() else tuple(rung.name for rung in rungs if rung.neural)
    rungs = [rung for rung in rungs if rung.name not in left_out]
    return _run(texts, name, rungs, tokenizer, min_count, max_size, _Settings(seed, time_budget, left_out))


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
    seed: int
    time_budget: float
    left_out: tuple[str, ...]


def _run(
    texts: Iterable[str] | Splits,
    name: str,
    rungs: Sequence[Rung],
    tokenizer: TextTokenizer | None,
    min_count: int | None,
    max_size: int | None,
    settings: _Settings,
) -> Iterator[Event]:
    began = time.perf_counter()
    steps = 2 + 2 * len(rungs)
    yield Progress("reading the text", 0, steps)
    whole = [*texts.train, *texts.valid, *texts.test] if isinstance(texts, Splits) else list(texts)
    splits = texts if isinstance(texts, Splits) else split(whole)
    if not (any(map(str.strip, splits.train)) and any(map(str.strip, splits.test))):
        raise InputError("a part of the text is empty: there must be something to learn from and something to test on")
    yield Progress("making the vocabulary", 1, steps)
    bench = _prepare(name, whole, splits, tokenizer, min_count, max_size)
    yield bench.facts
    rows: list[Row] = []
    for rung in rungs:
        yield Progress(f"training {rung.title}", 2 + 2 * len(rows), steps)
        model = rung.build()
        if rung.neural:
            sharing = sum(each.neural for each in rungs[len(rows) :])
            left = settings.time_budget - (time.perf_counter() - began)
            model = _within(model, max(left, LEAST_SHARE * settings.time_budget) / sharing, bench)
        seconds = yield from _train(rung, model, bench, 2 + 2 * len(rows), steps)
        yield Progress(f"testing {rung.title}", 3 + 2 * len(rows), steps)
        rows.append(_test(rung, model, seconds, bench, settings.seed))
        yield rows[-1]
    growth = ngram_growth(bench.train, bench.test) if len(bench.train.ids) <= MOST_COUNTED else []
    yield Progress("done", steps, steps)
    yield Comparison(bench.facts, tuple(rows), settings.left_out, tuple(growth))


@dataclass(frozen=True, slots=True)
class _Bench:
    """What every model is given: the same parts, the same vocabulary, the same passage."""

    facts: TextFacts
    tokenizer: TextTokenizer
    train: Corpus
    valid: Corpus | None
    test: Corpus
    passage: Corpus


def _prepare(
    name: str,
    whole: Sequence[str],
    splits: Splits,
    tokenizer: TextTokenizer | None,
    min_count: int | None,
    max_size: int | None,
) -> _Bench:
    if tokenizer is None:
        tokenizer = fitted_tokenizer(splits.train, min_count, max_size)
    parts = (splits.train, splits.valid, splits.test)
    train, valid, test = (Corpus.from_texts(part, tokenizer, threads=None) for part in parts)
    place = passage_place(test)
    passage = test[place : place + 1]
    shown = read_passage(tokenizer, splits.test[place], passage.ids)
    facts = describe(name, whole, (train, valid, test), shown)
    return _Bench(facts, tokenizer, train, valid if len(valid) else None, test, passage)


def fitted_tokenizer(
    train: Sequence[str], min_count: int | None, max_size: int | None
) -> WordTokenizer | CharacterTokenizer:
    """The one vocabulary of a comparison, made of its training part.

    With no ``min_count`` given it is two, and one where that would turn more than half of a small text into ``<unk>``.
    """
    if min_count is not None:
        return _tokenizer(train, min_count, max_size)
    tokenizer = _tokenizer(train, 2, max_size)
    return tokenizer if _unknown_share(tokenizer.vocab) <= 0.5 else _tokenizer(train, 1, max_size)


def _tokenizer(train: Sequence[str], min_count: int, max_size: int | None) -> WordTokenizer | CharacterTokenizer:
    if not written_without_spaces(train):
        return WordTokenizer(min_count=min_count, max_size=max_size).fit(train)
    if max_size is not None:
        raise SettingError("max_size is for words, but this text is written without spaces and is read by characters")
    return CharacterTokenizer(min_count=min_count).fit(train)


def _unknown_share(vocab: Vocab) -> float:
    if vocab.counts is None or vocab.unknown is None:
        return 0.0
    return float(vocab.counts[vocab.unknown] / max(vocab.counts.sum() - vocab.counts[vocab.end], 1))


def _within(model: Any, seconds: float, bench: _Bench) -> Any:
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
        seconds=seconds * TRAINING_SHARE,
    )
    return model


def _train(rung: Rung, model: Any, bench: _Bench, done: int, steps: int) -> Generator[Event, None, float]:
    """Train, telling how far it is; how long it took is what the generator returns."""
    # Kernels are compiled when they first run, once on every machine; that is not what learning a text takes.
    first = rung.build()
    if rung.neural:
        first.training = replace(first.training, epochs=1)
    first.fit(bench.train[:1]).score(bench.train[:1])
    if not rung.neural:
        return _seconds(lambda: model.fit(bench.train, valid=bench.valid))
    began = time.perf_counter()
    for step in model.train(bench.train, valid=bench.valid):
        yield Progress(f"training {rung.title}, loss {step.loss:.2f}", done, steps)
    return time.perf_counter() - began


def _test(rung: Rung, model: LanguageModel[Any], train_seconds: float, bench: _Bench, seed: int) -> Row:
    parameters, disk_bytes = weigh(model)
    return Row(
        name=rung.name,
        title=rung.title,
        measures=measure(model, bench.test),
        parameters=parameters,
        disk_bytes=disk_bytes,
        train_seconds=train_seconds,
        train_tokens_per_second=len(bench.train.ids) / train_seconds,
        score_tokens_per_second=_scoring_speed(model, bench.test),
        sample=draw_sample(model, bench.tokenizer, seed),
        surprisal=tuple(surprisal(model, bench.passage)[: len(bench.facts.passage.pieces)].tolist()),
    )


def weigh(model: LanguageModel[Any]) -> tuple[int, int]:
    """How many numbers the model holds, and how many bytes its saved folder."""
    if not isinstance(model, Saveable):
        raise SettingError(f"a {type(model).__name__} cannot be saved, so its size cannot be told")
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


def _scoring_speed(model: LanguageModel[Any], test: Corpus) -> float:
    """Tokens scored a second, over as many readings of the test as the clock needs."""
    times, seconds = 0, 0.0
    while seconds < SHORTEST_TIMING:
        seconds += _seconds(lambda: model.score(test))
        times += 1
    return times * len(test.ids) / seconds
