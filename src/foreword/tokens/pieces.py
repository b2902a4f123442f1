"""Cutting a text into pieces: white-space words and the pre-tokenisation patterns of BPE.

The patterns are regular expressions in their own tools. Here each is a few branches over character classes, because
a compiled scanner passes over text ten times faster than a regular expression engine. ``tests/against`` holds them to
the engines, character class by character class.

Two kinds: WORDS and PUNCTUATION leave white space out; all others cut the text into pieces that tile it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np

from foreword.arrays import Bytes
from foreword.native.jit import inlined
from foreword.native.memory import load_unaligned, lowest_one

OTHER, LETTER, NUMBER, SPACE, MARK, UPPER, LOWER = range(7)
"""Classes of characters. UPPER and LOWER are letters with a case, which only O200K tells apart."""

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2_REGEX = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K_REGEX = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _REST
QWEN2_REGEX = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _REST
_UPPER, _LOWER, _BEFORE = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"[^\r\n\p{L}\p{N}]?"
O200K_REGEX = (
    rf"{_BEFORE}{_UPPER}*{_LOWER}+{_CONTRACTIONS}?|{_BEFORE}{_UPPER}+{_LOWER}*{_CONTRACTIONS}?|\p{{N}}{{1,3}}"
    + _REST.replace(r"]*", r"/]*", 1)
)

WORDS = 0  # what str.split gives
PUNCTUATION = 1  # \w+|[^\w\s] inside those words
GPT2 = 2  # GPT2_REGEX
CL100K = 3  # CL100K_REGEX
QWEN2 = 4  # QWEN2_REGEX, the same with one digit at a time
SPACE_BEFORE = 5  # a white-space character and what follows it up to the next one: the teaching sources' rule
WHOLE = 6  # no cut at all
BLANK_BEFORE = 7  # blanks and what follows them up to the next blank: normalised text of sentencepiece
O200K = 8  # O200K_REGEX, which cuts before capitals inside words


def character_classes(pattern: int = WHOLE) -> Bytes:
    """Return the class of every code point that a pattern tells apart, uint8 (0x110000,)."""
    return _classes(pattern == O200K)


@cache
def _classes(cased: bool) -> Bytes:
    """Read the table that comes with the package. cased: whether letters have UPPER and LOWER, and "_" is no MARK."""
    names = {"L": LETTER, "N": NUMBER, "M": MARK, "Pc": MARK}
    if cased:
        names |= {"Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Pc": OTHER}
    classes = np.zeros(0x110000, np.uint8)
    table = files("foreword.tokens").joinpath("unicode_classes.txt").read_text("ascii")
    for name, *spans in (line.split() for line in table.splitlines() if not line.startswith("#")):
        for span in spans:
            first, _, last = span.partition("-")
            classes[int(first, 16) : int(last or first, 16) + 1] = names.get(name, names.get(name[0], OTHER))
    classes[[ord(sign) for sign in WHITE_SPACE]] = SPACE
    classes.flags.writeable = False
    return classes


WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""White space of Unicode; ``str.isspace`` adds four control characters."""

_QUOTE, _BLANK, _NEWLINE, _RETURN, _SLASH = 0x27, 0x20, 0x0A, 0x0D, 0x2F


@inlined
def character(data: Bytes, index: int, stop: int) -> tuple[int, int]:
    """Return the code point at ``index`` and its length in bytes; a byte that begins none is (0xFFFD, 1)."""
    first = np.int64(data[index])
    if first < 0x80:
        return first, 1
    if 0xC2 <= first < 0xE0:
        need = 2
        point = first & 0x1F
    elif 0xE0 <= first < 0xF0:
        need = 3
        point = first & 0x0F
    elif 0xF0 <= first < 0xF5:
        need = 4
        point = first & 0x07
    else:
        return 0xFFFD, 1
    if index + need > stop:
        return 0xFFFD, 1
    for following in range(index + 1, index + need):
        byte = np.int64(data[following])
        if byte & 0xC0 != 0x80:
            return 0xFFFD, 1
        point = (point << 6) | (byte & 0x3F)
    if point > 0x10FFFF:
        return 0xFFFD, 1
    return point, need


@inlined
def run_of(data: Bytes, index: int, stop: int, classes: Bytes, wanted: int) -> int:
    """Return the end of the run of characters of one class that begins at ``index``."""
    while index < stop:
        byte = data[index]
        if byte < 0x80:
            if classes[byte] != wanted:
                break
            index += 1
        else:
            point, length = character(data, index, stop)
            if classes[point] != wanted:
                break
            index += length
    return index


@inlined
def run_of_others(data: Bytes, index: int, stop: int, classes: Bytes) -> int:
    r"""Return the end of a run of [^\\s\\p{L}\\p{N}]."""
    while index < stop:
        point, length = character(data, index, stop)
        found = classes[point]
        if found not in (OTHER, MARK):
            break
        index += length
    return index


