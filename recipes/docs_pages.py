"""The pictures of the documentation that no page of its own draws, made afresh.

    python recipes/docs_pages.py [NAME…]

Each function below draws one file of docs/pictures and prints the numbers that its page quotes. All of them take about
three minutes of one core; those that read a data set find it in $FOREWORD_DATA, or download it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from foreword.picture.standalone import write_standalone

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = DOCS / "pictures"


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def blocks(page: str) -> str:
    """The Python of a page, all of it."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE))


def tutorial_ladder() -> None:
    """The picture that the last step of the tutorial draws."""
    here = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            exec(compile(blocks("tutorial.md"), "tutorial.md", "exec"), {"__name__": "tutorial"})
            (PICTURES / "tutorial-ladder.svg").write_bytes(Path("ladder.svg").read_bytes())
        finally:
            os.chdir(here)


def ptb_ladder() -> None:
    """The rows of docs/results/ptb_ladder.json, measured by recipes/ptb_ladder.py."""
    from foreword.picture.ladder import ladder

    rows = json.loads((DOCS / "results" / "ptb_ladder.json").read_text())["rows"]
    drawn = ladder([row["title"] for row in rows], [row["test"] for row in rows], 10_000)
    write_standalone(
        replace(drawn, title="Perplexity on the test part of the Penn Treebank"), PICTURES / "ptb-ladder.svg"
    )


DRAWN: dict[str, Callable[[], None]] = {made.__name__: made for made in (tutorial_ladder, ptb_ladder)}


def main() -> None:
    for name in sys.argv[1:] or DRAWN:
        say(f"\n{name}")
        DRAWN[name]()


if __name__ == "__main__":
    main()
