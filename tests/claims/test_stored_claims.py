"""Stored results against the claims that rest on them: rows C01 to Z17 whose numbers take minutes or a GPU.

The recipes write docs/results; these tests hold each file to the order and the inequalities that claims.toml states.
"""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

RESULTS = Path(__file__).parents[2] / "docs" / "results"


@cache
def stored(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def row(name: str, which: str) -> Any:
    (found,) = (each for each in stored(name)["rows"] if each["row"] == which)
    return found


# recurrent.json


def test_l04_the_product_of_forget_gates_falls_to_nothing_on_text() -> None:
    """L04: by mean and by the slowest unit, at every lag; below a thousandth of a thousandth after 64 words."""
    found = row("recurrent", "forget-gates")
    at = found["lags"].index(64)
    for name, most in (("Π f, mean", 1e-6), ("Π f, largest", 1e-4)):
        assert all(left > right for left, right in itertools.pairwise(found[name]))
        assert found[name][at] < most
    assert all(slowest > mean for mean, slowest in zip(found["Π f, mean"], found["Π f, largest"], strict=True))


def test_l06_a_forget_bias_of_one_is_better_than_none() -> None:
    """L06: more answers and more seeds solved, of five."""
    found = row("recurrent", "forget-bias")
    assert found["bias 1"]["mean"] > found["bias 0"]["mean"] + 0.1
    assert (found["bias 0"]["solved"], found["bias 1"]["solved"], len(found["seeds"])) == (1, 5, 5)


def test_l09_the_gru_is_slightly_better_and_its_step_faster_but_training_takes_as_long() -> None:
    """L09: as many parameters to 1 %, three seeds; each seed of the GRU is below each of the LSTM."""
    found, cost = row("recurrent", "budget"), row("recurrent", "cost")["microseconds per step"]
    gru, lstm = found["gru"], found["lstm"]
    assert gru["parameters"] == pytest.approx(lstm["parameters"], rel=0.01)
    assert len(gru["perplexity"]) == len(lstm["perplexity"]) == 3
    assert max(gru["perplexity"]) < min(lstm["perplexity"])
    assert gru["mean"] > 0.9 * lstm["mean"]  # comparable
    assert cost["gru"] < cost["lstm"]
    assert gru["median of CPU seconds"] == pytest.approx(lstm["median of CPU seconds"], rel=0.1)


def test_l10_z17_how_far_each_cell_recalls() -> None:
    """L10, Z17: the reach of each, which is the longest lag that most seeds answer, and its order."""
    found = row("recurrent", "horizon")
    reach = {kind: each["reach"] for kind, each in found["by kind"].items()}
    assert (found["units"], found["updates"], len(found["seeds"])) == (32, 800, 3)
    assert reach["rnn"] == 20
    assert reach["irnn"] == reach["lstm"] == 100
    assert reach["lstm"] < reach["min-gru"] == 200 < reach["gru"] == 400
    for kind, each in found["by kind"].items():
        medians = {lag: np.median(right) for lag, right in zip(found["lags"], each["right"], strict=True)}
        assert medians[reach[kind]] > 0.9
        assert all(medians[lag] < 0.95 for lag in found["lags"] if lag > reach[kind])


def test_m04_z15_one_text_leaves_a_gpu_idle() -> None:
    """M04, Z15: over 1,000 steps an LSTM of 256 units on one text keeps 0.3 % busy, one of 1,024 on 32 texts 66 %."""
    found = row("recurrent", "cost on cuda")
    for sizes, share in (("256 units, batch 1", 0.003), ("1024 units, batch 32", 0.66)):
        at = found[sizes]["steps"].index(1000)
        assert found[sizes]["utilisation"]["lstm"][at] == pytest.approx(share, rel=0.2)
        times = found[sizes]["milliseconds"]["lstm"]
        assert times[-1] > 2.5 * times[at]  # three times as many steps


def test_l11_more_units_hold_more_symbols_and_each_state_holds_only_so_many() -> None:
    """L11: each size gives back ever less of more symbols; at 16 symbols each larger size more than the last."""
    found = row("recurrent", "capacity")
    sizes = [found[f"{units} units"] for units in (8, 16, 32, 64)]
    for right in sizes:
        assert right == sorted(right, reverse=True)
        assert right[-1] < 0.6 * right[0]
    at_most = [right[-1] for right in sizes]
    assert at_most == sorted(at_most)


def test_l12_a_step_of_an_rnn_is_cheapest_and_of_an_lstm_dearest() -> None:
    """L12: low, medium, high."""
    cost = row("recurrent", "cost")["microseconds per step"]
    assert cost["rnn"] < cost["gru"] < cost["lstm"]


def test_s01_what_is_local_fades_and_the_number_is_in_both_layers() -> None:
    """S01: the word just read from layer to layer; the subject's number, hardly in the embedding, in both layers."""
    found = row("recurrent", "agreement")["probe of the LSTM"]
    word, number = (found[name]["embedding and layers"] for name in ("the word just read", "the subject’s number"))
    assert word[0] > word[1] > word[2] > found["the word just read"]["most frequent"]
    assert number[0] < 0.7
    assert min(number[1:]) > 0.9
    assert number[1] == pytest.approx(number[2], abs=0.03)


def test_r19_in_the_stored_run_the_lstm_of_two_layers_loses_the_subject_more_often() -> None:
    """R19: RNN and GRU are right throughout; the LSTM in 88 and 77 % with two and three attractors, still more often
    than either n-gram model.
    """
    right = row("recurrent", "agreement")["right by attractors, 0 to 3"]
    assert min(*right["RNN"], *right["GRU"]) > 0.99
    assert right["LSTM"] == sorted(right["LSTM"], reverse=True)
    assert right["LSTM"][2:] == [pytest.approx(0.88, abs=0.005), pytest.approx(0.77, abs=0.005)]
    for name in ("3-gram", "5-gram"):
        assert all(right["LSTM"][n] > right[name][n] + 0.3 for n in (1, 2, 3))


# scaling_law.json


def test_x01_of_one_size_the_lstm_is_ahead_of_the_small_transformer() -> None:
    """X01: six pairs of as many parameters to 5 %, one seed each; and the Transformer learns."""
    found = stored("scaling_law")
    ours, theirs = found["LSTMs as large as the Transformers"], found["models"]["Transformer"]
    assert len(ours["parameters"]) == len(theirs["parameters"]) == 6
    for lstm, transformer in zip(ours["parameters"], theirs["parameters"], strict=True):
        assert lstm == pytest.approx(transformer, rel=0.05)
    assert all(lstm < transformer for lstm, transformer in zip(ours["loss"], theirs["loss"], strict=True))
    assert max(theirs["loss"]) < np.log(94) - 1  # blind choice among the kinds of characters


def test_x04_losses_fall_with_size_along_a_power_law() -> None:
    """X04: each larger model is better, and a power explains it; no floor shows."""
    for name, least in (("LSTM", 0.995), ("Transformer", 0.98)):
        found = stored("scaling_law")["models"][name]
        assert found["parameters"] == sorted(found["parameters"])
        assert found["loss"] == sorted(found["loss"], reverse=True)
        assert found["a N^(-b)"]["R2"] > least
        assert 0.1 < found["a N^(-b)"]["b"] < 0.2
        assert found["a N^(-b) + c"]["c"] < 0.01


# multi30k.json


def test_q04_scheduled_sampling_gains_nothing_into_german() -> None:
    """Q04: the gap is not closed: BLEU is no higher than without."""
    assert row("multi30k", "de-sampling")["bleu"] <= row("multi30k", "de")["bleu"]


def test_q07_normalisation_makes_outputs_longer() -> None:
    """Q07: a beam of 5 into German: too short without, nearer to the references with either formula."""
    test = row("multi30k", "de")["test"]
    plain, mean, gnmt = (test[name]["length_ratio"] for name in ("beam 5", "beam 5, mean", "beam 5, GNMT"))
    assert plain < gnmt < mean
    assert max(abs(mean - 1), abs(gnmt - 1)) < abs(plain - 1)


def test_q08_the_coverage_penalty_makes_outputs_longer_and_bleu_lower() -> None:
    """Q08: into German."""
    test = row("multi30k", "de")["test"]
    plain, covered = test["beam 5, GNMT"], test["beam 5, GNMT, coverage"]
    assert covered["length_ratio"] > plain["length_ratio"]
    assert covered["bleu"] < plain["bleu"] - 2


def test_q09_attention_is_worth_ten_points_of_bleu() -> None:
    """Q09: into German, with the same settings."""
    with_it, without = row("multi30k", "de"), row("multi30k", "de-none")
    assert {**with_it["settings"], "attention": "none"} == without["settings"]
    assert with_it["bleu"] > without["bleu"] + 10


# tagger.json


def test_s03_names_chunks_and_parts_of_speech_of_the_test_parts() -> None:
    """S03: F1 of names above Huang, Xu and Yu's 84.26 without vectors, of chunks below their 94.13; docs/bilstm.md has
    the same numbers.
    """
    names, chunks, words = (row("tagger", name) for name in ("names", "chunks", "words"))
    assert names["test"]["micro"]["f1"] > 0.8426
    assert 0.93 < chunks["test"]["micro"]["f1"] < 0.9413
    assert words["accuracy"] > 0.95
    page = (RESULTS.parent / "bilstm.md").read_text("utf-8")
    for name, found in (("names", names), ("chunks", chunks)):
        (line,) = (each for each in page.splitlines() if each.startswith(f"| `{name}`: "))
        assert f"| {100 * found['valid']:.2f} | **{100 * found['test']['micro']['f1']:.2f}** |" in line
        assert f"{found['epochs']} epochs, {found['cpu_seconds']:.0f} s" in line
    assert f"**{100 * words['accuracy']:.2f} %**" in page


# vector_quality.json and vector_page.json


@pytest.mark.parametrize("model", ["cbow", "skip-gram"])
def test_e06_our_vectors_are_no_worse_than_gensims(model: str) -> None:
    """E06: on all of enwiki, three seeds each: each of the three measures no lower, within two standard errors of the
    difference.
    """
    means = stored("vector_quality")["means"]
    theirs = next((each for name, each in means.items() if "gensim" in name and model in name), None)
    if theirs is None:
        pytest.skip("gensim's rows are not in docs/results/vector_quality.json: python recipes/vector_quality.py")
    for measure in ("WordSim-353", "MEN", "analogies"):
        error = np.hypot(means[model][measure]["error"], theirs[measure]["error"])
        assert means[model][measure]["mean"] > theirs[measure]["mean"] - 2 * error


def test_t09_mutual_information_of_four_million_words() -> None:
    """T09: LSA of mutual information answers more analogies than word2vec and GloVe, by both methods, but fewer than
    fastText; docs/vectors.md has the same numbers.
    """
    models = stored("vector_page")["models"]
    page = (RESULTS.parent / "vectors.md").read_text("utf-8").replace("*", "")
    for method in ("3CosAdd", "3CosMul"):
        lsa = models["LSA of mutual information"][method]
        assert lsa > max(models[name][method] for name in ("word2vec, skip-gram", "word2vec, CBOW", "GloVe"))
        assert lsa < models["fastText, skip-gram"][method]
    for name, found in models.items():
        pairs = [f"{found[each]:.3f}" for each in ("WordSim-353", "MEN", "SimLex-999")]
        answers = [f"{found[each]:.1%}".replace("%", " %") for each in ("3CosAdd", "3CosMul")]
        assert f"| {name} | {' | '.join([*pairs, *answers])} | {found['CPU seconds']:.1f} |" in page
