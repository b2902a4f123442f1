"""``SentencePieceTrainer``: sentencepiece's call to train a model, over Foreword's unigram training.

The settings that Foreword has mean the same. One that it does not have is accepted at the default of sentencepiece, and
refused by its name at any other value.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from foreword.compat.sentencepiece.questions import ModelNotFoundError
from foreword.errors import SettingError
from foreword.native.parallel import cores
from foreword.text.block import blocks_of
from foreword.tokens.sentencepiece import SentencePieceTokenizer
from foreword.tokens.sentencepiece_file import CONTROL, UNKNOWN_PIECE, PieceModel, SpecialNames, model_bytes

DEFAULTS: dict[str, Any] = {
    "input": (), "sentence_iterator": None, "model_prefix": "", "model_writer": None, "vocab_size": 8000,
    "model_type": "unigram", "character_coverage": 0.9995, "byte_fallback": False, "user_defined_symbols": (),
    "control_symbols": (), "normalization_rule_name": "nmt_nfkc", "hard_vocab_limit": True, "num_threads": 16,
    "max_sentence_length": 4192, "unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1, "unk_piece": "<unk>",
    "bos_piece": "<s>", "eos_piece": "</s>", "pad_piece": "<pad>", "unk_surface": " ⁇ ",
}  # fmt: skip
"""The settings that have a meaning here, with sentencepiece's defaults."""

FIXED: dict[str, Any] = {
    "input_format": "", "input_sentence_size": 0, "shuffle_input_sentence": True, "seed_sentencepiece_size": 1_000_000,
    "shrinking_factor": 0.75, "num_sub_iterations": 2, "max_sentencepiece_length": 16, "split_by_unicode_script": True,
    "split_by_whitespace": True, "split_by_number": True, "split_digits": False, "treat_whitespace_as_suffix": False,
    "allow_whitespace_only_pieces": False, "add_dummy_prefix": True, "remove_extra_whitespaces": True,
    "escape_whitespaces": True, "required_chars": "", "vocabulary_output_piece_score": True, "use_all_vocab": False,
    "self_test_sample_size": 0, "train_extremely_large_corpus": False, "enable_differential_privacy": False,
    "pretokenization_delimiter": "", "seed_sentencepieces_file": "", "normalization_rule_tsv": "",
    "denormalization_rule_tsv": "", "accept_language": (),
}  # fmt: skip
"""Settings that are accepted at this value only."""

WITHOUT_EFFECT = ("minloglevel", "random_seed")
RULES = ("nmt_nfkc", "identity")
ROLES = ("unk", "bos", "eos", "pad")
LISTS = ("input", "user_defined_symbols", "control_symbols", "accept_language")


class TrainingSettingError(SettingError, RuntimeError):
    """A setting of training that is not offered; sentencepiece raises a RuntimeError."""


class SentencePieceTrainer:
    """Trains unigram models."""

    @staticmethod
    def train(arg: str | None = None, logstream: Any = None, **kwargs: Any) -> None:
        """Train a model and write ``model_prefix``.model and .vocab, or write it to ``model_writer``.

        arg: options as on sentencepiece's command line, "--input=a.txt --vocab_size=8000". kwargs: the same by name;
        ``sentence_iterator`` is an iterator of sentences instead of input.
        """
        given = {**_parsed(arg or ""), **kwargs}
        settings = _settings(given)
        if not settings["model_prefix"] and settings["model_writer"] is None:
            raise TrainingSettingError("expected model_prefix or model_writer")
        model = _trained(settings)
        if settings["model_writer"] is not None:
            settings["model_writer"].write(model_bytes(model))
            return
        Path(f"{settings['model_prefix']}.model").write_bytes(model_bytes(model))
        rows = zip(model.pieces, model.scores.tolist(), strict=True)
        Path(f"{settings['model_prefix']}.vocab").write_text(
            "".join(f"{piece}\t{score:.6g}\n" for piece, score in rows), encoding="utf-8"
        )

    Train = train


