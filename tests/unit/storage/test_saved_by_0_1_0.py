"""Everything that version 0.1.0 saved still loads, and still gives what 0.1.0 computed from it.

``tests/fixtures/v0_1_0`` was written by 0.1.0 and does not change::

    <kind>/, <kind>.<variant>/   a saved model each
    files/                       files of other tools
    stopped/                     work that was stopped half-way, with the texts that it reads
    expected.json                the kinds that 0.1.0 knew, and what it computed from each of the above

A tolerance stands beside each expected value. Integers, texts and numbers that are only looked up are equal. In float64
the logarithms and exponentials of two processors differ in the last bit, which 1e-12 allows. Where torch, BLAS or
float32 vector instructions add products, the order of the sums depends on the processor and the library, which 1e-6
allows. A training that goes on repeats such sums many times, so that 1e-5 is allowed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import foreword
from foreword.cli import app
from foreword.errors import MissingVocabularyError

FROZEN = Path(__file__).parents[2] / "fixtures" / "v0_1_0"
STOPPED, FILES = FROZEN / "stopped", FROZEN / "files"
EXPECTED: dict[str, Any] = json.loads((FROZEN / "expected.json").read_text(encoding="utf-8"))

FOLDERS = sorted(path.parent.name for path in FROZEN.glob("*/model.json"))
FOREIGN = sorted(path.name for path in FILES.iterdir())
RUNS = sorted(path.name for path in STOPPED.iterdir())

DATE = 1_700_000_000_000_000_000
"""When the texts of stopped work were last changed, in nanoseconds: a run goes on only with files of the same date."""

# What is asked of the models

DOCUMENTS = [[2, 6, 4, 5, 2, 3], [], [3], [0, 0], [6, 7, 6]]
TEXTS = ["the cat sat on the mat", "A größer dog, unseen!", "", "a dog and a cat"]
LABELS = ["still", "wild", "still", "wild"]
SENTENCES = [["the", "cat", "sat"], ["a", "Bigger", "dog", "unseen-7"], []]
QUERIES = ["cat mat", "the dog", "unseen", ""]
SOURCES, TARGETS = ["the cat sat", "a dog", "unseen"], ["die Katze saß", "ein Hund", "nie"]


def listed(array: Any) -> Any:
    """Turn arrays and sparse matrices into plain lists."""
    dense = array.toarray() if hasattr(array, "toarray") else array
    return dense.tolist()


def told(vocab: Any) -> Any:
    """Tell a vocabulary by its size, its special tokens and the checksum of all tokens."""
    digest = hashlib.sha256("\n".join(vocab.tokens).encode()).hexdigest()
    counts = None if vocab.counts is None else listed(vocab.counts[:5])
    return [len(vocab), vocab.unknown, vocab.end, digest, counts]


def ask_language_model(model: Any) -> Any:
    """Score documents of ids, and every word at the beginning."""
    corpus = foreword.Corpus.from_ids(DOCUMENTS, model.vocab)
    return {
        "tokens": told(model.vocab),
        "logs": listed(model.logprobs(corpus)),
        "first": listed(model.next_logprobs(model.start())),
    }


def ask_text_model(model: Any) -> Any:
    """Tell how surprising each token of some texts is."""
    return {"tokens": told(model.vocab), "surprisal": [[list(pair) for pair in model.surprisal(t)] for t in TEXTS]}


def ask_tokenizer(model: Any) -> Any:
    """Encode texts, and decode them again."""
    ids = [listed(model.encode(text)) for text in TEXTS]
    return {"tokens": told(model.vocab), "ids": ids, "texts": [model.decode(each) for each in ids]}


def ask_corpus(model: Any) -> Any:
    """List the ids and where documents begin."""
    parts = {name: listed(getattr(model, name)) for name in ("ids", "offsets", "byte_offsets")}
    return {"tokens": told(model.vocab), **parts}


def ask_features(model: Any) -> Any:
    """Turn texts into rows."""
    return {"terms": model.vocabulary_, "rows": listed(model.transform(TEXTS))}


def rows_of_texts() -> Any:
    """Count the texts by the bag that was saved beside the models."""
    return foreword.load(FROZEN / "bag-of-words").transform(TEXTS)


def ask_lsa(model: Any) -> Any:
    """Bring rows of counts into few dimensions."""
    return {"rows": listed(model.transform(rows_of_texts())), "values": listed(model.singular_values_)}


def ask_row_classifier(model: Any) -> Any:
    """Classify rows of counts."""
    return {"classes": listed(model.classes_), "logs": listed(model.predict_log_proba(rows_of_texts()))}


def ask_text_classifier(model: Any) -> Any:
    """Classify texts."""
    return {
        "classes": list(model.classes_),
        "labels": model.predict(TEXTS),
        "shares": listed(model.predict_proba(TEXTS)),
    }


def ask_ranker(model: Any) -> Any:
    """Search for queries that the saved tokenizer turns into ids."""
    queries = foreword.Corpus.from_texts(QUERIES, foreword.load(FROZEN / "word"))
    found = model.search(queries, 3)
    return {"documents": listed(found.documents), "scores": listed(found.scores)}


def ask_search(model: Any) -> Any:
    """Search for texts, and read the documents back."""
    hits = [
        [
            [hit.rank, hit.score, hit.document, hit.name, hit.snippet, [list(mark) for mark in hit.marks]]
            for hit in found
        ]
        for found in model.query_batch(QUERIES)
    ]
    return {"hits": hits, "texts": [model.text(number) for number in range(len(model))]}


def ask_vectors(model: Any) -> Any:
    """List the words with their vectors, and the nearest of one."""
    vectors = getattr(model, "vectors", model)
    unseen = {word: listed(vectors[word]) for word in ("unseencat",) if word in vectors or vectors.subwords is not None}
    near = [list(pair) for pair in vectors.nearest("cat", 3)]
    return {"words": {word: listed(vectors[word]) for word in vectors}, "unseen": unseen, "nearest": near}


def ask_cooccurrence(model: Any) -> Any:
    """List how often words stood near each other."""
    return {"tokens": told(model.vocab), "matrix": listed(model.matrix())}


def ask_embedder(model: Any) -> Any:
    """Give the vectors of words where they stand."""
    return [listed(rows) for rows in model.embed(SENTENCES)]


def ask_tagger(model: Any) -> Any:
    """Tag sentences."""
    logs = [listed(rows) for rows in model.predict_log_proba(SENTENCES)]
    return {"names": list(model.tags_), "tags": model.predict(SENTENCES), "logs": logs}


def ask_translator_of_ids(model: Any) -> Any:
    """Score translations, and search for others."""
    sources = foreword.Corpus.from_ids([[2, 3], [4], []], model.source_vocab)
    targets = foreword.Corpus.from_ids([[3, 2], [2], [3]], model.vocab)
    logs = [listed(each) for each in model.logprobs(foreword.Pairs(sources, targets))]
    return {"logs": logs, "ids": [listed(ids) for ids in model.translate(sources, width=2, max_tokens=8)]}


def ask_translator(model: Any) -> Any:
    """Translate texts, and score given translations."""
    logs = [listed(each) for each in model.model.logprobs(model.pairs(SOURCES, TARGETS))]
    return {"logs": logs, "texts": model.translate(SOURCES, width=2, max_tokens=8)}


ASK: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("unigram", "ngram", "mixture", "cached", "neural-cache", "hmm"), ask_language_model),
    **dict.fromkeys(("bengio", "recurrent", "awd-lstm", "transformer"), ask_language_model),
    **dict.fromkeys(("hmm-tagger", "bilstm-tagger", "feature-tagger"), ask_tagger),
    "seq2seq": ask_translator_of_ids,
    "text-translator": ask_translator,
    "lsa": ask_lsa,
    "text-lm": ask_text_model,
    **dict.fromkeys(("naive-bayes", "logistic", "nb-logistic", "calibrated"), ask_row_classifier),
    **dict.fromkeys(("text-classifier", "recurrent-classifier", "fasttext-classifier"), ask_text_classifier),
    **dict.fromkeys(("bm25", "cosine-search"), ask_ranker),
    "text-search": ask_search,
    **dict.fromkeys(("word-vectors", "word2vec", "fasttext", "glove"), ask_vectors),
    "cooccurrence": ask_cooccurrence,
    **dict.fromkeys(("elmo", "static-embedder"), ask_embedder),
    **dict.fromkeys(("word", "character", "byte", "bpe"), ask_tokenizer),
    "corpus": ask_corpus,
    **dict.fromkeys(("bag-of-words", "one-hot", "tf-idf"), ask_features),
}
"""How each kind is used."""

READ_AS = {
    "model.arpa": "text-lm",
    "tokenizer.json": "bpe",
    "vectors.vec": "word-vectors",
    "vectors.txt": "word-vectors",
    "vectors.bin": "word-vectors",
    "subwords.bin": "word-vectors",
    "classifier.bin": "fasttext-classifier",
    "classifier.ftz": "fasttext-classifier",
    "hierarchical.bin": "fasttext-classifier",
    "one-vs-all.bin": "fasttext-classifier",
}
"""What a file of another tool becomes when it is loaded."""


# Going on with what was stopped


def run(*arguments: str) -> None:
    """Run a command of Foreword's in this process."""
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output


