"""What the tests measured when they last ran, kept beside the package with date and machine: ``measured.json``."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from foreword.storage.atomic import atomic_file

FILE = Path(__file__).with_name("measured.json")


@dataclass(frozen=True, slots=True)
class Ran:
    """A test as it last ran. claims: those it proves. measured: by claim and name; seeds are fixed in the test."""

    claims: list[str]
    outcome: str
    seconds: float
    date: str
    machine: str
    measured: dict[str, dict[str, str]] = field(default_factory=dict)


def read_stored(file: Path = FILE) -> dict[str, Ran]:
    """Test → how it last ran; empty where nothing was stored."""
    if not file.exists():
        return {}
    found: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return {test: Ran(**ran) for test, ran in found.items()}


def write_stored(runs: dict[str, Ran], file: Path = FILE) -> None:
    rows = (f" {json.dumps(test)}: {json.dumps(_facts(ran), ensure_ascii=False)}" for test, ran in sorted(runs.items()))
    with atomic_file(file) as new:
        new.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def _facts(ran: Ran) -> dict[str, object]:
    facts: dict[str, object] = {
        "claims": ran.claims,
        "outcome": ran.outcome,
        "seconds": round(ran.seconds, 2),
        "date": ran.date,
        "machine": ran.machine,
    }
    return {**facts, "measured": ran.measured} if ran.measured else facts


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def this_machine() -> str:
    """The processor and how many cores, never a name that somebody gave the machine."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text(encoding="utf-8").splitlines() if described.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"
