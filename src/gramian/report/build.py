"""From the folder of a study to its report."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from gramian.core.errors import UserError
from gramian.core.files import output_folder, replace_text, replacing
from gramian.report.analysis import Options, analyse
from gramian.report.cautions import about_presets
from gramian.report.control import control_section, equal_norm_section
from gramian.report.dynamics import dynamics, growths
from gramian.report.earlier import replace_earlier
from gramian.report.equal_norm import equal_norm
from gramian.report.features import feature_table
from gramian.report.figures import draw_figures
from gramian.report.page import Page
from gramian.report.representation import ANALYSIS, analyses_nearby, find_analysis, read_representation
from gramian.report.section import Section
from gramian.report.sweep import sweep_table
from gramian.report.tables import latex, markdown, score_table
from gramian.representation import figures as representation_figures
from gramian.representation.tables import read_dynamics
from gramian.study.manifest import IN_NO_PART, cells_text, read_planned
from gramian.study.store import first_frames, read_study


def build(
    folder: str | Path,
    out: str | Path,
    options: Options | None = None,
    *,
    analysis_folder: str | Path | None = None,
    before: Sequence[Section] = (),
    after: Sequence[Section] = (),
    small: bool = False,
    warn: Callable[[str], None] = warnings.warn,
) -> Path:
    """Write the report of a study: a page, figures, tables and every run's scores.

    Parameters
    ----------
    folder
        Of a study, a population, a run, an import or an export: whatever `gramian.study.store.read_study` reads.
    out
        Folder for ``index.html``, ``figures/``, ``scores.csv``, ``table.md`` and ``table.tex``, ``features.csv`` where
        the runs have logs of their features, ``equal_norm.csv`` where arms lie between others that only shrink them,
        and ``kappa.csv`` where the study has a grid of κ; it may lie inside ``folder``. What an earlier report wrote
        there and this one does not is removed.
    options
        Human table, baseline, control, bootstrap and title.
    analysis_folder
        What ``gramian analyze`` has written of the study's runs; ``folder/analysis``, where there is one, unless it is
        given.
    before, after
        Further sections of the page, before those of the study and after its results.
    small
        Whether the page is without scripts, its figures as pictures in it.
    warn
        Told, in a line each, what may not have been meant: cells that are in no part of the study, runs of different
        presets in one report, or an analysis that is not where it is looked for.

    Returns
    -------
    Path
        Of ``index.html``.

    Raises
    ------
    UserError
        If the study or its analysis cannot be read, or ``out`` cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> from gramian.study.store import write_import
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = [(arm, "Pong", seed, frames, -20.0) for arm in ("dqn", "ours") for seed in (0, 1) for frames in (4, 8)]
    >>> table = pl.DataFrame(rows, ["arm", "game", "seed", "frames", "return"], orient="row")
    >>> table.write_csv(folder / "theirs.csv")
    >>> _ = write_import(folder / "theirs.csv", folder / "study")
    >>> build(folder / "study", folder / "report", Options(replicates=100)).name
    'index.html'
    """
    options = options or Options()
    study = read_study(folder)
    if options.frames:
        study = first_frames(study, options.frames)
    planned = read_planned(folder)
    analysis = analyse(study, options, planned)
    analyzed = find_analysis(Path(folder), None if analysis_folder is None else Path(analysis_folder))
    cells = set(study.runs.select("game", "arm").iter_rows())
    representation = None if analyzed is None else read_representation(analyzed, cells)
    if left := analysis.missing.filter(run="", reason=IN_NO_PART).select("game", "arm", "seed").rows():
        warn(f"{IN_NO_PART}: {cells_text(left)}")
    if mixed := about_presets(study):
        warn(f"{mixed.removesuffix('.')}; name the folder of one study, unless that is meant")
    if analyzed is None and (nearby := analyses_nearby(Path(folder))):
        warn(_not_looked_into(Path(folder), nearby))
    if analyzed is not None:
        read_dynamics(analyzed / "dynamics.csv")  # the figures' alone; damage is said before anything is written
    target = output_folder(out)
    horizon = dict(zip(analysis.games, analysis.horizon.tolist(), strict=True))
    features = dynamics(study, horizon)
    table = score_table(analysis)
    tables = {"scores.csv": analysis.scores}
    if (of_features := feature_table(study)) is not None:
        tables["features.csv"] = of_features
    if (at_equal_norm := equal_norm(analysis, study.runs, of_features)) is not None:
        tables["equal_norm.csv"] = at_equal_norm.table(analysis.games)
    if analysis.sweep is not None:
        tables["kappa.csv"] = sweep_table(analysis.sweep, options.baseline)
    texts = {"table.md": markdown(table, analysis.cautions), "table.tex": latex(table, analysis.cautions)}
    try:
        for name, own in tables.items():
            with replacing(target / name) as temporary:
                own.write_csv(temporary)
        for name, text in texts.items():
            replace_text(target / name, text)
        written = [target / name for name in (*tables, *texts)]
        written += draw_figures(analysis, features, target / "figures", at_equal_norm)
        if analyzed is not None:
            place = target / "figures" / "representation"
            written += representation_figures.draw(
                analyzed, place, formats=("png", "svg"), arms=analysis.arms, control=analysis.control
            )
        replace_earlier(target, written)
        title = options.title or planned.title or f"Report on {Path(folder).resolve().name}"
        # The page last: where it is, everything that it speaks of is there too.
        page = Page(
            title, study, analysis, features, table, growths(study), representation, planned, before=before,
            after=after, figures=target / "figures" if small else None,
            control=control_section(analysis, target / "figures"),
            equal_norm=equal_norm_section(analysis, at_equal_norm, target / "figures"),
        )  # fmt: skip
        replace_text(target / "index.html", page.html())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UserError(f"cannot write the report to '{target}': {reason}") from error
    return target / "index.html"


def _not_looked_into(folder: Path, nearby: Sequence[Path]) -> str:
    others = ", ".join(f"'{path}'" for path in nearby)
    return (
        f"the report has no trained features: there is no analysis in '{folder / ANALYSIS}', but in {others}; "
        "name it with --analysis, or report its study"
    )
