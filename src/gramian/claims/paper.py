"""The claims of the paper: the numbers to look at, and the rule that makes a verdict of them.

What the paper says of each, where, and how it was put to the test is in ``texts.toml``. There is no result in either.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from typing import Any

from gramian.claims.rules import Claim, Part, Rule, Statements, effect, equivalent, within
from gramian.claims.seeds import feature, scores
from gramian.claims.tables import Quantity, Where, column, distinct, exponent, largest, over_rows, paper

Numbers = Mapping[str, Quantity]
"""Quantities by label."""


@cache
def _texts() -> dict[str, Any]:
    return tomllib.loads((files("gramian.claims") / "texts.toml").read_text(encoding="utf-8"))


def _claim(name: str, parts: Sequence[Part], ran: Numbers | None = None, beside: Numbers | None = None) -> Claim:
    """A claim with its texts; ``ran`` are numbers in what was run, ``beside`` numbers of the paper's own table."""
    texts = {key: text for key, text in _texts()[name].items() if key != "statements"}
    return Claim(name, **texts, parts=tuple(parts), ran_values=ran or {}, beside=beside or {})


# ---- the linear half -------------------------------------------------------------------------------------------------

THEORY = "linear/theory.csv"
CURVES, SUMMARY = "linear/regression.csv", "linear/regression_summary.csv"
CAR, CONTRASTS = "linear/mountain_car.csv", "linear/mountain_car_contrasts.csv"
CAR_SUMMARY, CAR_FEATURES = "linear/mountain_car_summary.csv", "linear/mountain_car_features.csv"
CAR_DISTANCES = "linear/mountain_car_distances.csv"
TWO_SAMPLES = "linear/two_sample/mountain_car_contrasts.csv"
SINGLE = "A, single-sample (the paper)"
ORTHOGONAL = 0.1
"""Largest distance that is close; A = 0 has the distance 1."""
CAR_COMMAND, REGRESSION_COMMAND = "gramian mountain-car --out mountain-car", "gramian regression --out regression"
MATCHED, SHRUNK = "what remains at matched step size", "beyond the norm penalty"


def _of_regression(name: str, arm: str, rho: float, *, times: float = 1.0, least: str = "") -> Quantity:
    """A mean of the regression's summary, with its standard error."""
    where: Where = {"arm": arm, "rho": rho}
    return column(SUMMARY, f"{name}_mean", where, error=f"{name}_se", times=times, least=least)


def proposition(number: int) -> Claim:
    """A proposition, which stands or falls with its statements on at least five random processes."""
    name, processes = f"proposition-{number}", {"processes": distinct(THEORY, "process")}
    label = "excess error of the {} at the end, ρ = 0.99"
    also = {
        label.format("projected regression"): _of_regression("final", "A projected, λ = 0", 0.99),
        label.format("regression without projection"): _of_regression("final", "A, λ = 0", 0.99),
    }
    part = Part(
        Statements(THEORY, **_texts()[name]["statements"]),
        needs={"processes": 5},
        counted=processes,
        command="gramian theory --out theory",
        also=also if number == 2 else {},
    )
    return _claim(name, [part], processes)


def regression() -> Claim:
    """Figure 1: linear regression, against the same and the matched step size."""

    def part(rho: float) -> Part:
        area = partial(_of_regression, rho=rho, times=1000)
        with_term = "area × 10³ with the term minus plain regression at"
        plain = area("area", SINGLE, least="area_mean") - area("area", "plain, α")
        control = area("area_minus_control", SINGLE, least="area_mean")
        rule = effect(f"{with_term} the same α", plain, "falls", beyond=(f"{with_term} α·d", control))
        runs = {"runs": column(SUMMARY, "runs", {"rho": rho}, least="runs")}
        return Part(rule, f"ρ = {rho:g}", needs={"runs": 500}, counted=runs, command=REGRESSION_COMMAND)

    single = {"arm": SINGLE}
    ran = {
        "runs": largest(CURVES, "runs"),
        "steps": largest(CURVES, "step"),
        "lambdas": distinct(SUMMARY, "lambda", single),
        "least": column(SUMMARY, "lambda", single, least="lambda"),
        "most": largest(SUMMARY, "lambda", single),
    }
    return _claim("regression", [part(0.99), part(0.0)], ran)


def _contrast(question: str, value: str = "difference", copies: int = 1, table: str = CONTRASTS) -> Quantity:
    """A comparison of two arms on Mountain Car."""
    low, high = ("ratio_low", "ratio_high") if value == "ratio" else ("low", "high")
    return column(table, value, {"copies": copies, "question": question}, low=low, high=high)


