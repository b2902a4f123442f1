"""Word vectors on the command line: opened from wherever they are, and trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from foreword import kinds
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.vectors.wordvectors import WordVectors

VectorsPath: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="VECTORS",
        help="A folder that foreword train wrote, or a file: word2vec text or binary, GloVe, .vec, compressed or not.",
    ),
]


def load_vectors(path: str) -> WordVectors:
    """Vectors from a folder, which is mapped at once, or from a file, which is read, with progress."""
    from foreword.cli.models import load_any
    from foreword.cli.progress import progress
    from foreword.vectors.word2vec_file import looks_like_vectors, read_vectors

    if Path(path).is_file() and looks_like_vectors(path):
        with progress() as meter:
            return read_vectors(path, meter=meter)
    return vectors_in(load_any(path), path)


def vectors_in(found: Any, path: str) -> WordVectors:
    """The vectors themselves, or those that a trained model holds."""
    from foreword.vectors.wordvectors import WordVectors

    kind = kinds.of(found)
    if "nearest" not in kind.abilities:
        raise InputError(
            f"{path}: its kind is {kind.name}, which has no word vectors: foreword train word2vec makes some"
        )
    held: WordVectors = found if isinstance(found, WordVectors) else found.vectors
    return held
