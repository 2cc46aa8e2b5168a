"""The page: one HTML file that opens from the disk, holds all its numbers and asks no network for anything."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import gramian
from gramian.core.arms import arm_styles
from gramian.core.progress import counted
from gramian.core.statistics import CONFIDENCE
from gramian.report import reference
from gramian.report.analysis import MOST_SHOWN, Analysis, Comparison
from gramian.report.cautions import about_ranges
from gramian.report.differences import difference_words, differences
from gramian.report.dynamics import Dynamics, Growths
from gramian.report.html import class_of, definitions, table
from gramian.report.kappa_section import kappa_section
from gramian.report.payload import gain_sentence, payload, script_json
from gramian.report.protocol import commands, provenance_table, settings_table
from gramian.report.representation import Representation
from gramian.report.section import Section
from gramian.report.small import feature_pictures, pictures, representation_pictures
from gramian.report.tables import Table, count_text, interval_text, number, score_text
from gramian.representation.seeds import MOST_OF_A_RANGE
from gramian.study.manifest import Planned
from gramian.study.store import Study

MOST_MISSING = 500
"""Unfinished cells that the page lists; the others are in ``scores.csv``."""


@dataclass(frozen=True)
class Page:
    """What the page is made of."""

    title: str
    study: Study
    analysis: Analysis
    dynamics: Dynamics
    table: Table
    growths: Growths = field(default_factory=dict)
    representation: Representation | None = None
    planned: Planned = field(default_factory=Planned)
    before: Sequence[Section] = ()
    """Sections of others, before those of the study."""
    after: Sequence[Section] = ()
    """Sections of others, after the results of the study."""
    figures: Path | None = None
    """Folder of the report's figures. Where it is given the page has no scripts, and these as pictures in it."""
    control: str = ""
    """What the arms have beyond the control, as HTML; empty where there is none."""
    equal_norm: str = ""
    """What they have beyond a control at their own norm, likewise."""

    def html(self) -> str:
        """The whole page. Every word that comes from a file is escaped."""
        sections = [
            *((section.name, escape(section.heading), section.html) for section in self.before),
            ("summary", "In short", self._summary()),
            ("curves", "Learning curves", self._curves()),
            ("all-games", "All games", "" if self.figures else _ALL_GAMES),
            ("overall", "Median and IQM", self._overall()),
            ("control", f"Beyond {escape(self.analysis.control)}", self.control),
            ("equal-norm", "At equal feature norm", self.equal_norm),
            ("gains", "AUC gains", self._gains()),
            ("kappa", "Choice of κ", self._kappa()),
            ("scores", "Scores", self._scores()),
            ("features", "Features during training", self._features()),
            ("representation", "Trained features", self._representation()),
            *((section.name, escape(section.heading), section.html) for section in self.after),
            ("run", "What was run", self._run()),
            ("method", "How the numbers are made", self._method()),
        ]
        there = [(name, heading, body) for name, heading, body in sections if body]
        links = "".join(f'<li><a href="#{name}">{heading}</a></li>' for name, heading, _ in there)
        bodies = "".join(
            f'<section id="{name}" aria-labelledby="h-{name}"><h2 id="h-{name}">{heading}</h2>{body}</section>'
            for name, heading, body in there
        )
        style = (files("gramian.report") / "page.css").read_text(encoding="utf-8") + self._arm_colors()
        return _FRAME.format(
            title=escape(self.title),
            style=style,
            theme="" if self.figures else _THEME,
            subtitle=escape(self._subtitle()),
            links=links,
            toolbar="" if self.figures else _TOOLBAR.format(boxes=_PUBLISHED_BOXES if self._published else ""),
            bodies=bodies,
            footer=_SMALL if self.figures else _NO_SCRIPT,
            scripts="" if self.figures else self._scripts(),
            version=escape(gramian.__version__),
        )

    def _scripts(self) -> str:
        """The numbers of the figures, plotly, and what draws them."""
        data = "".join(
            f'<script type="application/json" id="data-{name}">{script_json(value)}</script>\n'
            for name, value in payload(self.analysis, self.dynamics, self.growths, self.representation).items()
        )
        script = (files("gramian.report") / "page.js").read_text(encoding="utf-8")
        return f"{data}<script>{_plotly()}</script>\n<script>{script}</script>\n"

    @property
    def _published(self) -> bool:
        """Whether others have published scores of a game of the study."""
        return any(reference.atari(game) for game in self.analysis.games)

    def _subtitle(self) -> str:
        analysis, runs = self.analysis, self.study.runs
        done = int(runs["state"].is_in(["done", "diverged"]).sum())
        absent = int((analysis.missing["run"] == "").sum())
        frames = analysis.options.frames
        what = f"have come to {frames:,} frames, up to which they are looked at" if frames else "finished"
        return (
            f"{counted(len(analysis.games), 'game')} × {counted(len(analysis.arms), 'arm')} × "
            f"{counted(len(analysis.seeds), 'seed')}; {done:,} of {runs.height + absent:,} runs {what}"
        )

    def _arm_colors(self) -> str:
        styles = arm_styles(self.analysis.arms).values()
        pairs = (f"--arm{at}: light-dark({s.color}, {s.dark_color});" for at, s in enumerate(styles))
        return ":root { " + " ".join(pairs) + " }\n"

    # ---- sections --------------------------------------------------------------------------------------------------

    def _summary(self) -> str:
        analysis = self.analysis
        sentences = [_verdict(analysis, arm, comparison) for arm, comparison in analysis.comparisons.items()]
        html = ""
        if 0 < len(sentences) <= MOST_SHOWN:  # the table below has them all
            html = f'<ul class="lead">{"".join(f"<li>{text}</li>" for text in sentences)}</ul>'
        if analysis.cautions:
            items = "".join(f"<li>{escape(caution)}</li>" for caution in analysis.cautions)
            html += f'<div class="cautions" role="note"><strong>Read with care</strong><ul>{items}</ul></div>'
        if analysis.aggregates:
            rows = [
                [arm, *(interval_text(value) for value in (a.median, a.iqm, a.mean, a.optimality_gap))]
                for arm, a in analysis.aggregates.items()
            ]
            caption = (
                f"Human-normalised final scores ({analysis.options.human}), {counted(len(analysis.common), 'game')}, "
                f"with {CONFIDENCE:.0%} intervals"
            )
            html += table(["arm", "median", "IQM", "mean", "optimality gap"], rows, caption)
        if analysis.comparisons:
            headings = [
                "arm", "games", "final: won-tied-lost", "p", "AUC: won-tied-lost", "p", "pairs", "pairs won",
            ]  # fmt: skip
            rows = [
                [
                    arm, str(c.games), count_text(c.final), _p(c.final_p, c.games), count_text(c.auc),
                    _p(c.auc_p, c.games), str(c.pairs), interval_text(c.paired_improvement),
                ]
                for arm, c in analysis.comparisons.items()
            ]  # fmt: skip
            html += "<p></p>" + table(
                headings, rows, f"Against {analysis.options.baseline}; p of the sign test over games"
            )
        return html

    def _kappa(self) -> str:
        caption = "score against κ; a ring is around the chosen one"
        return kappa_section(
            self.analysis, self.planned, pictures(self.figures, {"kappa": caption}) if self.figures else ""
        )

    def _curves(self) -> str:
        if self.figures:
            beside = (
                f", each arm beside {self.analysis.options.baseline} (dashed)" if self.analysis.curves_by_arm() else ""
            )
            shown = {"learning-curves": f"Learning curves{beside}: mean over seeds; band: {_BAND}."}
            if self.analysis.has_baseline():
                baseline = self.analysis.options.baseline
                found = differences(self.analysis, baseline)
                shown["differences"] = difference_words(found, baseline, together=bool(found.common))
            return pictures(self.figures, shown) + self._ranges()
        options = self._game_options()
        band = (
            f"Line: mean over seeds; band: {CONFIDENCE:.0%} bootstrap interval over seeds. {_PUBLISHED_LINES}"
            if self._published
            else f"Line: mean over seeds; band: {CONFIDENCE:.0%} bootstrap interval over seeds."
        )
        paper = '<th scope="col">paper</th>' if self._published else ""
        baseline = escape(self.analysis.options.baseline)
        return f"""
<p class="quiet small">{band}</p>
<div class="bar"><label for="game">Game</label> <select id="game" data-game>{options}</select>
<button type="button" id="previous">← Previous</button><button type="button" id="next">Next →</button></div>
<div id="game-figure" class="figure tall" role="img"></div>
<div class="scroll" tabindex="0" role="region" aria-label="Scores of the chosen game"><table><thead><tr>
<th scope="col">arm</th><th scope="col">final score</th><th scope="col">finished</th>
<th scope="col">AUC gain over {baseline}</th><th scope="col">final − {baseline}, same seeds</th>
{paper}</tr></thead><tbody id="game-rows" aria-live="polite"></tbody></table></div>
{self._ranges()}"""

    def _ranges(self) -> str:
        said = about_ranges(self.analysis.final)
        return f'<p class="quiet small">{escape(said)}</p>' if said else ""

    def _game_options(self) -> str:
        return "".join(
            f'<option value="{at}">{escape(reference.title(game))}</option>'
            for at, game in enumerate(self.analysis.games)
        )

    def _overall(self) -> str:
        if not self.analysis.aggregates:
            return ""
        games = counted(len(self.analysis.common), "game")
        if self.figures:
            shown = {
                "median-and-iqm": f"median and IQM over {games}, human-normalised ({self.analysis.options.human})",
                "profiles": "performance profiles: share of runs whose final score is above τ",
            }
            return pictures(self.figures, shown) + self._improvement()
        return f"""
<p class="quiet small">Over {games}; a run's curve is normalised by the {self.analysis.options.human} human scores.</p>
<div class="bar"><label for="aggregate">Show</label> <select id="aggregate">
<option value="median">median over games</option><option value="iqm">interquartile mean of all runs</option></select>
</div>
<div id="aggregate-figure" class="figure" role="img" aria-label="Median and IQM over training; final values in the
first table"></div>
<h3>Performance profile</h3>
<p class="quiet small">Share of runs whose final score is above τ: a curve that lies higher is better.</p>
<div id="profile-figure" class="figure" role="img" aria-label="Performance profiles"></div>
{self._improvement()}"""

    def _improvement(self) -> str:
        """The comparison of two arms that rliable has: any run with any other, whatever their seeds."""
        rows = [[arm, interval_text(c.improvement)] for arm, c in self.analysis.comparisons.items() if c.games]
        if not rows:
            return ""
        said = (
            f"Any run of the arm with any of {escape(self.analysis.options.baseline)} in the same game, whatever their "
            "seeds; those of the same seed are compared in the first section."
        )
        found = table(["arm", "P(improvement)"], rows, "", "words")
        return f'<h3>Probability of improvement</h3><p class="quiet small">{said}</p>{found}'

    def _gains(self) -> str:
        analysis = self.analysis
        arms = [
            (at, arm)
            for at, arm in enumerate(analysis.arms)
            if arm in analysis.comparisons and not all(map(_nan, analysis.comparisons[arm].gain.estimate.tolist()))
        ]
        if not arms:
            return ""
        if self.figures:
            said = "".join(f"<li>{escape(gain_sentence(analysis, arm))}</li>" for _, arm in arms)
            shown = pictures(self.figures, {"auc-gain": f"AUC gain = {_GAIN}; hatched: losses"})
            return f"{shown}<ul>{said}</ul>{self._ranges()}"
        options = "".join(f'<option value="{at}">{escape(arm)}</option>' for at, arm in arms)
        return f"""
<p class="quiet small">AUC gain = {_GAIN}. Hatched: losses. A bar that the axis cuts carries ›.</p>
<div class="bar"><label for="gain-arm">Arm</label> <select id="gain-arm">{options}</select></div>
<p id="gain-count" aria-live="polite">{escape(gain_sentence(analysis, arms[0][1]))}</p>
<div id="gain-figure" class="figure" role="img" aria-label="AUC gain of every game"></div>
{self._ranges()}"""

    def _scores(self) -> str:
        table = self.table
        heads = [
            *(("", name) for name in ["game", *table.references, *table.arms]),
            *(("theirs", n) for n in table.published),
        ]
        button = "{}" if self.figures else '<button type="button" data-sort>{}</button>'
        head = "".join(f'<th scope="col"{class_of(kind)}>{button.format(escape(name))}</th>' for kind, name in heads)
        sorting = "" if self.figures else "A heading sorts. "
        body = ""
        for row in table.rows:
            best = max((score.mean for score in row.scores if not _nan(score.mean)), default=None)
            cells = [f'<td data-value="{value}">{number(value)}</td>' for value in row.reference]
            cells += [
                f'<td data-value="{score.mean}"'
                f"{class_of('best' if score.mean == best and len(row.scores) > 1 else '')}>"
                f"{_two_lines(score_text(score, counted_elsewhere=bool(table.seeds)))}</td>"
                for score in row.scores
            ]
            cells += [f'<td class="theirs" data-value="{value}">{number(value)}</td>' for value in row.published]
            body += f'<tr><th scope="row">{escape(row.game)}</th>{"".join(cells)}</tr>'
        foot = ""
        for name, own, theirs in table.summary:
            empty = "<td></td>" * len(table.references)
            cells = [f"<td>{_two_lines(text)}</td>" for text in own]
            cells += [f'<td class="theirs">{escape(text)}</td>' for text in theirs]
            foot += f'<tr class="summary"><th scope="row">{escape(name)}</th>{empty}{"".join(cells)}</tr>'
        return f"""
<p class="quiet small">{escape(table.caption)}
Underlined: the best arm of this study. {sorting}The same numbers are in <code>scores.csv</code>,
<code>table.md</code> and <code>table.tex</code>.</p>
<div class="scroll sticky" tabindex="0" role="region" aria-label="Scores of all games"><table>
<thead><tr>{head}</tr></thead><tbody>{body}</tbody><tfoot>{foot}</tfoot></table></div>"""

    def _features(self) -> str:
        if not self.dynamics:
            return ""
        if self.figures:
            said = f"Raw (uncentred) features whatever the arm; mean over seeds, band: {_BAND}."
            return f'<p class="quiet small">{said}</p>{feature_pictures(self.figures, list(self.dynamics))}'
        growth = f"""
<h3>Growth of the head's gradient</h3>
<p class="quiet small">log‖g‖ = log‖φ‖ + log|δ| + rest, the rest being how much the samples agree. Growth: mean over the
last tenth of training less that over the first tenth, mean over seeds with its {CONFIDENCE:.0%} interval; the numbers
are shares of the gradient's growth, where it grew by more than its standard error.</p>
<div id="growth-figure" class="figure" role="img" aria-label="Growth of the head's gradient and its parts"></div>"""
        return f"""
<p class="quiet small">What the last hidden layer looked like, raw (uncentred) whatever the arm; mean over seeds, band:
{_BAND_OR_RANGE}. The first six panels are those of the paper's figure. "Held out" is measured on states of a random
player that nothing is learned from.</p>
<div class="bar"><label for="features-game">Game</label> <select id="features-game" data-game>{self._game_options()}
</select></div>
<p id="features-none" hidden>The runs of this game have no metrics.</p>
<div id="features-figure" class="figure" role="img" aria-label="Feature dynamics of the chosen game"></div>
{growth if self.growths else ""}"""

    def _representation(self) -> str:
        if self.representation is None:
            return ""
        diverged = self.representation.unmeasured
        left_out = f" Diverged, and in no mean: {escape(', '.join(diverged))}." if diverged else ""
        if self.figures:
            said = "Features of the trained agents on states that they come by in play; mean over seeds, band: "
            drawn = representation_pictures(self.figures, list(self.representation.arms))
            return f'<p class="quiet small">{said}{_BAND}.{left_out}</p>{drawn}'
        return f"""
<p class="quiet small">Features of the trained agents on states that they come by in play, as <code>gramian
analyze</code> has measured them; mean over seeds, band: {_BAND_OR_RANGE}.{left_out}</p>
<div class="bar"><label for="representation-game">Game</label> <select id="representation-game" data-game>
{self._game_options()}</select></div>
<p id="representation-none" hidden>The runs of this game have not been analyzed.</p>
<div id="representation-body">
<h3>Sparsity and spectrum</h3>
<div id="representation-figure" class="figure" role="img" aria-label="Active features, sparsity and spectrum; the
numbers are in the table below"></div>
<h3>Correlation of the features</h3>
<p class="quiet small">Of each arm's first seed, features ordered by clustering; a cell is the mean of a block of
features. Features that do not vary are left out.</p>
<div id="correlation-figure" class="figure" role="img" aria-label="Correlations of the features"></div>
<h3>Measures</h3>
<div class="scroll" tabindex="0" role="region" aria-label="Measures of the features"><table><thead>
<tr id="measure-heads"></tr></thead><tbody id="measure-rows"></tbody></table></div></div>"""

    def _run(self) -> str:
        analysis, runs = self.analysis, self.study.runs
        states = runs.group_by("state").len().sort("len", descending=True)
        counted = ", ".join(f"{count:,} {state}" for state, count in states.iter_rows())
        absent = int((analysis.missing["run"] == "").sum())
        frames = sorted(runs["frames_target"].drop_nulls().unique().to_list())
        facts = [
            ("cells", counted + (f", {absent:,} not begun" if absent else "")),
            ("games", ", ".join(reference.title(game) for game in analysis.games)),
            ("arms", ", ".join(analysis.arms)),
            ("seeds", ", ".join(map(str, analysis.seeds))),
            ("frames of a run", " and ".join(f"{count:,}" for count in frames)),
            ("preset", ", ".join(sorted(runs["preset"].unique().to_list()))),
            *provenance_table(self.study),
        ]
        html = definitions(facts)
        if analysis.missing.height:
            shown = analysis.missing.head(MOST_MISSING)
            rows = [
                [reference.title(row["game"]), row["arm"], str(row["seed"]), row["run"], row["state"], row["reason"]]
                for row in shown.iter_rows(named=True)
            ]
            more = analysis.missing.height - shown.height
            unfinished = table(["game", "arm", "seed", "run", "state", "reason"], rows, "", "words", "deep")
            rest = f"<p>… and {more:,} more, in <code>scores.csv</code>.</p>" if more else ""
            count = f"{analysis.missing.height:,} of {runs.height + absent:,} cells that did not finish as planned"
            html += f"<details open><summary>{count}</summary>{unfinished}{rest}</details>"
        html += self._commands()
        settings = settings_table(self.study)
        if settings:
            rows = [[name, value] for name, value in settings]
            protocol = table(["setting", "value"], rows, "", "words")
            html += f"<details><summary>Protocol: every setting</summary>{protocol}</details>"
        names = [[row["run"], reference.title(row["game"]), row["arm"], str(row["seed"]), row["state"]]
                 for row in runs.sort("game", "arm", "seed").head(MOST_MISSING).iter_rows(named=True)]  # fmt: skip
        listed = table(["run", "game", "arm", "seed", "state"], names, "", "words", "deep")
        return html + f"<details><summary>Runs</summary>{listed}</details>"

    def _commands(self) -> str:
        """All of them: they are what makes the study repeatable."""
        found = commands(self.study)
        if not found:
            return ""
        rows = [[command, f"{runs:,}"] for command, runs in found]
        listed = table(["command", "runs"], rows, "", "words", "deep")
        return f"<details open><summary>{counted(len(found), 'command')}</summary>{listed}</details>"

    def _method(self) -> str:
        analysis, options = self.analysis, self.analysis.options
        episodes = (
            "mean return of the last 100 training episodes that had ended by frame t, whole games with unclipped "
        )
        episodes += "rewards; before the first one it is that episode's return"
        points = "the last point of the imported table by frame t"
        curve = analysis.by_kind_of_rows(episodes, points, f"{episodes}; of imported curves {points}")
        random = "random scores from the same table; of games that it lacks, from the runs' own random prefill"
        facts = [
            ("learning curve", f"R(t): {curve}"),
            ("final score", f"R at the end of training: {analysis.score_words}"),
            ("AUC", "(1/T) ∫ R(t) dt from 0 to T, the frames of a run"),
            ("AUC gain", f"{_GAIN}, each AUC a mean over seeds"),
            ("human-normalised", f"(score − random) / (human − random), table {options.human}; {random}"),
            ("median, mean", "over games, of the mean over runs"),
            ("IQM", "mean of the middle half of all runs of all games"),
            ("optimality gap", "1 − mean of min(score, 1): what is missing to the human score"),
            (
                "P(improvement)",
                "probability that a run of the arm beats one of the baseline, whatever their seeds; a mean over games",
            ),
            ("pairs won", "share of pairs of the same seed that the arm wins, ties a half; a mean over the games"),
            ("p", "two-sided sign test over games, ties left out; games are no random sample: read it as a yardstick"),
            (
                "intervals",
                f"{CONFIDENCE:.0%}, percentile bootstrap over seeds, stratified by game, {options.replicates:,} "
                f"replicates (500 for curves), seed {options.seed}; AUC gains draw seeds for both arms together where "
                "both have the same; differences in final score have Student's, by pairs of the same game and seed",
            ),
            ("diverged runs", "count as random play from there on"),
            ("unfinished runs", "are in the curves as far as they have come, and in no score"),
            (
                "the paper",
                "Mavrin, Graves & Chan 2019: final scores of its table, 3 seeds; read as 20M frames",
            ),
            ("Dopamine", "public training curves of DQN with Adam and MSE, 5 runs (github.com/google/dopamine)"),
            ("human scores", "atari-57: Wang et al. 2016; nature: Mnih et al. 2015"),
        ]  # fmt: skip
        return definitions(facts)


