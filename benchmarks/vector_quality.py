"""The quality of word vectors, ours next to gensim's: hours on one core, saved run by run and resumed."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.progress import say
from benchmarks.report import Row
from benchmarks.vectors import SHARED, WORDS, gensim_fasttext, gensim_word2vec, read, words_file
from foreword.evaluate.vectors import measure_analogies, measure_similarity, read_pairs, read_questions
from foreword.fasttext.vectors import FastText
from foreword.text.datasets import find
from foreword.vectors.glove import GloVe
from foreword.vectors.word2vec import Word2Vec
from foreword.vectors.wordvectors import WordVectors

TITLE = "Word vectors: quality"
HOW = (
    "100 dimensions, window 5, 5 negatives, minimum count 5, sample 1e-4, five epochs on enwiki's 16 million words, "
    "letters only and in lower case; each side with its own default rate and one thread. WordSim-353 and MEN by "
    "Spearman's ρ, Google's analogies among 30,000 words; mean and standard error of three seeds, or of as many as the "
    "row says. GloVe: 15 iterations on the first 4 million words, next to Stanford's figures of one run there."
)

SEEDS = (0, 1, 2)
STANFORD = {"WordSim-353": 0.257, "analogies": 0.119}

KEPT = Path(__file__).parent.parent / "build" / "vector_quality.jsonl"
"""Runs that are done; delete it to start over."""

Scores = dict[str, float]
Make = Callable[[int], WordVectors]


def run(quick: bool) -> list[Row]:
    logging.getLogger("gensim").setLevel(logging.ERROR)
    path = words_file(WORDS // 16 if quick else 1 << 40)
    seeds = SEEDS[:2] if quick else SEEDS
    rows = []
    for name, (ours, theirs) in kinds(path).items():
        rows += compared(name, measured(f"ours, {name}", ours, seeds, quick), measured(name, theirs, seeds, quick))
    return rows if quick else rows + glove(seeds)


def kinds(path: Path) -> dict[str, tuple[Make, Make]]:
    def word2vec(model: Any) -> tuple[Make, Make]:
        return (
            lambda seed: Word2Vec(model=model, seed=seed, **SHARED).fit(read(path)).vectors,
            lambda seed: vectors_of(gensim_word2vec(path, model, 5, seed)),
        )

    return {
        "skip-gram": word2vec("skip-gram"),
        "CBOW": word2vec("cbow"),
        "skip-gram with subwords": (
            lambda seed: FastText(seed=seed, **SHARED).fit(read(path)).vectors,
            lambda seed: vectors_of(gensim_fasttext(path, 5, seed)),
        ),
    }


def vectors_of(model: Any) -> WordVectors:
    return WordVectors.of_words(model.wv.index_to_key, model.wv.vectors)


def measured(name: str, make: Make, seeds: tuple[int, ...], quick: bool) -> list[Scores]:
    """A run for each seed, or what is kept of it."""
    kept = {} if quick else runs_kept()
    found = []
    for seed in seeds:
        if (name, seed) not in kept:
            scores = scores_of(make(seed))
            say(f"{name}, seed {seed}: {json.dumps(scores)}")
            kept[name, seed] = scores
            if not quick:
                keep(name, seed, scores)
        found.append(kept[name, seed])
    return found


def runs_kept() -> dict[tuple[str, int], Scores]:
    lines = KEPT.read_text("utf-8").splitlines() if KEPT.exists() else []
    runs = [json.loads(line) for line in lines]
    return {(one["name"], one["seed"]): one["scores"] for one in runs}


def keep(name: str, seed: int, scores: Scores) -> None:
    KEPT.parent.mkdir(exist_ok=True)
    with KEPT.open("a", encoding="utf-8") as file:
        print(json.dumps({"name": name, "seed": seed, "scores": scores}), file=file)


def scores_of(vectors: WordVectors) -> Scores:
    return {
        "WordSim-353": measure_similarity(vectors, read_pairs(find("word-sim:ws353"))).spearman,
        "MEN": measure_similarity(vectors, read_pairs(find("word-sim:men3000"))).spearman,
        "analogies": measure_analogies(vectors, read_questions(find("questions-words"))).accuracy,
    }


def compared(name: str, mine: list[Scores], others: list[Scores]) -> list[Row]:
    rows = []
    for test in mine[0]:
        one, other = ([scores[test] for scores in runs] for runs in (mine, others))
        enough = min(len(one), len(other)) >= len(SEEDS)  # the bar asks for three seeds on both sides
        allowed = float(np.hypot(standard_error(one), standard_error(other)))
        rows.append(
            Row(
                f"{name}: {test}",
                ours=told(one),
                peer=f"gensim: {told(other)}",
                bar="no lower by a standard error",
                met=float(np.mean(one)) >= float(np.mean(other)) - allowed if enough else None,
                figures={"ours": one, "theirs": other},
            )
        )
    return rows


def glove(seeds: tuple[int, ...]) -> list[Row]:
    """On 4 million words, where Stanford's program was measured."""
    corpus = read(words_file(WORDS))
    counted = GloVe(window=5).count(corpus)
    runs = measured("ours, GloVe", lambda seed: GloVe(window=5, seed=seed).fit(counted).vectors, seeds, False)
    rows = []
    for test, least in STANFORD.items():
        found = [scores[test] for scores in runs]
        rows.append(
            Row(
                f"GloVe, 4 million words: {test}",
                ours=told(found),
                peer=f"Stanford's: {least:.3f}, not in this run",
                bar=f"≥ {least:.3f} less a standard error",
                met=float(np.mean(found)) >= least - standard_error(found),
                figures={"ours": found},
            )
        )
    return rows


def told(values: list[float]) -> str:
    spread = f" ± {standard_error(values):.4f} ({len(values)} seeds)" if len(values) > 1 else " (one seed)"
    return f"{np.mean(values):.4f}{spread}"


def standard_error(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0
