"""A kernel's work in parts, each on a thread of its own: kernels release the GIL."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def in_threads(work: Callable[[int, int], None], size: int, threads: int) -> None:
    """``work(first, last)`` for stretches of about one size that cover 0 to ``size``; one is done on this thread."""
    if threads <= 1:
        work(0, size)
        return
    ends = [size * number // threads for number in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, ends[:-1], ends[1:]))
