"""The lab's server: next-word requests a second on one core, as many visitors at once as a class has.

The server is a process of its own, kept on one core; the visitors are another, on another core where there is one, each
with one connection that it asks through, the next question after the answer. There is no peer: the bar is a number.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.progress import say
from benchmarks.report import Row
from foreword.neural.recurrent import RecurrentLM
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.storage.folder import save
from foreword.text.embedded import embedded_text
from foreword.tokens.words import WordTokenizer

TITLE = "The lab's server"
HOW = (
    "Requests for the ten likeliest next words after six words, vocabulary of the embedded text, 50 connections at "
    "once. The server has one core, and its CPU time counts."
)

VISITORS, REQUESTS, BAR = 50, 2000, 200
TEXT = "the method returns a list of"


def run(quick: bool) -> list[Row]:
    with TemporaryDirectory() as folder:
        paths = _models(Path(folder))
        server, port = _serve(paths)
        try:
            rows = []
            for path in paths:
                asyncio.run(_visits(port, path.name, 50))  # compiles
                before = _cpu_seconds(server.pid)
                began = time.perf_counter()
                statuses = asyncio.run(_visits(port, path.name, REQUESTS // (4 if quick else 1)))
                seconds, used = time.perf_counter() - began, _cpu_seconds(server.pid) - before
                if set(statuses) != {200}:
                    raise AssertionError(f"{path.name}: some of the answers were {sorted(set(statuses))}")
                say(f"{path.name}: {len(statuses) / seconds:.0f} answers a second on the wall")
                rows.append(_row(path.name, len(statuses), used))
            return rows
        finally:
            server.terminate()
            server.wait()


def _models(folder: Path) -> list[Path]:
    texts = embedded_text()
    tokenizer = WordTokenizer(min_count=2).fit(texts)
    training = replace(RecurrentLM.TRAINING, epochs=1, seconds=3.0, sampled=500)
    models: dict[str, Any] = {
        "5-gram": NgramLM(5),
        "LSTM, 200 units": RecurrentLM("lstm", 200, 200, layers=1, training=training),
    }
    made = []
    for name, model in models.items():
        lm = TextLM(tokenizer, model)
        model.fit(lm.corpus(texts))
        save(lm, folder / name)
        made.append(folder / name)
    return made


def _serve(paths: list[Path]) -> tuple[subprocess.Popen[str], int]:
    named = [word for path in paths for word in ("--model", str(path))]
    command = [sys.executable, "-m", "foreword", "lab", "--no-open", "--port", "0", *named]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(server.pid, {max(os.sched_getaffinity(0))})
    assert server.stderr is not None
    told = server.stderr.readline()
    return server, int(told.split("http://127.0.0.1:")[1].split("/")[0])


async def _visits(port: int, model: str, requests: int) -> list[int]:
    body = json.dumps({"model": model, "text": TEXT}).encode()
    head = f"POST /api/next HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    question = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body

    async def visitor(count: int) -> list[int]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        statuses = []
        for _ in range(count):
            writer.write(question)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.split(b":")[1]))
            statuses.append(int(answer.split()[1]))
        writer.close()
        return statuses

    found = await asyncio.gather(*(visitor(max(1, requests // VISITORS)) for _ in range(VISITORS)))
    return [status for statuses in found for status in statuses]


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _row(name: str, requests: int, used: float) -> Row:
    rate = requests / used
    return Row(
        f"next word, {name}",
        f"{rate:,.0f} requests/s",
        bar=f"{BAR} requests/s",
        met=rate >= BAR,
        figures={"requests": requests, "cpu_seconds": used},
    )
