"""The lab as a running server: models from where the operator says, the page, and a clean end."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from foreword.errors import InputError, MissingExtraError
from foreword.lab.app import Lab, application
from foreword.lab.trainings import Room
from foreword.serve.shelf import Shelf

try:
    import uvicorn
except ImportError:
    raise MissingExtraError("uvicorn", "lab", "a web page") from None


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


def listening(host: str, port: int) -> socket.socket:
    """A socket that is bound and listens: an address that is taken is told before anything is trained."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    door = socket.socket(family)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((host, port))
        door.listen(128)  # who comes before the server is ready waits, and is not turned away
    except OSError as error:
        door.close()
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}; try another --port") from error
    return door


def address_of(door: socket.socket, host: str, token: str | None) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{door.getsockname()[1]}/" + (f"?token={token}" if token else "")
