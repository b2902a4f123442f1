"""The tables and the pictures of docs/vectors.md, measured afresh.

    python recipes/vector_page.py

Prints the tables as Markdown and writes docs/pictures/vectors-*.svg; the first table is also stored in
docs/results/vector_page.json. Takes some minutes; the texts and the test sets come from $FOREWORD_DATA, or are
downloaded. Times are seconds of CPU on one thread.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from foreword import LSA, Corpus, FastText, GloVe, Word2Vec, WordTokenizer, WordVectors, read_documents
from foreword.evaluate.vectors import measure_analogies, measure_similarity, read_pairs, read_questions
from foreword.lessons.bias import (
    bias_direction,
    clustering_bias,
    debias,
    direct_bias,
    known_words,
    read_word_sets,
    weat,
)
from foreword.lessons.claims.results import provenance, write_result
from foreword.lessons.embedding import glove_against_fasttext, intrinsic_dimension
from foreword.picture.picture import write_standalone
from foreword.picture.space import cbow_against_skip_gram, parallelogram, word_map
from foreword.text.datasets import dataset
from foreword.vectors.cooccurrence import Cooccurrence

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
WORDS = 4_000_000
EPOCHS = 5
GROUPS = {
    "days": ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"],
    "cities": ["rome", "milan", "paris", "london", "berlin", "madrid"],
    "animals": ["cat", "dog", "horse", "cow", "sheep", "bird"],
}
MODELS: dict[str, Callable[[], Any]] = {
    "word2vec, skip-gram": lambda: Word2Vec(100, epochs=EPOCHS),
    "word2vec, CBOW": lambda: Word2Vec(100, model="cbow", epochs=EPOCHS),
    "fastText, skip-gram": lambda: FastText(100, epochs=EPOCHS),
    "GloVe": lambda: GloVe(100),
}
PAIRS = {"WordSim-353": "ws353", "MEN": "men3000", "SimLex-999": "simlex999"}
UNSEEN = ["eatable", "unreadabel", "wikipedians", "goverment", "refridgerators"]


def wikipedia(words: int) -> Corpus:
    """Return the first ``count`` words in lower case that were seen five times or more."""
    texts = []
    for article in read_documents(dataset("enwiki").path()):
        found = re.findall("[a-z]+", article.lower())
        texts.append(" ".join(found))
        words -= len(found)
        if words <= 0:
            break
    return Corpus.from_texts(texts, WordTokenizer(min_count=5).fit(texts))


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    return work(), time.process_time() - began


def lsa_vectors(corpus: Corpus, window: int = 10) -> WordVectors:
    """Counts of neighbours as positive mutual information, in a hundred dimensions."""
    near = Cooccurrence.of(corpus, window)
    size = len(corpus.vocab)
    half = sparse.csr_array((near.counts.astype(np.float64), near.columns, near.offsets), shape=(size, size))
    table = (half + sparse.tril(half, -1).T).tocoo()
    sums = np.bincount(table.row, table.data, size)
    values = np.maximum(np.log(table.data * sums.sum() / (sums[table.row] * sums[table.col])), 0)
    weighed = sparse.csr_array((values, (table.row, table.col)), shape=(size, size))
    return WordVectors.of_vocab(corpus.vocab, LSA(100).fit(weighed).word_vectors(0.5).astype(np.float32))


def measured(vectors: WordVectors) -> dict[str, float]:
    """Return Spearman's ρ of the three sets of pairs, and the share of analogies that are answered in both ways."""
    questions = read_questions(dataset("questions-words").path())
    found = {
        name: measure_similarity(vectors, read_pairs(dataset("word-sim").path(split))).spearman
        for name, split in PAIRS.items()
    }
    answers = {
        "3CosAdd": measure_analogies(vectors, questions, method="add").accuracy,
        "3CosMul": measure_analogies(vectors, questions, method="mul").accuracy,
    }
    return {name: round(float(value), 4) for name, value in (found | answers).items()}


def shown(quality: dict[str, float]) -> list[str]:
    return [f"{value:.3f}" if name in PAIRS else f"{value:.1%}" for name, value in quality.items()]


def table(*rows: list[str]) -> None:
    first, *rest = (f"| {' | '.join(row)} |" for row in rows)
    say("", first, f"|{'---|' * len(rows[0])}", *rest)


def say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def models(corpus: Corpus) -> tuple[dict[str, WordVectors], dict[str, dict[str, float]]]:
    """Train all models; return their vectors and, of each, its quality and the CPU seconds."""
    found, facts = {}, {}
    makers: dict[str, Callable[[], WordVectors]] = {
        name: lambda make=make: make().fit(corpus).vectors  # type: ignore[misc]
        for name, make in MODELS.items()
    }
    for name, make in {**makers, "LSA of mutual information": lambda: lsa_vectors(corpus)}.items():
        found[name], seconds = timed(make)
        facts[name] = measured(found[name]) | {"CPU seconds": round(seconds, 1)}
    rows = [[name, *shown(each)[:-1], f"{each['CPU seconds']:.1f}"] for name, each in facts.items()]
    table(["vectors", *next(iter(facts.values()))], *rows)
    return found, facts


