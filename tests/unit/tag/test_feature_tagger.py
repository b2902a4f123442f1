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
from foreword.tag import kernels_features as kernels
from foreword.tag import plain
from foreword.tag.attributes import (
    ATTRIBUTES,
    GROUPS,
    WORD_GROUPS,
    attributes_of,
    feature_name,
    lexicon_of,
    templates_of,
)
from foreword.tag.features import FeatureTagger
from foreword.tag.kernels_features import FeatureWeights
from foreword.tag.rules import RULES, judge_rules, learn_exceptions, rule_of, tags_by_rule

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
NEW = [["A", "Dog", "saw", "slowly", "."], ["Bob"], ["unheard", "of", "saws"]]


def fitted(*features: str, **settings: Any) -> FeatureTagger:
    return FeatureTagger(features or WORD_GROUPS, **{"rounds": 20, **settings}).fit(SENTENCES, TAGS)


@pytest.fixture(scope="module")
def tagger() -> FeatureTagger:
    return fitted()


def features_in(tagger: FeatureTagger, words: list[str]) -> Any:
    """By names and the plain road: what every template sees, looked up among what it saw in training."""
    templates, seen = templates_of(tagger.features), set()
    lexicon = lexicon_of(SENTENCES, TAGS, tagger.lexicon_count)

    def names(sentence: list[str], place: int) -> list[str]:
        found = []
        for template in templates:
            values: list[str | None] = []
            for offset, attribute in template:
                at = place + offset
                if 0 <= at < len(sentence):
                    values.append(attributes_of(sentence[at], lexicon)[ATTRIBUTES.index(attribute)])
                else:
                    values.append("<start>" if at < 0 else "<end>")
            found.append(feature_name(template, map(str, values)) if None not in values else "")
        return found

    for sentence in SENTENCES:
        for place in range(len(sentence)):
            seen.update(names(sentence, place))
    return [[name if name in seen else "" for name in names(words, place)] for place in range(len(words))]


# Learning and tagging


def test_it_is_a_tagger_and_learns_its_sentences(tagger: FeatureTagger) -> None:
    assert isinstance(tagger, Tagger)
    assert tagger.tags_ == ["ADV", "DET", "NAME", "NOUN", "PUNCT", "VERB"]
    assert tagger.predict(SENTENCES) == TAGS
    assert tagger.score(SENTENCES, TAGS) == 1


def test_context_decides_between_tags_of_one_word(tagger: FeatureTagger) -> None:
    assert tagger.predict([["Bob", "saw", "the", "saw"]]) == [["NAME", "VERB", "DET", "NOUN"]]


def test_unknown_words_are_judged_by_what_they_show(tagger: FeatureTagger) -> None:
    assert tagger.predict([["The", "dogs", "run", "slowly", "."]])[0][3] == "ADV"
    assert not tagger.knows("dogs")
    assert tagger.knows("Dogs")


def test_training_tells_how_far_it_is() -> None:
    model = FeatureTagger(rounds=5)
    steps = list(model.train(SENTENCES, TAGS))
    tokens = sum(map(len, SENTENCES))
    assert [(step.done, step.total) for step in steps] == [(tokens * n, 5 * tokens) for n in range(1, 6)]
    losses = [step.loss for step in steps]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 2 * losses[-1] > 0


def test_the_same_seed_gives_the_same_tagger(tagger: FeatureTagger) -> None:
    assert_array_equal(tagger.weights_, fitted().weights_)
    assert not np.array_equal(tagger.moves_, fitted(seed=1).moves_)


def test_without_history_words_are_tagged_one_by_one() -> None:
    """Then the chain falls apart: the probabilities are a softmax of the scores of each word alone."""
    tagger = fitted(*(group for group in WORD_GROUPS if group != "history"))
    assert not tagger.moves_.any()
    features, _ = tagger._features_of(NEW[0])
    scores = plain.scores_of(features, tagger.weights_)
    expected = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    assert_allclose(tagger.predict_log_proba([NEW[0]])[0], expected, rtol=1e-9)


def test_rows_of_weights_sum_to_zero(tagger: FeatureTagger) -> None:
    """So a weight says by itself whether it speaks for a tag or against it."""
    assert_allclose(tagger.weights_.sum(axis=1), 0, atol=1e-5)


def test_features_seen_rarely_or_weighing_nothing_are_left_out(tagger: FeatureTagger) -> None:
    everything = fitted(prune=0)
    assert len(fitted(prune=0, min_count=2).weights_) < len(everything.weights_)
    assert 0 < len(fitted(prune=0.5).weights_) < len(everything.weights_)
    kept = fitted(prune=0.5)
    assert np.abs(kept.weights_).max(axis=1).min() >= 0.5


