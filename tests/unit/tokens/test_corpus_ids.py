"""A mapped corpus is not read when it is opened, so its ids are checked by whoever uses them as places."""

import numpy as np
import pytest

from foreword.errors import InputError
from foreword.hmm.model import HMM
from foreword.ngram.model import NgramLM
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

TEXTS = ["a b c", "b c d", "a c"]


@pytest.mark.parametrize("model", [NgramLM(3), HMM(2, iterations=1)], ids=["ngram", "hmm"])
def test_an_id_outside_the_vocabulary_is_refused_before_any_kernel_sees_it(model: NgramLM | HMM) -> None:
    tokenizer = WordTokenizer().fit(TEXTS)
    good = Corpus.from_texts(TEXTS, tokenizer)
    ids = np.array(good.ids)
    ids[2] = 60_000
    forged = Corpus(ids, good.offsets, good.byte_offsets, good.vocab)
    with pytest.raises(InputError, match="damaged"):
        model.fit(forged)
    model.fit(good)
    with pytest.raises(InputError, match="damaged"):
        model.logprobs(forged)
