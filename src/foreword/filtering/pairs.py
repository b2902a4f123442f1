"""A KenLM model and the sentencepiece model that cuts its texts: ``en.arpa.bin+en.sp.model``, as CCNet made them.

    perplexity = round(10 ** (−log10 p(pieces) / (pieces + 1)), 1)

G. Wenzek et al., "CCNet: extracting high quality monolingual datasets from web crawl data" (2020). With ``like`` the
numbers are those of a tool, to the printed digit: "ccnet" normalises texts (``text/cleaning.py``), "dclm" does so
without lower case and with accents, "data-juicer" not at all; all three add log-probabilities in float32, word by word,
as KenLM's Python module does, and round. Without ``like`` texts are read as they are, and nothing is rounded. A blank
document has the perplexity of an empty one for those tools, and none without ``like``.

What sentencepiece does not know is a word for KenLM all the same: adjacent unknown characters are one piece, which
is looked up as it is spelled. ``SurfacePieces`` writes the bytes of unknown characters as ids after those of the
pieces, so that spelling survives encoding.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from foreword import kinds
from foreword.arrays import Bools, Ints, Longs, frozen
from foreword.errors import InputError
from foreword.filtering.columns import PERPLEXITY, Column
from foreword.filtering.models import JOINT, pair_of
from foreword.filtering.settings import Like
from foreword.ngram.kenlm import LOG10, KenlmLM
from foreword.ngram.kenlm_format import looks_like_kenlm
from foreword.text.block import Block
from foreword.text.cleaning import Cleaner, Cleaning
from foreword.text.unicode import blank
from foreword.tokens.corpus import Corpus
from foreword.tokens.piece_tables import PieceTables
from foreword.tokens.sentencepiece import SentencePieceTokenizer, load_sentencepiece
from foreword.tokens.sentencepiece_file import NORMAL

CLEANING: dict[Like | None, Cleaning | None] = {"ccnet": "ccnet", "dclm": "dclm", "data-juicer": None, None: None}

MOST_UNKNOWN = 0.25
"""A larger share of pieces that the language model does not know is reported: two files that do not belong together."""


class MismatchedPairWarning(UserWarning):
    """Many pieces of the sentencepiece model are no words of the KenLM model."""


def _check_kenlm(path: str) -> None:
    """Refuse another kind of file before the +, by its name."""
    if Path(path).is_dir():
        raise InputError(f"{path}: a folder: expected a KenLM binary before the {JOINT}")
    if not Path(path).is_file() or looks_like_kenlm(path):
        return
    found = next(
        (name for name, (looks_like, _) in kinds.FOREIGN.items() if kinds.resolve(looks_like)(Path(path))), None
    )
    kind = "neither a KenLM binary nor another file that is known" if found is None else f"it looks like {found}"
    raise InputError(f"{path}: {kind}: expected a KenLM binary before the {JOINT}")


class SurfacePieces(SentencePieceTokenizer):
    """The tokenizer of a sentencepiece model that writes unknown characters as their bytes: ids after the pieces'."""

    @cached_property
    def tables(self) -> PieceTables:
        """The tables by which texts are encoded."""
        found: PieceTables = SentencePieceTokenizer.tables.func(self)  # type: ignore[attr-defined]
        if len(found.byte_ids):
            return found
        return replace(found, byte_ids=np.arange(len(self.vocab), len(self.vocab) + 256, dtype=np.int32))


@dataclass(frozen=True)
class PairScorer:
    """Scores of a pair. shares of unknown words are counted in ``oov``."""

    model: KenlmLM
    tokenizer: SurfacePieces
    prefix: str
    like: Like | None

    @classmethod
    def open(cls, path: str, prefix: str, like: Like | None) -> PairScorer:
        """Open a pair of files, and compare their vocabularies."""
        first, second = pair_of(path)
        _check_kenlm(first)
        model = KenlmLM.open(first, threads=1)
        pieces = load_sentencepiece(second)
        if pieces.tables.symbols.splits_unused:
            raise InputError(f"{second}: a BPE model with unused pieces cannot be scored with a KenLM model")
        scorer = cls(model, SurfacePieces.from_model(pieces.model_), prefix, like)
        if (share := scorer.unknown_share) > MOST_UNKNOWN:
            warnings.warn(
                f"{path}: {share:.0%} of the pieces are unknown to the KenLM model; do the two belong together?",
                MismatchedPairWarning,
                stacklevel=2,
            )
        return scorer

    @cached_property
    def words(self) -> Ints:
        """The KenLM model's id of each piece, 0 for unknown ones."""
        ids = self.model.words.ids(list(self.tokenizer.vocab))
        ids[self.tokenizer.vocab.end] = self.model.words.end
        return ids

    @property
    def unknown_share(self) -> float:
        """Return the share of the pieces that are no words of the KenLM model."""
        normal: Bools = self.tokenizer.model_.types == NORMAL
        return float(np.mean(self.words[: len(normal)][normal] == 0))

    @cached_property
    def _clean(self) -> Cleaner | None:
        step = CLEANING[self.like]
        return None if step is None else Cleaner(step)

    def columns(self, texts: Block) -> list[Column]:
        """Return score, tokens, oov and perplexity of each text; documents are never cut."""
        cleaned = texts if self._clean is None else self._clean(texts)
        ids, offsets = self.encode(cleaned)
        corpus = Corpus(ids, offsets, offsets, self.model.vocab)
        logs = self.model.totals(corpus).astype(np.float64)
        tokens = np.diff(offsets)
        oov = np.diff(np.searchsorted(np.flatnonzero(ids == 0), offsets))
        found = [10.0 ** (-log / length) for log, length in zip(logs.tolist(), tokens.tolist(), strict=True)]
        perplexities = np.array([round(each, 1) for each in found] if self.like else found, np.float64)
        scores = logs * LOG10
        if self.like is None:
            empty = blank(texts.data, texts.starts, texts.stops)
            scores[empty], perplexities[empty], tokens[empty], oov[empty] = np.nan, np.nan, 0, 0
        values = {"score": scores, "tokens": tokens, "oov": oov, PERPLEXITY: perplexities}
        return [Column(self.prefix + name, value) for name, value in values.items()]

    def encode(self, texts: Block) -> tuple[Ints, Longs]:
        """Return the KenLM model's ids of the pieces of all texts, each with its end, and where each text begins."""
        from foreword.filtering.kernels_pairs import piece_words

        encoded = self.tokenizer.encode_block(texts)
        offsets = np.zeros(len(texts) + 1, np.int64)
        ids = np.empty(len(encoded.ids), np.int32)
        written = piece_words(
            frozen(encoded.ids), frozen(encoded.ends), frozen(self.words), self.model.model, self.model.words.end,
            np.empty(max(8, len(encoded.ids)), np.uint8), ids, offsets,
        )  # fmt: skip
        return ids[:written], offsets
