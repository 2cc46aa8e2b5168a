"""The study ``decorrelation``: the doses of its factorial, and its analysis.

    python -m benchmarks.decorrelation doses FOLDER
    python -m benchmarks.decorrelation analyse FOLDER --out FOLDER

``results/decorrelation/README.md`` is the protocol. ``doses`` reads the pilot's features and no score. ``analyse``
reads the study or a later part. Of an unfinished one it takes the complete seeds, without a test.

| file | content |
| --- | --- |
| ``summary.md`` | what is missing; every table |
| ``doses-area.csv``, ``doses-final.csv`` | each arm against the plain agent, also by game; changes of the features |
| ``effects-….csv``, ``tests-area.csv`` | main effects and interaction of the factorial, and their tests |
| ``association.csv`` | which statistic of the features goes with the score, another one held fixed |
| ``doses`` | score by dose of shrinkage and of decorrelation, as PNG and SVG |
| ``measured`` | score by measured statistics of the features, all penalties |
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import scipy.stats
from matplotlib.figure import Figure

from benchmarks.command_line import Parser, exit_code, new_folder, table, whole
from gramian.core.arms import PLAIN, arm_styles, kind_of, order_arms, parse_arm
from gramian.core.errors import UserError
from gramian.core.files import replace_text
from gramian.core.progress import counted
from gramian.core.statistics import FEWEST_SEEDS, Array, holm, ratios, standard_error, student
from gramian.report.analysis import Options
from gramian.report.figures import draw
from gramian.report.scores import FINISHED, Scores
from gramian.study.manifest import Planned, read_planned
from gramian.study.store import Study, read_study

FEATURES = {
    "log_norm": pl.col("feature_norm").log(),
    "log_ratio": pl.col("participation_ratio").log(),
    "correlation": pl.col("mean_abs_correlation"),
}
"""Held-out statistics of a run."""
WORDS = {"log_norm": "log ‖φ‖", "log_ratio": "log participation ratio", "correlation": "mean absolute correlation"}
SINGLE = ("norm", "isotropy", "correlation", "gram")
"""Penalties of which there are six doses."""
INTENDED = {"norm": ("log_norm", -1), "isotropy": ("log_ratio", 1)}
"""Of a penalty: the statistic that it is meant to change, and the sign of the change."""
SHARES = {"weak": 0.1, "medium": 0.5}
"""How far towards the largest change a dose is."""
STRONGEST = 2
"""Doses of each penalty that the sensitivity analysis of the association leaves out."""


# ---- the pilot -------------------------------------------------------------------------------------------------------


def last_half(study: Study, statistic: str) -> pl.DataFrame:
    """A row for each run with held-out measures: the mean of a statistic over the last half of the run's frames."""
    second_half = pl.col("frames") > pl.col("frames_target") / 2
    targets = study.runs.select("run", "kind", "kappa", "frames_target")
    rows = study.held_out.join(targets, on="run").filter(second_half)
    return rows.group_by("run", "game", "arm", "kind", "kappa", "seed").agg(value=FEATURES[statistic].mean())


def changes(study: Study, penalty: str) -> tuple[Array, Array]:
    """Doses of a penalty ``[K]``, rising, and by how much each changes its statistic as intended, a mean over games."""
    statistic, sign = INTENDED[penalty]
    found = last_half(study, statistic)
    plain = found.filter(kind=PLAIN).select("game", "seed", plain="value")
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
    for penalty, (statistic, _) in INTENDED.items():
        kappas, change = changes(study, penalty)
        found = chosen(kappas, change)
        rows = [
            [f"{kappa:g}", f"{value:+.3f}", f"{value / change.max():.0%}"]
            for kappa, value in zip(kappas, change, strict=True)
        ]
        text += table([f"κ of `{penalty}`", f"intended change of {statistic}", "of the largest"], rows) + "\n"
        text += "".join(f"- {name}: reached at {at:.3g}, so {dose:g}\n" for name, (at, dose) in found.items()) + "\n"
    return text.rstrip("\n") + "\n"


