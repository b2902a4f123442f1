"""docs/BENCHMARKS.md is what docs/benchmarks.json makes of it; rows that are measured again replace the older ones."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from benchmarks.report import Row, Section, document, stored_sections, with_older_rows

PAGE = Path(__file__).parents[2] / "docs" / "BENCHMARKS.md"


def section(date: str, commit: str, *rows: Row) -> Section:
    return Section(
        title="A", how="So.", date=date, machine="one", commit=commit, seconds=1.0, rows=[asdict(row) for row in rows]
    )


def test_the_page_is_made_from_the_stored_figures() -> None:
    assert document(stored_sections()) == PAGE.read_text(encoding="utf-8")


def test_some_rows_measured_again_keep_the_others_with_their_age() -> None:
    older = section("2026-01-01", "aaa", Row("first", "1 s"), Row("second", "2 s", note="Noisy."))
    newer = section("2026-02-02", "bbb", Row("second", "3 s"), Row("third", "4 s"))
    joined = with_older_rows(newer, older)
    assert [(row["job"], row["ours"], row["note"]) for row in joined["rows"]] == [
        ("first", "1 s", "Measured 2026-01-01, commit aaa."),
        ("second", "3 s", ""),
        ("third", "4 s", ""),
    ]
    again = with_older_rows(section("2026-03-03", "ccc", Row("third", "5 s")), joined)
    assert [row["note"] for row in again["rows"]] == [
        "Measured 2026-01-01, commit aaa.", "Measured 2026-02-02, commit bbb.", "",
    ]  # fmt: skip
    assert with_older_rows(newer, None) == newer
