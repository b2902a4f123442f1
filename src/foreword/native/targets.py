"""Processors that a wheel ships compiled kernels for, and which of them this machine can run.

x86-64 is divided into levels, each with all instructions of the one below: level 3 adds AVX2 and fused multiplication
and addition (Intel since 2013, AMD since 2015), level 4 AVX-512. Other machines have one target each, the least that
the platform asks for.
"""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

from llvmlite.binding import get_host_cpu_features
from numba.core import config

_LEVEL_3 = frozenset({"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2"})
_LEVEL_4 = _LEVEL_3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}

TARGETS: dict[str, dict[str, frozenset[str]]] = {
    "x86_64": {"x86-64-v4": _LEVEL_4, "x86-64-v3": _LEVEL_3},
    "AMD64": {"x86-64-v4": _LEVEL_4, "x86-64-v3": _LEVEL_3},
    "arm64": {"apple-m1": frozenset()},
    "aarch64": {"generic": frozenset()},
}
"""Targets by `platform.machine()`, the best first, with the features that a processor must have."""


def targets() -> dict[str, frozenset[str]]:
    """Return the targets of this kind of machine, the best first, with the features that each needs."""
    return TARGETS.get(platform.machine(), {})


def processor_features() -> set[str]:
    """Return the instruction set extensions of this processor, as LLVM calls them."""
    return {name for name, present in get_host_cpu_features().items() if present}


@cache
def shipped_target(shipped: Path) -> str | None:
    """Return the best target in a folder of shipped kernels that this processor can run; None where there is none.

    With NUMBA_CPU_NAME, only the kernels compiled for that processor will do.
    """
    if not shipped.is_dir():
        return None
    here, chosen = processor_features(), getattr(config, "CPU_NAME", None)
    for target, needed in targets().items():
        if needed <= here and chosen in (None, target) and (shipped / target).is_dir():
            return target
    return None
