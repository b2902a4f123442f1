"""Results as a document. docs/benchmarks.json holds them; docs/BENCHMARKS.md is made from it, section by section."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NotRequired, TypedDict

from benchmarks.measure import Pairs

_DOCS = Path(__file__).parent.parent / "docs"
_DOCUMENT = _DOCS / "BENCHMARKS.md"
_RESULTS = _DOCS / "benchmarks.json"
_PACKAGES = (
    "bm25s",
    "fasttext",
    "gensim",
    "scikit-learn",
    "torch",
    "foreword",
    "numpy",
    "numba",
    "polars",
    "tokenizers",
    "tiktoken",
    "sentencepiece",
    "rustbpe",
    "kenlm",
    "pyctcdecode",
    "hmmlearn",
    "nltk",
    "pytorch-crf",
    "pydivsufsort",
    "ray",
)

ELSEWHERE = ("gpu_steps", "gpu_recurrent")
"""Sections of the document that are measured on other machines, by programs of their own."""

_HEAD = """\
# Benchmarks

Made by `make bench` (`python -m benchmarks`); the figures are in [benchmarks.json](benchmarks.json). Do not edit.

{date}; {machine}.

{met} of {bars} bars are met.

How it is measured: ours and the peer run in turn in one process, pair after pair, after one pair that is not counted
and whose results must agree. One thread and one core on each side, CPU time, unless a section says otherwise. The
ratio is how many times as fast we are: the median of the pairs' ratios, with the lowest and the highest in brackets;
next to it the ratio of the medians. Times are medians. Only ratios say something about another machine.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table.

    ours to bar: as they are shown; met: None where there is no bar.
    note: what a reader should know, shown below the table.
    figures: the numbers behind it.
    """

    job: str
    ours: str
    peer: str = "–"
    ratio: str = "–"
    of_medians: str = "–"
    bar: str = "–"
    met: bool | None = None
    note: str = ""
    figures: dict[str, float | list[float]] = field(default_factory=dict)


class Section(TypedDict):
    """One subject's results, as they are stored."""

    title: str
    how: str
    date: str
    machine: str
    commit: NotRequired[str]
    seconds: NotRequired[float]
    rows: list[dict[str, object]]


def compared(job: str, peer: str, pairs: Pairs, *, bar: float | None = None, size: float | None = None) -> Row:
    """Ours against a peer's; ``bar`` is the least ratio, ``size`` the megabytes of the text."""
    ours, theirs = statistics.median(pairs.ours), statistics.median(pairs.theirs)
    return Row(
        job,
        ours=_pace(ours, size),
        peer=f"{peer}: {_pace(theirs, size)}",
        ratio=f"**{pairs.ratio:.2f}** ({min(pairs.ratios):.2f}–{max(pairs.ratios):.2f})",
        of_medians=f"{pairs.ratio_of_medians:.2f}",
        bar="–" if bar is None else f"≥ {bar:g}",
        met=None if bar is None else pairs.ratio >= bar,
        note=f"other work ran during {pairs.disturbed} of {len(pairs.ours)} pairs" if pairs.disturbed else "",
        figures={
            "ours": pairs.ours,
            "theirs": pairs.theirs,
            "ratio": pairs.ratio,
            "ratio_of_medians": pairs.ratio_of_medians,
        },
    )


def _pace(taken: float, size: float | None) -> str:
    return f"{taken:.3g} s" if size is None else f"{taken:.3g} s, {size / taken:.3g} MB/s"


def section_of(title: str, how: str, rows: list[Row], began: float) -> Section:
    """Describe what was measured since ``began``, of ``time.perf_counter``: where, when and by which commit."""
    return Section(
        title=title, how=how, date=date.today().isoformat(), machine=machine(), commit=commit(),
        seconds=round(time.perf_counter() - began, 1), rows=[asdict(row) for row in rows],
    )  # fmt: skip


def commit(checkout: Path | None = None) -> str:
    """Return the commit of a checkout, of this one by default; "unknown" outside of one."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    asked = subprocess.run(command, cwd=checkout or _DOCS.parent, capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "unknown"


def stored_sections() -> dict[str, Section]:
    """Return the sections of the document; none where there is no document yet."""
    return json.loads(_RESULTS.read_text("utf-8")) if _RESULTS.exists() else {}


def with_older_rows(section: Section, older: Section | None) -> Section:
    """Return a section, some of whose rows were measured, with the other rows of an older one; they say their age."""
    if older is None:
        return section
    age = f"Measured {older['date']}, commit {older.get('commit', 'unknown')}."
    found = {row["job"]: row for row in section["rows"]}
    rows = [found.pop(row["job"]) if row["job"] in found else _aged(row, age) for row in older["rows"]]
    return {**section, "rows": [*rows, *found.values()]}


def _aged(row: dict[str, object], age: str) -> dict[str, object]:
    """Return a row whose note says when it was measured, as it may do already."""
    note = str(row["note"])
    return row if "Measured 20" in note else row | {"note": f"{note} {age}".strip()}


def keep(measured: dict[str, Section], order: Sequence[str]) -> None:
    """Replace older sections, and rewrite the document with its sections in the given order."""
    stored = stored_sections() | measured
    stored = {name: stored[name] for name in dict.fromkeys([*order, *stored]) if name in stored}
    _DOCS.mkdir(exist_ok=True)
    _RESULTS.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", "utf-8")
    _DOCUMENT.write_text(document(stored), "utf-8")


def document(sections: dict[str, Section]) -> str:
    """Return docs/BENCHMARKS.md."""
    newest = max((part for name, part in sections.items() if name not in ELSEWHERE), key=lambda part: part["date"])
    rows = [row for section in sections.values() for row in section["rows"]]
    verdicts = [row["met"] for row in rows if row["met"] is not None and row["bar"] not in ("", "–")]
    head = _HEAD.format(
        date=newest["date"], machine=newest["machine"], met=sum(map(bool, verdicts)), bars=len(verdicts)
    )
    return "\n".join([head, *(section_text(section, newest) for section in sections.values())])


def section_text(section: Section, newest: Section | None = None) -> str:
    """A heading, a table and notes; what ``newest`` says of the machine is not said again."""
    elsewhere = "" if newest and newest["machine"] == section["machine"] else f" on {section['machine']}"
    at_commit = f", commit {section['commit']}, {section['seconds']:.0f} s" if "commit" in section else ""
    lines = [
        f"## {section['title']}\n",
        f"{section['how']} Measured {section['date']}{at_commit}{elsewhere}.\n",
        "| job | ours | peer | ratio | of medians | bar | met |",
        "|---|---|---|---|---|---|---|",
        *map(_table_line, section["rows"]),
        "",
    ]
    notes = [f"- {row['job']}: {row['note']}" for row in section["rows"] if row["note"]]
    return "\n".join([*lines, *notes, ""] if notes else lines)


def _table_line(row: dict[str, object]) -> str:
    met = {True: "yes", False: "**no**", None: "–"}[row["met"]]  # type: ignore[index]
    shown = (str(row[column]) for column in ("job", "ours", "peer", "ratio", "of_medians", "bar"))
    return f"| {' | '.join(shown)} | {met} |"


def machine(names: Sequence[str] = _PACKAGES) -> str:
    """What it ran on, with these packages, in one line and without a name that would tell whose it is."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    packages = ", ".join(f"{name} {_version(name)}" for name in names)
    return f"{_cpu()}, {cores} cores, {memory:.0f} GiB; Python {platform.python_version()}; {packages}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(absent)"


def _cpu() -> str:
    described = Path("/proc/cpuinfo")
    if described.exists():
        for line in described.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
