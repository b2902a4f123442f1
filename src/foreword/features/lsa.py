"""Latent semantic analysis: the best approximation of a count matrix in few dimensions.

    X ≈ U Σ Vᵀ        U (documents, k), Σ the k largest singular values, V (terms, k)

No matrix of rank k is closer to X (Eckart and Young 1936). A document becomes its row of U Σ = X V, a term its row of
V Σ, and terms that occur in similar documents lie close together, whether or not they ever co-occur.

S. Deerwester, S. Dumais, G. Furnas, T. Landauer and R. Harshman, "Indexing by latent semantic analysis", JASIS 41
(1990).

The singular vectors are found by a block Lanczos method with thick restarts (K. Wu and H. Simon, SIAM J. Matrix Anal.
22, 2000): the largest eigenvectors of G = X Xᵀ, or of Xᵀ X if that is smaller, within a growing Krylov subspace
Q. X is only ever multiplied with thin matrices, so it stays sparse. A block of vectors at a time costs little more than
one, because the time goes into fetching X and Q from memory. Where the small side of X is not much larger than Q would
be, G is decomposed directly.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from foreword.arrays import Doubles
from foreword.checks import check_numbers
from foreword.errors import ForewordError, InputError, SettingError
from foreword.features.estimator import EstimatorNotFittedError, Transformer, without_frame
from foreword.features.kernels_lanczos import BLOCK, orthonormalise, project_out
from foreword.protocols import Counts, Json, Parts

SPARE = 32
"""Vectors retained at a restart in addition to those requested: the more, the fewer restarts."""

ROUNDING = 1e-13
"""Size of a rounding error, relative to the largest eigenvalue: what is left of an image that lay in Q."""

SMALL = 512
"""Up to this size G is decomposed directly, which then takes less than a tenth of a second."""


class LSA(Transformer):
    """Truncated singular value decomposition of a matrix (documents, terms), as scikit-learn's TruncatedSVD.

    dimensions: k. tolerance: the largest residual of an eigenvector of G, relative to the largest eigenvalue.
    restarts: the most restarts to try. seed: of the initial vectors.

    After fit: ``components_`` float64 (k, terms), orthonormal, each with its largest entry positive;
    ``singular_values_`` (k,), falling; ``explained_variance_`` and ``explained_variance_ratio_`` (k,), of the columns
    of the transformed matrix. Dimensions beyond the rank of the matrix are zero.
    """

    def __init__(self, dimensions: int = 100, *, tolerance: float = 1e-10, restarts: int = 100, seed: int = 0) -> None:
        self.dimensions = dimensions
        self.tolerance = tolerance
        self.restarts = restarts
        self.seed = seed

    def fit(self, X: Counts, y: Any = None) -> Self:
        """Decompose a matrix."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Counts, y: Any = None) -> Doubles:
        """Decompose a matrix and return U Σ, (documents, k)."""
        self._check_settings()
        matrix = as_matrix(X)
        if self.dimensions > min(matrix.shape):
            raise SettingError(f"dimensions={self.dimensions} is more than a matrix of {_by(matrix)} has")
        wide = matrix.shape[0] < matrix.shape[1]
        short = matrix if wide else matrix.T.tocsr()  # (small, large), so that G is (small, small)
        vectors = leading_eigenvectors(short, self.dimensions, self.tolerance, self.restarts, self.seed)
        right = np.linalg.qr(short.T @ vectors if wide else vectors)[0]
        left, values, rotation = np.linalg.svd(matrix @ right, full_matrices=False)
        components = rotation @ right.T
        there = values > values[:1] * max(matrix.shape) * np.finfo(np.float64).eps
        signs = np.sign(components[np.arange(len(values)), np.abs(components).argmax(axis=1)])
        self.singular_values_ = np.where(there, values, 0.0)
        self.components_ = components * np.where(there, signs, 0.0)[:, None]
        transformed: Doubles = left * (self.singular_values_ * signs)
        self.explained_variance_ = transformed.var(axis=0)
        total = _total_variance(matrix)
        self.explained_variance_ratio_ = self.explained_variance_ / total if total else np.zeros(len(values))
        self.n_features_in_ = matrix.shape[1]
        return self._output(transformed, X)  # type: ignore[no-any-return]

    def transform(self, X: Counts) -> Doubles:
        """Return X V, (documents, k)."""
        width = self._components().shape[1]
        matrix = as_matrix(X)
        if matrix.shape[1] != width:
            raise MatrixError(f"X has {matrix.shape[1]} features, but LSA is expecting {width} features as input")
        transformed: Doubles = matrix @ self.components_.T
        return self._output(transformed, X)  # type: ignore[no-any-return]

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the dimensions: lsa0, lsa1 …"""
        return np.array([f"lsa{dimension}" for dimension in range(self.dimensions)], dtype=object)

    def inverse_transform(self, X: Doubles) -> Doubles:
        """Map rows in few dimensions back to all of them, (documents, terms)."""
        return np.asarray(X, np.float64) @ self._components()

    def word_vectors(self, power: float = 1.0) -> Doubles:
        """Return V Σ^power, (terms, k): row j is the vector of the term in column j.

        A power below one gives less weight to the first dimensions, which hold the commonest distinctions.
        """
        vectors: Doubles = self._components().T * self.singular_values_**power
        return vectors

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, TransformerTags

        tags = super().__sklearn_tags__()
        tags.input_tags = InputTags(sparse=True)
        tags.transformer_tags = TransformerTags(preserves_dtype=[])
        return tags

    def _components(self) -> Doubles:
        if not hasattr(self, "components_"):
            raise EstimatorNotFittedError(self, "texts")
        components: Doubles = self.components_
        return components

    def to_parts(self) -> Parts:
        """Return settings and decomposition for a model folder."""
        settings: dict[str, Json] = {
            "dimensions": self.dimensions,
            "tolerance": float(self.tolerance),
            "restarts": self.restarts,
            "seed": self.seed,
        }
        arrays = {
            "components": self._components(),
            "singular_values": self.singular_values_,
            "explained_variance": self.explained_variance_,
            "explained_variance_ratio": self.explained_variance_ratio_,
        }
        return Parts(settings, arrays)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build an LSA from a model folder."""
        settings: dict[str, Any] = dict(parts.settings)
        model = cls(**settings)
        model._check_settings()
        components = parts.arrays["components"]
        if components.ndim != 2 or len(components) != model.dimensions:
            raise ValueError(f"components {components.shape} are not those of {model.dimensions} dimensions")
        for name in ("components", "singular_values", "explained_variance", "explained_variance_ratio"):
            array = parts.arrays[name]
            shape = components.shape if name == "components" else components.shape[:1]
            if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"{name} is {array.dtype} {array.shape}, not finite float64 {shape}")
            setattr(model, f"{name}_", array)
        model.n_features_in_ = components.shape[1]
        return model

    def _check_settings(self) -> None:
        check_numbers(self, "dimensions", "restarts", whole=True, least=1)
        check_numbers(self, "seed", whole=True)
        check_numbers(self, "tolerance", above=0, most=1)


