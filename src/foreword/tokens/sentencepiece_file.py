"""The ``.model`` files of sentencepiece: a Protocol Buffers message, read and written here by hand.

    ModelProto      1 pieces*, 2 trainer_spec, 3 normalizer_spec, 5 denormalizer_spec
    piece           1 piece, 2 score (float), 3 type
    trainer_spec    3 model_type, 4 vocab_size, 24 treat_whitespace_as_suffix, 35 byte_fallback, 44 unk_surface,
                    45 to 48 unk_piece, bos_piece, eos_piece, pad_piece
    normalizer_spec 1 name, 2 precompiled_charsmap, 3 add_dummy_prefix, 4 remove_extra_whitespaces,
                    5 escape_whitespaces (the last three are true where the file does not say)

A piece's position is its id. ``PieceModel`` is such a file's content, checked, and what tokenizers are made of.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from foreword.arrays import Bytes, Ints, Reals
from foreword.errors import ForewordError, InputError
from foreword.storage.atomic import atomic_file
from foreword.text.strict_json import shown
from foreword.tokens import protobuf
from foreword.tokens.protobuf import BYTES, FOUR_BYTES, VARINT, bytes_field, float_field, number_field

NORMAL, UNKNOWN_PIECE, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Types of pieces."""

Algorithm = Literal["unigram", "bpe"]
_ALGORITHMS: dict[int, str] = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}

SIZE_LIMIT = 256 << 20
"""Bytes of a file, a ``.model`` or tokenizer.json: ten times the largest in use (Gemma 3, 262,144 pieces)."""

T = TypeVar("T")
PIECE_LIMIT = 4096
"""Bytes of a piece. The time to encode a text grows with the longest piece that matches."""

SPACE = "▁"
UNKNOWN_SURFACE = " ⁇ "
BYTE_PIECES = [f"<0x{byte:02X}>" for byte in range(256)]


@dataclass(frozen=True, slots=True)
class Normalisation:
    """How a text is normalised before it is cut into pieces.

    character_map: ``precompiled_charsmap``, see ``character_map.py``; empty for none.
    dummy_prefix: put a blank before each text. collapse: remove white space at both ends, and repeated blanks.
    escape: write a blank as ▁. suffix: the dummy blank goes to the end of the text. prefix_once: there is no dummy
    blank before a text that begins with one (``tokenizers``). splits: every ▁ begins a word, and the sum of a word's
    scores begins at zero (``tokenizers``).
    """

    character_map: bytes = b""
    dummy_prefix: bool = True
    collapse: bool = True
    escape: bool = True
    suffix: bool = False
    name: str = "identity"
    prefix_once: bool = False
    splits: bool = False


@dataclass(frozen=True, slots=True)
class SpecialNames:
    """The names of the pieces with a role, and what an unknown piece decodes to."""

    unknown: str = "<unk>"
    begin: str = "<s>"
    end: str = "</s>"
    pad: str = "<pad>"
    surface: str = UNKNOWN_SURFACE


