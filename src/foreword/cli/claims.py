"""``foreword claims``: every statement of the teaching sources, what was measured, and a verdict."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli.options import OutputOptions, examples
from foreword.errors import ForewordError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from foreword.lessons.claims.proofs import StoredRun
    from foreword.lessons.claims.table import ClaimRow

EXAMPLES = examples(
    "foreword claims",
    "foreword claims R13 Z01",
    "foreword claims --fast",
    "foreword claims L10 --run",
    "foreword claims --json | jq '.[] | select(.verdict != \"holds\")'",
)

FAST = 1.0
"""Seconds that a test may take, when it last ran, to be one of the fast ones."""


def claims(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Describe these claims in full.", show_default=False)
    ] = None,
    *,
    fast: Annotated[bool, typer.Option("--fast", help=f"Run the tests that take at most {FAST:.0f} second.")] = False,
    run: Annotated[bool, typer.Option("--run", help="Run all tests of these claims, which may take minutes.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Store the measurements, and write docs/CLAIMS.md.")] = False,
    output: OutputOptions,
) -> None:
    """Compare the statements of the teaching sources with what was measured.

    Without --fast or --run the numbers are those of the last stored run. Running needs a checkout of the repository
    with what make test installs; the exit status is 1 if a test fails.
    """
    from foreword.cli.printing import print_message, write_json
    from foreword.lessons.claims.proofs import checkout, find_proofs, needed_checkout, read_stored
    from foreword.lessons.claims.table import rows_of, select_claims

    asked = select_claims(ids or [])
    stored = read_stored()
    new: dict[str, StoredRun] = {}
    if fast or run:
        root = needed_checkout()
        proofs = find_proofs(root)
        wanted = [test for test, proved in proofs.items() if any(claim.id in proved for claim in asked)]
        if not run:
            wanted = [test for test in wanted if test in stored and stored[test].seconds <= FAST]
        new = _run(root, wanted, proofs, output.quiet)
    # A test that was skipped, for want of data or of a browser, says nothing against what it measured elsewhere.
    runs = {**stored, **{test: ran for test, ran in new.items() if ran.outcome != "skipped" or test not in stored}}
    if write:
        _write(needed_checkout(), runs)
    rows = rows_of(asked, runs)
    write_json([facts(row) for row in rows]) if output.as_json else _print(rows, in_full=bool(ids))
    if not output.quiet:
        print_message(_closing(rows, stored, new, checkout() is not None))
    failed = [test for test, ran in new.items() if ran.outcome == "failed"]
    if failed:
        raise ForewordError(f"{len(failed)} of {len(new)} tests failed: {', '.join(failed)}")


def _run(root: Path, tests: Sequence[str], proofs: Mapping[str, list[str]], quiet: bool) -> dict[str, StoredRun]:
    from foreword.cli.progress import progress
    from foreword.lessons.claims.proofs import StoredRun, run_tests, this_machine, today

    if not tests:
        return {}
    with progress(quiet) as meter:
        found = run_tests(root, tests, meter)
    date, machine = today(), this_machine()
    return {
        test: StoredRun(proofs[test], each.outcome, each.seconds, date, machine, each.measured)
        for test, each in found.items()
        if test in proofs
    }


def _write(root: Path, runs: Mapping[str, StoredRun]) -> None:
    """Keep the runs of tests that are still there, and write the page from them."""
    from foreword.lessons.claims.proofs import find_proofs, write_stored
    from foreword.lessons.claims.table import CLAIMS, rows_of, write_page
    from foreword.storage.atomic import atomic_file

    there = find_proofs(root)
    kept = {test: replace(ran, claims=there[test]) for test, ran in runs.items() if test in there}
    write_stored(kept)
    with atomic_file(root / "docs" / "CLAIMS.md") as new:
        new.write_text(write_page(rows_of(CLAIMS, dict(sorted(kept.items())))), encoding="utf-8")


# What is told


def facts(row: ClaimRow) -> dict[str, Any]:
    """Return a claim and what was measured for it as JSON."""
    claim = row.claim
    return {
        "id": claim.id,
        "says": claim.says,
        "verdict": claim.verdict,
        "why": claim.why,
        "found": claim.found,
        "measured": row.measured,
        "stored": None if claim.stored is None else asdict(claim.stored),
        "tests": [
            {"test": test, "outcome": ran.outcome, "seconds": ran.seconds, "date": ran.date, "machine": ran.machine}
            for test, ran in row.tests.items()
        ],
    }


def _print(rows: Sequence[ClaimRow], in_full: bool) -> None:
    from foreword.cli.printing import plain_table, print_facts, print_table

    if in_full:
        for row in rows:
            print_facts(_told(row))
        return
    table = plain_table("id", "the sources say", "found", "verdict", "tests")
    for row in rows:
        table.add_row(row.claim.id, row.claim.says, row.claim.found, row.claim.verdict, row.outcome)
    print_table(table)


def _told(row: ClaimRow) -> dict[str, str]:
    claim = row.claim
    told = {claim.id: claim.says, "verdict": claim.verdict + (f": {claim.why}" if claim.why else "")}
    told["found"] = claim.found
    if row.measured:
        told["measured"] = "\n".join(f"{name}: {value}" for name, value in row.measured.items())
    if (stored := claim.stored) is not None:
        told["stored"] = (
            f"{stored.found}\n{stored.where}; {stored.date}; seed: {stored.seed}; machine: {stored.machine}"
        )
    tests = (f"{test}: {ran.outcome}, {ran.seconds:.2f} s, {ran.date}" for test, ran in row.tests.items())
    told["proved by"] = "\n".join(tests) or "no test has run"
    return told


def _closing(
    rows: Sequence[ClaimRow], stored: Mapping[str, StoredRun], new: Mapping[str, StoredRun], in_checkout: bool
) -> str:
    from foreword.lessons.claims.table import VERDICTS

    verdicts = [row.claim.verdict for row in rows]
    counted = ", ".join(f"{verdicts.count(name)} {name}" for name in VERDICTS if name in verdicts)
    if not new:
        dates = sorted({ran.date for row in rows for ran in row.tests.values()})
        where = "" if in_checkout else "; this package came without its tests, so nothing can be run here"
        return f"{counted}; numbers stored on {' and '.join(dates) or 'no day'}{where}"
    others = [test for test, ran in new.items() if test in stored and stored[test].measured != ran.measured]
    differ = f"; recorded numbers differ from the stored ones in {', '.join(others)}" if others else ""
    outcomes = [ran.outcome for ran in new.values()]
    told = ", ".join(f"{outcomes.count(name)} {name}" for name in ("passed", "failed", "skipped"))
    return f"{counted}; {len(new)} tests ran now: {told}{differ}"
