"""Writes the tables of ``docs/linear.md`` into ``docs/tables``, from the tables in ``results/linear``.

Run it as ``python docs/linear.py`` after a result has changed.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from gramian.core.csv_tables import Row, read_rows
from gramian.core.files import replace_text

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results" / "linear"

SETS = {"0": "no copies", "1": "every feature copied"}


def rows(name: str) -> list[Row]:
    """Read one table of the results."""
    return read_rows(RESULTS / f"{name}.csv")


def table(header: Sequence[str], lines: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """Markdown, the first ``words`` columns to the left and the others to the right."""
    marks = ["---" if i < words else "---:" for i in range(len(header))]
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, marks, *lines))


def number(text: str | float, digits: int = 3, *, sign: bool = False) -> str:
    """Three significant digits, thousands apart, a true minus; with its sign where it is a difference."""
    value = float(text)
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    if size >= 10 ** (digits - 1):
        shown = f"{value:,.0f}"
    else:
        places = digits - 1 - (math.floor(math.log10(size)) if size > 0 else 0)
        shown = f"{value:.{places}f}" if places <= 6 else f"{value:.{digits - 1}e}"
    shown = f"+{shown}" if sign and value > 0 else shown
    return shown.replace("-", "−")


def interval(row: Row, name: str, low: str, high: str, *, sign: bool = False, percent: bool = False) -> str:
    """An estimate with its interval."""
    scale = 100.0 if percent else 1.0
    digits = 2 if percent else 3
    value, below, above = (number(scale * float(row[key]), digits, sign=sign) for key in (name, low, high))
    return f"{value}{' %' if percent else ''} [{below}, {above}]"


def features() -> str:
    """Size and correlation of the feature sets."""
    header = ["features", "d", "k", "mean \\|correlation\\|, all states", "visited states"]
    columns = ("mean_abs_correlation_uniform", "mean_abs_correlation_visited")
    return table(
        header,
        (
            [SETS[r["copies"]], r["d"], r["k"], *(f"{float(r[column]):.4f}" for column in columns)]
            for r in rows("mountain_car_features")
        ),
    )


def regression() -> str:
    """Area under the curve × 10³ of every arm, and its difference to λ = 0 of its form."""
    found = {(r["rho"], r["arm"], r["lambda"]): r for r in rows("regression_summary")}
    lines = []
    for arm, lam in dict.fromkeys(key[1:] for key in found):
        line = [arm, lam]
        for rho in ("0.99", "0"):
            row = found[rho, arm, lam]
            area, difference, error = (
                1e3 * float(row[name]) for name in ("area_mean", "area_minus_control_mean", "area_minus_control_se")
            )
            line.append(number(area))
            ends = (number(difference + z * error, sign=True) for z in (0, -1.96, 1.96))
            line.append("–" if difference == error == 0 else "{} [{}, {}]".format(*ends))
        lines.append(line)
    return table(["arm", "λ", "area, ρ = 0.99", "difference", "area, ρ = 0", "difference"], lines)


def contrasts() -> str:
    """Differences of steps per episode between arms, each at its best, and ratios at equal settings."""
    found = {(r["question"], r["first"], r["second"], r["copies"]): r for r in rows("mountain_car_contrasts")}
    lines = []
    for question, first, second in dict.fromkeys(key[:3] for key in found):
        both = [found.get((question, first, second, copies)) for copies in SETS]
        ends = []
        for row in both:
            ends.append(interval(row, "difference", "low", "high", sign=True) if row else "–")
            ends.append(interval(row, "ratio", "ratio_low", "ratio_high") if row else "–")
        lines.append([question, first, second, *ends, next(r["runs"] for r in both if r)])
    words = [word for name in SETS.values() for word in (f"{name}: difference", "ratio")]
    return table(["question", "steps of", "against", *words, "runs"], lines, words=3)


LATE_EPISODES = 10


def late() -> str:
    """Steps in the last episodes: the differences of the contrasts, and λ by step size against plain learning."""
    found = {(r["question"], r["first"], r["second"], r["copies"]): r for r in rows("mountain_car_contrasts")}
    swept = dict.fromkeys(key[:3] for key, row in found.items() if "projected" not in key[1] + key[2])
    lines = [
        [question, first, second]
        + [interval(found[question, first, second, c], "late", "late_low", "late_high", sign=True) for c in SETS]
        for question, first, second in swept
    ]
    bests = table(["question", "steps of", "against", *SETS.values()], lines, words=3)

    runs = {
        (r["copies"], r["arm"], r["lambda"], r["alpha_k_d"]): r
        for r in rows("mountain_car_runs")
        if r["span"] == "late"
    }
    sizes = [key[3] for key in runs if key[:2] == ("0", "plain, α·d")]
    lines = []
    for copies, lam in dict.fromkeys((k[0], k[2]) for k in runs if k[1] == "A, single-sample"):
        line = [SETS[copies], lam]
        for size in sizes:
            one, other = runs[copies, "A, single-sample", lam, size], runs[copies, "plain, α·d", "0", size]
            line.append(paired(one, other))
        lines.append(line)
    said = (
        f"Steps per episode in the last {LATE_EPISODES} episodes, between the arms at their best over all episodes, "
        "with 95 % bootstrap intervals:\n\n"
    )
    between = (
        "\nThe same, the single-sample arm minus plain learning at equal α·k·d, run by run; ± 1.96 standard errors of "
        "these differences:\n\n"
    )
    return said + bests + between + table(["features", "λ", *(f"α·k·d {float(x):g}" for x in sizes)], lines)


def paired(one: Row, other: Row) -> str:
    """Mean difference of two rows of the table of runs, per episode, and 1.96 of its standard errors."""
    columns = [column for column in one if column.isdigit() and one[column] and other[column]]
    differences = [(int(one[n]) - int(other[n])) / LATE_EPISODES for n in columns]
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    shown = f"{statistics.mean(differences):+,.0f} ± {1.96 * error:,.0f}"
    return shown.replace("-", "−")


def arms() -> str:
    """Every arm at its best step size and λ over all runs, and where in the run the steps are spent."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows("mountain_car"):
        if row["projected"] == "yes" or row["estimator"] == "running":
            continue  # one setting alone: `costly` shows them
        key = row["copies"], row["arm"]
        if key not in found or float(row["steps_mean"]) < float(found[key]["steps_mean"]):
            found[key] = row
    lines = []
    for (copies, arm), row in found.items():
        spans = [f"{number(row[f'{s}_mean'])} ± {number(row[f'{s}_se'], 2)}" for s in ("steps", "early", "late")]
        x = f"{float(row['alpha_k_d']):.2g}"
        lines.append([arm, copies, row["lambda"], x, *spans, row["runs"], row["diverged"]])
    header = ["arm", "copies", "λ", "α·k·d", "all 50 episodes", "first 10", "last 10", "runs", "diverged"]
    return table(header, lines)


