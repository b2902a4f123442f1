"""What filtering and counting cost at one and at a hundred terabytes, from what is measured here.

    python recipes/scale.py > docs/scale.md        two minutes of one CPU core, with enwiki in $FOREWORD_DATA

Rates of filtering are read from docs/benchmarks.json. How n-grams grow is measured on English Wikipedia up to 64 MB and
carried on by Heaps' law; everything that was carried on, and every price, is said to be so on the page.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from foreword.lm.ngram_merge import merge_windows, tables_of, windows_of
from foreword.text.block import Block
from foreword.text.datasets import lookup
from foreword.text.sources import read_blocks
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

DOCS = Path(__file__).parent.parent / "docs"

ORDER = 5
SIZES = (1, 2, 4, 8, 16, 32, 64)
"""Megabytes of text, in 2²⁰ bytes; the last is a stretch as tasks read it."""

PRICE = 0.04
"""Dollars for an hour of one virtual core with 4 GiB, assumed: about what general-purpose machines cost on demand."""

NETWORK = 1.25e9
"""Bytes a second into and out of a node, assumed: ten gigabits."""

CORES, MEMORY = 16, 64 << 30
"""Of a node, assumed; the price above covers both."""

WORKER = 300e6
"""Bytes that a process which filters takes at most, model pages apart: the bar that filtering is held to."""

NUMBERED = (1 << 31) - 1
"""N-grams of one order that a model can number."""

TERABYTE = 10**12


@dataclass(frozen=True, slots=True)
class Growth:
    """What a text of so many bytes has: tokens, distinct words, distinct windows, distinct n-grams by order."""

    bytes: int
    tokens: int
    words: int
    windows: int
    ngrams: list[int]


@dataclass(frozen=True, slots=True)
class Law:
    """Heaps: distinct = k · tokens^β, fitted to the logs of what was counted."""

    k: float
    beta: float
    worst: float

    @classmethod
    def of(cls, tokens: Sequence[int], distinct: Sequence[int]) -> Law:
        beta, log_k = np.polyfit(np.log(tokens), np.log(distinct), 1)
        off = np.abs(np.exp(log_k + beta * np.log(tokens)) / np.array(distinct) - 1)
        return cls(float(np.exp(log_k)), float(beta), float(off.max()))

    def at(self, tokens: float) -> float:
        return float(self.k * tokens**self.beta)

    def reached(self, distinct: float) -> float:
        """After how many tokens there are so many."""
        return float((distinct / self.k) ** (1 / self.beta))


@dataclass(frozen=True, slots=True)
class Measured:
    """growth: of each size; CPU seconds for each megabyte of text: words counted, and windows listed; for each million
    windows: merged, and made into tables. memory: of this process at its highest, in bytes.
    """

    growth: list[Growth]
    words: float
    windows: float
    merging: float
    tables: float
    memory: float


def measure() -> Measured:
    """Everything about counting, on one core, in CPU time."""
    blocks = list(_first(SIZES[-1] << 20))
    began = time.process_time()
    words = WordTokenizer().fit_blocks(iter(blocks), threads=1)
    counting = time.process_time() - began
    growth, spent = [], 0.0
    for size in SIZES:
        text = list(_until(blocks, size << 20))
        began = time.process_time()
        corpus = Corpus.from_blocks(iter(text), words, threads=1)
        windows = windows_of(corpus, ORDER)
        spent = time.process_time() - began
        tables = tables_of(windows, len(words.vocab))
        ngrams = [int(np.count_nonzero(tables.unigrams)), *map(len, tables.tables)]
        length = sum(block.text_bytes() for block in text)
        growth.append(Growth(length, len(corpus.ids), ngrams[0], len(windows), ngrams))
    halves = [windows_of(corpus.shard(part, 2), ORDER) for part in range(2)]
    began = time.process_time()
    merged = merge_windows(halves, ORDER)
    merging = time.process_time() - began
    began = time.process_time()
    tables_of(merged, len(words.vocab))
    making = time.process_time() - began
    megabytes, millions = growth[-1].bytes / 1e6, len(merged) / 1e6
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
    taken = sum(map(len, halves)) / 1e6
    return Measured(growth, counting / megabytes, spent / megabytes, merging / taken, making / millions, memory)


def _first(size: int) -> list[Block]:
    dataset, file = lookup("enwiki:all")
    return list(_until(read_blocks(str(dataset.path(file.split, download=False))), size))


def _until(blocks: object, size: int) -> list[Block]:
    """Documents from the beginning, of so many bytes together."""
    found, held = [], 0
    for block in blocks:  # type: ignore[attr-defined]
        ends = held + np.cumsum(block.stops - block.starts)
        take = int(np.searchsorted(ends, size, "right"))
        found.append(Block(block.data, block.starts[:take], block.stops[:take]))
        held = int(ends[take - 1]) if take else held
        if take < len(block):
            break
    return found


# Filtering


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast one core filters: bytes of JSONL and documents a second."""

    name: str
    bytes: float
    documents: float


