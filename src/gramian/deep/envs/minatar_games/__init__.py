"""The five games of MinAtar, written here as numba kernels: one module a game, compiled when it is played.

A game is a row of integers, whose places its module names, and a row of its random generator. It has the constants

- ``SIZE``: how many integers;
- ``CHANNELS``: the planes of its picture;
- ``ACTIONS``: those of the six actions that have an effect.

and the kernels ``reset``, ``act`` and ``draw``, of which :mod:`.rows` makes ``play``, many copies in one call.
"""
