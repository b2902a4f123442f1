"""Counters of a server in Prometheus' text format, and its access log.

Only the event loop and the thread that loads models write the counters, each its own.
"""

from __future__ import annotations

import asyncio
import bisect
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """Cumulative histogram: how many values were at most each limit, and their sum."""

    def __init__(self, limits: Sequence[float]) -> None:
        self.limits = limits
        self.counts = [0] * (len(limits) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect.bisect_left(self.limits, value)] += 1
        self.sum += value

    def lines(self, name: str, labels: str) -> list[str]:
        """Return the lines of the text format."""
        lines, total = [], 0
        for limit, count in zip((*self.limits, "+Inf"), self.counts, strict=True):
            total += count
            lines.append(f'{name}_bucket{{{labels},le="{limit}"}} {total}')
        return [*lines, f"{name}_sum{{{labels}}} {self.sum:.9g}", f"{name}_count{{{labels}}} {total}"]


class Metrics:
    """Counters of requests, batches and loaded models."""

    def __init__(self) -> None:
        self.began = time.time()
        self.in_flight = 0
        self.requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self.seconds: dict[str, Histogram] = defaultdict(lambda: Histogram(SECONDS))
        self.batches: dict[tuple[str, str], Histogram] = defaultdict(lambda: Histogram(SIZES))
        self.loads: dict[tuple[str, str], int] = defaultdict(int)
        self.loaded_at: dict[str, float] = {}

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self.requests[method, route, status] += 1
        self.seconds[route].add(seconds)

    def batch(self, model: str, task: str, size: int) -> None:
        """Count one batch. size: requests that were computed together."""
        self.batches[model, task].add(size)

    def load(self, model: str, ok: bool) -> None:
        """Count one attempt to load a model."""
        self.loads[model, "ok" if ok else "failed"] += 1
        if ok:
            self.loaded_at[model] = time.time()

    def text(self) -> str:
        """Return all counters in Prometheus' text format."""
        lines = [
            *_about("foreword_requests_total", "counter", "Requests by method, route and status."),
            *(
                f'foreword_requests_total{{method="{method}",route="{_safe(route)}",status="{status}"}} {count}'
                for (method, route, status), count in sorted(self.requests.items())
            ),
            *_about("foreword_request_seconds", "histogram", "How long requests took once they had arrived."),
            *(
                line
                for route, seconds in sorted(self.seconds.items())
                for line in seconds.lines("foreword_request_seconds", f'route="{_safe(route)}"')
            ),
            *_about("foreword_batch_requests", "histogram", "Requests that were computed together."),
            *(
                line
                for (model, task), sizes in sorted(self.batches.items())
                for line in sizes.lines("foreword_batch_requests", f'model="{_safe(model)}",task="{task}"')
            ),
            *_about("foreword_in_flight", "gauge", "Requests being answered."),
            f"foreword_in_flight {self.in_flight}",
            *_about("foreword_model_loads_total", "counter", "Models loaded, or not, by result."),
            *(
                f'foreword_model_loads_total{{model="{_safe(model)}",result="{result}"}} {count}'
                for (model, result), count in sorted(self.loads.items())
            ),
            *_about("foreword_model_loaded_timestamp_seconds", "gauge", "When the model in use was loaded."),
            *(
                f'foreword_model_loaded_timestamp_seconds{{model="{_safe(model)}"}} {at:.3f}'
                for model, at in sorted(self.loaded_at.items())
            ),
            *_about("foreword_start_timestamp_seconds", "gauge", "When the server began."),
            f"foreword_start_timestamp_seconds {self.began:.3f}",
        ]
        return "\n".join(lines) + "\n"


def _about(name: str, kind: str, sentence: str) -> tuple[str, str]:
    return f"# HELP {name} {sentence}", f"# TYPE {name} {kind}"


def _safe(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


LOG_EVERY = 0.2
"""Seconds between two writes of the access log: a write per request would be a good part of a short one."""


class AccessLog:
    """One line per request: time, method, route, status, milliseconds, bytes in and out.

    It never has the text that was sent, nor an address as the client wrote it, which may contain text too.
    """

    def __init__(self, write: Callable[[str], object] | None) -> None:
        self._write = write
        self._lines: list[str] = []
        self._second, self._date = 0, ""

    def add(self, method: str, route: str, status: int, seconds: float, read: int, sent: int) -> None:
        """Queue a line."""
        if self._write is None:
            return
        if not self._lines:
            asyncio.get_running_loop().call_later(LOG_EVERY, self.flush)
        second, thousandths = divmod(int(1000 * time.time()), 1000)
        if second != self._second:
            self._second = second
            self._date = datetime.fromtimestamp(second, UTC).isoformat().removesuffix("+00:00")
        now = f"{self._date}.{thousandths:03}Z"
        self._lines.append(f"{now} {method} {route} {status} {1000 * seconds:.1f}ms {read}B {sent}B\n")

    def flush(self) -> None:
        """Write the queued lines."""
        if self._lines and self._write is not None:
            lines, self._lines = self._lines, []
            self._write("".join(lines))
