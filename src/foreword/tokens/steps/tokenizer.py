"""A tokenizer that takes the steps of a ``tokenizer.json`` one by one: for those that no compiled tokenizer covers.

Normalizer, pre-tokenizer, model, and for ids the decoder. Texts repeat their pieces, so the model is asked once for
each. It is saved as the file that it came from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Self

import numpy as np

from foreword.arrays import Ints
from foreword.errors import InputError, SettingError
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json, Parts
from foreword.text.block import Block
from foreword.text.strict_json import parse_json_object
from foreword.tokens.bpe import ENDS
from foreword.tokens.corpus import Encoded, EncodesBlocks
from foreword.tokens.json_facts import (
    Added,
    expect,
    names_of,
    of_type,
    read_added,
    read_merges,
    read_scores,
    read_vocab,
)
from foreword.tokens.piece_json import piece_tokenizer
from foreword.tokens.sentencepiece_file import BYTE_PIECES, Normalisation
from foreword.tokens.steps.characters import SPACES, characters_of
from foreword.tokens.steps.decoders import decoder_of
from foreword.tokens.steps.models import BPE, PieceModel, WordLevel, WordPiece
from foreword.tokens.steps.normalizers import normalizer_of
from foreword.tokens.steps.pre_tokenizers import pre_tokenizer_of
from foreword.tokens.vocab import END, Vocab

LARGEST = 1 << 18
"""Pieces cached; at the limit the cache is emptied."""


class StepTokenizer(ShownInNotebook, EncodesBlocks):
    """The tokenizer of a ``tokenizer.json``: ``foreword.load("tokenizer.json")`` makes one.

    json: the text of the file.
    """

    def __init__(self, json: bytes) -> None:
        self.json = json
        facts = parse_json_object(json)
        self._normalize = normalizer_of(facts.get("normalizer"))
        self._pre_tokenize = pre_tokenizer_of(facts.get("pre_tokenizer"))
        self._decode = decoder_of(facts.get("decoder"))
        self._added = read_added(facts.get("added_tokens"))
        self._cache: dict[str, list[int]] = {}
        settings = of_type(facts.get("model"), dict, "the model")
        self.kind = of_type(settings.get("type", "BPE"), str, "the model's type")  # early files do not name it
        if self.kind not in _MODELS:
            raise InputError(f"the model's type is {self.kind!r}, expected {', '.join(_MODELS)}")
        self._model, names, unknown = _MODELS[self.kind](settings, self._added)
        special = [token.content for token in self._added if token.special]
        end = next((name for name in (*ENDS, "[SEP]") if name in special), END)
        self.vocab_ = Vocab(names if end in names else [*names, end], unknown=unknown, end=end)

    def __repr__(self) -> str:
        return f"StepTokenizer({self.kind}, {len(self.vocab):,} tokens)"

    def __reduce__(self) -> tuple[type[Self], tuple[bytes]]:
        return type(self), (self.json,)

    def fit(self, texts: Iterable[str]) -> Self:
        """Refuse: the steps come from a file."""
        raise SettingError("a StepTokenizer cannot be fitted: it is read from a tokenizer.json")

    # Encoding

    def pieces(self, text: str) -> list[str]:
        """Return the pieces of a text, normalised and cut as the model takes them."""
        return [piece for piece in self._pre_tokenize([self._normalize(text)]) if piece]

    def encode(self, text: str | bytes, *, special: bool = False) -> Ints:
        """Return the ids of a text. With ``special`` an added token written in it becomes its id."""
        text = text if isinstance(text, str) else text.decode("utf-8", "replace")
        if not special:
            return np.array(self._ids(self.pieces(text)), np.int32)
        ids: list[int] = []
        for token, part in self._parts(text):
            ids += [token] if token is not None else self._ids([each for each in self._pre_tokenize([part]) if each])
        return np.array(ids, np.int32)

    def encode_block(self, block: Block) -> Encoded:
        """Encode a block of documents."""
        ids: list[int] = []
        ends: list[int] = []
        for text in block.strings():
            ids += self._ids(self.pieces(text))
            ids.append(self.vocab.end)
            ends.append(len(ids))
        if block.open and ends:
            del ids[-1], ends[-1]
        return Encoded(np.array(ids, np.int32), np.array(ends, np.int64))

    def _ids(self, pieces: list[str]) -> list[int]:
        ids: list[int] = []
        cache = self._cache
        for piece in pieces:
            found = cache.get(piece)
            if found is None:
                if len(cache) >= LARGEST:
                    cache.clear()
                found = cache[piece] = self._model(piece)
            ids += found
        return ids

    def _parts(self, text: str) -> Iterator[tuple[int | None, str]]:
        """Yield added tokens with their ids, and the normalised text between them, without an id.

        A token is searched in the raw text, or, where it says so, in the normalised text between those.
        """
        raw, normalised = self._finders
        for token, part in raw(text):
            if token is not None:
                yield token, part
            else:
                yield from normalised(self._normalize(part))

    @cached_property
    def _finders(self) -> tuple[Finder, Finder]:
        normalised = [
            token._replace(content=self._normalize(token.content)) for token in self._added if token.normalized
        ]
        return _finder([token for token in self._added if not token.normalized]), _finder(normalised)

    # Decoding

    def decode(self, ids: Iterable[int], *, special: bool = False) -> str:
        """Return the text of ids; special tokens are left out, or with ``special`` written as they are."""
        hidden = set() if special else {self.vocab.end, *(token.id for token in self._added if token.special)}
        return "".join(self._decode([self.vocab[int(id)] for id in ids if int(id) not in hidden]))

    # Saving

    def to_parts(self) -> Parts:
        """Return the file and the vocabulary for saving."""
        return Parts({}, {"json": np.frombuffer(self.json, np.uint8)}, self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a saved tokenizer."""
        tokenizer = cls(parts.arrays["json"].tobytes())
        if tokenizer.vocab != parts.vocab:
            raise InputError("the vocabulary is not that of the tokenizer.json")
        return tokenizer


