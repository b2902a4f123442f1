"""Word vectors for the neural tagger, from enwiki alone: case kept, punctuation apart as in CoNLL's files.

    python recipes/tagger_vectors.py                          writes vectors.bin
    python recipes/tagger.py names --vectors vectors.bin

Only the words that the tagger's own data set can ask for are needed there, but all that were seen five times are kept,
so that one file serves every task. How they were made is a row of docs/results/tagger.json.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from foreword import Word2Vec
from foreword.lessons.claims.results import provenance, stored_rows, write_result
from foreword.text.datasets import find
from foreword.text.sources import read_documents
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.vectors.word2vec_file import write_vectors

WORD = re.compile(r"\w+(?:[-.]\w+)*|'\w+|[^\w\s]")
"""Letters and digits, joined by a hyphen or a dot inside (``U.S``, ``1.5``, ``mid-air``); a clitic; or one sign."""


def sentences() -> Iterator[str]:
    for document in read_documents(find("enwiki:all")):
        yield " ".join(WORD.findall(document))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("vectors.bin"))
    parser.add_argument("--dimensions", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=Path("docs/results/tagger.json"))
    given = parser.parse_args()
    began = time.perf_counter()
    texts = list(sentences())
    corpus = Corpus.from_texts(texts, WordTokenizer(min_count=5).fit(texts))
    del texts
    model = Word2Vec(given.dimensions, epochs=given.epochs, threads=given.threads, seed=given.seed)
    told = 0
    for step in model.train(corpus):
        if step.done * 20 // step.total > told:
            told = step.done * 20 // step.total
            sys.stderr.write(f"{step.done / step.total:4.0%}  loss {step.loss:.4f}\n")
    write_vectors(model.vectors, given.out)
    row = {"row": "vectors", **provenance(given.seed, time.perf_counter() - began)}
    row |= {"words": len(corpus.ids), "vocabulary": len(model.vectors), "epochs": given.epochs}
    others = [each for each in stored_rows(given.results) if each["row"] != "vectors"]
    write_result(given.results, {"measure": "F1 of spans, or the share of right tags", "rows": [*others, row]})


if __name__ == "__main__":
    main()