def _car_part(rule: Rule, runs: Quantity, also: Numbers | None = None) -> Part:
    return Part(rule, needs={"runs": 50}, counted={"runs": runs}, command=CAR_COMMAND, also=also or {})


def mountain_car_gain() -> Claim:
    """Figure 2a: fewer steps an episode."""
    pairing = "the paper's pairing: same α"
    label = "steps with the term minus plain learning at the same α"
    control = "steps with the term minus the control that only shrinks"
    rule = effect(label, _contrast(pairing), "falls", beyond=(control, _contrast(SHRUNK)))
    ratio = "ratio of steps at equal settings, the term over"
    also = {
        "steps of plain learning at α·d minus plain learning at α: the step size alone": "of that, step size alone",
        "steps with the term minus plain learning at α·d": MATCHED,
        "steps of the control that only shrinks minus plain learning at α·d": "norm penalty at matched step size",
        "steps with the unbiased term minus the control that only shrinks": "beyond the norm penalty, unbiased",
    }
    shown = {label: _contrast(question) for label, question in also.items()} | {
        f"{ratio} plain learning at α·d": _contrast(MATCHED, "ratio"),
        f"{ratio} the control that only shrinks": _contrast(SHRUNK, "ratio"),
    }
    own = "ratio of steps at equal settings, the unbiased term over its own control that only shrinks,"
    for copies, name in ((1, "with copies"), (0, "without copies")):
        shown[f"{own} {name}"] = _contrast("beyond the norm penalty of two samples", "ratio", copies, TWO_SAMPLES)
    part = _car_part(rule, _contrast(SHRUNK, "runs"), shown)
    return _claim("mountain-car-gain", [part], {"runs": largest(CAR, "runs")})


def mountain_car_correlation() -> Claim:
    """Figure 2a against 2b: the gain with copied features against that without."""

    def gain(question: str) -> Quantity:
        return _contrast(question) - _contrast(question, copies=0)

    control = "steps with the term minus the control that only shrinks, with copies minus without"
    label = "gain at the matched step size with copies minus that without"
    rule = effect(label, gain(MATCHED), "falls", beyond=(control, gain(SHRUNK)))
    ratio = "ratio of steps at equal settings, the term over plain learning at α·d,"
    both = {"with copies": 1, "without copies": 0}
    also = {f"{ratio} {name}": _contrast(MATCHED, "ratio", copies) for name, copies in both.items()} | {
        f"mean absolute correlation of visited states {name}": column(
            CAR_FEATURES, "mean_abs_correlation_visited", {"copies": copies}
        )
        for name, copies in both.items()
    }
    return _claim("mountain-car-correlation", [_car_part(rule, _contrast(SHRUNK, "runs", 0), also)])


def mountain_car_sensitivity() -> Claim:
    """Figure 2a: the range of good step sizes."""
    arm = "A, single-sample"

    def share(name: str, arm: str = arm) -> Quantity:
        where: Where = {"copies": 1, "arm": arm}
        return column(CAR_SUMMARY, name, where, low=f"{name}_low", high=f"{name}_high", least="steps")

    control = "share with the term minus that of the control that only shrinks"
    beyond = share("share_own") - share("share_own", "A, norm alone")
    rule = effect(
        "share with the term minus that without", share("share_against_zero"), "rises", beyond=(control, beyond)
    )
    runs = column(CAR, "runs", {"copies": 1, "arm": arm}, least="runs")
    return _claim("mountain-car-sensitivity", [_car_part(rule, runs)])


def close_to_orthogonal() -> Claim:
    """‖AᵀA − I‖_F/√d after learning, for the λ that stays nearest to orthogonal."""
    label = "distance ‖AᵀA − I‖_F/√d after learning, at the λ that keeps it smallest"

    def part(setting: str, table: str, command: str, least: int, **where: str | float) -> Part:
        distance = partial(column, table, least="distance_mean")
        without = column(table, "distance_mean", where | {"arm": "A, λ = 0"})
        return Part(
            within(label, distance("distance_mean", where, error="distance_se"), most=ORTHOGONAL),
            setting,
            needs={"runs": least},
            counted={"runs": distance("runs", where)},
            command=command,
            also={"distance without the term, λ = 0": without},
        )

    parts = [
        part(f"Mountain Car, {name}", CAR_DISTANCES, CAR_COMMAND, 5, copies=copies, arm="A, single-sample")
        for copies, name in ((1, "features copied"), (0, "no copies"))
    ]
    parts += [
        part(f"regression, ρ = {rho:g}", CURVES, REGRESSION_COMMAND, 500, rho=rho, arm=SINGLE, step=20_000)
        for rho in (0.99, 0.0)
    ]
    return _claim("close-to-orthogonal", parts)


