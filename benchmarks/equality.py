"""Whether the Gram form is the covariance form: their difference in value and gradient, in float64.

    python -m benchmarks.equality [--csv FILE] [--quick]

The last column has Σ_i Var_i² with the variance (a mean square about the mean) in place of the diagonal of the matrix:
the formula as it reads, for features that are not centred.
"""

import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from benchmarks.command_line import Parser, exit_code, new_file, write_csv
from benchmarks.precision import CASES, value_and_gradient
from gramian import covariance_penalty, gram_penalty

SAMPLES = (4, 32, 256)
FEATURES = (2, 32, 512, 2048)
COLUMNS = ("case", "n", "d", "centred", "value_difference", "gradient_difference", "value_difference_variance")


def differences(features: Tensor, *, centered: bool) -> tuple[float, float, float]:
    """Differences of the two forms relative to ‖C‖² and to the norm of its gradient; that of the literal formula."""
    x = features - features.mean(0) if centered else features
    n = len(x)
    gram = x @ x.mT
    size, gradient_size = gram.square().sum() / n**2, (4 / n**2 * gram @ x).norm()
    (value, gradient), (other, other_gradient) = (
        value_and_gradient(form, features, centered) for form in (gram_penalty, covariance_penalty)
    )
    literal = (gram.square().sum() - (n * features.var(0, correction=0)).square().sum()) / n**2
    return (
        float((value - other).abs() / size),
        float((gradient - other_gradient).norm() / gradient_size),
        float((literal - other).abs() / size),
    )


def measured(arguments: Sequence[str] | None) -> None:
    """Print one row for each kind of features, size and centring, or write them as CSV too."""
    parser = Parser("equality", __doc__)
    parser.add_argument("--csv", type=new_file, help="write the rows to this file")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args(arguments)
    samples, features = (SAMPLES[:2], FEATURES[:2]) if options.quick else (SAMPLES, FEATURES)
    rows = []
    for case, make in CASES.items():
        generator = torch.Generator().manual_seed(0)
        for n in samples:
            for d in features:
                made = make(n, d, generator)
                for centered in (True, False):
                    found = [f"{value:.2e}" for value in differences(made, centered=centered)]
                    rows.append((case, n, d, "yes" if centered else "no", *found))
    for row in (COLUMNS, *rows):
        print(*row, sep=",")
    if options.csv:
        write_csv(options.csv, COLUMNS, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""
    return exit_code("equality", lambda: measured(arguments))


if __name__ == "__main__":
    sys.exit(main())
