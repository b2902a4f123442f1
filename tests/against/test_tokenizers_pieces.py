"""``tokenizer.json`` files over pieces with ▁: Unigram, and BPE with byte fallback, with the ids of ``tokenizers``."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import foreword
from foreword.errors import InputError
from foreword.tokens import plain_sentencepiece as plain
from foreword.tokens.sentencepiece import SentencePieceTokenizer
from foreword.tokens.tokenizer_json import read_tokenizer_json

from .test_sentencepiece import ODD_TEXTS, WORDS, training_text

peer = pytest.importorskip("tokenizers")

SPECIAL = ["<unk>", "<s>", "</s>"]


def _normalizer(prepend: bool) -> Any:
    escape = peer.normalizers.Replace(" ", "▁")
    return peer.normalizers.Sequence([peer.normalizers.Prepend("▁"), escape]) if prepend else escape


@cache
def bpe(prepend: bool, size: int = 500) -> Any:
    """A tokenizer as Llama 2 (with a ▁ before each text) or Gemma has it."""
    learnt = peer.Tokenizer(peer.models.BPE(unk_token="<unk>"))
    learnt.normalizer = _normalizer(prepend)
    learnt.pre_tokenizer = peer.pre_tokenizers.Metaspace(prepend_scheme="never")
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = peer.trainers.BpeTrainer(vocab_size=size, special_tokens=[*SPECIAL, *bytes_], show_progress=False)
    learnt.train_from_iterator(training_text(), trainer)
    model = json.loads(learnt.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    made = peer.models.BPE(vocab=model["vocab"], merges=merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    whole = peer.Tokenizer(made)
    whole.normalizer = _normalizer(prepend)
    if not prepend:
        whole.pre_tokenizer = peer.pre_tokenizers.Split(" ", "merged_with_previous")
    whole.add_special_tokens(SPECIAL)
    return whole


@cache
def unigram(scheme: str, split: bool = True) -> Any:
    learnt = peer.Tokenizer(peer.models.Unigram())
    learnt.pre_tokenizer = peer.pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    trainer = peer.trainers.UnigramTrainer(
        vocab_size=150, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    learnt.train_from_iterator([*training_text(), " ".join(WORDS) + "  ▁▁ x"], trainer)
    return learnt


KINDS = {
    "llama": lambda: bpe(True),
    "gemma": lambda: bpe(False),
    "unigram": lambda: unigram("always"),
    "unigram, no prefix": lambda: unigram("never"),
    "unigram, no split": lambda: unigram("always", split=False),
}


@cache
def pair(kind: str) -> tuple[SentencePieceTokenizer, Any]:
    import tempfile

    theirs = KINDS[kind]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tokenizer.json")
        theirs.save(str(path))
        ours = foreword.load(path)
    assert isinstance(ours, SentencePieceTokenizer)
    return ours, theirs


any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
likely_text = st.lists(st.sampled_from([*WORDS, " ", "  ", "\t", "▁", "☃", "e\u0301"]), max_size=20).map("".join)
ties = st.text("ab 0▁", max_size=30)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_have_the_same_ids(kind: str) -> None:
    ours, theirs = pair(kind)
    texts = [text for text in ODD_TEXTS if not any(token in text for token in SPECIAL)]
    for text in [*texts, *training_text()[:60], " ".join(training_text()[:200])]:
        assert ours.encode(text).tolist() == theirs.encode(text).ids, text


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@example(text="  0ababab", kind="unigram")
@given(text=st.one_of(any_text, likely_text, ties), kind=st.sampled_from(sorted(KINDS)))
def test_any_text_has_the_same_ids(text: str, kind: str) -> None:
    """Where two paths have equal scores, rounding decides, and so where a sum begins: at a word, or at the text."""
    ours, theirs = pair(kind)
    assert ours.encode(text).tolist() == theirs.encode(text).ids
    assert [piece.id for piece in ours.pieces(text)] == theirs.encode(text).ids
    if kind.startswith("unigram"):
        assert plain.encode(ours, text) == theirs.encode(text).ids


@pytest.mark.parametrize("kind", KINDS)
def test_saved_it_is_the_same(kind: str, tmp_path: Path) -> None:
    ours, _ = pair(kind)
    foreword.save(ours, tmp_path / "folder")
    for text in ODD_TEXTS:
        assert foreword.load(tmp_path / "folder").encode(text).tolist() == ours.encode(text).tolist()
    with pytest.raises(InputError, match="cannot hold"):
        ours.write(tmp_path / "a.model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "!"}}, "precompiled_charsmap is not base64"),
        ({"normalizer": {"type": "Phonetic"}}, "the normalizer is 'Phonetic', expected NFC, .* or Sequence"),
        ({"pre_tokenizer": {"type": "UnicodeScripts"}}, "the pre_tokenizer is 'UnicodeScripts', expected ByteLevel"),
        ({"decoder": {"type": "CTC"}, "pre_tokenizer": {"type": "Whitespace"}}, "the decoder is 'CTC'"),
        ({"model": {"type": "Markov", "vocab": {}}}, "the model's type is 'Markov', expected WordPiece"),
        ({"model": {"type": "Unigram", "vocab": [["a", "b"]], "unk_id": 0}}, "expected a text and its score"),
        ({"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": None}, "added_tokens": []}, "unk_id is None"),
    ],
)
def test_what_would_differ_is_refused_by_name(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    facts = {**json.loads(unigram("always").to_str()), **change}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(facts), "utf-8")
    with pytest.raises(InputError, match=message):
        read_tokenizer_json(path)
