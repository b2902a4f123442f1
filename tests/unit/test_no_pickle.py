"""No module of the package reads or writes pickles, which run code when they are opened."""

from __future__ import annotations

import ast
from pathlib import Path

import foreword

FORBIDDEN = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


def imports(path: Path) -> set[str]:
    """Return the top-level names of all modules that a file imports, at any depth."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def test_nothing_imports_pickle() -> None:
    """But for the cache of compiled kernels, which is code that belongs to the package: SECURITY.md."""
    package = Path(foreword.__file__).parent
    sources = [path for path in sorted(package.rglob("*.py")) if path != package / "native" / "compiled.py"]
    assert len(sources) > 100
    found = {str(path.relative_to(package)): imports(path) & FORBIDDEN for path in sources}
    assert {path: names for path, names in found.items() if names} == {}


def test_numpy_and_torch_are_never_asked_to_unpickle() -> None:
    """``np.load`` and ``torch.load`` do so on request."""
    for path in sorted(Path(foreword.__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert "allow_pickle=True" not in text, path
        assert "torch.load(" not in text, path
