"""What the sweep on Mountain Car says: every arm at its best, its sensitivity, the contrasts between arms; tables."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gramian.core.csv_tables import Value, write_csv
from gramian.core.statistics import cross_fitted_best, half_bootstrap, halves, mean_and_error, share_within
from gramian.core.text import plus_minus, text_table, three_digits
from gramian.linear.kernels import Floats
from gramian.linear.learner import Arm
from gramian.linear.mountain_car import EARLY, LATE, Case, Copies, Outcome, Results

WITHIN = 1.1
"""A step size does well where the mean steps are at most this many times the best."""

SAME_ALPHA = "plain, same α as A"
"""The label of plain learning in the paper's own pairing."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % bootstrap interval over runs."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{three_digits(self.value)} [{three_digits(self.low)}, {three_digits(self.high)}]"


@dataclass(frozen=True)
class ArmSummary:
    """One arm on one feature set, over its whole range of step sizes."""

    copies: Copies
    arm: Arm
    label: str
    best_x: float
    """The best α·k·d over all runs; in terms of w alone, so it is the same learning rate in every arm."""
    steps: Interval
    """Mean steps per episode at the best step size, chosen on half of the runs and judged on the other half."""
    against_plain: Interval
    """The same, minus plain learning at its best step size."""
    share_own: Interval
    """Share of the step-size range within 10 % of the arm's own best."""
    share_against_zero: Interval
    """The same, minus that of A with λ = 0, paired by runs."""
    share_overall: Interval
    """Share of the step-size range within 10 % of the best of all arms."""
    diverged: int
    """Runs that diverged, of all step sizes together."""


@dataclass(frozen=True)
class Contrast:
    """Two sets of settings compared; for costly arms a set has one setting."""

    copies: Copies
    question: str
    first: str
    second: str
    difference: Interval
    """Mean steps of the first at its best minus those of the second at its best."""
    ratio: Interval
    """Mean steps of the first over those of the second at equal settings, the geometric mean: nothing is chosen."""
    late: Interval
    """As the difference, of the steps in the last episodes alone; the best is still that of all episodes."""
    runs: int


@dataclass(frozen=True)
class Summary:
    """All that is computed from the runs."""

    arms: list[ArmSummary]
    contrasts: list[Contrast]


def label(arm: Arm) -> str:
    """Name an arm as the figures and tables do, without λ."""
    if arm.form == "plain":
        return "plain, α·d" if arm.estimator == "none" else "plain, α·d, shrinkage"
    start = {"reduced": "A", "full": "(θ, A)"}[arm.form] + (" projected" if arm.projected else "")
    words = {"none": "λ = 0", "single": "single-sample", "norm": "norm alone", "two-sample-norm": "two-sample norm"}
    return f"{start}, {words.get(arm.estimator, arm.estimator)}"


def case_label(case: Case) -> str:
    """Name a case as `label` names its arm, and plain learning in the paper's own pairing as that."""
    return SAME_ALPHA if case.same_alpha else label(case.arm)


def _interval(results: Results, samples: Floats, statistic: Callable[[Floats, Floats], Floats]) -> Interval:
    """Value and interval of a statistic of the means over each half of the runs of ``samples`` [rows, runs]."""
    low, high = half_bootstrap(samples, statistic, seed=results.options.seed)
    first, second = (half.mean(axis=-1, keepdims=True) for half in halves(samples))
    return Interval(float(statistic(first, second)[0]), low, high)


def _of_all(samples: Floats, statistic: Callable[[Floats], Floats]) -> Callable[[Floats, Floats], Floats]:
    """Make a statistic of the means over all runs one of the means over each half."""
    share = halves(samples)[0].shape[-1] / samples.shape[-1] if samples.shape[-1] > 1 else 0.5
    return lambda first, second: statistic(share * first + (1 - share) * second)


def _difference_of_bests(results: Results, one: Floats, other: Floats) -> Interval:
    m = len(one)
    return _interval(
        results,
        np.concatenate([one, other]),
        lambda first, second: cross_fitted_best(first[:m], second[:m]) - cross_fitted_best(first[m:], second[m:]),
    )


def _late_difference_of_bests(results: Results, one: list[Outcome], other: list[Outcome], runs: int) -> Interval:
    """Difference of the steps in the last episodes, between the settings that are best over all episodes."""
    parts = [_steps(one), _steps(other), np.stack([o.late for o in one]), np.stack([o.late for o in other])]
    ends = np.cumsum([len(part) for part in parts])[:-1]

    def difference(first: Floats, second: Floats) -> Floats:
        (one_1, other_1, late_1, other_late_1), (one_2, other_2, late_2, other_late_2) = (
            np.split(half, ends) for half in (first, second)
        )
        mine = cross_fitted_best(one_1, one_2, (late_1, late_2))
        return mine - cross_fitted_best(other_1, other_2, (other_late_1, other_late_2))

    return _interval(results, np.concatenate([part[:, :runs] for part in parts]), difference)


