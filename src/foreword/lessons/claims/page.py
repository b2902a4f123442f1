"""docs/CLAIMS.md: the table of claims as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from foreword.lessons.claims.table import SECTIONS, VERDICTS, ClaimRow

HEAD = """\
# What the sources say, and what we measured

Five teaching texts describe the models of this package. Each statement of theirs that can be checked is a row here, in
our own words: what was found, a verdict, and the tests that prove it. `foreword claims` prints the same table,
`foreword claims R13` all about one row, and `foreword claims --fast` runs what takes seconds. This page is written by
`foreword claims --write`; `foreword claims --run --write` runs every test first.

*Found* is what the tests assert; *measured* is what they recorded when they last ran, with seeds of their own; *stored*
is what takes minutes or a GPU and was measured once. A verdict is one of four: **holds**; **holds with a condition**,
where the statement is true of less than it says; **does not reproduce**; **not checked yet**, an open gap. For an
erratum the verdict is on what the source says, not on the correction.
"""


def write_page(rows: Sequence[ClaimRow]) -> str:
    """Return the whole page as Markdown."""
    parts = [HEAD, _counts(rows)]
    for letter, title in SECTIONS.items():
        parts += [f"## {title}\n", *(_entry(row) for row in rows if row.claim.id[0] == letter)]
    return "\n".join(parts)


def _counts(rows: Sequence[ClaimRow]) -> str:
    verdicts = Counter(row.claim.verdict for row in rows)
    lines = [f"| {verdict} | {verdicts[verdict]} |" for verdict in VERDICTS]
    ran = sorted({(each.date, each.machine) for row in rows for each in row.tests.values()})
    when = "; ".join(f"{date} on {machine}" for date, machine in ran) or "never"
    return "\n".join(["| verdict | statements |", "|---|---|", *lines, "", f"Tests last ran: {when}.", ""])


def _entry(row: ClaimRow) -> str:
    claim = row.claim
    lines = [f"**{claim.id}** {claim.says}", ""]
    why = f": {claim.why}" if claim.why else "."
    lines += [f"- **{claim.verdict}**{why}", f"- found: {claim.found}"]
    lines += [f"- measured: {name}: {value}" for name, value in row.measured.items()]
    if (stored := claim.stored) is not None:
        source = f"{stored.where}; {stored.date}; seed: {stored.seed}; machine: {stored.machine}"
        lines += [f"- stored: {stored.found} ({source})"]
    lines += [f"- proved by: {_tests(row)}", ""]
    return "\n".join(lines)


def _tests(row: ClaimRow) -> str:
    """List the tests by file, and mark those that did not pass."""
    if not row.tests:
        return "no test has run"
    by_file: dict[str, list[str]] = {}
    for test, run in row.tests.items():
        file, _, name = test.partition("::")
        by_file.setdefault(file, []).append(f"`{name}`" + ("" if run.outcome == "passed" else f" ({run.outcome})"))
    return "; ".join(f"`{file}`: {', '.join(names)}" for file, names in by_file.items())
