"""Questions that wait are answered together, and as if they were alone."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import httpx
import pytest

from foreword.errors import ForewordError, InputError
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.serve.answers import WORK, TooLongError
from foreword.serve.batches import Batcher, BusyError, generated
from foreword.serve.bodies import AskGenerate
from foreword.serve.limits import Limits
from foreword.serve.registry import Entry, Registry, entry_of
from foreword.tokens.words import WordTokenizer

from .conftest import Running

Found = TypeVar("Found")

TEXTS = [f"the list of {'names and ' * size}values" for size in range(20)]
ASKED: list[tuple[str, str, dict[str, Any]]] = [
    ("ngram", "score", {}),
    ("lstm", "score", {}),
    ("lstm-labels", "classify", {"k": 2}),
    ("bilstm", "tag", {"split": "space"}),
    ("dates", "translate", {"width": 2, "max_tokens": 12}),
    ("elmo", "embed", {"split": "space", "pool": "mean"}),
]


def numbers(answer: Any) -> list[Any]:
    """What is in an answer, flat, so that it can be compared to a rounding."""
    if isinstance(answer, dict):
        return [each for name in sorted(answer) for each in numbers(answer[name])]
    return [each for value in answer for each in numbers(value)] if isinstance(answer, list) else [answer]


def in_loop(work: Callable[[], Coroutine[Any, Any, Found]]) -> Found:
    """Run it in a thread: a browser that another test has opened leaves a loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


@pytest.mark.parametrize(("name", "ability", "options"), ASKED)
def test_together_or_alone_is_the_same(name: str, ability: str, options: dict[str, Any], registry: Registry) -> None:
    entry = registry[name]
    together = WORK[ability](entry, TEXTS, options, 1000)
    alone = [WORK[ability](entry, [text], options, 1000)[0] for text in TEXTS]
    for one, other in zip(together, alone, strict=True):
        assert numbers(one) == [pytest.approx(each, abs=1e-5) for each in numbers(other)]


@pytest.mark.parametrize("name", ["ngram", "lstm"])
def test_those_who_wait_are_computed_in_one_call(name: str, registry: Registry) -> None:
    async def asking() -> tuple[list[Any], Batcher]:
        batcher = Batcher()
        found = await asyncio.gather(*(batcher.ask(registry[name], "score", [text]) for text in TEXTS))
        batcher.close()
        return found, batcher

    found, batcher = in_loop(asking)
    sizes = batcher.metrics.batches[name, "score"]
    assert sum(sizes.counts) == 1
    assert sizes.sum == len(TEXTS)
    for answers, alone in zip(found, WORK["score"](registry[name], TEXTS, {}, 1000), strict=True):
        assert answers[0] == pytest.approx(alone, abs=1e-5)