Finder = Callable[[str], Iterator[tuple[int | None, str]]]
Model = tuple[PieceModel, list[str], str | None]
"""What gives the ids of a piece, all tokens in the order of their ids, and the name of the unknown one."""


def _finder(tokens: list[Added]) -> Finder:
    """Return what cuts a text at tokens, longest first; with ``lstrip`` or ``rstrip`` they take the white space."""
    tokens = sorted((token for token in tokens if token.content), key=lambda token: -len(token.content))
    word = characters_of("word")
    choices = [
        (f"[{SPACES}]*" if token.lstrip else "")
        + (f"(?<![{word}]){re.escape(token.content)}(?![{word}])" if token.single_word else re.escape(token.content))
        + (f"[{SPACES}]*" if token.rstrip else "")
        for token in tokens
    ]
    pattern = re.compile("|".join(f"({choice})" for choice in choices) or r"(?!)")

    def parts(text: str) -> Iterator[tuple[int | None, str]]:
        start = 0
        for match in pattern.finditer(text):
            yield None, text[start : match.start()]
            yield tokens[(match.lastindex or 1) - 1].id, match[0]
            start = match.end()
        yield None, text[start:]

    return parts


# Models


def _id_of(vocab: dict[str, int], settings: dict[str, Json]) -> int:
    unknown = of_type(settings.get("unk_token"), str, "unk_token")
    expect(unknown in vocab, "unk_token", unknown, "a token of the vocab")
    return vocab[unknown]


def _word_piece(settings: dict[str, Json], added: list[Added]) -> Model:
    vocab = read_vocab(settings.get("vocab"))
    names, unknown = names_of(vocab, added), _id_of(vocab, settings)
    prefix = of_type(settings.get("continuing_subword_prefix", "##"), str, "continuing_subword_prefix")
    longest = of_type(settings.get("max_input_chars_per_word", 100), int, "max_input_chars_per_word")
    return WordPiece(vocab, unknown, prefix, longest), names, names[unknown]


def _word_level(settings: dict[str, Json], added: list[Added]) -> Model:
    vocab = read_vocab(settings.get("vocab"))
    names, unknown = names_of(vocab, added), _id_of(vocab, settings)
    return WordLevel(vocab, unknown), names, names[unknown]


def _bpe(settings: dict[str, Json], added: list[Added]) -> Model:
    expect(settings.get("dropout") in (None, 0), "dropout", settings.get("dropout"), "none")
    vocab = read_vocab(settings.get("vocab"))
    names = names_of(vocab, added)
    unknown = None if settings.get("unk_token") is None else _id_of(vocab, settings)
    prefix, suffix = (
        of_type(settings.get(name) or "", str, name) for name in ("continuing_subword_prefix", "end_of_word_suffix")
    )
    fuse, fallback, whole = (
        of_type(settings.get(name, False), bool, name) for name in ("fuse_unk", "byte_fallback", "ignore_merges")
    )
    bytes_of = [vocab[piece] for piece in BYTE_PIECES if piece in vocab] if fallback else []
    expect(len(bytes_of) in (0, 256), "the number of tokens of bytes", len(bytes_of), "256")
    record = read_merges(settings.get("merges"), vocab, prefix)[:, :3].tolist()
    merges = {(left, right): (rank, merged) for rank, (left, right, merged) in enumerate(record)}
    model = BPE(vocab, merges, unknown, fuse, bytes_of, prefix, suffix, whole)
    return model, names, None if unknown is None else names[unknown]


def _unigram(settings: dict[str, Json], added: list[Added]) -> Model:
    vocab, scores = read_scores(settings.get("vocab"))
    names = names_of(vocab, added)
    unknown = of_type(settings.get("unk_id"), int, "unk_id")
    expect(0 <= unknown < len(scores), "unk_id", unknown, "an id of the vocab")
    whole = Normalisation(b"", dummy_prefix=False, collapse=False, escape=False)
    tokenizer = piece_tokenizer(
        names, "unigram", whole, unknown=names[unknown],
        special=[token.content for token in added if token.id != unknown], added=[],
        scores=[*scores, *[max(scores)] * (len(names) - len(scores))],
        byte_fallback=of_type(settings.get("byte_fallback", False), bool, "byte_fallback"),
    )  # fmt: skip
    return lambda piece: tokenizer.encode(piece).tolist(), names, names[unknown]


_MODELS: dict[str, Callable[[dict[str, Json], list[Added]], Model]] = {
    "WordPiece": _word_piece, "BPE": _bpe, "Unigram": _unigram, "WordLevel": _word_level
}  # fmt: skip
