"""Linear-chain conditional random field: a score for every tag sequence, its probability, marginals and best path.

    s(y) = start(y_1) + Σ_t e_t(y_t) + Σ_t moves(y_(t−1), y_t) + end(y_T),    p(y) = exp s(y) / Z,    Z = Σ_y exp s(y)

Z has K^T terms and takes T · K² steps by the forward algorithm; the backward one gives the marginals p(y_t = k), which
are the gradient of log Z, so that the two recursions are all that training needs. A forbidden move has the score −∞: no
path takes it, and it gets no gradient.

J. Lafferty, A. McCallum and F. Pereira, "Conditional random fields" (2001); Z. Huang, W. Xu and K. Yu, "Bidirectional
LSTM-CRF models for sequence tagging" (2015). Shapes: B sentences, T words of the longest, K tags; padding is
never read as a score. A sentence without words has one path, of score 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from foreword.arrays import Array
from foreword.errors import InputError
from foreword.native.simd import LANES
from foreword.nn import plain
from foreword.nn.kernels_paths import share_paths, sum_paths
from foreword.nn.kernels_paths import viterbi as fill_tags


class Chain(NamedTuple):
    """Scores of transitions. start, end: (K,); moves: (K, K), from row to column."""

    start: Tensor
    moves: Tensor
    end: Tensor


def constrained(chain: Chain, allowed: Sequence[Array]) -> Chain:
    """Return the chain with −∞ wherever ``allowed``, three boolean arrays shaped as its parts, is False."""
    names, parts = Chain._fields, []
    for name, scores, may in zip(names, chain, allowed, strict=True):
        if may.shape != tuple(scores.shape):
            raise InputError(f"{name} has the shape {tuple(scores.shape)} but what is allowed {may.shape}")
        mask = torch.as_tensor(np.asarray(may, bool), device=scores.device)
        parts.append(scores.masked_fill(~mask, -torch.inf))
    return Chain(*parts)


def log_likelihood(emissions: Tensor, tags: Tensor, lengths: Tensor, chain: Chain) -> Tensor:
    """Return log p(tags) of each sentence, (B,). emissions (B, T, K), tags (B, T), integers, lengths (B,).

    −∞ where the tags take a forbidden move.
    """
    return path_score(emissions, tags, lengths, chain) - log_partition(emissions, lengths, chain)


def path_score(emissions: Tensor, tags: Tensor, lengths: Tensor, chain: Chain) -> Tensor:
    """Return s(tags) of each sentence, (B,)."""
    mask = _mask(emissions, lengths, chain)
    _check_tags(emissions, tags, mask)
    if emissions.shape[1] == 0:
        return emissions.new_zeros(len(emissions))
    tags = tags.long().masked_fill(~mask, 0)
    words = emissions.gather(2, tags[:, :, None])[:, :, 0]
    moves = chain.moves[tags[:, :-1], tags[:, 1:]]
    last = tags.gather(1, (lengths.to(tags.device).long() - 1).clamp(min=0)[:, None])[:, 0]
    ends = (chain.start[tags[:, 0]] + chain.end[last]).where(mask[:, 0], 0)
    return ends + words.where(mask, 0).sum(1) + moves.where(mask[:, 1:], 0).sum(1)


def log_partition(emissions: Tensor, lengths: Tensor, chain: Chain) -> Tensor:
    """Return log Z of each sentence, (B,)."""
    mask = _mask(emissions, lengths, chain)
    if emissions.shape[1] == 0:
        return emissions.new_zeros(len(emissions))
    made = _summed_paths(emissions, lengths, chain)
    if made is not None:
        return cast(Tensor, _ScaledPartition.apply(emissions, *chain, made))  # type: ignore[no-untyped-call]
    return cast(Tensor, _LogPartition.apply(emissions, *chain, mask))  # type: ignore[no-untyped-call]


def plain_log_partition(emissions: Tensor, lengths: Tensor, chain: Chain) -> Tensor:
    """Return log Z by torch, in logarithms: on any device, with any scores. ``log_partition`` must equal it."""
    mask = _mask(emissions, lengths, chain)
    return cast(Tensor, _LogPartition.apply(emissions, *chain, mask))  # type: ignore[no-untyped-call]


def marginals(emissions: Tensor, lengths: Tensor, chain: Chain) -> Tensor:
    """Return p(y_t = k) of each word, (B, T, K), without a gradient; zero for padding."""
    mask = _mask(emissions, lengths, chain)
    if emissions.shape[1] == 0:
        return torch.zeros_like(emissions)
    made = _summed_paths(emissions, lengths, chain)
    if made is not None:
        return torch.from_numpy(_weighted_shares(made, np.ones(len(emissions)))[0]).to(emissions)
    with torch.no_grad():
        forward = _forward(emissions, chain, mask)
        return _shares(forward, _backward(emissions, chain, mask), _log_z(forward, chain, mask), mask)


def viterbi(emissions: Tensor, lengths: Tensor, chain: Chain) -> list[list[int]]:
    """Return the likeliest tags of each sentence; of equals the lowest."""
    mask = _mask(emissions, lengths, chain)
    scores = _array(emissions)
    if np.isnan(scores).any() and np.isnan(scores[_array(mask)]).any():
        raise InputError("emissions hold NaN: there is no likeliest path")
    sizes = _array(lengths).astype(np.int64)
    decode = _decode_float32 if scores.dtype == np.float32 else _decode_float64
    tags, best = decode(scores, sizes, *(_array(part).astype(scores.dtype, copy=False) for part in chain))
    for sentence in np.flatnonzero(~(best > -np.inf)):
        raise InputError(f"sentence {sentence} has no path that is allowed")
    return tags


def _decode_float32(
    emissions: Array, sizes: Array, start: Array, moves: Array, end: Array
) -> tuple[list[list[int]], Array]:
    """Return the best paths and their scores by the kernel."""
    texts, longest, kinds = emissions.shape
    wide = np.pad(moves, ((0, 0), (0, -kinds % LANES)))
    tags, scores = np.empty((texts, longest), np.int32), np.empty(texts, np.float32)
    best = np.empty(longest * wide.shape[1], np.float32)
    fill_tags(emissions.ravel(), sizes, longest, start, wide.ravel(), end, best, tags, scores)
    return [row[:size] for row, size in zip(tags.tolist(), sizes.tolist(), strict=True)], scores


def _decode_float64(emissions: Array, sizes: Array, *chain: Array) -> tuple[list[list[int]], Array]:
    """Return the same in double precision, one sentence at a time."""
    found = [plain.viterbi(rows[:size], *chain) for rows, size in zip(emissions, sizes, strict=True)]
    return [tags for tags, _ in found], np.array([score for _, score in found])


class _LogPartition(torch.autograd.Function):
    """log Z in logarithms, for any device and any scores."""

    @staticmethod
    def forward(ctx: Any, emissions: Tensor, start: Tensor, moves: Tensor, end: Tensor, mask: Tensor) -> Tensor:
        """Return log Z of each sentence."""
        chain = Chain(start, moves, end)
        forward = _forward(emissions, chain, mask)
        log_z = _log_z(forward, chain, mask)
        ctx.save_for_backward(emissions, start, moves, end, mask, forward, log_z)
        return log_z

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        """Return the gradients: the marginals of tags and of pairs of tags."""
        emissions, start, moves, end, mask, forward, log_z = ctx.saved_tensors
        chain = Chain(start, moves, end)
        backward = _backward(emissions, chain, mask)
        d_emissions = _shares(forward, backward, log_z, mask) * grads[0][:, None, None]
        d_moves = torch.zeros_like(moves)
        for word in range(1, mask.shape[1]):
            # p(y_(t−1) = i, y_t = j); the exponent of padding is arbitrary.
            after = (emissions[:, word] + backward[:, word])[:, None, :]
            pairs = forward[:, word - 1, :, None] + moves + after - log_z[:, None, None]
            pairs = pairs.masked_fill(~mask[:, word, None, None], -torch.inf)
            d_moves += torch.einsum("bij,b->ij", pairs.exp(), grads[0])
        return d_emissions, d_emissions[:, 0].sum(0), d_moves, _last_shares(d_emissions, mask).sum(0), None


class _ScaledPartition(torch.autograd.Function):
    """log Z by the kernels, from exponentials of the scores."""

    @staticmethod
    def forward(ctx: Any, emissions: Tensor, start: Tensor, moves: Tensor, end: Tensor, made: _SummedPaths) -> Tensor:
        """Return log Z as the kernels have computed it."""
        ctx.made, ctx.like = made, emissions.new_empty(0)
        return torch.from_numpy(made.log_z).to(emissions)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        """Return the gradients: the marginals of tags and of pairs of tags."""
        made: _SummedPaths = ctx.made
        shares, pairs = _weighted_shares(made, _array(grads[0]).astype(np.float64))
        last = shares[np.arange(len(shares)), np.maximum(made.sizes - 1, 0)].sum(0)
        parts = (shares, shares[:, 0].sum(0), pairs, last)
        d_emissions, d_start, d_moves, d_end = (torch.from_numpy(part).to(ctx.like) for part in parts)
        return d_emissions, d_start, d_moves, d_end, None


class _SummedPaths(NamedTuple):
    """Exponentials of scores, and the results of ``sum_paths``: see there."""

    powers: Array
    sizes: Array
    moves: Array
    end: Array
    forward: Array
    scales: Array
    log_z: Array


WIDEST = 300.0
"""How far apart scores, of emissions and of moves together, may be for the kernels: e^−745 underflows."""


def _summed_paths(emissions: Tensor, lengths: Tensor, chain: Chain) -> _SummedPaths | None:
    """Run ``sum_paths``; None where the kernels do not apply: on a GPU, or where scores are too far apart."""
    if emissions.device.type != "cpu":
        return None
    scores, start, moves, end = (_array(part).astype(np.float64) for part in (emissions, *chain))
    sizes = _array(lengths).astype(np.int64)
    scores[np.arange(scores.shape[1]) >= sizes[:, None]] = 0
    if sum(map(_spread, (scores, start, moves, end))) > WIDEST:
        return None
    highest = [float(part.max()) for part in (start, moves, end)]
    peaks = scores.max(axis=2, keepdims=True)
    if -np.inf in highest or not np.isfinite(peaks).all():
        return None
    scores -= peaks
    np.exp(scores, out=scores)
    start, moves, end = (np.exp(part - high) for part, high in zip((start, moves, end), highest, strict=True))
    forward, scales, log_z = np.empty(scores.shape), np.empty(scores.shape[:2]), np.empty(len(scores))
    sum_paths(scores, sizes, start, moves, end, forward, scales, log_z)
    if not np.isfinite(log_z).all():
        return None
    log_z += peaks.sum(axis=(1, 2)) + (sizes > 0) * (highest[0] + highest[2]) + np.maximum(sizes - 1, 0) * highest[1]
    return _SummedPaths(scores, sizes, moves, end, forward, scales, log_z)


def _weighted_shares(made: _SummedPaths, weights: Array) -> tuple[Array, Array]:
    """Return p(y_t = k), (B, T, K), times the sentence's weight; and the weighted sum of p(y_(t−1) = i, y_t = j)."""
    kinds = len(made.end)
    shares, pairs = np.zeros(made.powers.shape), np.zeros((kinds, kinds))
    later, arriving = np.empty(kinds), np.empty(kinds)
    inputs = made.powers, made.sizes, made.moves, made.end, made.forward, made.scales
    share_paths(*inputs, weights, later, arriving, shares, pairs)
    return shares, pairs * made.moves


