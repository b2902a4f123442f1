"""What is asked and what is answered, as JSON: the schema that ``/openapi.json`` tells."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from foreword.errors import MissingExtraError

try:
    from pydantic import BaseModel, ConfigDict, Field
except ImportError:
    raise MissingExtraError("fastapi", "lab", "a web page") from None

MOST_TEXTS = 256
MOST_CHARACTERS = 1_000_000
MOST_GENERATED = 500
"""Tokens that are generated at once."""

Name = Annotated[str, Field(max_length=200)]
Text = Annotated[str, Field(max_length=20_000)]
LongText = Annotated[str, Field(max_length=MOST_CHARACTERS)]
Word = Annotated[str, Field(min_length=1, max_length=200)]
Texts = LongText | Annotated[list[LongText], Field(min_length=1, max_length=MOST_TEXTS)]
Words = Word | Annotated[list[Word], Field(min_length=1, max_length=MOST_TEXTS)]


class Asked(BaseModel):
    """A body: JSON with these names, and no others."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class AskScore(Asked):
    """text: one or a list of them; an answer comes for each."""

    model: Name
    text: Texts


class AskNext(Asked):
    model: Name
    text: Text = ""
    k: int = Field(10, ge=1, le=100)
    temperature: float = Field(1.0, ge=0.001, le=100)


class AskSurprisal(Asked):
    model: Name
    text: Text


class AskGenerate(Asked):
    """stream: whether the text comes piece by piece, as server-sent events."""

    model: Name
    prompt: Text = ""
    max_tokens: int = Field(40, ge=1, le=MOST_GENERATED)
    temperature: float = Field(1.0, ge=0, le=100)
    top_k: int | None = Field(None, ge=1, le=1_000_000)
    top_p: float | None = Field(None, gt=0, le=1)
    seed: int = Field(0, ge=0, le=2**63 - 1)
    stream: bool = False


class AskClassify(Asked):
    """k: how many labels, the likeliest first."""

    model: Name
    text: Texts
    k: int = Field(1, ge=1, le=1000)


class AskTag(Asked):
    """split: "punctuation" makes words of punctuation marks; "space" takes what stands between white space."""

    model: Name
    text: Texts
    split: Literal["punctuation", "space"] = "punctuation"


class AskTranslate(Asked):
    """width: of the beam; 1 is greedy."""

    model: Name
    text: Texts
    width: int = Field(5, ge=1, le=16)
    max_tokens: int = Field(100, ge=1, le=MOST_GENERATED)


class AskEmbed(Asked):
    """pool: "words" gives a vector for each word, "mean" one for the text."""

    model: Name
    text: Texts
    split: Literal["punctuation", "space"] = "punctuation"
    pool: Literal["words", "mean"] = "words"


class AskNearest(Asked):
    model: Name
    word: Words
    k: int = Field(10, ge=1, le=100)


class AskAnalogy(Asked):
    """What is to c as b is to a?"""

    model: Name
    a: Word
    b: Word
    c: Word
    k: int = Field(5, ge=1, le=100)


class AskSearch(Asked):
    model: Name
    text: Texts
    k: int = Field(10, ge=1, le=100)


class AskTokenize(Asked):
    model: Name
    text: Texts


# Answers


class Told(BaseModel):
    """An answer. Where a number is null, it was not finite."""


class Scored(Told):
    """score: natural log-probability, the end included."""

    score: float | None
    tokens: int
    oov: int
    perplexity: float | None


class ScoreAnswer(Told):
    results: list[Scored]


class Likely(Told):
    token: str
    p: float


class NextAnswer(Told):
    tokens: list[Likely]
    rest: float
    entropy: float


class Surprise(Told):
    token: str
    bits: float | None


class SurprisalAnswer(Told):
    tokens: list[Surprise]


class GenerateAnswer(Told):
    text: str


class Label(Told):
    label: str
    probability: float


class Labelled(Told):
    labels: list[Label]


class ClassifyAnswer(Told):
    results: list[Labelled]


class Tagged(Told):
    words: list[str]
    tags: list[str]


class TagAnswer(Told):
    results: list[Tagged]


class Translated(Told):
    translation: str


class TranslateAnswer(Told):
    results: list[Translated]


class Embedded(Told):
    """vectors: with pool "words", null for a word that has none; vector: with pool "mean"."""

    words: list[str]
    vectors: list[list[float] | None] | None = None
    vector: list[float] | None = None


class EmbedAnswer(Told):
    results: list[Embedded]


class Neighbour(Told):
    word: str
    cosine: float | None


class Neighbours(Told):
    words: list[Neighbour]


class NearestAnswer(Told):
    results: list[Neighbours]


class Hit(Told):
    rank: int
    score: float
    document: int
    name: str
    snippet: str


class Hits(Told):
    hits: list[Hit]


class SearchAnswer(Told):
    results: list[Hits]


class Cut(Told):
    ids: list[int]
    tokens: list[str]


class TokenizeAnswer(Told):
    results: list[Cut]


class ModelFacts(Told):
    """can: the routes that take it."""

    name: str
    title: str
    task: str
    kind: str
    can: list[str]
    vocabulary: int | None


class Alive(Told):
    status: str


class Refused(Told):
    error: str


REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refused, "description": "The model cannot do this, or not with this text."},
    401: {"model": Refused, "description": "A token is needed."},
    403: {"model": Refused, "description": "Another page may not ask."},
    404: {"model": Refused, "description": "No such model or address."},
    405: {"model": Refused, "description": "Another method is expected here."},
    408: {"model": Refused, "description": "The request took too long to arrive."},
    413: {"model": Refused, "description": "The body is too large."},
    421: {"model": Refused, "description": "This server has another name."},
    422: {"model": Refused, "description": "The body is not as the schema says, or a text has too many tokens."},
    503: {"model": Refused, "description": "Too many requests at once, or the model is still being loaded."},
    504: {"model": Refused, "description": "The answer took too long."},
}
