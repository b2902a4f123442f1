"""How time is taken: ours and theirs in turn, in one process, so that whatever slows the machine slows both.

The same work measured an hour apart on a shared machine differs by a third, with a small spread both times; the ratio
of two runs that follow each other does not. So the figure that counts is the median of the ratios of such pairs.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.progress import say
from benchmarks.quiet import undisturbed

Ours = TypeVar("Ours")
Theirs = TypeVar("Theirs")
Clock = Callable[[], float]

PAIRS = 5
FEW_PAIRS = 3
"""For work that takes a peer 20 seconds and more."""

PATIENCE = 180.0
"""Seconds that one comparison may wait for a quiet machine."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Seconds of runs that followed each other; ``disturbed`` counts pairs during which other work ran."""

    ours: list[float]
    theirs: list[float]
    disturbed: int = 0

    @property
    def ratios(self) -> list[float]:
        """How many times as fast we were, pair by pair."""
        return [theirs / ours for ours, theirs in zip(self.ours, self.theirs, strict=True)]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def ratio_of_medians(self) -> float:
        return statistics.median(self.theirs) / statistics.median(self.ours)


def interleaved(
    name: str,
    ours: Callable[[], Ours],
    theirs: Callable[[], Theirs],
    agree: Callable[[Ours, Theirs], bool],
    *,
    pairs: int = PAIRS,
    wall: bool = False,
) -> Pairs:
    """Run both in turn. The first pair compiles, fills caches and has to agree; its time does not count.

    CPU time counts, or with ``wall`` that of the clock on the wall; then pairs are repeated while other work disturbs.
    """
    say(f"{name}: warming up")
    if not agree(ours(), theirs()):
        raise AssertionError(f"{name}: the results differ, so their times cannot be compared")
    clock = time.perf_counter if wall else time.process_time

    def pair() -> tuple[float, float]:
        return seconds(ours, clock), seconds(theirs, clock)

    until = time.perf_counter() + PATIENCE
    taken, disturbed = [], 0
    for number in range(1, pairs + 1):
        times, quiet = undisturbed(pair, until) if wall else (pair(), True)
        disturbed += not quiet
        taken.append(times)
        say(f"{name}: pair {number} of {pairs}: {times[0]:.3f} s against {times[1]:.3f} s")
    return Pairs([mine for mine, _ in taken], [other for _, other in taken], disturbed)


def seconds(work: Callable[[], object], clock: Clock) -> float:
    """How long ``work`` takes. The garbage collector rests, and what the work returns is freed off the clock."""
    gc.collect()
    gc.disable()
    try:
        start = clock()
        result = work()
        taken = clock() - start
    finally:
        gc.enable()
    del result
    return taken


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this thread, and the threads that it starts, on one core: no thread pool can help, no move disturbs."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})  # the system's own work prefers the first
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