def _ratio_at_equal_settings(results: Results, one: Floats, other: Floats) -> Interval:
    """Geometric mean of the ratios of mean steps, cell by cell; rows of an ``other`` without λ stand for every λ."""
    m, times = len(one), len(one) // len(other)

    def ratio(means: Floats) -> Floats:
        logarithms = np.log(means[:m]) - np.log(np.tile(means[m:], (times, 1)))
        return np.asarray(np.exp(logarithms.mean(axis=0)))

    samples = np.concatenate([one, other])
    return _interval(results, samples, _of_all(samples, ratio))


def _steps(outcomes: list[Outcome]) -> Floats:
    """Mean steps of each run of each setting [setting, run]."""
    return np.stack([o.steps for o in outcomes])


def _contrast(results: Results, question: str, first: list[Outcome], second: list[Outcome]) -> Contrast:
    runs = min(len(o.lengths) for o in (*first, *second))
    one, other = _steps(first)[:, :runs], _steps(second)[:, :runs]
    case = first[0].case
    return Contrast(
        case.copies,
        question,
        case_label(case),
        case_label(second[0].case),
        _difference_of_bests(results, one, other),
        _ratio_at_equal_settings(results, one, other),
        _late_difference_of_bests(results, first, second, runs),
        runs,
    )


def _summarise_arm(results: Results, outcomes: list[Outcome], everything: Floats) -> ArmSummary:
    case, curve = outcomes[0].case, _steps(outcomes)
    plain, zero = (results.curve(case.copies, Arm(form)) for form in ("plain", "reduced"))
    m, axis = len(curve), np.array(results.options.step_sizes)

    def share(means: Floats, of: Floats) -> Floats:
        return share_within(axis, means, WITHIN * of.min(axis=0))

    pair, all_curves = np.concatenate([curve, zero]), np.concatenate([curve, everything])
    against_zero = _of_all(pair, lambda means: share(means[:m], means[:m]) - share(means[m:], means[m:]))
    return ArmSummary(
        case.copies,
        case.arm,
        case_label(case),
        outcomes[int(curve.mean(axis=1).argmin())].case.x,
        _interval(results, curve, cross_fitted_best),
        _difference_of_bests(results, curve, plain),
        _interval(results, curve, _of_all(curve, lambda means: share(means, means))),
        _interval(results, pair, against_zero),
        _interval(results, all_curves, _of_all(all_curves, lambda means: share(means[:m], means))),
        int(sum(o.diverged.sum() for o in outcomes)),
    )


PLAIN, SINGLE, TWO, NORM = ("plain", "none"), ("reduced", "single"), ("reduced", "two-sample"), ("reduced", "norm")
TWO_NORM, SHRINKAGE, FULL, FULL_SINGLE = (
    ("reduced", "two-sample-norm"),
    ("plain", "single"),
    ("full", "none"),
    ("full", "single"),
)
QUESTIONS = (
    ("the paper's pairing: same α", SINGLE, None),
    ("of that, step size alone", PLAIN, None),
    ("what remains at matched step size", SINGLE, PLAIN),
    ("unbiased estimator at matched step size", TWO, PLAIN),
    ("norm penalty at matched step size", NORM, PLAIN),
    ("shrinkage of values at matched step size", SHRINKAGE, PLAIN),
    ("beyond the norm penalty", SINGLE, NORM),
    ("beyond the norm penalty, unbiased", TWO, NORM),
    ("beyond the norm penalty of two samples", TWO, TWO_NORM),
    ("what the bias does", SINGLE, TWO),
    ("full form without the term", FULL, PLAIN),
    ("the term in the full form", FULL_SINGLE, FULL),
)
"""What is asked of the sweep: form and estimator of both sides; None is plain learning at the α of A."""


