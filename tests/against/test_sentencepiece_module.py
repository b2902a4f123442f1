"""Code written for the ``sentencepiece`` module gives the same with ``foreword.compat.sentencepiece``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import foreword.compat.sentencepiece as ours
from foreword.errors import ForewordError

from .test_sentencepiece import KINDS, ODD_TEXTS, likely_text, trained

peer = pytest.importorskip("sentencepiece")


@pytest.fixture(params=["unigram", "bytes", "symbols", "no roles", "bpe"])
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    model = trained(request.param)
    return ours.SentencePieceProcessor(model_proto=model), peer.SentencePieceProcessor(model_proto=model)


def test_encoding_options_are_those_of_sentencepiece(pair: tuple[Any, Any]) -> None:
    mine, theirs = pair
    ways: list[dict[str, Any]] = [
        {},
        {"out_type": str},
        {"out_type": int, "reverse": True},
        {"out_type": str, "emit_unk_piece": True},
    ]
    if theirs.bos_id() >= 0:
        ways += [{"add_bos": True, "add_eos": True}, {"out_type": str, "add_eos": True, "reverse": True}]
    for how in ways:
        assert mine.encode(ODD_TEXTS, **how) == theirs.encode(ODD_TEXTS, **how)
        assert mine.Encode("the wide ☃", **how) == theirs.Encode("the wide ☃", **how)
    for name in ("encode_as_ids", "EncodeAsPieces", "normalize"):
        assert getattr(mine, name)("the  lower ☃x") == getattr(theirs, name)("the  lower ☃x")
    assert mine.encode_as_numpy("the of").dtype == np.int32


def test_decoding_takes_all_forms(pair: tuple[Any, Any]) -> None:
    mine, theirs = pair
    ids, pieces = theirs.encode("the lowest newer ☃ 漢字"), theirs.encode("the lowest newer ☃ 漢字", out_type=str)
    forms: list[Any] = [ids, pieces, [ids, ids[:2]], [pieces, pieces[1:]], 5, "▁the", [], [[]]]
    for form in forms:
        assert mine.decode(form) == theirs.decode(form)
    for form in forms[:-2]:
        assert mine.decode(form, out_type=bytes, num_threads=1) == theirs.decode(form, out_type=bytes, num_threads=1)
    assert mine.DecodeIds(ids) == theirs.DecodeIds(ids)
    assert mine.decode_pieces(pieces) == theirs.decode_pieces(pieces)


def test_questions_about_pieces(pair: tuple[Any, Any]) -> None:
    mine, theirs = pair
    every = list(range(theirs.get_piece_size()))
    assert len(mine) == mine.vocab_size() == mine.GetPieceSize() == theirs.vocab_size()
    for name in ("id_to_piece", "get_score", "is_unknown", "is_control", "is_unused", "is_byte"):
        assert getattr(mine, name)(every) == getattr(theirs, name)(every)
        assert getattr(mine, name)(3) == getattr(theirs, name)(3)
    spelt = [*theirs.id_to_piece(every), "nothing like it", "</s>"]
    assert mine.piece_to_id(spelt) == theirs.piece_to_id(spelt)
    assert mine["▁the"] == theirs["▁the"]
    for name in ("unk_id", "bos_id", "eos_id", "pad_id"):
        assert getattr(mine, name)() == getattr(theirs, name)()
    for each in pair:
        with pytest.raises(IndexError, match="out of range"):
            each.id_to_piece(len(every))
        with pytest.raises(IndexError, match="out of range"):
            each.decode([len(every)])


def test_models_are_opened_in_every_way(tmp_path: Path) -> None:
    path = tmp_path / "a.model"
    path.write_bytes(trained("unigram"))
    for module in (ours, peer):
        processor = module.SentencePieceProcessor(model_file=str(path))
        again = module.SentencePieceProcessor()
        assert again.Load(str(path))
        third = module.SentencePieceProcessor()
        third.LoadFromSerializedProto(processor.serialized_model_proto())
        assert processor.encode("the of") == again.encode("the of") == third.encode("the of")
        with pytest.raises(RuntimeError, match="No such file"):
            module.SentencePieceProcessor(model_file=str(tmp_path / "none.model"))
    with pytest.raises(RuntimeError, match="not initialized"):
        ours.SentencePieceProcessor().encode("x")


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=likely_text.map(lambda text: text[:24]))
def test_the_best_ways_have_the_same_scores(text: str) -> None:
    """Ties may come in another order, so the sums of the scores are compared."""
    mine = ours.SentencePieceProcessor(model_proto=trained("unigram"))
    theirs = peer.SentencePieceProcessor(model_proto=trained("unigram"))
    found, expected = mine.nbest_encode_as_pieces(text, 5), theirs.nbest_encode_as_pieces(text, nbest_size=5)

    def sums(paths: list[list[str]]) -> list[float]:
        return [sum(theirs.get_score(theirs.piece_to_id(piece)) for piece in path) for path in paths]

    assert len(found) == len(expected)
    assert sums(found) == pytest.approx(sums(expected), abs=1e-3)
    if text.strip():
        assert found[0] == theirs.encode(text, out_type=str)


def test_what_is_not_offered_is_refused_in_one_line() -> None:
    with pytest.raises(ForewordError, match="best path only"):
        ours.SentencePieceProcessor(enable_sampling=True)
    processor = ours.SentencePieceProcessor(model_proto=trained("unigram"))
    with pytest.raises(ForewordError, match="best path only"):
        processor.encode("the", enable_sampling=True, alpha=0.1, nbest_size=-1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'add_boss'"):
        processor.encode("the", add_boss=True)
    assert processor.encode("the", enable_sampling=False, num_threads=2) == processor.encode("the")
    with pytest.raises(ForewordError, match="only unigram"):
        ours.SentencePieceProcessor(model_proto=trained("bpe")).nbest_encode("the")
    assert KINDS
