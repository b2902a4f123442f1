"""What the server refuses, each with a 4xx and one sentence; and fifty visitors at once."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.refusals import refused

from foreword.errors import SettingError
from foreword.lab.app import Lab
from foreword.lab.trainings import LearningText
from foreword.serve.limits import Limits, check_address
from foreword.serve.registry import Registry

from .conftest import Running


def test_a_body_of_a_hundred_megabytes(running: Running) -> None:
    answer = httpx.post(f"{running.address}api/next", content=b"x" * 100_000_000, timeout=60)
    assert "too large" in refused(answer, 413)


def test_a_body_in_chunks_is_counted_too(running: Running) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(40):
            yield b"x" * 100_000

    refused(httpx.post(f"{running.address}api/next", content=chunks(), timeout=60), 413)


@pytest.mark.parametrize(
    "body", [b"{", b"", b"[]", b'"text"', b"\xff\xfe", b'{"model": 3}', b'{"model": "bigram", "x": 1}']
)
def test_malformed_bodies(body: bytes, running: Running) -> None:
    answer = httpx.post(f"{running.address}api/next", content=body, headers={"content-type": "application/json"})
    refused(answer, 400 if answer.status_code == 400 else 422)


@pytest.mark.parametrize("name", ["nothing", "../../etc/passwd", "/etc/passwd", "a" * 150, ""])
def test_models_that_are_not_there(name: str, running: Running) -> None:
    told = refused(httpx.post(f"{running.address}api/next", json={"model": name}), 404)
    assert told.startswith("there is no model")


@pytest.mark.parametrize(
    "path",
    ["static/../app.py", "static/%2e%2e/app.py", "static/..%2fapp.py", "static//etc/passwd", "static/", "nothing"],
)
def test_paths_out_of_the_folder(path: str, running: Running) -> None:
    with httpx.Client() as client:
        request = client.build_request("GET", running.address)
        request.url = request.url.copy_with(raw_path=f"/{path}".encode())
        refused(client.send(request), 404)


def test_what_a_model_cannot_do(running: Running) -> None:
    refused(httpx.post(f"{running.address}api/next", json={"model": "skip-gram"}), 400)
    refused(httpx.post(f"{running.address}api/nearest", json={"model": "bigram", "word": "a"}), 400)
    refused(httpx.post(f"{running.address}api/nearest", json={"model": "cbow", "word": "qqqqq"}), 400)
    refused(httpx.post(f"{running.address}api/tags/trellis", json={"model": "lstm", "text": "a b"}), 400)
    refused(httpx.post(f"{running.address}api/tags/trellis", json={"model": "tagger", "text": "a " * 200}), 400)
    refused(httpx.post(f"{running.address}api/trainings", json={"kind": "gpt"}), 400)
    refused(httpx.post(f"{running.address}api/trainings", json={"kind": "bigram", "text": "too short"}), 400)
    refused(httpx.post(f"{running.address}api/trainings/stop", json={"id": 999}), 400)
    refused(httpx.get(f"{running.address}api/next"), 405)


def test_other_pages_and_other_names_for_this_machine(running: Running) -> None:
    body = {"model": "bigram"}
    refused(httpx.post(f"{running.address}api/next", json=body, headers={"origin": "http://evil.example"}), 403)
    refused(httpx.get(running.address, headers={"host": "evil.example"}), 421)


def test_an_address_that_others_reach_needs_a_token() -> None:
    with pytest.raises(SettingError, match="--token"):
        check_address("0.0.0.0", None)
    with pytest.raises(SettingError, match="too short"):
        check_address("0.0.0.0", "abc")
    check_address("0.0.0.0", "a-long-enough-one")
    check_address("127.0.0.1", None)


def test_a_token_is_asked_for_and_kept_as_a_cookie(tmp_path: Path) -> None:
    guarded = Running(Lab(Registry(), LearningText(list), tmp_path, starters=False), token="open-sesame")
    try:
        where = f"{guarded.address}api/models"
        refused(httpx.get(where), 401)
        refused(httpx.get(where, headers={"authorization": "Bearer open-sesamf"}), 401)
        assert httpx.get(where, headers={"authorization": "Bearer open-sesame"}).json() == []
        with httpx.Client() as client:
            assert client.get(f"{guarded.address}?token=open-sesame").status_code == 200
            assert client.get(where).status_code == 200
    finally:
        guarded.close()


def test_answers_forbid_scripts_from_elsewhere(running: Running) -> None:
    headers = httpx.get(running.address).headers
    assert "default-src 'self'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_fifty_visitors_at_once_see_no_error(running: Running) -> None:
    bodies = [{"model": name, "text": f"the list of {word}"} for name in ("bigram", "lstm") for word in ("a",)]

    def visitor(number: int) -> list[int]:
        with httpx.Client(timeout=60) as client:
            return [client.post(f"{running.address}api/next", json=body).status_code for body in bodies]

    with ThreadPoolExecutor(50) as pool:
        assert {status for found in pool.map(visitor, range(50)) for status in found} == {200}


def test_half_sent_heads_are_closed_and_keep_nobody_out(tmp_path: Path) -> None:
    """600 of them once stayed open, and a thousand stopped the lab: its limits are those of ``foreword serve``."""
    lab = Lab(Registry(), LearningText(lambda: ["a b"]), tmp_path, starters=False)
    served = Running(lab)
    assert served.server.service.limits == Limits()
    served.server.service.limits, served.server.most_connections = Limits(arrival=0.5), 50
    crowd = []
    try:
        for _ in range(120):
            crowd.append(socket.create_connection(("127.0.0.1", served.door.getsockname()[1]), timeout=20))
            crowd[-1].sendall(b"GET /health HTTP/1.1\r\nhost: local")
        assert httpx.get(f"{served.address}health", timeout=20).status_code == 200
        assert {client.recv(12) for client in crowd} <= {b"HTTP/1.1 408", b"HTTP/1.1 503"}
    finally:
        for client in crowd:
            client.close()
        served.close()
