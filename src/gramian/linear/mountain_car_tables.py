"""The tables of ``gramian mountain-car``: every cell, every arm at its best, and the contrasts between arms."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gramian.linear.arms import Arm
from gramian.linear.kernels import Floats
from gramian.linear.mountain_car import EARLY, LATE, Case, Outcome, Results
from gramian.linear.statistics import bootstrap_interval, cross_fitted_best, halves, mean_and_error, share_within
from gramian.linear.tables import Value, plus_minus, text_table, three_digits, write_csv

WITHIN = 1.1
"""A step size does well where the mean steps are at most this many times the best."""

FEATURE_SETS = {0: "No copies", 1: "1 copy of every feature"}
"""What the feature sets with few copies are called."""

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

    copies: int
    arm: Arm
    label: str
    best_x: float
    """The best α·k·d over all runs; in terms of w alone, so that it is the same learning rate in every arm."""
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

    copies: int
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
    """Name an arm as the figures and tables do, without λ.

    Examples
    --------
    >>> label(Arm("plain")), label(Arm("reduced", "single", 0.1)), label(Arm("full", "single", 0.1, projected=True))
    ('plain, α·d', 'A, single-sample', '(θ, A) projected, single-sample')
    """
    if arm.form == "plain":
        return "plain, α·d" if arm.estimator == "none" else "plain, α·d, shrinkage"
    start = {"reduced": "A", "full": "(θ, A)"}[arm.form] + (" projected" if arm.projected else "")
    words = {"none": "λ = 0", "single": "single-sample", "norm": "norm alone"}
    return f"{start}, {words.get(arm.estimator, arm.estimator)}"


def case_label(case: Case) -> str:
    """Name a case as `label` names its arm, and plain learning in the paper's own pairing as that."""
    return SAME_ALPHA if case.same_alpha else label(case.arm)


def _interval(results: Results, samples: Floats, statistic: Callable[[Floats, Floats], Floats]) -> Interval:
    """Value and interval of a statistic of the means over each half of the runs of ``samples`` [rows, runs]."""
    low, high = bootstrap_interval(samples, statistic, seed=results.options.seed)
    first, second = (half.mean(axis=-1, keepdims=True) for half in halves(samples))
    return Interval(float(statistic(first, second)[0]), low, high)


def _of_all(samples: Floats, statistic: Callable[[Floats], Floats]) -> Callable[[Floats, Floats], Floats]:
    """Make a statistic of the means over all runs one of the means over each half."""
    share = halves(samples)[0].shape[-1] / samples.shape[-1]
    if samples.shape[-1] == 1:
        share = 0.5
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
    """Geometric mean of the ratios of mean steps, cell by cell; ``other`` may have one row for several of ``one``.

    The rows of ``one`` are step sizes within λ; those of an arm without λ stand for every λ.
    """
    m, times = len(one), len(one) // len(other)

    def ratio(means: Floats) -> Floats:
        logarithms = np.log(means[:m]) - np.log(np.tile(means[m:], (times, 1)))
        return np.asarray(np.exp(logarithms.mean(axis=0)))

    samples = np.concatenate([one, other])
    return _interval(results, samples, _of_all(samples, ratio))


def _steps(outcomes: list[Outcome]) -> Floats:
    """Mean steps of each run of each setting [setting, run]."""
    return np.stack([o.steps for o in outcomes])


def _contrast(
    results: Results, copies: int, question: str, first: tuple[str, list[Outcome]], second: tuple[str, list[Outcome]]
) -> Contrast:
    (name, one), (other_name, other) = first, second
    runs = min(len(o.lengths) for o in (*one, *other))
    mine, others = _steps(one)[:, :runs], _steps(other)[:, :runs]
    return Contrast(
        copies,
        question,
        name,
        other_name,
        _difference_of_bests(results, mine, others),
        _ratio_at_equal_settings(results, mine, others),
        _late_difference_of_bests(results, one, other, runs),
        runs,
    )


def _summarise_arm(results: Results, copies: int, name: str, outcomes: list[Outcome], everything: Floats) -> ArmSummary:
    curve = _steps(outcomes)
    zero = results.curve(copies, Arm("reduced"))
    m, axis = len(curve), np.array(results.options.step_sizes)

    def share(means: Floats) -> Floats:
        return share_within(axis, means, WITHIN * means.min(axis=0))

    def share_of_all(means: Floats) -> Floats:
        return share_within(axis, means[:m], WITHIN * means.min(axis=0))

    pair, all_curves = np.concatenate([curve, zero]), np.concatenate([curve, everything])
    return ArmSummary(
        copies,
        outcomes[0].case.arm,
        name,
        outcomes[int(curve.mean(axis=1).argmin())].case.x,
        _interval(results, curve, cross_fitted_best),
        _difference_of_bests(results, curve, results.curve(copies, Arm("plain"))),
        _interval(results, curve, _of_all(curve, share)),
        _interval(results, pair, _of_all(pair, lambda means: share(means[:m]) - share(means[m:]))),
        _interval(results, all_curves, _of_all(all_curves, share_of_all)),
        int(sum(o.diverged.sum() for o in outcomes)),
    )


