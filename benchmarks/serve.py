"""``foreword serve`` on one core: n-gram scores a second, and what computing requests together gives.

The server is a process of its own, kept on one core; 64 clients are another (wrk, or an equal of our own where it is
not installed), on another core where there is one, each with one connection and the next question after the answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.progress import say
from benchmarks.report import Row
from foreword.storage.folder import save
from foreword.text.embedded import embedded_text

TITLE = "The server"
HOW = (
    "One process of `foreword serve` on one core, 64 clients (wrk) on another, each with one connection, a different "
    "text of 20 words each time. Requests a second are by the server's CPU time, which other work on the machine "
    "hardly changes; p99 is on the wall. Together: `batch=64` against `batch=1`, two servers in turn, networks of "
    "200 units; the ratio is that of requests a second."
)

CLIENTS = 64
WORDS = 20
REQUESTS, BAR = 200_000, 6_000
SLOWEST = 0.060
NOISE = 0.2
TOGETHER = 5.0

SCRIPT = """
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
local at = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
request = function() at = at %% #bodies + 1; return wrk.format(nil, nil, nil, bodies[at]) end
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format("told %%d %%d %%f\\n", summary.requests, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(99) / 1e6))
end
"""


@dataclass(frozen=True, slots=True)
class Load:
    """seconds: CPU seconds of the server; slow: the 99th percentile of seconds on the wall; others: cores that other
    work kept busy meanwhile.
    """

    requests: int
    errors: int
    seconds: float
    wall: float
    slow: float
    others: float


def run(quick: bool) -> list[Row]:
    with TemporaryDirectory() as place:
        folder = Path(place)
        models = make_models(folder)
        texts = twenty_words()
        return [scores(folder / "5-gram", texts, 20_000 if quick else REQUESTS)] + [
            together(path, route, about, texts, quick) for path, route, about in models
        ]


# What is served


def make_models(folder: Path) -> list[tuple[Path, str, str]]:
    """A 5-gram model, and networks that are trained for seconds: how good they are does not matter here."""
    from foreword.classify.recurrent import RecurrentClassifier
    from foreword.neural.recurrent import RecurrentLM
    from foreword.ngram.model import NgramLM
    from foreword.pipeline.language import TextLM
    from foreword.pipeline.translator import TextTranslator
    from foreword.tag.bilstm import BiLSTMTagger
    from foreword.tokens.words import WordTokenizer
    from foreword.translate.seq2seq import Seq2Seq

    texts = [text for text in embedded_text() if len(text.split()) > 3]
    few = [" ".join(text.split()[:WORDS]) for text in texts[:400]]
    training = replace(RecurrentLM.TRAINING, epochs=1, seconds=3.0, sampled=500)
    counted = TextLM(WordTokenizer(min_count=2), NgramLM(5)).fit(texts)
    lstm = TextLM(counted.tokenizer, RecurrentLM("lstm", 200, 200, layers=1, training=training))
    lstm.model.fit(lstm.corpus(texts))
    labels = ["even" if len(text) % 2 else "odd" for text in few]
    tags = [["even" if len(word) % 2 else "odd" for word in text.split()] for text in few]
    words = [text.split() for text in few]
    translator = TextTranslator(
        WordTokenizer(max_size=5000), WordTokenizer(max_size=5000), Seq2Seq(200, words=200, epochs=1, batch=2000)
    )
    made: dict[str, Any] = {
        "5-gram": counted,
        "lstm": lstm,
        "lstm-classifier": RecurrentClassifier(cell="lstm", embedding=200, hidden=200, layers=1, epochs=1).fit(
            few, labels
        ),
        "bilstm-tagger": BiLSTMTagger(200, epochs=1).fit(words, tags),
        "lstm-translator": translator.fit(few, few),
    }
    for name, model in made.items():
        say(f"{name} is made")
        save(model, folder / name)
    vocabulary = f"{len(counted.vocab):,}"
    return [
        (folder / "lstm-translator", "translate", "LSTM translator, 5,000 words, beam of 5"),
        (folder / "bilstm-tagger", "tag", "bidirectional LSTM tagger"),
        (folder / "lstm-classifier", "classify", "LSTM classifier"),
        (folder / "lstm", "score", f"LSTM language model, {vocabulary} words"),
    ]


def twenty_words(count: int = 500) -> list[str]:
    words = " ".join(embedded_text("test")).split()
    return [" ".join(words[start : start + WORDS]) for start in range(0, count * WORDS, WORDS)]


# What is measured


def scores(model: Path, texts: list[str], requests: int) -> Row:
    with serving(model) as (server, port):
        load(server, port, model.name, "score", texts, 1.0)
        loads: list[Load] = []
        while sum(each.requests for each in loads) < requests:
            found = load(server, port, model.name, "score", texts, 10.0)
            loads.append(found)
            done = sum(each.requests for each in loads)
            say(
                f"{done:,} requests, {found.requests / found.wall:,.0f} a second, p99 {1000 * found.slow:.0f} ms, "
                f"others had {found.others:.1f} cores"
            )
    answered, errors = sum(each.requests for each in loads), sum(each.errors for each in loads)
    rate = answered / sum(each.seconds for each in loads)
    slow = statistics.median(each.slow for each in loads)
    others = statistics.median(each.others for each in loads)
    return Row(
        f"score, 5-gram, {answered:,} requests, {errors} errors",
        f"{rate:,.0f} requests/s, p99 {1000 * slow:.0f} ms",
        bar=f"{BAR:,} requests/s, p99 {1000 * SLOWEST:.0f} ms, no error",
        met=rate >= BAR and slow <= SLOWEST and errors == 0,
        note="" if others < NOISE else f"other work had {others:.1f} cores meanwhile, which p99 shows",
        figures={"requests": answered, "errors": errors, "rate": rate, "p99": [each.slow for each in loads]},
    )


def together(model: Path, route: str, about: str, texts: list[str], quick: bool) -> Row:
    ratios, rates = [], list[tuple[float, float]]()
    alone = ("--set", "batch=1", "--set", "wait=0", "--set", "queue=60000")  # all of them wait
    with serving(model) as many, serving(model, *alone) as one:
        for server, port in (many, one):
            load(server, port, model.name, route, texts, 1.0)
        for number in range(2 if quick else 5):
            found = [load(server, port, model.name, route, texts, 5.0) for server, port in (many, one)]
            for each in found:
                if each.errors or not each.requests:
                    raise AssertionError(f"{about}: {each.errors} errors in {each.requests} requests")
            pair = tuple(each.requests / each.seconds for each in found)
            rates.append((pair[0], pair[1]))
            ratios.append(pair[0] / pair[1])
            say(f"{about}, pair {number + 1}: {pair[0]:,.0f} against {pair[1]:,.0f} requests a second")
    ratio = statistics.median(ratios)
    softmax = route in ("score", "translate")
    return Row(
        f"together, {about}",
        f"{statistics.median(rate for rate, _ in rates):,.0f} requests/s",
        peer=f"{statistics.median(rate for _, rate in rates):,.0f} requests/s one at a time",
        ratio=f"{ratio:.1f} [{min(ratios):.1f}–{max(ratios):.1f}]",
        bar="–" if softmax else f"{TOGETHER:g}×",
        met=None if softmax else ratio >= TOGETHER,
        note="most of the work is the softmax over all words, which is as large for a text alone" if softmax else "",
        figures={"ratios": ratios},
    )


# Servers and clients


@contextmanager
def serving(
    model: Path, *options: str, beside: Sequence[Path] = ()
) -> Iterator[tuple[subprocess.Popen[str], int]]:  # fmt: skip
    """A server of a model, and of others next to it: its process and port."""
    models = [str(model), *map(str, beside)]
    command = [sys.executable, "-m", "foreword", "serve", *models, "--port", "0", "--json", *options]
    # The log is written, as it would be.
    with (model.parent / "access.log").open("a") as log, subprocess.Popen(
        [*command, "--log", log.name], stdout=subprocess.PIPE, text=True
    ) as server:  # fmt: skip
        try:
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(server.pid, {max(os.sched_getaffinity(0))})
            assert server.stdout is not None
            address = json.loads(server.stdout.readline())["address"]
            _wait_for(f"{address}ready")
            yield server, int(address.rsplit(":", 1)[1].strip("/"))
        finally:
            server.terminate()
            if server.wait() != 0:
                raise AssertionError(f"the server ended with status {server.returncode}")


def _wait_for(address: str) -> None:
    until = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(address).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


def load(server: subprocess.Popen[str], port: int, model: str, route: str, texts: list[str], seconds: float) -> Load:
    more = {"max_tokens": WORDS} if route == "translate" else {}
    bodies = [json.dumps({"model": model, "text": text, **more}) for text in texts]
    before, others, began = _cpu_seconds(server.pid), _cpu_of_others(server.pid), time.perf_counter()
    if shutil.which("wrk"):
        requests, errors, slow = _wrk(f"http://127.0.0.1:{port}/api/{route}", bodies, seconds)
    else:
        requests, errors, slow = asyncio.run(_clients(port, f"/api/{route}", bodies, seconds))
    wall = time.perf_counter() - began
    used, others = _cpu_seconds(server.pid) - before, _cpu_of_others(server.pid) - others
    return Load(requests, errors, used, wall, slow, others / wall)


def _wrk(address: str, bodies: list[str], seconds: float) -> tuple[int, int, float]:
    with TemporaryDirectory() as folder:
        lines, script = Path(folder, "bodies"), Path(folder, "ask.lua")
        lines.write_text("\n".join(bodies) + "\n", "utf-8")
        script.write_text(SCRIPT % lines, "utf-8")
        command = ["wrk", "-t1", f"-c{CLIENTS}", f"-d{seconds:g}s", "--timeout", "30s", "-s", str(script), address]
        if shutil.which("taskset") and len(os.sched_getaffinity(0)) > 1:
            command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), *command]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = re.search(r"told (\d+) (\d+) ([0-9.]+)", done.stdout)
    assert told is not None, done.stdout
    return int(told[1]), int(told[2]), float(told[3])


async def _clients(port: int, path: str, bodies: list[str], seconds: float) -> tuple[int, int, float]:
    until, taken, errors = time.perf_counter() + seconds, list[float](), 0

    async def client(first: int) -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        place = first
        while time.perf_counter() < until:
            body = bodies[place % len(bodies)].encode()
            place += CLIENTS
            head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            began = time.perf_counter()
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.split(b":")[1]))
            taken.append(time.perf_counter() - began)
            errors += answer.split()[1] != b"200"
        writer.close()

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return len(taken), errors, sorted(taken)[int(0.99 * len(taken))]


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _cpu_of_others(pid: int) -> float:
    """CPU seconds that all have taken but this process, those it waited for, and the server."""
    user, nice, system, _idle, _waiting, *rest = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9])
    own = os.times()
    ours = own.user + own.system + own.children_user + own.children_system + _cpu_seconds(pid)
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK") - ours
