"""The tests that prove claims: finding them, running them, and storing what they measured.

A test proves the claims whose ids are in its name or docstring: ``test_r12_powers`` proves R12, and a docstring "Rows
R03, L01: …" proves two claims. It reports a number with ``record_property("R12 0.9 to the hundredth", value)``: the
claim's id, a space, the name. Parametrized cases of a test count as one: it passed if none failed and at least one did
pass.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import foreword
from foreword.errors import ForewordError, InputError
from foreword.protocols import Meter
from foreword.storage.atomic import atomic_file

IN_WORDS = re.compile(r"\b([A-Z]\d{2})\b")
IN_NAME = re.compile(r"(?<=_)([a-z]\d{2})(?=_|$)")
PERCENT = re.compile(r"\[ *(\d+)%\]")
NAMED = re.compile(r"([A-Z]\d{2}) (.+)", re.DOTALL)
NAME = re.compile(r"\w+(\.py)?")

FILE = Path(__file__).with_name("measured.json")


# Finding


def checkout() -> Path | None:
    """Return the root of the repository this package runs from, or None if it was installed without its tests."""
    root = Path(foreword.__file__).resolve().parents[2]
    return root if (root / "tests" / "claims").is_dir() else None


def needed_checkout() -> Path:
    """Return the root of the repository, or raise."""
    root = checkout()
    if root is None:
        raise InputError("this package was installed without its tests: run this in a checkout of the repository")
    return root


class Proof(NamedTuple):
    """A test. claims: the ids it proves. digest: of its source, of what else its file has but other tests, and of the
    test modules and recipes that its file imports.
    """

    claims: list[str]
    digest: str


def find_proofs(root: Path) -> dict[str, Proof]:
    """Find each test that proves something, as file::name from the root."""
    proofs = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        helpers = "".join(each.read_text(encoding="utf-8") for each in sorted(helpers_of(path, root)))
        proofs.update(proofs_in(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix(), helpers))
    return proofs


def helpers_of(path: Path, root: Path) -> set[Path]:
    """Return the files of ``tests`` and ``recipes`` that a test imports, and those that these import in turn.

    Recipes are loaded by path: a file that has the string "recipes" uses each recipe whose name is one of its strings.
    """
    found, unread = set[Path](), [path]
    while unread:
        new = {each for each in _used_by(unread.pop(), root) if each != path} - found
        found |= new
        unread += new
    return found


def _used_by(path: Path, root: Path) -> set[Path]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    bases = [root, path.parent] if path.parent == root / "recipes" else [root]
    candidates = set[Path]()
    for node in nodes:
        if isinstance(node, ast.Import):
            candidates |= {base.joinpath(*each.name.split(".")) for base in bases for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            starts = [path.parents[node.level - 1]] if node.level else bases
            for module in (start.joinpath(*(node.module or "").split(".")) for start in starts):
                candidates |= {module, *(module / each.name for each in node.names)}
    strings = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    if "recipes" in strings:
        candidates |= {root / "recipes" / each.removesuffix(".py") for each in strings if NAME.fullmatch(each)}
    files = {each.with_name(f"{each.name}.py") for each in candidates if each.name}
    return {each for each in files if each.is_file() and {root / "tests", root / "recipes"} & {*each.parents}}


def proofs_in(source: str, file: str, helpers: str = "") -> dict[str, Proof]:
    """Find the tests of one file that prove something. helpers: the source of what the file imports."""
    lines, tests, shared = source.splitlines(), [], ""
    for node in ast.parse(source).body:
        decorators = getattr(node, "decorator_list", [])
        text = "\n".join(lines[min([node.lineno, *(each.lineno for each in decorators)]) - 1 : node.end_lineno])
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            tests.append((node, text))
        else:
            shared += text
    found = {}
    for node, text in tests:
        if ids := ids_of(node.name, ast.get_docstring(node) or ""):
            digest = hashlib.sha256((shared + text + helpers).encode()).hexdigest()[:12]
            found[f"{file}::{node.name}"] = Proof(ids, digest)
    return found


def outdated(stored: Mapping[str, StoredRun], proofs: Mapping[str, Proof]) -> list[str]:
    """Return the tests that never ran, or have changed since they last did."""
    return [test for test, proof in proofs.items() if test not in stored or stored[test].digest != proof.digest]


def ids_of(name: str, docstring: str) -> list[str]:
    """Return the sorted claim ids in a test's name and docstring."""
    return sorted({*(id.upper() for id in IN_NAME.findall(name)), *IN_WORDS.findall(docstring)})


