"""What is no corpus, text or sentence is refused in one line, by every model: no TypeError from inside."""

from __future__ import annotations

from typing import Any

import pytest

from foreword.errors import ForewordError
from foreword.kinds import KINDS

from .models import CLASSIFIERS, LANGUAGE_MODELS, TAGGERS, TOKENIZERS, VECTORS, Model

NO_CORPUS: list[Any] = [None, ["a text"], [None], "a text", 5]
NO_TEXTS: list[Any] = [None, [None], [1], 5, "one text"]
NO_SENTENCES: list[Any] = [None, [None], [1], 5, "one text", ["one text"], [[1]]]


def refused(call: Any, *given: Any) -> None:
    with pytest.raises(ForewordError) as caught:
        call(*given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", [*LANGUAGE_MODELS, *VECTORS], ids=lambda case: case.name)
def test_models_of_ids_want_a_corpus(case: Model) -> None:
    for given in NO_CORPUS:
        refused(case.build().fit, given)


@pytest.mark.parametrize("case", [each for each in TOKENIZERS if each.kind != "byte"], ids=lambda case: case.name)
def test_tokenizers_want_texts(case: Model) -> None:
    for given in NO_TEXTS:
        refused(case.build().fit, given)


@pytest.mark.parametrize("case", TAGGERS, ids=lambda case: case.name)
def test_taggers_want_sentences(case: Model) -> None:
    for given in NO_SENTENCES:
        refused(case.build().fit, given, [["X"]])
        refused(case.build().fit, [["word"]], given)


@pytest.mark.parametrize(
    "case", [each for each in CLASSIFIERS if "classify" in KINDS[each.kind].abilities], ids=lambda case: case.name
)
def test_classifiers_want_texts(case: Model) -> None:
    for given in NO_TEXTS:
        refused(case.build().fit, given, ["a"])
