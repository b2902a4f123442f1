"""How far long work is: one bar on standard error, with its rate and the time left.

Work that is over within a second shows nothing, and so does work whose standard error is no terminal. The bar comes
from a timer and not from the first report, because the first thing a fresh installation does is to compile its
kernels, which takes some seconds in which there is nothing to report.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, Task

    from foreword.cli.options import OutputOptions
    from foreword.protocols import Meter

DELAY = 1.0
"""Seconds of work before anything is shown."""

BYTE_PHASES = ("reading", "download")
"""How the names of phases begin that are counted in bytes."""


@contextmanager
def progress(quiet: bool = False) -> Iterator[Meter | None]:
    """Yield a meter that draws a bar, or None where there is no terminal; erase the bar at the end."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    bar = Bar()
    timer = threading.Timer(DELAY, bar.show)
    timer.daemon = True
    timer.start()
    try:
        yield bar
    finally:
        timer.cancel()
        bar.close()


@dataclass(slots=True)
class Job:
    """Work whose end is reported. facts: as ``--json`` prints them. summary: a line about them, in braces."""

    meter: Meter | None
    facts: dict[str, Any]
    summary: str = ""
    measured: str = ""


@contextmanager
def job(output: OutputOptions, out: str, **facts: Any) -> Iterator[Job]:
    """Show the progress of work that saves something in ``out``; then report its facts and how long it took."""
    from foreword.cli.printing import print_message, write_json

    began = time.perf_counter()
    with progress(output.quiet) as meter:
        work = Job(meter, facts)
        yield work
    seconds = time.perf_counter() - began
    if output.as_json:
        write_json({**work.facts, "seconds": seconds, "output": out})
    elif not output.quiet:
        print_message(f"{work.summary.format(**work.facts)}, {seconds:.1f} s, saved in {out}{work.measured}")


class Bar:
    """A meter that remembers the latest report and, once shown, draws it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # the timer shows the bar while the work reports
        self._latest: tuple[str, int, int | None] = ("getting ready", 0, None)
        self._drawn: Progress | None = None
        self._closed = False

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        with self._lock:
            is_new = _name(phase) != _name(self._latest[0])
            self._latest = (phase, done, total)
            if self._drawn is not None:
                self._draw(self._drawn, is_new)

    def show(self) -> None:
        """Draw the bar."""
        drawn = _columns()
        with self._lock:
            if self._closed:
                return
            self._drawn = drawn
            self._draw(drawn, is_new=True)
            drawn.start()

    def close(self) -> None:
        """Remove the bar from the terminal."""
        with self._lock:
            self._closed = True
            if self._drawn is not None:
                self._drawn.stop()

    def _draw(self, drawn: Progress, is_new: bool) -> None:
        phase, done, total = self._latest
        if is_new:
            for old in drawn.task_ids:
                drawn.remove_task(old)
            drawn.add_task(phase, total=total, completed=done)
        else:
            drawn.update(drawn.task_ids[0], description=phase, completed=done, total=total)


def _name(phase: str) -> str:
    """What follows a comma, such as the loss, changes while the work stays the same."""
    return phase.partition(",")[0]


def _columns() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import ProgressColumn as Column
    from rich.text import Text

    class RateColumn(Column):
        def render(self, task: Task) -> Text:
            return Text(rate(task.description, task.speed))

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        RateColumn(),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        transient=True,
    )


def rate(phase: str, speed: float | None) -> str:
    """Bytes or items a second; nothing where it is not known yet."""
    if not speed:
        return ""
    if phase.startswith(BYTE_PHASES):
        return f"{speed / 1e6:,.1f} MB/s"
    if phase.startswith("training,"):
        return f"{speed:,.0f} words/s"
    return f"{speed:,.0f}/s"