def _contrasts(results: Results, copies: Copies) -> list[Contrast]:
    arms = results.arms(copies)

    def lambdas(family: tuple[str, str]) -> set[float]:
        return {arm.lam for arm in arms if (arm.form, arm.estimator) == family}

    def outcomes(family: tuple[str, str], chosen: set[float]) -> list[Outcome]:
        mine = [arm for arm in arms if (arm.form, arm.estimator) == family and arm.lam in chosen]
        return [outcome for arm in mine for outcome in results.outcomes(copies, arm)]

    found = []
    for question, first, second in QUESTIONS:
        chosen = lambdas(first)
        if second is None:
            other = results.outcomes(copies, Arm("plain"), same_alpha=True)
        else:
            if 0 not in lambdas(second):  # both have λ: those that both have
                chosen &= lambdas(second)
            other = outcomes(second, chosen if 0 not in lambdas(second) else {0.0})
        one = outcomes(first, chosen)
        if one and other:
            found.append(_contrast(results, question, one, other))
    return found


def _costly_contrasts(results: Results, copies: Copies) -> list[Contrast]:
    """Compare every costly arm with its counterpart at the same setting and on the same runs, if both were run."""
    found = {o.case: o for o in (*results.swept, *results.costly)}
    contrasts = []
    for outcome in (o for o in results.costly if o.case.copies == copies):
        case, arm = outcome.case, outcome.case.arm
        compared = [("in place of the single sample", Arm(arm.form, "single", arm.lam))] if arm.lam else []
        if arm.projected:
            compared = [("projection, all else equal", Arm(arm.form, arm.estimator, arm.lam))]
            if arm.lam:
                compared.append(("the term under projection", Arm(arm.form, projected=True)))
        for question, other in compared:
            beside = found.get(Case(copies, other, case.x))
            if beside is not None:
                contrasts.append(_contrast(results, question, [outcome], [beside]))
    return contrasts


def summarise(results: Results) -> Summary:
    """Compute the summary: every arm at its best step size, its sensitivity, and the contrasts."""
    arms, contrasts = [], []
    for copies in results.options.copies:
        curves = [results.outcomes(copies, arm) for arm in results.arms(copies)]
        everything = np.concatenate([_steps(outcomes) for outcomes in curves])
        curves.append(results.outcomes(copies, Arm("plain"), same_alpha=True))
        arms += [_summarise_arm(results, outcomes, everything) for outcomes in curves]
        contrasts += _contrasts(results, copies) + _costly_contrasts(results, copies)
    return Summary(arms, contrasts)


ARM_COLUMNS = ("copies", "d", "k", "arm", "form", "estimator", "projected", "lambda")
CASE_COLUMNS = (*ARM_COLUMNS, "alpha_k_d")
MEASURES = ("steps", "against_plain", "share_own", "share_against_zero", "share_overall")
"""Intervals of an `ArmSummary`."""


def _arm_fields(results: Results, copies: Copies, arm: Arm, name: str) -> list[Value]:
    coding = results.options.coding(copies)
    return [copies, coding.d, coding.k, name, arm.form, arm.estimator, arm.projected, arm.lam]


def _case_fields(results: Results, case: Case) -> list[Value]:
    return [*_arm_fields(results, case.copies, case.arm, case_label(case)), case.x]


def _ends(*intervals: Interval) -> list[Value]:
    return [number for i in intervals for number in (i.value, i.low, i.high)]


def write_tables(results: Results, summary: Summary) -> None:
    """Write ``mountain_car.csv``, and with ``_runs``, ``_summary``, ``_contrasts``, ``_features``, ``_distances``."""
    folder, outcomes = results.options.out, [*results.swept, *results.costly]
    most = max(len(o.lengths) for o in outcomes)
    cells: list[list[Value]] = []
    runs: list[list[Value]] = []
    for outcome in outcomes:
        case, fields = outcome.case, _case_fields(results, outcome.case)
        coding = results.options.coding(case.copies)
        spans = (outcome.lengths, outcome.lengths[:, :EARLY], outcome.lengths[:, -LATE:])
        means = [part for lengths in spans for part in mean_and_error(lengths.mean(axis=1))]
        alpha = case.arm.alpha(case.x / (coding.k * coding.d), coding.d)
        cells.append([*fields, alpha, *means, len(outcome.lengths), int(outcome.diverged.sum())])
        for span, lengths in (("all", spans[0]), ("late", spans[2])):
            totals = [int(total) for total in lengths.sum(axis=1)]
            runs.append([*fields, span, *totals, *[""] * (most - len(totals))])
    columns = [f"{span}_{part}" for span in ("steps", "early", "late") for part in ("mean", "se")]
    write_csv(folder / "mountain_car.csv", (*CASE_COLUMNS, "alpha", *columns, "runs", "diverged"), cells)
    write_csv(folder / "mountain_car_runs.csv", (*CASE_COLUMNS, "span", *map(str, range(most))), runs)

    rows = [
        [
            *_arm_fields(results, one.copies, one.arm, one.label),
            one.best_x,
            *_ends(*(getattr(one, measure) for measure in MEASURES)),
            one.diverged,
        ]
        for one in summary.arms
    ]
    columns = [f"{measure}{part}" for measure in MEASURES for part in ("", "_low", "_high")]
    write_csv(folder / "mountain_car_summary.csv", (*ARM_COLUMNS, "best_alpha_k_d", *columns, "diverged"), rows)

    columns = ["copies", "question", "first", "second", "difference", "low", "high"]
    columns += ["ratio", "ratio_low", "ratio_high", "late", "late_low", "late_high", "runs"]
    rows = [
        [c.copies, c.question, c.first, c.second, *_ends(c.difference, c.ratio, c.late), c.runs]
        for c in summary.contrasts
    ]
    write_csv(folder / "mountain_car_contrasts.csv", columns, rows)
    columns = ["copies", "d", "k", "mean_abs_correlation_uniform", "mean_abs_correlation_visited"]
    rows = [[f.copies, f.d, f.k, f.uniform, f.visited] for f in results.features]
    write_csv(folder / "mountain_car_features.csv", columns, rows)
    columns = ["distance_mean", "distance_se", "runs", "diverged"]
    rows = [
        [*_case_fields(results, case), *_distance(values), len(values), int(np.isnan(values).sum())]
        for case, values in results.distances.items()
    ]
    write_csv(folder / "mountain_car_distances.csv", (*CASE_COLUMNS, *columns), rows)


