"""The tables by which kernels encode: the pieces of a model as a trie, and for BPE the pairs that merge.

sentencepiece's BPE knows no list of merges: two adjacent symbols merge if their texts together are a piece, the one of
the highest score first, leftmost among equals. A symbol is a piece or a single character. So every way to cut a piece
into two symbols is a pair of the table, and its rank is that of the piece's score.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreword.arrays import Bools, Ints, Longs, Reals
from foreword.tokens.kernels_sentencepiece import CUT_AFTER, CUT_BEFORE, CUT_EACH, CUT_NOWHERE
from foreword.tokens.kernels_trie import build_trie
from foreword.tokens.merges import merge_table
from foreword.tokens.normaliser import Normaliser
from foreword.tokens.sentencepiece_file import BYTE_PIECES, NORMAL, UNUSED, USER_DEFINED, PieceModel

UNKNOWN_PENALTY = np.float32(10.0)
"""How far an unknown character lies below the lowest score."""

_NONE = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Symbols:
    """The symbols of BPE: pieces by their ids, further characters, an unknown character, and user-defined symbols.

    characters, frozen: texts of single characters with their symbols, and of user-defined symbols with their ids.
    merges: pairs -> rank << 32 | merged symbol. ids, lengths: int32 (symbols,), the id of each symbol and its bytes; 0
    bytes for the unknown character. splits_unused: whether a pair makes an unused piece.
    """

    characters: Mapping[bytes, int]
    frozen: Mapping[bytes, int]
    merges: Longs
    ids: Ints
    lengths: Ints
    splits_unused: bool = False


@dataclass(frozen=True, slots=True)
class PieceTables:
    """What ``encode_pieces`` takes.

    trie: of all pieces (unigram) or single characters (BPE). scores: (pieces,), what each adds to a path, in the
    precision of the sums. byte_ids: int32 (256,), or empty without byte fallback. cut: where a text may be cut.
    frozen: the trie of user-defined symbols, for BPE.
    """

    trie: Ints
    scores: Reals
    unknown: int
    unknown_score: np.floating[Any]
    byte_ids: Ints
    cut: int
    frozen: Ints
    symbols: Symbols


def tables_of(model: PieceModel, normaliser: Normaliser) -> PieceTables:
    """Make the tables of a model."""
    inner = {id: normaliser.inner(model.pieces[id]) for id in np.flatnonzero(textual(model)).tolist()}
    reachable = {id: text for id, text in inner.items() if text is not None}
    byte_ids = [model.pieces.index(piece) for piece in BYTE_PIECES] if model.byte_fallback else []
    scores, unknown_score = path_scores(model)
    if model.algorithm == "unigram":
        usable = {text: id for id, text in reachable.items() if model.types[id] != UNUSED}
        symbols = Symbols({}, {}, np.zeros(0, np.int64), _NONE, _NONE)
        trie, cut = build_trie(usable), CUT_EACH if model.normalisation.splits else cut_of(usable)
    else:
        symbols = symbols_of(model, reachable)
        trie, cut = build_trie(symbols.characters), cut_of(reachable.values())
    return PieceTables(
        trie, scores, model.unknown, unknown_score, np.array(byte_ids, np.int32), cut, build_trie(symbols.frozen),
        symbols,
    )  # fmt: skip


def textual(model: PieceModel) -> Bools:
    """Return which pieces stand for their own text: not control symbols, bytes and the unknown piece."""
    return np.isin(model.types, (NORMAL, USER_DEFINED, UNUSED))


def path_scores(model: PieceModel) -> tuple[Reals, np.floating[Any]]:
    """Return what each piece adds to a path, float32 (pieces,), and what an unknown character adds.

    A user-defined symbol gets so much for each byte that no other path is better.
    """
    double = model.scores.dtype == np.float64  # tokenizers, which takes the minimum of all scores
    normal = model.scores if double else model.scores[model.types == NORMAL]
    least, most = (normal.min(), normal.max()) if len(normal) else (np.float32(0), np.float32(0))
    scores = model.scores.copy()
    for id in np.flatnonzero(model.types == USER_DEFINED).tolist():
        scores[id] = np.float64(np.float32(len(model.pieces[id].encode())) * most) - 0.1
    return scores, model.scores.dtype.type(least - UNKNOWN_PENALTY)


def cut_of(texts: Iterable[bytes]) -> int:
    """Return where a text may be cut: where no piece reaches over."""
    joined = b"\xff".join(texts)
    over_start = re.search(rb"[^ \xff] ", joined) is not None
    over_end = re.search(rb" [^ \xff]", joined) is not None
    return CUT_NOWHERE if over_start and over_end else CUT_AFTER if over_start else CUT_BEFORE


def symbols_of(model: PieceModel, texts: Mapping[int, bytes]) -> Symbols:
    """Make the symbols of a BPE model. texts: of the pieces that can stand in normalised text, by id."""
    pieces = len(model.pieces)
    spelt = {id: text.decode() for id, text in texts.items()}
    symbol_of = {text: id for id, text in spelt.items()}
    reserved = {model.pieces[id]: id for id in np.flatnonzero(~textual(model)).tolist() if len(model.pieces[id]) == 1}
    further = sorted({sign for text in [*spelt.values(), *reserved] for sign in text} - symbol_of.keys())
    for number, sign in enumerate(further):
        symbol_of[sign] = pieces + number
    ids = [*range(pieces), *(reserved.get(sign, model.unknown) for sign in further), model.unknown, *range(pieces)]
    inner_lengths = [len(texts.get(id, b"")) for id in range(pieces)]
    lengths = [*inner_lengths, *(len(sign.encode()) for sign in further), 0, *inner_lengths]

    record = _all_merges(spelt, symbol_of) if model.merges is None else model.merges
    return Symbols(
        {text.encode(): symbol for text, symbol in symbol_of.items() if len(text) == 1},
        {text: id for id, text in texts.items() if model.types[id] == USER_DEFINED},
        merge_table(record, _ranks(model, record)),
        np.array(ids, np.int32),
        np.array(lengths, np.int32),
        model.merges is None and bool((model.types[record[:, 2]] == UNUSED).any()),
    )


def _all_merges(texts: Mapping[int, str], symbol_of: Mapping[str, int]) -> Ints:
    """Return every way to cut a piece into two symbols: left, right and merged, int32 (merges, 3)."""
    merges: list[tuple[int, int, int]] = []
    for id, text in texts.items():
        for at in range(1, len(text)):
            left, right = symbol_of.get(text[:at]), symbol_of.get(text[at:])
            if left is not None and right is not None:
                merges.append((left, right, id))
    return np.array(merges, np.int32).reshape(-1, 3)


def _ranks(model: PieceModel, merges: Ints) -> Ints:
    """Return the rank of each merge: its place in the model's list, or that of the score of what it makes."""
    if model.merges is not None:
        return np.arange(len(merges), dtype=np.int32)
    ranks = np.unique(-model.scores, return_inverse=True)[1]
    return ranks[merges[:, 2]].astype(np.int32)
