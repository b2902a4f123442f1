"""A comparison that is stopped goes on where it was."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foreword.evaluate.compare import ladder as module
from foreword.evaluate.compare import run_cache as resuming
from foreword.evaluate.compare.budget import POLICY
from foreword.evaluate.compare.ladder import LADDER, compare
from foreword.evaluate.compare.results import Comparison, ComparisonProgress, Curve, Event, Gates, Resumed, Row
from foreword.evaluate.compare.run_cache import RunCache
from foreword.measures.perplexity import Measures
from foreword.storage.safetensors import read_arrays

DOCUMENTS = [f"the {animal} saw the {thing}" for animal in ("cat", "dog", "owl") for thing in ("mat", "hat")] * 8
MODELS = ["unigram", "5-gram", "rnn"]


def run(keep: Path, **settings: Any) -> Iterator[Event]:
    return compare(DOCUMENTS, **{"models": MODELS, "keep": keep, "wordlists": False, "time_budget": 2, **settings})


def rows_until(events: Iterator[Event], count: int) -> list[Row]:
    found: list[Row] = []
    for event in events:
        if isinstance(event, Row):
            found.append(event)
        if len(found) == count:
            break
    return found


def refuse(*_: object) -> None:
    raise AssertionError("this model was finished")


def test_finished_models_are_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rows_until(run(tmp_path), 2)
    spoilt = [dataclasses.replace(rung, build=refuse) if rung.name in MODELS[:2] else rung for rung in LADDER]
    monkeypatch.setattr(module, "LADDER", spoilt)
    events = list(run(tmp_path))
    assert [event.titles for event in events if isinstance(event, Resumed)] == [("Unigram", "5-gram, Kneser-Ney")]
    last = events[-1]
    assert isinstance(last, Comparison)
    assert list(last.rows[:2]) == before
    assert last.rows[2].name == "rnn"
    assert last.mixed is None or set(last.mixed.names) <= set(MODELS)
    assert list(tmp_path.iterdir()) == []  # the run is over


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"time_budget": 3}, {"models": ["unigram", "5-gram"]}, {"resume": False}]
)
def test_other_runs_begin_anew(tmp_path: Path, change: dict[str, Any]) -> None:
    rows_until(run(tmp_path, models=[*MODELS[:2], "hmm"]), 1)
    events = run(tmp_path, **{"models": [*MODELS[:2], "hmm"], **change})
    assert not any(isinstance(event, Resumed) for event in events)


def test_a_network_goes_on_from_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resuming, "CHECKPOINT_EVERY", 0.0)
    monkeypatch.setattr(module, "POLICY", dataclasses.replace(POLICY, patience=0))
    settings = {"models": ["rnn"], "time_budget": 4}
    stopped = 0.0
    for event in run(tmp_path, **settings):
        if isinstance(event, ComparisonProgress) and event.share is not None and event.share > 0.4:
            stopped = event.share
            break
    [checkpoint] = tmp_path.glob("*/rnn.checkpoint")
    assert checkpoint.stat().st_size > 0
    events = list(run(tmp_path, **settings))
    shares = [event.share for event in events if isinstance(event, ComparisonProgress)]
    assert min(share for share in shares if share is not None) > 0.3, f"it was stopped at {stopped}"
    last = events[-1]
    assert isinstance(last, Comparison)
    curve = last.rows[0].curve
    assert curve is not None
    seconds = [second for second, _ in curve.train]
    assert seconds == sorted(seconds)
    assert seconds[0] < 0.4 * seconds[-1]  # what it learnt before it was stopped is in the picture


def test_a_network_that_was_stopped_during_its_test_keeps_its_training(tmp_path: Path) -> None:
    """Once its row said that it had learnt for 0 epochs: nothing was left to train, and only training was counted."""
    settings = {"models": ["rnn"], "time_budget": 2}
    stopped = time.perf_counter()
    for event in run(tmp_path, **settings):
        if isinstance(event, ComparisonProgress) and event.phase.startswith("testing"):
            stopped = time.perf_counter() - stopped
            break
    [checkpoint] = tmp_path.glob("*/rnn.checkpoint")
    begun = int(read_arrays(checkpoint)["where"][0])  # epochs, each of a few words less than the text has
    *_, last = run(tmp_path, **settings)
    assert isinstance(last, Comparison)
    [row] = last.rows
    assert begun > 1
    assert 0.9 * (begun - 1) <= row.epochs <= begun
    assert row.curve is not None
    assert row.curve.train
    assert row.curve.train[-1][0] <= row.train_seconds < stopped


def test_a_checkpoint_that_cannot_be_read_is_trained_again(tmp_path: Path) -> None:
    settings = {"models": ["rnn"], "time_budget": 0.5}
    for event in run(tmp_path, **settings):
        if isinstance(event, ComparisonProgress) and event.share is not None:
            break
    [folder] = tmp_path.iterdir()
    (folder / "rnn.checkpoint").write_bytes(b"no checkpoint")
    *_, last = run(tmp_path, **settings)
    assert isinstance(last, Comparison)
    assert last.rows[0].measures.perplexity > 1


@pytest.mark.parametrize("damage", ["", "{}", "[]", '{"row": {"name": 3}, "spent": 1}', '{"row": null, "spent": "a"}'])
def test_what_cannot_be_read_is_trained_again(tmp_path: Path, damage: str) -> None:
    settings = {"models": ["unigram", "5-gram"]}
    before = rows_until(run(tmp_path, **settings), 1)
    [told] = tmp_path.glob("*/unigram.json")
    told.write_text(damage)
    events = list(run(tmp_path, **settings))
    assert not any(isinstance(event, Resumed) for event in events)
    last = events[-1]
    assert isinstance(last, Comparison)
    assert last.rows[0].measures == before[0].measures


def test_a_row_comes_back_as_it_was(tmp_path: Path) -> None:
    row = Row(
        name="lstm",
        title="LSTM",
        measures=Measures(float("inf"), 2.5, 1, 7, 2, float("nan"), -4.0),
        interval=(2.0, float("inf")),
        parameters=9,
        disk_bytes=10,
        train_seconds=1.5,
        epochs=2.5,
        train_tokens_per_second=2.0,
        score_tokens_per_second=3.0,
        sample="ä\n</s>",
        surprisal=(1.0, float("inf")),
        curve=Curve(((0.1, 9.0),), ((0.2, 8.0),)),
        gradient=(1.0, 0.5),
        gates=Gates(("a",), {"forget": ((0.5, 0.25),)}),
    )
    kept = RunCache(tmp_path, "run")
    kept.finish(row, np.array([-1.0]), np.array([-2.0, -np.inf]), 12.5)
    found = kept.finished("lstm")
    assert found is not None
    assert repr(found.row) == repr(row)  # NaN is not equal to itself
    assert found.test.tolist() == [-2.0, -np.inf]
    assert (found.valid.tolist(), found.spent) == ([-1.0], 12.5)


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    *_, last = run(tmp_path / "file", models=["unigram", "rnn"], time_budget=0.5)
    assert isinstance(last, Comparison)
    assert len(last.rows) == 2


def test_forgotten_runs_are_deleted_after_a_week(tmp_path: Path) -> None:
    for name, days in (("old", 8), ("new", 6)):
        (tmp_path / name).mkdir()
        date = time.time() - days * 24 * 3600
        os.utime(tmp_path / name, (date, date))
    RunCache(tmp_path, "run")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
