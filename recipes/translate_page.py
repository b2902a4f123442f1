"""The pictures of docs/translate.md: la maison bleue, and what one vector can hold. A minute on one core.

python recipes/translate_page.py FOLDER
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np
import torch

from foreword import Seq2Seq, TextTranslator, WordTokenizer
from foreword.lessons.bottleneck import bottleneck, draw_bottleneck
from foreword.picture.heat import attention, attention_text
from foreword.picture.picture import write_standalone

NOUNS = {"maison": "house", "voiture": "car", "fleur": "flower", "table": "table", "chaise": "chair", "robe": "dress"}
ADJECTIVES = {"bleue": "blue", "verte": "green", "noire": "black", "blanche": "white", "ronde": "round"}
ARTICLES = {"la": "the", "une": "a", "cette": "this"}


def french() -> TextTranslator:
    """Learnt from one to three phrases in a row, "la maison bleue" never among them."""
    random = np.random.default_rng(0)
    phrases = [each for each in product(ARTICLES, NOUNS, ADJECTIVES) if each != ("la", "maison", "bleue")]
    sources, targets = [], []
    for _ in range(500):
        drawn = [phrases[place] for place in random.integers(len(phrases), size=random.integers(1, 4))]
        sources.append(" et ".join(" ".join(each) for each in drawn))
        targets.append(" and ".join(f"{ARTICLES[a]} {ADJECTIVES[j]} {NOUNS[n]}" for a, n, j in drawn))
    model = Seq2Seq(24, words=16, epochs=12, batch=250, rate=2e-2, dropout=0.1, attention="additive", device="cpu")
    return TextTranslator(WordTokenizer(), WordTokenizer(), model).fit(sources, targets)


def main() -> None:
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    looked = french().look("la maison bleue et une fleur verte")
    write_standalone(attention(looked.source, looked.target, looked.weights), folder / "attention.svg")
    sys.stdout.write(attention_text(looked.source, looked.target, looked.weights))
    found = bottleneck(longest=16, pairs=3000, measured=60, epochs=12, device="cpu")
    lines = {kind: values.tolist() for kind, values in found.perplexity.items()}
    write_standalone(draw_bottleneck(found.lengths.tolist(), lines), folder / "bottleneck.svg")
    for kind, shares in found.right.items():
        sys.stdout.write(f"{kind}: wholly right at 4, 8, 12, 16 words: {shares[3::4].round(2).tolist()}\n")
        sys.stdout.write(
            f"{kind}: perplexity at 4, 8, 12, 16 words: {found.perplexity[kind][3::4].round(2).tolist()}\n"
        )


if __name__ == "__main__":
    main()
