"""KenLM binaries to be damaged: as bytes, inside their parts, and files of every type made of noise whose sizes fit.

Most damage to a header is refused at once. What remains to be shown is that nothing inside the parts, ids, pointers,
hash tables without a free slot, leads a kernel out of the file or round and round.
"""

from __future__ import annotations

import ctypes
import random
import re
import struct
from contextlib import suppress
from functools import partial
from mmap import PAGESIZE, mmap
from pathlib import Path

import numpy as np

import foreword
from benchmarks.fuzz import NUMBERS, Target, damaged
from benchmarks.fuzz_use import use
from foreword.arrays import Bytes
from foreword.ngram.kenlm import KenlmLM
from foreword.ngram.kenlm_format import (
    ARRAY_TRIE,
    HASHED_WORD,
    QUANT_ARRAY_TRIE,
    QUANT_TRIE,
    START,
    TRIE,
    Header,
    header_end,
    read_layout,
    render_header,
    slots_of,
)
from foreword.ngram.kenlm_writing import BINARIES, build_kenlm
from foreword.ngram.log10 import log10_of
from foreword.ngram.plain_kenlm import hash_word
from foreword.storage.folder import load
from foreword.tokens.words import WordTokenizer

LIBC = ctypes.CDLL(None, use_errno=True)
WORDS = (b"<s>", b"</s>", *b"the cat sat on mat a dog and log was".split())


def kenlm_seeds(texts: list[str]) -> list[bytes]:
    """Small valid files: both types that we write, of several orders."""
    corpus = foreword.Corpus.from_texts(texts, WordTokenizer().fit(texts))
    models = [log10_of(foreword.NgramLM(order).fit(corpus)) for order in (2, 3, 5)]
    return [build_kenlm(model, binary).tobytes() for model in models for binary in BINARIES]


def kenlm_target(texts: list[str]) -> Target:
    """The reader of KenLM binaries."""
    seeds = kenlm_seeds(texts)

    def make(rng: random.Random, folder: Path) -> None:
        kind = rng.random()
        if kind < 0.3:
            data = damaged(rng.choice(seeds), rng, seeds)
        elif kind < 0.7:
            data = _damaged_inside(rng.choice(seeds), rng)
        else:
            data = _noise(rng)
        (folder / "model.bin").write_bytes(data)

    def read(folder: Path) -> None:
        guarded = KenlmLM(before_a_guard((folder / "model.bin").read_bytes()), "model.bin", threads=1)
        use(guarded)
        use(load(folder / "model.bin"))

    return Target("KenLM binary", make, read, [partial(_put, data) for data in seeds], weight=8)


def before_a_guard(data: bytes) -> Bytes:
    """Return a copy that ends where a page begins that cannot be read: one byte too far ends the process.

    Kernels load eight bytes at a time from any offset, which Numba's own checks of bounds do not see.
    """
    size = -(-max(1, len(data)) // PAGESIZE) * PAGESIZE
    memory = mmap(-1, size + PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if LIBC.mprotect(ctypes.c_void_p(address + size), ctypes.c_size_t(PAGESIZE), 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    memory[size - len(data) : size] = data
    whole = np.frombuffer(memory, np.uint8)
    return whole[size - len(data) : size]


def _put(data: bytes, folder: Path) -> None:
    (folder / "model.bin").write_bytes(data)


def _damaged_inside(seed: bytes, rng: random.Random) -> bytes:
    """Other numbers in one of the parts, or no free slot in it; the header stays."""
    data = bytearray(seed)
    layout = read_layout(np.frombuffer(seed, np.uint8), "seed")
    starts = sorted([layout.vocabulary, *layout.shapes[:, START].tolist(), layout.end, len(seed)])
    part = rng.randrange(len(starts) - 1)
    first, last = starts[part], starts[part + 1]
    if rng.random() < 0.15:
        data[first:last] = bytes(byte or 1 for byte in data[first:last])
        return bytes(data)
    for _ in range(rng.choice((1, 2, 10, 60))):
        at, size = rng.randrange(first, max(first + 1, last)), rng.choice((1, 4, 8))
        number = rng.choice((rng.getrandbits(64), *NUMBERS)) & ((1 << 8 * size) - 1)
        data[at : at + size] = number.to_bytes(size, "little")
    return bytes(data[: len(seed)])


def _noise(rng: random.Random) -> bytes:
    """A file of any type whose sizes fit and whose parts are noise, much of it zero."""
    kind, order = rng.randrange(6), rng.randint(2, 6)
    counts = (len(WORDS) + 1, *(rng.randint(1, 40) for _ in range(order - 1)))
    header = Header(order, rng.choice((1.1, 1.5, 2.0)), kind, rng.random() < 0.5, counts, header_end(order))
    words = struct.pack("<II", 0, counts[0]) if kind < TRIE else struct.pack("<Q", counts[0] - 1)
    size = len(render_header(header)) + 8 + rng.randint(2000, 40_000)
    noise = np.frombuffer(rng.randbytes(size), np.uint8) * (np.frombuffer(rng.randbytes(size), np.uint8) & 1)
    data = bytearray(render_header(header) + words + noise.tobytes())
    _put_words(data, header)
    if kind in (QUANT_TRIE, QUANT_ARRAY_TRIE):
        at = len(render_header(header)) + 8 + 8 * counts[0]
        data[at : at + 3] = bytes((2, rng.randint(1, 6), rng.randint(1, 6)))
    if kind in (ARRAY_TRIE, QUANT_ARRAY_TRIE):
        _put_array_headers(data, rng.randint(0, 20))
    with suppress(foreword.ForewordError):  # a few are too short
        end = read_layout(np.frombuffer(bytes(data), np.uint8), "noise").end
        return bytes(data[: end + rng.choice((0, 0, 1, 200))])
    return bytes(data)


def _put_words(data: bytearray, header: Header) -> None:
    """Write a vocabulary of a few words that texts have, so that the n-grams are searched."""
    at, hashes = header.end + 8, [hash_word(word) for word in WORDS]
    if header.is_trie:
        data[at : at + 8 * len(hashes)] = struct.pack(f"<{len(hashes)}Q", *sorted(hashes))
        return
    slots = slots_of(header.counts[0], header.multiplier)
    data[at : at + HASHED_WORD * slots] = bytes(HASHED_WORD * slots)
    for id, key in enumerate(hashes, 1):
        slot = key % slots
        while any(data[at + HASHED_WORD * slot : at + HASHED_WORD * slot + 8]):
            slot = (slot + 1) % slots
        data[at + HASHED_WORD * slot : at + HASHED_WORD * (slot + 1)] = struct.pack("<QI", key, id)


def _put_array_headers(data: bytearray, most: int) -> None:
    """Put a valid header before each array; the error of the reader says where the next one is."""
    for _ in range(8):
        try:
            read_layout(np.frombuffer(bytes(data), np.uint8), "noise")
        except foreword.ForewordError as error:
            found = re.search(r"pointer arrays of version \d+ at byte (\d+)", str(error))
            if found is None:
                return
            data[int(found[1]) : int(found[1]) + 2] = bytes((0, most))
