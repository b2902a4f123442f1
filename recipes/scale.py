"""What filtering and counting cost at one and at a hundred terabytes, from what is measured here.

    python recipes/scale.py > docs/scale.md        two minutes of one CPU core, with enwiki in $FOREWORD_DATA

Rates of filtering are read from docs/benchmarks.json. How n-grams grow is measured on English Wikipedia up to 64 MB and
carried on by Heaps' law; everything that was carried on, and every price, is said to be so on the page.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

import numpy as np

from foreword.cluster.counting import TOGETHER
from foreword.filtering.ledger import Ledger
from foreword.ngram.merge import merge_windows, tables_of, windows_of
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
"""Bytes that a process which filters takes at most, model pages apart: what is held is bounded, see docs/filter.md."""

NUMBERED = (1 << 31) - 1
"""N-grams of one order that a model can number."""

TERABYTE = 10**12


@dataclass(frozen=True, slots=True)
class Growth:
    """What a text of a given size has: tokens, distinct words, distinct windows, distinct n-grams by order."""

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
        """Return after how many tokens there are that many."""
        return float((distinct / self.k) ** (1 / self.beta))


@dataclass(frozen=True, slots=True)
class Measured:
    """growth: of each size; CPU seconds for each megabyte of text: words counted, and windows listed; for each million
    windows: merged, and made into tables. memory: of this process at its highest, in bytes. lines: of a ledger that are
    written and synced in a second, on the clock.
    """

    growth: list[Growth]
    words: float
    windows: float
    merging: float
    tables: float
    memory: float
    lines: float


def measure() -> Measured:
    """Everything about counting, on one core, in CPU time."""
    blocks = list(_first(SIZES[-1] << 20))
    warm = WordTokenizer()
    windows_of(warm.fit_corpus(iter(blocks[:1]), threads=1), ORDER)  # kernels are compiled off the clock
    WordTokenizer().fit_blocks(iter(blocks[:1]), threads=1)
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
    rates = counting / megabytes, spent / megabytes, merging / taken, making / millions
    return Measured(growth, *rates, memory, _ledger_lines())


def _ledger_lines(count: int = 300) -> float:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "out", {})
        began = time.perf_counter()
        for number in range(count):
            ledger.record(f"part {number}", state=[0, 0], bytes=0, tally={"filler": "x" * 800})
        taken = time.perf_counter() - began
        ledger.close(finished=True)
    return count / taken


def _first(size: int) -> list[Block]:
    dataset, file = lookup("enwiki:all")
    return list(_until(read_blocks(str(dataset.path(file.split, download=False))), size))


def _until(blocks: object, size: int) -> list[Block]:
    """Yield documents from the beginning, up to a total size."""
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
        if not row["ours"].endswith("MB/s") or "processes" in row["job"]:  # memory, or more than one core
            continue
        speed = float(row["ours"].split(",")[1].split()[0]) * 1e6
        found.append(Rate(row["job"], speed, speed / each))
    return found


def bytes_a_document() -> float:
    """The documents of that benchmark have one to twelve paragraphs of enwiki, and about eighty bytes around them."""
    blocks = _first(SIZES[-1] << 20)
    return sum(block.text_bytes() for block in blocks) / sum(map(len, blocks)) * 6.5 + 80


# The page


def told(text: str, indent: str = "") -> str:
    """A paragraph, or with an indent a point of a list, in lines of the width that the pages have."""
    return fill(" ".join(text.split()), 125, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def page(measured: Measured, filters: Sequence[Rate]) -> str:
    growth = measured.growth
    tokens = [each.tokens for each in growth]
    laws = [Law.of(tokens, [each.ngrams[order] for each in growth]) for order in range(ORDER)]
    windows = Law.of(tokens, [each.windows for each in growth])
    density = growth[-1].tokens / growth[-1].bytes
    head = """Made by `python recipes/scale.py > docs/scale.md`; do not edit. Measured numbers are from one core of
        the machine described in [the benchmarks](BENCHMARKS.md); computed numbers state what they are derived from."""
    assumed = f"""Assumptions, to be replaced by your own figures: a virtual core with 4 GiB of memory costs
        ${PRICE:.2f} an hour, a node has {CORES} of them and {MEMORY >> 30} GiB, a network of 10 Gbit/s, and a virtual
        core is as fast as our core. Storage and data transfer are not included. A terabyte is 10¹² bytes of
        uncompressed text."""
    parts = ["# One terabyte, a hundred terabytes", told(head), told(assumed)]
    parts += filtering(filters) + heaps(growth, laws, windows) + counting(measured, laws, windows, density)
    return "\n\n".join(parts + breaking(measured, laws, density))


def filtering(filters: Sequence[Rate]) -> list[str]:
    columns = "one core | documents/s | MB/s | core-hours per TB | $ per TB | 1 TB on 100 cores | 100 TB on 1,000 cores"
    lines = [f"| {columns} |", "|---" * (columns.count("|") + 1) + "|"]
    for each in filters:
        hours = TERABYTE / each.bytes / 3600
        lines.append(
            f"| {each.name} | {each.documents:,.0f} | {each.bytes / 1e6:.1f} | {hours:.1f} | {hours * PRICE:.2f} | "
            f"{hours / 100 * 60:.1f} min | {hours * 100 / 1000:.1f} h |"
        )
    full = CORES * filters[0].bytes
    before = f"""Parts of 64 MB, {TERABYTE / (64 << 20):,.0f} per terabyte, are independent, so throughput scales with
        the cores until the disks are the bottleneck. For two Ray workers on one machine compared with one, see *Ray*
        in [the benchmarks](BENCHMARKS.md)."""
    after = f"""A node's {CORES} cores read {full / 1e9:.1f} GB/s with the fastest model and write up to as much:
        {2 * full / NETWORK:.1f} times the one-way bandwidth of its network, if the files are remote. Memory of a
        node: the models once, mapped by all its workers, and at most {WORKER / 1e6:.0f} MB for each of {CORES}
        workers, {CORES * WORKER / 1e9:.1f} GB. Workers do not exchange data; the driver receives the sums of each
        part, about a kilobyte, and writes one ledger line for it."""
    return ["## Filtering", told(before), "\n".join(lines), told(after)]


def heaps(growth: Sequence[Growth], laws: Sequence[Law], windows: Law) -> list[str]:
    kinds = "words | 2-grams | 3-grams | 4-grams | 5-grams | windows"
    counted = [f"| MB | tokens | {kinds} |", "|---" * 8 + "|"]
    for each in growth:
        cells = [f"{each.bytes / 1e6:.1f}", *(f"{count:,}" for count in (each.tokens, *each.ngrams, each.windows))]
        counted.append(f"| {' | '.join(cells)} |")
    fitted = [
        f"| | {kinds} |",
        "|---" * 7 + "|",
        "| β | " + " | ".join(f"{law.beta:.3f}" for law in (*laws, windows)) + " |",
        "| k | " + " | ".join(f"{law.k:.3g}" for law in (*laws, windows)) + " |",
    ]
    before = f"""Distinct n-grams of English Wikipedia, counted; a window is the unit that is exchanged
        (`ngram/merge.py`), {ORDER} words at most."""
    law = f"""Heaps' law, distinct = k · tokens^β, fitted to these counts (at most
        {max(law.worst for law in (*laws, windows)):.0%} off):"""
    after = """An extrapolation over four or six orders of magnitude is only a rough estimate, and too high: β
        decreases with the size of the text, and the web is more repetitive than an encyclopaedia."""
    return ["## How n-grams grow", told(before), "\n".join(counted), told(law), "\n".join(fitted), told(after)]


def counting(measured: Measured, laws: Sequence[Law], windows: Law, density: float) -> list[str]:
    row, stretch = 4 * ORDER + 8, measured.growth[-1]
    before = f"""Measured in CPU time on one core: words are counted at {1 / measured.words:.0f} MB/s, a chunk is
        converted to ids and sorted windows at {1 / measured.windows:.1f} MB/s, windows are merged at
        {1 / measured.merging:.1f} million per second and converted to tables at {1 / measured.tables:.1f} million per
        second. A chunk of {stretch.bytes / 1e6:.0f} MB gives {stretch.windows / 1e6:.1f} million windows of {row}
        bytes, {row * stretch.windows / stretch.bytes:.1f} bytes per byte of text, and the process that lists them
        uses at most {measured.memory / 1e9:.1f} GB (the peak of this program, which stores more than a worker does),
        {CORES * measured.memory / 1e9:.0f} GB for the {CORES} cores of a node."""
    table = [_counted(size, measured, laws, windows, density) for size in (TERABYTE, 100 * TERABYTE)]
    lines = ["| | 1 TB | 100 TB |", "|---|---|---|"]
    lines += [f"| {name} | {table[0][name]} | {table[1][name]} |" for name in table[0]]
    return [f"## Counting {ORDER}-grams", told(before), "\n".join(lines)]


def _counted(size: float, measured: Measured, laws: Sequence[Law], windows: Law, density: float) -> dict[str, str]:
    row, stretch, tokens = 4 * ORDER + 8, measured.growth[-1], size * density
    cores = 1000 if size > TERABYTE else 100
    stretches = size / stretch.bytes
    listed = stretches * stretch.windows
    levels = int(np.ceil(np.log(stretches) / np.log(TOGETHER)))
    carried = levels * listed * row / NETWORK / (cores / CORES)
    seconds = size / 1e6 * (measured.words + measured.windows)
    # Each halving of the number of lists moves all windows once, at most: repeated ones become fewer.
    seconds += listed / 1e6 * (measured.merging * np.log2(stretches) + measured.tables)
    return {
        "chunks": f"{stretches:,.0f}",
        "data sent per merge level (shuffle), at most": f"{listed * row / 1e12:,.1f} TB",
        f"merge levels, {TOGETHER} lists per task": f"{levels}",
        "time for all levels on the network of 100 and 1,000 cores": f"{carried / 3600:.1f} h",
        "core-hours": f"{seconds / 3600:,.0f}",
        "cost": f"${seconds / 3600 * PRICE:,.0f}",
        f"distinct {ORDER}-grams, by Heaps' law": f"{laws[-1].at(tokens):.2g}",
        "remaining windows, by Heaps' law": f"{windows.at(tokens) * row / 1e12:,.1f} TB",
    }


def breaking(measured: Measured, laws: Sequence[Law], density: float) -> list[str]:
    # A table's row, its suffix and continuations, and its place in the finished table: the program holds all orders.
    held = 24 + 16 * 1.5
    fits = 1e9
    while held * sum(law.at(1.1 * fits * density) for law in laws) < MEMORY:
        fits *= 1.1
    numbered = laws[-1].reached(NUMBERED) / density
    words, parts = laws[0].at(TERABYTE * density), 100 * TERABYTE / (64 << 20)
    points = [
        f"""1. **Estimation, which runs in one process.** It stores every n-gram of every order in about {held:.0f}
        bytes: {MEMORY >> 30} GiB are full after about {fits / 1e9:,.0f} GB of text. With `--memory` they are stored
        on disk, and the number of n-grams becomes the limit: an order has at most 2³¹, which {ORDER}-grams reach
        after about {numbered / 1e9:,.0f} GB. Beyond that, use a lower order, a smaller vocabulary (`--vocab`), or
        deduplicated text. Pruning does not help, because the discounts are estimated from the n-grams that it would
        remove.""",
        f"""2. **The vocabulary.** By Heaps' law a terabyte has {words / 1e6:,.0f} million different words; merging
        their counts needs all of them in one worker, {words * 60 / 1e9:,.0f} GB at sixty bytes each. `--tokenizer`
        with a byte-pair tokenizer trained on a sample avoids the whole step.""",
        """3. **The object store**, when windows arrive faster than they are merged: Ray spills to local disks, which
        need space for one merge level, divided by the number of nodes.""",
        f"""4. **The ledger**, in filtering: {parts / 1e6:.1f} million parts for 100 TB mean the same number of lines
        of about a kilobyte, written and synced one by one, and one more per file; at the {measured.lines:,.0f} per
        second measured here that is {parts / measured.lines / 3600:.1f} hours. Files that are not uncompressed lines
        (compressed files, Parquet) are one part each, so that a single huge file is one task.""",
        "5. **Requests to an object store**, when IN is a URL: each part opens its file once.",
    ]
    network = f"""Training a network with several workers sends the whole gradient, 4 bytes per weight, twice per
        update (ring all-reduce); with ten million weights and ten gigabits each update waits
        {2 * 4e7 / NETWORK * 1e3:.0f} ms, so batches must be large enough to be worthwhile."""
    return ["## What breaks first", "\n".join(told(point, "   ") for point in points), told(network)]


def main() -> None:
    measured = measure()
    sys.stdout.write(page(measured, rates()) + "\n")


if __name__ == "__main__":
    main()
