"""Writes the tables of ``docs/results.md`` into ``docs/tables``, from the tables in ``results``.

Run it as ``python docs/results.py`` after a result has changed. Of a study that has not been run, its table says so.

A study's folder in ``results`` holds ``scores.csv`` and ``features.csv`` of ``gramian study report``; that of MinAtar
also the ``kappa.csv`` of the report of either tuning study, as ``kappa-a.csv`` and ``kappa-b.csv``. Intervals are 95 %
percentile intervals of the stratified bootstrap over seeds; differences are of pairs of the same game and seed.
"""

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from gramian.files import replace_text
from gramian.palette import order_arms
from gramian.report import reference, statistics
from gramian.report.statistics import Array, Interval

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"
Row = dict[str, str]

BASELINES = {"minatar": ("dqn", "norm (matched)", "norm"), "atari": ("dqn", "norm")}
"""What the arms of each study are compared with, in turn."""
FEATURES = {
    "training_norm": "‖φ‖ in training",
    "held_out_sparsity": "share of zeros",
    "held_out_effective_rank": "effective rank",
    "held_out_mean_abs_correlation": "mean |correlation|",
    "held_out_dormant_share_0.025": "dormant share",
}


def read(path: Path) -> list[Row]:
    """Read a table of the results; nothing where there is none."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def awaited(*paths: Path) -> str:
    """What stands in the place of a table that cannot be made yet."""
    return f"*Not yet run: awaits {', '.join(f'`results/{path.relative_to(RESULTS)}`' for path in paths)}.*\n"


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Markdown, the first column to the left and the others to the right."""
    marks = ["---", *["---:"] * (len(header) - 1)]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in (header, marks, *lines)
    )


def number(value: float, *, sign: bool = False) -> str:
    """Three significant digits, a true minus; with its sign where it is a difference."""
    if not math.isfinite(value):
        return "–"
    places = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    shown = f"{value:,.{min(places, 3)}f}"
    return (f"+{shown}" if sign and value > 0 else shown).replace("-", "−")


def interval_text(found: Interval, at: int | None = None, *, sign: bool = False) -> str:
    """An estimate with its interval; bold where the interval leaves out 0 and it is a difference."""
    value, low, high = (float(part if at is None else part[at]) for part in found)
    text = f"{number(value, sign=sign)} [{number(low, sign=sign)}, {number(high, sign=sign)}]"
    return f"**{text}**" if sign and (low > 0 or high < 0) else text


class Grid:
    """A column of a table of runs as arrays ``[S, G]`` by arm, NaN where there is no run."""

    def __init__(self, rows: Sequence[Row], column: str) -> None:
        rows = [row for row in rows if row["state"] in ("done", "diverged")]
        self.arms = order_arms(row["arm"] for row in rows)
        self.games = sorted({row["game"] for row in rows}, key=reference.title)
        self.seeds = sorted({int(row["seed"]) for row in rows})
        shape = len(self.seeds), len(self.games)
        self.values = {arm: np.full(shape, np.nan) for arm in self.arms}
        for row in rows:
            at = self.seeds.index(int(row["seed"])), self.games.index(row["game"])
            self.values[row["arm"]][at] = float(row[column]) if row.get(column) else np.nan

    @property
    def titles(self) -> list[str]:
        """Names of the games."""
        return [reference.title(game) for game in self.games]

    def means(self, arm: str) -> Interval:
        """Of each game, with intervals."""
        return statistics.bootstrap(statistics.mean_over_runs, self.values[arm], np.random.default_rng(0), by_game=True)

    def compared(self, statistic: statistics.PairStatistic, arm: str, baseline: str, *, by_game: bool) -> Interval:
        """An arm with another, by pairs of the same game and seed."""
        pair: tuple[Array, Array] = self.values[arm], self.values[baseline]
        return statistics.bootstrap_pair(statistic, *pair, np.random.default_rng(0), paired=True, by_game=by_game)


def scores(study: str) -> str:
    """Mean return of the last 100 episodes of each arm in each game."""
    path = RESULTS / study / "scores.csv"
    if not (found := read(path)):
        return awaited(path)
    grid = Grid(found, "final_score")
    lines = []
    for arm in grid.arms:
        means = grid.means(arm)
        lines.append([f"`{arm}`", *(interval_text(means, at) for at in range(len(grid.games)))])
    return table([f"arm ({len(grid.seeds)} seeds)", *grid.titles], lines)


