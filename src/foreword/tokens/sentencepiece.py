"""The tokenizer of sentencepiece's models: unigram (Kudo, 2018) and byte-pair encoding, over pieces with ▁ for blanks.

Ids and pieces are those of sentencepiece 0.2, text by text. A text is normalised (``normaliser.py``), then cut into the
pieces whose scores have the largest sum (unigram), or by merging the best pair first (BPE). Characters that no piece
covers are ``<unk>``, adjacent ones together, or the bytes of their UTF-8 where the model has pieces for bytes.

The token that ends a document is the model's ``</s>``; where it has none, one is added after the last id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from foreword.arrays import Array, Ints
from foreword.checks import check_choice, check_numbers
from foreword.errors import ForewordError, InputError
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json, Meter, Parts
from foreword.text.block import Block, blocks_of
from foreword.tokens.bpe import DEFAULT_MEMORY
from foreword.tokens.characters import REPLACEMENT
from foreword.tokens.corpus import Encoded, encode_text
from foreword.tokens.counting import count_pieces_of
from foreword.tokens.encoder_pool import CachingEncoder, EncoderPool
from foreword.tokens.kernels_sentencepiece import (
    CUT_EACH,
    DOUBLE,
    INLINE,
    SINGLE,
    bpe_spans,
    encode_pieces,
    unigram_spans,
)
from foreword.tokens.normalisation_rules import Rules, normalisation_of
from foreword.tokens.normaliser import Normaliser
from foreword.tokens.piece_tables import PieceTables, tables_of
from foreword.tokens.pieces import BLANK_BEFORE
from foreword.tokens.sentencepiece_file import (
    BYTE,
    BYTE_PIECES,
    CONTROL,
    NORMAL,
    SPACE,
    UNKNOWN_PIECE,
    USER_DEFINED,
    Normalisation,
    PieceModel,
    SpecialNames,
    read_model,
    write_model,
)
from foreword.tokens.unigram_training import learn_pieces
from foreword.tokens.vocab import END, UNKNOWN, Vocab


class Piece(NamedTuple):
    """A piece of a text: its id, and its own text, which for an unknown piece is what stood there."""

    id: int
    text: str


class SentencePieceTokenizer(ShownInNotebook, EncoderPool["_WordEncoder"]):
    """A tokenizer of a sentencepiece model: ``foreword.load("en.sp.model")`` makes one, and ``fit`` learns one.

    vocab_size: the number of pieces that ``fit`` learns, ``<unk>``, ``<s>`` and ``</s>`` included.
    normalisation: "nmt_nfkc", or "identity" to leave characters as they are. coverage: the share of the text whose
    characters become pieces; rarer ones are unknown. byte_fallback: whether they are spelled as bytes instead.
    special_tokens: control symbols, which no text contains. user_symbols: pieces that are never cut.
    """

    CACHED: ClassVar[tuple[str, ...]] = ("tables", "normaliser", "_denormaliser", "_plain")

    model_: PieceModel

    def __init__(
        self,
        vocab_size: int = 8000,
        *,
        normalisation: Rules = "nmt_nfkc",
        coverage: float = 0.9995,
        byte_fallback: bool = False,
        special_tokens: Sequence[str] = (),
        user_symbols: Sequence[str] = (),
    ) -> None:
        self.vocab_size = vocab_size
        self.normalisation = normalisation
        self.coverage = coverage
        self.byte_fallback = byte_fallback
        self.special_tokens = tuple(special_tokens)
        self.user_symbols = tuple(user_symbols)
        check_choice(self, "normalisation", ("nmt_nfkc", "identity"))
        check_numbers(self, "coverage", above=0, most=1)
        check_numbers(self, "vocab_size", whole=True, least=4)
        self.drop_derived()

    def __repr__(self) -> str:
        return f"SentencePieceTokenizer({self.vocab_size}, normalisation={self.normalisation!r})"

    # Learning

    def fit(self, texts: Iterable[str]) -> Self:
        """Learn a unigram model from texts."""
        return self.fit_blocks(blocks_of(texts), threads=1)

    def fit_blocks(
        self,
        blocks: Iterable[Block],
        *,
        threads: int | None = None,
        memory: int = DEFAULT_MEMORY,
        meter: Meter | None = None,
    ) -> Self:
        """Learn from a stream of documents: count its words on all cores, in bounded memory, then learn the pieces.

        Words that do not fit in memory are left out, rarest first; ``left_out_`` is their number.
        """
        how = normalisation_of(self.normalisation)
        normaliser = Normaliser(how, self.user_symbols)
        counted = count_pieces_of(map(normaliser.block, blocks), BLANK_BEFORE, threads=threads, memory=memory // 4)
        roles = [(UNKNOWN, UNKNOWN_PIECE), ("<s>", CONTROL), (END, CONTROL)]
        roles += [(token, CONTROL) for token in self.special_tokens if token not in ("<s>", END, UNKNOWN)]
        roles += [(symbol, USER_DEFINED) for symbol in self.user_symbols]
        roles += [(piece, BYTE) for piece in BYTE_PIECES] if self.byte_fallback else []
        learnt = learn_pieces(
            counted, self.vocab_size - len(roles), coverage=self.coverage, memory=memory // 2, meter=meter
        )
        self.left_out_, self.likelihood_ = learnt.left_out, learnt.likelihood
        standing = {piece for piece, _ in roles}
        spelt = [(piece.replace(" ", SPACE), score) for piece, score in learnt.pieces]
        spelt = [(piece, score) for piece, score in spelt if piece not in standing]
        return self.with_model(
            PieceModel(
                (*(piece for piece, _ in roles), *(piece for piece, _ in spelt)),
                np.array([*[0.0] * len(roles), *(score for _, score in spelt)], np.float32),
                np.array([*(type_ for _, type_ in roles), *[NORMAL] * len(spelt)], np.uint8),
                byte_fallback=self.byte_fallback,
                normalisation=how,
            )
        )

    @classmethod
    def from_model(cls, model: PieceModel) -> Self:
        """Make the tokenizer of a model."""
        return cls(max(4, len(model.pieces)), byte_fallback=model.byte_fallback).with_model(model)

    def write(self, path: str | Path) -> None:
        """Write a ``.model`` file, which sentencepiece opens."""
        write_model(self.model_, path)

    def with_model(self, model: PieceModel) -> Self:
        """Set a model, and the vocabulary of its pieces."""
        pieces = list(model.pieces)
        end = model.names.end
        if end not in pieces or model.types[pieces.index(end)] != CONTROL:
            end = END
            if end not in pieces:
                pieces.append(end)
        self.drop_derived()
        self.model_ = model
        self.vocab_ = Vocab(pieces, unknown=model.pieces[model.unknown], end=end)
        self.tables  # noqa: B018  a damaged character map is found here
        return self

    @cached_property
    def normaliser(self) -> Normaliser:
        """The normalisation of the model."""
        symbols = np.flatnonzero(self.model_.types == USER_DEFINED).tolist()
        return Normaliser(self.model_.normalisation, [self.model_.pieces[id] for id in symbols])

    @cached_property
    def tables(self) -> PieceTables:
        """The tables by which texts are encoded."""
        return tables_of(self.model_, self.normaliser)

    # Encoding

    def encode(self, text: str | bytes) -> Ints:
        """Return the ids of a text, or of UTF-8."""
        return encode_text(self, text)

    def encode_block(self, block: Block) -> Encoded:
        """Encode a block of documents; several threads may do so at once."""
        if self.tables.symbols.splits_unused:
            return self._encode_plainly(block)
        encoder = self.take_encoder(block)
        encoded = encoder.encode(self.normaliser.block(block))
        self.give_back(encoder)
        return encoded

    def new_encoder(self, block: Block) -> _WordEncoder:
        """Make an encoder, with a cache of words that fits the size of the block."""
        return _WordEncoder(self.tables, self.vocab.end, self.model_.normalisation.escape, block.text_bytes())

    def _encode_plainly(self, block: Block) -> Encoded:
        """Encode with the plain version. Only it splits unused pieces, which hardly any BPE model has."""
        ids: list[int] = []
        ends: list[int] = []
        for number, (start, stop) in enumerate(zip(block.starts.tolist(), block.stops.tolist(), strict=True)):
            ids += [piece.id for piece in self.pieces(block.data[start:stop].tobytes())]
            if number + 1 < len(block) or not block.open:
                ids.append(self.vocab.end)
                ends.append(len(ids))
        return Encoded(np.array(ids, np.int32), np.array(ends, np.int64))

    def pieces(self, text: str | bytes) -> list[Piece]:
        """Return the pieces of a text with their ids, as ``encode_as_pieces`` of sentencepiece."""
        data = self.normaliser.text(text)
        found: list[Piece] = []
        start, unknown, fallback = 0, self.model_.unknown, self.model_.byte_fallback
        for id, stop in self._spans_of_words(data):
            text = self.normaliser.outer(data[start:stop])
            if id == unknown and fallback:
                bytes_of = [int(self.tables.byte_ids[byte]) for byte in text.encode()]
                found += [Piece(byte, self.vocab[byte]) for byte in bytes_of]
            elif id == unknown and found and found[-1].id == unknown:
                found[-1] = Piece(unknown, found[-1].text + text)
            else:
                found.append(Piece(id, text))
            start = stop
        return found

    def _spans_of_words(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield what ``_spans`` does, word by word where sums begin at zero for each."""
        words = [match.span() for match in re.finditer(rb" [^ ]*|[^ ]+", data)] if self.tables.cut == CUT_EACH else []
        for start, stop in words or [(0, len(data))]:
            for id, end in self._spans(data[start:stop]):
                yield id, start + end

    def _spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the id of each piece of a normalised text, and where it ends."""
        tables, symbols = self.tables, self.tables.symbols
        if symbols.splits_unused:
            from foreword.tokens.plain_sentencepiece import merged_spans

            yield from merged_spans(self, data)
            return
        text, room = np.frombuffer(data, np.uint8).copy(), len(data) + 1
        ids, begins, path, ends = (np.empty(room, np.int32) for _ in range(4))
        if len(symbols.merges):
            unknown, heap = len(symbols.ids) - 1 - len(tables.scores), np.empty(6 * room, np.int64)
            count = bpe_spans(
                text, tables.trie, tables.frozen, unknown, symbols.merges, symbols.lengths, ids, begins, ends, heap
            )
            yield from zip(symbols.ids[ids[:count]].tolist(), ends[:count].tolist(), strict=True)
            return
        count = unigram_spans(
            text, tables.trie, tables.scores, tables.unknown, tables.unknown_score,
            np.empty(room, tables.scores.dtype), ids, begins, path, ends, np.empty(room, tables.scores.dtype),
        )  # fmt: skip
        yield from zip(path[:count][::-1].tolist(), ends[:count][::-1].tolist(), strict=True)

    # Decoding

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids: control symbols are left out, bytes that are not UTF-8 become U+FFFD."""
        return self.decode_pieces(Piece(int(id), self.vocab[int(id)]) for id in ids)

    def decode_pieces(self, pieces: Iterable[Piece]) -> str:
        """Return the text of pieces."""
        model = self.model_
        strips = model.normalisation.dummy_prefix or model.normalisation.collapse
        decoded: list[str] = []
        held = bytearray()  # bytes of a character that may not be complete yet
        at_start, stripped = True, False
        for piece in pieces:
            type_ = model.types[piece.id] if piece.id < len(model.types) else CONTROL
            if type_ == BYTE:
                held.append(int(piece.text[3:5], 16))
                continue
            decoded.append(characters_in(held))
            held.clear()
            at_start = at_start and not stripped and not any(decoded)
            text, stripped = piece.text, False
            if type_ == CONTROL:
                continue
            if piece.id == model.unknown:
                if text == model.pieces[model.unknown]:
                    decoded.append(model.names.surface)
                    continue
            elif at_start and strips and text.startswith(SPACE):
                text, stripped = text[len(SPACE) :], not model.normalisation.collapse
            decoded.append(text.replace(SPACE, " "))
        decoded.append(characters_in(held))
        text = "".join(decoded)
        return self._denormaliser.text(text).decode() if model.denormaliser else text

    @cached_property
    def _denormaliser(self) -> Normaliser:
        return Normaliser(Normalisation(self.model_.denormaliser, False, False, False))

    # Saving

    def to_parts(self) -> Parts:
        """Return the model for saving."""
        model = self.model_
        how = asdict(model.normalisation)
        maps = {"character_map": how.pop("character_map"), "denormaliser": model.denormaliser}
        settings: dict[str, Json] = {
            "algorithm": model.algorithm,
            "byte_fallback": model.byte_fallback,
            "normalisation": how,
            "names": asdict(model.names),
        }
        arrays: dict[str, Array] = {name: np.frombuffer(data, np.uint8) for name, data in maps.items()}
        if model.merges is not None:
            arrays["merges"] = model.merges
        return Parts(settings, {"scores": model.scores, "types": model.types, **arrays}, self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a saved tokenizer."""
        parts.check_flags("byte_fallback")
        settings: dict[str, Any] = dict(parts.settings)
        vocab, arrays = parts.needed_vocab(), parts.arrays
        how, names = settings["normalisation"], settings["names"]
        if not all(isinstance(value, str if name == "name" else bool) for name, value in how.items()):
            raise InputError("a setting of the normalisation is neither true nor false")
        if not all(isinstance(value, str) for value in names.values()):
            raise InputError("a name of a special piece is not a text")
        model = PieceModel(
            tuple(vocab)[: len(arrays["scores"])],
            np.array(arrays["scores"]),
            np.array(arrays["types"]),
            settings["algorithm"],
            settings["byte_fallback"],
            Normalisation(arrays["character_map"].tobytes(), **how),
            SpecialNames(**names),
            arrays["denormaliser"].tobytes(),
            np.array(arrays["merges"]) if "merges" in arrays else None,
        )
        tokenizer = cls.from_model(model)
        if tokenizer.vocab != parts.vocab:
            raise InputError("the vocabulary is not that of the pieces")
        return tokenizer


def characters_in(data: bytearray) -> str:
    """Return the characters of UTF-8; each byte that belongs to none becomes U+FFFD, as in sentencepiece."""
    found: list[str] = []
    start = 0
    while start < len(data):
        for stop in range(start + 1, min(start + 4, len(data)) + 1):
            with suppress(UnicodeDecodeError):
                found.append(data[start:stop].decode())
                break
        else:
            stop = start + 1
            found.append(REPLACEMENT)
        start = stop
    return "".join(found)


def load_sentencepiece(path: str | Path) -> SentencePieceTokenizer:
    """Open a ``.model`` file as a tokenizer."""
    model = read_model(path)
    try:
        return SentencePieceTokenizer.from_model(model)
    except ForewordError as error:
        raise InputError(f"{path}: not a sentencepiece model that Foreword reads: {error}") from error


class _WordEncoder(CachingEncoder):
    """The encoder of one thread: a cache of encoded words, about 130 MB at most, and buffers.

    expected: bytes of its first block.
    """

    RECORD, IDS = 4, 6

    def __init__(self, tables: PieceTables, end: int, escape: bool, expected: int) -> None:
        self.tables, self.end, self.escape = tables, end, escape
        super().__init__(1 << min(max(12, (expected // 16).bit_length()), 18))

    def _scratch(self, length: int) -> None:
        self.rounded, self.scores = (np.empty(length, self.tables.scores.dtype) for _ in range(2))
        self.best, self.second = (np.empty(length, np.float64) for _ in range(2))
        self.ids, self.begins, self.pieces, self.stops = (np.empty(length, np.int32) for _ in range(4))
        self.heap = np.empty(6 * length if len(self.tables.symbols.merges) else 0, np.int64)

    def encode(self, block: Block) -> Encoded:
        """Return the ids of a block."""
        tables, symbols = self.tables, self.tables.symbols
        most = (3 if len(tables.byte_ids) else 1) * block.text_bytes() + len(block)
        out = np.empty(most + INLINE, np.int32)
        ends = np.empty(len(block), np.int64)
        position = np.array([0, 0, 0, self.size, 0, 0], np.int64)
        sums = np.zeros(1, tables.scores.dtype)
        digits = SINGLE if tables.scores.dtype == np.float32 else DOUBLE
        while need := encode_pieces(
            block.data, block.starts, block.stops, block.open, tables.cut, self.escape, self.end,
            tables.trie, tables.scores, tables.unknown, tables.unknown_score, digits, tables.byte_ids,
            symbols.merges, tables.frozen, symbols.ids, symbols.lengths,
            self.slots, self.arena, self.starts, self.records, self.memo,
            self.rounded, self.best, self.second, self.ids, self.begins, self.pieces, self.stops, self.scores,
            self.heap, out, ends, self.batch, self.keys, position, sums,
        ):  # fmt: skip
            self._scratch(2 * need)
        return self._finish(block, out, ends, position)
