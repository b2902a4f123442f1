"""What a comparison found, in a paragraph: what won and by how much, why, and what to try next.

Every sentence states a number that was measured. The reasons are about the text: how often its word sequences recur,
how much of it there is, how much of it is unknown; and about the training: how often networks could read it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from foreword.evaluate.compare.results import Comparison, Lead, Row

TOO_MANY_UNKNOWN = 0.05
"""Share of unknown test tokens above which perplexities say little."""

FEW_TOKENS = 1000
"""A test below this is called short: one unlucky word moves the perplexity of a thousand tokens by a percent."""

LITTLE_TEXT = 100_000
"""Training tokens below which more text helps every model."""

RUN = 4
"""Length of the token sequences by whose recurrence repetition is measured."""

REPETITIVE = 0.15
"""Share of such sequences of the test part that the training part has, above which a text is called repetitive: the
Penn Treebank has 0.11, Tiny Shakespeare 0.05, documentation of programs 0.3."""

STILL_LEARNING = 0.85
"""A network was still improving if its best evaluation came after this share of its training time."""


def conclusion(comparison: Comparison) -> str:
    """Return the paragraph; empty where no model has a finite perplexity."""
    best = min(comparison.rows, key=lambda row: row.measures.perplexity, default=None)
    if best is None or not math.isfinite(best.measures.perplexity):
        return ""
    return " ".join([_winner(comparison, best), *_reasons(comparison, best), *_next_steps(comparison, best)])


# What won


def _winner(comparison: Comparison, best: Row) -> str:
    low, high = best.interval
    tested = f"{comparison.text.test_tokens:,} test tokens"
    measured = f"perplexity {_number(best.measures.perplexity)} (95 % interval {_number(low)} to {_number(high)})"
    if comparison.lead is None:
        return f"{best.title} has {measured} on {tested}."
    lead, other = comparison.lead, _row(comparison, comparison.lead.next_best)
    return f"{best.title} predicts this text best: {measured} on {tested}, {_distance(lead, other)}."


def _distance(lead: Lead, other: Row) -> str:
    """Say how much lower the best perplexity is than the next best, and whether that is certain."""
    ahead, least, most = (100 * (1 - 1 / ratio) for ratio in (lead.ratio, *lead.interval))
    between = f"95 % interval {_percent(least)} to {_percent(most)} %"
    if lead.interval[0] <= 1:
        return f"{ahead:.1f} % below {other.title}, a difference that this test cannot tell from none ({between})"
    return f"{_percent(ahead)} % below {other.title} ({between})"


# Why


def _reasons(comparison: Comparison, best: Row) -> Iterator[str]:
    seen, text = _recurring(comparison), comparison.text
    networks = [row for row in comparison.rows if row.curve is not None]
    runs = f"sequences of {RUN} tokens in the test part"
    if best.curve is not None and seen is not None:
        yield (
            f"Of the {runs} only {seen:.0%} occur in the training part: a model that counts must often guess from "
            "fewer words, while a network also learns from words that are used alike."
            if seen < REPETITIVE
            else f"Although {seen:.0%} of the {runs} occur in the training part, the network also learns from words "
            "that are used alike."
        )
    elif networks and seen is not None:
        epochs = max(row.epochs for row in networks)
        read = f"the networks read the {text.train_tokens:,} training tokens {_number(epochs)} times at most"
        if seen >= REPETITIVE:
            yield f"Counting wins because the text repeats itself: {seen:.0%} of the {runs} occur in the training part."
        elif epochs < 3:
            yield f"Counting wins because {read}; they need more time than that."
        else:
            yield f"Counting wins because there is little text to learn from: {read}."
    if text.unknown_share > TOO_MANY_UNKNOWN:
        yield unknown_warning(text.unknown_share)


def unknown_warning(share: float) -> str:
    """Warn that perplexities look better than they are."""
    return (
        f"{share:.1%} of the test tokens are unknown words, which no model had to spell: perplexity and bits per byte "
        "look better than they are."
    )


def _recurring(comparison: Comparison) -> float | None:
    """Return the share of the test part's token sequences that the training part has; None if not counted."""
    unseen = next((row.unseen_share for row in comparison.growth if row.order == RUN), math.nan)
    return None if math.isnan(unseen) else 1 - unseen


# What to try next


def _next_steps(comparison: Comparison, best: Row) -> Iterator[str]:
    text, mixed = comparison.text, comparison.mixed
    if mixed is not None and mixed.perplexity < best.measures.perplexity:
        one, other = (_row(comparison, name).title for name in mixed.names)
        gain = 100 * (1 - mixed.perplexity / best.measures.perplexity)
        yield (
            f"Mixed, {one} and {other} reach {_number(mixed.perplexity)}, {_percent(gain)} % lower still, because "
            "they err at different words."
        )
    if text.unknown_share > TOO_MANY_UNKNOWN:
        yield "Next, try a tokenizer that can spell every word: foreword tokenize train, then --tokenizer."
    elif text.test_tokens < FEW_TOKENS or text.train_tokens < LITTLE_TEXT:
        yield f"Next, try more text: {text.train_tokens:,} tokens teach every model little."
    elif _still_learning(comparison):
        yield "Next, try a longer --time-budget: the networks were still improving when their time was over."
    else:
        yield "Next, try more text of the same kind, or train the best of these longer with foreword train."


def _still_learning(comparison: Comparison) -> bool:
    curves = [(row.curve, row.train_seconds) for row in comparison.rows if row.curve is not None and row.curve.valid]
    return any(curve.valid[-1][0] >= STILL_LEARNING * seconds for curve, seconds in curves)


def _row(comparison: Comparison, name: str) -> Row:
    return next(row for row in comparison.rows if row.name == name)


def _number(value: float) -> str:
    """Write a number with three figures."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _percent(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"