# Against the plain road and brute force


def random_chain(tokens: int, kinds: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(tokens, kinds)), rng.normal(size=(kinds + 1, kinds))


def path_score(scores: Any, moves: Any, path: tuple[int, ...]) -> float:
    before = (len(moves) - 1, *path[:-1])
    return math.fsum(moves[a, b] for a, b in zip(before, path, strict=True)) + math.fsum(
        scores[n, tag] for n, tag in enumerate(path)
    )


@pytest.mark.parametrize("tokens", [1, 2, 4])
def test_the_plain_road_equals_brute_force(tokens: int) -> None:
    scores, moves = random_chain(tokens, 3)
    paths = list(itertools.product(range(3), repeat=tokens))
    totals = np.array([path_score(scores, moves, path) for path in paths])
    assert plain.best_path(scores, moves) == list(paths[int(totals.argmax())])
    log_sum, posteriors, expected = plain.posteriors_of(scores, moves)
    assert log_sum == pytest.approx(np.logaddexp.reduce(totals))
    wanted, counted = np.zeros((tokens, 3)), np.zeros((4, 3))
    for probability, path in zip(np.exp(totals - log_sum), paths, strict=True):
        wanted[np.arange(tokens), path] += probability
        np.add.at(counted, ((3, *path[:-1]), path), probability)
    assert_allclose(posteriors, wanted, rtol=1e-12)
    assert_allclose(expected, counted, rtol=1e-12)


@pytest.mark.parametrize("groups", [tuple(GROUPS), ("suffix", "history"), ("neighbours", "lexicon"), ()])
def test_the_kernels_equal_the_plain_road(groups: tuple[str, ...]) -> None:
    tagger = FeatureTagger(groups, rounds=4).fit(SENTENCES, TAGS)
    sentences = [words for words in [*SENTENCES, *NEW] if words]
    for words, ours, logs in zip(
        sentences, tagger.predict(sentences), tagger.predict_log_proba(sentences), strict=True
    ):
        features, _ = tagger._features_of(words)
        scores = plain.scores_of(features, tagger.weights_)
        assert ours == [tagger.tags_[tag] for tag in plain.best_path(scores, tagger.moves_)]
        assert_allclose(np.exp(logs), plain.posteriors_of(scores, tagger.moves_)[1], rtol=1e-9)


@pytest.mark.parametrize("chained", [True, False])
def test_learning_equals_the_plain_road(chained: bool) -> None:
    rng = np.random.default_rng(1)
    kinds, rows, templates = 4, 12, 5
    offsets = np.array([0, 3, 3, 8, 9])
    features = rng.integers(-1, rows, (9, templates)).astype(np.int32)
    tags = rng.integers(0, kinds, 9).astype(np.int32)
    order = np.array([2, 0, 1, 3, 2])
    fast = FeatureWeights(np.zeros((rows, kinds), np.float32), np.zeros((kinds + 1, kinds)))
    slow = FeatureWeights(fast.weights.copy(), fast.moves.copy())
    work = kernels.workspace_for(5, templates, kinds)
    loss = kernels.learn_sentences(
        features, offsets, tags, order, fast, np.zeros(rows), np.zeros(kinds + 1), np.array([0.5, 0.25]), chained, work
    )
    squares, move_squares, expected = np.zeros(rows), np.zeros(kinds + 1), 0.0
    for step, sentence in enumerate(order):
        words = slice(offsets[sentence], offsets[sentence + 1])
        if words.start < words.stop:
            rate = 0.5 - 0.25 * step / len(order)
            expected += plain.learn_sentence(features[words], tags[words], slow, squares, move_squares, rate, chained)
    assert loss == pytest.approx(expected, rel=1e-6)
    assert_allclose(fast.weights, slow.weights, rtol=1e-4, atol=1e-6)
    assert_allclose(fast.moves, slow.moves, rtol=1e-5, atol=1e-7)
    assert fast.moves.any() == chained


