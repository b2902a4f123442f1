"""Text out of a model: written once, for anything that has a next token.

``generate`` draws one token after another. It knows the model only through ``start``, ``next_logprobs`` and
``advance``, so an n-gram table, a recurrent net and a translator that has read its source all speak through it. Beam
search, which looks for the likeliest whole text instead of drawing one, will stand beside it on the same three calls.
``pieces`` turns the ids into text as they come.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from foreword.errors import ForewordError, SettingError
from foreword.protocols import Logs, NextToken, S, Tokenizer
from foreword.tokens.vocab import Vocab

INCOMPLETE = "\ufffd"
"""What a byte-level tokenizer decodes half a character to."""


def generate(
    model: NextToken[S],
    prompt: Sequence[int] = (),
    *,
    max_tokens: int = 100,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
) -> Iterator[int]:
    """Yield token ids until the model ends the document (``</s>`` itself is not yielded) or ``max_tokens`` are out.

    The prompt is read, not repeated. Each token is drawn from  p(w)^(1/temperature), normalised over the ``top_k``
    likeliest tokens: a low temperature is careful, zero always takes the likeliest (the lowest id among equals), a
    high one is wild. The same seed gives the same text.
    """
    _check_settings(max_tokens, temperature, top_k, seed)
    _check_prompt(prompt, model.vocab)
    # The checks stand outside the generator so that they speak at the call, not at the first token.
    return _draw(model, prompt, max_tokens, temperature, top_k, seed)


def _draw(
    model: NextToken[S], prompt: Sequence[int], max_tokens: int, temperature: float, top_k: int | None, seed: int
) -> Iterator[int]:
    random = np.random.Generator(np.random.PCG64(seed))
    state = model.start()
    for id in prompt:
        state = model.advance(state, np.array([id]))
    for _ in range(max_tokens):
        id = choose(model.next_logprobs(state)[0], temperature, top_k, random)
        if id == model.vocab.end:
            return
        yield id
        state = model.advance(state, np.array([id]))


def choose(logprobs: Logs, temperature: float, top_k: int | None, random: np.random.Generator) -> int:
    """One id from the log-probabilities of all of them, (V,)."""
    logs = np.asarray(logprobs, np.float64)
    best = int(logs.argmax())  # the first of the largest; NaN counts as larger than all
    if not math.isfinite(logs[best]):
        raise ForewordError(f"the model gives no next token a probability (the best log-probability is {logs[best]})")
    if temperature == 0 or top_k == 1:
        return best
    if top_k is not None and top_k < len(logs):
        logs = keep_largest(logs, top_k)
    with np.errstate(over="ignore"):  # a tiny temperature sends everything but the best to minus infinity, rightly
        weights = np.exp((logs - logs[best]) / temperature)
    return invert_cumulative(weights, random.random())


def keep_largest(logs: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """All but the k largest become minus infinity; among equals the lower id stays."""
    threshold = np.partition(logs, -k)[-k]
    kept = logs > threshold
    equals = np.flatnonzero(logs == threshold)
    kept[equals[: k - np.count_nonzero(kept)]] = True
    return np.where(kept, logs, -np.inf)


def invert_cumulative(weights: NDArray[np.float64], uniform: float) -> int:
    """The id under which a point of [0, 1) falls when the weights, (V,), are laid end to end."""
    edges = weights.cumsum()
    id = int(edges.searchsorted(uniform * edges[-1], side="right"))  # right: a token of weight zero is never hit
    if id == len(edges):  # uniform · total was rounded up to the total
        return int(np.flatnonzero(weights)[-1])
    return id


def pieces(tokenizer: Tokenizer, ids: Iterable[int], *, after: Sequence[int] = ()) -> Iterator[str]:
    """Decode token by token, one piece each, so that the pieces joined are the text that follows ``after``.

    Only the last few tokens are decoded again each time: enough to know the space between two words. A token that
    ends within a character gives an empty piece, and the token that completes it the whole character; one that is
    never completed makes one more piece at the end.
    """
    window = list(after[-1:])
    told = tokenizer.decode(window)
    for id in ids:
        window.append(id)
        text = tokenizer.decode(window)
        if text.endswith(INCOMPLETE) and len(window) < 8:  # no character takes more than four bytes
            yield ""
            continue
        yield text[len(told) :]
        window = window[-1:]
        told = tokenizer.decode(window)
    if len(window) > 1:
        yield tokenizer.decode(window)[len(told) :]  # an unfinished character, as the tokenizer shows one


def _check_settings(max_tokens: int, temperature: float, top_k: int | None, seed: int) -> None:
    if max_tokens < 0:
        raise SettingError(f"max_tokens={max_tokens} must not be negative")
    if not (math.isfinite(temperature) and temperature >= 0):
        raise SettingError(f"temperature={temperature} must be zero (greedy) or a positive number")
    if top_k is not None and top_k < 1:
        raise SettingError(f"top_k={top_k} must be at least 1, or None for every token")
    if seed < 0:
        raise SettingError(f"seed={seed} must not be negative")


def _check_prompt(prompt: Sequence[int], vocab: Vocab) -> None:
    for id in prompt:
        if not 0 <= id < len(vocab):
            raise SettingError(f"prompt holds id {id}, but the model's vocabulary ends at {len(vocab) - 1}")
