"""The CTC decoder: its plain and its fast version agree, streams equal whole matrices, and bad input is one line."""

from __future__ import annotations

import gc
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from foreword.arrays import Doubles
from foreword.errors import CTCInputError, SettingError
from foreword.mix.combine import interpolate
from foreword.neural.recurrent import MODEST, RecurrentLM
from foreword.ngram.arpa import write_arpa
from foreword.ngram.kenlm_writing import write_kenlm
from foreword.ngram.log10 import log10_of
from foreword.ngram.model import NgramLM
from foreword.ngram.unigram import UnigramLM
from foreword.pipeline.language import TextLM
from foreword.speech import (
    BeamSearchDecoderCTC,
    CTCLanguageModel,
    build_ctcdecoder,
    confidences,
    lattice,
    rescored,
    tune,
)
from foreword.speech.alphabet import Alphabet
from foreword.speech.beam_search import BeamSearch
from foreword.speech.lm import AbstractLanguageModel, HotwordScorer
from foreword.speech.plain import BeamSettings, OutputBeam, PlainSearch
from foreword.storage.folder import save
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

LETTERS = list(" abcdefghijklmnopqrstuvwxyz'")
PIECES = ["<unk>", "▁", *"abdehnst", "▁the", "▁c", "at", "▁s", "é", "on▁"]
SENTENCES = (
    "the cat sat on the mat", "the dog sat on the log", "a cat and a dog", "the mat and the log", "sat on a log",
    "the cat and the dog sat", "on the mat the dog sat",
)  # fmt: skip


def spoken(text: str, labels: list[str], noise: float, seed: int = 0) -> Doubles:
    """Return logits of a text: two frames for each letter and a blank after it, in noise."""
    random = np.random.default_rng(seed)
    rows = []
    for letter in text:
        column = labels.index(letter)
        rows += [column, column, len(labels)]
    logits = noise * random.normal(size=(len(rows), len(labels) + 1))
    logits[np.arange(len(rows)), rows] += 6.0
    return logits


@pytest.fixture(scope="module")
def ngram() -> NgramLM:
    tokenizer = WordTokenizer().fit(SENTENCES)
    return NgramLM(order=3).fit(Corpus.from_texts(SENTENCES, tokenizer))


@pytest.fixture(scope="module")
def words(ngram: NgramLM) -> list[str]:
    return [word for word in ngram.vocab if word.isalpha()]


@pytest.fixture
def decoder(ngram: NgramLM, words: list[str]) -> BeamSearchDecoderCTC:
    return build_ctcdecoder(LETTERS, ngram, words)


def plain_beams(
    decoder: BeamSearchDecoderCTC, logits: Doubles, settings: BeamSettings, hotwords: list[str] | None = None
) -> list[OutputBeam]:
    search = PlainSearch(
        decoder._alphabet, decoder._language_model, HotwordScorer.build_scorer(hotwords, 10.0), settings
    )
    search.read(decoder.log_probabilities(logits))
    return search.finish()


def assert_same(ours: list[Any], others: list[Any]) -> None:
    assert [(beam[0], beam[-3]) for beam in ours] == [(beam[0], beam[-3]) for beam in others]
    for one, other in zip(ours, others, strict=True):
        assert one[-2:] == pytest.approx(other[-2:], abs=1e-9)


@pytest.mark.parametrize("labels", [LETTERS, PIECES])
@pytest.mark.parametrize("hotwords", [None, ["cat", "sa the"]])
@pytest.mark.parametrize("distinct", [False, True])
def test_the_fast_search_equals_the_plain_one(
    ngram: NgramLM, words: list[str], labels: list[str], hotwords: list[str] | None, distinct: bool
) -> None:
    random = np.random.default_rng(len(labels) + distinct)
    for language_model in (None, CTCLanguageModel(ngram, words), CTCLanguageModel(ngram, None, score_boundary=False)):
        decoder = BeamSearchDecoderCTC(Alphabet.build_alphabet(labels), language_model)
        for width in (1, 7, 40):
            logits = 3 * random.normal(size=(25, len(decoder._alphabet.labels)))
            settings = BeamSettings(width, -12.0, -6.0, distinct)
            assert isinstance(decoder.stream(settings), BeamSearch)
            ours = decoder.decode_beams(logits, *settings, hotwords=hotwords)
            others = plain_beams(decoder, logits, settings, hotwords)
            assert_same(ours, others)
            assert [beam.lm_state for beam in ours] == [beam.lm_state for beam in others]


