"""The names of the ``sentencepiece`` module, with Foreword behind them.

``SentencePieceProcessor`` opens ``.model`` files, encodes, decodes and answers questions about pieces, with the ids,
pieces and texts of sentencepiece 0.2.2. Each method has its two spellings, as ``EncodeAsIds`` and ``encode_as_ids``.
Sampling and protocol buffer objects are not here, and neither is training: ``foreword tokenize train`` does that.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from foreword.errors import ForewordError, SettingError
from foreword.tokens.piece_tables import path_scores, textual
from foreword.tokens.sentencepiece import Piece, SentencePieceTokenizer, load_sentencepiece
from foreword.tokens.sentencepiece_file import (
    BYTE,
    CONTROL,
    UNKNOWN_PIECE,
    UNUSED,
    PieceModel,
    model_bytes,
    parse_model,
)

Output = type[int] | type[str] | str

ENCODING = {
    "add_bos", "add_eos", "reverse", "emit_unk_piece", "enable_sampling", "nbest_size", "alpha", "num_threads"
}  # fmt: skip
"""Options of ``encode``; the last four do not change the best path."""

NO_SAMPLING = "enable_sampling is True: foreword.compat.sentencepiece encodes by the best path only"


class ModelNotFoundError(OSError, RuntimeError):
    """There is no such file: an OSError in sentencepiece up to 0.2.0, a RuntimeError since."""


class SentencePieceProcessor:
    """A tokenizer with sentencepiece's interface."""

    def __init__(
        self,
        model_file: str | Path | None = None,
        model_proto: bytes | None = None,
        out_type: Output = int,
        add_bos: bool = False,
        add_eos: bool = False,
        reverse: bool = False,
        emit_unk_piece: bool = False,
        enable_sampling: bool = False,
        num_threads: int = -1,
    ) -> None:
        if enable_sampling:
            raise SettingError(NO_SAMPLING)
        self._options: dict[str, Any] = {
            "out_type": out_type,
            "add_bos": add_bos,
            "add_eos": add_eos,
            "reverse": reverse,
            "emit_unk_piece": emit_unk_piece,
        }
        self._threads = num_threads
        self._tokenizer: SentencePieceTokenizer | None = None
        if model_file is not None or model_proto is not None:
            self.load(model_file, model_proto)

    # Opening

    def load(self, model_file: str | Path | None = None, model_proto: bytes | None = None) -> bool:
        """Open a file, or a model that was read from one."""
        if model_file is not None and model_proto is not None:
            raise RuntimeError("model_file and model_proto must be exclusive.")
        if model_proto is not None:
            return self.load_from_serialized_proto(model_proto)
        return self.load_from_file(model_file or "")

    def load_from_file(self, arg: str | Path) -> bool:
        """Open a ``.model`` file."""
        if not Path(arg).exists():
            raise ModelNotFoundError(f'NOT_FOUND: "{arg}": No such file or directory')
        self._tokenizer = load_sentencepiece(arg)
        return True

    def load_from_serialized_proto(self, serialized: bytes) -> bool:
        """Open the content of a ``.model`` file."""
        self._tokenizer = SentencePieceTokenizer.from_model(parse_model(serialized))
        return True

    def serialized_model_proto(self) -> bytes:
        """Return the model as a ``.model`` file holds it."""
        return model_bytes(self._model)

    @property
    def _model(self) -> PieceModel:
        return self._opened.model_

    @property
    def _opened(self) -> SentencePieceTokenizer:
        if self._tokenizer is None:
            raise RuntimeError("Model is not initialized.")
        return self._tokenizer

    # Encoding

    def encode(self, input: str | Sequence[str], out_type: Output | None = None, **options: Any) -> Any:
        """Return the ids of a text, or its pieces with ``out_type=str``; of several texts a list of each.

        options: add_bos, add_eos, reverse and emit_unk_piece, as in the constructor.
        """
        chosen = {**self._options, **{name: value for name, value in options.items() if value is not None}}
        if unknown := set(options) - ENCODING:
            raise TypeError(f"encode() got an unexpected keyword argument {min(unknown)!r}")
        if chosen.get("enable_sampling"):
            raise SettingError(NO_SAMPLING)
        if out_type is not None:
            chosen["out_type"] = out_type
        one = isinstance(input, str | bytes)
        texts: list[Any] = [input] if one else list(input)
        if chosen["out_type"] in (int, "int"):
            encoded: list[list[Any]] = [ids.tolist() for ids in self._opened.encode_batch(texts)]
        elif chosen["out_type"] in (str, "str"):
            encoded = [self._spelt(text, chosen["emit_unk_piece"]) for text in texts]
        else:
            raise RuntimeError(f"unknown out_type={chosen['out_type']}")
        encoded = [self._with_options(each, chosen) for each in encoded]
        return encoded[0] if one else encoded

    def _spelt(self, text: str, emit_unknown: bool) -> list[str]:
        spelt = [piece.text for piece in self._opened.pieces(text)]
        if (
            emit_unknown
        ):  # as sentencepiece has it: by the text of a piece, so that one that names a control symbol stays
            unknown = self._model.unknown
            spelt = [self._model.pieces[unknown] if self.piece_to_id(piece) == unknown else piece for piece in spelt]
        return spelt

    def _with_options(self, encoded: list[Any], options: dict[str, Any]) -> list[Any]:
        ends = {"add_bos": self.bos_id(), "add_eos": self.eos_id()}
        spelt = options["out_type"] in (str, "str")
        before, after = (
            [self._model.pieces[id] if spelt else id] if options[name] else [] for name, id in ends.items()
        )
        return [*before, *(encoded[::-1] if options["reverse"] else encoded), *after]

    def encode_as_ids(self, input: str | Sequence[str], **options: Any) -> Any:
        """Return the ids of a text or of each of several."""
        return self.encode(input, out_type=int, **options)

    def encode_as_pieces(self, input: str | Sequence[str], **options: Any) -> Any:
        """Return the pieces of a text or of each of several."""
        return self.encode(input, out_type=str, **options)

    def encode_as_numpy(self, input: str, **options: Any) -> Any:
        """Return the ids of a text, int32 (ids,)."""
        return np.array(self.encode(input, out_type=int, **options), np.int32)

    def nbest_encode(self, input: str | Sequence[str], out_type: Output | None = None, nbest_size: int = 10) -> Any:
        """Return the ``nbest_size`` best ways to cut a text, the best first, for unigram models."""
        if not isinstance(input, str):
            return [self.nbest_encode(text, out_type, nbest_size) for text in input]
        chosen = self._options["out_type"] if out_type is None else out_type
        found = [self._fused(path) for path in nbest_paths(self._opened, input, nbest_size)]
        spelt = chosen in (str, "str")
        return [[piece.text if spelt else piece.id for piece in path] for path in found]

    def _fused(self, path: Iterable[Piece]) -> list[Piece]:
        """Join unknown pieces that follow each other."""
        joined: list[Piece] = []
        for piece in path:
            if joined and piece.id == joined[-1].id == self._model.unknown:
                joined[-1] = Piece(piece.id, joined[-1].text + piece.text)
            else:
                joined.append(piece)
        return joined

    def nbest_encode_as_ids(self, input: str | Sequence[str], nbest_size: int = 10) -> Any:
        """Return the ids of the best ways to cut a text."""
        return self.nbest_encode(input, int, nbest_size)

    def nbest_encode_as_pieces(self, input: str | Sequence[str], nbest_size: int = 10) -> Any:
        """Return the pieces of the best ways to cut a text."""
        return self.nbest_encode(input, str, nbest_size)

    def normalize(self, input: str) -> str:
        """Return a text as it is before it is cut into pieces."""
        return self._opened.normaliser.outer(self._opened.normaliser.text(input))

    # Decoding

    def decode(self, input: Any, out_type: Any = str, num_threads: int | None = None) -> Any:
        """Return the text of ids or pieces, as UTF-8 with ``out_type=bytes``; of several lists of them a list."""
        if out_type not in (str, "str", bytes):
            raise RuntimeError(f"out_type={out_type} is not supported: only text and bytes are")
        if isinstance(input, int | str | np.integer):
            return self.decode([input], out_type)
        items = list(input)
        if items and isinstance(items[0], list | tuple | np.ndarray):
            return [self.decode(each, out_type) for each in items]
        if out_type is bytes:
            return self.decode(items).encode()
        if not items or not isinstance(items[0], str):
            self._check_ids(items)
            return self._opened.decode(items)
        return self._opened.decode_pieces(Piece(self.piece_to_id(piece), piece) for piece in items)

    def decode_ids(self, input: Any) -> Any:
        """Return the text of ids."""
        return self.decode(input)

    def decode_pieces(self, input: Any) -> Any:
        """Return the text of pieces."""
        return self.decode(input)

    # Pieces

    def get_piece_size(self) -> int:
        """Return the number of pieces."""
        return len(self._model.pieces)

    def piece_to_id(self, piece: Any) -> Any:
        """Return the id of a piece, that of ``<unk>`` if there is none; of several a list."""
        if not isinstance(piece, str):
            return [self.piece_to_id(each) for each in piece]
        vocab = self._opened.vocab
        id = vocab.id(piece)
        return id if id < len(self._model.pieces) else self._model.unknown

    def id_to_piece(self, id: Any) -> Any:
        """Return the piece of an id; of several a list."""
        return self._answer(id, lambda one: self._model.pieces[one])

    def get_score(self, id: Any) -> Any:
        """Return the score of a piece."""
        return self._answer(id, lambda one: float(self._model.scores[one]))

    def is_unknown(self, id: Any) -> Any:
        """Return whether an id is that of the unknown piece."""
        return self._is(id, UNKNOWN_PIECE)

    def is_control(self, id: Any) -> Any:
        """Return whether an id is that of a control symbol."""
        return self._is(id, CONTROL)

    def is_unused(self, id: Any) -> Any:
        """Return whether an id is that of an unused piece."""
        return self._is(id, UNUSED)

    def is_byte(self, id: Any) -> Any:
        """Return whether an id is that of a byte."""
        return self._is(id, BYTE)

    def _is(self, id: Any, type_: int) -> Any:
        return self._answer(id, lambda one: bool(self._model.types[one] == type_))

    def _answer(self, id: Any, of: Callable[[int], Any]) -> Any:
        if isinstance(id, list | tuple):
            return [self._answer(one, of) for one in id]
        self._check_ids([id])
        return of(int(id))

    def _check_ids(self, ids: Sequence[Any]) -> None:
        if any(not 0 <= id < len(self._model.pieces) for id in ids):
            raise IndexError("piece id is out of range.")

    def unk_id(self) -> int:
        """Return the id of the unknown piece."""
        return self._model.unknown

    def bos_id(self) -> int:
        """Return the id of the piece that begins a sentence, -1 if there is none."""
        return self._role(self._model.names.begin)

    def eos_id(self) -> int:
        """Return the id of the piece that ends a sentence, -1 if there is none."""
        return self._role(self._model.names.end)

    def pad_id(self) -> int:
        """Return the id of the padding, -1 if there is none."""
        return self._role(self._model.names.pad)

    def _role(self, name: str) -> int:
        id: int = self.piece_to_id(name)
        return id if self.is_control(id) else -1

    def __len__(self) -> int:
        return self.get_piece_size()

    def __getitem__(self, piece: Any) -> Any:
        return self.piece_to_id(piece)

    Load, LoadFromFile, LoadFromSerializedProto = load, load_from_file, load_from_serialized_proto
    Encode, EncodeAsIds, EncodeAsPieces, EncodeAsNumpy = encode, encode_as_ids, encode_as_pieces, encode_as_numpy
    Tokenize = tokenize = encode
    NBestEncode, NBestEncodeAsIds = nbest_encode, nbest_encode_as_ids
    NBestEncodeAsPieces, Normalize = nbest_encode_as_pieces, normalize
    Decode, DecodeIds, DecodePieces = decode, decode_ids, decode_pieces
    Detokenize = detokenize = decode
    GetPieceSize = piece_size = vocab_size = get_piece_size
    PieceToId, IdToPiece, GetScore = piece_to_id, id_to_piece, get_score
    IsUnknown, IsControl, IsUnused, IsByte = is_unknown, is_control, is_unused, is_byte


