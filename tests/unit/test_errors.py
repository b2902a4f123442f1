"""Errors: one type per fault, each a subclass of what callers catch, and each crosses processes."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from foreword import errors
from foreword.errors import (
    DivergedError,
    ForewordError,
    InputError,
    MissingExtraError,
    NoGpuError,
    NotFittedError,
    NotSaveableError,
    SettingError,
    VocabularyError,
    install_command,
)
from foreword.features.estimator import EstimatorNotFittedError


@pytest.mark.parametrize(
    ("error", "kinds"),
    [
        (InputError("x.txt: no text"), (ForewordError,)),
        (DivergedError("training diverged"), (InputError,)),
        (NoGpuError(), (SettingError,)),
        (NotSaveableError(3), (SettingError,)),
        (VocabularyError(7), (SettingError, ValueError)),
        (NotFittedError([], "texts"), (ForewordError, ValueError)),
        (EstimatorNotFittedError([], "texts"), (NotFittedError, AttributeError)),
        (MissingExtraError("torch", "neural", "an LSTM"), (ForewordError,)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_is_caught_as_before_and_crosses_processes(error: ForewordError, kinds: tuple[type, ...]) -> None:
    assert all(isinstance(error, kind) for kind in kinds)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert "\n" not in str(error)


def test_messages_name_the_thing_and_the_way_out() -> None:
    assert str(NotSaveableError(3, ", nor what reads with it")) == "a int cannot be saved, nor what reads with it"
    assert str(NotFittedError([], "texts")) == "this list has learnt nothing yet: call fit(texts) first"
    assert "'cpu'" in str(NoGpuError())
    assert str(MissingExtraError("torch", "neural", "an LSTM")) == f"an LSTM needs torch: {install_command('neural')}"


def test_the_command_that_installs_an_extra_fits_a_clone_and_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "src" / "foreword"
    package.mkdir(parents=True)
    monkeypatch.setattr(errors, "__file__", str(package / "errors.py"))
    assert install_command("data") == "pip install 'foreword[data]'"
    (tmp_path / "pyproject.toml").touch()
    assert install_command("data") == f"pip install -e '{tmp_path}[data]'"
