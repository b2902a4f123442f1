"""N-gram models against KenLM and nltk.

KenLM's estimator is not on PyPI. Its Python module is, and on one machine the estimator, at its quickest, works
through 0.15 to 0.16 times as many tokens a second as the module's ``Model.score`` loop. So that loop is the yardstick
of estimation: 0.47 of its pace is three times that of KenLM's estimator.
"""

from __future__ import annotations

import itertools
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from nltk.lm import KneserNeyInterpolated
from nltk.lm.preprocessing import padded_everygram_pipeline
from nltk.util import ngrams
from numpy.typing import NDArray

from benchmarks.data import ENWIKI, WIKITEXT, documents, plain_file, scratch_folder
from benchmarks.measure import FEW_PAIRS, PAIRS, Pairs, interleaved, one_core
from benchmarks.progress import say
from benchmarks.report import Row, compared
from foreword.ngram.arpa import write_arpa
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.storage.folder import load, save
from foreword.text.sources import read_blocks
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

kenlm: Any = import_module("kenlm")
"""Imported this way because it comes without types, and mypy does not see that it is there at all."""

TITLE = "N-grams"
HOW = (
    "Order 5, modified Kneser-Ney. Estimation is from a text file to a finished model folder on disk; KenLM's time is "
    "what its Python module's `Model.score` loop, on lines of wikitext-2 test in memory, would take for as many "
    "tokens, and its own estimator is 0.15 to 0.16 times as fast as that loop. Scoring is from a text file to a number "
    "for each line, reading included on both sides, with the same model in both. Estimation, which ends on disk, and "
    "two threads are wall time. nltk scores trigrams with Kneser-Ney of its own kind, so only how many it scored is "
    "compared."
)

TEST = "wikitext-2:test"
ORDER = 5
ESTIMATION_BAR, SCORING_BAR, TWO_THREADS_BAR, NLTK_BAR = 0.47, 1.2, 2.2, 1000.0
BYTES_BAR, TRIE_BAR, QUANTIZED_BAR = 22.0, 10.8, 4.9
LIMIT = 512 << 20

NLTK_TRAIN_WORDS, NLTK_TRIGRAMS = 42_000, 40
"""nltk scores about a hundred trigrams a second."""

Score = Callable[[], NDArray[np.float64]]


def run(quick: bool) -> list[Row]:
    folder = scratch_folder() / "ngram"
    model = estimate(plain_file(WIKITEXT), folder)
    peer = as_kenlm(model)
    with one_core():
        rows = [_estimation(WIKITEXT, peer, PAIRS)]
        if not quick:
            rows.append(_estimation(ENWIKI, peer, FEW_PAIRS))
            rows.append(_within_a_limit())
        rows.append(_scoring(folder, peer, 1))
    rows.append(_scoring(folder, peer, 2))
    rows += _sizes(folder)
    with one_core():
        rows.append(_nltk())
    return rows


# Estimation


def estimate(text: Path, folder: Path) -> NgramLM:
    """From file to folder, one thread."""
    shutil.rmtree(folder, ignore_errors=True)
    tokenizer = WordTokenizer()
    corpus = tokenizer.fit_corpus(read_blocks(text), threads=1)
    model = NgramLM(ORDER, threads=1).fit(corpus)
    save(TextLM(tokenizer, model), folder)
    return model


def as_kenlm(model: NgramLM) -> Any:
    """The same model as KenLM reads it, from an ARPA file into its probing hash table, which is its fastest."""
    path = scratch_folder() / "ngram.arpa"
    say("writing an ARPA file for KenLM")
    write_arpa(model, path)
    settings = kenlm.Config()
    settings.show_progress = False
    peer = kenlm.Model(str(path), settings)
    path.unlink()
    return peer


