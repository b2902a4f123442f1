"""Mapped files that another program cuts short: said in one line instead of dying of a signal without a word.

Models are mapped, so that all processes share one copy. Saving never changes a mapped file: it puts a new one in its
place. But a program that truncates one leaves holes in our memory, and whoever touches a hole gets SIGBUS. No Python
code can run then, for the instruction that failed would only fail again; so the handler is a few instructions of
machine code, which write the line and end the process; other threads that come to the hole meanwhile wait for that.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
from functools import cache
from typing import Any

LINE = b"foreword: a file in use became shorter: another program has cut a model that was open\n"

_ASSEMBLY = """
@line = private constant [{size} x i8] c"{spelled}"
@told = private global i32 0
declare i64 @write(i32, ptr, i64)
declare void @_exit(i32)
declare i32 @pause()
define void @tell(i32 %signal) {{
  %before = atomicrmw xchg ptr @told, i32 1 seq_cst
  %first = icmp eq i32 %before, 0
  br i1 %first, label %say, label %wait
wait:
  call i32 @pause()
  br label %wait
say:
  %written = call i64 @write(i32 2, ptr @line, i64 {size})
  call void @_exit(i32 1)
  unreachable
}}
"""


def tell_of_cut_files() -> None:
    """For a process of our own, a command or a worker: end with the line, and status 1, when a mapped file is cut.

    Nothing is done where somebody else listens to the signal, or where the compiler, which nearly every model needs,
    is not loaded: it would take longer than the command.
    """
    if not hasattr(signal, "SIGBUS") or "llvmlite.binding" not in sys.modules:
        return
    if signal.getsignal(signal.SIGBUS) is not signal.SIG_DFL or faulthandler.is_enabled():
        return
    import ctypes

    library = ctypes.CDLL(None)
    library.signal.argtypes, library.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
    library.signal(int(signal.SIGBUS), _compiled().get_function_address("tell"))


@cache
def _compiled() -> Any:
    """Kept as long as the process lives, for the handler is in its memory. It takes a fiftieth of a second."""
    from llvmlite import binding

    text = _ASSEMBLY.format(size=len(LINE), spelled="".join(f"\\{byte:02x}" for byte in LINE))
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(opt=0)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(text), machine)
    engine.finalize_object()
    return engine
