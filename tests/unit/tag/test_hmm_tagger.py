from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foreword.errors import ForewordError, InputError, SettingError
from foreword.protocols import Parts, Tagger
from foreword.storage.folder import load, save
from foreword.tag import plain
from foreword.tag.hmm import HMMTagger, deleted_interpolation, most_frequent_tags

SENTENCES = [
    ["The", "dog", "runs", "."],
    ["A", "dog", "saw", "the", "saw"],
    ["Dogs", "run", "quickly", "."],
    ["the", "runs", "ended"],
    [],
    ["Anna", "saw", "Bob", "quickly"],
]
TAGS = [
    ["DET", "NOUN", "VERB", "PUNCT"],
    ["DET", "NOUN", "VERB", "DET", "NOUN"],
    ["NOUN", "VERB", "ADV", "PUNCT"],
    ["DET", "NOUN", "VERB"],
    [],
    ["NAME", "VERB", "NAME", "ADV"],
]


@pytest.fixture(params=[2, 3])
def tagger(request: pytest.FixtureRequest) -> HMMTagger:
    return HMMTagger(request.param).fit(SENTENCES, TAGS)


def path_score(tagger: HMMTagger, words: list[str], tags: list[int]) -> float:
    """The log of what the tagger maximises, added up term by term; minus infinity if a tag is not tried."""
    kinds = len(tagger.tags_)
    codes, _ = tagger._codes_of([words])
    labels, total = [2 * kinds, 2 * kinds], 0.0
    for code, tag in zip(codes.tolist(), tags, strict=True):
        row = slice(*tagger._lexicon.rows[code >> 1 : (code >> 1) + 2])
        tried = dict(zip(tagger._lexicon.tags[row].tolist(), tagger._lexicon.logs[row].tolist(), strict=True))
        total += tried.get(tag, -math.inf)
        labels.append(tag + kinds * (code & 1))
    labels.append(2 * kinds)
    return total + math.fsum(tagger._moves[triple] for triple in zip(labels, labels[1:], labels[2:], strict=False))


def test_it_is_a_tagger_and_learns_its_sentences(tagger: HMMTagger) -> None:
    assert isinstance(tagger, Tagger)
    assert tagger.tags_ == ["ADV", "DET", "NAME", "NOUN", "PUNCT", "VERB"]
    assert tagger.predict(SENTENCES) == TAGS
    assert tagger.score(SENTENCES, TAGS) == 1


def test_context_decides_between_tags_of_one_word(tagger: HMMTagger) -> None:
    assert tagger.predict([["Bob", "saw", "the", "saw"]]) == [["NAME", "VERB", "DET", "NOUN"]]


def test_unknown_words_are_judged_by_case_and_ending(tagger: HMMTagger) -> None:
    assert tagger.predict([["DOGS", "run", "slowly", "."]]) == [["NOUN", "VERB", "ADV", "PUNCT"]]
    assert not tagger.knows("DOGS")
    assert tagger.knows("Dogs")


@pytest.mark.parametrize("words", [["saw", "saw"], ["The", "xyz", "saw"], ["Qqq"], ["the", "runs", "quickly", "dog"]])
def test_the_path_and_the_posteriors_equal_brute_force(tagger: HMMTagger, words: list[str]) -> None:
    kinds = len(tagger.tags_)
    paths = list(itertools.product(range(kinds), repeat=len(words)))
    scores = np.array([path_score(tagger, words, list(path)) for path in paths])
    best = [tagger.tags_[tag] for tag in paths[int(scores.argmax())]]
    assert tagger.predict([words]) == [best]
    weights = np.exp(scores - scores.max())
    expected = np.zeros((len(words), kinds))
    for weight, path in zip(weights, paths, strict=True):
        expected[np.arange(len(words)), path] += weight / weights.sum()
    assert_allclose(np.exp(tagger.predict_log_proba([words])[0]), expected, rtol=1e-12, atol=1e-15)


def test_the_kernel_equals_the_plain_version() -> None:
    rng = np.random.default_rng(0)
    words = [f"{stem}{ending}" for stem in ("ab", "Cd", "xyz", "Qu") for ending in ("", "s", "ing", "ed")]
    sentences = [rng.choice(words, rng.integers(1, 12)).tolist() for _ in range(60)]
    tags = [[str(rng.integers(0, 5)) for _ in sentence] for sentence in sentences]
    tagger = HMMTagger().fit(sentences, tags)
    unknown = [[word.swapcase() + rng.choice(["", "s"]) for word in sentence] for sentence in sentences]
    for sentence, predicted in zip(unknown, tagger.predict(unknown), strict=True):
        codes, _ = tagger._codes_of([sentence])
        by_plain = plain.likeliest_tags(codes, tagger._lexicon, tagger._moves, len(tagger.tags_))
        assert [tagger.tags_[tag] for tag in by_plain] == predicted


def test_log_probabilities_are_of_distributions(tagger: HMMTagger) -> None:
    for sentence, logs in zip(SENTENCES, tagger.predict_log_proba(SENTENCES), strict=True):
        assert logs.shape == (len(sentence), len(tagger.tags_))
        assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-12)


def test_a_long_sentence_does_not_underflow(tagger: HMMTagger) -> None:
    words = ["The", "dog", "saw", "Bob"] * 2000
    assert tagger.predict([words])[0][:4] == ["DET", "NOUN", "VERB", "NAME"]
    assert_allclose(np.exp(tagger.predict_log_proba([words])[0]).sum(axis=1), 1, rtol=1e-9)


