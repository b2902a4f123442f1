"""``foreword.compat.kenlm`` next to the module it stands for: the same program, run with both, prints the same.

The programs follow what the original's example and tests show of its interface: scores with and without boundaries,
full scores, states, perplexity, membership.
"""

from __future__ import annotations

import copy
import json
import lzma
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.real_data import real

import foreword.compat.kenlm as ours

FORMATS = ("kenlm_test.arpa", "kenlm/probing.bin.xz", "kenlm/trie_q6_b5_a10.bin.xz", "kenlm/model.arpa.xz")
SENTENCES = (
    "language modeling is fun .", "looking on a little the biarritz not_found more .", "", "foo bar bar",
    "also would consider higher looking", "not_found , not_found2 not_found3", "to look a </s>", "<s> <unk> the of",
    "the war of\tthe  valkyria\n", "no\0thing left", "\u00a0 é",
)  # fmt: skip


@pytest.fixture(scope="module", params=FORMATS)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    source = real(f"formats/{request.param}")
    if source.suffix != ".xz":
        return str(source)
    plain: Path = tmp_path_factory.mktemp("compat") / source.stem
    with lzma.open(source) as file:
        plain.write_bytes(file.read())
    return str(plain)


@pytest.fixture(scope="module")
def theirs() -> Any:
    return pytest.importorskip("kenlm")


def scores(kenlm: Any, path: str) -> list[Any]:
    model = kenlm.LanguageModel(path)
    found: list[Any] = [model.order, repr(model), model.path]
    for sentence in SENTENCES:
        found.append([model.score(sentence, bos=bos, eos=eos) for bos in (True, False) for eos in (True, False)])
        found.append(list(model.full_scores(sentence)))
        found.append(list(model.full_scores(sentence, bos=False, eos=False)))
        found.append(model.perplexity(sentence))
        found.append(model.score(sentence.encode()))
    return found


def the_example(kenlm: Any, path: str) -> list[Any]:
    """Show n-gram matches, find unknown words, and check that the parts add up to the score."""
    model = kenlm.Model(path, kenlm.Config())
    sentence = "language modeling is fun the of ."
    words = ["<s>", *sentence.split(), "</s>"]
    found: list[Any] = []
    for index, (log, length, oov) in enumerate(model.full_scores(sentence)):
        found.append((log, length, " ".join(words[index + 2 - length : index + 2]), oov))
    found.append([word for word in words if word not in model])
    total = sum(log for log, _, _ in model.full_scores(sentence))
    assert abs(total - model.score(sentence)) < 1e-3
    return found


def with_states(kenlm: Any, path: str) -> list[Any]:
    model, found = kenlm.Model(path), list[Any]()
    state, other = kenlm.State(), kenlm.State()
    for begin in (model.BeginSentenceWrite, model.NullContextWrite):
        begin(state)
        for word in " ".join(SENTENCES).split():
            found.append(repr(model.BaseFullScore(state, word, other)))
            found.append(model.BaseScore(state, word, other))
            found.append(
                (state == other, state != other, copy.copy(state) == state, hash(copy.copy(state)) == hash(state))
            )
            state, other = other, state
    return found


def groups_of_states(kenlm: Any, path: str) -> list[int]:
    """Number the states of a text by equality: a decoder merges hypotheses whose states are equal."""
    model, seen = kenlm.Model(path), dict[Any, int]()
    state, numbers = kenlm.State(), []
    model.BeginSentenceWrite(state)
    for word in " ".join(SENTENCES * 2).split():
        other = kenlm.State()
        model.BaseScore(state, word, other)
        numbers.append(seen.setdefault(other, len(seen)))
        state = other
    return numbers


def faults(kenlm: Any, path: str) -> list[type[BaseException]]:
    model, found = kenlm.Model(path), list[type[BaseException]]()
    state = kenlm.State()
    calls: list[Callable[[], Any]] = [
        lambda: kenlm.Model(path + ".missing"),
        lambda: kenlm.Model(__file__),
        lambda: model.score(5),
        lambda: model.BaseScore(state, 5, kenlm.State()),
    ]
    for call in calls:
        with pytest.raises((OSError, TypeError)) as raised:
            call()
        found.append(raised.type)
    with pytest.raises(AttributeError):
        model.order = 3
    return found


def other_names(kenlm: Any, path: str) -> list[Any]:
    model = pickle.loads(pickle.dumps(kenlm.Model(path)))
    config = kenlm.Config()
    config.load_method = kenlm.LoadMethod.LAZY
    config.show_progress = False
    config.arpa_complain = kenlm.ARPALoadComplain.NONE
    quiet = kenlm.Model(path, config)
    null, empty = kenlm.State(), kenlm.State()
    model.NullContextWrite(null)
    return [repr(model), quiet.score("the"), null == empty, "the" in model, b"the" in quiet, "xyzzy" in model]


