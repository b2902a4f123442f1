"""``foreword filter`` by label, by the rows' own fields and by statistics of the text; sidecar files."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Foreword

from foreword.fasttext.classifier import FastTextClassifier
from foreword.filtering.columns import find_column
from foreword.filtering.scoring import scorer_of
from foreword.filtering.settings import LabelSettings
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.storage.folder import load, save
from foreword.text.block import Block
from foreword.tokens.words import WordTokenizer

parquet = pytest.importorskip("pyarrow.parquet")

GOOD = ["theorem", "proof", "lemma", "equation", "energy", "history", "science", "paper", "results", "method"]
BAD = ["click", "here", "buy", "cheap", "now", "sale", "best", "price", "free", "shipping"]


def documents(count: int, seed: int) -> list[dict[str, Any]]:
    """Rows of good, bad and mixed words, with a language, a number and an id of their own."""
    rng, made = random.Random(seed), []
    for number in range(count):
        share = rng.random()
        words = [rng.choice(GOOD if rng.random() < share else BAD) for _ in range(rng.randint(3, 40))]
        made.append(
            {"id": f"d{number}", "text": " ".join(words), "lang": rng.choice(["hq", "lq", "de"]), "stars": number % 5}
        )
    return made


@pytest.fixture(scope="module")
def quality(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of hq and lq, as DCLM's."""
    rng = random.Random(0)
    texts = [" ".join(rng.choices(GOOD, k=20)) for _ in range(50)] + [
        " ".join(rng.choices(BAD, k=20)) for _ in range(50)
    ]
    path = tmp_path_factory.mktemp("quality") / "quality.bin"
    FastTextClassifier(8, epochs=5, rate=0.1).fit(texts, ["hq"] * 50 + ["lq"] * 50).write(path)
    return path


@pytest.fixture
def web(tmp_path: Path) -> Path:
    folder = tmp_path / "web"
    folder.mkdir()
    lines = [json.dumps(row) for row in documents(200, 1)]
    (folder / "a.jsonl").write_text("\n".join([*lines[:100], "", *lines[100:150]]) + "\n", encoding="utf-8")
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(("\n".join(lines[150:]) + "\n").encode()))
    return folder


def kept(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "a.jsonl").read_text().splitlines() + gzip.decompress(
        (folder / "b.jsonl.gz").read_bytes()
    ).decode().splitlines()
    return [json.loads(line) for line in lines if line]


def scores(quality: Path) -> list[float]:
    """The probability of hq of every document, by the scorer."""
    scorer = scorer_of(FastTextClassifier.load(quality), "", "", 1 << 20, LabelSettings(wanted=("hq",)))
    columns = scorer.columns(Block.from_texts([row["text"] for row in documents(200, 1)]))
    found: list[float] = find_column(columns, "p(hq)").values.tolist()
    return found


def run(foreword: Foreword, *words: Any) -> None:
    result = foreword("filter", *words, "-p", 1, "--quiet")
    assert result.exit_code == 0, result.stderr


def refused(foreword: Foreword, *words: Any) -> str:
    result = foreword("filter", *words, "-p", 1, "--quiet")
    assert result.exit_code != 0
    assert "Traceback" not in result.stderr
    return re.sub(r"[\s│]+", " ", result.stderr)


def test_a_threshold_on_one_label(foreword: Foreword, quality: Path, web: Path, tmp_path: Path) -> None:
    wanted = [row["id"] for row, p in zip(documents(200, 1), scores(quality), strict=True) if p >= 0.3]
    assert 20 < len(wanted) < 180
    run(foreword, quality, web, tmp_path / "plain", "--keep", "p(hq) >= 0.3")
    assert [row["id"] for row in kept(tmp_path / "plain")] == wanted
    run(foreword, "-m", f"q={quality}", web, tmp_path / "named", "--keep", "q_p('hq') >= 0.3", "--with-scores")
    named = kept(tmp_path / "named")
    assert [row["id"] for row in named] == wanted
    assert all(row["q_p(hq)"] >= 0.3 for row in named)
    assert set(named[0]) == {"id", "text", "lang", "stars", "q_label", "q_probability", "q_p(hq)"}


