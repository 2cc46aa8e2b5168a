"""Replay memories: `Replay` on the learner's device, in torch; `HostReplay` in the host's memory, in numpy.

Both hold the same transitions and draw the same ones: the indices of a batch are a function of (run seed, stream,
counter), and of priorities where there are any.
"""

from gramian.deep.replay.device import Outcome, Replay, bytes_needed
from gramian.deep.replay.host import HostReplay
from gramian.deep.replay.priorities import Exponents

__all__ = ["Exponents", "HostReplay", "Outcome", "Replay", "bytes_needed"]
