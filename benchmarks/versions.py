"""Compare the speed of two versions of the package, row by row: ``python -m benchmarks.versions OTHER [NAME…]``.

OTHER is a checkout of another version. Each version runs in a process of its own, with its own benchmarks, and the two
take turns: whatever slows the machine slows both. Peers are not run. A row passes where the median of the ratios
(other / this) is at least 0.95; a row that fails is measured once more. Results go to docs/results/versions.json, where
each row has the commit it was measured at; a run of some subjects replaces the rows of those.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.__main__ import ONE_THREAD, SUBJECTS

ROOT = Path(__file__).parents[1]
STORED = ROOT / "docs" / "results" / "versions.json"
PAIRS = 9
LEAST = 0.95


class Version:
    """A process that runs the benchmarks of one checkout, one timed run at a time, when asked to."""

    def __init__(self, checkout: Path, name: str) -> None:
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": f"{checkout / 'src'}:{checkout}"}
        command = [sys.executable, __file__, "--worker", name]
        self._any_row = False
        self._process = subprocess.Popen(
            command, cwd=checkout, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def next_row(self) -> str | None:
        """Return the name of the row that is ready to be timed; None after the last one."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("ROW "):
                self._any_row = True
                return line[4:].strip()
        status = self._process.wait()
        if not self._any_row:  # after its rows a subject may fail, for peers are not run
            raise SystemExit(f"the benchmarks of a version ended with status {status} before their first row")
        return None

    def run_once(self) -> float:
        """Run the present row once and return its CPU seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print("run", file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def continue_to_next(self) -> None:
        assert self._process.stdin is not None
        print("next", file=self._process.stdin, flush=True)


def compare(other: Path, name: str) -> Iterator[dict[str, Any]]:
    """Time every row of a subject in both versions, in turn."""
    from benchmarks.report import commit  # not above: a worker imports what the other version has

    old, new = Version(other, name), Version(ROOT, name)
    while True:
        row, same = old.next_row(), new.next_row()
        if row is None or same is None:
            return
        ratios = [old.run_once() / new.run_once() for _ in range(PAIRS)]
        first = statistics.median(ratios)
        if first < LEAST:
            ratios = [old.run_once() / new.run_once() for _ in range(PAIRS)]
        ratio = statistics.median(ratios)
        yield {
            "subject": name,
            "row": same,
            "commit": commit(ROOT),
            "ratio": ratio,
            "first": first,
            "lowest": min(ratios),
            "highest": max(ratios),
        }
        old.continue_to_next()
        new.continue_to_next()


def work(name: str) -> None:
    """Run a subject's benchmark in this process, timing a row whenever a line on standard input asks for it."""
    measure = import_module("benchmarks.measure")
    subject = import_module(f"benchmarks.{name}")

    def on_request(row: str, ours: Callable[[], object], *others: object, **options: object) -> Any:
        ours()  # compiles, fills caches
        print(f"ROW {row}", flush=True)
        times = [0.0]
        for line in sys.stdin:
            if line.strip() == "next":
                break
            times.append(measure.seconds(ours, time.process_time))
            print(times[-1], flush=True)
        return measure.Pairs(times[1:] or [1.0], times[1:] or [1.0])

    for module in [subject, *(sys.modules[key] for key in list(sys.modules) if key.startswith("benchmarks."))]:
        if hasattr(module, "interleaved"):
            setattr(module, "interleaved", on_request)  # noqa: B010
    subject.run(True)


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.versions", description=__doc__)
    parser.add_argument("other", type=Path, nargs="?", help="a checkout of the version to compare with")
    parser.add_argument("names", nargs="*", help="subjects (default: all)")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker)
        return 0
    began = time.time()
    rows = []
    for name in options.names or SUBJECTS:
        for row in compare(options.other.resolve(), name):
            print(f"{row['ratio']:.3f} ({row['lowest']:.2f}–{row['highest']:.2f})  {name}: {row['row']}", flush=True)
            rows.append(row)
    store(rows, options.other, round(time.time() - began))
    return int(any(row["ratio"] < LEAST for row in rows))


def store(rows: list[dict[str, Any]], other: Path, seconds: int) -> None:
    """Write the rows to the stored results; rows of other subjects stay if they compare with the same version."""
    from benchmarks.report import commit, machine

    stored = json.loads(STORED.read_text("utf-8")) if STORED.exists() else {}
    subjects = {row["subject"] for row in rows}
    earlier = stored.get("rows", []) if stored.get("other") == commit(other) else []
    kept = [{"commit": stored.get("commit"), **row} for row in earlier if row["subject"] not in subjects]
    written = {
        "command": "python -m benchmarks.versions OTHER [NAME…]",
        "other": commit(other),
        "pairs": PAIRS,
        "machine": machine(),
        "seed": 0,
        "seconds": seconds,
        "rows": kept + rows,
    }
    STORED.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
