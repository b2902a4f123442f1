"""KenLM's binary files, queried in place, against the ``kenlm`` module on the same files."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import foreword.compat.kenlm as drop_in
from benchmarks.data import WIKITEXT, documents, plain_file, scratch_folder
from benchmarks.measure import interleaved, one_core
from benchmarks.ngram import TEST, count_tokens, estimate, paced
from benchmarks.opening import opening_of_kenlm
from benchmarks.report import Row
from foreword.arrays import Floats
from foreword.ngram.kenlm import KenlmLM
from foreword.ngram.kenlm_writing import BINARIES, write_kenlm
from foreword.ngram.log10 import log10_of
from foreword.text.sources import read_blocks
from foreword.tokens.corpus import Corpus

kenlm: Any = import_module("kenlm")

TITLE = "KenLM binaries"
HOW = (
    "The same file on both sides: a 5-gram model of wikitext-2 as a KenLM binary, mapped by both. From a text file to "
    "a score for each line, reading included, one process and one thread; the scores are equal to the last bit of a "
    "float32. `Model.score`: a loop over lines in memory, `foreword.compat.kenlm` next to `kenlm`. Ten processes: a "
    "probing file of random bigrams; of the pages that they share each is counted by its share (PSS)."
)

FILE_BAR = 1.0
LINE_BAR = 0.8
"""A call of ours from Python costs some microseconds more than one of a compiled module."""


def run(quick: bool) -> list[Row]:
    model = log10_of(estimate(plain_file(WIKITEXT), scratch_folder() / "ngram"))
    rows: list[Row] = []
    with one_core():
        for binary in BINARIES:
            path = scratch_folder() / f"{binary}.bin"
            write_kenlm(model, path, binary)
            peer = kenlm.Model(str(path))
            rows.append(_scoring(path, peer, binary))
            rows.append(_line_by_line(path, peer, binary))
            path.unlink()
    return rows if quick else [*rows, *opening_of_kenlm()]


def _scoring(path: Path, peer: Any, binary: str) -> Row:
    text, model = plain_file(TEST), KenlmLM.open(path, threads=1)

    def ours() -> Floats:
        return model.totals(Corpus.from_blocks(read_blocks(text), model.words, threads=1))

    def theirs() -> Floats:
        score = peer.score
        return np.array([score(line) for line in documents(text)], np.float32)

    measured = interleaved(f"{binary} file", ours, theirs, np.array_equal)
    tokens = count_tokens(text)
    return paced(f"{TEST}, {binary} file", "kenlm Model.score", measured, tokens, tokens, FILE_BAR)


def _line_by_line(path: Path, peer: Any, binary: str) -> Row:
    text, model = plain_file(TEST), drop_in.Model(str(path))
    lines = list(documents(text))

    def ours() -> list[float]:
        return [model.score(line) for line in lines]

    def theirs() -> list[float]:
        return [peer.score(line) for line in lines]

    measured = interleaved(f"{binary} file, Model.score", ours, theirs, list.__eq__)
    tokens = count_tokens(text)
    return paced(f"{TEST}, {binary} file, Model.score", "kenlm Model.score", measured, tokens, tokens, LINE_BAR)
