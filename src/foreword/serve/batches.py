"""Questions that wait for the same model are computed together.

A network reads sixty texts side by side in little more time than one. So a question waits a moment for company, and
for as long as others keep coming, up to a limit: after a batch, its clients ask again one by one. While a batch is
computed in a worker thread, those that come meanwhile wait and are the next one. What a model of counts takes for a
short text is less than handing it to a thread would take: that is done on the event loop itself, all questions that
came in one turn of the loop in one call.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from foreword.errors import ForewordError
from foreword.serve.answers import WORK, Answer
from foreword.serve.limits import Limits
from foreword.serve.metrics import Metrics
from foreword.serve.registry import Entry

SMALL = 20_000
"""Characters that a cheap model reads on the event loop: a few milliseconds at most."""

PATIENCE = 10
"""How many times the wait for another question a batch is gathered, at most."""

LARGE = 1 << 20
"""Characters in one batch, unless one request alone has more."""


@dataclass(frozen=True, slots=True)
class Waiting:
    questions: Sequence[Any]
    size: int
    future: asyncio.Future[list[Any]]


class Desk:
    """Where questions are handed in. One event loop and some threads. closing: whether the server is about to end."""

    def __init__(self, limits: Limits | None = None, metrics: Metrics | None = None) -> None:
        self.limits = Limits() if limits is None else limits
        self.metrics = Metrics() if metrics is None else metrics
        self.threads = ThreadPoolExecutor(max(2, os.cpu_count() or 1), "foreword-work")
        self.closing = False
        self._lines: WeakKeyDictionary[Entry, dict[Any, Line]] = WeakKeyDictionary()

    async def ask(self, entry: Entry, ability: str, questions: Sequence[Any], **options: Any) -> list[Any]:
        """An answer for each question; an error if the model cannot, or if one of them is refused."""
        return await self.put(entry, ability, questions, **options)

    def put(self, entry: Entry, ability: str, questions: Sequence[Any], **options: Any) -> asyncio.Future[list[Any]]:
        entry.check(ability)
        lines = self._lines.get(entry)
        if lines is None:
            lines = self._lines[entry] = {}
        key = (ability, *options.items())
        line = lines.get(key)
        if line is None:
            line = lines[key] = Line(self, entry, ability, options)
        return line.put(questions)

    def close(self) -> None:
        self.threads.shutdown(wait=False, cancel_futures=True)


class Line:
    """Those who wait for one model with one kind of question."""

    def __init__(self, desk: Desk, entry: Entry, ability: str, options: dict[str, Any]) -> None:
        self.desk, self.entry, self.ability, self.options = desk, entry, ability, options
        self.cheap = entry.is_cheap(ability)
        self.waiting: list[Waiting] = []
        self.busy = False

    def put(self, questions: Sequence[Any]) -> asyncio.Future[list[Any]]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()
        size = sum(len(each) for each in questions)
        self.waiting.append(Waiting(questions, size, future))
        if not self.busy:
            self.busy = True
            if self.cheap:
                loop.call_soon(self._next)
            else:
                self._gather(loop)
        return future

    def _gather(self, loop: asyncio.AbstractEventLoop, before: int = 0, turns: int = 0) -> None:
        """Wait until nobody came since the last look, or the batch is full, or it has taken long enough."""
        there = len(self.waiting)
        if there == before or there >= self.desk.limits.batch or turns >= PATIENCE:
            self._next()
        else:
            loop.call_later(self.desk.limits.wait, self._gather, loop, there, turns + 1)

    def _next(self) -> None:
        """Compute a batch: here where that is quick, or else in a thread."""
        batch = self._take()
        if not batch:
            self.busy = False
            return
        if self.cheap and sum(each.size for each in batch) <= SMALL and self.entry.lock.acquire(blocking=False):
            try:
                answers = self._computed(batch)
            finally:
                self.entry.lock.release()
            self._deliver(batch, answers)
            return
        work = asyncio.get_running_loop().run_in_executor(self.desk.threads, self._computed_alone, batch)
        work.add_done_callback(lambda done: self._finished(batch, done))

    def _take(self) -> list[Waiting]:
        """The first so many, without those whose clients have gone."""
        taken, questions, size = list[Waiting](), 0, 0
        for place, each in enumerate(self.waiting):
            if each.future.done():
                continue
            questions, size = questions + len(each.questions), size + each.size
            if taken and (questions > self.desk.limits.batch or size > LARGE):
                del self.waiting[:place]
                return taken
            taken.append(each)
        self.waiting.clear()
        return taken

    def _finished(self, batch: list[Waiting], done: asyncio.Future[list[list[Answer]]]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None or done.cancelled():
            answers: list[list[Answer]] = [[ForewordError("the server is closing")] for _ in batch]
        else:
            answers = done.result()
        self._deliver(batch, answers)

    def _deliver(self, batch: list[Waiting], answers: list[list[Answer]]) -> None:
        self.desk.metrics.batch(self.entry.name, self.ability, len(batch))
        for each, found in zip(batch, answers, strict=True):
            if each.future.done():
                continue
            refused = next((answer for answer in found if isinstance(answer, BaseException)), None)
            if refused is not None:
                each.future.set_exception(refused)
            else:
                each.future.set_result(found)
        if not self.waiting:
            self.busy = False
        elif self.cheap:
            asyncio.get_running_loop().call_soon(self._next)
        else:
            asyncio.get_running_loop().call_soon(self._gather, asyncio.get_running_loop())

    def _computed_alone(self, batch: list[Waiting]) -> list[list[Answer]]:
        with self.entry.lock:
            return self._computed(batch)

    def _computed(self, batch: list[Waiting]) -> list[list[Answer]]:
        """Answers for each of those who wait; where all together fail, each on its own, so that one harms no other."""
        questions = [question for each in batch for question in each.questions]
        try:
            found = WORK[self.ability](self.entry, questions, self.options, self.desk.limits.tokens)
        except Exception as error:
            if len(batch) == 1:
                return [[error]]  # type: ignore[list-item]
            return [self._computed([each])[0] for each in batch]
        answers, start = [], 0
        for each in batch:
            answers.append(found[start : start + len(each.questions)])
            start += len(each.questions)
        return answers
