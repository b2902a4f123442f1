"""SECURITY.md names the tests that hold its promises, and they are there."""

from __future__ import annotations

import re
from pathlib import Path

from foreword.storage.folder import CHECKSUM_LIMIT
from foreword.text.compression import XZ_MEMORY, ZSTANDARD_WINDOW
from foreword.text.lines import LONGEST_LINE
from foreword.text.strict_json import MAX_DEPTH, MEMORY_BASE, MEMORY_PER_BYTE

SPELLED = {10: "ten"}
ROOT = Path(__file__).parents[2]


def test_every_test_that_security_names_is_there() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    file, missing, names = "", list[str](), 0
    for named, name in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", text):
        file = named or file
        if not file:  # a name of something else between backticks
            continue
        path = ROOT / file
        names += 1
        if not path.is_file() or (name and f"\ndef {name}(" not in path.read_text("utf-8")):
            missing.append(f"{file}::{name}")
    assert missing == []
    assert names > 30


def test_every_promise_about_the_server_has_a_test() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    promised, held = (set(re.findall(r"^\| ([^|]+) \|", part, re.MULTILINE)) for part in text.split("## Which test"))
    known = {"guessing the token": "the token", "keeping monitors out": "monitors",
             "a web page that asks from a browser on the same machine": "pages from elsewhere"}  # fmt: skip
    assert {known.get(each, each) for each in promised - {"what", "---"}} <= held


BULLETS = {
    "No model holds code": ["no pickle", "only listed kinds are imported"],
    "Names, sizes and checksums": [
        "only listed kinds are imported",
        "links that lead out",
        "checksums in the background",
    ],
    "JSON is bounded": ["JSON is bounded"],
    "Compressed files": ["compressed files"],
    "Writes are atomic": ["writes are atomic"],
    "Compiled kernels": ["compiled kernels"],
}
"""The rows of the table of tests that hold each promise about files."""


def files_part() -> str:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    return text.split("### Files\n")[1].split("\n### ")[0]


def test_every_promise_about_files_has_a_test() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    rows = re.findall(r"^\| ([^|]+) \| `tests/", text.split("## Which test")[1], re.MULTILINE)
    bullets = re.findall(r"^- (.+)", files_part(), re.MULTILINE)
    assert [next((each for each in BULLETS if bullet.startswith(each)), bullet) for bullet in bullets] == [*BULLETS]
    for wanted in (each for held in BULLETS.values() for each in held):
        assert any(row.startswith(wanted) for row in rows), wanted


def test_the_limits_on_files_are_those_of_the_code() -> None:
    text = " ".join(files_part().split())
    for sentence in (
        f"Files over {CHECKSUM_LIMIT >> 20} MB are mapped and checksummed in the background",
        f"at most {MAX_DEPTH} levels, and no more memory than {SPELLED[MEMORY_PER_BYTE]} times the file plus "
        f"{MEMORY_BASE >> 20} MB; of JSONL, {SPELLED[MEMORY_PER_BYTE]} times the row",
        f"at most {XZ_MEMORY >> 20} MB (xz) and {ZSTANDARD_WINDOW >> 20} MB (Zstandard), and a line of text has "
        f"at most {LONGEST_LINE >> 20} MB",
    ):
        assert sentence in text, sentence