# ---- the Gram penalty ------------------------------------------------------------------------------------------------

EQUALITY, COST = "cost/equality.csv", "cost/penalties.csv"


def gram_is_decor() -> Claim:
    """The Gram form against the covariance, in value and gradient."""
    variance = "largest relative difference in value with Var_i read as the variance of uncentred features"
    parts = [
        Part(
            within(f"largest relative difference in {name}", largest(EQUALITY, f"{name}_difference"), most=1e-12),
            name,
            needs={"cases": 100},
            counted={"cases": over_rows(EQUALITY, len)},
            command="python -m benchmarks.equality --csv equality.csv",
            also={variance: largest(EQUALITY, "value_difference_variance")} if name == "value" else {},
        )
        for name in ("value", "gradient")
    ]
    sizes = {"kinds": distinct(EQUALITY, "case")}
    for name in ("n", "d"):
        sizes |= {f"least_{name}": column(EQUALITY, name, least=name), f"most_{name}": largest(EQUALITY, name)}
    return _claim("gram-is-decor", parts, sizes)


def linear_cost() -> Claim:
    """O(d) against O(d²)."""

    def part(setting: str, device: str, value: str, what: str) -> Part:
        def growth(form: str, axis: str = "d") -> Quantity:
            return exponent(COST, value, axis, {"device": device, "axis": axis, "form": form})

        def at_512(form: str) -> Quantity:
            return column(COST, value, {"device": device, "axis": "d", "d": 512, "form": form})

        covariance = f"exponent of the covariance's {what} in d minus that of the Gram form's"
        rule = within(
            f"exponent of the Gram form's {what} in d",
            growth("gram"),
            most=1.0,
            null=2.0,
            beyond=(covariance, growth("covariance") - growth("gram")),
        )
        sizes = over_rows(COST, len, {"device": device, "axis": "d", "form": "covariance"})
        in_n = "exponent of the Gram form's time in the batch size, n from 8 to 1,024 at d = 512"
        at_paper = "time of the covariance over that of the Gram form at d = 512"
        also = {in_n: growth("gram", "n"), at_paper: at_512("covariance") / at_512("gram")} if what == "time" else {}
        command = "python -m benchmarks.penalties --csv penalties.csv"
        return Part(rule, setting, needs={"sizes": 5}, counted={"sizes": sizes}, command=command, also=also)

    ran = {
        "least": column(COST, "d", {"device": "cpu", "axis": "d", "form": "gram"}, least="d"),
        "most": largest(COST, "d", {"axis": "d", "form": "gram"}),
        "n": largest(COST, "n", {"axis": "d"}),
    }
    parts = [
        part("time on the CPU", "cpu", "microseconds", "time"),
        part("time on the GPU", "cuda", "microseconds", "time"),
        part("memory", "cuda", "peak_bytes", "peak memory"),
    ]
    return _claim("linear-cost", parts, ran)


