"""kill -9 at random moments of everything that takes long, each followed by the same work once more.

Work runs in a fork of this process, where everything is compiled. It is killed after a random part of the time that it
takes, perhaps again after it has resumed, and then left to finish. Work of several processes is killed with all of
them, or loses one of them and has to end by itself. What is on the disk after a kill must open whole, or not be there;
the final result must be, byte for byte, that of work that was never killed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import foreword
from foreword.errors import ForewordError
from foreword.evaluate.compare.results import Comparison
from foreword.ngram.arpa import write_arpa
from foreword.search.documents import Names
from foreword.storage.atomic import atomic_file
from foreword.storage.checkpoint import Checkpoint
from foreword.storage.folder import load, save
from foreword.text.block import Block, blocks_of

MODEL = "model"
OFTEN = 0.02
"""Seconds between two times that a run is kept, which it otherwise is every minute."""

AT_MOST = 4
"""How often one piece of work is killed before it may finish."""


@dataclass(frozen=True)
class Work:
    """Something that takes long. do: starts, or resumes from what it finds in the folder. resumes: whether it can.

    check: raises where what a kill has left is broken. children: whether it starts processes. weight: its share of the
    kills, which is small for work that is slow to begin.
    """

    name: str
    do: Callable[[Path], None]
    resumes: bool
    check: Callable[[Path], object]
    children: bool = False
    weight: float = 1.0


@dataclass(slots=True)
class Kills:
    """How often work was killed, how often it then finished and ended in the same bytes, and what must not be."""

    name: str
    resumes: bool
    kills: int = 0
    finished: int = 0
    found: list[str] = field(default_factory=list)


def kill_at_random(work: Work, kills: int, folder: Path, seed: int = 0) -> Kills:
    outcome, rng = Kills(work.name, work.resumes), random.Random(f"{seed} {work.name}")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "first").mkdir(parents=True)
    work.do(folder / "first")  # which compiles, for all processes to come, what is not compiled yet
    took = timed(work, folder / "whole")
    whole = files_of(folder / "whole")
    while outcome.kills < kills:
        place = folder / f"run{outcome.kills}-{outcome.finished}"
        place.mkdir()
        for _ in range(rng.randint(1, min(AT_MOST, kills - outcome.kills))):
            after = rng.uniform(0.0, 1.1 * took)
            if not _killed(work, place, after, rng):
                took = min(took, after)  # the run that was timed was slow: later kills would nearly all come too late
                break
            outcome.kills += 1
            _check(work, place, outcome)
        if status := waited(forked(work, place)):
            outcome.found.append(f"{place.name}: did not finish after it was killed (status {status})")
        elif files_of(place) != whole:
            outcome.found.append(f"{place.name}: ended in other bytes")
        else:
            outcome.finished += 1
        shutil.rmtree(place)
    return outcome


def files_of(folder: Path) -> dict[str, bytes]:
    """Everything below a folder, hidden things included, but for what only tells how far a run was."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("ledger.jsonl", "lock")
    }


def _check(work: Work, place: Path, outcome: Kills) -> None:
    try:
        work.check(place)
    except Exception as error:
        outcome.found.append(f"{place.name}: after a kill: {type(error).__name__}: {error}")


def timed(work: Work, place: Path) -> float:
    """Do all of it, and return how long it took."""
    place.mkdir(parents=True)
    began = time.monotonic()
    if status := waited(forked(work, place)):
        raise RuntimeError(f"{work.name} fails without being killed (status {status})")
    return time.monotonic() - began


def _killed(work: Work, place: Path, after: float, rng: random.Random) -> bool:
    """Whether it was still at work when it, or one of its processes, was killed."""
    child = forked(work, place)
    time.sleep(after)
    if work.children and rng.random() < 0.5 and (others := children_of(child)):
        with suppress(ProcessLookupError):
            os.kill(rng.choice(others), signal.SIGKILL)
        return waited(child, patience=120.0) != 0
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return waited(child) == -signal.SIGKILL


def children_of(process: int) -> list[int]:
    """The processes that a process has started, but for the helper that only counts what they share."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(each) for each in found if b"tracker" not in Path(f"/proc/{each}/cmdline").read_bytes()]


def waited(child: int, patience: float = 600.0) -> int:
    """The status with which a process ends; it is killed if it does not."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise RuntimeError("a process waited for another that had been killed")


def forked(work: Work, place: Path) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking where there are threads; none of ours hold locks
        child = os.fork()
    if child:
        with suppress(OSError):  # it has done so itself
            os.setpgid(child, child)
        return child
    status = 1
    try:
        os.setpgid(0, 0)
        work.do(place)
        status = 0
    except ForewordError as error:
        os.write(2, f"{error}\n".encode()) if not work.children else None  # which says that a process was killed
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


