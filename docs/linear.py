"""The tables of ``docs/linear.md`` and of its full page, from those in ``results/linear``.

``python -m docs.results`` writes them; ``python -m docs.linear`` draws the figures again.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.command_line import table
from gramian.core.csv_tables import Row, read_rows
from gramian.core.text import number

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results" / "linear"
FIGURES = DOCS / "figures" / "linear"

SETS = {"0": "no copies", "1": "every feature copied"}
QUESTIONS = {
    "the paper's pairing: same α": "the term and a larger step together",
    "of that, step size alone": "the larger step",
    "what remains at matched step size": "the term",
    "norm penalty at matched step size": "shrinking alone",
    "beyond the norm penalty": "decorrelation",
}
"""What the first table asks, and what each difference is the effect of."""
SPANS = {"steps": "all 50 episodes", "early": "first 10", "late": "last 10"}


def rows(name: str) -> list[Row]:
    """Read one table of the results."""
    return read_rows(RESULTS / f"{name}.csv")


def interval(row: Row, name: str, low: str = "", high: str = "", *, sign: bool = False, percent: bool = False) -> str:
    """An estimate with its interval."""
    scale, digits = (100.0, 2) if percent else (1.0, 3)
    columns = (name, low or f"{name}_low", high or f"{name}_high")
    value, below, above = (
        number(scale * float(row[column]), sign=sign and column == name, digits=digits) for column in columns
    )
    return f"{value}{' %' if percent else ''} [{below},\N{NO-BREAK SPACE}{above}]"


def error(row: Row, name: str) -> str:
    """A mean with its standard error."""
    mean, its = (float(row[f"{name}_{part}"] or "nan") for part in ("mean", "se"))
    return number(mean) + (f" ± {number(its, digits=2)}" if math.isfinite(its) else "")


def difference(row: Row) -> str:
    """Steps of a contrast, of arms at their best, in whole steps."""
    value, low, high = (f"{float(row[end]):,.0f}".replace("-", "−") for end in ("difference", "low", "high"))
    return f"{value if value.startswith('−') else f'+{value}'} [{low},\N{NO-BREAK SPACE}{high}]"


def contrast(question: str, copies: str, folder: str = "") -> Row:
    """One row of the contrasts."""
    found = rows(f"{folder}mountain_car_contrasts")
    return next(row for row in found if (row["question"], row["copies"]) == (question, copies))


def one_copy(question: str) -> str:
    """Steps of a contrast with one copied feature."""
    return difference(contrast(question, "one", "one_copy/"))


def by_set(found: Sequence[Row]) -> dict[tuple[str, str], dict[str, Row]]:
    """Rows by arm and λ, then by feature set."""
    grouped: dict[tuple[str, str], dict[str, Row]] = {}
    for row in found:
        grouped.setdefault((row["arm"], row["lambda"]), {})[row["copies"]] = row
    return grouped


# ---- the page --------------------------------------------------------------------------------------------------------


def answer() -> str:
    """Differences of steps on Mountain Car, and what each is the effect of."""
    lines = []
    for question, effect in QUESTIONS.items():
        own = [contrast(question, copies) for copies in SETS]
        lines.append([f"{own[0]['first']} minus {own[0]['second']}", effect, *map(difference, own)])
    return table(["steps per episode, each arm at its best", "the effect of", *SETS.values()], lines, words=2)


def two_sample(copies: str = "") -> str:
    """The two-sample term against its own control and `norm`, at equal settings; of one feature set the former."""
    if copies:
        return interval(contrast("beyond the norm penalty of two samples", copies, "two_sample/"), "ratio")
    questions = {
        "beyond the norm penalty of two samples": "its own control, two-sample norm",
        "beyond the norm penalty, unbiased": "norm, the control of the single-sample term",
    }
    lines = []
    for question, control in questions.items():
        ratios = (interval(contrast(question, copies, "two_sample/"), "ratio") for copies in SETS)
        lines.append([control, *ratios])
    return table(["ratio of steps to", *SETS.values()], lines)


SHORT = ("plain, α", "plain, α·d", "A, λ = 0", "A, single-sample (the paper)", "A, two-sample", "A, norm alone")
"""Arms of the short tables of areas."""


def areas(groups: Mapping[str, Sequence[Row]], arms: Sequence[str] = ()) -> str:
    """Area under the curve × 10³ in each group, and its difference to λ = 0 of its form with 1.96 standard errors."""
    lines: dict[tuple[str, str], list[str]] = {}
    for found in groups.values():
        for row in found:
            if not arms or row["arm"] in arms:
                names = ("area_mean", "area_minus_control_mean", "area_minus_control_se")
                area, minus, its = (1e3 * float(row[name]) for name in names)
                ends = [number(minus + z * its, sign=z == 0) for z in (0, -1.96, 1.96)]
                against = "–" if minus == its == 0 else f"{ends[0]} [{ends[1]},\N{NO-BREAK SPACE}{ends[2]}]"
                lines.setdefault((row["arm"], row["lambda"]), []).extend([number(area), against])
    header = [word for name in groups for word in (f"area × 10³, {name}", "minus λ = 0")]
    return table(["arm", "λ", *header], [[*key, *cells] for key, cells in lines.items()])


def regression(size: str = "") -> str:
    """Areas of the regression with both correlations; of few arms where ``short``."""
    found = [row for row in rows("regression_summary") if not size or row["lambda"] in ("0", "0.01")]
    groups = {f"ρ = {rho}": [row for row in found if row["rho"] == rho] for rho in ("0.99", "0")}
    return areas(groups, SHORT if size else ())


def td(name: str = "random processes", folder: str = "") -> str:
    """Areas of TD(0), of errors over that at the start."""
    return areas({name: rows(f"{folder}td_summary")})


def distances(*arms: str) -> str:
    """How far A is from orthogonal after a run, at the best step size of each arm and λ."""
    lines = [
        [arm, lam, *(error(both[copies], "distance") for copies in SETS)]
        for (arm, lam), both in by_set(rows("mountain_car_distances")).items()
        if not arms or arm in arms
    ]
    return table(["arm", "λ", *SETS.values()], lines)


CLEAR = {
    "so does the mean single-sample update": "the mean single-sample update vanishes at the constructed point",
    "with the same K over all matrices": "E‖M‖² ≤ K(1 + ‖A‖²) over all matrices",
}
"""Statements that lean on the one before."""


def verdicts() -> str:
    """Every proposition: how many of its statements hold in every process, and which do not."""
    found = rows("theory")
    lines = []
    for proposition in sorted({row["proposition"] for row in found}):
        mine = [row for row in found if row["proposition"] == proposition]
        holds, fails = 0, []
        for statement in dict.fromkeys(row["statement"] for row in mine):
            cases = [row["verdict"] == "holds" for row in mine if row["statement"] == statement]
            if all(cases):
                holds += 1
            else:
                fails.append(f"{CLEAR.get(statement, statement)} ({cases.count(False)} of {len(cases)})")
        processes = len({row["process"] for row in mine})
        lines.append([proposition, f"{holds} hold in all {processes} cases tried", "; ".join(fails) or "–"])
    return table(["proposition", "statements", "fails"], lines, words=3)


# ---- the full page ---------------------------------------------------------------------------------------------------


def features() -> str:
    """Size and correlation of the feature sets."""
    names = {**SETS, "one": "one feature copied"}
    columns = ("d", "k", "mean_abs_correlation_uniform", "mean_abs_correlation_visited")
    found = [row for folder in ("", "one_copy/") for row in rows(f"{folder}mountain_car_features")]
    lines = [
        [names[row["copies"]], *(row[c] if c in "dk" else f"{float(row[c]):.4f}" for c in columns)] for row in found
    ]
    return table(["features", "d", "k", "mean \\|correlation\\|, all states", "visited states"], lines)


def contrasts(folder: str = "", *sets: str) -> str:
    """Differences of steps per episode between arms, each at its best, and ratios at equal settings."""
    found = {(r["question"], r["first"], r["second"], r["copies"]): r for r in rows(f"{folder}mountain_car_contrasts")}
    sets, lines = sets or tuple(SETS), []
    for question, first, second in dict.fromkeys(key[:3] for key in found):
        both = [found.get((question, first, second, copies)) for copies in sets]
        ends = [text for row in both for text in ((difference(row), interval(row, "ratio")) if row else ("–", "–"))]
        lines.append([question, first, second, *ends, next(r["runs"] for r in both if r)])
    words = [word for copies in sets for word in (f"{SETS.get(copies, 'one copied')}: difference", "ratio")]
    return table(["question", "steps of", "against", *words, "runs"], lines, words=3)


def _costly(row: Row) -> bool:
    return row["projected"] == "yes" or row["estimator"] == "running"


def arms(costly: str = "") -> str:
    """Arms at their best setting over all runs, or those of O(d²) at their one, and where the steps are spent."""
    found: dict[tuple[str, str], Row] = {}
    for row in (row for row in rows("mountain_car") if _costly(row) == bool(costly)):
        best = found.setdefault((row["copies"], row["arm"]), row)
        if float(row["steps_mean"]) < float(best["steps_mean"]):
            found[row["copies"], row["arm"]] = row
    lines = [
        [arm, copies, r["lambda"], f"{float(r['alpha_k_d']):.2g}", *(error(r, span) for span in SPANS), r["runs"]]
        for (copies, arm), r in found.items()
    ]
    return table(["arm", "copies", "λ", "α·k·d", *SPANS.values(), "runs"], lines)


def late() -> str:
    """Steps in the last 10 episodes minus those of λ = 0 at the same step size, run by run, for every λ."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in rows("mountain_car_runs"):
        if row["arm"] in ("A, λ = 0", "A, single-sample") and row["span"] == "late":
            totals = [float(row[str(n)]) / 10 for n in range(100)]
            found[row["copies"], row["lambda"], row["alpha_k_d"]] = totals
    lambdas = list(dict.fromkeys(lam for _, lam, _ in found if lam != "0"))
    lines = []
    for copies, x in dict.fromkeys((copies, x) for copies, _, x in found):
        zero, line = found[copies, "0", x], [SETS[copies], f"{float(x):g}"]
        for lam in lambdas:
            pairs = [one - other for one, other in zip(found[copies, lam, x], zero, strict=True)]
            half = 1.96 * statistics.stdev(pairs) / math.sqrt(len(pairs))
            line.append(f"{statistics.mean(pairs):+,.0f} ± {half:,.0f}".replace("-", "−"))
        lines.append(line)
    return table(["features", "α·k·d", *(f"λ = {lam}" for lam in lambdas)], lines)


