"""Learning byte-pair encodings from a file, against tokenizers, sentencepiece and rustbpe."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import rustbpe
import sentencepiece
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from benchmarks.data import ENWIKI, WIKITEXT, documents, megabytes, plain_file
from benchmarks.measure import FEW_PAIRS, PAIRS, interleaved, one_core
from benchmarks.report import Row, compared
from foreword.text.sources import read_blocks
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.vocab import END

TITLE = "BPE training"
HOW = (
    "From file to merges: byte-level, GPT-2's pattern, a line a document. The merges of `tokenizers` are identical; "
    "the others have rules of their own, and only the number of tokens is compared. "
    f"{PAIRS} pairs, {FEW_PAIRS} on enwiki."
)

SIZES = (8_000, 32_000)
GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""As published. Variants with possessive repeats, equal on text, are slower in rustbpe and in tiktoken."""
DOCUMENTS_A_BATCH = 1_000

Learn = Callable[[Path, int], Any]
Agree = Callable[[BPETokenizer, Any], bool]


def run(quick: bool) -> list[Row]:
    texts = [WIKITEXT] if quick else [WIKITEXT, ENWIKI]
    with one_core():
        return [
            _row(text, size, peer, learn, agree, bar)
            for text in texts
            for size in SIZES
            for peer, learn, agree, bar in PEERS
        ]


def _row(text: str, size: int, peer: str, learn: Learn, agree: Agree, bar: float) -> Row:
    path = plain_file(text)
    job = f"{text}, {size:,} tokens"
    pairs = interleaved(
        f"training on {job}, {peer}",
        lambda: learn_ours(path, size),
        lambda: learn(path, size),
        agree,
        pairs=FEW_PAIRS if text == ENWIKI else PAIRS,
    )
    return compared(job, peer, pairs, bar=bar, size=megabytes(path))


def learn_ours(path: Path, size: int) -> BPETokenizer:
    return BPETokenizer(size).fit_blocks(read_blocks(path), threads=1)


def learn_tokenizers(path: Path, size: int) -> Tokenizer:
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(
        vocab_size=size, min_frequency=1, special_tokens=[END], initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(_batches(documents(path)), trainer)
    return tokenizer


def same_merges(ours: BPETokenizer, theirs: Tokenizer) -> bool:
    merges = json.loads(theirs.to_str())["model"]["merges"]
    return list(ours.merge_names()) == [tuple(merge) for merge in merges]


def learn_sentencepiece(path: Path, size: int) -> bytes:
    """Closest to bytes: text left as it is, unknown characters spelt in bytes. It is the quickest setting too."""
    model = BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        input=str(path), model_writer=model, model_type="bpe", vocab_size=size, num_threads=1,
        normalization_rule_name="identity", byte_fallback=True, hard_vocab_limit=False,
        max_sentence_length=1 << 24,  # longer lines are left out: 4,192 bytes if nothing is said
        minloglevel=2,
    )  # fmt: skip
    return model.getvalue()


def same_size_as_sentencepiece(ours: BPETokenizer, model: bytes) -> bool:
    return len(ours.vocab) == sentencepiece.SentencePieceProcessor(model_proto=model).get_piece_size()


def learn_rustbpe(path: Path, size: int) -> rustbpe.Tokenizer:
    tokenizer = rustbpe.Tokenizer()
    tokenizer.train_from_iterator(documents(path), size, pattern=GPT2_PATTERN)
    return tokenizer


def same_size_as_rustbpe(ours: BPETokenizer, theirs: rustbpe.Tokenizer) -> bool:
    return len(ours.vocab) == int(theirs.vocab_size)


PEERS: list[tuple[str, Learn, Agree, float]] = [
    ("tokenizers", learn_tokenizers, same_merges, 4),
    ("sentencepiece", learn_sentencepiece, same_size_as_sentencepiece, 1.4),
    ("rustbpe", learn_rustbpe, same_size_as_rustbpe, 1.4),
]


def _batches(texts: Iterator[str]) -> Iterator[list[str]]:
    while batch := list(islice(texts, DOCUMENTS_A_BATCH)):
        yield batch
