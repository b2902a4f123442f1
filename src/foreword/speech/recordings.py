"""Recordings and what is said in them: a folder or a tar archive of WAV files, or a table that names them.

In a folder or an archive a file's name begins with its text: ``7_theo_12.wav``. A table has a line per recording, the
path of its WAV file, relative to the table, a tab, and its text.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path

from foreword.errors import InputError
from foreword.protocols import Meter
from foreword.speech.wav import Sound, read_wav
from foreword.text.datasets import dataset
from foreword.text.sources import read_lines

DIGITS = "spoken_digits"
"""The data set of that name: its test part is recordings 0 to 4 of each digit and speaker, as its authors have it."""

TESTED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A sound and the words said in it; name: of its file, without ``.wav``."""

    name: str
    sound: Sound
    text: str


def read_recordings(path: str | Path, *, meter: Meter | None = None) -> list[Recording]:
    """Read all recordings of a folder, an archive or a table."""
    found = []
    for recording in _recordings(Path(path)):
        found.append(recording)
        if meter and len(found) % 100 == 0:
            meter("recordings", len(found), None)
    if not found:
        raise InputError(f"{path}: there is no recording in it: expected WAV files")
    return found


def spoken_digits(part: str, *, meter: Meter | None = None) -> list[Recording]:
    """Read the ``train`` or the ``test`` part of the spoken digits, ``7_theo_12.wav`` being number 12 of theo's 7."""
    recordings = read_recordings(dataset(DIGITS).path(part, meter=meter), meter=meter)
    return [each for each in recordings if (int(each.name.split("_")[2]) < TESTED) == (part == "test")]


def _recordings(path: Path) -> Iterator[Recording]:
    if path.is_dir():
        files = sorted(path.glob("*.wav"))
        yield from (Recording(file.stem, read_wav(file), text_of(file.stem)) for file in files)
    elif path.is_file() and tarfile.is_tarfile(path):
        yield from _archived(path)
    else:
        yield from _listed(path, read_lines(str(path)))


def text_of(name: str) -> str:
    """Return the text that the name of a file begins with."""
    return name.partition("_")[0]


def _archived(path: Path) -> Iterator[Recording]:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(".wav"):
                    name = Path(member.name).stem
                    file = archive.extractfile(member)
                    content = b"" if file is None else file.read()
                    yield Recording(name, read_wav(content, f"{path}: {member.name}"), text_of(name))
    except (tarfile.TarError, EOFError, LZMAError, zlib.error, OSError) as error:
        raise InputError(f"{path}: expected a whole tar archive: {error}") from error


def _listed(path: Path, lines: Iterable[str]) -> Iterator[Recording]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name, tab, text = line.partition("\t")
        if not tab:
            raise InputError(f"{path}, line {number}: expected the path of a WAV file, a tab, and what is said in it")
        file = path.parent / name
        yield Recording(file.stem, read_wav(file), text.strip())
