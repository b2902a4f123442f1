"""A CTC beam search decoder with n-gram language models and hotwords, in place of pyctcdecode 0.5.

    decoder = build_ctcdecoder(labels, "4gram.arpa", unigrams)
    decoder.decode(logits)

The same names, arguments and results. What is different: the search runs in Numba without the GIL, so batches use all
cores by threads; a language model may also be one of our models or folders; bad input is an error of one line; and
``stream`` reads frames as they come.

A. Hannun, A. Maas, D. Jurafsky and A. Ng, "First-pass large vocabulary continuous speech recognition using
bi-directional recurrent DNNs" (2014).
"""

from __future__ import annotations

import math
import os
import warnings
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from foreword.arrays import Array, Doubles
from foreword.checks import check_number
from foreword.errors import CTCInputError, MissingExtraError, explained
from foreword.native.parallel import cores, ordered_map
from foreword.speech.alphabet import Alphabet, verify_alphabet_coverage
from foreword.speech.beam_search import BeamSearch, LabelTable
from foreword.speech.lm import (
    AbstractLanguageModel,
    CTCLanguageModel,
    HotwordScorer,
    KenlmWords,
    MultiLanguageModel,
    opened,
    words_of,
)
from foreword.speech.plain import BeamSettings, Frames, OutputBeam, PlainSearch

BatchBeam: TypeAlias = tuple[str, list[tuple[str, Frames]], float, float]
"""An ``OutputBeam`` without its state, as ``decode_beams_batch`` returns them."""

Result = TypeVar("Result")

LEAST_SHARE = 1e-15
"""Probabilities below this one count as this one."""


