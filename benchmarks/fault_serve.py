"""A crowd before ``foreword serve``: clients of every kind for minutes, while models are replaced under them.

Most clients ask, wait a second or so, and ask again, on routes of every family. Some send their request a few bytes at
a time, some close the connection before the answer, some in the middle of the request. No status of 500 or more is
allowed but 503 with ``Retry-After``, which clients honour; the memory of the server may not grow after its first tenth
of the time. Latency is that of requests that were admitted: in the server, from the complete request to the last byte
of the answer (its access log), and as the clients see it, who are a thousand in one process on the other core: theirs
includes connecting, and waiting for one another.
"""

from __future__ import annotations

import asyncio
import json
import os
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
from foreword.serve.connection import RETRY_SECONDS
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
        os.sched_setaffinity(server.pid, os.sched_getaffinity(0))  # both cores, as the clients have them
        ran, waited = _scheduled(server.pid)
        asyncio.run(_all(port, server.pid, models[0], clients, seconds, seen, memory))
        if server.poll() is not None:
            seen.wrong.append(f"the server ended with status {server.returncode}")
        else:
            ran, waited = (after - before for after, before in zip(_scheduled(server.pid), (ran, waited), strict=True))
    begin, end = max(memory[: max(1, len(memory) // 10)]), max(memory[-max(1, len(memory) // 10) :])
    if end > 1.1 * begin + GROWTH:
        seen.wrong.append(f"memory grew from {begin >> 20:,} to {end >> 20:,} MB")
    logged = _answered(folder / "access.log")
    p50, p99, late, health = (
        1000 * sorted(each)[int(share * len(each))]
        for each, share in ((logged, 0.5), (logged, 0.99), (seen.late, 0.99), (seen.health, 0.99))
    )
    note = (
        f"{len(logged):,} answers, {seen.statuses[503]:,} times 503, "
        f"{seen.slow:,} slow and {seen.aborted:,} aborted requests; in the server p50 {p50:.0f} and p99 {p99:.0f} ms, "
        f"at the clients p99 {late:.0f} ms, of /health {health:.0f} ms; its event loop ran for "
        f"{100 * ran / (ran + waited):.0f} % of the time it had work; memory {begin >> 20:,} to {end >> 20:,} MB"
    )
    yield Fault(
        f"{clients:,} clients for {seconds:.0f} s", sum(seen.statuses.values()) + seen.aborted, seen.wrong, note
    )


def _scheduled(process: int) -> tuple[int, int]:
    """Return the time that a process ran, and that it waited for a core which other work had."""
    ran, waited, _ = map(int, Path(f"/proc/{process}/schedstat").read_text().split())
    return ran, waited


def _answered(log: Path) -> list[float]:
    """Seconds of each admitted request, from the access log: time, method, route, status, milliseconds, bytes."""
    lines = (line.split() for line in log.read_text("utf-8").splitlines())
    return [float(took.removesuffix("ms")) / 1000 for _, _, _, status, took, *_ in lines if status == "200"]


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
            if status == 503:
                await asyncio.sleep(rng.uniform(1, 2) * RETRY_SECONDS)
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
