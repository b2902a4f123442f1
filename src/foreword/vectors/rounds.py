"""A corpus cut into rounds: in each round every thread trains on the next piece of its own share.

Between rounds all threads rest, so that the learning rate can fall, progress be shown and the state be saved.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from foreword.tokens.corpus import Corpus

PIECE = 100_000
"""Tokens that a thread trains on in a round: a twentieth of a second of work."""

STEPS = 200
"""A small corpus is cut finer, so that the rate still falls in about so many steps."""


class Rounds:
    """Where each thread's pieces lie. tokens: all that will be read, every epoch counted; total: how many rounds."""

    def __init__(self, corpus: Corpus, epochs: int, threads: int) -> None:
        self._edges = np.linspace(0, len(corpus.ids), threads + 1).astype(np.int64)
        share = int(np.diff(self._edges).max(initial=1))
        self._piece = max(1, min(PIECE, share * epochs // STEPS + 1))
        self._in_epoch = max(1, -(-share // self._piece))
        self._threads = threads
        self._size = len(corpus.ids)
        self.tokens = self._size * epochs
        self.total = self._in_epoch * epochs

    def done(self, number: int) -> int:
        """Tokens read before round ``number``."""
        epoch, piece = divmod(number, self._in_epoch)
        return epoch * self._size + min(self._size, piece * self._piece * self._threads)

    def run(self, number: int, work: Callable[[int, int, int], None]) -> None:
        """Call ``work(thread, begin, stop)`` for every thread, at the same time."""
        skip = number % self._in_epoch * self._piece
        pieces = [
            (thread, int(min(begin + skip, stop)), int(min(begin + skip + self._piece, stop)))
            for thread, (begin, stop) in enumerate(zip(self._edges[:-1], self._edges[1:], strict=True))
        ]
        if self._threads == 1:
            work(*pieces[0])
            return
        with ThreadPoolExecutor(self._threads) as pool:
            for future in [pool.submit(work, *piece) for piece in pieces]:
                future.result()