def nbest_paths(tokenizer: SentencePieceTokenizer, text: str, count: int) -> list[list[Piece]]:
    """Return the best paths through a text, the best first: of ``count`` ways to every position."""
    model = tokenizer.model_
    if model.algorithm != "unigram":
        raise ForewordError("only unigram models have several ways to cut a text")
    normalised = tokenizer.normaliser.outer(tokenizer.normaliser.text(text))
    scores, unknown_score = path_scores(model)
    ids = {model.pieces[id]: id for id in np.flatnonzero(textual(model) & (model.types != UNUSED)).tolist()}
    longest = max(map(len, ids), default=1)
    ways: list[list[tuple[np.float32, list[Piece]]]] = [[(np.float32(0), [])]]
    for stop in range(1, len(normalised) + 1):
        found: list[tuple[np.float32, list[Piece]]] = []
        for start in range(max(0, stop - longest), stop):
            piece = normalised[start:stop]
            id = ids.get(piece, model.unknown if stop == start + 1 else -1)
            if id >= 0:
                score = unknown_score if id == model.unknown else scores[id]
                found += [(before + score, [*path, Piece(id, piece)]) for before, path in ways[start]]
        ways.append(heapq.nlargest(count, found, key=lambda way: way[0]))
    return [path for _, path in ways[-1]]
