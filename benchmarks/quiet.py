"""Whether anything else runs on the machine. CPU time hardly minds; wall time of two threads on two cores does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from benchmarks.progress import say

Measured = TypeVar("Measured")

MOST_OTHER_WORK = 0.1
"""Of one core."""

_STAT = Path("/proc/stat")


def undisturbed(measure: Callable[[], Measured], until: float) -> tuple[Measured, bool]:
    """What ``measure`` gives when nothing else runs meanwhile, and whether that could be had before ``until``."""
    while True:
        while _share_of_others(lambda: time.sleep(0.5))[1] > MOST_OTHER_WORK and time.perf_counter() < until:
            pass
        measured, share = _share_of_others(measure)
        if share <= MOST_OTHER_WORK:
            return measured, True
        say(f"something else took {share:.0%} of a core meanwhile")
        if time.perf_counter() >= until:
            return measured, False


def _share_of_others(work: Callable[[], Measured]) -> tuple[Measured, float]:
    """What ``work`` gives, and how many cores other processes kept busy meanwhile."""
    others, start = _seconds_of_others(), time.perf_counter()
    result = work()
    return result, (_seconds_of_others() - others) / (time.perf_counter() - start)


def _seconds_of_others() -> float:
    """CPU seconds that all but this process and its children that have ended took since the machine started; 0 where
    nobody counts them.
    """
    if not _STAT.exists():
        return 0.0
    user, nice, system, _idle, _waiting, *rest = map(int, _STAT.read_text("utf-8").splitlines()[0].split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])
