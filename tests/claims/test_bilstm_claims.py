"""What the sources say of reading both ways: row S04.

"I went to the bank to deposit money": at *bank* only the words behind it tell the sense
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.testing import assert_allclose

from foreword.tag.bilstm import BiLSTMTagger

MONEY = ["to deposit money", "to open an account", "for a loan", "to cash a cheque"]
RIVER = ["to watch the ducks", "and swam across", "to fish for trout", "and fell into the water"]
BEGINNINGS = ["I went to the", "She walked to the", "We came to the", "They ran to the"]


def sentences(beginnings: list[str]) -> tuple[list[list[str]], list[list[str]]]:
    """Every beginning goes with every ending, so that what stands before the word says nothing of its sense."""
    words, tags = [], []
    for begun in beginnings:
        for sense, endings in (("MONEY", MONEY), ("RIVER", RIVER)):
            for ending in endings:
                words.append([*begun.split(), "bank", *ending.split()])
                tags.append([sense if word == "bank" else "O" for word in words[-1]])
    return words, tags


def learnt(**settings: Any) -> BiLSTMTagger:
    torch.set_num_threads(1)
    tagger = BiLSTMTagger(24, words=12, letter_units=6, spelling=8, epochs=30, rate=0.02, device="cpu", **settings)
    return tagger.fit(*sentences(BEGINNINGS[:3]))


def share_right(tagger: BiLSTMTagger) -> float:
    words, tags = sentences(BEGINNINGS[3:])
    pairs = zip(tagger.predict(words), tags, strict=True)
    return float(np.mean([ours[4] == theirs[4] for ours, theirs in pairs]))


def test_s04_only_a_model_that_reads_both_ways_tells_the_sense_of_bank() -> None:
    """S04: after a beginning it has not seen it is right each time. One that reads ahead has, at *bank*, read the same
    words whatever follows: it scores either sense the same in both, and is right for one of them.
    """
    both, ahead = learnt(crf=False), learnt(crf=False, both_ways=False)
    assert share_right(both) == 1.0
    assert share_right(ahead) == 0.5
    begun = [*BEGINNINGS[0].split(), "bank"]
    deposit, ducks = [*begun, *MONEY[0].split()], [*begun, *RIVER[0].split()]
    one, other = ahead.logits([deposit, ducks])
    assert_allclose(one[4], other[4], rtol=0, atol=1e-6)
    assert both.predict([deposit])[0][4] == "MONEY"
    assert both.predict([ducks])[0][4] == "RIVER"
