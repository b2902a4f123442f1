"""How far long work is: one bar on standard error, with its rate and the time left.

Work that is over within a second shows nothing. Where standard error is no terminal but a file, a line is written now
and then instead: after ten seconds, and then at growing intervals up to a minute. The bar comes from a timer and not
from the first report, because the first thing a fresh installation does is to compile its kernels, which takes some
seconds in which there is nothing to report.
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

FIRST_LINE, LONGEST_SILENCE = 10.0, 60.0
"""Seconds before the first line in a log file, and between two lines at most."""

BYTE_PHASES = ("reading", "download")
"""How the names of phases begin that are counted in bytes."""


@contextmanager
def progress(quiet: bool = False) -> Iterator[Meter | None]:
    """Yield a meter that draws a bar, which is erased at the end, or writes lines where there is no terminal."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield LogLines()
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
class ReportedJob:
    """Work whose end is reported. facts: as ``--json`` prints them. summary: a line about them."""

    meter: Meter | None
    facts: dict[str, Any]
    summary: str = ""
    measured: str = ""

    def count(self, fact: str, thing: str = "") -> str:
        """Return a fact with what it counts: 1 document, 1,200 documents. thing: unless the fact has its name."""
        from foreword.picture.picture import plural

        return plural(self.facts[fact], thing or fact.removesuffix("s"))


@contextmanager
def job(output: OutputOptions, out: str, **facts: Any) -> Iterator[ReportedJob]:
    """Show the progress of work that saves something in ``out``; then report its facts and how long it took."""
    from foreword.cli.printing import print_message, write_json

    began = time.perf_counter()
    with progress(output.quiet) as meter:
        work = ReportedJob(meter, facts)
        yield work
    seconds = time.perf_counter() - began
    if output.as_json:
        write_json({**work.facts, "seconds": seconds, "output": out})
    elif not output.quiet:
        print_message(f"{work.summary}, {seconds:.1f} s, saved in {out}{work.measured}")


class LogLines:
    """A meter that writes a line to standard error now and then, for a log file."""

    def __init__(self, first: float = FIRST_LINE, longest: float = LONGEST_SILENCE) -> None:
        self._silence, self._longest = first, longest
        self._phase, self._began, self._first = "", time.monotonic(), 0
        self._due = self._began + first

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if _name(phase) != self._phase:
            self._phase, self._began, self._first = _name(phase), now, done
        if now < self._due:
            return
        self._silence = min(2 * self._silence, self._longest)
        self._due = now + self._silence
        sys.stderr.write(f"{self._line(phase, done, total, now - self._began)}\n")
        sys.stderr.flush()

    def _line(self, phase: str, done: int, total: int | None, seconds: float) -> str:
        speed = (done - self._first) / seconds if seconds > 0 else 0.0
        parts = [phase, f"{done / total:.0%} of {total:,}" if total else f"{done:,}", rate(phase, speed)]
        if total and speed > 0:
            parts.append(f"{max(0, total - done) / speed:,.0f} s left")
        return ", ".join(filter(None, parts))


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
    """Return the name of a phase, without what changes, such as the loss, after a comma."""
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
    """Return bytes or items per second as text; nothing where the speed is not known yet."""
    if not speed:
        return ""
    if phase.startswith(BYTE_PHASES):
        return f"{speed / 1e6:,.1f} MB/s"
    if phase.startswith("training,"):
        return f"{speed:,.0f} words/s"
    return f"{speed:,.0f}/s"
