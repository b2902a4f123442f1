"""``foreword speech`` as a person or a script meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foreword.speech.wav import Sound, write_wav

from .conftest import Foreword

PITCHES = {"low": 500, "high": 2300}
SMALL = [
    f"--set={setting}"
    for setting in ("units=16", "stack=2", "augment=false", "rate=0.02", "batch=4", "dropout=0", "epochs=16")
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty recordings of one to three tones, and a table that names them."""
    folder, random = tmp_path_factory.mktemp("said"), np.random.default_rng(0)
    lines = []
    for number in range(40):
        words = random.choice(list(PITCHES), random.integers(1, 4)).tolist()
        tones = [np.sin(2 * np.pi * PITCHES[word] * np.arange(900) / 8000) for word in words]
        sound = np.concatenate([np.append(np.zeros(500), 0.4 * tone) for tone in tones])
        write_wav(
            Sound((sound + 0.01 * random.normal(size=len(sound))).astype(np.float32), 8000), folder / f"{number}.wav"
        )
        lines.append(f"{number}.wav\t{' '.join(words)}")
    (folder / "said.tsv").write_text("\n".join(lines))
    return folder / "said.tsv"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, table: Path, foreword: Foreword) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("recognisers") / "tones"
    result = foreword("speech", "train", table, "-o", folder, "--valid", table, "--json", *SMALL)
    assert result.exit_code == 0, result.stderr
    return folder, json.loads(result.stdout)


def refused(result: Any, said: str, status: int = 1) -> None:
    assert result.exit_code == status, result.output
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1 or status == 2


def test_train_reports_what_it_made(trained: tuple[Path, Any]) -> None:
    folder, facts = trained
    assert (facts["kind"], facts["recordings"], facts["symbols"]) == ("speech-recogniser", 40, 4)
    assert facts["output"] == str(folder)
    assert facts["valid"]["wer"] < 0.1
    assert not Path(f"{folder}.checkpoint").exists()


def test_transcribe_answers_file_by_file(trained: tuple[Path, Any], table: Path, foreword: Foreword) -> None:
    files = [table.with_name("0.wav"), table.with_name("1.wav")]
    texts = [line.split("\t")[1] for line in table.read_text().splitlines()[:2]]
    assert foreword("speech", "transcribe", trained[0], *files).stdout.splitlines() == texts
    rows = foreword("speech", "transcribe", trained[0], *files, "--json", "--beam", "0").stdout.splitlines()
    assert [json.loads(row)["text"] for row in rows] == texts
    assert json.loads(rows[0])["file"] == str(files[0])


def test_evaluate_has_the_rate_and_its_interval(trained: tuple[Path, Any], table: Path, foreword: Foreword) -> None:
    facts = json.loads(foreword("speech", "evaluate", trained[0], table, "--json").stdout)
    assert facts["texts"] == 40
    assert facts["interval"][0] <= facts["wer"] <= facts["interval"][1]
    assert facts["substitutions"] + facts["deletions"] + facts["insertions"] == round(facts["wer"] * facts["words"])
    assert "word error rate" in foreword("speech", "evaluate", trained[0], table).stdout


def test_a_language_model_trained_with_its_tokenizer(
    trained: tuple[Path, Any], table: Path, tmp_path: Path, foreword: Foreword
) -> None:
    (tmp_path / "text.txt").write_text("low\n" * 40)
    call = ["train", "ngram", tmp_path / "text.txt", "-o", tmp_path / "lm", "--tokenizer", trained[0]]
    assert foreword(*call, "--set", "order=2", "--set", "smoothing=witten-bell").exit_code == 0
    files = sorted(table.parent.glob("*.wav"))
    wav = ["speech", "transcribe", trained[0], *files, "--language-model", tmp_path / "lm"]
    heavily, lightly = (foreword(*wav, "--weight", weight).stdout.split() for weight in ("30", "0.01"))
    assert heavily.count("high") < lightly.count("high")
    refused(foreword(*wav, "--beam", "0"), "needs a beam", 2)


def test_a_stopped_training_resumes(table: Path, tmp_path: Path, foreword: Foreword) -> None:
    call = ["speech", "train", table, "-o", tmp_path / "model", *SMALL]
    assert foreword(*call, "--set=epochs=1", "--quiet").exit_code == 0
    result = foreword(*call, "--set=epochs=1", "--resume")
    assert "nothing to resume" in result.stderr


def test_bad_input_is_one_line(trained: tuple[Path, Any], table: Path, tmp_path: Path, foreword: Foreword) -> None:
    cut = tmp_path / "cut.wav"
    cut.write_bytes(table.with_name("0.wav").read_bytes()[:-100])
    refused(foreword("speech", "transcribe", trained[0], cut), "cut.wav: cut short")
    refused(foreword("speech", "transcribe", trained[0], tmp_path / "none.wav"), "none.wav")
    (tmp_path / "table.tsv").write_text("no tab\n")
    refused(foreword("speech", "evaluate", trained[0], tmp_path / "table.tsv"), "table.tsv, line 1")
    refused(foreword("speech", "train", "ptb:train", "-o", tmp_path / "model"), "its format is lines")
    refused(foreword("speech", "train", table, "-o", tmp_path / "model", "--set", "units=0"), "units is 0", 2)
    refused(foreword("speech", "transcribe", table.parent, cut), "model.json")