def _verdict(analysis: Analysis, arm: str, comparison: Comparison) -> str:
    baseline = escape(analysis.options.baseline)
    if not comparison.games:
        return f"<strong>{escape(arm)}</strong>: no game yet with finished runs of it and of {baseline}."
    return (
        f"<strong>{escape(arm)}</strong> against {baseline}: higher final score in {comparison.final.wins} of "
        f"{counted(comparison.games, 'game')}, larger area under the curve in {comparison.auc.wins}; "
        f"{_won(comparison, baseline)}."
    )


def _won(comparison: Comparison, baseline: str) -> str:
    """How sure the higher scores are: by pairs of the same seed, and without any by all runs."""
    if not comparison.pairs:
        sure = interval_text(comparison.improvement)
        return f"there are no pairs of the same seed; a run of it beats one of {baseline} with probability {sure}"
    share, low, high = (100.0 * float(end) for end in comparison.paired_improvement)
    ends = "" if _nan(low) else f" [{low:.0f}, {high:.0f}]"
    return f"it wins {share:.0f} %{ends} of {counted(comparison.pairs, 'pair')} of the same game and seed"


def _p(value: float, games: int) -> str:
    if not games:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _two_lines(text: str) -> str:
    """A number with its interval below it, so that a column is as narrow as one of the two."""
    estimate, bracket, ends = text.partition(" [")
    below = f' <span class="ends">{escape("[" + ends)}</span>' if bracket else ""
    return f"<span>{escape(estimate)}</span>{below}"


