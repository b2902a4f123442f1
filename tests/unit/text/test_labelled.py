"""Labelled texts in every format, and what is wrong with them told by file and line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.errors import InputError, SettingError
from foreword.text.datasets import find, labelled
from foreword.text.labelled import LABEL_SEPARATOR, Example, LabelledReading, read_labelled, read_labelled_blocks

SPAM = [Example("you have won", "spam"), Example('see you at "nine"', "ham"), Example("win now", "spam")]


def examples(path: str | Path | list[Path], **how: Any) -> list[Example]:
    return list(read_labelled(path, LabelledReading(**how)))


def told(path: Path | list[Path], **how: Any) -> list[str]:
    lines: list[str] = []
    list(read_labelled(path, LabelledReading(**how), tell=lines.append))
    return lines


def complaint(path: Path | list[Path], **how: Any) -> str:
    with pytest.raises(InputError) as caught:
        examples(path, **how)
    return str(caught.value)


def written(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def as_csv(rows: list[list[str]], delimiter: str = ",") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue()


# --- formats


def make(format: str, folder: Path) -> Path:
    """The three examples, written in a format."""
    if format == "tsv":
        return written(folder / "a.tsv", "".join(f"{label}\t{text}\n" for text, label in SPAM))
    if format == "csv":
        return written(folder / "a.csv", as_csv([["message", "class"], *map(list, SPAM)]))
    if format == "jsonl":
        return written(folder / "a.jsonl", "".join(f"{json.dumps(example._asdict())}\n" for example in SPAM))
    if format == "parquet":
        path = folder / "a.parquet"
        pq.write_table(pa.table({"id": [1, 2, 3], "text": [t for t, _ in SPAM], "label": [x for _, x in SPAM]}), path)
        return path
    if format == "fasttext":
        return written(folder / "a.txt", "".join(f"__label__{label} {text}\n" for text, label in SPAM))
    if format == "label-first":
        return written(folder / "a.all", "".join(f"{label} {text}\n" for text, label in SPAM))
    for number, (text, label) in enumerate(SPAM):
        written(folder / "texts" / label / f"{number}.txt", text)
    return folder / "texts"


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl", "parquet", "fasttext", "label-first", "folders"])
def test_every_format(format: str, tmp_path: Path) -> None:
    path = make(format, tmp_path)
    assert sorted(examples(path, format=format)) == sorted(SPAM)
    if format != "label-first":
        assert sorted(examples(path)) == sorted(SPAM)  # told by name, content or folders
    for block_bytes in (1, 20):
        assert sorted(examples(path, format=format, block_bytes=block_bytes)) == sorted(SPAM)


def test_compressed(tmp_path: Path) -> None:
    text = make("tsv", tmp_path).read_bytes()
    assert examples(written(tmp_path / "b.tsv.gz", gzip.compress(text))) == SPAM
    assert examples(written(tmp_path / "b", lzma.compress(text))) == SPAM
    folder = written(tmp_path / "c" / "spam" / "1.txt.xz", lzma.compress(b"you have won")).parent.parent
    assert examples(folder) == SPAM[:1]


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with make("tsv", tmp_path).open("rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        assert examples("-") == SPAM


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=20), st.sampled_from(["a", "é b", "c"])), min_size=1), st.integers(1, 99))
def test_csv_as_python_writes_it(tmp_path_factory: Any, rows: list[tuple[str, str]], block_bytes: int) -> None:
    rows = [(text.replace("\0", "").replace("\r", "").encode(errors="replace").decode(), label) for text, label in rows]
    path = written(tmp_path_factory.mktemp("csv") / "a.csv", as_csv([["text", "label"], *map(list, rows)]))
    assert examples(path, block_bytes=block_bytes) == rows


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.text("xy \"'é\U0001f600", max_size=20)), min_size=1))
def test_tsv_takes_everything_between_tabs_as_it_is(tmp_path_factory: Any, rows: list[tuple[str, str]]) -> None:
    path = written(tmp_path_factory.mktemp("tsv") / "a.tsv", "\r\n".join(f"7\t{a}\t{text}" for a, text in rows))
    assert examples(path, text_column=3, label_column=2, header=False) == [Example(text, a) for a, text in rows]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_delimiters(delimiter: str, tmp_path: Path) -> None:
    rows = [["text", "label"], ["a, b; c\td", "x"], ["e\n\nf", "y"]]
    path = written(tmp_path / "a.csv", as_csv(rows, delimiter))
    assert examples(path) == [Example("a, b; c\td", "x"), Example("e\n\nf", "y")]


def test_a_csv_field_may_be_longer_than_python_likes(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    text = "long " * 100_000
    assert examples(written(tmp_path / "a.csv", as_csv([["text", "label"], [text, "x"]]))) == [Example(text, "x")]
    assert csv.field_size_limit() == limit


def test_blank_lines_are_skipped_and_empty_texts_are_not(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "\n \na\t\n\r\nb\tx\n\n")
    assert examples(path, text_column=2, label_column=1) == [("", "a"), ("x", "b")]
    assert examples(written(tmp_path / "b.csv", "text,label\n\n,a\n  \nx,b\n")) == [("", "a"), ("x", "b")]
    path = written(tmp_path / "c.jsonl", '\n{"text": "", "label": "a"}\n \n{"text": " ", "label": 1}')
    assert examples(path) == [("", "a"), (" ", "1")]
    assert examples(written(tmp_path / "d.txt", "\n\n__label__a\n__label__b x")) == [("", "a"), ("x", "b")]
    written(tmp_path / "e" / "a" / "empty", "")
    assert examples(tmp_path / "e") == [("", "a")]


def test_parquet_types(tmp_path: Path) -> None:
    texts = pa.array(["one", None, "three"]).dictionary_encode()
    for labels, expected in (
        (pa.array([1, 2, 1], pa.int8()), ["1", "2", "1"]),
        (pa.array([True, False, True]), ["true", "false", "true"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    ):
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"review": texts, "class": labels}), path)
        assert examples(path) == [Example(*pair) for pair in zip(["one", "", "three"], expected, strict=True)]


# --- which column is what


def test_columns_by_known_names(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "id,Sentiment,Review\n7,good,very nice\n8,bad,no\n")
    assert examples(path) == [Example("very nice", "good"), Example("no", "bad")]
    assert told(path) == [
        f'{path}: texts in column 3 "Review", labels in column 2 "Sentiment"; the first line is a header'
    ]


def test_columns_by_the_users_word(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "a\tb\tc\nx\ty\tz\n")
    assert examples(path, text_column="c", label_column="a") == [Example("z", "x")]
    assert examples(path, text_column=2, label_column=1, header=False) == [Example("b", "a"), Example("y", "x")]
    assert examples(path, text_column=2, label_column=1, header=True) == [Example("y", "x")]
    assert told(path, text_column="c", label_column="a") == []
    assert complaint(path, text_column="d") == f'{path}: no column "d" (it has: a, b, c)'
    assert complaint(path, text_column=4) == f"{path}: no column 4: it has 3"
    assert complaint(path, text_column="a", label_column=1) == f"{path}: column 1 cannot be both the text and the label"


def test_columns_without_names_are_told_by_what_they_hold(tmp_path: Path) -> None:
    rows = [[str(number), "ab"[number % 2], f"a text of some words {number}"] for number in range(10)]
    path = written(tmp_path / "a.csv", as_csv(rows))
    assert examples(path) == [Example(text, label) for _, label, text in rows]
    assert told(path) == [f"{path}: texts in column 3, labels in column 2"]


def test_a_header_without_known_names_is_told_by_the_labels_below_it(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "v1,v2\n" + "ham,see you\nspam,you have won\n" * 3)
    assert examples(path)[0] == Example("see you", "ham")
    assert "header" in told(path)[0]
    assert examples(path, header=False)[0] == Example("v2", "v1")


def test_json_fields(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", '{"rating": 3, "label": 1, "text": "x"}\n{"text": "y", "label": 0}\n')
    assert examples(path) == [Example("x", "1"), Example("y", "0")]
    assert told(path) == [f'{path}: texts in "text", labels in "label"']
    assert complaint(path, label_column="rating") == f'{path}: line 2 has no field "rating" (it has: text, label)'
    path = written(tmp_path / "b.jsonl", '{"a": "x", "b": "y"}\n')
    assert examples(path, text_column="a", label_column="b") == [Example("x", "y")]
    assert complaint(path) == f"{path}: which field is the text? Say it by --text-column (it has: a, b)"
    assert (
        complaint(path, text_column="a") == f"{path}: which field is the label? Say it by --label-column (it has: a, b)"
    )


def test_files_of_one_source_are_read_alike(tmp_path: Path) -> None:
    head, body = "text,label\n", "a long text,x\nanother,y\n"
    with_headers = [written(tmp_path / f"{n}.csv", head + body) for n in range(2)]
    assert len(examples(with_headers)) == 4
    cut = [with_headers[0], written(tmp_path / "cut.csv", "b,label once\n")]  # as split(1) would leave it
    assert examples(cut)[-1] == Example("b", "label once")
    turned = [with_headers[0], written(tmp_path / "turned.csv", "label,text\nz,the last text\n")]
    assert examples(turned)[-1] == Example("the last text", "z")
    wide = [with_headers[0], written(tmp_path / "wide.csv", "a,b,c\n")]
    assert complaint(wide) == f"{wide[1]}: it has 3 columns, but the files before it 2"
    assert len(told(with_headers)) == 1


# --- fastText


def test_fasttext_labels(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "__label__a some text\n__label__b __label__c  more\n")
    assert complaint(path) == f"{path}: line 2 has 2 labels, not one: --first-label takes the first"
    assert [each.label.split(LABEL_SEPARATOR) for each in examples(path, all_labels=True)] == [["a"], ["b", "c"]]
    assert examples(path, first_label=True) == [Example("some text", "a"), Example("more", "b")]
    path = written(tmp_path / "b.txt", "__label__a x\nplain\n")
    assert complaint(path) == f"{path}: line 2 has no label: it does not begin with __label__"
    path = written(tmp_path / "c.txt", "__label__a x __label__b\n")
    assert complaint(path) == f"{path}: line 1 has a label after its text: labels come first"
    path = written(tmp_path / "d.txt", "__label__a x y__label__b\n__label__ x\n")
    assert complaint(path) == f"{path}: line 2 has no label"


# --- folders


def test_folders(tmp_path: Path) -> None:
    for name in ("pos/1.txt", "pos/deep/2.txt", "neg/1.txt", "README", ".hidden/x/1.txt", "pos/.DS_Store"):
        written(tmp_path / "data" / name, f"text of {name}")
    found = examples(tmp_path / "data")
    assert [label for _, label in found] == ["neg", "pos", "pos"]
    assert told(tmp_path / "data") == [
        f"{tmp_path / 'data'}: its 2 folders are the labels, each file a text; 1 files next to the folders are left out"
    ]
    flat = written(tmp_path / "flat" / "a.tsv", "x\ta text\ny\tanother\n").parent
    assert len(examples(flat)) == 2
    assert complaint(flat, format="folders") == f"{flat}: no folders of texts in it; each label should have one"


# --- what is wrong


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.tsv", "x\tone\n\ny\ttwo\tthree\n", "line 3 has 3 columns, not 2 as the first line has"),
        ("a.tsv", "x\tone\nlonely\n", "line 2 has 1 column, not 2 as the first line has"),
        ("a.tsv", "x\tone\n\ttwo\n", "line 2 has no label"),
        ("a.tsv", "alone\n", None),
        ("a.csv", "text,label\n\none,x\ntwo\n", "line 4 has 1 column, not 2 as the first line has"),
        ("a.csv", 'text,label\n"one\n\n1",x\ntwo,\n', "line 5 has no label"),
        ("a.csv", 'text,label\none,x\n"two" 2,x\n', "line 3 is not CSV: ',' expected after '\"'"),
        ("a.csv", 'text,label\none,x\n"two,x\n', "line 3 is not CSV: unexpected end of data"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": "a"}\n', 'line 2 has no field "label" (it has: text)'),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{\n', "line 2 is not JSON: Expecting property name enclosed in"),
        ("a.jsonl", '{"text": "a", "label": " "}\n', "line 1 has no label"),
        ("a.jsonl", '{"text": "a", "label": null}\n', 'line 1 has no label: its field "label" is null'),
        ("a.jsonl", '{"text": "a", "label": ["x"]}\n', 'line 1 has a field "label" that is neither a string nor a num'),
        ("a.jsonl", "[1]\n", "line 1 is not a JSON object"),
        ("a.jsonl", "nothing\n", "line 1 is not JSON"),
    ],
)
def test_complaints_name_the_line(name: str, text: str, expected: str | None, tmp_path: Path) -> None:
    path = written(tmp_path / name, text)
    found = complaint(path)
    if expected is None:
        assert found == f"{path}: its first line has one column, but a text and a label take two"
    else:
        assert found.startswith(f"{path}: {expected}")


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.txt"])
@pytest.mark.parametrize("text", ["", "\n \n"])
def test_empty_files(name: str, text: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, text)
    assert complaint(path) == f"{path}: no labelled text in it"


def test_a_header_alone_is_an_empty_file(tmp_path: Path) -> None:
    for name in ("a.csv", "a.tsv"):
        path = written(tmp_path / name, "text,label\n".replace(",", "\t" if name == "a.tsv" else ","))
        assert complaint(path) == f"{path}: no labelled text in it"


def test_no_labels_to_be_seen(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "just a line of text\n")
    assert complaint(path).startswith(f"{path}: where are its labels? Its first line has neither a tab nor __label__;")


def test_encodings(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", b"x\tcaf\xe9\ny\tz\n")
    assert "invalid UTF-8 at byte 5" in complaint(path)
    assert examples(path, errors="replace", header=False)[0] == Example("caf\ufffd", "x")


def test_parquet_complaints(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a", "b"], "label": ["x", None]}), path)
    assert complaint(path) == f"{path}: row 2 has no label"
    pq.write_table(pa.table({"text": ["a"], "label": [[1]]}), path)
    assert complaint(path).startswith(f'{path}: column "label" holds list<')
    pq.write_table(pa.table({"text": [1], "label": ["x"]}), path)
    assert complaint(path) == f'{path}: column "text" holds int64, not text'


def test_a_missing_file_is_told_before_reading(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_labelled_blocks(tmp_path / "nothing.tsv")


def test_settings_are_checked() -> None:
    for how in ({"format": "xml"}, {"errors": "ignore"}, {"block_bytes": 0}, {"text_column": 1, "label_column": 1}):
        with pytest.raises(SettingError):
            LabelledReading(**how)


# --- real files


@pytest.mark.data
@pytest.mark.parametrize(
    ("spec", "how"),
    [
        ("sms_spam:all", {}),
        ("20newsgroups:test", {}),
        ("reuters_r8:test", {}),
        ("sst2-glue:valid", {}),
        ("sst2:test", {"format": "label-first"}),
    ],
)
def test_the_register_reads_the_same(spec: str, how: dict[str, Any]) -> None:
    ours = [(label, text.strip()) for text, label in examples(find(spec), **how)]
    assert ours == [(label, text.strip()) for label, text in labelled(spec)]
