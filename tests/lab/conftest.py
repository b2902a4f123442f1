"""A real server with small models, and a real browser."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httptools", reason="httptools is not installed: pip install 'foreword[lab]'")

import httpx

from foreword.hmm.model import HMM
from foreword.lab.app import Lab, lab_service
from foreword.lab.cells import page_data, trained_cells
from foreword.lab.trainings import LearningText, small_bilstm
from foreword.lab.translating import date_translator, dates
from foreword.lab.units import UnitReader
from foreword.neural.recurrent import RecurrentLM
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.serve.registry import Registry
from foreword.serve.running import Server, address_of, listening
from foreword.tag.hmm import HMMTagger
from foreword.text.embedded import embedded_text
from foreword.vectors.word2vec import Word2Vec

TREEBANK = [
    "The/DET old/ADJ man/NOUN reads/VERB the/DET book/NOUN ./PUNCT",
    "The/DET old/NOUN man/VERB the/DET boats/NOUN ./PUNCT",
    "A/DET young/ADJ dog/NOUN sees/VERB a/DET cat/NOUN in/ADP the/DET park/NOUN ./PUNCT",
    "She/PRON reads/VERB in/ADP the/DET old/ADJ park/NOUN ./PUNCT",
]


class Running:
    """A lab that is served in this process. address: where, with a slash at its end."""

    def __init__(self, lab: Lab, token: str | None = None) -> None:
        self.lab = lab
        self.door = listening("127.0.0.1", 0)
        self.address = address_of(self.door, "127.0.0.1", None)
        self.server = Server(lab_service(lab, token=token), grace=1.0)
        self.thread = threading.Thread(target=self.server.run, args=(self.door,), daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(timeout=5)
        self.door.close()
        self.lab.close()

    def ask(self, path: str, body: Any = None) -> Any:
        """What the page would be told."""
        answer = httpx.get(self.address + path) if body is None else httpx.post(self.address + path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json()


def small_registry(text: LearningText) -> Registry:
    registry = Registry()
    training = replace(RecurrentLM.TRAINING, epochs=1, steps=20, sampled=200)
    models: dict[str, Any] = {
        "bigram": NgramLM(2),
        "hmm": HMM(6, iterations=4, threads=1),
        "lstm": RecurrentLM("lstm", 16, 16, layers=1, training=training, device="cpu"),
    }
    for name, model in models.items():
        registry.add(name, TextLM(text.tokenizer, model.fit(text.train)), name.upper())
    for kind in ("skip-gram", "cbow"):
        trained = Word2Vec(20, model=kind, window=3, epochs=3, sample=1e-2).fit(text.train)
        registry.add(kind, trained, kind.capitalize())
    pairs = [[tuple(word.rsplit("/", 1)) for word in line.split()] for line in TREEBANK]
    words, tags = ([[pair[side] for pair in line] for line in pairs] for side in (0, 1))
    registry.add("tagger", HMMTagger().fit(words, tags), "Small tagger")
    registry.add("bilstm-tagger", small_bilstm(epochs=20).fit(words, tags), "BiLSTM tagger")
    registry.add("dates", date_translator("general", seconds=0.7).fit(*dates(300)), "Dates")
    return registry


@pytest.fixture(scope="session")
def texts() -> list[str]:
    return embedded_text("test")


@pytest.fixture(scope="session")
def running(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    text = LearningText(lambda: texts)
    lab = Lab(small_registry(text), text, tmp_path_factory.mktemp("lab"), starters=False)
    lab.cells = page_data(trained_cells(texts, seconds=0.4))
    lab.units = UnitReader.train(texts, seconds=1.5)
    served = Running(lab)
    yield served
    served.close()


class Visit:
    """A page, with what it complained of and what it asked the network for."""

    def __init__(self, browser: Any, **settings: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.waiting: set[Any] = set()
        self.page.on("request", self._asked)
        self.page.on("requestfinished", self._answered)
        self.page.on("requestfailed", self._answered)

    def _hear(self, told: Any) -> None:
        if told.type in ("error", "warning"):
            self.complaints.append(told.text)

    def _asked(self, request: Any) -> None:
        self.requests.append(request.url)
        self.waiting.add(request)

    def _answered(self, request: Any) -> None:
        self.waiting.discard(request)

    def settle(self) -> None:
        """Until the page has asked what it asks after a pause, and every answer is there and drawn."""
        self.page.wait_for_timeout(350)
        for _ in range(600):
            if not self.waiting:
                break
            self.page.wait_for_timeout(50)
        self.page.wait_for_selector("section.view:not(.loading)")
        self.page.wait_for_timeout(50)

    def open(self, address: str, panel: str = "") -> Any:
        self.page.goto(address + (f"#{panel}" if panel else ""))
        self.page.wait_for_selector("section.view h2")
        return self.page

    def close(self) -> None:
        self.context.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    visited = Visit(browser)
    yield visited
    visited.close()


@pytest.fixture(scope="session")
def exported_page(running: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from foreword.lab.page import write_exported

    file = tmp_path_factory.mktemp("export") / "cells.html"
    write_exported(file, "cells_panel", {"/api/cells": running.lab.cells})
    return file
