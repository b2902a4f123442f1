"""Linear probes: they find what is there, and nothing that is not."""

from __future__ import annotations

import numpy as np
import pytest

from foreword.errors import InputError
from foreword.lessons.agreement import probe


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
