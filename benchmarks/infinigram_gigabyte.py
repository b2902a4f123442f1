"""An index of a gigabyte of bytes, from a file to a folder."""

from __future__ import annotations

import os
import random
import shutil
import time

from benchmarks.data import ENWIKI, WIKITEXT, documents, plain_file, scratch_folder
from benchmarks.memory import run_apart
from benchmarks.progress import say
from benchmarks.report import Row
from foreword.storage.folder import save
from foreword.tokens.characters import ByteTokenizer

TITLE = "∞-grams: a gigabyte"
HOW = (
    "`foreword index build` with a tokenizer of bytes, from a file of ten enwikis, each with the words of every line "
    "shuffled, to a saved index; two cores, by the clock on the wall."
)

VARIANTS = 10


def run(quick: bool) -> list[Row]:
    return [gigabyte(quick)]


def gigabyte(quick: bool) -> Row:
    """Run the command over ten shuffled variants."""
    path, tokenizer, out = (scratch_folder() / name for name in ("gigabyte.txt", "bytes", "gigabyte"))
    lines = [line.split() for line in documents(plain_file(WIKITEXT if quick else ENWIKI))]
    rng = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(1 if quick else VARIANTS):
            for line in lines:
                rng.shuffle(line)
                file.write(" ".join(line) + "\n")
    save(ByteTokenizer(), tokenizer)
    say(f"indexing {path.stat().st_size / 1e6:.0f} MB")
    before, began = os.times(), time.perf_counter()
    told, peak = run_apart(["command", "index", "build", str(path), "-o", str(out), "--tokenizer", str(tokenizer),
                            "--threads", "2", "--json", "--quiet"])  # fmt: skip
    wall, after = time.perf_counter() - began, os.times()
    worked = after.children_user + after.children_system - before.children_user - before.children_system
    note = f"{worked:.0f} s of CPU time, peak {peak:,.0f} MB, load {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores"
    size = path.stat().st_size / 1e6
    path.unlink()
    shutil.rmtree(out)
    return Row(
        f"index of {size:,.0f} MB of bytes, from file to folder", f"{wall:.0f} s", bar="≤ 360 s", met=wall <= 360,
        note=note,
        figures={"wall": wall, "cpu": worked, "peak_megabytes": peak, "tokens": told["tokens"]},
    )  # fmt: skip