def test_a_language_model_mends_what_noise_broke(decoder: BeamSearchDecoderCTC) -> None:
    text = "the cat sat on the log"
    logits = spoken(text, LETTERS, 2.5, seed=3)
    assert build_ctcdecoder(LETTERS).decode(logits) != text
    assert decoder.decode(logits) == text
    best = decoder.decode_beams(logits)[0]
    assert best.text == text
    assert [word for word, _ in best.text_frames] == text.split()
    firsts = [first for _, (first, _) in best.text_frames]
    assert firsts == sorted(firsts)


def test_frames_in_pieces_give_the_same_beams(decoder: BeamSearchDecoderCTC) -> None:
    logs = decoder.log_probabilities(spoken("the dog sat on the mat", LETTERS, 0.5))
    whole = decoder.stream()
    whole.read(logs)
    pieces = decoder.stream()
    for first in range(0, len(logs), 7):
        pieces.read(logs[first : first + 7])
        pieces.finish()  # to look at the beams changes nothing
    assert pieces.finish() == whole.finish()
    assert whole.finish(1)[0].text == "the dog sat on the mat"


def test_a_long_stream_takes_no_more_memory(decoder: BeamSearchDecoderCTC) -> None:
    """Words that all beams share leave the trees, and come back with the rest, or earlier by ``pop_settled``."""
    logs = decoder.log_probabilities(spoken("the dog and the cat sat on a log ", LETTERS, 1.0))
    settings = BeamSettings(beam_width=20, prune_history=True)
    search, live = decoder.stream(settings), decoder.stream(settings)
    plain, popped = (
        PlainSearch(decoder._alphabet, decoder._language_model, HotwordScorer(), settings) for _ in range(2)
    )
    assert isinstance(search, BeamSearch)
    assert isinstance(live, BeamSearch)
    sizes, words, others = [], [], []
    for _ in range(30):
        for each in (search, live, plain, popped):
            each.read(logs)
        sizes.append([len(search.words.parent), len(search.texts.parent), len(search.chains.parent)])
        words += live.pop_settled()
        others += popped.pop_settled()
    assert sizes[-1] == sizes[5]
    whole = search.finish()
    assert_same(whole, plain.finish())
    assert [beam.lm_state for beam in whole] == [beam.lm_state for beam in plain.finish()]
    assert len(whole[0].text_frames) == 30 * 9
    for earlier, rest in ((words, live.finish()[0]), (others, popped.finish()[0])):
        assert 2 <= len(rest.text_frames) < 20
        assert earlier + rest.text_frames == whole[0].text_frames
        assert rest.lm_score == pytest.approx(whole[0].lm_score, abs=1e-9)


def test_silence_takes_no_memory(decoder: BeamSearchDecoderCTC) -> None:
    random = np.random.default_rng(0)
    search = decoder.stream(BeamSettings(beam_width=20, token_min_logp=-30.0))
    assert isinstance(search, BeamSearch)
    sizes = len(search.words.parent), len(search.texts.parent), len(search.chains.parent)
    for _ in range(10):
        logits = random.normal(size=(300, 29))
        logits[:, 28] += 12.0
        search.read(decoder.log_probabilities(logits))
        assert (len(search.words.parent), len(search.texts.parent), len(search.chains.parent)) == sizes
    assert len(search.finish(1)[0].text.split()) <= 1


