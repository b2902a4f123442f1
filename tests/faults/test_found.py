"""What fuzzing and faults have found, one by one."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import multiprocessing
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from benchmarks.fuzz_files import piece_model
from benchmarks.fuzz_models import Saved

import foreword
from foreword import kinds
from foreword.cli.classify import begun_or_resumed
from foreword.cli.models import kind_at, nothing_to_resume
from foreword.cli.score import as_object
from foreword.errors import ForewordError, InputError
from foreword.fasttext.classifier import FastTextClassifier
from foreword.fasttext.files import MOST_PRUNED, write_fasttext
from foreword.fasttext.kernels_lines import make_line_workspace
from foreword.fasttext.model import _kept_buckets
from foreword.fasttext.quantize import quantize
from foreword.filtering import Filtering, filter_files, run, worker
from foreword.filtering.ledger import FOLDER, Ledger
from foreword.filtering.models import fingerprint
from foreword.filtering.shards import OpenFilter
from foreword.filtering.tables import read_table
from foreword.filtering.worker import Done
from foreword.lessons.bias import read_word_sets
from foreword.lessons.course.notebooks import read_notebook
from foreword.ngram.arpa import write_arpa
from foreword.ngram.kenlm_writing import write_kenlm
from foreword.ngram.log10 import log10_of
from foreword.ngram.model import NgramLM
from foreword.pipeline.fitting import Output
from foreword.pipeline.language import TextLM
from foreword.speech.alphabet import Alphabet
from foreword.storage import checking
from foreword.storage import folder as folder_module
from foreword.storage.atomic import _machine
from foreword.storage.checking import CHECKS, sha256_of
from foreword.storage.checkpoint import ABOUT, Checkpoint, read_checkpoint
from foreword.storage.folder import load, save
from foreword.storage.safetensors import write_arrays
from foreword.text import lines as lines_module
from foreword.text.encodings import Decoding
from foreword.text.labelled import read_labelled
from foreword.text.parquet import _rows_per_batch
from foreword.text.rows import RowReading, read_rows
from foreword.text.sources import Reading, read_blocks, read_lines
from foreword.text.unicode import Errors
from foreword.tokens.sentencepiece import SentencePieceTokenizer
from foreword.tokens.words import WordTokenizer

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


@pytest.mark.parametrize("name", ["special_tokens", "added_tokens"])
def test_tokens_that_are_no_texts_are_refused(place: Path, name: str) -> None:
    model = foreword.BPETokenizer(vocab_size=60, kind="characters").fit(TEXTS)
    with pytest.raises(InputError, match=f"{name} must be a list of texts"):
        load(changed(model, place, **{name: [1000]}))


def test_more_documents_than_can_be_counted_are_refused(place: Path) -> None:
    with pytest.raises(InputError, match="documents should be a whole number"):
        load(changed(foreword.TfIdf().fit(TEXTS), place, documents=10**400))


def test_a_trie_whose_word_is_not_in_the_vocabulary_is_one_line(place: Path) -> None:
    corpus = foreword.Corpus.from_texts(TEXTS, foreword.WordTokenizer().fit(TEXTS))
    saved = Saved.of(foreword.NgramLM(3, layout="trie").fit(corpus), place / "model")
    saved.arrays["words"] = np.full_like(saved.arrays["words"], 255)
    saved.write(place / "changed")
    model: foreword.NgramLM = load(place / "changed")
    with pytest.raises(InputError, match="a word that is not in the vocabulary"):
        model.next_logprobs(model.start(1))


def test_a_tagger_with_chances_of_zero_does_not_divide_by_them(place: Path) -> None:
    sentences = [["the", "cat"], ["a", "dog"]]
    saved = Saved.of(foreword.HMMTagger().fit(sentences, [["D", "N"], ["D", "N"]]), place / "model")
    saved.arrays["moves"] = np.full_like(saved.arrays["moves"], -1e30)
    saved.write(place / "changed")
    tagger: foreword.HMMTagger = load(place / "changed")
    assert np.isneginf(tagger.predict_log_proba(sentences)[0]).all()


def test_words_of_two_dimensions_are_refused(place: Path) -> None:
    saved = Saved.of(FastTextClassifier(4, buckets=50).fit(TEXTS, LABELS), place / "model")
    saved.arrays["word_offsets"] = saved.arrays["word_offsets"].reshape(-1, 1)
    saved.write(place / "changed")
    with pytest.raises(InputError, match=r"int64 \(13, 1\)"):
        load(place / "changed")


@pytest.mark.parametrize("setting", ["layers", "mogrify"])
def test_layers_are_counted_before_there_is_room_for_them(place: Path, setting: str) -> None:
    pytest.importorskip("torch")
    from foreword.training.settings import Training

    model = foreword.RecurrentLM("lstm", 4, 6, 1, training=Training(epochs=1, batch=2, steps=4), device="cpu")
    model.fit(foreword.Corpus.from_texts(TEXTS, foreword.WordTokenizer().fit(TEXTS)))
    with pytest.raises(InputError, match=f"2147483648 {setting}, but only"):
        load(changed(model, place, **{setting: 2**31}))


def test_layers_of_taggers_and_translators_are_counted_too(place: Path) -> None:
    pytest.importorskip("torch")
    sentences = [["the", "cat"], ["a", "dog"]]
    tagger = foreword.BiLSTMTagger(units=4, words=4, letter_units=3, spelling=4, epochs=1, device="cpu")
    with pytest.raises(InputError, match="2147483648 layers, but only"):
        load(changed(tagger.fit(sentences, [["D", "N"], ["D", "N"]]), place, layers=2**31))
    translator = foreword.TextTranslator(
        foreword.WordTokenizer(),
        foreword.WordTokenizer(),
        foreword.Seq2Seq(6, words=4, epochs=1, batch=30, device="cpu"),
    ).fit(TEXTS, TEXTS)
    (place / "other").mkdir()
    with pytest.raises(InputError, match="2147483648 layers, but only"):
        load(changed(translator.model, place / "other", layers=2**31))


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


def test_pruned_buckets_do_not_take_the_memory_of_all_there_might_be(place: Path) -> None:
    """A byte for each of two thousand million buckets was set aside."""
    small = quantize(FastTextClassifier(4, buckets=50, word_ngrams=2).fit(TEXTS, LABELS), cutoff=9)
    assert small.prune is not None
    write_fasttext(replace(small, settings=replace(small.settings, bucket=MOST_PRUNED + 1)), place / "a.ftz")
    with pytest.raises(InputError, match="a pruned model has at most"):
        load(place / "a.ftz")
    kept, before, rows = _kept_buckets(200, np.array([[130, 2], [3, 0], [64, 1]], np.int32))
    assert kept.tolist() == [1 << 3, 1, 1 << 2, 0]
    assert before.tolist() == [0, 1, 2, 3]
    assert rows.tolist() == [0, 1, 2]


def test_n_grams_of_a_thousand_lengths_are_held_in_little_room(place: Path) -> None:
    FastTextClassifier(4, buckets=50, min_n=1, max_n=2, word_ngrams=2).fit(TEXTS, LABELS).write(place / "a.bin")
    data = bytearray((place / "a.bin").read_bytes())
    struct.pack_into("<2i", data, 8 + 9 * 4, 1, 1000)
    (place / "a.bin").write_bytes(data)
    model = load(place / "a.bin").model
    assert make_line_workspace(10, model.reader, 4).rows.nbytes < 32 << 20
    assert make_line_workspace(1 << 17, model.reader, 4).size == 1 << 17


def test_a_table_of_nothing_but_commas_has_no_examples(place: Path) -> None:
    (place / "a.csv").write_text(",\n,,\n")
    with pytest.raises(InputError):
        list(read_labelled(place / "a.csv"))


def test_names_out_of_a_file_stay_on_one_line(place: Path) -> None:
    (place / "a.jsonl").write_text('{"te\\nxt": "a"}\n')
    with pytest.raises(InputError, match=r"it has: te\\nxt") as told:
        list(read_blocks(place / "a.jsonl"))
    assert "\n" not in str(told.value)


def test_a_footer_is_asked_only_what_arrow_survives() -> None:
    """Arrow 26 ends the process when it is asked for a column's facts in a damaged footer."""

    class Group:
        total_byte_size = 1000

    class Footer:
        num_row_groups, num_rows = 2, 100

        def row_group(self, number: int) -> Group:
            return Group()

    assert _rows_per_batch(Footer(), 200) == 10