# What is killed


def whole_or_absent(place: Path) -> None:
    """What a kill may leave of a model: nothing, or one that opens with all its checksums right."""
    if (place / MODEL).exists():
        load(place / MODEL, verify=True)


@cache
def texts(lines: int = 1500) -> list[str]:
    rng = random.Random(3)
    words = [f"w{int(rng.paretovariate(0.7)) % 3000}" for _ in range(12 * lines)]
    return [" ".join(words[place : place + 12]) for place in range(0, len(words), 12)]


@cache
def _corpus(lines: int = 1500) -> foreword.Corpus:
    return foreword.Corpus.from_texts(texts(lines), foreword.WordTokenizer().fit(texts(lines)))


def _saving(place: Path) -> None:
    """Two models in turn in one place, the second last."""
    both = [foreword.NgramLM(order).fit(_corpus(100)) for order in (2, 3)]
    for turn in range(20):
        save(both[turn % 2], place / MODEL)


def _one_of_two(place: Path) -> None:
    """After the first save there is always a model."""
    if (place / MODEL).exists() or list(place.glob(f".{MODEL}.old-*")):
        assert load(place / MODEL, verify=True).order in (2, 3)


def _estimating(place: Path) -> None:
    tokenizer = foreword.WordTokenizer()
    corpus = tokenizer.fit_corpus(blocks_of(texts()), threads=1)
    model = foreword.NgramLM(4, memory=1 << 20, scratch=str(place)).fit(corpus)
    save(foreword.TextLM(tokenizer, model), place / MODEL)


def _indexing(place: Path) -> None:
    """As ``foreword index build --memory`` does, in five chunks."""
    folder = place / f"{MODEL}.checkpoint"
    index = foreword.TextIndex(foreword.ByteTokenizer())
    save(index.fit_blocks(blocks_of(texts(8000)), threads=1, memory=1 << 20, folder=folder), place / MODEL)
    shutil.rmtree(folder)


def _compressing(place: Path) -> None:
    """As ``foreword index build --compressed --memory`` does, in five chunks."""
    folder = place / f"{MODEL}.checkpoint"
    index = foreword.CompressedTextIndex(foreword.ByteTokenizer())
    save(index.fit_blocks(blocks_of(texts(8000)), threads=1, memory=1 << 20, folder=folder), place / MODEL)
    shutil.rmtree(folder)


def _searchable(place: Path) -> None:
    """As ``foreword search index`` does, and then ``foreword search add``."""
    lines, names = texts(8000), [f"document {number}" for number in range(8000)]
    search = foreword.TextSearch()
    search.fit_blocks(blocks_of(lines[:6000]), Names.of(names[:6000]), threads=1, scratch=place)
    save(search, place / MODEL)
    found = load(place / MODEL, verify=True)
    save(found.add_blocks(blocks_of(lines[6000:]), Names.of(names[6000:]), threads=1), place / MODEL)


def _without_or_with_more(place: Path) -> None:
    """Check that an index is absent, or has either the first documents or all of them."""
    if (place / MODEL).exists():
        assert len(load(place / MODEL, verify=True)) in (6000, 8000)


def _merging(place: Path) -> None:
    """As ``foreword tokenize train --resume`` does, but keeping what it has after every block."""
    from foreword.tokens.resume import count_with_checkpoint

    tokenizer, checkpoint = foreword.BPETokenizer(vocab_size=600), place / f"{MODEL}.partial"
    counted = count_with_checkpoint(
        tokenizer, _small_blocks(), checkpoint, fingerprint="texts", resume=True, threads=1, every=0.0
    )
    save(tokenizer.fit_counted(counted), place / MODEL)
    checkpoint.unlink(missing_ok=True)


def _small_blocks() -> Iterator[Block]:
    lines = texts()
    for first in range(0, len(lines), 100):
        yield Block.from_texts(lines[first : first + 100])


def _embedding(kind: str, **settings: Any) -> Callable[[Path], None]:
    """As ``foreword train … --resume`` does, but keeping what it has many times a second."""

    def work(place: Path) -> None:
        from foreword import kinds
        from foreword.pipeline import fitting

        output = fitting.Output(str(place / MODEL), resume=True)
        with patch.object(fitting, "SAVE_EVERY", OFTEN):
            model = output.build(kinds.of(getattr(foreword, kind)()), settings)
            fitting.learn(model, _corpus(400), output=output)
            save(model, place / MODEL)

    return work


