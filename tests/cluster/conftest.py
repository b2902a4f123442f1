"""A cluster of several nodes on this machine, made once for a file of tests; they skip where Ray is absent."""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import foreword

__all__ = ["foreword"]

MEMORY = 80 << 20
"""Of each node's object store."""

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"] = "0.2"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head with two cores and no other node; tests add nodes that they will remove. It ends with the file: one that
    nobody asks for anything takes a tenth of a core all the same.
    """
    pytest.importorskip("ray", reason="Ray is not installed")
    if not Path("/proc/self").is_dir():
        pytest.skip("a process to be killed is looked for in /proc")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray
        from ray.cluster_utils import Cluster

        # A node that is gone is noticed within two seconds.
        quick = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 3}
        head = {"num_cpus": 2, "object_store_memory": MEMORY, "include_dashboard": False, "_system_config": quick}
        made = Cluster(initialize_head=True, head_node_args=head)
        ray.init(address=made.address, log_to_driver=False, logging_level=logging.ERROR)
        yield made
        ray.shutdown()
        made.shutdown()  # type: ignore[no-untyped-call]


@pytest.fixture
def victim(cluster: Any) -> Iterator[Any]:
    """Another node, with two cores."""
    node = cluster.add_node(num_cpus=2, object_store_memory=MEMORY)
    cluster.wait_for_nodes()
    yield node
    if node in cluster.list_all_nodes():
        cluster.remove_node(node)


def trap(folder: Path, node: Any = None, after: int = 0) -> Callable[[], None]:
    """What a task calls in the middle of its work: the first that does waits there until it is killed.

    node: only tasks on that node do, after so many others; those elsewhere wait until it has happened.
    """
    place, only = str(folder), None if node is None else node.node_id

    def step() -> None:
        caught = Path(place) / "caught"
        if only is not None:
            import ray

            if ray.get_runtime_context().get_node_id() != only:
                while not caught.exists():
                    time.sleep(0.02)
                return
        for number in range(after + 1):
            try:
                os.close(os.open(Path(place) / f"came-{number}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            if number == after:
                Path(place, "writing").write_text(str(os.getpid()))
                Path(place, "writing").rename(caught)
                time.sleep(300)
            return

    return step


class Ambush(threading.Thread):
    """Kills the process that was caught in a trap, or removes the node it is on."""

    def __init__(self, folder: Path, cluster: Any = None, node: Any = None) -> None:
        super().__init__(daemon=True)
        self.caught, self.cluster, self.node = folder / "caught", cluster, node
        self.struck: int | None = None

    def run(self) -> None:
        until = time.monotonic() + 120
        while not self.caught.exists() and time.monotonic() < until:
            time.sleep(0.01)
        if self.caught.exists():
            self.struck = int(self.caught.read_text())
            if self.node is None:
                os.kill(self.struck, 9)
            else:
                self.cluster.remove_node(self.node, allow_graceful=False)
