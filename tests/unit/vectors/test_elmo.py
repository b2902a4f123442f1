"""ELMo: the network by hand, what is read and what is not, the mix, saving; C01 and C02."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from foreword.errors import ForewordError, InputError, SettingError
from foreword.protocols import Embedder, Parts, Saveable
from foreword.storage.folder import load, save
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.vectors.elmo import ELMo
from foreword.vectors.elmo_network import WIDTHS, ELMoNetwork
from foreword.vectors.word2vec import Word2Vec
from foreword.vectors.wordvectors import StaticEmbedder, WordVectors

SMALL: dict[str, Any] = {"units": 16, "letter_units": 6, "filters": 6, "batch": 16, "device": "cpu"}

TOPICS = {
    "bank": {
        "money": ["loan", "credit", "interest", "cash", "account", "teller", "deposit", "debt", "dollars", "manager"],
        "river": ["water", "boat", "mud", "fish", "reeds", "flood", "shore", "stream", "stones", "trees"],
    },
    "java": {
        "code": ["program", "class", "method", "compiler", "server", "field", "thread", "object", "flag", "library"],
        "island": ["volcano", "rice", "coast", "jungle", "temple", "village", "ferry", "monsoon", "sultan", "spice"],
    },
    "porto": {
        "harbour": ["nave", "molo", "mare", "marinai", "gru", "genova", "mediterraneo", "barche", "faro", "traghetto"],
        "wine": ["cena", "bicchiere", "bottiglia", "dolce", "uva", "vino", "amici", "formaggio", "brindisi", "cantina"],
    },
}
Case = tuple[str, str, list[str]]
"""A word, its sense and a sentence."""


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def corpus(
    count: int, seed: int = 0, *, places: tuple[int, ...] = (2, 3, 4), fillers: slice = slice(None)
) -> list[Case]:
    """Word, sense and sentence: six words of the sense's topic in any order, and the word at one of the places."""
    random = np.random.default_rng(seed)
    kinds = [(word, sense, topic[fillers]) for word, senses in TOPICS.items() for sense, topic in senses.items()]
    found = []
    for (word, sense, topic), _ in zip(itertools.cycle(kinds), range(count), strict=False):
        words, place = random.choice(topic, 6).tolist(), int(random.choice(places))
        found.append((word, sense, [*words[:place], word, *words[place:]]))
    return found


LEARNT = 600


def held_out(count: int, fillers: slice = slice(None)) -> list[Case]:
    """Sentences with the word at other places, none of which was learnt from."""
    learnt = {" ".join(sentence) for _, _, sentence in corpus(LEARNT)}
    found = corpus(count, 7, places=(1, 5), fillers=fillers)
    assert not learnt & {" ".join(sentence) for _, _, sentence in found}
    return found


@pytest.fixture(scope="module")
def elmo() -> ELMo:
    torch.set_num_threads(1)
    return ELMo(**{**SMALL, "batch": 8}, epochs=5, rate=0.01, dropout=0.0).fit(
        [sentence for _, _, sentence in corpus(LEARNT)]
    )


@pytest.fixture(scope="module")
def static() -> StaticEmbedder:
    """Static vectors, trained on the same sentences."""
    texts = [" ".join(sentence) for _, _, sentence in corpus(LEARNT)]
    read = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    return StaticEmbedder(Word2Vec(16, sample=0, epochs=10).fit(read).vectors)


