"""The names of ``pyctcdecode.decoder``."""

from foreword.speech.decoder import BatchBeam as OutputBeamMPSafe
from foreword.speech.decoder import BeamSearchDecoderCTC, build_ctcdecoder
from foreword.speech.plain import NO_FRAMES as NULL_FRAMES
from foreword.speech.plain import Frames, OutputBeam

__all__ = ["NULL_FRAMES", "BeamSearchDecoderCTC", "Frames", "OutputBeam", "OutputBeamMPSafe", "build_ctcdecoder"]
