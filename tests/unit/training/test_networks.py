"""What is true of every network that the engine hosts: it resumes byte for byte, and workers can share its batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.unit.training.test_together import Member, Threads

from foreword.classify.recurrent import RecurrentClassifier
from foreword.errors import DivergedError, GpuMemoryError, InputError
from foreword.neural.recurrent import RecurrentLM
from foreword.nn.dropout import NO_DROPOUT
from foreword.protocols import Step
from foreword.speech.recogniser import Recogniser
from foreword.storage.checkpoint import Checkpoint
from foreword.tag.bilstm import BiLSTMTagger
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.engine import Trainer
from foreword.training.model import NeuralModel
from foreword.translate.pairs import Pairs
from foreword.translate.seq2seq import Seq2Seq
from foreword.vectors.elmo import ELMo

torch.set_num_threads(1)
RANDOM = np.random.default_rng(0)
VOCAB = Vocab(["<unk>", "</s>", *"abcdefg"])
IDS = [RANDOM.integers(2, len(VOCAB), RANDOM.integers(2, 9)) for _ in range(24)]
CORPUS = Corpus.from_ids(IDS, VOCAB)
PAIRS = Pairs(CORPUS, Corpus.from_ids([each[::-1] for each in IDS], VOCAB))
WORDS = [[VOCAB[word] * (1 + word % 3) for word in each.tolist()] for each in IDS]
TAGS = [["odd" if len(word) % 2 else "even" for word in words] for words in WORDS]
TEXTS = [" ".join(words) for words in WORDS]
LABELS = ["a" if any(word[0] == "a" for word in words) else "b" for words in WORDS]
SOUNDS = [RANDOM.normal(size=(RANDOM.integers(8, 14), 3)).astype(np.float32) for _ in range(20)]
SAID = [RANDOM.integers(0, 4, 2).tolist() for _ in SOUNDS]

LM = replace(RecurrentLM.TRAINING, epochs=10, batch=4, steps=5)
NETWORKS: dict[str, tuple[Callable[..., NeuralModel[Any]], Any, Any]] = {
    "language model": (lambda **given: RecurrentLM("lstm", 4, 4, 1, training=LM, **given), CORPUS, CORPUS[:5]),
    "translator": (lambda **given: Seq2Seq(4, words=4, epochs=3, batch=40, rate=0.01, **given), PAIRS, PAIRS[:5]),
    "ELMo": (
        lambda **given: ELMo(4, 2, letter_units=3, filters=2, epochs=3, batch=6, **given), WORDS, WORDS[:5],
    ),
    "recogniser": (
        lambda **given: Recogniser(4, bands=3, units=4, epochs=3, batch=6, **given),
        (SOUNDS, SAID),
        (SOUNDS[:5], SAID[:5]),
    ),
    "tagger": (
        lambda **given: BiLSTMTagger(4, words=4, letter_units=3, spelling=4, unseen=0.0, epochs=3, batch=6, **given),
        (WORDS, TAGS),
        (WORDS[:5], TAGS[:5]),
    ),
    "classifier": (
        lambda **given: RecurrentClassifier(embedding=4, hidden=4, units=3, min_count=1, epochs=3, batch=6, **given),
        (TEXTS, LABELS),
        (TEXTS[:5], LABELS[:5]),
    ),
}  # fmt: skip


def built(name: str, **given: Any) -> tuple[NeuralModel[Any], Any, Any]:
    make, data, valid = NETWORKS[name]
    return make(device="cpu", **given), data, valid


def bytes_of(model: NeuralModel[Any]) -> bytes:
    return model.flat_weights().numpy().tobytes()


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("written", [1, 6])
def test_a_run_that_was_stopped_ends_in_the_same_bytes(name: str, held_out: bool, written: int, tmp_path: Path) -> None:
    whole, data, valid = built(name)
    valid = valid if held_out else None
    whole.fit(data, valid=valid)
    checkpoint = Checkpoint(tmp_path / "run", every=0)
    for _ in built(name)[0].train(data, valid=valid, checkpoint=checkpoint):
        if checkpoint.written >= written:
            break
    assert checkpoint.written >= written
    resumed = built(name)[0]
    steps = list(resumed.train(data, valid=valid, checkpoint=Checkpoint(tmp_path / "run")))
    assert steps[-1].done == steps[-1].total
    assert bytes_of(resumed) == bytes_of(whole)
    assert resumed.valid_score_ == whole.valid_score_
    with pytest.raises(InputError, match="another run"):
        next(built(name, seed=1)[0].train(data, valid=valid, checkpoint=Checkpoint(tmp_path / "run")))


@pytest.mark.parametrize("name", NETWORKS)
def test_training_and_dropout_are_accepted_whole(name: str) -> None:
    model, data, _ = built(name)
    again = built(name, dropout=NO_DROPOUT)[0]
    assert replace(model.training, epochs=1) != model.training
    again.training = replace(model.training, epochs=1, schedule="constant", optimiser="sgd", clip=0.1)
    steps = list(again.train(data))
    assert len({step.rate for step in steps[-2:]}) == 1
    assert np.isfinite(again.flat_weights().numpy()).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_workers_without_dropout_do_what_one_does_but_for_rounding(name: str) -> None:
    plain, data, valid = built(name, dropout=NO_DROPOUT)
    plain.fit(data, valid=valid)
    group, models = Threads(2), [built(name, dropout=NO_DROPOUT)[0] for _ in range(2)]

    def work(rank: int) -> None:
        for _ in models[rank].train(data, valid=valid, group=Member(rank, group)):
            pass

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bytes_of(models[0]) == bytes_of(models[1])
    ours, theirs = models[0].flat_weights().numpy(), plain.flat_weights().numpy()
    np.testing.assert_allclose(ours, theirs, atol=1e-2)
    assert np.abs(ours - theirs).mean() < 1e-3


@pytest.mark.parametrize("name", NETWORKS)
def test_training_that_diverges_says_so(name: str) -> None:
    model, data, _ = built(name)
    model.training = replace(model.training, rate=1e38, clip=0.0, optimiser="sgd", epochs=50)
    with pytest.raises(DivergedError, match=r"training diverged.*lower rate than 1e\+38"):
        list(model.train(data))


def test_a_gpu_that_is_too_small_names_the_settings_to_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data, _ = built(next(iter(NETWORKS)))

    def full(*_: object) -> Iterator[Step]:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    for method in ("steps", "_allocate"):  # while it trains, and before its first step
        with monkeypatch.context() as patched:
            patched.setattr(Trainer, method, full)
            with pytest.raises(GpuMemoryError, match=f"expected a batch below {model.training.batch}"):
                list(model.train(data))
