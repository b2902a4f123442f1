"""Every name that the documentation's Python blocks import exists. The pages themselves run in the long tests."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = sorted((ROOT / "docs").rglob("*.md")) + sorted(ROOT.glob("*.md"))


def imported(code: str) -> Iterator[tuple[str, str | None]]:
    """Yield each module of Foreword that a block imports, with the name taken from it."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from ((each.name, None) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", each.name) for each in node.names)


def exists(module: str, name: str | None) -> bool:
    """Tell whether ``from module import name`` would work."""
    try:
        found = importlib.import_module(module)
        return name is None or hasattr(found, name) or bool(importlib.import_module(f"{module}.{name}"))
    except ModuleNotFoundError as error:
        if error.name and not error.name.startswith("foreword"):
            pytest.skip(f"{error.name} is not installed")
        return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_imports_exists(page: Path) -> None:
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    names = [each for block in blocks for each in imported(block) if each[0].split(".")[0] == "foreword"]
    assert not [each for each in names if not exists(*each)]


def test_a_name_that_is_gone_is_found() -> None:
    code = "import foreword.nowhere\nfrom foreword import load, nothing\nfrom foreword.speech import wav\n"
    gone = [each for each in imported(code) if not exists(*each)]
    assert gone == [("foreword.nowhere", None), ("foreword", "nothing")]