@dataclass(frozen=True, slots=True)
class PieceModel:
    """Everything that decides the ids of a text.

    pieces: their texts. scores: float32 (pieces,). types: uint8 (pieces,), ``NORMAL`` to ``BYTE``.
    denormaliser: a character map that is applied to decoded text; empty for none.
    merges: int32 (merges, 3), left, right and merged id, of a BPE that has a list of them (``tokenizers``); None where
    any two pieces merge whose texts together are one (sentencepiece). Scores in float64 are added in that precision.
    """

    pieces: tuple[str, ...]
    scores: Reals
    types: Bytes
    algorithm: Algorithm = "unigram"
    byte_fallback: bool = False
    normalisation: Normalisation = field(default_factory=Normalisation)
    names: SpecialNames = field(default_factory=SpecialNames)
    denormaliser: bytes = b""
    merges: Ints | None = None

    def __post_init__(self) -> None:
        if not (len(self.pieces) == len(self.scores) == len(self.types)):
            raise InputError(f"{len(self.pieces)} pieces, {len(self.scores)} scores and {len(self.types)} types")
        if self.algorithm not in ("unigram", "bpe"):
            raise InputError(f"its model type is {shown(self.algorithm)}, expected unigram or bpe")
        if self.scores.dtype not in (np.float32, np.float64) or self.types.dtype != np.uint8:
            raise InputError("scores must be float32 or float64, and types uint8")
        if (self.scores.ndim, self.types.ndim) != (1, 1):
            raise InputError("scores and types must be one number for each piece")
        if self.merges is not None and (
            self.merges.dtype != np.int32
            or self.merges.shape[1:] != (3,)
            or (len(self.merges) and not 0 <= self.merges.min() <= self.merges.max() < len(self.pieces))
        ):
            raise InputError("the merges must be rows of three ids of pieces, int32")
        if not np.isfinite(self.scores).all():
            raise InputError("a score is not a finite number")
        if len(self.types) and not 1 <= self.types.min() <= self.types.max() <= BYTE:
            raise InputError(f"a piece has the type {self.types.max()}, expected 1 to {BYTE}")
        self._check_pieces()

    def _check_pieces(self) -> None:
        seen: set[str] = set()
        for id, piece in enumerate(self.pieces):
            if not 0 < len(piece.encode()) <= PIECE_LIMIT:
                raise InputError(f"piece {id} has {len(piece.encode())} bytes, expected 1 to {PIECE_LIMIT}")
            if piece in seen:
                raise InputError(f"piece {shown(piece)} appears twice")
            seen.add(piece)
        unknown = int((self.types == UNKNOWN_PIECE).sum())
        if unknown != 1:
            raise InputError(f"{unknown} pieces are of the type unknown, expected one")
        held = {self.pieces[id] for id in np.flatnonzero(self.types == BYTE).tolist()}
        expected = set(BYTE_PIECES) if self.byte_fallback else set()
        if held != expected:
            raise InputError(f"{len(held)} pieces stand for bytes, expected {len(expected)}")

    @property
    def unknown(self) -> int:
        """The id of the unknown piece."""
        return int(np.flatnonzero(self.types == UNKNOWN_PIECE)[0])


# Reading


def looks_like_sentencepiece(path: Path) -> bool:
    """Return whether a file begins like a model: a first piece whose own first field is its text.

    More is checked than the first bytes, because a text may begin with them (a line end and a printable character).
    """
    with path.open("rb") as file:
        head = file.read(1024)
    try:
        number, kind, piece = next(protobuf.fields(memoryview(head)))
        if (number, kind) != (1, BYTES) or isinstance(piece, int):
            return False
        found = {(number, kind) for number, kind, _ in protobuf.fields(piece)}
    except (InputError, StopIteration):
        return False
    return (1, BYTES) in found and found <= {(1, BYTES), (2, FOUR_BYTES), (3, VARINT)}


def read_model(path: str | Path) -> PieceModel:
    """Read a ``.model`` file; an InputError unless it is one that Foreword encodes identically."""
    return parse_file(path, parse_model, "a sentencepiece model")


def parse_file(path: str | Path, parse: Callable[[bytes], T], what: str) -> T:
    """Return what ``parse`` makes of a tokenizer's file; an InputError, in one line, where it cannot."""
    try:
        size = Path(path).stat().st_size
        if size > SIZE_LIMIT:
            raise InputError(f"{size} bytes, expected at most {SIZE_LIMIT >> 20} MB")
        return parse(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ForewordError, ValueError) as error:
        raise InputError(f"{path}: not {what} that Foreword reads: {' '.join(str(error).split())}") from error