@inlined
def contraction(data: Bytes, index: int, stop: int, any_case: bool) -> int:
    """Return the length of 's 't 'm 'd 're 've 'll at ``index`` (an apostrophe), or 0."""
    if index + 1 >= stop:
        return 0
    first = data[index + 1]
    if any_case and first == 0xC5 and index + 2 < stop and data[index + 2] == 0xBF:
        return 3  # ſ, the long s, is an s to a regular expression that ignores case
    case = np.uint8(0x20) if any_case else np.uint8(0)
    first |= case
    if first == 0x73 or first == 0x74 or first == 0x6D or first == 0x64:  # s t m d
        return 2
    if index + 2 < stop:
        second = data[index + 2] | case
        if second == 0x65 and (first == 0x72 or first == 0x76):  # re ve
            return 3
        if second == 0x6C and first == 0x6C:
            return 3
    return 0


@inlined
def white_space(data: Bytes, index: int, stop: int, classes: Bytes) -> int:
    r"""Match \\s+(?!\\S)|\\s+ : a run of white space, less its last character when something follows."""
    last = index
    end = index
    while end < stop:
        point, length = character(data, end, stop)
        if classes[point] != SPACE:
            break
        last = end
        end += length
    if end < stop and last > index:
        return last
    return end


@inlined
def gpt2_piece(data: Bytes, index: int, stop: int, classes: Bytes) -> int:
    """Return the end of the piece at ``index`` by GPT-2's pattern."""
    byte = data[index]
    if byte == _QUOTE:
        length = contraction(data, index, stop, False)
        if length:
            return index + length
    body = index
    if byte == _BLANK and index + 1 < stop:
        body = index + 1
    point, length = character(data, body, stop)
    found = classes[point]
    if found in (LETTER, NUMBER):
        return run_of(data, body + length, stop, classes, found)
    if found == SPACE:
        return white_space(data, index, stop, classes)
    return run_of_others(data, body + length, stop, classes)


@inlined
def line_ends(data: Bytes, index: int, stop: int, slash: bool) -> int:
    """Return the end of a run of line ends, or of slashes."""
    while index < stop and (data[index] == _NEWLINE or data[index] == _RETURN or (slash and data[index] == _SLASH)):
        index += 1
    return index


@inlined
def cl100k_piece(data: Bytes, index: int, stop: int, classes: Bytes, digits: int) -> int:
    """Return the end of the piece at ``index`` by the pattern of cl100k, with up to ``digits`` digits."""
    byte = data[index]
    if byte == _QUOTE:
        length = contraction(data, index, stop, True)
        if length:
            return index + length
    point, length = character(data, index, stop)
    found = classes[point]
    if found == LETTER:
        return run_of(data, index + length, stop, classes, LETTER)
    if found == NUMBER:
        return few_digits(data, index + length, stop, classes, digits - 1)
    after = index + length
    if after < stop and byte != _NEWLINE and byte != _RETURN:
        following, width = character(data, after, stop)
        if classes[following] == LETTER:
            return run_of(data, after + width, stop, classes, LETTER)
    return other_piece(data, index, stop, classes, False)


@inlined
def few_digits(data: Bytes, end: int, stop: int, classes: Bytes, most: int) -> int:
    """Return the end of a run of at most ``most`` digits."""
    for _ in range(most):
        if end >= stop:
            break
        point, length = character(data, end, stop)
        if classes[point] != NUMBER:
            break
        end += length
    return end


@inlined
def other_piece(data: Bytes, index: int, stop: int, classes: Bytes, slash: bool) -> int:
    """Return the end of the piece at ``index`` that is neither letter nor number: the last four branches of cl100k.

    slash: slashes may stand among the line ends that follow.
    """
    point, length = character(data, index, stop)
    body = index
    if point == _BLANK and index + length < stop:
        following, _ = character(data, index + length, stop)
        if classes[following] in (OTHER, MARK):
            body = index + length
    if body > index or classes[point] != SPACE:
        return line_ends(data, run_of_others(data, body, stop, classes), stop, slash)
    end = index
    newline = -1
    while end < stop:
        point, length = character(data, end, stop)
        if classes[point] != SPACE:
            break
        end += length
        if point in (_NEWLINE, _RETURN):
            newline = end
    if newline >= 0:
        return newline
    return white_space(data, index, stop, classes)


@inlined
def cased_word(data: Bytes, index: int, stop: int, classes: Bytes) -> tuple[int, int]:
    """Return the ends of ``U*L+`` and ``U+L*`` at ``index``, each -1 if it does not match.

    U: UPPER, LETTER and MARK, L: LOWER, LETTER and MARK. Where no LOWER follows the run of U, the expression gives back
    characters until one of them is in L too.
    """
    end, both = index, -1
    while end < stop:
        point, length = character(data, end, stop)
        found = classes[point]
        if found not in (UPPER, LETTER, MARK):
            break
        end += length
        if found != UPPER:
            both = end
    lower = end
    while lower < stop:
        point, length = character(data, lower, stop)
        if classes[point] not in (LOWER, LETTER, MARK):
            break
        lower += length
    return lower if lower > end else both, end if end > index else -1


