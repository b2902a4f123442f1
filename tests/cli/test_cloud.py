"""``foreword cloud``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from .conftest import Foreword, Process

SVG = "{http://www.w3.org/2000/svg}"


def words_in(path: Path) -> set[str]:
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    return {(text.findtext(f"{SVG}title") or "").rpartition(":")[0] for text in root.iter(f"{SVG}text")}


def test_a_text_becomes_a_picture(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "cloud.svg"
    result = foreword("cloud", text, "-o", out)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "saved in" in result.stderr
    assert words_in(out) == {"cat", "dog", "sat", "mat", "log"}


def test_the_same_call_gives_the_same_bytes_and_another_seed_others(
    foreword: Foreword, text: Path, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("one.svg", "two.svg", "three.svg")]
    for file, seed in zip(files, (1, 1, 2), strict=True):
        assert foreword("cloud", text, "-o", file, "--seed", seed, "--upright", 0.5, "--quiet").stderr == ""
    one, two, three = (file.read_bytes() for file in files)
    assert one == two != three


def test_standard_input_and_output(foreword: Foreword, process: Process) -> None:
    result = foreword("cloud", "-", "-o", "-", input="whale whale ship")
    root = ElementTree.fromstring(result.stdout)
    assert root.findtext(f"{SVG}desc") == "whale ship"
    made = process("cloud", "-", "-o", "-", input="猫 Ångström\n", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert made.returncode == 0, made.stderr


def test_json_tells_the_words(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "cloud.svg"
    told = json.loads(foreword("cloud", text, "-o", out, "--json", "--words", 2, "--by", "count").stdout)
    assert told == {
        "output": str(out),
        "different": 9,
        "words": [{"word": "dog", "count": 3, "weight": 3.0}, {"word": "log", "count": 3, "weight": 3.0}],
    }
    assert words_in(out) == {"dog", "log"}


def test_which_words_are_drawn(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "cloud.svg"
    for options, words in (
        (["--keep-common"], {"the", "cat", "sat", "on", "mat", "dog", "log", "and", "was"}),
        (["--min-count", 3], {"sat", "mat", "dog", "log"}),
        (["--without", "Dog, mat"], {"cat", "sat", "log"}),
    ):
        assert foreword("cloud", text, "-o", out, *options).exit_code == 0
        assert words_in(out) == words


def test_the_frame_can_be_chosen(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "cloud.svg"
    foreword("cloud", text, "-o", out, "--width", 400, "--height", 300)
    root = ElementTree.fromstring(out.read_text())
    assert (root.attrib["width"], root.attrib["height"]) == ("400", "300")


def test_without_a_text_it_draws_the_embedded_one(foreword: Foreword, tmp_path: Path) -> None:
    out = tmp_path / "cloud.svg"
    assert foreword("cloud", "-o", out).exit_code == 0
    drawn = words_in(out)
    assert len(drawn) == 150
    assert {"object", "string", "function"} <= drawn
    assert not {"the", "of", "and", "is"} & drawn


@pytest.mark.parametrize("content", ["", "\n\n", "1 2 3", "of the and"])
def test_nothing_to_draw_is_told_and_nothing_is_written(
    foreword: Foreword, tmp_path: Path, listing: Callable[[Path], list[str]], content: str
) -> None:
    source = tmp_path / "text.txt"
    source.write_text(content)
    result = foreword("cloud", source, "-o", tmp_path / "cloud.svg")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert str(source) in result.stderr
    assert listing(tmp_path) == ["text.txt"]


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["-o", "-", "--json"], 2, "--json"),
        ([], 2, "--out"),
        (["-o", "x.svg", "--words", 0], 2, "--words"),
        (["-o", "x.svg", "--width", 99], 2, "width"),
        (["-o", "x.svg", "--upright", 2], 2, "upright"),
        (["-o", "x.svg", "--by", "size"], 2, "--by"),
        (["-o", "x.svg", "--seed", -1], 2, "seed"),
    ],
)
def test_calls_that_make_no_sense(
    foreword: Foreword, text: Path, options: list[object], status: int, said: str
) -> None:
    result = foreword("cloud", text, *options)
    assert result.exit_code == status
    assert said in result.stderr


def test_an_unwritable_place_is_told_before_the_text_is_read(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    result = foreword("cloud", text, "-o", tmp_path)
    assert result.exit_code == 1
    assert "not a plain file" in result.stderr


def test_a_missing_text_is_named(foreword: Foreword, tmp_path: Path) -> None:
    result = foreword("cloud", tmp_path / "missing.txt", "-o", tmp_path / "cloud.svg")
    assert result.exit_code == 1
    assert "missing.txt" in result.stderr