def test_a_step_follows_the_gradient() -> None:
    """The change of a weight is its rate times the slope of the log-likelihood, measured by differences."""
    rng = np.random.default_rng(2)
    features, tags = rng.integers(0, 4, (3, 2)).astype(np.int32), np.array([1, 0, 1], np.int32)
    model = FeatureWeights(rng.normal(size=(4, 2)).astype(np.float64), rng.normal(size=(3, 2)))

    def likelihood(weights: Any, moves: Any) -> float:
        scores = plain.scores_of(features, weights)
        return path_score(scores, moves, tuple(tags)) - plain.posteriors_of(scores, moves)[0]

    def slope(place: int, index: tuple[int, int]) -> float:
        shifted = [[part.astype(np.float64) for part in model] for _ in range(2)]
        shifted[0][place][index] += 1e-5
        shifted[1][place][index] -= 1e-5
        return (likelihood(*shifted[0]) - likelihood(*shifted[1])) / 2e-5

    moved = FeatureWeights(model.weights.copy(), model.moves.copy())
    tiny = 1e-7  # so small that a feature in two places moves as if both steps were one
    large = np.full(4, 1e12), np.full(3, 1e12)  # so large that what is added now does not change the rate
    plain.learn_sentence(features, tags, moved, *large, tiny * 1e6, True)
    for index in itertools.product(range(4), range(2)):
        assert (moved.weights - model.weights)[index] / tiny == pytest.approx(slope(0, index), abs=1e-5)
    for index in itertools.product(range(3), range(2)):
        assert (moved.moves - model.moves)[index] / tiny == pytest.approx(slope(1, index), abs=1e-5)


def test_features_are_what_the_templates_see() -> None:
    """Two places share a feature's number if and only if they share its name, and what was not seen has none."""
    tagger = fitted(prune=0)
    by_name: dict[str, int] = {}
    for words in [*SENTENCES, *NEW]:
        names = features_in(tagger, words)
        features, _ = tagger._features_of(words)
        for name, row in zip(itertools.chain(*names), features.ravel().tolist(), strict=True):
            assert (row >= 0) == bool(name), name
            if name:
                assert by_name.setdefault(name, row) == row, name
    assert len(set(by_name.values())) == len(by_name) == len(tagger.weights_)


def test_more_features_than_the_first_table_holds() -> None:
    rng = np.random.default_rng(0)
    sentences = [[f"w{rng.integers(0, 10**9)}" for _ in range(200)] for _ in range(40)]
    tags = [["A" if int(word[1:]) % 2 else "B" for word in words] for words in sentences]
    tagger = FeatureTagger(["word", "neighbours"], rounds=2, prune=0).fit(sentences, tags)
    assert len(tagger.weights_) > 1 << 15
    assert tagger.score(sentences, tags) == 1


# Reasons


def test_reasons_sum_to_the_score(tagger: FeatureTagger) -> None:
    words = ["The", "slow", "dog", "ended", "."]
    path = [tagger.tags_.index(tag) for tag in tagger.predict([words])[0]]
    features, _ = tagger._features_of(words)
    scores = plain.scores_of(features, tagger.weights_)
    for place in range(len(words)):
        reasons = tagger.explain(words, place)
        before = path[place - 1] if place else len(path) + 1
        total = scores[place, path[place]] + tagger.moves_[before, path[place]]
        if place + 1 < len(words):
            total += tagger.moves_[path[place], path[place + 1]]
        assert math.fsum(reason.weight for reason in reasons) == pytest.approx(total, rel=1e-5)
        assert [abs(reason.weight) for reason in reasons] == sorted((abs(r.weight) for r in reasons), reverse=True)
    assert any(reason.feature == "suffix2=ed" and reason.weight > 0 for reason in tagger.explain(words, 3, "VERB"))
    assert dict(tagger.explain(words, 0))["tag[-1]=<start>"] == tagger.moves_[-1, path[0]]
    assert tagger.explain(words, -1) == tagger.explain(words, 4)


# Attributes and rules


def test_attributes_of_a_word() -> None:
    lexicon = {"walk": "NOUN|VERB", "e-mailing": "VERB"}
    shown = dict(zip(ATTRIBUTES, attributes_of("Walked-2", lexicon), strict=True))
    assert (shown["word"], shown["lower"]) == ("Walked-2", "walked-2")
    assert (shown["suffix1"], shown["suffix4"], shown["prefix2"]) == ("2", "ed-2", "wa")
    assert (shown["outline"], shown["shape"], shown["marks"]) == ("Xxxxxx-d", "Xx-d", "CDH")
    assert (shown["lexicon"], shown["stem"], shown["rule"]) == ("?", None, "capital")
    assert dict(zip(ATTRIBUTES, attributes_of("walked", lexicon), strict=True))["stem"] == "ed=NOUN|VERB"
    short = dict(zip(ATTRIBUTES, attributes_of("Ⅷa", lexicon), strict=True))
    assert (short["suffix2"], short["suffix3"], short["prefix3"]) == ("ⅷa", None, None)
    assert attributes_of("", {})[:3] == ["", "", None]


