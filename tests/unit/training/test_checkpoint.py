"""A run that was stopped ends as one that never was."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from numpy.testing import assert_array_equal

from foreword.errors import InputError
from foreword.lm.awd_lstm import AWDLSTM
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.checkpoint import Checkpoint
from foreword.training.settings import Training

torch.set_num_threads(1)
CORPUS = Corpus.from_ids([[2, 3, 4] * 3 for _ in range(6)], Vocab(["<unk>", "</s>", "a", "b", "c"]))


def model(seed: int = 0) -> AWDLSTM:
    return AWDLSTM(4, 6, 2, training=Training(epochs=5, batch=3, steps=4, rate=5.0), seed=seed, device="cpu")


def stopped(path: Path, epochs: int) -> None:
    checkpoint = Checkpoint(path, every=0)
    for _ in model().train(CORPUS, valid=CORPUS, checkpoint=checkpoint):
        if checkpoint.written == epochs:
            return


@pytest.mark.parametrize("epochs", [1, 3])
def test_stopped_and_taken_up_again_it_ends_in_the_same_bits(tmp_path: Path, epochs: int) -> None:
    whole = model().fit(CORPUS, valid=CORPUS)
    stopped(tmp_path / "run", epochs)
    resumed = model()
    steps = list(resumed.train(CORPUS, valid=CORPUS, checkpoint=Checkpoint(tmp_path / "run")))
    assert steps[-1].done == steps[-1].total
    for name, weight in whole.to_parts().arrays.items():
        assert_array_equal(resumed.to_parts().arrays[name], weight)
    assert resumed.valid_score_ == whole.valid_score_


def test_the_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    stopped(tmp_path / "run", 1)
    with pytest.raises(InputError, match="another run"):
        next(model(seed=1).train(CORPUS, valid=CORPUS, checkpoint=Checkpoint(tmp_path / "run")))
    with pytest.raises(InputError, match="another run"):
        next(model().train(CORPUS[:5], valid=CORPUS, checkpoint=Checkpoint(tmp_path / "run")))


def test_a_checkpoint_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    stopped(tmp_path / "run", 1)
    whole = (tmp_path / "run").read_bytes()
    (tmp_path / "run").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError):
        next(model().train(CORPUS, valid=CORPUS, checkpoint=Checkpoint(tmp_path / "run")))