# Running


@dataclass(slots=True)
class ProofRun:
    """outcome: passed, failed or skipped; seconds: of all its cases; measured: what it recorded, by claim and name."""

    outcome: str
    seconds: float = 0.0
    measured: dict[str, dict[str, str]] = field(default_factory=dict)


def run_tests(root: Path, tests: Sequence[str], meter: Meter | None = None) -> dict[str, ProofRun]:
    """Run tests, given as file::name, in a process of their own and read their outcomes from pytest's JUnit report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        output = _pytest(root, [*tests, f"--junitxml={report}"], len(tests), meter)
        if not report.exists():
            last = output.strip().splitlines()[-1] if output.strip() else "no output"
            raise ForewordError(f"pytest made no report: {last}")
        return read_report(ElementTree.parse(report).getroot())


def _pytest(root: Path, arguments: Iterable[str], total: int, meter: Meter | None) -> str:
    """Run pytest, pass its percentages on to ``meter``, and return the last lines of its output."""
    # The newer family of reports has no element for a test's properties.
    options = ["-p", "no:cacheprovider", "--no-header", "--tb=line", "-o", "junit_family=xunit1"]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
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


def read_report(tree: ElementTree.Element) -> dict[str, ProofRun]:
    """Read a JUnit report: test, as file::name → its run, with the cases of a parametrized test as one."""
    runs: dict[str, ProofRun] = {}
    for case in tree.iter("testcase"):
        test = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name', '').partition('[')[0]}"
        outcome = _outcome(case)
        run = runs.setdefault(test, ProofRun(outcome))
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


# Storing


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A test as it last ran. claims: those it proves. digest: see ``Proof``. commit: of the code that it tested.
    measured: by claim and name; seeds are fixed in the test.
    """

    claims: list[str]
    outcome: str
    seconds: float
    date: str
    machine: str
    commit: str
    digest: str
    measured: dict[str, dict[str, str]] = field(default_factory=dict)


def read_stored(file: Path = FILE) -> dict[str, StoredRun]:
    """Read how each test last ran; empty if nothing was stored."""
    if not file.exists():
        return {}
    found: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return {test: StoredRun(**run) for test, run in found.items()}


def write_stored(runs: dict[str, StoredRun], file: Path = FILE) -> None:
    """Write how each test last ran, one line per test."""
    rows = (f" {json.dumps(test)}: {json.dumps(_facts(run), ensure_ascii=False)}" for test, run in sorted(runs.items()))
    with atomic_file(file) as new:
        new.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def _facts(run: StoredRun) -> dict[str, object]:
    facts: dict[str, object] = asdict(run) | {"seconds": round(run.seconds, 2)}
    return facts if run.measured else {name: value for name, value in facts.items() if name != "measured"}


def today() -> str:
    """Return the date in UTC."""
    return datetime.now(UTC).date().isoformat()


def this_commit() -> str:
    """Return the commit of the checkout that this package runs from, or "unknown"."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def this_code() -> str:
    """Return a digest of the package's source: a commit may be renamed by a rebase, or the code changed since."""
    digest, folder = hashlib.sha256(), Path(foreword.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def this_machine() -> str:
    """Describe the processor, its cores and Python, never the machine's own name."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text(encoding="utf-8").splitlines() if described.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"
