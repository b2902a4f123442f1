"""Faults by the hundred, broken files by the million: ``python -m benchmarks.faults [PART …] [--kills N] [--fuzz N]``.

Results are kept in docs/results/faults.json, and the tables of docs/RELIABILITY.md are made from it. A part that is not
asked for keeps its results; ``--more`` adds kills, cuts and inputs to those before. With NUMBA_BOUNDSCHECK=1 in the
environment every access of a kernel is checked, and the inputs are counted apart.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.fault_disk import Fault, disk_faults
from benchmarks.fault_kills import WORKS, Work, kill_after_a_minute, kill_at_random
from benchmarks.fault_large import large_inputs
from benchmarks.fault_power import cut_power
from benchmarks.fault_ray import ray_faults
from benchmarks.fault_serve import CLIENTS, SECONDS, crowd
from benchmarks.fault_slow import slow_disk, why_not
from benchmarks.fuzz import Target, fuzz
from benchmarks.progress import say
from benchmarks.report import machine
from foreword.lessons.claims.results import provenance

_DOCS = Path(__file__).parent.parent / "docs"
RESULTS = _DOCS / "results" / "faults.json"
PAGE = _DOCS / "RELIABILITY.md"
BEGIN, END = "<!-- made from results/faults.json by python -m benchmarks.faults -->", "<!-- until here -->"

PARTS = ("kills", "power", "disk", "large", "ray", "serve", "fuzz")
KILLS, MINUTE, CUTS, INPUTS = 1000, 10, 200, 10_000_000
CHECKED = os.environ.get("NUMBA_BOUNDSCHECK", "0") == "1"
FUZZ = "fuzz, bounds checked" if CHECKED else "fuzz"

PACKAGES = ("foreword", "numpy", "numba", "pyarrow", "torch")

Row = dict[str, Any]


def main() -> int:
    options = _options()
    stored = _stored()
    wrong, began = 0, time.perf_counter()
    with scratch(options.keep) as folder:
        for part, row in _measured(options, stored, folder):
            stored = stored if options.quick else _stored()  # another run may have added to it
            # The table shows the latest crowd alone: another number of seconds is another name.
            rows = stored.get(part, {}).get("rows", []) if part != "serve" or options.more else []
            before = [old for old in rows if old["name"] != row["name"]]
            facts = {**provenance(seed=0, seconds=time.perf_counter() - began), "machine": machine(PACKAGES)}
            stored[part] = {**facts, "rows": [*before, {**row, "commit": facts["commit"]}]}
            wrong += len(row["found"])
            if not options.quick:  # after each, so that an interrupted run leaves what it has
                RESULTS.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", "utf-8")
                write_page(stored)
    print(json.dumps(stored, indent=1, ensure_ascii=False) if options.json else tables(stored))
    return 1 if wrong else 0


def _stored() -> dict[str, Any]:
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}


def _measured(options: argparse.Namespace, stored: dict[str, Any], folder: Path) -> Iterator[tuple[str, Row]]:
    def before(part: str) -> dict[str, Row]:
        return {row["name"]: row for row in stored.get(part, {}).get("rows", [])} if options.more else {}

    if "kills" in options.parts:
        yield from (("kills", row) for row in _kills(options, folder / "kills", before("kills")))
    if "power" in options.parts:
        old = before("power cuts")
        for work, share in _shares(options.cuts, options.work):
            if work.children:  # what other processes sync is not recorded
                continue
            seed = old.get(work.name, {}).get("tried", 0)
            yield "power cuts", _added(asdict(cut_power(work, share, folder / "power", seed)), old)
    caused: dict[str, Callable[[Path], Iterator[Any]]] = {
        "disk": _disk, "large": large_inputs, "ray": partial(ray_faults, times=options.losses, only=options.work),
        "serve": partial(crowd, clients=options.clients, seconds=options.seconds),
    }  # fmt: skip
    for part, faults in caused.items():
        if part in options.parts:
            yield from ((part, asdict(fault)) for fault in _told(faults(folder / part)))
    if "fuzz" in options.parts:
        yield from ((FUZZ, row) for row in _fuzzed(options.fuzz, folder / "fuzz", before(FUZZ), options.reader))


def _disk(folder: Path) -> Iterator[Fault]:
    yield from disk_faults(folder)
    if reason := why_not():
        say(f"no slow disk: {reason}")
    else:
        yield slow_disk(folder / "slow")


def _shares(total: int, only: list[str]) -> list[tuple[Work, int]]:
    """Each work with its share of a number, by weight."""
    works = [work for work in WORKS if not only or work.name in only]
    weights = [work.weight for work in works]
    ends = [round(total * sum(weights[: place + 1]) / sum(weights)) for place in range(len(works))]
    return [(work, end - begin) for work, begin, end in zip(works, [0, *ends], ends, strict=False) if end > begin]


def _kills(options: argparse.Namespace, folder: Path, before: dict[str, Row]) -> Iterator[Row]:
    for work, share in _shares(options.kills, options.work):
        say(f"killing: {work.name}")
        seed = before.get(work.name, {}).get("kills", 0)
        yield _added(asdict(kill_at_random(work, share, folder, seed)), before)
    if options.minute:
        say("killing after a minute")
        yield _added(asdict(kill_after_a_minute(options.minute, folder)), before)


def _added(row: Row, before: dict[str, Row]) -> Row:
    """The same with the counts, and what was found, of the row before."""
    old = before.get(row["name"], {})
    return {name: value + old.get(name, 0 * value) if type(value) is int else value for name, value in row.items()} | {
        "found": [*old.get("found", []), *row["found"]]
    }


def _told(faults: Iterator[Any]) -> Iterator[Any]:
    for fault in faults:
        say(f"{fault.name}: {fault.tried} times, {len(fault.found)} that must not be")
        yield fault


def _fuzzed(inputs: int, folder: Path, before: dict[str, dict[str, Any]], only: list[str]) -> Iterator[dict[str, Any]]:
    targets = list[Target]()
    for target in readers(folder / "whole"):  # each is made when it is its turn, which takes minutes for all
        if not only or target.name in only:
            targets.append(target)
        if len(targets) == len(only) > 0:
            break
    if unknown := set(only) - {target.name for target in targets}:
        raise SystemExit(f"there is no reader {unknown.pop()!r}: docs/RELIABILITY.md lists them")
    weights = sum(target.weight for target in targets)
    for target in targets:
        old = before.get(target.name, {"taken": 0, "refused": 0, "found": [], "seconds": 0.0})
        first = old["taken"] + old["refused"] + len(old["found"])
        began = time.monotonic()
        outcome = fuzz(target, round(inputs * target.weight / weights), folder, first=first)
        seconds = time.monotonic() - began
        say(f"{target.name}: {outcome.inputs:,} inputs in {seconds:.0f} s, {len(outcome.found)} that must not be")
        yield {
            "name": target.name, "taken": old["taken"] + outcome.taken, "refused": old["refused"] + outcome.refused,
            "found": old["found"] + outcome.found, "seconds": round(old["seconds"] + seconds, 1),
        }  # fmt: skip


def readers(folder: Path) -> Iterator[Target]:
    """All of them. folder: for the valid files that are damaged."""
    from benchmarks.fuzz_files import file_targets
    from benchmarks.fuzz_models import model_targets

    yield from file_targets(folder / "files")
    yield from model_targets(folder / "models")


@contextmanager
def scratch(keep: bool = False) -> Iterator[Path]:
    """A folder in memory where there is one: a kill or a damaged file is the same there, and no disk is worn out."""
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="foreword-faults-", dir=memory if memory.is_dir() else None))
    path.chmod(0o755)  # for a process that may do nothing
    try:
        yield path
    finally:
        if keep:
            say(f"what must not be is in {path}")
        else:
            shutil.rmtree(path, ignore_errors=True)


# The page


def write_page(stored: dict[str, Any]) -> None:
    """Put the tables between the two marks of the page; the rest of it is written by hand."""
    text = PAGE.read_text("utf-8")
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    PAGE.write_text(f"{head}{BEGIN}\n\n{tables(stored)}\n{END}{tail}", "utf-8")


def tables(stored: dict[str, Any]) -> str:
    made = [
        _table(stored, "kills", ("killed in the middle of", "kills", "finished in the same bytes", "wrong"), _killed),
    ]
    made += [_table(stored, part, ("fault", "tried", "wrong"), _tried) for part in TRIED]
    head = ("reader", "inputs", "read", "refused in one line", "wrong")
    made += [_table(stored, part, head, _read) for part in ("fuzz", "fuzz, bounds checked")]
    return "\n".join(filter(None, made))


TRIED = ("power cuts", "disk", "large", "ray", "serve")


def _tried(row: Row) -> tuple[Any, ...]:
    note = f" ({row['note']})" if row.get("note") else ""
    return f"{row['name']}{note}", row["tried"], len(row["found"])


def _killed(row: dict[str, Any]) -> tuple[Any, ...]:
    then = "resumes" if row["resumes"] else "starts over"
    return f"{row['name']} ({then})", row["kills"], row["finished"], len(row["found"])


def _read(row: dict[str, Any]) -> tuple[Any, ...]:
    wrong = len(row["found"])
    return row["name"], row["taken"] + row["refused"] + wrong, row["taken"], row["refused"], wrong


def _table(stored: dict[str, Any], part: str, head: tuple[str, ...], cells: Any) -> str:
    if part not in stored:
        return ""
    facts = stored[part]
    rows = [cells(row) for row in facts["rows"]]
    total = ("all", *(sum(row[place] for row in rows) for place in range(1, len(head))))
    lines = [f"**{part.capitalize()}** ({facts['date']}; {facts['machine']})\n", f"| {' | '.join(head)} |"]
    lines.append("|" + "---|" * len(head))
    lines += [
        "| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in row) + " |"
        for row in (*rows, total)
    ]
    return "\n".join(lines) + "\n"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.faults", description="Cause faults, and count what goes wrong."
    )
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="PART", help=f"all of {', '.join(PARTS)}")
    parser.add_argument("--kills", type=int, default=KILLS, metavar="N", help=f"kill -9 so often in all ({KILLS})")
    parser.add_argument("--minute", type=int, default=MINUTE, metavar="N", help=f"and after a minute ({MINUTE})")
    parser.add_argument("--cuts", type=int, default=CUTS, metavar="N", help=f"power cuts in all ({CUTS})")
    parser.add_argument("--fuzz", type=int, default=INPUTS, metavar="N", help=f"broken files in all ({INPUTS:,})")
    parser.add_argument("--losses", type=int, default=6, metavar="N", help="of each thing in each command on Ray (6)")
    parser.add_argument("--clients", type=int, default=CLIENTS, metavar="N", help=f"of a server ({CLIENTS:,})")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="N", help=f"that they stay ({SECONDS:.0f})")
    parser.add_argument(
        "--work", action="append", default=[], metavar="NAME", help="kill, cut or lose something in only this work"
    )
    parser.add_argument(
        "--reader", action="append", default=[], metavar="NAME", help="fuzz only this one; may be given several times"
    )
    parser.add_argument("--more", action="store_true", help="resume after the inputs that were fuzzed before")
    parser.add_argument("--keep", action="store_true", help="keep the inputs that went wrong, and say where")
    parser.add_argument("--quick", action="store_true", help="leave docs/ as it is")
    parser.add_argument("--json", action="store_true", help="print JSON, not tables")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