def _spread(scores: Array) -> float:
    """Return how far apart the scores are, −∞ left out; infinite if one is NaN."""
    if np.isnan(scores).any():
        return np.inf
    finite = scores[scores > -np.inf]
    return float(np.ptp(finite)) if len(finite) else 0.0


def _last_shares(shares: Tensor, mask: Tensor) -> Tensor:
    last = (mask.sum(1) - 1).clamp(min=0)
    return shares[torch.arange(len(last), device=last.device), last]


def _forward(emissions: Tensor, chain: Chain, mask: Tensor) -> Tensor:
    """Return α_t(j) = log Σ over all paths that end in j at word t, (B, T, K); constant over padding."""
    now = chain.start + emissions[:, 0]
    steps = [now]
    for word in range(1, mask.shape[1]):
        further = torch.logsumexp(now[:, :, None] + chain.moves, 1) + emissions[:, word]
        now = torch.where(mask[:, word, None], further, now)
        steps.append(now)
    return torch.stack(steps, 1)


def _backward(emissions: Tensor, chain: Chain, mask: Tensor) -> Tensor:
    """Return β_t(i) = log Σ over all ways from i at word t to the end, (B, T, K)."""
    now = chain.end.expand(len(mask), -1)
    steps = [now]
    for word in range(mask.shape[1] - 1, 0, -1):
        earlier = torch.logsumexp(chain.moves + (emissions[:, word] + now)[:, None, :], 2)
        now = torch.where(mask[:, word, None], earlier, now)
        steps.append(now)
    return torch.stack(steps[::-1], 1)


