"""``foreword filter`` on Ray: every part of a file is one task.

A task does what a process of the one-machine run does: it reads a part, writes what passes into the hidden folder of
OUT, and returns the tally. The program that was started keeps the ledger and puts finished shards in place, so that a
run on a cluster and one without are the same run, and either resumes the other.

Tasks, and not a Ray Dataset of documents: a Dataset is Arrow rows, and a row of JSON that has been through Arrow is
other bytes (order of members, spelling of numbers, white space), the rows of a shard would come in blocks of another
size, and nothing would say which shard is finished. Measured as a Dataset of parts, with two cores and eight parts, it
kept 1.2 cores busy; tasks kept two. ``rows.py`` has the maps for those who work with Datasets.

IN, OUT and the models have to lie where every node sees them: on a shared file system, or IN and OUT at an address; for
OUT there, the scratch folder has to be shared.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Generator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from foreword.cluster.connect import change_folder, cluster_cores, connected, ray_module
from foreword.errors import InputError, SettingError, reason_of
from foreword.filtering.models import fingerprint
from foreword.filtering.run import OnError, Report, filter_files
from foreword.filtering.settings import Filtering
from foreword.filtering.shards import OpenFilter
from foreword.filtering.summary import Tally
from foreword.filtering.worker import Done, ShardTask, perform
from foreword.protocols import Meter
from foreword.text.files import ADDRESS

AHEAD = 2
"""Tasks per core that are queued: no core waits for the next one, and autoscaling sees that there is more to do."""


def filter_on_ray(
    source: str,
    out: str | Path,
    filtering: Filtering,
    *,
    address: str | None = None,
    processes: int | None = None,
    on_error: OnError = "stop",
    restart: bool = False,
    meter: Meter | None = None,
    scratch: str | Path | None = None,
) -> Report:
    """Do what ``filter_files`` does, by tasks of the cluster at ``address``, see ``connected``.

    processes: how many tasks run at a time; None is as many as the cluster has cores.
    """
    if ADDRESS.match(str(out)) and scratch is None:
        raise SettingError("--ray and an address to write to: --scratch names a folder that all nodes see")
    ray_module()  # what is missing is reported at once, before a cluster is started
    for _, path in filtering.models:
        fingerprint(path)
    with connected(address) as ray:

        def perform_all(
            opened: OpenFilter, tasks: list[ShardTask], several: int, report: Callable[[int], None]
        ) -> Generator[Done, None, None]:
            return _performed(opened.filtering, tasks, processes, report)

        # More than one, so that foreign models are converted to a form that workers can map.
        several = max(2, processes or cluster_cores(ray))
        return filter_files(
            source, out, filtering, processes=several, on_error=on_error, restart=restart, meter=meter,
            perform=perform_all, scratch=scratch,
        )  # fmt: skip


def _performed(
    filtering: Filtering, tasks: list[ShardTask], processes: int | None, report: Callable[[int], None]
) -> Generator[Done, None, None]:
    ray = ray_module()
    work = ray.remote(_perform).options(num_cpus=1, scheduling_strategy="SPREAD")
    run, folder = uuid.uuid4().hex, os.getcwd()  # noqa: PTH109
    coming, running, read = iter(tasks), dict[Any, ShardTask](), 0
    try:
        while True:
            most = processes or AHEAD * cluster_cores(ray)
            for task in islice(
                coming, max(0, most - len(running))
            ):  # fewer may be allowed than are running: a node was lost
                running[work.remote(run, folder, filtering, task)] = task
            if not running:
                return
            finished, _ = ray.wait(list(running), num_returns=1)
            for ref in finished:
                done, size = _done(ref, running.pop(ref))
                read += size
                report(read)
                yield done
    finally:
        for ref in running:
            ray.cancel(ref, force=True)


def _done(ref: Any, task: ShardTask) -> tuple[Done, int]:
    ray = ray_module()
    try:
        done, size = ray.get(ref)
    except ray.exceptions.RayTaskError:  # no fault of the cluster
        raise
    except ray.exceptions.RayError as error:  # given up, after Ray's retries
        return Done(task, Tally(), f"{task.part.source}: {reason_of(error)}"), 0
    if done.problem is None and not _is_seen(task):
        problem = f"{task.path}: written by a node that this one does not share it with: OUT must lie where all see it"
        return Done(task, Tally(), problem, fatal=True), size
    return Done(task, done.tally, done.problem, done.fatal), size


def _is_seen(task: ShardTask) -> bool:
    """Return whether the result is visible here; listing the folder makes a network file system look again."""
    return task.path.is_file() or task.path.name in os.listdir(task.path.parent)  # noqa: PTH208


# On a worker


def _perform(run: str, folder: str, filtering: Filtering, task: ShardTask) -> tuple[Done, int]:
    """Perform a task; return its result, and how many bytes it read."""
    change_folder(folder)
    sizes: list[int] = []
    try:
        opened = _opened(run, filtering)
    except InputError as error:
        return Done(task, Tally(), f"{error} (models must lie where every node sees them)", fatal=True), 0
    return perform(opened, task, sizes.append), sum(sizes)


@lru_cache(maxsize=1)
def _opened(run: str, filtering: Filtering) -> OpenFilter:
    """Map the models, once per worker. run: another run may have put other models into the same folder."""
    return OpenFilter(filtering)
