"""Where tests find real data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def real(name: str) -> Path:
    """Return a file or folder of $FOREWORD_DATA, or skip the test if it is not there."""
    folder = os.environ.get("FOREWORD_DATA")
    if not folder or not Path(folder, name).exists():
        pytest.skip(f"$FOREWORD_DATA/{name} is not there")
    return Path(folder, name)
