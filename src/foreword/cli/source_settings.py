"""Settings of a model, read from its source: a wrong ``--set`` is refused before PyTorch is imported, which is slow.

Follows what `settings_of` reads from a class: the parameters of its constructor, own or inherited, the fields of a
``TypedDict`` that it unpacks, and of ``Training`` and ``Dropout``. Annotations are evaluated where they name types of
the standard library; a type that only the module itself knows is not checked here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import foreword

PACKAGE = Path(foreword.__file__).parent
NESTED = {"training": ("foreword.training.settings", "Training"), "dropout": ("foreword.nn.dropout", "Dropout")}


def settings_in_source(home: str) -> dict[str, Any]:
    """Return every setting of the class at ``"module:Class"`` with its type, in the order of `settings_of`."""
    module, name = home.split(":")
    bases = list(_with_bases(module, name))
    own, unpacked = _constructor(bases)
    nested = {each for each in NESTED if each in own and any(each.upper() in _fields(base) for _, base in bases)}
    found = {each: wanted for each, wanted in {**own, **unpacked}.items() if each not in nested}
    if "training" in nested:
        found = {**_annotated(*NESTED["training"]), **found}
    if "dropout" in nested:
        places = _annotated(*NESTED["dropout"])
        found |= {"dropout": float, **{f"dropout.{place}": wanted for place, wanted in places.items()}}
    return found


@cache
def _parsed(module: str) -> ast.Module:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def _imported(module: str, name: str) -> str | None:
    """Return the module that a module imports a name from."""
    for node in ast.walk(_parsed(module)):
        if isinstance(node, ast.ImportFrom) and any((each.asname or each.name) == name for each in node.names):
            return node.module
    return None


def _with_bases(module: str, name: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield a class of the package and those it inherits from, each with its module."""
    for node in _parsed(module).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            yield module, node
            for base in node.bases:
                plain = base.value if isinstance(base, ast.Subscript) else base
                if isinstance(plain, ast.Name):
                    yield from _with_bases(module, plain.id)
            return
    source = _imported(module, name)
    if source is not None and source.split(".")[0] == "foreword":
        yield from _with_bases(source, name)


def _fields(node: ast.ClassDef) -> dict[str, ast.expr]:
    """Return the annotated names in the body of a class."""
    rows = [row for row in node.body if isinstance(row, ast.AnnAssign)]
    return {row.target.id: row.annotation for row in rows if isinstance(row.target, ast.Name)}


def _annotated(module: str, name: str) -> dict[str, Any]:
    """Return the fields of a dataclass or ``TypedDict`` with their types, inherited ones first."""
    bases = list(_with_bases(module, name))
    return {
        field: _evaluated(where, wanted) for where, each in reversed(bases) for field, wanted in _fields(each).items()
    }


def _constructor(bases: list[tuple[str, ast.ClassDef]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of a constructor with their types, and those of the ``TypedDict`` that it unpacks."""
    for module, node in bases:
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                named = [*method.args.args[1:], *method.args.kwonlyargs]
                own = {each.arg: _evaluated(module, each.annotation) for each in named}
                return own, _unpacked(module, method.args.kwarg)
        if any("dataclass" in ast.dump(decorator) for decorator in node.decorator_list):
            fields = {name: wanted for name, wanted in _fields(node).items() if name != "_"}  # but KW_ONLY
            return {name: _evaluated(module, wanted) for name, wanted in fields.items()}, {}
    return {}, {}


def _unpacked(module: str, rest: ast.arg | None) -> dict[str, Any]:
    annotation = rest.annotation if rest is not None else None
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Name):
        return _annotated(module, annotation.slice.id)
    return {}


def _evaluated(module: str, annotation: ast.expr | None) -> Any:
    """Return the type that an annotation names; Any where it takes more than the standard library to tell."""
    if annotation is None:
        return Any
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    known = {name: _standard(module, name) for name in names}
    try:
        return eval(compile(ast.Expression(annotation), module, "eval"), known)
    except (NameError, TypeError, AttributeError):
        return Any


def _standard(module: str, name: str) -> Any:
    """Return what a name of the standard library stands for in a module; Any for all other names."""
    builtin = {"int": int, "float": float, "str": str, "bool": bool, "tuple": tuple, "list": list, "dict": dict}
    if name in builtin:
        return builtin[name]
    source = _imported(module, name)
    return getattr(import_module(source), name) if source in ("typing", "collections.abc") else Any
