"""``foreword.compat.fasttext`` against the ``fasttext`` module itself: the same calls, the same answers."""

from __future__ import annotations

import random
import sys
import unittest
from importlib import import_module
from itertools import count
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fasttext", reason="fasttext is not installed (it needs a C++ compiler)")

import fasttext as theirs
from tests.against.test_fasttext import LANGUAGES, ODD, lines

from foreword.compat import fasttext as ours
from foreword.fasttext import autotune


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fasttext") / "train.txt"
    rows = [line.split("\t") for line in LANGUAGES.read_text(encoding="utf-8").splitlines()]
    path.write_text("".join(f"__label__{label} {text}\n" for label, text in rows * 3) + "no label here\n", "utf-8")
    return path


@pytest.fixture(scope="module", params=["softmax", "hs", "ova"])
def classifiers(request: pytest.FixtureRequest, labelled: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A classifier trained here, and the same file opened by the original."""
    model = ours.train_supervised(
        str(labelled), dim=8, minn=2, maxn=3, wordNgrams=2, bucket=2000, epoch=100, lr=0.5, loss=request.param,
        thread=1, verbose=0,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("models") / f"{request.param}.bin"
    model.save_model(path)
    return ours.load_model(path), theirs.load_model(str(path))


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("vectors")
    text = " ".join(text for _, text in lines()[:400])
    (folder / "text.txt").write_text("\n".join([text] * 3), "utf-8")
    model = ours.train_unsupervised(
        str(folder / "text.txt"), model="skipgram", dim=8, minCount=1, bucket=500, epoch=2, thread=1, verbose=0
    )
    model.save_model(folder / "vectors.bin")
    return ours.load_model(folder / "vectors.bin"), theirs.load_model(str(folder / "vectors.bin"))


TEXTS = [text for _, text in lines()[:300:7]] + [text for text in ODD if "\0" not in text]


def test_predictions(classifiers: Any) -> None:
    mine, original = classifiers
    for k, threshold in ((1, 0.0), (3, 0.1), (-1, 0.0)):
        for text in TEXTS:
            labels, chances = mine.predict(text, k, threshold)
            pairs = original.f.predict(text + "\n", k, threshold, "strict")
            assert isinstance(labels, tuple)
            assert chances.dtype == np.float64
            close = 1e-6 if len(text) < 1000 else 2e-5  # thousands of float32 rows are added in another order
            assert chances.tolist() == pytest.approx([p for p, _ in pairs], abs=close)
            wanted = {
                label: p for p, label in original.f.predict(text + "\n", -1, 0.0, "strict")
            }  # ties are cut anyhow
            assert [wanted[label] for label in labels] == pytest.approx([p for p, _ in pairs], abs=close)
            assert mine.f.predict(text + "\n", k, threshold, "strict") == list(zip(chances, labels, strict=True))
    several, chances = mine.predict(TEXTS, k=2)
    one_by_one = [mine.predict(text, k=2) for text in TEXTS]
    assert several == [list(labels) for labels, _ in one_by_one]
    assert [each.tolist() for each in chances] == [each.tolist() for _, each in one_by_one]
    with pytest.raises(ValueError, match="one line at a time"):
        mine.predict("two\nlines")
    with pytest.raises(ValueError, match="k needs to be 1 or higher"):
        mine.predict("a", k=0)


def test_measures(classifiers: Any, labelled: Path) -> None:
    mine, original = classifiers
    for k, threshold in ((1, 0.0), (2, 0.0), (5, 0.2), (-1, 0.1)):
        assert mine.test(str(labelled), k, threshold) == pytest.approx(
            original.test(str(labelled), k, threshold), nan_ok=True
        )
    found, wanted = mine.test_label(str(labelled)), original.test_label(str(labelled))
    assert set(found) == set(wanted)
    for label, measures in wanted.items():
        assert found[label] == pytest.approx(measures, nan_ok=True, abs=1e-6)


def test_the_dictionary(classifiers: Any, vectors: Any) -> None:
    for mine, original in (classifiers, vectors):
        assert mine.words == original.words
        assert mine.labels == original.labels
        words, counts = mine.get_words(include_freq=True)
        their_words, their_counts = original.f.getVocab("strict")
        assert (words, counts.tolist()) == (list(their_words), list(their_counts))
        assert mine.get_dimension() == original.get_dimension() == mine.dim
        assert mine.is_quantized() == original.is_quantized()
        for word in [*mine.words[:20], "unheard-of", "é", "日本語", "</s>"]:
            assert mine.get_word_id(word) == original.get_word_id(word)
            assert (word in mine) == (original.get_word_id(word) >= 0)
            assert mine.get_subword_id(word) == original.get_subword_id(word)
            names, rows = mine.get_subwords(word)
            their_names, their_rows = original.f.getSubwords(word, "strict")
            assert (names, rows.tolist()) == (list(their_names), list(their_rows))
        assert mine.get_line("a b c")[0] == ["a", "b", "c", "</s>"]
    mine, original = classifiers
    assert [mine.get_label_id(label) for label in mine.labels] == [original.get_label_id(each) for each in mine.labels]


def test_vectors(classifiers: Any, vectors: Any) -> None:
    for mine, original in (classifiers, vectors):
        for word in [*mine.words[:30], "unheard-of", "é", "日本語", ""]:
            np.testing.assert_allclose(mine.get_word_vector(word), original.get_word_vector(word), atol=1e-6)
        for text in TEXTS[:20]:
            np.testing.assert_allclose(mine.get_sentence_vector(text), original.get_sentence_vector(text), atol=1e-5)
        np.testing.assert_array_equal(mine.get_input_matrix(), original.get_input_matrix())
        np.testing.assert_array_equal(mine.get_output_matrix(), original.get_output_matrix())
        np.testing.assert_array_equal(mine.get_input_vector(3), original.get_input_vector(3))


def test_neighbours_and_analogies(vectors: Any) -> None:
    mine, original = vectors
    words = mine.words[1:20]
    for word in [*words, "unheard-of"]:
        found, wanted = mine.get_nearest_neighbors(word, k=5), original.get_nearest_neighbors(word, k=5)
        assert [cosine for cosine, _ in found] == pytest.approx([cosine for cosine, _ in wanted], abs=1e-5)
    for a, b, c in zip(words, words[1:], words[2:], strict=False):
        found, wanted = mine.get_analogies(a, b, c, k=4), original.get_analogies(a, b, c, k=4)
        assert [cosine for cosine, _ in found] == pytest.approx([cosine for cosine, _ in wanted], abs=1e-5)
        assert {a, b, c}.isdisjoint(word for _, word in found)


def test_a_quantised_model(labelled: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"dim": 8, "minn": 2, "maxn": 3, "bucket": 2000, "epoch": 100, "lr": 0.5, "thread": 1}
    model = ours.train_supervised(str(labelled), **settings)
    model.quantize(cutoff=300, qnorm=True)
    assert model.is_quantized()
    model.save_model(tmp_path / "small.ftz")
    original = theirs.load_model(str(tmp_path / "small.ftz"))
    for text in TEXTS[:20]:
        wanted = [p for p, _ in original.f.predict(text + "\n", 3, 0.0, "strict")]
        assert [p for p, _ in model.f.predict(text + "\n", 3)] == pytest.approx(wanted, abs=1e-5)
    with pytest.raises(ValueError, match="quantized"):
        model.get_input_matrix()


def test_the_meter(classifiers: Any, labelled: Path) -> None:
    mine, original = classifiers
    for k in (-1, 1, 2):
        found, wanted = mine.get_meter(str(labelled), k), original.f.getMeter(str(labelled), k)
        for label in (None, *mine.labels[:3]):
            place = () if label is None else (mine.get_label_id(label),)
            suffix = "" if label is None else "Label"
            for share in (0.0, 0.3, 0.8, 1.0):
                for name, theirs_ in (
                    ("precision_at_recall", "precisionAtRecall"), ("recall_at_precision", "recallAtPrecision")
                ):  # fmt: skip
                    other = getattr(wanted, theirs_ + suffix)(*place, share)
                    assert getattr(found, name)(share, label) == pytest.approx(other, abs=0.02)
            curve = getattr(wanted, "precisionRecallCurve" + suffix)(*place)
            precisions, recalls = found.precision_recall_curve(label)
            assert len(precisions) == pytest.approx(len(curve), abs=2)  # scores that nearly tie
            assert (precisions[-1:].tolist(), recalls[-1:].tolist()) == (([1.0], [0.0]) if curve else ([], []))
            if label is not None:
                scores, truth = found.score_vs_true(label)
                pairs = wanted.scoreVsTrue(*place)
                assert scores.tolist() == pytest.approx([score for score, _ in pairs], abs=1e-5)
                assert truth.sum() == sum(gold for _, gold in pairs)
    with pytest.raises(ValueError, match="no label of the model"):
        mine.get_meter(str(labelled)).score_vs_true("__label__none")


def test_the_names_of_the_inner_object(classifiers: Any, vectors: Any, labelled: Path, tmp_path: Path) -> None:
    for mine, original in (classifiers, vectors):
        assert {name for name in dir(original.f) if name[0] != "_"} <= set(dir(mine.f))
        for name in ("getVocab", "getLabels"):
            if name == "getVocab" or mine is classifiers[0]:
                assert getattr(mine.f, name)("strict") == tuple(map(list, getattr(original.f, name)("strict")))
        assert mine.f.getSubwords("unheard", "strict") == tuple(map(list, original.f.getSubwords("unheard", "strict")))
        assert mine.f.getWordId("the") == original.f.getWordId("the")
        assert mine.f.getSubwordId("the") == original.f.getSubwordId("the")
        assert mine.f.isQuant() == original.f.isQuant()
        assert mine.f.getArgs().dim == original.f.getArgs().dim
        assert mine.f.tokenize("a b\nc") == original.f.tokenize("a b\nc")
        vector = np.zeros(8, np.float32)
        mine.f.getWordVector(vector, "unheard-of")
        np.testing.assert_allclose(vector, original.get_word_vector("unheard-of"), atol=1e-6)
    mine, original = classifiers
    assert mine.f.getLine("a b __label__xx\n", "strict") == original.f.getLine("a b __label__xx\n", "strict")
    lines_ = ["a b\n", "\n"]
    assert mine.f.multilineGetLine(lines_, "strict") == original.f.multilineGetLine(lines_, "strict")
    assert mine.f.test(str(labelled), 1, 0.0) == pytest.approx(original.f.test(str(labelled), 1, 0.0))
    mine.f.saveModel(tmp_path / "again.bin")
    mine.f.loadModel(tmp_path / "again.bin")
    mine.set_args(mine.f.getArgs())
    assert mine.dim == 8


def test_matrices_are_replaced(labelled: Path, tmp_path: Path) -> None:
    model = ours.train_supervised(str(labelled), dim=4, epoch=1, bucket=10, thread=1)
    inputs, outputs = model.get_input_matrix(), model.get_output_matrix()
    model.set_matrices(inputs, outputs[::-1].copy())
    model.save_model(tmp_path / "turned.bin")
    original = theirs.load_model(str(tmp_path / "turned.bin"))
    np.testing.assert_array_equal(original.get_output_matrix(), outputs[::-1])
    assert [p for p, _ in model.f.predict("the\n", 2)] == pytest.approx(
        [p for p, _ in original.f.predict("the\n", 2, 0.0, "strict")], abs=1e-6
    )
    with pytest.raises(ValueError, match="the matrices are"):
        model.set_matrices(inputs[:3], outputs)


def test_automatic_tuning(labelled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock advances with each reading: how many settings are tried does not depend on the machine."""
    rows = [line for line in labelled.read_text("utf-8").splitlines() if line.startswith("__label__")]
    labelled = labelled.with_name("one label each.txt")
    labelled.write_text("\n".join(rows[:200]) + "\n", "utf-8")

    def tuned(readings: int) -> float:
        clock = count()
        monkeypatch.setattr(autotune, "time", SimpleNamespace(monotonic=lambda: next(clock) / readings))
        model = ours.train_supervised(
            str(labelled), dim=12, bucket=1000, thread=1, autotuneValidationFile=str(labelled), autotuneDuration=1
        )
        assert model.dim == 12
        accuracy: float = model.test(str(labelled))[1]
        return accuracy

    assert tuned(readings=1) < 0.5 < tuned(readings=80)
    with pytest.raises(ValueError, match="Validation file cannot be opened"):
        ours.train_supervised(str(labelled), autotuneValidationFile="nosuch")
    with pytest.raises(ValueError, match="autotuneModelSize='2M' is not supported"):
        ours.train_supervised(str(labelled), autotuneValidationFile=str(labelled), autotuneModelSize="2M")


def test_arguments_of_training_are_those_of_fasttext(labelled: Path) -> None:
    """The same order, the same types of errors."""
    by_place = ours.train_supervised(str(labelled), 0.05, 6, 5, 1, 2, 0, 2, 3, 5, 2, "ova", 30, 1)
    by_name = ours.train_supervised(
        str(labelled), lr=0.05, dim=6, epoch=1, minCount=2, minn=2, maxn=3, wordNgrams=2, loss="ova", bucket=30,
        thread=1, verbose=0,
    )  # fmt: skip
    np.testing.assert_array_equal(by_place.get_input_matrix(), by_name.get_input_matrix())
    assert (by_place.minn, by_place.maxn, by_place.wordNgrams) == (2, 3, 2)
    for module in (ours, theirs):
        for train in (module.train_supervised, module.train_unsupervised):
            with pytest.raises(TypeError, match="unexpected keyword argument 'nosuch'"):
                train(str(labelled), nosuch=1)
            with pytest.raises(ValueError, match="cannot be opened for training"):
                train("nosuch", verbose=0)
        for name in ("skipgram", "cbow", "supervised"):
            with pytest.raises(Exception, match=f"`{name}` is not supported any more"):
                getattr(module, name)(str(labelled))
    for loss in ("ns", "nope"):
        with pytest.raises(ValueError, match=f"loss '{loss}' is not supported"):
            ours.train_supervised(str(labelled), loss=loss)
    with pytest.raises(ValueError, match="loss 'hs' is not supported for vectors"):
        ours.train_unsupervised(str(labelled), loss="hs")


def test_a_missing_test_file_is_named(classifiers: Any) -> None:
    for model in classifiers:
        for method in ("test", "test_label", "get_meter"):
            with pytest.raises(ValueError, match="Test file cannot be opened"):
                getattr(model, method)("nosuch")


def test_what_is_refused(labelled: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be opened for loading"):
        ours.load_model(tmp_path / "nothing.bin")
    (tmp_path / "text.bin").write_bytes(b"no model")
    with pytest.raises(ValueError, match=r"text\.bin"):
        ours.load_model(tmp_path / "text.bin")
    with pytest.raises(ValueError, match="pretrainedVectors"):
        ours.train_supervised(str(labelled), pretrainedVectors="x.vec")
    with pytest.raises(ValueError, match="supervised for prediction"):
        ours.train_unsupervised(str(labelled), dim=4, epoch=1, bucket=50, minCount=1).predict("a")
    assert ours.tokenize("a b\nc") == theirs.tokenize("a b\nc") == ["a", "b", "</s>", "c"]


def test_the_tests_of_fasttext_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the tests that come with the ``fasttext`` package on our module; half fail on theirs under NumPy 2."""
    module: Any = ModuleType("fasttext")
    for name in ours.__all__:
        setattr(module, name, getattr(ours, name))
    module.__path__, module.util = theirs.__path__, import_module("fasttext.util")
    for name in ("fasttext", "fasttext.tests", "fasttext.tests.test_script"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "fasttext", module)
    cases = import_module("fasttext.tests.test_script").gen_unit_tests()
    random.seed(19)
    found = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(cases).run(found)
    assert found.testsRun > 80
    assert [(str(case), trace) for case, trace in found.failures + found.errors] == []


def test_lines_are_split_as_theirs_are(classifiers: Any) -> None:
    ours_, theirs_ = classifiers
    lines = ["__label__en some __label__xyz words", "", "__label__de"]
    assert ours_.get_line(lines) == tuple(theirs_.get_line(lines))
    assert [ours_.get_line(line) for line in lines] == [tuple(theirs_.get_line(line)) for line in lines]
