"""Kernels are compiled once and kept; where nothing can be kept they are compiled afresh, and work all the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core import caching

import foreword
from foreword.native.jit import NATIVE, STAMP, allocating, forget_if_changed, kernel


def add_one(number: int) -> int:
    return number + 1


@pytest.mark.parametrize("compiled", [kernel, allocating])
def test_without_any_folder_for_the_cache_a_kernel_still_compiles(
    compiled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(*arguments: object) -> None:
        return None

    for locator in caching.CacheImpl._locator_classes:
        monkeypatch.setattr(locator, "from_function", nowhere)
    with pytest.raises(RuntimeError, match="cannot cache function"):
        numba.njit(cache=True)(add_one)
    assert compiled(add_one)(41) == 42


def test_where_a_folder_is_writable_the_machine_code_is_kept(tmp_path: Path) -> None:
    ran = run_with(tmp_path / "cache", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == GATHERED
    assert list((tmp_path / "cache").rglob("*.nbc"))


def test_the_package_works_where_no_folder_is_writable(tmp_path: Path) -> None:
    """A copy whose own cache folder, home folder and NUMBA_CACHE_DIR all lie below a file, where no folder can be."""
    file = tmp_path / "file"
    file.touch()
    ran = run_with(file / "cache", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == GATHERED
    assert not list(tmp_path.rglob("*.nbc"))


def test_machine_code_of_other_sources_is_forgotten(tmp_path: Path) -> None:
    """Numba looks only at a kernel's own file; one that inlines from a file that has changed would stay as it was."""
    (tmp_path / "table.find-1.py311.nbi").touch()
    (tmp_path / STAMP).write_text("another version")
    forget_if_changed(NATIVE, tmp_path)
    assert not list(tmp_path.glob("*.nbi"))
    (tmp_path / "table.find-1.py311.nbi").touch()
    forget_if_changed.cache_clear()
    forget_if_changed(NATIVE, tmp_path)
    assert list(tmp_path.glob("*.nbi"))


SCRIPT = """
import numpy as np
import foreword.tokens.kernels
from foreword.tokens.strings import gather_strings
out = np.zeros(4, np.uint8)
gather_strings(np.frombuffer(b"abbc", np.uint8), np.array([0, 1, 3, 4]), np.array([1, 0]), out, 1)
print(out.tobytes())
"""
GATHERED = r"b'\x00bba'"


def run_with(cache: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """The script in a process of its own, with a copy of the package whose ``__pycache__`` is a file."""
    package = folder / "lib" / "foreword"
    shutil.copytree(Path(foreword.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for family in filter(Path.is_dir, package.iterdir()):
        (family / "__pycache__").touch()
    home = folder / "home"
    home.touch()
    environment = {
        **os.environ,
        "PYTHONPATH": str(package.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(cache),
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
    }
    return subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment, check=False)