def _contrasts(results: Results, copies: int) -> list[Contrast]:
    arms = results.arms(copies)
    shared = set(results.options.lambdas) & set(results.options.control_lambdas)

    def family(form: str, estimator: str, lambdas: set[float] | None = None) -> list[Outcome]:
        chosen = [
            a for a in arms if (a.form, a.estimator) == (form, estimator) and (lambdas is None or a.lam in lambdas)
        ]
        return [outcome for arm in chosen for outcome in results.outcomes(copies, arm)]

    same_alpha = results.outcomes(copies, Arm("plain"), same_alpha=True)
    plain, full = family("plain", "none"), family("full", "none")
    single, single_shared = family("reduced", "single"), family("reduced", "single", shared)
    two, two_shared = family("reduced", "two-sample"), family("reduced", "two-sample", shared)
    norm, norm_shared = family("reduced", "norm"), family("reduced", "norm", shared)
    shrink = family("plain", "single")
    asked: list[tuple[str, str, list[Outcome], str, list[Outcome]]] = [
        ("the paper's pairing: same α", "A, single-sample", single, SAME_ALPHA, same_alpha),
        ("of that, step size alone", "plain, α·d", plain, SAME_ALPHA, same_alpha),
        ("what remains at matched step size", "A, single-sample", single, "plain, α·d", plain),
        ("unbiased estimator at matched step size", "A, two-sample", two, "plain, α·d", plain),
        ("norm penalty at matched step size", "A, norm alone", norm, "plain, α·d", plain),
        ("shrinkage of values at matched step size", "plain, α·d, shrinkage", shrink, "plain, α·d", plain),
        ("beyond the norm penalty", "A, single-sample", single_shared, "A, norm alone", norm_shared),
        ("beyond the norm penalty, unbiased", "A, two-sample", two, "A, norm alone", norm),
        ("what the bias does", "A, single-sample", single_shared, "A, two-sample", two_shared),
        ("full form without the term", "(θ, A), λ = 0", full, "plain, α·d", plain),
        ("the term in the full form", "(θ, A), single-sample", family("full", "single"), "(θ, A), λ = 0", full),
    ]
    return [
        _contrast(results, copies, question, (first, one), (second, other))
        for question, first, one, second, other in asked
        if one and other
    ]


def _costly_contrasts(results: Results, copies: int) -> list[Contrast]:
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
            if beside is None:
                continue
            pair = (label(arm), [outcome]), (label(other), [beside])
            contrasts.append(_contrast(results, copies, question, *pair))
    return contrasts


def summarise(results: Results) -> Summary:
    """Compute the summary: every arm at its best step size, its sensitivity, and the contrasts."""
    arms, contrasts = [], []
    for copies in results.options.copies:
        everything = np.concatenate([results.curve(copies, arm) for arm in results.arms(copies)])
        shown = [(label(arm), results.outcomes(copies, arm)) for arm in results.arms(copies)]
        shown.append((SAME_ALPHA, results.outcomes(copies, Arm("plain"), same_alpha=True)))
        arms += [_summarise_arm(results, copies, name, outcomes, everything) for name, outcomes in shown]
        contrasts += _contrasts(results, copies) + _costly_contrasts(results, copies)
    return Summary(arms, contrasts)


ARM_COLUMNS = ("copies", "d", "k", "arm", "form", "estimator", "projected", "lambda")


def _arm_fields(results: Results, copies: int, arm: Arm, name: str) -> list[Value]:
    coding = results.options.coding(copies)
    return [copies, coding.d, coding.k, name, arm.form, arm.estimator, arm.projected, arm.lam]


def _numbers(outcome: Outcome) -> list[Value]:
    parts = (outcome.lengths, outcome.lengths[:, :EARLY], outcome.lengths[:, -LATE:])
    means = [part for lengths in parts for part in mean_and_error(lengths.mean(axis=1))]
    return [*means, len(outcome.lengths), int(outcome.diverged.sum())]


def _case_fields(results: Results, case: Case) -> list[Value]:
    return [*_arm_fields(results, case.copies, case.arm, case_label(case)), case.x]


