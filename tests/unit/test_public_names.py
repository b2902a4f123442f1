import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(("given", "wanted"), [(None, "passive"), ("active", "active")])
def test_threads_of_openmp_sleep_while_they_wait(given: str | None, wanted: str) -> None:
    """Unless the user has said what they do; torch, which reads it, is not imported yet."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {} if given is None else {"OMP_WAIT_POLICY": given}
    program = "import foreword, os, sys; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    words = [sys.executable, "-c", program]
    found = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    assert found.split() == [wanted, "False"]
