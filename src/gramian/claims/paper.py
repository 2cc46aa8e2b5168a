"""The claims of the paper: the numbers to look at, and the rule that makes a verdict of them.

What the paper says of each, where, and how it was put to the test is in ``texts.toml``. There is no result in either.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from gramian.claims.rules import Claim, Part, Rule, Statements, effect, equivalent, within
from gramian.claims.seeds import feature, measure, scores
from gramian.claims.tables import Quantity, Where, column, difference, distinct, exponent, largest, paper, ratio, rows


def _claim(
    name: str,
    parts: Iterable[Part],
    ran_values: Mapping[str, Quantity] | None = None,
    beside: Mapping[str, Quantity] | None = None,
) -> Claim:
    """A claim with its texts."""
    return Claim(name, **_texts()[name], parts=tuple(parts), ran_values=ran_values or {}, beside=beside or {})


@cache
def _texts() -> dict[str, Any]:
    return tomllib.loads((files("gramian.claims") / "texts.toml").read_text(encoding="utf-8"))


# ---- the propositions ------------------------------------------------------------------------------------------------

THEORY = "linear/theory.csv"


def proposition(
    number: int,
    claimed: Sequence[str],
    beside: Sequence[str],
    *,
    wording: Mapping[str, str] | None = None,
    also: Mapping[str, Quantity] | None = None,
) -> Claim:
    """A proposition, which stands or falls with its statements on at least five random processes."""
    processes = {"processes": distinct(THEORY, "process")}
    part = Part(
        Statements(THEORY, claimed, beside, wording or {}),
        needs={"processes": 5},
        counted=processes,
        command="gramian theory --out theory",
        also=also or {},
    )
    return _claim(f"proposition-{number}", [part], processes)


def propositions() -> list[Claim]:
    """The six propositions of the appendix."""
    regression = "excess error of the {} at the end, ρ = 0.99"
    return [
        proposition(
            1,
            claimed=[
                "min L_REG = min L_TD: the constructed A attains it",
                "AᵀΦᵀDΦA is diagonal there",
                "descent from random A finds nothing lower, and its…end is decorrelated",
            ],
            beside=["θe₁ᵀ is a minimum too, with one feature left"],
            wording={"AᵀΦᵀDΦA is diagonal there": "AᵀΦᵀDΦA is diagonal at the constructed A"},
        ),
        proposition(
            2,
            claimed=["UVᵀ is scipy's polar factor", "no orthogonal matrix is nearer, at random or nearby"],
            beside=["the O(d²) rotation is the projection of a rank-one step"],
            also={
                regression.format("projected regression"): _of_regression("final", arm="A projected, λ = 0", rho=0.99),
                regression.format("regression without projection"): _of_regression("final", arm="A, λ = 0", rho=0.99),
            },
        ),
        proposition(
            3,
            claimed=["h is Lipschitz over orthogonal matrices"],
            beside=["h is Lipschitz over all matrices"],
        ),
        proposition(
            4,
            claimed=["the single…noise has mean zero", "so does the mean single-sample update"],
            wording={
                "the single…noise has mean zero": "the premise: the noise of the paper's update has mean zero",
                "so does the mean single-sample update": (
                    "the mean of the paper's update vanishes at the equilibrium of h"
                ),
            },
            beside=[
                "single update: iterates approach the zeros of its own mean update",
                "expected update: iterates approach h = 0",
                "two-sample update: iterates approach h = 0",
            ],
        ),
        proposition(
            5,
            claimed=["h vanishes at the constructed point"],
            beside=["so does the mean single-sample update", "the mean single-sample update vanishes at θe₁ᵀ"],
            wording={
                "so does the mean single-sample update": (
                    "the mean single-sample update vanishes at the constructed point"
                )
            },
        ),
        proposition(
            6,
            claimed=["the single…noise has mean zero", "E‖M‖² ≤ K(1 + ‖A‖²) over orthogonal matrices"],
            beside=["…exact bias…", "the two-sample noise has mean zero", "with the same K over all matrices"],
            wording={
                "the single…noise has mean zero": "the noise of the single-sample update has mean zero",
                "with the same K over all matrices": "E‖M‖² ≤ K(1 + ‖A‖²) with the same K over all matrices",
                "…exact bias…": "the mean of the single-sample noise is the bias that we derive, and nothing else",
            },
        ),
    ]


# ---- the linear half -------------------------------------------------------------------------------------------------

CURVES, SUMMARY = "linear/regression.csv", "linear/regression_summary.csv"
CAR, CONTRASTS = "linear/mountain_car.csv", "linear/mountain_car_contrasts.csv"
CAR_SUMMARY, CAR_FEATURES = "linear/mountain_car_summary.csv", "linear/mountain_car_features.csv"
CAR_DISTANCES = "linear/mountain_car_distances.csv"
SINGLE = "A, single-sample (the paper)"
ORTHOGONAL = 0.1
"""Largest distance that is close; A = 0 has the distance 1."""
CAR_COMMAND = "gramian mountain-car --out mountain-car"
MATCHED, SHRUNK = "what remains at matched step size", "beyond the norm penalty"


def _of_regression(name: str, *, times: float = 1.0, least: str = "", **where: str | float) -> Quantity:
    """A mean of the regression's summary, with its standard error."""
    return column(SUMMARY, f"{name}_mean", error=f"{name}_se", times=times, least=least, where=where)