def test_a_column_whose_name_is_no_text_is_one_line(place: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"textile": ["a"]}), place / "a.parquet", store_schema=False)
    data = (place / "a.parquet").read_bytes()
    (place / "a.parquet").write_bytes(data.replace(b"textile", b"text\xffle"))
    with pytest.raises(InputError, match="not a Parquet file that can be read"):
        list(read_blocks(place / "a.parquet"))


def test_filtering_parquet_imports_no_pandas(place: Path) -> None:
    """It would take longer than to filter ten megabytes, and forty megabytes of each worker."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"text": [*TEXTS, None]}), place / "a.parquet")
    save(foreword.TextLM(foreword.WordTokenizer(), foreword.NgramLM(2)).fit(TEXTS), place / "lm")
    script = (
        "import sys; from foreword.filtering import Filtering, filter_files\n"
        "rules = Filtering([('', sys.argv[2])], keep=['perplexity<9'], with_scores=True)\n"
        "print(filter_files(sys.argv[1], sys.argv[3], rules, processes=1).tally.documents, 'pandas' in sys.modules)"
    )
    words = [sys.executable, "-c", script, str(place / "a.parquet"), str(place / "lm"), str(place / "out")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "13 False\n"
    kept = parquet.read_table(place / "out" / "a.parquet")
    assert kept.column_names == ["text", "score", "tokens", "oov", "perplexity"]
    assert max(kept["perplexity"].to_pylist()) < 9


def model_file(suffix: str, texts: list[str], path: Path) -> Path:
    """A model of another tool's format."""
    if suffix == "ftz":
        FastTextClassifier(4, buckets=50).fit(texts, LABELS[: len(texts)]).write(path)
        return path
    model = TextLM(WordTokenizer(), NgramLM(2, "witten-bell")).fit(texts).model
    assert isinstance(model, NgramLM)
    if suffix == "arpa":
        write_arpa(model, path)
    else:
        write_kenlm(log10_of(model), path)
    return path


