r"""Hugging Face's ``tokenizer.json``, both ways: byte-pair encoding as ``BPETokenizer`` knows it.

``tokenizers.Tokenizer.from_file`` loads what we write and gives the same ids; we load what it writes::

    {
      "version": "1.0", "truncation": null, "padding": null, "post_processor": null,
      "added_tokens": [{"id": 0, "content": "</s>", "special": true, ...}],
      "normalizer": {"type": "NFC"},                        a Unicode form, lower case, or the two in this order
      "pre_tokenizer": {"type": "ByteLevel", ...},          where the text is cut: GPT-2's pattern; or ByteLevel after
                                                            a Split by the pattern of GPT-4, Llama 3 or Qwen 2
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

Unigram models, and BPE with byte fallback, are in ``piece_json.py``.

Whatever our tokenizers would do differently is refused, in one line that says what was found and expected.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from foreword.arrays import Longs
from foreword.errors import ForewordError, InputError, SettingError
from foreword.protocols import Json
from foreword.storage.atomic import atomic_file
from foreword.storage.strict_json import parse_json_object, shown
from foreword.text.unicode import Form
from foreword.tokens.bpe import ENDS, BPETokenizer, Pattern
from foreword.tokens.merges import Kind
from foreword.tokens.piece_json import piece_tokenizer
from foreword.tokens.sentencepiece import SentencePieceTokenizer
from foreword.tokens.vocab import END, UNKNOWN

SIZE_LIMIT = 256 << 20
"""Ten times the largest in use (2025: Gemma 3, a vocabulary of 262,144)."""

_CASE = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2_REGEX = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K_REGEX = _CASE + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _REST
QWEN2_REGEX = _CASE + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _REST

_WHITE = r"\t-\r\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
CHARACTERS_REGEX = f"[{_WHITE}][^{_WHITE}]*|[^{_WHITE}]+"

REGEXES: dict[Pattern, str] = {"gpt2": GPT2_REGEX, "cl100k": CL100K_REGEX, "qwen2": QWEN2_REGEX}
_PATTERN_OF = {regex: pattern for pattern, regex in REGEXES.items()}
_FORMS = ("NFC", "NFD", "NFKC", "NFKD")

T = TypeVar("T")


class PieceRule(NamedTuple):
    """A ``pre_tokenizer`` as settings of ``BPETokenizer``."""

    kind: Kind
    pattern: Pattern = "gpt2"
    prefix_space: bool = False


class Added(NamedTuple):
    """One of the ``added_tokens``."""

    id: int
    content: str
    special: bool
    normalized: bool


# Reading


def looks_like_tokenizer_json(path: Path) -> bool:
    """Return whether a file is a JSON object with a "model", by a search, without parsing it."""
    if path.stat().st_size == 0:  # which cannot be mapped
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text[:1024].lstrip().startswith(b"{") and text.find(b'"model"') >= 0


def read_tokenizer_json(path: str | Path) -> Any:
    """Read a ``BPETokenizer`` or ``SentencePieceTokenizer``; an InputError unless ours gives the same ids."""
    try:
        size = Path(path).stat().st_size
        if size > SIZE_LIMIT:
            raise InputError(f"{size} bytes, expected a tokenizer.json of at most {SIZE_LIMIT >> 20} MB")
        return _tokenizer_of(parse_json_object(Path(path).read_bytes()))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ForewordError, ValueError) as error:
        raise InputError(f"{path}: not a tokenizer that Foreword reads: {' '.join(str(error).split())}") from error


def _tokenizer_of(facts: dict[str, Json]) -> BPETokenizer | SentencePieceTokenizer:
    model = _of_type(facts.get("model"), dict, "the model")
    if model.get("type") == "Unigram" or model.get("byte_fallback") is True:
        return _piece_tokenizer_of(facts, model)
    _check_model(model)
    cut = _read_cut(facts.get("pre_tokenizer"))
    _check_kind(cut.kind, model, facts.get("decoder"))
    form, lowercase = _read_normalizer(facts.get("normalizer"))
    added = [_read_added(token) for token in _of_type(facts.get("added_tokens", []), list, "added_tokens")]
    _check_normalized(added, facts.get("normalizer"))
    vocab = _read_vocab(model.get("vocab"))
    names = _names(vocab, added)
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
        ignore_merges=_of_type(model.get("ignore_merges", False), bool, "ignore_merges"),
    )
    return tokenizer.with_merges(names, _read_merges(model.get("merges"), vocab))


def _piece_tokenizer_of(facts: dict[str, Json], model: dict[str, Json]) -> SentencePieceTokenizer:
    """Make a tokenizer over pieces with ▁: Unigram, or BPE with byte fallback."""
    added = [_read_added(token) for token in _of_type(facts.get("added_tokens", []), list, "added_tokens")]
    special = [token.content for token in added if token.special]
    others = [token.content for token in added if not token.special]
    byte_fallback = _of_type(model.get("byte_fallback", False), bool, "byte_fallback")
    if model.get("type") == "Unigram":
        vocab, scores = _read_scores(model.get("vocab"))
        names = _names(vocab, added)
        _expect(len(names) == len(scores), "the number of tokens", len(names), f"{len(scores)}, all in the vocab")
        unknown = _of_type(model.get("unk_id"), int, "unk_id")
        _expect(0 <= unknown < len(names), "unk_id", unknown, "an id of the vocab")
        return piece_tokenizer(
            facts, names, "unigram", unknown=names[unknown], special=special, added=others, scores=scores,
            byte_fallback=byte_fallback,
        )  # fmt: skip
    _check_model({**model, "byte_fallback": False})
    _expect(model.get("ignore_merges", False) is False, "ignore_merges", model.get("ignore_merges"), "false")
    vocab = _read_vocab(model.get("vocab"))
    return piece_tokenizer(
        facts, _names(vocab, added), "bpe", unknown=_of_type(model.get("unk_token"), str, "unk_token"),
        special=special, added=others, merges=_read_merges(model.get("merges"), vocab)[:, :3].astype(np.int32),
        byte_fallback=True,
    )  # fmt: skip


def _read_scores(found: Json) -> tuple[dict[str, int], list[float]]:
    """Return the ids of a Unigram vocab, and the score of each."""
    ids: dict[str, int] = {}
    scores: list[float] = []
    for number, entry in enumerate(_of_type(found, list, "the model's vocab")):
        match entry:
            case [str(token), int() | float() as score] if not isinstance(score, bool):
                ids.setdefault(token, number)
                scores.append(float(score))
            case _:
                raise InputError(f"token {number} of the vocab is {shown(entry)}, expected a text and its score")
    return ids, scores


def _check_model(model: Mapping[str, Json]) -> None:
    """Check the model. Early files, such as GPT-2's, do not name its type; then it is inferred from its parts."""
    kind = model.get("type", "BPE" if "merges" in model else "missing")
    _expect(kind == "BPE", "the model's type", kind, "BPE or Unigram")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        _expect(model.get(name) in (None, ""), name, model.get(name), "none")
    _expect(model.get("dropout") in (None, 0), "dropout", model.get("dropout"), "none")
    _expect(model.get("byte_fallback", False) is False, "byte_fallback", model.get("byte_fallback"), "false")