def rates() -> list[Rate]:
    """From the stored benchmarks; a row says seconds and, in words, megabytes a second."""
    stored = json.loads((DOCS / "benchmarks.json").read_text("utf-8"))
    each = bytes_a_document()
    found = []
    for row in stored["filter"]["rows"]:
        speed = float(row["ours"].split(",")[1].split()[0]) * 1e6
        found.append(Rate(row["job"], speed, speed / each))
    return found


def bytes_a_document(count: int = 2000) -> float:
    """The documents of that benchmark have one to twelve paragraphs of enwiki, and about eighty bytes around them."""
    texts = [len(text.encode()) for block in _first(4 << 20) for text in block.strings()]
    return statistics.fmean(islice(texts, count)) * 6.5 + 80


# The page


def page(measured: Measured, filters: Sequence[Rate]) -> str:
    growth = measured.growth
    tokens = [each.tokens for each in growth]
    laws = [Law.of(tokens, [each.ngrams[order] for each in growth]) for order in range(ORDER)]
    windows = Law.of(tokens, [each.windows for each in growth])
    density = growth[-1].tokens / growth[-1].bytes
    return "\n".join(
        [
            "# One terabyte, a hundred terabytes",
            "",
            "Made by `python recipes/scale.py > docs/scale.md`; do not edit. What is measured was measured on one core of",
            "the machine that [the benchmarks](BENCHMARKS.md) name; what is computed from it says from what.",
            "",
            "Assumed, and to be replaced by your own: a virtual core with 4 GiB of memory costs "
            f"${PRICE:.2f} an hour,",
            f"a node has {CORES} of them and {MEMORY >> 30} GiB, a network of 10 Gbit/s, and a virtual core does what our core does.",
            "Storage and its traffic are not counted. A terabyte is 10¹² bytes of text that is not compressed.",
            "",
            *filtering(filters),
            *heaps(growth, laws, windows),
            *counting(measured, laws, windows, density),
            *breaking(measured, laws, density),
        ]
    )


def filtering(filters: Sequence[Rate]) -> list[str]:
    lines = [
        "## Filtering",
        "",
        "Parts of 64 MB are independent, so that cores add up until the disks do not. Two workers of Ray's cluster on one",
        "machine beside one: see *Ray* in [the benchmarks](BENCHMARKS.md).",
        "",
        "| one core | documents/s | MB/s | core-hours a TB | $ a TB | 1 TB on 100 cores | 100 TB on 1,000 cores | tasks a TB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in filters:
        hours = TERABYTE / each.bytes / 3600
        lines.append(
            f"| {each.name} | {each.documents:,.0f} | {each.bytes / 1e6:.1f} | {hours:.1f} | {hours * PRICE:.2f} | "
            f"{hours / 100 * 60:.1f} min | {hours * 100 / 1000:.1f} h | {TERABYTE / (64 << 20):,.0f} |"
        )
    full = CORES * filters[0].bytes
    return [
        *lines,
        "",
        f"A node's {CORES} cores read {full / 1e9:.1f} GB/s with the quickest model, and write up to as much: "
        f"{2 * full / NETWORK:.1f} of its network where",
        "the files are not its own. Memory of a node: the models once, mapped by all its workers, and at most "
        f"{WORKER / 1e6:.0f} MB for each of",
        f"{CORES} workers, {CORES * WORKER / 1e9:.1f} GB. Nothing is sent from worker to worker; the program that was started gets the sums of each part,",
        "about a kilobyte, and writes one line of the ledger for it.",
        "",
    ]


def heaps(growth: Sequence[Growth], laws: Sequence[Law], windows: Law) -> list[str]:
    return [
        "## How n-grams grow",
        "",
        f"Distinct n-grams of English Wikipedia, counted; a window is what is sent about (`lm/ngram_merge.py`), {ORDER} words at most.",
        "",
        "| MB | tokens | words | 2-grams | 3-grams | 4-grams | 5-grams | windows |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {each.bytes / 1e6:.1f} | {each.tokens:,} | {' | '.join(f'{count:,}' for count in each.ngrams)} | {each.windows:,} |"
            for each in growth
        ),
        "",
        "Heaps' law, distinct = k · tokens^β, fitted to these (at worst "
        f"{max(law.worst for law in (*laws, windows)):.0%} off):",
        "",
        "| | words | 2-grams | 3-grams | 4-grams | 5-grams | windows |",
        "|---|---|---|---|---|---|---|",
        "| β | " + " | ".join(f"{law.beta:.3f}" for law in (*laws, windows)) + " |",
        "| k | " + " | ".join(f"{law.k:.3g}" for law in (*laws, windows)) + " |",
        "",
        "Carried on by four or six powers of ten this is a guess, and on the high side: β falls as texts grow, and the web",
        "repeats itself more than an encyclopaedia does.",
        "",
    ]