@pytest.mark.parametrize("suffix", ["arpa", "kenlm", "ftz"])
def test_a_run_killed_before_its_first_part_leaves_no_model_for_the_next(place: Path, suffix: str) -> None:
    """The next run, with another model, once scored every shard by the model of the killed one."""
    (place / "web").mkdir()
    for number in range(3):
        (place / "web" / f"{number}.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    models = [
        model_file(suffix, texts, place / f"{name}.{suffix}")
        for name, texts in {"a": TEXTS, "b": ["the mat sat on a dog", "the cat", "sat"] * 3}.items()
    ]
    scores = [Filtering([("", str(model))], score_only=True) for model in models]

    def killed(*_: object) -> Generator[Done, None, None]:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "close", lambda self, finished=False: os.close(self._lock))  # kill -9 deletes nothing
        with pytest.raises(KeyboardInterrupt):
            filter_files(str(place / "web"), place / "out", scores[0], processes=2, perform=killed)
    left = list((place / "out" / FOLDER / "models").glob("*"))
    assert len(left) == (suffix != "kenlm")  # a KenLM binary is mapped as it is
    filter_files(str(place / "web"), place / "out", scores[1], processes=2)
    filter_files(str(place / "web"), place / "alone", scores[1], processes=2)
    filter_files(str(place / "web"), place / "other", scores[0], processes=2)
    assert (place / "alone" / "0.txt").read_bytes() != (place / "other" / "0.txt").read_bytes()
    for number in range(3):
        name = f"{number}.txt"
        assert (place / "out" / name).read_bytes() == (place / "alone" / name).read_bytes()


def test_a_model_changed_in_its_middle_is_another_model(place: Path) -> None:
    """Only a megabyte at each end was compared."""
    (place / "model").write_bytes(bytes(3 << 20))
    before = fingerprint(str(place / "model"))
    with (place / "model").open("r+b") as file:
        file.seek(3 << 19)
        file.write(b"x")
    os.utime(place / "model", ns=(0, 0))
    assert fingerprint(str(place / "model")) != before


