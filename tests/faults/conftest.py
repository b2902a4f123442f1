from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.faults import scratch


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder in memory, where it takes no time to put something on the disk, and which any user can reach."""
    with scratch() as folder:
        yield folder