def write_tables(results: Results, summary: Summary) -> None:
    """Write ``mountain_car.csv``, ``…_runs.csv``, ``…_summary.csv``, ``…_contrasts.csv`` and ``…_features.csv``."""
    folder = results.options.out
    rows: list[list[Value]] = []
    for outcome in [*results.swept, *results.costly]:
        case = outcome.case
        coding = results.options.coding(case.copies)
        alpha = case.arm.alpha(case.x / (coding.k * coding.d), coding.d)
        rows.append([*_case_fields(results, case), alpha, *_numbers(outcome)])
    spans = [f"{span}_{part}" for span in ("steps", "early", "late") for part in ("mean", "se")]
    write_csv(folder / "mountain_car.csv", (*ARM_COLUMNS, "alpha_k_d", "alpha", *spans, "runs", "diverged"), rows)

    most = max(len(o.lengths) for o in (*results.swept, *results.costly))
    rows = []
    for outcome in [*results.swept, *results.costly]:
        for span, lengths in (("all", outcome.lengths), ("late", outcome.lengths[:, -LATE:])):
            totals = [int(total) for total in lengths.sum(axis=1)]
            rows.append([*_case_fields(results, outcome.case), span, *totals, *[""] * (most - len(totals))])
    write_csv(folder / "mountain_car_runs.csv", (*ARM_COLUMNS, "alpha_k_d", "span", *map(str, range(most))), rows)

    rows = []
    for one in summary.arms:
        intervals = (one.steps, one.against_plain, one.share_own, one.share_against_zero, one.share_overall)
        numbers = [number for i in intervals for number in (i.value, i.low, i.high)]
        rows.append([*_arm_fields(results, one.copies, one.arm, one.label), one.best_x, *numbers, one.diverged])
    measures = ("steps", "against_plain", "share_own", "share_against_zero", "share_overall")
    columns = [f"{measure}{part}" for measure in measures for part in ("", "_low", "_high")]
    write_csv(folder / "mountain_car_summary.csv", (*ARM_COLUMNS, "best_alpha_k_d", *columns, "diverged"), rows)

    write_csv(
        folder / "mountain_car_contrasts.csv",
        (
            *("copies", "question", "first", "second"),
            *("difference", "low", "high", "ratio", "ratio_low", "ratio_high", "late", "late_low", "late_high", "runs"),
        ),
        (
            [
                *(c.copies, c.question, c.first, c.second),
                *(c.difference.value, c.difference.low, c.difference.high),
                *(c.ratio.value, c.ratio.low, c.ratio.high, c.late.value, c.late.low, c.late.high, c.runs),
            ]
            for c in summary.contrasts
        ),
    )
    write_csv(
        folder / "mountain_car_features.csv",
        ("copies", "d", "k", "mean_abs_correlation_uniform", "mean_abs_correlation_visited"),
        ([f.copies, f.d, f.k, f.uniform, f.visited] for f in results.features),
    )


def _arms_text(results: Results, arms: list[ArmSummary]) -> str:
    """Table of the arms at their best; one step size has no range, so no shares of it."""
    header = ["arm", "λ", "best α·k·d", "steps", "minus plain, α·d"]
    ranged = len(results.options.step_sizes) > 1
    if ranged:
        header += ["share ≤ 110 % of own best", "minus λ = 0", "of best of all"]
    rows = []
    for one in arms:
        row = [one.label, f"{one.arm.lam:g}", f"{one.best_x:.3g}", str(one.steps), str(one.against_plain)]
        if ranged:
            row += [str(one.share_own), str(one.share_against_zero), str(one.share_overall)]
        rows.append([*row, str(one.diverged)])
    return text_table([*header, "diverged"], rows, keys=2)


def _costly_text(outcomes: list[Outcome]) -> str:
    rows = [
        [
            label(o.case.arm),
            f"{o.case.arm.lam:g}",
            f"{o.case.x:g}",
            plus_minus(*mean_and_error(o.steps)),
            str(int(o.diverged.sum())),
        ]
        for o in outcomes
    ]
    return text_table(["arm", "λ", "α·k·d", "steps", "diverged"], rows)


def report(results: Results, summary: Summary) -> str:
    """Write the summary as text."""
    parts = []
    for features in results.features:
        copies = features.copies
        name = FEATURE_SETS.get(copies, f"{copies} copies of every feature")
        parts.append(
            f"{name}: d = {features.d}, k = {features.k}; "
            f"mean |correlation| {features.uniform:.4f} over all states, {features.visited:.4f} over visited ones\n"
            f"Steps per episode, mean of {results.options.episodes} episodes × {results.options.runs} runs, "
            "with 95 % intervals;\nthe best step size is chosen on half of the runs and judged on the other half"
        )
        parts.append(_arms_text(results, [one for one in summary.arms if one.copies == copies]))
        costly = [o for o in results.costly if o.case.copies == copies]
        if costly:
            heading = f"Arms of O(d²) a step, {results.options.costly_runs} runs, mean ± standard error\n"
            parts.append(heading + _costly_text(costly))
        rows = [
            [c.question, c.first, c.second, str(c.difference), str(c.ratio), str(c.late), str(c.runs)]
            for c in summary.contrasts
            if c.copies == copies
        ]
        header = ["question", "steps of", "against", "difference", "ratio at equal settings"]
        parts.append(text_table([*header, f"difference, last {LATE} episodes", "runs"], rows))
    return "\n\n".join(parts)
