"""The fastText classifier's own life: training, pooling, saving, pruning, tuning, and what it refuses."""

from __future__ import annotations

import random
import tempfile
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foreword
from foreword.errors import InputError, SettingError
from foreword.fasttext.autotune import autotune
from foreword.fasttext.classifier import FastTextClassifier
from foreword.fasttext.files import read_fasttext, write_fasttext
from foreword.fasttext.model import label_paths, label_tree
from foreword.fasttext.quantize import quantize, quantize_matrix

WARM, COLD = ["sun", "beach", "sand", "heat"], ["snow", "ice", "frost", "wind"]


def weather(n: int = 200) -> tuple[list[str], list[str]]:
    rng = random.Random(1)
    labels = [rng.choice(["warm", "cold"]) for _ in range(n)]
    texts = [" ".join(rng.choices(WARM if label == "warm" else COLD, k=4)) for label in labels]
    return texts, labels


def small(**changes: Any) -> FastTextClassifier:
    return FastTextClassifier(**{"dimensions": 8, "buckets": 1000, "rate": 0.5, **changes}).fit(*weather())


@pytest.mark.parametrize("loss", ["softmax", "hierarchical-softmax", "one-vs-all"])
@pytest.mark.parametrize("pooling", ["mean", "distinct", "idf", "mean-max-min"])
def test_it_learns(loss: Any, pooling: Any) -> None:
    model = FastTextClassifier(8, loss=loss, pooling=pooling, word_ngrams=2, buckets=1000, rate=0.3)
    losses = [step.loss for step in model.train(*weather())]
    assert losses[-1] < losses[0] / 2
    assert model.score(*weather()) == 1.0
    assert sorted(model.classes_) == ["cold", "warm"]


def test_the_seed_settles_everything() -> None:
    one, two = small(word_ngrams=2), small(word_ngrams=2)
    np.testing.assert_array_equal(one.model.inputs, two.model.inputs)
    assert not np.array_equal(one.model.inputs, small(word_ngrams=2, seed=1).model.inputs)


def test_threads_learn_too() -> None:
    assert small(threads=2).score(*weather()) == 1.0


@pytest.mark.parametrize("pooling", ["mean", "distinct", "idf", "mean-max-min"])
def test_it_survives_saving(pooling: Any, tmp_path: Path) -> None:
    model = small(pooling=pooling, word_ngrams=2, min_n=2, max_n=3)
    foreword.save(model, tmp_path / "model")
    again = foreword.load(tmp_path / "model")
    texts = [*weather()[0][:20], "snowy beach", "", "zzz"]
    assert list(again.predict_best(texts, 2)) == list(model.predict_best(texts, 2))
    assert again.pooling == pooling


def test_repeated_words_count_once_with_distinct_pooling() -> None:
    model = small(pooling="distinct")
    assert list(model.predict_best(["sun sun sun ice"])) == list(model.predict_best(["sun ice"]))
    plain = small()
    assert list(plain.predict_best(["sun sun sun ice"])) != list(plain.predict_best(["sun ice"]))


def test_rows_count_by_how_few_lines_have_them_with_idf_pooling() -> None:
    model = small(pooling="idf", word_ngrams=2)
    texts = weather()[0]
    words = [word.decode() for word in model.model.dictionary.words[: model.model.dictionary.size]]
    lines = np.array([sum(word in text.split() for text in texts) for word in words[1:]])
    weights = model.model.weights
    assert weights is not None
    assert words[0] == "</s>"
    np.testing.assert_allclose(weights[1 : len(words)], np.log((len(texts) + 2) / (lines + 1)), rtol=1e-6)
    assert 0 < weights[0] < 0.01  # every line has it
    # The same in NumPy: the weighted mean of the rows of a word, of the line's end, and of the two together.
    plain = small(pooling="idf")
    sun, held = words.index("sun"), plain.model
    assert held.weights is not None
    share = held.weights[[sun, 0]].astype(np.float64)
    hidden = share @ held.inputs[[sun, 0]] / share.sum()
    scores = np.exp(held.outputs @ hidden)
    np.testing.assert_allclose(plain.predict_proba(["sun sun"])[0], scores / scores.sum(), atol=3e-5)


