"""What can be asked over HTTP: thin functions that call the public API. Every refusal is a 4xx and one sentence.

``service`` makes the application; the lab adds its own routes to the same one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from foreword.decode import INCOMPLETE
from foreword.errors import ForewordError, InputError, MissingExtraError
from foreword.pipeline import TextLM
from foreword.serve.shelf import Entry, Shelf, UnknownModelError

try:
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from pydantic import BaseModel, ConfigDict, Field
    from starlette.exceptions import HTTPException
except ImportError:
    raise MissingExtraError("fastapi", "lab", "a web page") from None

Name = Annotated[str, Field(max_length=200)]
Text = Annotated[str, Field(max_length=20_000)]

MOST_TOKENS = 500
"""That are generated at once."""


class Asked(BaseModel):
    """A body: JSON with these names, and no others."""

    model_config = ConfigDict(extra="forbid")


class AskNext(Asked):
    model: Name
    text: Text = ""
    k: int = Field(10, ge=1, le=100)
    temperature: float = Field(1.0, gt=0, le=100)


class AskSurprisal(Asked):
    model: Name
    text: Text


class AskGenerate(Asked):
    model: Name
    prompt: Text = ""
    max_tokens: int = Field(40, ge=1, le=MOST_TOKENS)
    temperature: float = Field(1.0, ge=0, le=100)
    top_k: int | None = Field(None, ge=1)
    seed: int = Field(0, ge=0)


def service(shelf: Shelf, title: str = "Foreword") -> FastAPI:
    """The application: which models there are, and what a language model thinks of a text."""
    # The interactive pages of FastAPI are left out: they load their scripts from elsewhere.
    app = FastAPI(title=title, docs_url=None, redoc_url=None)
    _tell_errors(app)

    @app.get("/api/models")
    def models() -> list[dict[str, Any]]:
        return [about(entry) for entry in shelf.entries()]

    @app.post("/api/next")
    def next_words(asked: AskNext) -> dict[str, Any]:
        entry = shelf[asked.model]
        with entry.lock:
            return next_of(entry, asked.text, asked.k, asked.temperature)

    @app.post("/api/surprisal")
    def surprisal(asked: AskSurprisal) -> dict[str, Any]:
        entry = shelf[asked.model]
        with entry.lock:
            pieces = entry.language_model.surprisal(asked.text)
        return {"tokens": [{"token": token, "bits": finite(bits)} for token, bits in pieces]}

    @app.post("/api/generate")
    def generate(asked: AskGenerate) -> dict[str, Any]:
        entry = shelf[asked.model]
        with entry.lock:
            text = entry.language_model.generate(
                asked.prompt,
                max_tokens=asked.max_tokens,
                temperature=asked.temperature,
                top_k=asked.top_k,
                seed=asked.seed,
            )
        return {"text": text}

    return app


def about(entry: Entry) -> dict[str, Any]:
    size = len(entry.model.vocab) if isinstance(entry.model, TextLM) else None
    return {"name": entry.name, "title": entry.title, "task": entry.task, "vocabulary": size}


def next_of(entry: Entry, text: str, k: int, temperature: float) -> dict[str, Any]:
    """The k likeliest tokens after a text, p ∝ p^(1/temperature), and what the others have together."""
    lm, steps = entry.language_model, entry.steps
    assert steps is not None
    state = steps.start()
    for id in lm.tokenizer.encode(text).tolist():
        state = steps.advance(state, np.array([id]))
    logs: NDArray[np.float64] = np.asarray(steps.next_logprobs(state)[0], np.float64)
    chances = np.exp((logs - logs.max()) / temperature)
    chances /= chances.sum()
    k = min(k, len(chances))
    best = np.argpartition(-chances, k - 1)[:k]
    best = best[np.lexsort((best, -chances[best]))]
    entropy = float(-(chances * np.log2(np.where(chances > 0, chances, 1))).sum())
    tokens = [{"token": spelled(lm, id), "p": p} for id, p in zip(best.tolist(), chances[best].tolist(), strict=True)]
    return {"tokens": tokens, "rest": max(0.0, 1 - float(chances[best].sum())), "entropy": entropy}


def spelled(lm: TextLM, id: int) -> str:
    """A token as text, or as the vocabulary writes it where it is the end or part of a character."""
    text = "" if id == lm.vocab.end else lm.tokenizer.decode([id])
    return text if text and INCOMPLETE not in text else lm.vocab[id]


def finite(number: float) -> float | None:
    """JSON knows no infinity: null says it."""
    return number if math.isfinite(number) else None


# What goes wrong


def _tell_errors(app: FastAPI) -> None:
    def telling(status: Callable[[Any], int], sentence: Callable[[Any], str]) -> Callable[[Request, Any], JSONResponse]:
        return lambda _, error: JSONResponse({"error": sentence(error)}, status(error))

    app.add_exception_handler(UnknownModelError, telling(lambda _: 404, str))
    app.add_exception_handler(ForewordError, telling(lambda _: 400, str))
    app.add_exception_handler(RequestValidationError, telling(lambda _: 422, _wrong_body))
    app.add_exception_handler(HTTPException, telling(lambda error: error.status_code, _plain_refusal))


def _wrong_body(error: RequestValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    if first["type"] == "json_invalid":
        return "the request is no JSON: expected an object"
    return f"{place or 'the request'}: {first['msg'].lower()}"


def _plain_refusal(error: HTTPException) -> str:
    return "there is nothing at this address" if error.status_code == 404 else str(error.detail).lower()


def no_word(word: str) -> InputError:
    return InputError(f"no vector for {word!r}: try another word")