def test_a_line_that_only_a_compressed_file_can_hold_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """466 bytes of bzip2 once took ``foreword score`` 2.6 GB."""
    monkeypatch.setattr(lines_module, "LONGEST_LINE", 4 << 20)
    (place / "bomb.txt.bz2").write_bytes(bz2.compress(b"fine\n" + b"a" * (9 << 20)))
    with pytest.raises(InputError, match=r"bomb\.txt\.bz2: line 2 has more than 4 MB"):
        list(read_rows(str(place / "bomb.txt.bz2"), RowReading()))
    with pytest.raises(InputError, match=r"bomb\.txt\.bz2: line 2 has more than 4 MB"):
        list(read_lines(str(place / "bomb.txt.bz2")))


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ({"id": "\ud800", "text": "a"}, '{"id": "\\ud800", "text": "a", "score": -1.5}\n'),
        ({"id": [float("inf"), {"x": float("nan")}]}, '{"id": [null, {"x": null}], "score": -1.5}\n'),
        ({"text": "ü"}, '{"text": "ü", "score": -1.5}\n'),
    ],
)
def test_a_scored_row_is_json_whatever_it_holds(row: dict[str, Any], line: str) -> None:
    """Half of a surrogate pair raised an error of Python's, and ``Infinity`` was printed."""
    assert as_object(row, {"score": -1.5}) == line