def counting(measured: Measured, laws: Sequence[Law], windows: Law, density: float) -> list[str]:
    row = 4 * ORDER + 8
    stretch = measured.growth[-1]
    lines = [
        f"## Counting {ORDER}-grams",
        "",
        f"Measured, CPU time of one core: words are counted at {1 / measured.words:.0f} MB/s, a stretch becomes ids and sorted windows at "
        f"{1 / measured.windows:.1f} MB/s,",
        f"windows are merged at {1 / measured.merging:.1f} million a second and become tables at {1 / measured.tables:.1f} million a second. A stretch of "
        f"{stretch.bytes / 1e6:.0f} MB gives",
        f"{stretch.windows / 1e6:.1f} million windows of {row} bytes, {row * stretch.windows / stretch.bytes:.1f} bytes for each byte of text, and a worker that lists them takes at most "
        f"{measured.memory / 1e9:.1f} GB",
        "(this program's peak, which holds more than a worker does).",
        "",
        "| | 1 TB | 100 TB |",
        "|---|---|---|",
    ]
    cells: list[list[str]] = [[] for _ in range(7)]
    for size in (TERABYTE, 100 * TERABYTE):
        stretches = size / stretch.bytes
        sent = stretches * row * stretch.windows
        levels = max(1.0, np.log(stretches) / np.log(8))
        seconds = size / 1e6 * (measured.words + measured.windows)
        seconds += stretches * stretch.windows / 1e6 * (measured.merging * 3 + measured.tables)
        hours = seconds / 3600
        tokens = size * density
        values = [
            f"{stretches:,.0f}",
            f"{sent / 1e12:,.1f} TB",
            f"{sent / NETWORK / 3600 / (1000 / CORES):.2f} h" if size > TERABYTE else f"{sent / NETWORK / 3600 / (100 / CORES):.2f} h",
            f"{levels:.1f}",
            f"{hours:,.0f}, ${hours * PRICE:,.0f}",
            f"{laws[-1].at(tokens):.2g}",
            f"{windows.at(tokens) * row / 1e12:,.1f} TB",
        ]
        for cell, value in zip(cells, values, strict=True):
            cell.append(value)
    names = [
        "stretches",
        "sent by the first merge (shuffle)",
        "the same over the network of 100, 1,000 cores",
        "levels of merging by eight",
        "core-hours, and what they cost",
        f"distinct {ORDER}-grams, by Heaps",
        "windows that are left, by Heaps",
    ]
    lines += [f"| {name} | {' | '.join(cell)} |" for name, cell in zip(names, cells, strict=True)]
    return [*lines, ""]


def breaking(measured: Measured, laws: Sequence[Law], density: float) -> list[str]:
    numbered = laws[-1].reached(NUMBERED) / density
    # A table's row, its suffix and continuations, and the place in the finished table: the program holds all orders.
    held = 24 + 16 * 1.5

    def all_orders(size: float) -> float:
        return held * sum(law.at(size * density) for law in laws)

    fits = 1e9
    while all_orders(fits * 1.1) < MEMORY:
        fits *= 1.1
    words = laws[0].at(TERABYTE * density)
    return [
        "## What breaks first",
        "",
        f"1. **The estimates, which one program makes.** It holds every n-gram of every order at about {held:.0f} bytes: {MEMORY >> 30} GiB are full after",
        f"   about {fits / 1e9:,.0f} GB of text. With `--set memory=…` they go to disk, and then the numbers of n-grams are the limit: an order",
        f"   has at most 2³¹, which {ORDER}-grams reach after about {numbered / 1e9:,.0f} GB. Above that: a lower order, fewer words (`--vocab`), or text",
        "   without its repetitions. Pruning does not help, for discounts are estimated from what it would leave out.",
        f"2. **The vocabulary.** By Heaps a terabyte has {words / 1e6:,.0f} million different words; merging their counts needs all of them in one",
        f"   worker, {words * 60 / 1e9:,.0f} GB at sixty bytes each. `--tokenizer` with byte-pair tokens learnt from a part avoids the whole step.",
        "3. **The object store**, when windows come faster than they are merged: Ray spills to local disks, whose size should be that",
        "   of the first merge divided by the nodes.",
        f"4. **The ledger**, in filtering: {100 * TERABYTE / (64 << 20) / 1e6:.1f} million parts for 100 TB are as many lines of about a kilobyte, written one by one and synced;",
        "   at a few thousand lines a second this is minutes. Files that are not plain lines (compressed, Parquet) are one part each,",
        "   so that a single huge one is one task.",
        "5. **Requests to an object store**, when IN is an address: each part opens its file once.",
        "",
        "Training networks by several workers sends the whole gradient, 4 bytes a weight, at every update; a network of ten",
        "million weights on ten gigabits waits about 60 ms for that, so that batches have to be worth it.",
    ]


def main() -> None:
    measured = measure()
    sys.stdout.write(page(measured, rates()) + "\n")


if __name__ == "__main__":
    main()


