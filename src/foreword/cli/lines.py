"""Lines one for one: what is read line by line and answered line by line, blank lines included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from foreword.text.sources import read_line_batches
from foreword.text.unicode import Errors


@dataclass(frozen=True, slots=True)
class FileLines:
    """Consecutive lines of a file, blank ones included. first: the number of the first, counted from 1."""

    name: str
    first: int
    lines: list[str]

    def place(self, line: int) -> str:
        """Return the file and the number of a line of the batch, for messages."""
        return f"{self.name}: line {self.first + line}"


def line_batches(name: str, errors: Errors = "strict") -> Iterator[FileLines]:
    """Yield the lines of a file, a folder, a glob or standard input, as many at a time as are there."""
    found = read_line_batches(name, errors, prompt=True)  # at once, so that a wrong name is reported before work begins
    return (FileLines(file, int(lines.numbers[0]), lines.strings()) for file, lines in found)
