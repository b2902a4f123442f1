"""Saved models of every kind, and checkpoints: damaged as they lie there, and damaged with checksums that fit.

The checksums of a folder keep out what a disk or a copy does to it. Who means harm puts them right; then nothing but
what ``from_parts`` checks stands between a file and the kernels.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import foreword
from benchmarks.fuzz import NUMBERS, Target, change_json, damaged
from benchmarks.fuzz_files import LABELS, STEPS, TEXTS, one_file, piece_model, written
from benchmarks.fuzz_use import SENTENCES, use
from foreword.arrays import Array
from foreword.errors import ForewordError
from foreword.infinigram.compressed import CompressedIndex
from foreword.infinigram.index import SuffixIndex
from foreword.mix.matched import MatchedMixture
from foreword.ngram.kenlm import KenlmLM
from foreword.ngram.kenlm_writing import Binary, build_kenlm
from foreword.ngram.log10 import log10_of
from foreword.pipeline.speech import SpeechRecogniser
from foreword.protocols import Json
from foreword.speech.recogniser import Recogniser
from foreword.speech.recordings import Recording
from foreword.speech.wav import Sound
from foreword.storage.checking import sha256_of
from foreword.storage.folder import ARRAYS, VOCAB, _file_facts, _render_manifest, load, save
from foreword.storage.safetensors import read_arrays, write_arrays
from foreword.tokens.sentencepiece import SentencePieceTokenizer
from foreword.tokens.steps.tokenizer import StepTokenizer

TAGS = [["DET", "NOUN"], ["NOUN", "X", "NUM"]]
NAME = "model"


@dataclass(frozen=True)
class Saved:
    """A folder taken apart: the facts of its ``model.json``, its arrays, and its vocabulary's text."""

    facts: dict[str, Any]
    arrays: dict[str, Array]
    vocab: bytes | None
    files: dict[str, bytes]

    @classmethod
    def of(cls, model: Any, folder: Path) -> Saved:
        save(model, folder)
        files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        facts = json.loads(files["model.json"])
        arrays = (
            {name: np.array(array) for name, array in read_arrays(folder / ARRAYS).items()} if ARRAYS in files else {}
        )
        for name in ("files", "sha256"):
            del facts[name]
        return cls(facts, arrays, files.get(VOCAB), files)

    def write(self, folder: Path, raw_arrays: bytes | None = None) -> None:
        """As a folder whose checksums fit, whatever is in it."""
        folder.mkdir()
        files: dict[str, Json] = {}
        if raw_arrays is not None:
            (folder / ARRAYS).write_bytes(raw_arrays)
        elif self.arrays:
            write_arrays(folder / ARRAYS, self.arrays)
        if self.vocab is not None:
            (folder / VOCAB).write_bytes(self.vocab)
        for path in folder.iterdir():
            files[path.name] = _file_facts(path, sha256_of(path))
        (folder / "model.json").write_bytes(_render_manifest({**self.facts, "files": files}))


def model_targets(folder: Path) -> Iterator[Target]:
    """Those that are quick to make first. folder: where the models are saved."""
    folder.mkdir(parents=True, exist_ok=True)
    yield _counting_checkpoint(folder)
    yield _filter_ledger(folder)
    plain = {name: Saved.of(build(), folder / name) for name, build in PLAIN.items()}
    yield _as_it_lies("model folder", list(plain.values()))
    yield _sealed("model, sealed", plain, weight=12)
    yield _training_checkpoint(folder)
    networks = {name: Saved.of(build(), folder / name) for name, build in NEURAL.items()}
    yield _sealed("network, sealed", networks, weight=4)


# Damage


def _as_it_lies(name: str, seeds: Sequence[Saved]) -> Target:
    """One file of a folder damaged, or gone."""

    def make(rng: random.Random, folder: Path) -> None:
        saved = rng.choice(seeds)
        (folder / NAME).mkdir()
        chosen = rng.choice(list(saved.files))
        others = [each.files[chosen] for each in seeds if chosen in each.files]
        for file, data in saved.files.items():
            if file != chosen:
                (folder / NAME / file).write_bytes(data)
            elif rng.random() < 0.98:
                (folder / NAME / file).write_bytes(damaged(data, rng, others))

    return Target(name, make, lambda folder: use(load(folder / NAME)), _whole(seeds), weight=4)


