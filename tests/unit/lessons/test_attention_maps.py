"""The Transformer's attention written out: it must say of the next word what the model says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from foreword import Corpus, TransformerLM, WordTokenizer
from foreword.errors import InputError
from foreword.lessons.attention_maps import attention_maps

TEXTS = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog"] * 4


@pytest.mark.parametrize("tied", [True, False])
def test_maps_are_those_by_which_the_model_predicts(tied: bool) -> None:
    corpus = Corpus.from_texts(TEXTS, WordTokenizer().fit(TEXTS))
    training = replace(TransformerLM.TRAINING, epochs=2, batch=2, steps=6)
    model = TransformerLM(16, layers=2, heads=2, context=12, tied=tied, training=training, device="cpu").fit(corpus)
    ids = np.append(corpus.vocab.end, corpus.ids[:7])  # a text is read from an end on
    found = attention_maps(model, ids)
    assert found.maps.shape == (2, 2, 8, 8)
    np.testing.assert_allclose(found.maps.sum(axis=3), 1, rtol=1e-12)
    assert not np.triu(found.maps, 1).any()
    np.testing.assert_allclose(found.logs[np.arange(7), ids[1:]], model.logprobs(corpus[:1]), atol=1e-5)


def test_more_words_than_the_context_are_refused() -> None:
    corpus = Corpus.from_texts(TEXTS, WordTokenizer().fit(TEXTS))
    training = replace(TransformerLM.TRAINING, epochs=1, batch=2, steps=6)
    model = TransformerLM(8, layers=1, heads=1, context=4, training=training, device="cpu").fit(corpus)
    with pytest.raises(InputError, match="5 words: expected 1 to 4"):
        attention_maps(model, corpus.ids[:5])
