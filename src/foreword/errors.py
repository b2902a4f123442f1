"""What goes wrong, said in one line.

Every error that a user can cause is a ``ForewordError``. Its message names the file, line or setting, says what was
expected, and fits on one line; the command line prints it as it is and exits with status 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class ForewordError(Exception):
    """Something the caller can put right; the message says how."""


class InputError(ForewordError):
    """A text, a file or a folder that cannot be read as what it should be."""


class SettingError(ForewordError):
    """A setting, or a combination of settings, that makes no sense."""


class MissingExtraError(ForewordError):
    """An optional package is needed: the message says what to install."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'foreword[{extra}]'")
        self._told = package, extra, purpose

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        """So that another process can tell it."""
        return type(self), self._told


def reason_of(error: Exception) -> str:
    """Return why something failed, on one line: in the operating system's words where it gave any."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text.splitlines() or [type(error).__name__])[0]


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
