"""How every kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

# Numba counts references to arrays with atomic instructions, at every call that passes one. In a loop over words that
# was five sixths of the time. A kernel that allocates nothing needs no counting, so all of ours take the arrays they
# fill, return plain numbers, and are compiled without it.
_OPTIONS: dict[str, Any] = {"nogil": True, "boundscheck": False, "_nrt": False}


def kernel(function: F) -> F:
    """Compile with Numba, release the GIL while running, and keep the machine code between runs.

    Numba keeps it beside the source, or in the user's cache folder where the package is read-only. With neither
    writable it would refuse to import; then we compile afresh in every process, which is slow but works.
    """
    try:
        return cast(F, numba.njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:
        return cast(F, numba.njit(**_OPTIONS)(function))


def inlined(function: F) -> F:
    """A small part of a kernel, always compiled into its caller."""
    return cast(F, numba.njit(forceinline=True, **_OPTIONS)(function))


def allocating(function: F) -> F:
    """A kernel that makes arrays of its own: for drivers, which call the others to do the work."""
    options = {"nogil": True, "boundscheck": False}
    try:
        return cast(F, numba.njit(cache=True, **options)(function))
    except RuntimeError:
        return cast(F, numba.njit(**options)(function))