# ---- deep runs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """Runs that arms were compared in, by their scores or by the features of one game."""

    name: str
    folder: str
    needs: Mapping[str, int]
    command: str
    game: str = ""
    """Whose features were measured."""
    arm: str = "gram"
    called: str = "DQN-Gram"
    """How labels put the arm, or its penalty."""
    control: str = "norm (matched)"
    shrunk: str = "`norm (matched)`"
    """How labels put the control."""
    note: str = ""
    elsewhere: bool = True
    """Whether it is not the paper's own."""

    def part(self, rule: Rule, aspect: str = "", note: str = "", also: Numbers | None = None) -> Part:
        """A part of a claim in this setting."""
        return Part(
            rule,
            f"{self.name}: {aspect}" if aspect else self.name,
            awaited=True,
            elsewhere=self.elsewhere,
            needs=self.needs,
            command=self.command,
            note=" ".join(filter(None, (self.note, note))),
            also=also or {},
        )

    def scores(self, minus: str, statistic: str, arm: str = "") -> Quantity:
        """The arm, or another one, compared with a third by its scores."""
        return scores(f"{self.folder}/scores.csv", arm or self.arm, minus, statistic)

    def played(self, name: str, arm: str, minus_arm: str = "", minus: str = "") -> Quantity:
        """A measure of an arm in play, minus that of another arm, or minus another measure."""
        return feature(f"{self.folder}/measures.csv", self.game, name, arm, minus_arm, minus)

    def against(self, what: str, name: str) -> dict[str, Quantity]:
        """A measure of the arm minus that of DQN and minus that of its control."""
        return {
            f"{what} with {self.called} minus that without": self.played(name, self.arm, "dqn"),
            f"{what} with {self.called} minus that of {self.shrunk}": self.played(name, self.arm, self.control),
        }

    def held_out(self, what: str, name: str) -> dict[str, Quantity]:
        """The same on held-out states."""
        labels = (label.replace(what, f"{what} on held-out states", 1) for label in self.against(what, name))
        values = (
            feature(f"{self.folder}/features.csv", self.game, f"held_out_{name}", self.arm, other)
            for other in ("dqn", self.control)
        )
        return dict(zip(labels, values, strict=True))

    def falls(self, what: str, name: str) -> Rule:
        """The measure falls with the penalty, and further than with the control."""
        (label, value), beyond = self.against(what, name).items()
        return effect(label, value, "falls", beyond=beyond)


# ---- scores ----------------------------------------------------------------------------------------------------------

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
PAPER = Setting(
    name="49 Atari games, 20M frames",
    folder="atari",
    needs={"seeds": 3, "games": 49, "frames": 17_900_000},
    command=(
        "gramian study run controls --out runs/controls\ngramian study report runs/controls --out report/controls\n"
    ),
    control="norm",
    shrunk="the control `norm`",
    elsewhere=False,
)
ATARI49 = replace(
    PAPER,
    name="49 Atari games, 4M frames, MinAtar's κ",
    folder="atari49",
    needs={"seeds": 1, "games": 49, "frames": 3_900_000},
    command="gramian study run atari49 --out runs/atari49\ngramian study report runs/atari49 --out report/atari49\n",
    elsewhere=True,
)
AUTHORS = Setting(
    name="four Atari games, 4M frames, the author's κ",
    folder="atari",
    needs={"seeds": 3, "games": 4, "frames": 3_900_000},
    command=f"{ATARI_RUN}gramian study report runs/atari --out report/atari\n",
    called="DQN-Gram at the author's κ",
    note=AUTHOR,
)
ATARI = (
    AUTHORS,
    replace(
        AUTHORS,
        name="four Atari games, 4M frames, MinAtar's κ",
        arm="gram (0.082)",
        called="DQN-Gram at MinAtar's κ",
        note=CHOSEN,
    ),
)
MINATAR = Setting(
    name="five MinAtar games, 1M frames",
    folder="minatar",
    needs={"seeds": 3, "games": 5, "frames": 990_000},
    command=MINATAR_RUN + MINATAR_REPORT,
    shrunk="`norm` at equal feature norm",
)


def gram_scores_like_decor() -> Claim:
    """Figure 3: the equal penalties give equal results."""
    label = "probability that DQN-Gram beats DQN-decor"
    parts = [
        setting.part(equivalent(label, setting.scores("decor", "improvement"), margin=0.1, null=0.5))
        for setting in (PAPER, MINATAR)
    ]
    ahead = {f"games in which DQN-{name} is ahead of DQN": paper(name.lower(), "wins") for name in ("decor", "Gram")}
    return _claim("gram-scores-like-decor", parts, beside=ahead)


def forty_of_49() -> Claim:
    """Figure 4: games in which the area under the learning curve is larger."""

    def part(setting: Setting) -> Part:
        label = f"share of games in which {setting.called} has the larger area than"
        rule = within(
            f"{label} DQN",
            setting.scores("dqn", "games_won"),
            least=0.8163,
            null=0.5,
            beyond=(f"{label} {setting.shrunk}", setting.scores(setting.control, "games_won")),
            beyond_null=0.5,
        )
        others = {"dqn": "DQN", setting.control: setting.shrunk}
        also = {
            f"area of {setting.called} minus that of {name}, in percent of what DQN learns": setting.scores(
                other, "area_difference"
            )
            for other, name in others.items()
        }
        also |= {
            f"probability that {setting.called} beats {name} in area, by pairs of the same seed": setting.scores(
                other, "area_improvement"
            )
            for other, name in others.items()
        }
        return setting.part(rule, also=also if setting.elsewhere else {})

    beside = {
        "games in which DQN-Gram is ahead of DQN": paper("gram", "wins"),
        "games in which DQN-Gram is behind DQN": paper("gram", "losses"),
    }
    return _claim("forty-of-49", [part(setting) for setting in (PAPER, ATARI49, *ATARI, MINATAR)], beside=beside)


