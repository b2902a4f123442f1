"""The paragraph that ends a comparison: every number in it was measured, and the reasons fit the text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foreword.evaluate.compare.conclusion import conclusion, unknown_warning
from foreword.evaluate.compare.ladder import compare
from foreword.evaluate.compare.results import Comparison, Curve, Growth, Lead, Mixed, Row

DOCUMENTS = [f"the {animal} saw the {thing} and ran" for animal in ("cat", "dog", "owl") for thing in ("mat", "hat")]


@pytest.fixture(scope="module")
def counted() -> Comparison:
    *_, last = compare(DOCUMENTS * 10, models=["unigram", "5-gram"], wordlists=False)
    assert isinstance(last, Comparison)
    return last


def growth(unseen: float) -> tuple[Growth, ...]:
    return (Growth(4, 10**6, 100, 50, unseen),)


def with_network(comparison: Comparison, perplexity: float, epochs: float, valid_at: float = 1.0) -> Comparison:
    """Return the comparison with a network of that perplexity, and the lead it then has or has not."""
    unigram, best = comparison.rows
    row = replace(
        best, name="gru", title="GRU", epochs=epochs, train_seconds=10.0,
        measures=replace(best.measures, perplexity=perplexity), curve=Curve(((1.0, 9.0),), ((10 * valid_at, 8.0),)),
    )  # fmt: skip
    rows = (unigram, best, row)
    first, second, *_ = sorted(rows, key=lambda each: each.measures.perplexity)
    ratio = second.measures.perplexity / first.measures.perplexity
    text = replace(comparison.text, train_tokens=500_000, test_tokens=20_000)
    return replace(comparison, text=text, rows=rows, lead=Lead(first.name, second.name, ratio, (ratio - 0.01, ratio)))


def perplexity_of(comparison: Comparison) -> float:
    return comparison.rows[1].measures.perplexity


def test_it_names_the_winner_with_numbers_that_were_measured(counted: Comparison) -> None:
    said, best = counted.conclusion, counted.rows[1]
    assert said.startswith(f"{best.title} predicts this text best: perplexity {best.measures.perplexity:.3g} (95 %")
    assert counted.lead is not None
    assert f"{100 * (1 - 1 / counted.lead.ratio):.0f} % below Unigram" in said
    assert "try more text" in said


def test_counting_wins_where_the_text_repeats_itself(counted: Comparison) -> None:
    comparison = replace(with_network(counted, 2 * perplexity_of(counted), 8.0), growth=growth(0.6))
    assert "the text repeats itself: 40% of the sequences of 4 tokens" in conclusion(comparison)


def test_counting_wins_where_networks_had_no_time_or_no_text(counted: Comparison) -> None:
    few = replace(with_network(counted, 2 * perplexity_of(counted), 1.5), growth=growth(0.95))
    assert "the networks read the 500,000 training tokens 1.5 times at most; they need more time" in conclusion(few)
    many = replace(with_network(counted, 2 * perplexity_of(counted), 30.0), growth=growth(0.95))
    assert "little text to learn from" in conclusion(many)


def test_networks_win_where_sequences_do_not_recur(counted: Comparison) -> None:
    comparison = replace(with_network(counted, 0.5 * perplexity_of(counted), 8.0), growth=growth(0.95))
    said = conclusion(comparison)
    assert said.startswith("GRU predicts this text best")
    assert "only 5% occur in the training part" in said
    assert "were still improving" in said


def test_a_difference_that_may_be_chance_is_called_so(counted: Comparison) -> None:
    comparison = with_network(counted, 1.01 * perplexity_of(counted), 8.0)
    assert comparison.lead is not None
    unsure = replace(comparison, lead=replace(comparison.lead, interval=(0.98, 1.04)))
    assert "cannot tell from none (95 % interval -2.0 to 3.8 %)" in conclusion(unsure)


def test_a_mixture_that_is_better_is_told(counted: Comparison) -> None:
    perplexity = 0.8 * perplexity_of(counted)
    mixed = Mixed(("unigram", "5-gram"), 0.5, perplexity, (9.0, 8.0), (0.5,), (perplexity,))
    assert "Mixed, Unigram and 5-gram, Kneser-Ney reach" in conclusion(replace(counted, mixed=mixed))
    assert "20 % lower still" in conclusion(replace(counted, mixed=mixed))


def test_many_unknown_words_are_warned_of(counted: Comparison) -> None:
    text = replace(counted.text, test_unknown=10, test_tokens=100)
    said = conclusion(replace(counted, text=text))
    assert unknown_warning(0.1) in said
    assert "--tokenizer" in said


def test_nothing_is_said_where_nothing_is_finite(counted: Comparison) -> None:
    def broken(row: Row) -> Row:
        return replace(row, measures=replace(row.measures, perplexity=float("inf")))

    assert conclusion(replace(counted, rows=tuple(map(broken, counted.rows)))) == ""
    assert conclusion(replace(counted, rows=())) == ""