def _whole(seeds: Iterable[Saved]) -> list[Callable[[Path], object]]:
    def writing(saved: Saved) -> Callable[[Path], object]:
        return lambda folder: saved.write(folder / NAME)

    return [writing(saved) for saved in seeds]


def _sealed(name: str, seeds: dict[str, Saved], weight: float) -> Target:
    names = list(seeds)

    def make(rng: random.Random, folder: Path) -> None:
        saved = seeds[rng.choice(names)]
        changed = Saved(deepcopy(saved.facts), dict(saved.arrays), saved.vocab, {})
        raw = None
        for _ in range(1 if rng.random() < 0.7 else 2):
            match rng.randrange(5 if saved.arrays else 2):
                case 0:
                    change_json(changed.facts, rng)
                case 1 if changed.vocab is not None:
                    text = damaged(changed.vocab, rng, [changed.vocab], [b"\\n", b"\\", b"\n"])
                    changed = Saved(changed.facts, changed.arrays, text, {})
                    if rng.random() < 0.8 and isinstance(changed.facts.get("vocab"), dict):
                        changed.facts["vocab"]["tokens"] = text.count(b"\n")
                case 1:
                    change_json(changed.facts, rng)
                case 2:
                    raw = damaged(saved.files[ARRAYS], rng, [saved.files[ARRAYS]])
                case _:
                    _change_arrays(changed.arrays, rng)
        try:
            changed.write(folder / NAME, raw)
        except (ForewordError, ValueError, TypeError):  # what cannot even be written: NaN among settings
            saved.write(folder / "again")
            (folder / "again").rename(folder / NAME) if not (folder / NAME).exists() else None

    return Target(name, make, lambda folder: use(load(folder / NAME)), _whole(seeds.values()), weight)


def _change_arrays(arrays: dict[str, Array], rng: random.Random) -> None:
    if not arrays:
        return
    name = rng.choice(list(arrays))
    array = arrays[name]
    match rng.randrange(9):
        case 0:
            del arrays[name]
        case 1:
            arrays[name] = array[: rng.randrange(len(array) + 1)] if array.ndim else array.reshape(1)
        case 2:
            arrays[name] = array.T.copy() if array.ndim > 1 else array.reshape(-1, 1)
        case 3:
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(rng.choice(("<f4", "<f8", "<i4", "<i8", "u1", "<u8", "<f2")))
        case 4:
            other = rng.choice(list(arrays))
            arrays[name], arrays[other] = arrays[other], arrays[name]
        case 5:
            arrays[name] = np.concatenate((array, array[-1:])) if array.ndim else array
        case _:
            arrays[name] = _other_values(array, rng)


def _other_values(array: Array, rng: random.Random) -> Array:
    changed = array.copy()
    flat = changed.reshape(-1)
    for _ in range(rng.choice((1, 1, 3))):
        if not len(flat):
            continue
        at = rng.randrange(len(flat))
        if changed.dtype.kind == "f":
            flat[at] = rng.choice((np.nan, np.inf, -np.inf, 0, -1, 1e30, 1e-40, 0.5))
        elif changed.dtype.kind in "iu":
            number = rng.choice(
                (*NUMBERS, len(flat), int(flat[at]) + 1, int(flat[at]) - 1, rng.randrange(len(flat) * 2))
            )
            flat[at : at + 1] = (
                np.array([number & (2 ** (8 * flat.itemsize) - 1)], np.uint64)
                .astype(f"u{flat.itemsize}")
                .view(flat.dtype)
            )
        else:
            flat[at] = not flat[at]
    return changed


# What is damaged


def _corpus() -> foreword.Corpus:
    return foreword.Corpus.from_texts(TEXTS, foreword.WordTokenizer().fit(TEXTS))


def _kenlm(binary: Binary) -> KenlmLM:
    return KenlmLM(build_kenlm(log10_of(foreword.NgramLM(3).fit(_corpus())), binary))


def _text_lm(model: Any, tokenizer: Any = None) -> Any:
    return foreword.TextLM(tokenizer or foreword.WordTokenizer(), model).fit(TEXTS)


