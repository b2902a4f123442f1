"""Models from disk: loaded when the server starts, and again when they have been replaced.

``save`` and ``foreword train`` replace a folder in one step. Until the new model is loaded and warm, requests are
answered by the old one, and so is every request that has begun. A model that cannot be loaded changes nothing but the
log and a counter.
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

import numpy as np

from foreword.errors import ForewordError, InputError, SettingError
from foreword.serve.answers import WORK
from foreword.serve.metrics import Metrics
from foreword.serve.registry import Entry, Registry, entry_of
from foreword.speech.wav import Sound
from foreword.storage.atomic import MODEL_JSON
from foreword.storage.folder import load
from foreword.text.remote import is_address, local_copy

log = logging.getLogger("foreword.serve")

Stamp: TypeAlias = tuple[int, int, int]
"""Inode, time and size of a file: they change when it is replaced."""

NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

TEXTS = ("a b", "Ä b, 3")
"""Questions that warm a model up, one by one and together: ASCII and other text may use different kernels."""

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
    """A model to serve, and its name."""

    name: str
    path: str


def sources_of(arguments: Sequence[str]) -> list[Source]:
    """Parse ``[NAME=]MODEL``; the default name is that of the folder or file."""
    sources: list[Source] = []
    for each in arguments:
        name, equals, path = each.partition("=")
        if not equals or Path(each).exists():
            name, path = Path(os.path.realpath(each)).name, each
        if NAMES.fullmatch(name) is None:
            raise SettingError(
                f"{name!r} cannot name a model: expected letters, digits, '.', '_' and '-', as in NAME={path}"
            )
        if name in (other.name for other in sources):
            raise SettingError(f"two models are called {name}: say NAME={path} with another name")
        if is_address(path):
            path = str(local_copy(path))
        if not Path(path).exists():
            raise InputError(f"{path}: no such file or folder")
        sources.append(Source(name, path))
    return sources


class Reloader:
    """Loads the models of a registry, and loads them again when they change."""

    def __init__(self, registry: Registry, sources: Sequence[Source], metrics: Metrics) -> None:
        self.registry, self.sources, self.metrics = registry, sources, metrics
        self.stamps: dict[str, Stamp | None] = {}
        registry.coming = frozenset(source.name for source in sources)

    def load_all(self) -> None:
        """Load every model; raise the error of the first that cannot be loaded."""
        for source in self.sources:
            self.stamps[source.name] = stamp(source.path)
            try:
                self.registry.put(opened(source))
            except BaseException:
                self.metrics.load(source.name, ok=False)
                raise
            self.metrics.load(source.name, ok=True)

    def reload_changed(self) -> None:
        """Load the models that have been replaced."""
        for source in self.sources:
            found = stamp(source.path)
            if found is None or found == self.stamps.get(source.name):
                continue
            self.stamps[source.name] = found
            try:
                entry = opened(source)
            except (ForewordError, OSError, ValueError, MemoryError) as error:
                self.metrics.load(source.name, ok=False)
                log.error("%s stays as it was: %s", source.name, " ".join(str(error).split()))
                continue
            self.registry.put(entry)
            self.metrics.load(source.name, ok=True)
            log.info("%s has been loaded again", source.name)

    async def watch(self, seconds: float) -> None:
        """Check for replaced models every so often."""
        while True:
            await asyncio.sleep(seconds)
            await in_daemon_thread(self.reload_changed)


async def in_daemon_thread(work: Callable[[], None]) -> None:
    """Run work in a thread that the end of the server does not wait for: a large model takes minutes to load."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def deliver(error: BaseException | None) -> None:
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
            loop.call_soon_threadsafe(deliver, error)

    Thread(target=run, name="foreword-loading", daemon=True).start()
    await done


def stamp(path: str) -> Stamp | None:
    """Return the stamp of a model on disk, None in the middle of a rename."""
    for file in (Path(path, MODEL_JSON), Path(path)):
        try:
            facts = file.stat()
        except OSError:
            continue
        return facts.st_ino, facts.st_mtime_ns, facts.st_size
    return None


def opened(source: Source) -> Entry:
    """Load a model and warm it up."""
    entry = entry_of(source.name, load(source.path, verify=True))
    if not entry.can:
        raise InputError(f"{source.path}: its kind is {entry.kind}, which answers no text: serve a model that reads it")
    warm(entry)
    return entry


def warm(entry: Entry) -> None:
    """Ask the model everything once, so that kernels are compiled before a client waits for them."""
    for ability in entry.can:
        for options in WARMING.get(ability, ()):
            for texts in (TEXTS[:1], TEXTS[1:], TEXTS):
                WORK[ability](entry, texts, options, 1000)
    if "transcribe" in entry.can:
        entry.model.transcribe([Sound(np.zeros(4000, np.float32), 8000)])
    if "nearest" in entry.can and len(entry.vectors):
        WORK["nearest"](entry, [entry.vectors.word(0)], {"k": 1}, 1000)