def _labelling(place: Path) -> None:
    """As ``foreword classify train --kind fasttext --resume`` does, but saving the model many times a second."""
    from foreword.cli.classify import begun_or_resumed
    from foreword.pipeline import fitting

    output = fitting.Output(str(place / MODEL), resume=True)
    settings = ["dimensions=8", "epochs=20", "word_ngrams=2", "buckets=2000", "threads=1"]
    model = begun_or_resumed(settings, output.folder, resume=True)
    if model.finished:  # where the command has nothing to do
        return
    with patch.object(fitting, "SAVE_EVERY", OFTEN):
        fitting.run_steps(model, model.train(texts(6000), ["a", "b", "c"] * 2000), output, None)
        save(model, place / MODEL)


def _filtering(place: Path, processes: int = 1) -> None:
    """Two passes over files of JSONL, with a model that is made first; several processes share an ARPA file."""
    from foreword.filtering import Filtering, filter_files

    source = place.parent / "web"
    if not (source / "done").exists():
        (source / "in").mkdir(parents=True, exist_ok=True)
        lm = foreword.NgramLM(2)
        save(foreword.TextLM(foreword.WordTokenizer(), lm).fit(texts(300)), source / "lm")
        write_arpa(lm, source / "lm.arpa")
        for number in range(8):
            rows = "".join(json.dumps({"id": place, "text": text}) + "\n" for place, text in enumerate(texts(1000)))
            (source / "in" / f"{number}.jsonl").write_text(rows)
        (source / "done").touch()
    model = source / ("lm" if processes == 1 else "lm.arpa")
    filter_files(
        str(source / "in"), place / "out", Filtering([("", str(model))], keep_percentile=40), processes=processes
    )


def _network(train: Callable[[Checkpoint], Any], every: float = OFTEN) -> Callable[[Path], None]:
    """As ``--resume`` does for any network, but keeping what it has many times a second."""

    def work(place: Path) -> None:
        checkpoint = Checkpoint(place / f"{MODEL}.checkpoint", every=every)
        save(train(checkpoint), place / MODEL)
        checkpoint.path.unlink(missing_ok=True)

    return work


def _lstm(checkpoint: Checkpoint, lasting: float = 0.0) -> Any:
    """lasting: so many seconds at least, by waiting after each step."""
    from foreword.training.settings import Training

    training = Training(epochs=2, batch=8, steps=10, rate=1.0)
    model = foreword.RecurrentLM("lstm", 8, 8, 1, training=training, device="cpu")
    began = time.monotonic()
    for step in model.train(_corpus(200), valid=_corpus(200)[:20], checkpoint=checkpoint):
        time.sleep(max(0.0, began + lasting * step.done / step.total - time.monotonic()))
    return model


def _tagger(checkpoint: Checkpoint) -> Any:
    model = foreword.BiLSTMTagger(units=4, words=4, letter_units=3, spelling=4, epochs=2, device="cpu")
    words = [text.split() for text in texts(120)]
    for _ in model.train(
        words, [["a" if len(word) % 2 else "b" for word in line] for line in words], checkpoint=checkpoint
    ):
        pass
    return model


def _labels(checkpoint: Checkpoint) -> Any:
    model = foreword.RecurrentClassifier(embedding=4, hidden=6, units=4, min_count=1, batch=8, epochs=2, device="cpu")
    for _ in model.train(texts(160), ["a", "b"] * 80, checkpoint=checkpoint):
        pass
    return model


def _translator(checkpoint: Checkpoint) -> Any:
    from foreword.translate.pairs import Pairs

    model = foreword.Seq2Seq(6, words=4, epochs=2, batch=200, device="cpu")
    for _ in model.train(Pairs(_corpus(200), _corpus(200)), checkpoint=checkpoint):
        pass
    return model


def _recogniser(checkpoint: Checkpoint) -> Any:
    """Train a recogniser of two words, a low tone and a high one."""
    from foreword.pipeline.speech import SpeechRecogniser
    from foreword.speech.recogniser import Recogniser

    network = Recogniser(units=8, bands=8, batch=4, epochs=3, device="cpu")
    recogniser = SpeechRecogniser(foreword.WordTokenizer(), network)
    for _ in recogniser.train(_recordings(), checkpoint=checkpoint):
        pass
    return recogniser


@cache
def _recordings() -> list[Any]:
    from foreword.speech.recordings import Recording
    from foreword.speech.wav import Sound

    noise, times = np.random.default_rng(0), np.arange(2400) / 8000
    found = []
    for number in range(80):
        word, pitch = ("low", 300.0) if number % 2 else ("high", 1500.0)
        samples = np.sin(2 * np.pi * pitch * times) + 0.1 * noise.standard_normal(len(times))
        found.append(Recording(f"{word}_{number}", Sound(samples.astype(np.float32), 8000), word))
    return found


# Comparing models