def _counts() -> tuple[Any, list[str]]:
    return foreword.BagOfWords().fit_transform(TEXTS), LABELS


def _calibrated() -> Any:
    from foreword.classify.calibration import Calibrated

    return Calibrated(foreword.NaiveBayes(), folds=2).fit(*_counts())


PLAIN: dict[str, Callable[[], Any]] = {
    "unigram": lambda: foreword.UnigramLM().fit(_corpus()),
    "ngram": lambda: foreword.NgramLM(3).fit(_corpus()),
    "ngram-trie": lambda: foreword.NgramLM(4, layout="trie").fit(_corpus()),
    "ngram-laplace": lambda: foreword.NgramLM(3, "laplace").fit(_corpus()),
    "ngram-pruned": lambda: foreword.NgramLM(4, prune=(0, 0, 1)).fit(_corpus()),
    "kenlm": lambda: _kenlm("probing"),
    "kenlm-trie": lambda: foreword.TextLM(_kenlm("trie").words, _kenlm("trie")),
    "hashed-words": lambda: _kenlm("probing").words,
    "mixture": lambda: foreword.interpolate([foreword.UnigramLM(), foreword.NgramLM(3)]).fit(_corpus()),
    "infini-gram": lambda: foreword.InfiniGramLM(3).fit(_corpus()),
    "infini-gram-alone": lambda: foreword.InfiniGramLM(0).fit(_corpus()),
    "suffix-index": lambda: SuffixIndex.build(_corpus()),
    "compressed-index": lambda: CompressedIndex.build(_corpus()),
    "compressed-text-index": lambda: foreword.CompressedTextIndex().fit(TEXTS),
    "text-index": lambda: foreword.TextIndex().fit(TEXTS).append(["a new cat sat"]),
    "matched-mixture": lambda: MatchedMixture([foreword.UnigramLM(), foreword.InfiniGramLM(2)]).fit(_corpus()),
    "cached": lambda: foreword.cached(foreword.NgramLM(3), size=3).fit(_corpus()),
    "hmm": lambda: foreword.HMM(3, iterations=3, smoothing=0.1).fit(_corpus()),
    "hmm-tagger": lambda: foreword.HMMTagger().fit(SENTENCES, TAGS),
    "feature-tagger": lambda: foreword.FeatureTagger(rounds=2).fit(SENTENCES, TAGS),
    "text-lm": lambda: _text_lm(foreword.NgramLM(3)),
    "text-lm-bpe": lambda: _text_lm(foreword.NgramLM(3), foreword.BPETokenizer(vocab_size=280)),
    "text-classifier": lambda: foreword.TextClassifier().fit(TEXTS, LABELS),
    "text-classifier-hashed": lambda: foreword.TextClassifier(
        foreword.BagOfWords(columns=64, signed=True, ngrams=(1, 2)), foreword.LogisticRegression()
    ).fit(TEXTS, LABELS),
    "naive-bayes": lambda: foreword.NaiveBayes().fit(*_counts()),
    "logistic": lambda: foreword.LogisticRegression().fit(*_counts()),
    "nb-logistic": lambda: foreword.NBLogistic().fit(*_counts()),
    "calibrated": lambda: _calibrated(),
    "bm25": lambda: foreword.BM25().fit(_corpus()),
    "cosine-search": lambda: foreword.CosineSearch().fit(_corpus()),
    "text-search": lambda: foreword.TextSearch().fit(TEXTS, LABELS[:2] + list("xyz")),
    "plsa": lambda: foreword.PLSA(2, iterations=3).fit(_counts()[0]),
    "lda": lambda: foreword.LDA(2, iterations=3).fit(_counts()[0]),
    "lsa": lambda: foreword.LSA(2).fit(_counts()[0]),
    "word-vectors": lambda: foreword.Word2Vec(4, epochs=1).fit(_corpus()).vectors,
    "fasttext-vectors": lambda: foreword.FastText(4, epochs=1, min_n=2, max_n=3, buckets=20).fit(_corpus()).vectors,
    "word2vec": lambda: foreword.Word2Vec(4, epochs=1).fit(_corpus()),
    "word2vec-tree": lambda: foreword.Word2Vec(4, epochs=1, loss="hierarchical-softmax").fit(_corpus()),
    "fasttext": lambda: foreword.FastText(4, epochs=1, min_n=2, max_n=3, buckets=20).fit(_corpus()),
    "glove": lambda: foreword.GloVe(4, epochs=1).fit(_corpus()),
    "cooccurrence": lambda: foreword.GloVe(4, epochs=1).count(_corpus()),
    "static-embedder": lambda: _static(),
    "fasttext-classifier": lambda: _classifier(word_ngrams=2, min_n=2, max_n=3),
    "fasttext-classifier-tree": lambda: _classifier(loss="hierarchical-softmax"),
    "fasttext-classifier-small": lambda: _quantised(),
    "word": lambda: foreword.WordTokenizer().fit(TEXTS),
    "character": lambda: foreword.CharacterTokenizer().fit(TEXTS),
    "byte": lambda: foreword.ByteTokenizer().fit(TEXTS),
    "bpe": lambda: foreword.BPETokenizer(vocab_size=280).fit(TEXTS),
    "sentencepiece": lambda: SentencePieceTokenizer.from_model(piece_model("unigram")),
    "sentencepiece-bpe": lambda: SentencePieceTokenizer.from_model(piece_model("bpe")),
    "steps": lambda: StepTokenizer(STEPS),
    "bpe-characters": lambda: foreword.BPETokenizer(vocab_size=60, kind="characters").fit(TEXTS),
    "corpus": _corpus,
    "one-vs-rest": lambda: foreword.OneVsRest(foreword.NaiveBayes()).fit(
        foreword.BagOfWords().fit_transform(TEXTS), [[label] for label in LABELS]
    ),
    "bag-of-words": lambda: foreword.BagOfWords(ngrams=(1, 2)).fit(TEXTS),
    "one-hot": lambda: foreword.OneHot().fit(TEXTS),
    "tf-idf": lambda: foreword.TfIdf(split="characters", ngrams=(2, 3)).fit(TEXTS),
}


