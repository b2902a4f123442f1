"""Processes that open one mapped file, and what the kernel says of their memory; for tests on Linux."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROCESSES = 3
SMAPS = Path("/proc/self/smaps")
on_linux = pytest.mark.skipif(not SMAPS.exists(), reason="only Linux tells a process what it shares")

_CHILD = """
import json, sys
from pathlib import Path
from foreword import load

def memory():
    mapped, private, ours = dict.fromkeys(("Rss", "Private_Dirty", "Shared_Clean"), 0), 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *rest = line.split()
        if not name.endswith(":"):
            ours = line.endswith(sys.argv[2])
        elif name == "Private_Dirty:" and not ours:
            private += int(rest[0]) << 10
        if ours and name[:-1] in mapped:
            mapped[name[:-1]] += int(rest[0]) << 10
    return mapped, private

{use}

model = load(sys.argv[1])
few(model)
before = memory()[1]
score = many(model)
print("ready", flush=True)
sys.stdin.readline()
mapped, private = memory()
print(json.dumps({{"score": score, "growth": private - before, **mapped}}))
"""


def check_shared(model: Path, mapped: Path, use: str, growth: float) -> None:
    """Open a model in several processes and use it; assert that its mapped file is one copy for all of them.

    use: the source of two functions, ``few(model)`` and ``many(model)``, which returns a number that all must agree
    on. growth: bytes that a process may take for itself between the two.
    """
    command = [sys.executable, "-c", _CHILD.format(use=use), str(model), str(mapped)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)
    ]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        # All are still there when each looks at its memory: a page is shared only while another process has it too.
        found: list[dict[str, Any]] = [json.loads(child.communicate("go\n")[0]) for child in children]
    finally:
        for child in children:
            child.kill()
            child.communicate()
    size = mapped.stat().st_size
    assert len({each["score"] for each in found}) == 1
    for each in found[:-1]:  # the last may be alone by the time it looks
        assert each["Rss"] > size / 2
        assert each["Private_Dirty"] == 0
        assert each["Shared_Clean"] > 0.95 * each["Rss"]
    for each in found:
        assert each["growth"] < growth
