"""What happened to the features and gradients of a run while it was trained, from its logs."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gramian.core.errors import UserError

DYNAMICS = ("feature_norm", "grad_norm_body", "feature_cross", "grad_norm_head", "feature_std", "td_error")
"""Columns of ``metrics.csv`` in the paper's figure, in its order."""
HELD_OUT = (
    "effective_rank", "srank", "feature_rank", "participation_ratio", "mean_abs_correlation", "dormant_share_0.025",
)  # fmt: skip
"""Columns of ``representation.csv`` in the figure of the held-out measures."""
GROWTH = (
    "growth_log_head_gradient",
    "growth_log_feature_norm",
    "growth_log_td_error",
    "growth_share_feature_norm",
    "growth_share_td_error",
)
"""Names of `growth`."""
WINDOW_SHARE = 0.1
"""Share of the rows at each end of a log over which `growth` averages."""

Columns = dict[str, NDArray[np.float64]]


def read_columns(path: Path) -> Columns:
    """A CSV file of numbers by columns; a last line that was being written is left out."""
    try:
        whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
        heading, *rows = csv.reader(whole.splitlines())
        values = np.array([[float(cell) for cell in row] for row in rows]).reshape(len(rows), len(heading))
    except FileNotFoundError:
        raise UserError(f"there is no '{path}'; name the folder of a run that 'gramian train' has written") from None
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read '{path}': {error}") from error
    return dict(zip(heading, values.T, strict=True))


def growth(metrics: Mapping[str, Sequence[float] | NDArray[np.float64]]) -> dict[str, float]:
    """How much of the growth of the head's gradient comes from the features, and how much from the TD error.

    The gradient of the head's weights is the batch mean of (clipped TD error δ)·φ, so that
    ``log‖g‖ = log‖φ‖ + log abs(δ) + rest``, where the rest is how much the samples' gradients agree. The growth of each
    is the mean of its logarithm over the last tenth of the rows minus that over the first tenth; its share is its
    growth over that of log‖g‖. Rows in which one of the three is not a positive number are left out; with fewer than
    two rows everything is NaN. ``metrics`` has the columns ``grad_norm_head``, ``feature_norm`` and ``td_error``.
    """
    columns = [np.asarray(metrics[name], np.float64) for name in ("grad_norm_head", "feature_norm", "td_error")]
    usable = np.all([np.isfinite(column) & (column > 0) for column in columns], axis=0)
    if usable.sum() < 2:
        return dict.fromkeys(GROWTH, math.nan)
    logs = np.log([column[usable] for column in columns])
    window = max(1, round(WINDOW_SHARE * logs.shape[1]))
    gradient, norm, error = (logs[:, -window:].mean(1) - logs[:, :window].mean(1)).tolist()
    shares = (norm / gradient, error / gradient) if gradient else (math.nan, math.nan)
    return dict(zip(GROWTH, (gradient, norm, error, *shares), strict=True))