@pytest.mark.parametrize("pooling", ["distinct", "idf"])
def test_pools_fasttext_does_not_know_are_not_written(pooling: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no pooling but the mean"):
        small(pooling=pooling).write(tmp_path / "model.bin")
    assert not (tmp_path / "model.bin").exists()


def test_several_labels_a_line() -> None:
    texts = ["sun sand", "ice snow", "sun ice"] * 30
    marks = [["warm"], ["cold"], ["warm", "cold"]] * 30
    model = FastTextClassifier(8, loss="one-vs-all", rate=0.5, epochs=20)
    for _ in model.train(texts, marks):
        pass
    both = dict(next(model.predict_best(["sun ice"], 2)))
    assert min(both.values()) > 0.5


def test_label_tree_and_paths_agree() -> None:
    counts = [50, 20, 10, 10, 5]
    left, right = label_tree(counts)
    paths = label_paths(counts)
    for label in range(len(counts)):
        node = 2 * len(counts) - 2
        for place in range(paths.offsets[label], paths.offsets[label + 1]):
            assert paths.nodes[place] == node - len(counts)
            node = right[node] if paths.turns[place] else left[node]
        assert node == label


def test_quantising_keeps_most_of_a_matrix() -> None:
    rng = np.random.default_rng(2)
    matrix = rng.normal(size=(3000, 11)).astype(np.float32)
    kept = quantize_matrix(matrix, 2, True, rng).to_floats()
    assert np.square(kept - matrix).sum() / np.square(matrix).sum() < 0.02
    assert kept.shape == matrix.shape


def test_pruning_keeps_what_was_asked_for(tmp_path: Path) -> None:
    model = small(word_ngrams=2)
    file = quantize(model, cutoff=12)
    write_fasttext(file, tmp_path / "small.ftz")
    again = read_fasttext(tmp_path / "small.ftz")
    assert again.prune is not None
    assert again.number_of_words + len(again.prune) == 12
    assert b"</s>" in again.words
    with pytest.raises(SettingError):
        quantize(model, cutoff=0)


def test_autotune_finds_what_works_and_keeps_to_what_is_fixed() -> None:
    texts, labels = weather()
    found = autotune(texts[:150], labels[:150], texts[150:], labels[150:], seconds=600, buckets=500, dimensions=8)
    trials = list(islice(found, 4))
    best = max(trials, key=lambda trial: trial.accuracy)
    assert best.accuracy == 1.0
    assert all(trial.settings["dimensions"] == 8 for trial in trials)
    assert trials[0].best


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"dimensions": 0}, "dimensions is 0"),
        ({"loss": "hinge"}, "loss is 'hinge'"),
        ({"pooling": "median"}, "pooling is 'median'"),
        ({"word_ngrams": 0}, "word_ngrams is 0"),
        ({"rate": -1.0}, "rate is -1.0"),
        ({"min_n": 3, "max_n": 2}, "3 to 2"),
    ],
)
def test_senseless_settings_are_named(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingError, match=named):
        small(**changes)