def _parsed(arguments: str) -> dict[str, Any]:
    """Return the options of a command line, as text; one without a value is true."""
    found: dict[str, Any] = {}
    for word in shlex.split(arguments):
        name, _, value = word.removeprefix("--").partition("=")
        found[name] = value or "true"
    return found


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """Return all settings, with the defaults; refuse by name those that are unknown or not offered."""
    settings = dict(DEFAULTS)
    for name, value in given.items():
        if name in WITHOUT_EFFECT:
            continue
        if name not in DEFAULTS and name not in FIXED:
            raise TrainingSettingError(f'unknown field name "{name}" in TrainerSpec')
        value = _like(name, value, {**DEFAULTS, **FIXED}[name])
        if name in FIXED and value != FIXED[name]:
            raise TrainingSettingError(f"{name}={value!r} is not offered: expected {FIXED[name]!r}")
        settings[name] = value
    if settings["model_type"] != "unigram":
        raise TrainingSettingError(f"model_type={settings['model_type']!r} is not offered: expected 'unigram'")
    if settings["normalization_rule_name"] not in RULES:
        name = settings["normalization_rule_name"]
        raise TrainingSettingError(f"normalization_rule_name={name!r} is not offered: expected {' or '.join(RULES)}")
    if bool(settings["input"]) == (settings["sentence_iterator"] is not None):
        raise TrainingSettingError("expected either input or sentence_iterator")
    return settings


def _like(name: str, value: Any, default: Any) -> Any:
    """Return a value with the type of the default: a list may be given as text with commas, a number as text."""
    if name in LISTS:
        return tuple(value.split(",") if isinstance(value, str) else map(str, value)) if value else ()
    if default is None or not isinstance(value, str):
        return value
    if isinstance(default, bool):
        return value.lower() in ("true", "1", "t", "yes", "y")
    return type(default)(value)


def _trained(settings: dict[str, Any]) -> PieceModel:
    roles = _roles(settings)
    names = {role: settings[f"{role}_piece"] for role in ROLES}
    taken = set(names.values())
    control = [symbol for symbol in settings["control_symbols"] if symbol not in taken]
    symbols = [symbol for symbol in settings["user_defined_symbols"] if symbol not in taken]
    size = settings["vocab_size"] + 3 - len(roles)  # the tokenizer learns with <unk>, <s> and </s>
    tokenizer = SentencePieceTokenizer(
        size, normalisation=settings["normalization_rule_name"], coverage=settings["character_coverage"],
        byte_fallback=settings["byte_fallback"], special_tokens=control, user_symbols=symbols,
    )  # fmt: skip
    tokenizer.fit_blocks(blocks_of(_sentences(settings)), threads=min(settings["num_threads"], cores()))
    learnt = tokenizer.model_
    if settings["hard_vocab_limit"] and len(learnt.pieces) < size:
        raise TrainingSettingError(
            f"Vocabulary size too high ({settings['vocab_size']}): the text has pieces for "
            f"{settings['vocab_size'] - size + len(learnt.pieces)}"
        )
    order = list(range(3, len(learnt.pieces)))
    pieces, scores = [learnt.pieces[id] for id in order], learnt.scores[3:].tolist()
    types = learnt.types[3:].tolist()
    for id, role in sorted((id, role) for role, id in roles.items()):
        pieces.insert(id, names[role])
        scores.insert(id, 0.0)
        types.insert(id, UNKNOWN_PIECE if role == "unk" else CONTROL)
    return replace(
        learnt, pieces=tuple(pieces), scores=np.array(scores, np.float32), types=np.array(types, np.uint8),
        names=SpecialNames(names["unk"], names["bos"], names["eos"], names["pad"], settings["unk_surface"]),
    )  # fmt: skip


def _roles(settings: dict[str, Any]) -> dict[str, int]:
    """Return the ids of the special pieces that the model has."""
    roles = {role: settings[f"{role}_id"] for role in ROLES if settings[f"{role}_id"] >= 0}
    if "unk" not in roles:
        raise TrainingSettingError("unk_id is negative, expected an id: <unk> must be defined")
    if len(set(roles.values())) < len(roles) or max(roles.values()) >= settings["vocab_size"]:
        raise TrainingSettingError(
            f"the ids of the special pieces are {roles}, expected different ones in the vocabulary"
        )
    return roles


def _sentences(settings: dict[str, Any]) -> Iterator[str | bytes]:
    """Yield the sentences that are short enough, without their line feeds."""
    for sentence in _all_sentences(settings):
        data = sentence if isinstance(sentence, bytes) else sentence.encode()
        if len(data) <= settings["max_sentence_length"]:
            yield data.rstrip(b"\r\n")


def _all_sentences(settings: dict[str, Any]) -> Iterable[str | bytes]:
    if settings["sentence_iterator"] is not None:
        yield from settings["sentence_iterator"]
    for name in settings["input"]:
        if not Path(name).exists():
            raise ModelNotFoundError(f'NOT_FOUND: "{name}": No such file or directory')
        with Path(name).open("rb") as file:
            yield from file
