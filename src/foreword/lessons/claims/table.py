"""All claims in the order of the sources' sections, and each with its tests as they last ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foreword.errors import InputError
from foreword.lessons.claims.claim import Claim
from foreword.lessons.claims.counts import COUNTS
from foreword.lessons.claims.errata import ERRATA
from foreword.lessons.claims.pictures import PICTURES
from foreword.lessons.claims.recurrent import RECURRENT
from foreword.lessons.claims.sequences import SEQUENCES
from foreword.lessons.claims.stored import Ran
from foreword.lessons.claims.training import TRAINING
from foreword.lessons.claims.translation import TRANSLATION
from foreword.lessons.claims.vectors import VECTORS

CLAIMS: tuple[Claim, ...] = (
    *COUNTS,
    *SEQUENCES,
    *VECTORS,
    *RECURRENT,
    *TRANSLATION,
    *TRAINING,
    *PICTURES,
    *ERRATA,
)


@dataclass(frozen=True, slots=True)
class Row:
    """A claim and how its tests last ran, by file::name."""

    claim: Claim
    tests: dict[str, Ran]

    @property
    def measured(self) -> dict[str, str]:
        """What the tests recorded for this claim."""
        return {
            name: value for ran in self.tests.values() for name, value in ran.measured.get(self.claim.id, {}).items()
        }

    @property
    def outcome(self) -> str:
        """'3 passed, 1 skipped', or that there is nothing to tell."""
        outcomes = [ran.outcome for ran in self.tests.values()]
        counted = {name: outcomes.count(name) for name in ("passed", "failed", "skipped")}
        return ", ".join(f"{count} {name}" for name, count in counted.items() if count) or "no test has run"

    @property
    def failed(self) -> bool:
        return any(ran.outcome == "failed" for ran in self.tests.values())


def chosen(ids: Sequence[str]) -> list[Claim]:
    """The claims asked for, in the table's order; all where none is."""
    wanted = {id.upper() for id in ids}
    unknown = wanted - {claim.id for claim in CLAIMS}
    if unknown:
        raise InputError(f"there is no claim {min(unknown)}; the first is {CLAIMS[0].id}, the last {CLAIMS[-1].id}")
    return [claim for claim in CLAIMS if not wanted or claim.id in wanted]


def rows_of(claims: Sequence[Claim], runs: Mapping[str, Ran]) -> list[Row]:
    return [Row(claim, {test: ran for test, ran in runs.items() if claim.id in ran.claims}) for claim in claims]
