from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from foreword.errors import ForewordError, InputError, SettingError
from foreword.features import lsa
from foreword.features.kernels_lanczos import BLOCK, orthonormalise, project_out
from foreword.features.lsa import LSA
from foreword.protocols import Parts
from foreword.storage.folder import load, save


def counts(documents: int, terms: int, density: float = 0.1, seed: int = 0) -> Any:
    """Sparse, and with singular values that fall slowly but steadily, as those of texts do."""
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, terms + 1) ** 0.7
    data = random.poisson(3, (documents, terms)) * (random.random((documents, terms)) < density) * weights
    return sparse.csr_array(data.astype(np.float64))


@pytest.fixture(params=["whole", "lanczos wide", "lanczos tall"])
def matrix(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Small ones are decomposed whole; with these bounds the same ones go the other road."""
    if request.param == "whole":
        return counts(60, 90)
    monkeypatch.setattr(lsa, "SMALL", 0)
    monkeypatch.setattr(lsa, "SPARE", 4)
    return counts(200, 300) if request.param == "lanczos wide" else counts(300, 200)


def test_it_equals_the_dense_decomposition(matrix: Any) -> None:
    """T09: the plain road is the full decomposition, cut off."""
    model = LSA(6)
    transformed = model.fit_transform(matrix)
    left, values, right = np.linalg.svd(matrix.toarray(), full_matrices=False)
    assert_allclose(model.singular_values_, values[:6], rtol=1e-12)
    signs = np.sign(np.sum(model.components_ * right[:6], axis=1))
    assert_allclose(model.components_ * signs[:, None], right[:6], atol=1e-8)
    assert_allclose(transformed * signs, left[:, :6] * values[:6], atol=1e-8)


def test_components_are_orthonormal_and_their_signs_settled(matrix: Any) -> None:
    model = LSA(6).fit(matrix)
    assert_allclose(model.components_ @ model.components_.T, np.eye(6), atol=1e-12)
    assert (model.components_[np.arange(6), np.abs(model.components_).argmax(axis=1)] > 0).all()
    assert (np.diff(model.singular_values_) <= 0).all()


def test_no_picture_of_that_rank_is_closer(matrix: Any) -> None:
    """Eckart and Young: what is missing are the other singular values."""
    model = LSA(6).fit(matrix)
    picture = model.inverse_transform(model.transform(matrix))
    missing = np.linalg.norm(matrix.toarray() - picture)
    values = np.linalg.svd(matrix.toarray(), compute_uv=False)
    assert missing == pytest.approx(np.linalg.norm(values[6:]), rel=1e-10)


def test_transform_is_what_fit_gave(matrix: Any) -> None:
    model = LSA(6)
    assert_allclose(model.fit_transform(matrix), model.transform(matrix), atol=1e-12)


def test_the_seed_changes_nothing_but_rounding(matrix: Any) -> None:
    one, same, other = (LSA(6, seed=seed).fit(matrix) for seed in (0, 0, 1))
    assert_array_equal(one.components_, same.components_)
    assert_allclose(one.components_, other.components_, atol=1e-7)


def test_word_vectors_are_rows_of_v_sigma(matrix: Any) -> None:
    model = LSA(3).fit(matrix)
    vectors = model.word_vectors()
    assert vectors.shape == (matrix.shape[1], 3)
    assert_allclose(vectors @ vectors.T, (model.components_.T * model.singular_values_**2) @ model.components_)
    assert_allclose(model.word_vectors(0), model.components_.T)


def test_words_that_keep_the_same_company_lie_together() -> None:
    """Though cat and dog never meet."""
    words = ["cat", "dog", "milk", "bone", "pet", "bank", "money"]
    texts = ["cat milk pet", "cat pet", "dog bone pet", "dog pet", "bank money", "money bank money"]
    rows = [[text.split().count(word) for word in words] for text in texts]
    vectors = LSA(2).fit(np.array(rows)).word_vectors()
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert directions[0] @ directions[1] > 0.99
    assert abs(directions[0] @ directions[5]) < 0.01


@pytest.mark.parametrize("used", [0, 1, 20])
def test_the_kernels_equal_the_plain_road(used: int) -> None:
    random = np.random.default_rng(0)
    basis = np.linalg.qr(random.standard_normal((50, 30)))[0]
    block = random.standard_normal((50, BLOCK))
    fast, within = block.copy(), np.empty((used, BLOCK))
    project_out(basis, used, fast, within)
    assert_allclose(within, basis[:, :used].T @ block, atol=1e-14)
    assert_allclose(fast, block - basis[:, :used] @ within, atol=1e-14)
    link = np.empty((BLOCK, BLOCK))
    assert orthonormalise(fast, link, 1e-12) == 0
    plain, triangle = np.linalg.qr(block - basis[:, :used] @ within)
    signs = np.sign(np.diag(triangle))
    assert_allclose(fast, plain * signs, atol=1e-13)
    assert_allclose(link, triangle * signs[:, None], atol=1e-13)


def test_columns_that_follow_from_others_become_zero() -> None:
    block = np.random.default_rng(0).standard_normal((50, BLOCK))
    block[:, 3], block[:, 5] = block[:, 0] - 2 * block[:, 2], 0
    before, link = block.copy(), np.empty((BLOCK, BLOCK))
    assert orthonormalise(block, link, 1e-12) == 2
    assert not block[:, [3, 5]].any()
    assert_allclose(block @ link, before, atol=1e-12)


@pytest.mark.parametrize("small", [True, False])
def test_dimensions_that_are_not_there_are_zero(monkeypatch: pytest.MonkeyPatch, small: bool) -> None:
    if not small:
        monkeypatch.setattr(lsa, "SMALL", 0)
        monkeypatch.setattr(lsa, "SPARE", 2)
    random = np.random.default_rng(0)
    low = random.random((150, 2)) @ random.random((2, 170))
    model = LSA(5).fit(low)
    assert_allclose(model.singular_values_[:2], np.linalg.svd(low, compute_uv=False)[:2])
    assert not model.singular_values_[2:].any()
    assert not model.components_[2:].any()
    assert_allclose(model.inverse_transform(model.transform(low)), low, atol=1e-10)
    nothing = LSA(2).fit(np.zeros((4, 3)))
    assert not nothing.components_.any()
    assert not nothing.explained_variance_ratio_.any()


def test_equal_singular_values_span_the_same_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsa, "SMALL", 0)
    monkeypatch.setattr(lsa, "SPARE", 2)
    same = sparse.csr_array(np.diag([3.0] * 4 + [1.0] * 96))
    model = LSA(4).fit(same)
    assert_allclose(model.singular_values_, 3, rtol=1e-12)
    assert_allclose(model.components_[:, 4:], 0, atol=1e-10)


def test_too_few_restarts_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsa, "SMALL", 0)
    monkeypatch.setattr(lsa, "SPARE", 1)
    with pytest.raises(ForewordError, match="after 1 restarts"):
        LSA(10, restarts=1, tolerance=1e-15).fit(counts(300, 300))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.ones(3), "1 dimensions"),
        (np.ones((0, 3)), "0 sample"),
        (np.ones((3, 0)), "0 feature"),
        (np.array([[1.0, np.nan]]), "NaN"),
        (sparse.csr_array(np.array([[np.inf, 1.0]])), "infinity"),
        (np.ones((2, 2)) * 1j, "Complex"),
    ],
)
def test_bad_matrices_are_refused(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        LSA(1).fit(given)
    with pytest.raises(ValueError, match=said):  # which is what scikit-learn looks for
        LSA(1).fit(given)


def test_wrong_use_is_told() -> None:
    with pytest.raises(SettingError, match="more than a matrix of 3 by 4 has"):
        LSA(4).fit(np.ones((3, 4)))
    with pytest.raises(ForewordError, match="fit"):
        LSA(2).transform(np.ones((3, 4)))
    with pytest.raises(ForewordError, match="fit"):
        LSA(2).word_vectors()
    with pytest.raises(InputError, match="3 features, but LSA is expecting 4"):
        LSA(2).fit(np.eye(4)).transform(np.ones((3, 3)))


@pytest.mark.parametrize("settings", [{"dimensions": 0}, {"restarts": 0}, {"seed": -1}, {"tolerance": 0}])
def test_settings_must_make_sense(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(settings))):
        LSA(**settings).fit(np.eye(4))


def test_saved_and_loaded_it_transforms_the_same(tmp_path: Path) -> None:
    matrix = counts(60, 90)
    model = LSA(4, seed=3).fit(matrix)
    save(model, tmp_path / "lsa")
    loaded = load(tmp_path / "lsa")
    assert repr(loaded) == repr(model) == "LSA(dimensions=4, seed=3)"
    assert_array_equal(loaded.transform(matrix), model.transform(matrix))
    assert_array_equal(loaded.explained_variance_ratio_, model.explained_variance_ratio_)
    assert loaded.n_features_in_ == 90


def test_a_saved_model_must_be_whole() -> None:
    parts = LSA(4).fit(counts(20, 30)).to_parts()
    wrong: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"dimensions": 5}, {}),
        ({"dimensions": -1}, {}),
        ({}, {"components": parts.arrays["components"][0]}),
        ({}, {"components": parts.arrays["components"].astype(np.float32)}),
        ({}, {"singular_values": parts.arrays["singular_values"][:-1]}),
        ({}, {"explained_variance": np.full(4, np.nan)}),
    ]
    for settings, arrays in wrong:
        with pytest.raises((ValueError, ForewordError)):
            LSA.from_parts(Parts({**parts.settings, **settings}, {**parts.arrays, **arrays}))
