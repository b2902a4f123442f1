"""A whole run: files are found, tasks distributed, finished shards put in place, and tallies added up."""

from __future__ import annotations

import hashlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from foreword.errors import InputError, SettingError
from foreword.filtering.columns import label_column, lower_is_better
from foreword.filtering.judge import Judge
from foreword.filtering.ledger import AddressLedger, Ledger
from foreword.filtering.models import files_of, fingerprint
from foreword.filtering.output import concatenate, line_bytes, written
from foreword.filtering.settings import Filtering
from foreword.filtering.shards import OpenFilter, Part, Shard, check_disjoint
from foreword.filtering.summary import Tally, best_shares, values_in
from foreword.filtering.tables import read_table
from foreword.filtering.worker import Done, Perform, ShardTask, end_if_imported, perform_all
from foreword.native.parallel import cores
from foreword.ngram.kenlm_format import looks_like_kenlm
from foreword.protocols import Meter
from foreword.storage.folder import check_files, load, save
from foreword.text.encodings import UTF8, encoding_of
from foreword.text.files import ADDRESS, find_files
from foreword.text.rows import LineRows

OnError = Literal["stop", "skip"]

STREAM = "-"

SINCE_0_2 = ("columns", "top", "labels", "restrict", "clean", "like", "sidecar", "id", "span")
"""Settings that runs of version 0.1 do not have."""


@dataclass(slots=True)
class Report:
    """The result of a run.

    tally: of all that is finished, earlier runs included. problems: one line for each file that was skipped.
    seconds: of this run; read_before: bytes that earlier runs had done; thresholds: the values of the percentages.
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
    they are spawned, so that a script has to be importable, as ``multiprocessing`` requires. perform: what performs the
    tasks; ``foreword.cluster.filtering`` has another. scratch: where shards that go to an address are made; None is a
    temporary folder.
    """
    if processes != 1:
        end_if_imported()
    files = find_files(source)
    shards = [Shard.of(number, file, source, filtering) for number, file in enumerate(files)]
    for name, count in Counter(shard.relative for shard in shards).items():
        if count > 1:
            raise SettingError(f"{name}: {count} files would be written under this name; filter them one by one")
    check_disjoint(source, files, str(out))
    ledger = _ledger(str(out), _settings(filtering), restart, scratch)
    finished = False
    try:
        report = _Run(filtering, shards, ledger, processes or cores(), on_error, meter, perform).all()
        ledger.sync()
        finished = not report.problems
        return report
    finally:
        ledger.close(finished)


def _ledger(out: str, settings: dict[str, Any], restart: bool, scratch: str | Path | None) -> Ledger:
    if ADDRESS.match(out):
        return AddressLedger(out, settings, restart, scratch)
    if scratch is not None:
        raise SettingError("--scratch is for an address: shards of a folder are made in the folder")
    return Ledger(out, settings, restart)


def _settings(filtering: Filtering) -> dict[str, Any]:
    """Return what must be the same for a run to be resumed: models and tables by their content."""
    settings: dict[str, Any] = asdict(filtering)
    for each in fields(filtering):  # so that a run is resumed that began before there were such settings
        if each.name in SINCE_0_2 and settings[each.name] == each.default:
            del settings[each.name]
    if encoding_of(filtering.errors) != UTF8:
        settings["encoding"] = encoding_of(filtering.errors)
    settings["models"] = [[name, fingerprint(path)] for name, path in filtering.models]
    settings["table"] = read_table(filtering.table) if filtering.table else None
    return settings


