"""The service: a table of routes, and the one path of a request through it.

``answer`` checks who asks, finds the route, checks the body against its type, calls the route's function and turns
errors into refusals: a 4xx or 5xx and one sentence. The lab adds its own routes to the same table.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from pathlib import Path
from time import perf_counter
from typing import Any

from pydantic import ValidationError

from foreword.errors import ForewordError
from foreword.pipeline.language import TextLM
from foreword.serve import bodies
from foreword.serve.answers import TooLongError, TooManyNumbersError
from foreword.serve.batches import Batcher, BusyError, OutOfTimeError, events, generated
from foreword.serve.bodies import Asked, AskGenerate, AskModel, Results, openapi
from foreword.serve.connection import JSON, Request, Response, json_parts, json_response, refusal, too_large
from foreword.serve.limits import OPEN, Access, Admission, Limits
from foreword.serve.metrics import CONTENT_TYPE, AccessLog, Metrics
from foreword.serve.registry import Entry, NotYetError, Registry, UnknownModelError

HTML = "text/html; charset=utf-8"
METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE")
SMALL_BODY = 1 << 14
"""Bytes of a request whose answer is encoded on the event loop: a few milliseconds at most."""

OTHER = "other"
"""Name of methods and addresses that are not ours, in counters and in the log."""


class BodyError(ForewordError):
    """A body that does not match its type."""


STATUS: dict[type[ForewordError], int] = {
    UnknownModelError: 404, TooLongError: 422, TooManyNumbersError: 422, BodyError: 422, NotYetError: 503,
    BusyError: 503, OutOfTimeError: 504,
}  # fmt: skip
"""Statuses of errors; 400 for any other that the client can put right."""

DATA_HEADERS = (("x-content-type-options", "nosniff"), ("cache-control", "no-cache"))
PAGE_HEADERS = (
    *DATA_HEADERS,
    ("content-security-policy", "default-src 'self'; style-src 'self' 'unsafe-inline'; "
     "script-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; form-action 'self'; "
     "frame-ancestors 'none'"),
    ("referrer-policy", "no-referrer"),
)  # fmt: skip

log = logging.getLogger("foreword.serve")

Handler = Callable[..., Any]
"""Takes the checked body, if its route has one. Returns a Response, or what is to be sent as JSON."""


@dataclass(frozen=True, slots=True)
class Route:
    """One method at one path. body, answer: types of the request and of its answer; tag: its group in the schema.

    large: whether a short request can have a long answer, which is then encoded off the event loop.
    """

    method: str
    path: str
    handler: Handler
    body: type[Asked] | None = None
    answer: Any = None
    tag: str = ""
    description: str = ""
    content_type: str = JSON
    large: bool = False

    async def call(self, request: Request, seconds: float) -> Response:
        """Check the body and call the handler: on the event loop if it is a coroutine function, else in a thread."""
        asked = () if self.body is None else (_checked(self.body, request),)
        if iscoroutinefunction(self.handler):
            found = await self.handler(*asked)
        else:
            found = await asyncio.to_thread(self.handler, *asked)
        if isinstance(found, Response):
            return found
        if self.large or request.size > SMALL_BODY:
            return await asyncio.to_thread(_encode_large, found, request.began, seconds)
        return json_response(found)


class Service:
    """Models, their routes, and everything between them and a client."""

    def __init__(
        self,
        registry: Registry,
        *,
        title: str = "Foreword",
        token: str | None = None,
        limits: Limits | None = None,
        log: Callable[[str], object] | None = None,
    ) -> None:
        self.registry, self.title = registry, title
        self.limits = Limits() if limits is None else limits
        self.metrics = Metrics()
        self.admission = Admission(self.limits)
        self.batcher = Batcher(self.limits, self.metrics)
        self.access = Access(token)
        self.access_log = AccessLog(log)
        self.routes: dict[str, dict[str, Route]] = {}
        _add_own_routes(self)
        _add_model_routes(self)

    def add(self, route: Route) -> None:
        """Add a route, or replace the one of the same method and path."""
        self.routes.setdefault(route.path, {})[route.method] = route

    def get(self, path: str, handler: Handler, **more: Any) -> None:
        """Add a GET route."""
        self.add(Route("GET", path, handler, **more))

    def post(self, path: str, body: type[Asked], handler: Handler, **more: Any) -> None:
        """Add a POST route."""
        self.add(Route("POST", path, handler, body, **more))

    async def answer(self, request: Request) -> Response:
        """Answer a request, whatever it is."""
        try:
            response = self._refused(request) or await self._routed(request)
        except ForewordError as error:
            status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 400)
            response = refusal(status, str(error))
        except Exception as error:
            _log_location(error)
            response = refusal(500, "something went wrong here: the server's log says where")
        headers = DATA_HEADERS if response.content_type == JSON else PAGE_HEADERS
        cookie = self.access.cookie(request)
        if cookie is not None and response.status < 400:
            headers = (*headers, ("set-cookie", cookie))
        return response._replace(headers=(*response.headers, *headers))

    def admit(self, request: Request) -> Response | None:
        """Count a request among those in flight; return a refusal instead if there are too many."""
        if request.counted:
            return None
        if self.metrics.in_flight >= self.admission.allowed and request.path not in OPEN:
            return refusal(503, f"{self.admission.allowed} requests are being answered already: ask again in a moment")
        self.metrics.in_flight += 1
        request.counted = True
        return None

    def _refused(self, request: Request) -> Response | None:
        found = self.access.refused(request)
        if found is not None:
            return refusal(*found)
        if request.size > self.limits.body:
            return too_large(self.limits)
        return None

    def _routed(self, request: Request) -> Awaitable[Response]:
        methods = self.routes.get(request.path)
        if methods is None:
            return _ready(refusal(404, "there is nothing at this address"))
        route = methods.get(request.method)
        return _ready(refusal(405, "method not allowed")) if route is None else route.call(request, self.limits.seconds)

    def record(self, request: Request | None, status: int, sent: int = 0) -> None:
        """Count and log a request that has ended. None: bytes that were none."""
        if request is None:
            self.metrics.request(OTHER, OTHER, status, 0.0)
            return
        if request.counted:
            self.metrics.in_flight -= 1
        seconds = perf_counter() - request.began
        method = request.method if request.method in METHODS else OTHER
        route = request.path if request.path in self.routes else OTHER
        self.metrics.request(method, route, status, seconds)
        if route not in OPEN:  # monitors ask every few seconds
            self.access_log.add(method, route, status, seconds, request.size, sent)


def _encode_large(value: object, began: float, seconds: float) -> Response:
    """Encode an answer part by part, so that other threads run in between; stop when the time is over."""
    parts = list[str]()
    for part in json_parts(value):
        parts.append(part)
        if perf_counter() - began > seconds:
            raise OutOfTimeError(seconds)
    return Response("".join(parts).encode())


async def _ready(response: Response) -> Response:
    return response


def about(entry: Entry) -> dict[str, Any]:
    """Return the facts about a model that clients see."""
    size = len(entry.model.vocab) if isinstance(entry.model, TextLM) else None
    return {
        "name": entry.name, "title": entry.title, "task": entry.task, "kind": entry.kind, "can": list(entry.can),
        "vocabulary": size,
    }  # fmt: skip


# The routes


def _add_own_routes(service: Service) -> None:
    """Add what is asked about the server itself."""
    registry, batcher = service.registry, service.batcher
    page = Path(__file__).with_name("docs.html").read_text(encoding="utf-8").encode()
    schemas: dict[object, Response] = {}

    async def health() -> Any:
        """Report that the process answers."""
        return {"status": "alive"}

    async def ready() -> Any:
        """Report whether requests are accepted."""
        if batcher.closing:
            return refusal(503, "the server is closing")
        if registry.coming:
            return refusal(503, f"still being loaded: {', '.join(sorted(registry.coming))}")
        return {"status": "ready"}

    async def metrics() -> Response:
        """Return the counters as text."""
        return Response(service.metrics.text().encode(), content_type=CONTENT_TYPE)

    async def models() -> Any:
        """List the loaded models."""
        return [about(entry) for entry in registry.entries()]

    async def docs() -> Response:
        """Return the page that documents the routes."""
        return Response(page, content_type=HTML)

    async def schema() -> Response:
        """Return the OpenAPI schema of the models loaded now."""
        there = tuple((entry.name, entry.can) for entry in registry.entries())
        if there not in schemas:  # the schema names the models that each route takes at the moment
            schemas.clear()
            routes = [route for methods in service.routes.values() for route in methods.values()]
            schemas[there] = json_response(openapi(service.title, routes, registry))
        return schemas[there]

    alive = {"tag": "server", "answer": bodies.Alive}
    service.get("/health", health, **alive, description="Whether the server is alive.")
    service.get("/ready", ready, **alive, description="Whether every model is loaded and requests are welcome.")
    service.get(
        "/metrics", metrics, tag="server", content_type=CONTENT_TYPE, description="Counters for Prometheus."
    )  # fmt: skip
    service.get(
        "/api/models", models, tag="models", answer=list[bodies.ModelFacts],
        description="The models and what each can be asked.",
    )  # fmt: skip
    service.get("/docs", docs)
    service.get("/openapi.json", schema)


MODEL_ROUTES: tuple[tuple[str, type[AskModel], Any, str, str], ...] = (
    ("score", bodies.AskScore, Results[bodies.ScoreResult], "text", "How likely each text is."),
    ("surprisal", bodies.AskSurprisal, bodies.SurprisalAnswer, "text", "The surprisal of each token of a text."),
    ("next", bodies.AskNext, bodies.NextAnswer, "text", "The likeliest next tokens after a text."),
    ("tokenize", bodies.AskTokenize, Results[bodies.TokenizeResult], "text", "Texts as tokens and their ids."),
    ("translate", bodies.AskTranslate, Results[bodies.TranslateResult], "text", "Each text in the other language."),
    ("transcribe", bodies.AskTranscribe, Results[bodies.TranscribeResult], "text", "What is said in each recording."),
    ("search", bodies.AskSearch, Results[bodies.SearchResult], "text", "The best documents for each query."),
    ("classify", bodies.AskClassify, Results[bodies.LabelResult], "labels", "The likeliest labels of each text."),
    ("tag", bodies.AskTag, Results[bodies.TagResult], "labels", "A tag for each word of each text."),
    ("embed", bodies.AskEmbed, Results[bodies.EmbedResult], "vectors", "A vector for each word, or for each text."),
    ("nearest", bodies.AskNearest, Results[bodies.NearestResult], "vectors", "The nearest words to each word."),
    ("analogy", bodies.AskAnalogy, Results[bodies.NearestResult], "vectors", "What is to c as b is to a."),
)
"""Routes whose requests are batched: ability, body, answer, tag, description."""


def _add_model_routes(service: Service) -> None:
    """Add what models are asked."""
    registry, batcher = service.registry, service.batcher

    def batched(ability: str) -> Handler:
        """Return the handler that asks models for one ability."""

        async def ask(asked: AskModel) -> Any:
            found = await batcher.ask(registry[asked.model], ability, asked.questions(), **asked.options())
            return {"results": found} if asked.MANY else found[0]

        return ask

    for ability, body, answer, tag, description in MODEL_ROUTES:
        service.post(
            f"/api/{ability}", body, batched(ability), answer=answer, tag=tag, description=description,
            large=ability == "embed",
        )  # fmt: skip

    async def generate(asked: AskGenerate) -> Any:
        """Return generated text, whole or as events."""
        stream = generated(batcher, registry[asked.model], asked)
        first = await anext(stream)  # what is refused is refused before the answer begins
        if asked.stream:
            return Response(events(first, stream), content_type="text/event-stream")
        return {"text": "".join([*first, *[piece async for some in stream for piece in some]])}

    service.post(
        "/api/generate", AskGenerate, generate, answer=bodies.GenerateAnswer, tag="text",
        description="Text after a prompt; server-sent events if stream is true.",
    )  # fmt: skip


# What goes wrong


def _checked(body: type[Asked], request: Request) -> Asked:
    """Return the body as its type; raise a BodyError that names the first field that is wrong."""
    if not request.headers.get("content-type", "").lower().startswith(JSON):
        raise BodyError(f"expected a JSON object with content-type: {JSON}")
    try:
        return body.model_validate_json(request.body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        raise BodyError("the request is not JSON: expected an object")
    # A name that the client made up may hold half of a surrogate pair, which no answer can.
    field = ".".join(str(part) for part in first["loc"])[:80].encode("utf-8", "backslashreplace").decode()
    raise BodyError(f"{field or 'the request'}: {first['msg'].lower()}")


def _log_location(error: Exception) -> None:
    """Log where an error happened, but not its message, which may contain what was asked."""
    trace, lines = error.__traceback__, list[str]()
    while trace is not None:
        lines.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    log.error("%s at %s", type(error).__name__, " < ".join(reversed(lines)))