def regression() -> Claim:
    """Figure 1: linear regression, against the same and the matched step size."""
    parts = []
    for rho in (0.99, 0.0):
        area = _of_regression("area", times=1000, least="area_mean", arm=SINGLE, rho=rho)
        plain = _of_regression("area", times=1000, arm="plain, α", rho=rho)
        control = _of_regression("area_minus_control", times=1000, least="area_mean", arm=SINGLE, rho=rho)
        rule = effect(
            "area × 10³ with the term less plain regression at the same α",
            difference(area, plain),
            "falls",
            beyond_label="area × 10³ with the term less plain regression at α·d",
            beyond=control,
        )
        runs = column(SUMMARY, "runs", least="runs", where={"rho": rho})
        parts.append(
            Part(
                rule,
                f"ρ = {rho:g}",
                needs={"runs": 500},
                counted={"runs": runs},
                command="gramian regression --out regression",
            )
        )
    single = {"arm": SINGLE}
    return _claim(
        "regression",
        ran_values={
            "runs": largest(CURVES, "runs"),
            "steps": largest(CURVES, "step"),
            "lambdas": distinct(SUMMARY, "lambda", single),
            "least": column(SUMMARY, "lambda", least="lambda", where=single),
            "most": largest(SUMMARY, "lambda", single),
        },
        parts=tuple(parts),
    )


def _contrast(question: str, value: str = "difference", copies: int = 1) -> Quantity:
    """A comparison of two arms on Mountain Car."""
    low, high = ("ratio_low", "ratio_high") if value == "ratio" else ("low", "high")
    return column(CONTRASTS, value, low=low, high=high, where={"copies": copies, "question": question})


def _car_runs(copies: int) -> Quantity:
    return column(CONTRASTS, "runs", where={"copies": copies, "question": SHRUNK})


def mountain_car_gain() -> Claim:
    """Figure 2a: fewer steps an episode."""
    rule = effect(
        "steps with the term less plain learning at the same α",
        _contrast("the paper's pairing: same α"),
        "falls",
        beyond_label="steps with the term less the control that only shrinks",
        beyond=_contrast(SHRUNK),
    )
    also = {
        "steps of plain learning at α·d less plain learning at α: the step size alone": _contrast(
            "of that, step size alone"
        ),
        "steps with the term less plain learning at α·d": _contrast(MATCHED),
        "steps of the control that only shrinks less plain learning at α·d": _contrast(
            "norm penalty at matched step size"
        ),
        "steps with the unbiased term less the control that only shrinks": _contrast(
            "beyond the norm penalty, unbiased"
        ),
        "ratio of steps at equal settings, the term over plain learning at α·d": _contrast(MATCHED, "ratio"),
        "ratio of steps at equal settings, the term over the control that only shrinks": _contrast(SHRUNK, "ratio"),
    }
    return _claim(
        "mountain-car-gain",
        ran_values={"runs": largest(CAR, "runs")},
        parts=(Part(rule, needs={"runs": 50}, counted={"runs": _car_runs(1)}, command=CAR_COMMAND, also=also),),
    )


