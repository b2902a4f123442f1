"""How a server refuses, whichever it is: one sentence, and nothing of what is inside."""

from __future__ import annotations

import httpx


def refused(answer: httpx.Response, status: int) -> str:
    """The sentence."""
    assert answer.status_code == status, answer.text
    told = answer.json()
    assert list(told) == ["error"]
    sentence = told["error"]
    assert isinstance(sentence, str)
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    return sentence
