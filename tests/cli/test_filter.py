"""``foreword filter`` as a person and a script meet it."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Foreword

from foreword.classify.naive_bayes import NaiveBayes
from foreword.fasttext.classifier import FastTextClassifier
from foreword.filtering.ledger import FOLDER
from foreword.hmm.model import HMM
from foreword.ngram.arpa import write_arpa
from foreword.ngram.model import NgramLM
from foreword.pipeline.classifier import TextClassifier
from foreword.pipeline.language import TextLM
from foreword.storage.folder import save
from foreword.tokens.words import WordTokenizer

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
zstandard = pytest.importorskip("zstandard")

ENGLISH = [
    "the cat sat on the mat and the dog sat on the log",
    "the dog and the cat were on the mat",
    "a cat is on the log and a dog is not",
]
GERMAN = [
    "die Katze saß auf der Matte und der Hund auf dem Stamm",
    "der Hund und die Katze waren auf der Matte",
    "eine Katze ist auf dem Stamm und ein Hund nicht",
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of each family that reads text, small: ngram, arpa, hmm, fasttext.bin, nb."""
    folder = tmp_path_factory.mktemp("models")
    texts, labels = ENGLISH + GERMAN, ["en"] * 3 + ["de"] * 3
    ngram = TextLM(WordTokenizer(), NgramLM(3, "witten-bell")).fit(ENGLISH)
    save(ngram, folder / "ngram")
    write_arpa(ngram.model, folder / "model.arpa")  # type: ignore[arg-type]
    save(TextLM(WordTokenizer(), HMM(3, iterations=2)).fit(ENGLISH), folder / "hmm")
    FastTextClassifier(4, epochs=200, rate=0.5, buckets=100, min_n=2, max_n=3).fit(texts, labels).write(
        folder / "lid.bin"
    )
    save(TextClassifier(model=NaiveBayes()).fit(texts, labels), folder / "nb")
    return folder


def rows(count: int = 60, seed: int = 0) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    made: list[dict[str, Any]] = []
    for number in range(count):
        words = rng.choice(ENGLISH + GERMAN).split()
        rng.shuffle(words)
        made.append({"id": number, "text": " ".join(words) + '\n"é" \u2028 \U0001f642', "more": {"deep": [1.0, None]}})
    return made


def as_jsonl(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=row["id"] % 2 == 0) + "\n" for row in rows).encode()


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """A folder of three shards: plain, gzip, Zstandard; 60 rows."""
    folder, made = tmp_path / "web", rows()
    (folder / "deep").mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(as_jsonl(made[:20]))
    (folder / "b.json.gz").write_bytes(gzip.compress(as_jsonl(made[20:40])))
    (folder / "deep" / "c.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(as_jsonl(made[40:])))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """What a run has written, by name, decompressed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and FOLDER not in path.parts:
            data = path.read_bytes()
            if path.suffix == ".gz":
                data = gzip.decompress(data)
            if path.suffix == ".zst":
                data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
            found[str(path.relative_to(folder))] = data
    return found


def raw(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and FOLDER not in path.parts
    }


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for data in contents(folder).values() for line in data.splitlines()]


def test_scores_are_those_of_the_model_and_bytes_stay(
    foreword: Foreword, models: Path, web: Path, tmp_path: Path
) -> None:
    done = foreword("filter", models / "ngram", web, tmp_path / "out", "--score-only", "-p", 1)
    assert done.exit_code == 0, done.stderr
    from foreword import load

    model, found = load(models / "ngram"), contents(tmp_path / "out")
    assert list(found) == ["a.jsonl", "b.json.gz", "deep/c.jsonl.zst"]
    before = [line for data in contents(web).values() for line in data.splitlines()]
    after = [line for data in found.values() for line in data.splitlines()]
    assert len(before) == len(after) == 60
    for old, new in zip(before, after, strict=True):
        assert new.startswith(old[:-1] + b', "score": ')
        row, text = json.loads(new), json.loads(old)["text"]
        assert list(row) == ["id", "text", "more", "score", "tokens", "oov", "perplexity"]
        assert row["score"] == pytest.approx(model.score(text), rel=1e-12)
        assert row["tokens"] == len(text.split()) + 1
        assert row["oov"] == sum(word not in " ".join(ENGLISH).split() for word in text.split())
        assert row["perplexity"] == pytest.approx(model.perplexity([text]), rel=1e-12)


