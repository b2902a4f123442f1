"""Encoding with a sentencepiece model as a textbook describes it: slow, and easy to check.

Tests hold the fast versions equal to it. Text here is sentencepiece's own, with ▁ for blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from foreword.tokens.normaliser import Normaliser
from foreword.tokens.piece_tables import path_scores, textual
from foreword.tokens.sentencepiece import SentencePieceTokenizer
from foreword.tokens.sentencepiece_file import SPACE, UNUSED, USER_DEFINED, PieceModel


def normalise(normaliser: Normaliser, text: str) -> str:
    """Normalise a text: replace what the map has, and put its white space in order."""
    how = normaliser.how
    parts = [part for part, _, _ in replacements(normaliser, text.encode())]
    if how.collapse:
        while parts and parts[0] == " ":
            del parts[0]
    if not parts:
        return ""
    kept = " " if how.dummy_prefix and not how.suffix else ""
    if how.prefix_once and parts[0][:1] in (" ", SPACE):
        kept = ""
    blank_before = how.collapse
    for part in parts:
        part = part.lstrip(" ") if blank_before else part
        kept += part
        if part:
            blank_before = how.collapse and part.endswith(" ")
    kept = kept.replace(" ", SPACE) if how.escape else kept
    if how.collapse:
        kept = kept.rstrip(SPACE if how.escape else " ")
    return kept + ((SPACE if how.escape else " ") if how.dummy_prefix and how.suffix else "")


def replacements(normaliser: Normaliser, text: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield what each user-defined symbol, key of the map, or other character becomes, and where it is in the text."""
    index = 0
    while index < len(text):
        symbols = [symbol for symbol in normaliser.symbols if text.startswith(symbol, index)]
        if symbols:
            longest = max(symbols, key=len)
            yield longest.decode(), index, index + len(longest)
            index += len(longest)
            continue
        length, replacement = normaliser.map.match(text, index)
        if not length:
            length = next(size for size in (1, 2, 3, 4) if _is_character(text[index : index + size]))
            replacement = text[index : index + length]
        yield replacement.decode(), index, index + length
        index += length


def _is_character(data: bytes) -> bool:
    try:
        return len(data.decode()) == 1
    except UnicodeDecodeError:
        return False


def best_pieces(model: PieceModel, text: str) -> list[tuple[int, str]]:
    """Return the pieces of the best path (Viterbi, 1967), unknown characters one by one.

    best[j] = max over i of best[i] + score(text[i:j]), with sums rounded to single precision.
    """
    scores, unknown_score = path_scores(model)
    ids = {model.pieces[id]: id for id in np.flatnonzero(textual(model) & (model.types != UNUSED)).tolist()}
    longest = max(map(len, ids), default=1)
    best: list[tuple[np.float32, int, int] | None] = [None] * (len(text) + 1)
    best[0] = np.float32(0), 0, -1
    for start in range(len(text)):
        here = best[start]
        assert here is not None  # every character has a piece, or is unknown
        for stop in range(start + 1, min(start + longest, len(text)) + 1):
            id = ids.get(text[start:stop])
            if id is None and stop > start + 1:
                continue
            candidate = here[0] + (unknown_score if id is None else scores[id])
            held = best[stop]
            if held is None or candidate > held[0]:
                best[stop] = candidate, start, model.unknown if id is None else id
    found: list[tuple[int, str]] = []
    stop = len(text)
    while stop:
        _, start, id = best[stop] or (0, 0, 0)
        found.append((id, text[start:stop]))
        stop = start
    return found[::-1]


def merged_pieces(model: PieceModel, text: str) -> list[tuple[int, str]]:
    """Merge the adjacent pair whose text is the piece of the highest score, leftmost first, until none is left."""
    ids = {piece: id for id, piece in enumerate(model.pieces)}
    mergeable = {model.pieces[id] for id in np.flatnonzero(textual(model)).tolist()}
    frozen = [model.pieces[id] for id in np.flatnonzero(model.types == USER_DEFINED).tolist()]
    symbols: list[tuple[str, bool]] = []
    while text:
        longest = max((symbol for symbol in frozen if text.startswith(symbol)), key=len, default="")
        symbols.append((longest or text[0], bool(longest)))
        text = text[len(longest or text[0]) :]
    made_of: dict[str, tuple[str, str]] = {}

    def score(at: int) -> float | None:
        (left, left_frozen), (right, right_frozen) = symbols[at], symbols[at + 1]
        if left_frozen or right_frozen or left + right not in mergeable:
            return None
        return float(model.scores[ids[left + right]])

    def note(at: int) -> None:
        if 0 <= at < len(symbols) - 1 and score(at) is not None:
            made_of[symbols[at][0] + symbols[at + 1][0]] = symbols[at][0], symbols[at + 1][0]

    for at in range(len(symbols) - 1):
        note(at)
    while found := [(-value, at) for at in range(len(symbols) - 1) if (value := score(at)) is not None]:
        _, at = min(found)
        symbols[at : at + 2] = [(symbols[at][0] + symbols[at + 1][0], False)]
        note(at - 1)
        note(at)

    def split(piece: str) -> Iterator[tuple[int, str]]:
        id = ids.get(piece, model.unknown)
        if model.types[id] == UNUSED and piece in made_of:
            for part in made_of[piece]:
                yield from split(part)
        else:
            yield id, piece

    return [each for piece, _ in symbols for each in split(piece)]


def encode(tokenizer: SentencePieceTokenizer, text: str) -> list[int]:
    """Encode as ``SentencePieceTokenizer.encode`` does."""
    model = tokenizer.model_
    normalised = normalise(tokenizer.normaliser, text)
    words = re.findall(f"{SPACE}[^{SPACE}]*|[^{SPACE}]+", normalised) if model.normalisation.splits else [normalised]
    pieces_of = best_pieces if model.algorithm == "unigram" else merged_pieces
    ids: list[int] = []
    for id, piece in (each for word in words for each in pieces_of(model, word)):
        if id != model.unknown:
            ids.append(id)
        elif model.byte_fallback:
            ids += [model.pieces.index(f"<0x{byte:02X}>") for byte in piece.encode()]
        elif ids[-1:] != [id] or not ids:
            ids.append(id)
    return ids


def merged_spans(tokenizer: SentencePieceTokenizer, data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the id of each piece of a normalised text, and where it ends in ``data``."""
    end = 0
    for id, piece in merged_pieces(tokenizer.model_, tokenizer.normaliser.outer(data)):
        end += len(tokenizer.normaliser.inner(piece) or b"")
        yield id, end
