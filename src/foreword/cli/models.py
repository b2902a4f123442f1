"""Load models and tokenizers, check what will be written, save tokenizers."""

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
    from foreword.pipeline.fitting import Output
    from foreword.protocols import TextTokenizer

STDIO = "-"


def load_able(path: str, ability: str) -> Any:
    """Load a model that must have an ability, as the registry names them."""
    return checked(load_any(path), path, ability)


def checked(found: Any, path: str, ability: str) -> Any:
    """Return what was found at ``path``; an InputError where it does not have the ability."""
    kind = kinds.of(found)
    if ability not in kind.abilities:
        expected, command = kinds.made_for(ability)
        raise InputError(f"{path}: its kind is {kind.name}, not {expected}: {command} makes one")
    return found


def load_tokenizer(path: str) -> TextTokenizer:
    """Load a tokenizer from its folder, from a tokenizer.json or .model file, or from a model."""
    found = load_any(path)
    holds_one = {"score", "index", "transcribe"} & set(kinds.of(found).abilities)
    tokenizer: TextTokenizer = found.tokenizer if holds_one else found
    if kinds.of(tokenizer).task != "tokenizer":
        raise InputError(
            f"{path}: its kind is {kinds.of(found).name}, not a tokenizer: foreword tokenize train makes one"
        )
    return tokenizer


def save_tokenizer(tokenizer: TextTokenizer, out: str) -> None:
    """Save a tokenizer: as tokenizer.json if its name ends in .json or is standard output, as .model, or a folder."""
    from foreword.storage.folder import save

    if is_tokenizer_json(out):
        _write_json(tokenizer, out)
    elif is_tokenizer_file(out):
        _write_model(tokenizer, out)
    else:
        save(tokenizer, out)  # type: ignore[arg-type]


def is_tokenizer_json(out: str) -> bool:
    """Return whether a tokenizer is written to this path as a tokenizer.json."""
    return out == STDIO or out.lower().endswith(".json")


def is_tokenizer_file(out: str) -> bool:
    """Return whether a tokenizer is written to this path as one file: a tokenizer.json or a .model."""
    return is_tokenizer_json(out) or out.lower().endswith(".model")


def check_output(
    out: str, *, folder: bool, kind: str | None = None, overwrite: bool = True, hint: str = "'-o'"
) -> None:
    """Refuse an output that cannot be written, before the work begins.

    kind: of the model that will be saved, as the registry names it. A model of another kind is only replaced with
    ``overwrite``. hint: the option or argument that names the output.
    """
    from foreword.storage.atomic import check_replaceable, nearest_existing

    if folder and out == STDIO:
        raise typer.BadParameter("a model is a folder and cannot go to standard output", param_hint=hint)
    if out == STDIO:
        return
    if folder:
        check_replaceable(out)
        if not overwrite and (there := kind_at(out)) not in (None, kind):
            raise typer.BadParameter(
                f"{out} holds another kind of model, {there}, not {kind}: --overwrite replaces it", param_hint=hint
            )
    elif Path(out).exists() and not Path(out).is_file():
        raise InputError(f"cannot write {out}: it is not a plain file")
    standing = nearest_existing(out)
    if not (standing.is_dir() and os.access(standing, os.W_OK)):
        raise InputError(f"cannot write {out}: no permission to write in {standing}")


def nothing_to_resume(target: Output, kind: kinds.Kind) -> bool:
    """Return whether a network is to be resumed whose training has ended, and say so."""
    from foreword.cli.printing import print_message

    if done := target.is_done(kind):
        target.clear_abandoned()
        print_message(f"{target.folder} exists and {target.checkpoint} does not: nothing to resume")
    return done


def kind_at(folder: str) -> str | None:
    """Return the kind of the model in a folder, of one that reads text that of the model inside; None without one."""
    from foreword.storage.atomic import MODEL_JSON
    from foreword.text.strict_json import parse_json_object

    try:
        found: Any = parse_json_object(Path(folder, MODEL_JSON).read_bytes())
        while isinstance(inner := found["settings"].get("model"), dict):
            found = inner
        return str(found["kind"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # loading would say what is wrong with it
        return None


def load_any(path: str) -> Any:
    """Load whatever is there, recognised by its content."""
    from foreword.storage.folder import load
    from foreword.storage.sigbus import report_cut_files

    with _as_file(path) as file:
        found = load(fetched(file))
    report_cut_files()
    return found


def fetched(path: str) -> str:
    """Return the path of a model on this machine: an address is copied to the cache, with a bar."""
    from foreword.cli.progress import progress
    from foreword.text.remote import is_address, local_copy

    if not is_address(path):
        return path
    with progress() as meter:
        return str(local_copy(path, meter=meter))


@contextmanager
def _as_file(path: str) -> Iterator[str]:
    """Copy standard input to a file: loading reads a file more than once."""
    if path != STDIO:
        yield path
        return
    with TemporaryDirectory(prefix="foreword-") as folder:
        file = Path(folder, "standard input")
        file.write_bytes(sys.stdin.buffer.read())
        yield str(file)


def _write_model(tokenizer: TextTokenizer, out: str) -> None:
    from foreword.tokens.sentencepiece import SentencePieceTokenizer

    if not isinstance(tokenizer, SentencePieceTokenizer):
        raise InputError(
            f"cannot write {out}: a .model holds sentencepiece tokenizers, and this one is {kinds.of(tokenizer).name}"
        )
    tokenizer.write(out)


def _write_json(tokenizer: TextTokenizer, out: str) -> None:
    from foreword.cli.printing import write_bytes
    from foreword.storage.folder import kind_of
    from foreword.tokens.bpe import BPETokenizer
    from foreword.tokens.steps.tokenizer import StepTokenizer
    from foreword.tokens.tokenizer_json import write_tokenizer_json

    if not isinstance(tokenizer, BPETokenizer | StepTokenizer):
        raise InputError(
            f"cannot write {out}: tokenizer.json is written for BPE and WordPiece tokenizers, and this one is "
            f"{kind_of(tokenizer)}"
        )
    if out != STDIO:
        write_tokenizer_json(tokenizer, out)
        return
    with TemporaryDirectory(prefix="foreword-") as folder:
        file = Path(folder, "tokenizer.json")
        write_tokenizer_json(tokenizer, file)
        write_bytes(file.read_bytes())
