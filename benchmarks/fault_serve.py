"""A crowd before ``foreword serve``: clients of every kind for minutes, while models are replaced under them.

Most clients ask, wait a second or so, and ask again, on routes of every family. Some send their request a few bytes at
a time, some close the connection before the answer, some in the middle of the request. No status of 500 or more is
allowed but 503 with ``Retry-After``; the memory of the server may not grow after its first tenth of the time. Latency
is that of requests that were admitted, as the client sees it.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.fault_disk import Fault
from benchmarks.serve import serving
from benchmarks.serve_faults import make_models
from foreword.storage.folder import load, save

CLIENTS, SECONDS, PAUSE = 1000, 600.0, 1.0
GROWTH = 32 << 20
"""Bytes that allocators may keep of what they once had."""

ASKED = [
    ("score", {"model": "5-gram", "text": "the list of the"}), ("next", {"model": "5-gram", "text": "the", "k": 5}),
    ("generate", {"model": "5-gram", "prompt": "the", "max_tokens": 8}), ("score", {"model": "lstm", "text": "a b"}),
    ("classify", {"model": "bayes", "text": "the list"}), ("tag", {"model": "hmm", "text": "the list"}),
    ("embed", {"model": "fasttext", "text": "the list"}), ("search", {"model": "search", "text": "the list"}),
]  # fmt: skip


@dataclass
class Seen:
    """What the clients saw. late: seconds until each admitted answer. wrong: what must not be, a line each."""

    statuses: Counter[int] = field(default_factory=Counter)
    late: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    slow: int = 0
    aborted: int = 0
    health: list[float] = field(default_factory=list)


def crowd(folder: Path, clients: int = CLIENTS, seconds: float = SECONDS) -> Iterator[Fault]:
    """Send a crowd, and yield one row."""
    folder.mkdir(parents=True, exist_ok=True)
    models = make_models(folder)
    with serving(models[0], "--watch", beside=models[1:]) as (server, port):
        seen, memory = Seen(), list[int]()
        asyncio.run(_all(port, server.pid, models[0], clients, seconds, seen, memory))
        if server.poll() is not None:
            seen.wrong.append(f"the server ended with status {server.returncode}")
    begin, end = max(memory[: max(1, len(memory) // 10)]), max(memory[-max(1, len(memory) // 10) :])
    if end > 1.1 * begin + GROWTH:
        seen.wrong.append(f"memory grew from {begin >> 20:,} to {end >> 20:,} MB")
    late, health = (1000 * sorted(each)[int(0.99 * len(each))] for each in (seen.late, seen.health))
    note = (
        f"{len(seen.late):,} answers, {seen.statuses[503]:,} times 503, "
        f"{seen.slow:,} slow and {seen.aborted:,} aborted requests; p99 {late:.0f} ms, of "
        f"/health {health:.0f} ms; memory {begin >> 20:,} to {end >> 20:,} MB"
    )
    yield Fault(
        f"{clients:,} clients for {seconds:.0f} s", sum(seen.statuses.values()) + seen.aborted, seen.wrong, note
    )


async def _all(
    port: int, server: int, model: Path, clients: int, seconds: float, seen: Seen, memory: list[int]
) -> None:
    until = time.monotonic() + seconds
    tasks = [asyncio.create_task(_client(port, random.Random(number), until, seen)) for number in range(clients)]
    both = [load(model), load(model)]
    turn = 0
    while time.monotonic() < until:
        await asyncio.sleep(1.0)
        memory.append(int(Path(f"/proc/{server}/statm").read_text().split()[1]) * 4096)
        began = time.monotonic()
        status = await _ask(port, b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", seen)
        seen.health.append(time.monotonic() - began)
        if status != 200:
            seen.wrong.append(f"/health: {status}")
        turn += 1
        if turn % 10 == 0:
            await asyncio.to_thread(save, both[turn // 10 % 2], model)
    await asyncio.gather(*tasks)


async def _client(port: int, rng: random.Random, until: float, seen: Seen) -> None:
    await asyncio.sleep(rng.uniform(0, 2 * PAUSE))
    while time.monotonic() < until:
        route, body = rng.choice(ASKED)
        data = json.dumps(body).encode()
        head = f"POST /api/{route} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        request = f"{head}content-length: {len(data)}\r\nconnection: close\r\n\r\n".encode() + data
        kind = rng.random()
        if kind < 0.05:
            seen.aborted += 1
            await _abort(port, request if kind < 0.025 else request[: rng.randrange(len(request))])
        else:
            seen.slow += kind < 0.1
            began = time.monotonic()
            status = await _ask(port, request, seen, pieces=12 if kind < 0.1 else 1)
            if status == 200 and kind >= 0.1:
                seen.late.append(time.monotonic() - began)
            seen.statuses[status] += 1
        await asyncio.sleep(rng.uniform(0.5, 1.5) * PAUSE)


async def _abort(port: int, sent: bytes) -> None:
    with suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        await writer.drain()
        writer.transport.abort()


async def _ask(port: int, request: bytes, seen: Seen, pieces: int = 1) -> int:
    """Send a request, in some pieces, and return the status; 0 where the connection was closed instead."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        size = -(-len(request) // pieces)
        for at in range(0, len(request), size):
            writer.write(request[at : at + size])
            await writer.drain()
            if pieces > 1:
                await asyncio.sleep(0.1)
        answer = await reader.read()
        writer.close()
    except OSError:
        return 0
    if not answer:
        return 0
    status, head = int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[0].lower()
    if status >= 500 and (status != 503 or b"\r\nretry-after:" not in head):
        seen.wrong.append(answer[:200].decode("utf-8", "replace"))
    return status
