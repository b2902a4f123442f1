"""Monte Carlo dropout: a word's probability is its mean over networks with dropout.

    p(w_(t+1) | w_≤t) = 1/S Σ_s softmax(z_s / τ),    z_s: the scores of a network whose units are dropped by masks s

A network that was trained with dropout is such an average of smaller ones; dropping nothing only approximates it.
Nothing is adapted to the text: perplexities are comparable with those of other models, but cost S times as much. Rates
a little lower than those of training are best (``scale``), and a temperature τ of their own; held-out text chooses
both.

``neural/rows.py`` reads the samples as rows of a batch, each with masks of its own. Masks of weights (DropConnect) are
left out.

Y. Gal and Z. Ghahramani, "A theoretically grounded application of dropout in recurrent neural networks" (2016);
G. Melis, T. Kočiský and P. Blunsom, "Mogrifier LSTM" (2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from foreword.arrays import Logs
from foreword.checks import check_corpus, check_held_out, check_number
from foreword.measures.perplexity import WrappedModel
from foreword.neural.model import NeuralLM, neural_model
from foreword.neural.rows import ROWS, SCALE, TEMPERATURES, DropoutSamples, check_samples
from foreword.protocols import Meter
from foreword.tokens.corpus import Corpus

SCALES = (0.4, 0.6, 0.75, 0.9)
"""Factors of the dropout rates that are tried where a held-out text chooses."""


class MonteCarloDropout(WrappedModel[NeuralLM]):
    """A recurrent language model that is scored by the mean of networks with dropout.

    samples: number of networks. scale: factor of the dropout rates with which the model was trained. temperature: by
        which the logits are divided; None for the model's own, which was chosen without dropout.
    seed: of the masks.
    """

    def __init__(
        self,
        model: NeuralLM,
        *,
        samples: int = 192,
        scale: float = SCALE,
        temperature: float | None = None,
        seed: int = 0,
    ) -> None:
        self.model = neural_model(model, "Monte Carlo dropout", "recurrent")
        check_number("samples", samples, whole=True, least=1)
        check_number("scale", scale)
        check_number("seed", seed, whole=True)
        check_samples(model)
        model.dropout.scaled(scale)  # refuses rates of 1 and more
        self.samples = samples
        self.scale = scale
        self.temperature = model.temperature_ if temperature is None else temperature
        check_number("temperature", self.temperature, above=0)
        self.seed = seed

    def __repr__(self) -> str:
        settings = f"samples={self.samples}, scale={self.scale:g}, temperature={self.temperature:g}"
        return f"MonteCarloDropout({self.model!r}, {settings})"

    def tune(
        self,
        held_out: Corpus,
        *,
        scales: Sequence[float] = SCALES,
        temperatures: Sequence[float] = TEMPERATURES,
        meter: Meter | None = None,
    ) -> Self:
        """Choose scale and temperature by a held-out text, with at most 64 samples."""
        check_held_out(held_out, self.vocab)
        tried = []
        for scale in scales:
            logs = self._logs(held_out, min(ROWS, self.samples), scale, temperatures, meter)
            tried += [(float(row.mean()), scale, at) for row, at in zip(logs, temperatures, strict=True)]
        _, self.scale, self.temperature = max(tried)
        return self

    def logprobs(self, corpus: Corpus, *, meter: Meter | None = None) -> Logs:
        """Return float64 (ids,). To carry the state through a test set, make that one document: ``corpus.joined()``."""
        check_corpus(corpus, self.vocab)
        logs: Logs = self._logs(corpus, self.samples, self.scale, (self.temperature,), meter)[0]
        return logs

    def _logs(
        self, corpus: Corpus, samples: int, scale: float, temperatures: Sequence[float], meter: Meter | None
    ) -> Logs:
        """Return (K, ids): the log-probability of each id at each temperature."""
        reader = DropoutSamples(self.model, samples=samples, scale=scale, temperatures=temperatures, seed=self.seed)
        logs = np.empty((len(temperatures), len(corpus.ids)))
        for number, ids in enumerate(corpus.documents()):
            begin, end = int(corpus.offsets[number]), int(corpus.offsets[number + 1])
            whole = meter if end - begin == len(corpus.ids) else None
            logs[:, begin:end] = -reader.losses(ids, whole).cpu().numpy()
            if meter is not None and whole is None:
                meter("sampling networks", end, len(corpus.ids))
        return logs
