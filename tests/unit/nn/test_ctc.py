"""CTC against the sum over every alignment, and against torch (C03)."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import ctc_loss as torch_ctc_loss

from foreword.errors import InputError, SettingError
from foreword.ngram.model import NgramLM
from foreword.nn.ctc import ctc_loss
from foreword.nn.plain import ctc_log_likelihood as plain_log_likelihood
from foreword.speech.search import collapsed, greedy, prefix_search
from foreword.tokens.characters import CharacterTokenizer
from foreword.tokens.corpus import Corpus


def logits_of(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(shape, generator=generator, dtype=torch.float64)).requires_grad_()


def all_texts(logs: NDArray[np.float64], blank: int) -> dict[tuple[int, ...], float]:
    """Every text that the frames (T, V) can read as, and its log-probability, from every alignment."""
    chances: dict[tuple[int, ...], float] = defaultdict(float)
    for symbols in itertools.product(range(logs.shape[1]), repeat=len(logs)):
        chances[tuple(collapsed(symbols, blank))] += math.exp(
            sum(row[symbol] for row, symbol in zip(logs, symbols, strict=True))
        )
    return {text: math.log(chance) for text, chance in chances.items()}


@pytest.mark.parametrize("blank", [0, 2])
def test_c03_loss_and_gradient_are_those_of_enumeration(blank: int) -> None:
    """C03: texts of 0 to 4 labels, repeated ones too, in 5 frames: loss, its plain twin, and the gradient of it all."""
    logits = logits_of(5, 1, 3)
    logs = torch.log_softmax(logits, -1)
    expected = all_texts(logs[:, 0].detach().numpy(), blank)
    assert sum(map(math.exp, expected.values())) == pytest.approx(1)
    assert max(map(len, expected)) == 5
    for text, logprob in expected.items():
        labels = torch.tensor([text], dtype=torch.long).reshape(1, -1)
        loss = ctc_loss(logs, labels, torch.tensor([5]), torch.tensor([len(text)]), blank=blank)
        assert loss.item() == pytest.approx(-logprob, rel=1e-9)
        assert plain_log_likelihood(logs[:, 0].detach().numpy(), text, blank) == pytest.approx(logprob, rel=1e-9)
        (found,) = torch.autograd.grad(loss.sum(), logits, retain_graph=True)
        alignments = [
            logs[range(5), 0, list(symbols)].sum()
            for symbols in itertools.product(range(3), repeat=5)
            if tuple(collapsed(symbols, blank)) == text
        ]
        brute = -torch.logsumexp(torch.stack(alignments), 0)
        torch.testing.assert_close(found, torch.autograd.grad(brute, logits, retain_graph=True)[0])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_c03_loss_and_gradient_are_torchs(dtype: torch.dtype) -> None:
    """C03: a batch of texts of different lengths, labels that repeat, one without labels."""
    generator = torch.Generator().manual_seed(1)
    logits = logits_of(40, 6, 8, seed=3).detach().to(dtype).requires_grad_()
    labels = torch.randint(1, 4, (6, 12), generator=generator)
    frames, sizes = torch.tensor([40, 30, 40, 12, 3, 40]), torch.tensor([12, 10, 1, 4, 2, 0])
    labels[3, :4] = torch.tensor([1, 1, 2, 2])
    labels[4, :2] = torch.tensor([5, 6])
    logs = torch.log_softmax(logits, -1)
    ours = ctc_loss(logs, labels, frames, sizes)
    theirs = torch_ctc_loss(logs, labels, frames, sizes, reduction="none")
    torch.testing.assert_close(ours, theirs)
    weights = torch.linspace(-1, 2, 6, dtype=dtype)
    (found,) = torch.autograd.grad((ours * weights).sum(), logits, retain_graph=True)
    (wanted,) = torch.autograd.grad((theirs * weights).sum(), logits)
    single = dtype == torch.float32  # in which torch computes as well, and we do not
    torch.testing.assert_close(found, wanted, atol=2e-4 if single else 1e-9, rtol=1e-7)


def test_too_few_frames_have_no_chance_and_no_gradient() -> None:
    """Two equal labels take three frames."""
    logits = logits_of(2, 2, 3)
    logs = torch.log_softmax(logits, -1)
    labels = torch.tensor([[1, 1], [1, 2]])
    loss = ctc_loss(logs, labels, torch.tensor([2, 2]), torch.tensor([2, 2]))
    assert loss[0].item() == math.inf
    assert math.isfinite(loss[1].item())
    (found,) = torch.autograd.grad(loss.sum(), logits)
    assert (found[:, 0] == 0).all()
    assert (found[:, 1] != 0).any()
    nothing = ctc_loss(logs, labels, torch.tensor([0, 0]), torch.tensor([0, 1]))
    assert nothing.tolist() == [0, math.inf]


def test_symbols_that_cannot_be_are_counted_as_such() -> None:
    logs = torch.tensor([[[0.0, -math.inf]], [[-math.inf, 0.0]]], dtype=torch.float64).requires_grad_()
    loss = ctc_loss(logs, torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1]))
    assert loss.item() == 0
    (found,) = torch.autograd.grad(loss.sum(), logs)
    assert found.tolist() == [[[-1, 0]], [[0, -1]]]


def test_greedy_reads_the_best_alignment() -> None:
    logs = np.log(np.array([[0.1, 0.8, 0.1], [0.1, 0.8, 0.1], [0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]))
    assert greedy(logs) == [1, 1, 2]
    assert greedy(logs, blank=1) == [0, 2]
    assert greedy(np.empty((0, 3))) == []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("blank", [0, 2])
def test_c03_a_wide_prefix_search_is_exhaustive(seed: int, blank: int) -> None:
    """C03: every text with its exact log-probability, best first."""
    logs = torch.log_softmax(logits_of(5, 3, seed=seed), -1).detach().numpy()
    expected = all_texts(logs, blank)
    found = prefix_search(logs, blank=blank, width=10_000)
    assert {text.ids: text.logprob for text in found} == pytest.approx(expected)
    assert found[0].ids == max(expected, key=expected.__getitem__)
    assert [text.score for text in found] == sorted((text.score for text in found), reverse=True)
    lengthy = prefix_search(logs, blank=blank, width=10_000, bonus=1.5)[0]
    assert lengthy.ids == max(expected, key=lambda text: expected[text] + 1.5 * len(text))


def test_c03_greedy_is_myopic() -> None:
    """C03: the best alignment reads nothing, at 0.36; yet a label, by three alignments, has 0.64."""
    logs = np.log(np.array([[0.6, 0.4], [0.6, 0.4]]))
    assert greedy(logs) == []
    best = prefix_search(logs, width=2)[0]
    assert best.ids == (1,)
    assert math.exp(best.logprob) == pytest.approx(0.64)


@pytest.mark.parametrize("weight", [0.0, 0.5, 2.0])
def test_c03_search_with_our_own_language_model_is_exhaustive(weight: float) -> None:
    """C03: frames and an NgramLM of characters; the score is the sum of both, the end of the text included."""
    tokenizer = CharacterTokenizer().fit(["ab", "abab", "ba"])
    corpus = Corpus.from_texts(["ab", "abab", "abb", "ba"], tokenizer)
    model = NgramLM(order=2).fit(corpus)
    blank = len(model.vocab)
    frames = torch.log_softmax(logits_of(4, blank + 1, seed=5), -1).detach().numpy()
    expected = {}
    for text, logprob in all_texts(frames, blank).items():
        if model.vocab.end not in text:
            state, said = model.start(), 0.0
            for id in (*text, model.vocab.end):
                said += float(model.next_logprobs(state)[0, id])
                state = model.advance(state, np.array([id]))
            expected[text] = logprob + weight * said + 0.1 * len(text)
    found = prefix_search(frames, blank=blank, width=100_000, model=model, weight=weight, bonus=0.1)
    assert {text.ids: text.score for text in found} == pytest.approx(expected)
    assert found[0].ids == max(expected, key=expected.__getitem__)
    narrow = prefix_search(frames, blank=blank, width=8, model=model, weight=weight, bonus=0.1)
    assert len(narrow) == 8
    assert narrow[0].ids == found[0].ids


def test_a_language_model_decides_between_what_sounds_alike() -> None:
    """The frames cannot tell a from b in the second place; the model has read ab only."""
    tokenizer = CharacterTokenizer().fit(["ab"])
    model = NgramLM(order=2).fit(Corpus.from_texts(["ab"] * 5, tokenizer))
    a, b = tokenizer.encode("ab").tolist()
    blank = len(model.vocab)
    chances = np.full((3, blank + 1), 1e-4)
    chances[0, a], chances[1, blank] = 0.9, 0.9
    chances[2, a], chances[2, b] = 0.46, 0.44
    logs = np.log(chances / chances.sum(axis=1, keepdims=True))
    assert prefix_search(logs, blank=blank)[0].ids == (a, a)
    assert prefix_search(logs, blank=blank, model=model)[0].ids == (a, b)


def test_wrong_input_is_refused_in_one_line() -> None:
    logs, labels = torch.log_softmax(logits_of(5, 2, 3), -1), torch.tensor([[1, 2], [2, 0]])
    frames, sizes = torch.tensor([5, 5]), torch.tensor([2, 1])
    wrong = {
        r"not \(frames, texts, symbols\)": (logs[0], labels, frames, sizes),
        "labels have the shape": (logs, labels[:1], frames, sizes),
        "frames are 5 to 6, not between 0 and 5": (logs, labels, torch.tensor([5, 6]), sizes),
        "sizes are 2 to 3": (logs, labels, frames, torch.tensor([2, 3])),
        "sizes have the shape": (logs, labels, frames, torch.tensor([2.0, 1.0])),
        "text 1, label 1 is 0": (logs, labels, frames, torch.tensor([2, 2])),
        "text 0, label 1 is 7": (logs, torch.tensor([[1, 7], [2, 0]]), frames, sizes),
        "NaN": (logs * math.nan, labels, frames, sizes),
    }
    for message, arguments in wrong.items():
        with pytest.raises(InputError, match=message) as caught:
            ctc_loss(*arguments)
        assert "\n" not in str(caught.value)
    with pytest.raises(SettingError, match="blank=3"):
        ctc_loss(logs, labels, frames, sizes, blank=3)
    rows = np.zeros((2, 3))
    with pytest.raises(InputError, match="the log-probabilities hold NaN"):
        greedy(rows * math.nan)
    with pytest.raises(InputError, match=r"not \(frames, symbols\)"):
        greedy(rows[0])
    for setting, value in (("width", 0), ("weight", -1.0), ("bonus", math.inf), ("blank", -1)):
        with pytest.raises(SettingError, match=f"{setting} ?(=|is) ?{value}"):
            prefix_search(rows, **{setting: value})  # type: ignore[arg-type]
    tokenizer = CharacterTokenizer().fit(["ab"])
    model = NgramLM(order=2).fit(Corpus.from_texts(["ab"], tokenizer))
    with pytest.raises(
        InputError, match="3 symbols with the blank at 0: the model's vocabulary takes 5, the blank last"
    ):
        prefix_search(rows, model=model)