# ---- the study -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What was measured in the complete seeds. Arrays are ``[S, G]``, of S seeds and G games."""

    games: list[str]
    seeds: list[int]
    incomplete: list[str]
    """A line for each seed that is left out."""
    tested: bool
    """Whether there are enough complete seeds for tests."""
    scores: dict[str, dict[str, Array]]
    """``area`` and ``final``, by arm: learned area and learned final score, 0 for random play."""
    features: dict[str, dict[str, Array]]
    """Statistics of `FEATURES`, by arm."""

    @property
    def arms(self) -> list[str]:
        """All arms, the plain agent first."""
        return list(self.scores["area"])

    def percent(self, arm: str, score: str = "area") -> Array:
        """Pseudo-values ``[S, G]`` of an arm's score in percent of what the plain agent learns; see `ratios`."""
        return 100 * ratios(self.scores[score][arm], self.scores[score][PLAIN])

    def change(self, arm: str, statistic: str) -> float:
        """Mean over games and seeds of a statistic's difference to the plain agent in the same block."""
        own = self.features[statistic]
        return float(np.nanmean(own[arm] - own[PLAIN]))


def outcome(study: Study, planned: Planned, fewest: int) -> Outcome:
    """Learned scores and features of the seeds whose planned runs have all ended; tested from ``fewest`` seeds on."""
    arms, games = order_arms(study.runs["arm"]), sorted(study.runs["game"].unique())
    if PLAIN not in arms:
        raise UserError("the study has no arm 'dqn' (none) to compare with; name the folder with all of its parts")
    cells = set(product(games, arms, study.runs["seed"])) | set(planned.cells)
    ended = study.runs.filter(pl.col("state").is_in(FINISHED)).select("game", "arm", "seed")
    left = dict.fromkeys(sorted({cell[2] for cell in cells}), 0)
    for _, _, seed in cells - set(ended.iter_rows()):
        left[seed] += 1
    seeds = [seed for seed, missing in left.items() if not missing]
    tables = Scores(study, Options.human, arms, games, sorted(study.runs["seed"].unique()))
    at = [tables.seeds.index(seed) for seed in seeds]
    features: dict[str, dict[str, Array]] = {}
    for name in FEATURES:
        features[name] = {arm: np.full((len(seeds), len(games)), np.nan) for arm in arms}
        rows = last_half(study, name).filter(pl.col("seed").is_in(seeds), pl.col("value").is_not_null())
        for arm, seed, game, value in rows.select("arm", "seed", "game", "value").iter_rows():
            features[name][arm][seeds.index(seed), games.index(game)] = value
    return Outcome(
        games,
        seeds,
        [f"- seed {seed}: {counted(missing, 'run')} missing" for seed, missing in left.items() if missing],
        len(seeds) >= fewest,
        {
            "area": {arm: tables.auc[arm][at] - tables.random for arm in arms},
            "final": {arm: tables.final[arm][at] - tables.random for arm in arms},
        },
        features,
    )


def estimates(values: Mapping[str, Array], tested: bool) -> pl.DataFrame:
    """Of named pseudo-values ``[S, G]`` the mean with Student's interval; if tested, p against 0 by Holm's method."""
    rows = [(name, *(float(end) for end in student(own)), *standard_error(own)) for name, own in values.items()]
    table = pl.DataFrame(rows, schema=["name", "value", "low", "high", "error", "freedom"], orient="row")
    p = 2 * scipy.stats.t.sf(abs(table["value"] / table["error"]), table["freedom"])
    return table.drop("error", "freedom").with_columns(
        p=pl.Series(holm(p) if tested else [None] * len(p), dtype=pl.Float64)
    )


