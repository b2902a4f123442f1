"""CTC beam search with an n-gram model against pyctcdecode."""

from __future__ import annotations

import json
import logging
import lzma
import os
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import scratch_folder
from benchmarks.measure import FEW_PAIRS, Pairs, interleaved, one_core
from benchmarks.report import Row, compared
from foreword.arrays import Doubles
from foreword.native.parallel import ordered_map
from foreword.speech import build_ctcdecoder
from foreword.speech.beam_search import BeamSearch
from foreword.speech.plain import BeamSettings

TITLE = "CTC decoding"
HOW = (
    "371 frames of LibriSpeech with 29 labels (the logits of pyctcdecode's own tests), as they are and with noise, at "
    "pyctcdecode's defaults: a beam of 100, and a 3-gram model of the Penn Treebank with its 10,000 words. From logits "
    "to the best text, one core. The ten best beams of both agree in text, word frames and, to 1e-4, in score. Two "
    "threads: 16 noisy matrices by `decode_batch` on two cores and on one, wall time. Streamed: an hour of noisy "
    "frames, 180,000, and how many MB the arrays of the search and the text take after a minute and after the hour."
)

BAR = 10.0
THREADS_BAR = 1.8
MEMORY_BAR = 2.0


def run(quick: bool) -> list[Row]:
    logging.disable(logging.WARNING)
    folder = Path(os.environ["FOREWORD_DATA"]) / "formats"
    with lzma.open(folder / "ctc" / "expected.json.xz") as file:
        stored = json.load(file)
    inputs = {"confident": json.loads((folder / "ctc" / "libri_logits.json").read_text("utf-8"))}
    inputs |= {name.replace("_", " "): rows for name, rows in stored["inputs"].items()}
    arpa = scratch_folder() / "ptb3.arpa"
    with lzma.open(folder / "kenlm_ptb3.arpa.xz") as file:
        arpa.write_bytes(file.read())
    peer: Any = import_module("pyctcdecode")
    rows = []
    with one_core():
        for name, path in (("3-gram", str(arpa)), ("no language model", None)):
            ours, theirs = build_ctcdecoder(stored["labels"], path), peer.build_ctcdecoder(stored["labels"], path)
            for noise, logits in inputs.items():
                rows.append(_decoding(f"{name}, {noise}", np.array(logits), ours, theirs))
    decoder = build_ctcdecoder(stored["labels"], str(arpa))
    noisy = np.array(stored["inputs"]["noisy_0.3"])
    rows.append(_threads(decoder, noisy))
    rows.append(_hour(decoder, noisy, 18_000 if quick else 180_000))
    return rows


def _decoding(job: str, logits: Doubles, ours: Any, theirs: Any) -> Row:
    mine, other = ours.decode_beams(logits)[:10], theirs.decode_beams(logits)[:10]
    same = [beam[:1] + beam[2:3] for beam in mine] == [beam[:1] + beam[2:3] for beam in other]
    near = all(np.allclose(one[3:], two[3:], rtol=0, atol=1e-4) for one, two in zip(mine, other, strict=True))
    repeat = 20 if "confident" in job else 1

    def times(decoder: Any) -> Any:
        return [decoder.decode(logits) for _ in range(repeat)][-1]

    measured = interleaved(
        job, lambda: times(ours), lambda: times(theirs), lambda one, two: one == two and same and near, pairs=FEW_PAIRS
    )
    once = Pairs([taken / repeat for taken in measured.ours], [taken / repeat for taken in measured.theirs])
    return compared(job, "pyctcdecode", once, bar=BAR)


def _threads(decoder: Any, logits: Doubles) -> Row:
    random = np.random.default_rng(0)
    batch = [logits + 0.1 * random.normal(size=logits.shape) for _ in range(16)]

    def decode(threads: int) -> list[str]:
        return list(ordered_map(decoder.decode, batch, threads))

    measured = interleaved("two threads", lambda: decode(2), lambda: decode(1), list.__eq__, wall=True)
    return compared("16 matrices, two threads", "one thread", measured, bar=THREADS_BAR)


def _hour(decoder: Any, logits: Doubles, frames: int) -> Row:
    random = np.random.default_rng(0)
    stream = decoder.stream(BeamSettings(prune_history=True))
    assert isinstance(stream, BeamSearch)
    sizes = []
    start = time.process_time()
    for first in range(0, frames, len(logits)):
        stream.read(decoder.log_probabilities(logits + 0.1 * random.normal(size=logits.shape)))
        if first >= min(3000, frames // 10):
            sizes.append(_bytes(stream) / 2**20)
    taken, words = time.process_time() - start, len(stream.finish(1)[0].text.split())
    growth = sizes[-1] / sizes[0]
    return Row(
        f"streamed, {frames:,} frames, {words:,} words",
        ours=f"{sizes[-1]:.1f} MB at the end, {sizes[0]:.1f} MB after a minute; {frames / taken:,.0f} frames/s",
        ratio=f"{growth:.2f} times the memory",
        bar=f"≤ {MEMORY_BAR:g}",
        met=growth <= MEMORY_BAR,
        figures={"megabytes": [sizes[0], sizes[-1]], "frames_per_second": frames / taken},
    )


def _bytes(stream: BeamSearch) -> int:
    trees = (stream.beams, stream.words, stream.texts, stream.chains)
    return len(stream._said) + stream._spans.nbytes + sum(array.nbytes for tree in trees for array in tree)