@pytest.mark.parametrize("name", ["ngram", "model.arpa", "hmm", "lid.bin", "nb"])
def test_any_model_keeps_the_same_rows_in_any_format(
    foreword: Foreword, models: Path, tmp_path: Path, name: str
) -> None:
    made = [{"id": number, "text": row["text"].replace("\n", " ")} for number, row in enumerate(rows())]
    sources = {kind: tmp_path / kind for kind in ("jsonl", "parquet", "text")}
    for folder in sources.values():
        folder.mkdir()
    (sources["jsonl"] / "x.jsonl").write_bytes(as_jsonl(made))
    table = pyarrow.Table.from_pylist(made).replace_schema_metadata({"who": "we"})
    parquet.write_table(table, sources["parquet"] / "x.parquet", compression="zstd", row_group_size=7)
    (sources["text"] / "x.txt").write_text("".join(row["text"] + "\n" for row in made), "utf-8")
    rule = "perplexity<30" if name in ("ngram", "model.arpa", "hmm") else "label=de and probability>0.5"
    for kind, folder in sources.items():
        done = foreword("filter", models / name, folder, tmp_path / f"{kind}-out", "--keep", rule, "-p", 1)
        assert done.exit_code == 0, done.stderr
    kept = lines(tmp_path / "jsonl-out")
    assert 0 < len(kept) < len(made)
    read = parquet.read_table(tmp_path / "parquet-out" / "x.parquet")
    assert read.to_pylist() == kept
    assert read.schema.equals(table.schema, check_metadata=True)
    assert (
        parquet.ParquetFile(tmp_path / "parquet-out" / "x.parquet").metadata.row_group(0).column(0).compression
        == "ZSTD"
    )
    text = (tmp_path / "text-out" / "x.txt").read_text("utf-8")
    assert text == "".join(row["text"] + "\n" for row in kept)


@pytest.mark.long
@pytest.mark.parametrize("name", ["logistic", "lstm", "gru-classifier"])
def test_learnt_weights_filter_too(foreword: Foreword, tmp_path: Path, name: str) -> None:
    """Logistic regression, a recurrent language model and a recurrent classifier: scores, columns and two processes."""
    if name != "logistic":
        pytest.importorskip("torch")
    texts, labels = (ENGLISH + GERMAN) * 4, (["en"] * 3 + ["de"] * 3) * 4
    model: Any
    if name == "logistic":
        from foreword.classify.logistic import LogisticRegression

        model = TextClassifier(model=LogisticRegression()).fit(texts, labels)
    elif name == "lstm":
        from foreword.neural.recurrent import RecurrentLM

        model = TextLM(WordTokenizer(), RecurrentLM("lstm", 8, 8, 1, device="cpu")).fit(texts)
    else:
        from foreword.classify.recurrent import RecurrentClassifier

        sizes: dict[str, Any] = {"embedding": 8, "hidden": 8, "units": 4, "epochs": 2, "min_count": 1}
        model = RecurrentClassifier(cell="gru", device="cpu", **sizes).fit(texts, labels)
    save(model, tmp_path / "model")
    made = [*rows(24), {"id": 24, "text": None}, {"id": 25, "text": " "}]
    (tmp_path / "web").mkdir()
    for place in range(2):
        (tmp_path / "web" / f"{place}.jsonl").write_bytes(as_jsonl(made[place::2]))
    for processes in (1, 2):
        command = ("filter", tmp_path / "model", tmp_path / "web", tmp_path / str(processes), "--score-only")
        done = foreword(*command, "-p", processes)
        assert done.exit_code == 0, done.stderr
    assert raw(tmp_path / "1") == raw(tmp_path / "2")
    for row in lines(tmp_path / "1"):
        if row["id"] >= 24:
            assert row["perplexity" if name == "lstm" else "label"] is None
        elif name == "lstm":
            assert row["score"] == pytest.approx(model.score(row["text"]), abs=1e-4)
            assert row["perplexity"] == pytest.approx(model.perplexity([row["text"]]), rel=1e-5)
        else:
            chances = dict(zip(model.classes_, np.exp(model.predict_log_proba([row["text"]])[0]), strict=True))
            assert row["label"] == max(chances, key=lambda label: chances[label])
            assert row["probability"] == pytest.approx(max(chances.values()), abs=2e-6)
    rule = "perplexity<15" if name == "lstm" else "label=de"
    done = foreword("filter", tmp_path / "model", tmp_path / "web", tmp_path / "kept", "--keep", rule, "-p", 1)
    assert done.exit_code == 0, done.stderr
    scored = lines(tmp_path / "1")
    passing = [row["id"] for row in scored if row.get("label") == "de" or (row.get("perplexity") or 99) < 15]
    assert [row["id"] for row in lines(tmp_path / "kept")] == passing


