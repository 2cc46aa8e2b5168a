"""``gramian demo``."""

import sys
from dataclasses import asdict
from pathlib import Path

import gramian
from gramian.cli.options import DemoOptions
from gramian.core.errors import WorkFailed
from gramian.core.files import locked, output_folder
from gramian.demo import differences, page, steps
from gramian.demo.sizes import Sizes
from gramian.report.analysis import Options as ReportOptions
from gramian.report.build import build

SIZES = Sizes()
"""How much the command does."""
ANALYSIS = "analysis"
"""Folder of a study that its report takes the trained features from."""
TITLE = "Demo: decorrelated features in reinforcement learning"


def demo(options: DemoOptions) -> int:
    """See `DemoOptions`."""
    out = output_folder(options.out)
    with locked(out / "lock"):
        try:
            return _demo(out, SIZES)
        except KeyboardInterrupt as error:
            raise KeyboardInterrupt(
                "interrupted; what is done is kept, and the same command goes on from there"
            ) from error
        except OSError as error:
            raise WorkFailed(f"cannot write to '{out}': {(error.strerror or str(error)).lower()}") from error


def _demo(out: Path, sizes: Sizes) -> int:
    key = {"version": gramian.__version__, **asdict(sizes)}
    regression, mountain_car, study = (output_folder(out / name) for name in ("regression", "mountain-car", "study"))
    _say("1 of 5: linear regression, with and without decorrelation")
    by_regression = differences.kept(regression / "demo.json", key, lambda: steps.do_regression(regression, sizes))
    _say("2 of 5: Mountain Car, a reduced sweep of step size and λ")
    by_car = differences.kept(mountain_car / "demo.json", key, lambda: steps.do_mountain_car(mountain_car, sizes))
    _say("3 of 5: training DQN and DQN-Gram on a game")
    plan = steps.do_training(study, sizes)
    _say("4 of 5: what the features look like")
    analysis = output_folder(study / ANALYSIS)
    by_game = differences.kept(analysis / "demo.json", key, lambda: steps.do_analysis(analysis, study, plan, sizes))
    _say("5 of 5: the page")
    experiments = [by_regression, by_car, by_game]
    runs = [run for population in plan.populations for run in population.runs]
    written = build(
        study,
        out,
        ReportOptions(replicates=sizes.replicates, title=TITLE),
        before=[
            page.first_section(
                experiments, list(dict.fromkeys(str(run.arm) for run in runs)), len({run.seed for run in runs})
            )
        ],
        after=page.last_sections(regression, mountain_car),
    )
    print(differences.text(experiments))
    shown = by_game.differences
    unclear = sum(row.verdict != "clear" for row in shown)
    print(
        f"\nWith so few seeds, {unclear} of {len(shown)} differences on the game are within noise.\n"
        "Where there is nothing to find, one in twenty is clear by chance. More seeds\ntell more.\n\n"
        f"The page: {written}"
    )
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
