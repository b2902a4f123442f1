"""The CTC decoder next to pyctcdecode 0.5: the beams that it stored, and itself as a live oracle."""

from __future__ import annotations

import json
import lzma
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.real_data import real

from foreword.arrays import Doubles
from foreword.compat import pyctcdecode as ours
from foreword.speech.lm import CTCLanguageModel as LanguageModel
from foreword.speech.lm import MultiLanguageModel

TOLERANCE = 1e-4
LETTERS = list(" abcdefghijklmnopqrstuvwxyz'")
PIECES = ["<unk>", "▁", *"abcdefgh", "▁t", "▁th", "▁the", "he", "in", "▁in", "ing", "▁a", "er", "ed", "st", "é", "ly▁"]
HOTWORDS = ["church", "hallway"]
CASES: dict[str, dict[str, Any]] = {
    "no_lm": {},
    "ptb3": {"alpha": 0.5, "beta": 1.5},
    "ptb3_alpha_beta": {"alpha": 0.8, "beta": 0.5},
    "ptb3_hotwords": {"alpha": 0.5, "beta": 1.5},
}


@pytest.fixture(scope="module")
def stored() -> Any:
    with lzma.open(real("formats/ctc/expected.json.xz")) as file:
        return json.load(file)


@pytest.fixture(scope="module")
def matrices(stored: Any) -> dict[str, Doubles]:
    found = {"libri": json.loads(real("formats/ctc/libri_logits.json").read_text("utf-8"))} | stored["inputs"]
    return {name: np.array(rows) for name, rows in found.items()}


