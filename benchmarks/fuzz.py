"""Broken files by the million: valid ones are damaged, and every reader has to take or refuse what comes of it.

An input is made from its number alone, so that any one of them can be made again. Readers run in a forked process that
has five seconds for each, and may take so much more memory than it has; when it dies, what it was reading is known
from memory that both processes see, and another goes on with the next input. Refusing is raising a ``ForewordError``.
"""

from __future__ import annotations

import gc
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from mmap import PAGESIZE, mmap
from pathlib import Path
from typing import Any

from foreword.errors import ForewordError

SECONDS = 5.0
WAITING = 12
"""So many times as long by the clock on the wall."""
TIMES = 10
ROOM = 64 << 20
"""A reader may take ten times its file, and this much in any case: buffers that do not depend on the file."""

A_PROCESS = 20_000
"""Inputs that one process reads: what it may lose to fragments of memory does not add up for longer."""

Bytes = bytes | bytearray


@dataclass(frozen=True)
class Target:
    """A reader. make: writes an input into an empty folder; read: reads it there, and uses what it has read.

    whole: each writes a valid input. weight: its share of the inputs, which is large for readers that are quick.
    """

    name: str
    make: Callable[[random.Random, Path], None]
    read: Callable[[Path], object]
    whole: Sequence[Callable[[Path], object]]
    weight: float = 1.0


@dataclass(slots=True)
class Outcome:
    """How many inputs were read as if they were whole, how many refused, and what must not be: a line each."""

    name: str
    taken: int = 0
    refused: int = 0
    found: list[dict[str, Any]] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        return self.taken + self.refused + len(self.found)


# Damage


NUMBERS = (0, 1, -1, 2, 7, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 1 << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, (1 << 63) - 1)
"""What lengths go wrong at."""


def damaged(data: bytes, rng: random.Random, others: Sequence[bytes], words: Sequence[bytes] = ()) -> bytes:
    """One to a few things done to a file. others: files of the same kind to take pieces from; words: its own."""
    text = bytearray(data)
    for _ in range(1 if rng.random() < 0.6 else rng.randint(2, 6)):
        text = _ways(words)[rng.randrange(10 + bool(words))](text, rng, others)
    return bytes(text)


def _ways(words: Sequence[bytes]) -> list[Callable[[bytearray, random.Random, Sequence[bytes]], bytearray]]:
    def word(text: bytearray, rng: random.Random, _: Sequence[bytes]) -> bytearray:
        at = _place(text, rng)
        cut = rng.choice((0, 0, 1, 4))
        return text[:at] + rng.choice(words) + text[at + cut :]

    return [_flip, _byte, _cut_end, _drop, _repeat, _noise, _splice, _length, _digits, _lines, word]


def _place(text: Bytes, rng: random.Random) -> int:
    """Anywhere, or near the beginning, where most files say what they are."""
    return rng.randrange(len(text) + 1) if rng.random() < 0.6 else rng.randrange(min(len(text), 64) + 1)


def _flip(text: bytearray, rng: random.Random, _: Sequence[bytes]) -> bytearray:
    for _bit in range(rng.choice((1, 1, 2, 8))):
        if text:
            text[min(_place(text, rng), len(text) - 1)] ^= 1 << rng.randrange(8)
    return text


def _byte(text: bytearray, rng: random.Random, _: Sequence[bytes]) -> bytearray:
    if text:
        text[min(_place(text, rng), len(text) - 1)] = rng.choice((0, 9, 10, 13, 32, 34, 92, 127, 128, 255))
    return text


def _cut_end(text: bytearray, rng: random.Random, _: Sequence[bytes]) -> bytearray:
    return text[: _place(text, rng)] if rng.random() < 0.7 else text[: max(0, len(text) - rng.randint(1, 16))]


def _drop(text: bytearray, rng: random.Random, _: Sequence[bytes]) -> bytearray:
    at = _place(text, rng)
    return text[:at] + text[at + rng.choice((1, 2, 4, 8, 40)) :]


def _repeat(text: bytearray, rng: random.Random, _: Sequence[bytes]) -> bytearray:
    at, size = _place(text, rng), rng.choice((1, 4, 16, 64))
    return text[:at] + text[at : at + size] * rng.choice((1, 2, 30)) + text[at:]


