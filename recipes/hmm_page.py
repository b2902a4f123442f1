"""The table of states and the picture of docs/hmm.md, measured afresh.

    python recipes/hmm_page.py

Learns 32 states from the embedded text, prints the likeliest words of each as Markdown, and writes
docs/pictures/hmm-fading.svg: two readers begin sure of the two states that differ most in what follows them, read the
same sentence, and come to agree. Takes some ten seconds.
"""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import numpy as np

from foreword import HMM, Corpus, WordTokenizer, embedded_text
from foreword.lessons.fading import draw_fading, fading, total_variation
from foreword.picture.picture import write_standalone

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
STATES, WORDS = 32, 8
SENTENCE = "If the file does not exist an error is raised and"


def learn() -> HMM:
    texts = embedded_text()
    return HMM(states=STATES).fit(Corpus.from_texts(texts, WordTokenizer(min_count=2).fit(texts)))


def main() -> None:
    model = learn()
    lines = ["| state | its likeliest words |", "|---|---|"]
    for state in range(STATES):
        likeliest = (model.vocab[id] for id in np.argsort(-model.emission_[state], kind="stable")[:WORDS].tolist())
        lines.append(f"| {state} | {' '.join(likeliest).replace('<unk>', '`<unk>`').replace('</s>', '`</s>`')} |")
    sys.stdout.write("\n".join(lines) + "\n\n")
    one, other = max(
        combinations(range(STATES), 2),
        key=lambda pair: total_variation(model.transition_[pair[0]], model.transition_[pair[1]]),
    )
    words = SENTENCE.split()
    sure = np.eye(STATES)
    found = fading(model, model.vocab.ids(words), sure[one], sure[other])
    sys.stdout.write(f"Sure of state {one} or of state {other}:\n\n")
    for word, distance, bound in zip(words, found.distances.tolist(), found.bounds.tolist(), strict=True):
        sys.stdout.write(f"{word:12} {distance:.1e}, at most {bound:.1e}\n")
    drawn = draw_fading(words, found.distances.tolist(), found.bounds.tolist())
    write_standalone(drawn, PICTURES / "hmm-fading.svg")


if __name__ == "__main__":
    main()
