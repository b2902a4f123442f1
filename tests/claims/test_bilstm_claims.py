"""What the sources say of reading both ways, and of a tagging head: rows S03, S04.

"I went to the bank to deposit money": at *bank* only the words behind it tell the sense
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from foreword.evaluate.tagging import measure_spans
from foreword.tag.bilstm import BiLSTMTagger
from foreword.tag.conll import read_conll
from foreword.tag.conllu import read_conllu
from foreword.tag.hmm import most_frequent_tags
from foreword.tag.schemes import Scheme
from foreword.text.datasets import find

Report = Callable[[str, object], None]

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


@pytest.mark.data
def test_s03_parts_of_speech_from_a_little_of_a_treebank(record_property: Report) -> None:
    """S03: a fifteenth of the training part, four times: far above each word's most frequent tag. The whole of it and
    names are learnt by recipes/tagger.py.
    """
    torch.set_num_threads(1)
    train, test = (read_conllu(find(f"ud_english_ewt:{split}")) for split in ("train", "valid"))
    words, tags = train.sentences[::15], train.tags[::15]
    tagger = BiLSTMTagger(80, words=50, crf=False, epochs=4, rate=6e-3, device="cpu").fit(words, tags)
    measured = tagger.accuracies(test.sentences[:600], test.tags[:600])
    usual = zip(most_frequent_tags(words, tags, test.sentences[:600]), test.tags[:600], strict=True)
    baseline = float(np.mean([ours == theirs for pair in usual for ours, theirs in zip(*pair, strict=True)]))
    record_property("S03 share of right tags, and of the most frequent ones", (float(measured.all), baseline))
    assert measured.all > baseline + 0.05


@pytest.mark.data
@pytest.mark.parametrize(("name", "scheme"), [("conll2003", "iob1"), ("conll2000", "bio")])
def test_spans_of_real_files_are_the_same_inside(name: str, scheme: str) -> None:
    """Of CoNLL-2003, where two spans begin with a B- that IOB1 does not ask for, and of CoNLL-2000."""
    gold = read_conll(find(f"{name}:train")).tags
    inside = Scheme.learnt(scheme, "bioes", gold)
    back = [inside.names(numbers.tolist()) for numbers in inside.numbers(gold)]
    assert measure_spans(back, gold).micro.f1 == 1.0
    assert sum(ours != theirs for ours, theirs in zip(back, gold, strict=True)) == (2 if name == "conll2003" else 0)