def median_score() -> Claim:
    """Figure 3: the median of human-normalised scores."""

    def part(setting: Setting) -> Part:
        label, other = f"median of {setting.called} minus that of", "norm (0.1)"
        beyond = (f"{label} {setting.shrunk}", setting.scores(setting.control, "median"))
        rule = effect(f"{label} DQN", setting.scores("dqn", "median"), "rises", beyond=beyond)
        also = {f"{label} `{other}`": setting.scores(other, "median")} if setting in ATARI else {}
        return setting.part(rule, also=also)

    names = {"DQN": "dqn", "DQN-decor": "decor", "DQN-Gram": "gram"}
    beside = {f"median of {name}": paper(arm, "median") for name, arm in names.items()}
    return _claim("median-score", [part(setting) for setting in (PAPER, ATARI49, *ATARI)], beside=beside)


# ---- features --------------------------------------------------------------------------------------------------------

SEAQUEST = Setting(
    name="Seaquest, 20M frames",
    folder="atari",
    game="seaquest",
    needs={"seeds": 3, "frames": 4_500_000},
    command=(
        "gramian train --game seaquest --arm dqn --arm gram --arm norm --seeds 0 1 2 --out runs/seaquest\n"
        "gramian analyze runs/seaquest/seaquest-* --states 1_000_000 --out report/seaquest\n"
    ),
    called="the penalty",
    control="norm",
    shrunk="the control `norm`",
    elsewhere=False,
)
SEAQUEST_4M = Setting(
    name="Seaquest, 4M frames, MinAtar's κ",
    folder="atari",
    game="seaquest",
    needs={"seeds": 3, "frames": 990_000},
    command=(
        f"{ATARI_RUN}gramian analyze runs/atari/*/populations/*/seaquest-* --states 100_000 --out runs/atari/analysis\n"
    ),
    arm="gram (0.082)",
    called="the penalty at MinAtar's κ",
)
BREAKOUT = replace(
    SEAQUEST,
    name="MinAtar Breakout, 100,000 frames",
    folder="representation",
    game="minatar/breakout",
    needs={"seeds": 3, "frames": 99_000},
    command=(
        "gramian train --game minatar/breakout --arm dqn --arm gram --seeds 0 1 --frames 100_000 "
        "--representation-period-agent-steps 5_000 --out runs/example\n"
        "gramian analyze runs/example/minatar-* --states 1_000_000 --epsilon 0.01 --out report/example\n"
    ),
    elsewhere=True,
)
MINATAR_SEAQUEST = Setting(
    name="MinAtar Seaquest, 1M frames",
    folder="minatar",
    game="minatar/seaquest",
    needs=SEAQUEST_4M.needs,
    command=(
        f"{MINATAR_RUN}gramian analyze runs/minatar/populations/*/minatar-seaquest-* --states 100_000 "
        f"--out runs/minatar/analysis\n{MINATAR_REPORT}"
    ),
    called="the penalty",
    shrunk="`norm` at equal feature norm",
)
RICHER = {
    "effective rank": "effective_rank",
    "mean absolute correlation": "mean_abs_correlation",
    "dormant share (τ = 0.025)": "dormant_share_0.025",
}
"""What speaks of a richer representation beside the sparsity."""
TERMS = {
    "norm": ("norm", "feature_norm"),
    "cross-sample term": ("cross-sample term", "cross_term"),
    "variance": ("sum of standard deviations", "std_sum"),
}


def _beyond_other(what: str, name: str) -> dict[str, Quantity]:
    """The short runs on Atari minus the other control."""
    label = f"{what} with {SEAQUEST_4M.called} minus that of `norm (0.1)`"
    return {label: SEAQUEST_4M.played(name, SEAQUEST_4M.arm, "norm (0.1)")}


def _of_author(what: str, name: str) -> dict[str, Quantity]:
    """They minus DQN at the author's κ."""
    return {f"{what} with the penalty at the author's κ minus that without": SEAQUEST_4M.played(name, "gram", "dqn")}


