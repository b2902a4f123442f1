"""Compile the kernels that need no torch, in one process: ``make test`` does so while pip installs what tests need."""

from __future__ import annotations

import sys

import numpy as np

from foreword.cli.warming import CHAINS, run_chain
from foreword.compat.pyctcdecode import build_ctcdecoder

if __name__ == "__main__":
    sys.modules["torch"] = None  # type: ignore[assignment]  # pip may have installed half of it
    build_ctcdecoder([" ", "a", "b", ""]).decode(np.zeros((4, 4)))  # has the kernel that takes longest
    for chain in CHAINS:
        run_chain(chain)
