"""Models from disk: loaded when the server begins, and again when what is there has been replaced.

``save`` and ``foreword train`` put a folder in the place of another in one step. Whoever asks meanwhile is answered by
the old model, and so is a request that has begun; when the new one is loaded and warm it takes over. One that cannot be
loaded changes nothing but the log and a count.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TypeAlias

from foreword.errors import ForewordError, InputError, SettingError
from foreword.serve.answers import WORK
from foreword.serve.metrics import Metrics
from foreword.serve.registry import Entry, Shelf, entry_of
from foreword.storage.atomic import MODEL_JSON
from foreword.storage.folder import load

log = logging.getLogger("foreword.serve")

Seal: TypeAlias = tuple[int, int, int]
"""By which one file is told from another in its place: its number, time and size."""

NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

TEXTS = ("a b", "Ä b, 3")
"""Asked first, alone and together: text that is ASCII and text that is not may take different kernels."""

WARMING: dict[str, tuple[dict[str, object], ...]] = {
    "score": ({},),
    "surprisal": ({},),
    "next": ({"k": 1, "temperature": 1.0},),
    "tokenize": ({},),
    "classify": ({"k": 1}, {"k": 2}),
    "tag": ({"split": "punctuation"}, {"split": "space"}),
    "translate": ({"width": 1, "max_tokens": 2}, {"width": 2, "max_tokens": 2}),
    "embed": ({"split": "punctuation", "pool": "words"},),
    "search": ({"k": 1},),
}


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    path: str


def sources_of(said: Sequence[str]) -> list[Source]:
    """``[NAME=]MODEL`` as the operator says it; without a name that of the folder or file."""
    sources: list[Source] = []
    for each in said:
        name, equals, path = each.partition("=")
        if not equals or Path(each).exists():
            name, path = Path(os.path.realpath(each)).name, each
        if NAMES.fullmatch(name) is None:
            raise SettingError(
                f"{name!r} cannot name a model: expected letters, digits, '.', '_' and '-', as in NAME={path}"
            )
        if name in (other.name for other in sources):
            raise SettingError(f"two models are called {name}: say NAME={path} with another name")
        if not Path(path).exists():
            raise InputError(f"{path}: no such file or folder")
        sources.append(Source(name, path))
    return sources


class Keeper:
    """The shelf as it should be, from where the operator said."""

    def __init__(self, shelf: Shelf, sources: Sequence[Source], metrics: Metrics) -> None:
        self.shelf, self.sources, self.metrics = shelf, sources, metrics
        self.seals: dict[str, Seal | None] = {}
        shelf.coming = frozenset(source.name for source in sources)

    def load_all(self) -> None:
        """An error if one of them cannot be loaded."""
        for source in self.sources:
            self.seals[source.name] = seal(source.path)
            try:
                self.shelf.put(opened(source))
            except BaseException:
                self.metrics.load(source.name, ok=False)
                raise
            self.metrics.load(source.name, ok=True)

    def look(self) -> None:
        """Load again what has been replaced."""
        for source in self.sources:
            there = seal(source.path)
            if there is None or there == self.seals.get(source.name):  # in the middle of a rename there is nothing
                continue
            self.seals[source.name] = there
            try:
                entry = opened(source)
            except (ForewordError, OSError, ValueError, MemoryError) as error:
                self.metrics.load(source.name, ok=False)
                log.error("%s stays as it was: %s", source.name, " ".join(str(error).split()))
                continue
            self.shelf.put(entry)
            self.metrics.load(source.name, ok=True)
            log.info("%s has been loaded again", source.name)

    async def watch(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            await beside(self.look)


async def beside(work: Callable[[], None]) -> None:
    """Work in a thread that nobody waits for when the server ends: a large model takes minutes to load."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell(error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as found:
            error = found
        with suppress(RuntimeError):  # the loop may have ended meanwhile
            loop.call_soon_threadsafe(tell, error)

    Thread(target=run, name="foreword-loading", daemon=True).start()
    await done


def seal(path: str) -> Seal | None:
    for place in (Path(path, MODEL_JSON), Path(path)):
        try:
            facts = place.stat()
        except OSError:
            continue
        return facts.st_ino, facts.st_mtime_ns, facts.st_size
    return None


def opened(source: Source) -> Entry:
    """A model that is ready to be asked."""
    entry = entry_of(source.name, load(source.path))
    if not entry.can:
        raise InputError(f"{source.path}: its kind is {entry.kind}, which answers no text: serve a model that reads it")
    warm(entry)
    return entry


def warm(entry: Entry) -> None:
    """Ask once all that can be asked: kernels and networks are made ready now, and not while a client waits."""
    for ability in entry.can:
        for options in WARMING.get(ability, ()):
            for texts in (TEXTS[:1], TEXTS[1:], TEXTS):
                WORK[ability](entry, texts, options, 1000)
    if "nearest" in entry.can and len(entry.vectors):
        WORK["nearest"](entry, [entry.vectors.word(0)], {"k": 1}, 1000)
