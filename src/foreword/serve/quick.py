"""The shortest way for the questions that are asked most: how likely is this text, and what is it?

``/api/score`` of a model of counts takes a few microseconds of work, and the way there through a framework took a
hundred times that. So a body that is plainly as it should be is answered here; anything else, and everything that is to
be refused, goes on to the route of the same name, which knows all the sentences.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from foreword.errors import ForewordError
from foreword.serve.batches import Desk
from foreword.serve.bodies import MOST_CHARACTERS, MOST_TEXTS, AskClassify, AskTag, AskTranslate
from foreword.serve.limits import App, Message, Receive, Scope, Send, out_of_time, refuse
from foreword.serve.registry import Entry, Shelf


def _defaults(body: Any, *names: str) -> dict[str, Any]:
    return {name: body.model_fields[name].default for name in names}


OPTIONS: dict[str, dict[str, Any]] = {
    "/api/score": {},
    "/api/classify": _defaults(AskClassify, "k"),
    "/api/tag": _defaults(AskTag, "split"),
    "/api/translate": _defaults(AskTranslate, "width", "max_tokens"),
}
"""Routes whose body may be a model and its text or texts, and what they take the rest to be."""


class Quick:
    """An ASGI application around the whole one."""

    def __init__(self, app: App, shelf: Shelf, desk: Desk) -> None:
        self.app, self.shelf, self.desk = app, shelf, desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in OPTIONS or scope["method"] != "POST" or not _is_json(scope):
            await self.app(scope, receive, send)
            return
        message = await receive()  # the whole body, which the guard has gathered
        ability = scope["path"].removeprefix("/api/")
        found = self._parsed(message.get("body", b""), ability)
        if found is not None and await self._answered(*found, ability, OPTIONS[scope["path"]], send):
            return
        await self.app(scope, _again(message, receive), send)

    async def _answered(
        self, entry: Entry, texts: list[str], ability: str, options: dict[str, Any], send: Send
    ) -> bool:  # fmt: skip
        """False where the route has to say why not, for which it asks once more."""
        try:
            asked = self.desk.put(entry, ability, texts, **options)
            if entry.is_cheap(ability):  # there in the next turn of the loop
                results = await asked
            else:
                results = await _within(self.desk.limits.seconds, asked)
        except TimeoutError:
            await refuse(out_of_time(self.desk.limits.seconds), send)
            return True
        except ForewordError:
            return False
        await _answer({"results": results}, send)
        return True

    def _parsed(self, body: bytes, ability: str) -> tuple[Entry, list[str]] | None:
        """A model that can do this and texts for it; None where anything is unusual."""
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            return None
        if type(asked) is not dict or len(asked) != 2 or type(asked.get("model")) is not str:
            return None
        text = asked.get("text")
        texts = [text] if type(text) is str else text
        if type(texts) is not list or not 0 < len(texts) <= MOST_TEXTS:
            return None
        for each in texts:
            if type(each) is not str or len(each) > MOST_CHARACTERS or not _is_whole(each):
                return None
        entry = self.shelf.get(asked["model"])
        return None if entry is None or ability not in entry.can else (entry, texts)


async def _within(seconds: float, asked: asyncio.Future[list[Any]]) -> list[Any]:
    """What is asked, if it is there in time: ``asyncio.timeout`` for one future, in a third of its time."""
    timer = asyncio.get_running_loop().call_later(seconds, asked.cancel)
    try:
        return await asked
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # the client has gone
            raise
        raise TimeoutError from None
    finally:
        timer.cancel()


def _is_json(scope: Scope) -> bool:
    return any(name == b"content-type" and value.lower().startswith(b"application/json") for name, value in
               scope["headers"])  # fmt: skip


def _is_whole(text: str) -> bool:
    """Whether there is UTF-8 for it: JSON may hold half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _again(message: Message, receive: Receive) -> Receive:
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return message

    return again


async def _answer(told: object, send: Send) -> None:
    body = json.dumps(told, separators=(",", ":")).encode()
    headers = [(b"content-length", str(len(body)).encode()), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
