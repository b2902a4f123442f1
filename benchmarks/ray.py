"""Filtering on Ray's local cluster: two workers against one."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.data import megabytes, scratch_folder
from benchmarks.filter import LABEL, LEAST, make_web, model_of_languages
from benchmarks.measure import PAIRS, Pairs
from benchmarks.progress import say
from benchmarks.quiet import MOST_OTHER_WORK
from benchmarks.report import Row, compared
from foreword.cluster.connect import ray_module
from foreword.cluster.filtering import filter_on_ray
from foreword.filtering import Filtering

TITLE = "Ray"
HOW = (
    "A folder of JSONL by lid.176.ftz, as tasks of a Ray cluster on this machine, with one (peer) and with two at a "
    "time; the cluster and its workers run already, and the results are the same. Time is that of the clock on the "
    "wall in pairs during which nothing else ran. Where they were few, it is CPU time: of all workers with one task at "
    "a time, of the busiest with two, which is what the wall would show on free cores, but for what Ray itself takes."
)

BAR, SHARDS, ENOUGH = 1.7, 32, 3


def run(quick: bool) -> list[Row]:
    web = shards_of(make_web((20 if quick else 200) * 1_000_000))
    ray = ray_module()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        return [two_beside_one(web, 2 if quick else PAIRS)]
    finally:
        ray.shutdown()


def shards_of(web: Path) -> Path:
    """Split the file into parts of about the same size, each twice: no worker waits long for the other's last one."""
    folder = web.with_name("shards")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    lines = web.read_bytes().splitlines(keepends=True)
    cuts = [len(lines) * place // SHARDS for place in range(SHARDS + 1)]
    for number, (first, last) in enumerate(pairwise(cuts)):
        for copy in "ab":
            (folder / f"{number:02}{copy}.jsonl").write_bytes(b"".join(lines[first:last]))
    return folder


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds on the wall, CPU seconds of the longest road, and how many cores other work kept busy meanwhile."""

    wall: float
    cpu: float
    others: float


def two_beside_one(web: Path, pairs: int) -> Row:
    wanted = filtered(web, 1)[1]
    for processes in (2, 1):  # both workers have the model open and their kernels loaded
        if filtered(web, processes)[1] != wanted:
            raise AssertionError("ray: two workers give other bytes than one")
    taken = []
    for number in range(1, pairs + 1):
        taken.append((filtered(web, 2)[0], filtered(web, 1)[0]))
        two, one = taken[-1]
        say(
            f"ray: pair {number} of {pairs}: {two.wall:.2f} s against {one.wall:.2f} s, by CPU time "
            f"{two.cpu:.2f} s against {one.cpu:.2f} s, {max(two.others, one.others):.1f} cores busy otherwise"
        )
    size = sum(map(megabytes, web.iterdir()))
    quiet = [pair for pair in taken if max(each.others for each in pair) <= MOST_OTHER_WORK]
    if len(quiet) >= min(ENOUGH, pairs):
        found, job = Pairs([two.wall for two, _ in quiet], [one.wall for _, one in quiet]), "wall time"
    else:
        found = Pairs([two.cpu for two, _ in taken], [one.cpu for _, one in taken], len(taken) - len(quiet))
        job = "CPU time"
    return compared(f"two workers, JSONL, lid.176.ftz, {job}", "one worker", found, bar=BAR, size=size)


def filtered(web: Path, processes: int) -> tuple[Taken, dict[str, bytes]]:
    out = scratch_folder() / "kept"
    shutil.rmtree(out, ignore_errors=True)
    rules = Filtering([("", str(model_of_languages()))], keep=[f"label={LABEL} and probability>{LEAST}"])
    with _measured(processes) as taken:
        filter_on_ray(str(web), out, rules, processes=processes)
    return taken[0], {path.name: path.read_bytes() for path in sorted(out.glob("*.jsonl"))}


@contextmanager
def _measured(processes: int) -> Iterator[list[Taken]]:
    taken: list[Taken] = []
    before, all_before, began = _cluster(), _all(), time.perf_counter()
    yield taken
    wall, after, all_after = time.perf_counter() - began, _cluster(), _all()
    spent = {pid: seconds - before.get(pid, (False, 0.0))[1] for pid, (_, seconds) in after.items()}
    workers = [spent[pid] for pid, (is_worker, _) in after.items() if is_worker]
    cpu = max(sum(workers) / processes, max(workers))
    taken.append(Taken(wall, cpu, max(0.0, all_after - all_before - sum(spent.values())) / wall))


def _cluster() -> dict[int, tuple[bool, float]]:
    """Of this process and all that it or its children started: whether it is a worker, and its CPU seconds."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    workers = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text("utf-8", "replace").rsplit(")", 1)[1].split()
            if (folder / "cmdline").read_bytes().startswith(b"ray::"):
                workers.add(int(folder.name))
        except OSError:  # it has ended
            continue
        parents[int(folder.name)] = int(fields[1])
        seconds[int(folder.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def is_ours(pid: int) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    return {pid: (pid in workers, spent) for pid, spent in seconds.items() if is_ours(pid)}


def _all() -> float:
    """CPU seconds that everyone has taken since the machine started."""
    user, nice, system, _idle, _waiting, *rest = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")