def test_a_state_goes_on_where_the_last_text_ended(decoder: BeamSearchDecoderCTC) -> None:
    first = decoder.decode_beams(spoken("the cat", LETTERS, 0.1))[0]
    after = spoken("sat", LETTERS, 0.1)
    alone, following = decoder.decode_beams(after)[0], decoder.decode_beams(after, lm_start_state=first.lm_state)[0]
    assert following.text == alone.text == "sat"
    assert following.lm_score > alone.lm_score  # "the cat sat" was seen, a sentence of "sat" was not
    assert json.loads(json.dumps(first.lm_state)) == list(first.lm_state)
    with pytest.raises(CTCInputError, match="a state that this decoder returned"):
        decoder.decode(after, lm_start_state=(1, 2, 3))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_is_the_same_on_threads(
    decoder: BeamSearchDecoderCTC, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr("foreword.speech.decoder.cores", lambda: threads)
    batch = [spoken(text, LETTERS, 1.0, seed) for seed, text in enumerate(SENTENCES)]
    assert decoder.decode_batch(None, batch) == [decoder.decode(logits) for logits in batch]
    beams = decoder.decode_beams_batch(None, batch, beam_width=10)
    assert beams == [[(b[0], *b[2:]) for b in decoder.decode_beams(logits, beam_width=10)] for logits in batch]
    assert decoder.decode_batch(None, []) == []


def test_language_models_of_all_forms_score_alike(ngram: NgramLM, words: list[str], tmp_path: Path) -> None:
    save(TextLM(WordTokenizer().fit(SENTENCES), ngram), tmp_path / "folder")
    write_arpa(log10_of(ngram), tmp_path / "model.arpa")
    write_kenlm(log10_of(ngram), tmp_path / "model.bin", "trie")
    logits = spoken("the dog and the cat", LETTERS, 2.0, seed=1)
    found = [
        build_ctcdecoder(LETTERS, form, words).decode_beams(logits)
        for form in (ngram, str(tmp_path / "folder"), tmp_path / "model.arpa", str(tmp_path / "model.bin"))
    ]
    for other in found[1:]:
        assert [beam.text for beam in other] == [beam.text for beam in found[0]]
        for one, two in zip(other, found[0], strict=True):
            assert one.lm_score == pytest.approx(two.lm_score, abs=1e-4)
    # Without unigrams they are read from the file, and with them the words.
    assert build_ctcdecoder(LETTERS, tmp_path / "model.arpa").decode(logits) == found[0][0].text
    with pytest.warns(UserWarning, match="KenLM binary without unigrams"):
        build_ctcdecoder(LETTERS, tmp_path / "model.bin")


def test_any_model_of_words_scores(words: list[str]) -> None:
    """A model that is no n-gram file takes the plain search."""
    corpus = Corpus.from_texts(SENTENCES, WordTokenizer().fit(SENTENCES))
    decoder = build_ctcdecoder(LETTERS, UnigramLM().fit(corpus), words)
    assert isinstance(decoder.stream(), PlainSearch)
    assert decoder.decode(spoken("the cat", LETTERS, 1.0), beam_width=10) == "the cat"


class Flat(AbstractLanguageModel):
    """A language model of a user: every word but one is unlikely."""

    order = 1

    def get_start_state(self) -> int:
        return 0

    def score_partial_token(self, partial_token: str) -> float:
        return 0.0

    def score(self, prev_state: int, word: str, is_last_word: bool = False) -> tuple[float, int]:
        return 0.0 if word == "dog" else -50.0, prev_state + 1


def test_a_language_model_of_your_own() -> None:
    logits = spoken("dot", LETTERS, 0.1)
    logits[6:8, LETTERS.index("g")] = 5.0
    assert build_ctcdecoder(LETTERS).decode(logits) == "dot"
    best = BeamSearchDecoderCTC(Alphabet.build_alphabet(LETTERS), Flat()).decode_beams(logits)[0]
    assert best.text == "dog"
    assert best.lm_state == 1


def test_a_decoder_is_saved_in_the_layout_of_hugging_face(
    decoder: BeamSearchDecoderCTC, ngram: NgramLM, words: list[str], tmp_path: Path
) -> None:
    logits = spoken("a cat and a dog", LETTERS, 2.0)
    decoder.reset_params(alpha=0.7, beta=0.25)
    decoder.save_to_dir(str(tmp_path))
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "alphabet.json", "attrs.json", "language_model.bin", "unigrams.txt",
    ]  # fmt: skip
    again = BeamSearchDecoderCTC.load_from_dir(str(tmp_path))
    assert again.decode_beams(logits) == decoder.decode_beams(logits)
    again.cleanup()
    with pytest.raises(KeyError):
        again.decode(logits)
    (tmp_path / "language_model" / "more.txt").write_text("")
    with pytest.raises(CTCInputError, match=r"expected attrs.json, unigrams.txt and one file"):
        BeamSearchDecoderCTC.load_from_dir(str(tmp_path))
    (tmp_path / "alphabet.json").write_text("[")
    with pytest.raises(CTCInputError, match="is not JSON"):
        BeamSearchDecoderCTC.load_from_dir(str(tmp_path))


