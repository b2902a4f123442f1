r"""Hugging Face's ``tokenizer.json``, both ways.

``tokenizers.Tokenizer.from_file`` loads what we write and gives the same ids; we load what it writes::

    {
      "version": "1.0", "truncation": null, "padding": null, "post_processor": null,
      "added_tokens": [{"id": 0, "content": "</s>", "special": true, ...}],
      "normalizer": {"type": "NFC"},                        text to text
      "pre_tokenizer": {"type": "ByteLevel", ...},          where the text is cut
      "decoder": {"type": "ByteLevel", ...},
      "model": {"type": "BPE", "vocab": {"</s>": 0, ...}, "merges": [["a", "b"], ...], ...}
    }

* The ids are those of ``add_special_tokens=False``: truncation, padding and the post-processor, which puts special
  tokens around a text, are not read.
* ``tokenizers`` looks for added tokens in every text; ours does so when asked, with ``encode(text, special=True)``.
* The file does not say which token ends a document. It is the first of ``tokens.bpe.ENDS`` among the special tokens,
  and where there is none ``</s>`` is added after the last id.
* Merges come without the counts that a training records.
* ``kind="characters"`` is a Split before each character that ``str.isspace`` calls white space, spelt out because
  regular expression engines disagree about four of them.

Byte-level BPE by the patterns of GPT-2, GPT-4, GPT-4o and Qwen 2 becomes a ``BPETokenizer``, BPE with byte fallback and
Unigram over ▁ a ``SentencePieceTokenizer`` (``piece_json.py``): compiled code. Any other combination of the steps that
we know becomes a ``StepTokenizer``, with a cache of pieces. A step that we do not know is refused by its name.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from foreword.errors import InputError, SettingError
from foreword.protocols import Json
from foreword.storage.atomic import atomic_file
from foreword.text.strict_json import parse_json_object, shown
from foreword.text.unicode import Form
from foreword.tokens.bpe import ENDS, BPETokenizer, Pattern
from foreword.tokens.json_facts import (
    Added,
    described,
    expect,
    names_of,
    of_type,
    read_added,
    read_merges,
    read_scores,
    read_vocab,
)
from foreword.tokens.merges import Kind
from foreword.tokens.piece_json import piece_tokenizer, white_space_of
from foreword.tokens.pieces import CL100K_REGEX, GPT2_REGEX, O200K_REGEX, QWEN2_REGEX
from foreword.tokens.sentencepiece import SentencePieceTokenizer
from foreword.tokens.sentencepiece_file import parse_file
from foreword.tokens.steps.tokenizer import StepTokenizer
from foreword.tokens.vocab import END, UNKNOWN

_WHITE = r"\t-\r\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
CHARACTERS_REGEX = f"[{_WHITE}][^{_WHITE}]*|[^{_WHITE}]+"

REGEXES: dict[Pattern, str] = {
    "gpt2": GPT2_REGEX, "cl100k": CL100K_REGEX, "o200k": O200K_REGEX, "qwen2": QWEN2_REGEX
}  # fmt: skip
_PATTERN_OF = {regex: pattern for pattern, regex in REGEXES.items()}
_FORMS = ("NFC", "NFD", "NFKC", "NFKD")


class PieceRule(NamedTuple):
    """A ``pre_tokenizer`` as settings of ``BPETokenizer``."""

    kind: Kind
    pattern: Pattern = "gpt2"
    prefix_space: bool = False


# Reading


def looks_like_tokenizer_json(path: Path) -> bool:
    """Return whether a file is a JSON object with a "model", by a search, without parsing it."""
    if path.stat().st_size == 0:  # which cannot be mapped
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text[:1024].lstrip().startswith(b"{") and text.find(b'"model"') >= 0


def read_tokenizer_json(path: str | Path) -> Any:
    """Read the tokenizer of a file; an InputError unless ours gives the same ids."""
    return parse_file(path, tokenizer_of, "a tokenizer")


def tokenizer_of(text: bytes) -> BPETokenizer | SentencePieceTokenizer | StepTokenizer:
    """Return the tokenizer of a file's text: one with kernels if these do the same, else one that takes every step."""
    facts = parse_json_object(text)
    try:
        return _compiled_tokenizer_of(facts)
    except InputError:  # StepTokenizer reads the same things, and says what is wrong with them
        return StepTokenizer(text)


