"""Runs tests in a process of their own and reads what they found from pytest's report in JUnit's form.

A test tells a measured number with ``record_property("R12 0.9 to the hundredth", value)``: the claim's id, a blank, the
name. Parametrized cases of a test count as one: it passed if none failed and at least one passed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from foreword.errors import ForewordError
from foreword.protocols import Meter

PERCENT = re.compile(r"\[ *(\d+)%\]")
NAMED = re.compile(r"([A-Z]\d{2}) (.+)", re.DOTALL)


@dataclass(slots=True)
class TestRun:
    """outcome: passed, failed or skipped; seconds: of all its cases; measured: what it recorded, by claim and name."""

    outcome: str
    seconds: float = 0.0
    measured: dict[str, dict[str, str]] = field(default_factory=dict)


def run_tests(root: Path, tests: Sequence[str], meter: Meter | None = None) -> dict[str, TestRun]:
    """Each test, file::name, with what became of it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        said = _pytest(root, [*tests, f"--junitxml={report}"], len(tests), meter)
        if not report.exists():
            raise ForewordError(
                f"pytest made no report: {said.strip().splitlines()[-1] if said.strip() else 'silence'}"
            )
        return read_report(ElementTree.parse(report).getroot())


def _pytest(root: Path, words: Iterable[str], total: int, meter: Meter | None) -> str:
    """Run it to its end; what it said last. Its percentages tell how far it is."""
    # The newer family of reports has no place for a test's properties.
    how = ["-p", "no:cacheprovider", "--no-header", "--tb=line", "-o", "junit_family=xunit1"]
    command = [sys.executable, "-m", "pytest", *how, *words]
    last: list[str] = []
    with subprocess.Popen(
        command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            last = [*last[-9:], line]
            percent = PERCENT.search(line)
            if meter is not None and percent:
                meter("running tests", int(percent[1]) * total // 100, total)
    return "".join(last)


def read_report(tree: ElementTree.Element) -> dict[str, TestRun]:
    runs: dict[str, TestRun] = {}
    for case in tree.iter("testcase"):
        test = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name', '').partition('[')[0]}"
        outcome = _outcome(case)
        run = runs.setdefault(test, TestRun(outcome))
        run.outcome = min(run.outcome, outcome, key=("failed", "passed", "skipped").index)
        run.seconds += float(case.get("time", 0))
        for each in case.iter("property"):
            named = NAMED.fullmatch(each.get("name", ""))
            if named:
                run.measured.setdefault(named[1], {})[named[2]] = each.get("value", "")
    return runs


def _outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"