def _noise(text: bytearray, rng: random.Random, _: Sequence[bytes]) -> bytearray:
    at = _place(text, rng)
    return text[:at] + rng.randbytes(rng.choice((1, 3, 9))) + text[at + rng.choice((0, 3)) :]


def _splice(text: bytearray, rng: random.Random, others: Sequence[bytes]) -> bytearray:
    other = rng.choice(others)
    if rng.random() < 0.5:
        return text[: _place(text, rng)] + other[_place(other, rng) :]
    at, start, size = _place(text, rng), _place(other, rng), rng.choice((4, 16, 100))
    return text[:at] + other[start : start + size] + text[at + size :]


def _length(text: bytearray, rng: random.Random, _: Sequence[bytes]) -> bytearray:
    """A number of 1, 2, 4 or 8 bytes, as files have them for lengths: another one, or a little more or less."""
    size = rng.choice((1, 2, 4, 4, 8, 8))
    if len(text) >= size:
        at = min(_place(text, rng), len(text) - size)
        old = int.from_bytes(text[at : at + size], "little")
        new = rng.choice((*NUMBERS, len(text), old + 1, old - 1, old * 2, -old))
        text[at : at + size] = (new & ((1 << 8 * size) - 1)).to_bytes(size, rng.choice(("little", "little", "big")))
    return text


_DIGITS = re.compile(rb"-?\d+(\.\d+)?")


def _digits(text: bytearray, rng: random.Random, _: Sequence[bytes]) -> bytearray:
    """The same of a number that is spelled."""
    found = list(_DIGITS.finditer(bytes(text)))
    if not found:
        return text
    number = rng.choice(found)
    old = float(number[0][:30])
    new = rng.choice((*NUMBERS, int(old) + 1, int(old) - 1, "1e999", "nan", "-inf", "1e-400", "9" * 400, old * 1e30))
    return text[: number.start()] + str(new).encode() + text[number.end() :]


def _lines(text: bytearray, rng: random.Random, _: Sequence[bytes]) -> bytearray:
    """Two lines change places, or one comes twice or goes."""
    lines = bytes(text).split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(3):
        case 0:
            lines[one], lines[other] = lines[other], lines[one]
        case 1:
            lines.insert(other, lines[one])
        case _:
            del lines[one]
    return bytearray(b"\n".join(lines))


# Damage to a tree of JSON


STRANGE: tuple[Any, ...] = (
    None, True, False, "", "x", "1", [], {}, [1, 2], {"a": 1}, -1, 0, 1, 2, 3, 1000, 2**31, 2**63, -(2**63), 10**400,
    0.5, -0.5, 1e308, 1e-308, 1.5,
)  # fmt: skip


def change_json(facts: dict[str, Any], rng: random.Random) -> None:
    """Another value somewhere, one that is gone, or one that stands where another stood."""
    places = [place for place in _places(facts) if place[1] not in ("format", "version", "foreword", "files", "sha256")]
    if not places:
        return
    holder, key = rng.choice(places)
    old = holder[key]
    match rng.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(old, int | float) and not isinstance(old, bool):
            with suppress(OverflowError):  # of a number that was made too large for a float before
                holder[key] = old + rng.choice((1, -1, old, 0.5))
        case 2:
            other, name = rng.choice(places)
            holder[key] = deepcopy(other[name]) if name in range(len(other)) or name in other else None
        case _:
            holder[key] = deepcopy(rng.choice(STRANGE))  # which may be changed itself


def _places(value: Any) -> list[tuple[Any, Any]]:
    keys: list[Any] = (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )
    return [(value, key) for key in keys[:50]] + [place for key in keys[:50] for place in _places(value[key])]


# Running


def fuzz(target: Target, inputs: int, folder: Path, *, first: int = 0, seconds: float = SECONDS) -> Outcome:
    """Read so many inputs, and keep below ``folder`` each one that must not be."""
    outcome = Outcome(target.name)
    _warm_up(target, folder / "input")
    shared = _Shared()
    at, last = first, first + inputs
    while at < last:
        until = min(last, at + A_PROCESS)
        at = _one_process(target, at, until, folder, shared, outcome, seconds)
    outcome.taken, outcome.refused = shared.taken, shared.refused
    return outcome


def _warm_up(target: Target, place: Path) -> None:
    """Read what is whole, which has to succeed, and compiles all that it needs before there are processes."""
    for write in target.whole:
        _emptied(place)
        write(place)
        target.read(place)


