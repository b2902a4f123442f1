"""The names of ``pyctcdecode.constants``."""

import inspect

from foreword.speech.decoder import LEAST_SHARE as MIN_TOKEN_CLIP_P
from foreword.speech.decoder import BeamSearchDecoderCTC, build_ctcdecoder
from foreword.speech.kernels_decoding import AVERAGE_LENGTH as AVG_TOKEN_LEN
from foreword.speech.kernels_decoding import LN10 as LOG_BASE_CHANGE_FACTOR

_built = inspect.signature(build_ctcdecoder).parameters
_decoded = inspect.signature(BeamSearchDecoderCTC.decode_beams).parameters

DEFAULT_ALPHA = _built["alpha"].default
DEFAULT_BETA = _built["beta"].default
DEFAULT_UNK_LOGP_OFFSET = _built["unk_score_offset"].default
DEFAULT_SCORE_LM_BOUNDARY = _built["lm_score_boundary"].default
DEFAULT_BEAM_WIDTH = _decoded["beam_width"].default
DEFAULT_HOTWORD_WEIGHT = _decoded["hotword_weight"].default
DEFAULT_PRUNE_LOGP = _decoded["beam_prune_logp"].default
DEFAULT_PRUNE_BEAMS = _decoded["prune_history"].default
DEFAULT_MIN_TOKEN_LOGP = _decoded["token_min_logp"].default

__all__ = [
    "AVG_TOKEN_LEN",
    "DEFAULT_ALPHA",
    "DEFAULT_BEAM_WIDTH",
    "DEFAULT_BETA",
    "DEFAULT_HOTWORD_WEIGHT",
    "DEFAULT_MIN_TOKEN_LOGP",
    "DEFAULT_PRUNE_BEAMS",
    "DEFAULT_PRUNE_LOGP",
    "DEFAULT_SCORE_LM_BOUNDARY",
    "DEFAULT_UNK_LOGP_OFFSET",
    "LOG_BASE_CHANGE_FACTOR",
    "MIN_TOKEN_CLIP_P",
]
