"""Text out of a model over HTTP, whole or piece by piece.

Many texts are drawn at once from one model: each for a moment at a time, in a worker thread, so that none waits for
another's end, and so that the time a request may take is looked at between.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

from foreword.decode import generate, pieces
from foreword.serve.answers import check_tokens
from foreword.serve.batches import Desk
from foreword.serve.registry import Entry

if TYPE_CHECKING:
    from foreword.serve.bodies import AskGenerate

TURN = 0.02
"""Seconds for which one request draws before the next one may."""


class OutOfTimeError(Exception):
    """What was asked took longer than a request may."""


async def drawn(desk: Desk, entry: Entry, asked: AskGenerate) -> AsyncIterator[list[str]]:
    """The text after the prompt, some pieces at a time."""
    entry.check("generate")
    until = time.monotonic() + desk.limits.seconds
    loop = asyncio.get_running_loop()
    stream: Iterator[str] | None = None
    while True:
        if time.monotonic() > until:
            raise OutOfTimeError
        stream, some, ended = await loop.run_in_executor(
            desk.threads, _turn, entry, asked, stream, desk.limits.tokens
        )  # fmt: skip
        yield some
        if ended:
            return


def _turn(
    entry: Entry, asked: AskGenerate, stream: Iterator[str] | None, most: int
) -> tuple[Iterator[str], list[str], bool]:
    """What one turn gives, and whether it was the last."""
    with entry.lock:
        stream = _begun(entry, asked, most) if stream is None else stream
        until, some = time.monotonic() + TURN, list[str]()
        for piece in stream:
            some.append(piece)
            if time.monotonic() > until:
                return stream, some, False
        return stream, some, True


def _begun(entry: Entry, asked: AskGenerate, most: int) -> Iterator[str]:
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


async def events(first: list[str], rest: AsyncIterator[list[str]]) -> AsyncIterator[str]:
    """Server-sent events: ``{"text": …}`` for each piece, then ``{"done": true}`` or ``{"error": …}``."""
    for piece in first:
        yield event({"text": piece})
    try:
        async for some in rest:
            for piece in some:
                yield event({"text": piece})
    except OutOfTimeError:
        yield event({"error": "there was no time for more"})
        return
    yield event({"done": True})


def event(value: dict[str, object]) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"
