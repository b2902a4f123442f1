"""``tiktoken`` merges by the rank of what comes out, ours by the rank of the pair; the ids must be the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foreword.text.embedded import embedded_text
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.characters import spelling_of
from foreword.tokens.tokenizer_json import REGEXES

tiktoken = pytest.importorskip("tiktoken")

SPECIAL = ["</s>", "<pad>"]
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
likely_text = st.text(st.sampled_from("aeiostn THE'’.,\t\r\n 0123456789éß漢字😀\u00a0"), max_size=60)


@pytest.fixture(scope="module", params=["gpt2", "cl100k", "qwen2"])
def pair(request: pytest.FixtureRequest) -> tuple[BPETokenizer, Any]:
    """Ours, and an Encoding with the same ranks, ids, pattern and special tokens."""
    texts = [*embedded_text("train")[:3000], "größer naïve 漢字 😀 1234 \r\n\t x" * 5]
    ours = BPETokenizer(2000, pattern=request.param, special_tokens=SPECIAL).fit(texts)
    ranks = {spelling_of(token): id for id, token in enumerate(ours.vocab) if token not in SPECIAL}
    theirs = tiktoken.Encoding(
        "ours",
        pat_str=REGEXES[request.param],
        mergeable_ranks=ranks,
        special_tokens={token: ours.vocab.id(token) for token in SPECIAL},
    )
    return ours, theirs


def test_real_text_gives_the_same_ids(pair: tuple[BPETokenizer, Any]) -> None:
    ours, theirs = pair
    texts = embedded_text("test")
    expected = theirs.encode_ordinary_batch(texts, num_threads=1)
    assert len(expected) > 100
    assert [ids.tolist() for ids in ours.encode_batch(texts)] == expected
    assert [ours.decode(ids) for ids in expected] == texts


@settings(max_examples=300, deadline=None)
@given(text=st.one_of(any_text, likely_text))
@example(text="\r\n \n  x 12345 it's IT'S")
@example(text="</s><pad>")
def test_any_text_gives_the_same_ids(pair: tuple[BPETokenizer, Any], text: str) -> None:
    ours, theirs = pair
    assert ours.encode(text).tolist() == theirs.encode_ordinary(text)


@settings(max_examples=100, deadline=None)
@given(parts=st.lists(st.sampled_from([*SPECIAL, "the", " ", "<", "pad", "/s>"])))
def test_special_tokens_are_found_alike(pair: tuple[BPETokenizer, Any], parts: list[str]) -> None:
    ours, theirs = pair
    text = "".join(parts)
    ids = ours.encode(text, special=True).tolist()
    assert ids == theirs.encode(text, allowed_special="all")
    assert ours.decode(ids, special=True) == theirs.decode(ids) == text


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=40))
def test_any_bytes_come_back(pair: tuple[BPETokenizer, Any], data: bytes) -> None:
    ours, theirs = pair
    ids = ours.encode(data).tolist()
    assert ours.decode_bytes(ids) == theirs.decode_bytes(ids) == data
