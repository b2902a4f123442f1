"""A Ray cluster: one that runs already, or one on this machine for as long as the work takes."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from foreword.errors import ForewordError, MissingExtraError

LOCAL = "local"
"""The address of a cluster that is begun here and ends with the work."""


PATIENCE = 5.0
"""Seconds in which a cluster has to answer at its address."""


def ray_module() -> Any:
    """Ray, whose import takes half a second and which need not be installed."""
    # Ray tells its makers how it is used unless told otherwise; a command line that was asked to filter does not.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise MissingExtraError("ray", "ray", "--ray") from None
    return ray


@contextmanager
def connected(address: str | None = None) -> Iterator[Any]:
    """Ray, connected. A connection that is there already is used, and left as it is.

    address: HOST:PORT, ``auto``, or ``local``; None is what RAY_ADDRESS says, else ``local``. The program should run on
    a node of the cluster, for it hands out the work.
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
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ForewordError(f"--ray {address}: no Ray cluster answers there: {reason}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Ray itself would knock at a closed door for two minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host:  # local or auto, of which Ray knows more
        return
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()
    except (OSError, ValueError) as error:
        raise ForewordError(f"--ray {address}: no Ray cluster answers there: {error}") from error


def cluster_cores(ray: Any) -> int:
    """How many cores the cluster has now; one that grows by itself may have more later."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))
