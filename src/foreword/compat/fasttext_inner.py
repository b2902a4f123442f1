"""``model.f`` of ``foreword.compat.fasttext``: the names of fastText's inner object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from foreword.arrays import Floats
from foreword.text.block import Block

if TYPE_CHECKING:
    from foreword.compat.fasttext import FastText


class Inner:
    """What ``model.f`` is: the calls without checks and conversions, for lines that end in a line feed.

    Calls that fill a vector take an array of ``dim`` numbers.
    """

    def __init__(self, model: FastText) -> None:
        self._model = model
        self.getNN, self.getAnalogies = model.get_nearest_neighbors, model.get_analogies
        self.getInputMatrix, self.getOutputMatrix = model.get_input_matrix, model.get_output_matrix
        self.getWordId, self.getLabelId = model.get_word_id, model.get_label_id
        self.getSubwordId, self.isQuant = model.get_subword_id, model.is_quantized
        self.saveModel, self.setMatrices = model.save_model, model.set_matrices
        self.test, self.testLabel, self.getMeter = model.test, model.test_label, model.get_meter
        self.quantize = model.quantize

    def predict(
        self, text: str, k: int = 1, threshold: float = 0.0, on_unicode_error: str = "strict"
    ) -> list[tuple[float, str]]:
        """Return pairs of a probability and a label, the likeliest first."""
        labels, chances = self.multilinePredict([text], k, threshold, on_unicode_error)
        return list(zip(chances[0].tolist(), labels[0], strict=True))

    def multilinePredict(  # noqa: N802
        self, texts: Sequence[str], k: int = 1, threshold: float = 0.0, on_unicode_error: str = "strict"
    ) -> tuple[list[list[str]], list[Floats]]:
        """Return the labels and the probabilities of several lines."""
        model = self._model._lines
        most = model.dictionary.labels
        if k == 0 or k < -1:
            raise ValueError("k needs to be 1 or higher!")
        best, shares = model.predict(Block.from_texts(list(texts)), most if k < 0 else min(k, most), threshold)
        names = self._model._label_words
        labels = [[names[label] for label in row if label >= 0] for row in best.tolist()]
        return labels, [row[: len(found)].copy() for row, found in zip(shares, labels, strict=True)]

    def getArgs(self) -> Any:  # noqa: N802
        """Return the settings of training."""
        return self._model._file.settings

    def getVocab(self, on_unicode_error: str = "strict") -> tuple[list[str], list[int]]:  # noqa: N802
        """Return the words and how often each occurred."""
        words, counts = self._model.get_words(True, on_unicode_error)
        return words, counts.tolist()

    def getLabels(self, on_unicode_error: str = "strict") -> tuple[list[str], list[int]]:  # noqa: N802
        """Return the labels and how often each occurred."""
        labels, counts = self._model.get_labels(True, on_unicode_error)
        return labels, counts.tolist()

    def getSubwords(self, word: str, on_unicode_error: str = "strict") -> tuple[list[str], list[int]]:  # noqa: N802
        """Return a known word and its n-grams, and their rows."""
        names, rows = self._model.get_subwords(word, on_unicode_error)
        return names, rows.tolist()

    def getLine(self, text: str, on_unicode_error: str = "strict") -> tuple[list[str], list[str]]:  # noqa: N802
        """Return the words and the labels of a line with its end."""
        return self._model.get_line(text.removesuffix("\n"), on_unicode_error)

    def multilineGetLine(  # noqa: N802
        self, texts: Sequence[str], on_unicode_error: str = "strict"
    ) -> tuple[list[list[str]], list[list[str]]]:
        """Return the words of several lines, and their labels."""
        return self._model.get_line([text.removesuffix("\n") for text in texts], on_unicode_error)

    def tokenize(self, text: str) -> list[str]:
        """Split a text into words, with ``</s>`` for each line feed."""
        from foreword.compat.fasttext import tokenize

        return tokenize(text)

    def getWordVector(self, vector: Floats, word: str) -> None:  # noqa: N802
        """Fill an array with the vector of a word."""
        vector[:] = self._model.get_word_vector(word)

    def getSentenceVector(self, vector: Floats, text: str) -> None:  # noqa: N802
        """Fill an array with the vector of a line."""
        vector[:] = self._model.get_sentence_vector(text.removesuffix("\n"))

    def getInputVector(self, vector: Floats, index: int) -> None:  # noqa: N802
        """Fill an array with a row of the input matrix."""
        vector[:] = self._model.get_input_vector(index)

    def loadModel(self, path: str) -> None:  # noqa: N802
        """Open another file in this model."""
        from foreword.compat.fasttext import load_model

        self._model._replace(load_model(path)._file)
