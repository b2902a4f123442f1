"""The neural tagger: shapes, masking, schemes, what it refuses, what it saves."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from foreword.errors import ForewordError, InputError, SettingError
from foreword.evaluate.tagging import measure_spans
from foreword.nn.layers import reversing, turned
from foreword.nn.recurrent_layer import CELLS
from foreword.protocols import Parts
from foreword.storage.folder import load, save
from foreword.tag.bilstm import BiLSTMTagger
from foreword.tag.bilstm_network import SentenceReader, TaggerNetwork
from foreword.tag.schemes import Scheme, span_f1
from foreword.training.batches import bucketed, similar_lengths
from foreword.training.gradients import new_flat, views
from foreword.vectors.wordvectors import WordVectors

SMALL: dict[str, Any] = {"units": 8, "words": 6, "letter_units": 4, "spelling": 8, "device": "cpu"}
KINDS = ("PER", "LOC", "ORG", "MISC")
NAMES = {"PER": ["Anna", "Bob", "Li"], "LOC": ["Rome", "Oslo"], "ORG": ["Acme", "Initech"], "MISC": ["Dutch"]}
FILLERS = ["the", "saw", "in", "and", ",", "visited", "1996", "a"]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def named(count: int, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences with names of one to three words of a kind, in BIO."""
    random = np.random.default_rng(seed)
    sentences, tags = [], []
    for _ in range(count):
        words: list[str] = []
        marks: list[str] = []
        for _ in range(random.integers(1, 6)):
            kind, size = KINDS[random.integers(4)], int(random.integers(1, 4))
            words += [*random.choice(FILLERS, 2).tolist(), *random.choice(NAMES[kind], size).tolist()]
            marks += ["O", "O", f"B-{kind}", *[f"I-{kind}"] * (size - 1)]
        sentences.append(words)
        tags.append(marks)
    return sentences, tags


@pytest.fixture(scope="module")
def names_tagger() -> BiLSTMTagger:
    torch.set_num_threads(1)
    return BiLSTMTagger(**SMALL, scheme="bio", epochs=10, batch=8, rate=0.02, dropout=0.1).fit(*named(80))


# Shapes and masking


def test_s03_the_head_of_a_tagger_of_names() -> None:
    """S03: two directions of 256 units, nine tags of four kinds in BIO: Linear(512, 9), logits (32, 50, 9)."""
    network = TaggerNetwork(20, 12, 10, 4, "cnn", 8, 256, 1, 9, both_ways=True, crf=False)
    assert network.tensors()["output"] == (9, 512)
    weights = views(new_flat(network.tensors(), torch.device("cpu")), network.tensors())
    network.initialise(weights, torch.Generator().manual_seed(0))
    places, lengths = torch.randint(0, 7, (50, 32)), torch.full((32,), 50)
    assert network.emissions(weights, torch.randn(7, 20), places, lengths).shape == (32, 50, 9)


def test_s03_nine_tags_of_four_kinds() -> None:
    """S03: the same from data, with and without a CRF, on tags of BIO."""
    sentences, tags = named(10)
    for crf in (True, False):
        tagger = BiLSTMTagger(**{**SMALL, "units": 256}, scheme="bio", inside="bio", crf=crf, epochs=1)
        tagger.fit(sentences, tags)
        assert tagger.weights_["output"].shape == (9, 512)
        assert tagger.tags_ == sorted(["O", *(f"{letter}-{kind}" for letter in "BI" for kind in KINDS)])
        assert [logits.shape for logits in tagger.logits(sentences)] == [(len(words), 9) for words in sentences]


