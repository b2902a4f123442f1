"""Recurrent models trained by workers of a cluster: one is the plain run to the byte, and what dies changes nothing."""

from __future__ import annotations

import os
import random
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.cli.conftest import Foreword
from tests.unit.training.test_together import in_threads

from foreword.errors import ForewordError, SettingError
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

pytestmark = pytest.mark.filterwarnings("ignore")
pytest.importorskip("ray", reason="Ray is not installed")
torch = pytest.importorskip("torch")

from foreword.cluster.training import fit_on_ray  # noqa: E402
from foreword.neural.model import NeuralLM  # noqa: E402
from foreword.neural.recurrent import MODEST, RecurrentLM  # noqa: E402


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    rng = random.Random(0)
    texts = [" ".join(rng.choices("abcdefg", k=rng.randrange(4, 12))) for _ in range(150)]
    return Corpus.from_texts(texts, WordTokenizer().fit(texts))


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def new(**training: Any) -> RecurrentLM:
    return RecurrentLM("gru", 8, 8, 1, training=replace(MODEST, **{"epochs": 2, "batch": 8, "steps": 20, **training}))


def weights(model: NeuralLM) -> NDArray[np.float32]:
    found: NDArray[np.float32] = model.flat_weights().numpy()
    return found


@pytest.mark.usefixtures("cluster")
def test_one_worker_is_the_plain_run(foreword: Foreword, tmp_path: Path) -> None:
    rng = random.Random(1)
    (tmp_path / "text.txt").write_text("".join(" ".join(rng.choices("abcd", k=9)) + "\n" for _ in range(60)))
    (tmp_path / "valid.txt").write_text("".join(" ".join(rng.choices("abcd", k=9)) + "\n" for _ in range(10)))
    sizes = ("--set", "embedding=4", "--set", "hidden=4", "--set", "batch=4", "--set", "epochs=2")
    options = (*sizes, "--valid", tmp_path / "valid.txt", "--device", "cpu", "--threads", 1)
    for name, more in (("one", ()), ("ray", ("--ray",))):
        done = foreword("train", "gru", tmp_path / "text.txt", "-o", tmp_path / name, *options, *more)
        assert done.exit_code == 0, done.stderr
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "ray" / path.name).read_bytes()
    assert not (tmp_path / "ray.checkpoint").exists()


class Killer(threading.Thread):
    """Kills a worker of a training run, or another actor of it, once something has been kept of the run."""

    def __init__(self, folder: Path, actor: bytes = b"RayTrainWorker") -> None:
        super().__init__(daemon=True)
        self.folder, self.actor, self.killed, self.ended = folder, actor, 0, False

    def run(self) -> None:
        while not self.killed and not self.ended:
            if any(self.folder.glob("run/checkpoint_*/*")):
                for process in Path("/proc").glob("[0-9]*"):
                    try:
                        is_meant = process.joinpath("cmdline").read_bytes().startswith(b"ray::" + self.actor)
                    except OSError:
                        continue
                    if is_meant and not self.killed:
                        self.killed = int(process.name)
                        os.kill(self.killed, 9)
            time.sleep(0.01)


@pytest.mark.usefixtures("cluster")
def test_one_of_two_workers_is_killed_and_nothing_changes(corpus: Corpus, tmp_path: Path) -> None:
    killer = Killer(tmp_path / "run")
    killer.start()
    killed = fit_on_ray(new(epochs=3), corpus, folder=tmp_path / "run", workers=2, every=0.0)
    killer.ended = True
    killer.join()
    assert killer.killed
    assert weights(killed).tobytes() == weights(in_threads(new, corpus, 2, epochs=3)[0]).tobytes()


@pytest.mark.usefixtures("cluster")
def test_a_translator_is_trained_by_workers_as_well(corpus: Corpus, tmp_path: Path) -> None:
    """Anything that the engine hosts: by one worker the bytes of the plain run, by two the same model nearly."""
    from foreword.translate.pairs import Pairs
    from foreword.translate.seq2seq import Seq2Seq

    pairs = Pairs(corpus, corpus)
    settings: dict[str, Any] = {"words": 8, "epochs": 2, "batch": 200, "dropout": 0.0, "device": "cpu"}
    plain = Seq2Seq(8, **settings).fit(pairs, valid=pairs[:20])
    one = fit_on_ray(Seq2Seq(8, **settings), pairs, pairs[:20], folder=tmp_path / "one")
    assert one.flat_weights().numpy().tobytes() == plain.flat_weights().numpy().tobytes()
    assert one.translate(corpus[:3])[0].tolist() == plain.translate(corpus[:3])[0].tolist()
    two = fit_on_ray(Seq2Seq(8, **settings), pairs, pairs[:20], folder=tmp_path / "two", workers=2)
    assert two.valid_score_ == pytest.approx(plain.valid_score_, abs=1e-3)


def test_what_cannot_be_shared_is_refused_at_once(corpus: Corpus, tmp_path: Path, foreword: Foreword) -> None:
    with pytest.raises(SettingError, match="batch=8 cannot be shared by 3 workers"):
        fit_on_ray(new(), corpus, folder=tmp_path / "run", workers=3)
    with pytest.raises(SettingError, match="the clocks of several differ"):
        fit_on_ray(new(seconds=3.0), corpus, folder=tmp_path / "run", workers=2)
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingError, match="without --ray"):
        fit_on_ray(new(), corpus, folder=tmp_path / "file")
    assert not (tmp_path / "run").exists()
    done = foreword("train", "gru", tmp_path / "file", "-o", tmp_path / "m", "--workers", 2)
    assert done.exit_code == 2


@pytest.mark.usefixtures("cluster")
def test_a_run_whose_controller_is_killed_ends_in_a_line_that_says_how_to_resume(
    corpus: Corpus, tmp_path: Path
) -> None:
    """Ray does not restart this actor. The last test of the file, because Ray's coordinator may wait for it."""
    killer = Killer(tmp_path / "run", b"TrainController")
    killer.start()
    with pytest.raises(ForewordError, match=r"Ray failed to train: .* \(--resume continues from the last checkpoint"):
        fit_on_ray(new(epochs=300), corpus, folder=tmp_path / "run", workers=2, every=0.0)
    killer.ended = True
    killer.join()
    assert killer.killed