def _compiled_tokenizer_of(facts: dict[str, Json]) -> BPETokenizer | SentencePieceTokenizer:
    model = of_type(facts.get("model"), dict, "the model")
    if model.get("type") == "Unigram" or model.get("byte_fallback") is True:
        return _piece_tokenizer_of(facts, model)
    _check_model(model)
    cut = _read_cut(facts.get("pre_tokenizer"))
    _check_kind(cut.kind, model, facts.get("decoder"))
    form, lowercase = _read_normalizer(facts.get("normalizer"))
    added = _plain_added(facts)
    vocab = read_vocab(model.get("vocab"))
    names = names_of(vocab, added)
    special = [token.content for token in added if token.special]
    if END not in names and not any(name in ENDS for name in special):
        names.append(END)
    tokenizer = BPETokenizer(
        len(names),
        kind=cut.kind,
        pattern=cut.pattern,
        special_tokens=special,
        added_tokens=[token.content for token in added if not token.special],
        lowercase=lowercase,
        form=form,
        prefix_space=cut.prefix_space,
        ignore_merges=of_type(model.get("ignore_merges", False), bool, "ignore_merges"),
    )
    return tokenizer.with_merges(names, read_merges(model.get("merges"), vocab))


def _piece_tokenizer_of(facts: dict[str, Json], model: dict[str, Json]) -> SentencePieceTokenizer:
    """Make a tokenizer over pieces with ▁: Unigram, or BPE with byte fallback."""
    added = _plain_added(facts)
    how = white_space_of(facts.get("normalizer"), facts.get("pre_tokenizer"))
    special = [token.content for token in added if token.special]
    others = [token.content for token in added if not token.special]
    byte_fallback = of_type(model.get("byte_fallback", False), bool, "byte_fallback")
    if model.get("type") == "Unigram":
        vocab, scores = read_scores(model.get("vocab"))
        names = names_of(vocab, added)
        expect(len(names) == len(scores), "the number of tokens", len(names), f"{len(scores)}, all in the vocab")
        unknown = of_type(model.get("unk_id"), int, "unk_id")
        expect(0 <= unknown < len(names), "unk_id", unknown, "an id of the vocab")
        return piece_tokenizer(
            names, "unigram", how, unknown=names[unknown], special=special, added=others, scores=scores,
            byte_fallback=byte_fallback,
        )  # fmt: skip
    _check_model({**model, "byte_fallback": False})
    expect(model.get("ignore_merges", False) is False, "ignore_merges", model.get("ignore_merges"), "false")
    vocab = read_vocab(model.get("vocab"))
    return piece_tokenizer(
        names_of(vocab, added), "bpe", how, unknown=of_type(model.get("unk_token"), str, "unk_token"),
        special=special, added=others, merges=read_merges(model.get("merges"), vocab)[:, :3].astype(np.int32),
        byte_fallback=True,
    )  # fmt: skip


def _check_model(model: Mapping[str, Json]) -> None:
    """Check the model. Early files, such as GPT-2's, do not name its type; then it is inferred from its parts."""
    kind = model.get("type", "BPE" if "merges" in model else "missing")
    expect(kind == "BPE", "the model's type", kind, "BPE or Unigram")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        expect(model.get(name) in (None, ""), name, model.get(name), "none")
    expect(model.get("dropout") in (None, 0), "dropout", model.get("dropout"), "none")
    expect(model.get("byte_fallback", False) is False, "byte_fallback", model.get("byte_fallback"), "false")


def _check_kind(kind: Kind, model: Mapping[str, Json], decoder: Json) -> None:
    """Check what depends on the kind. Bytes may name any unk_token, for no byte is unknown."""
    expected = {"bytes": "ByteLevel", "characters": "Fuse"}[kind]
    found = None if decoder is None else of_type(decoder, dict, "the decoder").get("type")
    expect(found in (None, expected), "the decoder", found, f"{expected} or none")
    if kind == "characters":
        expect(model.get("unk_token") == UNKNOWN, "unk_token", model.get("unk_token"), UNKNOWN)
        expect(model.get("fuse_unk", False) is False, "fuse_unk", model.get("fuse_unk"), "false")


def _read_cut(found: Json) -> PieceRule:
    match found:
        case {"type": "ByteLevel", "add_prefix_space": bool(prefix_space), **rest}:
            with_regex = of_type(rest.get("use_regex", True), bool, "use_regex")
            return PieceRule("bytes", "gpt2" if with_regex else "none", prefix_space)
        case {"type": "Split"} if _regex(found) == CHARACTERS_REGEX:
            return PieceRule("characters")
        case {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split"} as split,
                # With a prefix every piece would get one, not the text.
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
            ],
        } if (pattern := _PATTERN_OF.get(_regex(split))) is not None:
            return PieceRule("bytes", pattern)
    expected = f"ByteLevel, alone or after a Split by the regular expression of {', '.join(REGEXES)}"
    raise InputError(f"the pre_tokenizer is {described(found)}, expected {expected}")