def _estimation(text: str, peer: Any, pairs: int) -> Row:
    path, test = plain_file(text), plain_file(TEST)
    lines = list(documents(test))
    folder = scratch_folder() / "estimated"

    def theirs() -> list[float]:
        score = peer.score
        return [score(line) for line in lines]

    # Wall time: a model is finished when it is on disk, and waiting for the disk is part of that.
    measured = interleaved(
        f"estimation, {text}", lambda: estimate(path, folder), theirs, both_did_their_work, pairs=pairs, wall=True
    )
    shutil.rmtree(folder)
    return paced(
        f"{text}, estimation", "kenlm Model.score", measured, count_tokens(path), count_tokens(test), ESTIMATION_BAR
    )


def _within_a_limit() -> Row:
    """The same with 512 MB. What is mapped from files does not count: the system may drop it at any time."""
    empty = scratch_folder() / "little.txt"
    empty.write_text("a b c d e f\n", encoding="utf-8")
    interpreter, _ = _peak_of(empty, "--memory", "512M")
    within, seconds = _peak_of(plain_file(ENWIKI), "--memory", "512M")
    without, freely = _peak_of(plain_file(ENWIKI))
    most = LIMIT + interpreter
    return Row(
        f"{ENWIKI}, estimation, --memory 512M",
        ours=f"{within >> 20} MB at most, {seconds:.1f} s",
        peer="KenLM's estimator: 1.2 GB",
        bar=f"≤ {most >> 20} MB",
        met=within <= most,
        note=f"anonymous memory of the whole run, of which {interpreter >> 20} MB are the interpreter; without a limit "
        f"{without >> 20} MB, {freely:.1f} s",
    )


def _peak_of(text: Path, *options: str) -> tuple[int, float]:
    """The most anonymous memory, in bytes, that a whole run ever had, and how many seconds it took."""
    folder = scratch_folder() / "limited"
    say(f"estimation from {text.name} {' '.join(options)}")
    began = time.perf_counter()
    command = [sys.executable, "-m", "foreword", "train", "ngram", str(text), "-o", str(folder), "--threads", "1"]
    run = subprocess.Popen([*command, "--quiet", *options])
    peak = 0
    while run.poll() is None:
        with suppress(OSError):
            status = Path(f"/proc/{run.pid}/status").read_text(encoding="utf-8")
            peak = max(peak, *(int(line.split()[1]) << 10 for line in status.splitlines() if "RssAnon" in line), 0)
        time.sleep(0.005)
    seconds = time.perf_counter() - began
    shutil.rmtree(folder)
    if run.returncode:
        raise RuntimeError(f"{' '.join(command)} failed")
    return peak, seconds


def both_did_their_work(model: NgramLM, scores: list[float]) -> bool:
    """They do different things here; ``tests/against/test_kenlm.py`` compares our estimates with KenLM's."""
    return len(model.sizes_) == ORDER and all(model.sizes_) and all(map(math.isfinite, scores))


def count_tokens(path: Path) -> int:
    """Words, and one more a document for its end."""
    return sum(len(line.split()) + 1 for line in documents(path))


def paced(job: str, peer: str, measured: Pairs, ours: int, theirs: int, bar: float) -> Row:
    """A row for works of different size: the peer's time is what it would take for as many tokens as ours."""
    same_size = replace(measured, theirs=[taken * ours / theirs for taken in measured.theirs])
    row = compared(job, peer, same_size, bar=bar)
    paces = [count / taken for count, taken in ((ours, np.median(measured.ours)), (theirs, np.median(measured.theirs)))]
    return replace(
        row,
        ours=f"{row.ours}, {_millions(float(paces[0]))} tokens/s",
        peer=f"{peer}: {_millions(float(paces[1]))} tokens/s",
    )


def _millions(pace: float) -> str:
    return f"{pace / 1e6:.3g} M" if pace >= 1e5 else f"{pace:,.0f}"


# Scoring


