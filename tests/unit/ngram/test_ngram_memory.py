"""Estimation within a limit of memory: the same model, byte for byte, and nothing left by those who are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from foreword.errors import InputError, SettingError
from foreword.ngram.counts import count_ngrams
from foreword.ngram.estimate import estimate_logs
from foreword.ngram.hash_layout import hash_arrays
from foreword.ngram.model import NgramLM
from foreword.ngram.smoothing import GIVEN, METHODS
from foreword.ngram.trie_layout import trie_arrays
from foreword.storage.folder import load, save
from foreword.storage.scratch import Scratch
from foreword.text.block import blocks_of
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer

VOCAB = Vocab(["<unk>", "</s>", *map(str, range(300))])
MEGABYTE = 1 << 20

documents = st.lists(st.lists(st.integers(2, 6), max_size=9), min_size=1, max_size=6)


def corpus_of(texts: list[list[int]]) -> Corpus:
    return Corpus.from_ids(texts, VOCAB)


def varied(seed: int, texts: int = 600) -> Corpus:
    """Frequent and rare words; about 12,000 tokens, which a megabyte holds only in parts."""
    random = np.random.default_rng(seed)
    shares = np.arange(1.0, 301) ** -1.2
    lengths = random.integers(0, 40, texts)
    return corpus_of([(random.choice(300, length, p=shares / shares.sum()) + 2).tolist() for length in lengths])


class Tight(Scratch):
    """Everything in parts of a few items, which takes every turn that a large text takes."""

    def __init__(self, items: int) -> None:
        super().__init__(MEGABYTE)
        self.items = items

    def fits(self, item_bytes: int, least: int = 1) -> int:
        return self.items


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# The same result


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(texts=documents, order=st.integers(1, 10), items=st.integers(1, 7))
def test_counts_are_the_same_in_parts_of_any_size(texts: list[list[int]], order: int, items: int) -> None:
    """A word, or a whole n-gram, that has more positions than a part holds is cut too."""
    unigrams, orders = count_ngrams(corpus_of(texts), order)
    counted, parts = count_ngrams(corpus_of(texts), order, scratch=Tight(items))
    assert_array_equal(counted, unigrams)
    for whole, part in zip(orders, parts, strict=True):
        for name in ("words", "parents", "counts", "suffixes", "continuations", "children"):
            assert_array_equal(getattr(part, name), getattr(whole, name), err_msg=name)


@pytest.mark.parametrize("prune", [(), (0, 1), (0, 0, 2)], ids=str)
@pytest.mark.parametrize("smoothing", sorted(set(METHODS) - {GIVEN}))
@settings(max_examples=6, deadline=None)
@given(texts=documents, items=st.integers(1, 7))
def test_models_are_the_same_in_parts_of_any_size(
    smoothing: str, prune: tuple[int, ...], texts: list[list[int]], items: int
) -> None:
    whole = NgramLM(4, smoothing, prune=prune).fit(corpus_of(texts))
    scratch = Tight(items)
    found, discounts = estimate_logs(corpus_of(texts), 4, METHODS[smoothing], prune=prune, scratch=scratch)
    arrays = hash_arrays(found.unigrams, found.tables, scratch)
    assert discounts == whole.discounts_
    for name, array in whole.layout_.arrays().items():
        assert_array_equal(arrays[name], array, err_msg=name)


@pytest.mark.parametrize("quantize", [False, True])
def test_tries_are_the_same_in_parts(quantize: bool) -> None:
    whole = NgramLM(4, layout="trie", quantize=quantize).fit(varied(1))
    scratch = Tight(1000)
    found, _ = estimate_logs(varied(1), 4, METHODS["modified-kneser-ney"], scratch=scratch)
    arrays = trie_arrays(found.unigrams, found.tables, scratch, quantize=quantize)
    for name, array in whole.layout_.arrays().items():
        assert_array_equal(arrays[name], array, err_msg=name)


@pytest.mark.parametrize(("layout", "quantize"), [("hash", False), ("trie", False), ("trie", True)])
@pytest.mark.parametrize("order", [1, 2, 5])
def test_what_is_saved_is_the_same_byte_for_byte(
    order: int, layout: Literal["hash", "trie"], quantize: bool, tmp_path: Path
) -> None:
    for name, memory in (("whole", None), ("parts", MEGABYTE)):
        model = NgramLM(order, layout=layout, quantize=quantize, memory=memory, scratch=str(tmp_path))
        save(model.fit(varied(2)), tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "parts"}
    assert files(tmp_path / "whole") == files(tmp_path / "parts")


def test_a_text_of_one_word_is_cut_too() -> None:
    corpus = corpus_of([[2] * 20_000])
    whole, parts = NgramLM(3).fit(corpus), NgramLM(3, memory=MEGABYTE).fit(corpus)
    assert_array_equal(parts.logprobs(corpus), whole.logprobs(corpus))


def test_ids_that_are_on_disk_are_the_same() -> None:
    texts = [f"a b{number % 7} c" for number in range(1000)]
    here, there = WordTokenizer(), WordTokenizer()
    expected = Corpus.from_texts(texts, here.fit(texts))
    found = there.fit_corpus(blocks_of(texts, 500), threads=2, scratch=Scratch(MEGABYTE))
    again = Corpus.from_blocks(blocks_of(texts, 500), there, threads=2, scratch=Scratch(MEGABYTE))
    for corpus in (found, again):
        assert_array_equal(corpus.ids, expected.ids)
        assert_array_equal(corpus.offsets, expected.offsets)
        assert corpus.ids.dtype == expected.ids.dtype
        assert corpus.vocab == expected.vocab


# Settings and failures


@pytest.mark.parametrize("memory", [-1, 0, MEGABYTE - 1])
def test_a_limit_that_nothing_fits_is_refused(memory: int) -> None:
    with pytest.raises(SettingError, match=f"memory={memory}: expected at least"):
        NgramLM(3, memory=memory)


def test_a_folder_that_is_not_there_is_one_line() -> None:
    with pytest.raises(InputError, match="cannot write temporary files in nowhere: No such file"):
        NgramLM(3, memory=MEGABYTE, scratch="nowhere").fit(varied(3))


def test_the_limit_is_no_part_of_the_model(tmp_path: Path) -> None:
    save(NgramLM(2, memory=MEGABYTE).fit(varied(3)), tmp_path / "model")
    assert load(tmp_path / "model").memory is None


def test_a_meter_hears_the_phases() -> None:
    heard: list[tuple[str, int, int | None]] = []
    NgramLM(4, memory=MEGABYTE).fit(varied(4), meter=lambda *told: heard.append(told))
    assert list(dict.fromkeys(phase for phase, _, _ in heard)) == [
        "counting", "linking", "estimating", "filling tables",
    ]  # fmt: skip
    for name in {phase for phase, _, _ in heard}:
        steps = [(done, total) for phase, done, total in heard if phase == name]
        assert steps == sorted(steps)
        assert steps[-1][0] == steps[-1][1]
    assert sum(phase == "counting" for phase, _, _ in heard) > 1


# Whole runs


WHOLE_RUN = [sys.executable, "-m", "foreword", "train", "ngram"]


@pytest.fixture(scope="module")
def long_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3.2 million words, 60,000 different ones, hardly any n-gram twice: the most memory for its length."""
    random = np.random.default_rng(5)
    words = (random.zipf(1.15, 3_200_000) % 60_000).astype(str).reshape(-1, 20)
    path = tmp_path_factory.mktemp("long") / "text.txt"
    path.write_text("\n".join(map(" ".join, words.tolist())))
    return path