def _check_kind(kind: Kind, model: Mapping[str, Json], decoder: Json) -> None:
    """Check what depends on the kind. Bytes may name any unk_token, for no byte is unknown."""
    expected = {"bytes": "ByteLevel", "characters": "Fuse"}[kind]
    found = None if decoder is None else _of_type(decoder, dict, "the decoder").get("type")
    _expect(found in (None, expected), "the decoder", found, f"{expected} or none")
    if kind == "characters":
        _expect(model.get("unk_token") == UNKNOWN, "unk_token", model.get("unk_token"), UNKNOWN)
        _expect(model.get("fuse_unk", False) is False, "fuse_unk", model.get("fuse_unk"), "false")


def _read_cut(found: Json) -> PieceRule:
    match found:
        case {"type": "ByteLevel", "add_prefix_space": bool(prefix_space), **rest}:
            with_regex = _of_type(rest.get("use_regex", True), bool, "use_regex")
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
    raise InputError(f"the pre_tokenizer is {_described(found)}, expected {expected}")


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


def _described(found: Json) -> str:
    """Describe a pre-tokenizer in a few words."""
    match found:
        case {"type": "Sequence", "pretokenizers": [*steps]}:
            return f"Sequence of {', '.join(_described_step(step) for step in steps[:4])}"
    return _described_step(found)


def _described_step(step: Json) -> str:
    match step:
        case {"type": "Split", "pattern": pattern}:
            return f"Split by {shown(pattern)}"
        case {"type": "ByteLevel", **rest}:
            return f"ByteLevel with {shown(rest)}"
        case {"type": name}:
            return shown(name)
    return shown(step)


