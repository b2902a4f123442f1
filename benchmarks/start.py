"""The start of a command: CPU seconds of fresh processes on one core, from the wheel and from a clone.

The wheel is built as ``make release`` builds it, and installed into a folder of its own, so that the first command runs
as it does for a new user: nothing compiled, no cache folder. There is no peer: the bars are numbers.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import one_core
from benchmarks.progress import say
from benchmarks.report import Row
from foreword.text.embedded import embedded_text

TITLE = "The start"
HOW = (
    "CPU seconds of whole commands in processes of their own, on one core, on 1,500 lines of the embedded text: the "
    "first command after the wheel was installed, and commands whose kernels are compiled (median of five). `foreword "
    "warm` is wall time, on all cores."
)

ROOT = Path(__file__).parents[1]
REPEATS = 5
FIRST = ("train ngram text.txt -o first", "tokenize train text.txt -o first-bpe --vocab 500")
WARM = ("score ngram text.txt", "tokenize encode bpe text.txt", "generate ngram --prompt the --seed 0")
WRONG = "train lstm text.txt -o lstm --set unitz=3"


def run(quick: bool) -> list[Row]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "text.txt").write_text("\n".join(embedded_text("train")[:1500]) + "\n", encoding="utf-8")
        environment = _environment(folder)
        for command in ("train ngram text.txt -o ngram", "tokenize train text.txt -o bpe --vocab 500"):
            _cpu_seconds(command, folder, environment)  # compiles
        rows = [_seconds_row(f"`{command}`", _repeated(command, folder, environment), 0.9) for command in WARM]
        rows.append(_seconds_row("a wrong `--set` of a network", _repeated(WRONG, folder, environment, status=2), 1.0))
        return rows if quick else [*rows, _warm_row(folder), *_wheel_rows(folder)]


def _environment(folder: Path, library: Path = ROOT / "src") -> dict[str, str]:
    """Return the environment of a process that uses the package at ``library`` and has a home of its own."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA", "XDG"))}
    return {**kept, "PYTHONPATH": str(library), "HOME": str(home)}


def _cpu_seconds(command: str, folder: Path, environment: dict[str, str], status: int = 0) -> float:
    words = [sys.executable, "-m", "foreword", *command.split()]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with one_core():
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise AssertionError(f"foreword {command}: status {done.returncode}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _repeated(command: str, folder: Path, environment: dict[str, str], status: int = 0) -> list[float]:
    say(f"start: {command}")
    return [_cpu_seconds(command, folder, environment, status) for _ in range(REPEATS + 1)][1:]


def _seconds_row(job: str, taken: list[float], bar: float) -> Row:
    middle = statistics.median(taken)
    note = f"{min(taken):.2f} to {max(taken):.2f} s" if len(taken) > 1 else ""
    return Row(
        job, ours=f"{middle:.2f} s", bar=f"≤ {bar:g} s", met=middle <= bar, note=note, figures={"seconds": taken}
    )


def _warm_row(folder: Path) -> Row:
    """Measure ``foreword warm`` where nothing is compiled."""
    say("start: foreword warm")
    environment = {**_environment(folder), "NUMBA_CACHE_DIR": str(folder / "kernels")}
    began = time.perf_counter()
    words = [sys.executable, "-m", "foreword", "warm", "--json"]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    row = _seconds_row("`foreword warm`, two cores", [time.perf_counter() - began], 90)
    return Row(
        row.job, row.ours, bar=row.bar, met=row.met, note=f"{json.loads(done.stdout)['compiled']} kernels compiled",
        figures=row.figures,
    )  # fmt: skip


def _wheel_rows(folder: Path) -> list[Row]:
    """Build the wheel, install it without its requirements, which are here, and run first commands."""
    say("start: building the wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)],
        check=True,
        env={**os.environ, "FOREWORD_SHIP_KERNELS": "1"},
    )
    [wheel] = folder.glob("foreword-*.whl")
    library = folder / "library"
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", str(library), str(wheel)], check=True)
    size = wheel.stat().st_size / 1e6
    rows = [Row("the wheel", f"{size:.1f} MB", bar="≤ 25 MB", met=size <= 25, figures={"megabytes": size})]
    for command in FIRST:
        taken = [_cpu_seconds(command, folder, _environment(folder, library))]
        rows.append(_seconds_row(f"first command, `{command}`", taken, 3))
    return rows
