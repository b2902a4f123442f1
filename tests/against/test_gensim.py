"""gensim as the oracle: files both ways, neighbours, analogies and similarity on the same vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.real_data import real

from foreword.evaluate.vectors import Question, measure_analogies, measure_similarity, read_pairs, read_questions
from foreword.vectors.word2vec_file import Form, read_vectors, write_vectors
from foreword.vectors.wordvectors import WordVectors

models: Any = pytest.importorskip("gensim.models")

# gensim leaves a file open that it has read without a header, and calls what it calls deprecated itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*init_sims:DeprecationWarning"),
]

FORMS: dict[Form, dict[str, bool]] = {
    "word2vec": {"binary": False},
    "word2vec-binary": {"binary": True},
    "glove": {"binary": False, "no_header": True},
}


def keyed(vectors: WordVectors) -> Any:
    """The same vectors as gensim's."""
    held = models.KeyedVectors(vectors.dimensions)
    held.add_vectors(vectors.words, vectors.matrix)
    return held


def wild_vectors() -> WordVectors:
    rng = np.random.default_rng(0)
    matrix = (rng.normal(size=(300, 25)) * 10.0 ** rng.integers(-20, 20, (300, 25))).astype(np.float32)
    return WordVectors.of_words([f"wörd{row}" for row in range(300)], matrix)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_gensim_loads_what_we_write(tmp_path: Path, form: Form, suffix: str) -> None:
    vectors, path = wild_vectors(), tmp_path / f"file{suffix}"
    write_vectors(vectors, path, form)
    loaded = models.KeyedVectors.load_word2vec_format(str(path), **FORMS[form])
    assert loaded.index_to_key == vectors.words
    np.testing.assert_array_equal(loaded.vectors, vectors.matrix)


@pytest.mark.parametrize("form", FORMS)
def test_we_load_what_gensim_writes(tmp_path: Path, form: Form) -> None:
    vectors, path = wild_vectors(), tmp_path / "file"
    settings = {"binary": FORMS[form]["binary"], "write_header": not FORMS[form].get("no_header", False)}
    keyed(vectors).save_word2vec_format(str(path), **settings)
    loaded = read_vectors(path)
    assert loaded.words == vectors.words
    np.testing.assert_array_equal(loaded.matrix, vectors.matrix)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("word2vec_pre_kv_c", "word2vec"),
        ("euclidean_vectors.bin", "word2vec-binary"),
        ("high_precision.kv.bin", "word2vec-binary"),
        ("high_precision.kv.txt", "word2vec"),
        ("test_glove.txt", "glove"),
        ("crime-and-punishment.vec", "word2vec"),
        ("lee_fasttext.vec", "word2vec"),
        ("EN.1-10.cbow1_wind5_hs0_neg10_size300_smpl1e-05.txt", "word2vec"),
        ("IT.1-10.cbow1_wind5_hs0_neg10_size300_smpl1e-05.txt", "word2vec"),
    ],
)
def test_real_files_are_read_alike(name: str, form: Form) -> None:
    path = real(f"formats/gensim/{name}")
    ours, theirs = read_vectors(path), models.KeyedVectors.load_word2vec_format(str(path), **FORMS[form])
    assert ours.words == theirs.index_to_key
    np.testing.assert_array_equal(ours.matrix, theirs.vectors)


def test_neighbours_and_analogies_are_the_same() -> None:
    rng = np.random.default_rng(1)
    vectors = WordVectors.of_words([f"w{row}" for row in range(400)], rng.normal(size=(400, 20)).astype(np.float32))
    theirs = keyed(vectors)
    for word in ("w3", "w77"):
        assert_same(vectors.nearest(word, 10), theirs.most_similar(word, topn=10))
    asked = {"positive": ["w5", "w9"], "negative": ["w2"], "topn": 10}
    # gensim divides b - a + c by three before it takes the cosine, and adds a smaller number to the divisor.
    assert_same(vectors.analogy("w2", "w5", "w9", 10), theirs.most_similar(**asked))
    assert_same(vectors.analogy("w2", "w5", "w9", 10, method="mul"), theirs.most_similar_cosmul(**asked), atol=0.02)


