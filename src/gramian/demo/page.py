"""What the demo adds to the report of its study."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from gramian.demo.differences import Experiment
from gramian.report.page.html import Section, picture, table


def first_section(experiments: Sequence[Experiment], arms: Sequence[str], seeds: int) -> Section:
    """What was done, and which differences can be told from noise."""
    tables = "".join(_experiment(experiment) for experiment in experiments)
    named = ", ".join(f"<code>{escape(arm)}</code>" for arm in arms)
    return Section("demo", "What you see here", _INTRO.format(tables=tables, seeds=seeds, arms=named))


def _experiment(experiment: Experiment) -> str:
    rows = [[row.what, row.mean, row.interval, row.verdict, row.tells] for row in experiment.differences]
    headings = ["difference", "mean", "95 % interval", "verdict", "the effect of"]
    if not any(row.tells for row in experiment.differences):
        rows, headings = [row[:-1] for row in rows], headings[:-1]
    levels = f"<p class='small quiet'>Means: {escape(experiment.levels)}.</p>" if experiment.levels else ""
    return f"<h3>{escape(experiment.title)}</h3>{levels}" + table(headings, rows, "", "words")


def last_sections(regression: Path, mountain_car: Path) -> list[Section]:
    """The figures of the two linear experiments."""
    return [
        Section(
            "regression",
            "Regression",
            _REGRESSION
            + picture(regression / "regression.png", "Excess error while learning, the same α in every arm")
            + picture(regression / "regression_controls.png", "The controls, at matched step size"),
        ),
        Section(
            "mountain-car",
            "Mountain Car",
            _MOUNTAIN_CAR
            + picture(mountain_car / "mountain_car.png", "Steps per episode over the step size; fewer are better")
            + picture(mountain_car / "mountain_car_controls.png", "All arms, each at its best λ"),
        ),
    ]


_INTRO = """
<p>The paper's three experiments, reduced to a few minutes: linear regression and Mountain Car with decorrelated
features, and DQN with and without the Gram penalty ({arms}) on one small game. The linear ones have the controls that
the paper lacks: without them a larger step size and smaller features pass for decorrelation. A difference is
<em>clear</em> where its 95 % interval leaves out 0; where there is nothing to find, one in twenty is so by chance.</p>
{tables}
<p>With {seeds} seeds an interval on the game is so wide that nearly every difference is within noise, whichever way it
points: it is Student's, over pairs of the same seed, which knows how little so few runs say. The bootstrap intervals of
the report below are narrower than they should be at so few seeds. “Within noise” is no evidence that there is no
difference.</p>
<p>The number after the arm's name is κ, the weight of the penalty. The code of the paper's predecessor has κ = 10.24,
for Atari; on MinAtar it all but extinguishes the features (<code>results/representation</code> has the numbers). The
demo takes a round number a hundred times smaller. It was not tuned, and the demo is no evidence for or against it.</p>
<p>To go on: <code>gramian study run minatar --out runs/minatar</code> trains five games, seven arms and five seeds;
<code>gramian regression</code> and <code>gramian mountain-car</code> do the linear experiments in full.</p>"""

_REGRESSION = """
<p>Labels y = x₁ + 2x₂ are learned from one sample after the other, with weights w = A·1 and a term, weighted by λ, that
decorrelates Aᵀx. One step of A moves w as far as d plain steps: with λ = 0 it <em>is</em> plain regression at α·d
(d = 2), to the last digit. The first figure is the paper's pairing, the same α for both; the second has every arm at
matched step size. What the term adds is the difference to “plain, α·d”.</p>"""
_MOUNTAIN_CAR = """
<p>Q-learning with tile coding, without exploration, in a reduced sweep. The axis is α·k·d, the learning rate of the
value function, so that λ = 0 lies on plain learning at α·d (circles). “Norm alone” shrinks the features without
decorrelating them: what decorrelation adds is the difference to it.</p>"""
