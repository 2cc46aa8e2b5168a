"""What the sweep on Mountain Car says, as tables: every arm at its best, its sensitivity, and contrasts between arms.

Intervals are 95 % bootstrap intervals over runs. At an arm's best the setting is chosen on one half of the runs and
judged on the other, both ways round.
"""

from collections.abc import Callable, Sequence

import numpy as np

from gramian.core.csv_tables import Record, Value, write_csv, write_records
from gramian.core.statistics import cross_fitted_best, half_bootstrap, halves, mean_and_error, share_within
from gramian.core.text import bracketed, text_table, three_digits
from gramian.linear.curves import shown
from gramian.linear.kernels import Floats
from gramian.linear.learner import Arm
from gramian.linear.mountain_car import EARLY, LATE, Case, Copies, MountainCar, Outcome, Results

WITHIN = 1.1
"""A step size does well where the mean steps are at most this many times the best."""

Interval = tuple[float, float, float]
"""An estimate and the ends of its interval."""
Tables = dict[str, list[Record]]
"""Rows by the end of the table's name."""


def label(arm: Arm) -> str:
    """Name an arm as the figures and tables do, without λ."""
    if arm.form == "plain":
        return "plain, α·d" if arm.estimator == "none" else "plain, α·d, shrinkage"
    start = {"reduced": "A", "full": "(θ, A)"}[arm.form] + (" projected" if arm.projected else "")
    words = {"none": "λ = 0", "single": "single-sample", "norm": "norm alone", "two-sample-norm": "two-sample norm"}
    return f"{start}, {words.get(arm.estimator, arm.estimator)}"


def case_label(case: Case) -> str:
    """Name a case as `label` names its arm, and plain learning in the paper's own pairing as that."""
    return "plain, same α as A" if case.same_alpha else label(case.arm)


def feature_set_name(copies: Copies | str) -> str:
    """What a feature set is called."""
    names = {"one": "1 copy of one feature", "0": "no copies", "1": "1 copy of every feature"}
    return names.get(str(copies), f"{copies} copies of every feature")


def _interval(samples: Floats, seed: int, statistic: Callable[[Floats, Floats], Floats]) -> Interval:
    """Value and interval of a statistic of the means over each half of the runs of ``samples`` [rows, runs]."""
    low, high = half_bootstrap(samples, statistic, seed=seed)
    first, second = (half.mean(axis=-1, keepdims=True) for half in halves(samples))
    return float(statistic(first, second)[0]), low, high


def _interval_of_all(samples: Floats, seed: int, statistic: Callable[[Floats], Floats]) -> Interval:
    """The same of a statistic of the means over all runs."""
    share = halves(samples)[0].shape[-1] / samples.shape[-1] if samples.shape[-1] > 1 else 0.5
    return _interval(samples, seed, lambda first, second: statistic(share * first + (1 - share) * second))


def _difference_of_bests(
    seed: int, one: Floats, other: Floats, judges: tuple[Floats, Floats] | None = None
) -> Interval:
    """Steps of the first at its best minus those of the second; with ``judges`` those of other episodes there."""
    parts = [one, other, *(judges or ())]
    ends = np.cumsum([len(part) for part in parts])[:-1]

    def difference(first: Floats, second: Floats) -> Floats:
        of_first, of_second = np.split(first, ends), np.split(second, ends)
        found = []
        for side in (0, 1):
            judge = (of_first[side + 2], of_second[side + 2]) if judges else None
            found.append(cross_fitted_best(of_first[side], of_second[side], judge))
        return found[0] - found[1]

    return _interval(np.concatenate(parts), seed, difference)


def _ratio_at_equal_settings(seed: int, one: Floats, other: Floats) -> Interval:
    """Geometric mean of the ratios of mean steps, cell by cell; rows of an ``other`` without λ stand for every λ."""
    m, times = len(one), len(one) // len(other)

    def ratio(means: Floats) -> Floats:
        logarithms = np.log(means[:m]) - np.log(np.tile(means[m:], (times, 1)))
        return np.asarray(np.exp(logarithms.mean(axis=0)))

    return _interval_of_all(np.concatenate([one, other]), seed, ratio)


def _steps(outcomes: Sequence[Outcome]) -> Floats:
    """Mean steps of each run of each setting [setting, run]."""
    return np.stack([o.steps for o in outcomes])


def _ends(name: str, interval: Interval, low: str = "", high: str = "") -> Record:
    """Columns of an interval."""
    return {name: interval[0], low or f"{name}_low": interval[1], high or f"{name}_high": interval[2]}