def precisions(vectors: WordVectors) -> None:
    rows = [["stored as", "bytes", "a cosine moves by", "WordSim-353", "MEN", "SimLex-999", "3CosAdd", "3CosMul"]]
    exact = vectors.rows.cosines(vectors["king"])
    for stored in ("float32", "float16", "int8"):
        small = vectors.stored_as(stored)
        moved = np.abs(small.rows.cosines(vectors["king"]) - exact).max()
        rows.append([stored, f"{small.rows.nbytes:,}", f"{moved:.1g}" if moved else "0", *shown(measured(small))])
    table(*rows)


def bias(vectors: WordVectors) -> None:
    held = dataset("bias")

    def words(split: str) -> Any:
        return json.loads(held.path(split).read_text(encoding="utf-8"))

    rows = [["test", "targets", "attributes", "effect", "p"]]
    for split in ("weat2", "weat6", "weat7", "weat8"):
        sets = read_word_sets(held.path(split))
        found = weat(vectors, sets)
        p_value = f"{found.p_value:.4f}" if found.exact else f"{found.p_value:.5f}, sampled"
        rows.append([split, " / ".join(sets.names[:2]), " / ".join(sets.names[2:]), f"{found.effect:.2f}", p_value])
    table(*rows)
    direction = bias_direction(vectors, words("definitional-pairs"))
    specific, equal = words("gender-specific"), words("equalize-pairs")
    after = debias(vectors, direction, specific, equal)
    gendered = {*known_words(vectors, specific), *known_words(vectors, [word for pair in equal for word in pair])}
    neutral = [word for word in vectors.words[:20_000] if word not in gendered]
    professions = [word for word, *_ in words("professions") if word in neutral]
    questions = read_questions(dataset("questions-words").path())
    rows = [["", "before", "after"]]
    both = (vectors, after)
    rows.append(["direct bias of professions", *(f"{direct_bias(each, professions, direction):.2g}" for each in both)])
    rows.append(["analogies answered", *(f"{measure_analogies(each, questions).accuracy:.1%}" for each in both)])
    sets = read_word_sets(held.path("weat6"))
    rows.append(["weat6", *(f"{weat(each, sets).effect:.2f}" for each in both)])
    told = [f"{clustering_bias(vectors, each, direction, neutral):.1%}" for each in both]
    rows.append(["sides told apart by two clusters", *told])
    table(*rows)


def pictures(vectors: WordVectors) -> Iterator[str]:
    drawn = {
        "analogy": parallelogram(vectors, "man", "king", "woman", "queen"),
        "map": word_map(vectors, GROUPS),
        "window": cbow_against_skip_gram(
            Word2Vec(100, model="cbow", window=2), Word2Vec(100, window=2), ["the", "cat", "sat", "on", "the", "mat"], 2
        ),
    }
    for name, picture in drawn.items():
        write_standalone(picture, PICTURES / f"vectors-{name}.svg")
        yield f"{name}: {picture.caption}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/results/vector_page.json"))
    given = parser.parse_args()
    began = time.perf_counter()
    corpus = wikipedia(WORDS)
    found, facts = models(corpus)
    text = {"text": "the first four million words of enwiki2014, lower case", "vocabulary": len(found["GloVe"])}
    write_result(given.out, provenance(0, time.perf_counter() - began) | text | {"models": facts})
    skip_gram = found["word2vec, skip-gram"]
    precisions(skip_gram)
    unseen = [word for word in UNSEEN if word not in skip_gram]
    compared = glove_against_fasttext(found["GloVe"], found["fastText, skip-gram"], unseen)
    table(["", "GloVe", "fastText"], *([row.feature, row.left_text, row.right_text] for row in compared))
    say("", f"intrinsic dimension {intrinsic_dimension(skip_gram.directions(slice(0, 3000))):.1f}")
    for query in ("king", "monday", "eatable"):
        vectors = found["fastText, skip-gram"] if query == "eatable" else skip_gram
        say(f"{query}: {', '.join(word for word, _ in vectors.nearest(query, 6))}")
    for question in (("man", "king", "woman"), ("france", "paris", "italy"), ("france", "paris", "germany")):
        answers = (f"{word} {cosine:.2f}" for word, cosine in skip_gram.analogy(*question, k=4))
        say(f"{' '.join(question)}: {', '.join(answers)}")
    bias(skip_gram)
    say("", *pictures(skip_gram))


if __name__ == "__main__":
    main()
