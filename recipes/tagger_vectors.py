"""Word vectors for the neural tagger, from enwiki alone: case kept, punctuation apart as in CoNLL's files.

    python recipes/tagger_vectors.py --out vectors.bin
    python recipes/tagger.py names --vectors vectors.bin

Only the words that the tagger's own data set can ask for are needed there, but all that were seen five times are kept,
so that one file serves every task.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from foreword import Word2Vec
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
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dimensions", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
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


if __name__ == "__main__":
    main()
