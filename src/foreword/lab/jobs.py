"""Training that somebody started from a page: one after the other, watched, stopped, taken up again.

A job's work is a generator of points, so that stopping it is ceasing to ask for the next. One thread does them all.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from foreword.errors import ForewordError, InputError, SettingError
from foreword.protocols import Json
from foreword.training.checkpoint import Checkpoint

Phase = Literal["waiting", "running", "stopped", "done", "failed", "cancelled"]

MOST_WAITING = 8
"""Jobs in the queue; more are refused."""

MOST_POINTS = 400
"""Of a curve; where there are more, every second one goes."""


@dataclass(frozen=True, slots=True)
class Point:
    """How far a training is: the share that is done, and the loss in nats a token, where one is known."""

    share: float
    loss: float | None = None


@dataclass(slots=True)
class Job:
    """work: called once for each run; it goes on from the job's checkpoint, if there is one. finish: what comes of it.

    model: the name of what was learnt, once it is on the shelf. note: one sentence of how it ended.
    """

    id: int
    title: str
    work: Callable[[Job], Iterator[Point]]
    finish: Callable[[], str | None]
    checkpoint: Checkpoint | None = None
    starter: bool = False
    phase: Phase = "waiting"
    curve: list[Point] = field(default_factory=list)
    model: str | None = None
    note: str = ""
    stopping: threading.Event = field(default_factory=threading.Event)

    def to_json(self) -> dict[str, Json]:
        curve: list[Json] = [[point.share, point.loss] for point in self.curve if point.loss is not None]
        return {
            "id": self.id,
            "title": self.title,
            "phase": self.phase,
            "share": self.curve[-1].share if self.curve else 0.0,
            "curve": curve,
            "model": self.model,
            "note": self.note,
            "starter": self.starter,
            "resumable": self.phase == "stopped" and self.checkpoint is not None,
        }


class Jobs:
    """The queue and its one worker, which is a daemon: it ends with the program."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self._closed = False
        self._worker = threading.Thread(target=self._run, name="training", daemon=True)
        self._worker.start()

    def add(
        self,
        title: str,
        work: Callable[[Job], Iterator[Point]],
        finish: Callable[[], str | None],
        *,
        checkpoint: Checkpoint | None = None,
        starter: bool = False,
    ) -> Job:
        with self._changed:
            if not starter and len(self._waiting) >= MOST_WAITING:
                raise InputError(f"{len(self._waiting)} trainings wait already: let one end, or cancel it")
            job = Job(next(self._numbers), title, work, finish, checkpoint, starter)
            self._jobs[job.id] = job
            self._waiting.append(job)
            self._changed.notify_all()
        return job

    def all(self) -> list[Job]:
        return list(self._jobs.values())

    def __getitem__(self, id: int) -> Job:
        if id not in self._jobs:
            raise InputError(f"there is no training {id}")
        return self._jobs[id]

    def stop(self, id: int) -> Job:
        """A job that runs stops at its next point; one that waits is cancelled."""
        with self._changed:
            job = self[id]
            if job.phase == "waiting":
                self._waiting.remove(job)
                job.phase = "cancelled"
            elif job.phase == "running":
                job.stopping.set()
                if job.checkpoint is not None:
                    job.checkpoint.ask()
            else:
                raise SettingError(f"training {id} is {job.phase}: there is nothing to stop")
        return job

    def resume(self, id: int) -> Job:
        with self._changed:
            job = self[id]
            if job.phase != "stopped" or job.checkpoint is None:
                raise SettingError(f"training {id} is {job.phase}: only one that was stopped halfway can go on")
            job.stopping.clear()
            job.phase = "waiting"
            self._waiting.append(job)
            self._changed.notify_all()
        return job

    def close(self) -> None:
        """Stop what runs, start nothing more, and wait for the worker."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            for job in self._jobs.values():
                job.stopping.set()
            self._changed.notify_all()
        self._worker.join(timeout=10)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                job = self._waiting.popleft()
                job.phase = "running"
            self._do(job)

    def _do(self, job: Job) -> None:
        try:
            stopped = _watched(job)
            job.model = job.finish()
            job.phase = "stopped" if stopped else "done"
        except ForewordError as error:
            job.phase, job.note = "failed", str(error)
        except Exception as error:  # whatever happens in one training, the next one has its turn
            job.phase, job.note = "failed", f"unexpected {type(error).__name__}: {error}"


def _watched(job: Job) -> bool:
    """Run it to its end, or until it is to stop and, where it keeps checkpoints, one has been written since."""
    written = 0 if job.checkpoint is None else job.checkpoint.written
    points: Any = job.work(job)
    for point in points:
        job.curve.append(point)
        if len(job.curve) > MOST_POINTS:
            job.curve[:] = [*job.curve[:-1:2], job.curve[-1]]
        kept = job.checkpoint is None or job.checkpoint.written > written
        if job.stopping.is_set() and kept:
            points.close()
            return True
    return False
