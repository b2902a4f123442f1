"""``SentencePieceProcessor``: encoding and decoding with the signatures and results of sentencepiece 0.2.2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from foreword.compat.sentencepiece.lattice import entropy, nbest_paths
from foreword.compat.sentencepiece.offsets import in_characters, normalise_with_offsets, spans_of
from foreword.compat.sentencepiece.questions import PieceQuestions
from foreword.errors import SettingError
from foreword.tokens.sentencepiece import Piece
from foreword.tokens.sentencepiece_file import BYTE

Output = type[int] | type[str] | type[bytes] | str
Texts = str | bytes | Sequence[str | bytes]

OUTPUTS: tuple[Any, ...] = (int, str, bytes, "int", "str", "numpy", "offset_mapping")
PROTOS = ("proto", "serialized_proto", "immutable_proto")
NO_SAMPLING = "enable_sampling is True: foreword.compat.sentencepiece encodes by the best path only"
NOT_OFFERED = ("sample", "proto", "parallel_encode", "override_normalizer_spec")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a processor, in the order of its constructor; a call may set others."""

    out_type: Output | None = None
    add_bos: bool = False
    add_eos: bool = False
    reverse: bool = False
    emit_unk_piece: bool = False
    enable_sampling: bool = False
    nbest_size: int = -1
    alpha: float = 0.1
    num_threads: int = -1
    return_type: Output | None = None

    def __post_init__(self) -> None:
        if self.enable_sampling:
            raise SettingError(NO_SAMPLING)

    def changed(self, return_type: Output | None, out_type: Output | None, **given: Any) -> Options:
        """Return the options of a call: those that it gives, and the others as they are; checks the kind of output."""
        kind = one_of(return_type, out_type) or one_of(self.return_type, self.out_type) or int
        if kind in PROTOS:
            raise SettingError(f"return_type={kind!r} is not offered by foreword.compat.sentencepiece")
        if kind not in OUTPUTS:
            raise ValueError(f"Invalid return_type: {kind}. Expected int, str, bytes, 'numpy' or 'offset_mapping'")
        chosen = {name: value for name, value in given.items() if value is not None}
        return replace(self, **chosen, return_type={"int": int, "str": str}.get(str(kind), kind), out_type=None)


def one_of(return_type: Output | None, out_type: Output | None) -> Output | None:
    """Return the kind of output, which has two names; a ValueError if both are given."""
    if return_type is not None and out_type is not None:
        raise ValueError("Cannot specify both out_type and return_type: use return_type")
    return out_type if return_type is None else return_type