@pytest.fixture(scope="module")
def arpa(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ctc") / "ptb3.arpa"
    with lzma.open(real("formats/kenlm_ptb3.arpa.xz")) as file:
        path.write_bytes(file.read())
    return str(path)


@pytest.fixture(scope="module")
def unigrams(arpa: str) -> list[str]:
    lines = Path(arpa).read_text("utf-8").splitlines()
    section = lines[lines.index("\\1-grams:") + 1 : lines.index("\\2-grams:")]
    return [word for word in (line.split("\t")[1] for line in section if "\t" in line) if word.isalpha()]


@pytest.fixture(scope="module")
def loaded(arpa: str) -> Any:
    """The language model, read once."""
    return ours.build_ctcdecoder(LETTERS, arpa, ["the"])._language_model.scorer.model  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def theirs() -> Any:
    pytest.importorskip("kenlm")
    return pytest.importorskip("pyctcdecode")


def assert_same(mine: list[Any], other: list[Any], most: int = 10) -> None:
    """The same texts, frames of words and scores; beams are listed as the whole lists or the first ``most``."""
    mine, other = mine[:most], other[:most]
    assert [beam[0] for beam in mine] == [beam[0] for beam in other]
    for one, two in zip(mine, other, strict=True):
        assert [(word, tuple(span)) for word, span in one[-3]] == [(word, tuple(span)) for word, span in two[-3]]
        assert one[-2:] == pytest.approx(two[-2:], abs=TOLERANCE)


@pytest.mark.data
@pytest.mark.parametrize("case", CASES)
def test_the_stored_beams(
    case: str, stored: Any, matrices: dict[str, Doubles], loaded: Any, unigrams: list[str]
) -> None:
    lm = (None, None) if case == "no_lm" else (loaded, unigrams)
    decoder = ours.build_ctcdecoder(stored["labels"], *lm, **CASES[case])
    hotwords = HOTWORDS if case.endswith("hotwords") else None
    for name, logits in matrices.items():
        expected = [_beam(beam) for beam in stored["results"][f"{case}/{name}"]]
        assert_same(decoder.decode_beams(logits, beam_width=100, hotwords=hotwords), expected)


def _beam(stored: Any) -> Any:
    """Return a stored beam as (text, frames, logit score, LM score)."""
    return tuple(stored.values()) if isinstance(stored, dict) else tuple(stored)


def _settings(random: np.random.Generator) -> dict[str, Any]:
    return {
        "beam_width": int(random.choice([1, 3, 10, 50])),
        "beam_prune_logp": float(random.choice([-3, -10, -30])),
        "token_min_logp": float(random.choice([-2, -5, -9])),
        "prune_history": bool(random.integers(2)),
        "hotwords": ["the in", "aged", "head", "thed"] if random.integers(2) else None,
        "hotword_weight": float(random.choice([1, 10])),
    }


def _logits(random: np.random.Generator, real: Doubles, labels: int) -> Doubles:
    """Return a random matrix, or for letters also a part of the real one with noise."""
    frames = int(random.integers(0, 30))
    if labels == real.shape[1] and random.integers(2):
        first = int(random.integers(0, len(real) - frames))
        noise: Doubles = random.choice([0.1, 1, 3]) * random.normal(size=(frames, labels))
        return real[first : first + frames] + noise
    logits: Doubles = random.choice([1, 3, 6]) * random.normal(size=(frames, labels))
    logits[:, -1] += 4 * random.random()
    return logits


def _compared(theirs: Any, loaded: Any, arpa: str, real: Doubles, unigrams: list[str], seed: int, count: int) -> int:
    """Decode random and real matrices with both, in all ways; return how many top texts are equal."""
    kenlm: Any = pytest.importorskip("kenlm")
    random, equal = np.random.default_rng(seed), 0
    peer = kenlm.Model(arpa)
    lists = [None, unigrams, unigrams[::2], []]
    weights: dict[str, Any] = {"alpha": 0.6, "beta": 1.0, "unk_score_offset": -7.0}
    others = partial(theirs.LanguageModel, peer)
    mine = [LanguageModel(loaded, words, **weights) for words in lists]
    other = [others(words, **weights) for words in lists]
    for number in range(count):
        labels = (LETTERS, PIECES)[number % 2]
        which = int(random.integers(-1, len(lists)))
        decoders = [
            module.BeamSearchDecoderCTC(module.Alphabet.build_alphabet(labels), models[which] if which >= 0 else None)
            for module, models in ((ours, mine), (theirs, other))
        ]
        logits = _logits(random, real, len(labels) + 1)
        settings = _settings(random)
        beams = [decoder.decode_beams(logits, **settings) for decoder in decoders]
        assert_same(*beams)
        equal += beams[0][0][0] == beams[1][0][0]
        for decoder in decoders:
            decoder.cleanup()
    return equal


@pytest.mark.data
@pytest.mark.filterwarnings("ignore")
def test_random_and_real_matrices(
    theirs: Any, loaded: Any, arpa: str, matrices: dict[str, Doubles], unigrams: list[str]
) -> None:
    assert _compared(theirs, loaded, arpa, matrices["libri"], unigrams, 1, 40) == 40


@pytest.mark.long
@pytest.mark.data
@pytest.mark.filterwarnings("ignore")
def test_500_random_and_real_matrices(
    theirs: Any, loaded: Any, arpa: str, matrices: dict[str, Doubles], unigrams: list[str],
    record_property: Any,
) -> None:  # fmt: skip
    """C03: the same top text on 99.9 %, and the same ten beams."""
    equal = _compared(theirs, loaded, arpa, matrices["libri"], unigrams, 0, 500)
    record_property("C03 top texts equal to pyctcdecode's, of 500 matrices", equal)
    assert equal >= 0.999 * 500


@pytest.mark.long
@pytest.mark.data
@pytest.mark.filterwarnings("ignore")
def test_several_language_models(
    theirs: Any, loaded: Any, arpa: str, matrices: dict[str, Doubles], unigrams: list[str]
) -> None:
    kenlm: Any = pytest.importorskip("kenlm")
    from_peer = theirs.language_model
    peer = kenlm.Model(arpa)
    settings: tuple[dict[str, Any], ...] = ({"alpha": 0.5}, {"alpha": 0.9, "score_boundary": False})
    mine = MultiLanguageModel([LanguageModel(loaded, unigrams, **each) for each in settings])
    other = from_peer.MultiLanguageModel([theirs.LanguageModel(peer, unigrams, **each) for each in settings])
    first = ours.BeamSearchDecoderCTC(ours.Alphabet.build_alphabet(LETTERS), mine)
    second = theirs.BeamSearchDecoderCTC(theirs.Alphabet.build_alphabet(LETTERS), other)
    logits = matrices["noisy_0.1"][:150]
    assert_same(first.decode_beams(logits), second.decode_beams(logits), 100)
    state = first.decode_beams(logits)[0].lm_state
    assert len(state) == 2
    follow = second.decode_beams(logits)[0][1]
    assert_same(
        first.decode_beams(logits, lm_start_state=state), second.decode_beams(logits, lm_start_state=follow), 100
    )


@pytest.mark.long
@pytest.mark.data
@pytest.mark.filterwarnings("ignore")
def test_folders_are_exchanged(
    theirs: Any, arpa: str, matrices: dict[str, Doubles], unigrams: list[str], tmp_path: Path
) -> None:
    """What one saves in Hugging Face's layout the other opens."""
    logits = matrices["noisy_0.1"][:100]
    made = {"ours": ours.build_ctcdecoder(LETTERS, arpa, unigrams, alpha=0.7), "theirs": None}
    made["theirs"] = theirs.build_ctcdecoder(LETTERS, arpa, unigrams, alpha=0.7)
    for name, decoder in made.items():
        (tmp_path / name).mkdir()
        decoder.save_to_dir(str(tmp_path / name))  # type: ignore[union-attr]
    from_theirs = ours.BeamSearchDecoderCTC.load_from_dir(str(tmp_path / "theirs"))
    from_ours = theirs.BeamSearchDecoderCTC.load_from_dir(str(tmp_path / "ours"))
    assert_same(from_theirs.decode_beams(logits), from_ours.decode_beams(logits))


def test_the_module_stands_in_for_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that imports pyctcdecode by name, as transformers does, finds ours after ``install``."""
    names = ("", ".alphabet", ".constants", ".decoder", ".language_model")
    for name in names:
        monkeypatch.setitem(sys.modules, f"pyctcdecode{name}", sys.modules.get(f"pyctcdecode{name}", ours))
    ours.install()
    program = (
        "from pyctcdecode import BeamSearchDecoderCTC, build_ctcdecoder\n"
        "from pyctcdecode.alphabet import BLANK_TOKEN_PTN, UNK_TOKEN, UNK_TOKEN_PTN\n"
        "from pyctcdecode.constants import DEFAULT_BEAM_WIDTH, DEFAULT_PRUNE_LOGP\n"
        "from pyctcdecode.language_model import LanguageModel\n"
        "decoder = build_ctcdecoder(['<pad>', '|', 'a', 'b'])\n"
        "texts = decoder.decode_batch(None, [[[0, 0, 9, 0], [9, 0, 0, 0], [0, 0, 0, 9]]], DEFAULT_BEAM_WIDTH)\n"
        "model = decoder.model_container[decoder._model_key]\n"
    )
    found: dict[str, Any] = {}
    exec(program, found)
    assert found["texts"] == ["ab"]
    assert found["BeamSearchDecoderCTC"] is ours.BeamSearchDecoderCTC
    assert (found["DEFAULT_BEAM_WIDTH"], found["DEFAULT_PRUNE_LOGP"], found["model"]) == (100, -10.0, None)
