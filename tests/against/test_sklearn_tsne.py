"""t-SNE beside scikit-learn's: as small a divergence, as well kept neighbours; its affinities to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from foreword.errors import SettingError
from foreword.lessons.tsne import affinities, divergence, principal_components, tsne

manifold = pytest.importorskip("sklearn.manifold", reason="scikit-learn is not installed")


def groups(count: int = 90) -> NDArray[np.float64]:
    random = np.random.default_rng(0)
    centres = random.normal(0, 4, (3, 10))
    return centres[np.arange(count) % 3] + random.normal(size=(count, 10))


def test_affinities_are_scikit_learns() -> None:
    from scipy.spatial.distance import squareform
    from sklearn.manifold._t_sne import _joint_probabilities

    rows = groups()
    far = ((rows[:, None] - rows[None]) ** 2).sum(axis=2).astype(np.float32)
    theirs = squareform(_joint_probabilities(far, 15.0, 0))
    np.testing.assert_allclose(affinities(rows, 15.0), theirs, atol=2e-5)


def test_the_map_is_as_good_as_scikit_learns() -> None:
    rows = groups()
    near = affinities(rows, 15.0)
    ours = tsne(rows, perplexity=15.0)
    theirs = manifold.TSNE(perplexity=15.0, method="exact", init="pca", max_iter=500, random_state=0).fit_transform(
        rows
    )
    assert divergence(near, ours) < divergence(near, theirs.astype(np.float64)) + 0.05
    assert (
        manifold.trustworthiness(rows, ours, n_neighbors=5)
        > manifold.trustworthiness(rows, theirs, n_neighbors=5) - 0.02
    )


def test_the_same_rows_give_the_same_map_and_too_few_are_refused() -> None:
    rows = groups(30)
    assert tsne(rows).tobytes() == tsne(rows).tobytes()
    with pytest.raises(SettingError, match="four or more"):
        tsne(rows[:3])


def test_f10_principal_components_are_scikit_learns() -> None:
    """F10: the axes of the map."""
    from sklearn.decomposition import PCA

    rows = groups()
    theirs = PCA(2).fit_transform(rows)
    np.testing.assert_allclose(np.abs(principal_components(rows)), np.abs(theirs), atol=1e-9)
    assert principal_components(rows[:1] * np.ones((4, 1))).shape == (4, 2)