def parse_model(data: bytes) -> PieceModel:
    """Parse a serialised ``ModelProto``."""
    pieces: list[str] = []
    scores: list[float] = []
    types: list[int] = []
    specs: dict[int, dict[int, int | memoryview]] = {2: {}, 3: {}, 5: {}}
    for number, kind, value in protobuf.fields(memoryview(data)):
        if number not in (1, *specs):
            continue
        if isinstance(value, int) or kind != BYTES:
            raise InputError(f"field {number} is a number, expected a message")
        if number == 1:
            piece, score, type_ = _read_piece(value)
            pieces.append(piece)
            scores.append(score)
            types.append(type_)
        else:
            specs[number] |= {inner: content for inner, _, content in protobuf.fields(value)}
    trainer, normaliser = specs[2], specs[3]
    if not pieces:
        raise InputError("it holds no pieces")
    algorithm = _number(trainer, 3, 1)
    if _ALGORITHMS.get(algorithm) not in ("unigram", "bpe"):
        raise InputError(f"its model type is {_ALGORITHMS.get(algorithm, algorithm)}, expected unigram or bpe")
    names = SpecialNames()
    return PieceModel(
        tuple(pieces),
        np.array(scores, np.float32),
        np.array(types, np.uint8),
        "unigram" if algorithm == 1 else "bpe",
        bool(_number(trainer, 35, 0)),
        Normalisation(
            bytes(_bytes(normaliser, 2)),
            bool(_number(normaliser, 3, 1)),
            bool(_number(normaliser, 4, 1)),
            bool(_number(normaliser, 5, 1)),
            bool(_number(trainer, 24, 0)),
            _text(normaliser, 1, ""),
        ),
        SpecialNames(
            _text(trainer, 45, names.unknown),
            _text(trainer, 46, names.begin),
            _text(trainer, 47, names.end),
            _text(trainer, 48, names.pad),
            _text(trainer, 44, names.surface),
        ),
        bytes(_bytes(specs[5], 2)),
    )


def _read_piece(message: memoryview) -> tuple[str, float, int]:
    text, score, type_ = "", 0.0, NORMAL
    for number, kind, value in protobuf.fields(message):
        match number, kind, value:
            case (1, 2, memoryview()):
                text = _decoded(value, "a piece")
            case (2, 5, memoryview()):
                (score,) = struct.unpack("<f", value)
            case (3, 0, int()):
                type_ = min(value, BYTE + 1)
            case (1 | 2 | 3, _, _):
                raise InputError(f"field {number} of a piece has the wire type {kind}")
    return text, score, type_


def _number(fields: dict[int, int | memoryview], number: int, default: int) -> int:
    value = fields.get(number, default)
    if not isinstance(value, int):
        raise InputError(f"setting {number} is not a number")
    return value


def _bytes(fields: dict[int, int | memoryview], number: int) -> memoryview:
    value = fields.get(number, memoryview(b""))
    if isinstance(value, int):
        raise InputError(f"setting {number} is a number, expected bytes")
    return value


def _text(fields: dict[int, int | memoryview], number: int, default: str) -> str:
    return _decoded(_bytes(fields, number), f"setting {number}") if number in fields else default


def _decoded(value: memoryview, what: str) -> str:
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{what} is {shown(repr(bytes(value[:40])))}, expected UTF-8") from None


# Writing


def model_bytes(model: PieceModel) -> bytes:
    """Return the serialised ``ModelProto`` that sentencepiece loads; an InputError where it would give other ids."""
    if model.scores.dtype != np.float32 or model.merges is not None or model.normalisation.prefix_once:
        raise InputError("a .model cannot hold this tokenizer, which was read from a tokenizer.json")
    pieces = [
        bytes_field(1, piece.encode()) + float_field(2, score) + (number_field(3, type_) if type_ != NORMAL else b"")
        for piece, score, type_ in zip(model.pieces, model.scores.tolist(), model.types.tolist(), strict=True)
    ]
    names, normalisation = model.names, model.normalisation
    trainer = number_field(3, 1 if model.algorithm == "unigram" else 2) + number_field(4, len(model.pieces))
    trainer += number_field(24, normalisation.suffix) + number_field(35, model.byte_fallback)
    for number, name in ((45, names.unknown), (46, names.begin), (47, names.end), (48, names.pad)):
        trainer += number_field(number - 5, model.pieces.index(name) if name in model.pieces else -1)
        trainer += bytes_field(number, name.encode())
    trainer += bytes_field(44, names.surface.encode())
    normaliser = bytes_field(1, normalisation.name.encode()) + bytes_field(2, normalisation.character_map)
    normaliser += number_field(3, normalisation.dummy_prefix) + number_field(4, normalisation.collapse)
    normaliser += number_field(5, normalisation.escape)
    written = b"".join(bytes_field(1, piece) for piece in pieces) + bytes_field(2, trainer) + bytes_field(3, normaliser)
    return written + (bytes_field(5, bytes_field(2, model.denormaliser)) if model.denormaliser else b"")


def write_model(model: PieceModel, path: str | Path) -> None:
    """Write a file that sentencepiece opens, with equal ids."""
    with atomic_file(path) as new:
        new.write_bytes(model_bytes(model))