def joint_test(contrasts: Array) -> tuple[float, int, float, float]:
    """F, its degrees of freedom and p of contrasts ``[k, S, G]`` that are 0 in the mean over games, all at once.

    Games have covariances of their own, so that the freedom is Krishnamoorthy and Yu's, Satterthwaite's where k = 1.
    """
    count, seeds, games = contrasts.shape
    mean = contrasts.mean((1, 2))
    covariances = [np.cov(contrasts[:, :, at]).reshape(count, count) / (seeds * games**2) for at in range(games)]
    inverse = np.linalg.inv(np.sum(covariances, axis=0))
    shares = [covariance @ inverse for covariance in covariances]
    spread = sum(np.trace(share @ share) + np.trace(share) ** 2 for share in shares) / (seeds - 1)
    freedom = float(count * (count + 1) / spread)
    last = freedom - count + 1
    f = float(last / (count * freedom) * (mean @ inverse @ mean))
    return f, count, last, float(scipy.stats.f.sf(f, count, last))


def factorial(arms: Iterable[str]) -> tuple[list[float], list[float], list[str]]:
    """Doses of ``norm`` and of ``isotropy`` with 0, and the arms of all pairs; no arms without a combined one."""
    combined = [parse_arm(arm, 0.0) for arm in arms if kind_of(arm) == "norm+isotropy"]
    norms, isotropies = (sorted({0.0} | {arm.terms[at].kappa for arm in combined}) for at in range(2))
    cells = []
    for norm, isotropy in product(norms, isotropies) if combined else ():
        terms = [f"{kind}:{kappa!r}" for kind, kappa in (("norm", norm), ("isotropy", isotropy)) if kappa]
        cells.append("+".join(terms) or PLAIN)
    return norms, isotropies, cells


def effects(found: Outcome, score: str) -> dict[str, dict[str, Array]]:
    """Contrasts of the factorial within blocks ``[S, G]`` by name: both main effects and the interaction."""
    norms, isotropies, cells = factorial(found.arms)
    y = np.stack([found.percent(arm, score) for arm in cells])
    y = y.reshape(len(norms), len(isotropies), *y.shape[1:])
    return {
        "shrinkage": {f"norm {norms[a]:g}": (y[a] - y[0]).mean(0) for a in range(1, len(norms))},
        "decorrelation": {
            f"isotropy {isotropies[b]:g}": (y[:, b] - y[:, 0]).mean(0) for b in range(1, len(isotropies))
        },
        "interaction": {
            f"norm {norms[a]:g} with isotropy {isotropies[b]:g}": y[a, b] - y[a, 0] - y[0, b] + y[0, 0]
            for a, b in product(range(1, len(norms)), range(1, len(isotropies)))
        },
    }


def association(found: Outcome, arms: Sequence[str], second: str) -> Array:
    """Slopes ``[2, S, G]`` by log ‖φ‖ and by ``second``: percent of what DQN learns for a standard deviation of one.

    Least squares over the arms of a block, so that either statistic is held fixed for the other one.
    """
    plain = found.scores["area"][PLAIN].mean(0)
    y = np.stack([100 * found.scores["area"][arm] / plain for arm in arms])  # [A, S, G]
    x = np.stack([[found.features[name][arm] for arm in arms] for name in ("log_norm", second)])  # [2, A, S, G]
    x /= np.nanstd(x, axis=(1, 2), keepdims=True)
    slopes = np.full((2, *y.shape[1:]), np.nan)
    for block in np.ndindex(*y.shape[1:]):
        own = np.array([np.ones(len(arms)), *x[:, :, *block], y[:, *block]])
        own = own[:, np.isfinite(own).all(0)]
        slopes[:, *block] = np.linalg.lstsq(own[:3].T, own[3])[0][1:]
    return slopes


# ---- tables ----------------------------------------------------------------------------------------------------------