def costly() -> str:
    """The arms of O(d²) a step, at the one setting that they are run at."""
    found = [r for r in rows("mountain_car") if r["projected"] == "yes" or r["estimator"] == "running"]
    if not found:
        return "These results were made with `--no-costly`, without the arms of O(d²) a step (projected, running).\n"
    lines = []
    for row in found:
        spans = [f"{number(row[f'{s}_mean'])} ± {number(row[f'{s}_se'], 2)}" for s in ("steps", "early", "late")]
        x = f"{float(row['alpha_k_d']):g}"
        lines.append([row["arm"], row["copies"], row["lambda"], x, *spans, row["runs"], row["diverged"]])
    header = ["arm", "copies", "λ", "α·k·d", "all 50 episodes", "first 10", "last 10", "runs", "diverged"]
    said = (
        "The arms of O(d²) a step are run at one setting, the step size and λ at which the single-sample arm does best "
        "in the second half of its runs; their own runs are numbers of the first half. Above they are compared with "
        "their counterparts on the same runs.\n\n"
    )
    return said + table(header, lines)


def distances() -> str:
    """How far A is from orthogonal after a run, at the best step size of each arm and λ."""
    found = {(r["arm"], r["lambda"], r["copies"]): r for r in rows("mountain_car_distances")}
    lines = []
    for arm, lam in dict.fromkeys(key[:2] for key in found):
        both = (found[arm, lam, copies] for copies in SETS)
        cells = [f"{number(r['distance_mean'])} ± {number(r['distance_se'], 2)}" for r in both]
        lines.append([arm, lam, *cells])
    return table(["arm", "λ", *SETS.values()], lines)


def shares() -> str:
    """Share of the step-size range that does well, and its difference to λ = 0, for every arm and λ."""
    found = {(r["arm"], r["lambda"], r["copies"]): r for r in rows("mountain_car_summary")}
    lines = []
    for arm, lam in dict.fromkeys(key[:2] for key in found if "same α" not in key[0]):
        line = [arm, lam]
        for copies in SETS:
            row = found[arm, lam, copies]
            line.append(interval(row, "share_own", "share_own_low", "share_own_high", percent=True))
            ends = [f"share_against_zero{end}" for end in ("", "_low", "_high")]
            line.append(interval(row, *ends, sign=True, percent=True))
        lines.append(line)
    words = [word for name in SETS.values() for word in (name, "minus λ = 0")]
    return table(["arm", "λ", *words], lines)


def diverged() -> str:
    """Runs that diverged, by arm, λ and step size."""
    lines = [
        [r["arm"], r["lambda"], f"{float(r['alpha_k_d']):g}", SETS[r["copies"]], f"{r['diverged']} of {r['runs']}"]
        for r in rows("mountain_car")
        if r["diverged"] != "0"
    ]
    return table(["arm", "λ", "α·k·d", "features", "diverged"], lines)


def theory() -> str:
    """Every statement, what was computed on the first process, and the verdicts on all."""
    found = rows("theory")
    lines = []
    for row in (r for r in found if r["process"] == "0"):
        key = row["proposition"], row["statement"]
        verdicts = [r["verdict"] for r in found if (r["proposition"], r["statement"]) == key]
        count = f"{verdicts.count(row['verdict'])} of {len(verdicts)}"
        lines.append([row["proposition"], row["statement"], row["verdict"], count, row["computed"]])
    header = ["proposition", "statement", "verdict", "processes", "computed on the first"]
    return table(header, lines, words=5)


TABLES = {
    "features": features,
    "regression": regression,
    "contrasts": contrasts,
    "arms": arms,
    "late": late,
    "costly": costly,
    "distances": distances,
    "shares": shares,
    "diverged": diverged,
    "theory": theory,
}


if __name__ == "__main__":
    for name, make in TABLES.items():
        replace_text(DOCS / "tables" / f"linear-{name}.md", make())
