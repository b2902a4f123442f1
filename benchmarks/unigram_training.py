"""Learning unigram tokenizers from a file, against sentencepiece."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import sentencepiece

from benchmarks.data import WIKITEXT, documents, megabytes, plain_file
from benchmarks.measure import interleaved, one_core
from benchmarks.report import Row, compared
from foreword.text.sources import read_blocks
from foreword.tokens.sentencepiece import SentencePieceTokenizer
from foreword.tokens.sentencepiece_file import model_bytes

TITLE = "Unigram training"
HOW = (
    "From file to pieces: `nmt_nfkc`, words cut at white space, a line a document. The number of pieces must be equal "
    "within 1 %, and the log-likelihood of the first lines no more than 1 % below the peer's. Not on enwiki, which "
    "sentencepiece needs a quarter of an hour for."
)

SIZES = (8_000, 32_000)
LINES = 3_000


def run(quick: bool) -> list[Row]:
    with one_core():
        return [_row(WIKITEXT, size) for size in (SIZES[:1] if quick else SIZES)]


def _row(text: str, size: int) -> Row:
    path = plain_file(text)
    lines = [line for line, _ in zip(documents(path), range(LINES), strict=False)]

    def similar(ours: SentencePieceTokenizer, model: bytes) -> bool:
        mine = sentencepiece.SentencePieceProcessor(model_proto=model_bytes(ours.model_))
        theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
        alike = abs(mine.get_piece_size() - theirs.get_piece_size()) <= 0.01 * theirs.get_piece_size()
        return alike and likelihood(mine, lines) >= 1.01 * likelihood(theirs, lines)

    job = f"{text}, {size:,} pieces"
    pairs = interleaved(
        f"training on {job}, sentencepiece",
        lambda: SentencePieceTokenizer(size).fit_blocks(read_blocks(path), threads=1),
        lambda: learn_sentencepiece(path, size),
        similar,
    )
    return compared(job, "sentencepiece", pairs, bar=2, size=megabytes(path))


def likelihood(processor: sentencepiece.SentencePieceProcessor, lines: list[str]) -> float:
    """The log-probability of the best paths through some lines, which is below zero."""
    scores = processor.get_score(list(range(processor.get_piece_size())))
    return float(sum(scores[id] for ids in processor.encode(lines, num_threads=1) for id in ids))


def learn_sentencepiece(path: Path, size: int) -> bytes:
    model = BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        input=str(path), model_writer=model, model_type="unigram", vocab_size=size, num_threads=1,
        max_sentence_length=1 << 24,  # longer lines are left out: 4,192 bytes if nothing is said
        minloglevel=2,
    )  # fmt: skip
    return model.getvalue()