def leading_eigenvectors(short: Counts, count: int, tolerance: float, restarts: int, seed: int) -> Doubles:
    """Return the eigenvectors of short @ short.T with the largest eigenvalues, largest first, (small, count)."""
    size = short.shape[0]
    capacity = 2 * count + SPARE + 2 * BLOCK
    if size <= max(SMALL, 2 * capacity):
        vectors: Doubles = np.linalg.eigh((short @ short.T).toarray())[1]
        return vectors[:, ::-1][:, :count]
    return _lanczos(short, count, capacity, tolerance, restarts, np.random.default_rng(seed))


def _lanczos(
    short: Counts, count: int, capacity: int, tolerance: float, restarts: int, random: np.random.Generator
) -> Doubles:
    """Find eigenvectors by block Lanczos with thick restarts.

    Q is orthonormal, and projected = Qᵀ G Q. The image of the last block under G lies in Q except for a remainder,
    which becomes the next block. When all ``capacity`` columns are used, Q is rotated so that its first columns are the
    best approximations so far, and the others are dropped.
    """
    back = short.T.tocsr()
    basis = np.zeros((short.shape[0], capacity + BLOCK))
    projected = np.zeros((capacity, capacity))
    basis[:, :BLOCK], link = _next_block(random.standard_normal((len(basis), BLOCK)), basis, 0, 0.0, random)
    filled = 0  # columns whose image under G is known
    for _ in range(restarts):
        while filled + BLOCK <= capacity:
            here, used = slice(filled, filled + BLOCK), filled + BLOCK
            image = short @ (back @ basis[:, here])
            within = np.empty((used, BLOCK))
            project_out(basis, used, image, within)
            projected[:used, here] = within
            projected[here, :used] = within.T
            basis[:, used : used + BLOCK], link = _next_block(image, basis, used, np.abs(projected).max(), random)
            filled = used
        values, turns = np.linalg.eigh(projected[:filled, :filled])
        kept = min(count + SPARE, filled)
        values, turns = values[::-1][:kept], turns[:, ::-1][:, :kept]
        residuals = np.linalg.norm(link @ turns[filled - BLOCK :], axis=0)
        vectors: Doubles = basis[:, :filled] @ turns
        if (residuals[:count] <= tolerance * abs(values[0])).all():
            return vectors[:, :count]
        basis[:, kept : kept + BLOCK] = basis[:, filled : filled + BLOCK]
        basis[:, :kept] = vectors
        projected[:] = 0
        projected[np.arange(kept), np.arange(kept)] = values
        filled = kept
    raise ForewordError(
        f"no singular vectors to {tolerance:g} after {restarts} restarts: allow more restarts or a larger tolerance"
    )


