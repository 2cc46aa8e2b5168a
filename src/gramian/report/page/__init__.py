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
from gramian.core.statistics import CONFIDENCE, holm
from gramian.core.text import bracketed, score_text
from gramian.report import reference
from gramian.report.analysis import MOST_SHOWN, Analysis, Comparison
from gramian.report.cautions import about_ranges
from gramian.report.differences import difference_words, differences
from gramian.report.features import FIGURES, LABELS, Dynamics, Growths, Representation
from gramian.report.page.html import Section, block, class_of, definitions, pictures, table
from gramian.report.page.payload import gain_sentence, payload, script_json
from gramian.report.page.sections import commands, kappa_section, provenance_table, settings_table
from gramian.report.tables import AGGREGATES, Table, count_text, games_text, interval_text
from gramian.representation.seeds import MOST_OF_A_RANGE
from gramian.study.manifest import Planned
from gramian.study.store import Study

MOST_MISSING = 500
"""Unfinished cells that the page lists; the others are in ``scores.csv``."""
REPRESENTATION = {
    "sparsity": "active features of a state, activity of a feature, sparsity by threshold",
    "correlation": "correlation of the features, ordered by clustering",
    "spectrum": "spectrum of the features' covariance",
}
"""Figures of ``gramian analyze`` and what they show, in the order of the page without scripts."""


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
            ("all-games", "All games", "" if self.figures else block("all-games")),
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
        style = (files("gramian.report.page") / "page.css").read_text(encoding="utf-8") + self._arm_colors()
        published = block("published") if self._published else ""
        toolbar = "" if self.figures else block("toolbar", boxes=published) + "\n"
        page = block(
            "frame",
            title=escape(self.title),
            style=style,
            theme="" if self.figures else _THEME,
            subtitle=escape(self._subtitle()),
            links=links,
            toolbar=toolbar,
            bodies=bodies,
            footer=_SMALL if self.figures else block("no-script").lstrip(),
            scripts="" if self.figures else self._scripts(),
            version=escape(gramian.__version__),
        )
        return page.lstrip() + "\n"

    def _scripts(self) -> str:
        """The numbers of the figures, plotly, and what draws them."""
        data = "".join(
            f'<script type="application/json" id="data-{name}">{script_json(value)}</script>\n'
            for name, value in payload(self.analysis, self.dynamics, self.growths, self.representation).items()
        )
        script = (files("gramian.report.page") / "page.js").read_text(encoding="utf-8")
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
                [arm, *(interval_text(getattr(own, name)) for name in AGGREGATES)]
                for arm, own in analysis.aggregates.items()
            ]
            caption = (
                f"Human-normalised final scores ({analysis.options.human}), {counted(len(analysis.common), 'game')}, "
                f"with {CONFIDENCE:.0%} intervals"
            )
            html += table(["arm", *(label for label, _ in AGGREGATES.values())], rows, caption)
        if analysis.comparisons:
            html += "<p></p>" + self._against()
        return html

    def _against(self) -> str:
        """Every arm against the baseline; p-values are adjusted for the number of arms."""
        compared = self.analysis.comparisons
        final_p, auc_p = (holm([getattr(c, name) for c in compared.values()]) for name in ("final_p", "auc_p"))
        counts = ["won-tied-lost", "share won", "p"]
        headings = ["arm", "games", *(f"{name}: {count}" for name in ("final", "AUC") for count in counts)]
        rows = [
            [
                arm, str(c.games), count_text(c.final), games_text(c.final), _p(p, c.games),
                count_text(c.auc), games_text(c.auc), _p(q, c.games), str(c.pairs), interval_text(c.paired_improvement),
            ]
            for (arm, c), p, q in zip(compared.items(), final_p, auc_p, strict=True)
        ]  # fmt: skip
        several = f", by Holm's method for {len(rows)} arms" if len(rows) > 1 else ""
        caption = f"Against {self.analysis.options.baseline}; p of the sign test over games{several}"
        return table([*headings, "pairs", "pairs won"], rows, caption)

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
        return block("curves", band=band, options=options, baseline=baseline, paper=paper, ranges=self._ranges())

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
        return block("overall", games=games, human=self.analysis.options.human, improvement=self._improvement())

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
        return block(
            "gains",
            gain=_GAIN,
            options=options,
            sentence=escape(gain_sentence(analysis, arms[0][1])),
            ranges=self._ranges(),
        )

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
            cells = [f'<td data-value="{value}">{score_text(value)}</td>' for value in row.reference]
            cells += [
                f'<td data-value="{score.mean}"'
                f"{class_of('best' if score.mean == best and len(row.scores) > 1 else '')}>"
                f"{_two_lines(table.cell(score))}</td>"
                for score in row.scores
            ]
            cells += [f'<td class="theirs" data-value="{value}">{score_text(value)}</td>' for value in row.published]
            body += f'<tr><th scope="row">{escape(row.game)}</th>{"".join(cells)}</tr>'
        foot = ""
        for name, own, theirs in table.summary:
            empty = "<td></td>" * len(table.references)
            cells = [f"<td>{_two_lines(text)}</td>" for text in own]
            cells += [f'<td class="theirs">{escape(text)}</td>' for text in theirs]
            foot += f'<tr class="summary"><th scope="row">{escape(name)}</th>{empty}{"".join(cells)}</tr>'
        return block("scores", caption=escape(table.caption), sorting=sorting, head=head, body=body, foot=foot)

    def _features(self) -> str:
        if not self.dynamics:
            return ""
        if self.figures:
            said = f"Raw (uncentred) features whatever the arm; mean over seeds, band: {_BAND}."
            return f'<p class="quiet small">{said}</p>{_feature_pictures(self.figures, list(self.dynamics))}'
        growth = block("growth", confidence=f"{CONFIDENCE:.0%}")
        return block(
            "features", band=_BAND_OR_RANGE, options=self._game_options(), growth=growth if self.growths else ""
        )

    def _representation(self) -> str:
        if self.representation is None:
            return ""
        diverged = self.representation.unmeasured
        left_out = f" Diverged, and in no mean: {escape(', '.join(diverged))}." if diverged else ""
        if self.figures:
            said = "Features of the trained agents on states that they come by in play; mean over seeds, band: "
            drawn = "".join(
                pictures(
                    self.figures / "representation",
                    {f"{name}-{game.replace('/', '-')}": f"{reference.title(game)}: {caption}"},
                )
                for game in self.representation.arms
                for name, caption in REPRESENTATION.items()
            )
            return f'<p class="quiet small">{said}{_BAND}.{left_out}</p>{drawn}'
        return block("representation", band=_BAND_OR_RANGE, left_out=left_out, options=self._game_options())

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
            "rewards; before the first one it is that episode's return"
        )
        points = "the last point of the imported table by frame t"
        curve = analysis.by_kind_of_rows(episodes, points, f"{episodes}; of imported curves {points}")
        return block(
            "method",
            curve=curve,
            score=analysis.score_words,
            gain=_GAIN,
            table=options.human,
            confidence=f"{CONFIDENCE:.0%}",
            replicates=f"{options.replicates:,}",
            seed=str(options.seed),
        ).strip()


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
    share = bracketed([100.0 * float(end) for end in comparison.paired_improvement], "{:.0f}".format, " %")
    share = share.replace(" ", "\N{NO-BREAK SPACE}")
    return f"it wins {share} of {counted(comparison.pairs, 'pair')} of the same game and seed"


def _feature_pictures(folder: Path, games: list[str]) -> str:
    """The metrics of the features during training: by games where there are figures of them, else by metrics."""
    by_game = {f"features-{game.replace('/', '-')}": f"{reference.title(game)}: features in training" for game in games}
    by_metric = {name.replace("_", "-").replace(".", "-"): LABELS[name] for name in FIGURES}
    return pictures(folder, by_game) or pictures(folder, by_metric)


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
_GAIN = "(AUC of the arm − AUC of the baseline) / |AUC of the baseline − random score|"


_THEME = '<button type="button" id="theme">Dark</button>'
_SMALL = "This is the page's small form, with pictures for figures; without <code>--small</code> they can be explored."