@pytest.mark.parametrize("characters", ["cnn", "lstm", "none"])
def test_one_sentence_or_64_give_the_same_logits(characters: str) -> None:
    """To 1e-5, with sentences of 1 to 60 words and words of 1 to 60 letters in a batch."""
    random = np.random.default_rng(1)
    sentences = [
        ["".join(random.choice(list("abcXY3"), random.integers(1, 61))) for _ in range(size)]
        for size in random.integers(1, 61, 64)
    ]
    tags = [["ab"[len(word) % 2] for word in words] for words in sentences]
    settings = {**SMALL, "units": 64, "characters": characters, "layers": 2, "epochs": 1}
    tagger = BiLSTMTagger(**settings).fit(sentences, tags)
    for together, words in zip(tagger.logits(sentences), sentences, strict=True):
        assert_allclose(together, tagger.logits([words])[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize("layers", [1, 3])
def test_the_quick_road_is_the_plain_one(both_ways: bool, layers: int) -> None:
    """Without padding, words of the input looked up, gates by a kernel; units that fill no register to the end."""
    network = TaggerNetwork(9, 5, 10, 4, "none", 8, 21, layers, 7, both_ways=both_ways, crf=False)
    weights = views(new_flat(network.tensors(), torch.device("cpu")), network.tensors())
    network.initialise(weights, torch.Generator().manual_seed(0))
    lengths = torch.tensor([17, 9, 9, 3, 1])
    places, vectors = torch.randint(0, 6, (17, 5)), torch.randn(6, 5)
    quick, plain = (
        reader(places, lengths)
        for reader in (
            SentenceReader(network, weights, vectors).emissions,
            lambda *read: network.emissions(weights, vectors, *read),
        )
    )
    assert quick.shape == plain.shape == (5, 17, 7)
    for row, length in enumerate(lengths.tolist()):
        assert_allclose(quick[row, :length], plain[row, :length], rtol=0, atol=2e-6)


def test_every_text_is_turned_by_its_own_length() -> None:
    x = torch.arange(12.0).view(4, 3, 1)
    back = reversing(torch.tensor([4, 2, 0]), 4)
    assert turned(x, back)[:, :, 0].tolist() == [[9, 4, 2], [6, 1, 5], [3, 7, 8], [0, 10, 11]]
    assert_array_equal(turned(turned(x, back), back), x)


def test_sentences_of_5000_words_and_of_none(names_tagger: BiLSTMTagger) -> None:
    long, tags = (list(chain.from_iterable(part))[:5000] for part in named(600, seed=5))
    found = names_tagger.predict([[], long, ["Anna"], []])
    assert [len(each) for each in found] == [0, 5000, 1, 0]
    assert measure_spans([found[1]], [tags]).micro.f1 > 0.8
    assert [logs.shape for logs in names_tagger.predict_log_proba([[], ["Anna"]])] == [(0, 9), (1, 9)]
    assert names_tagger.predict([]) == names_tagger.predict_log_proba([]) == []


def test_batches_are_of_like_length_and_hold_every_sentence_once() -> None:
    lengths = np.random.default_rng(0).integers(0, 80, 500).tolist()
    groups = bucketed(lengths, 16, np.random.default_rng(1))
    there = [place for place, length in enumerate(lengths) if length]
    assert sorted(place for group in groups for place in group) == there
    padded = sum(len(group) * max(lengths[place] for place in group) for group in groups)
    assert padded < 1.1 * sum(lengths)
    assert groups != bucketed(lengths, 16, np.random.default_rng(2))
    read = list(similar_lengths([*lengths, 3000], 1000))
    assert read[0] == [500]
    assert sorted(place for group in read for place in group) == [*there, 500]
    assert all(len(group) * max(lengths[place] for place in group) <= 1000 for group in read[1:])


# Learning


def test_names_are_learnt_and_only_well_formed_tags_are_said(names_tagger: BiLSTMTagger) -> None:
    sentences, tags = named(40, seed=9)
    predicted = names_tagger.predict(sentences)
    assert measure_spans(predicted, tags, scheme="bio").micro.f1 > 0.8
    assert measure_spans(predicted, tags).micro.f1 == span_f1(predicted, tags)


@pytest.mark.parametrize(("scheme", "inside"), [("iob1", "bioes"), ("bioes", "bioes"), ("bio", "bio"), ("iob1", "bio")])
@pytest.mark.parametrize("crf", [True, False])
def test_tags_come_out_in_the_scheme_they_came_in(scheme: Any, inside: Any, crf: bool) -> None:
    """Well formed even from a network that has hardly learnt."""
    from foreword.tag.schemes import convert_all, spans_of

    sentences, tags = named(30)
    written = convert_all(tags, "bio", scheme)
    tagger = BiLSTMTagger(**SMALL, scheme=scheme, inside=inside, crf=crf, epochs=1).fit(sentences, written)
    for sentence in tagger.predict(named(30, seed=3)[0]):
        spans_of(sentence, scheme)
        assert set(sentence) <= set(tagger.tags_)


def test_probabilities_of_bio_are_sums_of_those_inside(names_tagger: BiLSTMTagger) -> None:
    for logs in names_tagger.predict_log_proba(named(5, seed=2)[0]):
        assert logs.shape[1] == 9
        assert_allclose(np.exp(logs).sum(1), 1, rtol=1e-9)


def test_in_iob1_a_tag_has_no_probability_of_its_own() -> None:
    sentences = [["a", "b"]]
    tagger = BiLSTMTagger(**SMALL, scheme="iob1", epochs=1).fit(sentences, [["I-X", "O"]])
    with pytest.raises(SettingError, match="scheme='iob1': how a tag is written depends on the one before"):
        tagger.predict_log_proba(sentences)


def test_the_best_epoch_on_held_out_sentences_is_kept() -> None:
    train, valid = named(40), named(20, seed=4)
    tagger = BiLSTMTagger(**SMALL, scheme="bio", epochs=6, rate=0.05, average=-1.0)
    scores = []
    for step in tagger.train(*train, valid=valid):
        assert 0 < step.done <= step.total
        assert np.isfinite(step.loss)
        scores.append(tagger.valid_score_)
    assert scores == sorted(scores)
    assert step.done == step.total == 6 * sum(map(len, train[0]))
    assert measure_spans(tagger.predict(valid[0]), valid[1]).micro.f1 == pytest.approx(tagger.valid_score_)


def test_vectors_from_before_tell_of_words_that_were_not_seen(tmp_path: Path) -> None:
    """Words of two kinds that only their vectors tell apart; they are saved with the tagger."""
    random = np.random.default_rng(0)
    words = [f"w{chr(97 + place // 26)}{chr(97 + place % 26)}" for place in range(200)]
    kinds = random.integers(0, 2, 200)
    matrix = (random.normal(size=(200, 5)) * 0.3 + np.where(kinds[:, None], 1, -1)).astype(np.float32)
    vectors = WordVectors.of_words(words, matrix)
    sentences = [[words[place] for place in random.integers(0, 100, 8)] for _ in range(60)]
    tag_of = dict(zip(words, ["AB"[kind] for kind in kinds], strict=True))
    tags = [[tag_of[word] for word in sentence] for sentence in sentences]
    settings = {**SMALL, "epochs": 10, "rate": 0.02, "characters": "none"}
    unseen, wanted = [words[100:]], [[tag_of[word] for word in words[100:]]]
    with_vectors = BiLSTMTagger(**settings, vectors=vectors).fit(sentences, tags)
    without = BiLSTMTagger(**settings).fit(sentences, tags)
    assert with_vectors.score(unseen, wanted) > 0.9 > 0.75 > without.score(unseen, wanted)
    assert with_vectors.words == 5
    save(with_vectors, tmp_path / "tagger")
    save(vectors, tmp_path / "vectors")
    assert load(tmp_path / "tagger").predict(unseen) == with_vectors.predict(unseen)
    by_name = BiLSTMTagger(**settings, vectors=str(tmp_path / "vectors")).fit(sentences, tags)
    assert by_name.predict(unseen) == with_vectors.predict(unseen)


def test_unseen_words_are_told_by_their_letters() -> None:
    stems = [f"{a}{b}" for a in "bdfgklmn" for b in ("ark", "ump", "est", "ill")]
    sentences = [[stem + "ly", stem + "ness", stem + "ing"] for stem in stems[:24]]
    tags = [["ADV", "NOUN", "VERB"]] * 24
    for characters in ("cnn", "lstm"):
        settings: dict[str, Any] = {**SMALL, "characters": characters, "crf": False}
        tagger = BiLSTMTagger(**settings, epochs=30, rate=0.02, batch=4).fit(
            [[word] for words in sentences for word in words], [[tag] for each in tags for tag in each]
        )
        unseen = [[stem + ending] for stem in stems[24:] for ending in ("ly", "ness", "ing")]
        assert tagger.score(unseen, [["ADV"], ["NOUN"], ["VERB"]] * 8) > 0.9


# Streaming


def test_s05_a_model_that_reads_both_ways_refuses_to_stream(names_tagger: BiLSTMTagger) -> None:
    """S05: at once, before a word is read, and saying why."""
    with pytest.raises(SettingError, match=r"reads both ways cannot stream: .* depends on the words behind it"):
        names_tagger.stream(iter(["Anna"]))


def test_s05_a_model_that_reads_one_way_streams_what_it_would_say_of_the_whole() -> None:
    """S05: the other side of it; each tag comes before the next word is asked for."""
    sentences, tags = named(30)
    tagger = BiLSTMTagger(**SMALL, layers=2, both_ways=False, crf=False, epochs=2).fit(sentences, tags)
    for words, whole in zip(sentences, tagger.predict(sentences), strict=True):
        assert list(tagger.stream(words)) == whole
    asked: list[str] = []
    stream = tagger.stream(asked.append(word) or word for word in ["the", "saw"])  # type: ignore[func-returns-value]
    next(stream)
    assert asked == ["the"]
    with_field = BiLSTMTagger(**SMALL, both_ways=False, epochs=1).fit(sentences, tags)
    with pytest.raises(SettingError, match="when the sentence has ended"):
        with_field.stream(["the"])


# Cells


@pytest.mark.parametrize("cell", CELLS)
def test_every_cell_of_a_language_model_tags(cell: str, tmp_path: Path) -> None:
    """Learnt both ways; a sentence's scores do not depend on its batch; what is saved says the same."""
    sentences, tags = named(40)
    tagger = BiLSTMTagger(**SMALL, cell=cell, layers=2, epochs=3, rate=0.02, dropout=0.1, batch=8)
    steps = [step.loss for step in tagger.train(sentences, tags)]
    assert np.mean(steps[-2:]) < np.mean(steps[:2])
    logits = tagger.logits(sentences)
    for together, words in zip(logits, sentences, strict=True):
        assert_allclose(together, tagger.logits([words])[0], rtol=0, atol=1e-5)
    save(tagger, tmp_path / "model")
    again: Any = load(tmp_path / "model")
    assert again.cell == cell
    for ours, theirs in zip(logits, again.logits(sentences), strict=True):
        assert_array_equal(ours, theirs)


@pytest.mark.parametrize("cell", CELLS)
def test_the_second_layer_of_every_cell_reads_from_the_end(cell: str) -> None:
    """The direction behind is the one ahead, with its weights, of the sentence turned round."""
    network = TaggerNetwork(9, 5, 10, 4, "none", 8, 21, 1, 7, both_ways=True, crf=False, cell=cell)
    weights = views(new_flat(network.tensors(), torch.device("cpu")), network.tensors())
    network.initialise(weights, torch.Generator().manual_seed(0))
    for name in [name for name in weights if ".ahead." in name]:
        weights[name.replace("ahead", "behind")].copy_(weights[name])
    x, lengths = torch.randn(6, 2, 5), torch.tensor([6, 4])
    ahead, behind = network._layer(weights, "layer0", x, reversing(lengths, 6)).chunk(2, 2)
    for row, length in enumerate(lengths.tolist()):
        turned_round = network._layer(
            weights, "layer0", x[:length, row : row + 1].flip(0), reversing(lengths[row : row + 1], length)
        )
        assert_allclose(behind[:length, row], turned_round[:, 0, :21].flip(0), rtol=0, atol=1e-6)
    assert not torch.equal(ahead, behind)


@pytest.mark.parametrize("cell", ["gru", "slstm", "min-gru"])
def test_other_cells_stream_too(cell: str) -> None:
    sentences, tags = named(30)
    tagger = BiLSTMTagger(**SMALL, cell=cell, layers=2, both_ways=False, crf=False, epochs=2).fit(sentences, tags)
    for words, whole in zip(sentences, tagger.predict(sentences), strict=True):
        assert list(tagger.stream(words)) == whole


def test_files_of_the_usual_cell_do_not_name_it() -> None:
    """As those of versions that had no other."""
    assert "cell" not in parts().settings
    assert BiLSTMTagger.from_parts(parts()).cell == "lstm"


# What is refused


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"units": 0}, "units is 0: expected at least 1"),
        ({"dropout": 1.0}, "dropout=1.0 must be a number of at least 0 and below 1"),
        ({"characters": "bytes"}, "characters is 'bytes': expected cnn or lstm or none"),
        ({"characters": "lstm", "spelling": 7}, "spelling=7 must be even"),
        ({"scheme": "iobes2"}, "scheme='iobes2' must be one of bio, iob1, bioes"),
        ({"optimiser": "lbfgs"}, "optimiser is 'lbfgs': expected sgd or adam"),
        ({"device": "tpu"}, "device is 'tpu': expected cuda or cpu"),
        ({"cell": "transformer"}, "cell is 'transformer': expected rnn or irnn or lstm"),
    ],
)
def test_settings_that_make_no_sense(settings: Any, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        BiLSTMTagger(**settings)


def test_text_that_cannot_be_learnt_from() -> None:
    tagger = BiLSTMTagger(**SMALL, epochs=1)
    with pytest.raises(ForewordError, match="learnt nothing yet"):
        tagger.predict([["a"]])
    with pytest.raises(InputError, match="the training text is empty"):
        tagger.fit([[]], [[]])
    with pytest.raises(InputError, match="sentence 1 has 2 words but 1 tags"):
        tagger.fit([["a"], ["a", "b"]], [["X"], ["X"]])


def test_iob1_read_as_bio_is_told() -> None:
    tagger = BiLSTMTagger(**SMALL, scheme="bio")
    with pytest.raises(InputError, match=r"sentence 1, word 1: I-PER may not follow O .* well formed in 'iob1'"):
        tagger.fit([["a"], ["a", "b"]], [["O"], ["O", "I-PER"]])
    with pytest.raises(InputError, match="tag 'NOUN': expected O, or B-"):
        tagger.fit([["a"]], [["NOUN"]])


def test_in_iob1_a_b_for_an_i_is_understood_and_other_letters_are_not() -> None:
    """CoNLL-2003 has a B-MISC behind an O."""
    scheme = Scheme("iob1", "bioes", ["I-X"])
    for tags in (["O", "B-X", "I-X", "B-X"], ["O", "I-X", "I-X", "B-X"]):
        assert [scheme.inner[number] for number in scheme.numbers([tags])[0]] == ["O", "B-X", "E-X", "S-X"]
    with pytest.raises(InputError, match="tag 'S-X' is not of the scheme 'iob1'"):
        scheme.numbers([["S-X"]])


def parts() -> Parts:
    return BiLSTMTagger(**SMALL, scheme="bio", epochs=1).fit(*named(5)).to_parts()


def changed(name: str, value: Any) -> Parts:
    whole = parts()
    (whole.settings if name in whole.settings else whole.arrays)[name] = value
    return whole


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("tags", ["O", "B-PER"], "sorted"),
        ("tags", ["B-PER", "O"], "as the scheme has them"),
        ("tags", "O", "list of names"),
        ("has_vectors", 1, "true or false"),
        ("units", 9, "not float32"),
        ("units", 10**12, "not float32"),
        ("names", np.zeros((2, 2), np.uint8), "not bytes"),
        ("counts", np.zeros(3, np.int64), "counts are"),
        ("names_offsets", np.array([0, 5], np.int64), "do not fit"),
        ("weights.bias", np.full(17, np.nan, np.float32), "not finite"),
        ("weights.bias", np.zeros(17), "not float32"),
        ("weights.table", np.zeros((2, 6), np.float32), "not float32"),
    ],
)
def test_a_hostile_file_is_refused(name: str, value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        BiLSTMTagger.from_parts(changed(name, value))


def test_a_missing_weight_is_refused() -> None:
    whole = parts()
    del whole.arrays["weights.moves"]
    with pytest.raises(KeyError):
        BiLSTMTagger.from_parts(whole)
