"""What the sources say of word clouds (rows T10 and F01), on whole documents."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from foreword.lessons.cloud import Placed, lay_out, word_cloud
from foreword.lessons.keywords import count_words
from foreword.text.block import blocks_of
from foreword.text.embedded import embedded_text

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    """Every word of every tenth paragraph of the embedded text: some thousands."""
    return count_words(blocks_of(embedded_text()[::10]))


@pytest.fixture(scope="module")
def placed(counts: dict[str, int]) -> list[Placed]:
    return lay_out(counts)[0]


def test_t10_f01_the_cloud_contains_all_the_words_in_the_document(counts: dict[str, int]) -> None:
    """T10, F01: "word cloud containing all the words in the document"."""
    root = ElementTree.fromstring(word_cloud(counts).markup)
    drawn = [(text.findtext(f"{SVG}title") or "").rpartition(":")[0] for text in root.iter(f"{SVG}text")]
    assert len(drawn) == len(counts) > 2000
    assert set(drawn) == set(counts)


def test_t10_no_two_boxes_overlap(placed: list[Placed]) -> None:
    """T10: every pair of some thousands of boxes."""
    left, top = np.array([each.left for each in placed]), np.array([each.top for each in placed])
    right = left + [each.width for each in placed]
    bottom = top + [each.height for each in placed]
    across = np.minimum(right[:, None], right) - np.maximum(left[:, None], left)
    down = np.minimum(bottom[:, None], bottom) - np.maximum(top[:, None], top)
    shared = (across > 1e-6) & (down > 1e-6)
    np.fill_diagonal(shared, val=False)
    assert not shared.any()


def test_t10_size_rises_with_the_count(counts: dict[str, int], placed: list[Placed]) -> None:
    """T10: no word is smaller than a rarer one, and the commonest is larger than the rarest."""
    sizes = {each.word: each.size for each in placed}
    ranked = [sizes[word] for word in sorted(counts, key=counts.__getitem__)]
    assert ranked == sorted(ranked)
    assert ranked[-1] > 5 * ranked[0]


def test_t10_the_same_seed_gives_the_same_picture(counts: dict[str, int]) -> None:
    """T10: byte for byte; another seed gives another arrangement of the same words."""
    few = dict(list(counts.items())[:300])
    assert word_cloud(few, seed=5).markup == word_cloud(few, seed=5).markup
    assert word_cloud(few, seed=5).markup != word_cloud(few, seed=6).markup
