"""What is true of every kind that can be saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foreword import kinds
from foreword.protocols import Saveable
from foreword.storage.folder import load, pack, save, unpack, verify

from .models import CLASSIFIERS, COMPOSED, LANGUAGE_MODELS, RANKERS, TAGGERS, TOKENIZERS, VECTORS

OF_OTHER_TOOLS = {"kenlm", "hashed-words", "steps"}
"""Kinds that are read from files of other tools, never trained: ``tests/against/test_kenlm_binary.py`` and
``test_tokenizers_steps.py`` test them.
"""

INDEXES = {"suffix-index", "text-index", "compressed-index", "compressed-text-index"}
"""Kinds that are neither models nor rankers: ``tests/unit/infinigram`` tests them."""

TOPICS = {"lda", "plsa"}
"""Topic models, which are neither: ``tests/unit/features/test_topics.py`` tests them."""

SPEECH = {"recogniser", "speech-recogniser"}
"""Kinds that read sound: ``tests/unit/pipeline/test_speech_recogniser.py`` tests them."""

FROZEN = Path(__file__).parents[1] / "fixtures" / "v0_1_0"


@pytest.fixture(scope="module", params=kinds.KINDS)
def model(request: pytest.FixtureRequest) -> Any:
    """A model of every kind: one that an earlier version saved, where it knew the kind."""
    folder = FROZEN / request.param
    if not folder.exists():
        pytest.skip("saved by the tests of its own protocol, since no earlier version knew it")
    return load(folder)


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_every_kind_is_held_to_a_contract(kind: str) -> None:
    cases = (LANGUAGE_MODELS, TOKENIZERS, TAGGERS, CLASSIFIERS, RANKERS, VECTORS)
    tested = {case.kind for each in cases for case in each} | COMPOSED.keys() | OF_OTHER_TOOLS
    assert kind in tested | INDEXES | TOPICS | SPEECH or (FROZEN / kind).exists()


@pytest.mark.parametrize("kind", kinds.KINDS.values(), ids=lambda kind: kind.name)
def test_every_entry_names_a_class_and_settings_that_it_has(kind: kinds.Kind) -> None:
    found = kinds.resolve(kind.home)
    assert isinstance(found, type)
    assert issubclass(found, Saveable)
    for settings in (*kind.names.values(), *(rung.settings for rung in kind.rungs)):
        model = kinds.build(kind, settings)
        assert kinds.of(model) is kind


def test_its_kind_is_known_by_its_class(model: Any) -> None:
    assert isinstance(model, Saveable)
    assert type(model) is kinds.resolve(kinds.of(model).home)


def test_parts_out_and_in_are_the_same(model: Any) -> None:
    first = pack(model)
    second = pack(unpack(first))
    assert second.settings == first.settings
    assert second.arrays.keys() == first.arrays.keys()
    assert all(second.arrays[name].tobytes() == array.tobytes() for name, array in first.arrays.items())
    assert second.vocab == first.vocab


def test_saved_twice_it_is_the_same_bytes(model: Any, tmp_path: Path) -> None:
    for name in ("one", "two"):
        save(model, tmp_path / name)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two
    assert verify(tmp_path / "one") == []