@dataclass
class _Run:
    filtering: Filtering
    shards: list[Shard]
    ledger: Ledger
    processes: int
    on_error: OnError
    meter: Meter | None
    perform: Perform
    problems: dict[str, str] = field(default_factory=dict)

    def all(self) -> Report:
        """Filter every shard that is not finished yet, and report on all."""
        began = time.perf_counter()
        left = [shard for shard in self.shards if not self._in_place(shard)]
        before = sum(shard.size for shard in self.shards) - sum(shard.size for shard in left)
        if left:
            for folder in (file for _, path in self.filtering.models for file in files_of(path) if Path(file).is_dir()):
                check_files(folder)  # parts that a damaged model has scored would be kept
            self.opened = OpenFilter(self._with_shared_models(left))
            self.columns = self.opened.columns()
            judge = Judge(self.filtering, self.columns)
            if self.filtering.two_passes:
                judge = Judge(self.filtering, self.columns, self._thresholds(judge, left))
            self._write(judge, left)
        thresholds = self.ledger["thresholds"]["found"] if "thresholds" in self.ledger else {}
        tally = Tally()
        for shard in self.shards:
            if shard.relative not in self.problems:
                tally.add(Tally.from_json(self.ledger[f"shard {shard.relative}"]["tally"]))
        seconds = time.perf_counter() - began
        done = len(self.shards) - len(self.problems)
        return Report(tally, done, list(self.problems.values()), seconds, before, thresholds)

    def _with_shared_models(self, left: list[Shard]) -> Filtering:
        """Convert foreign models that several processes will need, once, to a form that they can map.

        A KenLM binary is such a form already, and may be larger than the disk.
        """
        if self.processes == 1 or sum(len(shard.parts) for shard in left) <= 1:
            return self.filtering
        models = [
            (name, path if not Path(path).is_file() or looks_like_kenlm(path) else str(self._shared(path)))
            for name, path in self.filtering.models
        ]
        return replace(self.filtering, models=models)

    def _shared(self, path: str) -> Path:
        """Return the folder of a converted model, named by its content: another run may have left another model."""
        folder = self.ledger.models / hashlib.sha256(repr(fingerprint(path)).encode()).hexdigest()[:16]
        if not folder.exists():
            save(load(path), folder)
        return folder

    # The passes

    def _thresholds(self, judge: Judge, left: list[Shard]) -> dict[str, tuple[float, ...]]:
        """Do the first of two passes: score everything, write the scores to disk, and return the thresholds."""
        tasks = [
            ShardTask(part, judge, self._scores(shard, part), shard.relative, first=True)
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
            found = best_shares(values_in(paths), self.filtering.percents, lower_is_better(judge.by), names)
            self.ledger.record("thresholds", found={label: list(values) for label, values in found.items()})
        return {label: tuple(values) for label, values in self.ledger["thresholds"]["found"].items()}

    def _write(self, judge: Judge, left: list[Shard]) -> None:
        tasks = []
        for shard in self._whole(left):
            for part in shard.parts:
                path = self.ledger.parts / shard.file_of(part, "part")
                scores = self._scores(shard, part) if self.filtering.two_passes else None
                if not self._is_done(f"part {shard.relative} {part.number}", shard, path):
                    tasks.append(ShardTask(part, judge, path, self.ledger.place(shard.relative), scores))
        missing = Counter(task.part.shard for task in tasks)
        with self._placing() as put_in_place:
            for shard in self._whole(left):
                if not missing[shard.parts[0].shard]:  # all parts are there, but not yet put together
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

    def _perform(self, tasks: list[ShardTask], phase: str) -> Iterator[Done]:
        """Yield what is finished. A file that cannot be read is skipped, or stops the run."""
        sizes = {shard.parts[0].shard: shard.size for shard in self.shards}
        total = sum(task.part.stop - task.part.start or sizes[task.part.shard] for task in tasks)

        def report(read: int) -> None:
            if self.meter:
                self.meter(phase, min(read, total), total)

        with closing(self.perform(self.opened, tasks, self.processes, report)) as finished:
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

    # Shards and files

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
            and shard.is_as_recorded(record["state"])
            and path.is_file()
            and (record.get("bytes", path.stat().st_size) == path.stat().st_size)
        )

    def _in_place(self, shard: Shard) -> bool:
        record = self.ledger.get(f"shard {shard.relative}")
        return (
            record is not None
            and shard.is_as_recorded(record["state"])
            and record["bytes"] == self.ledger.stored(shard.relative)
        )

    @contextmanager
    def _placing(self) -> Iterator[Callable[[Shard], None]]:
        """Give a function that puts shards in place, in threads if they go to an address; on exit all are there."""
        if not self.ledger.at_once:
            yield self._put_in_place
            return
        pending = deque[Future[None]]()
        with ThreadPoolExecutor(self.ledger.at_once) as threads:

            def put(shard: Shard) -> None:
                pending.append(threads.submit(self._put_in_place, shard))
                most = 2 * self.ledger.at_once  # more would fill this disk
                while pending and (pending[0].done() or len(pending) > most):
                    pending.popleft().result()

            yield put
            for future in pending:
                future.result()

    def _put_in_place(self, shard: Shard) -> None:
        """Rename the one part, or put the parts together and rename that."""
        parts = [self.ledger.parts / shard.file_of(part, "part") for part in shard.parts]
        made = parts[0]
        if len(parts) > 1:
            made = self.ledger.parts / shard.file_of(shard.parts[0], "whole")
            with written(made, self.ledger.place(shard.relative)) as stream:
                concatenate(parts, stream)
        size = made.stat().st_size
        self.ledger.put(made, shard.relative)
        tally = Tally()
        for part in shard.parts:
            tally.add(Tally.from_json(self.ledger[f"part {shard.relative} {part.number}"]["tally"]))
        tally.bytes_in = shard.size
        self.ledger.record(f"shard {shard.relative}", state=list(shard.state), bytes=size, tally=tally.to_json())
        for path in (*parts, *(self._scores(shard, part) for part in shard.parts)):
            path.unlink(missing_ok=True)


