"""HTTP as clients write it: whole, byte by byte, many at once, and what is none."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from foreword.serve.limits import Limits
from foreword.serve.registry import Registry

from .conftest import Running
from .test_faults import answer_of, is_cut_off, one_answer

BODY = json.dumps({"model": "ngram", "text": "the list"}).encode()
HEAD = b"POST /api/score HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
WHOLE = HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY


@pytest.fixture(scope="module")
def served(registry: Registry) -> Iterator[Running]:
    served = Running(registry, limits=Limits(arrival=5.0))
    yield served
    served.close()


@pytest.fixture
def client(served: Running) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as client:
        yield client


def test_byte_by_byte(client: socket.socket) -> None:
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with client.makefile("rb") as answers:
        for _ in range(2):
            for place in range(len(WHOLE)):
                client.sendall(WHOLE[place : place + 1])
            status, said = one_answer(answers)
            assert status == 200
            assert json.loads(said)["results"][0]["tokens"] == 3


def test_many_requests_without_waiting_are_answered_in_their_order(client: socket.socket) -> None:
    texts = ["the " * (number % 7 + 1) for number in range(1500)]
    bodies = [json.dumps({"model": "ngram", "text": text}).encode() for text in texts]
    client.sendall(b"".join(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body for body in bodies))
    with client.makefile("rb") as answers:
        told = [one_answer(answers) for _ in texts]
    assert {status for status, _ in told} == {200}
    counts = [json.loads(said)["results"][0]["tokens"] for _, said in told]
    assert counts == [number % 7 + 2 for number in range(1500)]


def test_what_is_no_http_is_told_after_the_answers_before_it(client: socket.socket) -> None:
    client.sendall(WHOLE * 3 + b"\x00\x01 nonsense\r\n\r\n" + WHOLE)
    said = answer_of(client)
    assert said.count(b"HTTP/1.1 200") == 3
    assert said.count(b"HTTP/1.1 400") == 1
    assert said.rindex(b"HTTP/1.1 200") < said.index(b"HTTP/1.1 400")
    assert b"this is not an HTTP request" in said


def test_a_body_in_pieces(client: socket.socket) -> None:
    pieces = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (BODY[:7], BODY[7:20], BODY[20:]))
    with client.makefile("rb") as answers:
        client.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n" + pieces + b"0\r\nx-behind: 1\r\n\r\n" + WHOLE)
        assert [one_answer(answers)[0] for _ in range(2)] == [200, 200]


def test_a_body_in_pieces_that_are_none(client: socket.socket) -> None:
    """Before it an answer, of itself none: nobody knows where it ends."""
    client.sendall(WHOLE + HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\n{'mod\r\nno length\r\n")
    said = answer_of(client)
    assert said.count(b"HTTP/1.1 200") == 1
    assert b"HTTP/1.1 5" not in said


def test_a_head_that_has_no_end(served: Running, client: socket.socket) -> None:
    client.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n")
    before = served.service.metrics.requests["other", "other", 400]
    assert is_cut_off(client, b"x-more: " + b"a" * 50_000 + b"\r\n")
    assert served.service.metrics.requests["other", "other", 400] == before + 1


def test_a_request_to_change_the_protocol_is_answered_as_any_other(client: socket.socket) -> None:
    more = b"connection: upgrade\r\nupgrade: websocket\r\n\r\n"
    client.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n" + more)
    with client.makefile("rb") as answers:
        assert one_answer(answers)[0] == 200


def test_a_client_that_asks_to_close(client: socket.socket) -> None:
    client.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert answer_of(client).startswith(b"HTTP/1.1 200")
    for said in (b"CONNECT localhost:80 HTTP/1.1", b"OPTIONS * HTTP/1.1", b"GET \xff HTTP/1.1", b"GET // HTTP/9.9"):
        with socket.create_connection(client.getpeername(), timeout=20) as other:
            other.sendall(said + b"\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            assert answer_of(other).startswith(b"HTTP/1.1 4")


def test_a_client_that_waits_before_it_sends_its_body(client: socket.socket) -> None:
    with client.makefile("rb") as answers:
        client.sendall(HEAD + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(BODY))
        assert answers.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert answers.readline() == b"\r\n"
        client.sendall(BODY)
        assert one_answer(answers)[0] == 200


def test_an_old_client_gets_a_whole_answer_and_then_the_end(client: socket.socket) -> None:
    """HTTP/1.0 knows no chunks: a stream ends with the connection."""
    body = b'{"model": "ngram", "prompt": "the", "max_tokens": 5, "stream": true}'
    head = b"POST /api/generate HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    client.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
    said = answer_of(client)
    assert said.startswith(b"HTTP/1.1 200")
    assert b"transfer-encoding" not in said
    assert said.endswith(b'data: {"done": true}\n\n')


def test_head_is_answered_without_a_body(client: socket.socket) -> None:
    with client.makefile("rb") as answers:
        client.sendall(b"HEAD /health HTTP/1.1\r\nhost: localhost\r\n\r\n" + WHOLE)
        assert answers.readline().startswith(b"HTTP/1.1 405")
        while answers.readline() != b"\r\n":
            pass
        assert one_answer(answers)[0] == 200


def test_two_lengths_of_one_body_are_refused(client: socket.socket) -> None:
    """Two servers in a row could read the request differently."""
    client.sendall(HEAD + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n")
    assert answer_of(client).startswith(b"HTTP/1.1 400")
