"""What all tests share: Ctrl-C that works, the order of the files, garbage collection, random numbers, one browser."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import chain, groupby, zip_longest
from pathlib import Path
from typing import Any

import pytest

from foreword.errors import MissingExtraError

TESTS = Path(__file__).parent
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


LONG_FOLDERS = {"claims", "cluster", "docs", "lab", "release"}
"""Folders whose tests train networks, start clusters and browsers, or build sites: ``make test-long`` runs them."""


def pytest_configure() -> None:
    """Restore Ctrl-C where it is ignored, as a shell does for what it starts in the background.

    Processes that tests start inherit what is ignored, and tests that interrupt them would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exempt all modules and tests from garbage collection, for none of them ever is garbage.

    Visiting them took 1.8 of the 12 CPU seconds in which a process collects the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of long folders, skip those of real data where there is none, and mix the order of the files.

    Files of the first half and of the second are taken in turn: neighbours need the same kernels, and two processes
    that begin with neighbours would both compile them; and a cluster or a browser that one process waits for does not
    hold up both.
    """
    for item in items:
        if LONG_FOLDERS.intersection(item.path.relative_to(TESTS).parts):
            item.add_marker("long")
        if item.get_closest_marker("data") and not os.environ.get("FOREWORD_DATA"):
            item.add_marker(pytest.mark.skip(reason="$FOREWORD_DATA does not say where real data is"))
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    half = -(-len(files) // 2)
    nothing: list[pytest.Item] = []
    in_turn = chain.from_iterable(zip_longest(files[:half], files[half:], fillvalue=nothing))
    items[:] = chain.from_iterable(in_turn)


NO_TORCH = "torch is not installed"


class WithoutTorch(pytest.Module):
    """A file of tests that is skipped where it imports torch, which is not installed."""

    def collect(self) -> Any:
        try:
            return super().collect()
        except Exception as error:
            if "torch" in str(error):
                pytest.skip(NO_TORCH, allow_module_level=True)
            raise


if find_spec("torch") is None:  # an optional dependency, without wheels for every version of Python

    def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
        module: pytest.Module = WithoutTorch.from_parent(parent, path=module_path)
        return module

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Skip a test that needs torch on its way."""
        report = yield
        if (
            call.excinfo
            and call.excinfo.errisinstance((ImportError, MissingExtraError))
            and "torch" in str(call.excinfo.value)
        ):
            report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {NO_TORCH}")
        return report


@pytest.fixture(autouse=True)
def same_random_numbers() -> None:
    """Begin every test with the same random numbers of torch, for tests that draw some without a generator."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine: install Debian's, or set $CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()