def _regex(split: Json) -> str:
    """Return the regular expression whose matches are the pieces of a Split; "" if it does anything else.

    Our expressions match all of any text, so it is the same whether what lies between is kept or removed.
    """
    match split:
        case {"pattern": {"Regex": str(regex)}, "behavior": "Isolated", "invert": False}:
            return regex
        case {"pattern": {"Regex": str(regex)}, "behavior": "Removed", "invert": True}:
            return regex
    return ""


def _read_normalizer(found: Json) -> tuple[Form | None, bool]:
    match found:
        case None:
            steps: list[Json] = []
        case {"type": "Sequence", "normalizers": [*several]}:
            steps = several
        case _:
            steps = [found]
    types = [of_type(step, dict, "a normalizer").get("type") for step in steps]
    lowercase = types[-1:] == ["Lowercase"]
    forms = types[:-1] if lowercase else types
    expect(
        not forms or (len(forms) == 1 and forms[0] in _FORMS),
        "the normalizer",
        types,
        f"one of {', '.join(_FORMS)}, Lowercase, or the two in this order",
    )
    return cast(Form, forms[0]) if forms else None, lowercase


def _plain_added(facts: Mapping[str, Json]) -> list[Added]:
    """Return the added tokens; an InputError unless they are searched in the raw text, wherever they stand."""
    added = read_added(facts.get("added_tokens"))
    for token in added:
        if token.single_word or token.lstrip or token.rstrip or (token.normalized and facts.get("normalizer")):
            raise InputError(f"the added token is {shown(token)}, expected one that is searched in the raw text")
    return added


# Writing


def write_tokenizer_json(tokenizer: BPETokenizer | StepTokenizer, path: str | Path) -> None:
    """Write a file that ``tokenizers`` loads and ``read_tokenizer_json`` reads."""
    if isinstance(tokenizer, StepTokenizer):
        text = tokenizer.json
    else:
        text = json.dumps(_facts_of(tokenizer), ensure_ascii=False, indent=2).encode()
    with atomic_file(path) as new:
        new.write_bytes(text)


def _facts_of(tokenizer: BPETokenizer) -> dict[str, Json]:
    characters = tokenizer.kind == "characters"
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_facts(tokenizer, token) for token in _in_order(tokenizer)],
        "normalizer": _normalizer_facts(tokenizer),
        "pre_tokenizer": _cut_facts(tokenizer),
        "post_processor": None,
        "decoder": {"type": "Fuse"} if characters else _byte_level(),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": UNKNOWN if characters else None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": tokenizer.ignore_merges,
            "vocab": {token: id for id, token in enumerate(tokenizer.vocab)},
            "merges": [list(pair) for pair in tokenizer.merge_names()],
        },
    }


def _in_order(tokenizer: BPETokenizer) -> list[str]:
    """Return the tokens that stand for themselves, sorted by id, as ``tokenizers`` expects."""
    return sorted(tokenizer.standing, key=tokenizer.vocab.id)


def _added_facts(tokenizer: BPETokenizer, token: str) -> Json:
    return {
        "id": tokenizer.vocab.id(token),
        "content": token,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": token not in tokenizer.added_tokens,
    }


def _normalizer_facts(tokenizer: BPETokenizer) -> Json:
    cleaning = tokenizer.cleaning
    types = [cleaning.form] * (cleaning.form is not None) + ["Lowercase"] * cleaning.lowercase
    steps: list[Json] = [{"type": type} for type in types]
    if len(steps) > 1:
        return {"type": "Sequence", "normalizers": steps}
    return steps[0] if steps else None


def _cut_facts(tokenizer: BPETokenizer) -> Json:
    prefix_space, regex = tokenizer.prefix_space, REGEXES.get(tokenizer.pattern, "")
    if tokenizer.kind == "characters":
        _refuse_prefix_space(prefix_space, "kind='characters'")
        return _split(CHARACTERS_REGEX)
    if tokenizer.pattern in ("gpt2", "none"):
        return _byte_level(use_regex=tokenizer.pattern == "gpt2", prefix_space=prefix_space)
    _refuse_prefix_space(prefix_space, f"pattern={tokenizer.pattern!r}")
    return {"type": "Sequence", "pretokenizers": [_split(regex), _byte_level(use_regex=False)]}


def _refuse_prefix_space(prefix_space: bool, setting: str) -> None:
    if prefix_space:
        raise SettingError(f"prefix_space with {setting} cannot be written as tokenizer.json, which puts it elsewhere")


def _split(regex: str) -> Json:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def _byte_level(*, use_regex: bool = True, prefix_space: bool = False) -> Json:
    return {"type": "ByteLevel", "add_prefix_space": prefix_space, "trim_offsets": True, "use_regex": use_regex}
