"""Cleaning steps that corpora pipelines take before a model reads a text, each of them exactly as its tool does.

    ccnet     CCNet's normaliser: lower case, no accents, digits 0, ASCII punctuation, no control characters. Line feeds
              are control characters: a document becomes one line, and its lines are joined without a blank.
    dclm      the same with case and accents kept, as DCLM and other users of CCNet's models call it
    openlid   OpenLID's: lower case, one line, white space squeezed, and neither digits, punctuation nor symbols

G. Wenzek et al., "CCNet: extracting high quality monolingual datasets from web crawl data" (2020); L. Burchell et al.,
"An open dataset and model for language identification" (2023).

A step maps characters one by one, but for white space at the ends and in runs. ``Cleaner`` therefore has a table of
what each character becomes, made page by page of 256 code points as they occur, and a kernel that applies it to blocks.
Characters that depend on their neighbours (a capital sigma in lower case, marks that NFD puts in order) send their
document to ``clean_text``, the plain version that defines the step.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from foreword.arrays import Bytes, Ints, Longs
from foreword.text.block import Block

Cleaning: TypeAlias = Literal["ccnet", "dclm", "openlid"]

PUNCTUATION = {
    "，": ",", "。": ".", "、": ",", "„": '"', "”": '"', "“": '"', "«": '"', "»": '"', "１": '"', "」": '"', "「": '"',
    "《": '"', "》": '"', "´": "'", "∶": ":", "：": ":", "？": "?", "！": "!", "（": "(", "）": ")", "；": ";",
    "–": "-", "—": " - ", "．": ". ", "～": "~", "’": "'", "…": "...", "━": "-", "〈": "<", "〉": ">",
    "【": "[", "】": "]", "％": "%", "►": "-",
}  # fmt: skip
"""CCNet's table, a full-width digit one that becomes a quotation mark included: digits are 0 by then."""

_TO_ASCII = str.maketrans(PUNCTUATION)
_CONTROL = dict.fromkeys((*range(32), *range(127, 160)))
_DIGIT = re.compile(r"\d")
_RUN_OF_SPACE = re.compile(r"[^\S\x1c-\x1f]{2,}")
"""White space as Unicode has it; Python alone counts the four information separators."""

_LETTER_SYMBOLS = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
"""Letters in circles and squares: alphabetic for Unicode, though their category is that of symbols."""


def clean_text(text: str, step: Cleaning) -> str:
    """Clean a text, step by step as the tool does."""
    text = text.strip()
    if step == "openlid":
        return _mapped_openlid(_RUN_OF_SPACE.sub(" ", text.replace("\n", " ").lower()))
    return _mapped_ccnet(text) if step == "ccnet" else _mapped_dclm(text)


def _mapped_ccnet(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text.lower())
    return _mapped_dclm("".join(each for each in decomposed if unicodedata.category(each) != "Mn"))


def _mapped_dclm(text: str) -> str:
    return _DIGIT.sub("0", text).translate(_TO_ASCII).translate(_CONTROL)


def _mapped_openlid(text: str) -> str:
    return "".join(filter(_is_kept_by_openlid, text))