def test_a_percentile_needs_a_label(foreword: Foreword, quality: Path, web: Path, tmp_path: Path) -> None:
    """Issue 19, section 4: the best 10 % by p(hq), and a line that would work where no label is named."""
    told = refused(foreword, quality, web, tmp_path / "no", "--keep-percentile", 10)
    assert '--keep-percentile 10 --by "p(hq)"' in told
    assert not (tmp_path / "no").exists()
    told = refused(foreword, "-m", f"q={quality}", web, tmp_path / "no", "--buckets", "30,60", "--by", "q_probability")
    assert '--buckets 30,60 --by "q_p(hq)"' in told
    run(foreword, quality, web, tmp_path / "best", "--keep-percentile", 10, "--by", "p(hq)")
    ranked = sorted(scores(quality), reverse=True)
    wanted = {row["id"] for row, p in zip(documents(200, 1), scores(quality), strict=True) if p >= ranked[19]}
    assert {row["id"] for row in kept(tmp_path / "best")} == wanted
    run(foreword, quality, web, tmp_path / "each", "--keep-percentile", 50, "--each-label")  # each label has its own


def test_columns_compared_with_columns_and_literals(
    foreword: Foreword, quality: Path, web: Path, tmp_path: Path
) -> None:
    rows = documents(200, 1)
    labels = ["hq" if p >= 0.5 else "lq" for p in scores(quality)]
    run(foreword, quality, web, tmp_path / "same", "--keep", "label = column(lang)")
    assert [row["id"] for row in kept(tmp_path / "same")] == [
        row["id"] for row, label in zip(rows, labels, strict=True) if label == row["lang"]
    ]
    run(foreword, quality, web, tmp_path / "both", "--keep", "p(hq) > p(lq) and column(stars) >= 2")
    assert [row["id"] for row in kept(tmp_path / "both")] == [
        row["id"] for row, label in zip(rows, labels, strict=True) if label == "hq" and row["stars"] >= 2
    ]
    told = refused(foreword, quality, web, tmp_path / "no", "--keep", "label = lang")
    assert "label is never 'lang'" in told
    told = refused(foreword, quality, web, tmp_path / "no", "--keep", "lang = de")
    assert "a field of the rows is written column(lang)" in told


def test_rules_without_a_model(foreword: Foreword, web: Path, tmp_path: Path) -> None:
    rows = documents(200, 1)
    rule = "words >= 20 and column(lang) in hq, de and not column(stars) = 3"
    run(foreword, web, tmp_path / "kept", "--keep", rule)
    assert [row["id"] for row in kept(tmp_path / "kept")] == [
        row["id"] for row in rows if len(row["text"].split()) >= 20 and row["lang"] != "lq" and row["stars"] != 3
    ]
    run(foreword, web, tmp_path / "longest", "--keep-percentile", 5, "--by", "words")
    assert min(len(row["text"].split()) for row in kept(tmp_path / "longest")) >= 37
    run(foreword, web, tmp_path / "stars", "--keep-percentile", 20, "--by", "column(stars)")
    assert {row["stars"] for row in kept(tmp_path / "stars")} == {4}
    run(foreword, web, tmp_path / "scored", "--score-only", "--column", "mean_word_length", "--column", "words")
    assert kept(tmp_path / "scored")[0]["words"] == len(rows[0]["text"].split())
    told = refused(foreword, web, tmp_path / "no", "--keep", "perplexity<5")
    assert "expected MODEL, IN and OUT: perplexity is given by a model" in told


