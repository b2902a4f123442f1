"""Array types, one name each for the whole package, after the C types that their elements have.

A name says what an array's elements are; its shape is in the docstring of the function or class that takes it.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]
SignedBytes: TypeAlias = NDArray[np.int8]
Shorts: TypeAlias = NDArray[np.int16]
Ints: TypeAlias = NDArray[np.int32]
UInts: TypeAlias = NDArray[np.uint32]
Longs: TypeAlias = NDArray[np.int64]
ULongs: TypeAlias = NDArray[np.uint64]
Floats: TypeAlias = NDArray[np.float32]
Doubles: TypeAlias = NDArray[np.float64]

Array: TypeAlias = NDArray[Any]
"""Elements of any type."""

Ids: TypeAlias = NDArray[np.integer[Any]]
"""Token ids, integers of any size."""

Reals: TypeAlias = NDArray[np.floating[Any]]
"""Real numbers in single or double precision."""

Logs: TypeAlias = NDArray[np.floating[Any]]
"""Natural logarithms of probabilities, in single or double precision."""

Scalar = TypeVar("Scalar", bound=np.generic)


def frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a contiguous, read-only view, as mapped arrays are, so that kernels are compiled for that kind alone."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
