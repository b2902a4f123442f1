"""``foreword lab`` as a person starts it: refusals before anything runs, a page that answers, one file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from .conftest import Foreword

pytest.importorskip("httptools", reason="httptools is not installed: pip install 'foreword[lab]'")


def test_another_address_needs_a_token(foreword: Foreword) -> None:
    told = foreword("lab", "--host", "0.0.0.0", "--no-open")
    assert told.exit_code == 2
    assert "--token" in told.stderr


def test_a_model_that_is_not_there(foreword: Foreword, tmp_path: Path) -> None:
    told = foreword("lab", "--model", tmp_path / "nothing", "--no-open")
    assert told.exit_code == 1
    assert "nothing" in told.stderr


def test_export_writes_one_file(foreword: Foreword, tmp_path: Path) -> None:
    out = tmp_path / "cells.html"
    told = foreword("lab", "export", out, "--seconds", "0")
    assert told.exit_code == 0, told.stderr
    page = out.read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert 'src="' not in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    told = json.loads(foreword("lab", "export", out, "--seconds", "0", "--json").stdout)
    assert told == {"output": str(out), "bytes": out.stat().st_size, "trained": False}
    assert foreword("lab", "export", "-", "--seconds", "0").stdout == page


def test_it_answers_and_ends_with_ctrl_c(foreword: Foreword, tmp_path: Path) -> None:
    text, model = tmp_path / "text.txt", tmp_path / "small"
    text.write_text("the cat sat on the mat\n" * 20, "utf-8")
    assert foreword("train", "ngram", text, "-o", model, "--set", "order=2").exit_code == 0
    command = [sys.executable, "-m", "foreword", "lab", "--no-open", "--port", "0", "--model", str(model), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as server:
        try:
            assert server.stdout is not None
            address = json.loads(server.stdout.readline())["address"]
            with urlopen(f"{address}api/models", timeout=30) as answer:
                assert b'"name":"small"' in answer.read()
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=20) in (0, 130, -signal.SIGINT)
        finally:
            server.kill()
