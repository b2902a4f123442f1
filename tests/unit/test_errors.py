"""Errors: one type per fault, each a subclass of what callers catch, and each crosses processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from foreword import errors
from foreword.decode import generate
from foreword.errors import (
    DivergedError,
    ForewordError,
    InputError,
    MissingExtraError,
    MissingVocabularyError,
    NoGpuError,
    NotFittedError,
    NotSaveableError,
    SettingError,
    VocabularyError,
    install_command,
)
from foreword.evaluate.compare.ladder import compare
from foreword.features.estimator import EstimatorNotFittedError
from foreword.measures.perplexity import measure, perplexity
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.search.bm25 import BM25


@pytest.mark.parametrize(
    ("error", "kinds"),
    [
        (InputError("x.txt: no text"), (ForewordError,)),
        (MissingVocabularyError("a vocabulary"), (InputError, ValueError)),
        (DivergedError("training diverged"), (InputError,)),
        (NoGpuError(), (SettingError,)),
        (NotSaveableError(3), (SettingError,)),
        (VocabularyError(7), (SettingError, ValueError)),
        (NotFittedError([], "texts"), (ForewordError, ValueError)),
        (EstimatorNotFittedError([], "texts"), (NotFittedError, AttributeError)),
        (MissingExtraError("torch", "neural", "an LSTM"), (ForewordError,)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_is_caught_as_before_and_crosses_processes(error: ForewordError, kinds: tuple[type, ...]) -> None:
    assert all(isinstance(error, kind) for kind in kinds)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert "\n" not in str(error)


def test_messages_name_the_thing_and_the_way_out() -> None:
    assert str(NotSaveableError(3, ", nor what reads with it")) == "a int cannot be saved, nor what reads with it"
    assert str(NotFittedError([], "texts")) == "this list has learnt nothing yet: call fit(texts) first"
    assert "'cpu'" in str(NoGpuError())
    assert str(MissingExtraError("torch", "neural", "an LSTM")) == f"an LSTM needs torch: {install_command('neural')}"


def test_the_command_that_installs_an_extra_fits_a_clone_and_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "src" / "foreword"
    package.mkdir(parents=True)
    monkeypatch.setattr(errors, "__file__", str(package / "errors.py"))
    assert install_command("data") == "pip install 'foreword[data]'"
    (tmp_path / "pyproject.toml").touch()
    assert install_command("data") == f"pip install -e '{tmp_path}[data]'"


def _calls() -> dict[str, tuple[Callable[[], object], str]]:
    text = TextLM(None, NgramLM(2)).fit(["the cat sat", "a dog sat"])
    lm, wrong = text.model, cast(Any, ["the"])
    corpus, nothing = "expected a Corpus of ids, not a list", cast(Any, [None])
    return {
        "generate a string": (lambda: generate(lm, cast(Any, "the")), "expected a prompt of token ids, not 'the'"),
        "generate nothing": (lambda: generate(lm, cast(Any, None)), "expected a prompt of token ids, not None"),
        "generate words": (lambda: generate(lm, cast(Any, ["the"])), "an id of the prompt is 'the': expected a whole"),
        "generate halves": (lambda: generate(lm, cast(Any, [1.5])), r"an id of the prompt is 1\.5: expected a whole"),
        "order of a string": (lambda: NgramLM(cast(Any, "x")), "order is 'x': expected a whole number"),
        "order of a half": (lambda: NgramLM(cast(Any, 2.5)), r"order is 2\.5: expected a whole number"),
        "prune by a string": (lambda: NgramLM(prune=cast(Any, "x")), "a number of prune is 'x'"),
        "perplexity of texts": (lambda: perplexity(lm, wrong), corpus),
        "measures of texts": (lambda: measure(lm, wrong), corpus),
        "measures by a TextLM": (
            lambda: measure(cast(Any, text), text.corpus(["the"])), "of ids, not a TextLM: TextLM.measure takes texts"
        ),
        "BM25 of nothing": (lambda: BM25().fit(nothing), corpus),
        "BM25 of texts": (lambda: BM25().fit(text.corpus(["the"])).search(wrong), corpus),
        "compare nothing": (lambda: list(compare(nothing)), "expected a text, but got None"),
    }  # fmt: skip


@pytest.mark.parametrize("call", sorted(_calls()))
def test_what_is_given_by_mistake_is_named(call: str) -> None:
    """An error of ours says what was expected; Python's own would say what some line of ours could not do with it."""
    wrong, message = _calls()[call]
    with pytest.raises((InputError, SettingError), match=message):
        wrong()
