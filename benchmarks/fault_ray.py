"""Clusters that lose something: a worker, a node, a node's network or their head, while they filter, count or train.

Four nodes on this machine, each in a network namespace (``ray_hosts.py``). A command with ``--ray`` runs on the head,
and something is lost within three seconds of its first task. A lost worker or node must change nothing. When the head
is lost the command ends, and is given again to a new cluster. What comes of it must be, byte for byte, what the command
makes without ``--ray``. The last command counts so much text that the object stores write to disk.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import kill
from pathlib import Path

from benchmarks.fault_disk import Fault
from benchmarks.fault_kills import files_of, texts
from benchmarks.ray_hosts import PORT, Hosts, hosts

LOSSES = ("a worker is lost", "a node is lost", "a node is cut off", "the head is lost")
NODES = 4
MOST = 600.0
"""Seconds that a command may take."""
WITHIN = 3.0
"""Seconds after the first task within which something is lost."""


@dataclass(frozen=True, slots=True)
class Job:
    """A command, without the path of what it writes. spills: whether its objects are more than the stores can hold."""

    name: str
    words: list[str]
    spills: bool = False


def ray_faults(folder: Path, times: int = 6, only: Sequence[str] = ()) -> Iterator[Fault]:
    """Cause each loss in each command some times; a third as often where it takes a minute. only: names of jobs."""
    folder.mkdir(parents=True)
    with hosts(NODES) as machines:
        for job in _jobs(folder):
            if only and job.name not in only:
                continue
            plain = [sys.executable, "-m", "foreword", *job.words, str(folder / "plain" / "out")]
            (folder / "plain").mkdir(exist_ok=True)
            subprocess.run(plain, check=True, capture_output=True)
            whole = files_of(folder / "plain")
            for loss in LOSSES:
                yield _lost(job, loss, folder, machines, whole, -(-times // 3) if job.spills else times)
            shutil.rmtree(folder / "plain")


def _lost(job: Job, loss: str, folder: Path, machines: Hosts, whole: dict[str, bytes], times: int) -> Fault:
    """Cause one loss some times, and compare what the command made."""
    fault, spilled = Fault(f"{job.name}: {loss}"), 0
    rng = random.Random(fault.name)
    for _ in range(times):
        machines.start()
        problem = _lose(job, loss, folder / "ray", machines, rng, whole)
        spilled += any(host.has_spilled() for host in machines)
        fault.tried += problem != NOT_STRUCK
        fault.found += [problem] if problem not in (None, NOT_STRUCK) else []
        if job.spills:  # what was spilled is counted once
            machines.stop()
    fault.note = f"{spilled} times with objects on disk" if job.spills else ""
    return fault


NOT_STRUCK = "it had ended"


def _jobs(folder: Path) -> Iterator[Job]:
    (folder / "web").mkdir()
    for number in range(12):
        (folder / "web" / f"{number}.txt").write_text("".join(f"{text}\n" for text in texts(4000)))
    (folder / "small.txt").write_text("".join(f"{text}\n" for text in texts(150)))
    web, small, long, lm = (str(folder / name) for name in ("web", "small.txt", "long.txt", "lm"))
    subprocess.run(
        [sys.executable, "-m", "foreword", "train", "ngram", small, "-o", lm], check=True, capture_output=True
    )
    sizes = ["--set", "embedding=4", "--set", "hidden=4", "--set", "batch=4", "--set", "epochs=2"]
    yield Job("filter", ["filter", lm, web, "--keep-percentile", "50"])
    yield Job("counting", ["train", "ngram", web, "--overwrite", "-o"])
    yield Job("training", ["train", "gru", small, *sizes, "--device", "cpu", "--threads", "1", "--resume", "-o"])
    _write_long_text(folder / "long.txt")
    yield Job("counting much", ["train", "ngram", long, "--overwrite", "-o"], spills=True)


def _write_long_text(path: Path, words: int = 10_000_000) -> None:
    """Write words that hardly ever follow each other twice, so that nearly every window is a new one."""
    rng = random.Random(5)
    with path.open("w") as file:
        for _ in range(words // 20):
            file.write(" ".join([f"w{number}" for number in rng.choices(range(20_000), k=20)]) + "\n")


def _lose(job: Job, loss: str, out: Path, machines: Hosts, rng: random.Random, whole: dict[str, bytes]) -> str | None:
    """Run a command on a cluster and take something from it; what is wrong, if anything."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    command = _begun(job, out, machines)
    while command.poll() is None and not any(host.workers() for host in machines):
        time.sleep(0.05)
    time.sleep(rng.uniform(0.0, WITHIN))
    if command.poll() is None:
        _strike(machines, loss, rng, command.pid)
    else:
        return NOT_STRUCK
    status = _ended(command)
    if loss == LOSSES[-1]:
        machines.stop()
        machines.start()
        status = _ended(_begun(job, out, machines))
    if status:
        return f"status {status}: {_last_words(out.parent / 'said')!r}"
    return None if files_of(out) == whole else "other bytes"


def _begun(job: Job, out: Path, machines: Hosts) -> subprocess.Popen[bytes]:
    at = job.words.index("-o") if "-o" in job.words else len(job.words)
    head = machines[0]
    cluster = ["--ray", f"{head.address}:{PORT}"]
    words = [sys.executable, "-m", "foreword", *job.words[:at], *cluster, *job.words[at:], str(out / "out")]
    with (out.parent / "said").open("wb") as said:
        return head.begin(words, said.fileno())


def _ended(command: subprocess.Popen[bytes]) -> int:
    try:
        return command.wait(MOST)
    except subprocess.TimeoutExpired:
        command.kill()
        return command.wait()


def _last_words(path: Path) -> str:
    """Return the line of the command itself, and the end of what Ray wrote around it."""
    lines = path.read_text("utf-8", "replace").splitlines()
    ours = [line for line in lines if line.startswith("foreword:")]
    return " … ".join([*ours[-1:], " ".join(lines[-2:])])[:600]


def _strike(machines: Hosts, loss: str, rng: random.Random, command: int) -> None:
    """Cause a loss. command: the process that must not be killed with the head it runs on."""
    head, *others = machines
    match loss:
        case "a worker is lost":
            if workers := [number for host in machines for number in host.workers()]:
                with suppress(ProcessLookupError):
                    kill(rng.choice(workers), signal.SIGKILL)
        case "a node is lost":
            rng.choice(others).kill()
        case "a node is cut off":
            rng.choice(others).cut_off()
        case _:
            head.kill(spare=command)
