"""Train a model of any kind on text, by its name.

``foreword train KIND TEXT`` and ``foreword.train(KIND, texts)`` both come here, so that the shell and Python give the
same model: the registry in ``kinds.py`` has the defaults of each kind.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreword import kinds
from foreword.checks import check_not_string
from foreword.errors import InputError, SettingError
from foreword.pipeline.language import TextLM, word_tokenizer
from foreword.protocols import Meter, Step, TextTokenizer
from foreword.storage.atomic import clear_abandoned
from foreword.storage.checkpoint import Checkpoint, deferred_interrupt
from foreword.storage.folder import load, save
from foreword.storage.scratch import Scratch
from foreword.text.block import Block, blocks_of
from foreword.tokens.corpus import Corpus

if TYPE_CHECKING:
    from foreword.pipeline.translator import TextTranslator

SAVE_EVERY = 300.0
"""Seconds between two savings of a model that is saved while it is trained."""


def train(
    kind: str,
    texts: Iterable[str],
    *,
    tokenizer: TextTokenizer | None = None,
    min_count: int | None = None,
    max_size: int | None = None,
    valid: Iterable[str] | None = None,
    threads: int | None = None,
    meter: Meter | None = None,
    **settings: Any,
) -> Any:
    """Train a language model or word vectors, as ``foreword train KIND`` does.

    kind: ngram, hmm, lstm, word2vec, ...: the names that ``foreword train --help`` lists.
    texts: one document each. tokenizer: one that has learnt its vocabulary; otherwise words between white space.
    min_count, max_size: which words the vocabulary keeps; by default those that suit the kind.
    settings: of the model, and of a network's ``Training`` and ``Dropout``.

    Return a ``TextLM``, or for word vectors the trained model, whose ``vectors`` are the result.
    """
    check_not_string(texts)
    if kind not in (names := kinds.trained_as("language-model", "vectors")):
        raise SettingError(f"kind={kind!r}: expected one of {', '.join(names)}")
    model = kinds.build(names[kind], {**names[kind].names[kind], **settings})
    words, corpus = read_corpus(
        blocks_of(texts), model, tokenizer, min_count=min_count, max_size=max_size, threads=threads
    )
    held_out = None if valid is None else Corpus.from_texts(valid, words)
    learn(model, corpus, valid=held_out, threads=threads, meter=meter)
    return finished(words, model)


def read_corpus(
    blocks: Iterator[Block],
    model: object,
    tokenizer: TextTokenizer | None = None,
    *,
    min_count: int | None = None,
    max_size: int | None = None,
    threads: int | None = None,
    scratch: Scratch | None = None,
) -> tuple[TextTokenizer, Corpus]:
    """Encode a text, and return the tokenizer that did it: the one given, or words between white space."""
    if tokenizer is not None:
        return tokenizer, Corpus.from_blocks(blocks, tokenizer, threads=threads, scratch=scratch)
    words = word_tokenizer(model, min_count, max_size)
    return words, words.fit_corpus(blocks, threads=threads, scratch=scratch)


def finished(tokenizer: TextTokenizer, model: Any) -> Any:
    """Return what is saved: a ``TextLM``, or a model of word vectors, which knows its words itself."""
    return TextLM(tokenizer, model) if kinds.of(model).task == "language-model" else model


@dataclass(frozen=True, slots=True)
class Output:
    """Where a training is saved. resume: whether one that was stopped there is resumed."""

    folder: str
    resume: bool = False

    @property
    def checkpoint(self) -> Path:
        """The file, or on Ray the folder, that holds the run of a network until its model is saved."""
        return Path(f"{self.folder.rstrip('/')}.checkpoint")

    def discard_checkpoint(self) -> None:
        """Delete the checkpoint of a run, a file or on Ray a folder."""
        if self.checkpoint.is_dir():
            shutil.rmtree(self.checkpoint)
        self.checkpoint.unlink(missing_ok=True)

    def clear_abandoned(self) -> None:
        """Delete what a process that was killed while it saved left next to the model, where that is allowed."""
        with suppress(OSError):
            clear_abandoned(Path(os.path.realpath(self.folder)))

    def is_done(self, kind: kinds.Kind) -> bool:
        """Return whether a network is to be resumed whose training has ended."""
        return kind.network and self.resume and Path(self.folder).exists() and not self.checkpoint.exists()

    def build(self, kind: kinds.Kind, settings: Mapping[str, Any]) -> Any:
        """Construct a model, or load the stopped one, which must have been given the same settings.

        Where nothing is there yet, a resumed training starts: the same call can be repeated until the work is done.
        """
        if not self.resume or kind.network or not Path(self.folder).exists():
            return kinds.build(kind, settings)
        model = load(self.folder, verify=True)
        if kinds.of(model) is not kind:
            raise InputError(
                f"{self.folder}: its kind is {kinds.of(model).name}, not {kind.name}: it cannot be resumed"
            )
        for name, value in settings.items():
            if name in ("memory", "scratch"):  # where the work is done changes nothing of it
                setattr(model, name, value)
            elif getattr(model, name) != value:
                raise InputError(
                    f"{self.folder}: training began with {name}={getattr(model, name)}, and now {name}={value} is given"
                )
        return model


def learn(
    model: Any,
    corpus: Corpus,
    *,
    valid: Corpus | None = None,
    output: Output | None = None,
    threads: int | None = None,
    meter: Meter | None = None,
) -> None:
    """Train a model of any kind to the end. With ``output``, long training is saved on the way and can be resumed."""
    kind = kinds.of(model)
    reports = {"meter": meter} if "meter" in kind.training else {}
    if kind.network:
        if threads is not None:
            import torch

            torch.set_num_threads(threads)
        run_network(model, lambda checkpoint: model.train(corpus, valid=valid, checkpoint=checkpoint), output, meter)
    elif kind.task == "vectors":
        run_steps(model, model.train(corpus, **reports), output, meter)
    else:
        model.fit(corpus, valid=valid, **reports)


def run_steps(model: Any, steps: Iterator[Step], output: Output | None, meter: Meter | None) -> None:
    """Run the steps of a training, saving the model on the way but not at the end.

    Ctrl-C stops after the current step, saves the model, and reports how to resume.
    """
    saved = time.monotonic()
    with deferred_interrupt() as stopped:
        for step in steps:
            if meter:
                meter(f"training, loss {step.loss:.4f}", step.done, step.total)
            if stopped.is_set() and step.done < step.total:
                if output is None:
                    raise KeyboardInterrupt
                save(model, output.folder)
                share = step.done / step.total
                raise KeyboardInterrupt(f"stopped after {share:.0%} and saved in {output.folder}: --resume continues")
            if output is not None and time.monotonic() - saved >= SAVE_EVERY:
                save(model, output.folder)
                saved = time.monotonic()


def run_network(
    model: Any, begin: Callable[[Checkpoint | None], Iterator[Step]], output: Output | None, meter: Meter | None
) -> None:
    """Train a network of any task to the end; with ``output`` the run is saved in a checkpoint file.

    begin: starts the training, which resumes from the checkpoint that it is given. Ctrl-C stops after the current
    updates, writes that file, and reports how to resume.
    """
    if output is None:
        for step in begin(None):
            if meter:
                meter(_progress(model, step), step.done, step.total)
        return
    checkpoint = Checkpoint(output.checkpoint)
    if not output.resume:
        output.discard_checkpoint()
    elif checkpoint.path.is_dir():
        raise SettingError(f"{checkpoint.path} holds a run on Ray: resume it with --ray")
    asked_at = 0
    with deferred_interrupt() as stopped:
        for step in begin(checkpoint):
            if meter:
                meter(_progress(model, step), step.done, step.total)
            if stopped.is_set() and asked_at == checkpoint.written:
                checkpoint.ask()
            elif stopped.is_set():
                share = step.done / max(1, step.total)
                raise KeyboardInterrupt(f"stopped after {share:.0%} and saved in {checkpoint.path}: --resume continues")
            else:
                asked_at = checkpoint.written


def _progress(model: Any, step: Step) -> str:
    if not math.isfinite(model.valid_score_):
        return f"training, loss {step.loss:.3f}"
    is_language = kinds.of(model).task == "language-model"
    seen = f"{math.exp(-model.valid_score_):.1f}" if is_language else f"{model.valid_score_:.4f}"
    return f"training, loss {step.loss:.3f}, valid {seen}"


# Translators


def new_translator(model: Any, tokens: str = "bpe", max_size: int | None = None, min_count: int = 2) -> TextTranslator:
    """Return a translator that has learnt nothing yet.

    tokens: ``bpe``, one byte-pair encoding of both languages, 8,000 tokens unless ``max_size`` is given; or ``word``,
    the words of each language that occur at least ``min_count`` times.
    """
    from foreword.pipeline.translator import TextTranslator
    from foreword.tokens.bpe import BPETokenizer
    from foreword.tokens.words import WordTokenizer

    if tokens == "bpe":
        joint = BPETokenizer(max_size or 8000, prefix_space=True)
        return TextTranslator(joint, joint, model)
    source, target = (WordTokenizer(min_count=min_count, max_size=max_size) for _ in range(2))
    return TextTranslator(source, target, model)


def learn_translator(
    translator: TextTranslator,
    texts: tuple[list[str], list[str]],
    valid: tuple[list[str], list[str]] | None,
    output: Output,
    meter: Meter | None = None,
) -> None:
    """Train a translator to the end, with a checkpoint on the way."""

    def begin(checkpoint: Checkpoint | None) -> Iterator[Step]:
        return translator.train(*texts, valid=valid, checkpoint=checkpoint)

    run_network(translator.model, begin, output, meter)
