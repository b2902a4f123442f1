"""X02: the table of limits and the quick reference, by the recipe that writes docs/limits.md."""

from __future__ import annotations

import json
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest
import torch

RECIPE = Path(__file__).parents[2] / "recipes" / "limits.py"


@pytest.fixture(scope="module")
def limits() -> ModuleType:
    torch.set_num_threads(1)
    found = util.spec_from_file_location("limits", RECIPE)
    assert found is not None
    assert found.loader is not None
    module = util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_x02_gradients_vanish_on_long_paths_and_not_where_there_is_one_hop(limits: ModuleType) -> None:
    """X02: of untrained layers, weights uniform within ±1/√H, an RNN's by far the most, an LSTM's the least of the
    three, attention's not at all. F09 begins with larger weights, and there the GRU loses most.
    """
    shares = {cell: limits.far_gradient(limits.layer(cell, 64)) for cell in ("rnn", "gru", "lstm")}
    assert 0 < shares["rnn"] < shares["gru"] < shares["lstm"] < 1e-3
    assert limits.far_gradient(limits.attention) > 0.1


def test_x02_a_state_is_of_one_size_and_a_cache_grows(limits: ModuleType) -> None:
    """X02: limited memory."""
    assert limits.remembered(10)[0] == limits.remembered(1000)[0] == 2 * 2 * 64
    assert limits.remembered(1000)[1] == 100 * limits.remembered(10)[1]


def test_x02_steps_that_wait_cost_time_even_on_one_thread(limits: ModuleType) -> None:
    """X02: no parallelism; and reading both ways is two readings."""
    assert limits.one_after_the_other() > 1.1
    assert 1.5 < limits.twice_the_work() < 3


def test_x02_a_gru_has_three_quarters_of_the_weights(limits: ModuleType) -> None:
    assert limits.weights_of("gru") / limits.weights_of("lstm") == 0.75


def test_x02_every_row_of_the_page_has_a_number() -> None:
    """X02: four limits with cause and fix, six architectures; each as the recipe wrote it."""
    page = (RECIPE.parents[1] / "docs" / "limits.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    tables = [[row for row in rows if len(row) == columns and row[0] not in ("limit", "model", "---")]
              for columns in (4, 5)]  # fmt: skip
    assert [row[0] for row in tables[0]] == ["no parallelism", "long paths", "limited memory", "slow training"]
    assert [row[0] for row in tables[1]] == ["RNN", "LSTM", "GRU", "BiRNN", "seq2seq", "seq2seq with attention"]
    assert all(any(letter.isdigit() for letter in row[-1]) for row in [*tables[0], *tables[1]])
    told = " ".join(page.split())
    assert "layers that have learnt nothing" in told
    assert "weights drawn uniformly within ±1/√H" in told
    assert "with weights N(0, 1/√H) the GRU loses most of the three" in told


def test_x02_x03_the_networks_whose_pace_is_compared_have_as_many_weights(limits: ModuleType) -> None:
    """X02, X03: to 5 %; the stored result counts the same, and in it the LSTM trains faster on one thread."""
    counts = limits.pace_parameters()
    assert counts["lstm"] == pytest.approx(counts["transformer"], rel=0.05)
    stored = json.loads((RECIPE.parents[1] / "docs" / "results" / "limits.json").read_text("utf-8"))
    assert stored["parameters of those"] == counts
    assert stored["training words per second"]["lstm"] > stored["training words per second"]["transformer"]
