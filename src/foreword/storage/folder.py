"""A saved model is a folder: ``model.json``, ``arrays.safetensors`` and ``vocab.txt``, and no code.

``model.json`` describes the model and the other files::

    {
      "files": {"arrays.safetensors": {"bytes": 1024, "sha256": "..."}, "vocab.txt": {...}},
      "foreword": "0.1.0",                                  which Foreword wrote it
      "format": "foreword",
      "kind": "unigram",                                    a name in KINDS
      "settings": {...},                                    what the model's to_parts gave, keys sorted
      "sha256": "...",                                      of all the rest
      "version": 1,                                         of this format
      "vocab": {"end": 1, "tokens": 50000, "unknown": 0}    or null
    }

The same model gives the same bytes. Everything is checked before it is used: names, sizes and checksums here, dtypes
and shapes in ``safetensors.py``, tokens in ``vocab_txt.py``, and their meaning in the model's own ``from_parts``. Files
over 64 MB are mapped without being read, and checksummed in the background or, on request, before.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import foreword
from foreword import kinds
from foreword.arrays import Array
from foreword.errors import ForewordError, InputError, SettingError
from foreword.kinds import FOREIGN, KINDS, resolve
from foreword.kinds import VOCAB as VOCAB_CLASS
from foreword.protocols import Json, Meter, Parts, Saveable
from foreword.storage.atomic import MODEL_JSON, atomic_folder, is_model_json, left_aside
from foreword.storage.checking import CHECKS, sha256_of
from foreword.storage.safetensors import read_arrays, write_arrays
from foreword.storage.vocab_txt import open_vocab, write_vocab
from foreword.text.remote import is_address, local_copy
from foreword.text.strict_json import parse_json_object, shown

if TYPE_CHECKING:
    from foreword.tokens.vocab import Vocab

FORMAT = "foreword"
FORMAT_VERSION = 1


ARRAYS = "arrays.safetensors"
VOCAB = "vocab.txt"
VOCAB_COUNTS = "vocab.counts"
"""The reserved name of the vocabulary's counts among the arrays."""

MODEL_JSON_LIMIT = 16 << 20
"""Bytes of ``model.json``. A kilobyte is usual; a classifier of a hundred thousand labels lists them there."""

CHECKSUM_LIMIT = 64 << 20
"""Files up to this size are checksummed before they are used, which takes a fraction of a second; larger ones in the
background, or before on request."""

T = TypeVar("T")


def save(model: Saveable, folder: str | Path) -> None:
    """Save a model in a folder; an existing model is replaced atomically."""
    packed = pack(model)
    with atomic_folder(folder) as new:
        _write(packed, new)


def load(path: str | Path, *, verify: bool = False, meter: Meter | None = None) -> Any:
    """Open a saved model, or a file of another tool, recognised by its content.

    An address (``hf://owner/name/file``, ``https://``, ``s3://`` and so on) is copied to the user's cache once;
    ``meter`` shows how far that is. ``verify`` reads and checksums every file first; otherwise those over 64 MB are
    checksummed in the background, and a damaged one is reported as a ``RuntimeWarning``.
    """
    path = local_copy(str(path), verify=verify, meter=meter) if is_address(path) else Path(path)
    try:
        if path.is_dir():
            return _load_folder(path, everything=verify)
        if path.is_file():
            return _load_file(path, verify=verify)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    aside = left_aside(path)
    hint = f"; a save that was cut short left the old one in {aside}" if aside else ""
    raise InputError(f"{path}: no such file or folder{hint}")


def verify(folder: str | Path) -> list[str]:
    """Check every file of a saved model and return what is wrong, one line each; an empty list if nothing is."""
    folder = Path(folder)
    try:
        manifest = _read_manifest(folder)
        problems = list(_damages(folder, manifest, everything=True))
        if not problems:
            _build(folder, manifest, thorough=True)
    except ForewordError as error:
        return [str(error)]
    except OSError as error:
        return [f"{folder}: cannot be read: {error.strerror}"]
    return problems


def check_files(folder: str | Path) -> None:
    """Checksum every file of a saved model; an InputError for the first that is damaged."""
    folder = Path(folder)
    for damage in _damages(folder, _read_manifest(folder), everything=True):
        raise InputError(damage)