def test_the_lexicon_lists_the_tags_of_words_seen_often_enough() -> None:
    assert lexicon_of(SENTENCES, TAGS, 3) == {"saw": "NOUN|VERB", "the": "DET"}


def test_templates_of_groups() -> None:
    assert templates_of(["rules", "word"]) == [(), *GROUPS["word"], *GROUPS["rules"]]
    assert templates_of(["history"]) == [()]
    assert feature_name(((-1, "lower"), (0, "suffix3")), ["to", "run"]) == "lower[-1]=to & suffix3=run"


@pytest.mark.parametrize(
    ("word", "rule", "tag"),
    [
        ("running", "-ing", "VERB"),
        ("ring", "otherwise", "NOUN"),
        ("King", "capital", "PROPN"),
        ("The", "little DET", "DET"),
        ("3.50", "digits", "NUM"),
        ("?!", "marks", "PUNCT"),
        ("kindness", "-ness", "NOUN"),
        ("", "otherwise", "NOUN"),
    ],
)
def test_the_first_rule_that_fits_decides(word: str, rule: str, tag: str) -> None:
    assert rule_of(word) == (rule, tag)
    assert rule_of(word) in RULES


def test_no_ending_of_a_rule_is_the_end_of_another() -> None:
    """Because then their order would matter."""
    endings = [rule.name[1:] for rule in RULES if rule.name.startswith("-")]
    assert not [(a, b) for a in endings for b in endings if a != b and a.endswith(b)]


def test_rules_have_exceptions_that_can_be_learnt() -> None:
    sentences, tags = [["nothing", "during", "walking", "during"]], [["PRON", "ADP", "VERB", "ADP"]]
    assert tags_by_rule([["morning"], ["walking"]]) == [["VERB"], ["VERB"]]
    learnt = learn_exceptions([["morning", "walking", "morning"]], [["NOUN", "VERB", "NOUN"]])
    assert learnt == {"morning": "NOUN"}
    assert tags_by_rule([["morning"], ["walking"]], learnt) == [["NOUN"], ["VERB"]]
    reports = {report.rule: report for report in judge_rules(sentences, tags)}
    assert (reports["-ing"].decided, reports["-ing"].right, reports["-ing"].share) == (1, 1, 1.0)
    assert reports["little ADP"].exceptions == []
    with pytest.raises(InputError, match="tags"):
        judge_rules([["a"]], [[]])


# The edges


def test_log_probabilities_are_of_distributions(tagger: FeatureTagger) -> None:
    for sentence, logs in zip(SENTENCES, tagger.predict_log_proba(SENTENCES), strict=True):
        assert logs.shape == (len(sentence), len(tagger.tags_))
        assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-12)


def test_a_long_sentence_does_not_underflow(tagger: FeatureTagger) -> None:
    words = ["The", "dog", "saw", "Bob"] * 2000
    assert len(tagger.predict([words])[0]) == 8000
    assert_allclose(np.exp(tagger.predict_log_proba([words])[0]).sum(axis=1), 1, rtol=1e-9)


def test_weights_that_contradict_each_other_give_no_nan(tagger: FeatureTagger) -> None:
    """As only a file could hold them: each word is sure of a tag that cannot follow the one before."""
    parts = tagger.to_parts()
    moves, weights = parts.arrays["moves"].copy(), parts.arrays["weights"] * np.float32(1e6)
    moves[:] = 500 * np.where(np.eye(len(moves), len(moves) - 1, k=1), 1, -1)
    extreme = FeatureTagger.from_parts(Parts(parts.settings, {**parts.arrays, "moves": moves, "weights": weights}))
    assert [len(tags) for tags in extreme.predict(SENTENCES)] == [len(words) for words in SENTENCES]
    for logs in extreme.predict_log_proba([words for words in [*SENTENCES, *NEW] if words]):
        assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-9)


def test_nothing_to_tag(tagger: FeatureTagger) -> None:
    assert tagger.predict([]) == []
    assert tagger.predict([[], []]) == [[], []]
    assert [logs.shape for logs in tagger.predict_log_proba([[]])] == [(0, 6)]
    with pytest.raises(InputError, match="nothing to score"):
        tagger.score([[]], [[]])


