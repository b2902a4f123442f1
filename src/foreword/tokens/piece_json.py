"""``tokenizer.json`` files of models over pieces with ▁: Unigram, and BPE with byte fallback (Llama 2, Gemma).

They become a ``SentencePieceTokenizer``, whose kernels cut texts the same way, with three differences to a ``.model``:
BPE has a list of merges, scores are added in double precision, and with a Metaspace that splits no piece holds a ▁ but
at its start. How a blank becomes ▁ is in the normalizer (Prepend and Replace) or in the pre-tokenizer (Metaspace).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foreword.arrays import Ints
from foreword.errors import InputError
from foreword.protocols import Json
from foreword.text.strict_json import shown
from foreword.tokens.json_facts import described
from foreword.tokens.sentencepiece import SentencePieceTokenizer
from foreword.tokens.sentencepiece_file import (
    BYTE,
    BYTE_PIECES,
    CONTROL,
    NORMAL,
    SPACE,
    UNKNOWN_PIECE,
    UNUSED,
    USER_DEFINED,
    Algorithm,
    Normalisation,
    PieceModel,
    SpecialNames,
)

_ESCAPE: Json = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
_PREPEND: Json = {"type": "Prepend", "prepend": SPACE}
_SPLIT_AFTER: Json = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
"""Gemma's pre-tokenizer: it finds no blank, for the normalizer has replaced them all."""


def piece_tokenizer(
    names: Sequence[str],
    algorithm: Algorithm,
    how: Normalisation,
    *,
    unknown: str,
    special: Sequence[str],
    added: Sequence[str],
    scores: Sequence[float] | None = None,
    merges: Ints | None = None,
    byte_fallback: bool,
) -> SentencePieceTokenizer:
    """Make the tokenizer of a ``tokenizer.json``.

    names: all tokens in the order of their ids. how: how blanks become ▁, and whether every ▁ begins a piece.
    """
    if added and how.dummy_prefix:
        raise InputError(
            f"{shown(added[0])} is an added token that is not special, expected none where a ▁ is prepended"
        )
    if unknown not in names:
        raise InputError(f"unk_token is {shown(unknown)}, expected a token of the vocab")
    if how.splits and SPACE not in names:
        raise InputError(f"the vocab has no {SPACE}, expected it where Metaspace splits")
    roles = {**dict.fromkeys(special, CONTROL), **dict.fromkeys(added, USER_DEFINED), unknown: UNKNOWN_PIECE}
    if byte_fallback:
        roles |= dict.fromkeys(BYTE_PIECES, BYTE)
    types = [roles.get(name, UNUSED if how.splits and SPACE in name[1:] else NORMAL) for name in names]
    end = next((name for name in special if name in ("</s>", "<eos>", "<|endoftext|>")), "</s>")
    return SentencePieceTokenizer.from_model(
        PieceModel(
            tuple(names),
            np.array(scores if scores is not None else np.zeros(len(names)), np.float64),
            np.array(types, np.uint8),
            algorithm,
            byte_fallback,
            how,
            SpecialNames(unknown=unknown, end=end, surface=unknown),
            merges=merges,
        )
    )


def white_space_of(normalizer: Json, pre_tokenizer: Json) -> Normalisation:
    """Return how blanks become ▁, and whether every ▁ begins a piece."""
    match normalizer:
        case {"type": "Sequence", "normalizers": [*steps]}:
            pass
        case None:
            steps = []
        case _:
            steps = [normalizer]
    match pre_tokenizer:
        case None if steps in ([_ESCAPE], [_PREPEND, _ESCAPE]):
            return Normalisation(b"", len(steps) == 2, False)
        case _ if pre_tokenizer == _SPLIT_AFTER and steps == [_ESCAPE]:
            return Normalisation(b"", False, False)
        case {"type": "Metaspace", "replacement": "▁", **rest} if not steps:
            scheme = rest.get("prepend_scheme", "always" if rest.get("add_prefix_space", True) else "never")
            if scheme in ("always", "first", "never"):
                splits = rest.get("split", True) is True
                return Normalisation(b"", scheme != "never", False, prefix_once=True, splits=splits)
    expected = "Prepend ▁ and Replace of blanks without a pre_tokenizer, or Metaspace without a normalizer"
    found = f"the normalizer is {described(normalizer)} and the pre_tokenizer {described(pre_tokenizer)}"
    raise InputError(f"{found}, expected {expected}")
