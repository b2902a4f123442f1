"""``foreword classify`` and ``foreword evaluate`` on labelled texts."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foreword import TextClassifier, load, save
from foreword.classify.naive_bayes import NaiveBayes
from foreword.classify.one_vs_rest import OneVsRest
from foreword.fasttext.classifier import FastTextClassifier
from foreword.protocols import Step

from .conftest import Foreword

SPAM = ["you have won a prize", "win a million now", "claim your prize now", "you win, call now", "prize, prize, prize"]
HAM = ["see you at nine", "the meeting is at nine", "have you seen the report", "good morning to you", "at home, you?"]
ROWS = [(text, "spam") for text in SPAM] + [(text, "ham") for text in HAM]


def as_csv(rows: list[tuple[str, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "spam.csv"
    path.write_text(as_csv([("message", "class"), *ROWS]))
    return path


@pytest.fixture(scope="module")
def model(data: Path, foreword: Foreword) -> Path:
    folder = data.parent / "model"
    result = foreword("classify", "train", data, "-o", folder, "--kind", "naive-bayes")
    assert result.exit_code == 0, result.stderr
    return folder


# Training


def test_a_csv_becomes_a_model(foreword: Foreword, data: Path, tmp_path: Path) -> None:
    result = foreword("classify", "train", data, "-o", tmp_path / "model")
    assert (result.exit_code, result.stdout) == (0, "")
    guess, closing = result.stderr.splitlines()
    assert guess == f'{data}: texts in column 1 "message", labels in column 2 "class"; the first line is a header'
    assert closing.startswith("nb-logistic: 10 texts, 2 classes, ")
    assert closing.endswith(f"saved in {tmp_path / 'model'}")
    loaded = load(tmp_path / "model")
    assert isinstance(loaded, TextClassifier)
    assert loaded.predict(["a prize now", "at nine"]) == ["spam", "ham"]
    assert loaded.features.ngrams == (1, 2)


@pytest.mark.parametrize("kind", ["nb-logistic", "naive-bayes", "logistic"])
def test_every_kind_learns_and_is_measured(kind: str, foreword: Foreword, data: Path, tmp_path: Path) -> None:
    call = ["classify", "train", data, "-o", tmp_path / "model", "--kind", kind, "--test", data, "--json", "--quiet"]
    result = foreword(*call)
    assert (result.exit_code, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert (told["kind"], told["texts"], told["classes"]) == (kind, 10, 2)
    assert told["test"]["accuracy"] == 1
    assert told["output"] == str(tmp_path / "model")
    evaluated = json.loads(foreword("evaluate", tmp_path / "model", data, "--json").stdout)
    assert evaluated == told["test"]


def test_fasttext_reads_text_itself(foreword: Foreword, data: Path, tmp_path: Path) -> None:
    call = ["classify", "train", data, "-o", tmp_path / "model", "--kind", "fasttext", "--json"]
    settings = ["--set", "dimensions=8", "--set", "buckets=100", "--set", "epochs=50", "--set", "rate=0.5"]
    told = json.loads(foreword(*call, *settings, "--test", data).stdout)
    assert told["test"]["accuracy"] > 0.5
    assert json.loads(foreword("evaluate", tmp_path / "model", data, "--json").stdout) == told["test"]
    labels = foreword("classify", "predict", tmp_path / "model", input="a prize now\n\nat nine\n").stdout
    assert labels == "spam\n\nham\n"
    refused(foreword, "is not a sum over words", "classify", "explain", tmp_path / "model", "a prize")
    refused(foreword, "means nothing to fasttext", *call, "--features", "tf-idf", status=2)


def test_fasttext_stopped_and_resumed_ends_in_the_same_bits(
    foreword: Foreword, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call: list[Any] = ["classify", "train", data, "--kind", "fasttext", "--set", "dimensions=8", "--set"]
    call += ["word_ngrams=2", "--set", "buckets=100", "--set", "rate=0.5", "--set", "seed=3"]
    call += ["--set", "epochs=4", "-o"]
    assert foreword(*call, tmp_path / "whole").exit_code == 0
    train = FastTextClassifier.train

    def interrupted(self: FastTextClassifier, texts: Any, labels: Any) -> Iterator[Step]:
        for number, step in enumerate(train(self, texts, labels)):
            if number == 30:
                signal.raise_signal(signal.SIGINT)
            yield step

    with monkeypatch.context() as patched:
        patched.setattr(FastTextClassifier, "train", interrupted)
        stopped = foreword(*call, tmp_path / "resumed")
    assert stopped.exit_code == 130
    assert "% and saved in" in stopped.stderr
    whole, halfway = (load(tmp_path / name) for name in ("whole", "resumed"))
    assert whole.finished
    assert not halfway.finished
    assert halfway.predict(["a prize now"]) in (["spam"], ["ham"])
    assert not np.array_equal(halfway.model.outputs, whole.model.outputs)
    refused(foreword, "training began with epochs=4", *call, tmp_path / "resumed", "--resume", "--set", "epochs=5")
    (tmp_path / "other.csv").write_text(as_csv([("message", "class"), *ROWS, ROWS[0]]))
    other = [*call[:2], tmp_path / "other.csv", *call[3:]]
    refused(foreword, "not those that training began with", *other, tmp_path / "resumed", "--resume")
    assert foreword(*call, tmp_path / "resumed", "--resume").exit_code == 0
    for file in ("arrays.safetensors", "model.json"):
        assert (tmp_path / "resumed" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    again = foreword(*call, tmp_path / "resumed", "--resume")
    assert (again.exit_code, "nothing to resume" in again.stderr) == (0, True)
    plain = [*call[:4], "logistic", "-o", tmp_path / "logistic"]
    refused(foreword, "means nothing to logistic", *plain, "--resume", status=2)
    refused(foreword, "not trials or folds", *call, tmp_path / "resumed", "--resume", "--folds", 2, status=2)


def test_fasttext_finds_its_settings_and_shrinks(foreword: Foreword, data: Path, tmp_path: Path) -> None:
    call = ["classify", "train", data, "-o", tmp_path / "model", "--kind", "fasttext", "--autotune", 1, "--valid", data]
    settings = ["--set", "dimensions=8", "--set", "buckets=100", "--set", "epochs=30"]
    result = foreword(*call, *settings, "--quantize", "--cutoff", 20, "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == 0
    assert told["trials"] >= 1
    assert told["settings"]["epochs"] == 30
    assert f"accuracy {told['valid_accuracy']:.4f}" in result.stderr
    small = load(tmp_path / "model")
    assert small.quantized
    assert len(small.model.inputs) == 20
    assert foreword("classify", "predict", tmp_path / "model", input="a prize now\n").stdout in ("spam\n", "ham\n")
    refused(foreword, "neither alone", *call[:-2], status=2)
    refused(foreword, "only with --quantize", *call, "--cutoff", 5, status=2)
    refused(foreword, "not in folds", *call, "--folds", 2, status=2)
    refused(foreword, "means nothing to logistic", *call[:6], "logistic", "--quantize", status=2)


def test_a_search_that_does_not_end_is_told(foreword: Foreword, data: Path, tmp_path: Path) -> None:
    call = ["classify", "train", data, "-o", tmp_path / "model", "--kind", "logistic"]
    result = foreword(*call, "--set", "max_iterations=1", "--set", "C=1000", "--set", "tolerance=1e-9")
    assert result.exit_code == 0
    assert "foreword: warning: LogisticRegression did not converge" in result.stderr


def test_settings_go_to_the_features_and_the_model(foreword: Foreword, data: Path, tmp_path: Path) -> None:
    call = ["classify", "train", data, "-o", tmp_path / "model", "--kind", "naive-bayes", "--features", "tf-idf"]
    result = foreword(*call, "--set", "alpha=0.25", "--set", "ngrams=[1,3]", "--set", "split=space")
    assert result.exit_code == 0, result.stderr
    loaded = load(tmp_path / "model")
    assert isinstance(loaded.model, NaiveBayes)
    assert loaded.model.alpha == 0.25
    assert (type(loaded.features).__name__, loaded.features.ngrams, loaded.features.split) == ("TfIdf", (1, 3), "space")


def test_cross_validation(foreword: Foreword, data: Path, tmp_path: Path) -> None:
    call = ["classify", "train", data, "--kind", "naive-bayes", "--folds", 5]
    told = json.loads(foreword(*call, "--json").stdout)
    assert told["output"] is None
    measures = told["cross_validation"]
    assert measures["texts"] == 10
    low, high = measures["accuracy_interval"]
    assert 0.5 < low < measures["accuracy"] <= high
    assert json.loads(foreword(*call, "--json").stdout)["cross_validation"] == measures  # the same seed
    shown = foreword(*call)
    assert "cross-validation" in shown.stdout
    assert "accuracy" in shown.stdout
    assert "said spam" in shown.stdout
    both = foreword(*call, "-o", tmp_path / "model")
    assert (tmp_path / "model").is_dir()
    assert "saved in" in both.stderr


def test_a_class_with_one_text_is_told(foreword: Foreword, tmp_path: Path) -> None:
    path = tmp_path / "data.tsv"
    path.write_text("".join(f"{label}\t{text}\n" for text, label in [*ROWS, ("an owl hoots", "owl")]))
    result = foreword("classify", "train", path, "--folds", 2, "--json")
    assert "classes with one text, which is always predicted wrong: owl" in result.stderr
    assert json.loads(result.stdout)["cross_validation"]["unseen_labels"] == {"owl": 1}


def test_calibration_moves_probabilities_and_no_label(foreword: Foreword, data: Path, tmp_path: Path) -> None:
    shares, labels = [], []
    for options in ([], ["--calibrate"]):
        call = ["classify", "train", data, "-o", tmp_path / "model", "--kind", "naive-bayes", *options]
        assert foreword(*call).exit_code == 0
        rows = foreword("classify", "predict", tmp_path / "model", data, "--json").stdout.splitlines()
        shares.append([json.loads(row)["probability"] for row in rows])
        labels.append([json.loads(row)["predicted"] for row in rows])
        assert foreword("classify", "explain", tmp_path / "model", "a prize").exit_code == 0
    assert shares[0] != shares[1]
    assert labels[0] == labels[1]


@pytest.mark.parametrize("form", ["tsv", "jsonl", "fasttext", "folders", "label-first", "stdin"])
def test_other_forms_of_data(form: str, foreword: Foreword, tmp_path: Path) -> None:
    path, options, input = tmp_path / "data", [], None
    if form in ("tsv", "stdin"):
        path.write_text("".join(f"{label}\t{text}\n" for text, label in ROWS))
    elif form == "jsonl":
        path.write_text("".join(json.dumps({"label": label, "text": text}) + "\n" for text, label in ROWS))
    elif form == "fasttext":
        path.write_text("".join(f"__label__{label} {text}\n" for text, label in ROWS))
    elif form == "label-first":
        path.write_text("".join(f"{label} {text}\n" for text, label in ROWS))
        options = ["--format", "label-first"]
    else:
        for number, (text, label) in enumerate(ROWS):
            (path / label).mkdir(parents=True, exist_ok=True)
            (path / label / f"{number}.txt").write_text(text)
    source = path if form != "stdin" else "-"
    input = path.read_text() if form == "stdin" else None
    result = foreword("classify", "train", source, "-o", tmp_path / "model", *options, "--json", input=input)
    assert json.loads(result.stdout)["texts"] == 10, result.stderr
    assert load(tmp_path / "model").predict(["a prize now"]) == ["spam"]


# Predicting


def test_several_labels_are_all_predicted(foreword: Foreword, tmp_path: Path) -> None:
    """As ``predict`` of Python returns them: all labels that reach the threshold, or none."""
    texts = ["cat dog", "cat", "dog", "tree"] * 8
    labels = [["p", "x"], ["p"], ["x"], []] * 8
    saved = TextClassifier(model=OneVsRest(NaiveBayes())).fit(texts, labels)
    save(saved, tmp_path / "several")
    asked = "cat dog\ncat\n\ntree\n"
    expected = saved.predict(["cat dog", "cat", "tree"])
    assert sorted(map(len, expected)) == [0, 1, 2]
    printed = foreword("classify", "predict", tmp_path / "several", input=asked).stdout.split("\n")
    assert [sorted(line.split("\t")) if line else [] for line in printed[:4]] == [
        expected[0], expected[1], [], expected[2]
    ]  # fmt: skip
    rows = foreword("classify", "predict", tmp_path / "several", "--json", input=asked).stdout.splitlines()
    facts = [json.loads(row) for row in rows]
    assert [row["predicted"] and sorted(row["predicted"]) for row in facts] == [expected[0], expected[1], None, []]
    assert len(facts[0]["probability"]) == 2
    assert min(facts[0]["probability"]) >= 0.5
    one = foreword("classify", "predict", tmp_path / "several", "-k", "1", input="cat dog\n").stdout
    assert one.strip() in ("p", "x")


def test_fasttext_learns_several_labels_one_against_all(foreword: Foreword, tmp_path: Path) -> None:
    lines = ["__label__p __label__x cat dog", "__label__p cat", "__label__x dog"] * 40
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")
    settings = ("--set", "buckets=100", "--set", "epochs=60", "--set", "dimensions=8", "--set", "rate=0.5")
    call = ("classify", "train", tmp_path / "lines.txt", "-o", tmp_path / "model", "--kind", "fasttext", *settings)
    trained = foreword(*call, "--set", "loss=one-vs-all", "--json")
    assert trained.exit_code == 0, trained.stderr
    assert json.loads(trained.stdout)["classes"] == 2
    ranks = dict(next(iter(load(tmp_path / "model").predict_best(["cat dog"], 2))))
    assert min(ranks.values()) > 0.5
    assert "has 2 labels, not one" in foreword(*call, "--overwrite").stderr
    folds = foreword(*call, "--overwrite", "--set", "loss=one-vs-all", "--folds", "2")
    assert "has 2 labels, not one" in folds.stderr


def test_a_line_in_a_label_out(foreword: Foreword, model: Path) -> None:
    result = foreword("classify", "predict", model, input="a prize now\n\nat nine\n")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "spam\n\nham\n", "")


def test_blank_lines_alone(foreword: Foreword, model: Path) -> None:
    assert foreword("classify", "predict", model, input="\n \n").stdout == "\n\n"
    assert foreword("classify", "predict", model, input="").stdout == ""


def test_probabilities_and_more_labels(foreword: Foreword, model: Path) -> None:
    label, share = foreword("classify", "predict", model, "-p", input="a prize now\n").stdout.split("\t")
    assert label == "spam"
    assert 0.5 < float(share) < 1
    fields = (
        foreword("classify", "predict", model, "-p", "-k", 2, input="a prize now\n").stdout.rstrip("\n").split("\t")
    )
    assert (fields[0], fields[2]) == ("spam", "ham")
    assert float(fields[1]) + float(fields[3]) == pytest.approx(1, abs=1e-5)
    assert foreword("classify", "predict", model, "--k", 9, input="at nine\n").stdout == "ham\tspam\n"


def test_json_keeps_the_text(foreword: Foreword, model: Path) -> None:
    lines = foreword("classify", "predict", model, "--json", "-p", input="a prize now\n\n").stdout.splitlines()
    told = json.loads(lines[0])
    assert (told["text"], told["predicted"]) == ("a prize now", "spam")
    assert told["probabilities"]["spam"] == told["probability"]
    assert sum(told["probabilities"].values()) == pytest.approx(1)
    assert json.loads(lines[1]) == {"text": "", "predicted": None, "probability": None, "probabilities": {}}


def test_rows_keep_their_columns(foreword: Foreword, model: Path, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"id": 7, "text": "a prize now"}, {"id": 8, "text": "at nine", "label": "mine"}]
    jsonl = tmp_path / "a.jsonl"
    jsonl.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    parquet = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [7, 8], "text": [row["text"] for row in rows], "label": [None, "mine"]}), parquet)
    table = tmp_path / "a.csv"
    table.write_text(as_csv([("id", "label", "text"), ("7", "", "a prize now"), ("8", "mine", "at\n\nnine")]))
    for path in (jsonl, parquet, table):
        first, second = map(json.loads, foreword("classify", "predict", model, path, "--json").stdout.splitlines())
        assert (str(first["id"]), first["predicted"]) == ("7", "spam")
        assert (str(second["id"]), second["label"], second["predicted"]) == ("8", "mine", "ham")
        assert foreword("classify", "predict", model, path).stdout == "spam\nham\n"


def test_tables_without_a_header(foreword: Foreword, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text('7\ta "prize" now\n8\tat nine\n')
    assert foreword("classify", "predict", model, path).stdout == "spam\nham\n"
    first = json.loads(foreword("classify", "predict", model, path, "--json").stdout.splitlines()[0])
    assert (first["1"], first["2"], first["predicted"]) == ("7", 'a "prize" now', "spam")
    assert foreword("classify", "predict", model, path, "--text-column", 2, "--format", "tsv").stdout == "spam\nham\n"
    wrong = foreword("classify", "predict", model, path, "--text-column", "body")
    assert f'{path}: no column "body"' in wrong.stderr


def test_lines_of_text_have_no_columns(foreword: Foreword, model: Path, tmp_path: Path) -> None:
    """Labels at the beginning of the lines would be read as words, and tell the answer."""
    text = tmp_path / "labelled.txt"
    text.write_text("".join(f"{label}\tsome words\n" for label in ("spam", "ham")))
    result = foreword("classify", "predict", model, text)
    assert result.exit_code == 0
    assert "the lines begin with labels" in result.stderr
    result = foreword("classify", "predict", model, text, "--text-column", 2)
    assert result.exit_code == 2
    assert "--format tsv" in result.stderr
    result = foreword("classify", "predict", model, text, "--text-column", 2, "--no-header", "--format", "tsv")
    assert result.stderr == ""
    assert len(set(result.stdout.splitlines())) == 1


def test_a_command_of_every_family_is_named(foreword: Foreword, model: Path) -> None:
    result = foreword("classify", "evaluate", model, "x.tsv")
    assert result.exit_code == 2
    assert "there is foreword evaluate" in result.stderr


def test_each_answer_comes_as_soon_as_its_line(model: Path) -> None:
    command = [sys.executable, "-m", "foreword", "classify", "predict", str(model)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line, label in (("a prize now", "spam"), ("at nine", "ham")):
            process.stdin.write(f"{line}\n")
            assert process.stdout.readline() == f"{label}\n"
        process.stdin.close()
    assert process.returncode == 0


# Explaining


def test_explaining(foreword: Foreword, model: Path) -> None:
    result = foreword("classify", "explain", model, "a prize in euros", "see you at nine")
    assert result.exit_code == 0, result.stderr
    assert "spam (0." in result.stdout
    assert "): see you at nine" in result.stdout
    prize = next(line for line in result.stdout.splitlines() if line.strip().startswith("prize"))
    assert "█" in prize
    assert "+" in prize
    assert "not known, so without effect: in, euros" in result.stdout
    against = foreword("classify", "explain", model, "a prize in euros", "--label", "ham", "--top", 1)
    assert "for ham" in against.stdout
    told = json.loads(foreword("classify", "explain", model, "--json", input="a prize in euros\n").stdout)
    assert told["label"] == "spam"
    assert told["classes"]["spam"]["contributions"][0]["term"] == "prize"
    wrong = foreword("classify", "explain", model, "x", "--label", "eggs")
    assert "no class 'eggs': expected ham, spam" in wrong.stderr


# Evaluating


def test_evaluating_a_classifier(foreword: Foreword, model: Path, data: Path) -> None:
    told = json.loads(foreword("evaluate", model, data, "--json").stdout)
    assert told["accuracy"] == 1
    assert told["f1"] == 1
    assert told["accuracy_interval"][0] < 1 == told["accuracy_interval"][1]
    assert told["confusion"] == {"labels": ["ham", "spam"], "counts": [[5, 0], [0, 5]]}
    shown = foreword("evaluate", model, data).stdout
    assert "100.00% (95 % between 72.25% and 100.00%)" in shown
    assert "precision" in shown


def test_a_label_never_seen_in_training(foreword: Foreword, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    path.write_text("spam\ta prize now\nham\tat nine\nowl\tan owl hoots\n")
    result = foreword("evaluate", model, path, "--json")
    assert "labels never seen in training, whose texts count as wrong: owl (1)" in result.stderr
    told = json.loads(result.stdout)
    assert told["unseen_labels"] == {"owl": 1}
    assert told["accuracy"] == pytest.approx(2 / 3)


# Bad input


def refused(foreword: Foreword, said: str, *words: object, status: int = 1) -> None:
    result = foreword(*words)
    assert result.exit_code == status, result.output
    assert said in result.stderr
    if status == 1:
        assert result.stderr.splitlines()[-1].startswith("foreword: ")
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "a.csv",
            "text,label\none,x\ntwo,x\n",
            "all texts have the label 'x': a classifier needs two classes at least",
        ),
        ("a.csv", "text,label\none,x\ntwo\n", "a.csv: line 3 has 1 column, not 2 as the first line has"),
        ("a.csv", "text,label\none,x\ntwo,\n", "a.csv: line 3 has no label"),
        ("a.csv", "", "a.csv: no labelled text in it"),
        ("a.txt", "plain text\n", "a.txt: where are its labels?"),
        (
            "a.txt",
            "__label__x a\n__label__x __label__y b\n",
            "a.txt: line 2 has 2 labels, not one: --first-label takes",
        ),
        ("a.tsv", "x\tone\ny\t\xff\n", None),
    ],
)
def test_bad_data(name: str, text: str, said: str | None, foreword: Foreword, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode("latin-1"))
    refused(foreword, said or "invalid UTF-8", "classify", "train", path, "-o", tmp_path / "model")
    assert sorted(each.name for each in tmp_path.iterdir()) == [name]


def test_bad_calls(foreword: Foreword, model: Path, data: Path, tmp_path: Path, shelf: Path) -> None:
    train = ("classify", "train", data)
    out = ("-o", tmp_path / "model")
    refused(foreword, "name the folder to save the model in", *train, status=2)
    refused(foreword, "only a saved model is tested", *train, "--folds", 2, "--test", data, status=2)
    refused(foreword, "no kind 'forest': expected nb-logistic", *train, *out, "--kind", "forest", status=2)
    refused(foreword, "nb-logistic has no setting 'trees'", *train, *out, "--set", "trees=9", status=2)
    refused(foreword, "lowercase cannot be 'maybe'", *train, *out, "--set", "lowercase=maybe", status=2)
    refused(foreword, "no such file: nothing.csv", "classify", "train", "nothing.csv", *out)
    refused(foreword, 'no column "body"', *train, *out, "--text-column", "body")
    refused(
        foreword,
        "folds must be at least 2 and at most the number of texts, 10, not 11",
        *train,
        "--folds",
        11,
        status=2,
    )
    refused(foreword, "cannot write", *train, "-o", data)
    refused(foreword, "not text-classifier: foreword classify train makes one", "classify", "predict", shelf / "model")
    refused(foreword, "no such file", "classify", "predict", model, tmp_path / "nothing")
    refused(foreword, "text has no labels", "evaluate", model, data, "--format", "text", status=2)
    refused(foreword, "csv is for classifiers", "evaluate", shelf / "model", data, "--format", "csv", status=2)
