"""The tables and the picture of docs/glove.md, measured afresh.

    python recipes/glove_page.py

Prints the tables as Markdown and writes docs/pictures/glove-loss.svg. Takes some minutes; the texts and the test sets
come from $FOREWORD_DATA, or are downloaded. Times are seconds of CPU on one thread.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from foreword import Corpus, GloVe, WordTokenizer, WordVectors, read_documents
from foreword.evaluate.vectors import measure_analogies, measure_similarity, read_pairs, read_questions
from foreword.picture.curves import curves
from foreword.picture.picture import write_standalone
from foreword.text.datasets import dataset
from foreword.vectors.cooccurrence import Cooccurrence
from foreword.vectors.glove import residuals

T = TypeVar("T")

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "glove-loss.svg"
WORDS = 4_000_000
SEEDS = (0, 1, 2)
NEAR = ("solid", "gas", "water", "fashion", "snow", "engine", "of", "and")


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


def say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def scores(vectors: WordVectors) -> list[float]:
    sets = [read_pairs(dataset("word-sim").path(name)) for name in ("ws353", "men3000")]
    answered = measure_analogies(vectors, read_questions(dataset("questions-words").path())).accuracy
    return [*(measure_similarity(vectors, pairs).spearman for pairs in sets), answered]


def timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.process_time()
    return work(), time.process_time() - began


def quality(corpus: Corpus) -> tuple[dict[int, list[float]], list[str]]:
    """Prints the table of quality. Each window's loss, epoch by epoch, and the table of what window 5 leaves."""
    say("| window | pairs | counting, s | an epoch, s | WordSim-353 | MEN | analogies |", f"|{'---|' * 7}")
    losses: dict[int, list[float]] = {}
    left: list[str] = []
    for window in (5, 15):
        X, counting = timed(lambda window=window: GloVe(window=window).count(corpus))  # type: ignore[misc]
        found = []
        for seed in SEEDS:
            model = GloVe(window=window, seed=seed)
            steps, training = timed(lambda model=model, X=X: [step.loss for step in model.train(X)])  # type: ignore[misc]
            found.append(scores(model.vectors))
        losses[window] = [float(part.mean()) for part in np.array_split(np.array(steps), model.epochs)]
        middle, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / len(SEEDS) ** 0.5
        shown = (f"{value:.3f} ± {spread:.3f}" for value, spread in zip(middle, error, strict=True))
        say(f"| {window} | {len(X):,} | {counting:.1f} | {training / model.epochs:.2f} | {' | '.join(shown)} |")
        left = left or left_over(model, X)
    return losses, left


def left_over(model: GloVe, X: Cooccurrence) -> list[str]:
    """Row E07: what the model leaves of log X."""
    lines = ["", "| pairs | | spread of log X | residual | the same, weighed |", f"|{'---|' * 5}"]
    for name, least in (("all", 0.0), (f"X ≥ {model.x_max:g}", model.x_max), ("X ≥ 100", 100.0)):
        found = residuals(model, X, least=least)
        spread = float(np.std(np.log(X.counts[least <= X.counts])))
        lines.append(f"| {name} | {found.pairs:,} | {spread:.2f} | {found.rms:.2f} | {found.weighted:.2f} |")
    return lines


def ice_and_steam() -> None:
    """Row E08, from all of the text; only articles that have one of the two words matter."""
    either = re.compile(r"\b(?:ice|steam)\b", re.IGNORECASE)
    texts = [text for text in read_documents(dataset("enwiki").path()) if either.search(text)]
    tokenizer = WordTokenizer(split="punctuation", lowercase=True).fit(texts)
    X = Cooccurrence.of(Corpus.from_texts(texts, tokenizer), 15)
    say("", "| word | X with ice | X with steam | P(word given ice) / P(word given steam) |", f"|{'---|' * 4}")
    for word in NEAR:
        given = X.probability(word, "ice"), X.probability(word, "steam")
        ratio = f"{given[0] / given[1]:.3g}" if given[1] else "none"
        say(f"| {word} | {X[word, 'ice']:.2f} | {X[word, 'steam']:.2f} | {ratio} |")


def main() -> None:
    ice_and_steam()
    say("")
    losses, left = quality(wikipedia(WORDS))
    say(*left)
    lines = {f"window {window}": values for window, values in losses.items()}
    epochs = [str(number) if number % 2 else "" for number in range(1, len(losses[5]) + 1)]
    caption = f"From {losses[5][0]:.3f} in the first epoch to {losses[5][-1]:.3f} in the last with window 5."
    write_standalone(curves(epochs, lines, "GloVe's loss, epoch by epoch", caption, accent=["window 5"]), PICTURE)


if __name__ == "__main__":
    main()
