"""The lab's service: the page, and the routes that only it needs, added to those of every server."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import Field

from foreword.lab import reference, tags, tokens, translating, words
from foreword.lab.cells import SENTENCE, page_data, trained_cells
from foreword.lab.page import PANELS, STATIC, page
from foreword.lab.trainings import KINDS, Job, Jobs, LearningText, start_starters, start_training
from foreword.protocols import Step
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
        self.merges = tokens.Merges(lambda: text.documents)
        if starters:
            self._learn_merges()
            start_starters(self.jobs, registry, text, folder)
            translating.start_translators(self.jobs, registry)
            self._train_cells()

    def _learn_merges(self) -> None:
        """Learn the merges of the lab's text, which also compiles the kernels for any other text."""

        def work(_: Job) -> Iterator[Step]:
            yield Step(0, 1)
            self.merges.replay("low lower lowest", "text", 3)
            self.merges.replay("low lower lowest", "corpus", 3)
            yield Step(1, 1)

        self.jobs.add("Byte-pair merges", work, lambda: None, starter=True)

    def _train_cells(self) -> None:
        """Train the three cells of the first panel, after the models that other panels need."""
        if find_spec("torch") is None:
            return

        def work(_: Job) -> Iterator[Step]:
            yield Step(0, 1)
            sentence = self.text.examples["sentence"] if self.text.own else SENTENCE
            self.cells = page_data(trained_cells(self.text.documents), sentence)
            yield Step(1, 1)

        self.jobs.add("Cells of eight units", work, lambda: None, starter=True)

    def close(self) -> None:
        """Stop the trainings."""
        self.jobs.close()


def lab_service(lab: Lab, *, token: str | None = None) -> Service:
    """Return the service of the lab: its page and its routes."""
    service = Service(lab.registry, title="Foreword lab", token=token)
    _add_pages(service, lab)
    _add_training(service, lab)
    tokens.add_routes(service, lab.merges)
    words.add_routes(service, lambda: lab.text.documents)
    tags.add_routes(service)
    translating.add_routes(service)
    reference.add_routes(service)
    return service


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
    service.get("/api/cells", lambda: lab.cells)
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

    service.get("/api/trainings", lambda: {"kinds": KINDS, "jobs": [job.to_json() for job in lab.jobs.all()]})
    service.post("/api/trainings", AskTrain, train)
    service.post("/api/trainings/stop", AskJob, lambda asked: lab.jobs.stop(asked.id).to_json())
    service.post("/api/trainings/resume", AskJob, lambda asked: lab.jobs.resume(asked.id).to_json())


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
