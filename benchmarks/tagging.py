"""The tagger of hand-made features against nltk's perceptron tagger, which has much the same features."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from nltk.tag.perceptron import PerceptronTagger

from benchmarks.measure import FEW_PAIRS, PAIRS, interleaved, one_core
from benchmarks.report import Row, compared
from foreword.tag.conllu import Tagged, read_conllu
from foreword.tag.features import FeatureTagger
from foreword.text.datasets import find

TITLE = "Taggers"
HOW = (
    "UD English-EWT, universal tags, words in and tags out; both taggers as their users get them, five rounds for "
    "nltk's, which is its default, and eight for ours. Two models, two answers: ours has to be right more often."
)

ROUNDS = 5


def run(quick: bool) -> list[Row]:
    train, test = (read_conllu(find(f"ud_english_ewt:{split}")) for split in ("train", "test"))
    if quick:
        train = Tagged(*(part[:2000] for part in train))
    with one_core():
        return [_training(train, test), _tagging(train, test, FEW_PAIRS if quick else PAIRS)]


def _training(train: Tagged, test: Tagged) -> Row:
    pairs = _pairs(train)
    taken = interleaved(
        "tagging, training",
        lambda: FeatureTagger().fit(*train),
        lambda: _peer(pairs),
        lambda ours, theirs: ours.score(*test) > _accuracy(_tagged(theirs, test.sentences), test),
        pairs=FEW_PAIRS,
    )
    return compared("training", "nltk", taken, bar=None)


def _tagging(train: Tagged, test: Tagged, pairs: int) -> Row:
    tagger, peer = FeatureTagger().fit(*train), _peer(_pairs(train))
    accuracies: dict[str, float] = {}

    def agree(mine: list[list[str]], other: list[list[str]]) -> bool:
        accuracies.update(ours=_accuracy(mine, test), theirs=_accuracy(other, test))
        return accuracies["ours"] > accuracies["theirs"]

    taken = interleaved(
        "tagging, tagging",
        lambda: tagger.predict(test.sentences),
        lambda: _tagged(peer, test.sentences),
        agree,
        pairs=pairs,
    )
    found = tagger.accuracies(*test)
    pace = sum(map(len, test.sentences)) / float(np.median(taken.ours))
    row = compared("tagging", "nltk", taken, bar=None)
    told = (
        f"{pace / 1e3:.0f} thousand tokens a second; {found.all:.2%} right, {found.known:.2%} of known words and "
        f"{found.unknown:.2%} of unknown ones; nltk {accuracies['theirs']:.2%}"
    )
    return replace(row, note="; ".join(filter(None, (told, row.note))))


def _pairs(tagged: Tagged) -> list[list[tuple[str, str]]]:
    return [list(zip(*pair, strict=True)) for pair in zip(*tagged, strict=True)]


def _peer(pairs: list[list[tuple[str, str]]]) -> Any:
    random.seed(0)  # it shuffles the sentences
    peer = PerceptronTagger(load=False)
    peer.train(list(pairs), nr_iter=ROUNDS)
    return peer


def _tagged(peer: Any, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[tag for _, tag in peer.tag(words)] for words in sentences]


def _accuracy(tags: list[list[str]], tagged: Tagged) -> float:
    pairs = zip(itertools.chain(*tags), itertools.chain(*tagged.tags), strict=True)
    return float(np.mean([ours == theirs for ours, theirs in pairs]))
