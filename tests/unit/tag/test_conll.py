from __future__ import annotations

import lzma
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from foreword.errors import InputError, SettingError
from foreword.tag.conll import Sentence, columns_of, parse_conll, read_conll, sentence_text, stream_conll, write_conll
from foreword.tag.schemes import convert_all, spans_of
from foreword.text.datasets import find

TEXT = """\
-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O

Peter NNP I-NP I-PER

-DOCSTART- -X- O O

# SYM O O

"""


def write(folder: Path, text: str) -> Path:
    path = folder / "text.conll"
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("change", [("", ""), ("\n", "\r\n"), ("\n\n", "\n\n\n"), (" ", "\t"), (" ", "  ")])
def test_s03_words_a_column_and_documents(tmp_path: Path, change: tuple[str, str]) -> None:
    """S03: with any line end, more blank lines than one, tabs."""
    path = write(tmp_path, TEXT.replace(*change) if change[0] else TEXT)
    assert read_conll(path) == ([["EU", "rejects"], ["Peter"], ["#"]], [["I-ORG", "O"], ["I-PER"], ["O"]])
    assert read_conll(path, 1).tags == [["NNP", "VBZ"], ["NNP"], ["SYM"]]
    assert read_conll(path, -2).tags == read_conll(path, 2).tags == [["I-NP", "I-VP"], ["I-NP"], ["O"]]
    openings = [sentence.openings for sentence in stream_conll(path)]
    assert openings == [[["-DOCSTART-", "-X-", "O", "O"]], [], [["-DOCSTART-", "-X-", "O", "O"]]]


def test_the_last_blank_line_may_be_missing_and_the_file_compressed(tmp_path: Path) -> None:
    path = tmp_path / "text.conll.xz"
    path.write_bytes(lzma.compress(TEXT.rstrip("\n").encode()))
    assert read_conll(path).sentences == [["EU", "rejects"], ["Peter"], ["#"]]


def test_what_is_written_is_read_back_and_the_text_is_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, TEXT)
    write_conll(tmp_path / "again", stream_conll(path))
    assert (tmp_path / "again").read_text(encoding="utf-8") == TEXT
    words, names, parts = [["a b", "c"], ["d"]], [["B-X", "O"], ["O"]], [["N", "V"], ["N"]]
    write_conll(tmp_path / "made", columns_of(words, parts, names), separator="\t")
    assert read_conll(tmp_path / "made") == (words, names)
    assert read_conll(tmp_path / "made", 1) == (words, parts)


def test_a_sentence_is_there_as_soon_as_it_is_complete() -> None:
    read = 0

    def lines() -> Iterator[str]:
        nonlocal read
        for line in TEXT.splitlines():
            read += 1
            yield line

    assert next(parse_conll(lines(), "stream")) == Sentence(
        [["EU", "NNP", "I-NP", "I-ORG"], ["rejects", "VBZ", "I-VP", "O"]], [["-DOCSTART-", "-X-", "O", "O"]], 3
    )
    assert read == 5


def test_a_document_without_sentences_is_kept() -> None:
    *_, last = parse_conll([*TEXT.splitlines(), "-DOCSTART- -X- O O"], "stream")
    assert (last.rows, len(last.openings)) == ([], 1)
    assert sentence_text(last) == "-DOCSTART- -X- O O\n\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT + "one VB O\n", "line 12 has 3 columns, not 4 as line 3 has"),
        ("a X\nb\n", "line 2 has 1 column, not 2 as line 1 has"),
        ("a\tX\tO\nb\tX O\n", "line 2 has 2 columns, not 3"),
        ("-DOCSTART- -X- O O\n", "no sentence"),
    ],
)
def test_ragged_columns_are_named_by_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        read_conll(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_calls_are_refused_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = write(tmp_path, TEXT)
    for column in (0, 4, -4):
        with pytest.raises(SettingError, match=f"column={column}: .* expected 1 to 3 or -1 to -3"):
            read_conll(path, column)
    out = tmp_path / "out"
    with pytest.raises(InputError, match="sentence 0 has 2 words but 1 tags"):
        write_conll(out, columns_of([["a", "b"]], [["X"]]))
    for cell in ("", "a b", "a\tb", "a\nb", "\u00a0"):
        with pytest.raises(InputError, match="cannot be"):
            write_conll(out, columns_of([[cell]], [["X"]]))
    with pytest.raises(InputError, match="would begin a document"):
        write_conll(out, columns_of([["-DOCSTART-"]], [["X"]]))
    with pytest.raises(SettingError, match="separator=','"):
        write_conll(out, [], separator=",")
    assert not out.exists()


REAL = {
    "conll2003:train": (946, 14041, 203621, "iob1"),
    "conll2003:valid": (216, 3250, 51362, "iob1"),
    "conll2003:test": (231, 3453, 46435, "iob1"),
    "conll2000:train": (0, 8936, 211727, "bio"),
    "conll2000:test": (0, 2012, 47377, "bio"),
}


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_s03_the_real_files_have_the_published_counts(name: str) -> None:
    """S03: documents, sentences and tokens; every sentence is well formed in its scheme, and in any other after it."""
    documents, count, tokens, scheme = REAL[name]
    path = find(name)
    assert sum(len(sentence.openings) for sentence in stream_conll(path)) == documents
    sentences, tags = read_conll(path)
    assert (len(sentences), sum(map(len, sentences))) == (count, tokens)
    if name.endswith(("valid", "test")):
        other = convert_all(tags, scheme, "bioes")
        spans = [spans_of(sentence, scheme) for sentence in tags]
        assert [spans_of(sentence, "bioes") for sentence in other] == spans
        assert convert_all(other, "bioes", scheme) == tags
        assert (
            len(list(chain(*spans))) == {"conll2003:valid": 5942, "conll2003:test": 5648, "conll2000:test": 23852}[name]
        )