def _emptied(place: Path) -> None:
    """Files are made anew: what is mapped from the last ones must not change under whoever still holds it."""
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else Path(entry).unlink()
    except OSError:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)


def _bytes_in(place: str | Path) -> int:
    """The bytes of all files below a folder; ``rglob`` would take longer than most readers."""
    with os.scandir(place) as entries:
        return sum(_bytes_in(entry.path) if entry.is_dir() else entry.stat().st_size for entry in entries)


class _Shared:
    """Numbers that both processes see: which input is being read, and how many were taken and refused."""

    def __init__(self) -> None:
        self._memory = mmap(-1, PAGESIZE)

    def _get(self, place: int) -> int:
        return int(struct.unpack_from("<q", self._memory, 8 * place)[0])

    def _set(self, place: int, value: int) -> None:
        struct.pack_into("<q", self._memory, 8 * place, value)

    at = property(lambda self: self._get(0), lambda self, value: self._set(0, value))
    taken = property(lambda self: self._get(1), lambda self, value: self._set(1, value))
    refused = property(lambda self: self._get(2), lambda self, value: self._set(2, value))


def _one_process(
    target: Target, at: int, until: int, folder: Path, shared: _Shared, outcome: Outcome, seconds: float
) -> int:
    """Fork, read from ``at`` on, and say with which input to go on."""
    place, told = folder / "input", folder / "found.jsonl"
    shared.at = at
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking where there are threads; none of ours hold locks
        child = os.fork()
    if not child:
        status = 1
        try:
            _read_all(target, at, until, place, told, shared, seconds)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if told.exists():
        outcome.found += [json.loads(line) for line in told.read_text().splitlines()]
        told.unlink()
    if status == 0:
        return until
    number = os.waitstatus_to_exitcode(status)
    if number > 0:
        raise RuntimeError(f"{target.name}: the fuzzer itself failed with input {shared.at}")
    hung = -number in (signal.SIGPROF, signal.SIGALRM)
    what = "over five seconds" if hung else signal.Signals(-number).name
    outcome.found.append(_kept(target, shared.at, place, what))
    return int(shared.at) + 1


def _read_all(target: Target, at: int, until: int, place: Path, told: Path, shared: _Shared, seconds: float) -> None:
    warnings.simplefilter("ignore")  # of overflow in numbers that a damaged model holds
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    # One core, so that readers start no threads, which would take longer than the inputs; nothing from before is
    # collected again and again.
    os.sched_setaffinity(0, {random.choice(sorted(os.sched_getaffinity(0)))})
    gc.freeze()
    memory = os.open("/proc/self/statm", os.O_RDONLY)
    for number in range(at, until):
        shared.at = number
        size = make_input(target, number, place)
        allowed = int(os.pread(memory, 64, 0).split()[0]) * PAGESIZE + max(ROOM, TIMES * size)
        resource.setrlimit(resource.RLIMIT_AS, (allowed, hard))
        # SIGPROF and SIGALRM end the process, whatever code it is in. What counts is its own time, for the machine may
        # be busy with other things; but it must not wait for ever either.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, WAITING * seconds)
        try:
            target.read(place)
        except ForewordError as error:
            if "\n" in str(error) or not str(error):
                _tell(told, target, number, place, f"not one line: {str(error)[:200]!r}")
            else:
                shared.refused += 1
        except Exception as error:
            _tell(told, target, number, place, f"{type(error).__name__}: {error}", _where(error))
        else:
            shared.taken += 1
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
    shutil.rmtree(place, ignore_errors=True)


def make_input(target: Target, number: int, place: Path) -> int:
    """Input ``number`` in the folder ``place``, which is emptied; how many bytes it has."""
    _emptied(place)
    target.make(random.Random(f"{target.name} {number}"), place)
    return _bytes_in(place)


def _tell(told: Path, target: Target, number: int, place: Path, what: str, where: str = "") -> None:
    with told.open("a") as file:
        file.write(json.dumps(_kept(target, number, place, what, where)) + "\n")


def _kept(target: Target, number: int, place: Path, what: str, where: str = "") -> dict[str, Any]:
    copy = place.parent / f"{target.name.replace(' ', '-')}-{number}"
    shutil.copytree(place, copy, dirs_exist_ok=True)
    return {"reader": target.name, "input": number, "what": what[:300], "where": where}


def _where(error: Exception) -> str:
    """The last lines of ours that an exception came through."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "foreword" in frame.filename]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(ours[-3:]))
