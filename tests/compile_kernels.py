"""Compile the kernels that need no torch, in one process: ``make test`` does so while pip installs what tests need."""

from __future__ import annotations

import sys

from foreword.cli.warming import CHAINS, run_chain

if __name__ == "__main__":
    sys.modules["torch"] = None  # type: ignore[assignment]  # pip may have installed half of it
    for chain in CHAINS:
        run_chain(chain)
