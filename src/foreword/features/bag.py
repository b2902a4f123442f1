"""Bags of words: a text as a row of counts, one column per term, word order discarded.

    x[j]  =  how often term j occurs in the text

The settings define a term: a word, a few words in a row, a few characters in a row. Rows are sparse: only non-zero
entries are stored. The name is from Z. Harris, "Distributional structure", Word 10, 1954.

The plain version is ``plain.py``; this one uses ``counting.py`` and gives the same.
"""

from __future__ import annotations

from typing import Any, Self, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from foreword.arrays import Array, Longs
from foreword.checks import check_choice
from foreword.errors import InputError, SettingError
from foreword.features.counting import Cutting, Texts, canonical
from foreword.features.estimator import EstimatorNotFittedError, Transformer
from foreword.features.plain import Split
from foreword.features.vocabulary import HashedColumns, Keep, LearntColumns, Lexicon, Terms, Vocabulary
from foreword.protocols import Counts, Json, Parts

MOST_COLUMNS = np.iinfo(np.int32).max
LONGEST_RUN = 100


class BagSettings(TypedDict, total=False):
    """The settings of ``BagOfWords``, for classes that pass them on to it."""

    split: Split
    lowercase: bool
    ngrams: tuple[int, int]
    min_documents: int | float
    max_documents: int | float
    max_size: int | None
    binary: bool
    columns: int | None
    signed: bool


