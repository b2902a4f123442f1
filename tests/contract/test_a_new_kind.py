"""A new kind of model is one file and one entry: here a toy, which every command then knows."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from foreword import kinds
from foreword.cli import app
from foreword.storage.folder import load

FILE = '''
"""Every token is as likely as any other: p(w | history) = 1 / V."""

from __future__ import annotations

import numpy as np

from foreword.protocols import Parts


class UniformLM:
    """A model that learns nothing but the vocabulary. temperature: a setting, to have one."""

    def __init__(self, temperature: float = 1.0) -> None:
        self.temperature = temperature
        self.vocab_ = None

    @property
    def vocab(self):
        return self.vocab_

    def fit(self, corpus, *, valid=None):
        self.vocab_ = corpus.vocab
        return self

    def start(self, n=1):
        return np.zeros((n, 1), np.int32)

    def next_logprobs(self, state):
        return np.full((len(state), len(self.vocab_)), -np.log(len(self.vocab_)))

    def advance(self, state, ids):
        return state

    def logprobs(self, corpus):
        return np.full(len(corpus.ids), -np.log(len(self.vocab_)))

    def score(self, corpus):
        return float(self.logprobs(corpus).mean())

    def to_parts(self):
        return Parts({"temperature": self.temperature}, {}, self.vocab_)

    @classmethod
    def from_parts(cls, parts):
        model = cls(parts.settings["temperature"])
        model.vocab_ = parts.vocab
        return model
'''

ENTRY = kinds.Kind(
    "uniform",
    "uniform_toy:UniformLM",
    "language-model",
    names={"uniform": {}},
    rungs=(kinds.Rung("uniform", "Uniform", position=0, lab="Uniform"),),
)
TEXT = "the cat sat\nthe dog sat\na cat and a dog\n"
WORDS = 8  # the cat sat dog a and, <unk> and </s>


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One file and one entry; and a model that was trained by its name."""
    (tmp_path / "uniform_toy.py").write_text(FILE)
    (tmp_path / "text.txt").write_text(TEXT)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(kinds.KINDS, "uniform", ENTRY)
    monkeypatch.delitem(sys.modules, "uniform_toy", raising=False)
    trained = foreword("train", "uniform", tmp_path / "text.txt", "-o", tmp_path / "model", "--set", "temperature=0.5")
    assert trained["kind"] == "uniform"
    return tmp_path / "model"


def foreword(*words: Any, **how: Any) -> Any:
    """Run a command and return its last line of JSON."""
    result = CliRunner().invoke(app, [str(word) for word in (*words, "--json")], **how)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout.splitlines()[-1])


def test_it_is_saved_and_loaded_by_its_kind(toy: Path) -> None:
    loaded = load(toy)
    assert kinds.of(loaded.model) is ENTRY
    assert loaded.model.temperature == 0.5


def test_it_scores_and_is_evaluated(toy: Path) -> None:
    scored = foreword("score", toy, input="the cat\n")
    assert scored["perplexity"] == pytest.approx(WORDS)
    assert foreword("evaluate", toy, toy.parent / "text.txt")["perplexity"] == pytest.approx(WORDS)


def test_it_generates(toy: Path) -> None:
    assert foreword("generate", toy, "--max-tokens", 3)["seed"] == 0


def test_it_filters(toy: Path) -> None:
    call = ("filter", toy, toy.parent / "text.txt", toy.parent / "kept", "--keep", "tokens>4", "--processes", 1)
    foreword(*call)
    assert (toy.parent / "kept" / "text.txt").read_text() == "a cat and a dog\n"


def test_it_is_served(toy: Path) -> None:
    from foreword.serve.answers import WORK
    from foreword.serve.registry import entry_of

    entry = entry_of("toy", load(toy))
    assert (entry.kind, entry.task) == ("text-lm", "text")
    assert {"score", "generate", "next"} <= set(entry.can)
    (answer,) = WORK["score"](entry, ["the cat"], {}, 1000)
    assert answer["perplexity"] == pytest.approx(WORDS)  # type: ignore[index]


def test_it_answers_over_http(toy: Path) -> None:
    pytest.importorskip("httptools", reason="httptools is not installed: pip install 'foreword[lab]'")
    from tests.serve.conftest import Running

    from foreword.serve.registry import Registry

    registry = Registry()
    registry.add("toy", load(toy))
    server = Running(registry)
    try:
        (scored,) = server.ask("score", model="toy", text=["the cat"])["results"]
        assert scored["perplexity"] == pytest.approx(WORDS)
        following = server.ask("next", model="toy", text="the", k=WORDS)["tokens"]
        assert [each["p"] for each in following] == pytest.approx([1 / WORDS] * WORDS)
        (listed,) = server.client.get("/api/models").json()
        assert (listed["name"], "generate" in listed["can"]) == ("toy", True)
    finally:
        server.close()


def test_it_stands_on_the_ladder(toy: Path) -> None:
    assert next(iter(kinds.rungs())) == "uniform"


def test_the_lab_offers_and_trains_it(toy: Path) -> None:
    """It was offered, and then a KeyError: the lab built its models by their names."""
    from foreword.lab.trainings import LearningText, build, offered, train_steps

    assert offered()["uniform"][0].lab == "Uniform"
    model, text = build("uniform", seconds=1, units=8), LearningText(lambda: TEXT.splitlines() * 4)
    assert list(train_steps(model, text, None))
    assert len(model.next_logprobs(model.start())[0]) == len(text.train.vocab)
