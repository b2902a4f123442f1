"""Pipes, terminals and Ctrl-C: what only a process of its own shows."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from foreword.cli.progress import Bar, progress, rate

from .conftest import TEXT, Process

COMMAND = [sys.executable, "-m", "foreword"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_enough_ends_it_quietly(shelf: Path, tmp_path: Path, unbuffered: str) -> None:
    (tmp_path / "long.txt").write_text(TEXT * 20_000)
    encode = " ".join([*COMMAND, "tokenize", "encode", str(shelf / "word"), str(tmp_path / "long.txt")])
    result = subprocess.run(
        ["bash", "-c", f"{encode} | head -1; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    ids, status = result.stdout.splitlines()
    assert ids.split()
    assert status == "141"
    assert result.stderr == ""


@pytest.mark.parametrize("words", ["--help", "train lstm --help", "--version"])
def test_help_that_nobody_reads_ends_quietly(words: str) -> None:
    command = f"{' '.join(COMMAND)} {words} | true; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("141\n", "")


def test_commands_are_joined_by_pipes(shelf: Path) -> None:
    there = " ".join([*COMMAND, "tokenize", "encode", str(shelf / "bpe"), "-"])
    back = " ".join([*COMMAND, "tokenize", "decode", str(shelf / "bpe"), "-"])
    result = subprocess.run(
        ["bash", "-c", f"{there} | {back}"], input="naïve 猫\nthe cat\n".encode(), capture_output=True, check=True,
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    )  # fmt: skip
    assert (result.stdout.decode(), result.stderr) == ("naïve 猫\nthe cat\n", b"")


def test_an_answer_comes_before_the_next_question(shelf: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "score", str(shelf / "model")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as asked:
        assert asked.stdin is not None
        assert asked.stdout is not None
        for line in (b"cat\n", b"the dog\n"):
            asked.stdin.write(line)
            asked.stdin.flush()
            assert float(asked.stdout.readline()) < 0
        asked.stdin.close()
    assert asked.returncode == 0


@pytest.mark.parametrize("training", [["train", "unigram"], ["tokenize", "train", "--kind", "word"]])
def test_ctrl_c_leaves_nothing(tmp_path: Path, listing: Callable[[Path], list[str]], training: list[str]) -> None:
    """The text is a pipe that is opened for writing only once the other side reads, and that then never ends."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with (
        subprocess.Popen(
            [*COMMAND, *training, str(pipe), "-o", str(tmp_path / "out")], stderr=subprocess.PIPE, text=True
        ) as work,
        pipe.open("wb") as writing,
    ):
        writing.write(TEXT.encode())
        writing.flush()
        time.sleep(0.2)
        work.send_signal(signal.SIGINT)
        _, said = work.communicate(timeout=30)
    assert (work.returncode, said) == (130, "foreword: stopped\n")
    assert listing(tmp_path) == ["pipe"]


def on_a_terminal(*words: str, stdout: int | None = subprocess.DEVNULL) -> str:
    """What a command draws on standard error when that is a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    drawn = b""
    with subprocess.Popen([*COMMAND, *words], stdout=stdout, stderr=theirs, env=environment) as work:
        os.close(theirs)
        while work.poll() is None or select.select([ours], [], [], 0)[0]:
            if not select.select([ours], [], [], 0.05)[0]:
                continue
            try:
                drawn += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
    os.close(ours)
    return drawn.decode(errors="replace")


@pytest.mark.long
def test_the_comparison_is_drawn_while_it_runs(tmp_path: Path) -> None:
    (tmp_path / "poem.txt").write_text(TEXT * 10)
    drawn = on_a_terminal("compare", str(tmp_path / "poem.txt"), "--models", "unigram,5-gram,rnn", "--time-budget", "2")
    assert "Unigram" in drawn
    assert re.search("━|learning|testing", drawn)  # a network that has no time left is done before its bar is drawn
    assert re.search(r"\x1b\[(1A\x1b\[)?2K", drawn)  # wiped off again
    assert on_a_terminal("compare", str(tmp_path / "poem.txt"), "--quiet", "--models", "unigram") == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def seem_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error, as if it were a terminal. No fixture: pytest takes standard error anew for each test."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    return terminal


def test_short_work_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = seem_a_terminal(monkeypatch)
    with progress() as meter:
        assert meter is not None
        meter("reading", 1, 2)
    assert terminal.getvalue() == ""


def test_long_work_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = seem_a_terminal(monkeypatch)
    monkeypatch.setattr("foreword.cli.progress.DELAY", 0.01)
    with progress() as meter:
        assert isinstance(meter, Bar)
        for done in (1_000_000, 2_000_000, 3_000_000):
            meter("reading", done, 4_000_000)
            time.sleep(0.4)
        meter("merging", 100, None)
        time.sleep(0.3)
    drawn = terminal.getvalue()
    assert "reading" in drawn
    assert "50%" in drawn
    assert "MB/s" in drawn
    assert "merging" in drawn


def test_quiet_work_has_no_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress(quiet=True) as meter:
        assert meter is None


def test_rates() -> None:
    assert rate("reading", 12_345_678) == "12.3 MB/s"
    assert rate("download train.txt", 1e6) == "1.0 MB/s"
    assert rate("merging", 1234.5) == "1,234/s"
    assert rate("merging", None) == ""


def test_results_and_talk_are_apart(process: Process, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    trained = process("train", "unigram", tmp_path / "text.txt", "-o", tmp_path / "model")
    assert (trained.returncode, trained.stdout) == (0, "")
    assert trained.stderr.count("\n") == 1
    scored = process("score", tmp_path / "model", "-", input="the cat\n")
    assert scored.stderr == ""
    assert float(scored.stdout) < 0
