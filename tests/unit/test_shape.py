"""The shape of the code: short functions, small classes, few parameters, documented names, types named once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import foreword

PACKAGE = Path(foreword.__file__).parent
LONGEST_FUNCTION, LONGEST_COMMAND, LONGEST_CLASS, LONGEST_FILE, MOST_PARAMETERS = 60, 40, 300, 600, 10
DOCUMENTED = 0.95

Function = ast.FunctionDef | ast.AsyncFunctionDef


@pytest.fixture(scope="module")
def texts() -> dict[Path, str]:
    """Read every module of the package, by its path within it."""
    return {path.relative_to(PACKAGE): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


@pytest.fixture(scope="module")
def trees(texts: dict[Path, str]) -> dict[Path, ast.Module]:
    """Parse every module once."""
    return {path: ast.parse(text) for path, text in texts.items()}


def is_kernel(path: Path) -> bool:
    """Return whether a module holds kernels, which take the arrays they fill and are as long as their loops."""
    return path.parts[0] == "native" or path.stem.startswith("kernels") or path.stem in ("strings", "pieces")


def lines_of(node: ast.stmt) -> int:
    """Return the length of a function or class, its docstring included."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def lines_of_code(node: Function) -> int:
    """Return the length of a function without its docstring."""
    total, first = lines_of(node), node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total


def parameters_of(function: Function) -> int:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return len([argument for argument in named if argument.arg not in ("self", "cls")])


def public_functions(tree: ast.Module) -> Iterator[Function]:
    """Yield every function without an underscore: methods, nested and decorated functions, those of Protocols too."""
    yield from (each for each in ast.walk(tree) if isinstance(each, Function) and each.name[0] != "_")


def test_no_function_is_long(trees: dict[Path, ast.Module]) -> None:
    long = [
        f"{path}:{node.lineno} {node.name} has {lines_of_code(node)} lines"
        for path, tree in trees.items()
        if not is_kernel(path)
        for node in ast.walk(tree)
        if isinstance(node, Function)
        and lines_of_code(node) > (LONGEST_COMMAND if path.parts[0] == "cli" else LONGEST_FUNCTION)
    ]
    assert not long, "\n".join(long)


def test_no_class_is_long(trees: dict[Path, ast.Module]) -> None:
    long = [
        f"{path}:{node.lineno} {node.name} has {lines_of(node)} lines"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and lines_of(node) > LONGEST_CLASS
    ]
    assert not long, "\n".join(long)


def test_no_file_is_long(texts: dict[Path, str]) -> None:
    """A file is one idea."""
    lines = {str(path): len(text.splitlines()) for path, text in texts.items()}
    assert {path: count for path, count in lines.items() if count >= LONGEST_FILE} == {}


def test_no_constructor_takes_many_parameters(trees: dict[Path, ast.Module]) -> None:
    many = [
        f"{path}:{node.lineno} {owner.name} takes {parameters_of(node)} parameters"
        for path, tree in trees.items()
        for owner in ast.walk(tree)
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, Function) and node.name == "__init__" and parameters_of(node) > MOST_PARAMETERS
    ]
    assert not many, "\n".join(many)


def test_public_functions_are_documented(trees: dict[Path, ast.Module]) -> None:
    functions = [(path, each) for path, tree in trees.items() for each in public_functions(tree)]
    missing = [f"{path}:{each.lineno} {each.name}" for path, each in functions if ast.get_docstring(each) is None]
    share = 1 - len(missing) / len(functions)
    assert share >= DOCUMENTED, f"{share:.1%} are documented; these are not:\n" + "\n".join(missing)


def test_class_names_are_used_once(trees: dict[Path, ast.Module]) -> None:
    """Drop-in modules have the names of the originals, and so may share them with ours."""
    owners: dict[str, list[str]] = {}
    for path, tree in trees.items():
        if path.parts[0] != "compat":
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    owners.setdefault(node.name, []).append(f"{path}:{node.lineno}")
    shared = {name: places for name, places in owners.items() if len(places) > 1}
    assert not shared, shared


def test_array_types_are_defined_once(texts: dict[Path, str]) -> None:
    """``Floats`` means one thing in the whole package."""
    alias = re.compile(r"^\w+(?:: TypeAlias)? = NDArray\[", re.MULTILINE)
    others = [str(path) for path, text in texts.items() if path.name != "arrays.py" and alias.search(text)]
    assert others == []


def test_there_is_one_table_of_kinds(texts: dict[Path, str]) -> None:
    """A class is named by its module in the registry and among the public names, nowhere else."""
    named = re.compile(r'"foreword\.[\w.]+:\w+"')
    others = [str(path) for path, text in texts.items() if path.name != "kinds.py" and named.search(text)]
    assert others == []


def test_kinds_are_not_told_apart_by_name(texts: dict[Path, str]) -> None:
    """What differs between kinds is a field of the registry, so that a new kind has it too."""
    name = re.compile(r"""(?:\.kind|kind\.name|kinds\.of\([\w.]+\)\.name) (?:[!=]=|in) [("']""")
    told = [
        f"{path}: {line.strip()}"
        for path, text in texts.items()
        if path.parts[0] in ("serve", "filtering", "lab")
        for line in text.splitlines()
        if name.search(line)
    ]
    assert not told, "\n".join(told)
