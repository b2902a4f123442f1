"""``foreword search index`` and ``foreword search query``."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from foreword import BM25, CosineSearch, TextSearch, load

from .conftest import Foreword

ROWS = """\
{"id": "a", "body": "a happy man and happy people", "year": 1999}
{"id": 7, "body": "the people of the city are glad"}

{"id": "c d", "body": "a broken\\tdishwasher"}
"""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory, foreword: Foreword) -> Path:
    """A folder with an index, made once, for tests that only read it."""
    folder = tmp_path_factory.mktemp("search")
    (folder / "rows.jsonl").write_text(ROWS)
    made = foreword(
        "search", "index", folder / "rows.jsonl", "-o", folder / "index", "--field", "body", "--id-field", "id"
    )
    assert (made.exit_code, made.stdout) == (0, ""), made.stderr
    assert made.stderr.startswith("3 documents, ")
    return folder


def cells(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.stderr
    return [line.split("\t") for line in result.stdout.splitlines()]


# Asking


def test_hits_are_lines_with_tabs_between_their_cells(foreword: Foreword, shelf: Path) -> None:
    first, second = cells(foreword("search", "query", shelf / "index", "happy People"))
    assert first[:2] == ["happy People", "1"]
    assert first[3:] == ["a", "a happy man and happy people"]
    assert second[1::2] == ["2", "7"]
    assert float(first[2]) > float(second[2]) > 0


def test_every_query_gives_one_object(foreword: Foreword, shelf: Path) -> None:
    result = foreword("search", "query", shelf / "index", "--json", "-k", 1, input="people\n\nzebra\ndishwasher")
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["query"] for each in told] == ["people", "", "zebra", "dishwasher"]
    assert [len(each["hits"]) for each in told] == [1, 0, 0, 1]
    hit = told[3]["hits"][0]
    assert hit.pop("score") > 0
    assert hit == {"rank": 1, "document": 2, "name": "c d", "snippet": "a broken dishwasher", "marks": [[9, 19]]}


def test_queries_come_from_arguments_a_file_or_standard_input(foreword: Foreword, shelf: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.txt.gz").write_bytes(gzip.compress(b"happy\nglad people\n"))
    call = ["search", "query", shelf / "index"]
    results = [
        foreword(*call, "happy", "glad people"),
        foreword(*call, "--file", tmp_path / "queries.txt.gz"),
        foreword(*call, input="happy\nglad people\n"),
        foreword(*call, "--file", "-", "--threads", 2, input="happy\nglad people"),
    ]
    assert len(cells(results[0])) == 3
    assert len({result.stdout for result in results}) == 1


def test_an_answer_is_given_before_the_next_question(shelf: Path) -> None:
    """Somebody may sit at the other end of the pipe."""
    command = [sys.executable, "-m", "foreword", "search", "query", str(shelf / "index")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asked:
        assert asked.stdin is not None
        assert asked.stdout is not None
        for query, name in (("glad", "7"), ("dishwasher", "c d")):
            asked.stdin.write(f"{query}\n")
            asked.stdin.flush()
            assert asked.stdout.readline().split("\t")[3] == name
        asked.stdin.close()
        assert asked.wait() == 0


def test_reasons_are_shown_if_asked(foreword: Foreword, shelf: Path) -> None:
    call = ["search", "query", shelf / "index", "happy people zebra", "--explain"]
    first = cells(foreword(*call))[0]
    assert first[5].startswith("happy ")
    assert " + people " in first[5]
    hit = json.loads(foreword(*call, "--json").stdout)["hits"][0]
    assert set(hit["contributions"]) == {"happy", "people"}
    assert sum(hit["contributions"].values()) == pytest.approx(hit["score"], rel=1e-6)


@pytest.mark.usefixtures("wide")
def test_a_terminal_gets_a_table(foreword: Foreword, shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from foreword.cli.search import show

    search: TextSearch = load(shelf / "index")
    hits = search.query("happy people")
    show("happy people", hits, [search.explain("happy people", hit.document) for hit in hits])
    show("zebra", [], None)
    shown = capsys.readouterr()
    assert "a happy man and happy people" in shown.out
    assert "why" in shown.out
    assert shown.err == "no document holds a word of 'zebra'\n"


# Indexing


def test_documents_are_called_by_their_files(foreword: Foreword, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.txt").write_text("happy man\n\nglad people\n")
    (notes / "b.txt").write_text(" \n\n")
    (notes / "c.txt").write_text("happy people\n")
    assert foreword("search", "index", notes, "-o", tmp_path / "lines", "-q").stderr == ""
    found = {row[3] for row in cells(foreword("search", "query", tmp_path / "lines", "happy"))}
    assert found == {f"{notes}/a.txt#1", f"{notes}/c.txt"}
    assert foreword("search", "index", notes, "-o", tmp_path / "files", "--document", "file").exit_code == 0
    found = {row[3] for row in cells(foreword("search", "query", tmp_path / "files", "people"))}
    assert found == {f"{notes}/a.txt", f"{notes}/c.txt"}
    assert foreword("search", "index", "-", "-o", tmp_path / "piped", input="one\ntwo\n").exit_code == 0
    assert cells(foreword("search", "query", tmp_path / "piped", "two"))[0][3] == "standard input#2"


def test_many_small_files_and_a_large_one_keep_their_order(tmp_path: Path) -> None:
    from foreword.cli import search_reading as reading
    from foreword.text.sources import Reading

    texts = []
    for number in range(30):
        lines = [f"number {number} line {line}" for line in range(1 + number % 3)]
        lines += ["long " * 300 + f"end {number}"] * 100 if number == 11 else []
        (tmp_path / f"{number:02}.txt").write_text("\n".join(lines))
        texts += lines
    blocks, names = reading.named_blocks([str(tmp_path)], Reading(block_bytes=5000), None, None)
    search = TextSearch().fit_blocks(blocks, names)
    assert [search.text(number) for number in range(len(search))] == texts
    assert search.name(texts.index("number 11 line 2")) == f"{tmp_path}/11.txt#3"


def test_settings_reach_the_ranker(foreword: Foreword, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("happy people\nthe glad\n")
    call = ["search", "index", tmp_path / "text.txt", "-o", tmp_path / "index", "--json"]
    told = json.loads(foreword(*call, "--variant", "bm25l", "--k1", 0.9, "--b", 0.4, "--delta", 1).stdout)
    assert (told["variant"], told["documents"]) == ("bm25l", 2)
    assert repr(load(tmp_path / "index").ranker) == repr(BM25("bm25l", k1=0.9, b=0.4, delta=1.0))
    (tmp_path / "stop.txt").write_text("the\n\nof\n")
    assert foreword(*call, "--variant", "tfidf", "--no-text", "--stop-words", tmp_path / "stop.txt").exit_code == 0
    index = load(tmp_path / "index")
    assert isinstance(index.ranker, CosineSearch)
    assert (index.texts_, index.stop_words) == (None, ["the", "of"])
    assert foreword("search", "query", tmp_path / "index", "the").stdout == ""
    assert foreword("search", "query", tmp_path / "index", "glad").stdout.split("\t")[4] == "\n"


def test_any_tokenizer_may_be_used(foreword: Foreword, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("Happy people\nhappy\n")
    foreword("tokenize", "train", tmp_path / "text.txt", "-o", tmp_path / "words", "--kind", "word")
    call = ["search", "index", tmp_path / "text.txt", "-o", tmp_path / "index", "--tokenizer", tmp_path / "words"]
    assert foreword(*call).exit_code == 0
    assert [row[3] for row in cells(foreword("search", "query", tmp_path / "index", "Happy"))] == [
        f"{tmp_path}/text.txt#1"
    ]


# Refusing


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--variant", "tfidf", "--k1", "1"], "tfidf has no setting 'k1'"),
        (["--delta", "1"], "lucene has no setting 'delta'"),
        (["--set", "b=much"], "b cannot be 'much'"),
        (["--variant", "bm26"], "bm26"),
        (["--tokenizer", "t", "--min-count", "2"], "vocabulary already"),
        (["--id-field", "id", "--format", "text"], "no fields"),
    ],
)
def test_a_wrong_call_is_refused(foreword: Foreword, tmp_path: Path, options: list[str], said: str) -> None:
    result = foreword("search", "index", "text.txt", "-o", tmp_path / "index", *options)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("name", "data", "options", "said"),
    [
        ("empty.txt", "", [], "empty.txt: no text in it"),
        ("blank.txt", " \n", [], "blank.txt: no text in it"),
        ("rows.jsonl", '{"text": "a"}\n{"body": "b"}\n', [], 'line 2 has no field "text"'),
        ("rows.jsonl", '{"text": "a", "id": 1}\n{"text": "b"}\n', ["--id-field", "id"], 'line 2 has no field "id"'),
        ("rows.jsonl", '{"text": "a", "id": 1}\n{"text": \n', ["--id-field", "id"], "line 2 is not JSON"),
        ("bad.txt", b"good\nb\xffd\n", [], "bad.txt: invalid UTF-8 at byte 6"),
    ],
)
def test_what_cannot_be_read_leaves_nothing_behind(
    foreword: Foreword, tmp_path: Path, listing: Callable[[Path], list[str]],
    name: str, data: str | bytes, options: list[str], said: str,
) -> None:  # fmt: skip
    (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
    result = foreword("search", "index", tmp_path / name, "-o", tmp_path / "index", *options)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
    assert listing(tmp_path) == [name]


def test_queries_that_cannot_be_answered(foreword: Foreword, shelf: Path, tmp_path: Path) -> None:
    foreword("tokenize", "train", shelf / "rows.jsonl", "-o", tmp_path / "words", "--kind", "word", "--field", "body")
    for call, said in (
        ([tmp_path / "words", "happy"], "its kind is word, not text-search: foreword search index makes one"),
        ([tmp_path / "nowhere", "happy"], "no such file or folder"),
        ([shelf / "index", "--file", tmp_path / "nowhere"], "no such file"),
    ):
        result = foreword("search", "query", *call)
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        assert said in result.stderr
    assert foreword("search", "query", shelf / "index", "happy", "--file", "x").exit_code == 2
    assert foreword("search", "query", shelf / "index", "happy", "-k", 0).exit_code == 2


def test_a_data_set_is_found_by_its_name(foreword: Foreword, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from foreword.text import datasets

    (tmp_path / "data" / "20newsgroups").mkdir(parents=True)
    rows = '{"id": "51060", "label": "x", "text": "an atheist resource"}\n{"id": "51119", "label": "x", "text": "b"}\n'
    (tmp_path / "data" / "20newsgroups" / "20news-bydate-train.jsonl").write_text(rows)
    monkeypatch.setenv("FOREWORD_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(datasets, "_check_size", lambda *_: None)
    for options, name in ([], "20newsgroups:train#1"), (["--id-field", "id"], "51060"):
        made = foreword("search", "index", "20newsgroups:train", "-o", tmp_path / "index", *options)
        assert made.exit_code == 0, made.stderr
        assert cells(foreword("search", "query", tmp_path / "index", "atheist"))[0][3] == name
    made = foreword("search", "index", "embedded:test", "-o", tmp_path / "index")
    assert cells(foreword("search", "query", tmp_path / "index", "list", "-k", 1))[0][3].startswith("embedded:test#")


def test_documents_are_added_replaced_and_removed(foreword: Foreword, tmp_path: Path) -> None:
    first, second, index = tmp_path / "first.txt", tmp_path / "second.txt", tmp_path / "index"
    first.write_text("the cat sat\nthe dog ran\nbirds sing\n")
    second.write_text("a whale swims\n")

    def found(query: str) -> list[str]:
        result = foreword("search", "query", index, query, "--json")
        return [hit["name"].rpartition("/")[2] for hit in json.loads(result.stdout)["hits"]]

    assert foreword("search", "index", first, "-o", index).exit_code == 0
    added = foreword("search", "add", index, second, "--json")
    assert (added.exit_code, json.loads(added.stdout)["documents"]) == (0, 4)
    assert found("whale") == ["second.txt"]
    assert foreword("search", "remove", index, f"{first}#2").exit_code == 0
    assert (found("dog"), found("birds")) == ([], ["first.txt#3"])
    first.write_text("a cow\na dog\n")
    replaced = json.loads(foreword("search", "add", index, first, "--json").stdout)
    assert (replaced["documents"], replaced["new"], replaced["replaced"]) == (3, 2, 2)
    assert (found("birds"), found("cow"), found("whale")) == ([], ["first.txt#1"], ["second.txt"])
    assert foreword("search", "remove", index, "nothing.txt").exit_code == 1
