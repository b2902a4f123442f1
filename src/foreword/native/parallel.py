"""Threads over a stream of items, or over the parts of one array. Kernels release the GIL, so threads are enough."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ordered_map(function: Callable[[In], Out], items: Iterable[In], threads: int | None = None) -> Iterator[Out]:
    """Map on threads: results in the order of the items, with few items in flight, so that memory stays flat."""
    threads = threads or cores()
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Out]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def in_threads(work: Callable[[int, int], None], size: int, threads: int) -> None:
    """Call ``work(first, last)`` on one thread each for ranges of about equal size that cover 0 to ``size``."""
    if threads <= 1:
        work(0, size)
        return
    ends = [size * number // threads for number in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, ends[:-1], ends[1:]))
