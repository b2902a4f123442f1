"""Cleaning steps: the table and its kernel against the plain version, and CCNet's own results."""

from __future__ import annotations

import json
import lzma
import random

import pytest
from tests.real_data import real

from foreword.text.block import Block
from foreword.text.cleaning import Cleaner, Cleaning, clean_text

STEPS: list[Cleaning] = ["ccnet", "dclm", "openlid"]


@pytest.mark.parametrize(
    ("text", "ccnet", "dclm", "openlid"),
    [
        ("", "", "", ""),
        (" \n ", "", "", ""),
        (" Été 2024 ! ", "ete 0000 !", "Été 0000 !", "été  "),
        ("One\nTwo\tThree", "onetwothree", "OneTwoThree", "one twothree"),
        ("“quoted” – dash — end…", '"quoted" - dash  -  end...', '"quoted" - dash  -  end...', "quoted  dash  end"),
        ("１２ （x）", "00 (x)", "00 (x)", " x"),
        ("ΟΔΟΣ Σ", "οδος σ", "ΟΔΟΣ Σ", "οδος σ"),
        ("한글", "한글", "한글", "한글"),
    ],
)
def test_each_step_by_hand(text: str, ccnet: str, dclm: str, openlid: str) -> None:
    import unicodedata

    expected = {"ccnet": unicodedata.normalize("NFD", ccnet), "dclm": dclm, "openlid": openlid}
    for step in STEPS:
        assert clean_text(text, step) == expected[step]
        assert list(Cleaner(step)(Block.from_texts([text])).strings()) == [expected[step]]


@pytest.mark.parametrize("step", STEPS)
def test_blocks_agree_with_the_plain_version(step: Cleaning) -> None:
    rng = random.Random(5)
    odd = list("ΣσςİßﬁꙀ…—１Ⓐ\u3000 \u2028\x85\x1c\u302e\u1b44가힣ế") * 30
    pool = [chr(code) for code in (*range(0x600), *range(0xFF00, 0xFF60), *range(0x1F600, 0x1F620))] + odd
    texts = ["".join(rng.choices(pool, k=rng.randint(0, 40))) for _ in range(1500)]
    texts += ["".join(rng.choices("aB1 \n\t.", k=rng.randint(0, 12))) for _ in range(1500)]
    cleaner = Cleaner(step)
    for first in range(0, len(texts), 500):  # the table grows from block to block
        some = texts[first : first + 500]
        assert list(cleaner(Block.from_texts(some)).strings()) == [clean_text(text, step) for text in some]


@pytest.mark.data
def test_documents_of_ccnet() -> None:
    """Issue 19, section 3: CCNet's normaliser on all 314 documents, case and accents removed or kept."""
    documents = json.loads(lzma.decompress(real("formats/ccnet/expected.json.xz").read_bytes()))
    block = Block.from_texts([each["text"] for each in documents])
    assert len(documents) == 314
    assert list(Cleaner("ccnet")(block).strings()) == [each["normalized"] for each in documents]
    assert list(Cleaner("dclm")(block).strings()) == [each["normalize_keep_case_accents"] for each in documents]
