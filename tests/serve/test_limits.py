"""What is refused: each with its own status and one sentence. And what is counted and logged of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.refusals import refused

from foreword.serve.answers import WORK
from foreword.serve.connection import Request
from foreword.serve.limits import Access, Admission, Limits
from foreword.serve.registry import Registry

from .conftest import Running


@pytest.fixture
def tight(registry: Registry) -> Iterator[Running]:
    served = Running(registry, limits=Limits(body=500, tokens=20, seconds=0.3, at_once=3, arrival=1.0))
    yield served
    served.close()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """A model that waits until it is let go."""
    gate = threading.Event()

    def waiting(entry: Any, words: Any, options: Any, most: int) -> list[Any]:
        gate.wait(5)
        return [{"tokens": [], "rest": 0.0, "entropy": 0.0} for _ in words]

    monkeypatch.setitem(WORK, "next", waiting)
    return gate


def test_a_body_that_is_too_large(tight: Running) -> None:
    assert "at most 500 bytes" in tight.refused("score", 413, model="ngram", text="a" * 600)


def test_a_text_of_too_many_tokens(tight: Running) -> None:
    long = "the " * 30
    fields: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "score": [("ngram", {"text": long}), ("lstm", {"text": ["a", long]})],
        "surprisal": [("ngram", {"text": long})],
        "next": [("ngram", {"text": long})],
        "generate": [("ngram", {"prompt": long})],
        "classify": [("bayes", {"text": long}), ("fasttext-labels", {"text": ["a", long]})],
        "tag": [("hmm", {"text": long})],
        "translate": [("dates", {"text": long})],
        "embed": [("vectors", {"text": long}), ("elmo", {"text": long})],
        "search": [("search", {"text": long})],
        "tokenize": [("words", {"text": long})],
    }
    for path, asked in fields.items():
        for name, body in asked:
            assert "at most 20 are read" in tight.refused(path, 422, model=name, **body), path


def test_bodies_that_are_not_as_the_schema_says(running: Running) -> None:
    for body in ({"model": "ngram"}, {"model": "ngram", "text": 3}, {"model": "ngram", "text": []},
                 {"model": "ngram", "text": "a", "path": "/etc/passwd"}, {"text": "a"},
                 {"model": "ngram", "text": ["a"] * 300}):  # fmt: skip
        running.refused("score", 422, **body)
    running.refused("next", 422, model="ngram", text="a", k=0)
    running.refused("generate", 422, model="ngram", max_tokens=10**9)
    where = "/api/score"
    json_type = {"content-type": "application/json"}
    for content in (b"{", b"", b"\xff", b"[" * 100_000, b'{"model": "ngram", "text": "\\ud800"}',
                    b'{"\\ud800": 1}', b'{"model": "ngram", "text": NaN}', b"1" * 5000):  # fmt: skip
        answer = running.client.post(where, content=content, headers=json_type)
        refused(answer, 400 if answer.status_code == 400 else 422)
    answer = running.client.post(
        where, content=b'{"model": "ngram", "text": "a"}', headers={"content-type": "text/plain"}
    )
    refused(answer, 422)


def test_an_answer_that_takes_too_long(tight: Running, slow: threading.Event) -> None:
    began = time.monotonic()
    assert "after 0.3 seconds" in tight.refused("next", 504, model="ngram", text="a")
    assert time.monotonic() - began < 3
    slow.set()
    assert tight.ask("score", model="ngram", text="a")


def test_a_stream_that_takes_too_long_says_so(registry: Registry) -> None:
    served = Running(registry, limits=Limits(seconds=0.02))
    try:
        body = {"model": "lstm", "max_tokens": 500, "stream": True, "top_k": 50, "seed": 1}
        sentences = []
        for seed in range(30):
            answer = served.client.post("/api/generate", json={**body, "seed": seed})
            sentences.append(answer.text)
            assert answer.status_code in (200, 504)
        assert all('"done": true' in told or "no time for more" in told or "no answer" in told for told in sentences)
    finally:
        served.close()


def test_too_many_at_once(tight: Running, slow: threading.Event) -> None:
    with ThreadPoolExecutor(8) as pool:
        body = {"model": "ngram", "text": "a"}
        answers = list(pool.map(lambda _: httpx.post(f"{tight.address}/api/next", json=body), range(8)))
    slow.set()
    crowd = [answer for answer in answers if answer.status_code == 503]
    assert crowd
    for answer in crowd:
        assert "3 requests are being answered" in refused(answer, 503)
        assert answer.headers["retry-after"] == "1"
    assert {answer.status_code for answer in answers} <= {503, 504}
    assert httpx.get(f"{tight.address}/health").json() == {"status": "alive"}


def test_fewer_are_admitted_while_the_event_loop_is_late() -> None:
    admission = Admission(Limits(at_once=256, queue=0.1))
    assert admission.allowed == 64
    for _ in range(60):
        admission.observe(0.001)
    assert admission.allowed == 256
    admission.observe(0.03)  # five such turns are more than a tenth of a second
    assert admission.allowed == 128
    for _ in range(9):
        admission.observe(1.0)
    assert admission.allowed == 64


def test_a_request_too_many_is_refused_before_its_body_is_parsed(registry: Registry) -> None:
    """A thousand clients waited up to eight seconds for answers; now most are told at once to come back."""
    served = Running(registry)
    try:
        served.service.admission.allowed = served.service.admission.least = 0
        served.service.admission.limits = Limits(queue=1e-9)  # late for ever
        for content in (b"{}", b"this is no JSON"):  # on one connection, which stays open
            answer = served.client.post("/api/score", content=content, headers={"content-type": "application/json"})
            assert "requests are being answered" in refused(answer, 503)
            assert answer.headers["retry-after"] == "1"
            assert "connection" not in answer.headers
        assert served.client.get("/health").status_code == 200
        assert served.service.metrics.in_flight == 0
    finally:
        served.close()


def test_a_token_for_everything_but_signs_of_life(registry: Registry) -> None:
    served = Running(registry, token="open-sesame")
    try:
        where, body = "/api/score", {"model": "ngram", "text": "a"}
        answer = served.client.post(where, json=body)
        refused(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer"
        for given in (
            "Bearer open-sesamf",
            "Bearer",
            "open-sesame",
            "Basic open-sesame",
            "Bearer open-sesame-and-more",
        ):
            refused(served.client.post(where, json=body, headers={"authorization": given}), 401)
        assert served.client.post(where, json=body, headers={"authorization": "Bearer open-sesame"}).status_code == 200
        for path in ("/metrics", "/docs", "/openapi.json", "/api/models", "/nothing"):
            refused(served.client.get(path), 401)
        for path in ("/health", "/ready"):
            assert served.client.get(path).status_code == 200
    finally:
        served.close()


def test_tokens_are_compared_in_constant_time(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = list[bytes]()

    def comparing(given: bytes, wanted: bytes) -> bool:
        compared.append(given)
        return given == wanted

    monkeypatch.setattr("foreword.serve.limits.hmac.compare_digest", comparing)
    access = Access("a-long-token")
    for token, allowed in (("a-long-tokeN", False), ("a-long-token", True)):
        request = Request("GET", "/", "", {"host": "x", "authorization": f"Bearer {token}"}, True, True)
        assert (access.refused(request) is None) == allowed
    assert {b"a-long-tokeN", b"a-long-token"} <= set(compared)


def test_pages_from_elsewhere_and_other_names(running: Running) -> None:
    where, body = "/api/score", {"model": "ngram", "text": "a"}
    refused(running.client.post(where, json=body, headers={"origin": "http://evil.example"}), 403)
    refused(running.client.post(where, json=body, headers={"origin": "http://[evil"}), 403)
    refused(running.client.post(where, json=body, headers={"host": "evil.example"}), 421)
    refused(running.client.post(where, json=body, headers={"host": "[evil"}), 421)
    refused(running.client.get("/nothing"), 404)
    refused(running.client.get(where), 405)


def test_the_log_has_a_line_for_each_request_and_never_the_text(registry: Registry) -> None:
    served = Running(registry)
    secret = "xylophonic secret"
    served.ask("score", model="ngram", text=secret)
    served.refused("classify", 400, model="ngram", text=secret)
    served.client.get(f"/{secret}?text={secret}")
    served.client.get("/health")
    served.close()
    lines = "".join(served.lines).splitlines()
    assert [line.split()[1:4] for line in lines] == [
        ["POST", "/api/score", "200"], ["POST", "/api/classify", "400"], ["GET", "other", "404"]
    ]  # fmt: skip
    assert "xylophonic" not in "".join(served.lines)


def test_a_fault_of_the_server_is_told_by_its_place_alone(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(entry: Any, texts: Any, options: Any, most: int) -> list[Any]:
        raise KeyError(texts[0])

    monkeypatch.setitem(WORK, "tokenize", failing)
    monkeypatch.setitem(WORK, "score", failing)
    for path in ("tokenize", "score"):
        assert "the server's log says where" in running.refused(path, 500, model="ngram", text="xylophonic")
    assert "KeyError at test_limits.py" in caplog.text
    assert "xylophonic" not in caplog.text
    running.service.metrics.requests.clear()  # other tests look for a 500


def test_metrics_as_prometheus_reads_them(running: Running) -> None:
    running.ask("score", model="ngram", text="the list")
    answer = running.client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    values: dict[str, float] = {}
    kinds: dict[str, str] = {}
    for line in answer.text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            kinds[name] = kind
        elif not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            values[name] = float(value)
            bare = name.split("{")[0]
            assert any(bare in (known, f"{known}_bucket", f"{known}_sum", f"{known}_count") for known in kinds)
    assert values['foreword_requests_total{method="POST",route="/api/score",status="200"}'] >= 1
    assert values["foreword_in_flight"] == 1
    route = 'route="/api/score"'
    assert (
        values[f'foreword_request_seconds_bucket{{{route},le="+Inf"}}']
        == values[f"foreword_request_seconds_count{{{route}}}"]
    )
    buckets = [value for name, value in values.items() if name.startswith(f"foreword_request_seconds_bucket{{{route}")]
    assert buckets == sorted(buckets)
    assert 'foreword_batch_requests_count{model="ngram",task="score"}' in values
