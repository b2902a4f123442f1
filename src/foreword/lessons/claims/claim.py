"""What a claim is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["holds", "holds with a condition", "does not reproduce", "not checked yet"]

VERDICTS: tuple[Verdict, ...] = ("holds", "holds with a condition", "does not reproduce", "not checked yet")


@dataclass(frozen=True, slots=True)
class Kept:
    """A result that takes minutes or a GPU, measured once.

    where: the page or file of docs that holds it, from the root of the repository. date: as told there, else the day on
    which the number came to the page. seed, machine: as told there, or that they are not.
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
    kept: Kept | None = None
