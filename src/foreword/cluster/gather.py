"""Waiting for what tasks give, and telling in one line what went wrong with one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from foreword.cluster.connect import ray_module
from foreword.errors import ForewordError
from foreword.protocols import Meter


def result_of(ref: Any) -> Any:
    """What a task gave, or raise what it raised: without the trace of another process around it."""
    ray = ray_module()
    try:
        return ray.get(ref)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, ForewordError):
            raise cause from error
        raise
    except ray.exceptions.RayError as error:
        raise ForewordError(f"Ray gave up: {lost(error)}") from error


def lost(error: BaseException) -> str:
    """Why Ray gave a task up, after its own retries: its first line says it."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def wait_for_all(refs: Sequence[Any], meter: Meter | None, phase: str) -> None:
    """Until all are there, or one has failed, which is raised at once."""
    ray, left = ray_module(), list(refs)
    while left:
        # Many at a time: asked for one, Ray would look through all that are left for each.
        finished, left = ray.wait(left, num_returns=min(len(left), 100), timeout=1.0)
        for ref in finished:
            result_of(ref)
        if meter:
            meter(phase, len(refs) - len(left), len(refs))


def stand_in(folder: str) -> None:
    """Work in the folder that the program was started in, so that names mean the same and messages say them."""
    with suppress(OSError):  # there need not be such a folder here, where all names are addresses
        os.chdir(folder)