def peak_of(*options: object) -> int:
    """The most anonymous memory, in bytes, that a run ever had. What is mapped from files is the system's to drop."""
    run = subprocess.Popen([*WHOLE_RUN, *map(str, options), "--quiet"])
    status, peak = Path(f"/proc/{run.pid}/status"), 0
    while run.poll() is None:
        peak = max(peak, *_anonymous(status), 0)
        time.sleep(0.002)
    assert run.returncode == 0
    return peak


def _anonymous(status: Path) -> Iterator[int]:
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        if line.startswith("RssAnon"):
            yield int(line.split()[1]) << 10


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to read a process's memory from")
def test_a_run_keeps_to_its_limit_and_ends_in_the_same_model(long_text: Path, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("a b c d e f\n")
    for memory in ("64M", "150M"):  # compiles what is not compiled yet
        interpreter = peak_of(tmp_path / "short.txt", "-o", tmp_path / "short", "--memory", memory)
    without = peak_of(long_text, "-o", tmp_path / "whole")
    within = peak_of(long_text, "-o", tmp_path / "parts", "--memory", "150M")
    assert without > interpreter + (200 << 20)
    assert within < interpreter + (150 << 20)
    assert files(tmp_path / "whole") == files(tmp_path / "parts")


KILLED = """
import os, signal, sys
from pathlib import Path
import foreword.storage.folder
from foreword.storage.folder import save
from foreword.storage.scratch import Scratch
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.text.block import blocks_of
from foreword.tokens.words import WordTokenizer

moment, target = sys.argv[1], Path(sys.argv[2])

def die(phase, *_):
    if phase == moment:
        os.kill(os.getpid(), signal.SIGKILL)

write_arrays = foreword.storage.folder.write_arrays
def write_and_die(path, arrays, **how):
    write_arrays(path, arrays, **how)
    die("writing")

foreword.storage.folder.write_arrays = write_and_die
tokenizer = WordTokenizer()
texts = [f"a b{number % 70} c{number % 11} d" for number in range(5000)]
corpus = tokenizer.fit_corpus(blocks_of(texts), threads=1, scratch=Scratch(1 << 20, str(target.parent)))
model = NgramLM(4, memory=1 << 20, scratch=str(target.parent)).fit(corpus, meter=die)
save(TextLM(tokenizer, model), target)
"""


def whole_run(moment: str, target: Path) -> int:
    return subprocess.run([sys.executable, "-c", KILLED, moment, str(target)], check=False).returncode


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="there is no such signal")
def test_who_is_killed_at_any_moment_leaves_no_model_or_a_whole_one_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "model"
    for moment in ("counting", "linking", "estimating", "filling tables"):
        assert whole_run(moment, target) == -signal.SIGKILL
        assert list(tmp_path.iterdir()) == []  # temporary files have no name
    assert whole_run("writing", target) == -signal.SIGKILL
    assert not target.exists()
    (left,) = tmp_path.iterdir()  # the beginning of a model, hidden, for the next one to clear away
    assert left.name.startswith(".model.new-")
    assert whole_run("never", target) == 0
    assert list(tmp_path.iterdir()) == [target]
    whole = files(target)
    load(target, verify=True)
    assert whole_run("writing", target) == -signal.SIGKILL
    assert files(target) == whole
