"""How time is taken: ours and theirs in turn, in one process, so that whatever slows the machine slows both.

The same work measured an hour apart on a shared machine differs by a third, with a small spread both times; the ratio
of two runs that follow each other does not. So the figure that counts is the median of the ratios of such pairs.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

Ours = TypeVar("Ours")
Theirs = TypeVar("Theirs")
Result = TypeVar("Result")
Clock = Callable[[], float]

PAIRS = 5
FEW_PAIRS = 3
"""For work that takes a peer 20 seconds and more."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Seconds of runs that followed each other."""

    ours: list[float]
    theirs: list[float]

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
    clock: Clock = time.process_time,
) -> Pairs:
    """Run both in turn. The first pair compiles, fills caches and has to agree; its time does not count."""
    say(f"{name}: warming up")
    if not agree(ours(), theirs()):
        raise AssertionError(f"{name}: the results differ, so their times cannot be compared")
    measured = Pairs([], [])
    for number in range(1, pairs + 1):
        measured.ours.append(seconds(ours, clock))
        measured.theirs.append(seconds(theirs, clock))
        say(f"{name}: pair {number} of {pairs}: {measured.ours[-1]:.3f} s against {measured.theirs[-1]:.3f} s")
    return measured


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


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
