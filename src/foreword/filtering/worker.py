"""Parts distributed to processes. Each opens the models once, from folders whose arrays are mapped: all share them."""

from __future__ import annotations

import multiprocessing
import os
import threading
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, TypeAlias

from foreword.errors import ForewordError, InputError
from foreword.filtering.judge import Judge
from foreword.filtering.output import WriteError, choose_allocator
from foreword.filtering.settings import Filtering
from foreword.filtering.shards import OpenFilter, Part, lines_before
from foreword.filtering.summary import Tally
from foreword.storage.checking import CHECKS
from foreword.storage.sigbus import report_cut_files

KILLED = "a process was killed, perhaps for want of memory; run it again to resume"
NOT_BEGUN = (
    "no process could begin: each imports your script, which has to be a file that does its work under "
    'if __name__ == "__main__": (or give processes=1)'
)

POLL = 0.2
"""Seconds between two reports of progress."""

SILENCE = 60.0
"""Seconds without progress after which a warning is issued, and again after twice, four times ... as long."""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """One part and what is to be done with it.

    path: of the result; name: of the result in messages. scores: what a first pass has written. first: whether this is
    the first of two passes.
    """

    part: Part
    judge: Judge
    path: Path
    name: str
    scores: Path | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """The tally of a task, or what went wrong; fatal: whether other files would fail too."""

    task: ShardTask
    tally: Tally
    problem: str | None = None
    fatal: bool = False


Perform: TypeAlias = "Callable[[OpenFilter, list[ShardTask], int, Callable[[int], None]], Generator[Done, None, None]]"
"""What performs tasks, such as ``perform_all``."""


def perform(opened: OpenFilter, task: ShardTask, report: Callable[[int], None]) -> Done:
    """Perform a task. A file that cannot be read or written is an answer, not an exception."""
    try:
        return Done(task, _performed(opened, task, report))
    except WriteError as error:
        return Done(task, Tally(), str(error), fatal=True)
    except InputError as error:
        problem = str(error)
    if task.part.number:  # the error has to name a line of the file, and those before the part were not counted
        try:
            line = 1 + lines_before(task.part, opened.filtering.longest)
            return Done(task, _performed(opened, replace(task, part=replace(task.part, line=line)), lambda _: None))
        except InputError as error:
            problem = str(error)
    return Done(task, Tally(), problem)


def _performed(opened: OpenFilter, task: ShardTask, report: Callable[[int], None]) -> Tally:
    if task.first:
        return opened.write_scores(task.part, task.judge, task.path, report)
    return opened.write_part(task.part, task.judge, task.path, task.name, report, task.scores)


def perform_all(
    opened: OpenFilter, tasks: list[ShardTask], processes: int, report: Callable[[int], None]
) -> Generator[Done, None, None]:
    """Perform tasks, on several processes if there are several, and yield them as they finish.

    report: called with the bytes read in all so far.
    """
    if min(processes, len(tasks)) <= 1:
        return _in_turn(opened, tasks, report)
    return _in_parallel(opened, tasks, min(processes, len(tasks)), report)


def _in_turn(
    opened: OpenFilter, tasks: Iterable[ShardTask], report: Callable[[int], None]
) -> Generator[Done, None, None]:
    total = 0

    def more(size: int) -> None:
        nonlocal total
        total += size
        report(total)

    for task in tasks:
        yield perform(opened, task, more)


def _in_parallel(
    opened: OpenFilter, tasks: list[ShardTask], processes: int, report: Callable[[int], None]
) -> Generator[Done, None, None]:
    """Perform tasks in several processes, this one included: its models are open while the others still start."""
    context = multiprocessing.get_context("spawn")
    counter, begun = context.Value("q", 0), context.Value("b", 0)
    coming, running = iter(tasks), set[Future[Done]]()
    own: Future[Done] | None = None
    silence = _Silence()
    with (
        ProcessPoolExecutor(processes - 1, context, _start, (opened.filtering, counter, begun)) as pool,
        ThreadPoolExecutor(1) as thread,
    ):
        try:
            while True:
                if own not in running and (task := next(coming, None)) is not None:
                    own = thread.submit(perform, opened, task, _adding(counter))
                    running.add(own)
                # One task more than there are processes is queued; more would be kept from this process.
                while len(running) < processes + 1 and (task := next(coming, None)) is not None:
                    running.add(pool.submit(_perform_here, task))
                if not running:
                    return
                finished, running = wait(running, POLL, FIRST_COMPLETED)
                report(counter.value)
                silence.poll(counter.value, bool(finished))
                for future in finished:
                    yield future.result()
        except BrokenProcessPool as error:
            raise ForewordError(KILLED if begun.value else NOT_BEGUN) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class StalledWarning(UserWarning):
    """A run waits for processes that make no progress."""


class _Silence:
    """Warns of a run without progress. Polls are counted, not seconds: the run itself may have been stopped."""

    def __init__(self) -> None:
        self._read = self._polls = 0

    def poll(self, read: int, finished: bool) -> None:
        """Take note of the bytes read so far, and of whether a task has finished since the last call."""
        self._polls = 0 if finished or read != self._read else self._polls + 1
        self._read = read
        times, rest = divmod(self._polls, round(SILENCE / POLL))
        if rest == 0 and times.bit_count() == 1:
            warnings.warn(_stalled(self._polls * POLL), StalledWarning, stacklevel=2)


def _stalled(seconds: float) -> str:
    """Describe a run that has read nothing for so long, and what can be done."""
    processes = sorted(child.pid for child in multiprocessing.active_children() if child.pid)
    stopped = " ".join(str(process) for process in processes if _is_stopped(process))
    if stopped:
        return f"no progress for {seconds:.0f} s: worker process {stopped} is stopped; kill -CONT {stopped} resumes it"
    return (
        f"no progress for {seconds:.0f} s: worker process {' '.join(map(str, processes))} waits for a slow disk or "
        "model, or hangs; Ctrl-C ends the run, and the same command resumes it"
    )


def _is_stopped(process: int) -> bool:
    """Return whether a child process is stopped, as by SIGSTOP; False where the system cannot say."""
    if not hasattr(os, "waitid"):
        return False
    return os.waitid(os.P_PID, process, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None


def end_if_imported() -> None:
    """End a process that was started by this very call, because it imports a script that makes the call unguarded.

    ``multiprocessing`` would stop it in any case, with a page of text; the parent reports it in one line.
    """
    for frame, _ in traceback.walk_stack(None):
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__mp_main__":
            raise SystemExit(1)


def _adding(counter: Any) -> Callable[[int], None]:
    def add(size: int) -> None:
        with counter.get_lock():
            counter.value += size

    return add


# What a process keeps from task to task. A pool offers no other place for it.
_here: list[Any] = []


def _start(filtering: Filtering, counter: Any, begun: Any) -> None:
    begun.value = 1
    warnings.simplefilter("ignore", UserWarning)  # the first process, which opens the same models, has reported them
    choose_allocator()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _here[:] = [filtering, _adding(counter)]
    report_cut_files()
    CHECKS.wanted = False  # the first process has checked the files


def _perform_here(task: ShardTask) -> Done:
    return perform(_opened(_here[0]), task, _here[1])


@lru_cache(maxsize=1)
def _opened(filtering: Filtering) -> OpenFilter:
    """Map the models with the first task: an error reaches the first process, where one of ``_start`` would not."""
    return OpenFilter(filtering)


def _end_with_parent() -> None:
    """End this process with its parent: after a kill it must not write alongside the next run."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)