class SentencePieceProcessor(PieceQuestions):
    """A tokenizer with sentencepiece's interface.

    values, options: out_type, add_bos, add_eos, reverse, emit_unk_piece, enable_sampling, nbest_size, alpha,
    num_threads and return_type, in this order; they hold for calls that do not set them.
    """

    def __init__(
        self, model_file: str | Path | None = None, model_proto: bytes | None = None, *values: Any, **options: Any
    ) -> None:
        self._options = Options(*values, **options)
        one_of(self._options.return_type, self._options.out_type)
        if model_file is not None or model_proto is not None:
            self.load(model_file, model_proto)

    @classmethod
    def from_file(cls, model_file: str | Path, **kwargs: Any) -> Self:
        """Open a ``.model`` file."""
        return cls(model_file=model_file, **kwargs)

    @classmethod
    def from_proto(cls, model_proto: bytes, **kwargs: Any) -> Self:
        """Open the content of a ``.model`` file."""
        return cls(model_proto=model_proto, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Name what sentencepiece has and this module does not."""
        plain = name.lower().replace("_", "")
        if any(each.replace("_", "") in plain for each in NOT_OFFERED):
            raise AttributeError(f"{name} is not offered by foreword.compat.sentencepiece")
        raise AttributeError(f"'SentencePieceProcessor' object has no attribute {name!r}")

    # Encoding

    def encode(
        self, input: Texts, add_bos: bool | None = None, add_eos: bool | None = None, reverse: bool | None = None,
        emit_unk_piece: bool | None = None, enable_sampling: bool | None = None, nbest_size: int | None = None,
        alpha: float | None = None, num_threads: int | None = None, thread_pool: Any = None,
        return_type: Output | None = None, out_type: Output | None = None, return_bytes: bool | None = None,
    ) -> Any:  # fmt: skip
        """Return the ids of a text, of several texts a list of each.

        return_type: int; str or bytes for pieces, "numpy" for an array, "offset_mapping" for ids, pieces and offsets.
        """
        how = self._options.changed(
            return_type, out_type, add_bos=add_bos, add_eos=add_eos, reverse=reverse, emit_unk_piece=emit_unk_piece,
            enable_sampling=enable_sampling,
        )  # fmt: skip
        if return_bytes is not None and how.return_type != "offset_mapping":
            raise ValueError("return_bytes is only supported when return_type='offset_mapping'")
        one = isinstance(input, str | bytes)
        texts = _checked([input] if isinstance(input, str | bytes) else input)
        if how.return_type == "offset_mapping":
            encoded: list[Any] = [self._with_offsets(text, bool(return_bytes)) for text in texts]
        elif how.return_type in (int, "numpy"):
            encoded = [self._finished(ids.tolist(), how) for ids in self._opened.encode_batch(texts)]
        else:
            encoded = [self._finished(self._spelt(self._opened.pieces(text), how), how) for text in texts]
        return encoded[0] if one else encoded

    def _spelt(self, pieces: Iterable[Piece], how: Options) -> list[Any]:
        spelt = [piece.text for piece in pieces]
        if how.emit_unk_piece:
            # as sentencepiece has it: by the text of a piece, so that one that names a control symbol stays
            unknown = self._model.unknown
            spelt = [self._model.pieces[unknown] if self.piece_to_id(piece) == unknown else piece for piece in spelt]
        return spelt

    def _finished(self, encoded: list[Any], how: Options) -> Any:
        """Return ids or pieces with the ends, in the order and of the type that the options name."""
        ends = ((self.bos_id(), how.add_bos), (self.eos_id(), how.add_eos))
        spelt = how.return_type in (str, bytes)
        before, after = ([self._model.pieces[id] if spelt else id] if added else [] for id, added in ends)
        items = [*before, *(encoded[::-1] if how.reverse else encoded), *after]
        if how.return_type is bytes:
            return [piece.encode() for piece in items]
        return np.array(items, np.int32) if how.return_type == "numpy" else items

    def _with_offsets(self, text: str | bytes, in_bytes: bool) -> dict[str, list[Any]]:
        """Return ids, pieces and where they are in the text, in characters or in bytes."""
        text = text if isinstance(text, str) else text.decode()
        pieces = self._opened.pieces(text)
        _, offsets = normalise_with_offsets(self._opened.normaliser, text)
        offsets = offsets if in_bytes else in_characters(text, offsets)
        types = self._model.types
        spans = spans_of([(piece, bool(types[piece.id] == BYTE)) for piece in pieces], offsets)
        spelt = [piece.text.encode() if in_bytes else piece.text for piece in pieces]
        return {"ids": [piece.id for piece in pieces], "pieces": spelt, "offsets": spans}

    def encode_as_ids(self, input: Texts, **kwargs: Any) -> Any:
        """Return the ids of a text or of each of several."""
        return self.encode(input, return_type=int, **kwargs)

    def encode_as_pieces(self, input: Texts, **kwargs: Any) -> Any:
        """Return the pieces of a text or of each of several."""
        return self.encode(input, return_type=str, **kwargs)

    def encode_as_numpy(self, input: Texts, **kwargs: Any) -> Any:
        """Return the ids of a text, int32 (ids,), or of each of several."""
        return self.encode(input, return_type="numpy", **kwargs)

    def encode_as_offset_mapping(self, input: Texts, **kwargs: Any) -> Any:
        """Return ids, pieces and offsets of a text or of each of several."""
        return self.encode(input, return_type="offset_mapping", **kwargs)

    def nbest_encode(
        self, input: Texts, add_bos: bool | None = None, add_eos: bool | None = None, reverse: bool | None = None,
        emit_unk_piece: bool | None = None, nbest_size: int | None = None, return_type: Output | None = None,
        out_type: Output | None = None,
    ) -> Any:  # fmt: skip
        """Return the ``nbest_size`` best ways to cut a text, the best first, for unigram models."""
        how = self._options.changed(
            return_type, out_type, add_bos=add_bos, add_eos=add_eos, reverse=reverse, emit_unk_piece=emit_unk_piece,
            nbest_size=nbest_size,
        )  # fmt: skip
        if how.return_type == "offset_mapping":
            raise ValueError("nbest_encode has no return_type='offset_mapping'")
        if not isinstance(input, str | bytes):
            return [self._nbest(text, how) for text in _checked(input)]
        return self._nbest(input, how)

    def _nbest(self, text: str | bytes, how: Options) -> list[Any]:
        paths = nbest_paths(self._opened, self._normalised(text), max(1, how.nbest_size))
        spelt = how.return_type in (str, bytes)
        found = [self._fused(path) for path in paths]
        return [
            self._finished(self._spelt(path, how) if spelt else [piece.id for piece in path], how) for path in found
        ]

    def _fused(self, path: Iterable[Piece]) -> list[Piece]:
        """Join unknown pieces that follow each other."""
        joined: list[Piece] = []
        for piece in path:
            if joined and piece.id == joined[-1].id == self._model.unknown:
                joined[-1] = Piece(piece.id, joined[-1].text + piece.text)
            else:
                joined.append(piece)
        return joined

    def nbest_encode_as_ids(self, input: Texts, nbest_size: int | None = None, **kwargs: Any) -> Any:
        """Return the ids of the best ways to cut a text."""
        return self.nbest_encode(input, nbest_size=nbest_size, return_type=int, **kwargs)

    def nbest_encode_as_pieces(self, input: Texts, nbest_size: int | None = None, **kwargs: Any) -> Any:
        """Return the pieces of the best ways to cut a text."""
        return self.nbest_encode(input, nbest_size=nbest_size, return_type=str, **kwargs)

    def nbest_encode_as_numpy(self, input: Texts, nbest_size: int | None = None, **kwargs: Any) -> Any:
        """Return the ids of the best ways to cut a text, int32 (ids,) each."""
        return self.nbest_encode(input, nbest_size=nbest_size, return_type="numpy", **kwargs)

    def calculate_entropy(self, input: Texts, alpha: float) -> Any:
        """Return the entropy of the ways to cut a text, with scores times ``alpha``, for unigram models."""
        if not isinstance(input, str | bytes):
            return [self.calculate_entropy(text, alpha) for text in input]
        return entropy(self._opened, self._normalised(input), alpha)

    def normalize(self, input: Texts, with_offsets: bool | None = None) -> Any:
        """Return a text as it is before it is cut into pieces, and where each character comes from if asked for."""
        if not isinstance(input, str | bytes):
            return [self.normalize(text, with_offsets) for text in _checked(input)]
        if not with_offsets:
            return self._normalised(input)
        text = input if isinstance(input, str) else input.decode()
        normalised, offsets = normalise_with_offsets(self._opened.normaliser, text)
        return normalised, in_characters(text, offsets)

    def _normalised(self, text: str | bytes) -> str:
        return self._opened.normaliser.outer(self._opened.normaliser.text(text))

    # Decoding

    def decode(
        self, input: Any, return_type: Any = None, out_type: Any = None, num_threads: int | None = None,
        thread_pool: Any = None, return_bytes: bool | None = None,
    ) -> Any:  # fmt: skip
        """Return the text of ids or pieces, as UTF-8 with ``return_type=bytes``; of several lists of them a list."""
        kind = one_of(return_type, out_type) or str
        if kind not in (str, bytes, "str"):
            raise ValueError(f"unknown return_type={kind}: expected str or bytes")
        if return_bytes is not None:
            raise ValueError("return_bytes is only supported when return_type='offset_mapping'")
        if isinstance(input, int | str | np.integer):
            return self.decode([input], kind)
        items = list(input)
        if items and isinstance(items[0], list | tuple | np.ndarray):
            return [self.decode(each, kind) for each in items]
        if kind is bytes:
            return self.decode(items).encode()
        if not items or not isinstance(items[0], str):
            self._check_ids(items)
            return self._opened.decode(items)
        return self._opened.decode_pieces(Piece(self.piece_to_id(piece), piece) for piece in items)

    def decode_ids(self, input: Any, return_type: Any = str, **kwargs: Any) -> Any:
        """Return the text of ids."""
        return self.decode(input, return_type, **kwargs)

    def decode_pieces(self, input: Any, return_type: Any = str, **kwargs: Any) -> Any:
        """Return the text of pieces."""
        return self.decode(input, return_type, **kwargs)

    Encode, EncodeAsIds, EncodeAsPieces, EncodeAsNumpy = encode, encode_as_ids, encode_as_pieces, encode_as_numpy
    EncodeAsOffsetMapping, CalculateEntropy, Normalize = encode_as_offset_mapping, calculate_entropy, normalize
    Tokenize = tokenize = encode
    NBestEncode, NBestEncodeAsIds = nbest_encode, nbest_encode_as_ids
    NBestEncodeAsPieces, NBestEncodeAsNumpy = nbest_encode_as_pieces, nbest_encode_as_numpy
    Decode, DecodeIds, DecodePieces = decode, decode_ids, decode_pieces
    Detokenize = detokenize = decode


def _checked(texts: Any) -> list[Any]:
    """Return the texts; a TypeError for one that is none."""
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str | bytes) for text in texts):
        raise TypeError("Input must be str or bytes, or a list of them")
    return list(texts)
