"""Hidden Markov models against hmmlearn, and the tagger against nltk's."""

from __future__ import annotations

import itertools
import logging
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from hmmlearn.hmm import CategoricalHMM
from nltk.tag.hmm import HiddenMarkovModelTagger

from benchmarks.data import WIKITEXT, documents, plain_file
from benchmarks.measure import FEW_PAIRS, PAIRS, interleaved, one_core
from benchmarks.report import Row, compared
from foreword.hmm.model import HMM
from foreword.protocols import Step
from foreword.tag.conllu import Tagged, read_conllu
from foreword.tag.hmm import HMMTagger
from foreword.text.datasets import find
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

TITLE = "Hidden Markov models"
HOW = (
    "50 states, 10,000 words, the first 200,000 tokens of wikitext-2 and a document a line; hmmlearn's CategoricalHMM "
    'in its faster form, `implementation="scaling"`. A round of EM is expectation and maximisation, from the same '
    "parameters to the same likelihood (1e-8). Tagging is of the first 300 test sentences of UD English-EWT, words in, "
    "tags out, by taggers that learnt from its training part."
)

STATES, WORDS, TOKENS = 50, 10_000, 200_000
SENTENCES = 300

Tables = tuple[Any, Any, Any]


def run(quick: bool) -> list[Row]:
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)  # it warns of too many parameters, round after round
    pairs = FEW_PAIRS if quick else PAIRS
    corpus = text_to_learn_from()
    with one_core():
        return [
            _em(corpus, "float64", 8, pairs),
            _em(corpus, "float32", 13, pairs),
            _viterbi(corpus, "float64", 3, pairs),
            _viterbi(corpus, "float32", 3, pairs),
            _tagging(50, pairs),
        ]


def text_to_learn_from() -> Corpus:
    texts = list(documents(plain_file(WIKITEXT)))
    lengths = itertools.accumulate(len(text.split()) + 1 for text in texts)
    enough = next(place for place, length in enumerate(lengths, 1) if length >= TOKENS)
    tokenizer = WordTokenizer(max_size=WORDS).fit(texts[:enough])
    return Corpus.from_texts(texts[:enough], tokenizer)


@cache
def tables() -> Tables:
    random = np.random.default_rng(0)
    return (
        random.dirichlet(np.ones(STATES)),
        random.dirichlet(np.ones(STATES), STATES),
        random.dirichlet(np.ones(WORDS), STATES),
    )


def ours_of(corpus: Corpus, dtype: str) -> HMM:
    return HMM.from_parameters(*tables(), corpus.vocab, smoothing=0.0, iterations=1, threads=1, dtype=dtype)


def theirs_of() -> Any:
    """``init_params=""`` keeps the parameters given here."""
    peer = CategoricalHMM(STATES, n_features=WORDS, n_iter=1, init_params="", implementation="scaling")
    peer.startprob_, peer.transmat_, peer.emissionprob_ = tables()
    return peer


def _em(corpus: Corpus, dtype: str, bar: float, pairs: int) -> Row:
    ids, lengths = corpus.ids.astype(np.int64)[:, None], np.diff(corpus.offsets)

    def ours() -> list[Step]:
        return list(ours_of(corpus, dtype).improve(corpus))

    def theirs() -> Any:
        return theirs_of().fit(ids, lengths)

    def agree(steps: list[Step], peer: Any) -> bool:
        return bool(np.isclose(-steps[0].loss * len(corpus.ids), peer.monitor_.history[0], rtol=1e-8, atol=0))

    job = f"a round of EM, {dtype}"
    taken = interleaved(f"hmm, {job}", ours, theirs, agree, pairs=pairs)
    return _with_pace(compared(job, "hmmlearn", taken, bar=bar), len(corpus.ids), taken.ours)


def _viterbi(corpus: Corpus, dtype: str, bar: float, pairs: int) -> Row:
    ids, lengths = corpus.ids.astype(np.int64)[:, None], np.diff(corpus.offsets)
    model, peer = ours_of(corpus, dtype), theirs_of()
    judge = ours_of(corpus, "float64")

    def agree(path: Any, decoded: Any) -> bool:
        bounds = itertools.pairwise(corpus.offsets.tolist())
        joint = sum(judge.joint_logprob(corpus.ids[start:stop], path[start:stop]) for start, stop in bounds)
        return bool(np.isclose(joint, decoded[0], rtol=1e-8, atol=0))

    job = f"Viterbi, {dtype}"
    taken = interleaved(
        f"hmm, {job}", lambda: model.viterbi(corpus), lambda: peer.decode(ids, lengths), agree, pairs=pairs
    )
    return _with_pace(compared(job, "hmmlearn", taken, bar=bar), len(corpus.ids), taken.ours)


def _tagging(bar: float, pairs: int) -> Row:
    train, test = (read_conllu(find(f"ud_english_ewt:{split}")) for split in ("train", "test"))
    tagger = HMMTagger().fit(*train)
    peer = HiddenMarkovModelTagger.train([list(zip(*pair, strict=True)) for pair in zip(*train, strict=True)])
    sentences, gold = test.sentences[:SENTENCES], test.tags[:SENTENCES]
    accuracies: dict[str, float] = {}

    def theirs() -> list[list[str]]:
        return [[tag for _, tag in peer.tag(words)] for words in sentences]

    def agree(mine: list[list[str]], other: list[list[str]]) -> bool:
        """Two models, two answers: ours has to be right more often."""
        accuracies.update(ours=_accuracy(mine, gold), theirs=_accuracy(other, gold))
        return accuracies["ours"] > accuracies["theirs"]

    taken = interleaved("hmm, tagging", lambda: tagger.predict(sentences), theirs, agree, pairs=pairs)
    row = _with_pace(compared("tagging", "nltk", taken, bar=bar), sum(map(len, sentences)), taken.ours)
    return replace(row, note=f"{row.note}; {_told(tagger, test)}; nltk {accuracies['theirs']:.1%} of these sentences")


def _told(tagger: HMMTagger, test: Tagged) -> str:
    result = tagger.accuracies(*test)
    return (
        f"{result.all:.2%} of the whole test part right, {result.known:.2%} of known words "
        f"and {result.unknown:.2%} of unknown ones"
    )


def _accuracy(tags: list[list[str]], gold: list[list[str]]) -> float:
    pairs = zip(itertools.chain(*tags), itertools.chain(*gold), strict=True)
    return float(np.mean([ours == right for ours, right in pairs]))


def _with_pace(row: Row, tokens: int, seconds: list[float]) -> Row:
    pace = f"{tokens / float(np.median(seconds)) / 1e6:.2f} million tokens a second"
    return replace(row, note="; ".join(filter(None, (pace, row.note))))