COMPARISON = "comparison.json"
TIMINGS = ("train_seconds", "train_tokens_per_second", "score_tokens_per_second", "learning")
"""Facts of a comparison's rows that depend on the clock; its conclusion does too."""


def _comparing(place: Path) -> None:
    """As ``foreword compare`` does, but its network learns for some epochs and not by the clock, and is kept often."""
    from foreword.evaluate.compare import budget, ladder, run_cache

    by_clock = budget.Policy.training_of

    def by_epochs(policy: budget.Policy, model: Any, seconds: float, text: Any) -> Any:
        return replace(by_clock(policy, model, 0.0, text), epochs=4, patience=0)

    with patch.object(budget.Policy, "training_of", by_epochs), patch.object(run_cache, "CHECKPOINT_EVERY", OFTEN):
        models = ("unigram", "5-gram", "lstm")
        *_, comparison = ladder.compare(
            texts(600), models=models, keep=place / "cache", time_budget=600.0, wordlists=False
        )
    assert isinstance(comparison, Comparison)
    with atomic_file(place / COMPARISON) as new:
        new.write_text(json.dumps(_without_timings(comparison.to_json())))


def _without_timings(comparison: Any) -> Any:
    rows = [{key: value for key, value in row.items() if key not in TIMINGS} for row in comparison["models"]]
    return {key: value for key, value in comparison.items() if key != "conclusion"} | {"models": rows}


def _readable(place: Path) -> None:
    """Check that a comparison is absent or whole."""
    if (place / COMPARISON).exists():
        assert len(json.loads((place / COMPARISON).read_text("utf-8"))["models"]) == 3


# Checkpoints that are a minute old


def kill_after_a_minute(kills: int, folder: Path) -> Kills:
    """Train LSTMs that keep their runs every minute, as commands do; all at once and slowly, each killed after that."""
    outcome, rng = Kills("LSTM training, kept every minute", True), random.Random(kills)
    quick = Work(outcome.name, _network(_lstm), True, whole_or_absent)
    slow = replace(quick, do=_network(partial(_lstm, lasting=150.0), every=60.0))
    shutil.rmtree(folder, ignore_errors=True)
    timed(quick, folder / "whole")
    whole, places = files_of(folder / "whole"), [folder / str(number) for number in range(kills)]
    for place in places:
        place.mkdir()
    children, began = [forked(slow, place) for place in places], time.monotonic()
    for child, place, after in zip(children, places, sorted(rng.uniform(0, 40) for _ in places), strict=True):
        while not (place / f"{MODEL}.checkpoint").exists() and not (place / MODEL).exists():
            time.sleep(0.1)
            began = time.monotonic()
        time.sleep(max(0.0, began + after - time.monotonic()))
        os.killpg(child, signal.SIGKILL)
        if waited(child) != -signal.SIGKILL:
            outcome.found.append(f"{place.name}: was not at work any more")
        outcome.kills += 1
    for place in places:
        if waited(forked(quick, place)) == 0 and files_of(place) == whole:
            outcome.finished += 1
        else:
            outcome.found.append(f"{place.name}: ended in other bytes")
    return outcome


def _whole_shards(place: Path) -> None:
    """A shard stands under its name only when it is whole."""
    for shard in (place / "out").glob("*.jsonl"):
        assert shard.read_bytes().endswith(b"\n")


WORKS = (
    Work("saving over a model", _saving, False, _one_of_two),
    Work("n-gram estimation", _estimating, False, whole_or_absent),
    Work("indexing in chunks", _indexing, True, whole_or_absent),
    Work("BPE training", _merging, True, whole_or_absent),
    Work("word2vec training", _embedding("Word2Vec", dimensions=8, epochs=1), True, whole_or_absent),
    Work("fastText training", _embedding("FastText", dimensions=8, epochs=1, buckets=500), True, whole_or_absent),
    Work("GloVe training", _embedding("GloVe", dimensions=8, epochs=8), True, whole_or_absent),
    Work("LSTM training", _network(_lstm), True, whole_or_absent),
    Work("BiLSTM tagger", _network(_tagger), True, whole_or_absent),
    Work("recurrent classifier", _network(_labels), True, whole_or_absent),
    Work("translator", _network(_translator), True, whole_or_absent),
    Work("compressed index in chunks", _compressing, True, whole_or_absent),
    Work("search index", _searchable, False, _without_or_with_more),
    Work("fastText classifier", _labelling, True, whole_or_absent),
    Work("speech recogniser", _network(_recogniser), True, whole_or_absent),
    Work("comparison of models", _comparing, True, _readable),
    Work("filter", _filtering, True, _whole_shards),
    Work("filter, two processes", partial(_filtering, processes=2), True, _whole_shards, children=True, weight=0.3),
)
"""Every kind of work that takes long."""
