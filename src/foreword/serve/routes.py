"""What can be asked over HTTP: thin functions that call the public API. Every refusal is a 4xx or 5xx and one sentence.

``service`` makes the application; the lab adds its own routes to the same one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from foreword.errors import ForewordError, MissingExtraError
from foreword.pipeline.language import TextLM
from foreword.serve.answers import TooLongError, finite, next_of, no_word, spelled
from foreword.serve.batches import Desk
from foreword.serve.bodies import (
    REFUSALS,
    Alive,
    AskAnalogy,
    AskClassify,
    Asked,
    AskEmbed,
    AskGenerate,
    AskNearest,
    AskNext,
    AskScore,
    AskSearch,
    AskSurprisal,
    AskTag,
    AskTokenize,
    AskTranslate,
    ClassifyAnswer,
    EmbedAnswer,
    GenerateAnswer,
    ModelFacts,
    NearestAnswer,
    NextAnswer,
    ScoreAnswer,
    SearchAnswer,
    SurprisalAnswer,
    TagAnswer,
    TokenizeAnswer,
    TranslateAnswer,
)
from foreword.serve.docs_page import PAGE
from foreword.serve.generating import OutOfTimeError, drawn, events
from foreword.serve.limits import OWN_FAULT, RETRY_SECONDS, out_of_time
from foreword.serve.metrics import CONTENT_TYPE
from foreword.serve.registry import Entry, NotYetError, Shelf, UnknownModelError

try:
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.openapi.utils import get_openapi
    from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
    from starlette.exceptions import HTTPException
except ImportError:
    raise MissingExtraError("fastapi", "lab", "a web page") from None

__all__ = ["Asked", "about", "finite", "next_of", "no_word", "service", "spelled"]


def service(shelf: Shelf, title: str = "Foreword", desk: Desk | None = None) -> FastAPI:
    """The application: which models there are, and all that they can be asked."""
    # The interactive pages of FastAPI are left out: they load their scripts from elsewhere.
    app = FastAPI(title=title, docs_url=None, redoc_url=None, responses=REFUSALS)
    desk = Desk() if desk is None else desk
    app.state.desk = desk
    _tell_errors(app)
    _tell_schema(app, shelf)
    _add_own(app, shelf, desk)
    _add_text(app, shelf, desk)
    _add_labels(app, shelf, desk)
    _add_vectors(app, shelf, desk)
    return app


def about(entry: Entry) -> dict[str, Any]:
    size = len(entry.model.vocab) if isinstance(entry.model, TextLM) else None
    return {
        "name": entry.name,
        "title": entry.title,
        "task": entry.task,
        "kind": entry.kind,
        "can": list(entry.can),
        "vocabulary": size,
    }


# About the server


def _add_own(app: FastAPI, shelf: Shelf, desk: Desk) -> None:
    @app.get("/health", tags=["server"], responses={200: {"model": Alive}})
    async def health() -> JSONResponse:
        """Whether the server lives."""
        return JSONResponse({"status": "alive"})

    @app.get("/ready", tags=["server"], responses={200: {"model": Alive}})
    async def ready() -> JSONResponse:
        """Whether every model is loaded and requests are welcome."""
        if desk.closing:
            return _later("the server is closing")
        if shelf.coming:
            return _later(f"still being loaded: {', '.join(sorted(shelf.coming))}")
        return JSONResponse({"status": "ready"})

    @app.get("/metrics", tags=["server"], response_class=Response, responses={200: {"content": {CONTENT_TYPE: {}}}})
    async def metrics() -> Response:
        """Counts and times, as Prometheus reads them."""
        return Response(desk.metrics.text(), headers={"content-type": CONTENT_TYPE})

    @app.get("/docs", include_in_schema=False, response_class=HTMLResponse)
    async def docs() -> HTMLResponse:
        return HTMLResponse(PAGE)

    @app.get("/api/models", tags=["models"], responses={200: {"model": list[ModelFacts]}})
    async def models() -> JSONResponse:
        """Which models there are, and what each can be asked."""
        return JSONResponse([about(entry) for entry in shelf.entries()])


# Language models


def _add_text(app: FastAPI, shelf: Shelf, desk: Desk) -> None:
    @app.post("/api/score", tags=["text"], responses={200: {"model": ScoreAnswer}})
    async def score(asked: AskScore) -> JSONResponse:
        """How likely each text is."""
        return await _results(desk, shelf[asked.model], "score", asked.text)

    @app.post("/api/surprisal", tags=["text"], responses={200: {"model": SurprisalAnswer}})
    async def surprisal(asked: AskSurprisal) -> JSONResponse:
        """Each token of a text and the bits of surprise it was."""
        return JSONResponse((await _asked(desk, shelf[asked.model], "surprisal", [asked.text]))[0])

    @app.post("/api/next", tags=["text"], responses={200: {"model": NextAnswer}})
    async def next_words(asked: AskNext) -> JSONResponse:
        """The likeliest next tokens after a text."""
        options = {"k": asked.k, "temperature": asked.temperature}
        return JSONResponse((await _asked(desk, shelf[asked.model], "next", [asked.text], **options))[0])

    @app.post(
        "/api/generate",
        tags=["text"],
        responses={200: {"model": GenerateAnswer, "content": {"text/event-stream": {"schema": {}}}}},
    )
    async def generate(asked: AskGenerate) -> Response:
        """Text after a prompt, whole, or as server-sent events where ``stream`` is true."""
        stream = drawn(desk, shelf[asked.model], asked)
        first = await anext(stream)  # what is refused is refused before the answer begins
        if asked.stream:
            return StreamingResponse(events(first, stream), media_type="text/event-stream")
        return JSONResponse({"text": "".join([*first, *[piece async for some in stream for piece in some]])})

    @app.post("/api/tokenize", tags=["text"], responses={200: {"model": TokenizeAnswer}})
    async def tokenize(asked: AskTokenize) -> JSONResponse:
        """Texts as tokens and their numbers."""
        return await _results(desk, shelf[asked.model], "tokenize", asked.text)

    @app.post("/api/translate", tags=["text"], responses={200: {"model": TranslateAnswer}})
    async def translate(asked: AskTranslate) -> JSONResponse:
        """Each text in the other language."""
        options = {"width": asked.width, "max_tokens": asked.max_tokens}
        return await _results(desk, shelf[asked.model], "translate", asked.text, **options)

    @app.post("/api/search", tags=["text"], responses={200: {"model": SearchAnswer}})
    async def search(asked: AskSearch) -> JSONResponse:
        """The best documents for each query."""
        return await _results(desk, shelf[asked.model], "search", asked.text, k=asked.k)


# Labels and tags


def _add_labels(app: FastAPI, shelf: Shelf, desk: Desk) -> None:
    @app.post("/api/classify", tags=["labels"], responses={200: {"model": ClassifyAnswer}})
    async def classify(asked: AskClassify) -> JSONResponse:
        """The likeliest labels of each text."""
        return await _results(desk, shelf[asked.model], "classify", asked.text, k=asked.k)

    @app.post("/api/tag", tags=["labels"], responses={200: {"model": TagAnswer}})
    async def tag(asked: AskTag) -> JSONResponse:
        """A tag for each word of each text."""
        return await _results(desk, shelf[asked.model], "tag", asked.text, split=asked.split)


# Vectors


def _add_vectors(app: FastAPI, shelf: Shelf, desk: Desk) -> None:
    @app.post("/api/embed", tags=["vectors"], responses={200: {"model": EmbedAnswer}})
    async def embed(asked: AskEmbed) -> JSONResponse:
        """A vector for each word of each text, or for each text."""
        options = {"split": asked.split, "pool": asked.pool}
        return await _results(desk, shelf[asked.model], "embed", asked.text, **options)

    @app.post("/api/nearest", tags=["vectors"], responses={200: {"model": NearestAnswer}})
    async def nearest(asked: AskNearest) -> JSONResponse:
        """The words whose vectors are nearest to that of each word."""
        return await _results(desk, shelf[asked.model], "nearest", asked.word, k=asked.k)

    @app.post("/api/analogy", tags=["vectors"], responses={200: {"model": NearestAnswer}})
    async def analogy(asked: AskAnalogy) -> JSONResponse:
        """What is to c as b is to a."""
        found = await _asked(desk, shelf[asked.model], "analogy", [(asked.a, asked.b, asked.c)], k=asked.k)
        return JSONResponse({"results": found})


async def _results(
    desk: Desk, entry: Entry, ability: str, text: str | list[str], **options: Any
) -> JSONResponse:  # fmt: skip
    texts = [text] if isinstance(text, str) else text
    return JSONResponse({"results": await _asked(desk, entry, ability, texts, **options)})


async def _asked(desk: Desk, entry: Entry, ability: str, questions: list[Any], **options: Any) -> list[Any]:
    try:
        async with asyncio.timeout(desk.limits.seconds):
            return await desk.ask(entry, ability, questions, **options)
    except TimeoutError:
        raise OutOfTimeError from None


# The schema


def _tell_schema(app: FastAPI, shelf: Shelf) -> None:
    """The schema names the models that each route takes at the moment; it is made anew when those change."""
    told: dict[tuple[tuple[str, tuple[str, ...]], ...], dict[str, Any]] = {}

    def schema() -> dict[str, Any]:
        there = tuple((entry.name, entry.can) for entry in shelf.entries())
        if there not in told:
            told.clear()
            told[there] = _schema_of(app, shelf)
        return told[there]

    app.openapi = schema  # type: ignore[method-assign]


def _schema_of(app: FastAPI, shelf: Shelf) -> dict[str, Any]:
    told = get_openapi(title=app.title, version=_version(), routes=app.routes)
    bodies = told.get("components", {}).get("schemas", {})
    for path in told["paths"]:
        ability = path.removeprefix("/api/")
        field = bodies.get(f"Ask{ability.capitalize()}", {}).get("properties", {}).get("model")
        if field is not None and shelf.able(ability):
            field["enum"] = shelf.able(ability)
    return told


def _version() -> str:
    import foreword

    return foreword.__version__


# What goes wrong


def _tell_errors(app: FastAPI) -> None:
    def telling(status: Callable[[Any], int], sentence: Callable[[Any], str]) -> Callable[[Request, Any], JSONResponse]:
        return lambda _, error: JSONResponse({"error": sentence(error)}, status(error))

    app.add_exception_handler(UnknownModelError, telling(lambda _: 404, str))
    app.add_exception_handler(TooLongError, telling(lambda _: 422, str))
    app.add_exception_handler(NotYetError, lambda _, error: _later(str(error)))
    app.add_exception_handler(ForewordError, telling(lambda _: 400, str))
    app.add_exception_handler(
        OutOfTimeError, telling(lambda _: 504, lambda _: out_of_time(app.state.desk.limits.seconds).sentence)
    )
    app.add_exception_handler(RequestValidationError, telling(lambda _: 422, _wrong_body))
    app.add_exception_handler(HTTPException, telling(lambda error: error.status_code, _plain_refusal))
    app.add_exception_handler(Exception, _own_fault)


def _later(sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, 503, {"retry-after": str(RETRY_SECONDS)})


def _own_fault(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": OWN_FAULT}, 500)


def _wrong_body(error: RequestValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    if first["type"] == "json_invalid":
        return "the request is no JSON: expected an object"
    # A name that the client made up may hold half of a surrogate pair, which no answer can.
    place = place[:80].encode("utf-8", "backslashreplace").decode()
    return f"{place or 'the request'}: {first['msg'].lower()}"


def _plain_refusal(error: HTTPException) -> str:
    return "there is nothing at this address" if error.status_code == 404 else str(error.detail).lower()
