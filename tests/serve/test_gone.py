"""What nobody waits for any more is not computed: the client has gone, or the time is over."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.refusals import refused

from foreword.serve.answers import WORK
from foreword.serve.limits import Limits
from foreword.serve.registry import Registry

from .conftest import Running, until

MODEL = "lstm-labels"


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that a model was asked about."""
    whole, texts = WORK["classify"], list[str]()

    def noting(entry: Any, questions: Any, options: Any, most: int) -> Any:
        texts.extend(questions)
        return whole(entry, questions, options, most)

    monkeypatch.setitem(WORK, "classify", noting)
    return texts


@pytest.fixture
def served(registry: Registry) -> Iterator[Running]:
    served = Running(registry, limits=Limits(seconds=20, batch=1, queue=60))
    yield served
    served.close()


def asking(served: Running, text: str) -> socket.socket:
    """A client that has asked, and reads nothing yet."""
    body = json.dumps({"model": MODEL, "text": text}).encode()
    head = b"POST /api/classify HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    client = socket.create_connection(("127.0.0.1", served.port), timeout=15)
    client.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
    return client


def test_a_client_that_has_gone_is_not_answered(served: Running, registry: Registry, computed: list[str]) -> None:
    with registry[MODEL].lock:  # so that the first is being computed while the others wait
        first = asking(served, "one")
        until(lambda: served.service.metrics.in_flight == 1)
        gone, stays = asking(served, "two"), asking(served, "three")
        until(lambda: served.service.metrics.in_flight == 3)
        gone.close()
        until(lambda: served.service.metrics.in_flight == 2)
        assert computed == []
    for client in (first, stays):
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        client.close()
    assert computed == ["one", "three"]
    assert served.service.metrics.requests["POST", "/api/classify", 499] == 1


def test_what_is_asked_too_late_is_not_computed(registry: Registry, computed: list[str]) -> None:
    served = Running(registry, limits=Limits(seconds=0.3, batch=1, queue=60))
    try:
        with registry[MODEL].lock, ThreadPoolExecutor(2) as pool:
            bodies = [{"model": MODEL, "text": "one"}, {"model": MODEL, "text": "two", "k": 2}]
            asked = [pool.submit(httpx.post, f"{served.address}/api/classify", json=body) for body in bodies]
            for each in asked:
                assert "no answer after 0.3 seconds" in refused(each.result(), 504)
            late = pool.submit(httpx.post, f"{served.address}/api/classify", json={"model": MODEL, "text": "three"})
            assert late.result().status_code == 504
        # Those that are with the model already are computed when it is free; who waits behind them is not.
        until(lambda: "one" in computed and "two" in computed)
        answer = httpx.post(f"{served.address}/api/classify", json={"model": MODEL, "text": "four"})
        assert answer.status_code == 200
    finally:
        served.close()
    assert sorted(computed) == ["four", "one", "two"]
