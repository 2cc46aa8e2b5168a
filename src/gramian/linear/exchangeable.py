"""Features that a run cannot tell apart, taken together: what makes the projected arms affordable from A = I.

Two features are exchangeable while they have been active together in every step: the copies of a feature always, and
all features that have not been active yet. Swapping two such features changes nothing, so A maps vectors that are
constant on every class of exchangeable features to such vectors, and is still the identity on what is orthogonal to
them. Of A a run needs no more than this map. In the basis ê_c = Σ_{i∈c} e_i/√m_c, where class c has m_c members, it is
an orthogonal matrix [n, n] for n classes, and everything keeps its form but for what is said element by element:

- 1 becomes √m, and so does φ at the active classes;
- y_i² y_i becomes ŷ_c² ŷ_c / m_c.

Class 0 holds the features that have not been seen; it has all d members at first, and every other class splits off it.
"""

import math

from gramian.core.compiled import kernel
from gramian.linear.kernels import Floats, Integers


@kernel
def split_vector(vector: Floats, n: int, new: float, rest: float) -> None:
    """Split class 0 of a vector that is constant on it: ``new``² and ``rest``² are the shares of the two parts."""
    vector[n] = new * vector[0]
    vector[0] *= rest


@kernel
def split_matrix(matrix: Floats, n: int, new: float, rest: float, outside: float) -> None:
    """Split class 0 of a matrix [n, n] that is ``outside`` times the identity on what is orthogonal to the classes."""
    for i in range(n):
        split_vector(matrix[i], n, new, rest)
    # The direction rest·ê_n − new·ê_0 is new to the basis, and an eigenvector.
    matrix[n, :n] = 0.0
    matrix[n, 0], matrix[n, n] = -new * outside, rest * outside
    for j in range(n + 1):
        before, outer = matrix[0, j], matrix[n, j]
        matrix[0, j] = rest * before - new * outer
        matrix[n, j] = new * before + rest * outer


@kernel
def open_classes(
    tiles: Integers,
    per_action: int,
    actions: int,
    size: int,
    place: Integers,
    members: Floats,
    n: int,
    A: Floats,
    S: Floats,
    w: Floats,
    theta: Floats,
    Y: Floats,
) -> int:
    """Give the features of all actions at these ``tiles`` a class of ``size`` members each; return how many there are.

    ``place`` [features] is the class of a feature, 0 if it has not been seen. All other arrays hold n classes and have
    room for more: ``members``, A, S (if it is used), w, θ and the rows of Y, which are y of some action.
    """
    for action in range(actions):
        for tile in tiles:
            feature = action * per_action + tile
            if place[feature] > 0:
                continue
            new, rest = math.sqrt(size / members[0]), math.sqrt((members[0] - size) / members[0])
            split_matrix(A, n, new, rest, 1.0)
            if S.size > 0:
                split_matrix(S, n, new, rest, 0.0)
            split_vector(w, n, new, rest)
            split_vector(theta, n, new, rest)
            for row in range(Y.shape[0]):
                split_vector(Y[row], n, new, rest)
            members[0] -= size
            members[n] = size
            place[feature] = n
            n += 1
    return n
