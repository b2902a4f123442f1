"""A whole run: files found, work given out, shards put in place, and what was seen added up."""

from __future__ import annotations

import glob
import hashlib
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np

from foreword.errors import InputError, SettingError
from foreword.filtering.columns import Column
from foreword.filtering.ledger import Ledger
from foreword.filtering.output import joined, written
from foreword.filtering.percentiles import best_shares, values_in
from foreword.filtering.rules import Thresholds, check_rule, parse_rule, read_table, separate
from foreword.filtering.scoring import PIECE_BYTES, label_column, main_column
from foreword.filtering.shards import BUCKET, BUCKETS, Format, Judging, Part, format_of, lower_is_better, parts_of
from foreword.filtering.summary import Tally
from foreword.filtering.worker import Done, Perform, Reading, Task, end_if_imported, perform_all
from foreword.native.parallel import cores
from foreword.protocols import Meter
from foreword.storage.folder import load, save
from foreword.text.block import BLOCK_BYTES
from foreword.text.files import ADDRESS, SourceFile, find_files
from foreword.text.utf8 import Errors

OnError = Literal["stop", "skip"]

LONGEST = 16 << 20
"""A row of more bytes is an error, for a process has to hold it several times."""


@dataclass(frozen=True, slots=True)
class Filtering:
    """What is done to every document.

    models: paths, each with a name or "" before it; names go before the columns' names, and where there are several
    models each needs one. keep: rules, see ``rules.py``; keep_percentile: the share of what passes them that is kept.
    buckets: two percentages for head and middle, or "table" for two thresholds a label from the table.
    by: the column that percentages are of; each_label: whether they are taken label by label.
    score_only: keep all rows and write the scores; with_scores: write them beside what is kept.
    """

    models: Sequence[tuple[str, str]]
    keep: Sequence[str] = ()
    keep_percentile: float | None = None
    buckets: tuple[float, float] | Literal["table"] | None = None
    by: str | None = None
    each_label: bool = False
    table: str | None = None
    score_only: bool = False
    with_scores: bool = False
    field: str = "text"
    format: Format | None = None
    errors: Errors = "strict"
    longest: int = LONGEST
    piece_bytes: int = PIECE_BYTES

    def __post_init__(self) -> None:
        if not self.models:
            raise SettingError("nothing to score with: no model was named")
        names = [name for name, _ in self.models]
        if len(names) > 1 and (len(set(names)) < len(names) or "" in names):
            raise SettingError("several models need different names: --model NAME=PATH for each")
        if self.score_only and (self.keep or self.keep_percentile is not None):
            raise SettingError("--score-only keeps all rows, so there is nothing for --keep to say")
        if not (self.score_only or self.keep or self.keep_percentile is not None or self.buckets):
            raise SettingError("what is to be done? Give --keep, --keep-percentile, --buckets or --score-only")
        if self.keep_percentile is not None and not 0 < self.keep_percentile <= 100:
            raise SettingError(f"--keep-percentile {self.keep_percentile:g}: expected more than 0 and at most 100")
        if self.keep_percentile is not None and self.buckets:
            raise SettingError("--keep-percentile and --buckets exclude each other: --keep bucket=head keeps a bucket")
        if isinstance(self.buckets, tuple) and not 0 < self.buckets[0] < self.buckets[1] < 100:
            raise SettingError("--buckets: expected two percentages, the smaller first, such as 30,60")
        if self.buckets == "table" and self.table is None:
            raise SettingError("--buckets table: which table? Give it by --table")
        if self.longest < BLOCK_BYTES or self.piece_bytes < 1024:
            raise SettingError(f"--longest takes {BLOCK_BYTES >> 20}M at least, --piece 1K")

    @property
    def two_passes(self) -> bool:
        return self.keep_percentile is not None or isinstance(self.buckets, tuple)

    @property
    def percents(self) -> tuple[float, ...]:
        return self.buckets if isinstance(self.buckets, tuple) else (self.keep_percentile or 100.0,)


@dataclass(slots=True)
class Report:
    """tally: of all that is finished, earlier runs included. problems: what was skipped, a line each.

    seconds: what this run took; read_before: bytes that earlier runs had done; thresholds: what percentages came to.
    """

    tally: Tally
    shards: int
    problems: list[str]
    seconds: float
    read_before: int
    thresholds: dict[str, list[float]] = field(default_factory=dict)


