"""Text in other encodings than UTF-8: decoded on the way in, by the name of its encoding or by a guess.

The guess looks at the first chunk only, and at little of it: byte order marks, then whether the bytes are valid UTF-8
or one of the encodings of East Asia, then whether they are Cyrillic, words of letters beyond ASCII, most of them small;
what is left is taken for Western European. It is reported, and ``--encoding`` says better.
"""

from __future__ import annotations

import codecs
import re
import warnings
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from itertools import chain

from foreword.errors import InputError, SettingError
from foreword.text.files import Chunk, chunk_of

UTF8 = "utf-8"
GUESS = "guess"

SAMPLE = 1 << 16
"""Bytes that a guess looks at."""

KANA, HAN, HANGUL = ("぀", "ヿ"), ("一", "鿿"), ("가", "힣")
EAST_ASIAN = {
    "shift_jis": (KANA, HANGUL),
    "euc_jp": (KANA, HANGUL),
    "euc_kr": (HANGUL, HAN),
    "gb18030": (HAN, KANA),
    "big5": (HAN, KANA),
}
"""Encodings, each with the characters that its texts have and hardly have."""

CYRILLIC = ("cp1251", "koi8_r", "cp866")

BESIDE_LATIN = re.compile(rb"(?<=[A-Za-z])[\x80-\xff]|[\x80-\xff](?=[A-Za-z])")
"""A letter beyond ASCII next to one of ASCII, as in ``café``: Cyrillic words hardly have any."""


class GuessedEncodingWarning(UserWarning):
    """The encoding of a file was guessed."""


class Decoding(str):
    """How bytes become text: "strict" or "replace" for bytes that are no text, and the name of their encoding.

    It is a string, so that whatever takes ``errors`` takes it.
    """

    encoding: str

    def __new__(cls, errors: str = "strict", encoding: str = UTF8) -> Decoding:
        """Check the name of the encoding, or accept a guess."""
        made = super().__new__(cls, errors)
        made.encoding = encoding if encoding == GUESS else _checked_name(encoding)
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.encoding


def encoding_of(errors: str) -> str:
    """Return the name of the encoding: a ``Decoding`` names it; plain strings stand for UTF-8."""
    return getattr(errors, "encoding", UTF8)


def _checked_name(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise SettingError(f"no encoding {encoding!r}: expected a name such as latin-1, cp1252 or utf-16") from None


def as_utf8(chunks: Iterator[Chunk], name: str, errors: str) -> Iterator[Chunk]:
    """Yield the same text as UTF-8. errors: see ``encoding_of``."""
    encoding = encoding_of(errors)
    if encoding == UTF8:
        return chunks
    if encoding == GUESS:
        first = next(chunks, None)
        if first is None:
            return iter(())
        chunks = chain((first,), chunks)
        encoding = guessed(first.data[:SAMPLE].tobytes())
        if encoding == UTF8:
            return chunks
        warnings.warn(f"{name}: read as {encoding}, which is a guess", GuessedEncodingWarning, stacklevel=2)
    return _decoded(chunks, name, encoding, str(errors))


def _decoded(chunks: Iterator[Chunk], name: str, encoding: str, errors: str) -> Iterator[Chunk]:
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    done = 0
    for chunk in chain(chunks, (None,)):
        data = b"" if chunk is None else chunk.data.tobytes()
        try:
            text = decoder.decode(data, chunk is None)
        except UnicodeDecodeError as error:
            at = done + error.start
            raise InputError(
                f"{name}: invalid {encoding} near byte {at}; --errors replace reads on, --encoding names another"
            ) from None
        done += len(data)
        if text:
            yield chunk_of(text.encode("utf-8", "replace"))


def guessed(data: bytes) -> str:
    """Return the likely encoding of the beginning of a text."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16"
    if data.startswith(BOM_UTF8) or _is(data, UTF8):
        return UTF8
    beyond = sum(byte >= 0x80 for byte in data) / max(len(data), 1)
    if beyond > 0.2:
        for encoding, (usual, unusual) in EAST_ASIAN.items():
            text = data.decode(encoding, "ignore")
            if _is(data, encoding) and _share(text, *usual) > 0.2 and _share(text, *unusual) < 0.1:
                return encoding
    if beyond > 0.2 and 2 * len(BESIDE_LATIN.findall(data)) < beyond * len(data):
        best = max(CYRILLIC, key=lambda each: _small_cyrillic(data.decode(each, "ignore")))
        if _small_cyrillic(data.decode(best, "ignore")) > 0.2:
            return best
    return "cp1252" if _is(data, "cp1252") else "latin-1"


def _is(data: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)("strict").decode(data, False)
    except UnicodeDecodeError:
        return False
    return True


def _share(text: str, *borders: str) -> float:
    ranges = list(zip(borders[::2], borders[1::2], strict=True))
    return sum(any(low <= sign <= high for low, high in ranges) for sign in text) / max(len(text), 1)


def _small_cyrillic(text: str) -> float:
    return _share(text, "а", "я", "ё", "ё")
