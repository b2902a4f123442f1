"""Compile the kernels that need no torch, in one process: ``make test`` does so while pip installs what tests need.

``make`` ends it when pip is done. Kernels that are written by then stay; a temporary folder does not.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile

import numpy as np

from foreword.cli.warming import CHAINS, run_chain
from foreword.compat.pyctcdecode import build_ctcdecoder


def compile_kernels() -> None:
    """Run what compiles most, the kernels that take longest first."""
    build_ctcdecoder([" ", "a", "b", ""]).decode(np.zeros((4, 4)))
    for chain in CHAINS:
        run_chain(chain)


if __name__ == "__main__":
    sys.modules["torch"] = None  # type: ignore[assignment]  # pip may have installed half of it
    with tempfile.TemporaryDirectory() as folder:

        def end(*_: object) -> None:
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)

        tempfile.tempdir = folder
        signal.signal(signal.SIGTERM, end)
        compile_kernels()
