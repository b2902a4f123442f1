"""One line instead of a silent death when another program truncates a mapped model.

Models are mapped, so that all processes share one copy. Saving never changes a mapped file: it
replaces it. But a program that truncates one leaves holes in our memory, and touching a hole raises SIGBUS. Python runs
its own signal handlers only after the current instruction, which would fail again forever; so this one is installed
through C: it runs at once, on the thread that failed, and ends the process.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import threading
import time

LINE = b"foreword: a file in use became shorter: another program has cut a model that was open\n"

_first = threading.Lock()


def _report_and_exit(signal_number: int) -> None:
    while not _first.acquire(blocking=False):  # another thread is ending the process
        time.sleep(1)
    os.write(2, LINE)
    os._exit(1)


_handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(_report_and_exit)  # lives as long as the process


def report_cut_files() -> None:
    """Make this process, a command or a worker, end with one line and status 1 when a mapped file is truncated.

    Nothing changes where the signal has a handler already, or where the system has no such signal.
    """
    if not hasattr(signal, "SIGBUS") or signal.getsignal(signal.SIGBUS) is not signal.SIG_DFL:
        return
    if not faulthandler.is_enabled():
        ctypes.CDLL(None).signal(int(signal.SIGBUS), _handler)
