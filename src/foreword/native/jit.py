"""Decorators that compile every kernel, and the cache of compiled kernels."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

_njit: Any = numba.njit

NATIVE = Path(__file__).parent

# Numba counts references to arrays with atomic instructions, at every call that passes one. In a loop over words that
# was five sixths of the time. A kernel that allocates nothing needs no counting, so ours take the arrays they fill,
# return plain numbers, and are compiled without it.
_UNCOUNTED = {"_nrt": False}


def kernel(function: F) -> F:
    """Compile with Numba, release the GIL while running, and cache the machine code between runs."""
    return _cached(function, **_UNCOUNTED)


def inlined(function: F) -> F:
    """Compile a small function that is always inlined into the kernels that call it."""
    compiled: F = _njit(nogil=True, boundscheck=False, forceinline=True, **_UNCOUNTED)(function)
    return compiled


def allocating(function: F) -> F:
    """Compile a kernel that allocates arrays: for drivers, which call the others to do the work."""
    return _cached(function)


def _cached(function: F, **options: bool) -> F:
    """Compile with a cache on disk: next to the source, or in the user's cache folder where the package is read-only.

    With neither writable Numba would refuse to import; then kernels are compiled in every process, slow but working.
    """
    compiled: F
    try:
        compiled = _njit(nogil=True, boundscheck=False, cache=True, **options)(function)
        source = Path(function.__code__.co_filename)
        forget_if_changed(source.parent, Path(compiled.stats.cache_path))  # type: ignore[attr-defined]
    except RuntimeError:
        compiled = _njit(nogil=True, boundscheck=False, **options)(function)
    return compiled


STAMP = "foreword-kernels.stamp"
IMPORT = re.compile(rb"^from foreword\.([\w.]+) import \(?([\w, ]*)", re.MULTILINE)


@cache
def forget_if_changed(folder: Path, cached: Path) -> None:
    """Drop a folder's cached kernels when a module has changed from which one of them inlines code.

    Numba compares a kernel's own file with the cache, but not the files of what is inlined into it: an upgrade would
    otherwise run old code.
    """
    stamp, sources = cached / STAMP, _digest(folder)
    with suppress(OSError):  # where nothing can be written nothing was cached
        if not stamp.exists() or stamp.read_text() != sources:
            for index in cached.glob("*.nbi"):
                index.unlink(missing_ok=True)
            stamp.write_text(sources)


def _digest(folder: Path) -> str:
    """Return the checksum of what a folder's kernels import from other folders, directly or not."""
    digest = hashlib.sha256()
    waiting, seen = sorted(folder.glob("*.py")), set[Path]()
    while waiting:
        source = waiting.pop()
        code = _kernel_source(source)
        if code is None or source in seen:
            continue
        seen.add(source)
        digest.update(code)
        waiting.extend(sorted(_imports(code)))
    return digest.hexdigest()


@cache
def _kernel_source(path: Path) -> bytes | None:
    """Read a module that holds kernels or the intrinsics they call; None for any other."""
    code = path.read_bytes() if path.is_file() else b""
    return code if path.parent == NATIVE or b"foreword.native" in code else None


def _imports(code: bytes) -> set[Path]:
    """Return the files of the package's modules that a source imports."""
    found = set[Path]()
    for module, names in IMPORT.findall(code):
        path = NATIVE.parent.joinpath(*module.decode().split("."))
        found |= {path.with_suffix(".py"), *(path / f"{name.strip()}.py" for name in names.decode().split(","))}
    return found
