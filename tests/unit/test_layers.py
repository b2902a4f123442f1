"""The layers of the package hold: imports point down, and no two folders import each other.

CONTRIBUTING.md has the one table of folders and their layers. Imports inside functions count; those under
``TYPE_CHECKING`` do not, for they never run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "foreword"
ROW = re.compile(r"^\| (\d) \| `([\w.]+)/?` \|", re.MULTILINE)

Edges = dict[str, dict[str, str]]
"""Folder -> folder it imports -> one line of code that does."""


def layers() -> dict[str, int]:
    """Read the layer of each folder and top-level module from CONTRIBUTING.md."""
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return {name.removesuffix(".py"): int(layer) for layer, name in ROW.findall(table)}


def imported(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every module of the package that is imported at or below a node, with its line."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if isinstance(child, ast.ImportFrom) and child.module == "foreword":
            yield from ((f"foreword.{alias.name}", child.lineno) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            yield child.module, child.lineno
        elif isinstance(child, ast.Import):
            yield from ((alias.name, child.lineno) for alias in child.names)
        yield from imported(child)


@pytest.fixture(scope="module")
def graph() -> Edges:
    """Build the imports between folders, self-imports left out."""
    edges: Edges = {}
    known = layers()
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        folder = parts[0].removesuffix(".py")
        for module, line in imported(ast.parse(path.read_text(encoding="utf-8"))):
            names = module.split(".")
            if names[0] == "foreword" and len(names) > 1 and names[1] != folder and names[1] in known:
                edges.setdefault(folder, {}).setdefault(names[1], f"{'/'.join(parts)}:{line}")
    return edges


def test_every_folder_is_in_the_table() -> None:
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(layers()) == there - {"__init__", "__main__"}


def test_imports_point_down(graph: Edges) -> None:
    known = layers()
    upward = [
        f"{where}: {folder} imports {other}"
        for folder, others in graph.items()
        for other, where in others.items()
        if folder in known and known[other] > known[folder]
    ]
    assert not upward, "\n".join(upward)


def test_no_two_folders_import_each_other(graph: Edges) -> None:
    """Imports within one layer are allowed, a cycle of folders is not."""

    def reachable(folder: str) -> set[str]:
        found: set[str] = set()
        queue = list(graph.get(folder, {}))
        while queue:
            other = queue.pop()
            if other not in found:
                found.add(other)
                queue.extend(graph.get(other, {}))
        return found

    assert [folder for folder in graph if folder in reachable(folder)] == []
