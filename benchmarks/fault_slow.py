"""A slow disk: every call on a file takes milliseconds longer, a sync ten times that, and some calls half a second.

A library in C, preloaded into the processes that do the work, makes the calls wait (``slow_disk.c``). The work is done
without a fault, and killed and resumed as in ``fault_kills.py``; it has to end in the bytes of a fast disk.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.fault_disk import Fault
from benchmarks.fault_kills import WORKS, Kills, Work, files_of, kill_at_random, timed

SOURCE = Path(__file__).with_name("slow_disk.c")
SLOWED = (
    "saving over a model", "n-gram estimation", "indexing in chunks", "BPE training", "LSTM training", "filter",
    "filter, two processes",
)  # fmt: skip
MICROSECONDS = 5000
"""How much longer a call takes."""

PATIENCE = 600.0


def why_not() -> str:
    """Return why disks cannot be slowed here; nothing if they can."""
    if sys.platform != "linux":
        return "the library that slows calls is preloaded, which only Linux does"
    return "" if shutil.which("cc") else "there is no C compiler"


def slow_disk(folder: Path, names: tuple[str, ...] = SLOWED, kills: int = 2, microseconds: int = MICROSECONDS) -> Fault:
    """Do each work on a fast disk and on a slow one, where it is also killed and resumed."""
    fault = Fault("slow disk")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    notes = folder / "notes"
    notes.write_bytes(bytes(16))
    slowly = _environment(_compiled(folder), folder / "slow", notes, microseconds)
    for work in WORKS:
        if work.name in names:
            timed(work, folder / "fast" / work.name / "whole")
            _compare(fault, work, folder, kills, slowly)
    calls, waited = np.fromfile(notes, np.int64)
    fault.note = f"{calls:,} calls that took {waited / 1e6:.0f} s longer"
    return fault


def _compiled(folder: Path) -> Path:
    library = folder / "slow_disk.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def _environment(library: Path, slow: Path, notes: Path, microseconds: int) -> dict[str, str]:
    """Return the environment of a process for which a folder is slow."""
    return os.environ | {
        "LD_PRELOAD": str(library), "SLOW_FOLDER": str(slow), "SLOW_NOTES": str(notes),
        "SLOW_MICROSECONDS": str(microseconds),
    }  # fmt: skip


def _compare(fault: Fault, work: Work, folder: Path, kills: int, environment: dict[str, str]) -> None:
    """Do some work on the slow disk, kill and resume it there, and compare the result with that of the fast disk."""
    fault.tried += 1
    slow = folder / "slow" / work.name
    command = [sys.executable, "-m", "benchmarks.fault_slow", work.name, str(slow), str(kills)]
    try:
        child = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        fault.found.append(f"{work.name}: took longer than {PATIENCE:.0f} s")
        return
    if child.returncode or "Traceback" in child.stderr:
        fault.found.append(f"{work.name}: {child.stderr[-1000:]}")
        return
    outcome = Kills(**json.loads(child.stdout.splitlines()[-1]))
    fault.tried += outcome.kills
    fault.found += [f"{work.name}: {line}" for line in outcome.found]
    if files_of(slow / "whole") != files_of(folder / "fast" / work.name / "whole"):
        fault.found.append(f"{work.name}: other bytes than on a fast disk")


def main() -> None:
    """Do one work in this process, which the library slows."""
    name, folder, kills = sys.argv[1:]
    work = next(work for work in WORKS if work.name == name)
    print(json.dumps(asdict(kill_at_random(work, int(kills), Path(folder)))))


if __name__ == "__main__":
    main()
