"""Tokenizers and models from where the user says they are, and back."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from foreword import kinds
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.pipeline.language import TextLM
    from foreword.protocols import LabelModel, TextTokenizer

STDIO = "-"


def load_language_model(path: str) -> TextLM:
    return language_model(load_any(path), path)


def language_model(found: object, path: str) -> TextLM:
    """What was found at ``path``, which must be a language model that reads text."""
    from foreword.pipeline.language import TextLM
    from foreword.storage.folder import kind_of

    if not isinstance(found, TextLM):
        raise InputError(f"{path}: its kind is {kind_of(found)}, not text-lm: foreword train makes one")
    return found


def load_classifier(path: str) -> LabelModel:
    found: LabelModel = load_any(path)
    kind = kinds.of(found)
    if "classify" not in kind.abilities:
        raise InputError(f"{path}: its kind is {kind.name}, not text-classifier: foreword classify train makes one")
    return found


def load_tokenizer(path: str) -> TextTokenizer:
    """A tokenizer's folder, a tokenizer.json, or the tokenizer of a model."""
    from foreword.pipeline.language import TextLM
    from foreword.protocols import TextTokenizer
    from foreword.storage.folder import kind_of

    found = load_any(path)
    tokenizer = found.tokenizer if isinstance(found, TextLM) else found
    if not isinstance(tokenizer, TextTokenizer):
        raise InputError(f"{path}: its kind is {kind_of(found)}, not a tokenizer: foreword tokenize train makes one")
    return tokenizer


def save_tokenizer(tokenizer: TextTokenizer, out: str) -> None:
    """A folder, or tokenizer.json where the name ends in .json or is standard output."""
    from foreword.storage.folder import save

    if is_tokenizer_json(out):
        _write_json(tokenizer, out)
    else:
        save(tokenizer, out)  # type: ignore[arg-type]


def is_tokenizer_json(out: str) -> bool:
    return out == STDIO or out.lower().endswith(".json")


def check_output(out: str, *, folder: bool) -> None:
    """Refuse what could not be written before the work begins: nobody should learn that after an hour."""
    from foreword.storage.atomic import check_replaceable, nearest_existing

    if folder and out == STDIO:
        raise typer.BadParameter("a model is a folder and cannot go to standard output", param_hint="'-o'")
    if out == STDIO:
        return
    if folder:
        check_replaceable(out)
    elif Path(out).exists() and not Path(out).is_file():
        raise InputError(f"cannot write {out}: it is not a plain file")
    standing = nearest_existing(out)
    if not (standing.is_dir() and os.access(standing, os.W_OK)):
        raise InputError(f"cannot write {out}: no permission to write in {standing}")


def load_any(path: str) -> Any:
    """Whatever is there, told by what it holds."""
    from foreword.storage.folder import load
    from foreword.storage.sigbus import report_cut_files

    with _as_file(path) as file:
        found = load(file)
    report_cut_files()
    return found


@contextmanager
def _as_file(path: str) -> Iterator[str]:
    """Standard input as a file, which is what loading needs: it looks at a file more than once."""
    if path != STDIO:
        yield path
        return
    with TemporaryDirectory(prefix="foreword-") as folder:
        file = Path(folder, "standard input")
        file.write_bytes(sys.stdin.buffer.read())
        yield str(file)


def _write_json(tokenizer: TextTokenizer, out: str) -> None:
    from foreword.cli.printing import write_bytes
    from foreword.storage.folder import kind_of
    from foreword.tokens.bpe import BPETokenizer
    from foreword.tokens.tokenizer_json import write_tokenizer_json

    if not isinstance(tokenizer, BPETokenizer):
        raise InputError(
            f"cannot write {out}: tokenizer.json holds BPE tokenizers, and this one is {kind_of(tokenizer)}"
        )
    if out != STDIO:
        write_tokenizer_json(tokenizer, out)
        return
    with TemporaryDirectory(prefix="foreword-") as folder:
        file = Path(folder, "tokenizer.json")
        write_tokenizer_json(tokenizer, file)
        write_bytes(file.read_bytes())
