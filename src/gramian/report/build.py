"""From the folder of a study to its report."""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gramian.core.errors import UserError
from gramian.core.files import output_folder, replace_text
from gramian.report.analysis import Analysis, Options, analyse
from gramian.report.cautions import about_presets
from gramian.report.differences import equal_norm
from gramian.report.features import (
    ANALYSIS,
    analyses_nearby,
    dynamics,
    feature_table,
    find_analysis,
    growths,
    read_representation,
)  # fmt: skip
from gramian.report.figures import draw_figures
from gramian.report.page import Page
from gramian.report.page.html import Section
from gramian.report.page.sections import control_section, equal_norm_section
from gramian.report.sweep import sweep_table
from gramian.report.tables import latex, markdown, score_table
from gramian.representation import figures as representation_figures
from gramian.representation.tables import read_dynamics
from gramian.study.manifest import IN_NO_PART, cells_text, read_planned
from gramian.study.store import Study, first_frames, read_study


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

    The study in ``folder`` is read by `gramian.study.store.read_study`, its analysis from ``analysis_folder``, or from
    ``folder/analysis`` where there is one. ``out`` gets ``index.html``, ``figures/``, ``scores.csv``, ``table.md`` and
    ``table.tex``, ``features.csv`` where the runs have logs of their features, ``equal_norm.csv`` where arms lie
    between others that only shrink them, and ``kappa.csv`` where the study has a grid of κ. Files of an earlier report
    there are removed. ``out`` may lie inside ``folder``.

    Parameters
    ----------
    before, after
        Further sections of the page, before those of the study and after its results.
    small
        Whether the page is without scripts, its figures as pictures in it.
    warn
        Is called with a line each for cells that are in no part of the study, runs of different presets in one report,
        and an analysis in another place.

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
    options, folder = options or Options(), Path(folder)
    study = read_study(folder)
    if options.frames:
        study = first_frames(study, options.frames)
    planned = read_planned(folder)
    analysis = analyse(study, options, planned)
    analyzed = find_analysis(folder, None if analysis_folder is None else Path(analysis_folder))
    cells = set(study.runs.select("game", "arm").iter_rows())
    representation = None if analyzed is None else read_representation(analyzed, cells)
    for line in _warnings(study, analysis, folder, analyzed):
        warn(line)
    if analyzed is not None:
        read_dynamics(analyzed / "dynamics.csv")  # the figures' alone; damage is said before anything is written
    target = output_folder(out)
    figures = target / "figures"
    features = dynamics(study, dict(zip(analysis.games, analysis.horizon.tolist(), strict=True)))
    table = score_table(analysis)
    of_features = feature_table(study)
    at_equal_norm = equal_norm(analysis, study.runs, of_features)
    tables = {
        "scores.csv": analysis.table,
        "features.csv": of_features,
        "equal_norm.csv": None if at_equal_norm is None else at_equal_norm.table(analysis.games),
        "kappa.csv": None if analysis.sweep is None else sweep_table(analysis.sweep, options.baseline),
    }
    texts = {name: own.write_csv() for name, own in tables.items() if own is not None}
    texts |= {"table.md": markdown(table, analysis.cautions), "table.tex": latex(table, analysis.cautions)}
    try:
        for name, text in texts.items():
            replace_text(target / name, text)
        written = [target / name for name in texts]
        written += draw_figures(analysis, features, figures, at_equal_norm)
        if analyzed is not None:
            written += representation_figures.draw(
                analyzed, figures / "representation", formats=("png", "svg"), arms=analysis.arms,
                control=analysis.control,
            )  # fmt: skip
        replace_earlier(target, written)
        # The page last: where it is, everything that it speaks of is there too.
        page = Page(
            title=options.title or planned.title or f"Report on {folder.resolve().name}",
            study=study,
            analysis=analysis,
            dynamics=features,
            table=table,
            growths=growths(of_features),
            representation=representation,
            planned=planned,
            before=before,
            after=after,
            figures=figures if small else None,
            control=control_section(analysis, figures),
            equal_norm=equal_norm_section(analysis, at_equal_norm, figures),
        )
        replace_text(target / "index.html", page.html())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UserError(f"cannot write the report to '{target}': {reason}") from error
    return target / "index.html"


def _warnings(study: Study, analysis: Analysis, folder: Path, analyzed: Path | None) -> Iterator[str]:
    """What to know of a report that is not in the study alone, a line each."""
    if left := analysis.missing.filter(run="", reason=IN_NO_PART).select("game", "arm", "seed").rows():
        yield f"{IN_NO_PART}: {cells_text(left)}"
    if mixed := about_presets(study):
        yield f"{mixed.removesuffix('.')}; name the folder of one study, unless that is meant"
    if analyzed is None and (nearby := analyses_nearby(folder)):
        others = ", ".join(f"'{path}'" for path in nearby)
        yield (
            f"the report has no trained features: there is no analysis in '{folder / ANALYSIS}', but in {others}; "
            "name it with --analysis, or report its study"
        )


# ---- the files of an earlier report in the same folder ---------------------------------------------------------------

LIST = "report-files.json"
"""Names and SHA-256 of what a report has written beside its page."""
FORMAT = 1


def replace_earlier(folder: Path, written: Iterable[Path]) -> list[Path]:
    """Remove what an earlier report wrote and this one did not, and note what this one wrote; returns what is removed.

    A file is known by its name and its content in the list that the earlier report has left: one that was changed
    since, or put there, stays.
    """
    now = {path.relative_to(folder).as_posix(): _digest(path) for path in written}
    earlier = []
    for name, digest in _noted(folder).items():
        path = folder / name
        inside = path.resolve().is_relative_to(folder.resolve()) and not path.is_symlink()
        if name not in now and inside and path.is_file() and _digest(path) == digest:
            path.unlink()
            earlier.append(path)
            with suppress(OSError):  # it holds other files, or is the report's own
                path.parent.rmdir()
    noted = {"format": FORMAT, "files": dict(sorted(now.items()))}
    replace_text(folder / LIST, json.dumps(noted, indent=1) + "\n")
    return earlier


def _noted(folder: Path) -> dict[str, str]:
    """The list of an earlier report; empty where there is none that can be read."""
    try:
        noted = json.loads((folder / LIST).read_text(encoding="utf-8"))
        return {str(name): str(digest) for name, digest in noted["files"].items()} if noted["format"] == FORMAT else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
