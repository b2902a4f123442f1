"""Clusters that lose something: a worker, a node, or their head, in the middle of filtering, counting and training.

Four nodes on this machine, with the smallest object stores that Ray allows. A command with ``--ray`` runs in a process
of its own, and something is killed within three seconds of its first task. A lost worker or node must change nothing;
when the head is lost the command ends, and is given again to a new cluster. What comes of it must be, byte for byte,
what the command makes without ``--ray``.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.fault_disk import Fault
from benchmarks.fault_kills import children_of, files_of, texts

STORE = 80 << 20
LOSSES = ("a worker", "a node", "the head")
HEALTH = {"initial_delay_ms": 0, "period_ms": 1000, "failure_threshold": 5}
MOST = 600.0
"""Seconds that a command may take."""


def ray_faults(folder: Path, times: int = 6, nodes: int = 4) -> Iterator[Fault]:
    """Cause each loss in each command some times."""
    folder.mkdir(parents=True)
    for name, words in _commands(folder).items():
        plain = [sys.executable, "-m", "foreword", *words, str(folder / "plain" / "out")]
        (folder / "plain").mkdir(exist_ok=True)
        subprocess.run(plain, check=True, capture_output=True)
        whole = files_of(folder / "plain")
        for loss in LOSSES:
            fault = Fault(f"{name}: {loss} is lost")
            rng = random.Random(fault.name)
            for _ in range(times):
                problem = _lose(words, loss, folder / "ray", nodes, rng, whole)
                fault.tried += problem != NOT_STRUCK
                fault.found += [problem] if problem not in (None, NOT_STRUCK) else []
            yield fault
        shutil.rmtree(folder / "plain")


NOT_STRUCK = "it had ended"


def _commands(folder: Path) -> dict[str, list[str]]:
    """Each without its last word, the path of what it writes."""
    (folder / "web").mkdir()
    for number in range(12):
        (folder / "web" / f"{number}.txt").write_text("".join(f"{text}\n" for text in texts(4000)))
    (folder / "small.txt").write_text("".join(f"{text}\n" for text in texts(150)))
    web, small, lm = (str(folder / name) for name in ("web", "small.txt", "lm"))
    subprocess.run(
        [sys.executable, "-m", "foreword", "train", "ngram", small, "-o", lm], check=True, capture_output=True
    )
    sizes = ["--set", "embedding=4", "--set", "hidden=4", "--set", "batch=4", "--set", "epochs=2"]
    return {
        "filter": ["filter", lm, web, "--keep-percentile", "50"],
        "counting": ["train", "ngram", web, "--overwrite", "-o"],
        "training": ["train", "gru", small, *sizes, "--device", "cpu", "--threads", "1", "--resume", "-o"],
    }


def _lose(
    words: list[str], loss: str, out: Path, nodes: int, rng: random.Random, whole: dict[str, bytes]
) -> str | None:
    """Run a command on a cluster and take something from it; what is wrong, if anything."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    with _cluster(nodes) as cluster:
        command = _begun(words, out, cluster.address)
        _wait_for_work(cluster, command)
        time.sleep(rng.uniform(0.0, 3.0))
        struck = command.poll() is None
        if struck:
            _strike(cluster, loss, rng)
        status = _ended(command)
        if not struck:
            return NOT_STRUCK
    if loss == "the head":
        with _cluster(nodes) as cluster:
            status = _ended(_begun(words, out, cluster.address))
    if status:
        return f"status {status}: {(out.parent / 'said').read_text()[-300:]!r}"
    return None if files_of(out) == whole else "other bytes"


def _begun(words: list[str], out: Path, address: str) -> subprocess.Popen[bytes]:
    at = words.index("-o") if "-o" in words else len(words)
    command = [sys.executable, "-m", "foreword", *words[:at], "--ray", address, *words[at:], str(out / "out")]
    with (out.parent / "said").open("wb") as said:
        return subprocess.Popen(command, stdout=said, stderr=said, stdin=subprocess.DEVNULL)


def _ended(command: subprocess.Popen[bytes]) -> int:
    try:
        return command.wait(MOST)
    except subprocess.TimeoutExpired:
        command.kill()
        return command.wait()


@contextmanager
def _cluster(nodes: int) -> Iterator[Any]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster

        logging.getLogger("ray").setLevel(logging.ERROR)
        quick = {
            "health_check_initial_delay_ms": 0,
            "health_check_period_ms": 1000,
            "health_check_failure_threshold": 5,
        }
        head = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False, "_system_config": quick}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            for _ in range(nodes - 1):
                cluster.add_node(num_cpus=1, object_store_memory=STORE)
            yield cluster
        finally:
            with suppress(Exception):
                cluster.shutdown()  # type: ignore[no-untyped-call]


def _workers(cluster: Any) -> list[int]:
    """The processes of all nodes that have something to do."""
    found = []
    for node in cluster.list_all_nodes():
        with suppress(OSError, KeyError, IndexError):
            raylet = node.all_processes["raylet"][0].process.pid
            for child in children_of(raylet):
                words = Path(f"/proc/{child}/cmdline").read_bytes()
                if words.startswith(b"ray::") and b"IDLE" not in words:
                    found.append(child)
    return found


def _wait_for_work(cluster: Any, command: subprocess.Popen[bytes]) -> None:
    while command.poll() is None and not _workers(cluster):
        time.sleep(0.05)


def _strike(cluster: Any, loss: str, rng: random.Random) -> None:
    if loss == "a worker":
        if workers := _workers(cluster):
            with suppress(ProcessLookupError):
                os.kill(rng.choice(workers), signal.SIGKILL)
    elif loss == "a node":
        others = [node for node in cluster.list_all_nodes() if node != cluster.head_node]
        cluster.remove_node(rng.choice(others), allow_graceful=False)
    else:
        cluster.remove_node(cluster.head_node, allow_graceful=False)
