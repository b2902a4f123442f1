"""A real server with small models of every family, in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("httptools", reason="httptools is not installed: pip install 'foreword[lab]'")

import httpx
import numpy as np
from tests.refusals import refused

from foreword.classify.naive_bayes import NaiveBayes
from foreword.fasttext.classifier import FastTextClassifier
from foreword.fasttext.vectors import FastText
from foreword.neural.recurrent import RecurrentLM
from foreword.ngram.model import NgramLM
from foreword.pipeline.classifier import TextClassifier
from foreword.pipeline.language import TextLM
from foreword.pipeline.search import TextSearch
from foreword.pipeline.speech import SpeechRecogniser
from foreword.serve.limits import Limits
from foreword.serve.loading import Reloader, warm
from foreword.serve.registry import Registry
from foreword.serve.routes import Service
from foreword.serve.running import Server, address_of, listening
from foreword.speech.recogniser import Recogniser
from foreword.speech.recordings import Recording
from foreword.speech.wav import Sound
from foreword.tag.bilstm import BiLSTMTagger
from foreword.tag.hmm import HMMTagger
from foreword.text.embedded import embedded_text
from foreword.tokens.words import WordTokenizer
from foreword.vectors.elmo import ELMo
from foreword.vectors.wordvectors import WordVectors

TREEBANK = [
    "The/DET old/ADJ man/NOUN reads/VERB the/DET book/NOUN ./PUNCT",
    "The/DET old/NOUN man/VERB the/DET boats/NOUN ./PUNCT",
    "A/DET young/ADJ dog/NOUN sees/VERB a/DET cat/NOUN in/ADP the/DET park/NOUN ./PUNCT",
    "She/PRON reads/VERB in/ADP the/DET old/ADJ park/NOUN ./PUNCT",
]
REVIEWS = [
    ("a good warm funny film", "good"), ("bad dull slow film", "bad"), ("good good fun", "good"),
    ("a dull bad plot", "bad"), ("funny and warm", "good"), ("slow and dull", "bad"),
]  # fmt: skip


class Running:
    """A server on a thread of this process. address: where, without a slash at its end."""

    def __init__(
        self,
        registry: Registry,
        *,
        token: str | None = None,
        limits: Limits | None = None,
        sources: Any = None,
        reload_every: float | None = None,
    ) -> None:
        self.lines: list[str] = []
        self.service = Service(registry, token=token, limits=limits, log=self.lines.append)
        self.reloader = None if sources is None else Reloader(registry, sources, self.service.metrics)
        self.server = Server(self.service, self.reloader, grace=3.0, reload_every=reload_every)
        self.door = listening("127.0.0.1", 0)
        self.address = address_of(self.door, "127.0.0.1").rstrip("/")
        self.port = int(self.door.getsockname()[1])
        self.thread = threading.Thread(target=self.server.run, args=(self.door,), daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.client = httpx.Client(base_url=self.address, timeout=30)  # one: making them takes longer than asking

    def close(self) -> None:
        self.client.close()
        self.server.should_exit = True
        self.thread.join(timeout=10)
        self.door.close()

    def ask(self, path: str, /, **body: Any) -> Any:
        answer = self.client.post(f"/api/{path}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def refused(self, path: str, status: int, /, **body: Any) -> str:
        return refused(self.client.post(f"/api/{path}", json=body), status)

    def metrics(self) -> str:
        return self.client.get("/metrics").text


def until(there: Callable[[], bool]) -> None:
    """Wait for what another thread does, but not for ever."""
    begin = time.monotonic()
    while not there():
        assert time.monotonic() - begin < 15
        time.sleep(0.005)


RECORDING = Recording("noise", Sound(np.random.default_rng(0).normal(0, 0.1, 4000).astype(np.float32), 8000), "a b")


@pytest.fixture(scope="session")
def texts() -> list[str]:
    return embedded_text("test")[:400]


@pytest.fixture(scope="session")
def models(texts: list[str]) -> dict[str, Any]:
    from foreword.classify.recurrent import RecurrentClassifier
    from foreword.lab.translating import date_translator, dates

    tokenizer = WordTokenizer(min_count=2).fit(texts)
    training = replace(RecurrentLM.TRAINING, epochs=1, steps=20, sampled=200)
    bigram = TextLM(tokenizer, NgramLM(3))
    bigram.model.fit(bigram.corpus(texts))
    lstm = TextLM(tokenizer, RecurrentLM("lstm", 16, 16, layers=1, training=training, device="cpu"))
    lstm.model.fit(lstm.corpus(texts))
    pairs = [[tuple(word.rsplit("/", 1)) for word in line.split()] for line in TREEBANK]
    words, tags = ([[pair[side] for pair in line] for line in pairs] for side in (0, 1))
    reviews, labels = [text for text, _ in REVIEWS], [label for _, label in REVIEWS]
    named = ["man", "woman", "king", "queen", "old", "the"]
    matrix = [[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1], [0.5, 0.2, 0.1]]
    fast = FastText(8, epochs=1, buckets=1000)
    return {
        "ngram": bigram,
        "lstm": lstm,
        "bayes": TextClassifier(model=NaiveBayes()).fit(reviews, labels),
        "fasttext-labels": FastTextClassifier(8, epochs=2, buckets=1000).fit(reviews, labels),
        "lstm-labels": RecurrentClassifier(cell="lstm", embedding=8, hidden=8, layers=1, epochs=1, min_count=1).fit(
            reviews, labels
        ),
        "hmm": HMMTagger().fit(words, tags),
        "bilstm": BiLSTMTagger(8, epochs=1).fit(words, tags),
        "vectors": WordVectors.of_words([word.encode() for word in named], np.array(matrix, np.float32)),
        "fasttext": fast.fit(TextLM(tokenizer, bigram.model).corpus(texts)),
        "elmo": ELMo(8, 1, epochs=1).fit([line.split() for line in texts[:20] if line.split()]),
        "dates": date_translator("general", seconds=0.5).fit(*dates(200)),
        "tones": SpeechRecogniser(WordTokenizer(), Recogniser(units=4, epochs=1)).fit([RECORDING]),
        "search": TextSearch().fit(texts[:50]),
        "words": tokenizer,
    }


@pytest.fixture(scope="session")
def registry(models: dict[str, Any]) -> Registry:
    registry = Registry()
    for name, model in models.items():
        warm(registry.add(name, model))
    return registry


@pytest.fixture(scope="session")
def running(registry: Registry) -> Iterator[Running]:
    served = Running(registry)
    yield served
    served.close()
