"""docs/awd_lstm.md says what docs/results and docs/benchmarks.json hold, and which of its rows they do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "awd_lstm.md").read_text(encoding="utf-8").replace("*", "")


def stored(path: str) -> Any:
    return json.loads((DOCS / path).read_text(encoding="utf-8"))


def table(heading: str) -> list[list[str]]:
    """Return the rows of the table whose first column has this title."""
    below = PAGE.partition(f"| {heading}")[2].splitlines()[2:]
    rows = below[: next((number for number, line in enumerate(below) if not line.startswith("|")), len(below))]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]


def test_rows_that_no_file_keeps_are_marked() -> None:
    kept = {(f"{row['seconds']:.0f}", f"{row['valid']:.2f}") for row in stored("results/awd_lstm.json")["rows"]}
    shown = {(row[1], row[3]) for row in table("run, from [results/awd_lstm.json]")}
    assert shown
    assert shown <= kept
    others = {(row[1], row[3]) for row in table("run, not stored")}
    assert others
    assert not others & kept


def test_the_steps_are_those_of_the_benchmark() -> None:
    rows = table("| eager | ours | speedup |")
    for row, measured in zip(rows, stored("benchmarks.json")["gpu_steps"]["rows"], strict=True):
        assert row[1] == measured["peer"].removeprefix("eager: ").partition(",")[0]
        assert row[2] == measured["ours"].partition(",")[0]
        assert row[3] == f"{measured['figures']['ratio']:.2f}"


def test_a_bar_that_was_missed_is_called_so() -> None:
    rows = [row for row in stored("results/mogrifier.json")["rows"] if round(row["seconds"]) == 917]
    low, full = sorted(rows, key=lambda row: row["seed"], reverse=True)
    assert 51.3 < low["test"] < 51.31
    assert full["rank"] == full["reset"] == 0
    assert full["test"] < 51.13
    assert "The bar for 920 seconds is 51.3: 51.12 meets it,\none run of one seed, and 51.31 misses it" in PAGE
    assert f"the best temperature of seed 2 is 1.12 after 300 seconds, 1.14 after 450 and\n{low['temperature']}" in PAGE
    assert all(row["command"].startswith("python recipes/mogrifier.py --seconds 915") for row in rows)
