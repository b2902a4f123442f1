"""Parts given to processes. Each opens the models once, from folders whose arrays are mapped: all share them."""

from __future__ import annotations

import multiprocessing
import os
import threading
import traceback
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, TypeAlias

from foreword.errors import ForewordError, InputError
from foreword.filtering.output import WriteError
from foreword.filtering.scoring import open_scorer
from foreword.filtering.shards import Format, Judging, Part, ShardReader, keep_scores, lines_before, write_part
from foreword.filtering.summary import Tally
from foreword.filtering.tables import choose_allocator
from foreword.storage.sigbus import report_cut_files
from foreword.text.utf8 import Errors

KILLED = "a process was killed, perhaps for want of memory; run it again to go on"
NOT_BEGUN = (
    "no process could begin: each imports your script, which has to be a file that does its work under "
    'if __name__ == "__main__": (or give processes=1)'
)

POLL = 0.2
"""Seconds between two looks at how far the processes are."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read, and what scores: the path and the prefix of each model."""

    models: tuple[tuple[str, str], ...]
    field: str
    format: Format | None
    errors: Errors
    longest: int
    piece_bytes: int

    def opened(self) -> ShardReader:
        scorers = [open_scorer(path, prefix, self.piece_bytes) for path, prefix in self.models]
        return ShardReader(self.field, self.format, self.errors, self.longest, scorers)


@dataclass(frozen=True, slots=True)
class Task:
    """One part and what is to be done with it.

    path: where its result goes; name: what messages call that. scores: what a first pass kept. first: whether this is
    the first of two passes.
    """

    part: Part
    judging: Judging
    path: Path
    name: str
    scores: Path | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """A task's tally, or what went wrong; fatal: whether it is no use to go on with other files."""

    task: Task
    tally: Tally
    problem: str | None = None
    fatal: bool = False


Perform: TypeAlias = (
    "Callable[[Reading, ShardReader, list[Task], int, Callable[[int], None]], Generator[Done, None, None]]"
)
"""Does tasks: see ``perform_all``, which is one."""


def perform(reading: ShardReader, task: Task, tell: Callable[[int], None]) -> Done:
    """Do a task; a file that cannot be read, or written, is an answer and no exception."""
    try:
        return Done(task, _performed(reading, task, tell))
    except WriteError as error:
        return Done(task, Tally(), str(error), fatal=True)
    except InputError as error:
        problem = str(error)
    if task.part.number:  # an error has to say which line of the file it is, and nobody has counted them
        try:
            line = 1 + lines_before(task.part, reading.longest)
            return Done(task, _performed(reading, replace(task, part=replace(task.part, line=line)), lambda _: None))
        except InputError as error:
            problem = str(error)
    return Done(task, Tally(), problem)


def _performed(reading: ShardReader, task: Task, tell: Callable[[int], None]) -> Tally:
    if task.first:
        return keep_scores(reading, task.part, task.judging, task.path, tell)
    return write_part(reading, task.part, task.judging, task.path, task.name, tell, task.scores)


def perform_all(
    reading: Reading, opened: ShardReader, tasks: list[Task], processes: int, tell: Callable[[int], None]
) -> Generator[Done, None, None]:
    """Do the tasks, on several processes if there are several; they come as they are finished.

    opened: the same as ``reading``, for work in this process. tell: hears how many bytes were read in all so far.
    """
    if min(processes, len(tasks)) <= 1:
        return _in_turn(opened, tasks, tell)
    return _side_by_side(reading, opened, tasks, min(processes, len(tasks)), tell)


def _in_turn(opened: ShardReader, tasks: Iterable[Task], tell: Callable[[int], None]) -> Generator[Done, None, None]:
    total = 0

    def more(size: int) -> None:
        nonlocal total
        total += size
        tell(total)

    for task in tasks:
        yield perform(opened, task, more)


def _side_by_side(
    reading: Reading, opened: ShardReader, tasks: list[Task], processes: int, tell: Callable[[int], None]
) -> Generator[Done, None, None]:
    """One thread of this process works too: it has the models open while the others are still starting."""
    context = multiprocessing.get_context("spawn")
    counter, begun = context.Value("q", 0), context.Value("b", 0)
    coming, running = iter(tasks), set[Future[Done]]()
    own: Future[Done] | None = None
    with (
        ProcessPoolExecutor(processes - 1, context, _begin, (reading, counter, begun)) as pool,
        ThreadPoolExecutor(1) as thread,
    ):
        try:
            while True:
                if own not in running and (task := next(coming, None)) is not None:
                    own = thread.submit(perform, opened, task, _adding(counter))
                    running.add(own)
                # One more than there are processes waits at the door; more would be kept from this process.
                while len(running) < processes + 1 and (task := next(coming, None)) is not None:
                    running.add(pool.submit(_perform_here, task))
                if not running:
                    return
                finished, running = wait(running, POLL, FIRST_COMPLETED)
                tell(counter.value)
                for future in finished:
                    yield future.result()
        except BrokenProcessPool as error:
            raise ForewordError(KILLED if begun.value else NOT_BEGUN) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def end_if_imported() -> None:
    """End a process that was begun by this very call, because it imports a script that makes the call unguarded.

    ``multiprocessing`` would stop it in any case, with a page of text; the one that began it says it in a line.
    """
    for frame, _ in traceback.walk_stack(None):
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__mp_main__":
            raise SystemExit(1)


def _adding(counter: Any) -> Callable[[int], None]:
    def tell(size: int) -> None:
        with counter.get_lock():
            counter.value += size

    return tell


# What a process holds between two tasks. A pool offers no other place for it.
_here: list[Any] = []


def _begin(reading: Reading, counter: Any, begun: Any) -> None:
    begun.value = 1
    choose_allocator()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _here[:] = [reading.opened(), _adding(counter)]
    report_cut_files()


def _perform_here(task: Task) -> Done:
    return perform(_here[0], task, _here[1])


def _end_with_parent() -> None:
    """A process whose parent was killed must not go on writing beside the next run."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)