def _next_block(
    image: Doubles, basis: Doubles, used: int, scale: float, random: np.random.Generator
) -> tuple[Doubles, Doubles]:
    """Return Q and R of a block, Q orthogonal to the basis even where projecting that out left little but rounding.

    A column that vanishes against ``scale`` is replaced by a random direction, to which R has no link.
    """
    link, turn = np.empty((BLOCK, BLOCK)), np.empty((BLOCK, BLOCK))
    within = np.empty((used, BLOCK))
    empty = orthonormalise(image, link, ROUNDING * scale)
    if empty:
        image[:, ~image.any(axis=0)] = random.standard_normal((len(image), empty))
    for _ in range(2 if empty else 1):
        project_out(basis, used, image, within)
        orthonormalise(image, turn, 0.0)
        link = turn @ link
    return image, link


class MatrixError(InputError, ValueError):
    """A matrix that cannot be decomposed; scikit-learn's pipelines and searches expect a ValueError."""


def as_matrix(X: Counts) -> Counts:
    """Return X as a sparse float64 matrix; raise a MatrixError unless all of it is finite."""
    X = without_frame(X)
    if not sparse.issparse(X):
        X = np.asarray(X)
        if X.ndim != 2:
            raise MatrixError(f"expected a matrix of documents and terms, not {X.ndim} dimensions. Reshape your data")
    if np.iscomplexobj(X):
        raise MatrixError("Complex data not supported: expected counts or weights")
    matrix = sparse.csr_array(X, dtype=np.float64)
    for name, size in zip(("sample", "feature"), matrix.shape, strict=True):
        if size == 0:
            raise MatrixError(f"Found array with 0 {name}(s) (shape={matrix.shape}) while a minimum of 1 is required.")
    if not np.isfinite(matrix.data).all():
        raise MatrixError("the matrix contains NaN or infinity")
    return matrix


def _total_variance(matrix: Counts) -> float:
    """Return the sum of the variances of all columns."""
    means = matrix.mean(axis=0)
    return float((matrix.data**2).sum() / matrix.shape[0] - (means**2).sum())


def _by(matrix: Counts) -> str:
    return " by ".join(map(str, matrix.shape))
