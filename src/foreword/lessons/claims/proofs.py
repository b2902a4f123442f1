"""Which tests prove which claim: those with the claim's id in their name or docstring.

That is the project's rule for tests, so nothing else has to be kept in step: ``test_r12_powers`` proves R12, and a
docstring "Rows R03, L01: …" proves two claims.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import foreword
from foreword.errors import InputError

IN_WORDS = re.compile(r"\b([A-Z]\d{2})\b")
IN_NAME = re.compile(r"(?<=_)([a-z]\d{2})(?=_|$)")


def checkout() -> Path | None:
    """The root of the repository that this package runs from, or None where it is installed without its tests."""
    root = Path(foreword.__file__).resolve().parents[2]
    return root if (root / "tests" / "claims").is_dir() else None


def needed_checkout() -> Path:
    root = checkout()
    if root is None:
        raise InputError("this package was installed without its tests: run this in a checkout of the repository")
    return root


def find_proofs(root: Path) -> dict[str, list[str]]:
    """Each test that proves something, as file::name from the root, with the ids of its claims."""
    proofs = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        file = path.relative_to(root).as_posix()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                ids = ids_of(node.name, ast.get_docstring(node) or "")
                if ids:
                    proofs[f"{file}::{node.name}"] = ids
    return proofs


def ids_of(name: str, docstring: str) -> list[str]:
    return sorted({*(id.upper() for id in IN_NAME.findall(name)), *IN_WORDS.findall(docstring)})
