"""A comparison as the terminal shows it: a table that fills as models finish, or a line a model where there is none."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from foreword.evaluate.compare.results import Comparison, ComparisonProgress, Event, Mixed, Row, TextFacts

NUMBERS = ("perplexity", "95 %", "bits/byte", "parameters", "epochs", "learns tok/s", "scores tok/s")
BAR = 12
"""Columns of a model's progress."""

ROOM = ((135, 7), (110, 4), (95, 2), (0, 1))
"""How wide a terminal must be for each number of columns next to the progress; the final table has all."""


def result_of(events: Iterable[Event]) -> Comparison:
    """Return the last event; Ctrl-C before it reports how to resume."""
    from foreword.evaluate.compare.results import Comparison, Row

    done, last = 0, None
    try:
        for last in events:
            done += isinstance(last, Row)
    except KeyboardInterrupt:
        models = "no model is done" if not done else f"{done} model{'s are' if done > 1 else ' is'} done"
        raise KeyboardInterrupt(f"stopped: {models}, and the same command continues from there") from None
    assert isinstance(last, Comparison)
    return last


def printed(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the same events, and print a line for each model that is done."""
    from foreword.cli.printing import print_message
    from foreword.evaluate.compare.results import Plan, Row
    from foreword.picture.picture import duration, readable

    done = of = 0
    for event in events:
        match event:
            case Plan():
                of = len(event.titles)
            case Row():
                done += 1
                took = duration(event.train_seconds)
                print_message(
                    f"{done} of {of}: {event.title}, perplexity {readable(event.measures.perplexity)}, learnt in {took}"
                )
        if line := remark(event):
            print_message(line)
        yield event


def remark(event: Event) -> str | None:
    """Return the message of an event that belongs in no table, or None."""
    from foreword.evaluate.compare.conclusion import TOO_MANY_UNKNOWN, unknown_warning
    from foreword.evaluate.compare.results import Resumed, Sampled, TextFacts
    from foreword.picture.report_tables import sampled_in_words, shortened_in_words

    if isinstance(event, TextFacts):
        remarks = []
        if event.test_share < 1:
            remarks.append(shortened_in_words(event).removesuffix(".") + " (--time-budget gives more)")
        if event.unknown_share > TOO_MANY_UNKNOWN:
            remarks.append(f"warning: {unknown_warning(event.unknown_share).removesuffix('.')}")
        return "\n".join(remarks) or None
    if isinstance(event, Sampled):
        sampled = sampled_in_words(event).removesuffix(".")
        return f"a large text: {sampled[0].lower()}{sampled[1:]} (--sample takes more)"
    if isinstance(event, Resumed):
        return f"a stopped run is resumed, with {', '.join(event.titles)} (--fresh trains them again)"
    return None


def drawn(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the same events, and draw them on the terminal meanwhile; the drawing is erased at the end."""
    from rich.console import Console
    from rich.live import Live

    from foreword.evaluate.compare.results import ComparisonProgress, Plan, Row, TextFacts

    console = Console(stderr=True)
    scene = Scene(console.width)
    with Live(console=console, transient=True, get_renderable=scene.draw) as live:
        for event in events:
            match event:
                case Plan():
                    scene.titles = event.titles
                case ComparisonProgress():
                    scene.now = event
                case TextFacts():
                    scene.facts = event
                case Row():
                    scene.rows.append(event)
            if line := remark(event):
                live.console.print(line, highlight=False, markup=False)
            yield event


class Scene:
    """What the terminal shows: every model of the plan, done, learning with the time it still takes, or waiting."""

    def __init__(self, width: int) -> None:
        self.numbers = next(count for least, count in ROOM if width >= least)
        self.titles: tuple[str, ...] = ()
        self.facts: TextFacts | None = None
        self.rows: list[Row] = []
        self.now: ComparisonProgress | None = None
        self.began = time.monotonic()

    def draw(self) -> RenderableType:
        """Return what the terminal shows of the comparison now."""
        from rich.console import Group
        from rich.text import Text

        from foreword.picture.picture import duration

        phase = "getting ready" if self.now is None else self.now.phase
        line = Text(f"{phase} · {duration(time.monotonic() - self.began)} so far")
        return line if self.facts is None else Group(self.table(self.facts), line)

    def table(self, facts: TextFacts) -> Table:
        """Return the table of the models that have finished."""
        from foreword.picture.picture import duration

        table = _new_table(facts, NUMBERS[: self.numbers])
        table.add_column("progress", no_wrap=True)
        for row in self.rows:
            table.add_row(*_cells(row)[: self.numbers + 1], duration(row.train_seconds))
        for title in self.titles[len(self.rows) :]:
            state = self._state(title)
            table.add_row(title, *[""] * self.numbers, state, style="dim" if state == "" else None)
        return table

    def _state(self, title: str) -> RenderableType:
        from rich.text import Text

        from foreword.picture.picture import duration

        now = self.now
        if now is None or now.model is None or self.titles[now.model] != title:
            return ""
        if now.share is None:
            return "learning"
        if now.share >= 1:
            return "testing"
        left = "" if now.left is None else f"{duration(now.left)} left"
        full = round(BAR * now.share)
        bar = Text.assemble(("━" * full, "cyan"), ("━" * (BAR - full), "dim"), f" {now.share:.0%} {left}")
        bar.no_wrap = True
        return bar


# The table


def table_of(text: TextFacts, rows: Iterable[Row], mixed: Mixed | None = None) -> Table:
    """Return the table of all models, the best in bold, with the mixture of the best two."""
    from foreword.picture.picture import readable

    rows = list(rows)
    table = _new_table(text)
    best = min((row.measures.perplexity for row in rows), default=None)
    for row in rows:
        table.add_row(*_cells(row), style="bold" if row.measures.perplexity == best and len(rows) > 1 else None)
    if mixed is not None:
        titles = {row.name: row.title for row in rows}
        one, other = (titles[name] for name in mixed.names)
        table.add_section()
        table.add_row(f"{mixed.weight:.0%} {one} + {1 - mixed.weight:.0%} {other}", readable(mixed.perplexity))
    return table


def _new_table(text: TextFacts, numbers: tuple[str, ...] = NUMBERS) -> Table:
    from foreword.cli.printing import plain_table
    from foreword.picture.report_tables import tested_in_words

    title = (
        f"{text.name}: {text.documents:,} documents, {text.units:,} {text.unit}s, {text.types:,} different\n"
        f"{tested_in_words(text).removesuffix('.')}"
    )
    return plain_table("model", *numbers, numbers=numbers, title=title)


def _cells(row: Row) -> list[str]:
    from foreword.picture.picture import brief, readable
    from foreword.picture.report_tables import epochs_in_words, interval_in_words

    return [
        row.title,
        readable(row.measures.perplexity),
        interval_in_words(row.interval),
        readable(row.measures.bits_per_byte),
        brief(row.parameters),
        epochs_in_words(row),
        brief(row.train_tokens_per_second),
        brief(row.score_tokens_per_second),
    ]