def effect_tables(found: Outcome, score: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Each contrast of the factorial, and the joint tests of its effects; no test but of the area."""
    tested = found.tested and score == "area"
    contrasts = effects(found, score)
    rows = [(name, *joint_test(np.stack([*own.values()]))) for name, own in contrasts.items() if tested]
    joint = pl.DataFrame(rows, schema=["effect", "F", "df", "error_df", "p"], orient="row")
    every = {f"{effect}: {name}": own for effect, named in contrasts.items() for name, own in named.items()}
    return estimates(every, tested), joint.with_columns(p=pl.Series(holm(joint["p"]), dtype=pl.Float64))


def dose_table(found: Outcome, score: str) -> pl.DataFrame:
    """Each arm against the plain agent in percent of what that learns, with measured changes and percent by game."""
    percent = {arm: found.percent(arm, score) for arm in found.arms[1:]}
    measured = {name: [found.change(arm, name) for arm in percent] for name in FEATURES}
    by_game = {game: [own[:, at].mean() for own in percent.values()] for at, game in enumerate(found.games)}
    rows = estimates({arm: own - 100 for arm, own in percent.items()}, found.tested and score == "area")
    return rows.with_columns(pl.Series(name, own) for name, own in {**measured, **by_game}.items())


def association_table(found: Outcome) -> pl.DataFrame:
    """The slopes of `association` with either second statistic; with all doses, and without the strongest."""
    kinds = {kind: [arm for arm in found.arms if kind_of(arm) == kind] for kind in map(kind_of, found.arms)}
    strong = {arm for kind in SINGLE for arm in kinds[kind][-STRONGEST:]}
    tables = []
    for which, arms in (("", found.arms), (", weaker doses", [arm for arm in found.arms if arm not in strong])):
        slopes: dict[str, Array] = {}
        for second in ("log_ratio", "correlation"):
            both = association(found, arms, second)
            slopes |= {f"log_norm at fixed {second}{which}": both[0], f"{second} at fixed log_norm{which}": both[1]}
        tables.append(estimates(slopes, found.tested and not which))
    return pl.concat(tables)


def shown(rows: pl.DataFrame) -> str:
    """Rows of `estimates` as Markdown, with the measured changes where there are any."""
    measured = [name for name in FEATURES if name in rows.columns]
    lines = []
    for row in rows.iter_rows(named=True):
        interval = f"{row['value']:+.1f} ({row['low']:+.1f} to {row['high']:+.1f})"
        p = "–" if row["p"] is None else f"{row['p']:.3g}"
        lines.append([row["name"], interval, p, *(f"{row[name]:+.2f}" for name in measured)])
    return table(["", "% of what DQN learns", "p (Holm)", *(f"change of {WORDS[name]}" for name in measured)], lines)


def summary(found: Outcome, tables: Mapping[str, pl.DataFrame]) -> str:
    """Every table as Markdown, after what is missing."""
    lines = ["# Decorrelation or shrinkage", "", f"Complete seeds: {', '.join(map(str, found.seeds)) or 'none'}."]
    lines += ["", "Left out:", "", *found.incomplete] if found.incomplete else []
    if not found.tested:
        lines += ["", "Too few complete seeds for a test: intervals describe, and no verdict follows."]
    for name, rows in tables.items():
        lines += ["", f"## {name}", ""]
        if "F" in rows.columns:
            lines += [
                f"- {who}: F({k}, {last:.1f}) = {f:.2f}, p (Holm) = {p:.3g}" for who, f, k, last, p in rows.rows()
            ]
        else:
            lines.append(shown(rows).rstrip())
    return "\n".join(lines) + "\n"


# ---- figures ---------------------------------------------------------------------------------------------------------


def dose_figure(found: Outcome) -> Figure:
    """Score by dose of shrinkage and of decorrelation: the games in grey, their mean with its 95 % band in colour."""
    figure = Figure(figsize=(6.6, 3.1), layout="constrained")
    panels = (
        ("norm", "log_norm", "shrinkage: penalty norm", "feature norm"),
        ("isotropy", "log_ratio", "decorrelation: penalty isotropy", "participation ratio"),
    )
    for axes, (kind, statistic, heading, words) in zip(figure.subplots(1, 2, sharey=True), panels, strict=True):
        arms = [PLAIN, *(arm for arm in found.arms if kind_of(arm) == kind)]
        color = arm_styles([kind])[kind].color
        at = range(len(arms))
        percent = [found.percent(arm) for arm in arms]
        axes.plot(at, [own.mean(0) for own in percent], color="0.7", linewidth=0.8)
        mean = np.array([student(own) for own in percent])
        axes.fill_between(at, mean[:, 1], mean[:, 2], color=color, alpha=0.25, linewidth=0)
        axes.plot(at, mean[:, 0], color=color, linewidth=2, marker="o")
        axes.axhline(100, color="black", linewidth=0.8, linestyle=(0, (4, 2)))
        kappas = [f"{parse_arm(arm, 0.0).kappa:g}" for arm in arms]
        factors = [f"×{np.exp(found.change(arm, statistic)):.2g}" for arm in arms]
        axes.set_xticks(at, [f"{kappa}\n{factor}" for kappa, factor in zip(kappas, factors, strict=True)])
        axes.set_title(heading)
        axes.set_xlabel(f"κ, and the measured change of the {words}")
    figure.axes[0].set_ylabel("area under the learning curve,\n% of what DQN learns")
    return figure


def measured_figure(found: Outcome) -> Figure:
    """Score by the measured change of each statistic: a line for each penalty, by rising κ."""
    figure = Figure(figsize=(7.6, 3.2), layout="constrained")
    for axes, statistic in zip(figure.subplots(1, len(FEATURES), sharey=True), FEATURES, strict=True):
        for kind, style in arm_styles(SINGLE).items():
            arms = [PLAIN, *(arm for arm in found.arms if kind_of(arm) == kind)]
            mean = np.array([student(found.percent(arm)) for arm in arms])
            axes.errorbar(
                [found.change(arm, statistic) for arm in arms], mean[:, 0], np.abs(mean[:, 1:] - mean[:, :1]).T,
                color=style.color, marker=style.symbol, linestyle=style.linestyle, markersize=4, elinewidth=0.8,
                label=kind,
            )  # fmt: skip
        axes.axhline(100, color="black", linewidth=0.8, linestyle=(0, (4, 2)))
        axes.set_xlabel(f"change of {WORDS[statistic]}")
    figure.axes[0].set_ylabel("area, % of what DQN learns")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    return figure


def analyse(study: Study, planned: Planned, out: Path, fewest: int) -> str:
    """Write every file; gives the summary."""
    found = outcome(study, planned, fewest)
    tables: dict[str, pl.DataFrame] = {}
    jobs: dict[str, Callable[[], Figure]] = {}
    if len(found.seeds) >= FEWEST_SEEDS:
        for score in found.scores:
            if factorial(found.arms)[2]:
                tables[f"effects-{score}"], tables[f"tests-{score}"] = effect_tables(found, score)
            tables[f"doses-{score}"] = dose_table(found, score)
        if {kind_of(arm) for arm in found.arms} >= {*SINGLE}:
            tables["association"] = association_table(found)
            jobs = {"doses": lambda: dose_figure(found), "measured": lambda: measured_figure(found)}
    tables = {name: rows for name, rows in tables.items() if rows.height}
    for name, rows in tables.items():
        replace_text(out / f"{name}.csv", rows.write_csv())
    if jobs:
        draw(jobs, out)
    text = summary(found, tables)
    replace_text(out / "summary.md", text)
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code."""

    def work() -> None:
        parser = Parser("decorrelation", __doc__)
        parser.add_argument("command", choices=["doses", "analyse"])
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="a study's folder, or its export")
        parser.add_argument("--out", type=new_folder, metavar="FOLDER", help="of analyse: write the files into it")
        parser.add_argument("--seeds", type=whole(5, 1000), default=10, help="of analyse: test from so many seeds on")
        options = parser.parse_args(arguments)
        if options.command == "doses":
            print(doses(read_study(options.folder)), end="")
        elif options.out is None:
            parser.error("analyse needs --out FOLDER")
        else:
            study, planned = read_study(options.folder), read_planned(options.folder)
            print(analyse(study, planned, options.out, options.seeds), end="")

    return exit_code("decorrelation", work)


if __name__ == "__main__":
    sys.exit(main())
