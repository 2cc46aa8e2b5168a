"""``gramian regression``, ``gramian td``, ``gramian mountain-car`` and ``gramian theory``."""

from gramian.core.files import output_folder
from gramian.linear import contrasts, curves, mountain_car, regression, td, theory
from gramian.linear.mountain_car import MountainCar
from gramian.linear.regression import Regression
from gramian.linear.td import TD
from gramian.linear.theory import Theory


def regression_command(options: Regression) -> int:
    """Stochastic linear regression with and without decorrelated features, and the controls.

    Writes regression.csv, regression_summary.csv and two figures into --out, and prints the table. Interrupted, it goes
    on where it stopped when it is called again with the same options.
    """
    from gramian.linear.figures import write_regression_figures

    results = regression.compute(options)
    print(regression.report(results, curves.write_tables(results)))
    write_regression_figures(options.out)
    print(f"\nWritten to {options.out}: regression*.csv and regression*.png")
    return 0


def td_command(options: TD) -> int:
    """TD(0) policy evaluation on random decision processes or Boyan's chain, plain and decorrelated, with controls.

    Writes td.csv, td_summary.csv and a figure into --out, and prints the table. Interrupted, it goes on where it
    stopped when it is called again with the same options.
    """
    from gramian.linear.figures import write_td_figure

    results = td.compute(options)
    print(td.report(results, curves.write_tables(results)))
    write_td_figure(options.out)
    print(f"\nWritten to {options.out}: td.csv, td_summary.csv and td.png")
    return 0


def mountain_car_command(options: MountainCar) -> int:
    """Q-learning on Mountain Car with tile-coded features, with and without decorrelation, and the controls.

    Writes mountain_car.csv, mountain_car_runs.csv, mountain_car_summary.csv, mountain_car_contrasts.csv,
    mountain_car_features.csv, mountain_car_distances.csv and three figures into --out, and prints the summary.
    Interrupted, it goes on where it stopped when it is called again with the same options.
    """
    from gramian.linear.figures import write_mountain_car_figures

    results = mountain_car.compute(options.quickened())
    print(contrasts.report(results.options, contrasts.write_tables(results)))
    write_mountain_car_figures(options.out)
    print(f"\nWritten to {options.out}: mountain_car*.csv and mountain_car*.png")
    return 0


def theory_command(options: Theory) -> int:
    """Check the paper's propositions on random Markov decision processes under a fixed policy.

    Prints what was computed and a verdict for each. Statements of the paper that are false are expected to fail; the
    exit code is 1 where any verdict is not the expected one.
    """
    folder = None if options.out is None else output_folder(options.out)
    found = theory.check(options)
    if folder is not None:
        theory.write_table(folder, found)
    print(theory.report(found, options.processes))
    return 0 if all(finding.holds == finding.expected for _, finding in found) else 1
