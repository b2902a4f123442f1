"""Byte-pair encoding as a textbook describes it: slow, and easy to check. Tests hold the fast versions equal to it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypedDict

from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.merges import Merge, Veto


def learn_merges(
    words: Sequence[Sequence[int]],
    counts: Sequence[int],
    spellings: list[bytes],
    size: int,
    *,
    least: int = 1,
    reserved: int = 0,
    veto: Veto | None = None,
) -> Iterator[Merge]:
    """Learn merges until there are ``size`` tokens, as ``merges.py`` describes it.

    spellings: the bytes of each id; the new tokens are added to it. Pairs seen less than ``least`` times are left
    alone, and so are pairs that spell one of the first ``reserved`` tokens, which no text may reach, and pairs that
    ``veto`` refuses.
    """
    rewritten = [list(word) for word in words]
    while len(spellings) < size:
        pairs: Counter[tuple[int, int]] = Counter()
        for word, count in zip(rewritten, counts, strict=True):
            for pair in itertools.pairwise(word):
                parts = spellings[pair[0]], spellings[pair[1]]
                if b"".join(parts) not in spellings[:reserved] and not (veto and veto(*parts)):
                    pairs[pair] += count
        if not pairs:
            return
        (left, right), count = min(pairs.items(), key=lambda item: (-item[1], item[0]))
        if count < least:
            return
        spelling = spellings[left] + spellings[right]
        if spelling not in spellings:
            spellings.append(spelling)
        merged = spellings.index(spelling)
        rewritten = [_replace(word, left, right, merged) for word in rewritten]
        yield Merge(left, right, merged, count)


def _replace(word: list[int], left: int, right: int, merged: int) -> list[int]:
    result: list[int] = []
    index = 0
    while index < len(word):
        if word[index : index + 2] == [left, right]:
            result.append(merged)
            index += 2
        else:
            result.append(word[index])
            index += 1
    return result


class RankedMerge(NamedTuple):
    """A merge in the order it is to be applied: the first to be learnt comes first."""

    rank: int
    left: int
    right: int
    merged: int


class Replay(TypedDict):
    """One step of ``replay``: the merge that was applied, None at first, and the tokens after it."""

    merge: tuple[str, str] | None
    tokens: list[str]


class MergeRules:
    """The merges of a tokenizer, to be applied to one piece of a text after another."""

    def __init__(self, tokenizer: BPETokenizer) -> None:
        self.tokenizer = tokenizer
        merges = enumerate(tokenizer.merges_.tolist())
        self._rules = {(left, right): RankedMerge(rank, left, right, merged) for rank, (left, right, merged) in merges}

    def first_symbols(self, piece: str) -> list[int]:
        """Return the ids of a piece before any merge."""
        tokenizer = self.tokenizer
        if tokenizer.ignore_merges and piece.encode() in tokenizer.whole_pieces:
            return [tokenizer.whole_pieces[piece.encode()]]
        units = piece.encode() if tokenizer.kind == "bytes" else map(ord, piece)
        return [int(tokenizer.first_ids[unit]) for unit in units]

    def best(self, symbols: list[int]) -> RankedMerge | None:
        """Return the earliest-learnt merge that applies, if any."""
        return min((self._rules[pair] for pair in itertools.pairwise(symbols) if pair in self._rules), default=None)

    @staticmethod
    def apply_leftmost(symbols: list[int], merge: RankedMerge) -> None:
        """Apply a merge in place, where its pair first stands."""
        index = list(itertools.pairwise(symbols)).index((merge.left, merge.right))
        symbols[index : index + 2] = [merge.merged]


def encode(tokenizer: BPETokenizer, text: str) -> list[int]:
    """Encode as ``BPETokenizer.encode`` does: in each piece apply the earliest-learnt merge, leftmost first, until none
    is left.
    """
    ids: list[int] = []
    rules = MergeRules(tokenizer)
    for piece in tokenizer.pieces(text):
        symbols = rules.first_symbols(piece)
        while (best := rules.best(symbols)) is not None:
            rules.apply_leftmost(symbols, best)
        ids += symbols
    return ids


def replay(tokenizer: BPETokenizer, text: str) -> Iterator[Replay]:
    """Yield the tokens of a text before any merge, then after each merge in turn."""
    rules = MergeRules(tokenizer)
    pieces = [rules.first_symbols(piece) for piece in tokenizer.pieces(text)]
    yield Replay(merge=None, tokens=[tokenizer.vocab[id] for piece in pieces for id in piece])
    while known := [merge for merge in map(rules.best, pieces) if merge is not None]:
        best = min(known)
        for piece in pieces:
            while rules.best(piece) == best:
                rules.apply_leftmost(piece, best)
        tokens = [tokenizer.vocab[id] for piece in pieces for id in piece]
        yield Replay(merge=(tokenizer.vocab[best.left], tokenizer.vocab[best.right]), tokens=tokens)
