"""Static vectors of all of enwiki, 16 million words: analogies, bias, words that were not seen, words with a typo.

    python recipes/wiki_vectors.py --models word2vec,word2vec
    python recipes/wiki_vectors.py --models fasttext,glove --words 4000000

Lower case, words seen five times and more, 100 dimensions, one thread, five epochs (GloVe: fifteen). A row is one model
and one seed and says how many words were read; rows are added to docs/results/wiki_vectors.json. Typos: of each of the
2,000 most frequent words of six letters and more two neighbouring letters change places; those that make another known
word are left out. Asked is whether a vector for it exists, and whether the word itself is the nearest of all.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from foreword import Corpus, FastText, GloVe, Word2Vec, WordTokenizer, WordVectors, read_documents
from foreword.evaluate.vectors import measure_analogies, measure_similarity, read_pairs, read_questions
from foreword.lessons.bias import bias_direction, direct_bias, read_word_sets, weat
from foreword.lessons.claims.results import provenance, write_result
from foreword.text.datasets import find

MODELS: dict[str, Callable[[int], Any]] = {
    "word2vec": lambda seed: Word2Vec(100, epochs=5, seed=seed),
    "cbow": lambda seed: Word2Vec(100, model="cbow", epochs=5, seed=seed),
    "fasttext": lambda seed: FastText(100, epochs=5, seed=seed),
    "glove": lambda seed: GloVe(100, seed=seed),
}
ANALOGIES = [
    ("man", "king", "woman", "queen"),
    ("france", "paris", "italy", "rome"),
    ("france", "paris", "germany", "berlin"),
]
UNSEEN = ["eatable", "unreadabel", "goverment", "refridgerators"]
TYPOS = 2000


def wikipedia(words: int) -> Corpus:
    """Return the first words, in lower case, that were seen five times or more."""
    texts, left = [], words
    for article in read_documents(find("enwiki")):
        found = re.findall("[a-z]+", article.lower())
        texts.append(" ".join(found))
        left -= len(found)
        if left <= 0:
            break
    return Corpus.from_texts(texts, WordTokenizer(min_count=5).fit(texts))


def first_answers(vectors: WordVectors) -> dict[str, Any]:
    """The first three answers with the inputs left out, and the first with them in."""
    return {
        f"{other} − {one} + {third} ≈ {wanted}": {
            "inputs left out": [word for word, _ in vectors.analogy(one, other, third, 3)],
            "inputs allowed": vectors.analogy(one, other, third, 1, include_inputs=True)[0][0],
        }
        for one, other, third, wanted in ANALOGIES
    }


def bias(vectors: WordVectors) -> dict[str, Any]:
    """WEAT 6 (careers and family) and 8 (science and arts), and the direct bias of professions."""
    found: dict[str, Any] = {}
    for split in ("weat6", "weat8"):
        tested = weat(vectors, read_word_sets(find(f"bias:{split}")))
        found[split] = {"effect": round(tested.effect, 3), "p": round(tested.p_value, 5)}
    pairs, professions = (
        json.loads(find(f"bias:{split}").read_text("utf-8")) for split in ("definitional-pairs", "professions")
    )
    direction = bias_direction(vectors, pairs)
    return found | {"direct bias": round(direct_bias(vectors, [entry[0] for entry in professions], direction), 4)}


def with_typo(word: str, random: np.random.Generator) -> str:
    at = int(random.integers(1, len(word) - 2))
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def noisy(vectors: WordVectors) -> dict[str, Any]:
    """Which words with a typo have a vector, and for which the word itself is the nearest."""
    random = np.random.default_rng(0)
    frequent = [word for word in vectors.words if len(word) >= 6][:TYPOS]
    pairs = [(word, typo) for word in frequent if (typo := with_typo(word, random)) not in vectors]
    rows = {typo: vectors[typo] for _, typo in pairs if _has(vectors, typo)}
    nearest = [vectors.nearest(rows[typo], 1)[0][0] == word for word, typo in pairs if typo in rows]
    return {"words": len(pairs), "with a vector": len(rows), "nearest to the word itself": sum(nearest)}


def _has(vectors: WordVectors, word: str) -> bool:
    try:
        return bool(np.any(vectors[word]))
    except KeyError:
        return False


def run(name: str, seed: int, corpus: Corpus) -> dict[str, Any]:
    """Train one model and measure."""
    began = time.perf_counter()
    vectors: WordVectors = MODELS[name](seed).fit(corpus).vectors
    seconds = time.perf_counter() - began
    questions = measure_analogies(vectors, read_questions(find("questions-words")))
    close = measure_similarity(vectors, read_pairs(find("word-sim:ws353")))
    facts = {"row": name, **provenance(seed, seconds), "words": len(corpus.ids), "vocabulary": len(vectors)}
    facts |= {"analogies": round(questions.accuracy, 4), "WordSim-353": round(close.spearman, 4)}
    facts |= {"answers": first_answers(vectors), "bias": bias(vectors), "typos": noisy(vectors)}
    unseen = [word for word in UNSEEN if word not in vectors and _has(vectors, word)]
    return facts | {"unseen": {word: [near for near, _ in vectors.nearest(vectors[word], 5)] for word in unseen}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=16_500_000)
    parser.add_argument(
        "--models",
        default="word2vec,word2vec",
        help="a row each; the n-th of a name has seed n",
    )
    parser.add_argument("--out", type=Path, default=Path("docs/results/wiki_vectors.json"))
    given = parser.parse_args()
    corpus, names = wikipedia(given.words), given.models.split(",")
    rows = json.loads(given.out.read_text("utf-8"))["rows"] if given.out.exists() else []
    for number, name in enumerate(names):
        rows.append(run(name, names[:number].count(name), corpus))
        sys.stderr.write(json.dumps(rows[-1], ensure_ascii=False) + "\n")
        write_result(given.out, {"text": "enwiki2014, lower case, words seen five times and more", "rows": rows})


if __name__ == "__main__":
    main()
