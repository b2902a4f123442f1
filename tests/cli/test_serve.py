"""``foreword serve`` as a person or a program starts and ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httptools", reason="httptools is not installed: pip install 'foreword[lab]'")

import httpx
from typer.testing import CliRunner

from foreword.cli import app
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.storage.folder import save
from foreword.tokens.words import WordTokenizer

DOCS = Path(__file__).parents[2] / "docs" / "serve.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("serve") / "wiki"
    save(TextLM(WordTokenizer(), NgramLM(2)).fit(["the old man", "the old book", "a man reads"] * 3), place)
    return place


@contextmanager
def serving(*arguments: str, ready: bool = True) -> Iterator[tuple[Any, str]]:
    command = [sys.executable, "-m", "foreword", "serve", "--port", "0", "--json", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = json.loads(server.stdout.readline())["address"]
            end = time.monotonic() + 60
            while ready and httpx.get(f"{address}ready").status_code != 200:
                assert time.monotonic() < end
                time.sleep(0.1)
            yield server, address
        finally:
            if server.poll() is None:
                server.kill()


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM")
def test_sigterm_finishes_what_has_begun(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    with serving(str(folder), "--log", str(log)) as (server, address):
        body = {"model": "wiki", "prompt": "the", "max_tokens": 500, "stream": True, "temperature": 5.0}
        found: list[httpx.Response] = []
        refused: list[str] = []

        def stream() -> None:
            for seed in range(50):
                try:
                    found.append(httpx.post(f"{address}api/generate", json={**body, "seed": seed}, timeout=30))
                except (httpx.ConnectError, httpx.ReadError):  # the door is shut
                    return
                except httpx.RemoteProtocolError as error:  # it was shut before the request came in
                    refused.append(str(error))
                    return

        asking = threading.Thread(target=stream)
        asking.start()
        while len(found) < 3:
            time.sleep(0.01)
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0
        asking.join(10)
        assert all(answer.text.endswith('data: {"done": true}\n\n') for answer in found)
        assert all("without sending a response" in error for error in refused)  # no answer is cut in its middle
    lines = log.read_text().splitlines()
    assert len([line for line in lines if " POST /api/generate 200 " in line]) >= len(found)


def test_the_client_of_the_documentation_works(folder: Path) -> None:
    code = DOCS.read_text("utf-8").split("```python\n")[1].split("```")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    with serving(f"wiki={folder}") as (_, address):
        code = code.replace("http://127.0.0.1:8766/", address)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[0]) < 0


def test_a_model_that_cannot_be_loaded_ends_it_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "model.json").write_text("{")
    with serving(str(tmp_path / "broken"), ready=False) as (server, _):
        assert server.wait(60) == 1
        said = server.stderr.read()
    assert "model.json" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["nowhere"], 1, "no such file or folder"),
        (["nowhere", "--host", "0.0.0.0"], 2, "--token"),
        (["nowhere", "--host", "0.0.0.0", "--token", "short"], 2, "too short"),
        (["nowhere", "--token", "пароль-из-букв"], 2, "expected letters, digits"),
        ([], 2, "Missing argument"),
        (["a", "--batch", "0"], 2, "batch is 0"),
    ],
)
def test_what_is_refused_before_it_begins(arguments: list[str], status: int, told: str) -> None:
    done = CliRunner().invoke(app, ["serve", *arguments])
    assert done.exit_code == status
    assert told in done.output


def test_a_port_that_is_taken(folder: Path) -> None:
    with serving(str(folder), ready=False) as (_, address):
        port = address.rsplit(":", 1)[1].strip("/")
        done = CliRunner().invoke(app, ["serve", str(folder), "--port", port])
    assert done.exit_code == 1
    assert "cannot listen" in done.output
