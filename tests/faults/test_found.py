"""What fuzzing and faults have found, one by one."""

from __future__ import annotations

import gzip
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.fuzz_models import Saved

import foreword
from foreword.classify.fasttext import FastTextClassifier
from foreword.errors import ForewordError, InputError
from foreword.filtering.rules import read_table
from foreword.io import folder as folder_module
from foreword.io.folder import load, save
from foreword.text.sources import Reading, read_blocks

TEXTS = ["the cat sat", "a dog and a cat", "on the mat"] * 4
LABELS = ["a", "b", "c"] * 4


def changed(model: Any, place: Path, **settings: Any) -> Path:
    """A saved model with other settings, and checksums that fit."""
    saved = Saved.of(model, place / "model")
    saved.facts["settings"] |= settings
    saved.write(place / "changed")
    return place / "changed"


def test_a_shortest_subword_longer_than_the_longest_gives_none(place: Path) -> None:
    """The room for a line's rows came out too small, and the kernel wrote beyond it."""
    FastTextClassifier(4, buckets=50, min_n=2, max_n=3, word_ngrams=2).fit(TEXTS, LABELS).write(place / "a.bin")
    data = bytearray((place / "a.bin").read_bytes())
    assert struct.unpack_from("<2i", data, 8 + 9 * 4) == (2, 3)
    struct.pack_into("<2i", data, 8 + 9 * 4, 900, 3)
    (place / "a.bin").write_bytes(data)
    model: FastTextClassifier = load(place / "a.bin")
    assert len(list(model.predict_best(["the cat " * 500, ""]))) == 2


@pytest.mark.parametrize("setting", [{"maxn": False}, {"distinct": 1}, {"dim": 4.0}, {"labels": True}, {"pools": 1.0}])
def test_settings_of_another_type_are_refused(place: Path, setting: dict[str, Any]) -> None:
    """Each would have a kernel compiled anew."""
    model = FastTextClassifier(4, buckets=50).fit(TEXTS, LABELS)
    with pytest.raises(InputError, match="not a valid fasttext-classifier"):
        load(changed(model, place, **setting)).predict(TEXTS)


@pytest.mark.parametrize(
    ("model", "setting"),
    [
        (foreword.WordTokenizer(), {"lowercase": 1000}),
        (foreword.CharacterTokenizer(), {"lowercase": "x"}),
        (foreword.BPETokenizer(vocab_size=280), {"lowercase": {}}),
        (foreword.TfIdf(), {"sublinear": 10**400}),
        (foreword.BagOfWords(), {"binary": 2}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_true_or_false_is_nothing_else(place: Path, model: Any, setting: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="should be true or false"):
        load(changed(model.fit(TEXTS), place, **setting))


def test_words_of_two_dimensions_are_refused(place: Path) -> None:
    saved = Saved.of(FastTextClassifier(4, buckets=50).fit(TEXTS, LABELS), place / "model")
    saved.arrays["word_offsets"] = saved.arrays["word_offsets"].reshape(-1, 1)
    saved.write(place / "changed")
    with pytest.raises(InputError, match="one dimension"):
        load(place / "changed")


def test_layers_are_counted_before_there_is_room_for_them(place: Path) -> None:
    pytest.importorskip("torch")
    from foreword.training.settings import Training

    model = foreword.RecurrentLM("lstm", 4, 6, 1, training=Training(epochs=1, batch=2, steps=4), device="cpu")
    model.fit(foreword.Corpus.from_texts(TEXTS, foreword.WordTokenizer().fit(TEXTS)))
    with pytest.raises(InputError, match="2147483648 layers, but only"):
        load(changed(model, place, layers=2**31))


def test_a_threshold_of_many_digits_is_one_line(place: Path) -> None:
    (place / "table").write_text(json.dumps({"en": 10**400}))
    with pytest.raises(InputError, match="not a JSON object of labels and numbers"):
        read_table(str(place / "table"))


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_text_that_was_cut_is_no_shorter_text(place: Path, name: str) -> None:
    text = b"\n".join(os.urandom(40).hex().encode() for _ in range(20_000))
    (place / name).write_bytes(text if name.endswith("txt") else gzip.compress(text, 1))
    blocks = read_blocks(place / name, Reading(block_bytes=1 << 14))
    next(blocks)
    os.truncate(place / name, (place / name).stat().st_size // 2)
    with pytest.raises(InputError, match="became shorter while it was read"):
        list(blocks)


def test_a_model_replaced_while_it_is_opened_is_opened_anew(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = foreword.Corpus.from_texts(TEXTS, foreword.WordTokenizer().fit(TEXTS))
    old, new = foreword.NgramLM(2).fit(corpus), foreword.NgramLM(3).fit(corpus)
    save(old, place / "model")
    read_manifest, others = folder_module._read_manifest, [lambda: save(new, place / "model")]

    def read_and_be_replaced(folder: Path) -> Any:
        manifest = read_manifest(folder)
        if others:
            others.pop()()
        return manifest

    monkeypatch.setattr(folder_module, "_read_manifest", read_and_be_replaced)
    assert load(place / "model").order == 3
    damaged = place / "model" / "arrays.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(ForewordError, match="damaged"):
        load(place / "model")
    assert np.isfinite(new.score(corpus))
