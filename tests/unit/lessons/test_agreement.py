"""Subject-verb agreement by hand and by models; linear probes find what is there, and nothing that is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foreword.errors import InputError, SettingError
from foreword.lessons.agreement import VERBS, AgreementSentence, agreement, generate_sentences, probe, texts_of
from foreword.ngram.model import NgramLM
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer

SINGULAR = {forms[0].split()[0] for forms in VERBS}
PLURAL = {forms[1].split()[0] for forms in VERBS}


class Rule:
    """Agrees with the noun it looks at: the subject, or the last one before the verb."""

    def __init__(self, vocab: Vocab, last: bool) -> None:
        self.vocab, self.last = vocab, last

    def start(self, n: int = 1) -> Any:
        return np.full((n, 1), -1)

    def advance(self, state: Any, ids: Any) -> Any:
        new = state.copy()
        for row, id in enumerate(ids.tolist()):
            word = self.vocab[id]
            if word.removesuffix("s") in NOUN_STEMS and (new[row, 0] < 0 or self.last):
                new[row, 0] = word not in NOUN_STEMS
        return new

    def next_logprobs(self, state: Any) -> Any:
        logs = np.full((len(state), len(self.vocab)), -10.0)
        for row, plural in enumerate(state[:, 0].tolist()):
            for verb in PLURAL if plural else SINGULAR:
                logs[row, self.vocab.ids([verb])[0]] = -1
        return logs


NOUN_STEMS = {"book", "author", "picture", "student", "teacher", "letter", "doctor", "garden", "farmer", "table"}


def corpus_of(sentences: list[AgreementSentence]) -> Corpus:
    texts = texts_of(sentences)
    return Corpus.from_texts(texts, WordTokenizer().fit(texts))


def test_sentences_agree_and_attractors_are_counted() -> None:
    sentences = generate_sentences(300, seed=2)
    assert sentences == generate_sentences(300, seed=2)
    assert {sentence.between for sentence in sentences} == {0, 1, 2, 3}
    for sentence in sentences:
        nouns = [word for word in sentence.words[: sentence.verb] if word.removesuffix("s") in NOUN_STEMS]
        plural = nouns[0] not in NOUN_STEMS
        assert sentence.words[sentence.verb] in (PLURAL if plural else SINGULAR)
        assert sentence.wrong in (SINGULAR if plural else PLURAL)
        assert len(nouns) - 1 == sentence.between
        assert sum((noun not in NOUN_STEMS) != plural for noun in nouns) == sentence.attractors


def test_a_model_that_keeps_the_subject_is_always_right_and_one_that_takes_the_last_noun_is_not() -> None:
    sentences = generate_sentences(400, seed=3)
    vocab = corpus_of(sentences).vocab
    kept = agreement(Rule(vocab, last=False), sentences)
    assert kept.right == [1.0] * len(kept.attractors)
    assert sum(kept.sentences) == 400
    assert kept.overall == 1
    last = agreement(Rule(vocab, last=True), sentences)
    assert last.right[0] == 1  # without attractors every noun agrees
    assert last.right[-1] == 0  # with as many as there are phrases the last one never does


def test_r19_a_trigram_is_worse_than_chance_where_attractors_stand() -> None:
    """R19, the n-gram's half: it sees the noun beside the verb."""
    model = NgramLM(3).fit(corpus_of(generate_sentences(3000, seed=0)))
    found = agreement(model, generate_sentences(500, seed=1))
    assert found.right[0] > 0.75
    assert found.right[2] < 0.5


def test_verbs_that_a_model_does_not_know_are_named() -> None:
    vocab = Vocab(["<unk>", "</s>", "the", "was"])
    model = NgramLM(2).fit(Corpus.from_ids([[2, 3]], vocab))
    sentence = AgreementSentence(["the", "book", "is"], 2, "are", 0, 0)
    with pytest.raises(InputError, match="does not know the verb 'is'"):
        agreement(model, [sentence])
    with pytest.raises(SettingError, match="count=-1"):
        generate_sentences(-1)


def test_s01_a_probe_finds_what_a_layer_holds_and_chance_where_it_holds_nothing() -> None:
    """S01: the first layer has the label in one of its directions, the second has lost it."""
    random = np.random.default_rng(0)
    labels = random.integers(3, size=2000)
    holds = random.normal(size=(2000, 6))
    holds[:, 2] += 10.0 * labels
    holds[:, 4] -= 10.0 * (labels == 1)
    found = probe([holds, random.normal(size=(2000, 6))], {"label": labels})
    assert found.right["label"][0] > 0.99
    assert abs(found.right["label"][1] - 1 / 3) < 0.06
    assert abs(found.most_frequent["label"] - 1 / 3) < 0.06


def test_words_and_labels_must_match() -> None:
    with pytest.raises(InputError, match="expected as many of each"):
        probe([np.zeros((3, 2))], {"label": np.zeros(4, int)})
    with pytest.raises(InputError, match="1 words"):
        probe([np.zeros((1, 2))], {"label": np.zeros(1, int)})
