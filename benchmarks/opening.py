"""A fastText file of a gigabyte, converted once, and a KenLM binary as it is: how long they take to open, and what ten
processes hold of them.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from string import ascii_lowercase

import numpy as np

from benchmarks.data import scratch_folder
from benchmarks.measure import PAIRS, seconds
from benchmarks.progress import say
from benchmarks.report import Row
from foreword.fasttext.classifier import open_fasttext
from foreword.fasttext.files import (
    LABEL,
    NEGATIVE,
    SKIP_GRAM,
    SOFTMAX,
    SUPERVISED,
    WORD,
    FastTextFile,
    Settings,
    write_fasttext,
)
from foreword.ngram.hash_layout import Spelled
from foreword.ngram.kenlm_writing import write_kenlm
from foreword.ngram.log10 import Log10Ngrams
from foreword.storage.folder import load, save
from foreword.tokens.vocab import Vocab

WORDS, BUCKETS, DIMENSIONS, LABELS = 500_000, 2_000_000, 100, 20
PROCESSES = 10
LIMIT = 0.1
FOLLOWING = 100
"""Different words after each word of the KenLM binary."""

USES = {
    "classifier": "each process labels 2,000 lines of 20 words",
    "vectors with subwords": "each process looks up 40,000 words, as many more that are not there and are made of "
    "their parts, and the neighbours of one",
    "KenLM binary": "each process scores 2,000 lines of 20 words",
}

CHILD = """
import json, sys
from pathlib import Path
from foreword import load

def held(name):
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))

def use(folder, text):
    model = load(folder)
    if hasattr(model, "predict"):
        model.predict(text.splitlines())
    elif hasattr(model, "perplexity"):
        model.perplexity(text.splitlines())
    else:
        for word in text.split():
            model[word], model[word + "s"]
        model.nearest(model["neverseen"], 3)
    return model

