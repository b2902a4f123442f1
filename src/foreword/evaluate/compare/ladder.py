"""The ladder: every kind of language model on one text, one split, one vocabulary, and one measure.

``compare`` is a generator. The command line's table, its JSON and the report read the same events: the progress, the
facts of the text, a row as soon as a model is done, and the whole comparison last. To get only that:

    *_, comparison = compare(texts)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import foreword
from foreword import kinds
from foreword.arrays import Doubles
from foreword.checks import check_not_string
from foreword.errors import SettingError
from foreword.evaluate.compare.budget import POLICY, WARM_UP_TOKENS, Policy, TrainingProgress, TrainingResult, learn
from foreword.evaluate.compare.conclusion import conclusion
from foreword.evaluate.compare.facts import learn_merges, neighbourhoods, ngram_growth, word_corpus
from foreword.evaluate.compare.inspection import (
    best_pair,
    draw_sample,
    gradient_norms,
    passage_gates,
    score_test,
    weigh,
)
from foreword.evaluate.compare.results import Comparison, ComparisonProgress, Event, Lead, Plan, Resumed, Row
from foreword.evaluate.compare.run_cache import Finished, RunCache, run_name
from foreword.evaluate.compare.setup import MOST_BYTES, PreparedText, Splits, Streams, prepare, read_text
from foreword.evaluate.gates import Layers, has_layers
from foreword.measures.bootstrap import perplexity_interval, ratio_interval
from foreword.measures.perplexity import surprisal
from foreword.protocols import Iterative, Json, LanguageModel, TextTokenizer
from foreword.tokens.corpus import Corpus


@dataclass(frozen=True, slots=True)
class LadderModel:
    """One rung of the ladder: a short name for the command line, a title for people, and how to build the model.

    neural: whether it needs torch, and learns for as long as it is given. gpu: whether it is large, trained by its own
    recipe, and there by default only where a GPU is asked for.
    """

    name: str
    title: str
    build: Callable[[], Any]
    neural: bool = False
    gpu: bool = False


def _rungs_of_kinds(*, optional: bool) -> list[LadderModel]:
    return [
        LadderModel(rung.name, rung.title, partial(kinds.build, kind, rung.settings), kind.network, rung.gpu)
        for rung, kind in kinds.rungs().values()
        if rung.position is not None and rung.optional == optional
    ]


LADDER = _rungs_of_kinds(optional=False)
"""From the oldest idea to the newest."""

OPTIONAL = _rungs_of_kinds(optional=True)
"""Models that are trained only where they are named."""

TIME_BUDGET = POLICY.time_budget
"""Seconds for all models together, about."""


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
    device: str | None = None,
    most_bytes: int = MOST_BYTES,
    keep: Path | None = None,
    resume: bool = True,
    wordlists: bool = True,
) -> Iterator[Event]:
    """Train every rung of the ladder on a text and measure it on a part that none has seen.

    texts: documents, split here by a fixed rule, or ``Splits`` that are already made. Fifty words are enough.
    models: names of rungs, in the order wanted; all of them by default, or those that need no torch where it is absent.
    time_budget: seconds for all together, about: what the others leave, neural models share. A test part that they
        could not read in time is sampled.
    tokenizer: used as it is. By default one is fitted to the training part: words and punctuation marks, byte-pair
        tokens where too many words would be unknown, the words as they are where the text is split into tokens
        already, or characters where it is written without spaces (``vocabulary.py``). ``min_count`` and ``max_size``
        ask for words. A word seen once counts as ``<unk>``, so that every model learns what an unknown word is.
    device: "cuda" or "cpu", where networks learn; by default the GPU, where there is one. "cuda" adds the large
        networks of the ladder, which learn by their own recipes; they can also be named in ``models``.
    most_bytes: of a larger text every second document is taken, or every fourth, and so on; an event reports it.
    keep: a folder that caches finished models until all are: a run that was stopped resumes when it is asked for again
        with the same text and settings, unless ``resume`` is False.
    wordlists: also learn byte-pair merges and the nearest words, for the report.
    """
    rungs = _rungs(models, device)
    if tokenizer is not None and (min_count is not None or max_size is not None):
        raise SettingError("min_count and max_size are for the tokenizer made here: set them on the one you give")
    if seed < 0:
        raise SettingError(f"seed={seed} must not be negative")
    if not isinstance(texts, Splits | Streams):
        check_not_string(texts)
    if not time_budget > 0:
        raise SettingError(f"time_budget={time_budget} must be more than 0 seconds")
    if most_bytes < 1:
        raise SettingError(f"most_bytes={most_bytes} must be at least 1")
    left_out = () if models is not None or _has_torch() else tuple(rung.name for rung in rungs if rung.neural)
    rungs = [rung for rung in rungs if rung.name not in left_out]
    if device is not None and any(rung.neural for rung in rungs):
        from foreword.training.gradients import choose_device

        choose_device(device)  # refuses one that is not there, before any work
    policy = replace(POLICY, time_budget=time_budget)
    settings = _Settings(name, tokenizer, min_count, max_size, seed, policy, left_out, most_bytes, wordlists, device)
    return _run(texts, rungs, settings, keep, resume=resume)


def _rungs(names: Sequence[str] | None, device: str | None) -> list[LadderModel]:
    known = {rung.name: rung for rung in (*LADDER, *OPTIONAL)}
    for name in names or ():
        if name not in known:
            raise SettingError(f"no model {name!r} on the ladder: expected {', '.join(known)}")
    usual = [rung for rung in LADDER if device == "cuda" or not rung.gpu]
    return usual if names is None else [known[name] for name in names]


def _has_torch() -> bool:
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
    policy: Policy
    left_out: tuple[str, ...]
    most_bytes: int
    wordlists: bool
    device: str | None = None


def _run(
    texts: Iterable[str] | Splits | Streams,
    rungs: Sequence[LadderModel],
    settings: _Settings,
    keep: Path | None,
    *,
    resume: bool,
) -> Iterator[Event]:
    began = time.perf_counter()
    steps = 3 + 2 * len(rungs)
    yield Plan(tuple(rung.title for rung in rungs))
    yield ComparisonProgress("reading the text", 0, steps)
    read = read_text(texts, settings.most_bytes)
    sampled = read.sampled if read.sampled.kept_bytes < read.sampled.bytes else None
    if sampled is not None:
        yield sampled
    yield ComparisonProgress("making the vocabulary and lists of words", 1, steps)
    most_scores = settings.policy.most_scores() if any(rung.neural for rung in rungs) else None
    text = prepare(settings.name, read, settings.tokenizer, settings.min_count, settings.max_size, most_scores)
    yield text.facts
    # Before the networks, which share what is left of the time: where kernels are not compiled yet, this takes longer.
    wordlists = settings.wordlists
    neighbours = neighbourhoods(word_corpus(text.train, text.splits.train), settings.seed) if wordlists else ()
    merges = learn_merges(text.splits.train, "".join(text.facts.passage.pieces[:-1])) if wordlists else None
    cache = RunCache(keep, _run_name(rungs, text, settings))
    if not resume:
        cache.close()
    ladder = _Ladder(rungs, text, cache, settings, began)
    if ladder.finished:
        yield Resumed(tuple(rung.title for rung in rungs if rung.name in ladder.finished))
    yield from ladder.climb()
    yield ComparisonProgress("counting n-grams", steps - 1, steps)
    growth = ngram_growth(text.train, text.test) if len(text.train.ids) <= settings.policy.most_counted else []
    cache.close()
    yield ComparisonProgress("done", steps, steps)
    comparison = Comparison(
        text.facts,
        tuple(ladder.rows),
        settings.left_out,
        tuple(growth),
        sampled=sampled,
        mixed=best_pair(ladder.valid_logs, ladder.test_logs) if text.valid is not None else None,
        neighbours=neighbours,
        merges=merges,
        lead=ladder.lead(),
    )
    yield replace(comparison, conclusion=conclusion(comparison))


def _run_name(rungs: Sequence[LadderModel], text: PreparedText, settings: _Settings) -> str:
    """Return a name that depends on all that a row depends on, the clock aside."""
    depends: dict[str, Json] = {
        "foreword": foreword.__version__,
        "models": [rung.name for rung in rungs],
        "seed": settings.seed,
        "time_budget": settings.policy.time_budget,
        **({} if settings.device is None else {"device": settings.device}),
        "text": text.facts.to_json(),
    }
    return run_name(depends, *(part.ids for part in (text.train, text.valid or text.test, text.test)))


class _Ladder:
    """The rungs of one run. rows: of the models that are done; valid_logs, test_logs: their log-probabilities."""

    def __init__(
        self, rungs: Sequence[LadderModel], text: PreparedText, cache: RunCache, settings: _Settings, began: float
    ) -> None:
        self.rungs, self.text, self.cache, self.settings = rungs, text, cache, settings
        found = {rung.name: cache.finished(rung.name) for rung in rungs}
        self.finished = {name: each for name, each in found.items() if each is not None and self._fits(name, each)}
        self.began = began - max((each.spent for each in self.finished.values()), default=0.0)
        self.overhead: float | None = None  # seconds that the last network took when it did not learn
        self.rows: list[Row] = []
        self.valid_logs: dict[str, Doubles] = {}
        self.test_logs: dict[str, Doubles] = {}

    def _fits(self, name: str, found: Finished) -> bool:
        """Return whether a cached model has the lengths of this text."""
        lengths = (len(self.text.valid.ids) if self.text.valid else 0, len(self.text.test.ids))
        pieces = len(self.text.facts.passage.pieces)
        return (found.row.name, len(found.valid), len(found.test)) == (name, *lengths) and (
            len(found.row.surprisal) == pieces
        )

    def climb(self) -> Iterator[Event]:
        """Train and test each model, or take it from the cache, and yield its row."""
        for index, rung in enumerate(self.rungs):
            if rung.name in self.finished:
                row, self.valid_logs[rung.name], self.test_logs[rung.name], _ = self.finished[rung.name]
            else:
                row = yield from self._climb(index, rung)
            self.rows.append(row)
            yield row

    def _climb(self, index: int, rung: LadderModel) -> Generator[Event, None, Row]:
        text, steps, began = self.text, 3 + 2 * len(self.rungs), time.perf_counter()
        progress = TrainingProgress(f"training {rung.title}", 2 + 2 * index, steps, index)
        yield progress.report()
        _warm_up(rung, text.train, self.settings.device)
        model = rung.build()
        if rung.neural:
            model.device = self.settings.device
            sharing = sum(rung.neural for rung in self.rungs[index:])
            wanted = self.settings.policy.network_seconds(time.perf_counter() - self.began, sharing, self.overhead)
            given = self.cache.seconds(rung.name, wanted)
            training_of = self.settings.policy.own_recipe if rung.gpu else self.settings.policy.training_of
            model.training = training_of(model, given, text)
            learnt = yield from learn(rung.name, model, text, self.cache, progress)
        else:
            learnt = yield from self._fit(model, progress)
        yield ComparisonProgress(f"testing {rung.title}", 3 + 2 * index, steps, index, share=1.0)
        row = self._test(rung, model, learnt)
        if rung.neural:
            self.overhead = max(0.0, time.perf_counter() - began - learnt.seconds)
        spent = time.perf_counter() - self.began
        self.cache.finish(row, self.valid_logs[rung.name], self.test_logs[rung.name], spent)
        return row

    def _fit(self, model: Any, progress: TrainingProgress) -> Generator[Event, None, TrainingResult]:
        """Fit a model at once, or in rounds that end by the clock."""
        text, began, tokens = self.text, time.perf_counter(), len(self.text.train.ids)
        if not isinstance(model, Iterative):
            model.fit(text.train, valid=text.valid)
            return TrainingResult(max(time.perf_counter() - began, 1e-9), tokens)  # a clock may be too coarse to see it
        number = 0
        for number, step in enumerate(model.train(text.train, valid=text.valid), 1):
            yield progress.report(step.done / step.total, f", round {number}")
            if time.perf_counter() - began > self.settings.policy.rounds_share * self.settings.policy.time_budget:
                break
        return TrainingResult(time.perf_counter() - began, number * tokens)

    def _test(self, rung: LadderModel, model: LanguageModel[Any], learnt: TrainingResult) -> Row:
        text, facts = self.text, self.text.facts
        parameters, disk_bytes = weigh(model)
        measures, logs, speed = score_test(model, text.test)
        self.test_logs[rung.name] = logs
        self.valid_logs[rung.name] = (
            np.empty(0) if text.valid is None else np.asarray(model.logprobs(text.valid), np.float64)
        )
        layers = Layers.of(model) if has_layers(model) else None
        end = text.test.vocab.end
        return Row(
            name=rung.name,
            title=rung.title,
            measures=measures,
            interval=perplexity_interval(logs, text.test.offsets, seed=self.settings.seed),
            parameters=parameters,
            disk_bytes=disk_bytes,
            train_seconds=learnt.seconds,
            epochs=learnt.tokens / len(text.train.ids),
            train_tokens_per_second=learnt.tokens / learnt.seconds,
            score_tokens_per_second=speed,
            sample=draw_sample(model, text.tokenizer, self.settings.seed),
            surprisal=tuple(surprisal(model, text.passage)[: len(facts.passage.pieces)].tolist()),
            curve=learnt.curve,
            gradient=() if layers is None else gradient_norms(layers, text.test, text.train),
            gates=None if layers is None else passage_gates(layers, facts.passage, text.passage.ids, end),
        )

    def lead(self) -> Lead | None:
        """Return how far the best model is ahead of the next best."""
        ranked = sorted(self.rows, key=lambda row: row.measures.perplexity)[:2]
        if len(ranked) < 2 or not math.isfinite(ranked[1].measures.perplexity):
            return None
        best, other = ranked
        logs = self.test_logs[best.name], self.test_logs[other.name]
        interval = ratio_interval(*logs, self.text.test.offsets, seed=self.settings.seed)
        return Lead(best.name, other.name, other.measures.perplexity / best.measures.perplexity, interval)


def _warm_up(rung: LadderModel, train: Corpus, device: str | None) -> None:
    """Compile the kernels, which happens once on every machine and is not what learning a text takes."""
    first = rung.build()
    few = Corpus.from_ids([train.ids[:WARM_UP_TOKENS]], train.vocab)
    if rung.neural:
        first.training, first.device = replace(first.training, epochs=1), device
    first.fit(few).score(few)
