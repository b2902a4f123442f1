"""Whether anything else runs on the machine. CPU time hardly minds; wall time of two threads on two cores does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.progress import say

ATTEMPTS = 12
LONGEST_WAIT = 60.0
MOST_OTHER_WORK = 0.1
"""Of one core."""

_STAT = Path("/proc/stat")


def undisturbed(measure: Callable[[], tuple[float, float]]) -> tuple[tuple[float, float], bool]:
    """What ``measure`` gives when nothing else ran meanwhile, and whether such a time was found in a few attempts."""
    for _ in range(ATTEMPTS):
        _wait()
        others, start = _seconds_of_others(), time.perf_counter()
        measured = measure()
        share = (_seconds_of_others() - others) / (time.perf_counter() - start)
        if share <= MOST_OTHER_WORK:
            return measured, True
        say(f"something else took {share:.0%} of a core meanwhile: once more")
    return measured, False


def _wait() -> None:
    give_up = time.perf_counter() + LONGEST_WAIT
    while time.perf_counter() < give_up:
        others, start = _seconds_of_others(), time.perf_counter()
        time.sleep(0.5)
        if (_seconds_of_others() - others) / (time.perf_counter() - start) <= MOST_OTHER_WORK:
            return


def _seconds_of_others() -> float:
    """CPU seconds that everyone but this process has taken since the machine started; 0 where nobody counts them."""
    if not _STAT.exists():
        return 0.0
    user, nice, system, _idle, _waiting, *rest = map(int, _STAT.read_text("utf-8").splitlines()[0].split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK") - time.process_time()
