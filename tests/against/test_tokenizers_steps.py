"""``tokenizer.json`` files that are taken step by step: WordPiece, Unigram behind a Precompiled normalizer, BPE with
suffixes, and every normalizer, pre-tokenizer and decoder that we read, with the results of ``tokenizers``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import foreword
from foreword.text.datasets import dataset
from foreword.text.sources import read_documents
from foreword.tokens.normalisation_rules import normalisation_of
from foreword.tokens.steps.decoders import decoder_of
from foreword.tokens.steps.normalizers import normalizer_of
from foreword.tokens.steps.pre_tokenizers import pre_tokenizer_of
from foreword.tokens.steps.tokenizer import StepTokenizer

from .test_tokenizers import ODD_TEXTS, generated_texts

peer = pytest.importorskip("tokenizers")
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

SPECIAL = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HARD = (
    "aAbBeßΣς İẞ'.,-_¿「」¡5٣½²漢字한ｶﾞﬁ㋿™©ᾈ😀👍🏽▁"
    "\u0300\u0301\u0328\u200d\u200b\u0600\u0903\u00a0\u2028\t\r\n\x00\x07\x7f\x85\ufeff\ufffd"
)
hard_text = st.text(st.sampled_from(HARD), max_size=30)
any_text = st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=30)
texts = st.one_of(hard_text, any_text)
quietly = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))

NORMALIZERS: dict[str, Any] = {
    "NFC": normalizers.NFC(),
    "NFD": normalizers.NFD(),
    "NFKC": normalizers.NFKC(),
    "NFKD": normalizers.NFKD(),
    "Lowercase": normalizers.Lowercase(),
    "StripAccents": normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents()]),
    "Strip": normalizers.Strip(),
    "Strip left": normalizers.Strip(left=True, right=False),
    "Prepend": normalizers.Prepend("▁"),
    "Replace": normalizers.Replace("e", r"\1"),
    "Replace regex": normalizers.Replace(peer.Regex(r" {2,}|[\s.]+$|\p{Lu}"), "▁"),
    "Nmt": normalizers.Nmt(),
    "Precompiled": normalizers.Precompiled(normalisation_of("nmt_nfkc").character_map),
    "Bert": normalizers.BertNormalizer(),
    "Bert cased": normalizers.BertNormalizer(lowercase=False),
    "Bert with accents": normalizers.BertNormalizer(strip_accents=False, handle_chinese_chars=False),
}
PRE_TOKENIZERS: dict[str, Any] = {
    "ByteLevel": pre_tokenizers.ByteLevel(add_prefix_space=True),
    "ByteLevel alone": pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    "Metaspace": pre_tokenizers.Metaspace(),
    "Metaspace first": pre_tokenizers.Metaspace(prepend_scheme="first"),
    "Metaspace words": pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
    "Metaspace whole": pre_tokenizers.Metaspace(prepend_scheme="never", split=False),
    "Whitespace": pre_tokenizers.Whitespace(),
    "WhitespaceSplit": pre_tokenizers.WhitespaceSplit(),
    "Bert": pre_tokenizers.BertPreTokenizer(),
    "Digits": pre_tokenizers.Digits(),
    "Digits one by one": pre_tokenizers.Digits(individual_digits=True),
    "Punctuation": pre_tokenizers.Punctuation(),
    "Punctuation contiguous": pre_tokenizers.Punctuation("contiguous"),
    "CharDelimiterSplit": pre_tokenizers.CharDelimiterSplit("e"),
    **{
        f"Split {behavior}": pre_tokenizers.Split(peer.Regex(r"\p{P}|[aA]|\s+(?!\S)"), behavior)
        for behavior in ("removed", "isolated", "contiguous", "merged_with_previous", "merged_with_next")
    },
    "Split inverted": pre_tokenizers.Split(
        peer.Regex(r"[\r\n]|\s?\p{L}+|\s?[!-/]+|\s+$|\p{N}{1,3}"), "removed", invert=True
    ),
}
DECODERS: dict[str, Any] = {
    "ByteLevel": decoders.ByteLevel(),
    "WordPiece": decoders.WordPiece(),
    "WordPiece as it is": decoders.WordPiece(cleanup=False),
    "Metaspace": decoders.Metaspace(),
    "Metaspace never": decoders.Metaspace(prepend_scheme="never"),
    "BPE": decoders.BPEDecoder("a"),
    "bytes": decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Strip("x", 1, 0)]),
    "Replace": decoders.Sequence([decoders.Replace("▁", " "), decoders.Strip("x", 0, 1)]),
}


def facts_of(step: Any) -> Any:
    return json.loads(step.__getstate__())


@quietly
@given(text=texts)
@pytest.mark.parametrize("name", NORMALIZERS)
def test_normalizers(name: str, text: str) -> None:
    assert normalizer_of(facts_of(NORMALIZERS[name]))(text) == NORMALIZERS[name].normalize_str(text)


@pytest.mark.long
@pytest.mark.parametrize("name", NORMALIZERS)
def test_normalizers_on_every_code_point(name: str) -> None:
    """Alone, and before and after a letter. Lower case has the capitals of the running Python's Unicode."""
    ours, theirs = normalizer_of(facts_of(NORMALIZERS[name])), NORMALIZERS[name]
    for first in range(0, sys.maxunicode, 0x1000):
        points = [point for point in range(first, first + 0x1000) if not 0xD800 <= point < 0xE000]
        text = "".join(f"\n{chr(point)}a{chr(point)}\u0301" for point in points)
        found, expected = ours(text), theirs.normalize_str(text)
        if name not in ("Lowercase", "Bert", "Bert with accents"):
            assert found == expected, hex(first)
        else:
            assert found.lower() == expected.lower(), hex(first)