class BagOfWords(Transformer):
    """Counts of terms, scipy CSR (documents, terms); with the same settings those of scikit-learn's CountVectorizer.

    split: what is counted. "words": runs of two or more letters, digits and underscores. "space": what ``str.split``
    gives. "punctuation": the same with every punctuation mark a word of its own. "characters": characters, two and more
    white-space characters in a row being one blank. "characters in words": characters of the words of ``str.split``,
    each with a blank at either end, runs staying within. "whole": the text is one term.
    ngrams: fewest and most words or characters in a row that make a term.
    min_documents: keep terms that occur in at least this many documents; a float is a fraction of the documents.
    max_documents: keep terms that occur in at most this many documents; a float is a fraction of the documents.
    max_size: keep this many terms, the most frequent ones.
    binary: 1 for every term that occurs, however often.
    columns: number of columns of the hashing trick: a term's column is its hash, and there is no vocabulary. signed:
    count half of the terms as −1, so that terms that share a column by chance cancel on average.

    ``fit`` learns the vocabulary from scratch. ``partial_fit`` continues: after any number of calls everything is as if
    all texts had been given to ``fit`` at once. So columns move when new terms come, because they are in alphabetical
    order: only matrices made after the last call belong together. (With ``columns`` they never move.) Terms that
    ``fit`` or a saved folder has left out of the vocabulary are forgotten; among calls of ``partial_fit`` alone none
    are.

    After fit: ``vocabulary_`` {term: column}; ``document_counts_`` int64 (terms,), in how many documents each occurs;
    ``documents_``, how many there were.
    """

    def __init__(
        self,
        *,
        split: Split = "words",
        lowercase: bool = True,
        ngrams: tuple[int, int] = (1, 1),
        min_documents: int | float = 1,
        max_documents: int | float = 1.0,
        max_size: int | None = None,
        binary: bool = False,
        columns: int | None = None,
        signed: bool = False,
        dtype: Any = "int64",
    ) -> None:
        self.split = split
        self.lowercase = lowercase
        self.ngrams = ngrams
        self.min_documents = min_documents
        self.max_documents = max_documents
        self.max_size = max_size
        self.binary = binary
        self.columns = columns
        self.signed = signed
        self.dtype = dtype

    # Learning and counting

    def fit(self, texts: Texts, y: object = None) -> Self:
        """Learn the vocabulary of texts, strings or blocks, which are read once."""
        memory = self._new_memory()
        memory.learn(texts)
        memory.finish()
        self._memory = memory
        return self

    def fit_transform(self, texts: Texts, y: object = None) -> Counts:
        """Learn the vocabulary and return the texts' rows, reading the texts once."""
        return self._output(self.learn_counts(texts), texts)

    def learn_counts(self, texts: Texts) -> Counts:
        """Learn the vocabulary and return the texts' rows as a matrix, regardless of ``set_output``."""
        memory = self._new_memory()
        rows = memory.learn_rows(texts)
        memory.finish()
        self._memory = memory
        return self._weighted(rows)

    def partial_fit(self, texts: Texts, y: object = None) -> Self:
        """Continue learning. If a text cannot be read, those before it may already have been counted."""
        memory = self._learnt() if self._has_learnt() else self._new_memory()
        memory.learn(texts)
        self._memory = memory
        return self

    def transform(self, texts: Texts) -> Counts:
        """Return one row per text; terms that are not in the vocabulary are not counted."""
        return self._output(self.counts(texts), texts)

    def counts(self, texts: Texts) -> Counts:
        """Return one row per text as a matrix, regardless of ``set_output``."""
        memory = self._new_memory() if self.columns and not self._needs_fit() else self._learnt()
        return self._weighted(memory.rows(texts))

    def _weighted(self, rows: Counts) -> Counts:
        """Turn counts, int64 CSR that may be overwritten, into the values of the matrix."""
        if self.binary:
            rows.data.fill(1)
        kind = np.dtype(self.dtype)
        if kind.kind in "iu" and rows.data.max(initial=0) > np.iinfo(kind).max:
            raise InputError(f"a count of {rows.data.max()} does not fit into dtype {kind.name}")
        return (
            rows if kind == rows.dtype else canonical(rows.data.astype(kind), rows.indices, rows.indptr, rows.shape[1])
        )

    def _needs_fit(self) -> bool:
        """Return whether hashed columns too must be fitted: only where the document counts are used."""
        return False

    # Learnt attributes

    def _has_learnt(self) -> bool:
        return "_memory" in vars(self)

    def _learnt(self) -> LearntColumns:
        if not self._has_learnt():
            raise EstimatorNotFittedError(self, "texts")
        return self._memory

    @property
    def _terms(self) -> Terms:
        memory = self._learnt()
        if not isinstance(memory, Lexicon):
            raise SettingError(f"columns={self.columns} are hashed: their terms are not known")
        return memory.vocabulary.terms

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Column of each term."""
        return self._terms.columns

    @property
    def documents_(self) -> int:
        """Number of documents seen in training."""
        return self._learnt().seen

    @property
    def document_counts_(self) -> Longs:
        """Number of documents that contain each term: int64 (columns,)."""
        return self._learnt().documents

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the terms, column by column."""
        return np.array(self._terms.strings, dtype=object)

    def decode(self, row: Any) -> dict[str, Any]:
        """Return one row of a matrix as {term: value}, for its stored entries, in their order."""
        row, terms = csr_matrix(row), self._terms
        if row.shape != (1, len(terms)):
            raise InputError(f"expected one row of {len(terms)} columns, but got {row.shape}")
        return {terms[column]: value for column, value in zip(row.indices.tolist(), row.data.tolist(), strict=True)}

    # Settings

    def _new_memory(self) -> LearntColumns:
        self._check_settings()
        shortest, longest = self.ngrams
        cutting = Cutting(self.split, bool(self.lowercase), (int(shortest), int(longest)))
        if self.columns is not None:
            return HashedColumns(cutting, int(self.columns), bool(self.signed))
        least, most = (_as_number(limit) for limit in (self.min_documents, self.max_documents))
        kind = np.dtype(self.dtype if _kind(self.dtype) == "f" else np.int64)
        keep = Keep(least, most, self.max_size, self.binary, kind)
        return Lexicon(cutting, keep)

    def _check_settings(self) -> None:
        check_choice(self, "split", get_args(Split))
        if not _is_range(self.ngrams):
            raise SettingError(
                f"ngrams={self.ngrams!r}: expected two whole numbers, 1 <= shortest <= longest <= {LONGEST_RUN}"
            )
        if self.split == "whole" and tuple(self.ngrams) != (1, 1):
            raise SettingError(f"ngrams={self.ngrams!r} is not possible where a whole text is one term")
        for name in ("min_documents", "max_documents"):
            _check_limit(name, getattr(self, name))
        for name in ("max_size", "columns"):
            _check_size(name, getattr(self, name))
        if self.columns is not None and (self.min_documents, self.max_documents, self.max_size) != (1, 1.0, None):
            raise SettingError("min_documents, max_documents and max_size choose terms: hashed columns have none")
        if self.signed and self.columns is None:
            raise SettingError("signed=True needs hashed columns: set their number, such as columns=1048576")
        if _kind(self.dtype) not in "iuf":
            raise SettingError(f"dtype={self.dtype!r}: expected a type of number, such as int64")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, TransformerTags

        tags = super().__sklearn_tags__()
        tags.input_tags = InputTags(one_d_array=True, two_d_array=False, string=True)
        tags.transformer_tags = TransformerTags(preserves_dtype=[])
        tags.requires_fit = self.columns is None or self._needs_fit()
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return self._has_learnt() or (self.columns is not None and not self._needs_fit())

    # Saving

    def to_parts(self) -> Parts:
        """Return settings and vocabulary for a model folder."""
        memory = self._learnt()
        settings: dict[str, Json] = {name: _to_json(value) for name, value in self.get_params().items()}
        settings["dtype"] = np.dtype(self.dtype).name
        settings["documents"] = memory.seen
        if not isinstance(memory, Lexicon):
            return Parts(settings, {"document_counts": memory.documents})
        known = memory.vocabulary
        arrays: dict[str, Array] = {
            "terms": known.terms.data,
            "offsets": known.terms.offsets,
            "document_counts": known.documents,
            "counts": known.counts,
        }
        return Parts(settings, arrays)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a bag from a model folder."""
        settings: dict[str, Any] = dict(parts.settings)
        seen = settings.pop("documents")
        if isinstance(settings.get("ngrams"), list):
            settings["ngrams"] = tuple(settings["ngrams"])
        parts.check_flags("lowercase", "binary", "signed", "sublinear")
        bag = cls(**settings)
        memory = bag._new_memory()
        if type(seen) is not int or not 0 <= seen < 1 << 63:
            raise ValueError("documents should be a whole number")
        documents = parts.arrays["document_counts"]
        if isinstance(memory, HashedColumns):
            memory.restore(documents, seen)
        elif isinstance(memory, Lexicon):
            terms = Terms(parts.arrays["terms"], parts.arrays["offsets"])
            memory.restore(Vocabulary(terms, documents, parts.arrays["counts"], seen))
        bag._memory = memory
        return bag


class OneHot(BagOfWords):
    """One-hot rows: each text is one word, and its row has a single one, CSR (words, vocabulary). An unknown word's row
    is empty.

        x[j]  =  1 if the word is term j, else 0

    So any two different words are equally far apart, √2, and at right angles, whatever they mean. For a sequence pass
    its words, ``transform(text.split())``.
    """

    def __init__(
        self,
        *,
        lowercase: bool = False,
        min_documents: int | float = 1,
        max_size: int | None = None,
        dtype: Any = "float64",
    ) -> None:
        super().__init__(
            split="whole", lowercase=lowercase, min_documents=min_documents, max_size=max_size, dtype=dtype
        )


def _kind(dtype: Any) -> str:
    """Return NumPy's letter for a kind of number; "?" if it knows none."""
    try:
        kind: str = np.dtype(dtype).kind
    except TypeError:
        return "?"
    return kind


def _is_range(ngrams: Any) -> bool:
    return (
        isinstance(ngrams, tuple | list)
        and len(ngrams) == 2
        and all(isinstance(n, int | np.integer) for n in ngrams)
        and 1 <= ngrams[0] <= ngrams[1] <= LONGEST_RUN
    )


def _check_limit(name: str, value: Any) -> None:
    whole = isinstance(value, int | np.integer) and value >= 1
    share = isinstance(value, float | np.floating) and 0 <= value <= 1
    if not whole and not share:
        raise SettingError(f"{name}={value!r}: expected a number of documents, 1 or more, or a share, 0.0 to 1.0")


def _check_size(name: str, value: Any) -> None:
    if value is not None and (not isinstance(value, int | np.integer) or not 1 <= value <= MOST_COLUMNS):
        raise SettingError(f"{name}={value!r}: expected a whole number, 1 or more, or None")


def _as_number(limit: Any) -> int | float:
    return float(limit) if isinstance(limit, float | np.floating) else int(limit)


def _to_json(value: Any) -> Json:
    """Convert a setting to JSON's types."""
    if isinstance(value, tuple | list):
        return [_to_json(each) for each in value]
    plain: Json = value.item() if isinstance(value, np.generic) else value
    return plain
