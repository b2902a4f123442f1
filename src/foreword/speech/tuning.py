"""The weights of a decoder's language model, chosen on recordings whose texts are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foreword.arrays import Array
from foreword.errors import CTCInputError
from foreword.measures.recognition import edits
from foreword.speech.decoder import BeamSearchDecoderCTC

ALPHAS = (0.2, 0.5, 0.8, 1.2)
BETAS = (0.0, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best weights, their word error rate, and that of all that were tried, by (alpha, beta)."""

    alpha: float
    beta: float
    rate: float
    tried: dict[tuple[float, float], float]


def tune(
    decoder: BeamSearchDecoderCTC,
    logits_list: Sequence[Array],
    texts: Sequence[str],
    *,
    alphas: Sequence[float] = ALPHAS,
    betas: Sequence[float] = BETAS,
    beam_width: int = 100,
) -> Tuned:
    """Decode with all pairs of weights, then with nearer ones; the decoder keeps the pair with the fewest word errors.

    The second round divides the distance to the neighbours of the best pair in half. Of equal pairs, the first stays.
    """
    if len(logits_list) != len(texts) or not texts:
        raise CTCInputError(
            f"{len(logits_list)} matrices and {len(texts)} texts: expected a text for each, at least one"
        )
    if decoder._language_model is None:
        raise CTCInputError("this decoder has no language model whose weights could be tuned")
    wanted, tried = [text.split() for text in texts], dict[tuple[float, float], float]()
    total = max(1, sum(map(len, wanted)))

    def best(pairs: list[tuple[float, float]]) -> tuple[float, float]:
        for alpha, beta in pairs:
            if (alpha, beta) not in tried:
                decoder.reset_params(alpha=alpha, beta=beta)
                said = decoder.decode_batch(None, logits_list, beam_width=beam_width)
                errors = sum(sum(edits(text.split(), words)) for text, words in zip(said, wanted, strict=True))
                tried[alpha, beta] = errors / total
        return min(tried, key=lambda pair: tried[pair])

    alphas, betas = sorted(map(float, alphas)), sorted(map(float, betas))
    alpha, beta = best([(alpha, beta) for alpha in alphas for beta in betas])
    alpha, beta = best([(near, other) for near in _near(alpha, alphas) for other in _near(beta, betas)])
    decoder.reset_params(alpha=alpha, beta=beta)
    return Tuned(alpha, beta, tried[alpha, beta], tried)


def _near(value: float, grid: Sequence[float]) -> list[float]:
    """Return a value of a grid, and the middles between it and its neighbours."""
    at = grid.index(value)
    return [value, *((value + other) / 2 for other in (*grid[max(0, at - 1) : at], *grid[at + 1 : at + 2]))]
