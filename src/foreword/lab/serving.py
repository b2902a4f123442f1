"""The lab as a running server: models from where the operator says, the page, and a clean end."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from foreword.errors import MissingExtraError
from foreword.lab.app import Lab, application
from foreword.lab.trainings import Room
from foreword.serve.registry import Shelf
from foreword.serve.running import address_of, listening

try:
    import uvicorn
except ImportError:
    raise MissingExtraError("uvicorn", "lab", "a web page") from None

__all__ = ["address_of", "listening", "serve"]


def serve(
    shelf: Shelf,
    texts: Callable[[], Sequence[str]],
    host: str,
    port: int,
    token: str | None,
    *,
    ready: Callable[[str], None],
    open_browser: bool = False,
) -> None:
    """Until Ctrl-C. texts: what is learnt from, read when it is needed. ready: told the address."""
    with listening(host, port) as door, TemporaryDirectory(prefix="foreword-lab-") as folder:
        lab = Lab(shelf, Room(texts), Path(folder), starters=len(shelf) == 0)
        try:
            address = address_of(door, host, token)
            ready(address)
            if open_browser:
                threading.Timer(0.3, webbrowser.open, [address]).start()
            config = uvicorn.Config(application(lab, token=token), log_level="warning", lifespan="off")
            uvicorn.Server(config).run([door])
        finally:
            lab.close()
