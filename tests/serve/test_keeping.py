"""Models from disk: loaded behind a server that already answers, and replaced under it without a lost request."""

from __future__ import annotations

import lzma
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.real_data import real
from tests.refusals import refused

from foreword.errors import InputError, SettingError
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.serve.loading import Source, opened, sources_of
from foreword.serve.registry import Registry
from foreword.storage.folder import save
from foreword.tokens.words import WordTokenizer

from .conftest import Running

TEXT = "the old man reads the book"


def made(times: int) -> TextLM:
    return TextLM(WordTokenizer(), NgramLM(2)).fit([TEXT, "a young man"] * times + [f"the {n} books" for n in range(9)])


def until(wanted: Any, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not wanted():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def is_ready(served: Running) -> bool:
    return served.client.get("/ready").status_code == 200


def test_names_are_the_operators(tmp_path: Path) -> None:
    for name in ("one", "two", "a=b"):
        (tmp_path / name).mkdir()
    one = str(tmp_path / "one")
    assert sources_of([one, f"second={one}"]) == [Source("one", one), Source("second", one)]
    with pytest.raises(SettingError, match="two models are called one"):
        sources_of([one, f"one={tmp_path / 'two'}"])
    with pytest.raises(SettingError, match="cannot name a model"):
        sources_of([str(tmp_path / "a=b")])
    with pytest.raises(SettingError, match="cannot name a model"):
        sources_of([f"../x={one}"])
    with pytest.raises(InputError, match="no such file"):
        sources_of([str(tmp_path / "three")])


def test_what_answers_no_text_is_not_served(tmp_path: Path) -> None:
    save(made(1).model, tmp_path / "bare")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="its kind is ngram, which answers no text"):
        opened(Source("bare", str(tmp_path / "bare")))


@pytest.mark.data
def test_a_kenlm_file_without_words_is_served_and_scores(tmp_path: Path) -> None:
    """It had ended the server, and with it the models next to it."""
    (tmp_path / "a.bin").write_bytes(lzma.decompress(real("formats/kenlm/probing_novocab.bin.xz").read_bytes()))
    entry = opened(Source("a.bin", str(tmp_path / "a.bin")))
    assert entry.can == ("score",)
    registry = Registry()
    registry.put(entry)
    served = Running(registry)
    try:
        assert served.ask("score", model="a.bin", text=["the cat"])["results"][0]["score"] < 0
        for path, body in (
            ("surprisal", {"text": "the"}), ("next", {"text": "the"}), ("generate", {"prompt": "the"}),
            ("tokenize", {"text": "the"}),
        ):  # fmt: skip
            said = served.client.post(f"/api/{path}", json={"model": "a.bin", **body})
            assert 400 <= said.status_code < 500
            assert "holds no words, only their hashes; it does score" in said.text
    finally:
        served.close()


def test_ready_when_every_model_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(made(1), tmp_path / "lm")
    gate = threading.Event()

    def slowly(source: Source) -> Any:
        gate.wait(10)
        return opened(source)

    monkeypatch.setattr("foreword.serve.loading.opened", slowly)
    served = Running(Registry(), sources=[Source("lm", str(tmp_path / "lm"))])
    try:
        assert served.client.get("/health").json() == {"status": "alive"}
        answer = served.client.get("/ready")
        assert "still being loaded: lm" in refused(answer, 503)
        assert answer.headers["retry-after"] == "1"
        assert "still being loaded" in served.refused("score", 503, model="lm", text="a")
        gate.set()
        until(lambda: is_ready(served))
        assert served.ask("score", model="lm", text="a")
    finally:
        gate.set()
        served.close()


def test_a_replaced_folder_takes_over_and_no_request_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "lm"
    old, new = made(1), made(50)
    save(old, folder)
    served = Running(Registry(), sources=[Source("lm", str(folder))], reload_every=0.05)
    try:
        until(lambda: is_ready(served))
        seen: list[float] = []
        statuses: set[int] = set()
        ended = threading.Event()

        def asking() -> None:
            with httpx.Client(base_url=served.address) as client:
                while not ended.is_set():
                    answer = client.post("/api/score", json={"model": "lm", "text": TEXT})
                    statuses.add(answer.status_code)
                    seen.append(answer.json()["results"][0]["score"])

        clients = [threading.Thread(target=asking) for _ in range(3)]
        for client in clients:
            client.start()
        until(lambda: len(seen) > 20)
        save(new, folder)
        until(lambda: seen[-1] == pytest.approx(new.score(TEXT)))
        ended.set()
        for client in clients:
            client.join()
        assert statuses == {200}
        wanted = (old.score(TEXT), new.score(TEXT))
        assert all(any(score == pytest.approx(each) for each in wanted) for score in seen)
        assert 'foreword_model_loads_total{model="lm",result="ok"} 2' in served.metrics()
    finally:
        served.close()


def test_a_request_that_has_begun_ends_on_the_old_model(tmp_path: Path) -> None:
    folder = tmp_path / "lm"
    old = made(1)
    save(old, folder)
    served = Running(Registry(), sources=[Source("lm", str(folder))], reload_every=0.05)
    try:
        until(lambda: is_ready(served))
        entry = served.service.registry["lm"]
        entry.lock.acquire()  # the model is busy
        found: list[Any] = []
        asking = threading.Thread(target=lambda: found.append(served.ask("score", model="lm", text=TEXT)))
        asking.start()
        until(lambda: served.service.metrics.in_flight > 0)
        save(made(50), folder)
        until(lambda: served.service.registry["lm"] is not entry)
        entry.lock.release()
        asking.join(10)
        assert found[0]["results"][0]["score"] == pytest.approx(old.score(TEXT))
    finally:
        served.close()


def test_a_broken_replacement_changes_nothing_but_a_count(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "lm"
    old = made(1)
    save(old, folder)
    served = Running(Registry(), sources=[Source("lm", str(folder))], reload_every=0.05)
    try:
        until(lambda: is_ready(served))
        broken = tmp_path / "broken.json"
        broken.write_text('{"format": "foreword", broken')
        broken.replace(folder / "model.json")
        failed = 'foreword_model_loads_total{model="lm",result="failed"} 1'
        until(lambda: failed in served.metrics())
        time.sleep(0.3)
        assert failed in served.metrics()  # it is tried once
        assert served.ask("score", model="lm", text=TEXT)["results"][0]["score"] == pytest.approx(old.score(TEXT))
        assert is_ready(served)
        assert [record.getMessage() for record in caplog.records if "lm stays as it was" in record.getMessage()]
        save(made(50), folder)  # and put right
        until(lambda: 'result="ok"} 2' in served.metrics())
    finally:
        served.close()