@pytest.mark.parametrize(
    ("labels", "normal"),
    [
        (["<pad>", "<s>", "<unk>", "|", "A"], ["", "<s>", "⁇", " ", "A"]),
        ([" ", "a", "_"], [" ", "a", ""]),
        (["[UNK]", "##a", "b", "[CLS]"], ["▁⁇▁", "a", "▁b", "[CLS]", ""]),
        (["▁", "▁a", "b", "<pad>"], ["▁", "▁a", "b", ""]),
    ],
)
def test_labels_are_normalised(labels: list[str], normal: list[str]) -> None:
    alphabet = Alphabet.build_alphabet(labels)
    assert alphabet.labels == normal
    assert Alphabet.loads(alphabet.dumps()).labels == normal


BAD_LOGITS: dict[str, tuple[Callable[[Doubles], Any], str]] = {
    "nan": (lambda logits: np.where(np.arange(len(logits))[:, None] == 4, np.nan, logits), "frame 4 .* NaN"),
    "nothing": (lambda logits: np.full_like(logits, -np.inf), "frame 0 .* nothing finite"),
    "width": (lambda logits: logits[:, :-1], r"expected .* \(frames, 29\), one column for each label with the blank"),
    "flat": (lambda logits: logits[0], "expected numbers of the shape"),
    "empty": (lambda logits: np.empty((0, 0)), "expected numbers of the shape"),
    "text": (lambda logits: np.array([["a"] * 29]), "expected numbers"),
}


@pytest.mark.parametrize("name", BAD_LOGITS)
def test_bad_logits_are_one_line(name: str) -> None:
    spoil, message = BAD_LOGITS[name]
    with pytest.raises(CTCInputError, match=message) as caught:
        build_ctcdecoder(LETTERS).decode(spoil(spoken("a cat", LETTERS, 1.0)))
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_no_frames_are_an_empty_text(decoder: BeamSearchDecoderCTC) -> None:
    assert decoder.decode(np.empty((0, 29))) == build_ctcdecoder(LETTERS).decode(np.empty((0, 29))) == ""


def test_probabilities_are_recognised_in_any_precision() -> None:
    decoder, logits = build_ctcdecoder(LETTERS), spoken("the cat", LETTERS, 1.0)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    for given in (logits, shares, shares.astype(np.float32)):
        np.testing.assert_allclose(decoder.log_probabilities(given), np.log(shares), atol=1e-4)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "b", "a"], "label 'a' appears twice"),
        (["▁a", " "], "a label holds a space"),
        ([], "expected a list of strings"),
        ([" ", 3], "expected a list of strings"),
    ],
)
def test_bad_labels_are_one_line(labels: Any, message: str) -> None:
    with pytest.raises(CTCInputError, match=message):
        build_ctcdecoder(labels)


@pytest.mark.parametrize(
    ("labels", "is_bpe", "message"),
    [
        ([1, 2], False, "expected a list of strings"),
        ([], False, "expected a list of strings"),
        ("ab", False, "expected a list of strings"),
        (None, False, "expected a list of strings"),
        (["a", "a", ""], False, "label 'a' appears twice"),
        (["a", " "], False, 'expected labels with "", the blank'),
        (["a", ""], "no", "is_bpe to be true or false"),
    ],
)
def test_bad_labels_of_a_file_are_one_line(labels: Any, is_bpe: Any, message: str) -> None:
    """Numbers were a TypeError, an empty list a ValueError; the others were taken."""
    with pytest.raises(CTCInputError, match=message):
        Alphabet.loads(json.dumps({"labels": labels, "is_bpe": is_bpe}))


def test_a_blank_of_two_names_is_taken() -> None:
    alphabet = Alphabet.build_alphabet(["<pad>", "[PAD]", "a", " "])
    assert Alphabet.loads(alphabet.dumps()).labels == ["", "", "a", " "]