def filter_files(
    source: str,
    out: str | Path,
    filtering: Filtering,
    *,
    processes: int | None = None,
    on_error: OnError = "stop",
    restart: bool = False,
    meter: Meter | None = None,
    perform: Perform = perform_all,
    scratch: str | Path | None = None,
) -> Report:
    """Filter or score ``source``, a file, folder, glob or address, into the folder ``out``, or an address.

    What an earlier run with the same settings has finished is not done again. Where ``processes`` is more than one,
    they are spawned, so that a script has to be importable, as ``multiprocessing`` says. perform: who does the parts;
    ``foreword.cluster.filtering`` has another. scratch: where shards are made that go to an address; None is a
    folder among the temporary ones.
    """
    if processes != 1:
        end_if_imported()
    files = find_files(source)
    shards = [Shard.of(number, file, source, filtering.format) for number, file in enumerate(files)]
    check_apart(source, files, str(out))
    ledger = _ledger(str(out), _settings(filtering), restart, scratch)
    finished = False
    try:
        report = _Run(filtering, shards, ledger, processes or cores(), on_error, meter, perform).all()
        finished = not report.problems
        return report
    finally:
        ledger.close(finished)


def _ledger(out: str, settings: dict[str, Any], restart: bool, scratch: str | Path | None) -> Ledger:
    if ADDRESS.match(out):
        from foreword.filtering.address import AddressLedger

        return AddressLedger(out, settings, restart, scratch)
    if scratch is not None:
        raise SettingError("--scratch is for an address: shards of a folder are made in the folder")
    return Ledger(out, settings, restart)


@dataclass(frozen=True, slots=True)
class Shard:
    """A file to read, what it becomes, and its parts. state: what shows that it is still the same file."""

    name: str
    relative: str
    size: int
    state: tuple[int, int]
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, number: int, file: SourceFile, source: str, format: Format | None) -> Shard:
        if file.name == "standard input":
            raise InputError("standard input is no shard: foreword filter reads files")
        path = Path(file.name)
        changed = path.stat().st_mtime_ns if not ADDRESS.match(file.name) and path.is_file() else 0
        parts = parts_of(file, number, format or format_of(file.name))
        return cls(file.name, relative_name(file.name, source), file.size or 0, (file.size or 0, changed), tuple(parts))

    def file_of(self, part: Part, what: str) -> str:
        """The name of a file for a part, the same in every run."""
        return f"{hashlib.sha256(self.relative.encode()).hexdigest()[:24]}-{part.number}.{what}"


def relative_name(name: str, source: str) -> str:
    """Where a file stands below the source: its path in a folder, or below the part of a glob that has no magic."""
    base = source.rstrip("/")
    if name == source:
        return PurePosixPath(name).name
    while glob.has_magic(base) and not name.startswith(base + "/"):
        base = base.rpartition("/")[0]
        if not base:
            return name.lstrip("/") if source.startswith("/") else name
    return os.path.relpath(name, base) if not ADDRESS.match(name) else name.removeprefix(base).lstrip("/")


def check_apart(source: str, files: Sequence[SourceFile], out: str) -> None:
    """Refuse to write into what is read, or to read what is written."""
    real = _real(out)
    if (ADDRESS.match(source) or Path(source).is_dir()) and _is_below(real, _real(source)):
        raise SettingError(f"{out} lies inside {source}: the next run would read what this one writes")
    for file in files:
        if _is_below(_real(file.name), real):
            raise SettingError(f"{file.name} lies inside {out}, which is to be written")


def _real(name: str) -> str:
    name = name.removeprefix("file://").removeprefix("local://")
    return name.rstrip("/") if ADDRESS.match(name) else os.path.realpath(name)


def _is_below(name: str, folder: str) -> bool:
    return name == folder or name.startswith(f"{folder.rstrip('/')}/")


def _settings(filtering: Filtering) -> dict[str, Any]:
    """What must be the same for a run to go on: models and tables by what they hold."""
    settings: dict[str, Any] = asdict(filtering)
    settings["models"] = [[name, fingerprint(path)] for name, path in filtering.models]
    settings["table"] = read_table(filtering.table) if filtering.table else None
    return settings


def fingerprint(path: str) -> list[int | str]:
    """What tells one model from another without reading all of it: a folder's own checksums, or a file's two ends."""
    place = Path(path)
    try:
        if place.is_dir():
            return [hashlib.sha256((place / "model.json").read_bytes()).hexdigest()]
        with place.open("rb") as file:
            digest = hashlib.sha256(file.read(1 << 20))
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - (1 << 20)))
            digest.update(file.read())
    except OSError as error:
        raise InputError(f"{path}: no model there: {error.strerror}") from error
    return [size, digest.hexdigest()]


