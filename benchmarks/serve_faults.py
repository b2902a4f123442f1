"""``foreword serve`` against nonsense for as long as one likes: ``python -m benchmarks.serve_faults [--cases 500]``.

A server with small models of every family, in a process of its own. schemathesis asks what the schema of the server
allows and what it forbids, and looks whether answers are as it says; sockets send random bytes, break off and stay
open. It prints what was sent and what came back, and ends with status 1 if there was a 500, an answer that is not as
the schema says, a crash, or a server that answers no more.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from benchmarks.progress import say
from benchmarks.serve import serving
from foreword.classify.naive_bayes import NaiveBayes
from foreword.classify.recurrent import RecurrentClassifier
from foreword.fasttext.vectors import FastText
from foreword.neural.recurrent import RecurrentLM
from foreword.ngram.model import NgramLM
from foreword.pipeline.classifier import TextClassifier
from foreword.pipeline.language import TextLM
from foreword.pipeline.search import TextSearch
from foreword.protocols import Saveable
from foreword.storage.folder import save
from foreword.tag.bilstm import BiLSTMTagger
from foreword.tag.hmm import HMMTagger
from foreword.text.embedded import embedded_text
from foreword.tokens.words import WordTokenizer
from foreword.vectors.elmo import ELMo

HEAD = b"POST /api/score HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
BODY = b'{"model": "5-gram", "text": ["the list", "a b"]}'


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.serve_faults")
    parser.add_argument("--cases", type=int, default=500, help="for each route and mode")
    parser.add_argument("--random", type=int, default=100_000, help="requests of random bytes")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        models = make_models(Path(folder))
        with serving(models[0], beside=models[1:]) as (server, port):
            statuses = Counter[int]()
            attacks: dict[str, Callable[[], Counter[int]]] = {
                "random bytes": lambda: random_bytes(port, options.random),
                "half-open and slow": lambda: half_open(port, 500),
                "schemathesis": lambda: by_schema(port, options.cases),
            }
            for name, attack in attacks.items():
                began = time.monotonic()
                found = attack()
                statuses += found
                say(f"{name}: {sum(found.values()):,} requests in {time.monotonic() - began:.0f} s: {dict(found)}")
                answer = httpx.post(f"http://127.0.0.1:{port}/api/score", json={"model": "5-gram", "text": "the list"})
                if answer.status_code != 200 or server.poll() is not None:
                    say(f"after {name} the server answers no more")
                    return 1
            metrics = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    wrong = sum(count for status, count in statuses.items() if status >= 500)
    print(f"{sum(statuses.values()):,} requests, {wrong} answers of 500 or more")
    return 1 if wrong or 'status="500"' in metrics else 0


def make_models(folder: Path) -> list[Path]:
    """One of each family, the first a 5-gram model; how good they are does not matter."""
    texts = embedded_text()
    few = [text for text in texts if len(text.split()) > 3][:60]
    words = [text.split() for text in few]
    labels, tags = ["a", "b"] * 30, [["a" if len(word) % 2 else "b" for word in line] for line in words]
    tokenizer = WordTokenizer(min_count=2)
    counted = TextLM(tokenizer, NgramLM(5)).fit(texts)
    learnt = RecurrentLM("lstm", 16, 16, layers=1, training=replace(RecurrentLM.TRAINING, epochs=1, steps=5))
    made: dict[str, Saveable] = {
        "5-gram": counted,
        "lstm": TextLM(tokenizer, learnt.fit(counted.corpus(few))),
        "bayes": TextClassifier(model=NaiveBayes()).fit(few, labels),
        "lstm-labels": RecurrentClassifier(embedding=8, hidden=8, epochs=1).fit(few, labels),
        "hmm": HMMTagger().fit(words, tags),
        "bilstm": BiLSTMTagger(8, epochs=1).fit(words, tags),
        "fasttext": FastText(8, epochs=1, buckets=1000).fit(counted.corpus(texts)),
        "elmo": ELMo(8, 1, epochs=1).fit(words[:20]),
        "search": TextSearch().fit(few),
    }
    for name, model in made.items():
        save(model, folder / name)
    return [folder / name for name in made]


def random_bytes(port: int, requests: int) -> Counter[int]:
    """Bodies of random bytes or with some bytes changed, 99 on a connection, and then bytes that are no HTTP."""
    rng, statuses = random.Random(0), Counter[int]()
    for _ in range(requests // 100):
        with socket.create_connection(("127.0.0.1", port), 10) as client, client.makefile("rb") as answers:
            sent = [_nonsense(rng) for _ in range(99)]
            client.sendall(b"".join(HEAD % len(each) + each for each in sent) + rng.randbytes(50) + b"\r\n\r\n")
            statuses.update(map(int, re.findall(rb"HTTP/1\.1 (\d+)", answers.read())))
    return statuses


def _nonsense(rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return rng.randbytes(rng.randrange(200))
    mangled = bytearray(BODY)
    for _ in range(rng.randrange(1, 6)):
        mangled[rng.randrange(len(mangled))] = rng.randrange(256)
    return bytes(mangled)


def half_open(port: int, count: int) -> Counter[int]:
    """Connections that say nothing, half a head, or a head without its body; others are answered meanwhile."""
    statuses, crowd = Counter[int](), []
    for number in range(count):
        client = socket.create_connection(("127.0.0.1", port), 30)
        client.sendall((b"", b"POST /api/score HTT", HEAD % 100 + b"{")[number % 3])
        crowd.append(client)
    statuses[httpx.get(f"http://127.0.0.1:{port}/health").status_code] += 1
    for client in crowd:
        with contextlib.suppress(OSError), client, client.makefile("rb") as answers:
            line = answers.readline()
            statuses[int(line.split()[1]) if line else 0] += 1
    return statuses


def by_schema(port: int, cases: int) -> Counter[int]:
    import requests
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis.errors import Unsatisfiable
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    statuses = Counter[int]()
    schema: Any = schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")
    bounded: Any = settings(
        max_examples=cases, deadline=None, database=None, phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    with requests.Session() as session:

        def check(case: Any) -> None:
            answer = case.call(session=session)
            statuses[answer.status_code] += 1
            case.validate_response(answer, checks=checks)

        for found in schema.get_all_operations():
            for mode in list(schemathesis.GenerationMode):
                giving: Any = given(found.ok().as_strategy(generation_mode=mode))
                with contextlib.suppress(Unsatisfiable):
                    bounded(giving(check))()
    return statuses


if __name__ == "__main__":
    sys.exit(main())