def shares() -> str:
    """Share of the step-size range that does well, and its difference to λ = 0, for every arm and λ."""
    lines = []
    for (arm, lam), both in by_set(rows("mountain_car_summary")).items():
        if "same α" not in arm:
            cells = []
            for copies in SETS:
                cells.append(interval(both[copies], "share_own", percent=True))
                cells.append(interval(both[copies], "share_against_zero", sign=True, percent=True))
            lines.append([arm, lam, *cells])
    return table(["arm", "λ", *(word for name in SETS.values() for word in (name, "minus λ = 0"))], lines)


def diverged() -> str:
    """Runs that diverged, by arm, λ and step size."""
    lines = [
        [r["arm"], r["lambda"], f"{float(r['alpha_k_d']):g}", SETS[r["copies"]], f"{r['diverged']} of {r['runs']}"]
        for r in rows("mountain_car")
        if r["diverged"] != "0"
    ]
    return table(["arm", "λ", "α·k·d", "features", "diverged"], lines)


def theory() -> str:
    """Every statement, what was computed on the first process, and on how many the verdict is the same."""
    found = rows("theory")
    lines = []
    for row in (r for r in found if r["process"] == "0"):
        key = row["proposition"], row["statement"]
        same = [r["verdict"] == row["verdict"] for r in found if (r["proposition"], r["statement"]) == key]
        lines.append([*key, row["verdict"], f"{sum(same)} of {len(same)}", row["computed"]])
    return table(["proposition", "statement", "verdict", "processes", "computed on the first"], lines, words=5)


