"""Tile coding: sparse binary features of a state and an action, with any number of copies of every feature."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gramian.core.compiled import inlined_kernel
from gramian.core.errors import UserError, require, require_least
from gramian.linear.kernels import Floats, Integers


class Tiles(NamedTuple):
    """A tile coding for the kernels; see `TileCoding`."""

    low: Floats
    high: Floats
    scale: Floats
    """Tiles per unit of the state [dimensions]."""
    offsets: Floats
    """Shift of each tiling along each dimension, in tiles [tilings, dimensions]."""
    per_action: int
    """Features of one action, before copying."""
    copies: int
    copied: int
    """The feature that is copied; −1 for all."""


@inlined_kernel
def active_tiles(coding: Tiles, state: Floats, out: Integers) -> None:
    """Write into ``out`` [tilings] the tile of each tiling at ``state``, of ``tiles + 1`` a dimension."""
    low, high, scale = coding.low, coding.high, coding.scale
    stored = int(scale[0] * (high[0] - low[0]) + 0.5) + 1
    for t in range(out.size):
        index = t
        for n in range(state.size):
            along = (min(max(state[n], low[n]), high[n]) - low[n]) * scale[n]
            index = index * stored + int(along + coding.offsets[t, n])
        out[t] = index


@inlined_kernel
def with_action(tiles: Integers, action: int, per_action: int, actions: int, out: Integers) -> None:
    """Write the indices of the active features of (state, action) into ``out`` [k]: its block of every copy."""
    first, start = action * per_action, 0
    while start < out.size:
        for t in range(tiles.size):
            out[start + t] = first + tiles[t]
        first, start = first + actions * per_action, start + tiles.size


@inlined_kernel
def action_value(
    w: Floats, tiles: Integers, action: int, per_action: int, actions: int, place: Integers, values: Floats
) -> float:
    """Return φᵀw of (state, action) without writing its indices; ``place`` is empty or maps features to classes."""
    total, first, i = 0.0, action * per_action, 0
    while i < values.size:
        for t in range(tiles.size):
            index = first + tiles[t]
            if place.size > 0:
                index = place[index]
            total += values[i] * w[index]
            i += 1
        first += actions * per_action
    return total


@dataclass(frozen=True)
class TileCoding:
    """Tile coding of a box, stacked per action; every feature, or one of them, may be copied.

    Parameters
    ----------
    low, high
        Bounds of the state, one value per dimension.
    tilings, tiles
        Number of tilings, and of tiles per dimension of a tiling (``tiles + 1`` are stored). Tiling t is shifted by
        t/tilings of a tile times 1, 3, 5, … along the dimensions, modulo a tile: the asymmetric offsets of Sutton &
        Barto (2018, p. 219).
    actions
        Number of actions; each has its own block of features.
    copies
        0 gives φ, 1 gives [φ, φ], and so on: d grows, the rank of the features over any states does not.
    copied
        −1 copies every feature; i copies φ_i alone and once: [φ, φ_i], the paper's example.

    Examples
    --------
    >>> coding = TileCoding(low=(-1.2, -0.07), high=(0.6, 0.07), tilings=2, tiles=8, actions=3)
    >>> coding.d, coding.k
    (486, 2)
    >>> coding.active((-1.2, -0.07), action=1).tolist()
    [162, 243]
    >>> coding.matrix(np.array([[-1.2, -0.07], [0.0, 0.0]]), np.array([1, 2])).sum(axis=1).tolist()
    [2.0, 2.0]
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    tilings: int = 2
    tiles: int = 8
    actions: int = 1
    copies: int = 0
    copied: int = -1

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high) or not all(a < b for a, b in zip(self.low, self.high, strict=True)):
            raise UserError(f"bounds {self.low} and {self.high} are not a box; each low must be below its high")
        for name, least in (("tilings", 1), ("tiles", 1), ("actions", 1), ("copies", 0)):
            require_least(self, least, name)
        if self.copied >= 0 and not (self.copies == 1 and self.copied < self.per_action * self.actions):
            raise UserError(f"copied is {self.copied} with {self.copies} copies; one feature of φ has one copy")

    @property
    def per_action(self) -> int:
        """Features of one action, before copying."""
        return self.tilings * int((self.tiles + 1) ** len(self.low))

    @property
    def d(self) -> int:
        """Number of features."""
        features = self.per_action * self.actions
        return features + 1 if self.copied >= 0 else features * (1 + self.copies)

    @property
    def k(self) -> int:
        """Number of features that are active at a time, without the copy of a single feature."""
        return self.tilings if self.copied >= 0 else self.tilings * (1 + self.copies)

    @property
    def arrays(self) -> Tiles:
        """The coding for the kernels."""
        low, high = np.asarray(self.low, dtype=float), np.asarray(self.high, dtype=float)
        displacement = 2 * np.arange(len(self.low)) + 1
        offsets = np.outer(np.arange(self.tilings), displacement) % self.tilings / self.tilings
        scale = np.array([self.tiles / (b - a) for a, b in zip(self.low, self.high, strict=True)])
        return Tiles(low, high, scale, offsets, self.per_action, self.copies, self.copied)

    def active(self, state: tuple[float, ...], action: int = 0) -> Integers:
        """Return the indices of the features that are 1 at ``state`` and ``action``; all others are 0."""
        if len(state) != len(self.low) or not np.isfinite(state).all():
            raise UserError(f"state is {state}; it must be {len(self.low)} finite numbers")
        require(0 <= action < self.actions, "action", action, f"from 0 to {self.actions - 1}")
        tiles, out = np.empty(self.tilings, dtype=np.int64), np.empty(self.k, dtype=np.int64)
        active_tiles(self.arrays, np.asarray(state, dtype=float), tiles)
        with_action(tiles, action, self.per_action, self.actions, out)
        return np.append(out, self.d - 1) if self.copied in out else out

    def matrix(self, states: Floats, actions: Integers) -> Floats:
        """Φ [n, d]: one row per pair of state [n, dimensions] and action [n]."""
        phi = np.zeros((len(states), self.d))
        for row, state, action in zip(phi, states, actions, strict=True):
            row[self.active(tuple(state), int(action))] = 1.0
        return phi


def mean_absolute_correlation(phi: Floats) -> float:
    """Mean |correlation| over all pairs of different columns of ``phi`` [n, d] that vary."""
    varying = phi[:, phi.std(axis=0) > 0]
    d = varying.shape[1]
    if d < 2:
        raise UserError(f"{d} features vary over these {len(phi)} samples; a correlation needs at least 2")
    correlation = np.abs(np.corrcoef(varying, rowvar=False))
    return float((correlation.sum() - np.trace(correlation)) / (d * (d - 1)))
