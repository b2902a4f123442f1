"""Decorators that compile every kernel. `native/compiled.py` keeps the machine code between runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from foreword.native.compiled import CompiledKernel

# Numba compiles a function once more for each constant that kernels pass to it, and for read-only arrays beside others.
# So a kernel begins a count that it passes on with np.int64(0), and what kernels only read is made so by arrays.frozen.

F = TypeVar("F", bound=Callable[..., Any])

_njit: Any = numba.njit

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
    """Compile on the first call with arguments of new types, unless the machine code is on disk."""
    compiled: Any = _njit(nogil=True, boundscheck=False, **options)(function)
    if compiled is not function:  # with NUMBA_DISABLE_JIT=1, for debuggers, Numba returns the function itself
        compiled._cache = CompiledKernel(function, str(options))
    result: F = compiled
    return result