MAKERS: dict[str, Callable[..., str]] = {
    f"linear_{made.__name__}": made
    for made in (
        *(answer, one_copy, two_sample, regression, td, distances, verdicts),
        *(features, contrasts, arms, late, shares, diverged, theory),
    )
}
"""What can stand in a page, see `docs.results`."""


def draw() -> None:
    """Draw the figures of the page."""
    from gramian.linear import figures

    figures.write_regression_figures(RESULTS, FIGURES)
    figures.write_mountain_car_figures(RESULTS, FIGURES)
    figures.write_td_figure(RESULTS, FIGURES / "td.png")
    figures.write_td_figure(RESULTS / "boyan", FIGURES / "td_boyan.png")
    cells, best, sets = (rows(f"two_sample/mountain_car{end}") for end in ("", "_summary", "_features"))
    figures.controls_figure(cells, best, sets, FIGURES / "mountain_car_two_sample.png")
    both = ("one_copy/mountain_car", "mountain_car")
    cells, sets = ([row for name in both for row in rows(f"{name}{end}")] for end in ("", "_features"))
    chosen = [row for row in sets if row["copies"] in ("one", "1")]
    figures.car_figure(cells, chosen, FIGURES / "mountain_car_one_copy.png")


if __name__ == "__main__":
    draw()
