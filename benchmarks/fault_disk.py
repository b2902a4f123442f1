"""Disks that are full or locked, files that shrink under their reader, two who write one place, clocks that jump."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import foreword
from benchmarks.fault_kills import MODEL, WORKS, files_of, texts
from foreword.errors import ForewordError
from foreword.fasttext.classifier import FastTextClassifier
from foreword.ngram.arpa import write_arpa
from foreword.storage.checking import CHECKS, sha256_of
from foreword.storage.folder import ARRAYS, CHECKSUM_LIMIT, load, save
from foreword.storage.sigbus import LINE
from foreword.text.block import Block, blocks_of
from foreword.text.labelled import read_labelled
from foreword.text.sources import read_blocks
from foreword.tokens.tokenizer_json import write_tokenizer_json
from foreword.vectors.word2vec_file import write_vectors
from foreword.vectors.wordvectors import WordVectors

NOBODY = 65534


@dataclass(slots=True)
class Fault:
    """tried: how often; found: what must not be, a line each; note: what was measured."""

    name: str
    tried: int = 0
    found: list[str] = field(default_factory=list)
    note: str = ""


def disk_faults(folder: Path, times: int = 5) -> Iterator[Fault]:
    yield full_disk(folder / "full", times)
    yield locked_folder(folder / "locked")
    yield shrinking_text(folder / "shrinking")
    yield shrinking_model(folder / "model-shrinks")
    yield two_writers(folder / "two", times)
    yield jumping_clock(folder / "clock")
    yield flipped_bits(folder / "flips", 20 * times)


# Writers


def writers(folder: Path) -> dict[str, Callable[[Path], object]]:
    """Everything that is written, by what it is called; each is given the path to write to."""
    tokenizer = foreword.WordTokenizer().fit(texts(300))
    corpus = foreword.Corpus.from_texts(texts(300), tokenizer)
    ngram = foreword.NgramLM(3).fit(corpus)
    vectors = foreword.Word2Vec(16, epochs=1).fit(corpus).vectors
    bpe = foreword.BPETokenizer(vocab_size=400).fit(texts(300))
    classifier = foreword.TextClassifier().fit(texts(40), ["a", "b"] * 20)
    return {
        "a model folder": lambda path: save(foreword.TextLM(tokenizer, ngram), path),
        "a classifier's folder": lambda path: save(classifier, path),
        "a corpus": lambda path: save(corpus, path),
        "ARPA": lambda path: write_arpa(ngram, path.with_suffix(".arpa")),
        "ARPA, gzip": lambda path: write_arpa(ngram, path.with_suffix(".arpa.gz")),
        "word2vec text": lambda path: write_vectors(vectors, path.with_suffix(".vec")),
        "word2vec binary": lambda path: write_vectors(vectors, path.with_suffix(".bin")),
        "tokenizer.json": lambda path: write_tokenizer_json(bpe, path.with_suffix(".json")),
        "n-gram estimation on disk": lambda path: foreword.NgramLM(3, memory=1 << 20, scratch=str(path.parent)).fit(
            corpus
        ),
        "counting on disk": lambda path: _count(path.with_suffix(".partial")),
    }


def _count(path: Path) -> None:
    from foreword.tokens.resume import count_with_checkpoint

    tokenizer = foreword.BPETokenizer(vocab_size=400)
    count_with_checkpoint(tokenizer, blocks_of(texts(300)), path, fingerprint="", resume=False, threads=1, every=0.0)


def full_disk(folder: Path, times: int) -> Fault:
    """Each writer, with an old version in place, on a disk that fills up after a random number of bytes."""
    fault, rng = Fault("disk full"), random.Random(0)
    for name, write in writers(folder).items():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write(folder / MODEL)
        before = files_of(folder)
        largest = max((len(data) for data in before.values()), default=1 << 16)
        for _ in range(times):
            limit = int(largest * rng.random())
            _try(fault, f"{name}, {limit:,} bytes", before, folder, write, lambda limit=limit: _limit_files(limit))  # type: ignore[misc]
    return fault


def locked_folder(folder: Path) -> Fault:
    """Each writer into a folder that may only be read."""
    fault = Fault("read-only folder")
    for name, write in writers(folder).items():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write(folder / MODEL)
        before = files_of(folder)
        folder.chmod(0o555)
        _try(fault, name, before, folder, write, _become_nobody)
        folder.chmod(0o755)
    return fault


def _limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))  # a write beyond it fails as on a full disk


def _become_nobody() -> None:
    if os.geteuid() == 0:  # whom no permission stops
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def _try(
    fault: Fault, name: str, before: dict[str, bytes], folder: Path, write: Callable[[Path], object],
    hinder: Callable[[], None],
) -> None:  # fmt: skip
    """Write where it must fail: one line is printed, the old version stays, and nothing is left next to it."""
    fault.tried += 1

    def hindered() -> str | None:
        hinder()
        try:
            write(folder / MODEL)
        except ForewordError as error:
            return str(error)
        return None

    said = answer_of(hindered)
    if said.startswith("crashed") or said.startswith("raised") or "\n" in said:
        fault.found.append(f"{name}: {said}")
    if said != "None" and files_of(folder) != before:
        fault.found.append(f"{name}: the old one is not whole, or something is left next to it, after {said!r}")


def answer_of(work: Callable[[], object]) -> str:
    """What work returns, as text, done in a fork; or how it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            said = str(work())
        except BaseException as error:
            said = f"raised {type(error).__name__}: {error}"
        os.write(writing, said.encode()[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return text if status == 0 else f"crashed: {signal.Signals(-status).name}" if status < 0 else f"crashed: {text}"


# Readers


def shrinking_text(folder: Path) -> Fault:
    """Files that lose their second half when their reader has begun."""
    fault = Fault("a text that shrinks while it is read")
    folder.mkdir(parents=True, exist_ok=True)
    for name, (data, read) in _streamed(folder).items():
        fault.tried += 1
        path = folder / name
        path.write_bytes(data)
        said = answer_of(lambda path=path, read=read: _read_shrinking(path, read))  # type: ignore[misc]
        if not said.startswith("refused"):
            fault.found.append(f"{name}: {said}")
    return fault


def _streamed(folder: Path) -> dict[str, tuple[bytes, Callable[[Path], Iterator[Any]]]]:
    """Larger than a reader's block, so that it has to come back for more."""
    lines = "".join(f"{text}\n" for text in texts(3000)) * 40
    rows = "".join(json.dumps({"text": text, "label": "a"}) + "\n" for text in texts(3000)) * 40
    table = "".join(f"a\t{text}\n" for text in texts(3000)) * 40
    return {
        "a.txt": (lines.encode(), lambda path: iter(read_blocks(path))),
        "a.jsonl": (rows.encode(), lambda path: iter(read_blocks(path))),
        "labelled.jsonl": (rows.encode(), lambda path: iter(read_labelled(path))),
        "labelled.tsv": (table.encode(), lambda path: iter(read_labelled(path))),
        "a.parquet": (_parquet(rows), lambda path: iter(read_blocks(path))),
    }


def _parquet(rows: str) -> bytes:
    import io

    import pyarrow
    from pyarrow import parquet

    into = io.BytesIO()
    table = pyarrow.table({"text": [json.loads(row)["text"] for row in rows.splitlines()]})
    parquet.write_table(table, into, row_group_size=20_000, compression="none", use_dictionary=False)
    return into.getvalue()


def _read_shrinking(path: Path, read: Callable[[Path], Iterator[Any]]) -> str:
    """Refused, or whole since its reader was ahead; but never a part that passes for the whole."""
    all_of_it = sum(map(_size, read(path)))
    found = read(path)
    size = _size(next(found))
    os.truncate(path, path.stat().st_size // 2)
    try:
        size += sum(map(_size, found))
    except ForewordError as error:
        return f"refused: {error}"
    return (
        "refused nothing, and was whole" if size == all_of_it else f"read {size:,} of {all_of_it:,} bytes as the whole"
    )


def _size(found: Any) -> int:
    return int(found.text_bytes()) if isinstance(found, Block) else len(found.text)


def shrinking_model(folder: Path) -> Fault:
    """Models that are mapped, cut to nothing by another program under a command that uses them."""
    fault = Fault("a model that shrinks while it is used")
    for name, path, shrinks in _mapped_models(folder):
        fault.tried += 1
        said = answer_of(lambda path=path, shrinks=shrinks: _used_while_cut(path, shrinks))  # type: ignore[misc]
        if not said.startswith("told"):
            fault.found.append(f"{name}: {said}")
    return fault


def _mapped_models(folder: Path) -> Iterator[tuple[str, Path, Path]]:
    """What is opened, and which of its files shrinks."""
    folder.mkdir(parents=True, exist_ok=True)
    model = foreword.TextLM(foreword.WordTokenizer(), foreword.NgramLM(3)).fit(texts(300))
    save(model, folder / "lm")
    yield "a model folder", folder / "lm", folder / "lm" / "arrays.safetensors"
    classifier = FastTextClassifier(16, buckets=20_000, word_ngrams=2).fit(texts(40), ["a", "b"] * 20)
    classifier.write(folder / "model.bin")
    yield "fastText .bin", folder / "model.bin", folder / "model.bin"


def _used_while_cut(path: Path, shrinks: Path) -> str:
    """``foreword score`` or ``classify predict``, reading a pipe: when it has answered a line, the model is cut."""
    command = ["score"] if path.is_dir() else ["classify", "predict"]
    child = subprocess.Popen(
        [sys.executable, "-m", "foreword", *command, str(path), "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("w1 w2 w3\n")
    child.stdin.flush()
    if not child.stdout.readline():
        return f"no answer: {child.communicate()[1]}"
    os.truncate(shrinks, 0)
    lines, said = child.communicate("".join(f"{text}\n" for text in texts(50)))
    if child.returncode == 1 and said == LINE.decode():
        return f"told: {said}"
    answers = lines.count("\n")
    return (
        f"told nothing, and answered all {answers} lines"
        if child.returncode == 0 and answers == 50
        else (f"status {child.returncode}: {said}")
    )


def flipped_bits(folder: Path, times: int) -> Fault:
    """A bit changes in a model too large to be checksummed before it is used: the check in the background finds it."""
    fault, rng = Fault("a flipped bit of a large model"), random.Random(0)
    rows = np.zeros((4, CHECKSUM_LIMIT // 16 + 1), np.float32)
    save(WordVectors.of_words([b"a", b"b", b"c", b"d"], rows), folder)
    file = folder / ARRAYS
    began = time.thread_time()
    sha256_of(file)
    fault.note = f"{(time.thread_time() - began) / file.stat().st_size * 1e9:.1f} s of one core for a gigabyte"
    for _ in range(times):
        fault.tried += 1
        at, bit = rng.randrange(file.stat().st_size - rows.nbytes, file.stat().st_size), 1 << rng.randrange(8)
        for damaged in (True, False):  # there and back
            _flip(file, at, bit)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                load(folder)
                CHECKS.wait()
            told = any("checksum" in str(each.message) for each in seen)
            if told != damaged:
                fault.found.append(f"bit {bit} of byte {at:,}: {'reported' if told else 'not reported'}")
    return fault


def _flip(file: Path, at: int, bit: int) -> None:
    with file.open("r+b") as stream:
        stream.seek(at)
        old = stream.read(1)[0]
        stream.seek(at)
        stream.write(bytes([old ^ bit]))


# Two at once, and clocks


def two_writers(folder: Path, times: int) -> Fault:
    """Three processes save to one place over and over, and a fourth opens what stands there: it is always whole."""
    fault = Fault("several processes write one model")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    corpus = foreword.Corpus.from_texts(texts(100), foreword.WordTokenizer().fit(texts(100)))
    models = [foreword.NgramLM(order).fit(corpus) for order in (1, 2, 3)]
    whole = []
    for model in models:
        save(model, folder / MODEL)
        whole.append(files_of(folder))
    children = [_forked(lambda model=model: _save_often(model, folder / MODEL, 20 * times)) for model in models]  # type: ignore[misc]
    while any(_runs(child) for child in children):
        fault.tried += 1
        try:
            assert load(folder / MODEL, verify=True).order in (1, 2, 3)
        except Exception as error:
            fault.found.append(f"{type(error).__name__}: {error}")
    if files_of(folder) not in whole:
        fault.found.append("what stands there in the end is none of them, or not alone")
    return fault


def _save_often(model: Any, path: Path, times: int) -> None:
    for _ in range(times):
        save(model, path)


def _forked(work: Callable[[], object]) -> int:
    child = os.fork()
    if not child:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return child


def _runs(child: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(child, os.WNOHANG)[0] == 0
    return False


def jumping_clock(folder: Path) -> Fault:
    """The clock on the wall jumps by years, to and fro, at every look: all work ends in the same bytes."""
    fault = Fault("the clock jumps")
    for work in WORKS:
        fault.tried += 1
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("steady", "jumping"):
            (folder / name).mkdir(parents=True)
        work.do(folder / "steady")
        said = answer_of(lambda work=work: _with_jumps(work.do, folder / "jumping"))  # type: ignore[misc]
        if said != "None" or files_of(folder / "steady") != files_of(folder / "jumping"):
            fault.found.append(f"{work.name}: {said if said != 'None' else 'other bytes'}")
    return fault


def _with_jumps(do: Callable[[Path], None], folder: Path) -> None:
    rng = random.Random(0)
    time.time = lambda: rng.uniform(0.0, 4e9)
    time.time_ns = lambda: rng.randrange(4 * 10**18)
    do(folder)
