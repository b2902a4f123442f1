"""The lab's application: the page, and the routes that only it needs, on top of those of every server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic import Field

from foreword.lab import reference, tags, tokens, translating, words
from foreword.lab.cells import page_data, trained_cells
from foreword.lab.jobs import Job, Jobs, Point
from foreword.lab.page import PANELS, STATIC, page
from foreword.lab.trainings import KINDS, Room, start_starters, start_training
from foreword.serve.limits import Guard
from foreword.serve.registry import Shelf
from foreword.serve.routes import Asked, service

OWN_TEXT = 500_000
"""Characters of a text that is sent to be learnt from."""


class AskTrain(Asked):
    kind: str = Field(max_length=40)
    seconds: float = Field(10.0, ge=0.5, le=600)
    units: int = Field(64, ge=2, le=512)
    text: str = Field("", max_length=OWN_TEXT)


class Lab:
    """Models, trainings and the text they learn from. folder: where stopped trainings are kept."""

    def __init__(self, shelf: Shelf, room: Room, folder: Path, *, starters: bool = True) -> None:
        self.shelf = shelf
        self.room = room
        self.folder = folder
        self.jobs = Jobs()
        self.cells = page_data()
        self.merges = tokens.Merges(lambda: room.texts)
        if starters:
            self._learn_merges()
            start_starters(self.jobs, shelf, room, folder)
            translating.start_translators(self.jobs, shelf)
            self._train_cells()

    def _learn_merges(self) -> None:
        """Those of the lab's text; and the kernels are compiled that the panel of tokens needs for any other."""

        def work(_: Job) -> Iterator[Point]:
            yield Point(0.0)
            self.merges.replay("low lower lowest", "text", 3)
            self.merges.replay("low lower lowest", "corpus", 3)
            yield Point(1.0)

        self.jobs.add("Byte-pair merges", work, lambda: None, starter=True)

    def _train_cells(self) -> None:
        """The three cells of the first panel, once the models that other panels need are there."""
        if find_spec("torch") is None:
            return

        def work(_: Job) -> Iterator[Point]:
            yield Point(0.0)
            self.cells = page_data(trained_cells(self.room.texts))
            yield Point(1.0)

        self.jobs.add("Cells of eight units", work, lambda: None, starter=True)

    def close(self) -> None:
        self.jobs.close()


def application(lab: Lab, *, token: str | None = None) -> Guard:
    """The page and its routes, guarded."""
    app = service(lab.shelf, "Foreword lab")
    _add_pages(app, lab)
    _add_training(app, lab)
    tokens.add_routes(app, lab.merges)
    words.add_routes(app, lab.shelf, lambda: lab.room.texts)
    tags.add_routes(app, lab.shelf)
    translating.add_routes(app, lab.shelf)
    reference.add_routes(app, lab.shelf)
    return Guard(app, token=token)


def _add_pages(app: FastAPI, lab: Lab) -> None:
    shell = page()

    @app.get("/", response_class=HTMLResponse)
    def index() -> str:
        return shell

    @app.get("/favicon.ico")
    def icon() -> Response:
        return Response(status_code=204)

    @app.get("/api/panels")
    def panels() -> list[dict[str, str]]:
        return [{"name": panel.name, "title": panel.title} for panel in PANELS]

    @app.get("/api/cells")
    def cells() -> Response:
        return Response(json.dumps(lab.cells), media_type="application/json")

    app.mount("/static", StaticFiles(directory=STATIC), name="static")


def _add_training(app: FastAPI, lab: Lab) -> None:
    rooms = threading.Lock()

    @app.get("/api/trainings")
    def trainings() -> dict[str, Any]:
        return {"kinds": KINDS, "jobs": [job.to_json() for job in lab.jobs.all()]}

    @app.post("/api/trainings")
    def train(asked: AskTrain) -> JSONResponse:
        with rooms:
            own = [line for line in asked.text.splitlines() if line.strip()]
            room = Room(lambda: own) if own else lab.room
            if own:
                _ = room.texts  # too short a text is told now
            job = start_training(
                lab.jobs, lab.shelf, room, asked.kind, lab.folder, seconds=asked.seconds, units=asked.units
            )
        return JSONResponse(job.to_json(), 202)

    @app.post("/api/trainings/{id}/stop")
    def stop(id: int) -> dict[str, Any]:
        return lab.jobs.stop(id).to_json()

    @app.post("/api/trainings/{id}/resume")
    def resume(id: int) -> dict[str, Any]:
        return lab.jobs.resume(id).to_json()