def mountain_car_correlation() -> Claim:
    """Figure 2a against 2b: the gain with copied features against that without."""
    rule = effect(
        "gain at the matched step size with copies less that without",
        difference(_contrast(MATCHED), _contrast(MATCHED, copies=0)),
        "falls",
        beyond_label="steps with the term less the control that only shrinks, with copies less without",
        beyond=difference(_contrast(SHRUNK), _contrast(SHRUNK, copies=0)),
    )
    both = {"with": 1, "without": 0}
    also = {
        f"ratio of steps at equal settings, the term over plain learning at α·d, {name} copies": _contrast(
            MATCHED, "ratio", copies
        )
        for name, copies in both.items()
    } | {
        f"mean absolute correlation of visited states {name} copies": column(
            CAR_FEATURES, "mean_abs_correlation_visited", where={"copies": copies}
        )
        for name, copies in both.items()
    }
    return _claim(
        "mountain-car-correlation",
        parts=(Part(rule, needs={"runs": 50}, counted={"runs": _car_runs(0)}, command=CAR_COMMAND, also=also),),
    )


def mountain_car_sensitivity() -> Claim:
    """Figure 2a: the range of good step sizes."""

    def share(name: str, arm: str) -> Quantity:
        where: Where = {"copies": 1, "arm": arm}
        return column(CAR_SUMMARY, name, low=f"{name}_low", high=f"{name}_high", least="steps", where=where)

    arm = "A, single-sample"
    rule = effect(
        "share with the term less that without",
        share("share_against_zero", arm),
        "rises",
        beyond_label="share with the term less that of the control that only shrinks",
        beyond=difference(share("share_own", arm), share("share_own", "A, norm alone")),
    )
    runs = column(CAR, "runs", least="runs", where={"copies": 1, "arm": arm})
    return _claim(
        "mountain-car-sensitivity",
        parts=(Part(rule, needs={"runs": 50}, counted={"runs": runs}, command=CAR_COMMAND),),
    )


def close_to_orthogonal() -> Claim:
    """‖AᵀA − I‖_F/√d after learning, for the λ that stays nearest to orthogonal."""
    label = "distance ‖AᵀA − I‖_F/√d after learning, at the λ that keeps it smallest"

    def part(setting: str, table: str, command: str, least: int, **where: str | float) -> Part:
        distance = column(table, "distance_mean", error="distance_se", least="distance_mean", where=where)
        runs = column(table, "runs", least="distance_mean", where=where)
        without = where | {"arm": "A, λ = 0"}
        beside = column(table, "distance_mean", where=without)
        rule = within(label, distance, most=ORTHOGONAL)
        also = {"distance without the term, λ = 0": beside}
        return Part(rule, setting, needs={"runs": least}, counted={"runs": runs}, command=command, also=also)

    parts = [
        part(f"Mountain Car, {name}", CAR_DISTANCES, CAR_COMMAND, 5, copies=copies, arm="A, single-sample")
        for copies, name in ((1, "features copied"), (0, "no copies"))
    ]
    command = "gramian regression --out regression"
    parts += [
        part(f"regression, ρ = {rho:g}", CURVES, command, 500, rho=rho, arm=SINGLE, step=20_000) for rho in (0.99, 0.0)
    ]
    return _claim("close-to-orthogonal", parts)


# ---- the Gram penalty ------------------------------------------------------------------------------------------------

EQUALITY, COST = "cost/equality.csv", "cost/penalties.csv"


