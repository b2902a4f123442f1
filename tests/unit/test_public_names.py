import ast
from pathlib import Path

import foreword


def test_every_public_name_is_there_and_sorted() -> None:
    assert foreword.__all__ == sorted(foreword.__all__)
    for name in foreword.__all__:
        assert getattr(foreword, name) is not None


def test_the_names_type_checkers_see_are_the_names_there_are() -> None:
    tree = ast.parse(Path(foreword.__file__).read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(foreword.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(foreword, "Transformer3000")