def test_the_k_best_and_restricted_labels(foreword: Foreword, quality: Path, web: Path, tmp_path: Path) -> None:
    run(foreword, quality, web, tmp_path / "two", "--score-only", "--top", 2)
    for row in kept(tmp_path / "two"):
        assert {row["label"], row["label_2"]} == {"hq", "lq"}
        assert row["probability"] >= row["probability_2"]
    run(foreword, quality, web, tmp_path / "after", "--score-only", "--labels", "lq")
    run(foreword, quality, web, tmp_path / "before", "--score-only", "--labels", "lq", "--restrict", "before")
    assert {row["label"] for row in kept(tmp_path / "after")} == {"lq"}
    assert min(row["probability"] for row in kept(tmp_path / "after")) < 0.4
    assert min(row["probability"] for row in kept(tmp_path / "before")) > 0.999
    assert "'xq' is not a label of the model; it has hq, lq" in refused(
        foreword, quality, web, tmp_path / "no", "--keep", "p(xq) > 0.5"
    )
    table = tmp_path / "table.tsv"
    table.write_text("hq\t0.7\nlq\t0.9\n")
    run(foreword, quality, web, tmp_path / "table", "--keep", "probability >= table", "--table", table)
    least = {"hq": 0.7, "lq": 0.9}
    assert [row["id"] for row in kept(tmp_path / "table")] == [
        row["id"] for row in kept(tmp_path / "two") if row["probability"] >= least[row["label"]]
    ]


def test_sidecars_have_a_row_for_every_row(foreword: Foreword, quality: Path, web: Path, tmp_path: Path) -> None:
    rows, shares = documents(200, 1), scores(quality)
    words = ("-m", f"q={quality}", web)
    run(foreword, *words, tmp_path / "table", "--sidecar", "parquet", "--column", "q_p(hq)", "--column", "words")
    a, b = (parquet.read_table(tmp_path / "table" / name).to_pylist() for name in ("a.parquet", "b.parquet"))
    assert [row["id"] for row in a] == [*(f"d{n}" for n in range(100)), None, *(f"d{n}" for n in range(100, 150))]
    assert list(a[0]) == ["id", "q_label", "q_probability", "q_p(hq)", "words"]
    assert [row["q_p(hq)"] for row in b] == shares[150:]
    run(foreword, *words, tmp_path / "dolma", "--sidecar", "dolma", "--column", "q_p(hq)", "--column", "words")
    lines = (tmp_path / "dolma" / "a.jsonl").read_text().splitlines()
    assert len(lines) == 151
    assert lines[100] == ""
    for line, row, share in zip(lines[:100], rows, shares, strict=False):
        found, size = json.loads(line), len(row["text"])
        assert found["id"] == row["id"]
        assert found["attributes"]["foreword__q__hq"] == [[0, size, share]]
        assert found["attributes"]["foreword__text__words"] == [[0, size, len(row["text"].split())]]
        assert ("foreword__q__lq" in found["attributes"]) == (share < 0.5)
    assert len(gzip.decompress((tmp_path / "dolma" / "b.jsonl.gz").read_bytes()).splitlines()) == 50
    told = refused(foreword, *words, tmp_path / "no", "--sidecar", "dolma", "--id", "key")
    assert 'a.jsonl: line 1 has no field "key": --id names the field of the ids' in told