def _static() -> Any:
    from foreword.vectors.wordvectors import StaticEmbedder

    return StaticEmbedder(foreword.Word2Vec(4, epochs=1).fit(_corpus()).vectors)


def _classifier(**how: Any) -> Any:
    from foreword.fasttext.classifier import FastTextClassifier

    return FastTextClassifier(4, epochs=2, buckets=20, **how).fit(TEXTS, LABELS)


def _quantised() -> Any:
    from foreword.fasttext.classifier import FastTextClassifier
    from foreword.fasttext.quantize import quantize

    return FastTextClassifier.from_file(quantize(_classifier(word_ngrams=2), cutoff=12))


def _neural_lm(name: str, *sizes: Any, **settings: Any) -> Any:
    from foreword.training.settings import Training

    training = Training(epochs=1, batch=3, steps=4, rate=1.0)
    return getattr(foreword, name)(*sizes, training=training, device="cpu", **settings)


def _neural_cache() -> Any:
    from foreword.mix.neural_cache import NeuralCache

    return NeuralCache(_neural_lm("RecurrentLM", "lstm", 4, 6, 1).fit(_corpus()), size=3)


def _recurrent_classifier() -> Any:
    from foreword.classify.recurrent import RecurrentClassifier

    return RecurrentClassifier(embedding=4, hidden=6, units=4, min_count=1, batch=2, epochs=1, device="cpu").fit(
        TEXTS, LABELS
    )


def _translator() -> Any:
    model = foreword.Seq2Seq(6, words=4, epochs=1, batch=30, device="cpu")
    return foreword.TextTranslator(foreword.WordTokenizer(), foreword.WordTokenizer(), model).fit(TEXTS, TEXTS)


def _recogniser() -> SpeechRecogniser:
    rng = np.random.default_rng(0)
    said = [
        Recording(str(number), Sound(rng.random(1600, np.float32), 8000), text)
        for number, text in enumerate(("a b", "b a"))
    ]
    return SpeechRecogniser(foreword.CharacterTokenizer(), Recogniser(units=3, epochs=1)).fit(said)


