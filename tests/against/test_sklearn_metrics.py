"""Measures of classifiers against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from foreword.evaluate.classification import confusion

metrics = pytest.importorskip("sklearn.metrics")

LABELS = st.sampled_from(["ham", "spam", "é", "10", "9"])


@pytest.mark.filterwarnings("ignore:A single label was found:UserWarning")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=60))
def test_everything_scikit_learn_has(pairs: list[tuple[str, str]]) -> None:
    truth, said = ([pair[side] for pair in pairs] for side in (0, 1))
    ours = confusion(truth, said)
    labels = list(ours.labels)
    assert_array_equal(ours.counts, metrics.confusion_matrix(truth, said, labels=labels))
    assert ours.accuracy == pytest.approx(metrics.accuracy_score(truth, said), rel=1e-12)
    assert ours.macro_f1 == pytest.approx(metrics.f1_score(truth, said, average="macro", zero_division=0), abs=1e-12)
    assert ours.micro_f1 == pytest.approx(metrics.f1_score(truth, said, average="micro", zero_division=0), abs=1e-12)
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        truth, said, labels=labels, zero_division=0
    )
    assert_allclose([each.precision for each in ours.classes], precision, rtol=1e-12)
    assert_allclose([each.recall for each in ours.classes], recall, rtol=1e-12)
    assert_allclose([each.f1 for each in ours.classes], f1, rtol=1e-12)
    assert_array_equal(np.array([each.texts for each in ours.classes]), support)