def gram_is_decor() -> Claim:
    """The Gram form against the covariance, in value and gradient."""
    variance = "largest relative difference in value with Var_i read as the variance of uncentred features"
    parts = tuple(
        Part(
            within(f"largest relative difference in {name}", largest(EQUALITY, f"{name}_difference"), most=1e-12),
            name,
            needs={"cases": 100},
            counted={"cases": rows(EQUALITY)},
            command="python -m benchmarks.equality --csv equality.csv",
            also={variance: largest(EQUALITY, "value_difference_variance")} if name == "value" else {},
        )
        for name in ("value", "gradient")
    )
    sizes = {"kinds": distinct(EQUALITY, "case")}
    for name in ("n", "d"):
        sizes |= {f"least_{name}": column(EQUALITY, name, least=name), f"most_{name}": largest(EQUALITY, name)}
    return _claim(
        "gram-is-decor",
        ran_values=sizes,
        parts=parts,
    )


def _cost(setting: str, device: str, value: str, what: str) -> Part:
    """How the cost of the Gram form grows with d, against that of the covariance."""

    def growth(form: str, axis: str = "d") -> Quantity:
        return exponent(COST, value, axis, {"device": device, "axis": axis, "form": form})

    def at_512(form: str) -> Quantity:
        return column(COST, value, where={"device": device, "axis": "d", "d": 512, "form": form})

    rule = within(
        f"exponent of the Gram form's {what} in d",
        growth("gram"),
        most=1.0,
        null=2.0,
        beyond_label=f"exponent of the covariance's {what} in d less that of the Gram form's",
        beyond=difference(growth("covariance"), growth("gram")),
    )
    sizes = rows(COST, {"device": device, "axis": "d", "form": "covariance"})
    also = {
        "exponent of the Gram form's time in the batch size, n from 8 to 1,024 at d = 512": growth("gram", "n"),
        "time of the covariance over that of the Gram form at d = 512": ratio(at_512("covariance"), at_512("gram")),
    }
    return Part(
        rule,
        setting,
        needs={"sizes": 5},
        counted={"sizes": sizes},
        command="python -m benchmarks.penalties --csv penalties.csv",
        also=also if what == "time" else {},
    )


def linear_cost() -> Claim:
    """O(d) against O(d²)."""
    return _claim(
        "linear-cost",
        ran_values={
            "least": column(COST, "d", least="d", where={"device": "cpu", "axis": "d", "form": "gram"}),
            "most": largest(COST, "d", {"axis": "d", "form": "gram"}),
            "n": largest(COST, "n", {"axis": "d"}),
        },
        parts=(
            _cost("time on the CPU", "cpu", "microseconds", "time"),
            _cost("time on the GPU", "cuda", "microseconds", "time"),
            _cost("memory", "cuda", "peak_bytes", "peak memory"),
        ),
    )


# ---- scores ----------------------------------------------------------------------------------------------------------

CONTROLS = """\
gramian study run controls --out runs/controls
gramian study report runs/controls --out report/controls
"""
ATARI_RUN = """\
gramian study run atari-evidence --out runs/atari/evidence
gramian study run atari-norm --out runs/atari/norm
"""
MINATAR_RUN = "gramian study run results/minatar/minatar-evidence.toml --out runs/minatar\n"
MINATAR_REPORT = "gramian study report runs/minatar --out report/minatar\n"
AUTHOR = (
    "The author's κ is 10.24. `norm (matched)` is matched to MinAtar's κ, and no control was run that is matched to "
    "the author's."
)
CHOSEN = (
    "MinAtar's κ is 0.082: it was chosen on MinAtar; short runs on two other Atari games could not tell the κ apart."
)
BY_HOW_MUCH = "By how much pairs are won, which their share does not see, stands below and decides nothing."


