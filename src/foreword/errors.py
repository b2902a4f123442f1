"""The error types: one per fault.

Every error that a user can cause is a ``ForewordError``. Its message is one line that names the file, line or setting
and says what was expected; the command line prints it and exits with status 1, or 2 for a ``SettingError``: a call that
makes no sense rather than work that failed.

    ForewordError
      InputError            a text, file or folder that cannot be read
        MissingVocabularyError  a saved model without its vocabulary
        DivergedError       training diverged
        GpuMemoryError      a GPU too small for a training or for scoring
        CTCInputError       logits, labels or a folder that a CTC decoder cannot take
      SettingError          a setting, or a combination of settings, that makes no sense
        NoGpuError          device='cuda' without a GPU
        NotSaveableError    save() of something that is not Saveable
        VocabularyError     a token id outside the vocabulary
      NotFittedError        use before fit
      MissingExtraError     an optional package is not installed
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class ForewordError(Exception):
    """Base class of all errors that the caller can put right."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error by its message, so that it crosses processes whatever its constructor takes."""
        return _rebuild, (type(self), self.args)


def _rebuild(kind: type[ForewordError], args: tuple[Any, ...]) -> ForewordError:
    error = kind.__new__(kind)
    error.args = args
    return error


class InputError(ForewordError):
    """A text, file or folder that cannot be read as what it should be."""


class MissingVocabularyError(InputError, ValueError):
    """A saved model without the vocabulary that it needs."""

    def __init__(self, expected: str) -> None:
        super().__init__(f"expected {expected}")


class DivergedError(InputError):
    """Training diverged: the loss or a gradient is infinite, NaN or far above that of an untrained model."""


class GpuMemoryError(InputError):
    """A GPU does not have enough memory. work: what for. expected: which settings to lower."""

    def __init__(self, work: str, expected: str) -> None:
        super().__init__(f"the GPU does not have enough memory for {work}: expected {expected}")


class CTCInputError(InputError, ValueError):
    """Logits, labels or a folder that a CTC decoder cannot take."""


class SettingError(ForewordError):
    """A setting, or a combination of settings, that makes no sense."""


class NoGpuError(SettingError):
    """``device='cuda'`` on a machine without a GPU."""

    def __init__(self) -> None:
        super().__init__("device is 'cuda', but torch finds no GPU here: leave it out, or say 'cpu'")


class NotSaveableError(SettingError):
    """An object without ``to_parts``, or a model that contains one, cannot be saved."""

    def __init__(self, part: object, consequence: str = "") -> None:
        super().__init__(f"a {type(part).__name__} cannot be saved{consequence}")


class VocabularyError(SettingError, ValueError):
    """A token id that is not in the vocabulary."""

    def __init__(self, size: int) -> None:
        super().__init__(f"an id is not in the vocabulary of {size} tokens")


class NotFittedError(ForewordError, ValueError):
    """A model is used before ``fit``. arguments: what its ``fit`` takes."""

    def __init__(self, model: object, arguments: str) -> None:
        super().__init__(f"this {type(model).__name__} has learnt nothing yet: call fit({arguments}) first")


class MissingExtraError(ForewordError):
    """An optional package is needed; the message says what to install."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: {install_command(extra)}")


def install_command(extra: str) -> str:
    """Return the command that installs an extra: into a clone of the repository, or next to an installed wheel."""
    root = Path(__file__).resolve().parents[2]
    clone = (root / "pyproject.toml").is_file() and (root / "src" / "foreword").is_dir()
    return f"pip install -e '{root}[{extra}]'" if clone else f"pip install 'foreword[{extra}]'"


def reason_of(error: BaseException) -> str:
    """Return why something failed, on one line: in the operating system's words where it gave any."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text.strip().splitlines() or [type(error).__name__])[0]


@contextmanager
def explained(
    failure: str, *, catch: type[Exception] = OSError, raises: type[ForewordError] = InputError
) -> Iterator[None]:
    """Turn an error of the file system into one line: ``failure``, such as "cannot write x.txt", and the reason.

    catch: what to turn; behind an address a network library raises errors of its own. Ours pass as they are.
    """
    try:
        yield
    except (ForewordError, MemoryError):
        raise
    except catch as error:
        raise raises(f"{failure}: {reason_of(error)}") from error
