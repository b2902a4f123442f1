"""docs/BENCHMARKS.md is what docs/benchmarks.json makes of it; rows that are measured again replace the older ones."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from benchmarks.report import Row, Section, document, stored_sections, with_older_rows

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "BENCHMARKS.md"


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


def test_the_page_of_layers_shows_the_stored_figures_of_gpu_kernels() -> None:
    """Each row of its table of LSTMs, ours and the peer's, is a stored row of the benchmark."""
    page = (DOCS / "layers.md").read_text(encoding="utf-8")
    table = page.split("## An LSTM on a Hopper GPU")[1].split("\n\n")[2].splitlines()[2:]
    rows = stored_sections()["gpu_recurrent"]["rows"]
    stored = {(str(row["ours"]), str(row["peer"]).split(": ")[-1]) for row in rows}
    shown = [line.strip("| ").split(" | ") for line in table]
    assert len(shown) == 5
    assert all((f"{ours} µs", f"{peer.split(': ')[1]} µs") in stored for _, ours, peer in shown), shown