def test_parquet_and_text_get_columns_too(foreword: Foreword, models: Path, tmp_path: Path) -> None:
    made = [*rows(20), {"id": 20, "text": None, "more": None}]
    (tmp_path / "in").mkdir()
    parquet.write_table(pyarrow.Table.from_pylist(made), tmp_path / "in" / "x.parquet")
    (tmp_path / "in" / "x.txt").write_text("the cat\r\n\n der Hund\n", "utf-8", newline="")
    done = foreword(
        "filter", "-m", f"lid={models / 'lid.bin'}", "-m", f"lm={models / 'ngram'}", tmp_path / "in", tmp_path / "out",
        "--score-only", "-p", 1,
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    table = parquet.read_table(tmp_path / "out" / "x.parquet")
    names = ["lid_label", "lid_probability", "lm_score", "lm_tokens", "lm_oov", "lm_perplexity"]
    assert table.column_names == ["id", "text", "more", *names]
    assert table.drop_columns(names).to_pylist() == made
    assert {row["lid_label"] for row in table.to_pylist()} == {"en", "de", None}
    assert table.to_pylist()[20]["lm_perplexity"] is None
    text = (tmp_path / "out" / "x.txt").read_bytes().decode().split("\n")
    assert re.fullmatch(r"en\t0\.\d+\t-\d+\.\d+\t3\t0\t\d+\.\d+\tthe cat\r", text[0])
    assert text[1] == ""
    assert text[2].startswith("de\t")
    assert text[2].endswith("\t der Hund")
    assert text[3:] == [""]


def test_several_processes_and_any_resume_give_the_same_bytes(
    foreword: Foreword, models: Path, web: Path, tmp_path: Path
) -> None:
    rule = ("--keep", "label=en and probability>0.6", "--with-scores")
    one = foreword("filter", models / "lid.bin", web, tmp_path / "one", *rule, "-p", 1, "--json")
    two = foreword("filter", models / "lid.bin", web, tmp_path / "two", *rule, "-p", 2, "--json")
    assert one.exit_code == two.exit_code == 0, two.stderr
    assert raw(tmp_path / "one") == raw(tmp_path / "two")
    assert {**json.loads(one.stdout), "seconds": 0} == {**json.loads(two.stdout), "seconds": 0}
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "two").rglob("*.*") if FOLDER not in path.parts}
    (tmp_path / "two" / "a.jsonl").unlink()
    again = foreword("filter", models / "lid.bin", web, tmp_path / "two", *rule, "-p", 1, "--json")
    assert raw(tmp_path / "one") == raw(tmp_path / "two")
    assert json.loads(again.stdout)["documents"] == 60
    unchanged = [path for path, when in before.items() if path.stat().st_mtime_ns == when]
    assert sorted(path.name for path in unchanged) == ["b.json.gz", "c.jsonl.zst"]


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps the time of creation instead")
def test_a_shard_rewritten_with_the_same_size_and_time_is_filtered_again(
    foreword: Foreword, models: Path, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    shard = tmp_path / "in" / "a.jsonl"
    asked = ("filter", models / "ngram", tmp_path / "in", tmp_path / "out", "--score-only", "-p", 1)
    shard.write_text('{"text": "the cat"}\n')
    before = shard.stat()
    assert foreword(*asked).exit_code == 0
    shard.write_text('{"text": "der cat"}\n')
    os.utime(shard, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert shard.stat().st_mtime_ns == before.st_mtime_ns
    assert foreword(*asked).exit_code == 0
    assert "der cat" in (tmp_path / "out" / "a.jsonl").read_text()


def test_summary_and_picture(foreword: Foreword, models: Path, web: Path, tmp_path: Path) -> None:
    rule = "label=en and (probability>0.99 or not probability<0.7)"
    done = foreword(
        "filter", models / "lid.bin", web, tmp_path / "out", "--keep", rule, "--report", tmp_path / "p.svg", "-p", 1
    )
    assert done.exit_code == 0
    assert "60 documents" in done.stderr
    assert "rejected by label=en" in done.stderr
    facts = json.loads(
        foreword("filter", models / "lid.bin", web, tmp_path / "out", "--keep", rule, "--json", "-p", 1).stdout
    )
    assert facts["documents"] == 60
    assert facts["kept"] == len(lines(tmp_path / "out"))
    assert facts["kept"] + sum(facts["rejected"].values()) == 60
    assert sum(facts["histograms"]["label"].values()) == sum(facts["histograms"]["probability"].values()) == 60
    assert "<svg" in (tmp_path / "p-label.svg").read_text()
    assert "<svg" in (tmp_path / "p-probability.svg").read_text()


@pytest.mark.parametrize("percent", [10, 50, 100])
def test_percentile_is_exact(foreword: Foreword, models: Path, web: Path, tmp_path: Path, percent: int) -> None:
    assert foreword("filter", models / "ngram", web, tmp_path / "all", "--score-only", "-p", 1).exit_code == 0
    done = foreword("filter", models / "ngram", web, tmp_path / "best", "--keep-percentile", percent, "-p", 1, "--json")
    assert done.exit_code == 0, done.stderr
    values = {row["id"]: row["perplexity"] for row in lines(tmp_path / "all")}
    limit = sorted(values.values())[60 * percent // 100 - 1]
    assert [row["id"] for row in lines(tmp_path / "best")] == [id for id, value in values.items() if value <= limit]
    assert json.loads(done.stdout)["thresholds"] == {"*": [limit]}


def test_buckets_by_percent_and_by_table(foreword: Foreword, models: Path, web: Path, tmp_path: Path) -> None:
    both = ("-m", f"lid={models / 'lid.bin'}", "-m", f"lm={models / 'ngram'}", web)
    done = foreword("filter", *both, tmp_path / "b", "--buckets", "30,60", "--each-label", "-p", 1, "--json")
    assert done.exit_code == 0, done.stderr
    found = lines(tmp_path / "b")
    thresholds = json.loads(done.stdout)["thresholds"]
    assert set(thresholds) == {"en", "de"}
    assert len(found) == 60
    for language, (head, middle) in thresholds.items():
        mine = [row for row in found if row["lid_label"] == language]
        values = sorted(row["lm_perplexity"] for row in mine)
        assert head == values[-(-len(values) * 30 // 100) - 1]
        assert all(
            row["bucket"]
            == ("head" if row["lm_perplexity"] <= head else "middle" if row["lm_perplexity"] <= middle else "tail")
            for row in mine
        )
    (tmp_path / "t.tsv").write_text("label\thead\tmiddle\nen\t5\t9\n")
    done = foreword(
        "filter", *both, tmp_path / "t", "--buckets", "table", "--table", tmp_path / "t.tsv", "--keep", "bucket=head",
        "-p", 1,
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    wanted = [row["id"] for row in found if row["lid_label"] == "en" and row["lm_perplexity"] <= 5]
    assert [row["id"] for row in lines(tmp_path / "t")] == wanted
    (tmp_path / "one.json").write_text('{"en": 9, "*": 13}')
    done = foreword(
        "filter", *both, tmp_path / "l", "--keep", "lm_perplexity<table", "--table", tmp_path / "one.json", "-p", 1
    )
    assert done.exit_code == 0, done.stderr
    wanted = [row["id"] for row in found if row["lm_perplexity"] < {"en": 9, "de": 13}[row["lid_label"]]]
    assert [row["id"] for row in lines(tmp_path / "l")] == wanted


# --- bad input


def one_file(tmp_path: Path, data: bytes, name: str = "x.jsonl") -> Path:
    (tmp_path / "in").mkdir(exist_ok=True)
    (tmp_path / "in" / name).write_bytes(data)
    return tmp_path / "in"


GOOD = b'{"text": "the cat"}\n'


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (
            GOOD + b'{"txt": "a"}\n',
            r'x.jsonl: line 2 has no field "text" \(it has: txt\) \(the line begins at byte 20\)',
        ),
        (GOOD + b'{"text": 7}\n', r'x.jsonl: line 2 has a field "text" that is not a string'),
        (GOOD + b'{"text": "a"\n', r"x.jsonl: line 2 is not JSON: .* \(the line begins at byte 20\)"),
        (GOOD + b'{"text": "\xff"}\n', r"x.jsonl: invalid UTF-8 at byte 30"),
        (
            GOOD + b'{"text": "' + b"x" * (5 << 20) + b'"}',
            r"x.jsonl: the line that begins at byte 20 has more than 4,194",
        ),
    ],
)
def test_a_broken_shard_is_told_or_left_out(
    foreword: Foreword, models: Path, tmp_path: Path, data: bytes, told: str
) -> None:
    source = one_file(tmp_path, data)
    one_file(tmp_path, GOOD, "y.jsonl")
    rule = ("--keep", "tokens>1", "--longest", "4M", "-p", 1)
    done = foreword("filter", models / "ngram", source, tmp_path / "out", *rule)
    assert done.exit_code == 1
    assert re.search(told, done.stderr), done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out" / "x.jsonl").exists()
    skipped = foreword("filter", models / "ngram", source, tmp_path / "out", *rule, "--on-error", "skip", "--json")
    assert skipped.exit_code == 1
    assert re.search(f"left out: .*{told}", skipped.stderr)
    assert json.loads(skipped.stdout)["kept"] == 1
    assert contents(tmp_path / "out") == {"y.jsonl": GOOD}
    one_file(tmp_path, GOOD)  # put right, the run goes on
    assert foreword("filter", models / "ngram", source, tmp_path / "out", *rule).exit_code == 0
    assert contents(tmp_path / "out") == {"x.jsonl": GOOD, "y.jsonl": GOOD}


def test_truncated_gzip_and_no_parquet(foreword: Foreword, models: Path, tmp_path: Path) -> None:
    source = one_file(tmp_path, gzip.compress(as_jsonl(rows()))[:-30], "x.jsonl.gz")
    done = foreword("filter", models / "ngram", source, tmp_path / "out", "--score-only", "-p", 1)
    assert done.exit_code == 1
    assert re.search(r"x.jsonl.gz: the file is truncated \(after [\d,]+ bytes", done.stderr)
    source = one_file(tmp_path, b"PAR1 and nothing", "x.parquet")
    done = foreword("filter", models / "ngram", source / "x.parquet", tmp_path / "out2", "--score-only", "-p", 1)
    assert done.exit_code == 1
    assert "x.parquet: not a Parquet file" in done.stderr


def test_odd_but_good_files(foreword: Foreword, models: Path, tmp_path: Path) -> None:
    """Empty, a byte order mark, CRLF, null texts, blank lines, white space behind the brace, no last line feed."""
    odd = b'\xef\xbb\xbf{"text": "the cat"} \r\n\r\n{"text": null, "a": 1}\r\n{ "text" : "" }\n'
    odd += b'{"a": "}", "text": "the dog"}'
    source = one_file(tmp_path, odd)
    one_file(tmp_path, b"", "empty.jsonl")
    done = foreword("filter", models / "ngram", source, tmp_path / "all", "--score-only", "-p", 1)
    assert done.exit_code == 0, done.stderr
    found = contents(tmp_path / "all")
    assert found["empty.jsonl"] == b""
    first, blank, null, empty, last, end = found["x.jsonl"].split(b"\n")
    assert first.startswith(b'{"text": "the cat", "score": -')
    assert first.endswith(b"} \r")
    assert blank == b"\r"
    assert null == b'{"text": null, "a": 1, "score": null, "tokens": 0, "oov": 0, "perplexity": null}\r'
    assert empty == b'{ "text" : "" , "score": null, "tokens": 0, "oov": 0, "perplexity": null}'
    assert last.startswith(b'{"a": "}", "text": "the dog", "score": -')
    assert end == b""
    done = foreword("filter", models / "ngram", source, tmp_path / "kept", "--keep", "oov=0", "-p", 1, "--json")
    assert contents(tmp_path / "kept")["x.jsonl"] == b'{"text": "the cat"} \r\n{"a": "}", "text": "the dog"}\n'
    facts = json.loads(done.stdout)
    assert (facts["documents"], facts["kept"], facts["rejected"]) == (4, 2, {"no text": 2, "oov=0": 0})


def test_a_column_that_is_there_already(foreword: Foreword, models: Path, tmp_path: Path) -> None:
    source = one_file(
        tmp_path, b'{"text": "perplexity", "a": {"perplexity": 1}}\n{"perplexity": 3, "text": "the cat"}\n'
    )
    done = foreword("filter", models / "ngram", source, tmp_path / "out", "--score-only", "-p", 1)
    assert done.exit_code == 1
    assert 'line 2 has a field "perplexity" already' in done.stderr
    named = foreword("filter", f"lm={models / 'ngram'}", source, tmp_path / "named", "--score-only", "-p", 1)
    assert named.exit_code == 0
    assert b'"lm_perplexity": ' in contents(tmp_path / "named")["x.jsonl"]


def test_wrong_calls(foreword: Foreword, models: Path, web: Path, tmp_path: Path) -> None:
    def told(*words: object, out: Path = tmp_path / "out", model: str = "lid.bin") -> str:
        done = foreword("filter", models / model, web, out, "-p", 1, *words)
        assert done.exit_code in (1, 2)
        return done.stderr

    assert "what is to be done" in told()
    assert "there is no column 'perplexity'" in told("--keep", "perplexity<5")
    assert "is never 'fr'; it is one of" in told("--keep", "label=fr")
    assert "expected =, !=" in told("--keep", "label")
    assert "a bracket is not closed" in told("--keep", "(label=en")
    assert not (tmp_path / "out").exists()
    assert "is inside" in told("--score-only", out=web / "out")
    assert "is inside" in told("--score-only", out=tmp_path)
    assert "no model there" in told("--score-only", model="nothing")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("precious")
    assert "not empty" in told("--score-only", out=tmp_path / "full")
    assert foreword("filter", models / "lid.bin", web, tmp_path / "done", "-p", 1, "--score-only").exit_code == 0
    assert "holds a run with other settings (keep)" in told("--keep", "label=en", out=tmp_path / "done")
    assert (
        foreword(
            "filter", models / "lid.bin", web, tmp_path / "done", "-p", 1, "--keep", "label=en", "--restart"
        ).exit_code
        == 0
    )
    assert 0 < len(lines(tmp_path / "done")) < 60


def test_a_stream_passes_by(foreword: Foreword, models: Path, web: Path, tmp_path: Path) -> None:
    rule = ("--keep", "label=en and probability>0.6", "--with-scores")
    assert foreword("filter", models / "lid.bin", web, tmp_path / "out", *rule, "-p", 1).exit_code == 0
    kept = b"".join(contents(tmp_path / "out").values())
    assert kept
    everything = b"".join(contents(web).values())
    for data in (everything, gzip.compress(everything)):
        done = foreword("filter", models / "lid.bin", "-", "-", *rule, input=data)
        assert (done.exit_code, done.stdout_bytes) == (0, kept), done.stderr
        assert "60 documents" in done.stderr
    done = foreword("filter", models / "lid.bin", web, "-", *rule, "--quiet")
    assert (done.exit_code, done.stdout_bytes, done.stderr) == (0, kept, "")
    lines = "the cat\n\nder Hund\n"
    done = foreword("filter", models / "lid.bin", "-", "-", "--keep", "label=de", "--format", "text", input=lines)
    assert (done.exit_code, done.stdout) == (0, "der Hund\n")
    assert not foreword("filter", models / "lid.bin", "-", "-", "--keep", "label=de", "-q", input="").stdout


def test_a_stream_has_limits_that_are_told(foreword: Foreword, models: Path, tmp_path: Path) -> None:
    def told(*words: object, status: int = 2) -> str:
        done = foreword("filter", models / "lid.bin", *words, input=GOOD + b'{"txt": 1}\n')
        assert done.exit_code == status, done.stderr
        return " ".join(done.stderr.split())

    keep = ("--keep", "label in en,de")
    assert "gives no name to a file" in told("-", tmp_path / "out", *keep)
    for words in (["-p", 2], ["--on-error", "skip"], ["--restart"], ["--json"]):
        assert "by one process" in told("-", "-", *keep, *words)
    assert "percentiles need two passes" in told("-", "-", "--keep-percentile", 10)
    assert "percentiles need two passes" in told("-", "-", "--buckets", "30,60")
    assert "Parquet" in told("-", "-", *keep, "--format", "parquet")
    assert 'standard input: line 2 has no field "text" (it has: txt)' in told("-", "-", *keep, status=1)
    assert list(tmp_path.iterdir()) == []


def test_a_stream_ends_quietly_when_its_reader_has_enough(models: Path, tmp_path: Path) -> None:
    row = as_jsonl(rows(1)).decode().strip()
    filtering = f"{sys.executable} -m foreword filter {models / 'ngram'} - - --keep 'tokens>1'"
    script = f"yes '{row}' | head -c 60000000 | {filtering} | head -1; echo ${{PIPESTATUS[2]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines(), done.stderr) == ([row, "141"], "")


@pytest.mark.long
def test_a_script_without_a_guard_is_told_so(models: Path, web: Path, tmp_path: Path) -> None:
    calls = (
        "from foreword.filtering import Filtering, filter_files",
        f"rules = Filtering([('', {str(models / 'ngram')!r})], score_only=True)",
        f"print(filter_files({str(web)!r}, {str(tmp_path / 'out')!r}, rules, processes=2).tally.kept)",
    )
    script = tmp_path / "script.py"
    script.write_text("\n".join(calls))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    told = done.stderr.splitlines()
    assert told[-1].startswith("foreword.errors.ForewordError: no process could begin: each imports your script")
    assert 'if __name__ == "__main__":' in told[-1]
    assert done.stderr.count("Error: ") == 2  # that one, and the cause that it names; nothing from the processes
    script.write_text("\n".join([calls[0], 'if __name__ == "__main__":', *(f"    {call}" for call in calls[1:])]))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "60\n"), done.stderr


def test_out_that_cannot_be_made(foreword: Foreword, models: Path, web: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = foreword("filter", models / "lid.bin", web, tmp_path / "file" / "out", "-p", 1, "--score-only")
    assert done.exit_code == 1
    assert "cannot write" in done.stderr
    done = foreword("filter", models / "lid.bin", web, tmp_path / "file", "-p", 1, "--score-only")
    assert "OUT is a folder" in done.stderr
    assert (tmp_path / "file").read_text() == "not a folder"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_out(foreword: Foreword, models: Path, web: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    done = foreword("filter", models / "lid.bin", web, tmp_path / "locked" / "out", "-p", 1, "--score-only")
    assert done.exit_code == 1
    assert "cannot write" in done.stderr


def test_full_disk(
    foreword: Foreword, models: Path, web: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    from foreword.filtering.output import LineWriter

    def refuse(self: LineWriter, *what: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(LineWriter, "write", refuse)
        done = foreword(
            "filter", models / "lid.bin", web, tmp_path / "out", "-p", 1, "--score-only", "--on-error", "skip"
        )
    assert done.exit_code == 1
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1
    assert raw(tmp_path / "out") == {}
    assert foreword("filter", models / "lid.bin", web, tmp_path / "out", "-p", 1, "--score-only").exit_code == 0
    assert len(lines(tmp_path / "out")) == 60


@pytest.mark.long
def test_killed_at_random_moments_ends_in_the_same_bytes(foreword: Foreword, models: Path, tmp_path: Path) -> None:
    source = tmp_path / "web"
    source.mkdir()
    for number in range(12):
        (source / f"{number:02}.jsonl").write_bytes(as_jsonl(rows(3000, number)))
    words = ["filter", models / "ngram", source, tmp_path / "out", "--keep-percentile", 40, "--quiet", "-p"]
    clean = foreword(*[tmp_path / "clean" if word == tmp_path / "out" else word for word in words], 1)
    assert clean.exit_code == 0, clean.stderr
    rng, kills = random.Random(1), 0
    for number in range(10):
        command = [sys.executable, "-m", "foreword", *map(str, words), str(1 + number % 2)]
        child = subprocess.Popen(command, stderr=subprocess.PIPE)
        began = time.monotonic()
        while not (tmp_path / "out" / FOLDER / "ledger.jsonl").exists() and time.monotonic() - began < 60:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.8))
        kills += child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert kills
    done = foreword(*words, 1)
    assert done.exit_code == 0, done.stderr
    assert raw(tmp_path / "out") == raw(tmp_path / "clean")
    assert sorted(path.name for path in (tmp_path / "out" / FOLDER).iterdir()) == ["ledger.jsonl", "lock"]
