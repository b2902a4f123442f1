"""The queue of trainings: one at a time, stopped, taken up again, and none in the way of the next."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from foreword.errors import ForewordError, InputError, SettingError
from foreword.lab.trainings import MAX_POINTS, MAX_WAITING, Job, Jobs
from foreword.protocols import Step
from foreword.storage.checkpoint import Checkpoint


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    made = Jobs()
    yield made
    made.close()


def until(so: Callable[[], bool]) -> None:
    for _ in range(1000):
        if so():
            return
        time.sleep(0.005)
    raise AssertionError("it did not come to that")


def test_one_at_a_time_in_their_order(jobs: Jobs) -> None:
    running, order = [0], list[str]()

    def work(name: str) -> Callable[[Job], Iterator[Step]]:
        def points(_: Job) -> Iterator[Step]:
            running[0] += 1
            assert running[0] == 1
            order.append(name)
            yield Step(1, 2, 2.0)
            yield Step(2, 2, 1.0)
            running[0] -= 1

        return points

    made = [jobs.add(name, work(name), lambda: "m") for name in "abc"]
    until(lambda: all(job.phase == "done" for job in made))
    assert order == ["a", "b", "c"]
    assert made[0].to_json()["curve"] == [[0.5, 2.0], [1.0, 1.0]]


def test_stopped_at_a_checkpoint_and_taken_up_again(jobs: Jobs, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "kept", every=1e9)

    def work(_: Job) -> Iterator[Step]:
        kept = checkpoint.read({"at": np.zeros(1, np.int64)}, "test", "")
        at = 0 if kept is None else int(kept["at"][0])
        for number in range(at, 100 if at else 1_000_000):
            yield Step(number, 100, float(number))
            if checkpoint.due():
                checkpoint.write({"at": np.array([min(number, 90)])}, "test", "")
            time.sleep(0.0005)

    job = jobs.add("counting", work, lambda: "model", checkpoint=checkpoint)
    until(lambda: len(job.curve) > 3)
    jobs.stop(job.id)
    until(lambda: job.phase == "stopped")
    assert job.to_json()["resumable"]
    jobs.resume(job.id)
    until(lambda: job.phase == "done")
    with pytest.raises(SettingError, match="only one that was stopped"):
        jobs.resume(job.id)
    with pytest.raises(SettingError, match="nothing to stop"):
        jobs.stop(job.id)


def test_one_that_fails_says_why_and_the_next_has_its_turn(jobs: Jobs) -> None:
    def failing(error: Exception) -> Callable[[Job], Iterator[Step]]:
        def points(_: Job) -> Iterator[Step]:
            yield Step(0, 1)
            raise error

        return points

    told = jobs.add("a", failing(ForewordError("too short")), lambda: None)
    odd = jobs.add("b", failing(KeyError("x")), lambda: None)
    fine = jobs.add("c", lambda _: iter([Step(1, 1)]), lambda: None)
    until(lambda: fine.phase == "done")
    assert (told.phase, told.note) == ("failed", "too short")
    assert (odd.phase, odd.note) == ("failed", "unexpected KeyError: 'x'")


def test_the_queue_is_bounded_and_one_that_waits_can_be_cancelled(jobs: Jobs) -> None:
    gate = threading.Event()

    def slow(_: Job) -> Iterator[Step]:
        gate.wait(10)
        yield Step(1, 1)

    first = jobs.add("first", slow, lambda: None)
    until(lambda: first.phase == "running")
    waiting = [jobs.add("next", slow, lambda: None) for _ in range(MAX_WAITING)]
    with pytest.raises(InputError, match="wait already"):
        jobs.add("one more", slow, lambda: None)
    assert jobs.stop(waiting[0].id).phase == "cancelled"
    with pytest.raises(InputError, match="no training 99"):
        jobs.stop(99)
    gate.set()
    until(lambda: waiting[-1].phase == "done")
    assert waiting[0].phase == "cancelled"


def test_a_job_that_will_not_run_again_keeps_no_text(jobs: Jobs) -> None:
    """Cancelled trainings once kept the text they were to learn from for ever."""

    class Text:
        """Something that can be seen to go."""

    gate, texts = threading.Event(), [Text(), Text()]
    seen = [weakref.ref(text) for text in texts]

    def reading(text: Text) -> Callable[[Job], Iterator[Step]]:
        def work(_: Job) -> Iterator[Step]:
            gate.wait(10)
            yield Step(1, 1 if text else 2)

        return work

    running, cancelled = (jobs.add("a text", reading(text), lambda: None) for text in texts)
    texts.clear()
    jobs.stop(cancelled.id)
    gate.set()
    until(lambda: running.phase == "done")
    gc.collect()
    until(lambda: [ref() for ref in seen] == [None, None])


def test_curves_stay_short(jobs: Jobs) -> None:
    job = jobs.add("long", lambda _: (Step(n, 5000, 1.0) for n in range(5001)), lambda: None)
    until(lambda: job.phase == "done")
    assert len(job.curve) <= MAX_POINTS
    assert (job.curve[0].share, job.curve[-1].share) == (0.0, 1.0)