def assert_same(ours: list[tuple[str, float]], theirs: list[tuple[str, float]], atol: float = 1e-5) -> None:
    assert [word for word, _ in ours] == [word for word, _ in theirs]
    np.testing.assert_allclose([score for _, score in ours], [score for _, score in theirs], atol=atol)


def questions_of(every: int) -> dict[str, list[Question]]:
    return {name: asked[::every] for name, asked in read_questions(real("analogy/questions-words.txt")).items()}


def related_vectors(sections: dict[str, list[Question]]) -> WordVectors:
    """Vectors that answer some of the questions: in each section the second word is the first, moved, and noise."""
    rng = np.random.default_rng(2)
    rows: dict[str, Any] = {}
    for asked in sections.values():
        step = rng.normal(size=24)
        for a, b, c, d in asked:
            for word, other in ((a, b), (c, d)):
                base = rows.setdefault(word.lower(), rng.normal(size=24))
                rows.setdefault(other.lower(), base + step + 0.5 * rng.normal(size=24))
    rows |= {f"filler{number}": rng.normal(size=24) for number in range(500)}
    return WordVectors.of_words(rows, np.array(list(rows.values()), np.float32))


@pytest.mark.data
def test_analogy_accuracy_is_gensims(tmp_path: Path) -> None:
    """Row E13: section by section, with a vocabulary that leaves some questions out."""
    sections = questions_of(every=40)
    vectors = related_vectors(sections)
    path = tmp_path / "questions.txt"
    lines = [line for name, asked in sections.items() for line in (f": {name}", *map(" ".join, asked))]
    path.write_text("\n".join(lines) + "\n")
    restricted = len(vectors) - 700
    ours = measure_analogies(vectors, sections, vocabulary=restricted)
    accuracy, theirs = keyed(vectors).evaluate_word_analogies(str(path), restrict_vocab=restricted)
    assert 0.05 < ours.accuracy < 0.95
    assert ours.total.skipped > 0
    assert ours.accuracy == pytest.approx(accuracy)
    found = [(each.name, each.right, each.asked - each.right) for each in ours.sections]
    assert found == [(each["section"], len(each["correct"]), len(each["incorrect"])) for each in theirs[:-1]]


@pytest.mark.data
def test_products_of_similarities_answer_as_gensims(tmp_path: Path) -> None:
    """Row E13, 3CosMul; gensim's test of analogies does not use its own."""
    sections = questions_of(every=100)
    vectors = related_vectors(sections)
    theirs = keyed(vectors)
    right = 0
    for a, b, c, d in (tuple(word.lower() for word in words) for asked in sections.values() for words in asked):
        (answer,) = theirs.most_similar_cosmul(positive=[b, c], negative=[a], topn=1)
        right += answer[0] == d
    ours = measure_analogies(vectors, sections, method="mul", epsilon=1e-6)
    assert 0.05 < ours.accuracy < 0.95
    assert ours.total.right == right


@pytest.mark.data
def test_similarity_is_gensims_on_every_set() -> None:
    """Row E15: rank correlation with people, on all sets, out-of-vocabulary words counted alike."""
    files = sorted(real("word-sim").glob("*.txt"))
    assert len(files) == 13
    words = sorted({word.lower() for file in files for pair in read_pairs(file) for word in pair[:2]})
    kept = [word for place, word in enumerate(words) if place % 3]
    matrix = np.random.default_rng(3).normal(size=(len(kept), 16)).astype(np.float32)
    vectors = WordVectors.of_words(kept, matrix)
    theirs = keyed(vectors)
    for file in files:
        ours = measure_similarity(vectors, read_pairs(file), name=file.stem)
        pearson, spearman, oov = theirs.evaluate_word_pairs(str(file))
        assert ours.oov > 0
        assert ours.spearman == pytest.approx(spearman[0], abs=1e-6)
        assert ours.pearson == pytest.approx(pearson[0], abs=1e-6)
        assert 100 * ours.oov / (ours.oov + ours.pairs) == pytest.approx(oov)