def judging_of(chosen: Filtering, scores: list[Column]) -> Judging:
    """The rules, checked against the columns that there will be."""
    table: Thresholds = read_table(chosen.table) if chosen.table else {}
    columns = [*scores, Column(BUCKET, np.empty(0, np.int32), BUCKETS)] if chosen.buckets else scores
    rules = separate(parse_rule(text) for text in chosen.keep)
    for rule in rules:
        check_rule(rule, columns, table, label_column(scores))
    by = chosen.by or main_column(scores)
    found = next((column for column in scores if column.name == by), None)
    if found is None or found.names is not None:
        numbers = ", ".join(column.name for column in scores if column.names is None)
        raise SettingError(f"--by {by}: expected one of {numbers}")
    if (chosen.each_label or chosen.buckets == "table") and label_column(scores) is None:
        raise SettingError("--each-label, and a table, need a model that gives labels")
    if chosen.buckets == "table" and any(len(values) != 2 for values in table.values()):
        raise SettingError(f"{chosen.table}: buckets take two thresholds for every label")
    only_scores = chosen.score_only or (bool(chosen.buckets) and not rules)
    return Judging(
        rules, table, by, buckets=table if chosen.buckets == "table" else {} if chosen.buckets else None,
        write_scores=only_scores or chosen.with_scores, keep_all=only_scores,
    )  # fmt: skip