class BeamSearchDecoderCTC:
    """A decoder of logit matrices. language_model: a ``CTCLanguageModel``, several, or a class of your own.

    Decoders keep their language models in ``model_container``, so that processes forked by a pool find them there.
    A model is freed with its decoder, or earlier by ``cleanup`` and ``clear_class_models``.
    """

    model_container: ClassVar[dict[bytes, AbstractLanguageModel | None]] = {}
    _ALPHABET_SERIALIZED_FILENAME = "alphabet.json"
    _LANGUAGE_MODEL_SERIALIZED_DIRECTORY = "language_model"

    def __init__(self, alphabet: Alphabet, language_model: AbstractLanguageModel | None = None) -> None:
        self._alphabet = alphabet
        self._table = LabelTable(alphabet)
        self._model_key = os.urandom(16)
        BeamSearchDecoderCTC.model_container[self._model_key] = language_model
        weakref.finalize(self, BeamSearchDecoderCTC.model_container.pop, self._model_key, None)

    def reset_params(
        self,
        alpha: float | None = None,
        beta: float | None = None,
        unk_score_offset: float | None = None,
        lm_score_boundary: bool | None = None,
    ) -> None:
        """Change the weights of the language model; None leaves one as it is."""
        if self._language_model is not None:
            self._language_model.reset_params(
                alpha=alpha, beta=beta, unk_score_offset=unk_score_offset, score_boundary=lm_score_boundary
            )

    @classmethod
    def clear_class_models(cls) -> None:
        """Free the language models of all decoders."""
        BeamSearchDecoderCTC.model_container.clear()

    def cleanup(self) -> None:
        """Free the language model of this decoder."""
        BeamSearchDecoderCTC.model_container.pop(self._model_key, None)

    @property
    def _language_model(self) -> AbstractLanguageModel | None:
        return BeamSearchDecoderCTC.model_container[self._model_key]

    # Decoding

    def decode(
        self,
        logits: Array,
        beam_width: int = 100,
        beam_prune_logp: float = -10.0,
        token_min_logp: float = -5.0,
        hotwords: Iterable[str] | None = None,
        hotword_weight: float = 10.0,
        lm_start_state: Any = None,
    ) -> str:
        """Return the best text. logits: (T, V), log-probabilities up to a constant for each frame, or probabilities.

        Beams that differ only in words that the language model has forgotten are dropped, as only one text is wanted.
        """
        settings = BeamSettings(beam_width, beam_prune_logp, token_min_logp, True)
        return self._best(HotwordScorer.build_scorer(hotwords, hotword_weight), settings, lm_start_state, logits)

    def decode_beams(
        self,
        logits: Array,
        beam_width: int = 100,
        beam_prune_logp: float = -10.0,
        token_min_logp: float = -5.0,
        prune_history: bool = False,
        hotwords: Iterable[str] | None = None,
        hotword_weight: float = 10.0,
        lm_start_state: Any = None,
    ) -> list[OutputBeam]:
        """Return the best texts, best first, with language model state, frames of words and scores.

        beam_width, beam_prune_logp, token_min_logp, prune_history: see ``BeamSettings``. hotwords: words and phrases
        that are likelier than the language model knows; hotword_weight: added for each. lm_start_state: the state of an
        earlier beam, if this text follows that one.
        """
        stream = self.stream(
            BeamSettings(beam_width, beam_prune_logp, token_min_logp, prune_history),
            hotwords=hotwords, hotword_weight=hotword_weight, lm_start_state=lm_start_state,
        )  # fmt: skip
        stream.read(self.log_probabilities(logits))
        return stream.finish()

    def decode_batch(
        self,
        pool: Any,
        logits_list: Sequence[Array],
        beam_width: int = 100,
        beam_prune_logp: float = -10.0,
        token_min_logp: float = -5.0,
        hotwords: Iterable[str] | None = None,
        hotword_weight: float = 10.0,
    ) -> list[str]:
        """Return the best text of each matrix: on all cores by threads if ``pool`` is None, else by that pool."""
        settings = BeamSettings(beam_width, beam_prune_logp, token_min_logp, True)
        return self._map(pool, self._best, logits_list, HotwordScorer.build_scorer(hotwords, hotword_weight), settings)

    def decode_beams_batch(
        self,
        pool: Any,
        logits_list: Sequence[Array],
        beam_width: int = 100,
        beam_prune_logp: float = -10.0,
        token_min_logp: float = -5.0,
        prune_history: bool = False,
        hotwords: Iterable[str] | None = None,
        hotword_weight: float = 10.0,
    ) -> list[list[BatchBeam]]:
        """Return the best texts of each matrix, as ``decode_batch`` does; without states."""
        settings = BeamSettings(beam_width, beam_prune_logp, token_min_logp, prune_history)
        return self._map(pool, self._beams, logits_list, HotwordScorer.build_scorer(hotwords, hotword_weight), settings)

    def stream(
        self,
        settings: BeamSettings = BeamSettings(),  # noqa: B008 - it cannot change
        *,
        hotwords: Iterable[str] | None = None,
        hotword_weight: float = 10.0,
        lm_start_state: Any = None,
    ) -> PlainSearch | BeamSearch:
        """Return a search that reads frames as they come: ``read(log_probabilities)``, ``finish()`` for the beams.

        ``finish`` may be called at any time, to see what is likeliest so far; more frames may follow. However the
        frames are divided, the result is the same. ``pop_settled()`` returns the words that can no longer change, with
        their frames, and forgets them: for recordings without an end.
        """
        return self._search(HotwordScorer.build_scorer(hotwords, hotword_weight), settings, lm_start_state)

    def log_probabilities(self, logits: Array) -> Doubles:
        """Return the log-probabilities, float64 (T, V), of logits or probabilities; an error for bad ones."""
        logits = np.asarray(logits)
        labels = len(self._table.labels.kind)
        if logits.ndim != 2 or logits.shape[1] != labels or logits.dtype.kind not in "fiu":
            raise CTCInputError(
                f"logits are {logits.dtype} {logits.shape}: expected numbers of the shape (frames, {labels}), one "
                f"column for each label with the blank, which is column {self._alphabet.labels.index('')}"
            )
        values = logits.astype(np.float64, order="C")
        high = values.max(axis=1, keepdims=True)
        if not np.isfinite(high).all():
            bad = int(np.argmin(np.isfinite(high)))
            raise CTCInputError(f"frame {bad} of the logits holds NaN, or nothing finite: expected numbers")
        if _are_shares(values, high):
            return np.log(np.clip(values, LEAST_SHARE, 1.0))
        values -= high
        values -= np.log(np.exp(values).sum(axis=1, keepdims=True))
        return np.maximum(values, math.log(LEAST_SHARE), out=values)

    def _search(
        self, hotwords: HotwordScorer, settings: BeamSettings, lm_start_state: Any = None
    ) -> PlainSearch | BeamSearch:
        check_number("beam_width", settings.beam_width, whole=True, least=1)
        model = self._language_model
        several = model._language_models if isinstance(model, MultiLanguageModel) else None
        given: list[Any] = several or ([] if model is None else [model])
        parts = [part for part in given if type(part) is CTCLanguageModel and isinstance(part.scorer, KenlmWords)]
        if len(parts) < len(given):
            return PlainSearch(self._alphabet, model, hotwords, settings, lm_start_state)
        if lm_start_state is not None and not several:
            lm_start_state = [lm_start_state] if parts else None
        return BeamSearch(self._table, parts, hotwords, settings, lm_start_state)

    def _best(self, hotwords: HotwordScorer, settings: BeamSettings, state: Any, logits: Array) -> str:
        search = self._search(hotwords, settings, state)
        search.read(self.log_probabilities(logits))
        return search.finish(1)[0].text

    def _beams(self, hotwords: HotwordScorer, settings: BeamSettings, state: Any, logits: Array) -> list[BatchBeam]:
        search = self._search(hotwords, settings, state)
        search.read(self.log_probabilities(logits))
        return [(text, frames, logit, score) for text, _, frames, logit, score in search.finish()]

    def _map(
        self,
        pool: Any,
        function: Callable[..., Result],
        logits_list: Sequence[Array],
        hotwords: HotwordScorer,
        settings: BeamSettings,
    ) -> list[Result]:
        work = partial(function, hotwords, settings, None)
        # Processes that are spawned find no language models in ``model_container``: those of a forked pool do.
        if pool is not None and not isinstance(pool._ctx, SpawnContext):
            found: list[Result] = pool.map(work, logits_list)
            return found
        return list(ordered_map(work, logits_list, min(cores(), max(1, len(logits_list)))))

    # Files

    def save_to_dir(self, filepath: str) -> None:
        """Save the decoder in an existing folder, in the layout of Hugging Face: alphabet.json, language_model/."""
        folder = Path(filepath)
        with explained(f"cannot write {filepath}"):
            (folder / self._ALPHABET_SERIALIZED_FILENAME).write_text(self._alphabet.dumps(), "utf-8")
            if self._language_model is not None:
                (folder / self._LANGUAGE_MODEL_SERIALIZED_DIRECTORY).mkdir()
                self._language_model.save_to_dir(str(folder / self._LANGUAGE_MODEL_SERIALIZED_DIRECTORY))

    @staticmethod
    def parse_directory_contents(filepath: str) -> dict[str, str | None]:
        """Return the paths of the alphabet and of the folder of the language model, None without one."""
        own = BeamSearchDecoderCTC
        with explained(f"cannot read {filepath}", raises=CTCInputError):
            names = {path.name for path in Path(filepath).iterdir() if not path.name.startswith((".", "__"))}
        model = own._LANGUAGE_MODEL_SERIALIZED_DIRECTORY
        if own._ALPHABET_SERIALIZED_FILENAME not in names or (len(names) > 1 and model not in names):
            raise CTCInputError(
                f"{filepath}: holds {', '.join(sorted(names)) or 'nothing'}: expected alphabet.json, {model}"
            )
        return {
            "alphabet": os.path.join(filepath, own._ALPHABET_SERIALIZED_FILENAME),  # noqa: PTH118
            "language_model": os.path.join(filepath, model) if model in names else None,  # noqa: PTH118
        }

    @classmethod
    def load_from_dir(cls, filepath: str, unigram_encoding: str | None = None) -> BeamSearchDecoderCTC:
        """Open a decoder that ``save_to_dir`` of this class or of pyctcdecode's wrote."""
        found = cls.parse_directory_contents(filepath)
        alphabet = Alphabet.loads(Path(str(found["alphabet"])).read_text("utf-8"))
        model = found["language_model"]
        language_model = None if model is None else CTCLanguageModel.load_from_dir(model, unigram_encoding)
        return cls(alphabet, language_model)

    @classmethod
    def load_from_hf_hub(cls, model_id: str, cache_dir: str | None = None, **kwargs: Any) -> BeamSearchDecoderCTC:
        """Download a decoder from huggingface.co, or find it in the cache, and open it."""
        try:
            from huggingface_hub import snapshot_download
        except ImportError as error:
            raise MissingExtraError("huggingface_hub", "data", "load_from_hf_hub") from error
        cache = cache_dir or os.path.join(Path.home(), ".cache", "pyctcdecode")  # noqa: PTH118
        return cls.load_from_dir(snapshot_download(model_id, cache_dir=cache, **kwargs))


