"""Dynamic batching: pending requests for the same model are computed together.

A network reads a batch of sixty texts in little more time than one. So a request waits a moment for others, and for as
long as others keep coming, up to a limit: after a batch, its clients ask again one by one. While a batch is computed in
a worker thread, new requests queue up for the next one. A short text takes an n-gram model less time than handing it to
a thread would: that is computed on the event loop itself, all requests of one turn of the loop in one call.

Text is generated token by token. Many texts are generated at once from one model, each for a moment at a time in a
worker thread: none waits for another to end, and the time limit of a request is checked between the turns.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from foreword.decode import generate, pieces
from foreword.errors import ForewordError
from foreword.serve.answers import WORK, Answer, check_size, check_tokens
from foreword.serve.limits import Limits
from foreword.serve.metrics import Metrics
from foreword.serve.registry import Entry

if TYPE_CHECKING:
    from foreword.serve.bodies import AskGenerate

SMALL = 20_000
"""Characters that a cheap model reads on the event loop: a few milliseconds of work at most."""

PATIENCE = 10
"""How many times ``Limits.wait`` a batch may wait for more requests."""

LARGE = 1 << 20
"""Characters in one batch, unless one request alone has more."""


class OutOfTimeError(ForewordError):
    """An answer that took longer than a request may."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"there was no answer after {seconds:g} seconds: ask for less, or when it is quieter")


class BusyError(ForewordError):
    """A request that would wait too long for those before it."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A request that waits. size: characters of its questions."""

    questions: Sequence[Any]
    size: int
    future: asyncio.Future[list[Any]]


class Batcher:
    """Queues of pending requests and the threads that compute them. closing: whether the server is shutting down."""

    def __init__(self, limits: Limits | None = None, metrics: Metrics | None = None) -> None:
        self.limits = Limits() if limits is None else limits
        self.metrics = Metrics() if metrics is None else metrics
        self.threads = ThreadPoolExecutor(max(2, os.cpu_count() or 1), "foreword-work")
        self.closing = False
        self.generating = 0  # texts that are being generated
        self._queues: WeakKeyDictionary[Entry, dict[Any, Queue]] = WeakKeyDictionary()

    async def ask(self, entry: Entry, ability: str, questions: Sequence[Any], **options: Any) -> list[Any]:
        """Return an answer for each question; raise an error if the model cannot, or if one of them is refused."""
        entry.check(ability)
        check_size(entry, ability, questions, options)
        queues = self._queues.get(entry)
        if queues is None:
            queues = self._queues[entry] = {}
        key = (ability, *options.items())
        queue = queues.get(key)
        if queue is None:
            queue = queues[key] = Queue(self, entry, ability, options)
        future = queue.put(questions)
        return await (future if queue.cheap else _within(self.limits.seconds, future))

    def drop(self, queue: Queue) -> None:
        """Forget a queue in which nothing waits."""
        self._queues.get(queue.entry, {}).pop((queue.ability, *queue.options.items()), None)

    def close(self) -> None:
        """Drop what is queued."""
        self.threads.shutdown(wait=False, cancel_futures=True)


async def _within(seconds: float, future: asyncio.Future[list[Any]]) -> list[Any]:
    """Await one future with a time limit; ``asyncio.timeout`` takes three times as long for it."""
    timer = asyncio.get_running_loop().call_later(seconds, future.cancel)
    try:
        return await future
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # the client has gone
            raise
        raise OutOfTimeError(seconds) from None
    finally:
        timer.cancel()


