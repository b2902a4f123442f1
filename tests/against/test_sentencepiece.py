"""sentencepiece is the reference: the same ``.model`` file must give the same ids, pieces and decoded texts."""

from __future__ import annotations

import io
import json
import lzma
import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.real_data import real

from foreword.storage.folder import load, save
from foreword.text.sources import read_documents
from foreword.tokens import plain_sentencepiece as plain
from foreword.tokens.sentencepiece import Piece, SentencePieceTokenizer, load_sentencepiece
from foreword.tokens.sentencepiece_file import UNUSED, PieceModel, model_bytes, parse_model

peer = pytest.importorskip("sentencepiece")

WORDS = [
    *("the", "of", "and", "größer", "naïve", "数学", "漢字", "かな", "😀", "don't", "½", "ﬁne", "x_y()"),
    *("aaa", "aab", "abab", "ababab", "lower", "lowest", "new", "newer", "wide"),
]
ODD_TEXTS = [
    "",
    " ",
    "   \n\n  \t x  ",
    "▁the▁ ▁of ▁▁ x▁",
    "ＡＢＣ　ﬁ ½ e\u0301 e\u0323\u0302",
    "<user> the<user>of <s>x</s> <unk> <ctl> two words two words",
    "ab" * 200,
    "\x00a\x01b\x7f\u0085\u00a0\u200b\ufeff\ufffd\U0010ffff",
    "☃☃ ☃a☃ 😀😀 漢☃",
    "a b  c   d",
]


def training_text() -> list[str]:
    rng = random.Random(3)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 12))) for _ in range(600)]


KINDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "bytes": {"byte_fallback": True, "vocab_size": 360},
    "symbols": {"user_defined_symbols": ["<user>", "two words", "▁of", "xa", "aab"], "control_symbols": ["<ctl>", "☃"]},
    "across": {"split_by_whitespace": False},
    "suffix": {"treat_whitespace_as_suffix": True},
    "as it is": {
        "normalization_rule_name": "identity", "remove_extra_whitespaces": False, "add_dummy_prefix": False
    },
    "spaces kept": {"remove_extra_whitespaces": False},
    "no roles": {"bos_id": -1, "eos_id": -1, "pad_id": 0, "unk_id": 1, "unk_surface": "?"},
    "bpe": {"model_type": "bpe"},
    "bpe bytes": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 360, "normalization_rule_name": "nfkc_cf"},
    "bpe symbols": {
        "model_type": "bpe", "user_defined_symbols": ["<user>", "two words", "▁of", "xa"], "control_symbols": ["☃"]
    },
    "bpe across": {"model_type": "bpe", "split_by_whitespace": False, "remove_extra_whitespaces": False},
}  # fmt: skip


@cache
def trained(kind: str) -> bytes:
    model = io.BytesIO()
    given = {"vocab_size": 120, "character_coverage": 0.98, **KINDS[kind]}
    peer.SentencePieceTrainer.train(
        sentence_iterator=iter(training_text()), model_writer=model, hard_vocab_limit=False, minloglevel=2,
        num_threads=1, **given,
    )  # fmt: skip
    return model.getvalue()


@cache
def pair(kind: str) -> tuple[SentencePieceTokenizer, Any]:
    return (
        SentencePieceTokenizer.from_model(parse_model(trained(kind))),
        peer.SentencePieceProcessor(model_proto=trained(kind)),
    )


def check(ours: SentencePieceTokenizer, theirs: Any, text: str) -> None:
    ids = theirs.encode(text)
    assert ours.encode(text).tolist() == ids
    assert [piece.text for piece in ours.pieces(text)] == theirs.encode(text, out_type=str)
    assert [piece.id for piece in ours.pieces(text)] == ids
    assert ours.decode(ids) == theirs.decode(ids)
    spelt = theirs.encode(text, out_type=str)
    assert ours.decode_pieces(Piece(theirs.piece_to_id(piece), piece) for piece in spelt) == theirs.decode(spelt)


any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
likely_text = st.lists(
    st.sampled_from([*WORDS, " ", "  ", "\t", "▁", "<user>", "☃", "e\u0301", "ﬁ", "xa", "ab", "two words"]), max_size=20
).map("".join)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.one_of(any_text, likely_text), kind=st.sampled_from(sorted(KINDS)))
def test_ids_pieces_and_texts_are_equal(text: str, kind: str) -> None:
    check(*pair(kind), text)


@pytest.mark.parametrize("kind", KINDS)
def test_odd_texts_are_equal(kind: str) -> None:
    ours, theirs = pair(kind)
    for text in [*ODD_TEXTS, *training_text()[:50], " ".join(training_text())]:
        check(ours, theirs, text)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.one_of(any_text, likely_text), kind=st.sampled_from(sorted(KINDS)))
@example(text="▁ a", kind="suffix")
def test_the_plain_version_agrees(text: str, kind: str) -> None:
    ours, _ = pair(kind)
    assert plain.encode(ours, text) == ours.encode(text).tolist()
    normalised = ours.normaliser.outer(ours.normaliser.text(text))
    assert plain.normalise(ours.normaliser, text) == normalised


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(ids=st.lists(st.integers(0, 300), max_size=12), kind=st.sampled_from(sorted(KINDS)))
def test_any_ids_decode_equally(ids: list[int], kind: str) -> None:
    ours, theirs = pair(kind)
    ids = [id for id in ids if id < theirs.get_piece_size()]
    assert ours.decode(ids) == theirs.decode(ids)


