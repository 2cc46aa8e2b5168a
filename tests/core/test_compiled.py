from gramian.core.compiled import exact_kernel, kernel


@exact_kernel
def left(a, b):
    return (a + b) - a


@kernel
def left_from_a_kernel(a, b):
    return left(a, b)


def test_an_exact_kernel_is_exact_though_a_kernel_that_may_reorder_compiles_it():
    assert left_from_a_kernel(1e16, 1.0) == 0.0