def _log_z(forward: Tensor, chain: Chain, mask: Tensor) -> Tensor:
    log_z = torch.logsumexp(forward[:, -1] + chain.end, 1).where(mask[:, 0], 0)
    if not torch.isfinite(log_z).all():
        sentence = int((~torch.isfinite(log_z)).nonzero()[0])
        raise InputError(f"sentence {sentence} has no path that is allowed, or a score that is not a number")
    return log_z


def _shares(forward: Tensor, backward: Tensor, log_z: Tensor, mask: Tensor) -> Tensor:
    return (forward + backward - log_z[:, None, None]).exp().where(mask[:, :, None], 0)


def _mask(emissions: Tensor, lengths: Tensor, chain: Chain) -> Tensor:
    """Return which positions are words, (B, T)."""
    _check(emissions, lengths, chain)
    positions = torch.arange(emissions.shape[1], device=emissions.device)
    return positions < lengths.to(emissions.device)[:, None]


def _check(emissions: Tensor, lengths: Tensor, chain: Chain) -> None:
    if emissions.dim() != 3 or emissions.shape[2] == 0:
        raise InputError(f"emissions have the shape {tuple(emissions.shape)}, not (sentences, words, tags)")
    texts, longest, kinds = emissions.shape
    for name, part, shape in zip(Chain._fields, chain, [(kinds,), (kinds, kinds), (kinds,)], strict=True):
        if tuple(part.shape) != shape:
            raise InputError(f"{name} has the shape {tuple(part.shape)}, not {shape} for {kinds} tags")
    if tuple(lengths.shape) != (texts,) or lengths.is_floating_point():
        raise InputError(
            f"lengths have the shape {tuple(lengths.shape)}: expected a whole number for {texts} sentences"
        )
    if texts and not 0 <= int(lengths.min()) <= int(lengths.max()) <= longest:
        raise InputError(f"lengths are {int(lengths.min())} to {int(lengths.max())}, not between 0 and {longest}")


def _check_tags(emissions: Tensor, tags: Tensor, mask: Tensor) -> None:
    if tags.shape != emissions.shape[:2] or tags.is_floating_point():
        raise InputError(f"tags have the shape {tuple(tags.shape)}: expected a number for {tuple(emissions.shape[:2])}")
    wrong = mask & ((tags < 0) | (tags >= emissions.shape[2]))
    if wrong.any():
        sentence, word = wrong.nonzero()[0].tolist()
        tag = int(tags[sentence, word])
        raise InputError(f"sentence {sentence}, word {word} has tag {tag}, not one of 0 to {emissions.shape[2] - 1}")


def _array(tensor: Tensor) -> Array:
    """Return a contiguous array for a kernel, half precision widened to float32."""
    tensor = tensor.detach().cpu()
    half = tensor.dtype in (torch.float16, torch.bfloat16)
    return np.ascontiguousarray(tensor.float().numpy() if half else tensor.numpy())
