"""The table of claims, read from ``claims.toml``, each claim with its tests as they last ran, and docs/CLAIMS.md."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from foreword.errors import InputError
from foreword.lessons.claims.proofs import StoredRun

Verdict: TypeAlias = Literal["holds", "holds with a condition", "does not reproduce", "not checked yet"]

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

FILE = Path(__file__).with_name("claims.toml")


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result that takes minutes or a GPU, measured once.

    where: the page or file of docs that holds it, from the root of the repository. date: as given there, else the day
    on which the number was added to the page. seed, machine: as given there.
    """

    found: str
    where: str
    date: str
    seed: str
    machine: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement.

    id: its row. says: the statement, in our words. verdict: ours. found: what its tests assert. why: the condition
    under which it holds, why it does not reproduce or has not been checked; empty where it simply holds.
    """

    id: str
    says: str
    verdict: Verdict
    found: str
    why: str = ""
    stored: StoredResult | None = None


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim and how its tests last ran, by file::name."""

    claim: Claim
    tests: dict[str, StoredRun]

    @property
    def measured(self) -> dict[str, str]:
        """Collect what the tests recorded for this claim."""
        return {
            name: value for run in self.tests.values() for name, value in run.measured.get(self.claim.id, {}).items()
        }

    @property
    def outcome(self) -> str:
        """Count the outcomes: '3 passed, 1 skipped'."""
        outcomes = [run.outcome for run in self.tests.values()]
        counted = {name: outcomes.count(name) for name in ("passed", "failed", "skipped")}
        return ", ".join(f"{count} {name}" for name, count in counted.items() if count) or "no test has run"


def read_claims(file: Path = FILE) -> tuple[dict[str, str], tuple[Claim, ...]]:
    """Read and validate the table: the title of each section by its letter, and the claims in their order."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as fault:
        raise InputError(f"{file}: expected TOML: {fault}") from None
    sections = tables.pop("sections", {})
    claims = tuple(_claim(id, fields) for id, fields in tables.items())
    for claim in claims:
        if claim.id[0] not in sections:
            raise InputError(f"{file}: claim {claim.id}: no section {claim.id[0]}; give it a title in [sections]")
        if claim.verdict not in VERDICTS:
            raise InputError(f"{file}: claim {claim.id}: verdict {claim.verdict!r}: expected {', '.join(VERDICTS)}")
    return sections, claims


def _claim(id: str, fields: dict[str, Any]) -> Claim:
    stored = fields.pop("stored", None)
    try:
        return Claim(id, **fields, stored=None if stored is None else StoredResult(**stored))
    except TypeError as fault:
        raise InputError(f"claim {id}: {str(fault).partition('() ')[2]}") from None


SECTIONS, CLAIMS = read_claims()


def select_claims(ids: Sequence[str]) -> list[Claim]:
    """Return the claims with these ids in the table's order, or all claims if no id is given."""
    wanted = {id.upper() for id in ids}
    unknown = wanted - {claim.id for claim in CLAIMS}
    if unknown:
        raise InputError(f"there is no claim {min(unknown)}; the first is {CLAIMS[0].id}, the last {CLAIMS[-1].id}")
    return [claim for claim in CLAIMS if not wanted or claim.id in wanted]


def rows_of(claims: Sequence[Claim], runs: Mapping[str, StoredRun]) -> list[ClaimRow]:
    """Attach to each claim the runs of the tests that prove it."""
    return [ClaimRow(claim, {test: run for test, run in runs.items() if claim.id in run.claims}) for claim in claims]


# The page

HEAD = """\
# What the sources say, and what we measured

Five teaching texts describe the models of this package. Each statement of theirs that can be checked is a row here, in
our own words: what was found, a verdict, and the tests that prove it. `foreword claims` prints the same table,
`foreword claims R13` all about one row, and `foreword claims --fast` runs what takes seconds. This page is written by
`foreword claims --write`; `foreword claims --run --write` runs every test first, `--stale --write` those that are new
or have changed, they or what they import. `foreword claims --run` alone fails where a number has changed or a test is
newer than its number, and lists stored results of commits that the repository does not have.

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
