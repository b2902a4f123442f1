"""Peak memory of training on a file much larger than memory should have to be.

The file is enwiki again and again; from the second copy on every tenth word ends in two letters that are the copy's
own, so that new words keep coming as they do in real text. Training runs in a process of its own, as
``python -m benchmarks.memory FILE TOKENS``, which tells what it took as JSON.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TypedDict

from benchmarks.data import ENWIKI, megabytes, plain_file, scratch_folder
from benchmarks.measure import say
from benchmarks.report import Row
from foreword.text.sources import read_blocks
from foreword.tokens.bpe import BPETokenizer

TITLE = "Memory"
HOW = (
    "Peak resident memory of a process that learns BPE merges from a 2 GB file, on all cores and with the settings "
    "that a user gets who sets nothing. The file is enwiki twenty times, with new words in each copy."
)

FILE_BYTES = 2_000_000_000
BAR_MEGABYTES = 1_000
SIZES = (8_000, 32_000)


class Training(TypedDict):
    """What a process says of its training."""

    peak_megabytes: float
    seconds: float
    pieces: int
    left_out: int


def run(quick: bool) -> list[Row]:
    if quick:
        say("memory: left out of a quick run")
        return []
    path = scratch_folder() / "two_gigabytes.txt"
    try:
        say("memory: writing 2 GB of text")
        write_growing_text(plain_file(ENWIKI), path)
        return [_row(path, size) for size in SIZES]
    finally:
        path.unlink(missing_ok=True)


def _row(path: Path, size: int) -> Row:
    job = f"{megabytes(path) / 1000:.2f} GB, {size:,} tokens"
    say(f"memory: training on {job}")
    training = train_apart(path, size)
    peak = training["peak_megabytes"]
    say(f"memory: {peak:.0f} MB, {training['seconds']:.0f} s")
    return Row(
        job,
        ours=f"{peak:,.0f} MB",
        bar=f"< {BAR_MEGABYTES:,} MB",
        met=peak < BAR_MEGABYTES,
        note=f"{training['seconds']:.0f} s; {training['pieces']:,} distinct pieces, {training['left_out']:,} left out",
        figures={"peak_megabytes": peak, "seconds": training["seconds"], "pieces": training["pieces"]},
    )


def write_growing_text(source: Path, target: Path) -> None:
    text = source.read_bytes()
    ends = [tenth.end() for tenth in re.finditer(rb"(?:\S+\s+){9}\S+", text)]
    spans = [text[start:stop] for start, stop in zip([0, *ends], [*ends, len(text)], strict=True)]
    with target.open("wb") as file:
        copy = 0
        while file.tell() < FILE_BYTES:
            file.write(_ending(copy).join(spans))
            copy += 1


def _ending(copy: int) -> bytes:
    """Letters, because the pattern cuts digits off a word."""
    return bytes([ord("a") + copy // 26, ord("a") + copy % 26]) if copy else b""


def train_apart(path: Path, size: int) -> Training:
    command = [sys.executable, "-m", "benchmarks.memory", str(path), str(size)]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent)
    training: Training = json.loads(told.stdout)
    return training


def train(path: Path, size: int) -> Training:
    start = time.perf_counter()
    tokenizer = BPETokenizer(size)
    counted = tokenizer.count(read_blocks(path))
    pieces = len(counted) - 1  # the first counts documents
    tokenizer.fit_counted(counted)
    seconds = time.perf_counter() - start
    return Training(peak_megabytes=peak_megabytes(), seconds=seconds, pieces=pieces, left_out=tokenizer.left_out_)


def peak_megabytes() -> float:
    # Not getrusage: there a new process starts with the peak of the one that started it.
    status = Path("/proc/self/status").read_text("utf-8")
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    assert peak is not None
    return int(peak[1]) * 1024 / 1e6


if __name__ == "__main__":
    print(json.dumps(train(Path(sys.argv[1]), int(sys.argv[2]))))
