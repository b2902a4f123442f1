"""Files that the guides name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`((?:[\w]+/)*\w+\.py)`")


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_file_that_a_guide_names_exists(page: str) -> None:
    named = set(NAMED.findall((ROOT / page).read_text(encoding="utf-8")))
    patterns = {"model.py", "plain.py", "kernels.py", "text.py", "explain.py"}  # names that many folders have
    missing = [name for name in sorted(named - patterns) if not found(name)]
    assert missing == []


def found(name: str) -> bool:
    return (ROOT / name).is_file() or (ROOT / "src" / "foreword" / name).is_file()


def test_the_first_page_links_every_how_to() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = sorted(path.name for path in (ROOT / "docs" / "howto").glob("*.md"))
    assert [name for name in pages if f"(howto/{name})" not in index] == []
