"""Encoding lines with a unigram model, against sentencepiece."""

from __future__ import annotations

from functools import cache

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from benchmarks.data import ENWIKI, WIKITEXT, documents, megabytes, plain_file
from benchmarks.measure import FEW_PAIRS, PAIRS, interleaved, one_core
from benchmarks.report import Row, compared
from benchmarks.unigram_training import learn_sentencepiece
from foreword.tokens.sentencepiece import SentencePieceTokenizer
from foreword.tokens.sentencepiece_file import PieceModel, parse_model

TITLE = "Unigram encoding"
HOW = (
    "Lines in memory to ids with a model that sentencepiece has trained on WikiText-2 (`nmt_nfkc`, a dummy prefix), "
    "identical ids. Tokenizers are made before the clock starts; ours is a new one for each run, with empty caches. "
    f"{PAIRS} pairs, {FEW_PAIRS} on enwiki."
)

SIZES = (8_000, 32_000)


def run(quick: bool) -> list[Row]:
    with one_core():
        return [_row(text, size) for text in ([WIKITEXT] if quick else [WIKITEXT, ENWIKI]) for size in SIZES]


@cache
def _model(size: int) -> bytes:
    return learn_sentencepiece(plain_file(WIKITEXT), size)


def _row(text: str, size: int) -> Row:
    lines = list(documents(plain_file(text)))
    model: PieceModel = parse_model(_model(size))
    peer = sentencepiece.SentencePieceProcessor(model_proto=_model(size))

    few = FEW_PAIRS if text == ENWIKI else PAIRS
    unused = [SentencePieceTokenizer.from_model(model) for _ in range(few + 1)]

    def ours() -> list[NDArray[np.int32]]:
        return unused.pop().encode_batch(lines, threads=1)

    def theirs() -> list[list[int]]:
        found: list[list[int]] = peer.encode(lines, num_threads=1)
        return found

    job = f"{text}, {size:,} pieces"
    pairs = interleaved(f"encoding {job}, sentencepiece", ours, theirs, _same, pairs=few)
    return compared(job, "sentencepiece", pairs, bar=3, size=megabytes(plain_file(text)))


def _same(ours: list[NDArray[np.int32]], theirs: list[list[int]]) -> bool:
    return [ids.tolist() for ids in ours] == theirs
