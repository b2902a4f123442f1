"""Where Ray is not installed, and before it is asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Foreword

from foreword.cli.failures import with_ray_address
from foreword.errors import MissingExtraError, install_command

WITHOUT = (
    "import sys; sys.modules['ray'] = None; from foreword.cli import main; sys.argv = ['foreword', *{words}]; main()"
)


def test_a_missing_ray_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a b c\n")
    for words in (
        ["train", "ngram", "text.txt", "-o", "m", "--ray"],
        ["tokenize", "train", "text.txt", "-o", "m", "--vocab", "300", "--ray", "auto"],
        ["filter", "m", "text.txt", "out", "--score-only", "--ray"],
    ):
        command = [sys.executable, "-c", WITHOUT.format(words=words)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr == f"foreword: --ray needs ray: {install_command('ray')}\n"
        assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_ray_is_imported_by_nobody_who_does_not_ask() -> None:
    for words in (["--help"], ["filter", "--help"], ["data"]):
        call = f"app({words}, standalone_mode=False)"
        told = f"import sys; from foreword.cli import app; {call}; print('ray' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "False"


def test_an_error_of_a_missing_extra_survives_another_process() -> None:
    import pickle

    error = MissingExtraError("zstandard", "data", "reading x.zst")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_ray_takes_an_address_or_none() -> None:
    for words, wanted in (
        (["filter", "--ray", "m", "in", "out"], ["filter", "--ray=", "m", "in", "out"]),
        (["filter", "m", "--ray"], ["filter", "m", "--ray="]),
        (["x", "--ray", "head:6379", "y"], ["x", "--ray", "head:6379", "y"]),
        (["x", "--ray", "ray://10.0.0.1:10001"], ["x", "--ray", "ray://10.0.0.1:10001"]),
        (["x", "--ray", "auto", "--ray=auto"], ["x", "--ray", "auto", "--ray=auto"]),
        (["x", "--ray", "s3://a/b:1"], ["x", "--ray=", "s3://a/b:1"]),
    ):
        assert with_ray_address(words) == wanted


@pytest.mark.parametrize("command", [["filter"], ["train"], ["tokenize", "train"]])
def test_help_has_an_example_of_ray(foreword: Foreword, command: list[str]) -> None:
    told = re.sub(r"\s+", " ", foreword(*command, "--help").stdout)
    assert re.search(r"--ray head:6379", told)


def test_a_cluster_that_is_not_there_is_told_at_once(foreword: Foreword, tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    if ray.is_initialized():
        pytest.skip("a cluster is connected already, and would be used")
    (tmp_path / "text.txt").write_text("a b\n")
    done = foreword("train", "ngram", tmp_path / "text.txt", "-o", tmp_path / "m", "--ray", "127.0.0.1:1")
    assert done.exit_code == 1
    assert re.fullmatch(r"foreword: --ray 127.0.0.1:1: no Ray cluster answers there: .*\n", done.stderr)


def test_a_model_that_is_not_there_is_told_before_a_cluster_is_started(
    foreword: Foreword, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    monkeypatch.setattr("foreword.cluster.filtering.connected", None)  # nobody may call it
    (tmp_path / "text.txt").write_text("a b\n")
    done = foreword("filter", tmp_path / "m", tmp_path / "text.txt", tmp_path / "out", "--score-only", "--ray")
    assert done.stderr == f"foreword: {tmp_path / 'm'}: no model there: No such file or directory\n"
