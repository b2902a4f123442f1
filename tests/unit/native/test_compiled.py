"""Kernels are compiled once and kept; what does not fit is ignored; where nothing can be kept they still work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foreword
from foreword.native import compiled, targets
from foreword.native.jit import allocating, kernel

PACKAGE = Path(foreword.__file__).parent
MESSAGE = "compiling kernels for this machine"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own for the kernels of a test."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compiled.local_folder.cache_clear()
    monkeypatch.setattr(compiled, "_announce", lambda: None)
    yield tmp_path
    compiled.local_folder.cache_clear()


def add_one(number: int) -> int:
    return number + 1


def hits_and_misses(decorator: Any = kernel) -> tuple[int, int]:
    """Compile or load ``add_one`` as a new process would; return how often it was found on disk, and how often not."""
    dispatcher = decorator(add_one)
    assert dispatcher(41) == 42
    return sum(dispatcher.stats.cache_hits.values()), sum(dispatcher.stats.cache_misses.values())


@pytest.mark.parametrize("decorator", [kernel, allocating])
def test_machine_code_is_kept_and_found_again(folder: Path, decorator: Any) -> None:
    assert hits_and_misses(decorator) == (0, 1)
    assert hits_and_misses(decorator) == (1, 0)
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("decorator", [kernel, allocating])
def test_without_a_folder_a_kernel_is_compiled_in_every_process(
    decorator: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "_is_writable", lambda folder: False)
    assert hits_and_misses(decorator) == hits_and_misses(decorator) == (0, 1)


def test_a_damaged_file_is_compiled_again(folder: Path) -> None:
    hits_and_misses()
    [file] = folder.iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert hits_and_misses() == (0, 1)
    file.write_bytes(data[:10])
    assert hits_and_misses() == (0, 1)
    assert hits_and_misses() == (1, 0)


def test_machine_code_of_other_versions_is_ignored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hits_and_misses()
    for version in (("0.1.0", *compiled._versions()[1:]), (*compiled._versions()[:2], "cpython-310", "None", "3")):
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "_versions", lambda version=version: version)
            assert hits_and_misses() == (0, 1)


def test_machine_code_of_another_processor_is_ignored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hits_and_misses()
    monkeypatch.setattr(compiled, "_own_target", lambda codegen: "8086")
    assert hits_and_misses() == (0, 1)


def test_machine_code_of_earlier_sources_is_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hits_and_misses()
    before = set(folder.iterdir())
    monkeypatch.setattr(compiled, "source_digest", lambda function: "f" * 64)
    assert hits_and_misses() == (0, 1)
    assert len(set(folder.iterdir())) == 1
    assert not before & set(folder.iterdir())


def test_the_digest_covers_what_a_kernel_inlines_from_other_files() -> None:
    from foreword.ngram.kernels_arpa import read_ngrams

    for changed in ("ngram/kernels_query.py", "tokens/strings.py", "native/memory.py", "native/hashing.py"):
        assert digest_with(read_ngrams, changed) != compiled.source_digest(read_ngrams), changed
    for unrelated in ("hmm/kernels.py", "native/compiled.py", "native/jit.py", "ngram/model.py"):
        assert digest_with(read_ngrams, unrelated) == compiled.source_digest(read_ngrams), unrelated


def digest_with(function: Any, changed: str) -> str:
    """The digest of a kernel's sources if one file of the package had another line."""
    real = compiled._kernel_source

    def read(path: Path) -> str | None:
        text = real(path)
        return f"{text}# changed" if text is not None and path == PACKAGE / changed else text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_kernel_source", read)
        return compiled._file_digest.__wrapped__(Path(function.py_func.__code__.co_filename))


