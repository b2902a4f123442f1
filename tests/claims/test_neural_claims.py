"""What the sources say of neural language models, run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from foreword.classify.naive_bayes import NaiveBayes
from foreword.classify.recurrent import RecurrentClassifier
from foreword.features.bag import BagOfWords
from foreword.measures.perplexity import perplexity
from foreword.mix.combine import interpolate
from foreword.neural.bengio import BengioLM
from foreword.neural.recurrent import RecurrentLM
from foreword.ngram.model import NgramLM
from foreword.nn.dropout import NO_DROPOUT
from foreword.pipeline.classifier import TextClassifier
from foreword.pipeline.language import TextLM
from foreword.text.embedded import embedded_text
from foreword.tokens.characters import CharacterTokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer
from foreword.vectors.word2vec import Word2Vec
from foreword.vectors.wordvectors import StaticEmbedder

Report = Callable[[str, object], None]

torch.set_num_threads(1)
DOCUMENTS = 800
QUICK = replace(RecurrentLM.TRAINING, batch=16, steps=16, rate=8e-3, sampled=400)


@cache
def parts() -> tuple[Corpus, Corpus, Corpus]:
    """A little of the text that comes with every Python, to learn from, to tune on and to test on."""
    train, tuning, test = (list(embedded_text(split))[:DOCUMENTS] for split in ("train", "valid", "test"))
    tokenizer = WordTokenizer(min_count=3).fit(train)
    return tuple(Corpus.from_texts(texts, tokenizer) for texts in (train, tuning, test))  # type: ignore[return-value]


def test_r01_bengio_s_network_makes_kneser_ney_of_the_same_order_better() -> None:
    """R01: beside an n-gram model of its own order it knows something that the counts do not."""
    train, tuning, test = parts()
    counted = NgramLM(4).fit(train)
    network = BengioLM(4, 64, 64, tied=True, training=replace(QUICK, epochs=4), device="cpu").fit(train, valid=tuning)
    both = interpolate([counted, network]).learn_weights(tuning)
    assert perplexity(both, test) < 0.93 * perplexity(counted, test)


def test_r02_what_was_learnt_of_cats_says_something_about_dogs() -> None:
    """R02: dogs and cats do the same things in the same places, but no dog has been seen to sit, nor anything on a rug
    but lying. "the dog sat on the rug" is then likelier to the network than to the table of counts.
    """
    seen = [
        f"the {animal} {verb} on the {place}"
        for animal, verb, place in product(("cat", "dog", "cow"), ("sat", "lay", "slept"), ("mat", "rug", "bed"))
        if (animal, verb) != ("dog", "sat") and (verb, place) != ("sat", "rug")
    ]
    texts = [*seen * 3, *("the table is red", "a door is open", "the wall is old") * 6]
    tokenizer = WordTokenizer().fit(texts)
    train, new = (Corpus.from_texts(each, tokenizer) for each in (texts, ["the dog sat on the rug"]))
    training = replace(QUICK, epochs=15, batch=8, sampled=0, rate=5e-3)
    network = BengioLM(4, 16, 32, dropout=NO_DROPOUT, training=training, device="cpu").fit(train)
    counted = NgramLM(4).fit(train)
    assert network.logprobs(new).sum() > counted.logprobs(new).sum()


@pytest.mark.parametrize("seed", range(3))
def test_n05_a_network_gives_the_slice_of_cake_more_than_the_counts_do(seed: int, record_property: Report) -> None:
    """N05: cake is eaten, wanted and cut as bread, pizza and cheese are, but no slice of it was ever seen. The network
    gives "i want to eat a slice of cake" more than smoothed counts do, in a text built for it.
    """
    foods, verbs = ("bread", "pizza", "cheese", "cake"), ("eat", "buy", "cut", "share")
    seen = [
        f"{who} want to {verb} a {part} of {food}"
        for who, verb, part, food in product(("i", "we", "they"), verbs, ("piece", "plate", "slice"), foods)
        if (part, food) != ("slice", "cake")
    ]
    texts = [*seen, *("the door is open", "a wall is red", "the river of stone is old") * 20]
    tokenizer = WordTokenizer().fit(texts)
    train, new = (Corpus.from_texts(each, tokenizer) for each in (texts, ["i want to eat a slice of cake"]))
    training = replace(QUICK, epochs=12, batch=8, sampled=0, rate=5e-3)
    network = BengioLM(4, 16, 32, dropout=NO_DROPOUT, training=training, device="cpu", seed=seed).fit(train)
    place = len(new.ids) - 2  # cake, before the end
    shares = {
        "network": math.exp(network.logprobs(new)[place]),
        "counts": math.exp(NgramLM(4).fit(train).logprobs(new)[place]),
    }
    told = f"{shares['network']:.3f}, {shares['counts']:.3f}"
    record_property(f"N05 p(cake) after a slice of, network and Kneser-Ney 4-gram, seed {seed}", told)
    assert shares["network"] > 10 * shares["counts"] > 0


ANIMALS, MACHINES = ("cat", "feline", "dog", "horse"), ("truck", "helicopter", "engine", "tram")


def read_before() -> list[list[str]]:
    """Unlabelled sentences: what animals do, and what machines do."""
    random = np.random.default_rng(0)
    deeds = {
        ANIMALS: ["eats", "sleeps", "breathes", "drinks", "plays"],
        MACHINES: ["rattles", "stops", "rusts", "breaks", "runs"],
    }
    return [
        ["the", str(random.choice(who)), str(random.choice(deeds[who])), "and", str(random.choice(deeds[who]))]
        for who in (ANIMALS, MACHINES)
        for _ in range(300)
    ]


def test_n09_a_model_with_embeddings_does_know_the_other_name(record_property: Report) -> None:
    """N09: labelled sentences have cats, trucks and engines, never felines or helicopters. To counts both new words are
    alike; a model that reads with vectors from unlabelled text calls one alive and the other not. Call the cat a horse
    or a tram in the labelled text, and the counts say the same to the last bit. To the model with vectors a feline is
    as alive as before by the near name, and not by the far one. Three seeds.
    """
    texts = [" ".join(words) for words in read_before()]
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    vectors = Word2Vec(10, loss="softmax", window="fixed:4", sample=0, epochs=10, rate=0.1).fit(corpus).vectors
    known = [("cat", "alive"), ("cat", "alive"), ("truck", "not"), ("engine", "not")] * 4
    labels = [label for _, label in known]
    settings: Any = {"embedding": 4, "hidden": 8, "min_count": 9, "epochs": 30, "rate": 0.02, "dropout": 0.0}
    by_counts, alive = {}, {}
    for cat in ("cat", "horse", "tram"):
        named = [f"a {cat if word == 'cat' else word} here" for word, _ in known]
        asked = ["a feline here", "a helicopter here", f"a {cat} here"]
        by_counts[cat] = TextClassifier(BagOfWords(), NaiveBayes()).fit(named, labels).predict_proba(asked)
        readers = [
            RecurrentClassifier(embedder=StaticEmbedder(vectors), device="cpu", seed=seed, **settings)
            for seed in range(3)
        ]
        alive[cat] = np.array([reader.fit(named, labels).predict_proba(asked)[:, 0] for reader in readers])
        told = "; ".join(", ".join(f"{share:.2f}" for share in row) for row in alive[cat][:, :2])
        record_property(f"N09 probability of alive, feline and helicopter, with vectors, cat called {cat}", told)
    np.testing.assert_array_equal(by_counts["cat"][0], by_counts["cat"][1])
    for cat in ("horse", "tram"):
        np.testing.assert_array_equal(by_counts["cat"], by_counts[cat])
    feline, helicopter, _ = alive["cat"].T
    assert min(feline) > 0.8
    assert max(helicopter) < 0.2
    assert max(np.abs(alive["horse"][:, 0] - feline)) < 0.2
    assert min(feline - alive["tram"][:, 0]) > 0.6


def words_of_classes(random: np.random.Generator, documents: int) -> Corpus:
    """Six classes of sixty words that follow each other as classes: some words are frequent, most are rare."""
    vocab = Vocab(["<unk>", "</s>", *(f"{of}.{word}" for of, word in product(range(6), range(60)))])
    texts = []
    for _ in range(documents):
        classes = (int(random.integers(6)) + np.cumsum(random.choice([1, 4], 12, p=[0.8, 0.2]))) % 6
        words = np.where(
            random.random(12) < 0.5, np.minimum(random.zipf(1.5, 12), 60) - 1, random.integers(60, size=12)
        )
        texts.append(2 + classes * 60 + words)
    return Corpus.from_ids(texts, vocab)


def test_p05_tying_the_embedding_to_the_output_layer_gives_a_better_model_of_fewer_numbers(
    record_property: Report,
) -> None:
    """P05: V · D parameters fewer, and a lower perplexity: what is learnt of a rare word as it is read helps to tell
    where it comes next. On this made-up text of word classes, after many epochs.
    """
    random = np.random.default_rng(0)
    train, tuning, test = (words_of_classes(random, documents) for documents in (200, 60, 100))
    training = replace(QUICK, epochs=40, steps=12, rate=1e-2, sampled=0)
    tied, untied = (
        RecurrentLM("gru", 24, 24, 1, tied=tied, training=training, device="cpu").fit(train, valid=tuning)
        for tied in (True, False)
    )
    assert untied.parameter_count - tied.parameter_count == len(train.vocab) * 24
    found = perplexity(tied, test), perplexity(untied, test)
    record_property("P05 perplexity of a made-up text, tied and untied", f"{found[0]:.1f}, {found[1]:.1f}")
    assert found[0] < 0.95 * found[1]


@pytest.mark.long
def test_p05_on_a_small_real_text_tying_gains_little(record_property: Report) -> None:
    """P05: 25,000 words in five epochs, three seeds: the mean is lower, by less than 5 %, with as many parameters fewer
    as the embedding has.
    """
    train, tuning, test = parts()
    training = replace(QUICK, epochs=5)
    models = {
        tied: [
            RecurrentLM("gru", 64, 64, 1, tied=tied, training=training, device="cpu", seed=seed).fit(
                train, valid=tuning
            )
            for seed in range(3)
        ]
        for tied in (True, False)
    }
    tied, untied = ([perplexity(model, test) for model in models[each]] for each in (True, False))
    for name, values in (("tied", tied), ("untied", untied)):
        record_property(f"P05 perplexity of a small real text, {name}", ", ".join(f"{each:.1f}" for each in values))
    assert models[False][0].parameter_count - models[True][0].parameter_count == len(train.vocab) * 64
    assert 0.95 * np.mean(untied) < np.mean(tied) < np.mean(untied)


def test_p10_the_labels_are_the_text_itself() -> None:
    """P10: nothing but text goes in, and every word but the first is a label that the words before it have."""
    texts = ["abcabcabcabc"] * 8
    training = replace(QUICK, epochs=20, batch=4, steps=6, sampled=0, rate=0.04)
    model = TextLM(
        CharacterTokenizer(), RecurrentLM("gru", 8, 8, 1, dropout=NO_DROPOUT, training=training, device="cpu")
    )
    model.fit(texts)
    assert model.perplexity(texts) < 1.5
    network: Any = model.model
    trainer = network.trainer(model.corpus(texts))
    trainer.begin_epoch(1)
    np.testing.assert_array_equal(trainer.task.inputs[1:].numpy(), trainer.task.targets[:-1].numpy())