def _nan(value: float) -> bool:
    return value != value


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    source: Any = get_plotlyjs()
    return str(source)


_BAND = f"{CONFIDENCE:.0%} bootstrap interval over seeds; of {MOST_OF_A_RANGE} or fewer the seeds themselves, thin"
_BAND_OR_RANGE = f"{CONFIDENCE:.0%} bootstrap interval over seeds, which of {MOST_OF_A_RANGE} or fewer is their range"
_PUBLISHED_LINES = (
    "Open markers at the right: the paper's final scores. Thin line: Dopamine's public DQN (Adam, MSE; sticky actions, "
    "other ε), mean and range of 5 runs."
)
_PUBLISHED_BOXES = """
<label><input type="checkbox" data-overlay="paper"> paper</label>
<label><input type="checkbox" data-overlay="dopamine"> Dopamine</label>"""
_GAIN = "(AUC of the arm − AUC of the baseline) / |AUC of the baseline − random score|"

_ALL_GAMES = """
<p class="quiet small">A panel shows frames from left to right; its own range of returns stands below it. Choose one to
see it large.</p><div id="panels" class="panels"></div>"""

_FRAME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none';
script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:">
<meta name="generator" content="gramian {version}">
<title>{title}</title><link rel="icon" href="data:,"><style>
{style}</style></head><body>
<a class="skip" href="#summary">Skip to the results</a>
<header><div class="bar"><h1>{title}</h1>{theme}</div>
<p class="quiet">{subtitle}</p>
<nav aria-label="Sections"><ul>{links}</ul></nav></header>
{toolbar}<main>{bodies}</main>
<footer><p>Made by gramian {version} from the files of the runs. {footer}</p></footer>
{scripts}</body></html>
"""
_THEME = '<button type="button" id="theme">Dark</button>'
_TOOLBAR = """
<div class="toolbar" role="region" aria-label="What the figures show"><div class="bar">
<fieldset class="arms" id="arms"><legend>Arms</legend></fieldset>
<span><button type="button" id="all">All</button> <button type="button" id="none">None</button></span>
<fieldset><legend>Overlays</legend>
<label><input type="checkbox" data-overlay="bands"> intervals</label>
<label><input type="checkbox" data-overlay="seeds"> single seeds</label>{boxes}</fieldset></div></div>
"""
_NO_SCRIPT = """Figures: folder <code>figures</code>. <noscript>The figures of this page need JavaScript; the folder has
them as PNG and SVG.</noscript>"""
_SMALL = "This is the page's small form, with pictures for figures; without <code>--small</code> they can be explored."