@pytest.mark.parametrize(
    ("texts", "labels", "told"),
    [
        (["a", "b"], ["x"], "2 texts but 1 labels"),
        (["a", "b"], ["x", "x"], "at least two"),
        (["a", "b"], ["x", "y z"], "blank"),
        ([], [], "at least two"),
    ],
)
def test_bad_examples_are_told(texts: list[str], labels: list[str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        FastTextClassifier(4).fit(texts, labels)


def test_texts_of_nothing_known() -> None:
    model = small()
    assert len(set(model.predict(["", "zzz"]))) == 1
    assert list(model.predict_best(["qqq"])) == list(model.predict_best([""]))  # only </s> is known of both


@pytest.mark.parametrize("loss", ["softmax", "hierarchical-softmax", "one-vs-all"])
def test_probabilities_sum_to_one_and_agree_with_the_best(loss: Any) -> None:
    model = small(loss=loss)
    texts = [*weather()[0][:10], "", "zzz"]
    shares = model.predict_proba(texts)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert [model.classes_[place] for place in shares.argmax(axis=1)][:10] == model.predict(texts)[:10]


def test_load_tells_a_classifier_by_what_it_holds(tmp_path: Path) -> None:
    small().write(tmp_path / "model")
    assert isinstance(foreword.load(tmp_path / "model"), FastTextClassifier)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("written")
    small(word_ngrams=2, buckets=20).write(folder / "model.bin")
    write_fasttext(quantize(small(word_ngrams=2, buckets=20), cutoff=10), folder / "model.ftz")
    return (folder / "model.ftz").read_bytes()


def test_a_cut_file_is_told_wherever_it_was_cut(written: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.ftz"
    for length in [*range(0, 200), *range(200, len(written), 997)]:
        path.write_bytes(written[:length])
        with pytest.raises(InputError, match=r"cut\.ftz"):
            read_fasttext(path)


WRONG = [b"\xff" * 4, b"\xff\xff\xff\x7f", b"\0" * 4, b"\1\0\0\0"]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(written: bytes, data: st.DataObject) -> None:
    """Numbers changed anywhere: negative, huge, or only wrong."""
    damaged = bytearray(written)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, min(len(damaged), 400) - 4))
        damaged[place : place + 4] = data.draw(
            st.sampled_from([b"\xff" * 4, b"\xff\xff\xff\x7f", b"\0" * 4, b"\1\0\0\0"])
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.ftz"
        path.write_bytes(bytes(damaged))
        try:
            model = FastTextClassifier.load(path)
        except InputError:
            return
        list(model.predict_best(["sun beach", "snow", ""], 2))


# Folders: what predicting needs is in them, and nothing in them is trusted


def test_an_opened_folder_uses_the_table_that_lies_in_it(tmp_path: Path) -> None:
    model = small(word_ngrams=2, min_n=2, max_n=3)
    foreword.save(model, tmp_path / "model")
    again = foreword.load(tmp_path / "model")
    assert again.model.slots is not None
    assert not again.model.reader.slots.flags.owndata
    assert not again.model.inputs.flags.writeable
    texts = [*weather()[0][:20], "snowy", "a" * 100, "__label__warm sun", "ice </s> sun"]
    assert list(again.predict_best(texts, 2)) == list(model.predict_best(texts, 2))


def test_an_older_folder_without_a_table_gets_one() -> None:
    model = small(word_ngrams=2)
    parts = model.to_parts()
    del parts.arrays["table"]
    again = FastTextClassifier.from_parts(parts)
    assert list(again.predict_best(weather()[0])) == list(model.predict_best(weather()[0]))


@pytest.mark.parametrize("numbers", [0, 1, 2**31, 2**32 - 1])
def test_a_hostile_table_is_never_followed_outside(numbers: int) -> None:
    """Every row of the table taken, every number in it wrong: words are not found, and that is all."""
    model = small(word_ngrams=2, min_n=2, max_n=3)
    parts = model.to_parts()
    table = parts.arrays["table"].copy()
    for slot in range(0, len(table), 4):
        table[slot + 3] = (int(table[slot + 3]) >> 32 or 7) << 32 | numbers
    parts.arrays["table"] = table
    answers = list(FastTextClassifier.from_parts(parts).predict_best(["sun beach", "snow", "", "x" * 40], 2))
    assert all(label in ("warm", "cold") for found in answers for label, _ in found)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("table", np.zeros(12, np.uint64)),
        ("table", np.zeros(16, np.int64)),
        ("counts", np.zeros(2, np.int64)),
        ("words", np.zeros(2, np.uint8)),
        ("inputs", np.zeros((3, 16), np.float32)),
        ("outputs", np.zeros((1, 16), np.float32)),
    ],
)
def test_parts_that_do_not_fit_are_refused(name: str, array: Any) -> None:
    parts = small(word_ngrams=2).to_parts()
    parts.arrays[name] = array
    with pytest.raises(ValueError):  # noqa: PT011
        FastTextClassifier.from_parts(parts)


