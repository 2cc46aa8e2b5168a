"""Screens of Atari's consoles, shrunk to what an agent sees.

The emulator's processes load this module, and it needs neither torch nor the rest of the package.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramian.core.compiled import exact_kernel

Screens: TypeAlias = NDArray[np.uint8]
Words: TypeAlias = NDArray[np.uint64]
Numbers: TypeAlias = NDArray[np.float32]


@exact_kernel
def shrink(
    screens: Screens,
    words: Words,
    words_before: Words,
    greys: Numbers,
    pixels: NDArray[np.int64],
    shares: Numbers,
    line_shares: Numbers,
    narrow: Numbers,
    frame: NDArray[np.uint8],
) -> None:
    """Renew those pieces of a frame under which one of two screens has changed.

    Parameters
    ----------
    screens
        Two of them, of numbers of colours, ``[2, 210, 160]``.
    words, words_before
        The same as words of eight pixels, ``[2, 210, 20]``, and those that the frame is of.
    greys
        By the number of a colour.
    pixels, shares
        ``[21, 3]`` each: the pixels, of 40, under each of 21 areas, and their shares in it.
    line_shares
        Those of five lines in the two that become of them; the third is in both.
    narrow
        The lines of the frame that ``words_before`` are of, shrunk and weighed, ``[210, 84]``.
    frame
        ``[84, 84]``.
    """
    piece, areas = np.empty(40, np.float32), len(shares)
    for first in range(0, 210, 5):
        changed = False
        for line in range(first, first + 5):
            for quarter in range(4):
                difference = np.uint64(0)
                for word in range(5 * quarter, 5 * quarter + 5):
                    difference |= words[0, line, word] ^ words_before[0, line, word]
                    difference |= words[1, line, word] ^ words_before[1, line, word]
                if not difference:
                    continue
                changed = True
                for pixel in range(40):
                    place = 40 * quarter + pixel
                    piece[pixel] = max(greys[screens[0, line, place]], greys[screens[1, line, place]])
                for area in range(areas):
                    grey = piece[pixels[area, 0]] * shares[area, 0]
                    grey += piece[pixels[area, 1]] * shares[area, 1]
                    grey += piece[pixels[area, 2]] * shares[area, 2]
                    narrow[line, areas * quarter + area] = grey * line_shares[line - first]
        if changed:
            row = first // 5 * 2
            for column in range(frame.shape[1]):
                third = narrow[first + 2, column]
                upper = narrow[first, column] + narrow[first + 1, column] + third
                lower = third + narrow[first + 3, column] + narrow[first + 4, column]
                frame[row, column], frame[row + 1, column] = np.rint(upper), np.rint(lower)