def _are_shares(values: Doubles, high: Doubles) -> bool:
    """Return whether values look like probabilities: rows sum to one on average, or all nearly, within 0 and 1."""
    if len(values) and math.isclose(values.sum() / len(values), 1.0):
        return True
    within = high.max(initial=0.0) <= 1.0 and values.min(initial=0.0) >= 0.0
    return bool(within and (abs(values.sum(axis=1) - 1.0) < 1e-3).all())


def build_ctcdecoder(
    labels: list[str],
    kenlm_model_path: Any = None,
    unigrams: Collection[str] | None = None,
    alpha: float = 0.5,
    beta: float = 1.5,
    unk_score_offset: float = -10.0,
    lm_score_boundary: bool = True,
) -> BeamSearchDecoderCTC:
    """Return a decoder for an acoustic model with these labels.

    kenlm_model_path: an ARPA file, a KenLM binary, one of our model folders, or a model. unigrams: the words that are
    known, by default all that the language model lists. The rest: see ``CTCLanguageModel``.
    """
    alphabet = Alphabet.build_alphabet(labels)
    if kenlm_model_path is None:
        return BeamSearchDecoderCTC(alphabet)
    model = opened(kenlm_model_path)
    unigrams = words_of(model) if unigrams is None else unigrams
    if unigrams:
        verify_alphabet_coverage(alphabet, unigrams)
    elif unigrams is None:
        warnings.warn(
            "a KenLM binary without unigrams: every unfinished word counts as unknown", UserWarning, stacklevel=2
        )
    language_model = CTCLanguageModel(model, unigrams, alpha, beta, unk_score_offset, lm_score_boundary)
    return BeamSearchDecoderCTC(alphabet, language_model)