def test_labels_without_a_blank_get_one_and_say_so() -> None:
    decoder = build_ctcdecoder([" ", "a"])
    assert decoder._alphabet.labels == [" ", "a", ""]
    with pytest.raises(CTCInputError, match="with the blank, which is column 2"):
        decoder.decode(np.zeros((3, 2)))
    with pytest.warns(UserWarning, match="no label is a space"):
        build_ctcdecoder(["a", "b"])


def test_another_vocabulary_is_a_warning_with_its_share(ngram: NgramLM, words: list[str]) -> None:
    with pytest.warns(UserWarning, match=r"100.0% of the words cannot be spelled with the labels, which lack"):
        build_ctcdecoder([label.upper() for label in LETTERS], ngram, words)
    with pytest.warns(UserWarning, match=r"100.0% of the 2 unigrams are unknown to the language model"):
        build_ctcdecoder(LETTERS, ngram, ["zebra", "gnu"])


def test_bad_settings_are_one_line(decoder: BeamSearchDecoderCTC, ngram: NgramLM) -> None:
    logits = spoken("a", LETTERS, 1.0)
    with pytest.raises(SettingError, match="beam_width"):
        decoder.decode(logits, beam_width=0)
    with pytest.raises(CTCInputError, match="alpha=1: expected a float"):
        decoder.reset_params(alpha=1)
    with pytest.raises(CTCInputError, match="expected a list of words"):
        decoder.decode(logits, hotwords="cat")
    with pytest.raises(CTCInputError, match="hotwords hold None: expected a list of words"):
        decoder.decode(logits, hotwords=cast(Any, ["cat", None]))
    with pytest.raises(CTCInputError, match="hotword_weight=nan: expected a number"):
        decoder.decode(logits, hotwords=["cat"], hotword_weight=math.nan)
    with pytest.raises(CTCInputError, match="beta=nan: expected a number"):
        decoder.reset_params(beta=math.nan)
    bad: dict[str, Any] = {"alpha": math.nan, "beta": "1", "unk_score_offset": math.inf}
    for name, value in bad.items():
        with pytest.raises(CTCInputError, match=f"{name}=.*: expected a number"):
            build_ctcdecoder(LETTERS, ngram, **{name: value})
    with pytest.raises(CTCInputError, match="a dict is not a language model"):
        build_ctcdecoder(LETTERS, {})


def test_hotwords_help_unknown_words(decoder: BeamSearchDecoderCTC) -> None:
    logits = spoken("the zebra sat", LETTERS, 1.2, seed=2)
    assert decoder.decode(logits, hotwords=["zebra"], hotword_weight=30.0) == "the zebra sat"
    plain = decoder.decode_beams(logits)
    hot = {beam.text: beam for beam in decoder.decode_beams(logits, hotwords=["zebra"], beam_prune_logp=-99.0)}
    for beam in plain:
        if beam.text in hot:
            gain = hot[beam.text].lm_score - beam.lm_score
            assert gain == pytest.approx(10.0 * beam.text.split().count("zebra"), abs=1.0)


# Lists of beams


def test_confidences_add_up(decoder: BeamSearchDecoderCTC) -> None:
    sure = confidences(decoder.decode_beams(spoken("the cat sat", LETTERS, 0.1)))
    assert [found.word for found in sure] == ["the", "cat", "sat"]
    assert min(found.posterior for found in sure) > 0.99
    beams = [
        OutputBeam("a cat", None, [("a", (0, 1)), ("cat", (2, 5))], 0.0, math.log(0.6)),
        OutputBeam("a cap", None, [("a", (0, 1)), ("cap", (2, 5))], 0.0, math.log(0.3)),
        OutputBeam("cat", None, [("cat", (0, 2))], 0.0, math.log(0.1)),
    ]
    one, two = confidences(beams)
    assert one.posterior == pytest.approx(0.9)
    assert two.posterior == pytest.approx(0.6)
    assert two.characters == pytest.approx((0.9, 0.9, 0.6))