def test_a_batch_has_an_end(registry: Registry) -> None:
    async def asking() -> Batcher:
        batcher = Batcher(Limits(batch=6))
        await asyncio.gather(*(batcher.ask(registry["lstm"], "score", [text, text]) for text in TEXTS))
        batcher.close()
        return batcher

    sizes = in_loop(asking).metrics.batches["lstm", "score"]
    assert sizes.sum == len(TEXTS)
    assert sum(sizes.counts) == -(-len(TEXTS) // 3)


def test_ever_new_options_leave_nothing_behind(registry: Registry) -> None:
    """There was a queue for each pair of k and temperature, for ever."""
    batcher = Batcher()

    async def ask() -> None:
        for number in range(50):
            await batcher.ask(registry["ngram"], "next", ["the"], k=3, temperature=1 + number / 50)
            await batcher.ask(registry["ngram"], "score", ["the"])

    in_loop(ask)
    assert batcher._queues[registry["ngram"]] == {}


def test_a_model_that_was_replaced_is_freed(texts: list[str]) -> None:
    """A queue kept the model of each earlier version: sixty replacements took 800 MB."""
    batcher = Batcher()

    def asked() -> weakref.ref[Entry]:
        entry = entry_of("a", TextLM(WordTokenizer(), NgramLM(2)).fit(texts))
        in_loop(lambda: batcher.ask(entry, "score", ["the"]))
        in_loop(lambda: batcher.ask(entry, "next", ["the"], k=2, temperature=1.0))
        return weakref.ref(entry)

    entry = asked()
    gc.collect()
    assert entry() is None


def test_who_would_wait_for_several_batches_is_refused(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """One full batch may wait, however slow the model is; what comes then is told to come back."""
    gate = threading.Event()

    def waiting(entry: Any, texts: Any, options: Any, most: int) -> list[Any]:
        gate.wait(5)
        return [{} for _ in texts]

    monkeypatch.setitem(WORK, "score", waiting)

    async def asking() -> list[Any]:
        batcher = Batcher(Limits(batch=4))
        asked = [asyncio.ensure_future(batcher.ask(registry["lstm"], "score", ["a"]))]
        await asyncio.sleep(0.05)  # it is being computed
        (queue,) = batcher._queues[registry["lstm"]].values()
        queue.seconds = 1.0
        asked += [asyncio.ensure_future(batcher.ask(registry["lstm"], "score", ["a"])) for _ in range(6)]
        await asyncio.sleep(0)
        gate.set()
        found: list[Any] = await asyncio.gather(*asked, return_exceptions=True)
        batcher.close()
        return found

    assert [type(each) for each in in_loop(asking)] == [list] * 5 + [BusyError] * 2


def test_many_texts_are_generated_in_shorter_turns(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[float] = []

    def taking(entry: Any, asked: Any, stream: Any, most: int, turn: float) -> Any:
        turns.append(turn)
        return iter(()), ["a"], False

    monkeypatch.setattr("foreword.serve.batches._take_turn", taking)

    async def asking(count: int) -> None:
        batcher = Batcher(Limits(queue=0.1))
        asked = AskGenerate.model_validate({"model": "ngram", "prompt": ""})
        streams = [generated(batcher, registry["ngram"], asked) for _ in range(count)]
        await asyncio.gather(*(anext(stream) for stream in streams))
        await asyncio.gather(*(anext(stream) for stream in streams))
        assert batcher.generating == count
        for stream in streams:
            await stream.aclose()  # type: ignore[attr-defined]
        assert batcher.generating == 0
        batcher.close()

    in_loop(lambda: asking(2))
    assert turns[-1] == 0.02
    in_loop(lambda: asking(50))
    assert turns[-1] == pytest.approx(0.002)
    in_loop(lambda: asking(200))
    assert turns[-1] == 0.001


def test_one_bad_question_harms_no_other(registry: Registry) -> None:
    async def asking() -> list[Any]:
        batcher = Batcher(Limits(tokens=10))
        long = "the " * 11
        questions = [["the list"], [long], ["a value"], ["the list", long]]
        found = await asyncio.gather(
            *(batcher.ask(registry["ngram"], "score", each) for each in questions), return_exceptions=True
        )
        words = [["man"], ["oxen"], ["king"]]
        found += await asyncio.gather(
            *(batcher.ask(registry["vectors"], "nearest", each, k=1) for each in words), return_exceptions=True
        )
        batcher.close()
        return found

    found = in_loop(asking)
    assert [type(each) for each in found] == [list, TooLongError, list, TooLongError, list, InputError, list]


def test_a_batch_that_fails_is_asked_one_by_one(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = WORK["score"]

    def picky(entry: Any, texts: Any, options: Any, most: int) -> Any:
        if "bad" in texts:
            raise ForewordError("a bad one")
        return whole(entry, texts, options, most)

    monkeypatch.setitem(WORK, "score", picky)

    async def asking() -> list[Any]:
        batcher = Batcher()
        texts = ["the list", "bad", "a value"]
        found: list[Any] = await asyncio.gather(
            *(batcher.ask(registry["ngram"], "score", [each]) for each in texts), return_exceptions=True
        )
        return found

    assert [type(each) for each in in_loop(asking)] == [list, ForewordError, list]


def test_a_model_that_is_busy_does_not_hold_the_loop(registry: Registry) -> None:
    entry = registry["ngram"]

    async def asking() -> list[Any]:
        batcher = Batcher()
        entry.lock.acquire()
        threading.Timer(0.2, entry.lock.release).start()
        asked = asyncio.ensure_future(batcher.ask(entry, "score", ["the list"]))
        turns = 0
        while not asked.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert turns > 3
        return await asked

    assert len(in_loop(asking)) == 1


def test_many_clients_are_batched_over_http(running: Running, registry: Registry) -> None:
    def client(number: int) -> float:
        with httpx.Client(timeout=60) as asking:
            body = {"model": "lstm", "text": TEXTS[number % len(TEXTS)]}
            for _ in range(3):
                found = asking.post(f"{running.address}/api/score", json=body).json()
        score: float = found["results"][0]["score"]
        return score

    before = sum(running.service.metrics.batches["lstm", "score"].counts)
    with ThreadPoolExecutor(24) as pool:
        found = list(pool.map(client, range(24)))
    calls = sum(running.service.metrics.batches["lstm", "score"].counts) - before
    assert calls < 72
    wanted = [each["score"] for each in WORK["score"](registry["lstm"], TEXTS, {}, 1000)]  # type: ignore[index]
    assert found == [pytest.approx(wanted[number % len(TEXTS)], abs=1e-5) for number in range(24)]
