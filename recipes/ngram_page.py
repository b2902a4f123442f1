"""The tables and the pictures of docs/ngram.md, measured afresh.

    python recipes/ngram_page.py

Prints the tables as Markdown and writes docs/pictures/ngram-*.svg. Takes some ten seconds; Penn Treebank comes
from $FOREWORD_DATA, or is downloaded.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from foreword import Corpus, NgramLM, TextLM, WordTokenizer, embedded_text, read_documents
from foreword.evaluate.compare.facts import ORDERS, ngram_growth
from foreword.evaluate.compare.results import Growth
from foreword.picture.axes import tick_name
from foreword.picture.curves import curves, growth
from foreword.picture.picture import write_standalone
from foreword.text.datasets import dataset

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"

SMOOTHINGS = {
    "modified Kneser-Ney": "modified-kneser-ney",
    "Kneser-Ney": "kneser-ney",
    "stupid back-off": "stupid-backoff",
    "absolute": "absolute",
    "Witten-Bell": "witten-bell",
    "Lidstone 0.1": "lidstone",
    "Laplace": "laplace",
    "maximum likelihood": "maximum-likelihood",
}
HIGHEST = 5
SEED, WORDS = 8, 16
"""Of the samples."""


def penn_treebank() -> tuple[Corpus, Corpus]:
    """Training and test part, every line a sentence."""
    train, test = (list(read_documents([str(dataset("ptb").path(part))])) for part in ("train", "test"))
    tokenizer = WordTokenizer().fit(train)
    return Corpus.from_texts(train, tokenizer), Corpus.from_texts(test, tokenizer)


def samples() -> Iterator[tuple[int, float, str]]:
    """Order, perplexity and what the model says, on the embedded text."""
    train, test = embedded_text("train"), embedded_text("test")
    for order in range(1, HIGHEST + 1):
        model = TextLM(WordTokenizer(min_count=2, split="punctuation"), NgramLM(order)).fit(train)
        yield order, model.perplexity(test), model.generate(seed=SEED, max_tokens=WORDS)


def smoothings(train: Corpus, test: Corpus) -> dict[str, list[float]]:
    """Perplexity of orders 1 to 5 under each smoothing."""
    return {
        name: [math.exp(-NgramLM(order, smoothing).fit(train).score(test)) for order in range(1, HIGHEST + 1)]
        for name, smoothing in SMOOTHINGS.items()
    }


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, *rows]
    told = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([told[0], f"|{'---|' * len(head)}", *told[1:]]) + "\n\n"


def number(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:,.{1 if value < 1000 else 0}f}"


def smoothing_picture(found: dict[str, list[float]]) -> None:
    lines = {name: values for name, values in found.items() if all(map(math.isfinite, values))}
    steps = [f"n = {order}" for order in range(1, HIGHEST + 1)]
    best = found["modified Kneser-Ney"]
    caption = (
        f"Longer contexts help only those who know when to distrust them: modified Kneser-Ney ends at {best[-1]:.1f}."
    )
    drawn = curves(
        steps, lines, "Perplexity on the Penn Treebank’s test part", caption,
        accent={"modified Kneser-Ney"}, dashed={"stupid back-off"},
    )  # fmt: skip
    write_standalone(drawn, PICTURES / "ngram-smoothing.svg")


def growth_picture(rows: list[Growth]) -> None:
    columns = np.array([(row.order, row.possible, row.seen, row.once, row.unseen_share) for row in rows], object).T
    write_standalone(growth(*(column.tolist() for column in columns)), PICTURES / "ngram-growth.svg")


def main() -> None:
    say = sys.stdout.write
    told = ([str(order), f"{value:.1f}", text.replace("<unk>", "`<unk>`")] for order, value, text in samples())
    say(table(["n", "perplexity", "sample"], told))
    train, test = penn_treebank()
    found = smoothings(train, test)
    head = ["smoothing", *(f"order {order}" for order in range(1, HIGHEST + 1))]
    say(table(head, ([name, *map(number, values)] for name, values in found.items())))
    smoothing_picture(found)
    rows = ngram_growth(train, test, ORDERS)
    head = ["n", "possible", "seen in training", "of these once", "of the test text, never seen in training"]
    shown = (
        [
            str(row.order),
            tick_name(row.possible),
            f"{row.seen:,}",
            f"{row.once / row.seen:.0%}",
            f"{row.unseen_share:.0%}",
        ]
        for row in rows
    )
    say(table(head, shown))
    growth_picture(rows)


if __name__ == "__main__":
    main()
