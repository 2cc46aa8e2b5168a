"""Replay memories: `Replay` on the learner's device, in torch; `HostReplay` in the host's memory, in numpy.

Both hold the same transitions and draw the same ones: the indices of a batch are a function of (run seed, stream,
counter).
"""

from gramian.deep.replay.device import Outcome, Replay, bytes_needed
from gramian.deep.replay.host import HostReplay

__all__ = ["HostReplay", "Outcome", "Replay", "bytes_needed"]
