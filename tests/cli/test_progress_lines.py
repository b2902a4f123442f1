"""Progress in a log file: a line now and then, where standard error is no terminal."""

from __future__ import annotations

import time

import pytest

from foreword.cli import progress
from foreword.cli.options import OutputOptions
from foreword.cli.progress import LogLines
from foreword.picture.picture import plural


def test_lines_come_at_growing_intervals(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    meter = LogLines(first=10, longest=30)
    written = []
    for second in range(0, 121, 5):
        now = float(second)
        meter(f"training, loss {second / 10:.1f}", second * 100, 12_000)
        if capsys.readouterr().err:
            written.append(second)
    assert written == [10, 30, 60, 90, 120]


def test_a_line_says_how_far_the_work_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    meter = LogLines(first=10)
    meter("training, loss 5.0", 0, 4000)
    now = 10.0
    meter("training, loss 4.2", 1000, 4000)
    assert capsys.readouterr().err == "training, loss 4.2, 25% of 4,000, 100 words/s, 30 s left\n"


def test_quick_work_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress() as meter:
        assert isinstance(meter, LogLines)
        meter("reading", 1, 2)
    assert capsys.readouterr().err == ""
    with progress.progress(quiet=True) as meter:
        assert meter is None


def test_one_thing_is_in_the_singular(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.job(OutputOptions(), "model", documents=1, words=21, tokens=1001) as work:
        counted = [plural(1, "class", "classes"), plural(0, "class", "classes")]
        work.summary = ", ".join([*map(work.count, work.facts), *counted])
    line = "1 document, 21 words, 1,001 tokens, 1 class, 0 classes, "
    assert capsys.readouterr().err.startswith(line)
