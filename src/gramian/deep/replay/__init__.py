"""Replay memories: `Replay` on the learner's device, in torch; `HostReplay` in the host's memory, in numpy.

Both hold the same transitions and draw the same ones: the indices of a batch are a function of (run seed, stream,
counter). Both have the same methods: ``begin`` with the first frames; ``add`` a step of all environments; ``sample`` a
batch, which is ``fetch`` of ``indices``; ``state``, ``segment`` and ``load`` for checkpoints.
"""

from gramian.deep.replay.device import Replay, bytes_needed
from gramian.deep.replay.host import HostReplay

__all__ = ["HostReplay", "Replay", "bytes_needed"]
