"""A cluster of several nodes on this machine, made once for all tests of Ray; they skip where Ray is absent."""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import foreword

__all__ = ["foreword"]

MEMORY = 80 << 20
"""Of each node's object store."""

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"] = "0.2"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A head with two cores and no other node; tests add nodes that they will remove."""
    pytest.importorskip("ray", reason="Ray is not installed")
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


class Ambush(threading.Thread):
    """Waits until a process of the cluster has a file open whose path has ``word`` in it, and then does the deed.

    The process is killed; given a node, only its processes count, and the node is removed.
    """

    def __init__(self, cluster: Any, word: str, node: Any = None) -> None:
        super().__init__(daemon=True)
        self.cluster, self.word, self.node = cluster, word, node
        self.struck: int | None = None

    def run(self) -> None:
        until = time.monotonic() + 40
        while self.struck is None and time.monotonic() < until:
            for process in Path("/proc").glob("[0-9]*"):
                if self._is_prey(process):
                    self.struck = int(process.name)
                    if self.node is None:
                        os.kill(self.struck, 9)
                    else:
                        self.cluster.remove_node(self.node, allow_graceful=False)
                    break
            time.sleep(0.002)

    def _is_prey(self, process: Path) -> bool:
        try:
            if not process.joinpath("cmdline").read_bytes().startswith(b"ray::"):
                return False
            if self.node is not None:
                parent = int(process.joinpath("stat").read_text().rsplit(")")[1].split()[1])
                if parent not in [each.process.pid for each in self.node.all_processes["raylet"]]:
                    return False
            return any(self.word in str(each.readlink()) for each in process.joinpath("fd").iterdir())
        except OSError:
            return False
