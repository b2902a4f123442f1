"""Encoding lines with a learnt byte-pair encoding, against tokenizers and tiktoken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tiktoken
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from benchmarks.bpe_training import GPT2_PATTERN, SIZES
from benchmarks.data import WIKITEXT, documents, megabytes, plain_file
from benchmarks.measure import interleaved, one_core
from benchmarks.report import Row, compared
from foreword.text.sources import read_blocks
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.characters import spelling_of
from foreword.tokens.vocab import END

TITLE = "BPE encoding"
HOW = (
    "Lines in memory to ids, byte-level, GPT-2's pattern, identical ids. Our tokenizer is made again for each run, on "
    "the clock, so that it remembers nothing; the peers' are made once. `tiktoken` is called a line a call, which is "
    "its quickest way."
)

Encode = Callable[[], Sequence[Any]]


def run(quick: bool) -> list[Row]:
    lines = list(documents(plain_file(WIKITEXT)))
    with one_core():
        return [row for size in (SIZES[:1] if quick else SIZES) for row in _rows(size, lines)]


def _rows(size: int, lines: list[str]) -> list[Row]:
    tokenizer = BPETokenizer(size).fit_blocks(read_blocks(plain_file(WIKITEXT)), threads=1)
    parts = tokenizer.to_parts()
    hugging_face, tik_token = as_tokenizers(tokenizer), as_tiktoken(tokenizer)

    def ours() -> list[NDArray[np.int32]]:
        return BPETokenizer.from_parts(parts).encode_batch(lines, threads=1)

    def ours_by_line() -> list[NDArray[np.int32]]:
        encode = BPETokenizer.from_parts(parts).encode
        return [encode(line) for line in lines]

    def tik_token_by_line() -> list[list[int]]:
        encode = tik_token.encode_ordinary
        return [encode(line) for line in lines]

    text = f"{WIKITEXT}, {size:,} tokens"
    at_once, by_line = f"{text}, encode_batch", f"{text}, a line a call"
    return [
        _row(at_once, ours, "tokenizers encode_batch", lambda: hugging_face.encode_batch(lines), 5),
        _row(at_once, ours, "tokenizers encode_batch_fast", lambda: hugging_face.encode_batch_fast(lines)),
        _row(at_once, ours, "tiktoken", tik_token_by_line, 1.2),
        _row(by_line, ours_by_line, "tiktoken", tik_token_by_line),
    ]


def _row(job: str, ours: Encode, peer: str, theirs: Encode, bar: float | None = None) -> Row:
    pairs = interleaved(f"encoding {job}, {peer}", ours, theirs, same_ids)
    return compared(job, peer, pairs, bar=bar, size=megabytes(plain_file(WIKITEXT)))


def same_ids(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    """Ours are arrays, tiktoken's lists, and an ``Encoding`` of tokenizers has its ids inside."""
    return [ids.tolist() for ids in ours] == [getattr(encoding, "ids", encoding) for encoding in theirs]


def as_tokenizers(tokenizer: BPETokenizer) -> Tokenizer:
    ids = {token: id for id, token in enumerate(tokenizer.vocab)}
    same = Tokenizer(BPE(vocab=ids, merges=list(tokenizer.merge_names())))
    same.pre_tokenizer = ByteLevel(add_prefix_space=False)
    return same


def as_tiktoken(tokenizer: BPETokenizer) -> tiktoken.Encoding:
    """Its ranks are its ids. Ours rise with the merges too, so that they can serve as both."""
    ranks = {spelling_of(token): id for id, token in enumerate(tokenizer.vocab) if token != END}
    return tiktoken.Encoding("foreword", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens={})
