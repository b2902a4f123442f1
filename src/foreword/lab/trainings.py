"""What can be trained from the page, and the small models that the lab begins with.

Everything learns from one text with one vocabulary of words, so that models stand side by side. The starters are those
that take seconds; they are trained behind the page, which is there at once, and join it as they are done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreword import kinds
from foreword.errors import InputError, SettingError
from foreword.evaluate.compare.facts import written_without_spaces
from foreword.evaluate.compare.setup import split
from foreword.lab.jobs import Job, Jobs
from foreword.lessons.keywords import is_common
from foreword.pipeline.language import TextLM
from foreword.protocols import Step, TextTokenizer
from foreword.serve.answers import next_of
from foreword.serve.registry import Entry, Registry
from foreword.tokens.characters import CharacterTokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.training.checkpoint import Checkpoint

if TYPE_CHECKING:
    from foreword.tag.bilstm import BiLSTMTagger

OFFERED = {name: pair for name, pair in kinds.rungs().items() if pair[0].lab is not None}
"""The models that the lab offers, by name."""

NEURAL = {name: rung.settings["rate"] for name, (rung, kind) in OFFERED.items() if kind.network}
"""Cells and their learning rates, those of the ladder."""

KINDS = {name: rung.lab or rung.title for name, (rung, _) in OFFERED.items()}
"""Titles."""

STARTERS = ("bigram", "5-gram", "skip-gram", "cbow", "hmm", "lstm", "gru", "rnn")
STARTER_SECONDS, STARTER_UNITS, STARTER_STATES = 10.0, 64, 12
TREEBANK = "ud_english_ewt"
LEAST_WORDS, FEW_WORDS = 20, 5000
"""Fewer words cannot be learnt from; of fewer than the second, those that occur once are kept too."""


class LearningText:
    """A text to learn from, read when the first training needs it."""

    def __init__(self, read: Callable[[], Sequence[str]]) -> None:
        self._read = read

    @cached_property
    def documents(self) -> list[str]:
        """Return the documents; raise an InputError if there are too few words."""
        found = [text for text in self._read() if text.strip()]
        if sum(len(text.split()) for text in found) < LEAST_WORDS:
            raise InputError(f"the text is too short to learn from: expected {LEAST_WORDS} words or more")
        return found

    @cached_property
    def tokenizer(self) -> TextTokenizer:
        """Words in small letters, with punctuation apart, so that what is typed is found; else characters."""
        texts, _ = self.parts
        if written_without_spaces(texts):
            return CharacterTokenizer(min_count=1).fit(texts)
        words = sum(len(text.split()) for text in texts)
        return WordTokenizer(split="punctuation", lowercase=True, min_count=2 if words > FEW_WORDS else 1).fit(texts)

    @cached_property
    def parts(self) -> tuple[list[str], list[str]]:
        """What is learnt from, and what is tuned on."""
        if len(self.documents) < 3:
            return self.documents, []
        found = split(self.documents)
        return [*found.train, *found.test], list(found.valid)

    @cached_property
    def train(self) -> Corpus:
        return Corpus.from_texts(self.parts[0], self.tokenizer)

    @cached_property
    def valid(self) -> Corpus | None:
        return Corpus.from_texts(self.parts[1], self.tokenizer) if self.parts[1] else None


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
    """Queue one training; what it learns joins the registry. folder: where checkpoints of neural models are kept."""
    if kind not in KINDS:
        raise SettingError(f"kind={kind!r}: expected one of {', '.join(KINDS)}")
    title = KINDS[kind] if starter or kind not in (*NEURAL, "hmm") else f"{KINDS[kind]}, {units} units"
    if kind in NEURAL and find_spec("torch") is None:
        raise SettingError(f"{KINDS[kind]} needs torch: pip install 'foreword[neural]'")
    built: list[Any] = []
    checkpoint = Checkpoint(folder / f"training-{len(jobs.all())}.safetensors", every=1e9) if kind in NEURAL else None

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
    """Ask once what the page will ask: kernels are compiled when they first run, not when somebody waits."""
    with entry.lock:
        if entry.task == "text":
            next_of(entry, "", 1, 1.0)
            entry.language_model.surprisal("a")
        elif entry.task == "vectors":
            words = [entry.vectors.word(place) for place in range(min(3, len(entry.vectors)))]
            entry.vectors.nearest(words[0], 1)
            entry.vectors.nearest_many(words, 1)
            is_common(words[0])  # which counts the embedded text


def build(kind: str, seconds: float, units: int) -> Any:
    """The model, with nothing learnt."""
    if kind in ("bigram", "5-gram"):
        from foreword.ngram.model import NgramLM

        return NgramLM(2 if kind == "bigram" else 5)
    if kind == "hmm":
        from foreword.hmm.model import HMM

        return HMM(STARTER_STATES if units == STARTER_UNITS else units, iterations=25, dtype="float32", threads=1)
    if kind in ("skip-gram", "cbow"):
        from foreword.vectors.word2vec import Word2Vec

        return Word2Vec(50, model=kind, window=4, epochs=8, sample=1e-3)  # type: ignore[arg-type]
    from foreword.neural.recurrent import RecurrentLM

    training = replace(
        RecurrentLM.TRAINING, rate=NEURAL[kind], steps=20, sampled=500, hold=0.3, last_rate=0.01, epochs=100,
        seconds=seconds,
    )  # fmt: skip
    return RecurrentLM(kind, units, units, layers=1, tied=kind != "gru", training=training, device="cpu")


def train_steps(model: Any, text: LearningText, checkpoint: Checkpoint | None) -> Iterator[Step]:
    """Train a model of any kind; yield its progress."""
    if checkpoint is not None:
        yield from model.train(text.train, valid=text.valid, checkpoint=checkpoint)
    elif hasattr(model, "iterations"):  # rounds of EM
        yield from model.train(text.train, valid=text.valid)
    elif hasattr(model, "train"):
        yield from model.train(text.train)
    else:
        model.fit(text.train, valid=text.valid)
        yield Step(1, 1)


def start_starters(jobs: Jobs, registry: Registry, text: LearningText, folder: Path) -> None:
    """Queue the models that the lab begins with; the neural ones where torch is there."""
    start_tagger(jobs, registry)
    for kind in STARTERS:
        if kind not in NEURAL or find_spec("torch") is not None:
            start_training(jobs, registry, text, kind, folder, starter=True)
    if find_spec("torch") is not None:
        start_neural_tagger(jobs, registry)


def treebank() -> Path | None:
    """Where one lies on this machine; nothing is fetched."""
    from foreword.text.datasets import availability, dataset, locate

    found = dataset(TREEBANK)
    return None if availability(found).files == 0 else locate(found.file("train"))[1]


def start_tagger(jobs: Jobs, registry: Registry) -> None:
    """A tagger of parts of speech by a hidden Markov model, where there is a treebank."""
    path = treebank()
    if path is None:
        return

    def work(_: Job) -> Iterator[Step]:
        from foreword.tag.conllu import read_conllu
        from foreword.tag.hmm import HMMTagger, tagger_trellis

        yield Step(0, 1)
        sentences, tags = read_conllu(str(path), "upos")
        tagger = HMMTagger().fit(sentences, tags)
        tagger_trellis(tagger, ["warm"])  # kernels are compiled when they first run: not when somebody waits
        registry.add("tagger", tagger, "HMM tagger, UD English")
        yield Step(1, 1)

    jobs.add("HMM tagger, UD English", work, lambda: "tagger", starter=True)


def start_neural_tagger(jobs: Jobs, registry: Registry) -> None:
    """One that reads both ways, to stand beside it. As measured, one seed: after two epochs, 15 seconds of CPU time, it
    has 94.6 % of the tags of 500 test sentences right, the hidden Markov model 94.1 %.
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
    """Small enough to learn a treebank while somebody looks at the first panel."""
    from foreword.tag.bilstm import BiLSTMTagger

    return BiLSTMTagger(
        48, words=48, letter_units=16, spelling=30, crf=False, epochs=epochs, batch=32, rate=5e-3, device="cpu"
    )
