"""Suffix arrays against libdivsufsort, indexes of a gigabyte, and how long a question takes."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from pydivsufsort import divsufsort

from benchmarks.data import ENWIKI, WIKITEXT, documents, plain_file, scratch_folder
from benchmarks.measure import Pairs, interleaved, one_core, seconds
from benchmarks.progress import say
from benchmarks.report import Row, compared
from foreword.arrays import Ids, Ints
from foreword.infinigram import plain
from foreword.infinigram.chunks import ChunkedSort
from foreword.infinigram.suffixes import suffix_array
from foreword.pipeline.compressed import CompressedTextIndex
from foreword.pipeline.index import TextIndex
from foreword.storage.folder import load, save
from foreword.text.block import blocks_of
from foreword.tokens.words import WordTokenizer

TITLE = "∞-grams"
HOW = (
    "Sorting: the suffix array of the bytes of enwiki, from an array in memory to an array in memory, or with 512 MB "
    "of working memory to one that is mapped from a file; libdivsufsort through pydivsufsort; one pair of each. "
    "Repeated: the first tenth ten times over. Questions: of an index of all words of enwiki, and of one with its "
    "65,536 commonest, mapped from its folder and asked before, from Python; means over many, by CPU time. Spans of "
    "lines of enwiki, which are long, and of WikiText-2."
)

MEMORY = 512_000_000

UNSEEN = "wikitext-2:test"


def run(quick: bool) -> list[Row]:
    text = np.fromfile(plain_file(WIKITEXT if quick else ENWIKI), np.uint8)[: 100_000_000 if not quick else 10_000_000]
    repeated = np.tile(text[: len(text) // 10], 10)
    with one_core():
        sorting(text[:300_000], "warming up")
        rows = [against_plain_python(text[:5000]), *sorting(text, "enwiki"), *sorting(repeated, "repeated")]
        return [*rows, *asking(quick, None), *asking(quick, 1 << 16), *compressed(quick)]


def against_plain_python(text: Ids) -> Row:
    """Sort slices, which is what one would write first."""
    pairs = interleaved(
        "suffix array, plain Python", lambda: suffix_array(text.astype(np.uint16), 256),
        lambda: plain.suffix_array(text.tobytes()), lambda ours, theirs: ours.tolist() == theirs, pairs=3,
    )  # fmt: skip
    return compared("suffix array of 5 kB", "`sorted`, slices as keys", pairs)


def sorting(text: Ids, name: str) -> list[Row]:
    """In memory against libdivsufsort, and with a limit of memory against our own in memory.

    Each takes minutes where other work runs, so the orders are compared in the pairs that count; kernels are warm.
    """
    size, folder = len(text) / 1e6, scratch_folder() / f"chunks-{name}"
    kept: dict[str, Any] = {}

    def timed(way: str, sort: Callable[[], Any]) -> float:
        taken = seconds(lambda: kept.update({way: sort()}), time.process_time)
        say(f"{name}, {way}: {taken:.1f} s")
        return taken

    def in_chunks() -> Ints:
        shutil.rmtree(folder, ignore_errors=True)  # or it would resume
        return ChunkedSort(text.astype(np.uint16), 256, int(MEMORY * size / 100), folder, None).sorted()

    ours = timed("in memory", lambda: suffix_array(text.astype(np.uint16), 256))
    theirs = timed("libdivsufsort", lambda: divsufsort(text))
    chunks = timed("in chunks", in_chunks)
    if not np.array_equal(kept["in memory"], kept["libdivsufsort"]) or not np.array_equal(*list(kept.values())[::2]):
        raise AssertionError(f"{name}: the orders of the suffixes differ")
    job, limit = f"{size:.0f} MB, {name}", MEMORY * size / 1e8
    pairs, limited = Pairs([ours], [theirs]), Pairs([chunks], [ours])
    return [
        compared(f"suffix array of {job}", "libdivsufsort", pairs, bar=0.5, size=size),
        compared(f"the same, {limit:.0f} MB of memory", "our own in memory", limited, bar=0.5, size=size),
    ]


def asking(quick: bool, size: int | None) -> list[Row]:
    """Build an index of words, and ask it."""
    lines = list(documents(plain_file(WIKITEXT if quick else ENWIKI)))
    folder = scratch_folder() / f"words-{size}"
    save(TextIndex(WordTokenizer(max_size=size)).fit_blocks(blocks_of(lines), threads=1), folder)
    index: TextIndex = load(folder)
    tokens = index.index.tokens
    stored = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / tokens
    rng = random.Random(0)
    words = [line.split() for line in rng.sample([line for line in lines if len(line) > 200], 1000)]
    runs = [" ".join(line[begin : begin + rng.randint(1, 6)]) for line in words for begin in (0, 3, 7)]
    runs = [run for run in runs if all(word in index.vocab for word in run.split())]
    ids = [np.asarray(index.tokenizer.encode(run), np.int64) for run in runs]
    joined = [f" {' '.join(line.split())} " for line in lines[:: 1 if quick else 20]]
    few = TextIndex(index.tokenizer).fit_blocks(blocks_of(lines[:: 1 if quick else 20]), threads=1)
    if any(few.count(run) != sum(_count(line, f" {run} ") for line in joined) for run in runs[:2]):
        raise AssertionError("the counts are not those of a scan")
    scan = mean(lambda run: [line.count(f" {run} ") for line in joined], runs[:3]) * (1 if quick else 20)
    contexts = [run for run in ids if 5000 < index.index.count(run) <= 10_000] or ids[:1]
    long = [" ".join(word for line in words[first : first + 40] for word in line).split()[:1000]
            for first in range(0, 400, 40)]  # fmt: skip
    texts = [" ".join(text) for text in long]
    others = list(documents(plain_file(UNSEEN)))
    unseen = [" ".join(" ".join(others[first:]).split()[:1000]) for first in range(0, 1000, 100)]
    following = 1e6 * mean(index.index.context, contexts)
    long_spans = partial(index.spans, least=8)
    scanned = f"`str.count`: {1e3 * scan:.0f} ms"
    of = f"{len(index.vocab):,} kinds of words"
    return [
        limited(f"index of {tokens / 1e6:.1f} M tokens, {of}: bytes a token, all files", stored, 7, "{:.2f}"),
        limited(f"count a run of ids, {of}", 1e6 * mean(index.index.count, ids), 20, "{:.1f} µs"),
        limited(f"count a string, {of}", 1e6 * mean(index.count, runs), 20, "{:.1f} µs", scanned),
        limited(f"next words of runs seen 5,000 to 10,000 times, {of}", following, 100, "{:.0f} µs"),
        limited(f"spans of 1,000 words, least 8, {of}", 1e3 * mean(long_spans, texts), 5, "{:.2f} ms"),
        limited(f"spans of 1,000 words, all, {of}", 1e3 * mean(index.spans, texts), 5, "{:.2f} ms"),
        limited(f"spans of 1,000 words of another corpus, all, {of}", 1e3 * mean(index.spans, unseen), 5, "{:.2f} ms"),
    ]  # fmt: skip


def compressed(quick: bool) -> list[Row]:
    """Build a compressed index of bytes, and count strings of 5 to 40 characters, half of them of the text."""
    lines = list(documents(plain_file(WIKITEXT if quick else ENWIKI)))
    index = CompressedTextIndex().fit_blocks(blocks_of(lines), threads=1)
    size = sum(len(line.encode()) + 1 for line in lines)
    rng = random.Random(0)
    strings = [line[begin : begin + rng.randint(5, 40)] for line in rng.sample(lines, 500)
               for begin in [rng.randrange(len(line))]]  # fmt: skip
    strings += ["".join(rng.sample(string, len(string))) for string in strings]
    if [index.count(string) for string in strings[::100]] != [
        sum(_count(line, string) for line in lines if string in line) for string in strings[::100]
    ]:
        raise AssertionError("the counts are not those of a scan")
    name = f"compressed index of {size / 1e6:.0f} MB of bytes"
    return [
        limited(f"{name}: share of the text's size", index.index.nbytes / size, 0.7, "{:.2f}"),
        limited(f"{name}: count a string", 1e6 * mean(index.count, strings), 200, "{:.0f} µs"),
    ]


def _count(line: str, run: str) -> int:
    """Count occurrences that may overlap."""
    return sum(line.startswith(run, begin) for begin in range(len(line)))


def mean(ask: Callable[[Any], object], questions: list[Any]) -> float:
    """Return the mean CPU time of a question in seconds, at the best of five rounds, after one that is not counted."""
    rounds = [seconds(lambda: [ask(question) for question in questions], time.process_time) for _ in range(6)]
    return min(rounds[1:]) / len(questions)


def limited(job: str, found: float, most: float, form: str, peer: str = "–") -> Row:
    bar = f"≤ {form.format(most)}"
    return Row(job, form.format(found), peer, bar=bar, met=found <= most, figures={"ours": found})