@settings(max_examples=30, deadline=None)
@given(data=st.binary(max_size=30))
@example(data=b"\xe2\x96\x81a\xff\xc3 \xed\xa0\x80")
def test_bytes_that_are_not_text_are_equal(data: bytes) -> None:
    for kind in ("unigram", "as it is", "bytes", "bpe"):
        ours, theirs = pair(kind)
        assert ours.encode(data).tolist() == theirs.encode(data)


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_written_it_is_the_same(kind: str, tmp_path: Path) -> None:
    ours, theirs = pair(kind)
    (tmp_path / "a.model").write_bytes(trained(kind))
    save(ours, tmp_path / "folder")
    again = peer.SentencePieceProcessor(model_proto=model_bytes(ours.model_))
    for text in ODD_TEXTS:
        ids = theirs.encode(text)
        assert load(tmp_path / "folder").encode(text).tolist() == ids
        assert load(tmp_path / "a.model").encode(text).tolist() == ids
        assert again.encode(text) == ids
        assert again.decode(ids) == theirs.decode(ids)


def tied(rng: random.Random, algorithm: Any) -> PieceModel:
    """Pieces of a's and b's whose scores are often equal, and sums that rounding makes equal."""
    pieces = ["<unk>", "▁", *dict.fromkeys("".join(rng.choices("ab", k=rng.randint(1, 5))) for _ in range(14))]
    pieces += [f"▁{piece}" for piece in pieces[2:6]]
    scores = [rng.choice((-1.0, -2.0, -1.1, -2.2, -3.3, -0.7)) - rng.choice((0, 0, 1e-6)) for _ in pieces]
    types = np.ones(len(pieces), np.uint8)
    types[0] = 2
    return PieceModel(tuple(pieces), np.array(scores, np.float32), types, algorithm)


def test_ties_and_rounding_are_equal_in_long_texts() -> None:
    """After thousands of characters single precision decides between paths; words come from the cache by then."""
    rng = random.Random(5)
    for number in range(40):
        model = tied(rng, "bpe" if number % 4 == 0 else "unigram")
        ours = SentencePieceTokenizer.from_model(model)
        theirs = peer.SentencePieceProcessor(model_proto=model_bytes(model))
        words = ["".join(rng.choices("ab", k=rng.randint(1, 12))) for _ in range(60)]
        for _ in range(4):
            text = " ".join(rng.choices(words, k=3000))
            assert ours.encode(text).tolist() == theirs.encode(text)


def test_unused_pieces_are_split_again() -> None:
    rng = random.Random(6)
    for _ in range(10):
        model = tied(rng, "bpe")
        types = model.types.copy()
        types[[3, 5, 7]] = UNUSED
        model = replace(model, types=types)
        ours = SentencePieceTokenizer.from_model(model)
        theirs = peer.SentencePieceProcessor(model_proto=model_bytes(model))
        for _ in range(20):
            text = "".join(rng.choices("ab ", k=30))
            assert ours.encode(text).tolist() == theirs.encode(text)


@pytest.mark.data
def test_expected_section_8() -> None:
    """The documents of EXPECTED.md section 8: pieces and ids of a CCNet model, and of BPE with byte fallback."""
    folder = real("formats/ccnet")
    unigram, bpe = load_sentencepiece(folder / "en.sp.model"), load_sentencepiece(folder / "bpe_bytes.model")
    for document in json.loads(lzma.decompress((folder / "expected.json.xz").read_bytes())):
        assert unigram.encode(document["normalized"]).tolist() == document["ids"]
        assert [piece.text for piece in unigram.pieces(document["normalized"])] == document["pieces"]
        assert unigram.encode(document["text"]).tolist() == document["raw_ids"]
        assert bpe.encode(document["text"]).tolist() == document["bpe_bytes_ids"]
        assert bpe.decode(document["bpe_bytes_ids"]) == document["bpe_bytes_decoded"]


@pytest.mark.data
@pytest.mark.long
@pytest.mark.parametrize("name", ["en.sp.model", "bpe_bytes.model"])
def test_enwiki_gives_identical_ids(name: str) -> None:
    """100 MB of enwiki, lines and documents of many lines, in the same ids as sentencepiece's."""
    paths, model = sorted(real("enwiki2014").iterdir()), real(f"formats/ccnet/{name}")
    ours, theirs = load_sentencepiece(model), peer.SentencePieceProcessor(model_file=str(model))
    batch: list[str] = []
    size = seen = 0
    for text in read_documents(str(paths[0])):
        batch.append(text)
        size += len(text.encode())
        if size > 4_000_000:
            half = len(batch) // 2
            batch = batch[:half] + ["\n".join(batch[at : at + 40]) for at in range(half, len(batch), 40)]
            assert [ids.tolist() for ids in ours.encode_batch(batch)] == theirs.encode(batch)
            seen, size, batch = seen + size, 0, []
        if seen > 100_000_000:
            break
    assert seen > 50_000_000
