"""Decoders of a ``tokenizer.json``: tokens in, parts of a text out."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial, reduce
from typing import TypeAlias

from foreword.errors import InputError
from foreword.protocols import Json
from foreword.tokens.characters import REPLACEMENT, spelling_of
from foreword.tokens.json_facts import described
from foreword.tokens.steps.patterns import pattern_of

Decoder: TypeAlias = Callable[[list[str]], list[str]]

NAMES = "ByteLevel, WordPiece, Metaspace, BPEDecoder, ByteFallback, Fuse, Strip, Replace or Sequence"
_CLEANUP = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"),
    (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip


def decoder_of(facts: Json) -> Decoder:
    """Return the decoder that a file describes."""
    match facts:
        case None:
            return lambda tokens: [" ".join(tokens)]
        case {"type": "Sequence", "decoders": [*steps]}:
            decoders = [decoder_of(step) for step in steps]
            return lambda tokens: reduce(lambda done, decoder: decoder(done), decoders, tokens)
        case {"type": "ByteLevel"}:
            return lambda tokens: [b"".join(map(spelling_of, tokens)).decode("utf-8", "replace")]
        case {"type": "WordPiece", "prefix": str(prefix), "cleanup": bool(cleanup)}:
            return partial(_word_pieces, prefix, cleanup)
        case {"type": "Metaspace", "replacement": str(mark), **rest}:
            scheme = rest.get("prepend_scheme", "always" if rest.get("add_prefix_space", True) else "never")
            at_start = " " if scheme == "never" else ""
            return lambda tokens: [
                token.replace(mark, " " if number else at_start) for number, token in enumerate(tokens)
            ]
        case {"type": "BPEDecoder", "suffix": str(suffix)}:
            return lambda tokens: [
                token.replace(suffix, " " if number < len(tokens) else "") for number, token in enumerate(tokens, 1)
            ]
        case {"type": "ByteFallback"}:
            return _bytes_to_text
        case {"type": "Fuse"}:
            return lambda tokens: ["".join(tokens)]
        case {"type": "Strip", "content": str(content), "start": int(start), "stop": int(stop)} if len(content) == 1:
            ends = re.compile(rf"\A{re.escape(content)}{{0,{start}}}|{re.escape(content)}{{0,{stop}}}\Z")
            return lambda tokens: [ends.sub("", token) for token in tokens]
        case {"type": "Replace", "pattern": pattern, "content": str(content)}:
            replace = pattern_of(pattern).sub
            return lambda tokens: [replace(lambda _: content, token) for token in tokens]
    raise InputError(f"the decoder is {described(facts)}, expected {NAMES}")


def _word_pieces(prefix: str, cleanup: bool, tokens: list[str]) -> list[str]:
    parts: list[str] = []
    for number, token in enumerate(tokens):
        if number:
            token = token.replace(prefix, "", 1) if token.startswith(prefix) else f" {token}"
        if cleanup:
            token = reduce(lambda text, pair: text.replace(*pair), _CLEANUP, token)
        parts.append(token)
    return parts


def _bytes_to_text(tokens: list[str]) -> list[str]:
    """Replace runs of tokens such as <0xE2> by their characters; each byte of an invalid run becomes U+FFFD."""
    parts: list[str] = []
    held = bytearray()
    for token in [*tokens, ""]:
        if re.fullmatch("<0x[0-9A-Fa-f]{2}>", token):
            held.append(int(token[3:5], 16))
            continue
        if held:
            try:
                parts.append(held.decode())
            except UnicodeDecodeError:
                parts += [REPLACEMENT] * len(held)
            held.clear()
        parts.append(token)
    return parts[:-1]