def shards(place: Path, text: str = "\n".join(TEXTS)) -> tuple[str, Filtering]:
    """A folder of three files, and what is to be done with them."""
    (place / "web").mkdir()
    for number in range(3):
        (place / "web" / f"{number}.txt").write_bytes(text.encode("latin-1"))
    save(TextLM(WordTokenizer(), NgramLM(2)).fit(TEXTS), place / "lm")
    return str(place / "web"), Filtering([("", str(place / "lm"))], score_only=True)


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="there is no such call")
def test_a_stopped_worker_is_reported(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run once waited for it in silence."""
    source, filtering = shards(place)
    monkeypatch.setattr(worker, "SILENCE", 0.4)

    def stop_and_continue() -> None:
        while not (children := multiprocessing.active_children()):
            time.sleep(0.01)
        os.kill(children[0].pid or 0, signal.SIGSTOP)
        while not seen:
            time.sleep(0.01)
        os.kill(children[0].pid or 0, signal.SIGCONT)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        stopping = threading.Thread(target=stop_and_continue)
        stopping.start()
        assert filter_files(source, place / "out", filtering, processes=2).shards == 3
        stopping.join()
    line = r"no progress for \d+ s: worker process (\d+) is stopped; kill -CONT \1 resumes it"
    assert re.fullmatch(line, str(seen[0].message))


def test_a_model_moved_away_before_a_worker_opens_it_is_one_line(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The worker printed a traceback, and the run blamed the memory."""
    source, filtering = shards(place)

    def open_and_move(filtering: Filtering) -> OpenFilter:
        opened = OpenFilter(filtering)
        (place / "lm").rename(place / "moved")
        return opened

    monkeypatch.setattr(run, "OpenFilter", open_and_move)
    with pytest.raises(InputError, match="lm: no such file or folder"):
        filter_files(source, place / "out", filtering, processes=2)
    assert "Traceback" not in capfd.readouterr().err


def test_a_run_in_another_encoding_is_not_resumed(place: Path) -> None:
    source, filtering = shards(place, "gr\xfc\xdfe\n")

    def filter_as(encoding: str) -> None:
        errors = cast(Errors, Decoding("strict", encoding))
        filter_files(source, place / "out", replace(filtering, errors=errors), processes=1)

    filter_as("latin-1")
    filter_as("iso8859_1")  # the same by another name
    with pytest.raises(InputError, match=r"a run with other settings \(encoding\)"):
        filter_as("cp1251")


def test_an_index_whose_parts_do_not_fit_is_one_line(place: Path) -> None:
    """Tokens outside the vocabulary, suffixes outside the text and no segment at all were errors of other kinds."""
    index = foreword.TextIndex().fit(TEXTS)
    saved = Saved.of(index, place / "model")
    saved.facts["settings"]["index"]["settings"]["segments"] = 0
    saved.write(place / "none")
    with pytest.raises(InputError, match="expected a number of segments"):
        load(place / "none")
    asked: dict[str, tuple[int, Callable[[foreword.TextIndex], object]]] = {
        "text": (255, lambda opened: opened.document(0)),
        "suffixes": (255, lambda opened: opened.find("cat")),
    }
    for name, (value, ask) in asked.items():
        saved = Saved.of(index, place / "model")
        saved.arrays[f"index.0.{name}"][:] = value
        saved.write(place / name)
        with pytest.raises(InputError, match="the index is damaged"):
            ask(load(place / name))


@pytest.mark.parametrize("alpha", [{}, "", [], -1, 10**400])
def test_priors_of_topics_are_numbers(place: Path, alpha: Any) -> None:
    model = foreword.LDA(2, iterations=2).fit(foreword.BagOfWords().fit_transform(TEXTS))
    with pytest.raises(InputError, match="alpha"):
        load(changed(model, place, alpha=alpha))


def test_scores_of_pieces_are_one_number_each(place: Path) -> None:
    saved = Saved.of(SentencePieceTokenizer.from_model(piece_model("unigram")), place / "model")
    saved.arrays["scores"] = saved.arrays["scores"].reshape(-1, 1)
    saved.write(place / "changed")
    with pytest.raises(InputError, match="one number for each piece"):
        load(place / "changed")


def test_steps_of_a_normalisation_are_true_or_false(place: Path) -> None:
    """A kernel would be compiled for the text that stood there, and fail."""
    saved = Saved.of(SentencePieceTokenizer.from_model(piece_model("unigram")), place / "model")
    saved.facts["settings"]["normalisation"]["escape"] = "x"
    saved.write(place / "changed")
    with pytest.raises(InputError, match="neither true nor false"):
        load(place / "changed")


def flipped(model: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A saved model, taken for a large one, with a bit changed in its last array."""
    monkeypatch.setattr(folder_module, "CHECKSUM_LIMIT", 100)
    save(model, place / "flipped")
    file = place / "flipped" / "arrays.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    return place / "flipped"


def load_and_check(path: Path) -> None:
    load(path)
    CHECKS.wait()


@pytest.fixture
def lm() -> TextLM:
    return TextLM(WordTokenizer(), NgramLM(2)).fit(TEXTS)


def test_a_flipped_bit_of_a_large_model_is_found_while_it_is_used(
    place: Path, lm: TextLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 65 flipped bits, 21 once gave other scores in silence."""
    path = flipped(lm, place, monkeypatch)
    with pytest.warns(RuntimeWarning, match=r"flipped: arrays\.safetensors does not match its checksum"):
        load_and_check(path)
    with pytest.raises(InputError, match="does not match its checksum"):
        load(path, verify=True)
    save(lm, path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_and_check(path)


def test_a_large_model_that_is_replaced_while_it_is_checked_is_not_called_damaged(
    place: Path, lm: TextLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [TextLM(WordTokenizer(), NgramLM(3)).fit(TEXTS)]

    def replaced(path: Path) -> str:
        if others:
            save(others.pop(), place / "model")
        return sha256_of(path)

    monkeypatch.setattr(folder_module, "CHECKSUM_LIMIT", 100)
    save(lm, place / "model")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        monkeypatch.setattr(checking, "sha256_of", replaced)
        load_and_check(place / "model")
    assert [str(each.message) for each in seen if "checksum" in str(each.message)] == []


def test_a_command_ends_when_its_model_is_damaged(place: Path, lm: TextLM, monkeypatch: pytest.MonkeyPatch) -> None:
    path = flipped(lm, place, monkeypatch)
    script = (
        "import sys; from foreword import cli; from foreword.cli.models import load_any\n"
        "from foreword.storage import folder, checking\n"
        "def command(prog_name): load_any(sys.argv[1]); checking.CHECKS.wait(); print('not ended')\n"
        "folder.CHECKSUM_LIMIT = 100; cli.application = lambda only: command; cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    line = f"foreword: {path}: arrays.safetensors does not match its checksum: the file is damaged\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


def test_filter_scores_nothing_by_a_damaged_model(place: Path, lm: TextLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished parts would be kept when the model has been put right."""
    path = flipped(lm, place, monkeypatch)
    source, filtering = shards(place)
    with pytest.raises(InputError, match="does not match its checksum"):
        filter_files(source, place / "out", replace(filtering, models=[("", str(path))]), processes=1)
    assert not list((place / "out").glob("*.txt"))


DEEP = b"[" * 200_000


def test_deep_json_is_one_line(place: Path) -> None:
    """Each raised a RecursionError of Python's."""
    for name in ("model.json", "a.ipynb", "sets.json", "alphabet.json"):
        (place / name).write_bytes(DEEP)
    write_arrays(place / "checkpoint", {ABOUT: np.frombuffer(DEEP, np.uint8)})
    assert kind_at(str(place)) is None
    with pytest.raises(InputError, match=r"a\.ipynb: expected a notebook"):
        read_notebook(place / "a.ipynb")
    with pytest.raises(InputError, match=r"sets\.json: expected a JSON object with targ1"):
        read_word_sets(place / "sets.json")
    with pytest.raises(ForewordError, match=r"alphabet\.json is not JSON: its JSON is nested more than 64 levels"):
        Alphabet.loads(DEEP.decode())
    with pytest.raises(InputError, match="checkpoint: not a checkpoint"):
        read_checkpoint(place / "checkpoint", kind="x", run="y")
    assert Checkpoint(place / "checkpoint").stored_run() is None


def test_a_row_of_many_small_values_is_one_line(place: Path) -> None:
    """A line of 15 MB took 595 MB, a table of that shape 439 MB."""
    wide = '{"text": "a", "x": [' + ",".join(["[]"] * 1_200_000) + "]}"
    (place / "wide.jsonl").write_text('{"text": "b", "x": 1}\n' + wide + "\n")
    (place / "table.json").write_text(wide)
    limit = 10 * len(wide) + (64 << 20)
    tracemalloc.start()
    batches = list(read_rows(str(place / "wide.jsonl"), RowReading()))
    for parse in (lambda: [rows.fields() for rows in batches], lambda: [rows.values("x") for rows in batches]):
        with pytest.raises(InputError, match=r"wide\.jsonl: line 2 cannot be read as JSON: its JSON has 2,400,"):
            parse()
    with pytest.raises(InputError, match=r"table\.json: not a JSON object of labels and numbers: its JSON has 2,400,"):
        read_table(str(place / "table.json"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < limit


def test_a_row_that_nests_deeply_is_one_line(place: Path) -> None:
    (place / "deep.jsonl").write_text('{"text": "a", "x": ' + "[" * 70 + "]" * 70 + "}\n")
    with pytest.raises(InputError, match=r"deep\.jsonl: line 1 .*JSON is nested more than 64 levels"):
        list(read_rows(str(place / "deep.jsonl"), RowReading()))


@pytest.mark.parametrize("megabytes", [64, 512])
def test_a_window_of_half_a_gigabyte_is_refused(place: Path, megabytes: int) -> None:
    """46 kB of xz took 364 MB; ``xz -9`` asks for 64."""
    window = [{"id": lzma.FILTER_LZMA2, "dict_size": megabytes << 20, "preset": 0}]
    packer = lzma.LZMACompressor(filters=window)
    (place / "a.txt.xz").write_bytes(packer.compress(b"fine\n") + packer.flush())
    if megabytes == 64:
        assert list(read_lines(str(place / "a.txt.xz"))) == ["fine"]
    else:
        with pytest.raises(InputError, match=r"a\.txt\.xz: decompressing it takes more than 192 MB of memory"):
            list(read_lines(str(place / "a.txt.xz")))
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed: pip install 'foreword[data]'")
    settings = zstandard.ZstdCompressionParameters(window_log=megabytes.bit_length() + 19)
    stream = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    (place / "a.txt.zst").write_bytes(stream.compress(b"fine\n") + stream.flush())
    if megabytes == 64:
        assert list(read_lines(str(place / "a.txt.zst"))) == ["fine"]
    else:
        with pytest.raises(InputError, match=r"a\.txt\.zst: decompressing it takes more than 128 MB of memory"):
            list(read_lines(str(place / "a.txt.zst")))


def test_what_a_killed_save_left_is_deleted_where_nothing_is_left_to_resume(tmp_path: Path) -> None:
    """Killed between putting the finished model in its place and deleting the old one: the old one stayed for ever."""
    save(FastTextClassifier(8, buckets=100).fit(["a b", "c d"], ["x", "y"]), tmp_path / "model")
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    (tmp_path / f".model.new-{_machine()}-{ended.stdout.strip()}-0123abcd").mkdir()
    assert begun_or_resumed([], str(tmp_path / "model"), resume=True).finished
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    (tmp_path / f".model.new-{_machine()}-{ended.stdout.strip()}-0123abcd").mkdir()
    assert nothing_to_resume(Output(str(tmp_path / "model"), resume=True), kinds.KINDS["recogniser"])
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