class _Run:
    def __init__(
        self, filtering: Filtering, shards: list[Shard], ledger: Ledger, processes: int, on_error: OnError,
        meter: Meter | None, perform: Perform,
    ) -> None:  # fmt: skip
        self.perform = perform
        self.filtering, self.shards, self.ledger = filtering, shards, ledger
        self.processes, self.on_error, self.meter = processes, on_error, meter
        self.problems: dict[str, str] = {}

    def all(self) -> Report:
        began = time.perf_counter()
        left = [shard for shard in self.shards if not self._in_place(shard)]
        before = sum(shard.size for shard in self.shards if shard not in left)
        thresholds: dict[str, list[float]] = {}
        if left:
            self._open(left)
            judging = judging_of(self.filtering, self.columns)
            if self.filtering.two_passes:
                judging = self._with_thresholds(judging, left)
            self._write(judging, left)
        if "thresholds" in self.ledger:
            thresholds = self.ledger["thresholds"]["found"]
        tally = Tally()
        for shard in self.shards:
            if shard.relative not in self.problems:
                tally.add(Tally.from_json(self.ledger[f"shard {shard.relative}"]["tally"]))
        seconds = time.perf_counter() - began
        done = len(self.shards) - len(self.problems)
        return Report(tally, done, list(self.problems.values()), seconds, before, thresholds)

    # Models and rules

    def _open(self, left: list[Shard]) -> None:
        """Open the models; where several processes will need a foreign one, it is put into our own form once."""
        several = self.processes > 1 and sum(len(shard.parts) for shard in left) > 1
        prefixed = len(self.filtering.models) > 1
        models = []
        for number, (name, path) in enumerate(self.filtering.models):
            place = self._shared(path, number) if several and Path(path).is_file() else path
            models.append((str(place), f"{name}_" if prefixed or name else ""))
        chosen = self.filtering
        self.reading = Reading(
            tuple(models), chosen.field, chosen.format, chosen.errors, chosen.longest, chosen.piece_bytes
        )
        self.opened = self.reading.opened()
        self.columns = self.opened.columns()

    def _shared(self, path: str, number: int) -> Path:
        folder = self.ledger.models / str(number)
        if not folder.exists():
            save(load(path), folder)
        return folder

    # The passes

    def _with_thresholds(self, judging: Judging, left: list[Shard]) -> Judging:
        """The first of two passes: everything is scored, and the scores are kept on disk."""
        tasks = [
            Task(part, judging, self._scores(shard, part), shard.relative, first=True)
            for shard in left
            for part in shard.parts
            if not self._is_done(f"scores {shard.relative} {part.number}", shard, self._scores(shard, part))
        ]
        for done in self._perform(tasks, "reading"):
            shard = self._shard(done)
            self.ledger.record(f"scores {shard.relative} {done.task.part.number}", state=list(shard.state))
        if "thresholds" not in self.ledger:
            paths = [
                self._scores(shard, part).with_suffix(".values") for shard in self._whole(left) for part in shard.parts
            ]
            label = label_column(self.columns) if self.filtering.each_label else None
            names = next((column.names for column in self.columns if column.name == label), None)
            found = best_shares(values_in(paths), self.filtering.percents, lower_is_better(judging.by), names)
            self.ledger.record("thresholds", found={label: list(values) for label, values in found.items()})
        found = {label: tuple(values) for label, values in self.ledger["thresholds"]["found"].items()}
        return replace(judging, buckets=found) if self.filtering.buckets else replace(judging, keep=found)

    def _write(self, judging: Judging, left: list[Shard]) -> None:
        tasks = []
        for shard in self._whole(left):
            for part in shard.parts:
                path = self.ledger.parts / shard.file_of(part, "part")
                scores = self._scores(shard, part) if self.filtering.two_passes else None
                if not self._is_done(f"part {shard.relative} {part.number}", shard, path):
                    tasks.append(Task(part, judging, path, self.ledger.place(shard.relative), scores))
        missing = Counter(task.part.shard for task in tasks)
        with self._placing() as put_in_place:
            for shard in self._whole(left):
                if not missing[shard.parts[0].shard]:  # all parts were there, but not yet put together
                    put_in_place(shard)
            for done in self._perform(tasks, "reading again" if self.filtering.two_passes else "reading"):
                shard, part = self._shard(done), done.task.part
                tally = done.tally.to_json()
                self.ledger.record(
                    f"part {shard.relative} {part.number}",
                    state=list(shard.state),
                    bytes=done.tally.bytes_out,
                    tally=tally,
                )
                missing[part.shard] -= 1
                if not missing[part.shard] and shard.relative not in self.problems:
                    put_in_place(shard)

    def _perform(self, tasks: list[Task], phase: str) -> Iterator[Done]:
        """What was finished; what could not be read is remembered, or stops the run."""
        sizes = {shard.parts[0].shard: shard.size for shard in self.shards}
        total = sum(task.part.stop - task.part.start or sizes[task.part.shard] for task in tasks)

        def tell(read: int) -> None:
            if self.meter:
                self.meter(phase, min(read, total), total)

        with closing(self.perform(self.reading, self.opened, tasks, self.processes, tell)) as finished:
            for done in finished:
                if done.problem is None:
                    yield done
                elif done.fatal:
                    raise InputError(f"{done.problem} (what was finished before is kept)")
                elif self.on_error == "stop":
                    raise InputError(
                        f"{done.problem} (what was finished before is kept; --on-error skip leaves it out)"
                    )
                else:
                    self.problems[self._shard(done).relative] = done.problem

    # Places

    def _shard(self, done: Done) -> Shard:
        return self.shards[done.task.part.shard]

    def _whole(self, shards: list[Shard]) -> list[Shard]:
        return [shard for shard in shards if shard.relative not in self.problems]

    def _scores(self, shard: Shard, part: Part) -> Path:
        return self.ledger.parts / shard.file_of(part, "scores")

    def _is_done(self, key: str, shard: Shard, path: Path) -> bool:
        record = self.ledger.get(key)
        return (
            record is not None
            and record["state"] == list(shard.state)
            and path.is_file()
            and (record.get("bytes", path.stat().st_size) == path.stat().st_size)
        )

    def _in_place(self, shard: Shard) -> bool:
        record = self.ledger.get(f"shard {shard.relative}")
        return (
            record is not None
            and record["state"] == list(shard.state)
            and record["bytes"] == self.ledger.stored(shard.relative)
        )

    @contextmanager
    def _placing(self) -> Iterator[Callable[[Shard], None]]:
        """What puts shards in place; at the end all of them are there. On the way to an address are several at once."""
        if not self.ledger.at_once:
            yield self._put_in_place
            return
        under_way = deque[Future[None]]()
        with ThreadPoolExecutor(self.ledger.at_once) as threads:

            def put(shard: Shard) -> None:
                under_way.append(threads.submit(self._put_in_place, shard))
                most = 2 * self.ledger.at_once  # more would wait on this disk
                while under_way and (under_way[0].done() or len(under_way) > most):
                    under_way.popleft().result()

            yield put
            for future in under_way:
                future.result()

    def _put_in_place(self, shard: Shard) -> None:
        """Rename the one part, or put the parts together and rename that."""
        parts = [self.ledger.parts / shard.file_of(part, "part") for part in shard.parts]
        made = parts[0]
        if len(parts) > 1:
            made = self.ledger.parts / shard.file_of(shard.parts[0], "whole")
            with written(made, self.ledger.place(shard.relative)) as stream:
                joined(parts, stream)
        size = made.stat().st_size
        self.ledger.put(made, shard.relative)
        tally = Tally()
        for part in shard.parts:
            tally.add(Tally.from_json(self.ledger[f"part {shard.relative} {part.number}"]["tally"]))
        tally.bytes_in = shard.size
        self.ledger.record(f"shard {shard.relative}", state=list(shard.state), bytes=size, tally=tally.to_json())
        for path in (*parts, *(self._scores(shard, part) for part in shard.parts)):
            path.unlink(missing_ok=True)