def test_a_lattice_has_the_posteriors_of_its_words(decoder: BeamSearchDecoderCTC) -> None:
    beams = decoder.decode_beams(spoken("the cat sat on the log", LETTERS, 2.5, seed=3))
    graph: Any = json.loads(json.dumps(lattice(beams)))
    assert len(graph["beams"]) == len(beams) > 1
    assert sum(end["posterior"] for end in graph["ends"]) == pytest.approx(1.0)
    arriving = [0.0] * len(graph["nodes"])
    leaving = [0.0] * len(graph["nodes"])
    for edge in graph["edges"]:
        leaving[edge["from"]] += edge["posterior"]
        arriving[edge["to"]] += edge["posterior"]
    for end in graph["ends"]:
        leaving[end["node"]] += end["posterior"]
    assert leaving[0] == pytest.approx(1.0)
    assert arriving[1:] == pytest.approx(leaving[1:])  # what comes to a node goes on from it


def test_a_second_pass_with_another_model(ngram: NgramLM) -> None:
    beams = build_ctcdecoder(LETTERS).decode_beams(spoken("the cat sat", LETTERS, 2.2, seed=4), beam_width=30)
    text_model = TextLM(WordTokenizer().fit(SENTENCES), ngram)
    again = rescored(beams, ngram, weight=0.7, bonus=0.5)
    assert [beam.lm_score for beam in again] == sorted((beam.lm_score for beam in again), reverse=True)
    for beam in again:
        log = float(ngram.logprobs(Corpus.from_ids([ngram.vocab.ids(beam.text.split())], ngram.vocab)).sum())
        expected = beam.logit_score + 0.7 * log + 0.5 * len(beam.text.split())
        assert beam.lm_score == pytest.approx(expected, abs=1e-6)
    assert rescored(beams, text_model, weight=0.7, bonus=0.5, replace=True) == again
    with pytest.raises(CTCInputError, match="a str is not a language model"):
        rescored(beams, "model")  # type: ignore[arg-type]


def test_an_lstm_or_a_mixture_in_the_second_pass_mends_texts(ngram: NgramLM) -> None:
    training = replace(MODEST, batch=4, epochs=60, rate=2e-2)
    lstm = RecurrentLM("lstm", embedding=16, hidden=16, training=training)
    lstm.fit(Corpus.from_texts(SENTENCES, WordTokenizer().fit(SENTENCES)))
    decoder = build_ctcdecoder(LETTERS)
    lists = [decoder.decode_beams(spoken(text, LETTERS, 1.5, seed)) for seed, text in enumerate(SENTENCES)]

    def right(found: list[list[OutputBeam]]) -> int:
        return sum(beams[0].text == text for beams, text in zip(found, SENTENCES, strict=True))

    for model in (lstm, interpolate([lstm, ngram])):
        assert right([rescored(beams, model) for beams in lists]) > right(lists)


def test_weights_are_tuned_on_known_texts(ngram: NgramLM, words: list[str]) -> None:
    decoder = build_ctcdecoder(LETTERS, ngram, words, alpha=0.0, beta=-20.0)
    batch = [spoken(text, LETTERS, 2.5, seed) for seed, text in enumerate(SENTENCES)]
    before = decoder.decode_batch(None, batch, beam_width=20)
    tuned = tune(decoder, batch, SENTENCES, alphas=[0.0, 0.8], betas=[-20.0, 1.0], beam_width=20)
    after = decoder.decode_batch(None, batch, beam_width=20)
    right = [sum(map(str.__eq__, texts, SENTENCES)) for texts in (before, after)]
    assert right[1] > right[0]
    assert tuned.rate == min(tuned.tried.values()) < tuned.tried[0.0, -20.0]
    assert len(tuned.tried) > 4
    assert tuned.tried[tuned.alpha, tuned.beta] == tuned.rate
    with pytest.raises(CTCInputError, match="expected a text for each"):
        tune(decoder, batch, SENTENCES[:2])


def test_a_language_model_is_freed_with_its_decoder() -> None:
    """Once every decoder that was made kept its model until the process ended."""
    before = len(BeamSearchDecoderCTC.model_container)
    decoder = build_ctcdecoder([" ", "a", ""])
    assert len(BeamSearchDecoderCTC.model_container) == before + 1
    del decoder
    gc.collect()
    assert len(BeamSearchDecoderCTC.model_container) == before
