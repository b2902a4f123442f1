"""Other encodings than UTF-8, by name or by a guess."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from foreword.errors import InputError, SettingError
from foreword.text.encodings import Decoding, GuessedEncodingWarning, guessed
from foreword.text.labelled import LabelledReading, read_labelled
from foreword.text.sources import Reading, read_documents, read_lines

SPANISH = "El niño come café mañana. ¿Dónde está la señora?\n"
RUSSIAN = "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему.\n"
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。\n"
CHINESE = "道可道，非常道。名可名，非常名。无名天地之始；有名万物之母。\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (SPANISH, "utf-8"),
        (SPANISH, "cp1252"),
        (SPANISH, "utf-16"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (CHINESE, "gb18030"),
        ("één café\nnaïef\n", "latin-1"),
    ],
)
def test_the_guess(text: str, encoding: str) -> None:
    data = (text * 3).encode(encoding)
    assert data.decode(guessed(data)) == text * 3


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "cp1252", "utf-8"])
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_text_is_decoded_wherever_a_chunk_ends(tmp_path: Path, encoding: str, block: int) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes((SPANISH * 5).encode(encoding))
    reading = Reading(errors=Decoding("strict", encoding), block_bytes=block)  # type: ignore[arg-type]
    assert list(read_documents(path, reading)) == [SPANISH.strip()] * 5


def test_a_guess_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(SPANISH.encode("latin-1"))
    with pytest.warns(GuessedEncodingWarning, match=r"text\.txt: read as cp1252"):
        assert list(read_lines(path, Decoding("strict", "guess"))) == [SPANISH.strip()]  # type: ignore[arg-type]


def test_an_error_names_a_likely_encoding(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(RUSSIAN.encode("cp1251"))
    with pytest.raises(InputError, match="--encoding cp1251 may be right"):
        list(read_lines(path))


def test_labelled_texts(tmp_path: Path) -> None:
    path = tmp_path / "data.tsv"
    path.write_bytes("si\tniño\nno\tcafé\n".encode("latin-1"))
    reading = LabelledReading(errors=Decoding("strict", "latin-1"))  # type: ignore[arg-type]
    assert [example.text for example in read_labelled(path, reading)] == ["niño", "café"]


def test_bytes_that_the_encoding_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"ab\x81cd\n")
    with pytest.raises(InputError, match=r"text\.txt: invalid cp1252 near byte 2"):
        list(read_lines(path, Decoding("strict", "cp1252")))  # type: ignore[arg-type]
    assert list(read_lines(path, Decoding("replace", "cp1252"))) == ["ab\ufffdcd"]  # type: ignore[arg-type]


def test_a_decoding_is_a_string_that_survives_copies() -> None:
    made = Decoding("replace", "latin1")
    assert made == "replace"
    for each in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (each, each.encoding) == ("replace", "iso8859-1")
    with pytest.raises(SettingError, match="no encoding 'nothing'"):
        Decoding("strict", "nothing")
