from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from foreword.errors import InputError, SettingError
from foreword.tag.conllu import BlockReader, read_conllu, sentence_text, write_conllu

TEXT = """\
# sent_id = 1
# text = I don't know
1\tI\tI\tPRON\tPRP\t_\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tknow\tknow\tVERB\tVB\t_\t0\troot\t_\t_
4.1\twhat\twhat\tPRON\tWP\t_\t_\t_\t_\t_


1\tNo space\tno\tINTJ\tUH\t_\t0\troot\t_\tSpaceAfter=No
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "text.conllu"
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_words_and_a_column(tmp_path: Path, line_end: str) -> None:
    path = write(tmp_path, TEXT.replace("\n", line_end))
    assert read_conllu(path) == (
        [["I", "do", "n't", "know"], ["No space"]],
        [["PRON", "AUX", "PART", "VERB"], ["INTJ"]],
    )
    assert read_conllu(path, "xpos").tags == [["PRP", "VBP", "RB", "VB"], ["UH"]]


def test_the_last_blank_line_may_be_missing_and_the_file_compressed(tmp_path: Path) -> None:
    path = tmp_path / "text.conllu.xz"
    path.write_bytes(lzma.compress(TEXT.rstrip("\n").encode()))
    assert read_conllu(path).sentences == [["I", "do", "n't", "know"], ["No space"]]


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    sentences, tags = [["größer", "than", "#"], ["x"]], [["ADJ", "ADP", "SYM"], ["X"]]
    for column in ("upos", "xpos", "misc"):
        write_conllu(tmp_path / "out.conllu", sentences, tags, column)
        assert read_conllu(tmp_path / "out.conllu", column) == (sentences, tags)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\tword\tNOUN\n", "line 1 has 3 columns"),
        ("# fine\n\nhello world\n", "line 3 has 1 column"),
        ("x\tword" + "\t_" * 8 + "\n", "line 1 begins with 'x'"),
        ("# nothing but a comment\n", "no sentence"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        read_conllu(path)
    assert str(path) in str(caught.value)


def test_wrong_calls_are_refused_and_nothing_is_left_behind(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="column='form'"):
        read_conllu(write(tmp_path, TEXT), "form")
    out = tmp_path / "out.conllu"
    with pytest.raises(SettingError, match="a tag for each word"):
        write_conllu(out, [["a", "b"]], [["X"]])
    with pytest.raises(SettingError, match="cannot be written to"):
        write_conllu(out, [["a\tb"]], [["X"]])
    assert not out.exists()


@pytest.mark.parametrize("size", [1, 3, 100])
def test_lines_may_come_in_pieces(size: int) -> None:
    reader, lines = BlockReader("stream"), TEXT.splitlines()
    blocks = [block for start in range(0, len(lines), size) for block in reader.read(lines[start : start + size])]
    blocks += reader.rest()
    assert [line for block in blocks for line in block.lines] == lines
    assert [block.forms for block in blocks] == [["I", "do", "n't", "know"], [], ["No space"]]
    filled = "".join(block.filled(["X"] * len(block.words), "upos") for block in blocks)
    assert filled.count("\tX\t") == 5
    assert "2-3\tdon't\t_\t_\t_" in filled
    assert "4.1\twhat\twhat\tPRON" in filled


def test_the_line_of_an_error_is_counted_over_all_pieces() -> None:
    reader = BlockReader("stream")
    list(reader.read(TEXT.splitlines()))
    with pytest.raises(InputError, match=f"stream: line {TEXT.count(chr(10)) + 2} has 2 columns"):
        list(reader.read(["", "1\tx"]))


def test_a_sentence_as_text() -> None:
    assert sentence_text(["a"], ["X"], "xpos") == "1\ta\t_\t_\tX\t_\t_\t_\t_\t_\n\n"
    with pytest.raises(SettingError, match="column='id'"):
        sentence_text(["a"], ["X"], "id")


def test_columns_between_blanks_are_pointed_at_the_option(tmp_path: Path) -> None:
    path = tmp_path / "x.conll"
    path.write_text("EU NNP I-NP I-ORG\n\n")
    with pytest.raises(InputError, match=r"line 1 has 1 column, not 10: not CoNLL-U; .* --column 1 .* --scheme bio$"):
        read_conllu(path)
    path.write_text("a\tb\n\n")
    with pytest.raises(InputError, match=r"line 1 has 2 columns, not 10: not CoNLL-U$"):
        read_conllu(path)
