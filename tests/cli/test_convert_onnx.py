"""``foreword convert MODEL OUT.onnx``."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Foreword


def test_a_recurrent_model_becomes_onnx(foreword: Foreword, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a b c a b c a\nb c a b\n" * 20)
    small = ["--set", "embedding=4", "--set", "hidden=5", "--set", "layers=1", "--set", "epochs=1"]
    assert foreword("train", "gru", tmp_path / "text.txt", "-o", tmp_path / "gru", *small).exit_code == 0
    result = foreword("convert", tmp_path / "gru", tmp_path / "gru.onnx", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["vocabulary"] == 5
    assert b"LogSoftmax" in (tmp_path / "gru.onnx").read_bytes()


def test_other_kinds_do_not(foreword: Foreword, shelf: Path, tmp_path: Path) -> None:
    result = foreword("convert", shelf / "word", tmp_path / "out.onnx")
    assert result.exit_code == 1
    assert "its kind is word; ONNX files hold recurrent language models here" in result.stderr
    assert list(tmp_path.iterdir()) == []