@quietly
@given(text=texts)
@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_pre_tokenizers(name: str, text: str) -> None:
    expected = [piece for piece, _ in PRE_TOKENIZERS[name].pre_tokenize_str(text)]
    assert [piece for piece in pre_tokenizer_of(facts_of(PRE_TOKENIZERS[name]))([text]) if piece] == expected


@quietly
@given(
    tokens=st.lists(
        st.sampled_from(
            ["a", "aa", "xa", "ax", "##b", "▁a", "▁", " ", "<0xE2>", "<0x96>", "<0x81>", ".", "n't", "Ġé", "ï"]
        )
    )
)
@pytest.mark.parametrize("name", DECODERS)
def test_decoders(name: str, tokens: list[str]) -> None:
    assert "".join(decoder_of(facts_of(DECODERS[name]))(tokens)) == DECODERS[name].decode(tokens)


# Whole tokenizers


def word_piece() -> Any:
    learnt = peer.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learnt.normalizer = normalizers.BertNormalizer()
    learnt.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    learnt.decoder = decoders.WordPiece()
    learnt.train_from_iterator(
        generated_texts(), trainers.WordPieceTrainer(vocab_size=600, special_tokens=SPECIAL, show_progress=False)
    )
    return learnt


def precompiled_unigram() -> Any:
    """As XLM-R and T5 have it."""
    learnt = peer.Tokenizer(models.Unigram())
    learnt.normalizer = normalizers.Sequence(
        [NORMALIZERS["Precompiled"], normalizers.Replace(peer.Regex(" {2,}"), " ")]
    )
    learnt.pre_tokenizer = PRE_TOKENIZERS["Metaspace words"]
    learnt.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=400, special_tokens=SPECIAL, unk_token="[UNK]", show_progress=False)
    learnt.train_from_iterator(generated_texts(), trainer)
    return learnt


def suffixed_bpe() -> Any:
    """As CLIP has it: tokens at the end of a word have a suffix."""
    learnt = peer.Tokenizer(models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>", fuse_unk=True))
    learnt.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    learnt.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)]
    )
    learnt.decoder = decoders.BPEDecoder("</w>")
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=SPECIAL, end_of_word_suffix="</w>", show_progress=False
    )
    learnt.train_from_iterator(generated_texts(), trainer)
    return learnt


def digit_bpe() -> Any:
    """As StarCoder and Falcon have it: byte-level after other cuts."""
    learnt = peer.Tokenizer(models.BPE())
    learnt.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Punctuation("contiguous"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            pre_tokenizers.Digits(),
        ]
    )
    learnt.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    learnt.train_from_iterator(generated_texts(), trainer)
    return learnt


def word_level() -> Any:
    learnt = peer.Tokenizer(models.WordLevel(unk_token="[UNK]"))
    learnt.pre_tokenizer = pre_tokenizers.Whitespace()
    learnt.train_from_iterator(
        generated_texts(), trainers.WordLevelTrainer(special_tokens=SPECIAL, show_progress=False)
    )
    return learnt


KINDS = {
    "WordPiece": word_piece,
    "Unigram": precompiled_unigram,
    "BPE with suffix": suffixed_bpe,
    "BPE of digits": digit_bpe,
    "WordLevel": word_level,
}


@cache
def pair(kind: str) -> tuple[StepTokenizer, Any]:
    theirs = KINDS[kind]()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save(str(Path(folder, "tokenizer.json")))
        ours = foreword.load(Path(folder, "tokenizer.json"))
    assert isinstance(ours, StepTokenizer)
    return ours, theirs


def check(kind: str, text: str) -> None:
    ours, theirs = pair(kind)
    ids = theirs.encode(text, add_special_tokens=False).ids
    assert ours.encode(text).tolist() == ids
    assert ours.encode_batch([text, text])[1].tolist() == ids
    assert ours.decode(ids) == theirs.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_have_the_same_ids(kind: str) -> None:
    for text in [*ODD_TEXTS, *generated_texts()[:50], "word" * 30, "a" * 101]:
        check(kind, text)


@quietly
@given(text=texts)
@pytest.mark.parametrize("kind", KINDS)
def test_any_text_has_the_same_ids(kind: str, text: str) -> None:
    check(kind, text)


@pytest.mark.data
@pytest.mark.parametrize("kind", KINDS)
def test_real_text_has_the_same_ids(kind: str) -> None:
    for _, text in zip(
        range(400), read_documents(str(dataset("wikitext-2").path("test", download=False))), strict=False
    ):
        check(kind, text)


@pytest.mark.parametrize("kind", KINDS)
def test_added_tokens_are_found_when_asked_for(kind: str, tmp_path: Path) -> None:
    theirs = KINDS[kind]()
    theirs.add_tokens([peer.AddedToken("Ünd", normalized=True), peer.AddedToken("<x>", rstrip=True, single_word=True)])
    theirs.add_special_tokens([peer.AddedToken("[MASK]", lstrip=True)])
    theirs.save(str(tmp_path / "tokenizer.json"))
    ours = foreword.load(tmp_path / "tokenizer.json")
    for text in ("the  [MASK] größer[SEP]", "a<x>  b <x>  c", "und ünd Ünd [UNK]", "[CLS]"):
        ids = ours.encode(text, special=True).tolist()
        assert ids == theirs.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("kind", KINDS)
def test_saved_it_is_the_same(kind: str, tmp_path: Path) -> None:
    ours, _ = pair(kind)
    foreword.save(ours, tmp_path / "folder")
    for text in ODD_TEXTS:
        assert foreword.load(tmp_path / "folder").encode(text).tolist() == ours.encode(text).tolist()