text = Path(sys.argv[3]).read_text()
use(sys.argv[2], text)  # so that code and compiled kernels are there in both counts
before = held("Pss:")
model = use(sys.argv[1], text)
print("ready", flush=True)
sys.stdin.readline()
print(json.dumps(held("Pss:") - before), flush=True)
sys.stdin.readline()
"""


def opening() -> list[Row]:
    text = scratch_folder() / "opening.txt"
    rng = np.random.default_rng(1)
    words = list(_words(WORDS))
    lines = rng.choice(words, (2000, 20))
    text.write_text("\n".join(" ".join(line) for line in lines), "ascii")
    rows = []
    for name, model in (("classifier", SUPERVISED), ("vectors with subwords", SKIP_GRAM)):
        file, folder = scratch_folder() / f"{name}.bin", scratch_folder() / name
        say(f"making a {name} of a gigabyte")
        write_fasttext(generated(words, model), file)
        save(open_fasttext(file), folder)
        save(open_fasttext(_small(model)), scratch_folder() / f"small {name}")
        rows += [_time(name, file, folder), _sharing(name, folder, scratch_folder() / f"small {name}", text)]
        file.unlink()
    return rows


def opening_of_kenlm() -> list[Row]:
    """Open a KenLM binary of a gigabyte in ten processes."""
    text, file, small = (scratch_folder() / name for name in ("opening.txt", "opening kenlm.bin", "small kenlm.bin"))
    words = list(_words(WORDS))
    lines = np.random.default_rng(1).choice(words, (2000, 20))
    text.write_text("\n".join(" ".join(line) for line in lines), "ascii")
    say("making a KenLM binary of a gigabyte")
    write_kenlm(generated_ngrams(words, FOLLOWING), file)
    write_kenlm(generated_ngrams(words[:1000], 10), small)
    rows = [_time("KenLM binary", file, file, converted=False), _sharing("KenLM binary", file, small, text)]
    file.unlink()
    return rows


def generated_ngrams(words: list[str], following: int) -> Log10Ngrams:
    """Bigrams of random probabilities, ``following`` of them after each word."""
    vocab = Vocab(["<unk>", "</s>", *words])
    count = len(vocab) - 2

    def orders() -> Iterator[Spelled]:
        rng = np.random.default_rng(0)
        single = np.arange(len(vocab) + 1)[:, None]  # <s> is the last
        yield 1, single, -rng.random(len(single), np.float32) - 1, -rng.random(len(single), np.float32)
        first = np.repeat(np.arange(count), following)
        second = np.sort((first.reshape(-1, following) * 7 + np.arange(following) * 13) % count, axis=1).ravel()
        pairs = np.stack((first, second), axis=1) + 2
        yield 2, pairs, -rng.random(len(pairs), np.float32), np.zeros(len(pairs), np.float32)

    return Log10Ngrams(vocab, [len(vocab) + 1, count * following], orders)


def _words(count: int) -> Iterator[str]:
    """Make ``count`` different words of letters."""
    for _, letters in zip(range(count), product(ascii_lowercase, repeat=5), strict=False):
        yield "".join(letters)


def generated(words: list[str], model: int, buckets: int = BUCKETS) -> FastTextFile:
    """A model of random numbers, as large as those in use."""
    rng = np.random.default_rng(0)
    labels = [f"__label__{number}" for number in range(LABELS)] if model == SUPERVISED else []
    entries = [b"</s>", *(word.encode() for word in words), *(label.encode() for label in labels)]
    types = np.repeat(np.array([WORD, LABEL], np.int8), [len(words) + 1, len(labels)])
    outputs = len(labels) or len(words) + 1
    word_ngrams, least, most, loss = (2, 0, 0, SOFTMAX) if labels else (1, 3, 6, NEGATIVE)
    settings = Settings(DIMENSIONS, 5, 5, 1, 5, word_ngrams, loss, model, buckets, least, most, 100, 1e-4)
    return FastTextFile(
        settings, entries, np.arange(len(entries), 0, -1, dtype=np.int64), types, 1 << 30, None,
        rng.standard_normal((len(words) + 1 + buckets, DIMENSIONS), np.float32),
        rng.standard_normal((outputs, DIMENSIONS), np.float32),
    )  # fmt: skip


def _small(model: int) -> Path:
    path = scratch_folder() / "small.bin"
    write_fasttext(generated(list(_words(100)), model, 1000), path)
    return path


def _time(name: str, file: Path, folder: Path, *, converted: bool = True) -> Row:
    taken = [seconds(lambda: load(folder), time.perf_counter) for _ in range(PAIRS)]
    middle = statistics.median(taken)
    return Row(
        f"open a {'converted ' * converted}.bin of {file.stat().st_size / 1e9:.2f} GB: {name}",
        ours=f"{middle:.3f} s",
        bar=f"< {LIMIT} s",
        met=middle < LIMIT,
        figures={"seconds": taken},
    )


def _sharing(name: str, folder: Path, small: Path, text: Path) -> Row:
    """What each process adds, shared pages counted by their share; ten copies would each add a gigabyte."""
    command = [sys.executable, "-c", CHILD, str(folder), str(small), str(text)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)
    ]
    try:
        for child in children:
            assert child.stdout is not None
            if child.stdout.readline() != "ready\n":
                raise RuntimeError(f"{name}: a process did not open {folder}")
        grown = [json.loads(_answer(child)) for child in children]
    finally:
        for child in children:
            child.kill()
            child.communicate()
    size = sum(path.stat().st_size for path in (folder.iterdir() if folder.is_dir() else [folder]))
    return Row(
        f"{PROCESSES} processes with one copy of {size / 1e9:.2f} GB: {name}",
        ours=f"{sum(grown) / 1e9:.2f} GB in all",
        bar="no more than one copy and a tenth",
        met=sum(grown) <= 1.1 * size,
        note=USES[name],
        figures={"grown": grown},
    )


def _answer(child: subprocess.Popen[str]) -> str:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("\n")
    child.stdin.flush()
    return child.stdout.readline()