def go_on_with_network(kind: str, *settings: str) -> Any:
    """Train a language model to its end, and use it: with the vocabulary that was the default of 0.1.0."""
    given = [word for setting in (*settings, "unknown=0") for word in ("--set", setting)]
    how = ["--min-count", "2", "--valid", "valid.txt", "--device", "cpu", "--threads", "1", "--resume", "--quiet"]
    run("train", kind, "text.txt", "-o", "model", *given, *how)
    assert not Path("model.checkpoint").exists()
    return ask_text_model(foreword.load("model"))


def go_on_with_gru() -> Any:
    """Finish a run in which nothing is dropped: no random numbers matter."""
    sizes = ("embedding=4", "hidden=4", "layers=1")
    return go_on_with_network("gru", *sizes, "epochs=3", "batch=2", "steps=4", "rate=0.01", "dropout=0")


def go_on_with_lstm() -> Any:
    """Finish a run that draws what it drops from the random numbers that were kept."""
    if not torch.backends.mkl.is_available():  # type: ignore[no-untyped-call]
        pytest.skip("without MKL torch draws other random numbers from the same state")
    sizes = ("embedding=4", "hidden=4", "layers=1")
    return go_on_with_network("lstm", *sizes, "epochs=3", "batch=2", "steps=4", "rate=0.01", "dropout=0.3")