def test_one_tag_only() -> None:
    tagger = FeatureTagger().fit([["a", "b"]], [["X", "X"]])
    assert tagger.predict([["a", "new"]]) == [["X", "X"]]
    assert_array_equal(tagger.predict_log_proba([["a"]])[0], [[0.0]])


def test_accuracies_tell_known_from_unknown_words(tagger: FeatureTagger) -> None:
    predicted = tagger.predict([["The", "dog"], ["slowly"]])
    wrong = [[predicted[0][0], "nonsense"], predicted[1]]
    assert tagger.accuracies([["The", "dog"], ["slowly"]], wrong) == pytest.approx((2 / 3, 1 / 2, 1, 1 / 3))


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match="sentence 1 has 1 words but 2 tags"):
        FeatureTagger().fit([["a"], ["b"]], [["X"], ["Y", "Z"]])
    with pytest.raises(InputError, match="1 sentences but tags of 0"):
        FeatureTagger().fit([["a"]], [])
    with pytest.raises(InputError, match="empty"):
        FeatureTagger().fit([[]], [[]])
    new = FeatureTagger()
    for use in (lambda: new.predict([["a"]]), lambda: new.tags_, lambda: new.knows("a"), lambda: new.weights_):
        with pytest.raises(ForewordError, match="fit"):
            use()


@pytest.mark.parametrize(
    "settings",
    [
        {"features": ["word", "smell"]},
        {"features": "word"},
        {"rounds": 0},
        {"rate": math.nan},
        {"rate": 0},
        {"min_count": 1.5},
        {"lexicon_count": 0},
        {"prune": -1},
        {"seed": -1},
    ],
)
def test_settings_must_make_sense(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(settings))):
        FeatureTagger(**settings).fit(SENTENCES, TAGS)


def test_training_that_diverges_raises() -> None:
    with pytest.raises(ForewordError, match="try a lower rate"):
        fitted(rate=1e6)


def test_saved_and_loaded_it_tags_the_same(tagger: FeatureTagger, tmp_path: Path) -> None:
    save(tagger, tmp_path / "tagger")
    loaded = load(tmp_path / "tagger")
    texts = [*NEW, ["x\ud800y", "", "\n"]]
    assert loaded.predict(texts) == tagger.predict(texts)
    assert loaded.explain(NEW[0], 1) == tagger.explain(NEW[0], 1)
    for ours, theirs in zip(loaded.predict_log_proba(texts), tagger.predict_log_proba(texts), strict=True):
        assert_array_equal(ours, theirs)
    save(loaded, tmp_path / "again")
    for file in (tmp_path / "tagger").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_a_saved_tagger_must_be_whole(tagger: FeatureTagger) -> None:
    parts = tagger.to_parts()

    def changed(settings: dict[str, Any] | None = None, **arrays: Any) -> Parts:
        return Parts({**parts.settings, **(settings or {})}, {**parts.arrays, **arrays})

    keys, known, weights = parts.arrays["keys"], parts.arrays["known"], parts.arrays["weights"]
    values: Any = parts.settings["values"]
    zero = keys.copy()
    zero[0] = 0
    beyond, below = known.copy(), known.copy()
    beyond[0, 3], below[0, 0] = 10_000, -2
    unlisted = known.copy()
    unlisted[1, ATTRIBUTES.index("lexicon")] = -1
    wrong = [
        changed(keys=keys[:-1]),
        changed(keys=zero),
        changed(keys=keys.astype(np.int64)),
        changed(weights=weights[:, :-1]),
        changed(weights=np.full_like(weights, np.inf)),
        changed(moves=np.full_like(parts.arrays["moves"], np.nan)),
        changed(moves=parts.arrays["moves"] + 1000),
        changed(moves=parts.arrays["moves"][:-1]),
        changed(known=known[:-1]),
        changed(known=known[:, :-1]),
        changed(known=beyond),
        changed(known=below),
        changed(known=unlisted),
        changed(name_offsets=parts.arrays["name_offsets"][:-1]),
        changed(name_offsets=parts.arrays["name_offsets"][::-1].copy()),
        changed(names=np.zeros_like(parts.arrays["names"])),
        changed({"values": {**values, "word": values["word"] - 1}}),
        changed({"values": {"word": 3}}),
        changed({"tags": []}),
        changed({"tags": "DET"}),
        changed({"features": ["smell"]}),
        changed({"features": ["word"]}),
        changed({"templates": []}),
    ]
    for damaged in wrong:
        with pytest.raises((ValueError, ForewordError)):
            FeatureTagger.from_parts(damaged)
