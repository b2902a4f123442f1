"""``foreword compare`` while it runs: stopped and started again, on a terminal, on a large text."""

from __future__ import annotations

import io
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from rich.console import Console

from foreword.cli.compared import Scene, drawn, remark
from foreword.evaluate.compare.ladder import compare
from foreword.evaluate.compare.results import ComparisonProgress, Event, Plan, Resumed, Row, TextFacts
from foreword.hmm.model import HMM

from .conftest import TEXT, Foreword, Process

DOCUMENTS = [f"{line} {place % 9}" for place in range(60) for line in TEXT.splitlines() if line]
MODELS = ("--models", "unigram,5-gram,lstm")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are kept here, and not where the user's are."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def poem(tmp_path: Path) -> Path:
    path = tmp_path / "poem.txt"
    path.write_text("\n".join(DOCUMENTS))
    return path


def killed_after_two_models(poem: Path, cache: Path) -> None:
    """Start a run that would take a minute, and kill it once the LSTM is learning."""
    command = [sys.executable, "-m", "foreword", "compare", str(poem), *MODELS, "--time-budget", "60"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment
    ) as run:
        assert run.stderr is not None
        while "2 of 3" not in run.stderr.readline():
            assert run.poll() is None
        patience = time.monotonic() + 60
        while not list(cache.rglob("lstm.learning.json")) and time.monotonic() < patience:
            time.sleep(0.05)
        run.kill()


@pytest.mark.long
def test_a_run_that_is_killed_goes_on(poem: Path, tmp_path: Path, process: Process) -> None:
    cache = tmp_path / "cache"
    killed_after_two_models(poem, cache)
    [kept] = (cache / "foreword" / "compare").iterdir()
    assert {"unigram.json", "5-gram.json"} <= {path.name for path in kept.iterdir()}
    # The clock is the only thing that is changed: what is left of a minute would be too long for a test.
    (kept / "lstm.learning.json").write_text('{"seconds": 0.5}')
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    again = process("compare", poem, *MODELS, "--time-budget", 60, "--json", env=environment)
    assert again.returncode == 0
    assert again.stderr.startswith("a stopped run is resumed, with Unigram, 5-gram, Kneser-Ney (--fresh")
    assert [model["name"] for model in json.loads(again.stdout)["models"]] == ["unigram", "5-gram", "lstm"]
    assert list((cache / "foreword" / "compare").iterdir()) == []


def test_ctrl_c_says_how_to_go_on(foreword: Foreword, poem: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(HMM, "train", interrupted)
    result = foreword("compare", poem, "--models", "unigram,bigram,hmm")
    assert result.exit_code == 130
    *_, last = result.stderr.splitlines()
    assert last == "foreword: stopped: 2 models are done, and the same command continues from there"


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_a_large_text_is_sampled_within_flat_memory(tmp_path: Path, process: Process) -> None:
    """About the same part of a text of 2 MB and of 160 MB is taken, without the rest in memory.

    ``ru_maxrss`` would be that of the process which started them, where it had more. Peaks of one command differ by up
    to 100 MB from run to run, so the lowest of three counts, and the larger text is larger than what may differ.
    """
    line = "it was the {0}th of many days and nothing of note happened to number {1}\n"
    memory: dict[int, float] = {}
    for megabytes in (2, 160) * 3:
        path = tmp_path / f"{megabytes}.txt"
        count = megabytes * 1_000_000 // 80
        if not path.exists():
            with path.open("w") as file:
                file.writelines(line.format(place, place % 1000).rjust(80) for place in range(count))
        code = (
            "import re, sys; from foreword.cli import app\n"
            "try: app(sys.argv[1:], prog_name='foreword')\n"
            "finally: print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)"
        )
        command = [sys.executable, "-c", code, "compare", str(path), "--models", "unigram,bigram", "--sample", "1"]
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / f"cache-{len(list(tmp_path.iterdir()))}")}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)
        assert done.returncode == 0, done.stderr
        told, *_, peak = done.stderr.splitlines()
        assert re.fullmatch(
            r"a large text: of \d+ MB in [\d,]+ documents [\d.]+ [kM]B in [\d,]+ were taken, .*", told
        ), told
        memory[megabytes] = min(int(peak) / 1000, memory.get(megabytes, math.inf))
    assert memory[160] < memory[2] + 100, f"{memory} MB"


def test_empty_texts_are_told_in_a_line(foreword: Foreword, tmp_path: Path) -> None:
    for content in ("", "\n \n", "two words"):
        path = tmp_path / "text.txt"
        path.write_text(content)
        result = foreword("compare", path)
        assert result.exit_code == 1
        assert re.fullmatch(r"foreword: .*(no text in it|three words are the least)\n", result.stderr)


# The terminal


def scene_of(events: Iterable[Event], width: int = 200) -> Scene:
    scene = Scene(width)
    for event in events:
        match event:
            case Plan():
                scene.titles = event.titles
            case TextFacts():
                scene.facts = event
            case Row():
                scene.rows.append(event)
    return scene


def shown(scene: Scene, width: int = 200) -> list[str]:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(scene.draw())
    return console.export_text().splitlines()


def test_the_table_shows_what_is_done_what_is_learning_and_what_waits() -> None:
    scene = Scene(200)
    assert shown(scene)[0].startswith("getting ready · ")
    scene = scene_of(compare(DOCUMENTS[:40], models=["unigram", "bigram", "5-gram"], wordlists=False))
    done = scene.rows.pop()
    scene.rows.pop()
    scene.now = ComparisonProgress("training Bigram, Kneser-Ney, loss 3.20", 4, 9, 1, 0.25, 12.0)
    lines = shown(scene)
    [unigram] = [line for line in lines if "Unigram" in line]
    [bigram] = [line for line in lines if "Bigram" in line and "training" not in line]
    [waiting] = [line for line in lines if done.title in line]
    assert re.search(r"Unigram +\d", unigram)
    assert re.search(r"━+ *.* 25% 12 s left", bigram)
    assert waiting.strip() == done.title
    assert lines[-1].startswith("training Bigram, Kneser-Ney, loss 3.20 · ")
    scene.now = ComparisonProgress("testing Bigram", 5, 9, 1, 1.0)
    assert any(re.search(r"Bigram.* testing", line) for line in shown(scene))
    scene.now = ComparisonProgress("training Bigram", 4, 9, 1)
    assert any(re.search(r"Bigram.* learning", line) for line in shown(scene))


def test_a_narrow_terminal_shows_fewer_numbers_and_breaks_no_line() -> None:
    scene = scene_of(compare(DOCUMENTS[:40], models=["unigram", "5-gram"], wordlists=False), width=80)
    scene.rows.pop()
    scene.now = ComparisonProgress("training", 4, 9, 1, 0.25, 75.0)
    lines = shown(scene, 80)
    assert any(re.search(r"5-gram, Kneser-Ney .* 25% 1 min 15 s left", line) for line in lines)
    assert "on disk" not in "".join(lines)


def test_drawing_hands_every_event_on(capsys: pytest.CaptureFixture[str]) -> None:
    events = list(compare(DOCUMENTS[:40], models=["unigram"], wordlists=False))
    assert list(drawn(iter(events))) == events
    assert remark(Resumed(("Unigram",))) is not None
    assert remark(events[0]) is None