@inlined
def o200k_piece(data: Bytes, index: int, stop: int, classes: Bytes) -> int:
    """Return the end of the piece at ``index`` by the pattern of o200k."""
    byte = data[index]
    point, length = character(data, index, stop)
    found = classes[point]
    if found == NUMBER:
        return few_digits(data, index + length, stop, classes, 2)
    lower = upper = -1
    if found in (OTHER, MARK, SPACE) and byte != _NEWLINE and byte != _RETURN:
        lower, upper = cased_word(data, index + length, stop, classes)
    if lower < 0:
        alone_lower, alone_upper = cased_word(data, index, stop, classes)
        lower = alone_lower
        if upper < 0:
            upper = alone_upper
    end = lower if lower >= 0 else upper
    if end < 0:
        return other_piece(data, index, stop, classes, True)
    if end < stop and data[end] == _QUOTE:
        end += contraction(data, end, stop, True)
    return end


@inlined
def split_space(data: Bytes, index: int, stop: int) -> int:
    """Return the length of the white-space character of ``str.split`` at ``index``, or 0."""
    byte = data[index]
    if byte <= 0x20:
        return 1 if byte == 0x20 or 0x09 <= byte <= 0x0D or byte >= 0x1C else 0
    if byte == 0xC2:
        return 2 if index + 1 < stop and (data[index + 1] == 0x85 or data[index + 1] == 0xA0) else 0
    if byte < 0xE1 or byte > 0xE3 or index + 2 >= stop:
        return 0
    second = data[index + 1]
    third = data[index + 2]
    if byte == 0xE1:
        return 3 if second == 0x9A and third == 0x80 else 0
    if byte == 0xE3:
        return 3 if second == 0x80 and third == 0x80 else 0
    if second == 0x80:
        return 3 if 0x80 <= third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF else 0
    return 3 if second == 0x81 and third == 0x9F else 0


@inlined
def word_end(data: Bytes, index: int, stop: int) -> int:
    """Return the end of the white-space word at ``index``, eight bytes at a time while they are ASCII."""
    low = np.uint64(0x2121212121212121)
    high = np.uint64(0x8080808080808080)
    limit = min(stop, len(data) - 8)
    while index < stop:
        if index < limit:
            word = load_unaligned(data, index)
            # A byte below 0x21 borrows into its own top bit; the lowest such mark is exact, higher ones may not be.
            marks = (((word - low) & ~word) | word) & high
            if marks == np.uint64(0):
                index += 8
                continue
            index += lowest_one(marks) >> 3
            if index >= stop:
                return stop
        if split_space(data, index, stop):
            return index
        index += 1
    return stop


@inlined
def skip_space(data: Bytes, index: int, stop: int) -> int:
    """Return the first position from ``index`` on that is not white space."""
    while index < stop:
        byte = data[index]
        if 0x20 < byte < 0x80:
            break
        length = 1 if byte == _BLANK else split_space(data, index, stop)
        if length == 0:
            break
        index += length
    return index


@inlined
def punctuation_piece(data: Bytes, index: int, stop: int, classes: Bytes) -> int:
    """Return the end of a run of letters, numbers and marks, or of one other character."""
    point, length = character(data, index, stop)
    found = classes[point]
    end = index + length
    if found in (OTHER, SPACE):
        return end
    while end < stop:
        point, length = character(data, end, stop)
        found = classes[point]
        if found in (OTHER, SPACE):
            break
        end += length
    return end


@inlined
def space_before_piece(data: Bytes, index: int, stop: int) -> int:
    """Return the end of the piece at ``index``: up to the next white-space character."""
    _, length = character(data, index, stop)
    return word_end(data, index + length, stop)


@inlined
def blank_before_piece(data: Bytes, index: int, stop: int) -> int:
    """Return the end of the piece at ``index``: up to the next blank after another character."""
    while index < stop and data[index] == _BLANK:
        index += 1
    while index < stop and data[index] != _BLANK:
        index += 1
    return index


@inlined
def piece_end(data: Bytes, index: int, stop: int, pattern: int, classes: Bytes) -> int:
    """Return the end of the piece at ``index``, which for WORDS and PUNCTUATION must not be white space."""
    if pattern == WORDS:
        return word_end(data, index, stop)
    if pattern == GPT2:
        return gpt2_piece(data, index, stop, classes)
    if pattern in (CL100K, QWEN2):
        return cl100k_piece(data, index, stop, classes, 3 if pattern == CL100K else 1)
    if pattern == PUNCTUATION:
        return punctuation_piece(data, index, stop, classes)
    if pattern == O200K:
        return o200k_piece(data, index, stop, classes)
    if pattern == SPACE_BEFORE:
        return space_before_piece(data, index, stop)
    if pattern == BLANK_BEFORE:
        return blank_before_piece(data, index, stop)
    return stop
