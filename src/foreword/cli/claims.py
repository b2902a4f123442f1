"""``foreword claims``: every statement of the teaching sources, what was measured, and a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli.options import OutputOptions, examples
from foreword.errors import ForewordError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from foreword.lessons.claims.proofs import Proof, StoredRun
    from foreword.lessons.claims.table import ClaimRow

EXAMPLES = examples(
    "foreword claims",
    "foreword claims R13 Z01",
    "foreword claims --fast",
    "foreword claims L10 --run",
    "foreword claims --stale --write",
    "foreword claims --json | jq '.[] | select(.verdict != \"holds\")'",
)

TOLD = ("outcome", "seconds", "date", "machine", "commit")
"""Facts of a run that are shown."""

FAST = 1.0
"""Seconds that a test may take, when it last ran, to be one of the fast ones."""


@dataclass(frozen=True, slots=True)
class ProofOptions:
    """Which tests are run; without any, none."""

    fast: Annotated[bool, typer.Option("--fast", help=f"Run the tests that take at most {FAST:.0f} second.")] = False
    run: Annotated[bool, typer.Option("--run", help="Run all tests of these claims, which may take minutes.")] = False
    stale: Annotated[
        bool, typer.Option("--stale", help="Run the tests that are new or have changed since they last ran.")
    ] = False

    def any(self) -> bool:
        """Return whether tests are run at all."""
        return self.fast or self.run or self.stale

    def chosen(
        self, proofs: Mapping[str, Proof], stored: Mapping[str, StoredRun], old: Collection[str]
    ) -> dict[str, Proof]:
        """Return the tests that are run. old: those that are new or have changed."""
        quick = {test for test, ran in stored.items() if ran.seconds <= FAST}
        return {
            test: proof
            for test, proof in proofs.items()
            if self.run or (self.stale and test in old) or (self.fast and test in quick)
        }


def claims(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Describe these claims in full.", show_default=False)
    ] = None,
    *,
    running: ProofOptions,
    write: Annotated[bool, typer.Option("--write", help="Store the measurements, and write docs/CLAIMS.md.")] = False,
    output: OutputOptions,
) -> None:
    """Compare the statements of the teaching sources with what was measured.

    Without --fast, --run or --stale the numbers are those of the last stored run. Running needs a checkout of the
    repository with what make test installs. The exit status is 1 if a test fails and, without --write, if stored
    numbers are older than their tests or differ from what is measured now. --run also lists stored results of commits
    that the repository does not have.
    """
    from foreword.cli.printing import print_message, write_json
    from foreword.lessons.claims.proofs import checkout, find_proofs, needed_checkout, outdated, read_stored
    from foreword.lessons.claims.table import rows_of, select_claims

    asked = select_claims(ids or [])
    stored = read_stored()
    new: dict[str, StoredRun] = {}
    faults: list[str] = []
    if running.any():
        root = needed_checkout()
        proofs = {
            test: proof for test, proof in find_proofs(root).items() if any(claim.id in proof.claims for claim in asked)
        }
        old = outdated(stored, proofs)
        new = _run(root, running.chosen(proofs, stored, old), output.quiet)
        faults = _faults(stored, new, old if running.run else [], write)
    # A test that was skipped, for want of data or of a browser, says nothing against what it measured elsewhere.
    runs = {**stored, **{test: ran for test, ran in new.items() if ran.outcome != "skipped" or test not in stored}}
    if write:
        _write(needed_checkout(), runs)
    rows = rows_of(asked, runs)
    write_json([facts(row) for row in rows]) if output.as_json else _print(rows, in_full=bool(ids))
    if not output.quiet:
        if running.run and (told := _unknown(needed_checkout())):
            print_message(told)
        print_message(_closing(rows, new, checkout() is not None))
    if faults:
        raise ForewordError("; ".join(faults))


def _run(root: Path, tests: Mapping[str, Proof], quiet: bool) -> dict[str, StoredRun]:
    from foreword.cli.progress import progress
    from foreword.lessons.claims.proofs import StoredRun, run_tests, this_commit, this_machine, today

    if not tests:
        return {}
    with progress(quiet) as meter:
        found = run_tests(root, list(tests), meter)
    where = today(), this_machine(), this_commit()
    return {
        test: StoredRun(
            tests[test].claims, each.outcome, each.seconds, *where, digest=tests[test].digest, measured=each.measured
        )
        for test, each in found.items()
        if test in tests
    }


def _faults(
    stored: Mapping[str, StoredRun], new: Mapping[str, StoredRun], old: Sequence[str], write: bool
) -> list[str]:
    """Return what is wrong with the runs and, unless they replace what is stored, with the stored ones."""
    failed = [test for test, ran in new.items() if ran.outcome == "failed"]
    faults = [f"{len(failed)} of {len(new)} tests failed: {', '.join(failed)}"] if failed else []
    if write:
        return faults
    if old:
        faults.append(f"{len(old)} tests are newer than the stored numbers, store them by --write: {', '.join(old)}")
    if differ := _differing(stored, new):
        faults.append(f"recorded numbers differ from the stored ones in {', '.join(differ)}")
    return faults


def _differing(stored: Mapping[str, StoredRun], new: Mapping[str, StoredRun]) -> list[str]:
    return [
        test
        for test, ran in new.items()
        if ran.outcome == "passed" and test in stored and stored[test].measured != ran.measured
    ]


def _write(root: Path, runs: Mapping[str, StoredRun]) -> None:
    """Keep the runs of tests that are still there, and write the page from them."""
    from foreword.lessons.claims.proofs import find_proofs, write_stored
    from foreword.lessons.claims.table import CLAIMS, rows_of, write_page
    from foreword.storage.atomic import atomic_file

    there = find_proofs(root)
    kept = {test: replace(ran, claims=there[test].claims) for test, ran in runs.items() if test in there}
    write_stored(kept)
    with atomic_file(root / "docs" / "CLAIMS.md") as new:
        new.write_text(write_page(rows_of(CLAIMS, dict(sorted(kept.items())))), encoding="utf-8")


# Output


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
        "tests": [{"test": test, **{name: getattr(ran, name) for name in TOLD}} for test, ran in row.tests.items()],
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
    tests = (
        f"{test}: {ran.outcome}, {ran.seconds:.2f} s, {ran.date}, {ran.commit[:7]}" for test, ran in row.tests.items()
    )
    told["proved by"] = "\n".join(tests) or "no test has run"
    return told


def _unknown(root: Path) -> str:
    """List the stored results whose commit is not in the repository, for nobody can look up what they measured."""
    from foreword.lessons.claims.results import unknown_commits

    found = (f"{file} ({', '.join(commit[:7] for commit in each)})" for file, each in unknown_commits(root).items())
    listed = ", ".join(found)
    return f"results of commits that this repository does not have: {listed}" if listed else ""


def _closing(rows: Sequence[ClaimRow], new: Mapping[str, StoredRun], in_checkout: bool) -> str:
    from foreword.lessons.claims.table import VERDICTS

    verdicts = [row.claim.verdict for row in rows]
    counted = ", ".join(f"{verdicts.count(name)} {name}" for name in VERDICTS if name in verdicts)
    if not new:
        dates = sorted({ran.date for row in rows for ran in row.tests.values()})
        where = "" if in_checkout else "; this package came without its tests, so nothing can be run here"
        return f"{counted}; numbers stored on {' and '.join(dates) or 'no day'}{where}"
    outcomes = [ran.outcome for ran in new.values()]
    told = ", ".join(f"{outcomes.count(name)} {name}" for name in ("passed", "failed", "skipped"))
    return f"{counted}; {len(new)} tests ran now: {told}"
