"""Code written for the ``sentencepiece`` module gives the same with ``foreword.compat.sentencepiece``."""

from __future__ import annotations

import inspect
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, reject, settings
from hypothesis import strategies as st

import foreword
import foreword.compat.sentencepiece as ours
from foreword.errors import ForewordError

from .test_sentencepiece import KINDS, ODD_TEXTS, any_text, likely_text, trained

peer = pytest.importorskip("sentencepiece")


@pytest.fixture(params=["unigram", "bytes", "symbols", "no roles", "bpe"])
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    model = trained(request.param)
    return ours.SentencePieceProcessor(model_proto=model), peer.SentencePieceProcessor(model_proto=model)


def test_encoding_options_are_those_of_sentencepiece(pair: tuple[Any, Any]) -> None:
    mine, theirs = pair
    ways: list[dict[str, Any]] = [
        {},
        {"return_type": str},
        {"return_type": bytes},
        {"out_type": bytes, "emit_unk_piece": True},
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
    for texts in ("the ☃of", ["the of", "x"]):
        found, wanted = mine.encode_as_numpy(texts, reverse=True), theirs.encode_as_numpy(texts, reverse=True)
        assert [each.tolist() for each in found] == [each.tolist() for each in wanted]
    assert mine.encode(b"the wide") == theirs.encode(b"the wide")
    if theirs.bos_id() >= 0:  # the arguments after the text are add_bos and add_eos
        assert mine.encode("the wide", True, True) == theirs.encode("the wide", True, True)


def test_signatures_are_those_of_sentencepiece() -> None:
    theirs = peer.SentencePieceProcessor
    shared = [
        name for name in dir(theirs) if name[0] != "_" and hasattr(ours.SentencePieceProcessor, name)
    ]  # fmt: skip
    assert len(shared) > 60
    for name in shared:
        mine = inspect.signature(getattr(ours.SentencePieceProcessor, name)).parameters
        assert list(mine) == list(inspect.signature(getattr(theirs, name)).parameters), name


def test_constructor_options_are_those_of_sentencepiece() -> None:
    model = trained("unigram")
    for how in (
        {"out_type": str, "nbest_size": 3, "alpha": 0.2},
        {"return_type": bytes, "add_eos": True},
        {"return_type": "numpy"},
        {"nbest_size": 2, "reverse": True, "num_threads": 1},
    ):
        mine, theirs = (module.SentencePieceProcessor(model_proto=model, **how) for module in (ours, peer))
        assert list(mine.encode("the wide")) == list(theirs.encode("the wide"))
        found, wanted = mine.nbest_encode("the wide"), theirs.nbest_encode("the wide")
        assert [list(path) for path in found] == [list(path) for path in wanted]
        assert mine.encode("the", return_type=int) == theirs.encode("the", return_type=int)
    positional = (None, model, str, True, True)
    assert ours.SentencePieceProcessor(*positional).encode("a") == peer.SentencePieceProcessor(*positional).encode("a")
    for module in (ours, peer):
        assert module.SentencePieceProcessor.from_proto(model, out_type=str).encode("the") == ["▁the"]
        with pytest.raises(TypeError):
            module.SentencePieceProcessor(no_such_option=1)
        with pytest.raises(ValueError, match="Cannot specify both"):
            module.SentencePieceProcessor(model_proto=model).encode("a", out_type=str, return_type=int)
        with pytest.raises(ValueError, match="Invalid return_type: nope"):
            module.SentencePieceProcessor(model_proto=model).encode("a", return_type="nope")


@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.one_of(any_text, likely_text), kind=st.sampled_from(sorted(KINDS)))
@example("  the ☃x ﬁ  e\u0301 ", "bytes")
@example("  the ☃x ﬁ  e\u0301 ", "suffix")
@example("   ", "spaces kept")
def test_offsets_are_those_of_sentencepiece(text: str, kind: str) -> None:
    mine, theirs = (module.SentencePieceProcessor(model_proto=trained(kind)) for module in (ours, peer))
    assert mine.normalize(text, with_offsets=True) == theirs.normalize(text, with_offsets=True)
    assert mine.normalize([text, "a"]) == theirs.normalize([text, "a"])
    try:
        expected = theirs.encode_as_offset_mapping(text)
    except RuntimeError:  # an internal error of its own, where ☃ is a symbol of a BPE model
        reject()
    assert mine.encode_as_offset_mapping(text) == expected
    how = {"return_type": "offset_mapping", "return_bytes": True}
    assert mine.encode([text], **how) == theirs.encode([text], **how)


@settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=likely_text.map(lambda text: text[:24]), alpha=st.floats(0.05, 2.0))
def test_the_entropy_is_that_of_sentencepiece(text: str, alpha: float) -> None:
    mine, theirs = (module.SentencePieceProcessor(model_proto=trained("unigram")) for module in (ours, peer))
    assert mine.calculate_entropy(text, alpha) == pytest.approx(theirs.calculate_entropy(text, alpha), abs=2e-4)
    assert mine.CalculateEntropy([text], alpha) == [mine.calculate_entropy(text, alpha)]


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


@settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
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


