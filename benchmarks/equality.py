"""Whether the Gram form is the covariance form: their difference in value and gradient, in float64.

    python -m benchmarks.equality [--csv FILE] [--quick]

The last column has Σ_i Var_i² with the variance (a mean square about the mean) in place of the diagonal of the matrix:
the formula as it reads, for features that are not centred.
"""

import csv
import io

import torch
from torch import Tensor

from benchmarks.command_line import Parser, new_file
from benchmarks.precision import CASES, Penalty
from gramian import covariance_penalty, gram_penalty
from gramian.core.files import output_folder, replace_text

SAMPLES = (4, 32, 256)
FEATURES = (2, 32, 512, 2048)
COLUMNS = ("case", "n", "d", "centred", "value_difference", "gradient_difference", "value_difference_variance")


def differences(features: Tensor, *, centered: bool) -> tuple[float, float, float]:
    """Differences of the two forms relative to ‖C‖² and to the norm of its gradient; that of the literal formula."""
    x = features - features.mean(0) if centered else features
    n = len(x)
    gram = x @ x.mT
    size, slope = gram.square().sum() / n**2, (4 / n**2 * gram @ x).norm()
    (value, gradient), (other, other_gradient) = (
        _value_and_gradient(form, features, centered=centered) for form in (gram_penalty, covariance_penalty)
    )
    literal = (gram.square().sum() - (n * features.var(0, correction=0)).square().sum()) / n**2
    return (
        float((value - other).abs() / size),
        float((gradient - other_gradient).norm() / slope),
        float((literal - other).abs() / size),
    )


def _value_and_gradient(penalty: Penalty, features: Tensor, *, centered: bool) -> tuple[Tensor, Tensor]:
    leaf = features.detach().requires_grad_()
    value = penalty(leaf, centered=centered)
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.detach(), gradient


def main() -> None:
    """Print one row for each kind of features, size and centring, or write them as CSV."""
    parser = Parser("equality", __doc__)
    parser.add_argument("--csv", type=new_file, help="write the rows to this file")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args()
    samples, features = (SAMPLES[:2], FEATURES[:2]) if options.quick else (SAMPLES, FEATURES)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for case, make in CASES.items():
        generator = torch.Generator().manual_seed(0)
        for n in samples:
            for d in features:
                made = make(n, d, generator)
                for centered in (True, False):
                    found = [f"{value:.2e}" for value in differences(made, centered=centered)]
                    table.writerow([case, n, d, "yes" if centered else "no", *found])
    print(text.getvalue(), end="")
    if options.csv:
        output_folder(options.csv.parent)
        replace_text(options.csv, text.getvalue())


if __name__ == "__main__":
    main()