def cosine(a: NDArray[Any], b: NDArray[Any]) -> float:
    return float(1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_c01_a_language_model_in_both_directions_is_learnt(elmo: ELMo) -> None:
    """C01: in sentences that were not learnt from the next word and the one before are told better than by the
    frequencies of the training text, with one more for every word.
    """
    learnt, held = ([sentence for _, _, sentence in cases] for cases in (corpus(LEARNT), held_out(90)))
    assert isinstance(elmo, Embedder)
    assert isinstance(elmo, Saveable)
    counts = Counter(word for sentence in learnt for word in [*sentence, "</s>"])
    words = [word for sentence in held for word in [*sentence, "</s>"]]
    unigram = -np.mean([np.log((counts[word] + 1) / (counts.total() + len(counts))) for word in words])
    assert -elmo.score(held) < 0.85 * unigram
    both = elmo.embed(held)
    assert [each.shape for each in both] == [(len(sentence), 32) for sentence in held]
    assert all(each.dtype == np.float32 for each in both)


def test_c01_a_vector_depends_on_words_before_and_behind(elmo: ELMo) -> None:
    """C01: the first layer not at all; half of the others on what comes before, half on what comes after."""
    lines = ("water boat mud fish bank", "water cash mud fish bank", "water boat mud fish bank account")
    one, before, after = elmo.layered([line.split() for line in lines])
    place, half = 4, elmo.units
    assert_array_equal(one[0, place], before[0, place])
    assert_array_equal(one[0, place, :half], one[0, place, half:])
    for layer in (1, 2):
        assert np.abs(one[layer, place, :half] - before[layer, place, :half]).max() > 1e-4
        assert_allclose(one[layer, place, half:], before[layer, place, half:], rtol=0, atol=1e-6)
        assert np.abs(one[layer, place, half:] - after[layer, place, half:]).max() > 1e-4
        assert_allclose(one[layer, place, :half], after[layer, place, :half], rtol=0, atol=1e-6)


def test_c01_the_mix_of_layers_is_learnt_for_a_task(elmo: ELMo) -> None:
    """C01: a task that letters alone decide turns more to the layer of words than one of senses does."""
    triples = corpus(180, seed=3)
    sentences = [sentence for _, _, sentence in triples]
    by_sense = [
        [f"{word}-{sense}" if token == word else "O" for token in sentence] for word, sense, sentence in triples
    ]
    by_letters = [[token[0] for token in sentence] for sentence in sentences]
    model = ELMo.from_parts(elmo.to_parts())
    assert_allclose(model.mix_, 1 / 3)
    letters = model.fit_mix(sentences, by_letters, epochs=30).mix_
    senses = model.fit_mix(sentences, by_sense, epochs=30).mix_
    for mix in (letters, senses):
        assert mix.sum() == pytest.approx(1)
        assert (mix > 0).all()
    assert letters[0] > senses[0] + 0.02
    assert model.gamma_ != 1.0


@pytest.mark.parametrize(
    ("word", "one", "other"),
    [
        ("bank", "boat water mud bank fish reeds", "cash debt loan bank teller credit"),
        ("java", "volcano rice java coast temple", "class method java field thread"),
        ("porto", "il porto di genova è uno dei più grandi del mediterraneo", "dopo cena prendo un bicchiere di porto"),
    ],
)
def test_c02_static_vectors_are_one_and_contextual_ones_two(
    elmo: ELMo, static: StaticEmbedder, word: str, one: str, other: str
) -> None:
    """C02: trained static vectors have distance 0 to the bit, contextual ones not."""
    sentences = [one.split(), other.split()]
    places = [sentence.index(word) for sentence in sentences]
    assert isinstance(static, Embedder)
    first, second = (rows[place] for rows, place in zip(static.embed(sentences), places, strict=True))
    assert first.any()
    assert first.tobytes() == second.tobytes()
    letters = [rows[0, place] for rows, place in zip(elmo.layered(sentences), places, strict=True)]
    assert letters[0].tobytes() == letters[1].tobytes()
    contextual = [rows[place] for rows, place in zip(elmo.embed(sentences), places, strict=True)]
    assert cosine(*contextual) > 0.02


def test_c02_senses_are_separable_by_their_nearest_neighbours(
    elmo: ELMo, static: StaticEmbedder, record_property: Callable[[str, object], None]
) -> None:
    """C02: in sentences that were not learnt from, with the word elsewhere, by five labelled neighbours that share no
    other word with them; the word's static vector, trained on the same text, tells nothing.
    """
    asked, known = held_out(180, slice(5, None)), corpus(240, 11, fillers=slice(5))
    assert not {w for _, _, s in asked for w in s} & {w for _, _, s in known for w in s} - set(TOPICS)

    def right(embed: Any) -> float:
        def at_word(cases: list[Case]) -> NDArray[Any]:
            rows = embed([sentence for _, _, sentence in cases])
            found = np.stack([row[s.index(w)] for row, (w, _, s) in zip(rows, cases, strict=True)])
            return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))

        nearness = at_word(asked) @ at_word(known).T
        votes = []
        for row, (word, sense, _) in zip(nearness, asked, strict=True):
            row = np.where([w == word for w, _, _ in known], row, -np.inf)
            near = [known[place][1] for place in np.argsort(-row, kind="stable")[:5]]
            votes.append(max(set(near), key=near.count) == sense)
        return float(np.mean(votes))

    by_context, by_word = right(elmo.embed), right(static.embed)
    told = f"{by_context:.1%}, {by_word:.1%}"
    record_property(
        "C02 senses right in new generated sentences, labelled neighbours of other words, ELMo and static", told
    )
    assert by_context > 0.9
    assert 0.4 < by_word < 0.65