@dataclass(frozen=True)
class Setting:
    """Games that arms were compared in by their scores; the first setting is the paper's."""

    name: str
    folder: str
    needs: Mapping[str, int]
    command: str
    arm: str = "gram"
    gram: str = "DQN-Gram"
    """How labels put the arm."""
    control: str = "norm (matched)"
    shrunk: str = "`norm (matched)`"
    """How labels put the control."""
    note: str = ""

    @property
    def table(self) -> str:
        """Its scores."""
        return f"{self.folder}/scores.csv"

    def part(self, rule: Rule, note: str = "", also: Mapping[str, Quantity] | None = None) -> Part:
        """A part of a claim in this setting."""
        return Part(
            rule, self.name, awaited=True, elsewhere=self is not PAPER, needs=self.needs, command=self.command,
            note=" ".join(filter(None, (self.note, note))), also=also or {},
        )  # fmt: skip


_FOUR, _ATARI = "four Atari games, 4M frames", {"seeds": 3, "games": 4, "frames": 3_900_000}
_ATARI_REPORT = f"{ATARI_RUN}gramian study report runs/atari --out report/atari\n"
PAPER = Setting(
    "49 Atari games, 20M frames", "atari", {"seeds": 3, "games": 49, "frames": 17_900_000}, CONTROLS,
    control="norm", shrunk="the control `norm`",
)  # fmt: skip
ATARI = (
    Setting(f"{_FOUR}, the author's κ", "atari", _ATARI, _ATARI_REPORT, gram="DQN-Gram at the author's κ", note=AUTHOR),
    Setting(
        f"{_FOUR}, MinAtar's κ", "atari", _ATARI, _ATARI_REPORT, "gram (0.082)", "DQN-Gram at MinAtar's κ", note=CHOSEN
    ),
)
MINATAR = Setting(
    "five MinAtar games, 1M frames", "minatar", {"seeds": 3, "games": 5, "frames": 990_000},
    MINATAR_RUN + MINATAR_REPORT, shrunk="`norm` at equal feature norm",
)  # fmt: skip


def gram_scores_like_decor() -> Claim:
    """Figure 3: the equal penalties give equal results."""
    parts = [
        setting.part(
            equivalent(
                "probability that DQN-Gram beats DQN-decor",
                scores(setting.table, "gram", "decor", "improvement"),
                margin=0.1,
                null=0.5,
            )
        )
        for setting in (PAPER, MINATAR)
    ]
    return _claim(
        "gram-scores-like-decor",
        parts=tuple(parts),
        beside={
            "games in which DQN-decor is ahead of DQN": paper("decor", "won"),
            "games in which DQN-Gram is ahead of DQN": paper("gram", "won"),
        },
    )


def forty_of_49() -> Claim:
    """Figure 4: games in which the area under the learning curve is larger."""

    def part(setting: Setting) -> Part:
        table, arm, gram = setting.table, setting.arm, setting.gram
        at_kappa = gram.removeprefix("DQN-Gram")

        def beats(other: str, words: str, area: bool = True, first: str = arm, name: str = gram) -> dict[str, Quantity]:
            label = f"probability that {name} beats {words} in {'area' if area else 'final score'}"
            return {label: scores(table, first, other, "area_improvement" if area else "improvement")}

        def percent(other: str, words: str, area: bool = True) -> dict[str, Quantity]:
            what, statistic = ("area", "area_difference") if area else ("final score", "difference")
            label = f"{what} of {gram} less that of {words}, in percent of what DQN learns"
            return {label: scores(table, arm, other, statistic)}

        ((beyond_label, beyond),) = beats(setting.control, setting.shrunk).items()
        rule = within(
            f"share of games in which DQN-Gram{at_kappa} has the larger area",
            scores(table, arm, "dqn", "games_won"),
            least=0.8163,
            null=0.5,
            beyond_label=beyond_label,
            beyond=beyond,
            beyond_null=0.5,
        )
        matched, other, dqn = (setting.control, setting.shrunk), ("norm (0.1)", "`norm (0.1)`"), ("dqn", "DQN")
        if setting is PAPER:
            return setting.part(rule)
        if setting is MINATAR:
            also = beats(*matched, area=False) | beats("norm", "`norm` at its own best κ") | beats(*dqn)
            also |= beats(*dqn, first=setting.control, name=setting.shrunk)
            also |= percent(*matched) | percent(*matched, area=False)
        else:
            also = beats(*other) | beats(*matched, area=False) | beats(*other, area=False) | beats(*dqn)
            also |= percent(*matched) | percent(*other) | percent(*matched, area=False) | percent(*other, area=False)
        also |= percent(*dqn) | percent(*dqn, area=False)
        return setting.part(rule, BY_HOW_MUCH, also)

    return _claim(
        "forty-of-49",
        parts=tuple(part(setting) for setting in (PAPER, *ATARI, MINATAR)),
        beside={
            "games in which DQN-Gram is ahead of DQN": paper("gram", "won"),
            "games in which DQN-Gram is behind DQN": paper("gram", "lost"),
        },
    )