def test_transitions_are_distributions(tagger: HMMTagger) -> None:
    sums = np.exp(tagger._moves).sum(axis=-1)
    kinds = len(tagger.tags_)
    det, noun = (tagger.tags_.index(tag) for tag in ("DET", "NOUN"))
    for seen in ((2 * kinds, 2 * kinds), (det, noun), (kinds + det, noun)):
        assert sums[seen] == pytest.approx(1)
    assert np.isfinite(tagger._moves).all()
    assert tagger.weights_.sum() == pytest.approx(1)
    assert len(tagger.weights_) == tagger.order


def test_deleted_interpolation_by_hand() -> None:
    """Trigrams 0 0 1 twice and 0 1 0 once. Without one of them: unigrams 1/2, bigrams 1, trigrams 1 for the first;
    all are 0 for the second, so the longest gets it, as it gets ties.
    """
    trigrams = np.zeros((2, 2, 2))
    trigrams[0, 0, 1], trigrams[0, 1, 0] = 2, 1
    assert_array_equal(deleted_interpolation(trigrams), [0, 0, 1])
    trigrams[1, 0, 1] = 1  # its trigram is alone, its bigram 0 1 is not
    assert_array_equal(deleted_interpolation(trigrams), [0, 0.25, 0.75])


def test_accuracies_tell_known_from_unknown_words(tagger: HMMTagger) -> None:
    result = tagger.accuracies([["The", "dog"], ["slowly"]], [["DET", "VERB"], ["ADV"]])
    assert result == pytest.approx((2 / 3, 1 / 2, 1, 1 / 3))
    assert math.isnan(tagger.accuracies([["dog"]], [["NOUN"]]).unknown)


def test_the_baseline_gives_each_word_its_most_frequent_tag() -> None:
    train = [["a", "a", "a", "b"]], [["X", "Y", "Y", "Z"]]
    assert most_frequent_tags(*train, [["a", "b", "new"], []]) == [["Y", "Z", "Y"], []]


def test_without_rare_words_an_unknown_one_is_like_any() -> None:
    tagger = HMMTagger(rare=0).fit(SENTENCES, TAGS)
    assert len(tagger.predict([["unheard"]])[0]) == 1


def test_a_text_of_few_sentences_leaves_nothing_impossible() -> None:
    """Here the trigrams foresee everything, and without a least weight the other orders would have none."""
    sentences, tags = [["a", "dog", "ran"]] * 2, [["DET", "NOUN", "VERB"]] * 2
    for order in (2, 3):
        tagger = HMMTagger(order).fit(sentences, tags)
        assert np.isfinite(tagger._moves).all()
        assert tagger.predict(sentences) == tags
        assert len(tagger.predict([["ran", "a", "Cat"]])[0]) == 3


def test_nothing_to_tag() -> None:
    tagger = HMMTagger().fit(SENTENCES, TAGS)
    assert tagger.predict([]) == []
    assert tagger.predict([[], []]) == [[], []]
    assert [logs.shape for logs in tagger.predict_log_proba([[]])] == [(0, 6)]
    with pytest.raises(InputError, match="nothing to score"):
        tagger.score([[]], [[]])


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match="sentence 1 has 1 words but 2 tags"):
        HMMTagger().fit([["a"], ["b"]], [["X"], ["Y", "Z"]])
    with pytest.raises(InputError, match="1 sentences but tags of 0"):
        HMMTagger().fit([["a"]], [])
    with pytest.raises(InputError, match="empty"):
        HMMTagger().fit([[]], [[]])
    for use in (lambda: HMMTagger().predict([["a"]]), lambda: HMMTagger().tags_, lambda: HMMTagger().knows("a")):
        with pytest.raises(ForewordError, match="fit"):
            use()


@pytest.mark.parametrize(
    "settings", [{"order": 1}, {"ending": -1}, {"rare": 1.5}, {"word_weight": math.nan}, {"ending_weight": -1}]
)
def test_settings_must_make_sense(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(settings))):
        HMMTagger(**settings).fit(SENTENCES, TAGS)


def test_saved_and_loaded_it_tags_the_same(tagger: HMMTagger, tmp_path: Path) -> None:
    save(tagger, tmp_path / "tagger")
    loaded = load(tmp_path / "tagger")
    texts = [["The", "unseen", "Dog", "saw", "QUICKLY"], ["x\ud800y", "", "\n"]]
    assert loaded.predict(texts) == tagger.predict(texts)
    for ours, theirs in zip(loaded.predict_log_proba(texts), tagger.predict_log_proba(texts), strict=True):
        assert_array_equal(ours, theirs)
    save(loaded, tmp_path / "again")
    for file in (tmp_path / "tagger").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_a_saved_tagger_must_be_whole(tagger: HMMTagger) -> None:
    parts = tagger.to_parts()

    def changed(settings: dict[str, Any] | None = None, **arrays: Any) -> Parts:
        return Parts({**parts.settings, **(settings or {})}, {**parts.arrays, **arrays})

    rows, tags = parts.arrays["rows"], parts.arrays["tags"]
    wrong = [
        changed(rows=rows[:-1]),
        changed(rows=rows * 2),
        changed(rows=np.concatenate((rows[:1], rows[:-1]))),
        changed(tags=tags + 6),
        changed(tags=tags.astype(np.int64)),
        changed(moves=parts.arrays["moves"][:-1]),
        changed(moves=np.full_like(parts.arrays["moves"], np.nan)),
        changed(weights=np.ones(5)),
        changed(name_offsets=parts.arrays["name_offsets"][:-1]),
        changed({"entries": [1, 2]}),
        changed({"entries": [1, 2, len(rows)]}),
        changed({"tags": []}),
        changed({"tags": "DET"}),
        changed({"order": 7}),
    ]
    for damaged in wrong:
        with pytest.raises((ValueError, ForewordError)):
            HMMTagger.from_parts(damaged)
