"""Machine code of kernels on disk: what ships with the package, and what this machine has compiled.

Numba asks a cache before it compiles a kernel for arguments of new types, and hands the result over afterwards. Its own
cache trusts file times and the kernel's own file, works only where a folder is writable, and first imports all that a
compilation needs, SciPy included: 0.5 s even where nothing is compiled. This one

- names a file after all that its content depends on: the versions of Numba, LLVM and Python, the processor, the
  sources that the kernel inlines code from, and the types of its arguments. A file of another version is never opened;
- looks first in `native/kernels/`, the files that a wheel ships for processors like this one (`targets.py`), then in
  the folder where this machine keeps its own;
- compares a file's checksum before it trusts it, and compiles where the file is damaged.

The files are code, as `.pyc` files are: SECURITY.md says who may write them. No model holds any.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import llvmlite
import numba
from numba.core import config
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature
from numba.misc.appdirs import AppDirs

from foreword.native.targets import shipped_target

NATIVE = Path(__file__).parent
PACKAGE = NATIVE.parent
SHIPPED = NATIVE / "kernels"
"""The compiled kernels of a wheel, one folder per target; absent in a clone."""

SUFFIX = ".kernel"
FORMAT = "foreword kernel 1"
"""To be changed with the content of the files, and with the options of `jit.py` that all kernels have."""

NOT_INLINED = ("compiled", "jit", "parallel", "targets")
"""Modules of this folder whose code is in no kernel."""

IMPORT = re.compile(r"^from foreword\.?([\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


class CompiledKernel:
    """The compiled versions of one kernel on disk, one file per target and types of arguments.

    Has the methods that Numba calls of a cache (`numba.core.caching._Cache`).
    """

    def __init__(self, function: Callable[..., Any], options: str) -> None:
        self.function = function
        self.options = options
        self.enabled = True

    @property
    def name(self) -> str:
        """The kernel's module within the package, and its own name."""
        name = f"{self.function.__module__.removeprefix('foreword.')}.{self.function.__qualname__}"
        return re.sub(r"[^\w.]", "", name)  # a kernel within a function has <locals> in its name

    @property
    def cache_path(self) -> str | None:
        """The folder that new machine code is written to."""
        folder = local_folder()
        return None if folder is None else str(folder)

    def enable(self) -> None:
        """Read and write files again."""
        self.enabled = True

    def disable(self) -> None:
        """Neither read nor write files."""
        self.enabled = False

    def flush(self) -> None:
        """Remove what this machine has compiled of this kernel."""
        for path in self._files():
            path.unlink(missing_ok=True)

    def load_overload(self, signature: Any, target_context: Any) -> CompileResult | None:
        """Return the machine code for these types of arguments; None where Numba has to compile it."""
        for folder, target in self._places(target_context.codegen()) if self.enabled else ():
            content = _read(folder / self._file_name(signature, target))
            if content is not None:
                rtsys.initialize(target_context)
                pickle.load(content)  # the types of the arguments, for `read_arguments`
                result: CompileResult = CompileResult._rebuild(target_context, *pickle.load(content))
                return result
        _announce()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write machine code to this machine's folder, and remove that of earlier sources."""
        folder = local_folder()
        # Code with dynamic globals has addresses of this process in it.
        if folder is None or not self.enabled or result.library.has_dynamic_globals:
            return
        path = folder / self._file_name(signature, _own_target(result.codegen))
        arguments, _ = normalize_signature(signature)
        with suppress(OSError):  # a full disk costs another compilation, not the result
            _write(path, dumps(tuple(arguments)) + dumps(result._reduce()))
            for other in self._files():
                if not other.name.startswith(f"{self.name}-{self._sources()}-"):
                    other.unlink(missing_ok=True)

    def _places(self, codegen: Any) -> Iterator[tuple[Path, str]]:
        """Yield each folder to look in, with the target that its machine code must be for."""
        target = shipped_target(SHIPPED)
        if target is not None:
            yield SHIPPED / target, target
        for folder in _folders():  # read too where it cannot be written: an administrator may have filled it
            yield folder, _own_target(codegen)

    def _files(self) -> list[Path]:
        return [path for path in compiled_files() if path.name.startswith(f"{self.name}-")]

    def _sources(self) -> str:
        return source_digest(self.function)[:8]

    def _file_name(self, signature: Any, target: str) -> str:
        """Return the name of a file, which holds a checksum of all that the machine code depends on."""
        arguments, _ = normalize_signature(signature)
        code = self.function.__code__
        closure = [cell.cell_contents for cell in self.function.__closure__ or ()]
        parts = [FORMAT, *_versions(), target, self.options, self.name, source_digest(self.function)]
        parts += [str(code.co_firstlineno), repr(closure), *map(str, arguments)]
        return f"{self.name}-{self._sources()}-{_checksum(*parts)[:24]}{SUFFIX}"