def denser_features() -> Claim:
    """Figure 5: the share of zero entries."""
    sparsity = ("sparsity", "sparsity")
    atari = _beyond_other(*sparsity) | _of_author(*sparsity)
    minatar = MINATAR_SEAQUEST.held_out(*sparsity)
    for richer in RICHER.items():
        atari |= SEAQUEST_4M.against(*richer) | _beyond_other(*richer)
        minatar |= MINATAR_SEAQUEST.against(*richer)
    rank = {"effective rank with the penalty minus that without": BREAKOUT.played("effective_rank", "gram", "dqn")}
    settled = (
        "That states in play decide here, as on Atari and in the paper, and not held-out states of a random player, "
        "was settled when both numbers were known; the held-out ones stand below."
    )
    parts: list[tuple[Setting, str, Numbers]] = [
        (SEAQUEST, "", {}), (SEAQUEST_4M, CHOSEN, atari), (BREAKOUT, "", rank), (MINATAR_SEAQUEST, settled, minatar),
    ]  # fmt: skip
    return _claim(
        "denser-features",
        [place.part(place.falls(*sparsity), note=note, also=also) for place, note, also in parts],
    )


def falling_terms() -> Claim:
    """Figure 6a, 6c and 6e: norm, cross-sample term and variance."""

    def part(place: Setting, aspect: str) -> Part:
        what, name = TERMS[aspect]
        also: dict[str, Quantity] = {}
        if place is SEAQUEST_4M:
            also = _beyond_other(what, name) | _of_author(what, name)
        if place is MINATAR_SEAQUEST:
            also = {f"{what} of {place.shrunk} minus that without": place.played(name, place.control, "dqn")}
            also |= place.held_out(what, name)
        note = CHOSEN if place is SEAQUEST_4M and aspect == "norm" else ""
        return place.part(place.falls(what, name), aspect, note, also)

    others = {
        f"{what} with the penalty minus that without": BREAKOUT.played(name, "gram", "dqn")
        for what, name in list(TERMS.values())[1:]
    }
    before, after = ([part(place, aspect) for place in places for aspect in TERMS]
                     for places in ((SEAQUEST, SEAQUEST_4M), (MINATAR_SEAQUEST,)))  # fmt: skip
    breakout = BREAKOUT.part(BREAKOUT.falls(*TERMS["norm"]), also=others)
    return _claim("falling-terms", [*before, breakout, *after])


def gradient_growth() -> Claim:
    """Figure 6: where the growth of the head's gradients comes from."""
    norm, error = (f"share of the growth that the {part} accounts for" for part in ("norm", "TD error"))
    of_norm, of_error = "growth_share_feature_norm", "growth_share_td_error"
    small = replace(MINATAR_SEAQUEST, command=MINATAR_RUN + MINATAR_REPORT)
    games = {"Asterix": "asterix", "Breakout": "breakout", "Freeway": "freeway", "SpaceInvaders": "space_invaders"}

    def parts(place: Setting) -> list[Part]:
        def value(name: str, minus: str = "", game: str = place.game) -> Quantity:
            table = "features.csv" if place is small else "measures.csv"
            return feature(f"{place.folder}/{table}", game, name, "dqn", minus=minus)

        beyond = ("share that the norm accounts for minus the share of the TD error", value(of_norm, of_error))
        mainly = effect(norm, value(of_norm), "rises", null=0.5, beyond=beyond)
        beside_norm = {
            "growth of log‖gradient‖ (1 is a factor of e)": value("growth_log_head_gradient"),
            "growth of log‖φ‖": value("growth_log_feature_norm"),
        }
        beside_error = {"growth of log|TD error|": value("growth_log_td_error")}
        for title, game in games.items() if place is small else ():
            beside_norm[f"{norm}, in {title}"] = value(of_norm, game=f"minatar/{game}")
            beside_error[f"{error}, in {title}"] = value(of_error, game=f"minatar/{game}")
        return [
            place.part(mainly, "mainly the norm", also=beside_norm),
            place.part(effect(error, value(of_error), "falls", null=0.5), "not the TD error", also=beside_error),
        ]

    places = (SEAQUEST, replace(SEAQUEST_4M, name="Seaquest, 4M frames"), BREAKOUT, small)
    return _claim("gradient-growth", [part for place in places for part in parts(place)])


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim, in the order of the page."""
    return (
        *map(proposition, range(1, 7)), regression(), mountain_car_gain(), mountain_car_correlation(),
        mountain_car_sensitivity(), close_to_orthogonal(), gram_is_decor(), linear_cost(), gram_scores_like_decor(),
        forty_of_49(), median_score(), denser_features(), falling_terms(), gradient_growth(),
    )  # fmt: skip
