import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gramian.linear.kernels import add_rank_one_projected, polar_2x2
from gramian.linear.learner import initial_transform
from tests.linear.oracle import polar

entries = st.floats(-10, 10)


@settings(deadline=None)  # the first call may compile
@given(st.tuples(entries, entries, entries, entries))
def test_polar_2x2_is_the_svd_projection(b):
    matrix = np.array(b).reshape(2, 2)
    if np.linalg.svd(matrix, compute_uv=False)[-1] < 1e-6:
        return  # a singular matrix has many nearest orthogonal ones
    np.testing.assert_allclose(np.reshape(polar_2x2(*b), (2, 2)), polar(matrix), atol=1e-8)


@settings(deadline=None)  # the first call may compile
@given(st.integers(0, 10_000), st.integers(1, 7), st.sampled_from([0.01, 1.0, 10.0]), st.booleans())
def test_the_rotation_is_the_projection_of_the_rank_one_step(seed, d, size, parallel):
    rng = np.random.default_rng(seed)
    A = initial_transform("orthogonal", d, rng)
    phi = rng.standard_normal(d)
    y = A.T @ phi
    u = size * y if parallel else size * rng.standard_normal(d)
    if abs(1 + y @ u) < 1e-3:
        return  # nearly singular: the projection is not unique
    found, w = A.copy(), A.sum(axis=1)
    add_rank_one_projected(found, w, np.ones(d), y, u, np.empty(d), np.empty(d))
    np.testing.assert_allclose(found, polar(A + np.outer(phi, u)), atol=1e-9)
    np.testing.assert_allclose(w, found.sum(axis=1), atol=1e-9)


def test_a_step_of_size_zero_changes_nothing():
    A = initial_transform("orthogonal", 3, np.random.default_rng(0))
    found, w = A.copy(), A.sum(axis=1)
    add_rank_one_projected(found, w, np.ones(3), A[0], np.zeros(3), np.empty(3), np.empty(3))
    np.testing.assert_array_equal(found, A)