def go_on_with_translator() -> Any:
    """Train a translator to its end, and use it."""
    settings = ["units=4", "words=4", "epochs=4", "batch=20", "rate=0.02", "dropout=0"]
    given = [word for setting in settings for word in ("--set", setting)]
    texts = ["source.txt", "target.txt", "-o", "model", "--tokens", "word", "--min-count", "1"]
    run("translate", "train", *texts, *given, "--device", "cpu", "--resume", "--quiet")
    return ask_translator(foreword.load("model"))


def go_on_with_tokenizer() -> Any:
    """Count what is left, and use the tokenizer that is learnt."""
    run("tokenize", "train", "text.txt.xz", "-o", "tokenizer", "--vocab", "270", "--resume", "--quiet")
    assert not Path("tokenizer.partial").exists()
    return ask_tokenizer(foreword.load("tokenizer"))


def go_on_with_filter() -> Any:
    """Filter the file that is left: the one that was finished stays as it is."""
    rules = ["--keep", "perplexity<3", "--with-scores", "--processes", "1", "--quiet"]
    run("filter", "model", "in", "out", *rules)
    return {name: rows_in(Path("out", name)) for name in ("one.jsonl", "two.jsonl")}


def rows_in(path: Path) -> list[Any]:
    """Read a file of rows as JSON."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def go_on_with_vectors() -> Any:
    """Train the saved vectors to their end, telling how many steps were left."""
    model = foreword.load("model")
    lines = Path("text.txt").read_text(encoding="utf-8").splitlines()
    ids = [listed(model.vocab.ids(line.split())) for line in lines]
    steps = list(model.train(foreword.Corpus.from_ids(ids, model.vocab)))
    return {"steps": len(steps), "loss": steps[-1].loss, **ask_vectors(model)}


def go_on_with_classifier() -> Any:
    """Train the saved classifier to its end, telling how many steps were left.

    Its folder is packed here: a table of 128 kB in it is nearly empty.
    """
    shutil.unpack_archive("model.zip", "model")
    model = foreword.load("model")
    lines = Path("text.txt").read_text(encoding="utf-8").splitlines()
    steps = list(model.train([line.partition(" ")[2] for line in lines], [line.split()[0] for line in lines]))
    return {"steps": len(steps), "loss": steps[-1].loss, **ask_text_classifier(model)}


GO_ON: dict[str, Callable[[], Any]] = {
    "gru": go_on_with_gru,
    "lstm": go_on_with_lstm,
    "text-translator": go_on_with_translator,
    "bpe": go_on_with_tokenizer,
    "filter": go_on_with_filter,
    **dict.fromkeys(("word2vec", "fasttext", "glove"), go_on_with_vectors),
    "fasttext-classifier": go_on_with_classifier,
}
"""How each kind of stopped work is finished, in a folder that holds a copy of what was kept."""


def copy_of_run(name: str, folder: Path) -> Path:
    """Copy stopped work to where it may be written to, with the dates that its texts had."""
    copy = folder / name
    shutil.copytree(STOPPED / name, copy)
    for path in copy.rglob("*"):
        os.utime(path, ns=(DATE, DATE))
    return copy


# The tests


@pytest.fixture(autouse=True)
def one_thread_on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute as the expected values were: a GPU, or another number of threads, adds in another order."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    torch.set_num_threads(1)


def plain(value: Any) -> Any:
    """Give a value the form that it has when it was read from JSON."""
    return json.loads(json.dumps(value))


def differences(found: Any, expected: Any, tolerance: float, place: str = "") -> list[str]:
    """List where two values of JSON differ by more than the tolerance."""
    if isinstance(found, dict) and isinstance(expected, dict) and found.keys() == expected.keys():
        pairs = [(f"{place}.{name}", found[name], expected[name]) for name in expected]
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = [(f"{place}[{n}]", *pair) for n, pair in enumerate(zip(found, expected, strict=True))]
    elif isinstance(found, float) and isinstance(expected, float):
        same = found == expected or math.isclose(found, expected, rel_tol=tolerance, abs_tol=tolerance)
        return [] if same else [f"{place}: {found!r}, not {expected!r}"]
    else:
        return [] if found == expected else [f"{place}: {found!r}, not {expected!r}"]
    return [each for where, one, other in pairs for each in differences(one, other, tolerance, where)]


def check(name: str, found: Any) -> None:
    """Compare what was computed now with what 0.1.0 had computed."""
    expected = EXPECTED["values"][name]
    assert differences(plain(found), expected["value"], expected["tolerance"]) == []


def test_every_kind_that_0_1_0_knew_has_a_fixture() -> None:
    kinds = {folder.partition(".")[0] for folder in FOLDERS}
    assert len(EXPECTED["kinds"]) == 42
    assert sorted(kinds) == sorted(EXPECTED["kinds"]) == sorted(ASK)


def test_every_expected_value_has_its_fixture() -> None:
    there = [*FOLDERS, *(f"files/{name}" for name in FOREIGN), *(f"stopped/{name}" for name in RUNS)]
    assert sorted(there) == sorted(EXPECTED["values"])
    assert sorted(READ_AS) == FOREIGN
    assert sorted(GO_ON) == RUNS


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_saved_model_gives_what_it_gave(folder: str) -> None:
    kind = folder.partition(".")[0]
    facts = json.loads((FROZEN / folder / "model.json").read_text(encoding="utf-8"))
    assert (facts["kind"], facts["foreword"]) == (kind, "0.1.0")
    check(folder, ASK[kind](foreword.load(FROZEN / folder, verify=True)))


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_model_that_is_saved_again_gives_what_it_gave(folder: str, tmp_path: Path) -> None:
    foreword.save(foreword.load(FROZEN / folder), tmp_path / "again")
    check(folder, ASK[folder.partition(".")[0]](foreword.load(tmp_path / "again", verify=True)))


@pytest.mark.parametrize("folder", ["awd-lstm", "bm25", "bpe", "character", "corpus", "elmo", "ngram", "word"])
def test_a_model_that_lost_its_vocabulary_is_refused(folder: str) -> None:
    model = foreword.load(FROZEN / folder)
    parts = model.to_parts()
    parts.vocab = None
    with pytest.raises(MissingVocabularyError, match="expected a vocabulary"):
        type(model).from_parts(parts)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_network_saved_again_names_the_settings_it_named(folder: str, tmp_path: Path) -> None:
    """Settings that 0.1.0 did not have are left out at their defaults, so that fingerprints of runs stay the same."""
    model = foreword.load(FROZEN / folder)
    if not hasattr(model, "run_id"):
        pytest.skip("not a network")
    foreword.save(model, tmp_path / "again")
    before, after = (
        (place / "model.json").read_text(encoding="utf-8") for place in (FROZEN / folder, tmp_path / "again")
    )
    assert json.loads(after)["settings"] == json.loads(before)["settings"]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_of_another_tool_gives_what_it_gave(name: str) -> None:
    check(f"files/{name}", ASK[READ_AS[name]](foreword.load(FILES / name)))


@pytest.mark.parametrize("name", RUNS)
def test_what_was_stopped_goes_on_to_the_same_end(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copy_of_run(name, tmp_path))
    check(f"stopped/{name}", GO_ON[name]())
