"""How every kernel is compiled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

_njit: Any = numba.njit

# Numba counts references to arrays with atomic instructions, at every call that passes one. In a loop over words that
# was five sixths of the time. A kernel that allocates nothing needs no counting, so ours take the arrays they fill,
# return plain numbers, and are compiled without it.
_UNCOUNTED = {"_nrt": False}


def kernel(function: F) -> F:
    """Compile with Numba, release the GIL while running, and keep the machine code between runs."""
    return _cached(function, **_UNCOUNTED)


def inlined(function: F) -> F:
    """A small part of a kernel, always compiled into its caller."""
    compiled: F = _njit(nogil=True, boundscheck=False, forceinline=True, **_UNCOUNTED)(function)
    return compiled


def allocating(function: F) -> F:
    """A kernel that makes arrays of its own: for drivers, which call the others to do the work."""
    return _cached(function)


def _cached(function: F, **options: bool) -> F:
    """Numba keeps machine code beside the source, or in the user's cache folder where the package is read-only. With
    neither writable it would refuse to import; then we compile afresh in every process, which is slow but works.
    """
    compiled: F
    try:
        compiled = _njit(nogil=True, boundscheck=False, cache=True, **options)(function)
        forget_if_changed(compiled.stats.cache_path)  # type: ignore[attr-defined]
    except RuntimeError:
        compiled = _njit(nogil=True, boundscheck=False, **options)(function)
    return compiled


STAMP = "foreword-kernels.stamp"


@cache
def forget_if_changed(folder: str) -> None:
    """Numba compiles a kernel anew when its own file has changed, but not when a file has from which it inlines. So
    all kernels are compiled anew when any of their files has; an upgrade would otherwise run yesterday's code.
    """
    stamp, sources = Path(folder, STAMP), _digest()
    with suppress(OSError):  # where nothing can be written nothing was kept
        if not stamp.exists() or stamp.read_text() != sources:
            for index in Path(folder).glob("*.nbi"):
                index.unlink(missing_ok=True)
            stamp.write_text(sources)


def _digest() -> str:
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()
