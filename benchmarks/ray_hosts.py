"""A Ray cluster of several hosts on one machine, each host in a network namespace of its own.

The namespaces are joined by a bridge, so that the nodes reach each other by address and over TCP alone; the file system
is shared, as between machines that mount one disk. A host can lose a worker, its power or its network cable. Making
namespaces takes the rights of root and ``ip`` of iproute2.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

STORE = 80 << 20
"""Bytes of a node's object store: about the least that Ray allows."""

SWITCH, CARD = "foreword-switch", "eth0"
PORT = 6379
AGENTS = (b"DashboardAgent", b"RuntimeEnvAgent", b"TrainController")
"""Processes that look like workers. Ray gives up the whole node when it loses one of the first two, and the training
with the third."""

PATIENCE, STARTS = 60.0, 3
"""Seconds within which a node must have started, and how often that is tried: Ray may give up on a busy machine."""

QUICKLY = {
    "RAY_USAGE_STATS_ENABLED": "0", "RAY_health_check_initial_delay_ms": "0", "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000", "RAY_health_check_failure_threshold": "8",
    "RAY_grpc_client_keepalive_time_ms": "10000", "RAY_grpc_client_keepalive_timeout_ms": "5000",
}  # fmt: skip
"""A node that does not answer is lost after seconds. By Ray's own settings that takes half a minute, and what was asked
of a worker whose network is cut, where no connection is ever refused, is given up after seven minutes."""


class Host:
    """One namespace with an address and, while it is up, a node of the cluster."""

    def __init__(self, number: int, folder: Path) -> None:
        self.name = f"foreword-{number}"
        self.address = f"10.213.0.{number + 1}"
        self.folder = folder / str(number)
        self.is_cut_off = False

    def begin(self, words: Sequence[str], output: int) -> subprocess.Popen[bytes]:
        """Start a program on this host."""
        command = ["ip", "netns", "exec", self.name, *words]
        environment = {**os.environ, **QUICKLY}
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)

    def join(self, head: Host) -> None:
        """Start a node of the cluster of ``head``, which may be this host."""
        _ip("-n", self.name, "link", "set", CARD, "up")
        self.is_cut_off = False
        role = ["--head", f"--port={PORT}", "--include-dashboard=false"]
        words = [
            str(Path(sys.executable).parent / "ray"), "start", f"--node-ip-address={self.address}", "--num-cpus=1",
            f"--object-store-memory={STORE}", f"--temp-dir={self.folder}", "--disable-usage-stats",
            *(role if head is self else [f"--address={head.address}:{PORT}"]),
        ]  # fmt: skip
        for _ in range(STARTS):
            self.kill()
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.begin(words, subprocess.DEVNULL).wait(PATIENCE):
                return
        raise RuntimeError(f"ray start on {self.name} failed {STARTS} times")

    def has_node(self) -> bool:
        """Return whether a node of a cluster runs here."""
        return any(_command_line(number).split(b"\0")[0].endswith(b"/raylet") for number in self.processes())

    def processes(self) -> list[int]:
        """Return the numbers of all processes on this host; none where it has not been made."""
        with suppress(subprocess.CalledProcessError):
            return [int(number) for number in _ip("netns", "pids", self.name).split()]
        return []

    def workers(self) -> list[int]:
        """Return the processes that run a task of Ray's."""
        return [number for number in self.processes() if _is_busy(number)]

    def kill(self, spare: int | None = None) -> None:
        """Kill all processes at once, except one: as when the power goes."""
        for number in self.processes():
            if number != spare:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)

    def cut_off(self) -> None:
        """Take the host from the network; its processes run on."""
        _ip("-n", self.name, "link", "set", CARD, "down")
        self.is_cut_off = True

    def has_spilled(self) -> bool:
        """Return whether the node has written objects to disk that its store had no memory for."""
        logs = self.folder.glob("session_2*/logs/raylet.*")
        return any("Spilled" in log.read_text("utf-8", "replace") for log in logs)


class Hosts(list[Host]):
    """The hosts, the head first."""

    def start(self) -> None:
        """Start a node on each host that has none, or was cut off from its cluster."""
        for host in self:
            if host.is_cut_off or not host.has_node():
                host.join(self[0])

    def stop(self) -> None:
        """Kill every process on every host."""
        for host in self:
            host.kill()


@contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """Make ``count`` hosts, and remove them with all that runs there."""
    if os.geteuid() or shutil.which("ip") is None:
        raise SystemExit("hosts in network namespaces take the rights of root and ip (iproute2)")
    folder = Path(tempfile.mkdtemp(prefix="fw-"))  # short: names of sockets have at most 107 bytes
    made = Hosts(Host(number, folder) for number in range(count))
    _remove(made)
    try:
        _ip("netns", "add", SWITCH)
        _ip("-n", SWITCH, "link", "add", "bridge", "type", "bridge")
        _ip("-n", SWITCH, "link", "set", "bridge", "up")
        for number, host in enumerate(made):
            _ip("netns", "add", host.name)
            _ip("link", "add", CARD, "netns", host.name, "type", "veth", "peer", f"port{number}", "netns", SWITCH)
            _ip("-n", SWITCH, "link", "set", f"port{number}", "master", "bridge", "up")
            _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", CARD)
            for card in (CARD, "lo"):
                _ip("-n", host.name, "link", "set", card, "up")
        yield made
    finally:
        made.stop()
        _remove(made)
        shutil.rmtree(folder, ignore_errors=True)


def _remove(made: Hosts) -> None:
    for name in (*(host.name for host in made), SWITCH):
        with suppress(subprocess.CalledProcessError):
            _ip("netns", "delete", name)


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


def _command_line(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def _is_busy(process: int) -> bool:
    words = _command_line(process)
    return words.startswith(b"ray::") and not any(word in words for word in (b"IDLE", *AGENTS))
