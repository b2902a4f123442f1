"""The suffix array, against libdivsufsort."""

from __future__ import annotations

import numpy as np
import pytest

from foreword.infinigram.suffixes import suffix_array
from foreword.text.embedded import embedded_text

divsufsort = pytest.importorskip("pydivsufsort", reason="pydivsufsort is not installed").divsufsort


@pytest.mark.parametrize("repeats", [1, 10])
def test_the_suffix_array_is_that_of_libdivsufsort(repeats: int) -> None:
    text = np.frombuffer(("\n".join(embedded_text("test"))[: 300_000 // repeats] * repeats).encode(), np.uint8).copy()
    assert np.array_equal(suffix_array(text.astype(np.uint16), 256), divsufsort(text))