def sentences() -> list[str]:
    return [line for document in foreword.embedded_text("test") for line in document.splitlines()][:2000]


TRAININGS: list[dict[str, Any]] = [
    {"vocab_size": 400},
    {"vocab_size": 500, "byte_fallback": True, "normalization_rule_name": "identity", "character_coverage": 0.98},
    {"vocab_size": 300, "unk_id": 1, "bos_id": -1, "eos_id": 6, "pad_id": 0, "control_symbols": "<c>,<d>",
     "user_defined_symbols": ["<user>", "two words"], "unk_surface": "?"},
    {"vocab_size": 50_000, "hard_vocab_limit": False, "bos_piece": "[BOS]", "pad_id": 3, "num_threads": 1},
]  # fmt: skip


@pytest.mark.parametrize("how", TRAININGS)
def test_what_is_trained_opens_in_sentencepiece_with_the_same_ids(how: dict[str, Any], tmp_path: Path) -> None:
    """Roles, symbols and sizes are those that sentencepiece gives; pieces are learnt by Foreword."""
    files = {}
    for name, module in (("ours", ours), ("theirs", peer)):
        written = io.BytesIO()
        module.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences()), model_writer=written, minloglevel=2, **how
        )
        files[name] = written.getvalue()
    mine = ours.SentencePieceProcessor(model_proto=files["ours"])
    opened, reference = (peer.SentencePieceProcessor(model_proto=each) for each in files.values())
    assert mine.encode(ODD_TEXTS) == opened.encode(ODD_TEXTS)
    assert mine.decode(mine.encode(ODD_TEXTS)) == opened.decode(opened.encode(ODD_TEXTS))
    for name in ("unk_id", "bos_id", "eos_id", "pad_id"):
        assert getattr(opened, name)() == getattr(reference, name)()
    first = 8 if "control_symbols" in how else 3
    assert [opened.id_to_piece(id) for id in range(first - 1)] == [reference.id_to_piece(id) for id in range(first - 1)]
    if how.get("hard_vocab_limit", True):
        assert len(opened) == len(reference) == how["vocab_size"]
    else:
        assert len(opened) < how["vocab_size"]


def test_training_writes_a_model_and_its_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(sentences()), "utf-8")
    for module in (ours, peer):
        prefix = tmp_path / module.__name__.rpartition(".")[0].rpartition(".")[2] / "m"
        prefix.parent.mkdir(exist_ok=True)
        module.SentencePieceTrainer.Train(
            f"--input={tmp_path}/text.txt --model_prefix={prefix} --vocab_size=300 --minloglevel=2"
        )
        opened = peer.SentencePieceProcessor(model_file=f"{prefix}.model")
        rows = Path(f"{prefix}.vocab").read_text("utf-8").splitlines()
        assert [row.split("\t")[0] for row in rows] == [opened.id_to_piece(id) for id in range(300)]
        assert [float(row.split("\t")[1]) for row in rows] == pytest.approx(
            [opened.get_score(id) for id in range(300)], rel=1e-5
        )


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"model_type": "bpe"}, "model_type='bpe' is not offered"),
        ({"no_such_setting": 1}, 'unknown field name "no_such_setting"'),
        ({"split_digits": True}, "split_digits=True is not offered"),
        ({"normalization_rule_name": "nfkc_cf"}, "normalization_rule_name='nfkc_cf' is not offered"),
        ({"unk_id": -1}, "<unk> must be defined"),
        ({"vocab_size": 60000}, "Vocabulary size too high"),
        ({"model_writer": None}, "expected model_prefix or model_writer"),
        ({"input": "a.txt"}, "expected either input or sentence_iterator"),
        ({"input": "no such file", "sentence_iterator": None}, "No such file"),
    ],
)
def test_settings_of_training_that_are_not_offered_are_refused_by_name(how: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"sentence_iterator": iter(sentences()), "model_writer": io.BytesIO(), **how}
    with pytest.raises(RuntimeError, match=message):
        ours.SentencePieceTrainer.train(**given)


def test_what_is_not_offered_is_refused_in_one_line() -> None:
    with pytest.raises(ForewordError, match="best path only"):
        ours.SentencePieceProcessor(enable_sampling=True)
    processor = ours.SentencePieceProcessor(model_proto=trained("unigram"))
    with pytest.raises(ForewordError, match="best path only"):
        processor.encode("the", enable_sampling=True, alpha=0.1, nbest_size=-1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'add_boss'"):
        processor.encode("the", add_boss=True)  # type: ignore[call-arg]
    with pytest.raises(ForewordError, match="return_type='proto' is not offered"):
        processor.encode("the", return_type="proto")
    for name in ("sample_encode_as_ids", "EncodeAsSerializedProto", "parallel_encode", "override_normalizer_spec"):
        assert hasattr(peer.SentencePieceProcessor, name)
        with pytest.raises(AttributeError, match=f"{name} is not offered"):
            getattr(processor, name)
    assert processor.encode("the", enable_sampling=False, num_threads=2) == processor.encode("the")
    with pytest.raises(ForewordError, match="only unigram"):
        ours.SentencePieceProcessor(model_proto=trained("bpe")).nbest_encode("the")
    assert KINDS
