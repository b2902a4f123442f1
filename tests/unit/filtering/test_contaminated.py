"""The share of a document that stands verbatim in an index."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

from foreword.cli import app
from foreword.pipeline.index import TextIndex
from foreword.storage.folder import save
from foreword.text.block import Block

WORDS = st.lists(st.sampled_from("abcde"), max_size=12)


@settings(max_examples=100, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=4), st.lists(WORDS, min_size=1, max_size=4), st.integers(1, 4))
def test_it_is_the_share_of_words_in_runs_that_a_scan_finds(
    indexed: list[list[str]], texts: list[list[str]], least: int
) -> None:
    index = TextIndex().fit([" ".join(words) for words in indexed])
    joined = [f" {' '.join(words)} " for words in indexed]
    expected = []
    for words in texts:
        copied = set()
        for begin in range(len(words) - least + 1):
            if any(f" {' '.join(words[begin : begin + least])} " in text for text in joined):
                copied |= set(range(begin, begin + least))
        expected.append(len(copied) / len(words) if words else np.nan)
    assert_array_equal(index.coverage(Block.from_texts([" ".join(words) for words in texts]), least), expected)


def test_contaminated_documents_are_left_out(tmp_path: Path) -> None:
    save(TextIndex().fit(["the quick brown fox jumps over the lazy dog"]), tmp_path / "tests")
    rows = ["he said the quick brown fox jumps over it", "the lazy quick fox", "nothing of it", ""]
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in rows))
    made = CliRunner().invoke(
        app, ["filter", str(tmp_path / "tests"), str(source), str(tmp_path / "out"), "--score-only", "--span", "3"]
    )
    assert made.exit_code == 0, made.stderr
    kept = [json.loads(line) for path in (tmp_path / "out").glob("*.jsonl") for line in path.read_text().splitlines()]
    assert [row["contaminated"] for row in kept] == [6 / 9, 0.0, 0.0, None]
