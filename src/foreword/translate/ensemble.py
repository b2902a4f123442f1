"""Several translators that write one text together.

    p(d_t | d_<t, e) = 1/M Σ_m p_m(d_t | d_<t, e)

Models that differ only in their seed make different mistakes, and the mean of their probabilities makes fewer
(I. Sutskever, O. Vinyals and Q. Le, "Sequence to sequence learning with neural networks", 2014, section 3.6). It takes
M times the work of one model, and the beam is searched once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from foreword.arrays import Ids
from foreword.decode import Goal, Hypothesis, Normalisation
from foreword.errors import InputError
from foreword.protocols import Meter
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.model import exact
from foreword.translate.pairs import documents_of
from foreword.translate.search import search
from foreword.translate.seq2seq import Seq2Seq


class Ensemble:
    """The mean of several fitted translators with the same vocabularies; their sizes may differ."""

    def __init__(self, models: Sequence[Seq2Seq]) -> None:
        if not models:
            raise InputError("an ensemble needs at least one model")
        for each in models[1:]:
            if (each.source_vocab, each.vocab) != (models[0].source_vocab, models[0].vocab):
                raise InputError("the models of an ensemble have different vocabularies: train them with one tokenizer")
        self.models = list(models)

    def __repr__(self) -> str:
        return f"Ensemble({self.models!r})"

    @property
    def vocab(self) -> Vocab:
        """The vocabulary of the target."""
        return self.models[0].vocab

    @property
    def parameter_count(self) -> int:
        """The number of weights of all models."""
        return sum(each.parameter_count for each in self.models)

    def translate(self, sources: Corpus, *, width: int = 5, **settings: Any) -> list[Ids]:
        """Return the best target found for each source, without its end; ``search`` has the settings."""
        found = self.search(sources, width=width, **settings)
        return [np.array(texts[0].ids, np.int64) for texts in found]

    def search(
        self,
        sources: Corpus,
        *,
        width: int = 5,
        max_tokens: int = 100,
        length_penalty: float = 1.0,
        normalisation: Normalisation = "power",
        coverage: float = 0.0,
        n_best: int = 1,
        meter: Meter | None = None,
    ) -> list[list[Hypothesis]]:
        """Search as ``Seq2Seq.search`` does, by the mean of the probabilities."""
        if sources.vocab != self.models[0].source_vocab:
            raise InputError("the sources were turned into ids with another vocabulary than the models'")
        sources.check_ids()
        goal = Goal(width, n_best, max_tokens, length_penalty, self.vocab.end, normalisation, coverage)
        at_once = min(each.searched_at_once for each in self.models)
        with exact():
            return search(
                lambda group: [each.decoder(group) for each in self.models], documents_of(sources), goal, at_once, meter
            )