def test_integer_ids_stay_integers_in_a_parquet_sidecar(
    foreword: Foreword, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """int64 where all ids of a file are integers; where a later one is not, all are strings."""
    monkeypatch.setattr("foreword.filtering.sidecar.GROUP_ROWS", 1)
    (tmp_path / "ids").mkdir()
    long = "word " * 100_000  # so that a file has several batches, and here as many row groups
    files: dict[str, list[Any]] = {
        "whole": [1, None, 3],
        "mixed": [1, "x", 3],
        "late": [*range(20), "x", 21, 1 << 70],
        "true": [1, True],
    }
    for name, ids in files.items():
        lines = ["" if each is None else json.dumps({"id": each, "text": long}) for each in ids]
        (tmp_path / "ids" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    run(foreword, tmp_path / "ids", tmp_path / "out", "--sidecar", "parquet", "--column", "words", "--processes", 1)
    found = {name: parquet.read_table(tmp_path / "out" / f"{name}.parquet") for name in files}
    assert found["whole"].schema.field("id").type == "int64"
    assert found["whole"].column("id").to_pylist() == [1, None, 3]
    assert found["mixed"].column("id").to_pylist() == ["1", "x", "3"]
    assert found["true"].column("id").to_pylist() == ["1", "true"]
    assert found["late"].column("id").to_pylist() == [*map(str, range(20)), "x", "21", str(1 << 70)]
    assert found["late"].column("words").to_pylist() == [100_000] * 23
    assert parquet.ParquetFile(tmp_path / "out" / "late.parquet").num_row_groups > 1


def test_a_sidecar_without_its_package_is_refused_at_the_start(
    foreword: Foreword, quality: Path, web: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foreword.filtering.settings.find_spec", lambda name: None)
    told = refused(foreword, quality, web, tmp_path / "out", "--sidecar", "parquet")
    assert "--sidecar parquet needs pyarrow: pip install" in told
    assert not (tmp_path / "out").exists()


def test_a_sidecar_has_all_rows(foreword: Foreword, quality: Path, web: Path, tmp_path: Path) -> None:
    told = refused(foreword, quality, web, tmp_path / "out", "--sidecar", "dolma", "--keep", "label=hq")
    assert "--sidecar writes the scores of all rows" in told
    assert "--score-only" not in told


def test_a_model_for_every_label(foreword: Foreword, quality: Path, web: Path, tmp_path: Path) -> None:
    """Rows of hq are scored by the model of hq; lq has none, and its rows no score."""
    save(TextLM(WordTokenizer(), NgramLM(2, "witten-bell")).fit([" ".join(GOOD)]), tmp_path / "lm-hq")
    words = ("-m", f"q={quality}", "-m", f"wiki={tmp_path}/lm-{{q_label}}", web)
    run(foreword, *words, tmp_path / "scored", "--score-only")
    model = load(tmp_path / "lm-hq")
    for row in kept(tmp_path / "scored"):
        if row["q_label"] == "hq":
            assert row["wiki_score"] == pytest.approx(model.score(row["text"]))
        else:
            assert row["wiki_score"] is None
            assert row["wiki_tokens"] == 0
    run(foreword, *words, tmp_path / "best", "--keep-percentile", 50)
    assert {row["lang"] for row in kept(tmp_path / "best")} == {"hq", "lq", "de"}
    without = sum(row["q_label"] == "lq" for row in kept(tmp_path / "scored"))
    said = foreword("filter", *words, tmp_path / "told", "--score-only", "--processes", 1).stderr
    assert f"\n{without} documents have no wiki_perplexity: no model for lq\n" in said
    told = refused(foreword, "-m", f"wiki={tmp_path}/lm-{{q_label}}", "-m", f"q={quality}", web, tmp_path / "no",
                   "--score-only")  # fmt: skip
    assert "no model before it gives the labels q_label" in told


def test_predictions_of_named_labels(foreword: Foreword, quality: Path, web: Path) -> None:
    """``classify predict --label`` prints the probability of a label, whether or not it is the best."""
    shares = scores(quality)
    result = foreword("classify", "predict", quality, web / "a.jsonl", "--label", "hq", "--label", "lq")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[100] == ""
    assert [float(line.split("\t")[0]) for line in lines[:100]] == pytest.approx(shares[:100], abs=1e-6)
    found = foreword("classify", "predict", quality, web / "a.jsonl", "--label", "hq", "-k", 1, "--json").stdout
    row = json.loads(found.splitlines()[0])
    assert row["p(hq)"] == pytest.approx(shares[0], abs=1e-6)
    assert len(row["probabilities"]) == 1
    assert (
        "no label of the model; it has hq, lq"
        in foreword("classify", "predict", quality, web / "a.jsonl", "--label", "xq").stderr
    )


def test_the_expected_grade(foreword: Foreword, web: Path, tmp_path: Path) -> None:
    """Labels that are numbers: their mean by probability, in rules, percentiles and with fewer labels."""
    rng = random.Random(3)
    grades = [rng.randrange(4) for _ in range(200)]
    texts = [" ".join(rng.choices(GOOD, k=4 * grade) + rng.choices(BAD, k=12 - 4 * grade)) for grade in grades]
    model = FastTextClassifier(8, loss="regression", epochs=10, rate=1.0).fit(texts, [str(grade) for grade in grades])
    model.write(tmp_path / "grades.bin")
    rows = documents(200, 1)
    found = model.predict_grades(row["text"] for row in rows)
    run(foreword, "-m", f"edu={tmp_path / 'grades.bin'}", web, tmp_path / "kept", "--keep", "edu_grade >= 1.5",
        "--with-scores")  # fmt: skip
    wanted = {row["id"]: grade for row, grade in zip(rows, found, strict=True) if grade >= 1.5}
    assert 20 < len(wanted) < 180
    assert {row["id"]: row["edu_grade"] for row in kept(tmp_path / "kept")} == pytest.approx(wanted, abs=1e-4)
    run(foreword, tmp_path / "grades.bin", web, tmp_path / "best", "--keep-percentile", 10, "--by", "grade",
        "--labels", "2,3", "--restrict", "before", "--with-scores")  # fmt: skip
    best = kept(tmp_path / "best")
    assert len(best) == 20
    assert all(2 <= row["grade"] <= 3 for row in best)


def test_a_grade_needs_numbers(foreword: Foreword, quality: Path, web: Path, tmp_path: Path) -> None:
    told = refused(foreword, quality, web, tmp_path / "no", "--keep", "grade >= 3")
    assert "the label 'hq' is not a number" in told or "the label 'lq' is not a number" in told


def test_options_of_classifiers_without_one_are_refused(
    foreword: Foreword, quality: Path, web: Path, tmp_path: Path
) -> None:
    save(TextLM(WordTokenizer(), NgramLM(2, "witten-bell")).fit([" ".join(GOOD)]), tmp_path / "lm")
    out = tmp_path / "out"
    alone = (tmp_path / "lm", web, out, "--score-only")
    for option, value in (("--labels", "en,fr"), ("--clean", "openlid")):
        assert f"{option}: no model here is a classifier" in refused(foreword, *alone, option, value)
    both = ("-m", f"lm={tmp_path / 'lm'}", "-m", f"q={quality}", web, out, "--score-only")
    assert "--labels: lm is no classifier" in refused(foreword, *both, "--labels", "lm=hq")
    run(foreword, *both, "--labels", "hq", "--clean", "lm=ccnet", "--clean", "q=openlid")


def test_a_field_that_no_row_has_is_reported(foreword: Foreword, web: Path, tmp_path: Path) -> None:
    result = foreword("filter", web, tmp_path / "out", "--keep", "column(nope)=en", "--processes", 1, "--quiet")
    assert result.exit_code == 0
    assert result.stderr == "foreword: warning: no document has the field of column(nope): is it misspelt?\n"
    some = foreword("filter", web, tmp_path / "some", "--keep", "column(lang)=xx", "--processes", 1, "--quiet")
    assert some.stderr == ""


def test_a_misspelt_statistic_without_a_model(foreword: Foreword, web: Path, tmp_path: Path) -> None:
    result = foreword("filter", web, tmp_path / "out", "--keep", "nowords>5")
    told = " ".join(result.stderr.replace("│", " ").split())
    assert result.exit_code == 2
    assert "nowords (did you mean words?) is given by a model; without one, rules compare fields" in told
    assert "statistics of the text: characters, words, lines" in told


def test_another_file_in_a_pair_is_named(foreword: Foreword, quality: Path, web: Path, tmp_path: Path) -> None:
    (tmp_path / "lm.arpa").write_text("\\data\\\nngram 1=1\n\n\\1-grams:\n-1\t</s>\n\n\\end\\\n")
    (tmp_path / "x.bin").write_bytes(b"\x00" * 100)
    (tmp_path / "en.sp.model").write_bytes(b"")
    save(TextLM(WordTokenizer(), NgramLM(2, "witten-bell")).fit([" ".join(GOOD)]), tmp_path / "folder")
    for name, said in (
        (quality, "it looks like fastText"), (tmp_path / "lm.arpa", "it looks like ARPA"),
        (tmp_path / "x.bin", "neither a KenLM binary nor another file"), (tmp_path / "folder", "a folder"),
    ):  # fmt: skip
        told = refused(foreword, f"{name}+{tmp_path}/en.sp.model", web, tmp_path / "no", "--score-only")
        assert f"{name}: {said}" in told
        assert "expected a KenLM binary before the +" in told
