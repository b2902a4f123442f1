"""Bodies of requests and answers: the types that requests are checked by and ``/openapi.json`` is written from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, TypeVar

from foreword.errors import MissingExtraError

try:
    from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
    from pydantic.json_schema import JsonSchemaMode, models_json_schema
except ImportError:
    raise MissingExtraError("pydantic", "lab", "a server") from None

if TYPE_CHECKING:
    from foreword.serve.registry import Registry
    from foreword.serve.routes import Route

MOST_TEXTS = 256
MOST_CHARACTERS = 1_000_000
MOST_GENERATED = 500
"""Tokens of one generated text."""

Name = Annotated[str, Field(max_length=200)]
Text = Annotated[str, Field(max_length=20_000)]
LongText = Annotated[str, Field(max_length=MOST_CHARACTERS)]
Word = Annotated[str, Field(min_length=1, max_length=200)]
Texts = LongText | Annotated[list[LongText], Field(min_length=1, max_length=MOST_TEXTS)]
Words = Word | Annotated[list[Word], Field(min_length=1, max_length=MOST_TEXTS)]


class Asked(BaseModel):
    """A request: a JSON object with these names and no others."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class AskModel(Asked):
    """A request that a model answers. MANY: whether its answer has a result for each text."""

    MANY: ClassVar[bool] = True

    model: Name

    def questions(self) -> list[Any]:
        """Return what the model is asked, each to be answered on its own."""
        text: str | list[str] = getattr(self, "text")  # noqa: B009
        return [text] if isinstance(text, str) else text

    def options(self) -> dict[str, Any]:
        """Return the other fields; questions with equal options may be computed together."""
        return self.model_dump(exclude={"model", "text"})


class AskScore(AskModel):
    """text: one or a list; each gets an answer."""

    text: Texts

    def options(self) -> dict[str, Any]:
        """Return nothing: scoring has no options."""
        return {}


class AskNext(AskModel):
    """k: how many tokens, the likeliest first."""

    MANY = False

    text: Text = ""
    k: int = Field(10, ge=1, le=100)
    temperature: float = Field(1.0, ge=0.001, le=100)


class AskSurprisal(AskModel):
    """One text."""

    MANY = False

    text: Text


class AskGenerate(Asked):
    """stream: send the text in pieces, as server-sent events."""

    model: Name
    prompt: Text = ""
    max_tokens: int = Field(40, ge=1, le=MOST_GENERATED)
    temperature: float = Field(1.0, ge=0, le=100)
    top_k: int | None = Field(None, ge=1, le=1_000_000)
    top_p: float | None = Field(None, gt=0, le=1)
    seed: int = Field(0, ge=0, le=2**63 - 1)
    stream: bool = False


class AskClassify(AskModel):
    """k: how many labels, the likeliest first; labels: those whose probabilities are wanted in any case."""

    text: Texts
    k: int = Field(1, ge=1, le=1000)
    labels: tuple[str, ...] = Field((), max_length=1000)


class AskTag(AskModel):
    """split: "punctuation" makes words of punctuation marks; "space" splits at white space only."""

    text: Texts
    split: Literal["punctuation", "space"] = "punctuation"


class AskTranslate(AskModel):
    """width: of the beam; 1 is greedy."""

    text: Texts
    width: int = Field(5, ge=1, le=16)
    max_tokens: int = Field(100, ge=1, le=MOST_GENERATED)


class AskTranscribe(AskModel):
    """wav: a WAV file in base64, or a list of them; width: of the beam, 0 for the likeliest symbol of each step."""

    wav: Texts
    width: int = Field(16, ge=0, le=64)

    def questions(self) -> list[Any]:
        """Return the recordings."""
        return [self.wav] if isinstance(self.wav, str) else self.wav

    def options(self) -> dict[str, Any]:
        """Return the width."""
        return {"width": self.width}


class AskEmbed(AskModel):
    """pool: "words" gives a vector for each word, "mean" one for the text."""

    text: Texts
    split: Literal["punctuation", "space"] = "punctuation"
    pool: Literal["words", "mean"] = "words"


class AskNearest(AskModel):
    """word: one or a list; k: how many neighbours."""

    word: Words
    k: int = Field(10, ge=1, le=100)

    def questions(self) -> list[Any]:
        """Return the words."""
        return [self.word] if isinstance(self.word, str) else self.word

    def options(self) -> dict[str, Any]:
        """Return k."""
        return {"k": self.k}


class AskAnalogy(AskModel):
    """a is to b as c is to what?"""

    a: Word
    b: Word
    c: Word
    k: int = Field(5, ge=1, le=100)

    def questions(self) -> list[Any]:
        """Return the three words as one question."""
        return [(self.a, self.b, self.c)]

    def options(self) -> dict[str, Any]:
        """Return k."""
        return {"k": self.k}


class AskSearch(AskModel):
    """text: one query or a list; k: how many documents."""

    text: Texts
    k: int = Field(10, ge=1, le=100)


class AskTokenize(AskModel):
    """text: one or a list."""

    text: Texts


# Answers

Result = TypeVar("Result")


class AnswerBody(BaseModel):
    """An answer. A number that is not finite is null."""