def kind_of(model: object) -> str:
    """Return the name of the model's kind, as ``model.json`` has it."""
    return kinds.of(model).name


def pack(model: Saveable) -> Parts:
    """Return the model's parts, with its kind next to its settings, so that ``unpack`` needs nothing else."""
    kind, parts = kind_of(model), model.to_parts()
    return Parts({"kind": kind, "settings": parts.settings}, parts.arrays, parts.vocab)


def unpack(packed: Parts) -> Any:
    """Build the model that ``pack`` packed; a ValueError, KeyError or TypeError for invalid parts."""
    kind = _field(packed.settings, "kind", str)
    settings = _field(packed.settings, "settings", dict)
    return _class_of(kind).from_parts(Parts(settings, packed.arrays, packed.vocab))


def nest(prefix: str, model: Saveable, into: Parts) -> None:
    """Put a model inside another's parts: its kind and settings under ``prefix``, its arrays under ``prefix.name``.

    All models in one folder share one vocabulary.
    """
    inner = pack(model)
    if "." in prefix or prefix in into.settings:
        raise ValueError(f"{prefix!r} cannot name a nested model: it holds a dot or is taken")
    into.settings[prefix] = inner.settings
    into.arrays.update({f"{prefix}.{name}": array for name, array in inner.arrays.items()})
    if into.vocab is None:
        into.vocab = inner.vocab
    elif inner.vocab is not None and inner.vocab != into.vocab:
        raise ValueError(f"the {prefix} has a vocabulary of its own, but a folder holds only one")


def unnest(prefix: str, parts: Parts) -> Any:
    """Build back what ``nest`` put there."""
    settings = _field(parts.settings, prefix, dict)
    start = f"{prefix}."
    arrays = {name.removeprefix(start): array for name, array in parts.arrays.items() if name.startswith(start)}
    return unpack(Parts(settings, arrays, parts.vocab))


# Writing


def _write(packed: Parts, folder: Path) -> None:
    arrays = _with_counts(packed.arrays, packed.vocab)
    files: dict[str, Json] = {}
    if arrays:
        digest = hashlib.sha256()
        write_arrays(folder / ARRAYS, arrays, digest=digest)
        files[ARRAYS] = _file_facts(folder / ARRAYS, digest.hexdigest())
    if packed.vocab is not None:
        write_vocab(folder / VOCAB, packed.vocab)
        files[VOCAB] = _file_facts(folder / VOCAB, sha256_of(folder / VOCAB))
    facts: dict[str, Json] = {
        "files": files,
        "foreword": foreword.__version__,
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "vocab": _vocab_facts(packed.vocab),
        **packed.settings,
    }
    (folder / MODEL_JSON).write_bytes(_render_manifest(facts))


def _with_counts(arrays: Mapping[str, Array], vocab: Vocab | None) -> dict[str, Array]:
    if VOCAB_COUNTS in arrays:
        raise ValueError(f"the array name {VOCAB_COUNTS!r} is reserved")
    if vocab is None or vocab.counts is None:
        return dict(arrays)
    return {**arrays, VOCAB_COUNTS: vocab.counts}


def _file_facts(path: Path, sha256: str) -> Json:
    return {"bytes": path.stat().st_size, "sha256": sha256}


def _vocab_facts(vocab: Vocab | None) -> Json:
    return None if vocab is None else {"tokens": len(vocab), "unknown": vocab.unknown, "end": vocab.end}


def _render_manifest(facts: dict[str, Json]) -> bytes:
    try:
        digest = hashlib.sha256(_render(facts).encode()).hexdigest()
        text = _render({**facts, "sha256": digest}).encode()
    except ValueError as error:  # NaN, infinity, or half a surrogate pair
        raise SettingError(f"the settings of the {facts['kind']} model cannot be saved: {error}") from error
    if len(text) > MODEL_JSON_LIMIT:
        raise SettingError(f"the settings of the {facts['kind']} model take more than {_megabytes(MODEL_JSON_LIMIT)}")
    return text


def _render(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2, sort_keys=True) + "\n"


# Reading