class Queue:
    """Queue of pending requests for one (model, route, options)."""

    def __init__(self, batcher: Batcher, entry: Entry, ability: str, options: dict[str, Any]) -> None:
        self.batcher, self.entry, self.ability, self.options = batcher, entry, ability, options
        self.cheap = entry.is_cheap(ability)
        self.pending: list[Pending] = []
        self.busy = False
        self.seconds = 0.0  # of a batch, averaged over the last few

    def put(self, questions: Sequence[Any]) -> asyncio.Future[list[Any]]:
        """Queue a request; the future gets its answers."""
        before = sum(len(each.questions) for each in self.pending) if self.seconds else 0
        if before // self.batcher.limits.batch * self.seconds > self.batcher.limits.queue:
            raise BusyError(f"{before} texts wait for {self.entry.name!r} already: ask again in a moment")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()
        size = sum(len(each) for each in questions)
        self.pending.append(Pending(questions, size, future))
        if not self.busy:
            self.busy = True
            if self.cheap:
                loop.call_soon(self._start_batch)
            else:
                self._gather(loop)
        return future

    def _gather(self, loop: asyncio.AbstractEventLoop, before: int = 0, turns: int = 0) -> None:
        """Wait until no request came since the last check, the batch is full, or it has waited long enough."""
        count = len(self.pending)
        if count == before or count >= self.batcher.limits.batch or turns >= PATIENCE:
            self._start_batch()
        else:
            loop.call_later(self.batcher.limits.wait, self._gather, loop, count, turns + 1)

    def _start_batch(self) -> None:
        """Compute a batch: here if that is quick, in a thread if not."""
        batch = self._pop_batch()
        if not batch:
            self._rest()
            return
        if self.cheap and sum(each.size for each in batch) <= SMALL and self.entry.lock.acquire(blocking=False):
            try:
                answers = self._compute(batch)
            finally:
                self.entry.lock.release()
            self._deliver(batch, answers)
            return
        began = time.monotonic()
        work = asyncio.get_running_loop().run_in_executor(self.batcher.threads, self._compute_locked, batch)
        work.add_done_callback(lambda done: self._finished(batch, done, time.monotonic() - began))

    def _pop_batch(self) -> list[Pending]:
        """Take the first requests off the queue, without those whose clients have gone."""
        batch, questions, size = list[Pending](), 0, 0
        for index, each in enumerate(self.pending):
            if each.future.done():
                continue
            questions, size = questions + len(each.questions), size + each.size
            if batch and (questions > self.batcher.limits.batch or size > LARGE):
                del self.pending[:index]
                return batch
            batch.append(each)
        self.pending.clear()
        return batch

    def _finished(self, batch: list[Pending], done: asyncio.Future[list[list[Answer]]], seconds: float) -> None:
        self.seconds += (seconds - self.seconds) / 4
        error = None if done.cancelled() else done.exception()
        if error is not None or done.cancelled():
            answers: list[list[Answer]] = [[ForewordError("the server is closing")] for _ in batch]
        else:
            answers = done.result()
        self._deliver(batch, answers)

    def _deliver(self, batch: list[Pending], answers: list[list[Answer]]) -> None:
        self.batcher.metrics.batch(self.entry.name, self.ability, len(batch))
        for each, found in zip(batch, answers, strict=True):
            if each.future.done():
                continue
            refused = next((answer for answer in found if isinstance(answer, BaseException)), None)
            if refused is not None:
                each.future.set_exception(refused)
            else:
                each.future.set_result(found)
        if not self.pending:
            self._rest()
        elif self.cheap:
            asyncio.get_running_loop().call_soon(self._start_batch)
        else:
            asyncio.get_running_loop().call_soon(self._gather, asyncio.get_running_loop())

    def _rest(self) -> None:
        """Drop this queue while it is empty: clients may vary options without end, and a queue keeps its model."""
        self.busy = False
        self.batcher.drop(self)

    def _compute_locked(self, batch: list[Pending]) -> list[list[Answer]]:
        with self.entry.lock:
            return self._compute(batch)

    def _compute(self, batch: list[Pending]) -> list[list[Answer]]:
        """Return the answers of each request; if the batch fails, compute each on its own."""
        questions = [question for each in batch for question in each.questions]
        try:
            found = WORK[self.ability](self.entry, questions, self.options, self.batcher.limits.tokens)
        except Exception as error:
            if len(batch) == 1:
                return [[error]]  # type: ignore[list-item]
            return [self._compute([each])[0] for each in batch]
        answers, start = [], 0
        for each in batch:
            answers.append(found[start : start + len(each.questions)])
            start += len(each.questions)
        return answers


# Generating

TURN, SHORTEST = 0.02, 0.001
"""Seconds that one request generates before the next one may: at most, and at least where many take their turns."""


async def generated(batcher: Batcher, entry: Entry, asked: AskGenerate) -> AsyncIterator[list[str]]:
    """Yield the text after the prompt, some pieces at a time."""
    entry.check("generate")
    until = time.monotonic() + batcher.limits.seconds
    loop = asyncio.get_running_loop()
    stream: Iterator[str] | None = None
    batcher.generating += 1
    try:
        while True:
            if time.monotonic() > until:
                raise OutOfTimeError(batcher.limits.seconds)
            turn = min(TURN, max(SHORTEST, batcher.limits.queue / batcher.generating))
            stream, some, ended = await loop.run_in_executor(
                batcher.threads, _take_turn, entry, asked, stream, batcher.limits.tokens, turn
            )  # fmt: skip
            yield some
            if ended:
                return
    finally:
        batcher.generating -= 1


def _take_turn(
    entry: Entry, asked: AskGenerate, stream: Iterator[str] | None, most: int, turn: float
) -> tuple[Iterator[str], list[str], bool]:
    """Generate for ``turn`` seconds; return the stream, its new pieces, and whether it has ended."""
    with entry.lock:
        stream = _start_stream(entry, asked, most) if stream is None else stream
        until, some = time.monotonic() + turn, list[str]()
        for piece in stream:
            some.append(piece)
            if time.monotonic() > until:
                return stream, some, False
        return stream, some, True


def _start_stream(entry: Entry, asked: AskGenerate, most: int) -> Iterator[str]:
    lm = entry.language_model
    assert entry.steps is not None
    read = lm.tokenizer.encode(asked.prompt).tolist()
    check_tokens(len(read), most)
    ids = generate(
        entry.steps,
        read,
        max_tokens=asked.max_tokens,
        temperature=asked.temperature,
        top_k=asked.top_k,
        top_p=asked.top_p,
        seed=asked.seed,
    )
    return filter(None, pieces(lm.tokenizer, ids, after=read))


async def events(first: list[str], rest: AsyncIterator[list[str]]) -> AsyncIterator[bytes]:
    """Yield server-sent events: ``{"text": …}`` for each piece, then ``{"done": true}`` or ``{"error": …}``."""
    for piece in first:
        yield _event({"text": piece})
    try:
        async for some in rest:
            for piece in some:
                yield _event({"text": piece})
    except OutOfTimeError:
        yield _event({"error": "there was no time for more"})
        return
    yield _event({"done": True})


def _event(value: dict[str, object]) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()
