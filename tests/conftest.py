"""The order of the files, and one browser for all tests of a process that want one: two cannot run side by side."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import chain, groupby, zip_longest
from typing import Any

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files of the first half and of the second in turn. Neighbours need the same kernels, and two processes that begin
    with neighbours would both compile them; and a cluster or a browser that is waited for does not hold up two.
    """
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    half = -(-len(files) // 2)
    nothing: list[pytest.Item] = []
    in_turn = chain.from_iterable(zip_longest(files[:half], files[half:], fillvalue=nothing))
    items[:] = chain.from_iterable(in_turn)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine: install Debian's, or set $CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()