@dataclass(frozen=True, slots=True)
class _Manifest:
    """The content of ``model.json``, its form checked.

    packed: kind and settings, as ``unpack`` takes them.
    vocab: tokens, unknown and end; None if the model has no vocabulary.
    files: size and SHA-256 of each.
    """

    packed: dict[str, Json]
    vocab: tuple[int, int | None, int] | None
    files: dict[str, tuple[int, str]]


def _load_folder(folder: Path, *, everything: bool) -> Any:
    """Load a saved model; if another process replaces it meanwhile, load it again."""
    for _ in range(TRIES):
        before = folder.stat().st_ino
        try:
            model = _load_once(folder, everything=everything)
        except (InputError, OSError):
            if folder.stat().st_ino == before:
                raise
        else:
            if folder.stat().st_ino == before:
                return model
    raise InputError(f"{folder}: is being replaced again and again while it is read")


TRIES = 100


def _load_once(folder: Path, *, everything: bool) -> Any:
    manifest = _read_manifest(folder)
    for damage in _damages(folder, manifest, everything=everything):
        raise InputError(damage)
    model = _build(folder, manifest, thorough=everything)
    _check_in_background(folder, manifest)
    return model


def _load_file(path: Path, *, verify: bool) -> Any:
    if is_model_json(path):
        return load(path.parent, verify=verify)
    for recognises, opens in FOREIGN.values():
        if resolve(recognises)(path):
            return resolve(opens)(path)
    raise InputError(f"{path}: neither a saved model nor a file of a kind that Foreword reads")


def _read_manifest(folder: Path) -> _Manifest:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    problem = _file_problem(folder, MODEL_JSON)
    if problem:
        raise InputError(f"{folder}: not a saved model: {problem}")
    path = folder / MODEL_JSON
    size = path.stat().st_size
    if size > MODEL_JSON_LIMIT:
        raise InputError(f"{path}: {size} bytes, but no model.json has more than {_megabytes(MODEL_JSON_LIMIT)}")
    try:
        text = path.read_bytes()
        facts = parse_json_object(text)
        _check_version(facts, folder)
        return _parse_manifest(facts, _sha256_of_rest(text))
    except ValueError as error:
        raise InputError(f"{path}: not a valid model.json ({_one_line(error)})") from error


def _check_version(facts: Mapping[str, Json], folder: Path) -> None:
    """Raise an error for another format or a newer version, before reading anything that it may have changed."""
    if facts.get("format") != FORMAT:
        raise ValueError(f"its format is {shown(facts.get('format'))}, not {FORMAT!r}")
    version = _field(facts, "version", int)
    if version > FORMAT_VERSION:
        raise InputError(
            f"{folder}: was written by a newer Foreword (version {shown(version)}, this one reads {FORMAT_VERSION})"
        )
    if version < 1:
        raise ValueError(f"there is no version {shown(version)}")


def _sha256_of_rest(text: bytes) -> str:
    """Return the checksum of the bytes of ``model.json`` without the line of the checksum itself.

    That line is the one that is indented by two blanks, as only the names of the outermost object are.
    """
    start = text.find(b'\n  "sha256": ') + 1
    return hashlib.sha256(text[:start] + text[text.find(b"\n", start) + 1 :]).hexdigest()


def _parse_manifest(facts: dict[str, Json], sha256: str) -> _Manifest:
    if _field(facts, "sha256", str) != sha256:
        raise ValueError("it does not match its own checksum: the file is damaged, or was edited")
    kind = _field(facts, "kind", str)
    if kind not in KINDS:
        raise ValueError(f"{shown(kind)} is not a kind of model that this Foreword knows")
    packed: dict[str, Json] = {"kind": kind, "settings": _field(facts, "settings", dict)}
    files = {name: _parse_file(name, listed) for name, listed in _field(facts, "files", dict).items()}
    vocab = _parse_vocab(facts.get("vocab"))
    if (vocab is None) != (VOCAB not in files):
        raise ValueError(f"its vocab and its files disagree whether there is a {VOCAB}")
    return _Manifest(packed, vocab, files)


def _parse_file(name: str, listed: Json) -> tuple[int, str]:
    if name in ("", ".", "..", MODEL_JSON) or any(mark in name for mark in "/\\\0"):
        raise ValueError(f"{shown(name)} is not the name of a file in the folder")
    return _field(listed, "bytes", int), _field(listed, "sha256", str)


