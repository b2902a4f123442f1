"""What goes wrong, said in one line.

Every error that a user can cause is a ``ForewordError``. Its message names the file, line or setting, says what was
expected, and fits on one line; the command line prints it as it is and exits with status 1.
"""

from __future__ import annotations


class ForewordError(Exception):
    """Something the caller can put right; the message says how."""


class InputError(ForewordError):
    """A text, a file or a folder that cannot be read as what it should be."""


class SettingError(ForewordError):
    """A setting, or a combination of settings, that makes no sense."""


class DivergedError(ForewordError):
    """Training that ran into a loss or a gradient that is not finite, or absurdly large."""


class MissingExtraError(ForewordError):
    """An optional package is needed: the message says what to install."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'foreword[{extra}]'")
        self._told = package, extra, purpose

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        """So that another process can tell it."""
        return type(self), self._told
