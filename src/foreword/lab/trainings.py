"""Trainings of the lab: the queue that runs them, what can be trained from the page, and the models it starts with.

Jobs run one after the other in one thread; each can be watched, stopped and resumed. A job's work is a generator of
steps, so that stopping it means not asking for the next. All models learn from one text with one vocabulary, so that
they can be compared. The starters take seconds each: the page is there at once, and they join it as they are done.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from foreword import kinds
from foreword.errors import ForewordError, InputError, SettingError, install_command
from foreword.evaluate.compare.facts import written_without_spaces
from foreword.evaluate.compare.setup import split
from foreword.lab.examples import ENGLISH, Examples, examples_from
from foreword.lessons.keywords import is_common
from foreword.pipeline.language import TextLM
from foreword.protocols import Iterative, Json, Step, TextTokenizer
from foreword.serve.answers import next_of
from foreword.serve.registry import Entry, Registry
from foreword.storage.checkpoint import Checkpoint
from foreword.tokens.characters import CharacterTokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

if TYPE_CHECKING:
    from foreword.tag.bilstm import BiLSTMTagger

STARTERS = ("bigram", "5-gram", "skip-gram", "cbow", "hmm", "lstm", "gru", "rnn")
STARTER_SECONDS, STARTER_UNITS = 10.0, 64
TREEBANK = "ud_english_ewt"
LEAST_WORDS, FEW_WORDS = 20, 5000
"""A text with fewer words is refused; below the second number, words that occur once are in the vocabulary too."""


Phase = Literal["waiting", "running", "stopped", "done", "failed", "cancelled"]

MAX_WAITING = 8
"""Jobs in the queue; more are refused."""

MAX_POINTS = 400
"""Points of a curve; beyond that, every second one is dropped."""


@dataclass(slots=True)
class Job:
    """One training. work: called once per run; it resumes from the job's checkpoint, if there is one.

    finish: called at the end; returns the name of the model, or None. note: one sentence on how it ended.
    """

    id: int
    title: str
    work: Callable[[Job], Iterator[Step]]
    finish: Callable[[], str | None]
    checkpoint: Checkpoint | None = None
    starter: bool = False
    phase: Phase = "waiting"
    curve: list[Step] = field(default_factory=list)
    model: str | None = None
    note: str = ""
    stopping: threading.Event = field(default_factory=threading.Event)

    def to_json(self) -> dict[str, Json]:
        """Return what the page shows."""
        curve: list[Json] = [[step.share, step.loss] for step in self.curve if not math.isnan(step.loss)]
        return {
            "id": self.id,
            "title": self.title,
            "phase": self.phase,
            "share": self.curve[-1].share if self.curve else 0.0,
            "curve": curve,
            "model": self.model,
            "note": self.note,
            "starter": self.starter,
            "resumable": self.resumable,
        }

    @property
    def resumable(self) -> bool:
        """Return whether it was stopped halfway and can be resumed."""
        return self.phase == "stopped" and self.checkpoint is not None

    def release(self) -> None:
        """Drop the functions, and with them the text they read: this job does not run again."""
        self.work, self.finish = _no_steps, _no_model


def _no_steps(_: Job) -> Iterator[Step]:
    return iter(())


def _no_model() -> str | None:
    return None


class Jobs:
    """The queue of jobs and its worker, a daemon thread."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self._closed = False
        self._worker = threading.Thread(target=self._run, name="training", daemon=True)
        self._worker.start()

    def add(
        self,
        title: str,
        work: Callable[[Job], Iterator[Step]],
        finish: Callable[[], str | None],
        *,
        checkpoint: Checkpoint | None = None,
        starter: bool = False,
    ) -> Job:
        """Queue a job."""
        with self._changed:
            if not starter and len(self._waiting) >= MAX_WAITING:
                raise InputError(f"{len(self._waiting)} trainings wait already: let one end, or cancel it")
            job = Job(next(self._numbers), title, work, finish, checkpoint, starter)
            self._jobs[job.id] = job
            self._waiting.append(job)
            self._changed.notify_all()
        return job

    def all(self) -> list[Job]:
        """Return all jobs, the oldest first."""
        return list(self._jobs.values())

    def __getitem__(self, id: int) -> Job:
        if id not in self._jobs:
            raise InputError(f"there is no training {id}")
        return self._jobs[id]

    def stop(self, id: int) -> Job:
        """Stop a running job at its next step; cancel one that waits."""
        with self._changed:
            job = self[id]
            if job.phase == "waiting":
                self._waiting.remove(job)
                job.phase = "cancelled"
                job.release()
            elif job.phase == "running":
                job.stopping.set()
                if job.checkpoint is not None:
                    job.checkpoint.ask()
            else:
                raise SettingError(f"training {id} is {job.phase}: there is nothing to stop")
        return job

    def resume(self, id: int) -> Job:
        """Queue a stopped job again."""
        with self._changed:
            job = self[id]
            if not job.resumable:
                raise SettingError(f"training {id} is {job.phase}: only one that was stopped halfway can be resumed")
            job.stopping.clear()
            job.phase = "waiting"
            self._waiting.append(job)
            self._changed.notify_all()
        return job

    def close(self) -> None:
        """Stop the running job, start no other, and wait for the worker."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            for job in self._jobs.values():
                job.stopping.set()
            self._changed.notify_all()
        self._worker.join(timeout=10)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                job = self._waiting.popleft()
                job.phase = "running"
            self._finish_job(job)

    def _finish_job(self, job: Job) -> None:
        try:
            stopped = _run_steps(job)
            job.model = job.finish()
            job.phase = "stopped" if stopped else "done"
        except ForewordError as error:
            job.phase, job.note = "failed", str(error)
        except Exception as error:  # whatever happens in one training, the next one has its turn
            job.phase, job.note = "failed", f"unexpected {type(error).__name__}: {error}"
        if not job.resumable:
            job.release()


def _run_steps(job: Job) -> bool:
    """Run a job; return whether it was stopped, which waits for a checkpoint to be written if the job has one."""
    written = 0 if job.checkpoint is None else job.checkpoint.written
    steps: Any = job.work(job)
    for step in steps:
        job.curve.append(step)
        if len(job.curve) > MAX_POINTS:
            job.curve[:] = [*job.curve[:-1:2], job.curve[-1]]
        saved = job.checkpoint is None or job.checkpoint.written > written
        if job.stopping.is_set() and saved:
            steps.close()
            return True
    return False


# What is trained


class LearningText:
    """A text to learn from, read when the first training needs it. own: whether the user gave it."""

    def __init__(self, read: Callable[[], Sequence[str]], *, own: bool = False) -> None:
        self._read, self.own = read, own

    @cached_property
    def examples(self) -> Examples:
        """Return what the panels show first."""
        return examples_from(self.documents) if self.own else ENGLISH

    @cached_property
    def documents(self) -> list[str]:
        """Return the documents; raise an InputError if there are too few words."""
        found = [text for text in self._read() if text.strip()]
        if sum(len(text.split()) for text in found) < LEAST_WORDS:
            raise InputError(f"the text is too short to learn from: expected {LEAST_WORDS} words or more")
        return found

    @cached_property
    def tokenizer(self) -> TextTokenizer:
        """Return a tokenizer of lower-case words and punctuation marks, or of characters if there are no spaces."""
        texts, _ = self.parts
        if written_without_spaces(texts):
            return CharacterTokenizer(min_count=1).fit(texts)
        words = sum(len(text.split()) for text in texts)
        return WordTokenizer(split="punctuation", lowercase=True, min_count=2 if words > FEW_WORDS else 1).fit(texts)

    @cached_property
    def parts(self) -> tuple[list[str], list[str]]:
        """Return the training texts and the validation texts."""
        if len(self.documents) < 3:
            return self.documents, []
        found = split(self.documents)
        return [*found.train, *found.test], list(found.valid)

    @cached_property
    def train(self) -> Corpus:
        """Return the training texts as ids."""
        return Corpus.from_texts(self.parts[0], self.tokenizer)

    @cached_property
    def valid(self) -> Corpus | None:
        """Return the validation texts as ids, None if there are none."""
        return Corpus.from_texts(self.parts[1], self.tokenizer) if self.parts[1] else None


def offered() -> dict[str, tuple[kinds.Rung, kinds.Kind]]:
    """Return the models that the lab offers, by name."""
    return {name: pair for name, pair in kinds.rungs().items() if pair[0].lab is not None}


def is_network(name: str) -> bool:
    """Return whether a model that is offered is a network: it learns for some seconds and can be stopped."""
    return offered()[name][1].network


def start_training(
    jobs: Jobs,
    registry: Registry,
    text: LearningText,
    kind: str,
    folder: Path,
    *,
    seconds: float = STARTER_SECONDS,
    units: int = STARTER_UNITS,
    starter: bool = False,
) -> Job:
    """Queue a training; its model joins the registry. folder: where checkpoints are written."""
    if kind not in offered():
        raise SettingError(f"kind={kind!r}: expected one of {', '.join(offered())}")
    rung, network = offered()[kind][0], is_network(kind)
    title = f"{rung.lab}, {units} units" if rung.sizes and not starter else str(rung.lab)
    if network and find_spec("torch") is None:
        raise SettingError(f"{title} needs torch: {install_command('neural')}")
    built: list[Any] = []
    checkpoint = Checkpoint(folder / f"training-{len(jobs.all())}.safetensors", every=1e9) if network else None

    def work(job: Job) -> Iterator[Step]:
        if not built:
            yield Step(0, 1)  # the text may have to be read first
            built.append(build(kind, seconds, units))
        yield from train_steps(built[0], text, job.checkpoint)

    def finish() -> str | None:
        if not built:
            return None
        model = built[0]
        joined = TextLM(text.tokenizer, model) if kinds.of(model).task == "language-model" else model
        name = names.setdefault("name", registry.free_name(kind))
        entry = registry.add(name, joined, title)
        warm(entry)
        return entry.name

    names: dict[str, str] = {}
    return jobs.add(title, work, finish, checkpoint=checkpoint, starter=starter)


def warm(entry: Entry) -> None:
    """Send the page's requests once, so that kernels are compiled before the first user waits for them."""
    with entry.lock:
        if entry.task == "text":
            next_of(entry, "", 1, 1.0)
            entry.language_model.surprisal("a")
        elif entry.task == "vectors":
            words = [entry.vectors.word(index) for index in range(min(3, len(entry.vectors)))]
            entry.vectors.nearest(words[0], 1)
            entry.vectors.nearest_many(words, 1)
            is_common(words[0])  # which counts the embedded text


