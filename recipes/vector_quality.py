"""Quality of skip-gram and CBOW on all of enwiki, 16 million words, next to gensim's (row E06).

    python recipes/vector_quality.py                    three seeds of each, about half an hour on one core
    python recipes/vector_quality.py --words 200000 --seeds 1 --out quality.json      whether it runs

Letters only, in lower case, words seen five times and more; 100 dimensions, window 5, 5 negatives, sample 1e-4, five
epochs, one thread, each side with its own default rate. A row is one model and one seed, stored as soon as it ends in
docs/results/vector_quality.json, which also has the mean and the standard error over seeds. A run again replaces the
rows that it makes. Seconds are wall-clock time of training, reading and vocabulary included; gensim reads a file.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gensim.models
import numpy as np

from foreword import Corpus, Word2Vec, WordTokenizer, WordVectors, read_documents
from foreword.evaluate.vectors import measure_analogies, measure_similarity, read_pairs, read_questions
from foreword.lessons.claims.results import provenance, stored_rows, write_result
from foreword.text.datasets import find

LEAST, SAMPLE, EPOCHS = 5, 1e-4, 5
MEASURES = ("WordSim-353", "MEN", "analogies")


def paragraphs(words: int) -> Iterator[str]:
    """Yield paragraphs of enwiki, letters only and in lower case, until ``words`` words were read."""
    left = words
    for text in read_documents(find("enwiki")):
        found = re.findall("[a-z]+", text.lower())
        if found:
            yield " ".join(found)
        left -= len(found)
        if left <= 0:
            return


def ours(model: Any) -> Callable[[Path, int], WordVectors]:
    """Return a function that trains our Word2Vec on a file."""

    def train(file: Path, seed: int) -> WordVectors:
        texts = file.read_text("ascii").splitlines()
        corpus = Corpus.from_texts(texts, WordTokenizer(min_count=LEAST).fit(texts))
        return Word2Vec(100, model=model, sample=SAMPLE, epochs=EPOCHS, seed=seed).fit(corpus).vectors

    return train


def theirs(model: str) -> Callable[[Path, int], WordVectors]:
    """Return a function that trains gensim's Word2Vec on a file."""

    def train(file: Path, seed: int) -> WordVectors:
        found = gensim.models.Word2Vec(
            corpus_file=str(file), sg=int(model == "skip-gram"), epochs=EPOCHS, seed=seed, workers=1, vector_size=100,
            window=5, negative=5, min_count=LEAST, sample=SAMPLE,
        )  # fmt: skip
        return WordVectors.of_words(found.wv.index_to_key, found.wv.vectors)

    return train


MODELS = {
    "cbow": ours("cbow"),
    "skip-gram": ours("skip-gram"),
    "gensim-cbow": theirs("cbow"),
    "gensim-skip-gram": theirs("skip-gram"),
}


def scores(vectors: WordVectors) -> dict[str, float]:
    """Score vectors by two sets of word pairs and by Google's analogies among the 30,000 most frequent words."""
    pairs = [measure_similarity(vectors, read_pairs(find(f"word-sim:{name}"))) for name in ("ws353", "men3000")]
    answers = measure_analogies(vectors, read_questions(find("questions-words"))).accuracy
    found = [*(each.spearman for each in pairs), answers]
    return {name: round(float(value), 4) for name, value in zip(MEASURES, found, strict=True)}


def means(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean and the standard error of each model over its seeds."""
    found: dict[str, Any] = {}
    for name in MODELS:
        mine = [row for row in rows if row["row"] == name]
        if mine:
            found[name] = {"seeds": len(mine)} | {
                measure: spread([row[measure] for row in mine]) for measure in MEASURES
            }
    return found


def spread(values: list[float]) -> dict[str, float]:
    """Return the mean, and its standard error where there are several values."""
    found = {"mean": round(float(np.mean(values)), 4)}
    if len(values) > 1:
        found["error"] = round(float(np.std(values, ddof=1)) / len(values) ** 0.5, 4)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=16_500_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--models", default=",".join(MODELS), help="their names, separated by commas")
    parser.add_argument("--out", type=Path, default=Path("docs/results/vector_quality.json"))
    given = parser.parse_args()
    logging.getLogger("gensim").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "words.txt"
        with file.open("w", encoding="ascii") as written:
            written.writelines(f"{text}\n" for text in paragraphs(given.words))
        for seed in range(given.seeds):
            for name in given.models.split(","):
                began = time.perf_counter()
                vectors = MODELS[name](file, seed)
                made = provenance(seed, time.perf_counter() - began)
                row = {"row": name, **made, "vocabulary": len(vectors), **scores(vectors)}
                sys.stderr.write(f"{row}\n")
                rows = [each for each in stored_rows(given.out) if (each["row"], each["seed"]) != (name, seed)] + [row]
                about = f"enwiki2014, letters only, lower case; gensim {gensim.__version__}"
                write_result(given.out, {"text": about, "means": means(rows), "rows": rows})


if __name__ == "__main__":
    main()
