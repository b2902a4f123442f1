"""Reading and writing ``tokenizer.json`` by itself; ``tests/against`` holds the same to Hugging Face's own reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from foreword.errors import InputError, SettingError
from foreword.storage.folder import load, save
from foreword.tokens import sentencepiece_file
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.characters import CHARACTER_OF
from foreword.tokens.pieces import CL100K_REGEX
from foreword.tokens.steps.tokenizer import StepTokenizer
from foreword.tokens.tokenizer_json import REGEXES, read_tokenizer_json, write_tokenizer_json

TEXTS = ["the cat sat on the mat", "the then there", "größer 漢字 😀", "a\tb  c\r\n", "12345 don't"]
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
NO_REGEX = {**BYTE_LEVEL, "use_regex": False}

VARIANTS: list[dict[str, Any]] = [
    {},
    {"pattern": "cl100k"},
    {"pattern": "qwen2"},
    {"pattern": "none"},
    {"prefix_space": True},
    {"pattern": "none", "prefix_space": True},
    {"lowercase": True},
    {"form": "NFC"},
    {"form": "NFKD", "lowercase": True},
    {"ignore_merges": True},
    {"special_tokens": ["<|endoftext|>", "<pad>"], "added_tokens": ["<tool>", "   "]},
    {"kind": "characters"},
    {"kind": "characters", "lowercase": True, "form": "NFKC", "special_tokens": ["</s>", "<sep>"]},
]


def split_by(regex: str, **changes: object) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False, **changes}


def sequence(*steps: object) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(steps)}


def foreign(*learnt: str, **changes: Any) -> dict[str, Any]:
    """A file as others write it: the bytes, then what is learnt as "a b", then <|endoftext|>."""
    vocab = {character: id for id, character in enumerate(CHARACTER_OF)}
    for merge in learnt:
        vocab[merge.replace(" ", "")] = len(vocab)
    end = {"id": len(vocab), "content": "<|endoftext|>", "special": True, "lstrip": False, "normalized": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [end],
        "normalizer": None,
        "pre_tokenizer": dict(BYTE_LEVEL),
        "post_processor": {"type": "ByteLevel", "trim_offsets": False},
        "decoder": dict(BYTE_LEVEL),
        "model": {"type": "BPE", "vocab": vocab, "merges": list(learnt), **changes.pop("model", {})},
        **changes,
    }


def read(facts: object, folder: Path) -> BPETokenizer:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(facts), "utf-8")
    found = read_tokenizer_json(path)
    assert isinstance(found, BPETokenizer)
    return found


def tokens(tokenizer: BPETokenizer, text: str) -> list[str]:
    return [tokenizer.vocab[id] for id in tokenizer.encode(text).tolist()]


# Both ways


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_what_is_written_is_read_back(variant: dict[str, Any], tmp_path: Path) -> None:
    written = BPETokenizer(320, **variant).fit(TEXTS * 2)
    write_tokenizer_json(written, tmp_path / "tokenizer.json")
    found = read_tokenizer_json(tmp_path / "tokenizer.json")
    assert found.vocab == written.vocab
    assert_array_equal(found.merges_, written.merges_)
    forgotten = {"vocab_size": 0, "min_frequency": 0, "special_tokens": sorted(written.standing)}
    assert found.to_parts().settings | forgotten == written.to_parts().settings | forgotten
    for text in [*TEXTS, "", "unseen wörds ☃", " </s> "]:
        assert_array_equal(found.encode(text), written.encode(text))
        assert found.decode(found.encode(text)) == written.decode(written.encode(text))


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_written_again_it_is_the_same_bytes(variant: dict[str, Any], tmp_path: Path) -> None:
    write_tokenizer_json(BPETokenizer(320, **variant).fit(TEXTS), tmp_path / "one")
    write_tokenizer_json(read_tokenizer_json(tmp_path / "one"), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("kind", ["bytes", "characters"])
def test_special_tokens_added_later_come_back(kind: Any, tmp_path: Path) -> None:
    written = BPETokenizer(320, kind=kind).fit(TEXTS).add_special_tokens(["<pad>", "<漢 字>"])
    write_tokenizer_json(written, tmp_path / "tokenizer.json")
    found = read_tokenizer_json(tmp_path / "tokenizer.json")
    text = "the<pad> cat<漢 字></s>"
    assert found.vocab == written.vocab
    ids = found.encode(text, special=True)
    assert_array_equal(ids, written.encode(text, special=True))
    assert ids.tolist().count(len(found.vocab) - 1) == 1
    assert found.decode(ids) == "the cat"
    assert found.decode(ids, special=True) == text


def test_load_knows_the_file_by_what_it_holds(tmp_path: Path) -> None:
    write_tokenizer_json(BPETokenizer(300).fit(TEXTS), tmp_path / "any name")
    found = load(tmp_path / "any name")
    assert isinstance(found, BPETokenizer)
    save(found, tmp_path / "folder")
    assert_array_equal(load(tmp_path / "folder").encode(TEXTS[0]), found.encode(TEXTS[0]))


def test_the_file_is_plain_json_for_everybody(tmp_path: Path) -> None:
    write_tokenizer_json(BPETokenizer(259).fit(["aa aa"]), tmp_path / "tokenizer.json")
    facts = json.loads((tmp_path / "tokenizer.json").read_bytes())
    assert facts["model"]["merges"] == [["a", "a"], ["Ġ", "aa"]]
    assert facts["model"]["vocab"]["</s>"] == 0
    assert facts["pre_tokenizer"] == BYTE_LEVEL
    assert [token["content"] for token in facts["added_tokens"]] == ["</s>"]


@pytest.mark.parametrize("variant", [{"pattern": "cl100k"}, {"pattern": "qwen2"}, {"kind": "characters"}], ids=str)
def test_a_prefix_that_the_format_would_put_elsewhere_is_not_written(variant: dict[str, Any], tmp_path: Path) -> None:
    tokenizer = BPETokenizer(320, prefix_space=True, **variant).fit(TEXTS)
    with pytest.raises(SettingError, match="prefix_space"):
        write_tokenizer_json(tokenizer, tmp_path / "tokenizer.json")
    assert list(tmp_path.iterdir()) == []


# Real-world shapes


def test_gpt2_s_own_file_names_no_type_and_joins_merges_by_a_blank(tmp_path: Path) -> None:
    facts = foreign("t h", "th e", "Ġ the")
    del facts["model"]["type"]
    facts["model"] |= {"continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False, "dropout": None}
    tokenizer = read(facts, tmp_path)
    assert tokens(tokenizer, "the the") == ["the", "Ġthe"]
    assert (tokenizer.pattern, tokenizer.vocab[tokenizer.vocab.end]) == ("gpt2", "<|endoftext|>")
    assert len(tokenizer.vocab) == 256 + 3 + 1


def test_an_early_byte_level_always_had_its_regex(tmp_path: Path) -> None:
    early = {name: value for name, value in BYTE_LEVEL.items() if name != "use_regex"}
    assert read(foreign(pre_tokenizer=early), tmp_path).pattern == "gpt2"


@pytest.mark.parametrize("pattern", REGEXES)
def test_a_split_before_byte_level_names_the_pattern(pattern: str, tmp_path: Path) -> None:
    regex = REGEXES[pattern]  # type: ignore[index]
    assert read(foreign(pre_tokenizer=sequence(split_by(regex), NO_REGEX)), tmp_path).pattern == pattern
    removed = split_by(regex, behavior="Removed", invert=True)
    assert read(foreign(pre_tokenizer=sequence(removed, NO_REGEX)), tmp_path).pattern == pattern


def test_llama_3_takes_whole_pieces_before_any_merge(tmp_path: Path) -> None:
    facts = foreign("t h", "th e", pre_tokenizer=sequence(split_by(CL100K_REGEX), NO_REGEX))
    facts["model"]["ignore_merges"] = True
    facts["model"]["vocab"] |= {"hello": 258, "Ġthe": 259}
    facts["added_tokens"][0]["id"] = 260
    tokenizer = read(facts, tmp_path)
    assert tokens(tokenizer, "hello the hello!") == ["hello", "Ġthe", "Ġ", "h", "e", "l", "l", "o", "!"]


def test_merges_may_be_pairs_or_strings_under_a_heading(tmp_path: Path) -> None:
    for merges in ([["t", "h"], ["th", "e"]], ["#version: 0.2", "t h", "th e"]):
        assert tokens(read(foreign("t h", "th e", model={"merges": merges}), tmp_path), "the") == ["the"]


def test_an_added_token_that_is_not_special_is_part_of_the_text(tmp_path: Path) -> None:
    facts = foreign()
    facts["added_tokens"].append({"id": 257, "content": "<tool>", "special": False, "normalized": True})
    tokenizer = read(facts, tmp_path)
    ids = tokenizer.encode("a<tool><|endoftext|>", special=True).tolist()
    assert ids[1:] == [257, 256]
    assert tokenizer.decode(ids) == "a<tool>"
    assert 257 not in tokenizer.encode("<tool>")


def test_a_file_without_an_end_gets_one_after_the_last_id(tmp_path: Path) -> None:
    tokenizer = read(foreign(added_tokens=[]), tmp_path)
    assert (tokenizer.vocab.end, tokenizer.vocab[256], len(tokenizer.vocab)) == (256, "</s>", 257)
    facts = foreign()
    facts["added_tokens"][0]["content"] = "<|im_start|>"
    assert read(facts, tmp_path).vocab.tokens[256:] == ["<|im_start|>", "</s>"]


def test_tokens_that_spell_no_bytes_are_kept_and_decode_to_themselves(tmp_path: Path) -> None:
    facts = foreign()
    facts["model"]["vocab"] |= {"[unused 漢]": 257}
    tokenizer = read(facts, tmp_path)
    assert tokenizer.decode([257]) == "[unused 漢]"


@pytest.mark.parametrize(
    ("normalizer", "form", "lowercase"),
    [
        ({"type": "NFC"}, "NFC", False),
        ({"type": "Lowercase"}, None, True),
        ({"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "Lowercase"}]}, "NFKD", True),
        ({"type": "Sequence", "normalizers": []}, None, False),
    ],
)
def test_normalizers(normalizer: object, form: str | None, lowercase: bool, tmp_path: Path) -> None:
    cleaning = read(foreign(normalizer=normalizer), tmp_path).cleaning
    assert (cleaning.form, cleaning.lowercase) == (form, lowercase)


# What is refused


def changed(path: str, value: object) -> dict[str, Any]:
    """A good file with one value changed; ``path`` is dotted."""
    facts = foreign("t h", "th e")
    *outer, last = path.split(".")
    place: Any = facts
    for name in outer:
        place = place[int(name) if isinstance(place, list) else name]
    place[int(last) if isinstance(place, list) else last] = value
    return facts


REFUSED: list[tuple[str, object, str]] = [
    ("model", None, "the model is None, expected an object"),
    ("model.type", "WordPiece", "unk_token is None"),
    ("model.type", "Unigram", "expected a list"),
    ("model.type", "Markov", "the model's type is 'Markov', expected WordPiece"),
    ("model.dropout", 0.1, "dropout is 0.1"),
    ("model.byte_fallback", 1, "byte_fallback is 1, expected true or false"),
    ("model.ignore_merges", "yes", "ignore_merges is 'yes', expected true or false"),
    ("model.vocab", [], "vocab is .*expected an object"),
    ("model.vocab.th", "257", "the id of 'th' is '257', expected a whole number"),
    ("model.vocab.th", True, "the id of 'th' is True"),
    ("model.vocab.th", -1, "the id of 'th' is -1"),
    ("model.vocab.th", 10**30, "the id of 'the' is 257, expected 256: no gap, no id twice"),
    ("model.vocab.th", 255, "expected 256: no gap, no id twice"),
    ("model.vocab", {"a": 0}, "is 258, expected 1: no gap, no id twice"),
    ("model.vocab.th", 258, "the id of '<.endoftext.>' is 258, expected 257|the id of 'the' is 257, expected 256"),
    ("model.merges", {}, "merges is .*expected a list"),
    ("model.merges.0", "t h e", "merge 0 is 't h e', expected two tokens"),
    ("model.merges.0", ["t", "h", "e"], "merge 0 is .*expected two tokens"),
    ("model.merges.0", ["t", 1], "merge 0 is .*expected two tokens"),
    ("model.merges.0", ["t", "x"], "merge 0 needs 'tx', expected a token of the vocab"),
    ("model.merges.1", ["thx", "e"], "merge 1 needs 'thx'"),
    ("added_tokens", {}, "added_tokens is .*expected a list"),
    ("added_tokens.0", "x", "an added token is 'x', expected an object"),
    ("added_tokens.0.content", "", "an added token is ''"),
    ("added_tokens.0.content", None, "content is None, expected a string"),
    ("added_tokens.0.content", "\ud800", "surrogates not allowed"),
    ("added_tokens.0.content", "the", "the id of the added token 'the' is 258, expected 257"),
    ("added_tokens.0.id", 1.5, "the id of '<|endoftext|>' is 1.5"),
    ("added_tokens.0.id", 400, "the id of '<|endoftext|>' is 400, expected 258"),
    ("added_tokens.0.special", 1, "special is 1, expected true or false"),
    ("normalizer", "NFC", "the normalizer is 'NFC', expected NFC"),
    ("pre_tokenizer", {"type": "ByteLevel"}, "the pre_tokenizer is 'ByteLevel', expected"),
    ("pre_tokenizer", {**BYTE_LEVEL, "use_regex": 1}, "use_regex is 1"),
    ("pre_tokenizer", split_by(r"[[:alpha:]]+"), r"'\[' of the regular expression"),
    ("pre_tokenizer", sequence(split_by(r"\d"), NO_REGEX), r"'\\\\d' of the regular expression"),
    ("pre_tokenizer", split_by(r"\p{Np}+"), "'Np' of a regular expression is no general category"),
    ("decoder", {"type": "WordPiece"}, "the decoder is 'WordPiece', expected ByteLevel"),
    ("decoder", 7, "the decoder is 7, expected ByteLevel"),
]


@pytest.mark.parametrize(("path", "value", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_would_be_encoded_differently_is_refused_in_one_line(
    path: str, value: object, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(changed(path, value), tmp_path)
    line = str(caught.value)
    assert line.startswith(f"{tmp_path / 'tokenizer.json'}: ")
    assert "\n" not in line
    assert len(line) < 700 + len(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "Expecting value"),
        (b"[]", "not an object"),
        (b"{", "Expecting property name"),
        (b'{"model": {"a": 1, "a": 2}}', "the key 'a' twice"),
        (b'{"model": NaN}', "NaN"),
        (b"\xff{}", "codec can't decode"),
        (b'{"model": ' + b"[" * 100_000, "nested more than 64 levels deep"),
        (b'{"model": ' + b"9" * 10_000 + b"}", "integer"),
        (b"{}", "the model is None, expected an object"),
    ],
    ids=str,
)
def test_broken_json_is_one_line(text: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(text)
    with pytest.raises(InputError, match=message) as caught:
        read_tokenizer_json(path)
    assert "\n" not in str(caught.value)


def test_a_file_too_large_to_be_one_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tokenizer.json"
    with path.open("wb") as file:
        file.truncate(sentencepiece_file.SIZE_LIMIT + 1)  # sparse: it takes no room
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("it was read"))
    with pytest.raises(InputError, match="at most 256 MB"):
        read_tokenizer_json(path)


def test_a_missing_file_and_a_folder_are_told_apart_from_bad_ones(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_tokenizer_json(path)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_anywhere_is_read_or_refused(data: st.DataObject, tmp_path: Path) -> None:
    """Whatever stands in the place of any value, the answer is a tokenizer or an InputError."""
    facts = foreign("t h", "th e")
    place: Any = facts
    while True:
        key = data.draw(st.sampled_from(list(range(len(place))) if isinstance(place, list) else sorted(place)))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    place[key] = data.draw(st.recursive(scalars, lambda s: st.lists(s) | st.dictionaries(st.text(), s), max_leaves=5))
    (tmp_path / "tokenizer.json").write_text(json.dumps(facts), "utf-8")
    try:
        tokenizer = read_tokenizer_json(tmp_path / "tokenizer.json")
    except InputError:
        return
    decoded = tokenizer.decode(tokenizer.encode("the cat"))
    assert decoded == "the cat" or isinstance(tokenizer, StepTokenizer)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tokenizer.json"
    write_tokenizer_json(BPETokenizer(300).fit(TEXTS), path)
    old = path.read_bytes()

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match="No space left"):
        write_tokenizer_json(BPETokenizer(310).fit(TEXTS), path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]