def median_score() -> Claim:
    """Figure 3: the median of human-normalised scores."""

    def part(setting: Setting) -> Part:
        def ahead(other: str) -> Quantity:
            return scores(setting.table, setting.arm, other, "median")

        label = f"median of {setting.gram} less that of"
        rule = effect(
            f"{label} DQN",
            ahead("dqn"),
            "rises",
            beyond_label=f"{label} {setting.shrunk}",
            beyond=ahead(setting.control),
        )
        return setting.part(rule, also={} if setting is PAPER else {f"{label} `norm (0.1)`": ahead("norm (0.1)")})

    return _claim(
        "median-score",
        parts=tuple(part(setting) for setting in (PAPER, *ATARI)),
        beside={
            "median of DQN": paper("dqn", "median"),
            "median of DQN-decor": paper("decor", "median"),
            "median of DQN-Gram": paper("gram", "median"),
        },
    )


# ---- features --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Runs whose features were measured; the first place is the paper's."""

    name: str
    folder: str
    game: str
    needs: Mapping[str, int]
    command: str
    arm: str = "gram"
    penalty: str = "the penalty"
    """How labels put the arm."""
    control: str = "norm"
    shrunk: str = "the control `norm`"
    """How labels put the control."""

    def value(self, name: str, arm: str, minus_arm: str = "", minus: str = "") -> Quantity:
        """A measure of an arm in play, minus that of another arm, or minus another measure."""
        return measure(f"{self.folder}/measures.csv", self.game, name, arm, minus_arm, minus)

    def against(self, what: str, name: str) -> dict[str, Quantity]:
        """The arm minus DQN and minus its control, by label."""
        return {
            f"{what} with {self.penalty} less that without": self.value(name, self.arm, "dqn"),
            f"{what} with {self.penalty} less that of {self.shrunk}": self.value(name, self.arm, self.control),
        }

    def held_out(self, what: str, name: str) -> dict[str, Quantity]:
        """The same on held-out states."""
        return {
            label.replace(what, f"{what} on held-out states", 1): feature(
                f"{self.folder}/features.csv", self.game, f"held_out_{name}", self.arm, other
            )
            for label, other in zip(self.against(what, name), ("dqn", self.control), strict=True)
        }

    def of_author(self, what: str, name: str) -> dict[str, Quantity]:
        """The arm at the author's κ minus DQN, by label."""
        return {f"{what} with the penalty at the author's κ less that without": self.value(name, "gram", "dqn")}

    def falls(self, what: str, name: str) -> Rule:
        """The measure falls with the penalty, and further than with the control."""
        (label, value), (beyond_label, beyond) = self.against(what, name).items()
        return effect(label, value, "falls", beyond_label=beyond_label, beyond=beyond)

    def part(self, rule: Rule, aspect: str = "", note: str = "", also: Mapping[str, Quantity] | None = None) -> Part:
        """A part of a claim at this place."""
        return Part(
            rule, f"{self.name}: {aspect}" if aspect else self.name, awaited=True, elsewhere=self is not SEAQUEST,
            needs=self.needs, command=self.command, note=note, also=also or {},
        )  # fmt: skip


