"""The files of the field: CCNet's pair, probabilities by label, and statistics of the text, from JSONL to JSONL."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path
from typing import Any

import kenlm  # type: ignore[import-not-found,unused-ignore]
import sentencepiece

from benchmarks.data import megabytes, scratch_folder
from benchmarks.filter import emptied, make_web, model_of_languages, same_files
from benchmarks.measure import interleaved, one_core
from benchmarks.report import Row, compared
from foreword.filtering import Filtering, filter_files
from foreword.text.cleaning import clean_text

CCNET = Path(os.environ.get("FOREWORD_DATA", "")) / "formats" / "ccnet"

TITLE = "Files of the field"
HOW = (
    "From a JSONL file to a JSONL file on one core, ours with the opening of its models, the peer's open already. "
    "CCNet's pair: documents of one to twelve paragraphs of enwiki get their perplexity; the peer's loop is "
    "`json.loads`, CCNet's normaliser in Python, `sentencepiece`, `kenlm` and `json.dumps`, and the numbers are the "
    "same to the digit. By label: the probability of a named label of lid.176.ftz, next to our own best label. "
    "Statistics: three of Gopher's rules in one pass, next to the same in Python."
)


def run(quick: bool) -> list[Row]:
    web = make_web((4 if quick else 40) * 1_000_000)
    with one_core():
        return [ccnet_pair(web), one_label(web), statistics(web)]


def filtered(web: Path, filtering: Filtering, out: str) -> Path:
    folder = emptied(out)
    filter_files(str(web), folder, filtering, processes=1)
    return folder


def pair_of_files() -> tuple[Path, Path]:
    """CCNet's pair made small, the binary unpacked."""
    binary = scratch_folder() / "en.arpa.bin"
    if not binary.exists():
        binary.write_bytes(lzma.decompress((CCNET / "en.arpa.bin.xz").read_bytes()))
    return binary, CCNET / "en.sp.model"


def ccnet_pair(web: Path) -> Row:
    binary, pieces = pair_of_files()
    model, cutter = kenlm.Model(str(binary)), sentencepiece.SentencePieceProcessor(str(pieces))
    filtering = Filtering([("", f"{binary}+{pieces}")], score_only=True, like="ccnet")

    def perplexity(text: str) -> float:
        line = " ".join(cutter.encode_as_pieces(clean_text(text, "ccnet")))
        return float(round(10.0 ** (-model.score(line) / (len(line.split()) + 1)), 1))

    def theirs() -> Path:
        folder = emptied("theirs")
        folder.mkdir()
        with web.open(encoding="utf-8") as lines, (folder / web.name).open("w", encoding="utf-8") as out:
            for line in lines:
                row = json.loads(line)
                row["perplexity"] = perplexity(row["text"])
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
        return folder

    pairs = interleaved("CCNet's pair", lambda: filtered(web, filtering, "kept"), theirs, same_perplexities)
    return compared("CCNet's perplexity", "sentencepiece and kenlm", pairs, bar=2, size=megabytes(web))


def rows_of(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.glob("[!.]*")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def same_perplexities(one: Path, other: Path) -> bool:
    return [row["perplexity"] for row in rows_of(one)] == [row["perplexity"] for row in rows_of(other)]


def one_label(web: Path) -> Row:
    """The rule on one label keeps what the rule on the best label keeps: English is above a half."""
    model = [("", str(model_of_languages()))]
    named = Filtering(model, keep=["p(en)>0.65"])
    best = Filtering(model, keep=["label=en and probability>0.65"])
    pairs = interleaved(
        "p(en)", lambda: filtered(web, named, "kept"), lambda: filtered(web, best, "best"), same_files
    )  # fmt: skip
    return compared("JSONL, p(en) of lid.176.ftz", "our best label", pairs, bar=0.9, size=megabytes(web))


def statistics(web: Path) -> Row:
    filtering = Filtering([], keep=["words>=50 and mean_word_length<10 and duplicate_lines<0.3"])

    def passes(text: str) -> bool:
        words, lines = text.split(), [line.strip() for line in text.split("\n") if line.strip()]
        if len(words) < 50 or sum(map(len, words)) / len(words) >= 10:
            return False
        return (len(lines) - len(set(lines))) / len(lines) < 0.3

    def theirs() -> Path:
        folder = emptied("theirs")
        folder.mkdir()
        with web.open(encoding="utf-8") as lines, (folder / web.name).open("w", encoding="utf-8") as kept:
            kept.writelines(line for line in lines if passes(json.loads(line)["text"]))
        return folder

    pairs = interleaved("statistics", lambda: filtered(web, filtering, "kept"), theirs, same_files)
    return compared("JSONL, statistics of the text", "json and Python", pairs, bar=2, size=megabytes(web))