def against(study: str, baseline: str) -> str:
    """Differences to a baseline, and how often it is beaten."""
    path = RESULTS / study / "scores.csv"
    if not (found := read(path)):
        return awaited(path)
    final, auc = (Grid(found, column) for column in ("final_score", "auc"))
    if baseline not in final.arms:
        return f"*The study has no arm `{baseline}`.*\n"
    lines = []
    for arm in final.arms:
        if arm == baseline:
            continue
        by_game = final.compared(statistics.paired_difference, arm, baseline, by_game=True)
        won = [one.compared(statistics.paired_improvement, arm, baseline, by_game=False) for one in (final, auc)]
        lines.append(
            [
                f"`{arm}`",
                *(interval_text(by_game, at, sign=True) for at in range(len(final.games))),
                *map(interval_text, won),
            ]
        )
    return table([f"less `{baseline}`", *final.titles, "pairs won", "by area"], lines)


def features(study: str) -> str:
    """What the features were like at the end of training."""
    path = RESULTS / study / "features.csv"
    if not (found := read(path)):
        return awaited(path)
    grids = {name: Grid(found, column) for column, name in FEATURES.items() if column in found[0]}
    first = next(iter(grids.values()))
    lines = []
    for at, game in enumerate(first.titles):
        for arm in first.arms:
            cells = [interval_text(grid.means(arm), at) for grid in grids.values()]
            lines.append([f"{game}, `{arm}`", *cells])
    return table(["game, arm", *grids], lines)


def chosen(study: str) -> str:
    """The κ of each penalty that was tuned, and how sure the choice is."""
    paths = [RESULTS / study / f"kappa-{fold}.csv" for fold in "ab"]
    if not all(path.exists() for path in paths):
        return awaited(*(path for path in paths if not path.exists()))
    lines = []
    for fold, path in zip("ab", paths, strict=True):
        rows = read(path)
        for penalty in dict.fromkeys(row["penalty"] for row in rows):
            own = [row for row in rows if row["penalty"] == penalty]
            best = next(row for row in own if row["chosen"] == "true")
            ends = [float(best[name]) if best[name] else math.nan for name in ("score", "score_low", "score_high")]
            within = [row["kappa"] for row in own if row["score"] and float(row["score"]) >= ends[1]]
            edge = " (an end of the grid)" if best in (own[0], own[-1]) else ""
            shown = f"{number(ends[0])} [{number(ends[1])}, {number(ends[2])}]"
            kappas = ", ".join(f"{float(kappa):g}" for kappa in within)
            lines.append([fold, f"`{penalty}`", f"{float(best['kappa']):g}{edge}", shown, kappas])
    return table(["fold", "penalty", "chosen κ", "score", "κ within its interval"], lines)


def kappas(study: str) -> str:
    """The κ that every arm was run with in each game."""
    path = RESULTS / study / "features.csv"
    if not (found := read(path)):
        return awaited(path)
    grid = Grid(found, "kappa")
    lines = []
    for arm in grid.arms:
        own = np.nanmax(np.where(np.isnan(grid.values[arm]), -np.inf, grid.values[arm]), axis=0)
        lines.append([f"`{arm}`", *(f"{value:g}" if np.isfinite(value) else "–" for value in own)])
    return table(["arm", *grid.titles], lines)


def figures(study: str) -> str:
    """The figures that there are."""
    names = {
        "learning-curves": "Learning curves: mean of the last 100 episodes, 95 % intervals over seeds",
        "feature-norm": "‖φ‖ during training",
        "sparsity": "Active features and sparsity on Seaquest",
        "dynamics": "Norms and gradients on Seaquest",
    }
    there = [
        f"![{text}](figures/results/{study}-{name}.png)\n"
        for name, text in names.items()
        if (DOCS / "figures" / "results" / f"{study}-{name}.png").exists()
    ]
    return "\n".join(there) or f"*Not yet run: awaits figures of the report of `{study}`.*\n"


def dopamine() -> str:
    """DQN beside Dopamine's."""
    path = RESULTS / "dopamine" / "dopamine.md"
    return path.read_text(encoding="utf-8") if path.exists() else awaited(path)


def tables() -> dict[str, Callable[[], str]]:
    """Every table of the page by its name."""
    made: dict[str, Callable[[], str]] = {"dopamine": dopamine, "minatar-chosen": lambda: chosen("minatar")}
    for study, baselines in BASELINES.items():
        made[f"{study}-kappas"] = lambda study=study: kappas(study)  # type: ignore[misc]
        made[f"{study}-scores"] = lambda study=study: scores(study)  # type: ignore[misc]
        made[f"{study}-features"] = lambda study=study: features(study)  # type: ignore[misc]
        made[f"{study}-figures"] = lambda study=study: figures(study)  # type: ignore[misc]
        for baseline in baselines:
            name = baseline.replace(" (", "-").replace(")", "")
            made[f"{study}-against-{name}"] = lambda study=study, baseline=baseline: against(study, baseline)  # type: ignore[misc]
    return made


def main() -> None:
    """Write every table."""
    for name, make in tables().items():
        replace_text(DOCS / "tables" / f"results-{name}.md", make())


if __name__ == "__main__":
    main()
