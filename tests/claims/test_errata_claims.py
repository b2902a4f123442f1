"""Where the sources err or disagree: the errata that no other test of ours holds against the package."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from foreword.hmm.model import HMM
from foreword.nn.cells import GRUCell, LSTMCell, RNNCell, run
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.vectors import plain
from foreword.vectors.training import alias_table, huffman_paths, keep_shares

Report = Callable[[str, object], None]

ROOT = Path(__file__).parents[2]


def test_z05_the_slope_of_tanh_is_one_at_zero_and_never_more() -> None:
    """Z05: one source says always below 1, another at most 1; a unit that is at 0 has a slope of exactly 1."""
    cell = RNNCell(3, 5)
    _, _, kept = run(cell, np.zeros((1, 1, 3)))
    assert (cell.slope(kept[0][2]) == 1).all()
    states, _, _ = run(cell, 10 * np.random.default_rng(0).normal(size=(200, 4, 3)))
    slopes = cell.slope(states)
    assert ((slopes >= 0) & (slopes <= 1)).all()


def test_z06_a_one_hot_vector_carries_the_logarithm_of_the_vocabulary(record_property: Report) -> None:
    """Z06: not 1 bit. The entropy of a uniform choice of 50,000 words, and its code of fewest bits."""
    shares = np.full(50_000, 1 / 50_000)
    bits = float(-(shares * np.log2(shares)).sum())
    record_property("Z06 bits of one word of 50,000", round(bits, 2))
    assert bits == pytest.approx(math.log2(50_000))
    assert bits == pytest.approx(15.6, abs=0.05)
    assert (50_000 - 1).bit_length() == math.ceil(bits)


def test_z08_no_file_of_ours_has_the_wrong_number_for_the_paper() -> None:
    """Z08: 1409.1259 stands nowhere beside "Learning Phrase Representations", in code or docs."""
    files = [
        path for folder in ("src", "docs") for ending in ("py", "md") for path in (ROOT / folder).rglob(f"*.{ending}")
    ]
    assert len(files) > 100
    wrong = re.compile(r"phrase representations[^\n]*1409\.1259|1409\.1259[^\n]*phrase representations", re.IGNORECASE)
    cited = [path.name for path in files if wrong.search(path.read_text(encoding="utf-8"))]
    assert set(cited) <= {"errata.py", "CLAIMS.md"}  # where it is told that this is wrong


@pytest.mark.parametrize("model", ["cbow", "skip-gram"])
def test_z11_one_window_means_the_same_to_both_models(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Z11: up to M words on either side, for CBOW as for skip-gram (the kernel's plain twin, watched at its work)."""
    words, window = 40, 3
    seen: set[int] = set()

    def watch(E: object, U: object, rows: list[int], outputs: list[int], *rest: object) -> float:
        seen.update(row - outputs[0] for row in rows)  # the first output is the word itself, words are their places
        return 0.0

    for name in ("cbow_step", "window_step"):
        monkeypatch.setattr(plain, name, watch)
    counts = np.ones(words)
    E, U, document = np.zeros((words, 4)), np.zeros((words, 4)), list(range(words))
    random = plain.SplitMix(1)
    for _ in range(20):
        plain.train_windows(
            document,
            keep_shares(counts.astype(np.int64), 0),
            window,
            model == "cbow",
            2,
            alias_table(counts),
            huffman_paths(counts.astype(np.int64)),
            E,
            U,
            0.1,
            random,
        )
    assert seen == {-3, -2, -1, 1, 2, 3}


def test_z12_what_the_copy_announces_and_what_there_is() -> None:
    """Z12: the heading says two scoring functions; four are listed, and four are here. What is missing from the copy,
    the three requirements and the checklist, is our own: R06 and P08.
    """
    from foreword.translate.network import ATTENTIONS

    assert [name for name in ATTENTIONS if name != "none"] == ["additive", "dot", "general", "scaled"]


@pytest.mark.parametrize("length", [1, 7, 60])
def test_z13_hidden_states_are_numbered_by_how_many_there_are(length: int) -> None:
    """Z13: values 1 to S, not 1 to N: paths through texts of any length stay below S = 3, and long ones use all."""
    vocab = Vocab(["</s>", "a", "b", "c"], unknown=None)
    emission = np.array([[0.02, 0.94, 0.02, 0.02], [0.02, 0.02, 0.94, 0.02], [0.02, 0.02, 0.02, 0.94]])
    model = HMM.from_parameters(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), emission, vocab)
    ids, states = model.sample(length, seed=0)
    path = model.viterbi(Corpus.from_ids([ids.tolist()], vocab))
    for found in (states, path):
        assert set(np.unique(found).tolist()) <= {0, 1, 2}
    if length == 60:
        assert set(np.unique(states).tolist()) == {0, 1, 2}


def test_z14_the_lstm_s_update_is_no_interpolation_and_the_gru_s_is(record_property: Report) -> None:
    """Z14: f and i are two gates, whose sum is anything up to 2; a GRU's new state lies between candidate and old."""
    x = np.random.default_rng(0).normal(size=(30, 8, 3))
    _, _, kept = run(LSTMCell(3, 16), x)
    sums = np.array([held[3] + held[4] for held in kept])  # i and f
    record_property("Z14 f + i of a new LSTM, least and most", f"{sums.min():.2f}, {sums.max():.2f}")
    assert sums.max() > 1.3
    assert sums.min() < 0.95
    states, _, kept = run(GRUCell(3, 16), x)
    for new, (_, old, _, _, candidate, _) in zip(states, kept, strict=True):
        low, high = np.minimum(old, candidate), np.maximum(old, candidate)
        assert ((new >= low - 1e-12) & (new <= high + 1e-12)).all()


def test_z16_bytes_read_in_the_wrong_encoding_can_be_read_again() -> None:
    """Z16: what a copy of a source shows as three characters is one apostrophe in UTF-8."""
    shown = "we\u00e2\u20ac\u2122re"
    assert shown.encode("cp1252").decode("utf-8") == "we\u2019re"


def test_z15_z17_the_page_has_what_they_leave_open() -> None:
    """Z15, Z17: how busy one text keeps a GPU, and how far an LSTM remembers, stand measured on the page."""
    page = (ROOT / "docs" / "recurrent.md").read_text(encoding="utf-8")
    busy = re.search(r"\| LSTM \|(?: [\d.]+ ms, ([\d.]+) % \|){4}", page)
    reach = re.search(r"\| LSTM \| (\d+) \| hundreds", page)
    assert busy is not None
    assert float(busy[1]) < 1  # of the chip, at 3,000 steps
    assert reach is not None
    assert 50 <= int(reach[1]) <= 200