def build(name: str, seconds: float, units: int) -> Any:
    """Return an untrained model of those that are offered."""
    rung, kind = offered()[name]
    settings = {**rung.settings, **rung.lab_settings}
    if units != STARTER_UNITS:
        settings |= dict.fromkeys(rung.sizes, units)
    if kind.network:
        settings |= {"seconds": seconds, "device": "cpu"}
    return kinds.build(kind, settings)


def train_steps(model: Any, text: LearningText, checkpoint: Checkpoint | None) -> Iterator[Step]:
    """Train a model of any kind; yield its progress."""
    if checkpoint is not None:
        yield from model.train(text.train, valid=text.valid, checkpoint=checkpoint)
    elif kinds.of(model).task == "vectors":
        yield from model.train(text.train)
    elif isinstance(model, Iterative):
        yield from model.train(text.train, valid=text.valid)
    else:
        model.fit(text.train, valid=text.valid)
        yield Step(1, 1)


def start_starters(jobs: Jobs, registry: Registry, text: LearningText, folder: Path) -> None:
    """Queue the models that the lab starts with; the neural ones if torch is installed."""
    start_tagger(jobs, registry)
    for kind in STARTERS:
        if not is_network(kind) or find_spec("torch") is not None:
            start_training(jobs, registry, text, kind, folder, starter=True)
    if find_spec("torch") is not None:
        start_neural_tagger(jobs, registry)