# --- streams


class Sink(Protocol):
    """A stream that rows are written to."""

    def write(self, data: Any, /) -> int: ...
    def flush(self) -> None: ...


def filter_stream(source: str, out: Sink, filtering: Filtering, *, meter: Meter | None = None) -> Report:
    """Filter ``source``, ``-`` for standard input or whatever ``filter_files`` reads, into an open stream.

    Rows are JSONL unless their files' names or the format say otherwise. They are written in order and uncompressed, by
    one process. Nothing is recorded, so that nothing can be resumed.
    """
    if filtering.sidecar:
        raise SettingError("a sidecar is a file: name a folder to write to")
    if filtering.two_passes:
        raise SettingError("percentiles need two passes, which a stream does not allow")
    if source == STREAM and filtering.format is None:
        filtering = replace(filtering, format="jsonl")
    files = find_files(source)
    for file in files:
        if filtering.format_of(file.name) == "parquet":
            raise SettingError(f"{file.name}: Parquet is written by its end, which a stream has none of; name a folder")
    began, tally = time.perf_counter(), Tally()
    opened = OpenFilter(filtering)
    judge = Judge(filtering, opened.columns())
    total = None if any(file.size is None for file in files) else sum(file.size or 0 for file in files)

    def report(size: int) -> None:
        tally.bytes_in += size
        if meter:
            meter("reading", tally.bytes_in, total)

    for number, file in enumerate(files):
        for rows in opened.rows(Part(source if source == STREAM else file.name, number, 0), report):
            assert isinstance(rows, LineRows)
            found = judge.apply(rows, opened.scores(rows.texts), tally, opened.fields(rows, judge))
            tally.bytes_out += _write_all(out, line_bytes(rows, *found))
    return Report(tally, len(files), [], time.perf_counter() - began, 0)


def _write_all(out: Sink, data: memoryview) -> int:
    """Write all of it, and flush: the reader may be waiting."""
    try:
        rest = data
        while rest:  # an unbuffered pipe may accept less than all of it
            rest = rest[out.write(rest) :]
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write standard output: {error.strerror or error}") from error
    return len(data)