class Results(AnswerBody, Generic[Result]):
    """One result per text, in their order."""

    results: list[Result]


class ScoreResult(AnswerBody):
    """score: natural log-probability, the end included."""

    score: float | None
    tokens: int
    oov: int
    perplexity: float | None


class TokenProbability(AnswerBody):
    """A token and its probability."""

    token: str
    p: float


class NextAnswer(AnswerBody):
    """The likeliest next tokens. rest: probability of the others; entropy: in bits."""

    tokens: list[TokenProbability]
    rest: float
    entropy: float


class TokenSurprisal(AnswerBody):
    """A token and its surprisal in bits."""

    token: str
    bits: float | None


class SurprisalAnswer(AnswerBody):
    """Every token of a text."""

    tokens: list[TokenSurprisal]


class GenerateAnswer(AnswerBody):
    """The text after the prompt."""

    text: str


class LabelProbability(AnswerBody):
    """A label and its probability."""

    label: str
    probability: float


class LabelResult(AnswerBody):
    """The likeliest labels of a text, and the probabilities of those that were named."""

    labels: list[LabelProbability]
    probabilities: dict[str, float] | None = None


class TagResult(AnswerBody):
    """The words of a text and their tags."""

    words: list[str]
    tags: list[str]


class TranslateResult(AnswerBody):
    """A translation."""

    translation: str


class TranscribeResult(AnswerBody):
    """What is said in a recording, and how long it lasts."""

    text: str
    seconds: float


class EmbedResult(AnswerBody):
    """vectors: with pool "words", null for a word that has none; vector: with pool "mean"."""

    words: list[str]
    vectors: list[list[float] | None] | None = None
    vector: list[float] | None = None


class Neighbour(AnswerBody):
    """A word and its cosine."""

    word: str
    cosine: float | None


class NearestResult(AnswerBody):
    """The nearest words."""

    words: list[Neighbour]


class SearchHit(AnswerBody):
    """A document that was found."""

    rank: int
    score: float
    document: int
    name: str
    snippet: str


class SearchResult(AnswerBody):
    """The best documents for a query."""

    hits: list[SearchHit]


class TokenizeResult(AnswerBody):
    """The tokens of a text and their ids."""

    ids: list[int]
    tokens: list[str]


class ModelFacts(AnswerBody):
    """A model that is served. can: the routes that take it."""

    name: str
    title: str
    task: str
    kind: str
    can: list[str]
    vocabulary: int | None


class Alive(AnswerBody):
    """Alive or ready."""

    status: str


class Refused(AnswerBody):
    """Why a request was refused, in one sentence."""

    error: str


REFUSALS: dict[int, str] = {
    400: "The model cannot do this, or not with this text.",
    401: "A token is needed.",
    403: "Requests of other pages are refused.",
    404: "No such model or address.",
    405: "The route takes another method.",
    408: "The request took too long to arrive.",
    413: "The body is too large.",
    421: "The Host header names another server.",
    422: "The body does not match the schema, or a text has too many tokens.",
    503: "Too many requests at once, or the model is still being loaded.",
    504: "The answer took too long.",
}


# The schema

REF = "#/components/schemas/{model}"


def openapi(title: str, routes: Iterable[Route], registry: Registry) -> dict[str, Any]:
    """Return the schema as JSON. The bodies name the models that each route takes at the moment."""
    import foreword

    shown = [route for route in routes if route.tag]
    models: list[tuple[Any, JsonSchemaMode]] = [(Refused, "serialization")]
    models += [(route.body, "validation") for route in shown if route.body is not None]
    models += [(route.answer, "serialization") for route in shown if isinstance(route.answer, type)]
    schemas: dict[str, Any] = models_json_schema(models, ref_template=REF)[1].get("$defs", {})
    paths: dict[str, Any] = {}
    for route in shown:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
        if route.body is not None and (able := registry.able(route.path.removeprefix("/api/"))):
            schemas[route.body.__name__]["properties"]["model"]["enum"] = able
    info = {"title": title, "version": foreword.__version__}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _operation(route: Route) -> dict[str, Any]:
    answer = {} if route.answer is None else _reference(route.answer)
    content: dict[str, Any] = {route.content_type: {"schema": answer}}
    if route.body is not None and "stream" in route.body.model_fields:
        content["text/event-stream"] = {"schema": {}}
    refused = {"application/json": {"schema": _reference(Refused)}}
    responses = {"200": {"description": "The answer.", "content": content}} | {
        str(status): {"description": why, "content": refused} for status, why in REFUSALS.items()
    }
    operation: dict[str, Any] = {"tags": [route.tag], "description": route.description, "responses": responses}
    if route.body is not None:
        schema = {"schema": _reference(route.body)}
        operation["requestBody"] = {"required": True, "content": {"application/json": schema}}
    return operation


def _reference(type_: Any) -> dict[str, Any]:
    """Return the schema of a type by reference to the models in it."""
    schema = TypeAdapter(type_).json_schema(ref_template=REF, mode="serialization")
    schema.pop("$defs", None)
    return schema if "$ref" in schema or schema.get("type") == "array" else {"$ref": REF.format(model=schema["title"])}