def treebank() -> Path | None:
    """Return the treebank if it is on this machine; nothing is downloaded."""
    from foreword.text.datasets import availability, dataset, locate

    found = dataset(TREEBANK)
    return None if availability(found).files == 0 else locate(found.file("train"))[1]


def start_tagger(jobs: Jobs, registry: Registry) -> None:
    """Queue a hidden Markov model for parts of speech, if there is a treebank."""
    path = treebank()
    if path is None:
        return

    def work(_: Job) -> Iterator[Step]:
        from foreword.tag.conllu import read_conllu
        from foreword.tag.hmm import HMMTagger, tagger_trellis

        yield Step(0, 1)
        sentences, tags = read_conllu(str(path), "upos")
        tagger = HMMTagger().fit(sentences, tags)
        tagger_trellis(tagger, ["warm"])  # compiles the kernels
        registry.add("tagger", tagger, "HMM tagger, UD English")
        yield Step(1, 1)

    jobs.add("HMM tagger, UD English", work, lambda: "tagger", starter=True)


def start_neural_tagger(jobs: Jobs, registry: Registry) -> None:
    """Queue a bidirectional LSTM for the same tags.

    Measured with one seed: after two epochs, 15 seconds of CPU time, 94.6 % of the tags of 500 test sentences are
    right; the hidden Markov model has 94.1 %.
    """
    path = treebank()
    if path is None:
        return
    title = "BiLSTM tagger, UD English"

    def work(_: Job) -> Iterator[Step]:
        from foreword.tag.conllu import read_conllu

        yield Step(0, 1)
        tagger = small_bilstm(epochs=2)
        yield from tagger.train(*read_conllu(str(path), "upos"))
        registry.add("bilstm-tagger", tagger, title)

    jobs.add(title, work, lambda: "bilstm-tagger", starter=True)


def small_bilstm(epochs: int) -> BiLSTMTagger:
    """Return a tagger small enough to train while the user reads the first panel."""
    from foreword.tag.bilstm import BiLSTMTagger

    return BiLSTMTagger(
        48, words=48, letter_units=16, spelling=30, crf=False, epochs=epochs, batch=32, rate=5e-3, device="cpu"
    )
