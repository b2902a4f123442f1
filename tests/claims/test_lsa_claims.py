"""What the sources say of LSA: row T09."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from foreword.text.datasets import find
from foreword.text.sources import read_documents

Report = Callable[[str, object], None]

LINES = 3000
"""Of wikitext-2: about 170,000 words, and a few seconds."""


@cache
def recipe() -> ModuleType:
    path = Path(__file__).parents[2] / "recipes" / "lsa_analogies.py"
    spec = importlib.util.spec_from_file_location("lsa_analogies", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["lsa_analogies"] = module  # where its dataclass looks for its own types
    spec.loader.exec_module(module)
    return module


def test_t09_an_analogy_is_the_nearest_word_but_for_its_three() -> None:
    """T09: king − man + woman, by hand: the vectors are (royal, male) and a little more."""
    vectors = np.array([[0, 1, 0.1], [0, -1, 0.1], [1, 1, 0.1], [1, -1, 0.1], [1, 0, 0.2], [0, 0, 0]])
    man, woman, king, queen, crown, nothing = range(6)
    questions = np.array([[man, king, woman, queen], [man, king, woman, crown], [woman, queen, man, king]])
    assert recipe().answers_right(vectors, questions).tolist() == [True, False, True]
    assert not recipe().answers_right(vectors, np.array([[man, woman, king, nothing]]))[0]


@pytest.mark.data
def test_t09_lsa_solves_some_analogies_and_weighing_decides(record_property: Report) -> None:
    """T09: the analogy score of LSA, to stand beside GloVe's. Plain counts hardly solve any, weighed ones do."""
    if not os.environ.get("FOREWORD_DATA"):
        pytest.skip("reads wikitext-2 from $FOREWORD_DATA, which is not set")
    texts = islice(read_documents(str(find("wikitext-2:train"))), LINES)
    questions = recipe().read_questions(find("questions-words"))
    with threadpool_limits(1):  # BLAS's own threads only wait for each other in matrices as small as these
        results = {result.name: result for result in recipe().compare(texts, questions, dimensions=50)}
    for name, result in results.items():
        record_property(f"T09 analogies right, {name}", f"{result.accuracy:.2%} of {result.asked}")
    assert results["counts"].asked > 1000
    assert results["mutual information"].accuracy > 2 * results["counts"].accuracy
    assert results["mutual information"].accuracy > 0.02
