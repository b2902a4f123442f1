"""Stored results: JSON files of docs/results, each written by the command that it names.

A result is a JSON object. It, or every row of its ``rows``, says what it takes to repeat it: the command, the commit
and a digest of the code, the seed, the machine and the seconds. A row of an older run that did not record all of it
says so in its field ``legacy``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from foreword.lessons.claims.proofs import this_code, this_commit, this_machine, today
from foreword.storage.atomic import atomic_file

PROVENANCE = ("command", "commit", "seed", "machine", "seconds")

LEGACY = "a run whose commit was not recorded, and which was not repeated since"

LOCAL = ("--data", "--out", "--commit", "--save", "--checkpoint", "--logprobs")
"""Options, each with a value, that are a matter of one machine and not of the result."""

COMMIT, CODE = this_commit(), this_code()
"""Of the source that this process imported; both may change while it runs."""


def provenance(seed: int, seconds: float, *, commit: str | None = None) -> dict[str, Any]:
    """Describe this run: what it takes to repeat it, and the date. commit: where this is no checkout of the code."""
    return {
        "command": " ".join(["python", _program(), *_repeatable(sys.argv[1:])]),
        "commit": commit or COMMIT,
        "code": CODE,
        "date": today(),
        "seed": seed,
        "machine": _machine(),
        "seconds": round(seconds, 1),
    }


def _program() -> str:
    """Return the script that runs, from its folder on, or the module with -m."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    script = Path(sys.argv[0]).resolve()
    return f"-m {spec.name}" if spec is not None else Path(script.parent.name, script.name).as_posix()


def _repeatable(arguments: Sequence[str]) -> list[str]:
    """Leave out options that are a matter of one machine; of an absolute path only the last two parts are kept."""
    dropped = {at + more for at, name in enumerate(arguments) if name in LOCAL for more in (0, 1)}
    kept = [each for at, each in enumerate(arguments) if at not in dropped]
    return ["/".join(Path(each).parts[-2:]) if Path(each).is_absolute() else each for each in kept]


def _machine() -> str:
    """Name the GPU where torch has one, else the processor."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return f"one {torch.cuda.get_device_name()}, torch {torch.__version__}"
    return this_machine()


def write_result(file: Path, facts: dict[str, Any]) -> None:
    """Write a result."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as new:
        new.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def stored_rows(file: Path) -> list[dict[str, Any]]:
    """Return the rows of a stored result, those that do not say how they were made marked as legacy; [] if none is."""
    result = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    older = {name: result[name] for name in ("date", "seed", "machine") if name in result}
    return [
        row if not missing_provenance(row) else {"legacy": LEGACY, **older, **row} for row in result.get("rows", [])
    ]


def take_rows(file: Path, other: Path) -> None:
    """Add the rows of another machine's file that a stored result does not have yet."""
    result = json.loads((file if file.exists() else other).read_text(encoding="utf-8"))
    rows = stored_rows(file)
    rows += [row for row in stored_rows(other) if row not in rows]
    write_result(file, {**result, "rows": rows})


def missing_provenance(result: Any) -> list[str]:
    """Return what a result, or else its rows, do not say of how they were made."""
    missing = [name for name in PROVENANCE if result.get(name) in (None, "", "unknown")]
    if "legacy" in result or not missing:
        return []
    if "rows" not in result:
        return missing
    rows = [row for row in result["rows"] if "legacy" not in row]
    return [name for name in missing if any(row.get(name) in (None, "", "unknown") for row in rows)]


def parts_of(result: Any, coded: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the commit that a result, or each part of it, names, and whether a digest of the code goes with it.

    A part is covered by the digest of the result that it belongs to, and a row marked as legacy needs none.
    """
    if isinstance(result, dict):
        coded = coded or "code" in result or "legacy" in result
        if isinstance(result.get("commit"), str):
            yield result["commit"], coded
    for part in result.values() if isinstance(result, dict) else result if isinstance(result, list) else ():
        yield from parts_of(part, coded)


def unknown_commits(root: Path) -> dict[str, list[str]]:
    """Return the commits that stored results name and the repository does not have, by file.

    Empty without git, and in a shallow clone, which has few commits.
    """
    named = {
        file.name: sorted({commit for commit, _ in parts_of(json.loads(file.read_text(encoding="utf-8")))})
        for file in sorted((root / "docs" / "results").glob("*.json"))
    }
    if _git(root, "rev-parse", "--is-shallow-repository") != "false\n":
        return {}
    asked = [commit for commits in named.values() for commit in commits]
    answers = _git(root, "cat-file", "--batch-check", lines=asked).splitlines()
    there = {commit: " commit " in answer for commit, answer in zip(asked, answers, strict=True)}
    unknown = {file: [commit for commit in commits if not there[commit]] for file, commits in named.items()}
    return {file: commits for file, commits in unknown.items() if commits}


def _git(root: Path, *command: str, lines: Sequence[str] = ()) -> str:
    """Return what git prints; empty where it fails or is not installed."""
    given = "".join(f"{line}\n" for line in lines)
    try:
        return subprocess.run(
            ["git", "-C", str(root), *command], input=given, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