PROGRAMS = (scores, the_example, with_states, groups_of_states, faults, other_names)


@pytest.mark.data
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_same_program_prints_the_same(theirs: Any, path: str, program: Callable[[Any, str], list[Any]]) -> None:
    assert program(ours, path) == program(theirs, path)


def test_it_has_every_public_name(theirs: Any) -> None:
    names = {name for name in vars(theirs) if not name.startswith("_") and name != "os"}
    assert names <= set(ours.__all__)
    for name in ("Model", "State", "Config", "FullScoreReturn"):
        public = {each for each in dir(getattr(theirs, name)) if not each.startswith("_")}
        assert public <= set(dir(getattr(ours, name)())) if name in ("State", "Config") else True


@pytest.mark.data
def test_a_decoder_written_for_the_original_finds_the_same_words(
    path: str, theirs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyctcdecode's language model over random logits, once with each module."""
    import numpy as np

    language_model = pytest.importorskip("pyctcdecode.language_model")
    decoder = pytest.importorskip("pyctcdecode")
    labels = ["", *" abcdefghinorstw"]
    logits = np.log(np.random.default_rng(7).dirichlet(np.full(len(labels), 0.2), 60))
    found = []
    for module in (theirs, ours):
        monkeypatch.setattr(language_model, "kenlm", module)
        unigrams = ["the", "of", "a", "war", "no", "to", "on", "in"]
        model = language_model.LanguageModel(module.Model(path), unigrams, alpha=0.7, beta=1.0)
        built = decoder.BeamSearchDecoderCTC(decoder.alphabet.Alphabet.build_alphabet(labels), model)
        found.append([(beam[0], beam[-2], beam[-1]) for beam in built.decode_beams(logits, beam_width=30)])
    assert found[0] == found[1]


@pytest.mark.data
def test_datatrove_s_perplexity_is_the_same(theirs: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """datatrove's KenLM class over CCNet's pair, once with each module: the same digits."""
    perplexity = pytest.importorskip("datatrove.utils.perplexity")
    pytest.importorskip("sentencepiece")
    folder = real("formats/ccnet")
    with lzma.open(folder / "en.arpa.bin.xz") as file:
        (tmp_path / "en.arpa.bin").write_bytes(file.read())
    with lzma.open(folder / "expected.json.xz") as file:
        documents = [row["text"] for row in json.loads(file.read())][:60]

    def local(address: str, **_: object) -> str:
        name = address.rsplit("/", 1)[-1]
        return str(tmp_path / name if name.endswith(".bin") else folder / name)

    monkeypatch.setattr(perplexity, "cached_asset_path_or_download", local)
    found = []
    for module in (theirs, ours):
        monkeypatch.setitem(sys.modules, "kenlm", module)
        model = perplexity.KenlmModel.from_pretrained("wikipedia", "en")
        found.append([model.get_perplexity(text) for text in documents])
        assert isinstance(model.model, module.Model)
    assert found[0] == found[1]


@pytest.mark.data
def test_data_juicer_s_filter_computes_the_same(theirs: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """data-juicer's PerplexityFilter over CCNet's pair, with the original modules and with ours."""
    module = pytest.importorskip("data_juicer.ops.filter.perplexity_filter")
    import sentencepiece

    import foreword.compat.sentencepiece as our_pieces

    folder = real("formats/ccnet")
    with lzma.open(folder / "en.arpa.bin.xz") as file:
        (tmp_path / "en.arpa.bin").write_bytes(file.read())
    with lzma.open(folder / "expected.json.xz") as file:
        documents = [row["text"] for row in json.loads(file.read())]
    found = []
    for kenlm, pieces in ((theirs, sentencepiece), (ours, our_pieces)):
        models = {"sentencepiece": pieces.SentencePieceProcessor(), "kenlm": kenlm.Model(str(tmp_path / "en.arpa.bin"))}
        models["sentencepiece"].load(str(folder / "en.sp.model"))
        monkeypatch.setattr(module, "prepare_model", lambda model_type, lang: model_type)
        monkeypatch.setattr(module, "get_model", models.__getitem__)
        filter = module.PerplexityFilter(lang="en")
        samples: dict[str, Any] = {filter.text_key: documents, module.Fields.stats: [{} for _ in documents]}
        stats = filter.compute_stats_batched(samples)[module.Fields.stats]
        found.append([row[module.StatsKeys.perplexity] for row in stats])
    assert found[0] == found[1]
