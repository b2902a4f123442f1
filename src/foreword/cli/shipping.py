"""Compiled kernels for a wheel: ``python -m foreword.cli.shipping FOLDER`` writes them, one folder per target.

The commands of `warming.py` run once, compiled for the least target that this machine can run; that finds every kernel
and the types of its arguments. For the other targets the same kernels are compiled and not run, so that a machine
without AVX-512 can build for those that have it. `setup.py` calls this.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

from foreword.native.compiled import SUFFIX, read_arguments
from foreword.native.parallel import cores
from foreword.native.targets import processor_features, targets


def ship(folder: Path) -> list[str]:
    """Write the kernels of every target into ``folder``; return the targets."""
    here = processor_features()
    known = list(reversed(targets()))  # the least first
    first = next((target for target in known if targets()[target] <= here), None)
    if first is None:
        return []
    _run(["foreword", "warm", "--quiet"], first, folder)
    others = [target for target in known if target != first]
    for target in others:
        _run([__spec__.name, str(folder / first)], target, folder)
    return [first, *others]


def _run(module: list[str], target: str, folder: Path) -> None:
    """Run a module in a process that compiles for ``target`` and keeps what it compiles in a folder of that name."""
    (folder / target).mkdir(parents=True, exist_ok=True)
    chosen = {"NUMBA_CPU_NAME": target, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(folder / target)}
    subprocess.run([sys.executable, "-m", *module], check=True, env={**os.environ, **chosen})


def compile_all(found: Path) -> None:
    """Compile every kernel in a folder again, for the target that this process compiles for."""
    modules: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(found.glob(f"*{SUFFIX}")):
        modules[_kernel_of(path)[0]].append(path)
    with ProcessPoolExecutor(cores(), mp_context=get_context("spawn")) as pool:
        list(pool.map(compile_again, modules.values()))


def compile_again(paths: list[Path]) -> None:
    """Compile kernels for the types of arguments that their files were compiled for."""
    for path in paths:
        module, name = _kernel_of(path)
        getattr(import_module(f"foreword.{module}"), name).compile(read_arguments(path))


def _kernel_of(path: Path) -> tuple[str, str]:
    """Return the module and the name of the kernel that a file holds."""
    module, _, name = path.name.rsplit("-", 2)[0].rpartition(".")
    return module, name


if __name__ == "__main__":
    if "NUMBA_CPU_NAME" in os.environ:
        compile_all(Path(sys.argv[1]))
    else:
        sys.stderr.write(f"compiled kernels for {', '.join(ship(Path(sys.argv[1]))) or 'no target'}\n")
