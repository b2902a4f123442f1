"""The linear chain against the sum and the maximum over every path (S03: the optional CRF of the tagging head)."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from foreword.errors import InputError
from foreword.nn.crf import (
    Chain,
    constrained,
    log_likelihood,
    log_partition,
    marginals,
    path_score,
    plain_log_partition,
    viterbi,
)
from foreword.nn.plain import viterbi as plain_viterbi
from foreword.tag.schemes import allowed_moves

K, T = 3, 4
LENGTHS = torch.tensor([4, 1, 3, 0])


def chain_of(kinds: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Chain:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(kinds,), (kinds, kinds), (kinds,)]
    return Chain(*(torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes))


def emissions_of(texts: int, longest: int, kinds: int, seed: int = 1, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((texts, longest, kinds), generator=generator, dtype=dtype).requires_grad_()


def scores_of_all(emissions: Tensor, length: int, chain: Chain) -> dict[tuple[int, ...], Tensor]:
    """Every path of one sentence and its score, term by term as the formula has them."""
    found = {}
    for path in itertools.product(range(len(chain.start)), repeat=length):
        score = sum((emissions[place, tag] for place, tag in enumerate(path)), torch.zeros((), dtype=torch.float64))
        if path:
            score = score + chain.start[path[0]] + chain.end[path[-1]]
        found[path] = score + sum(chain.moves[pair] for pair in itertools.pairwise(path))
    return found


def test_s03_partition_marginals_and_gradients_are_those_of_enumeration() -> None:
    """S03: log Z, p(y_t = k), log p(y) and all four gradients, sentences of 4, 1, 3 and 0 words in one batch."""
    chain, emissions = chain_of(K), emissions_of(4, T, K)
    tags = torch.randint(0, K, (4, T), generator=torch.Generator().manual_seed(2))
    expected, shares = [], torch.zeros(4, T, K, dtype=torch.float64)
    for text, length in enumerate(LENGTHS.tolist()):
        paths = scores_of_all(emissions[text], length, chain)
        log_z = torch.logsumexp(torch.stack(list(paths.values())), 0)
        expected.append(paths[tuple(tags[text, :length].tolist())] - log_z)
        for path, score in paths.items():
            for place, tag in enumerate(path):
                shares[text, place, tag] += (score - log_z).exp().detach()
    ours = log_likelihood(emissions, tags, LENGTHS, chain)
    torch.testing.assert_close(ours, torch.stack(expected))
    torch.testing.assert_close(marginals(emissions, LENGTHS, chain).detach(), shares)
    weights = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    inputs = [emissions, *chain]
    found = torch.autograd.grad((ours * weights).sum(), inputs)
    wanted = torch.autograd.grad((torch.stack(expected) * weights).sum(), inputs)
    for mine, brute in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, brute)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(5))
def test_s03_viterbi_is_the_best_of_all_paths_and_its_plain_twin(seed: int, dtype: torch.dtype) -> None:
    chain, emissions = chain_of(K, seed, dtype), emissions_of(4, T, K, seed + 10, dtype)
    found = viterbi(emissions, LENGTHS, chain)
    for text, length in enumerate(LENGTHS.tolist()):
        paths = scores_of_all(emissions[text], length, chain)
        assert tuple(found[text]) == max(paths, key=lambda path: paths[path].item())
        tables = [part.detach().numpy() for part in (emissions[text, :length], *chain)]
        plain, score = plain_viterbi(*tables)
        assert plain == found[text]
        assert score == pytest.approx(max(score.item() for score in paths.values()), rel=1e-5)


@pytest.mark.parametrize("kinds", [1, 2, 9, 20, 33])
def test_viterbi_is_its_plain_twin_on_longer_sentences_of_any_number_of_tags(kinds: int) -> None:
    chain, emissions = chain_of(kinds, dtype=torch.float32), emissions_of(7, 40, kinds, dtype=torch.float32)
    lengths = torch.tensor([40, 0, 1, 2, 39, 17, 40])
    for text, tags in enumerate(viterbi(emissions, lengths, chain)):
        tables = [part.detach().numpy() for part in (emissions[text, : int(lengths[text])], *chain)]
        assert plain_viterbi(*tables)[0] == tags


def test_equal_scores_go_to_the_lowest_tag() -> None:
    chain = Chain(torch.zeros(3), torch.zeros(3, 3), torch.zeros(3))
    assert viterbi(torch.zeros(1, 4, 3), torch.tensor([4]), chain) == [[0, 0, 0, 0]]


def test_forbidden_moves_have_no_share_no_gradient_and_no_path() -> None:
    """What is left is the chain of the allowed paths: log Z, marginals and Viterbi are theirs, gradients finite."""
    free, emissions = chain_of(K), emissions_of(1, T, K)
    allowed = (np.array([1, 0, 1], bool), np.array([[0, 1, 1], [1, 0, 1], [0, 1, 0]], bool), np.array([0, 1, 1], bool))
    chain = constrained(free, allowed)
    length = torch.tensor([T])
    paths = {path: score for path, score in scores_of_all(emissions[0], T, chain).items() if score > -math.inf}
    assert 0 < len(paths) < K**T
    log_z = torch.logsumexp(torch.stack(list(paths.values())), 0)
    torch.testing.assert_close(log_partition(emissions, length, chain)[0], log_z)
    assert tuple(viterbi(emissions, length, chain)[0]) == max(paths, key=lambda path: paths[path].item())
    inputs = [emissions, *free]
    found = torch.autograd.grad(log_partition(emissions, length, chain).sum(), inputs, retain_graph=True)
    for mine, brute in zip(found, torch.autograd.grad(log_z, inputs), strict=True):
        torch.testing.assert_close(mine, brute)
    assert found[2][0, 0] == 0
    tags = torch.tensor([[0, 0, 1, 2]])  # takes 0 → 0
    assert log_likelihood(emissions, tags, length, chain).item() == -math.inf
    nothing = constrained(free, (allowed[0], np.zeros((K, K), bool), allowed[2]))
    for work in (viterbi, log_partition, marginals):
        with pytest.raises(InputError, match="sentence 0 has no path that is allowed"):
            work(emissions, length, nothing)


@pytest.mark.parametrize("apart", [1.0, 500.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_kernels_are_their_plain_twin(dtype: torch.dtype, apart: float) -> None:
    """In BIOES, sentences of many lengths; and with scores so far apart that only logarithms can hold them."""
    names = ["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in ("PER", "LOC", "ORG"))]
    chain = constrained(chain_of(len(names), dtype=dtype), allowed_moves(names, "bioes"))
    lengths = torch.tensor([12, 1, 0, 7, 2])
    emissions = (emissions_of(5, 12, len(names), dtype=dtype) * apart).detach().requires_grad_()
    weights = torch.tensor([1.0, 2.0, 3.0, -1.0, 0.5], dtype=dtype)
    ours, plain = (work(emissions, lengths, chain) for work in (log_partition, plain_log_partition))
    exact: dict[str, Any] = {} if dtype == torch.float64 else {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(ours, plain, **exact)
    inputs = [emissions, *chain]
    for mine, other in zip(
        torch.autograd.grad((ours * weights).sum(), inputs),
        torch.autograd.grad((plain * weights).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(mine, other, **exact)
    (shares,) = torch.autograd.grad(plain_log_partition(emissions, lengths, chain).sum(), emissions)
    torch.testing.assert_close(marginals(emissions, lengths, chain), shares, **exact)


def test_a_sentence_of_five_thousand_words() -> None:
    """Neither the kernels nor the logarithms run out of numbers."""
    chain, emissions, length = chain_of(K), emissions_of(1, 5000, K), torch.tensor([5000])
    ours, plain = log_partition(emissions, length, chain), plain_log_partition(emissions, length, chain)
    assert ours.item() == pytest.approx(plain.item(), rel=1e-12)
    (gradient,) = torch.autograd.grad(ours.sum(), emissions)
    torch.testing.assert_close(gradient.sum(2), torch.ones(1, 5000, dtype=torch.float64))
    assert len(viterbi(emissions, length, chain)[0]) == 5000


def test_what_lies_behind_the_end_of_a_sentence_is_not_read() -> None:
    """Not even if it is NaN or enormous."""
    chain, lengths = chain_of(K), torch.tensor([2, 4])
    clean, dirty = emissions_of(2, T, K), emissions_of(2, T, K).detach().clone()
    dirty[0, 2], dirty[0, 3] = math.nan, 1e30
    dirty.requires_grad_()
    tags = torch.tensor([[1, 2, 99, -1], [0, 1, 2, 0]])
    for emissions in (clean, dirty):
        log_likelihood(emissions, tags, lengths, chain).sum().backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(clean.grad, dirty.grad)
    torch.testing.assert_close(marginals(clean, lengths, chain), marginals(dirty, lengths, chain))
    assert viterbi(clean, lengths, chain) == viterbi(dirty, lengths, chain)


def test_probabilities_of_all_taggings_sum_to_one() -> None:
    chain, emissions = chain_of(K), emissions_of(1, T, K)
    tags = torch.tensor(list(itertools.product(range(K), repeat=T)))
    logs = log_likelihood(emissions.expand(len(tags), -1, -1), tags, torch.full((len(tags),), T), chain)
    assert logs.exp().sum().item() == pytest.approx(1)


def test_a_batch_of_empty_sentences() -> None:
    chain, emissions, lengths = chain_of(K), torch.zeros(2, 0, K, dtype=torch.float64), torch.tensor([0, 0])
    assert log_likelihood(emissions, torch.zeros(2, 0, dtype=torch.long), lengths, chain).tolist() == [0, 0]
    assert viterbi(emissions, lengths, chain) == [[], []]
    assert marginals(emissions, lengths, chain).shape == (2, 0, K)


def test_wrong_shapes_are_refused_in_one_line() -> None:
    chain, emissions, lengths = chain_of(K), emissions_of(2, T, K), torch.tensor([4, 4])
    tags = torch.zeros(2, T, dtype=torch.long)
    wrong = {
        "emissions have the shape": (emissions[0], tags, lengths, chain),
        "for 2 sentences": (emissions, tags, lengths[:1], chain),
        "not between 0 and 4": (emissions, tags, torch.tensor([4, 5]), chain),
        r"moves has the shape \(2, 3\), not \(3, 3\)": (
            emissions,
            tags,
            lengths,
            chain._replace(moves=chain.moves[:2]),
        ),
        "sentence 0, word 1 has tag 3": (emissions, torch.tensor([[0, 3, 0, 0]] * 2), lengths, chain),
        "tags have the shape": (emissions, tags[:, :2], lengths, chain),
    }
    for message, arguments in wrong.items():
        with pytest.raises(InputError, match=message) as caught:
            log_likelihood(*arguments)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="NaN"):
        viterbi(torch.full((1, 2, K), math.nan), torch.tensor([2]), chain)
    with pytest.raises(InputError, match="start has the shape"):
        constrained(chain, (np.ones(2, bool), np.ones((K, K), bool), np.ones(K, bool)))
    assert path_score(emissions, tags, lengths, chain).shape == (2,)