def _is_kept_by_openlid(character: str) -> bool:
    """Return whether a character is a blank, or part of a word and no digit."""
    category, code = unicodedata.category(character), ord(character)
    return (
        category[0] in "LM"
        or category in ("Nl", "Pc", "Zs")
        or code in (0x200C, 0x200D)
        or any(first <= code <= last for first, last in _LETTER_SYMBOLS)
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """How a step maps single characters. squeeze: whether a run of white space becomes one blank."""

    mapped: Callable[[str], str]
    contextual: Callable[[str], bool]
    squeeze: bool


def _is_capital_sigma(character: str) -> bool:
    """Return whether the lower case depends on the neighbours."""
    return character == "Σ"


def _is_reordered(character: str) -> bool:
    """Return whether NFD may move what is left of a character past its neighbours."""
    left = [each for each in unicodedata.normalize("NFD", character.lower()) if unicodedata.category(each) != "Mn"]
    return _is_capital_sigma(character) or any(map(unicodedata.combining, left))


def _is_odd_in_openlid(character: str) -> bool:
    """Return whether a character is a capital sigma, or white space at the ends of a text but not in a run."""
    return _is_capital_sigma(character) or "\x1c" <= character <= "\x1f"


_STEPS: dict[Cleaning, _Step] = {
    "ccnet": _Step(_mapped_ccnet, _is_reordered, False),
    "dclm": _Step(_mapped_dclm, lambda _: False, False),
    "openlid": _Step(lambda each: _mapped_openlid(each.replace("\n", " ").lower()), _is_odd_in_openlid, True),
}

PAGE = 256
PAGES = 0x110000 // PAGE
SPACE, CONTEXTUAL = 1, 2


class Cleaner:
    """A cleaning step for blocks of texts. It has state, and is for one thread at a time."""

    def __init__(self, step: Cleaning) -> None:
        self.step = step
        self._steps = _STEPS[step]
        self._pages: Ints = np.full(PAGES, -1, np.int32)
        self._offsets: Longs = np.zeros(0, np.int64)  # (pages · 256 + 1,), where the output of each character begins
        self._flags: Bytes = np.zeros(0, np.uint8)
        self._arena: Bytes = np.zeros(0, np.uint8)
        self._add_page(0)
        self._simple = self._simple_characters()

    def __call__(self, texts: Block) -> Block:
        """Return the texts cleaned."""
        from foreword.text.kernels_cleaning import DONE, MISSING_PAGE, clean_texts

        # No character grows to more than three times its size: a syllable of Hangul becomes three letters.
        out = np.empty(3 * texts.text_bytes() + 16, np.uint8)
        stops, state = np.zeros(len(texts) + 1, np.int64), np.zeros(2, np.int64)
        while True:
            fate = clean_texts(
                texts.data, texts.starts, texts.stops, self._pages, self._offsets, self._flags, self._arena,
                self._simple, self._steps.squeeze, out, stops, state,
            )  # fmt: skip
            if fate == DONE:
                return Block(out, stops[:-1].copy(), stops[1:].copy())
            if fate == MISSING_PAGE:
                self._add_page(int(state[1]))
            else:
                self._clean_plainly(texts, int(state[0]), out, stops)
                state[0] += 1

    def _clean_plainly(self, texts: Block, text: int, out: Bytes, stops: Longs) -> None:
        data = np.frombuffer(texts.data[texts.starts[text] : texts.stops[text]].tobytes(), np.uint8)
        cleaned = np.frombuffer(clean_text(str(data.data, "utf-8"), self.step).encode(), np.uint8)
        stops[text + 1] = stops[text] + len(cleaned)
        out[stops[text] : stops[text + 1]] = cleaned

    def _add_page(self, page: int) -> None:
        """Add the next page of the table: what its 256 characters become."""
        codes = range(page * PAGE, (page + 1) * PAGE)
        surrogates = 0xD800 <= codes[0] < 0xE000
        characters = [" "] * PAGE if surrogates else list(map(chr, codes))  # no UTF-8 has them
        mapped = [self._steps.mapped(each).encode() for each in characters]
        flags = [SPACE * each.isspace() | CONTEXTUAL * self._steps.contextual(each) for each in characters]
        assert all(len(one) <= 3 * len(each.encode()) for one, each in zip(mapped, characters, strict=True))
        self._pages[page] = len(self._flags) // PAGE
        ends = len(self._arena) + np.cumsum([len(each) for each in mapped])
        begun = self._offsets if len(self._offsets) else np.zeros(1, np.int64)
        self._offsets = np.concatenate((begun, ends))
        self._flags = np.concatenate((self._flags, np.array(flags, np.uint8)))
        self._arena = np.concatenate((self._arena, np.frombuffer(b"".join(mapped), np.uint8)))

    def _simple_characters(self) -> Bytes:
        """Return what each ASCII character becomes if that is one byte and it is no white space, else 0."""
        sizes = np.diff(self._offsets[:129])
        simple = (sizes == 1) & (self._flags[:128] == 0)
        found = np.zeros(128, np.uint8)
        found[simple] = self._arena[self._offsets[:128][simple]]
        return found