def _versions() -> tuple[str, ...]:
    """Return what all machine code of a process depends on, settings of Numba included."""
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    settings = (str(getattr(config, name)) for name in ("BOUNDSCHECK", "OPT"))
    return numba.__version__, llvmlite.__version__, python, *settings


def _own_target(codegen: Any) -> str:
    """Return the name of the processor that Numba compiles for in this process, with its features."""
    triple, processor, features = codegen.magic_tuple()
    return processor if features == "" else f"{processor} {triple} {features}"


def _checksum(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


# Files


def read_arguments(path: Path) -> Any:
    """Return the types of the arguments that a file was compiled for."""
    content = _read(path)
    return None if content is None else pickle.load(content)


def _read(path: Path) -> BytesIO | None:
    """Return the content of a file; None where it is absent or does not have the checksum it starts with."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    checksum, content = data[:32], data[32:]
    return BytesIO(content) if hashlib.sha256(content).digest() == checksum else None


def _write(path: Path, content: bytes) -> None:
    """Write a file with its checksum in one step, so that another process sees all of it or nothing."""
    new = path.with_suffix(f".{os.getpid()}.tmp")
    new.write_bytes(hashlib.sha256(content).digest() + content)
    new.replace(path)


def _folders() -> list[Path]:
    """Return the folders for machine code compiled here, the first choice first.

    $NUMBA_CACHE_DIR or else next to the sources, and in the user's cache, one folder for each installation.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    users = Path(AppDirs(appname="foreword", appauthor=False).user_cache_dir, f"kernels-{_checksum(str(PACKAGE))[:8]}")
    return [Path(chosen) if chosen else NATIVE / "__pycache__", users]


@cache
def local_folder() -> Path | None:
    """Return the first folder that machine code can be written to; None where there is none."""
    return next(filter(_is_writable, _folders()), None)


def compiled_files() -> list[Path]:
    """Return the files with machine code that this machine has compiled."""
    folder = local_folder()
    return [] if folder is None else sorted(folder.glob(f"*{SUFFIX}"))


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@cache
def _announce() -> None:
    """Tell the user, once per process, why the first command takes longer than the next."""
    often = "once" if local_folder() else "every time, because no folder can be written to"
    print(f"compiling kernels for this machine, {often}", file=sys.stderr)  # noqa: T201


# Sources


@cache
def source_digest(function: Callable[..., Any]) -> str:
    """Return the checksum of a kernel's file and of what it imports from other files with kernels, directly or not."""
    path = Path(function.__code__.co_filename)
    if not path.is_file():  # a kernel defined at a prompt
        return _checksum(function.__code__.co_code.hex(), repr(function.__code__.co_consts))
    return _file_digest(path)


@cache
def _file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    waiting, seen = [path], set[Path]()
    while waiting:
        source = waiting.pop()
        text = _kernel_source(source)
        if text is None or source in seen:
            continue
        seen.add(source)
        digest.update(text.encode())
        waiting.extend(sorted(_imports(text)))
    return digest.hexdigest()


@cache
def _kernel_source(path: Path) -> str | None:
    """Read a module that holds kernels or the intrinsics they call; None for any other."""
    if (path.parent == NATIVE and path.stem in NOT_INLINED) or not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    return text if path.parent == NATIVE or "foreword.native" in text else None


def _imports(text: str) -> set[Path]:
    """Return the files of the package's modules that a source imports."""
    found = set[Path]()
    for module, names in IMPORT.findall(text):
        path = PACKAGE.joinpath(*filter(None, module.split(".")))
        found |= {path.with_suffix(".py"), *(path / f"{name}.py" for name in re.findall(r"\w+", names))}
    return found
