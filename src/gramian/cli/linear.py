"""``gramian regression``, ``gramian td``, ``gramian mountain-car`` and ``gramian theory``."""

from gramian.core.files import output_folder
from gramian.linear import contrasts, curves, mountain_car, regression, td, theory
from gramian.linear.mountain_car import MountainCar
from gramian.linear.regression import Regression
from gramian.linear.td import TD
from gramian.linear.theory import Theory


def regression_command(options: Regression) -> int:
    """See `Regression`."""
    from gramian.linear.figures import write_regression_figures

    results = regression.compute(options)
    print(regression.report(results, curves.write_tables(results)))
    write_regression_figures(options.out)
    print(f"\nWritten to {options.out}: regression*.csv and regression*.png")
    return 0


def td_command(options: TD) -> int:
    """See `TD`."""
    from gramian.linear.figures import write_td_figure

    results = td.compute(options)
    print(td.report(results, curves.write_tables(results)))
    write_td_figure(options.out, options.out / "td.png")
    print(f"\nWritten to {options.out}: td.csv, td_summary.csv and td.png")
    return 0


def mountain_car_command(options: MountainCar) -> int:
    """See `MountainCar`."""
    from gramian.linear.figures import write_mountain_car_figures

    results = mountain_car.compute(options.quickened())
    print(contrasts.report(results.options, contrasts.write_tables(results)))
    write_mountain_car_figures(options.out)
    print(f"\nWritten to {options.out}: mountain_car*.csv and mountain_car*.png")
    return 0


def theory_command(options: Theory) -> int:
    """See `Theory`."""
    folder = None if options.out is None else output_folder(options.out)
    found = theory.check(options)
    if folder is not None:
        theory.write_table(folder, found)
    print(theory.report(found, options.processes))
    return 0 if all(finding.holds == finding.expected for _, finding in found) else 1
