"""Counting that can be stopped and gone on with.

Nearly all the time of learning a tokenizer goes into counting the pieces of the text; the merges that follow take
seconds. So the counts so far are kept in one file, every minute and when the work is stopped, together with how many
blocks of the input they cover. A run that goes on reads those blocks again without counting them, which is ten times
faster, and ends in the same counts as one that was never stopped.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import FrameType

import numpy as np

from foreword.arrays import Array
from foreword.errors import InputError
from foreword.storage.atomic import atomic_file
from foreword.storage.safetensors import read_arrays, write_arrays
from foreword.text.block import Block
from foreword.tokens.bpe import DEFAULT_MEMORY, BPETokenizer
from foreword.tokens.counting import Counted, count_pieces_of

EVERY = 60.0
"""Seconds between two savings of the counts."""


def count_with_checkpoint(
    tokenizer: BPETokenizer,
    blocks: Iterable[Block],
    checkpoint: Path,
    *,
    fingerprint: str,
    resume: bool,
    threads: int | None = None,
    memory: int = DEFAULT_MEMORY,
    every: float = EVERY,
) -> Counted:
    """Count as ``BPETokenizer.count`` does, keeping ``checkpoint`` up to date while the work goes on.

    ``fingerprint`` says what is being counted (input and settings); a checkpoint of something else is refused. The
    file is left in place when all is counted: the caller removes it once its own work is safe.
    """
    skipped, start = _read(checkpoint, fingerprint) if resume and checkpoint.exists() else (0, None)
    latest = time.monotonic()
    with interrupts_noted() as stopped:

        def due() -> bool:
            return stopped.is_set() or time.monotonic() - latest >= every

        def save(done: int, counted: Counted) -> None:
            nonlocal latest
            _write(checkpoint, fingerprint, skipped + done, counted)
            latest = time.monotonic()
            if stopped.is_set():
                raise KeyboardInterrupt

        pieces = map(tokenizer.prepare, islice(blocks, skipped, None))
        return count_pieces_of(
            pieces, tokenizer.piece_pattern, threads=threads, memory=memory // 4, start=start, due=due, pause=save
        )


@contextmanager
def interrupts_noted() -> Iterator[threading.Event]:
    """While inside, the first Ctrl-C only sets the event, so that work can stop where it is safe; a second one stops
    it at once. Outside the main thread, where Python delivers no signals, nothing changes.
    """
    noted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return

    def note(signal_number: int, frame: FrameType | None) -> None:
        if noted.is_set():
            raise KeyboardInterrupt
        noted.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


def _write(path: Path, fingerprint: str, blocks: int, counted: Counted) -> None:
    arrays: dict[str, Array] = {
        "data": counted.data,
        "offsets": counted.offsets,
        "counts": counted.counts,
        "firsts": counted.firsts,
        "about": np.frombuffer(json.dumps({"fingerprint": fingerprint, "blocks": blocks}).encode(), np.uint8),
    }
    with atomic_file(path) as temporary:
        write_arrays(temporary, arrays)


def _read(path: Path, fingerprint: str) -> tuple[int, Counted]:
    arrays = read_arrays(path)
    try:
        about = json.loads(arrays["about"].tobytes())
        counted = Counted(*(arrays[name] for name in ("data", "offsets", "counts", "firsts")))
        if about["fingerprint"] != fingerprint:
            raise InputError(f"{path} belongs to another text or other settings; without --resume it is started anew")
        counted.check()
        return int(about["blocks"]), counted
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"{path} is not a checkpoint of counted words ({error})") from error
