"""Drafts: guesses how a text continues, from an index and from the text itself.

A large model reads several tokens in the time of one, so tokens that are guessed right cost it nothing (Y. Leviathan,
M. Kalman and Y. Matias, "Fast inference from Transformers via speculative decoding", ICML 2023). Much of what models
write stands verbatim in the text so far or in a corpus, and an index finds it in microseconds (Z. He et al., "REST:
retrieval-based speculative decoding", NAACL 2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from foreword.arrays import Array, Longs
from foreword.checks import check_number
from foreword.infinigram.index import SuffixIndex
from foreword.storage.folder import load

LONGEST_MATCH = 32
"""Tokens of the end of a text that are looked up; a longer match says nothing more."""


class IndexDrafter:
    """Proposes what followed the end of the text where it stood before: in the text itself, or in an index.

    The longer match wins, the text's own among equals. index: None for the text itself alone. least: tokens of the
    shortest match.
    """

    def __init__(self, index: SuffixIndex | None = None, *, least: int = 2) -> None:
        check_number("least", least, whole=True, least=1)
        self.index = index
        self.least = least

    def propose(self, ids: Sequence[int], count: int) -> list[int]:
        """Return at most ``count`` ids that may follow."""
        text = np.asarray(ids, np.int64)
        begin, length = _own_match(text)
        draft = text[begin : begin + count].tolist() if length >= self.least else []
        return self._from_index(text, count, max(length + 1, self.least)) or draft

    def _from_index(self, text: Longs, count: int, least: int) -> list[int]:
        """Return the most frequent continuation of at least ``least`` tokens of the text's end, a token at a time."""
        draft: list[int] = []
        while self.index is not None and len(draft) < count:
            found = self.index.context(np.append(text, draft)[-LONGEST_MATCH:].astype(np.int64))
            if found.length < least:
                break
            id = found.likeliest(1)[0][0]
            if id == self.index.vocab.end:
                break
            draft.append(id)
        return draft


def _own_match(text: Longs) -> tuple[int, int]:
    """Return what follows the longest end of a text that stands in it before: its position, and the end's length."""
    best, longest = len(text), 0
    for end in np.flatnonzero(text[:-1] == text[-1])[::-1].tolist() if len(text) else []:
        most = min(end + 1, LONGEST_MATCH)
        differ = np.flatnonzero(text[end + 1 - most : end + 1] != text[len(text) - most :])
        length = most if len(differ) == 0 else most - 1 - int(differ[-1])
        if length > longest:
            best, longest = end + 1, length
    return best, longest


class VllmProposer:
    """``IndexDrafter`` in the form of vLLM's custom proposers.

    Named in ``speculative_config`` as ``{"method": "custom_class", "model": "foreword.infinigram.draft.VllmProposer",
    "num_speculative_tokens": 8}``; ``additional_config={"foreword_index": PATH}`` names an index that was built with
    the model's tokenizer. vLLM itself is not needed here.
    """

    def __init__(self, vllm_config: Any, *unused: Any, **also_unused: Any) -> None:
        path = (vllm_config.additional_config or {}).get("foreword_index")
        found = None if path is None else load(path)
        self.drafter = IndexDrafter(getattr(found, "index", found))
        self.count = int(vllm_config.speculative_config.num_speculative_tokens)

    def load_model(self, *unused: Any, **also_unused: Any) -> None:
        """Load nothing: there is no network."""

    def propose(
        self, sampled_token_ids: Sequence[Sequence[int]], num_tokens_no_spec: Array, token_ids_cpu: Array,
        *unused: Any, **also_unused: Any,
    ) -> list[list[int]]:  # fmt: skip
        """Return a draft for each request: of a text, a row of ``token_ids_cpu`` (requests, longest) as far as it goes.

        A request that was given no token in this step, as while its prompt is read, gets none.
        """
        lengths = num_tokens_no_spec.tolist()
        return [
            self.drafter.propose(token_ids_cpu[row, : lengths[row]].tolist(), self.count) if len(sampled) else []
            for row, sampled in enumerate(sampled_token_ids)
        ]