def test_a_folder_that_cannot_be_written_is_still_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An administrator has run ``foreword warm``."""
    hits_and_misses()
    monkeypatch.setattr(compiled, "_is_writable", lambda folder: False)
    compiled.local_folder.cache_clear()
    assert hits_and_misses() == (1, 0)


# Shipped kernels


@pytest.mark.parametrize(
    ("features", "shipped", "chosen", "expected"),
    [
        (targets._LEVEL_4, ["x86-64-v3", "x86-64-v4"], None, "x86-64-v4"),
        (targets._LEVEL_4, ["x86-64-v3"], None, "x86-64-v3"),
        (targets._LEVEL_3, ["x86-64-v3", "x86-64-v4"], None, "x86-64-v3"),
        (targets._LEVEL_3 - {"fma"}, ["x86-64-v3", "x86-64-v4"], None, None),
        (targets._LEVEL_4, ["x86-64-v3", "x86-64-v4"], "x86-64-v3", "x86-64-v3"),
        (targets._LEVEL_4, ["x86-64-v3", "x86-64-v4"], "znver4", None),
        (targets._LEVEL_4, [], None, None),
    ],
)
def test_the_best_target_that_the_processor_can_run_is_chosen(
    features: set[str],
    shipped: list[str],
    chosen: str | None,
    expected: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for target in shipped:
        (tmp_path / target).mkdir()
    monkeypatch.setattr(targets, "processor_features", lambda: set(features))
    monkeypatch.setattr(targets, "targets", lambda: targets.TARGETS["x86_64"])
    monkeypatch.setattr("numba.config.CPU_NAME", chosen)
    assert targets.shipped_target.__wrapped__(tmp_path) == expected


def test_shipped_machine_code_is_used_and_never_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = folder / "shipped" / "a-target"
    shipped.mkdir(parents=True)
    monkeypatch.setattr(compiled, "_own_target", lambda codegen: "a-target")
    hits_and_misses()
    [file] = folder.glob("*.kernel")
    file.rename(shipped / file.name)
    monkeypatch.setattr(compiled, "_own_target", lambda codegen: "this machine")
    monkeypatch.setattr(compiled, "SHIPPED", folder / "shipped")
    monkeypatch.setattr(compiled, "shipped_target", lambda shipped: "a-target")
    assert hits_and_misses() == (1, 0)
    assert not list(folder.glob("*.kernel"))


# Processes

SCRIPT = """
import numpy as np
import foreword.tokens.kernels
from foreword.tokens.strings import gather_strings
out = np.zeros(4, np.uint8)
gather_strings(np.frombuffer(b"abbc", np.uint8), np.array([0, 1, 3, 4]), np.array([1, 0]), out, 1)
print(out.tobytes())
"""
GATHERED = r"b'\x00bba'"


def test_a_compilation_is_reported_once_and_not_repeated(tmp_path: Path) -> None:
    """New times of the files change nothing."""
    package = copied(tmp_path)
    first, second = run_with(package, tmp_path / "cache"), None
    for source in package.rglob("*.py"):
        os.utime(source, (1, 1))
    second = run_with(package, tmp_path / "cache")
    assert (first.stdout.strip(), second.stdout.strip()) == (GATHERED, GATHERED)
    assert first.stderr == f"{MESSAGE}, once\n"
    assert second.stderr == ""


def test_the_package_works_where_no_folder_is_writable(tmp_path: Path) -> None:
    """A copy whose own cache folder, home folder and NUMBA_CACHE_DIR all lie below a file, where no folder can be."""
    file = tmp_path / "file"
    file.touch()
    ran = run_with(copied(tmp_path), file / "cache")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == GATHERED
    assert "no folder can be written to" in ran.stderr
    assert not list(tmp_path.rglob("*.kernel"))


def copied(folder: Path) -> Path:
    """Return a copy of the package whose ``__pycache__`` are files."""
    package = folder / "lib" / "foreword"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for family in filter(Path.is_dir, package.iterdir()):
        (family / "__pycache__").touch()
    return package


def run_with(package: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run the script in a process of its own, with a copy of the package and a home folder that is a file."""
    home = package.parents[1] / "home"
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
