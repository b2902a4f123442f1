"""Where PyTorch is not installed, every kind that needs it says so in one line, and how to install it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from foreword.kinds import KINDS


@pytest.mark.parametrize("home", sorted({kind.home for kind in KINDS.values() if kind.network}))
def test_a_network_without_torch_names_the_extra(home: str) -> None:
    code = f"import sys; sys.modules['torch'] = None; from foreword.kinds import resolve; resolve({home!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "MissingExtraError" in done.stderr.splitlines()[-1]
    assert "needs torch: pip install" in done.stderr.splitlines()[-1]
