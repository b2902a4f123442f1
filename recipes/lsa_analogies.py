"""How well word vectors by LSA do at analogies, compared with chance (row T09).

    python recipes/lsa_analogies.py                    wikitext-2
    python recipes/lsa_analogies.py enwiki2014         another named dataset
    python recipes/lsa_analogies.py a.txt b.txt.gz     files

Count which words stand near which, weigh the counts, and keep 100 dimensions. Four ways to weigh: not at all, by the
square root, by the logarithm of one more, and by how much oftener two words meet than they would by chance (positive
pointwise mutual information). GloVe's authors compare themselves with the first three (Pennington, Socher and Manning
2014, table 2: SVD, SVD-S, SVD-L). The fifth row counts words in documents instead, as LSA was first meant.

A question "a is to b as c is to ?" is right if the word nearest to b − a + c, those three left out, is the one asked
for. Questions with a word that the text has not, or has too rarely, are not asked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy import sparse

from foreword.features.lsa import LSA
from foreword.text.datasets import DATASETS, dataset, find
from foreword.text.sources import read_documents
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

WINDOW = 10
DIMENSIONS = 100
MIN_COUNT = 5
QUESTIONS_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Result:
    """How many questions were asked, and answered rightly."""

    name: str
    asked: int
    right: int

    @property
    def accuracy(self) -> float:
        return self.right / self.asked


def compare(
    texts: Iterable[str], questions: Sequence[tuple[str, ...]], dimensions: int = DIMENSIONS
) -> Iterator[Result]:
    """The score of each way to weigh counts."""
    lowered = [text.lower() for text in texts]
    tokenizer = WordTokenizer(min_count=MIN_COUNT).fit(lowered)
    corpus = Corpus.from_texts(lowered, tokenizer)
    asked = known_questions(corpus, questions)
    nearby = window_counts(corpus, WINDOW)
    matrices = {
        "counts": nearby,
        "square root": nearby.sqrt(),
        "logarithm": nearby.log1p(),
        "mutual information": mutual_information(nearby),
        "documents, logarithm": document_counts(corpus).log1p(),
    }
    for name, matrix in matrices.items():
        vectors = LSA(dimensions).fit(matrix).word_vectors()
        yield Result(name, len(asked), int(answers_right(vectors, asked).sum()))


def window_counts(corpus: Corpus, window: int) -> Any:
    """(words, words): how often each word stood up to ``window`` places from each, a far one counting for less."""
    ids, size = corpus.ids.astype(np.int64), len(corpus.vocab)
    document = np.repeat(np.arange(len(corpus)), np.diff(corpus.offsets))
    word = (ids != corpus.vocab.end) & (ids != corpus.vocab.unknown)
    counts = sparse.csr_array((size, size))
    for distance in range(1, window + 1):
        pairs = (document[distance:] == document[:-distance]) & word[distance:] & word[:-distance]
        left, right = ids[:-distance][pairs], ids[distance:][pairs]
        weights = np.full(len(left), 1 / distance)
        counts = counts + sparse.csr_array((weights, (left, right)), shape=(size, size))
    return (counts + counts.T).tocsr()


def document_counts(corpus: Corpus) -> Any:
    """(documents, words)."""
    document = np.repeat(np.arange(len(corpus)), np.diff(corpus.offsets))
    word = (corpus.ids != corpus.vocab.end) & (corpus.ids != corpus.vocab.unknown)
    places = document[word], corpus.ids[word].astype(np.int64)
    return sparse.csr_array((np.ones(len(places[0])), places), shape=(len(corpus), len(corpus.vocab)))


def mutual_information(counts: Any) -> Any:
    """The logarithm of p(a, b) / (p(a) p(b)), and zero where that is negative."""
    table = counts.tocoo()
    sums = np.asarray(counts.sum(axis=1)).ravel()
    values = np.log(table.data * sums.sum() / (sums[table.row] * sums[table.col]))
    return sparse.csr_array((np.maximum(values, 0), (table.row, table.col)), shape=counts.shape)


def known_questions(corpus: Corpus, questions: Sequence[tuple[str, ...]]) -> NDArray[np.int64]:
    """(questions, 4) ids of those whose words are all in the vocabulary."""
    number = {token: id for id, token in enumerate(corpus.vocab)}
    rows = [[number[word] for word in words] for words in questions if all(word in number for word in words)]
    return np.array(rows, np.int64).reshape(-1, 4)


def answers_right(vectors: NDArray[np.float64], questions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the word nearest to b − a + c is the fourth, for each question a, b, c, d."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.where(lengths > 0, lengths, 1)
    right = np.empty(len(questions), bool)
    for start in range(0, len(questions), QUESTIONS_AT_ONCE):
        rows = questions[start : start + QUESTIONS_AT_ONCE]
        a, b, c = (directions[rows[:, place]] for place in range(3))
        cosines = (b - a + c) @ directions.T
        np.put_along_axis(cosines, rows[:, :3], -np.inf, axis=1)
        right[start : start + len(rows)] = cosines.argmax(axis=1) == rows[:, 3]
    return right


def read_questions(path: Path) -> list[tuple[str, ...]]:
    """Lines of four words; those that begin with a colon name a section."""
    lines = (text.lower().split() for text in read_documents(str(path)) if not text.startswith(":"))
    return [tuple(words) for words in lines]


def main() -> None:
    names = sys.argv[1:] or ["wikitext-2"]
    files = [str(dataset(name).path()) if name in DATASETS else name for name in names]
    table = Table("counts weighed by", "questions", "right", title=" ".join(names))
    for result in compare(read_documents(files), read_questions(find("questions-words"))):
        table.add_row(result.name, f"{result.asked:,}", f"{result.accuracy:.2%}")
    Console().print(table)


if __name__ == "__main__":
    main()