NEURAL: dict[str, Callable[[], Any]] = {
    "bengio": lambda: _neural_lm("BengioLM", 3, 4, 5).fit(_corpus()),
    "recurrent": lambda: _neural_lm("RecurrentLM", "gru", 4, 6, 1).fit(_corpus()),
    "text-lm-recurrent": lambda: _text_lm(_neural_lm("RecurrentLM", "lstm", 4, 6, 2)),
    "awd-lstm": lambda: _neural_lm("AWDLSTM", 4, 6, 2).fit(_corpus()),
    "mogrifier": lambda: _neural_lm("Mogrifier", 4, 2, 2, 2).fit(_corpus()),
    "transformer": lambda: _neural_lm("TransformerLM", 4, 2, 2, 3).fit(_corpus()),
    "neural-cache": _neural_cache,
    "bilstm-tagger": lambda: foreword.BiLSTMTagger(
        units=4, words=4, letter_units=3, spelling=4, epochs=1, device="cpu"
    ).fit(SENTENCES, TAGS),
    "seq2seq": lambda: _translator().model,
    "text-translator": _translator,
    "recurrent-classifier": _recurrent_classifier,
    "recogniser": lambda: _recogniser().model,
    "speech-recogniser": lambda: _recogniser(),
    "elmo": lambda: foreword.ELMo(units=4, letter_units=3, filters=3, epochs=1, device="cpu").fit(SENTENCES),
}


# Checkpoints


def _counting_checkpoint(folder: Path) -> Target:
    """That of ``foreword tokenize train``."""
    from foreword.text.block import blocks_of
    from foreword.tokens.resume import count_with_checkpoint

    def count(path: Path, resume: bool = False) -> Any:
        tokenizer = foreword.BPETokenizer(vocab_size=280)
        return count_with_checkpoint(
            tokenizer, blocks_of(TEXTS), path, fingerprint="x", resume=resume, threads=1, every=0.0
        )

    seed = written(count, folder, "counted")
    return one_file("counting checkpoint", "counted", [seed], lambda path: count(path, resume=True))


def _filter_ledger(folder: Path) -> Target:
    """What ``foreword filter`` has finished of two files when it is started again: its second pass, and one shard."""
    from foreword.filtering import Filtering, filter_files

    source, out = folder / "web", folder / "out"
    save(_text_lm(foreword.NgramLM(2)), folder / "lm")
    source.mkdir()
    for name in ("a.txt", "b.txt"):
        (source / name).write_text("\n".join(TEXTS) + "\n", "utf-8")
    rules = Filtering([("", str(folder / "lm"))], keep_percentile=50)

    def go_on(out: Path) -> list[bytes]:
        filter_files(str(source), out, rules, processes=1)
        return [path.read_bytes() for path in sorted(out.glob("*.txt"))]

    def read(folder: Path) -> None:
        if go_on(folder / "out") != [kept, kept]:
            raise AssertionError("other documents are kept")

    kept, _ = go_on(out)
    ledger = out / ".foreword-filter" / "ledger.jsonl"
    finished = ledger.read_bytes()
    seeds = [finished, b"".join(finished.splitlines(keepends=True)[:-1])]

    def write(folder: Path, data: bytes) -> None:
        place = folder / "out" / ".foreword-filter"
        place.mkdir(parents=True)
        (place / "ledger.jsonl").write_bytes(data)
        (folder / "out" / "a.txt").write_bytes(kept)

    def make(rng: random.Random, folder: Path) -> None:
        write(
            folder, damaged(rng.choice(seeds), rng, seeds, [b"null", b"[]", b"{}", b"-1", b'"key": ', b"1e999", b"\n"])
        )

    whole: list[Callable[[Path], object]] = [lambda folder: write(folder, finished)]
    return Target("filter's ledger", make, read, whole, weight=2)


def _training_checkpoint(folder: Path) -> Target:
    """That of ``foreword train --resume``: read, and gone on from by one step."""
    from foreword.storage.checkpoint import Checkpoint

    corpus = _corpus()

    def train(path: Path, every: float = 1e9, written: int = 0) -> None:
        model, checkpoint = _neural_lm("RecurrentLM", "lstm", 4, 6, 1), Checkpoint(path, every=every)
        for _ in model.train(corpus, valid=corpus, checkpoint=checkpoint):
            if checkpoint.written >= written:
                break

    seed = written(lambda path: train(path, 0.0, 2), folder, "run")
    return one_file("training checkpoint", "run", [seed], train, weight=2)
