"""Spans by hand-made features and a conditional random field."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foreword.errors import SettingError
from foreword.evaluate.tagging import measure_tagger
from foreword.storage.folder import load, save
from foreword.tag.conll import read_conll
from foreword.tag.features import FeatureTagger
from foreword.tag.schemes import fits
from foreword.text.datasets import find

SENTENCES = [["Anna", "Bauer", "visited", "New", "York", "."], ["IBM", "hired", "Anna", "."], ["It", "rains", "."]] * 4
TAGS = [["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"], ["B-ORG", "O", "B-PER", "O"], ["O", "O", "O"]] * 4


@pytest.mark.parametrize("scheme", ["bio", "iob1", "bioes"])
def test_names_are_found_in_every_scheme(scheme: str, tmp_path: Path) -> None:
    from foreword.tag.schemes import read_as

    tags = [read_as(each, scheme) for each in TAGS]
    tagger = FeatureTagger(scheme=scheme).fit(SENTENCES, tags)  # type: ignore[arg-type]
    assert tagger.predict(SENTENCES) == tags
    save(tagger, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert (loaded.scheme, loaded.tags_) == (scheme, tagger.tags_)
    new = [["Berta", "York", "hired", "New", "IBM"], ["Bauer"], []]
    assert loaded.predict(new) == tagger.predict(new)
    assert all(fits(each, scheme) for each in tagger.predict(new))


def test_probabilities_are_those_of_the_tags_of_the_file() -> None:
    tagger = FeatureTagger(scheme="bio").fit(SENTENCES, TAGS)
    assert tagger.tags_ == ["B-LOC", "B-ORG", "B-PER", "I-LOC", "I-ORG", "I-PER", "O"]
    logs = tagger.predict_log_proba(SENTENCES[:1])[0]
    assert logs.shape == (6, 7)
    assert_allclose(np.exp(logs).sum(axis=1), 1)
    assert_array_equal(np.exp(logs[0, [3, 4, 5]]), 0)  # a name does not begin with I-
    assert tagger.explain(SENTENCES[0], 1)[0].weight != 0
    with pytest.raises(SettingError, match=r"has no probability|no "):
        FeatureTagger(scheme="iob1").fit([["Anna"]], [["I-PER"]]).predict_log_proba([["Anna"]])


def test_without_a_scheme_nothing_changes() -> None:
    tagger = FeatureTagger().fit(SENTENCES, TAGS)
    assert tagger.tags_ == sorted({tag for tags in TAGS for tag in tags})
    assert "context" not in tagger.features
    assert repr(FeatureTagger(scheme="bio")) == "FeatureTagger(scheme='bio')"


@pytest.mark.long
@pytest.mark.data
@pytest.mark.filterwarnings("ignore::foreword.tag.conll.IllFormedTagsWarning")
def test_names_of_conll_2003(record_property: Callable[[str, object], None]) -> None:
    train, test = (read_conll(find(f"conll2003:{split}"), scheme="iob1") for split in ("train", "test"))
    began = time.process_time()
    tagger = FeatureTagger(scheme="iob1", column="-1").fit(*train)
    record_property("seconds of training on one core", time.process_time() - began)
    spans = measure_tagger(tagger, *test).spans
    assert spans is not None
    record_property("F1 of names on the test part", spans.micro.f1)
    assert spans.micro.f1 > 0.855
