"""Peak memory of training on a file that is larger than memory should have to be.

The file is enwiki again and again; from the second copy on every tenth word ends in two letters that are the copy's
own, so that new words keep coming as they do in real text. Training runs in a process of its own, which is this file
again: ``python -m benchmarks.memory command …`` runs the command line and tells its peak on the last line,
``python -m benchmarks.memory api FILE TOKENS`` does the same with the Python interface.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import foreword.cli
from benchmarks.data import ENWIKI, megabytes, plain_file, scratch_folder
from benchmarks.progress import say
from benchmarks.report import Row
from foreword.text.sources import read_blocks
from foreword.tokens.bpe import BPETokenizer

TITLE = "Memory"
HOW = (
    "Peak resident memory of a process that learns BPE merges from a 2 GB file, on all cores and with the settings "
    "that a user gets who sets nothing else. The file is enwiki twenty times, with new words in each copy."
)

FILE_BYTES = 2_000_000_000
BAR_MEGABYTES = 1_000


def run(quick: bool) -> list[Row]:
    if quick:
        say("memory: left out of a quick run")
        return []
    path = scratch_folder() / "two_gigabytes.txt"
    try:
        say("memory: writing 2 GB of text")
        write_growing_text(plain_file(ENWIKI), path)
        return [
            _row("foreword tokenize train", 8_000, path, _command(path, 8_000)),
            _row("foreword tokenize train", 32_000, path, _command(path, 32_000)),
            _row("BPETokenizer.fit_blocks", 32_000, path, ["api", str(path), "32000"]),
        ]
    finally:
        path.unlink(missing_ok=True)


def _command(path: Path, size: int) -> list[str]:
    out = scratch_folder() / f"tokenizer-{size}"
    return ["command", "tokenize", "train", str(path), "-o", str(out), "--vocab", str(size), "--json", "--quiet"]


def _row(name: str, size: int, path: Path, arguments: list[str]) -> Row:
    job = f"{name}, {megabytes(path) / 1000:.2f} GB, {size:,} tokens"
    say(f"memory: {job}")
    told, peak = run_apart(arguments)
    say(f"memory: {peak:.0f} MB, {told['seconds']:.0f} s")
    pieces = f"{told['pieces']:,} distinct pieces, " if "pieces" in told else ""
    return Row(
        job,
        ours=f"{peak:,.0f} MB",
        bar=f"< {BAR_MEGABYTES:,} MB",
        met=peak < BAR_MEGABYTES,
        note=f"{told['seconds']:.0f} s; {pieces}{told['left_out']:,} left out",
        figures={"peak_megabytes": peak, "seconds": told["seconds"], "left_out": told["left_out"]},
    )


def run_apart(arguments: list[str]) -> tuple[dict[str, Any], float]:
    """What a process of its own tells as JSON, and its peak in megabytes."""
    command = [sys.executable, "-m", "benchmarks.memory", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent)
    told, peak = done.stdout.rstrip().rsplit("\n", 1)
    return json.loads(told), float(peak)


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


def _within(way: str, arguments: list[str]) -> None:
    """What the process of its own does."""
    if way == "api":
        print(json.dumps(_train(Path(arguments[0]), int(arguments[1]))))
    else:
        sys.argv = ["foreword", *arguments]
        try:
            foreword.cli.main()
        except SystemExit as end:
            if end.code:
                raise
    print(_peak_megabytes())


def _train(path: Path, size: int) -> dict[str, float]:
    """``fit_blocks`` in its two halves, to see what is between them."""
    start = time.perf_counter()
    tokenizer = BPETokenizer(size)
    counted = tokenizer.count(read_blocks(path))
    pieces = len(counted) - 1  # the first counts documents
    tokenizer.fit_counted(counted)
    return {"seconds": time.perf_counter() - start, "pieces": pieces, "left_out": tokenizer.left_out_}


def _peak_megabytes() -> float:
    # Not getrusage: there a new process starts with the peak of the one that started it.
    status = Path("/proc/self/status").read_text("utf-8")
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    assert peak is not None
    return int(peak[1]) * 1024 / 1e6


if __name__ == "__main__":
    _within(sys.argv[1], sys.argv[2:])
