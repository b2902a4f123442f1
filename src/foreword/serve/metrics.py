"""What a server counts about itself, in the text format that Prometheus reads.

Only the event loop and the thread that loads models write here; a number that is read while it grows is one of the two.
"""

from __future__ import annotations

import bisect
import time
from collections import defaultdict
from collections.abc import Sequence

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """How many values were at most each limit, their sum and their number."""

    def __init__(self, limits: Sequence[float]) -> None:
        self.limits = limits
        self.counts = [0] * (len(limits) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect.bisect_left(self.limits, value)] += 1
        self.sum += value

    def lines(self, name: str, labels: str) -> list[str]:
        told, total = [], 0
        for limit, count in zip((*self.limits, "+Inf"), self.counts, strict=True):
            total += count
            told.append(f'{name}_bucket{{{labels},le="{limit}"}} {total}')
        return [*told, f"{name}_sum{{{labels}}} {self.sum:.9g}", f"{name}_count{{{labels}}} {total}"]


class Metrics:
    def __init__(self) -> None:
        self.began = time.time()
        self.in_flight = 0
        self.requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self.seconds: dict[str, Histogram] = defaultdict(lambda: Histogram(SECONDS))
        self.batches: dict[tuple[str, str], Histogram] = defaultdict(lambda: Histogram(SIZES))
        self.loads: dict[tuple[str, str], int] = defaultdict(int)
        self.loaded_at: dict[str, float] = {}

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests[method, route, status] += 1
        self.seconds[route].add(seconds)

    def batch(self, model: str, task: str, size: int) -> None:
        """size: requests that were computed together."""
        self.batches[model, task].add(size)

    def load(self, model: str, ok: bool) -> None:
        self.loads[model, "ok" if ok else "failed"] += 1
        if ok:
            self.loaded_at[model] = time.time()

    def text(self) -> str:
        told = [
            *_about("foreword_requests_total", "counter", "Requests by method, route and status."),
            *(
                f'foreword_requests_total{{method="{method}",route="{_safe(route)}",status="{status}"}} {count}'
                for (method, route, status), count in sorted(self.requests.items())
            ),
            *_about("foreword_request_seconds", "histogram", "How long requests took, from head to last byte."),
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
            *_about("foreword_in_flight", "gauge", "Requests that are being answered."),
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
        return "\n".join(told) + "\n"


def _about(name: str, kind: str, sentence: str) -> tuple[str, str]:
    return f"# HELP {name} {sentence}", f"# TYPE {name} {kind}"


def _safe(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
