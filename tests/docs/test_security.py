"""SECURITY.md names the tests that hold its promises, and they are there."""

from __future__ import annotations

import re
from pathlib import Path

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