def _contrast(seed: int, question: str, first: list[Outcome], second: list[Outcome]) -> Record:
    """Two sets of settings compared; for costly arms a set has one setting."""
    runs = min(len(o.lengths) for o in (*first, *second))
    one, other = _steps(first)[:, :runs], _steps(second)[:, :runs]
    late, other_late = (np.stack([o.late for o in outcomes])[:, :runs] for outcomes in (first, second))
    case = first[0].case
    return {
        "copies": case.copies,
        "question": question,
        "first": case_label(case),
        "second": case_label(second[0].case),
        **_ends("difference", _difference_of_bests(seed, one, other), "low", "high"),
        **_ends("ratio", _ratio_at_equal_settings(seed, one, other)),
        **_ends("late", _difference_of_bests(seed, one, other, (late, other_late))),
        "runs": runs,
    }


def _arm_columns(options: MountainCar, case: Case) -> Record:
    coding, arm = options.coding(case.copies), case.arm
    return {
        "copies": case.copies, "d": coding.d, "k": coding.k, "arm": case_label(case), "form": arm.form,
        "estimator": arm.estimator, "projected": arm.projected, "lambda": arm.lam,
    }  # fmt: skip


def _summarised(results: Results, outcomes: list[Outcome], everything: Floats) -> Record:
    """One arm over its whole range of step sizes; shares are those of the range within 10 % of a best."""
    case, curve, seed = outcomes[0].case, _steps(outcomes), results.options.seed
    plain, zero = (results.curve(case.copies, Arm(form)) for form in ("plain", "reduced"))
    m, axis = len(curve), np.array(results.options.step_sizes)

    def share(means: Floats, of: Floats) -> Floats:
        return share_within(axis, means, WITHIN * of.min(axis=0))

    def against_zero(means: Floats) -> Floats:
        return share(means[:m], means[:m]) - share(means[m:], means[m:])

    shares = {
        "share_own": _interval_of_all(curve, seed, lambda means: share(means, means)),
        "share_against_zero": _interval_of_all(np.concatenate([curve, zero]), seed, against_zero),
        "share_overall": _interval_of_all(
            np.concatenate([curve, everything]), seed, lambda means: share(means[:m], means)
        ),
    }
    row = {
        **_arm_columns(results.options, case),
        "best_alpha_k_d": outcomes[int(curve.mean(axis=1).argmin())].case.x,
        **_ends("steps", _interval(curve, seed, cross_fitted_best)),
        **_ends("against_plain", _difference_of_bests(seed, curve, plain)),
    }
    for name, interval in shares.items():
        row |= _ends(name, interval)
    return {**row, "diverged": int(sum(o.diverged.sum() for o in outcomes))}


PLAIN, SINGLE, TWO, NORM = ("plain", "none"), ("reduced", "single"), ("reduced", "two-sample"), ("reduced", "norm")
FULL, FULL_SINGLE = ("full", "none"), ("full", "single")
TWO_NORM, SHRINKAGE = ("reduced", "two-sample-norm"), ("plain", "single")
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


def _contrasts(results: Results, copies: Copies) -> list[Record]:
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
        if chosen and other:
            found.append(_contrast(results.options.seed, question, outcomes(first, chosen), other))
    return found


def _costly_contrasts(results: Results, copies: Copies) -> list[Record]:
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
                contrasts.append(_contrast(results.options.seed, question, [outcome], [beside]))
    return contrasts


def _cell(options: MountainCar, outcome: Outcome) -> Record:
    """Mean steps of a case over all, the first and the last episodes."""
    case, lengths = outcome.case, outcome.lengths
    coding = options.coding(case.copies)
    row = {
        **_arm_columns(options, case),
        "alpha_k_d": case.x,
        "alpha": case.arm.alpha(case.x / (coding.k * coding.d), coding.d),
    }
    for span, part in (("steps", lengths), ("early", lengths[:, :EARLY]), ("late", lengths[:, -LATE:])):
        row[f"{span}_mean"], row[f"{span}_se"] = mean_and_error(part.mean(axis=1))
    return {**row, "runs": len(lengths), "diverged": int(outcome.diverged.sum())}


