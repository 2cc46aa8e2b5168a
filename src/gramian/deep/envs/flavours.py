"""The flavours of an Atari game: the modes and difficulties that ALE offers for it [1]_ [2]_.

References
----------
.. [1] M. C. Machado et al., *Revisiting the Arcade Learning Environment*, JAIR 2018.
.. [2] J. Farebrother, M. C. Machado, M. Bowling, *Generalization and regularization in DQN*, arXiv 1810.00123.
"""

import ale_py

from gramian.deep.envs.emulator import rom
from gramian.deep.envs.options import Flavour


def flavours(game: str) -> tuple[Flavour, ...]:
    """Every flavour that ALE offers for a game (by ALE's name), the default one first: that of the training.

    Examples
    --------
    >>> flavours("freeway")[:3]
    (Flavour(mode=0, difficulty=0), Flavour(mode=0, difficulty=1), Flavour(mode=1, difficulty=0))
    """
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.loadROM(rom(game))
    # ALE takes the first mode and the first difficulty where none is set
    return tuple(Flavour(mode, hard) for mode in ale.getAvailableModes() for hard in ale.getAvailableDifficulties())
