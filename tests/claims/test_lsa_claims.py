"""What the sources say of LSA and of the topic models after it: rows T09 and G08."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from foreword.evaluate.topics import coherence, completion_perplexity
from foreword.evaluate.vectors import measure_analogies, read_questions
from foreword.features.bag import BagOfWords
from foreword.features.lsa import LSA
from foreword.features.topics import LDA, PLSA
from foreword.text.datasets import find, labelled
from foreword.text.sources import read_documents
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.vectors.cooccurrence import Cooccurrence
from foreword.vectors.glove import GloVe
from foreword.vectors.word2vec import Word2Vec
from foreword.vectors.wordvectors import WordVectors

Report = Callable[[str, object], None]

LINES = 3000
"""Of wikitext-2: about 170,000 words, and a few seconds."""


@cache
def recipe() -> ModuleType:
    path = Path(__file__).parents[2] / "recipes" / "lsa_analogies.py"
    spec = importlib.util.spec_from_file_location("lsa_analogies", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["lsa_analogies"] = module  # where its dataclass looks for its own types
    spec.loader.exec_module(module)
    return module


def test_t09_an_analogy_is_the_nearest_word_but_for_its_three() -> None:
    """T09: king − man + woman, by hand: the vectors are (royal, male) and a little more."""
    vectors = np.array([[0, 1, 0.1], [0, -1, 0.1], [1, 1, 0.1], [1, -1, 0.1], [1, 0, 0.2], [0, 0, 0]])
    man, woman, king, queen, crown, nothing = range(6)
    questions = np.array([[man, king, woman, queen], [man, king, woman, crown], [woman, queen, man, king]])
    assert recipe().answers_right(vectors, questions).tolist() == [True, False, True]
    assert not recipe().answers_right(vectors, np.array([[man, woman, king, nothing]]))[0]


@pytest.mark.data
def test_t09_lsa_solves_some_analogies_and_weighing_decides(record_property: Report) -> None:
    """T09: the analogy score of LSA, to stand beside GloVe's. Plain counts hardly solve any, weighed ones do."""
    texts = islice(read_documents(str(find("wikitext-2:train"))), LINES)
    questions = recipe().read_questions(find("questions-words"))
    with threadpool_limits(1):  # BLAS's own threads only wait for each other in matrices as small as these
        results = {result.name: result for result in recipe().compare(texts, questions, dimensions=50)}
    for name, result in results.items():
        record_property(f"T09 analogies right, {name}", f"{result.accuracy:.2%} of {result.asked}")
    assert results["counts"].asked > 1000
    assert results["mutual information"].accuracy > 2 * results["counts"].accuracy
    assert results["mutual information"].accuracy > 0.02


WORDS = 1_000_000


@pytest.mark.data
def test_t09_lsa_beside_glove_and_word2vec(record_property: Report) -> None:
    """T09: the same million words of Wikipedia, the same window, 50 dimensions, all of Google's questions. The
    statement holds of plain counts, which both GloVe and word2vec leave behind, the more so the more text there is
    (GloVe answers 3.4 times as many here, 1.4 times as many of 600,000 words). It does not hold of weighed ones.
    """
    corpus = _lowered_words(WORDS)
    X = Cooccurrence.of(corpus, 10)
    counts = X.matrix()
    with threadpool_limits(1):
        made = {
            "LSA, counts": _lsa_vectors(counts, corpus),
            "LSA, mutual information": _lsa_vectors(recipe().mutual_information(counts), corpus),
            "GloVe": GloVe(50, window=10, epochs=15).fit(X).vectors,
            "word2vec": Word2Vec(50, window=10, sample=1e-3, epochs=10).fit(corpus).vectors,
        }
    questions = read_questions(find("questions-words"))
    right = {}
    for name, vectors in made.items():
        measured = measure_analogies(vectors, questions)
        assert measured.total.asked > 4000
        right[name] = measured.accuracy
        record_property(f"T09 analogies right, {name}", f"{measured.accuracy:.2%} of {measured.total.asked}")
        print(f"{name}: {measured.accuracy:.2%}")
    assert min(right["GloVe"], right["word2vec"]) > right["LSA, counts"]
    assert right["LSA, mutual information"] > right["LSA, counts"]


def _lsa_vectors(matrix: Any, corpus: Corpus) -> WordVectors:
    return WordVectors.of_vocab(corpus.vocab, LSA(50).fit(matrix).word_vectors(0.5).astype(np.float32))


def _lowered_words(words: int) -> Corpus:
    texts = []
    for article in read_documents(str(find("enwiki:all"))):
        found = re.findall("[a-z]+", article.lower())
        texts.append(" ".join(found))
        words -= len(found)
        if words <= 0:
            break
    return Corpus.from_texts(texts, WordTokenizer(min_count=5).fit(texts))


@pytest.mark.data
def test_g08_topics_of_newsgroups_next_to_lsa(record_property: Report) -> None:
    """G08: a quarter of 20 Newsgroups, 20 topics. The words of a topic of pLSA or LDA belong together more than those
    of a dimension of LSA, and both predict held-back words of new texts better than their frequencies do.
    """
    train, test = (
        [text.partition("\n\n")[2] for _, text in islice(labelled(f"20newsgroups:{split}"), 0, None, every)]
        for split, every in (("train", 4), ("test", 8))
    )
    bag = BagOfWords(min_documents=20, max_documents=0.1)
    counts, held = bag.fit_transform(train), bag.transform(test)
    found = {"LSA": coherence(np.abs(LSA(20).fit(counts).components_), counts).mean()}
    perplexity = {"word frequencies": completion_perplexity(PLSA(1).fit(counts), held)}
    for kind in (PLSA, LDA):
        model = kind(20).fit(counts)
        found[kind.__name__] = coherence(model.components_, counts).mean()
        perplexity[kind.__name__] = completion_perplexity(model, held)
    for name, value in found.items():
        record_property(f"G08 coherence (NPMI), {name}", round(float(value), 3))
    for name, value in perplexity.items():
        record_property(f"G08 perplexity of held-back words, {name}", round(value))
    assert min(found["PLSA"], found["LDA"]) > found["LSA"]
    assert max(perplexity["PLSA"], perplexity["LDA"]) < perplexity["word frequencies"]
    assert perplexity["LDA"] < perplexity["PLSA"]
