"""Generated text over HTTP, whole or piece by piece.

Many texts are generated at once from one model, each for a moment at a time in a worker thread: none waits for another
to end, and the time limit of a request is checked between the turns.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

from foreword.decode import generate, pieces
from foreword.serve.answers import check_tokens
from foreword.serve.batches import Batcher, OutOfTimeError
from foreword.serve.registry import Entry

if TYPE_CHECKING:
    from foreword.serve.bodies import AskGenerate

TURN = 0.02
"""Seconds that one request generates before the next one may."""


async def generated(batcher: Batcher, entry: Entry, asked: AskGenerate) -> AsyncIterator[list[str]]:
    """Yield the text after the prompt, some pieces at a time."""
    entry.check("generate")
    until = time.monotonic() + batcher.limits.seconds
    loop = asyncio.get_running_loop()
    stream: Iterator[str] | None = None
    while True:
        if time.monotonic() > until:
            raise OutOfTimeError(batcher.limits.seconds)
        stream, some, ended = await loop.run_in_executor(
            batcher.threads, _take_turn, entry, asked, stream, batcher.limits.tokens
        )  # fmt: skip
        yield some
        if ended:
            return


def _take_turn(
    entry: Entry, asked: AskGenerate, stream: Iterator[str] | None, most: int
) -> tuple[Iterator[str], list[str], bool]:
    """Generate for ``TURN`` seconds; return the stream, its new pieces, and whether it has ended."""
    with entry.lock:
        stream = _start_stream(entry, asked, most) if stream is None else stream
        until, some = time.monotonic() + TURN, list[str]()
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