def test_one_sentence_or_many_give_the_same_vectors(elmo: ELMo) -> None:
    sentences = [[], *(sentence for _, _, sentence in corpus(20)), ["a" * 300, "\ud800", "", "İ", "a b"], ["x"] * 200]
    together = elmo.embed(sentences)
    assert [each.shape for each in together] == [(len(sentence), 32) for sentence in sentences]
    for sentence, rows in zip(sentences, together, strict=True):
        assert_allclose(rows, elmo.embed([sentence])[0], rtol=0, atol=2e-5)
    assert elmo.embed([]) == []
    assert elmo.embed([[]])[0].shape == (0, 32)


def test_letters_by_hand() -> None:
    """The convolution, its maximum, the highway and the projection, in NumPy; a word among longer ones."""
    network = ELMoNetwork(letters=9, letter_units=3, filters=2, units=4, layers=1, vocab=5)
    generator = torch.Generator().manual_seed(0)
    weights = {name: torch.randn(shape, generator=generator) for name, shape in network.tensors().items()}
    word, padded = [2, 6, 8, 3], [2, 6, 8, 3, 0, 0]
    held = {name: part.numpy().astype(np.float64) for name, part in weights.items()}
    x = np.concatenate([held["letters"][word], np.zeros((4, 3))])
    found = []
    for width in WIDTHS:
        filters, bias = held[f"filters{width}"], held[f"filters{width}_bias"]
        seen = [[(filters[f] * x[p : p + width].T).sum() + bias[f] for f in range(2)] for p in range(len(word))]
        found += np.maximum(0, np.max(seen, axis=0)).tolist()
    gate, new = np.split(held["highway"] @ found + held["highway_bias"], 2)
    gate = 1 / (1 + np.exp(-gate))
    wanted = held["projection"] @ (gate * found + (1 - gate) * np.maximum(0, new)) + held["projection_bias"]
    spelled, sizes = torch.tensor([padded, [2, 5, 5, 7, 4, 3]]), torch.tensor([4, 6])
    assert_allclose(network.word_vectors(weights, spelled, sizes)[0], wanted, rtol=1e-4)


def test_a_sampled_softmax_learns_too() -> None:
    sentences = [sentence for _, _, sentence in corpus(120)]
    model = ELMo(**SMALL, epochs=12, rate=0.01, sampled=60).fit(sentences)
    assert model.score(sentences) > -3.8


def test_what_is_saved_says_the_same(elmo: ELMo, tmp_path: Path) -> None:
    sentences = [sentence for _, _, sentence in corpus(10)]
    model = ELMo.from_parts(elmo.to_parts()).fit_mix(sentences, [["ab"[len(w) % 2] for w in s] for s in sentences])
    save(model, tmp_path / "elmo")
    found = load(tmp_path / "elmo")
    for ours, theirs in zip(model.embed(sentences), found.embed(sentences), strict=True):
        assert_array_equal(ours, theirs)
    assert found.score(sentences) == model.score(sentences)
    static = StaticEmbedder(WordVectors.of_words(["bank"], np.ones((1, 3), np.float32)))
    save(static, tmp_path / "static")
    assert_array_equal(load(tmp_path / "static").embed([["bank", "x"]])[0], [[1, 1, 1], [0, 0, 0]])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"alphabet": [5, 4]}, "'alphabet' must be"),
        ({"alphabet": [-1]}, "'alphabet' must be"),
        ({"gamma": None}, "'gamma' is None"),
        ({"units": 15}, "is float32"),
        ({"layers": 3}, "mix has the shape"),
        ({"layers": 10**12}, "mix has the shape"),
    ],
)
def test_damaged_parts_are_refused(elmo: ELMo, settings: dict[str, Any], told: str) -> None:
    parts = elmo.to_parts()
    with pytest.raises(ValueError, match=told):
        ELMo.from_parts(Parts({**parts.settings, **settings}, parts.arrays, parts.vocab))


def test_the_same_seed_gives_the_same_vectors() -> None:
    sentences = [sentence for _, _, sentence in corpus(30)]
    one, other = (ELMo(**SMALL, epochs=1, seed=3).fit(sentences).embed(sentences) for _ in range(2))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


def test_bad_input(elmo: ELMo) -> None:
    with pytest.raises(ForewordError, match="has learnt nothing yet"):
        ELMo().embed([["a"]])
    with pytest.raises(InputError, match="the training text is empty"):
        ELMo().fit([[], []])
    with pytest.raises(InputError, match="nothing to score"):
        elmo.score([[]])
    with pytest.raises(InputError, match="a tag for each word"):
        elmo.fit_mix([["a", "b"]], [["x"]])
    with pytest.raises(InputError, match="two kinds at least"):
        elmo.fit_mix([["a", "b"]], [["x", "x"]])
    with pytest.raises(SettingError, match="units is 0: expected at least 1"):
        ELMo(0)
    with pytest.raises(SettingError, match="dropout=1"):
        ELMo(dropout=1.0)
