"""The study ``decorrelation``: which doses its factorial has.

    python -m benchmarks.decorrelation doses FOLDER

``results/decorrelation/README.md`` is the protocol. FOLDER is the pilot's, or its export. No score is read.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.command_line import Parser, exit_code, table
from gramian.core.errors import UserError
from gramian.core.statistics import Array
from gramian.study.store import Study, read_study

INTENDED = {"norm": ("feature_norm", -1), "isotropy": ("participation_ratio", 1)}
"""Of a penalty: the statistic that it is meant to change, and the sign of the change."""
SHARES = {"weak": 0.1, "medium": 0.5}
"""How far towards the largest change a dose is."""


def log_statistics(study: Study, column: str) -> pl.DataFrame:
    """A row for each run: the mean of log ``column`` over held-out measures in the last half of the run's frames."""
    second_half = pl.col("frames") > pl.col("frames_target") / 2
    targets = study.runs.select("run", "kind", "kappa", "frames_target")
    rows = study.held_out.join(targets, on="run").filter(second_half)
    return rows.group_by("run", "game", "arm", "kind", "kappa", "seed").agg(value=pl.col(column).log().mean())


def changes(study: Study, penalty: str) -> tuple[Array, Array]:
    """Doses of a penalty ``[K]``, rising, and by how much each changes its statistic as intended, a mean over games."""
    column, sign = INTENDED[penalty]
    found = log_statistics(study, column)
    plain = found.filter(kind="dqn").select("game", "seed", plain="value")
    doses = found.filter(kind=penalty).join(plain, on=["game", "seed"], how="left").sort("kappa")
    by_dose = doses.group_by("kappa", maintain_order=True).agg(change=sign * (pl.col("value") - pl.col("plain")))
    values = [np.array(games, float) for games in by_dose["change"].to_list()]
    if len({len(games) for games in values}) != 1 or not all(np.isfinite(games).all() for games in values):
        raise UserError(f"the pilot of {penalty!r} is not whole: every game needs every dose and 'none', each measured")
    return by_dose["kappa"].to_numpy(), np.array([games.mean() for games in values])


def first_reached(kappas: Array, change: Array, goal: float) -> float:
    """The least κ with this change: linear in log κ between two doses, proportional to κ below the lowest.

    Examples
    --------
    >>> first_reached(np.array([1.0, 100.0]), np.array([2.0, 4.0]), 3.0), first_reached(
    ...     np.array([1.0, 100.0]), np.array([2.0, 4.0]), 1.0
    ... )
    (10.0, 0.5)
    """
    at = int(np.argmax(change >= goal))
    if at == 0:
        return float(kappas[0] * goal / change[0])
    share = (goal - change[at - 1]) / (change[at] - change[at - 1])
    return float(np.exp((1 - share) * np.log(kappas[at - 1]) + share * np.log(kappas[at])))


def chosen(kappas: Array, change: Array) -> dict[str, tuple[float, float]]:
    """Of weak and medium: the κ at which the change is reached, and the dose of the grid that stands for it."""
    if change.max() <= 0:
        raise UserError("no dose of the pilot changes its statistic as intended; extend the grid")
    reached = {name: first_reached(kappas, change, share * change.max()) for name, share in SHARES.items()}
    at = {name: int(np.abs(np.log(kappas / kappa)).argmin()) for name, kappa in reached.items()}
    if at["weak"] == at["medium"]:
        at["weak"] -= 1
    if at["weak"] < 0:
        raise UserError(f"weak and medium are both the lowest dose, {kappas[0]:g}; extend the grid")
    return {name: (reached[name], float(kappas[at[name]])) for name in SHARES}


def doses(study: Study) -> str:
    """The changes of every dose and the doses of the factorial, as Markdown."""
    text = ""
    for penalty, (column, _) in INTENDED.items():
        kappas, change = changes(study, penalty)
        found = chosen(kappas, change)
        rows = [
            [f"{kappa:g}", f"{value:+.3f}", f"{value / change.max():.0%}"]
            for kappa, value in zip(kappas, change, strict=True)
        ]
        text += table([f"κ of `{penalty}`", f"change of log {column}", "of the largest"], rows) + "\n"
        text += "".join(f"- {name}: reached at {at:.3g}, so {dose:g}\n" for name, (at, dose) in found.items()) + "\n"
    return text.rstrip("\n") + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""

    def work() -> None:
        parser = Parser("decorrelation", __doc__)
        parser.add_argument("command", choices=["doses"], help="weak and medium doses, from the pilot's statistics")
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="a study's folder, or its export")
        options = parser.parse_args(arguments)
        print(doses(read_study(options.folder)), end="")

    return exit_code("decorrelation", work)


if __name__ == "__main__":
    sys.exit(main())
