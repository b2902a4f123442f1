"""Opening a ``.model``, and questions about its pieces: the base class of ``SentencePieceProcessor``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from foreword.tokens.sentencepiece import SentencePieceTokenizer, load_sentencepiece
from foreword.tokens.sentencepiece_file import (
    BYTE,
    CONTROL,
    UNKNOWN_PIECE,
    UNUSED,
    PieceModel,
    model_bytes,
    parse_model,
)


class ModelNotFoundError(OSError, RuntimeError):
    """There is no such file: an OSError in sentencepiece up to 0.2.0, a RuntimeError since."""


class PieceQuestions:
    """A model with the methods of sentencepiece that neither encode nor decode."""

    _tokenizer: SentencePieceTokenizer | None = None

    # Opening

    def load(self, model_file: str | Path | None = None, model_proto: bytes | None = None) -> bool:
        """Open a file, or a model that was read from one."""
        if model_file is not None and model_proto is not None:
            raise RuntimeError("model_file and model_proto must be exclusive.")
        if model_proto is not None:
            return self.load_from_serialized_proto(model_proto)
        return self.load_from_file(model_file or "")

    def load_from_file(self, filename: str | Path) -> bool:
        """Open a ``.model`` file."""
        if not Path(filename).exists():
            raise ModelNotFoundError(f'NOT_FOUND: "{filename}": No such file or directory')
        self._tokenizer = load_sentencepiece(filename)
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
    GetPieceSize = piece_size = vocab_size = get_piece_size
    PieceToId, IdToPiece, GetScore = piece_to_id, id_to_piece, get_score
    IsUnknown, IsControl, IsUnused, IsByte = is_unknown, is_control, is_unused, is_byte
