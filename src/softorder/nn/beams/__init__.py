"""Beam search, hard to decode and soft to train."""

from softorder.nn.beams.hard import BeamSearch
from softorder.nn.beams.soft import SoftBeamSearch
from softorder.nn.beams.steps import Beams, Decoder

__all__ = ["BeamSearch", "Beams", "Decoder", "SoftBeamSearch"]
