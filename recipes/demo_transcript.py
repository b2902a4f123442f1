"""Run the main job and put its output into the README and the table of docs/neural.md, on a quiet machine.

    python recipes/demo_transcript.py

It takes as long as ``make demo``, about three minutes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]


def run() -> dict[str, Any]:
    """Print what ``foreword compare`` prints, and return the comparison as JSON has it."""
    from foreword.cli.compared import result_of, table_of
    from foreword.cli.printing import print_paragraph, print_table
    from foreword.evaluate.compare.ladder import compare
    from foreword.evaluate.compare.setup import Splits
    from foreword.text.embedded import embedded_text

    parts = Splits(embedded_text("train"), embedded_text("valid"), embedded_text("test"))
    comparison = result_of(compare(parts, name="Python’s own documentation"))
    print_table(table_of(comparison.text, comparison.rows, comparison.mixed))
    print_paragraph(comparison.conclusion)
    sys.stdout.flush()
    return comparison.to_json()


def main() -> None:
    """Run the comparison in a process of its own, and write its output into the two pages."""
    if len(sys.argv) == 2:
        Path(sys.argv[1], "comparison.json").write_text(json.dumps(run()), encoding="utf-8")
        return
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        ran = subprocess.run(
            [sys.executable, __file__, folder], env=environment, capture_output=True, text=True, check=True
        )
        found = json.loads(Path(folder, "comparison.json").read_text(encoding="utf-8"))
    readme(ran.stdout)
    ladder(found)


def readme(printed: str) -> None:
    """Replace the transcript of ``make demo``."""
    page = ROOT / "README.md"
    text = page.read_text(encoding="utf-8")
    begin, end = text.index("$ make demo\n") + len("$ make demo\n"), text.index("report written to report.html")
    page.write_text(f"{text[:begin]}{printed.strip()}\n\n{text[end:]}", encoding="utf-8")


def ladder(found: dict[str, Any]) -> None:
    """Replace the rows of the ladder in docs/neural.md."""
    rows = []
    for row in found["models"]:
        interval = "–".join(f"{edge:.3g}" for edge in row["perplexity_interval"])
        measured = f"{row['perplexity']:.3g} | {interval} | {row['bits_per_byte']:.2f}"
        rows.append(f"| {row['title']} | {measured} | {row['parameters']:,} | {row['epochs']:.2g} |")
    mixed = found.get("interpolation")
    if mixed:
        titles = {row["name"]: row["title"] for row in found["models"]}
        shares = " + ".join(
            f"{weight:.0%} {titles[name]}" for weight, name in zip(mixed["weights"], mixed["models"], strict=True)
        )
        rows.append(f"| {shares} | {mixed['perplexity']:.3g} | | | | |")
    page = ROOT / "docs" / "neural.md"
    text = page.read_text(encoding="utf-8")
    columns = "model", "test perplexity", "95 % interval", "bits per byte", "parameters", "epochs"
    table = "\n".join([f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *rows])
    text = re.sub(r"\| model \| test perplexity \|.*?\n\n", lambda _: f"{table}\n\n", text, count=1, flags=re.DOTALL)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
