"""Trainings that were started from a page: run one after the other, watched, stopped, resumed.

A job's work is a generator of steps, so that stopping it means not asking for the next. One thread runs all jobs.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from foreword.errors import ForewordError, InputError, SettingError
from foreword.protocols import Json, Step
from foreword.training.checkpoint import Checkpoint

Phase = Literal["waiting", "running", "stopped", "done", "failed", "cancelled"]

MAX_WAITING = 8
"""Jobs in the queue; more are refused."""

MAX_POINTS = 400
"""Points of a curve; beyond that, every second one is dropped."""


@dataclass(slots=True)
class Job:
    """One training. work: called once per run; it resumes from the job's checkpoint, if there is one.

    finish: called at the end; returns the name of the model, or None. note: one sentence on how it ended.
    """

    id: int
    title: str
    work: Callable[[Job], Iterator[Step]]
    finish: Callable[[], str | None]
    checkpoint: Checkpoint | None = None
    starter: bool = False
    phase: Phase = "waiting"
    curve: list[Step] = field(default_factory=list)
    model: str | None = None
    note: str = ""
    stopping: threading.Event = field(default_factory=threading.Event)

    def to_json(self) -> dict[str, Json]:
        """Return what the page shows."""
        curve: list[Json] = [[step.share, step.loss] for step in self.curve if not math.isnan(step.loss)]
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
    """The queue of jobs and its worker, a daemon thread."""

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
        work: Callable[[Job], Iterator[Step]],
        finish: Callable[[], str | None],
        *,
        checkpoint: Checkpoint | None = None,
        starter: bool = False,
    ) -> Job:
        """Queue a job."""
        with self._changed:
            if not starter and len(self._waiting) >= MAX_WAITING:
                raise InputError(f"{len(self._waiting)} trainings wait already: let one end, or cancel it")
            job = Job(next(self._numbers), title, work, finish, checkpoint, starter)
            self._jobs[job.id] = job
            self._waiting.append(job)
            self._changed.notify_all()
        return job

    def all(self) -> list[Job]:
        """Return all jobs, the oldest first."""
        return list(self._jobs.values())

    def __getitem__(self, id: int) -> Job:
        if id not in self._jobs:
            raise InputError(f"there is no training {id}")
        return self._jobs[id]

    def stop(self, id: int) -> Job:
        """Stop a running job at its next step; cancel one that waits."""
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
        """Queue a stopped job again."""
        with self._changed:
            job = self[id]
            if job.phase != "stopped" or job.checkpoint is None:
                raise SettingError(f"training {id} is {job.phase}: only one that was stopped halfway can be resumed")
            job.stopping.clear()
            job.phase = "waiting"
            self._waiting.append(job)
            self._changed.notify_all()
        return job

    def close(self) -> None:
        """Stop the running job, start no other, and wait for the worker."""
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
            self._finish_job(job)

    def _finish_job(self, job: Job) -> None:
        try:
            stopped = _run_steps(job)
            job.model = job.finish()
            job.phase = "stopped" if stopped else "done"
        except ForewordError as error:
            job.phase, job.note = "failed", str(error)
        except Exception as error:  # whatever happens in one training, the next one has its turn
            job.phase, job.note = "failed", f"unexpected {type(error).__name__}: {error}"


def _run_steps(job: Job) -> bool:
    """Run a job; return whether it was stopped, which waits for a checkpoint to be written if the job has one."""
    written = 0 if job.checkpoint is None else job.checkpoint.written
    steps: Any = job.work(job)
    for step in steps:
        job.curve.append(step)
        if len(job.curve) > MAX_POINTS:
            job.curve[:] = [*job.curve[:-1:2], job.curve[-1]]
        saved = job.checkpoint is None or job.checkpoint.written > written
        if job.stopping.is_set() and saved:
            steps.close()
            return True
    return False