def _parse_vocab(vocab: Json) -> tuple[int, int | None, int] | None:
    if vocab is None:
        return None
    end = _field(vocab, "end", int)
    unknown = None if isinstance(vocab, dict) and vocab.get("unknown") is None else _field(vocab, "unknown", int)
    return _field(vocab, "tokens", int), unknown, end


def _field(facts: Json | Mapping[str, Json], name: str, kind: type[T]) -> T:
    """Return one value of an object; a ValueError unless it has that type. Booleans are not numbers."""
    if not isinstance(facts, Mapping) or type(facts.get(name)) is not kind:
        names = {int: "a whole number", str: "a string", dict: "an object"}
        raise ValueError(f"{shown(name)} should be {names[kind]}")
    return cast(T, facts[name])


def _damages(folder: Path, manifest: _Manifest, *, everything: bool) -> Iterator[str]:
    """Yield what is wrong with the listed files, one line each; files that are not listed are ignored."""
    for name, (size, sha256) in sorted(manifest.files.items()):
        path = folder / name
        problem = _file_problem(folder, name)
        if problem:
            yield f"{folder}: {problem}"
        elif path.stat().st_size != size:
            yield f"{folder}: {name} has {path.stat().st_size} bytes, not {shown(size)}: the file is damaged"
        elif everything or size <= CHECKSUM_LIMIT:
            if sha256_of(path) != sha256:
                yield _mismatch(folder, name)
            elif size > CHECKSUM_LIMIT:
                CHECKS.is_done(path)


def _mismatch(folder: Path, name: str) -> str:
    return f"{folder}: {name} does not match its checksum: the file is damaged"


def _check_in_background(folder: Path, manifest: _Manifest) -> None:
    """Checksum the large files while the model is in use."""

    def damage(name: str, sha256: str) -> str | None:
        if sha256 == manifest.files[name][1]:
            return None
        with suppress(ForewordError):  # the model may have been replaced after it was opened
            if _read_manifest(folder).files.get(name) != manifest.files[name]:
                return None
        return _mismatch(folder, name)

    for name, (size, _) in manifest.files.items():
        if size > CHECKSUM_LIMIT:
            CHECKS.begin(folder / name, partial(damage, name))


def _file_problem(folder: Path, name: str) -> str | None:
    """Return why a file is not a plain one in this folder, if so; links that lead elsewhere are not followed."""
    real = os.path.realpath(folder / name)
    if Path(real).parent != Path(os.path.realpath(folder)):
        return f"{name} is a link that leads out of the folder"
    if not os.path.lexists(real):
        return f"{name} is missing"
    return None if Path(real).is_file() else f"{name} is not a plain file"


def _build(folder: Path, manifest: _Manifest, *, thorough: bool) -> Any:
    """Build the model from files whose sizes and checksums are right."""
    arrays = read_arrays(folder / ARRAYS) if ARRAYS in manifest.files else {}
    counts = arrays.pop(VOCAB_COUNTS, None)
    vocab = None
    if manifest.vocab is not None:
        tokens, unknown, end = manifest.vocab
        read = open_vocab(folder / VOCAB, tokens=tokens, unknown=unknown, end=end, counts=counts, thorough=thorough)
        vocab = resolve(VOCAB_CLASS).from_reader(tokens, read, counts, unknown=unknown, end=end)
    try:
        return unpack(Parts(manifest.packed, arrays, vocab))
    except (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, SettingError) as error:
        kind = manifest.packed["kind"]
        raise InputError(f"{folder}: not a valid {kind} model ({_one_line(error)})") from error


def _class_of(kind: str) -> type[Saveable]:
    if kind not in KINDS:
        raise ValueError(f"{shown(kind)} is not a kind of model that this Foreword knows")
    return cast(type[Saveable], resolve(KINDS[kind].home))


def _one_line(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it has no {shown(error.args[0])}" if error.args else "something is missing"
    return " ".join(str(error).split()) or type(error).__name__


def _megabytes(size: int) -> str:
    return f"{size >> 20} MB"