def write_tables(results: Results) -> Tables:
    """Write ``mountain_car.csv``, and with ``_runs``, ``_summary``, ``_contrasts``, ``_features``, ``_distances``."""
    options, outcomes = results.options, [*results.swept, *results.costly]
    most = max(len(o.lengths) for o in outcomes)
    runs: list[list[Value]] = []
    summary, contrasts = [], []
    for outcome in outcomes:
        fields = [*_arm_columns(options, outcome.case).values(), outcome.case.x]
        for span, lengths in (("all", outcome.lengths), ("late", outcome.lengths[:, -LATE:])):
            totals = [int(total) for total in lengths.sum(axis=1)]
            runs.append([*fields, span, *totals, *[""] * (most - len(totals))])
    for copies in options.copies:
        families = [results.outcomes(copies, arm) for arm in results.arms(copies)]
        everything = np.concatenate([_steps(outcomes) for outcomes in families])
        families.append(results.outcomes(copies, Arm("plain"), same_alpha=True))
        summary += [_summarised(results, outcomes, everything) for outcomes in families]
        contrasts += _contrasts(results, copies) + _costly_contrasts(results, copies)
    distances = []
    for case, values in results.distances.items():
        mean, error = mean_and_error(values)
        counts: Record = {"runs": len(values), "diverged": int(np.isnan(values).sum())}
        place = {**_arm_columns(options, case), "alpha_k_d": case.x}
        distances.append({**place, "distance_mean": mean, "distance_se": error, **counts})
    cells = [_cell(options, outcome) for outcome in outcomes]
    tables: Tables = {
        "": cells, "_summary": summary, "_contrasts": contrasts, "_features": results.features, "_distances": distances,
    }  # fmt: skip
    for name, records in tables.items():
        write_records(options.out / f"mountain_car{name}.csv", records)
    header = [*_arm_columns(options, outcomes[0].case), "alpha_k_d", "span", *map(str, range(most))]
    write_csv(options.out / "mountain_car_runs.csv", header, runs)
    return tables


def _shown(row: Record, name: str, low: str = "", high: str = "") -> str:
    return bracketed([row[end] for end in (name, low or f"{name}_low", high or f"{name}_high")], three_digits)


MEASURES = {
    "steps": "steps",
    "minus plain, α·d": "against_plain",
    "share ≤ 110 % of own best": "share_own",
    "minus λ = 0": "share_against_zero",
    "of best of all": "share_overall",
}
"""Columns of the text and of the table; one step size has no range, so no shares of it."""


def report(options: MountainCar, tables: Tables) -> str:
    """Write the tables as text."""
    parts = []
    measures = dict(list(MEASURES.items())[: 2 if len(options.step_sizes) == 1 else None])
    for features in tables["_features"]:
        found = {name: [row for row in rows if row["copies"] == features["copies"]] for name, rows in tables.items()}
        title = feature_set_name(str(features["copies"]))
        uniform, visited = (features[f"mean_abs_correlation_{over}"] for over in ("uniform", "visited"))
        parts.append(
            f"{title[0].upper()}{title[1:]}: d = {features['d']}, k = {features['k']}; "
            f"mean |correlation| {uniform:.4f} over all states, {visited:.4f} over visited ones\n"
            f"Steps per episode, mean of {options.episodes} episodes × {options.runs} runs, with 95 % intervals;\n"
            "the best step size is chosen on half of the runs and judged on the other half"
        )
        distances = {(row["arm"], row["lambda"]): row for row in found["_distances"]}
        rows = [
            [
                str(row["arm"]),
                f"{row['lambda']:g}",
                f"{row['best_alpha_k_d']:.3g}",
                *(_shown(row, measure) for measure in measures.values()),
                shown(distances[key], "distance") if (key := (row["arm"], row["lambda"])) in distances else "",
                str(row["diverged"]),
            ]
            for row in found["_summary"]
        ]
        parts.append(text_table(["arm", "λ", "best α·k·d", *measures, "‖AᵀA − I‖/√d", "diverged"], rows, keys=2))
        costly = [row for row in found[""] if row["projected"] or row["estimator"] == "running"]
        if costly:
            rows = [
                [str(r["arm"]), f"{r['lambda']:g}", f"{r['alpha_k_d']:g}", shown(r, "steps"), str(r["diverged"])]
                for r in costly
            ]
            heading = f"Arms of O(d²) a step, {options.costly_runs} runs, mean ± standard error\n"
            parts.append(heading + text_table(["arm", "λ", "α·k·d", "steps", "diverged"], rows))
        rows = [
            [
                *(str(row[name]) for name in ("question", "first", "second")),
                _shown(row, "difference", "low", "high"),
                _shown(row, "ratio"),
                _shown(row, "late"),
                str(row["runs"]),
            ]
            for row in found["_contrasts"]
        ]
        header = ["question", "steps of", "against", "difference", "ratio at equal settings"]
        parts.append(text_table([*header, f"difference, last {LATE} episodes", "runs"], rows))
    return "\n\n".join(parts)