_SHORT = {"seeds": 3, "frames": 990_000}
_SEAQUEST_4M = (
    f"{ATARI_RUN}gramian analyze runs/atari/*/populations/*/seaquest-* --states 100_000 --out runs/atari/analysis\n"
)
MINATAR_ANALYSIS = (
    "gramian analyze runs/minatar/populations/*/minatar-seaquest-* --states 100_000 --out runs/minatar/analysis\n"
)
SEAQUEST = Place(
    "Seaquest, 20M frames", "atari", "seaquest", {"seeds": 3, "frames": 4_500_000},
    "gramian train --game seaquest --arm dqn --arm gram --arm norm --seeds 0 1 2 --out runs/seaquest\n"
    "gramian analyze runs/seaquest/seaquest-* --states 1_000_000 --out report/seaquest\n",
)  # fmt: skip
SEAQUEST_4M = Place(
    "Seaquest, 4M frames, MinAtar's κ", "atari", "seaquest", _SHORT, _SEAQUEST_4M, "gram (0.082)",
    "the penalty at MinAtar's κ", "norm (matched)", "`norm (matched)`",
)  # fmt: skip
BREAKOUT = Place(
    "MinAtar Breakout, 100,000 frames", "representation", "minatar/breakout", {"seeds": 3, "frames": 99_000},
    "gramian train --game minatar/breakout --arm dqn --arm gram --seeds 0 1 --frames 100_000 "
    "--representation-period-agent-steps 5_000 --out runs/example\n"
    "gramian analyze runs/example/minatar-* --states 1_000_000 --epsilon 0.01 --out report/example\n",
)  # fmt: skip
MINATAR_SEAQUEST = Place(
    "MinAtar Seaquest, 1M frames", "minatar", "minatar/seaquest", _SHORT,
    MINATAR_RUN + MINATAR_ANALYSIS + MINATAR_REPORT, control="norm (matched)", shrunk="`norm` at equal feature norm",
)  # fmt: skip
RICHER = {
    "effective rank": "effective_rank",
    "mean absolute correlation": "mean_abs_correlation",
    "dormant share (τ = 0.025)": "dormant_share_0.025",
}
"""What speaks of a richer representation beside the sparsity."""


def denser_features() -> Claim:
    """Figure 5: the share of zero entries."""

    def beyond_other(what: str, name: str) -> dict[str, Quantity]:
        short = SEAQUEST_4M
        return {f"{what} with {short.penalty} less that of `norm (0.1)`": short.value(name, short.arm, "norm (0.1)")}

    atari = beyond_other("sparsity", "sparsity") | SEAQUEST_4M.of_author("sparsity", "sparsity")
    minatar = MINATAR_SEAQUEST.held_out("sparsity", "sparsity")
    for what, name in RICHER.items():
        atari |= SEAQUEST_4M.against(what, name) | beyond_other(what, name)
        minatar |= MINATAR_SEAQUEST.against(what, name)
    rank = {"effective rank with the penalty less that without": BREAKOUT.value("effective_rank", "gram", "dqn")}
    settled = (
        "That states in play decide here, as on Atari and in the paper, and not held-out states of a random player, "
        "was settled when both numbers were known; the held-out ones stand below."
    )

    def part(place: Place, note: str = "", also: Mapping[str, Quantity] | None = None) -> Part:
        return place.part(place.falls("sparsity", "sparsity"), note=note, also=also)

    return _claim(
        "denser-features",
        parts=(
            part(SEAQUEST),
            part(SEAQUEST_4M, CHOSEN, atari),
            part(BREAKOUT, also=rank),
            part(MINATAR_SEAQUEST, settled, minatar),
        ),
    )


TERMS = {
    "norm": ("norm", "feature_norm"),
    "cross-sample term": ("cross-sample term", "cross_term"),
    "variance": ("sum of standard deviations", "std_sum"),
}