def _distance(values: Floats) -> tuple[float, float]:
    """Mean and standard error over the runs that did not diverge."""
    known = values[~np.isnan(values)]
    return mean_and_error(known) if known.size else (float("nan"), float("nan"))


def feature_set_name(copies: Copies) -> str:
    """What a feature set is called."""
    names = {"one": "1 copy of one feature", 0: "no copies", 1: "1 copy of every feature"}
    return names.get(copies, f"{copies} copies of every feature")


def _arms_text(results: Results, arms: list[ArmSummary]) -> str:
    """Table of the arms at their best; one step size has no range, so no shares of it."""
    header = ["steps", "minus plain, α·d", "share ≤ 110 % of own best", "minus λ = 0", "of best of all"]
    if len(results.options.step_sizes) == 1:
        header = header[:2]
    distances = {(case.arm, case.copies): plus_minus(*_distance(values)) for case, values in results.distances.items()}
    rows = [
        [
            one.label,
            f"{one.arm.lam:g}",
            f"{one.best_x:.3g}",
            *(str(getattr(one, measure)) for measure in MEASURES[: len(header)]),
            distances.get((one.arm, one.copies), ""),
            str(one.diverged),
        ]
        for one in arms
    ]
    return text_table(["arm", "λ", "best α·k·d", *header, "‖AᵀA − I‖/√d", "diverged"], rows, keys=2)


def report(results: Results, summary: Summary) -> str:
    """Write the summary as text."""
    parts = []
    for features in results.features:
        copies = features.copies
        name = feature_set_name(copies)
        parts.append(
            f"{name[0].upper()}{name[1:]}: d = {features.d}, k = {features.k}; "
            f"mean |correlation| {features.uniform:.4f} over all states, {features.visited:.4f} over visited ones\n"
            f"Steps per episode, mean of {results.options.episodes} episodes × {results.options.runs} runs, "
            "with 95 % intervals;\nthe best step size is chosen on half of the runs and judged on the other half"
        )
        parts.append(_arms_text(results, [one for one in summary.arms if one.copies == copies]))
        costly = [o for o in results.costly if o.case.copies == copies]
        if costly:
            rows = []
            for o in costly:
                lam, x, steps = f"{o.case.arm.lam:g}", f"{o.case.x:g}", plus_minus(*mean_and_error(o.steps))
                rows.append([label(o.case.arm), lam, x, steps, str(int(o.diverged.sum()))])
            heading = f"Arms of O(d²) a step, {results.options.costly_runs} runs, mean ± standard error\n"
            parts.append(heading + text_table(["arm", "λ", "α·k·d", "steps", "diverged"], rows))
        rows = [
            [c.question, c.first, c.second, str(c.difference), str(c.ratio), str(c.late), str(c.runs)]
            for c in summary.contrasts
            if c.copies == copies
        ]
        header = ["question", "steps of", "against", "difference", "ratio at equal settings"]
        parts.append(text_table([*header, f"difference, last {LATE} episodes", "runs"], rows))
    return "\n\n".join(parts)