def _read_normalizer(found: Json) -> tuple[Form | None, bool]:
    match found:
        case None:
            steps: list[Json] = []
        case {"type": "Sequence", "normalizers": [*several]}:
            steps = several
        case _:
            steps = [found]
    types = [_of_type(step, dict, "a normalizer").get("type") for step in steps]
    lowercase = types[-1:] == ["Lowercase"]
    forms = types[:-1] if lowercase else types
    _expect(
        not forms or (len(forms) == 1 and forms[0] in _FORMS),
        "the normalizer",
        types,
        f"one of {', '.join(_FORMS)}, Lowercase, or the two in this order",
    )
    return cast(Form, forms[0]) if forms else None, lowercase


def _read_added(found: Json) -> Added:
    token = _of_type(found, dict, "an added token")
    content = _of_type(token.get("content"), str, "an added token's content")
    _expect(content != "", "an added token", content, "some text")
    for flag in ("single_word", "lstrip", "rstrip"):
        found_flag = token.get(flag, False)
        _expect(found_flag is False, f"{flag} of the added token {shown(content)}", found_flag, "false")
    id = _of_type(token.get("id"), int, f"the id of {shown(content)}")
    special, normalized = (_of_type(token.get(flag, False), bool, flag) for flag in ("special", "normalized"))
    return Added(id, content, special, normalized)


def _check_normalized(added: Iterable[Added], normalizer: Json) -> None:
    """Check that added tokens are searched in the raw text; without a normalizer that makes no difference."""
    for token in added:
        _expect(
            normalizer is None or not token.normalized,
            f"normalized of the added token {shown(token.content)}",
            True,
            "false where there is a normalizer",
        )


def _read_vocab(found: Json) -> dict[str, int]:
    vocab = _of_type(found, dict, "the model's vocab")
    for token, id in vocab.items():
        if type(id) is not int:
            raise InputError(f"the id of {shown(token)} is {shown(id)}, expected a whole number")
    return vocab


def _names(vocab: dict[str, int], added: Iterable[Added]) -> list[str]:
    """Return all tokens in the order of their ids, which must be 0, 1, 2 and so on."""
    ids = dict(vocab)
    for token in added:
        held = ids.setdefault(token.content, token.id)
        _expect(held == token.id, f"the id of the added token {shown(token.content)}", token.id, f"{held}, as in vocab")
    order = sorted(ids, key=ids.__getitem__)
    for index, name in enumerate(order):
        if ids[name] != index:
            raise InputError(f"the id of {shown(name)} is {shown(ids[name])}, expected {index}: no gap, no id twice")
    return order


def _read_merges(found: Json, vocab: dict[str, int]) -> Longs:
    """Return the merges as ``BPETokenizer`` records them: left, right and merged id, and a count of 0."""
    merges = _of_type(found, list, "the model's merges")
    record = np.zeros((len(merges), 4), np.int64)
    kept = 0
    for number, (left, right) in _merge_names(merges):
        if lacking := [name for name in (left, right, left + right) if name not in vocab]:
            raise InputError(f"merge {number} needs {shown(lacking[0])}, expected a token of the vocab")
        record[kept, :3] = vocab[left], vocab[right], vocab[left + right]
        kept += 1
    return record[:kept]


def _merge_names(merges: list[Json]) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield every merge with its number: two tokens, or, as until 2024, one string with a blank between them."""
    for number, merge in enumerate(merges):
        match merge:
            case [str(left), str(right)]:
                yield number, (left, right)
            case str(line) if line.startswith("#version"):  # the heading of the merges.txt it was made from
                continue
            case str(line) if line.count(" ") == 1:
                left, right = line.split(" ")
                yield number, (left, right)
            case _:
                raise InputError(f"merge {number} is {shown(merge)}, expected two tokens")


def _of_type(found: object, kind: type[T], what: str) -> T:
    """Return a value; an InputError unless it has that type. Booleans are not numbers."""
    names = {int: "a whole number", str: "a string", dict: "an object", list: "a list", bool: "true or false"}
    _expect(type(found) is kind, what, found, names[kind])
    return cast(T, found)


def _expect(right: bool, what: str, found: object, expected: str) -> None:
    if not right:
        raise InputError(f"{what} is {shown(found)}, expected {expected}")


# Writing


def write_tokenizer_json(tokenizer: BPETokenizer, path: str | Path) -> None:
    """Write a file that ``tokenizers`` loads and ``read_tokenizer_json`` reads."""
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