def falling_terms() -> Claim:
    """Figure 6a, 6c and 6e: norm, cross-sample term and variance."""

    def part(place: Place, aspect: str) -> Part:
        what, name = TERMS[aspect]
        also: dict[str, Quantity] = {}
        if place is SEAQUEST_4M:
            label = f"{what} with {place.penalty} less that of `norm (0.1)`"
            also = {label: place.value(name, place.arm, "norm (0.1)")} | place.of_author(what, name)
        if place is MINATAR_SEAQUEST:
            also = {f"{what} of {place.shrunk} less that without": place.value(name, place.control, "dqn")}
            also |= place.held_out(what, name)
        note = CHOSEN if place is SEAQUEST_4M and aspect == "norm" else ""
        return place.part(place.falls(what, name), aspect, note, also)

    others = {
        f"{what} with the penalty less that without": BREAKOUT.value(name, "gram", "dqn")
        for what, name in list(TERMS.values())[1:]
    }
    return _claim(
        "falling-terms",
        parts=(
            *(part(SEAQUEST, aspect) for aspect in TERMS),
            *(part(SEAQUEST_4M, aspect) for aspect in TERMS),
            BREAKOUT.part(BREAKOUT.falls("norm", "feature_norm"), also=others),
            *(part(MINATAR_SEAQUEST, aspect) for aspect in TERMS),
        ),
    )


def gradient_growth() -> Claim:
    """Figure 6: where the growth of the head's gradients comes from."""
    share = "share of the growth that the {} accounts for"
    norm, error = share.format("norm"), share.format("TD error")
    small = replace(MINATAR_SEAQUEST, command=MINATAR_RUN + MINATAR_REPORT)
    games = {
        title: f"minatar/{name}"
        for title, name in {
            "Asterix": "asterix", "Breakout": "breakout", "Freeway": "freeway", "SpaceInvaders": "space_invaders",
        }.items()
    }  # fmt: skip

    def parts(place: Place) -> list[Part]:
        def value(name: str, minus: str = "", game: str = "") -> Quantity:
            if place is small:
                return feature(f"{place.folder}/features.csv", game or place.game, name, "dqn", minus=minus)
            return place.value(name, "dqn", minus=minus)

        shares = value("growth_share_feature_norm"), value("growth_share_td_error")
        mainly = effect(
            norm,
            shares[0],
            "rises",
            null=0.5,
            beyond_label="share that the norm accounts for less the share of the TD error",
            beyond=value("growth_share_feature_norm", "growth_share_td_error"),
        )
        of_norm = {
            "growth of log‖gradient‖ (1 is a factor of e)": value("growth_log_head_gradient"),
            "growth of log‖φ‖": value("growth_log_feature_norm"),
        }
        of_error = {"growth of log|TD error|": value("growth_log_td_error")}
        for title, game in games.items() if place is small else ():
            of_norm[f"{norm}, in {title}"] = value("growth_share_feature_norm", game=game)
            of_error[f"{error}, in {title}"] = value("growth_share_td_error", game=game)
        return [
            place.part(mainly, "mainly the norm", also=of_norm),
            place.part(effect(error, shares[1], "falls", null=0.5), "not the TD error", also=of_error),
        ]

    places = (SEAQUEST, replace(SEAQUEST_4M, name="Seaquest, 4M frames"), BREAKOUT, small)
    return _claim(
        "gradient-growth",
        parts=tuple(part for place in places for part in parts(place)),
    )


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim, in the order of the page.

    Examples
    --------
    >>> [claim.id for claim in claims()][:3]
    ['proposition-1', 'proposition-2', 'proposition-3']
    """
    return (
        *propositions(), regression(), mountain_car_gain(), mountain_car_correlation(), mountain_car_sensitivity(),
        close_to_orthogonal(), gram_is_decor(), linear_cost(), gram_scores_like_decor(), forty_of_49(), median_score(),
        denser_features(), falling_terms(), gradient_growth(),
    )  # fmt: skip
