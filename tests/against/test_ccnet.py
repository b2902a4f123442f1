"""CCNet's pair, a KenLM binary with its sentencepiece model, against a loop of the two packages and CCNet's numbers."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.real_data import real

from foreword.filtering import Filtering, filter_files
from foreword.filtering.columns import find_column
from foreword.filtering.pairs import CLEANING, MismatchedPairWarning, PairScorer
from foreword.filtering.settings import Like
from foreword.text.block import Block
from foreword.text.cleaning import clean_text

kenlm = pytest.importorskip("kenlm", reason="kenlm is not installed (it needs a C++ compiler)")
sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")

pytestmark = pytest.mark.data

LIKES: list[Like] = ["ccnet", "dclm", "data-juicer"]


@pytest.fixture(scope="module")
def folder() -> Path:
    return real("formats/ccnet")


@pytest.fixture(scope="module")
def pair(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The two files, the binary unpacked, named as CCNet names them: en.arpa.bin+en.sp.model."""
    models = tmp_path_factory.mktemp("ccnet")
    (models / "en.arpa.bin").write_bytes(lzma.decompress((folder / "en.arpa.bin.xz").read_bytes()))
    (models / "en.sp.model").write_bytes((folder / "en.sp.model").read_bytes())
    return f"{models / 'en.arpa.bin'}+{models / 'en.sp.model'}"


@pytest.fixture(scope="module")
def documents(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(lzma.decompress((folder / "expected.json.xz").read_bytes()))
    assert len(found) == 314
    return found


def loop(pair: str, like: Like) -> Callable[[str], float]:
    """Return the perplexity of a text by the two packages, as the tools compute it."""
    binary, pieces = pair.split("+")
    model, cutter, step = kenlm.Model(binary), sentencepiece.SentencePieceProcessor(pieces), CLEANING[like]

    def perplexity(text: str) -> float:
        cut = cutter.encode_as_pieces(text if step is None else clean_text(text, step))
        score, length = 0.0, 0
        for line in " ".join(cut).split("\n"):
            score += model.score(line)
            length += len(line.split()) + 1
        return float(round(10.0 ** (-score / length), 1))

    return perplexity


def test_perplexities_are_ccnets_to_the_printed_digit(pair: str, documents: list[dict[str, Any]]) -> None:
    """Issue 19, section 3: all 314 documents of CCNet's pair, with the sums of log10 and the lengths."""
    columns = PairScorer.open(pair, "wiki_", "ccnet").columns(Block.from_texts([each["text"] for each in documents]))
    assert find_column(columns, "wiki_perplexity").values.tolist() == [each["perplexity"] for each in documents]
    assert find_column(columns, "wiki_tokens").values.tolist() == [each["length"] for each in documents]
    logs = find_column(columns, "wiki_score").values.tolist()
    assert logs == pytest.approx([each["log10"] * 2.302585092994046 for each in documents], rel=1e-15)


@pytest.mark.parametrize("like", LIKES)
def test_each_variant_is_the_loop_of_its_tool(pair: str, documents: list[dict[str, Any]], like: Like) -> None:
    texts = [each["text"] for each in documents]
    rng = random.Random(1)
    pieces = [text[at : at + 60] for text in texts for at in (rng.randrange(len(text) + 1),)]
    found = find_column(PairScorer.open(pair, "", like).columns(Block.from_texts(texts + pieces)), "perplexity")
    assert found.values.tolist() == list(map(loop(pair, like), texts + pieces))


def test_without_a_tool_to_follow_nothing_is_normalised_or_rounded(pair: str) -> None:
    texts = ["the history of science", " \n"]
    score, tokens, _, perplexity = PairScorer.open(pair, "", None).columns(Block.from_texts(texts))
    assert perplexity.values[0] == pytest.approx(2.718281828459045 ** (-score.values[0] / tokens.values[0]))
    assert round(perplexity.values[0], 1) == loop(pair, "data-juicer")(texts[0])
    assert perplexity.missing.tolist() == [False, True]


def test_a_run_adds_perplexities_and_buckets(
    pair: str, documents: list[dict[str, Any]], folder: Path, tmp_path: Path
) -> None:
    """One run: a language, its pair, and head, middle or tail by cutoff.csv."""
    from foreword.fasttext.classifier import FastTextClassifier

    words = ["the of and in to", "der die und das ist"]
    FastTextClassifier(4, epochs=50, rate=0.5).fit(words * 20, ["en", "de"] * 20).write(tmp_path / "lid.bin")
    texts = [each for each in documents if "the" in each["text"].lower().split()][:60]
    web = tmp_path / "web.jsonl"
    web.write_text("".join(json.dumps({"text": each["text"]}) + "\n" for each in texts), encoding="utf-8")
    models = [("lid", str(tmp_path / "lid.bin")), ("wiki", pair.replace("en.", "{lid_label}."))]
    filtering = Filtering(models, buckets="table", table=str(folder / "cutoff.csv"), like="ccnet")
    filter_files(str(web), tmp_path / "out", filtering, processes=1)
    rows = [json.loads(line) for line in (tmp_path / "out" / "web.jsonl").read_text("utf-8").splitlines()]
    cutoffs = {row.split(",")[0]: row.split(",") for row in (folder / "cutoff.csv").read_text().splitlines()}
    place = cutoffs[""].index("en")
    head, middle = float(cutoffs["30"][place]), float(cutoffs["60"][place])
    seen = set()
    for row, each in zip(rows, texts, strict=True):
        if row["lid_label"] != "en":
            assert row["wiki_perplexity"] is None
            assert row["bucket"] is None
            continue
        p = each["perplexity"]
        assert row["wiki_perplexity"] == p
        assert row["bucket"] == ("head" if p < head else "middle" if p < middle else "tail")
        seen.add(row["bucket"])
    assert len(seen) >= 2


def test_files_that_do_not_belong_together_are_reported(pair: str, folder: Path) -> None:
    binary, _ = pair.split("+")
    with pytest.warns(MismatchedPairWarning, match=r"\d\d% of the pieces are unknown to the KenLM model"):
        PairScorer.open(f"{binary}+{folder / 'bpe_bytes.model'}", "", "ccnet")


@pytest.mark.long
@pytest.mark.parametrize("like", LIKES)
def test_a_hundred_thousand_documents(pair: str, tmp_path: Path, like: Like) -> None:
    """Issue 19, section 3: 100,000 documents, JSONL to JSONL, against the loop in the same test."""
    with lzma.open(real("enwiki2014/enwiki2014.part1.txt.xz"), "rt", encoding="utf-8") as lines:
        texts = list(islice((line.rstrip("\n") for line in lines if line.strip()), 100_000))
    assert len(texts) == 100_000
    web = tmp_path / "web.jsonl"
    web.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    filter_files(str(web), tmp_path / "out", Filtering([("", pair)], score_only=True, like=like), processes=1)
    perplexity = loop(pair, like)
    with (tmp_path / "out" / "web.jsonl").open(encoding="utf-8") as lines:
        wrong = [
            (text, found, wanted)
            for text, line in zip(texts, lines, strict=True)
            for found, wanted in [(json.loads(line)["perplexity"], perplexity(text))]
            if found != wanted
        ]
    assert wrong == []