def test_a_quantised_model_keeps_its_codes_in_the_folder(tmp_path: Path) -> None:
    write_fasttext(quantize(small(word_ngrams=2), cutoff=12), tmp_path / "small.ftz")
    model = FastTextClassifier.load(tmp_path / "small.ftz")
    foreword.save(model, tmp_path / "model")
    foreword.load(tmp_path / "model").write(tmp_path / "again.ftz")
    assert (tmp_path / "again.ftz").read_bytes() == (tmp_path / "small.ftz").read_bytes()
    parts = model.to_parts()
    parts.arrays["inputs_codes"] = parts.arrays["inputs_codes"][1:]
    with pytest.raises(ValueError, match="inputs_codes"):
        FastTextClassifier.from_parts(parts)


def test_lengths_that_overflow_are_refused(tmp_path: Path) -> None:
    file = quantize(small(word_ngrams=2))
    assert not isinstance(file.inputs, np.ndarray)
    assert file.inputs.norm_quantizer is not None
    file.inputs.quantizer.centroids[:] = 3e38
    file.inputs.norm_quantizer.centroids[:] = 3e38
    write_fasttext(file, tmp_path / "large.ftz")
    with pytest.raises(InputError, match="not finite"):
        FastTextClassifier.load(tmp_path / "large.ftz")


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(
        st.text(st.sampled_from("ab é\t\n\0<>/s\u00a0\x01"), max_size=60)
        | st.just("x" * 70 + " sun")
        | st.just("ice " * 99),
        max_size=150,
    )
)
def test_lines_are_read_alike_alone_and_together(lines: list[str]) -> None:
    """Batches go from one line to the next, and words are kept for later: neither may show."""
    model = _kept()
    together = list(model.predict_best(lines, 2))
    fresh = FastTextClassifier._of(replace(model.model))
    assert together == [next(fresh.predict_best([line], 2)) for line in lines]


@cache
def _kept() -> FastTextClassifier:
    return small(word_ngrams=2, min_n=1, max_n=4)


@pytest.mark.parametrize(
    "training",
    [
        {"step": 101},
        {"step": -1},
        {"step": 1.5},
        {"threads": 2},
        {"threads": 0},
        {"rate": "fast"},
        {"rate": -1.0},
        {"buckets": None},
        {"more": 1},
    ],
)
def test_a_checkpoint_that_makes_no_sense_is_refused(training: dict[str, Any]) -> None:
    model = FastTextClassifier(8)
    for _ in zip(range(3), model.train(["a b", "c d"], ["x", "y"]), strict=False):
        pass
    parts = model.to_parts()
    assert not FastTextClassifier.from_parts(parts).finished
    assert isinstance(parts.settings["training"], dict)
    parts.settings["training"] = parts.settings["training"] | training
    with pytest.raises((ValueError, SettingError)):
        FastTextClassifier.from_parts(parts)


def graded(n: int = 600) -> tuple[list[str], list[str]]:
    """Texts of warm and cold words, and how many of the four are warm."""
    rng = random.Random(9)
    grades = [rng.randrange(5) for _ in range(n)]
    texts = [" ".join(rng.choices(WARM, k=grade) + rng.choices(COLD, k=4 - grade)) for grade in grades]
    return texts, [str(grade) for grade in grades]


def test_a_regression_learns_grades_and_is_resumed(tmp_path: Path) -> None:
    texts, grades = graded()
    settings: Any = {"loss": "regression", "epochs": 20, "rate": 1.0}
    model = FastTextClassifier(8, **settings)
    losses = [step.loss for step in model.train(texts, grades)]
    assert losses[-1] < losses[0] / 4  # the squared error, in variances of the grades
    errors = model.predict_grades(texts) - np.array(grades, float)
    assert np.sqrt(np.mean(errors**2)) < 0.6
    again = FastTextClassifier(8, **settings)
    for _, step in zip(range(30), again.train(texts, grades), strict=False):
        assert step is not None
    foreword.save(again, tmp_path / "stopped")
    again = foreword.load(tmp_path / "stopped")
    again.fit(texts, grades)
    np.testing.assert_array_equal(again.model.outputs, model.model.outputs)


def test_grades_are_numbers() -> None:
    with pytest.raises(InputError, match=r"the label '(warm|cold)' is not a number"):
        small(loss="regression")
    with pytest.raises(InputError, match=r"the label '(warm|cold)' is not a number"):
        small().predict_grades(["sun"])
