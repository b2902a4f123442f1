"""A Ray cluster, running already or started here for as long as the work takes, and the results of its tasks."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from foreword.errors import ForewordError, MissingExtraError, reason_of
from foreword.protocols import Meter

LOCAL = "local"
"""The address of a cluster that is started here and ends with the work."""

PATIENCE = 5.0
"""Seconds within which a cluster must answer at its address."""


def ray_module() -> Any:
    """Import Ray, which takes half a second and need not be installed."""
    # Ray reports its usage to its makers by default; a command that was asked to filter does not.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise MissingExtraError("ray", "ray", "--ray") from None
    return ray


@contextmanager
def connected(address: str | None = None) -> Iterator[Any]:
    """Connect to Ray. An existing connection is used, and left as it is.

    address: HOST:PORT, ``auto``, or ``local``; None is RAY_ADDRESS, else ``local``. The program should run on a node of
    the cluster, for it distributes the work.
    """
    ray = ray_module()
    if ray.is_initialized():
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS") or LOCAL
    _check_reachable(address)
    own: dict[str, Any] = {"include_dashboard": False} if address == LOCAL else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ForewordError(f"--ray {address}: no Ray cluster answers there: {reason_of(error)}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise an error if nothing listens at the address: Ray itself would try for two minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host:  # local or auto, of which Ray knows more
        return
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()
    except (OSError, ValueError) as error:
        raise ForewordError(f"--ray {address}: no Ray cluster answers there: {error}") from error


def cluster_cores(ray: Any) -> int:
    """Return the number of cores that the cluster has now; with autoscaling there may be more later."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


# --- results


def result_of(ref: Any) -> Any:
    """Return the result of a task, or raise what it raised, without the traceback of another process."""
    ray = ray_module()
    try:
        return ray.get(ref)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, ForewordError):
            raise cause from error
        raise
    except ray.exceptions.RayError as error:
        raise ForewordError(f"Ray failed: {reason_of(error)}") from error


def wait_for_all(refs: Sequence[Any], meter: Meter | None, phase: str) -> None:
    """Wait until all tasks are finished; raise the error of the first that fails at once."""
    ray, left = ray_module(), list(refs)
    while left:
        # Many at a time: asked for one, Ray would search all that are left for each.
        finished, left = ray.wait(left, num_returns=min(len(left), 100), timeout=1.0)
        for ref in finished:
            result_of(ref)
        if meter:
            meter(phase, len(refs) - len(left), len(refs))


def change_folder(folder: str) -> None:
    """Change to the folder in which the program was started, so that relative names mean the same."""
    with suppress(OSError):  # the folder need not exist here if all names are addresses
        os.chdir(folder)