def _scoring(folder: Path, peer: Any, threads: int) -> Row:
    path = plain_file(TEST)
    opened: TextLM = load(folder)
    tokenizer, model = opened.tokenizer, opened.model
    assert isinstance(model, NgramLM)
    model.threads = threads

    def ours() -> NDArray[np.float64]:
        corpus = Corpus.from_blocks(read_blocks(path), tokenizer, threads=threads)
        return np.add.reduceat(model.logprobs(corpus), corpus.offsets[:-1]) / math.log(10)

    def theirs() -> NDArray[np.float64]:
        score = peer.score
        return np.array([score(line) for line in documents(path)])

    threaded = "two threads" if threads == 2 else "one thread"
    measured = interleaved(f"scoring, {threaded}", ours, theirs, same_scores, wall=threads > 1)
    bar = TWO_THREADS_BAR if threads == 2 else SCORING_BAR
    tokens = count_tokens(path)
    return paced(f"{TEST}, scoring, {threaded}", "kenlm Model.score", measured, tokens, tokens, bar)


def same_scores(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> bool:
    """log10 of each line; KenLM adds up in float32."""
    return len(ours) == len(theirs) and np.allclose(ours, theirs, rtol=1e-5)


# Size


def _sizes(folder: Path) -> list[Row]:
    """Everything in the folder counts: vocabulary, tokenizer, settings."""
    joined: TextLM = load(folder)
    assert isinstance(joined.model, NgramLM)
    corpus = Corpus.from_blocks(read_blocks(plain_file(WIKITEXT)), joined.tokenizer, threads=1)
    rows = [_size(folder, joined.model, "hash layout", "KenLM probing: 22.1", BYTES_BAR)]
    for quantize, peer, bar in (
        (False, "KenLM trie: 10.8", TRIE_BAR),
        (True, "KenLM trie, 8 bits: 4.4–4.9", QUANTIZED_BAR),
    ):
        model = NgramLM(ORDER, layout="trie", quantize=quantize, threads=1).fit(corpus)
        smaller = folder.with_name("trie")
        save(TextLM(joined.tokenizer, model), smaller)
        rows.append(_size(smaller, model, "trie, 8 bits" if quantize else "trie", peer, bar))
        shutil.rmtree(smaller)
    return rows


def _size(folder: Path, model: NgramLM, layout: str, peer: str, bar: float) -> Row:
    stored = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    ngrams_kept = sum(model.sizes_)
    each = stored / ngrams_kept
    loss = f"; rows sum to one within {model.normalisation_loss(50):.1g}" if model.quantize else ""
    return Row(
        f"{WIKITEXT}, folder, {layout}",
        ours=f"{each:.2f} bytes an n-gram",
        peer=peer,
        bar=f"≤ {bar:g}",
        met=each <= bar,
        note=f"{stored / 1e6:.1f} MB for {ngrams_kept:,} n-grams, vocabulary included{loss}",
    )


# nltk


def _nltk() -> Row:
    """Trigrams of the Penn Treebank: nltk scores a few, we all of the test part, and paces are compared."""
    lines = list(documents(plain_file("ptb:train")))
    lengths = itertools.accumulate(len(line.split()) for line in lines)
    enough = next(place for place, words in enumerate(lengths, 1) if words >= NLTK_TRAIN_WORDS)
    tokenizer = WordTokenizer().fit(lines[:enough])
    model = NgramLM(3, "kneser-ney", threads=1).fit(Corpus.from_texts(lines[:enough], tokenizer))
    test = Corpus.from_texts(list(documents(plain_file("ptb:test"))), tokenizer)
    peer = nltk_model([line.split() for line in lines[:enough]])
    asked = list(itertools.islice(ngrams(" ".join(lines[enough:]).split(), 3), NLTK_TRIGRAMS))

    def theirs() -> list[float]:
        return [peer.score(word, context) for *context, word in asked]

    measured = interleaved(
        "nltk, trigrams",
        lambda: model.logprobs(test),
        theirs,
        lambda logs, scores: len(logs) == len(test.ids) and len(scores) == NLTK_TRIGRAMS,
        pairs=FEW_PAIRS,
    )
    return paced("ptb, scoring trigrams", "nltk.lm Kneser-Ney", measured, len(test.ids), NLTK_TRIGRAMS, NLTK_BAR)


def nltk_model(sentences: list[list[str]]) -> Any:
    say("fitting nltk's model")
    train, vocabulary = padded_everygram_pipeline(3, sentences)
    model = KneserNeyInterpolated(3)
    model.fit(train, vocabulary)
    return model
