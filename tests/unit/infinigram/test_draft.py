"""Drafts change how often a model is asked, never what is written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from foreword.arrays import Ids, Logs, Longs
from foreword.decode import Acceptance, generate
from foreword.infinigram.draft import IndexDrafter, VllmProposer
from foreword.infinigram.index import SuffixIndex
from foreword.ngram.model import NgramLM
from foreword.protocols import Drafter
from foreword.storage.folder import save
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

VOCAB = Vocab(["<unk>", "</s>", *"abcdefgh"])
TEXTS = [[2, 3, 4, 5, 6, 7, 8, 9], [4, 5, 6, 2, 3, 9], [3, 4, 5, 6, 7, 2, 2, 3, 4]]
CORPUS = Corpus.from_ids(TEXTS * 3, VOCAB)


class ReadingAhead(NgramLM):
    """An n-gram model that reads ahead, and counts how often it is asked."""

    asked = 0

    def read_ahead(self, state: Longs, ids: Ids) -> tuple[Logs, Longs]:
        self.asked += 1
        rows = []
        for id in ids.tolist():
            state = self.advance(state, np.array([id]))
            rows.append(self.next_logprobs(state)[0])
        return np.array(rows), state


class WrongDrafter:
    def propose(self, ids: Any, count: int) -> list[int]:
        return [0] * count


@pytest.mark.parametrize("prompt", [[], [2], [2, 3, 4]], ids=str)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    "drafter", [IndexDrafter(SuffixIndex.build(CORPUS)), IndexDrafter(), WrongDrafter()], ids=["index", "own", "wrong"]
)
def test_the_text_is_the_same(drafter: Drafter, temperature: float, prompt: list[int]) -> None:
    model = ReadingAhead(3).fit(CORPUS)
    for seed in range(5):
        plain = list(generate(model, prompt, max_tokens=60, temperature=temperature, seed=seed))
        acceptance = Acceptance()
        drafted = generate(
            model, prompt, max_tokens=60, temperature=temperature, seed=seed, drafter=drafter, acceptance=acceptance
        )
        assert list(drafted) == plain
        assert acceptance.tokens in (len(plain), len(plain) + 1)


def test_a_memorised_text_takes_fewer_steps() -> None:
    model, acceptance = ReadingAhead(5).fit(CORPUS), Acceptance()
    written = list(
        generate(
            model, [2, 3, 4, 5], max_tokens=20, temperature=0, drafter=IndexDrafter(SuffixIndex.build(CORPUS)),
            acceptance=acceptance,
        )
    )  # fmt: skip
    assert len(written) >= 4
    assert acceptance.steps == model.asked < len(written)
    assert acceptance.length > 1.5


def test_the_longer_match_wins() -> None:
    index = SuffixIndex.build(Corpus.from_ids([[2, 3, 4, 5]], VOCAB))
    drafter = IndexDrafter(index, least=2)
    assert drafter.propose([2, 3], 5) == [4, 5]  # to the end of the document
    assert drafter.propose([9, 2, 3, 7, 9, 2, 3], 2) == [7, 9]  # the text itself has three tokens, the index two
    assert drafter.propose([9], 5) == drafter.propose([], 5) == []


def test_vllm_asks_for_a_batch(tmp_path: Any) -> None:
    save(SuffixIndex.build(CORPUS), tmp_path / "index")
    config = SimpleNamespace(
        additional_config={"foreword_index": str(tmp_path / "index")},
        speculative_config=SimpleNamespace(num_speculative_tokens=3),
    )
    proposer = VllmProposer(config, device="cpu")
    proposer.load_model()
    texts = np.zeros((3, 10), np.int32)
    texts[0, :3], texts[1, :2] = [3, 4, 5], [8, 2]
    assert proposer.propose([[5], [2], []], np.array([3, 2, 0]), texts, slot_mappings=None) == [[6, 7, 2], [], []]
