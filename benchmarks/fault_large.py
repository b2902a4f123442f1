"""Inputs of unusual shape: a hundred thousand tiny files, a row group of a gigabyte, a line of five gigabytes.

Each is given to commands in processes of their own. A command has to end in success or in one line, and to stay below a
limit of memory that does not grow with the input; where it succeeds, its result is checked.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import foreword
from benchmarks.fault_disk import Fault
from benchmarks.fault_kills import texts
from foreword.storage.folder import save

FILES, ROW_GROUP, LINE = 100_000, 1 << 30, 5 << 30
MEMORY = 1 << 30
"""Bytes that a process may have for itself."""


@dataclass(frozen=True)
class Case:
    """A command and what it has to do. refused: a part of its one line. result: checks its output."""

    name: str
    words: list[str]
    refused: str | None = None
    result: Callable[[str], bool] = lambda said: True


def large_inputs(folder: Path, files: int = FILES, group: int = ROW_GROUP, line: int = LINE) -> Iterator[Fault]:
    """Make each input, run its commands, and delete it."""
    folder.mkdir(parents=True, exist_ok=True)
    save(foreword.TextLM(foreword.WordTokenizer(), foreword.NgramLM(2)).fit(texts(300)), folder / "lm")
    for make in (_tiny_files, _row_group, _line):
        source = folder / make.__name__
        name, cases = make(source, {_tiny_files: files, _row_group: group, _line: line}[make])
        fault = Fault(name)
        for case in cases:
            fault.tried += 1
            fault.found += [f"{case.name}: {line}" for line in _run(case, folder)]
        for made in (source, folder / f"{source.name}-out"):
            shutil.rmtree(made, ignore_errors=True)
        yield fault


def _run(case: Case, folder: Path) -> Iterator[str]:
    out, said = folder / "stdout", folder / "stderr"
    with out.open("wb") as output, said.open("wb") as errors:
        command = [sys.executable, "-m", "foreword", *case.words]
        child = subprocess.Popen(command, cwd=folder, stdout=output, stderr=errors, stdin=subprocess.DEVNULL)
        used = 0
        while child.poll() is None:
            used = max(used, _own_bytes(child.pid))
            time.sleep(0.05)
    lines = said.read_text().splitlines()
    if case.refused is None and child.returncode:
        yield f"status {child.returncode}: {lines[-1:]}"
    elif case.refused is not None and (child.returncode != 1 or case.refused not in lines[-1]):
        yield f"status {child.returncode}, expected {case.refused!r}: {lines[-1:]}"
    elif case.refused is None and not case.result(out.read_text()):
        yield f"another result: {out.read_text()[-200:]!r}"
    if used > MEMORY:
        yield f"{used >> 20:,} MB of memory"


def _own_bytes(process: int) -> int:
    """Return the memory of a process without the pages of mapped files, which the system takes back when it likes."""
    with suppress(OSError):  # it has ended
        found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
        return int(found[1]) << 10 if found else 0
    return 0


def _tiny_files(source: Path, files: int) -> tuple[str, list[Case]]:
    for number in range(files):
        here = source / f"{number // 1000:03}"
        if number % 1000 == 0:
            here.mkdir(parents=True)
        (here / f"{number}.txt").write_text(f"the cat {number}\n")
    return f"{files:,} tiny files", [
        Case("train", ["train", "ngram", source.name, "-o", "model", "--overwrite"]),
        Case("filter", ["filter", "lm", source.name, f"{source.name}-out", "--keep", "perplexity<1", "--json"],
             result=lambda said: json.loads(said)["documents"] == files),
    ]  # fmt: skip


def _row_group(source: Path, size: int) -> tuple[str, list[Case]]:
    import pyarrow
    from pyarrow import parquet

    source.mkdir()
    rng = random.Random(0)
    words = [f"w{number}" for number in range(3000)]
    some = [" ".join(rng.choices(words, k=200)) for _ in range(1000)]
    rows = size // sum(map(len, some)) * len(some)
    column = pyarrow.chunked_array([pyarrow.array(some)] * (rows // len(some)))
    table = pyarrow.table({"text": column})
    parquet.write_table(table, source / "a.parquet", row_group_size=rows, compression="none", use_dictionary=False)
    out, bounded = f"{source.name}/out", ("--memory", "256M", "--set", "order=2")
    return f"a Parquet row group of {size >> 20:,} MB", [
        Case("train", ["train", "ngram", f"{source.name}/a.parquet", "-o", "model", "--overwrite", *bounded]),
        Case("filter", ["filter", "lm", f"{source.name}/a.parquet", out, "--keep", "perplexity<1", "--json"]),
    ]


def _line(source: Path, size: int) -> tuple[str, list[Case]]:
    import zstandard

    source.mkdir()
    with zstandard.open(source / "a.txt.zst", "wb") as file:
        for _ in range(size >> 20):
            file.write(b"cat " * (1 << 18))
    path = f"{source.name}/a.txt.zst"
    told = "line 1 has more than 256 MB"
    return f"a line of {size >> 30} GB", [
        Case("score", ["score", "lm", path], refused=told),
        Case(
            "filter",
            ["filter", "lm", path, f"{source.name}/out", "--keep", "perplexity<1"],
            refused="--longest allows more",
        ),
        # These need no whole lines: a document is counted as it comes.
        Case("train", ["train", "ngram", path, "-o", "model", "--overwrite", "--memory", "256M", "--set", "order=2"]),
        Case("tokenize", ["tokenize", "train", path, "-o", f"{source.name}/t.json"]),
    ]
