"""The lab's service: the page, and the routes that only it needs, added to those of every server."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import Field

from foreword.lab import matches, tokens, translating
from foreword.lab.cells import page_data
from foreword.lab.page import PANELS, STATIC, exported, page
from foreword.lab.trainings import Job, Jobs, LearningText, is_network, offered, start_starters, start_training
from foreword.lab.units import UnitReader
from foreword.protocols import Json, Step
from foreword.serve.bodies import Asked
from foreword.serve.connection import Response, json_response
from foreword.serve.registry import Registry
from foreword.serve.routes import HTML, Service
from foreword.serve.running import Server, address_of, listening

OWN_TEXT = 500_000
"""Characters of a text that a visitor sends to learn from."""


class AskTrain(Asked):
    """Start a training. seconds: how long it may take; text: what to learn from instead of the lab's own text."""

    kind: str = Field(max_length=40)
    seconds: float = Field(10.0, ge=0.5, le=600)
    units: int = Field(64, ge=2, le=512)
    text: str = Field("", max_length=OWN_TEXT)


class AskJob(Asked):
    """Stop or resume a training."""

    id: int


class Lab:
    """Models, trainings and the text they learn from. folder: where checkpoints are written."""

    def __init__(self, registry: Registry, text: LearningText, folder: Path, *, starters: bool = True) -> None:
        self.registry = registry
        self.text = text
        self.folder = folder
        self.jobs = Jobs()
        self.cells = page_data()
        self.units: UnitReader | None = None
        self.merges = tokens.Merges(lambda: text.documents)
        self.matcher = matches.Matcher(text)
        if starters:
            self._learn_merges()
            start_starters(self.jobs, registry, text, folder)
            translating.start_translators(self.jobs, registry)
            for module in panel_modules():
                if hasattr(module, "prepare"):
                    module.prepare(self)

    def _learn_merges(self) -> None:
        """Learn the merges of the lab's text, which also compiles the kernels for any other text."""

        def work(_: Job) -> Iterator[Step]:
            yield Step(0, 1)
            self.merges.replay("low lower lowest", "text", 3)
            self.merges.replay("low lower lowest", "corpus", 3)
            yield Step(1, 1)

        self.jobs.add("Byte-pair merges", work, lambda: None, starter=True)

    def close(self) -> None:
        """Stop the trainings."""
        self.jobs.close()


def lab_service(lab: Lab, *, token: str | None = None) -> Service:
    """Return the service of the lab: its page and its routes."""
    service = Service(lab.registry, title="Foreword lab", token=token)
    _add_pages(service, lab)
    _add_training(service, lab)
    for module in panel_modules():
        module.add_routes(service, lab)
    return service


def panel_modules() -> list[Any]:
    """Return the modules that answer panels."""
    return [import_module(f"foreword.lab.{panel.module}") for panel in PANELS if panel.module]


TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


def _add_pages(service: Service, lab: Lab) -> None:
    """Add the page, its static files and its data."""

    def constant(body: bytes, content_type: str, status: int = 200) -> Callable[[], Awaitable[Response]]:
        async def answer() -> Response:
            return Response(body, status, content_type)

        return answer

    service.get("/", constant(page().encode(), HTML))
    service.get("/favicon.ico", constant(b"", HTML, 204))
    for file in STATIC.iterdir():
        service.get(f"/static/{file.name}", constant(file.read_bytes(), TYPES[file.suffix]))
    service.get("/api/panels", lambda: [{"name": panel.name, "title": panel.title} for panel in PANELS])
    for panel in PANELS:
        service.get(f"/saved/{panel.name}", constant(exported(panel.name, {}).encode(), HTML))
    service.get("/api/examples", lambda: lab.text.examples)


def _add_training(service: Service, lab: Lab) -> None:
    """Add the routes that start, watch, stop and resume trainings."""
    one_at_a_time = threading.Lock()

    def train(asked: AskTrain) -> Response:
        with one_at_a_time:
            lines = [line for line in asked.text.splitlines() if line.strip()]
            text = LearningText(lambda: lines) if lines else lab.text
            if lines:
                _ = text.documents  # too short a text is refused now
            job = start_training(
                lab.jobs, lab.registry, text, asked.kind, lab.folder, seconds=asked.seconds, units=asked.units
            )
        return json_response(job.to_json(), 202)

    service.get("/api/trainings", lambda: _trainings(lab))
    service.post("/api/trainings", AskTrain, train)
    service.post("/api/trainings/stop", AskJob, lambda asked: lab.jobs.stop(asked.id).to_json())
    service.post("/api/trainings/resume", AskJob, lambda asked: lab.jobs.resume(asked.id).to_json())


def _trainings(lab: Lab) -> dict[str, Json]:
    """Return what can be trained and what is."""
    titles: dict[str, Json] = {name: rung.lab for name, (rung, _) in offered().items()}
    networks: list[Json] = [name for name in titles if is_network(name)]
    return {"kinds": titles, "networks": networks, "jobs": [job.to_json() for job in lab.jobs.all()]}


def serve(
    registry: Registry,
    texts: Callable[[], Sequence[str]],
    host: str,
    port: int,
    token: str | None,
    *,
    ready: Callable[[str], None],
    own_text: bool = False,
    open_browser: bool = False,
) -> None:
    """Serve the lab until Ctrl-C. texts: what is learnt from, read when needed; own_text: whether the user named them;
    ready: called with the address.
    """
    with listening(host, port) as bound, TemporaryDirectory(prefix="foreword-lab-") as folder:
        lab = Lab(registry, LearningText(texts, own=own_text), Path(folder), starters=len(registry) == 0)
        try:
            address = address_of(bound, host, token)
            ready(address)
            if open_browser:
                threading.Timer(0.3, webbrowser.open, [address]).start()
            Server(lab_service(lab, token=token), grace=1.0).run(bound)
        finally:
            lab.close()
