"""What the teaching sources show and no corpus gives: a vocabulary made by hand for their sentence."""

from __future__ import annotations

from pathlib import Path

from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.tokenizer_json import read_tokenizer_json


def illustrative_tokenizer() -> BPETokenizer:
    """Return a BPE of a few merges that cuts "The unbelievable refrigerator" into six pieces, as a source does."""
    tokenizer: BPETokenizer = read_tokenizer_json(Path(__file__).with_name("illustrative_tokenizer.json"))
    return tokenizer
