"""KenLM binaries of every type, against KenLM's Python module on the same files: equal to the last bit of a float32."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.real_data import real

from foreword import load
from foreword.ngram.arpa import read_log10
from foreword.ngram.kenlm import KenlmLM
from foreword.ngram.kenlm_writing import write_kenlm
from foreword.ngram.plain_kenlm import PlainKenlm
from foreword.tokens.corpus import Corpus

pytestmark = pytest.mark.data

FILES = (
    "probing", "probing_p2", "probing_novocab", "rest_probing", "trie", "trie_a22", "trie_q8", "trie_q6_b5_a10"
)  # fmt: skip


def unpacked(name: str) -> bytes:
    with lzma.open(real(f"formats/kenlm/{name}.xz")) as file:
        return file.read()


@pytest.fixture(scope="module")
def expected() -> Any:
    return json.loads(unpacked("expected.json"))


@pytest.fixture(scope="module", params=FILES)
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("kenlm") / f"{request.param}.bin"
    path.write_bytes(unpacked(path.name))
    return path


def of_sentences(model: KenlmLM, sentences: list[str]) -> Corpus:
    return Corpus.from_texts(sentences, model.words)


def test_scores_are_those_that_kenlm_wrote_down(file: Path, expected: Any) -> None:
    model = KenlmLM.open(file)
    scores = expected["models"][file.name]["score"]
    assert model.totals(of_sentences(model, expected["sentences"])).tolist() == np.float32(scores).tolist()


def test_a_trie_written_from_an_arpa_file_is_the_one_that_kenlm_wrote(tmp_path: Path) -> None:
    (tmp_path / "model.arpa").write_bytes(unpacked("model.arpa"))
    write_kenlm(read_log10(tmp_path / "model.arpa"), tmp_path / "model.bin", "trie")
    assert (tmp_path / "model.bin").read_bytes() == unpacked("trie.bin")


def test_full_scores_are_those_that_kenlm_wrote_down(file: Path, expected: Any) -> None:
    model = KenlmLM.open(file)
    full = [word for sentence in expected["models"][file.name]["full"] for word in sentence]
    corpus = of_sentences(model, expected["sentences"][:40])
    logs, lengths = model.full_log10(corpus)
    assert logs.tolist() == [np.float32(word[0]).item() for word in full]
    assert lengths.tolist() == [word[1] for word in full]
    assert (corpus.ids == 0).tolist() == [bool(word[2]) for word in full]


def test_the_installed_module_agrees(file: Path, expected: Any) -> None:
    kenlm = pytest.importorskip("kenlm")
    peer, model = kenlm.Model(str(file)), KenlmLM.open(file)
    sentences = expected["sentences"]
    corpus = of_sentences(model, sentences)
    assert model.totals(corpus).tolist() == [peer.score(sentence) for sentence in sentences]
    full = [word for sentence in sentences for word in peer.full_scores(sentence)]
    logs, lengths = model.full_log10(corpus)
    assert logs.tolist() == [word[0] for word in full]
    assert lengths.tolist() == [word[1] for word in full]


def test_the_plain_version_gives_the_same_bits(file: Path, expected: Any) -> None:
    plain, model = PlainKenlm(file), KenlmLM.open(file)
    sentences = expected["sentences"][:30]
    logs, lengths = model.full_log10(of_sentences(model, sentences))
    found = [word for sentence in sentences for word in plain.full_scores(sentence.split())]
    assert logs.tolist() == [log.item() for log, _ in found]
    assert lengths.tolist() == [length for _, length in found]


def test_states_are_those_of_the_plain_version(file: Path, expected: Any) -> None:
    plain, model = PlainKenlm(file), KenlmLM.open(file)
    states, state = model.start(), plain.start()
    for word in " ".join(expected["sentences"][:8]).split():
        states, _, _ = model.step(states, np.array([plain.word_id(word)]))
        _, _, state = plain.step(state, plain.word_id(word))
        length = int(states[0, 0])
        assert states[0, 1 : 1 + length].tolist() == list(state.words)
        weights = states.view(np.float32)[0, model.order : model.order + length]
        assert weights.tolist() == [weight.item() for weight in state.weights]


def test_stepping_equals_scoring(file: Path, expected: Any) -> None:
    model = KenlmLM.open(file)
    corpus = of_sentences(model, expected["sentences"][5:6])
    state, logs = model.start(3), []
    for id in corpus.ids.tolist():
        logs.append(model.next_logprobs(state)[2, id])
        state = model.advance(state, np.full(3, id))
    assert logs == model.logprobs(corpus).tolist()


def test_probabilities_sum_to_one_unless_quantized(file: Path) -> None:
    model = KenlmLM.open(file)
    state = model.advance(model.start(), model.words.ids(["the"]))
    allowed = 0.05 if "q" in file.stem else 1e-5
    assert np.exp(model.next_logprobs(state)).sum() == pytest.approx(1, abs=allowed)


def test_it_is_recognised_by_its_content_and_saved_in_a_folder(file: Path, expected: Any, tmp_path: Path) -> None:
    from foreword import save

    model = load(file)
    scores = [model.score(sentence) for sentence in expected["sentences"][:5]]
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert [again.score(sentence) for sentence in expected["sentences"][:5]] == scores


WORDS = st.sampled_from(["the", "of", "no", "valkyria", "xyzzy", "<unk>", "é", "", "\u00a0", "\x85", "\u3000", "war"])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(WORDS, st.sampled_from([" ", "\t", "\n", "\x0b", "\x0c", "\r", "  "])), max_size=12))
def test_words_are_cut_as_kenlm_cuts_them(both: tuple[Any, KenlmLM], parts: list[tuple[str, str]]) -> None:
    peer, model = both
    text = "".join(word + blank for word, blank in parts)
    assert model.totals(of_sentences(model, [text])).tolist() == [peer.score(text)]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, KenlmLM]:
    kenlm = pytest.importorskip("kenlm")
    path = tmp_path_factory.mktemp("words") / "probing.bin"
    path.write_bytes(unpacked("probing.bin"))
    return kenlm.Model(str(path)), KenlmLM.open(path)
