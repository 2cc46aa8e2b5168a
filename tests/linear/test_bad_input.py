"""Bad input of the linear commands: one line, exit code 2, and nothing written."""

import pytest

from gramian.cli import main

SWEEPS = ("regression", "td", "mountain-car")
CASES = [
    *((command, *case) for command in SWEEPS for case in (
        ("--runs 0", "runs is 0; it must be at least 1"),
        ("--runs 1000000000000", "runs is 1,000,000,000,000; it must be at most 1,000,000"),
        ("--lambdas -0.1", "λ is -0.1; it must be a finite number, at least 0"),
        ("--lambdas 0", "λ = 0 is always run as a control"),
        ("--beta 2", "beta is 2; it must be in (0, 1]"),
        ("--beta 0", "beta is 0; it must be in (0, 1]"),
        ("--init eye", "unknown initialisation 'eye'"),
        ("--seed -1", "seed is -1; it must be at least 0"),
        ("--threads -2", "threads is -2; it must be at least 0"),
    )),
    ("regression", "--steps 0", "steps is 0; it must be at least 1"),
    ("regression", "--steps 1" + "0" * 24, "GB are free; lower --steps, --runs or --threads"),
    ("regression", "--alpha 0", "alpha is 0; it must be a number above 0"),
    ("regression", "--rhos 1.5", "rho is 1.5; it must be between -1 and 1, as a correlation is"),
    ("td", "--gamma 1", "gamma is 1; it must be in [0, 1)"),
    ("td", "--process boyan --gamma 1.1", "gamma is 1.1; it must be in [0, 1]"),
    ("td", "--features 1", "features is 1; it must be from 2 to 12, the number of states"),
    ("td", "--steps 0", "steps is 0"),
    ("mountain-car", "--estimators sinlge", "unknown estimator 'sinlge'; did you mean 'single'?"),
    ("mountain-car", "--estimators none", "unknown estimator 'none'"),
    ("mountain-car", "--estimators two-sample running", "the arms of O(d²) run at the best setting of 'single'"),
    ("mountain-car", "--control-lambdas -1", "λ is -1; it must be"),
    ("mountain-car", "--tilings 0", "tilings is 0; it must be at least 1"),
    ("mountain-car", "--tiles 0", "tiles is 0; it must be at least 1"),
    ("mountain-car", "--copies -1", "copies is -1; it must be at least 0"),
    ("mountain-car", "--copies two", "two"),
    ("mountain-car", "--copies 1 all", "give at least one, each once"),
    ("mountain-car", "--gamma 1.5", "gamma is 1.5; it must be in [0, 1]"),
    ("mountain-car", "--epsilon -0.1", "epsilon is -0.1; it must be in [0, 1]"),
    ("mountain-car", "--episodes 0", "episodes is 0"),
    ("mountain-car", "--step-sizes 0", "a step size is 0; it must be a number above 0"),
    ("mountain-car", "--step-sizes 0.5 0.5", "give at least one, each once"),
    ("mountain-car", "--tiles 3000", "not enough memory for d = 108,072,012 features"),
    ("mountain-car", "--quick --tiles 3000 --copies 0", "not enough memory for d = 54,036,006 features"),
    ("theory", "--features 1", "features is 1"),
    ("theory", "--features 20", "features is 20; it must be from 2 to 12, the number of states"),
    ("theory", "--lam -1", "λ is -1; it must be"),
    ("theory", "--lam 0", "lam is 0"),
    ("theory", "--processes 0", "processes is 0"),
    ("theory", "--seed -1", "seed is -1"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "options", "message"), CASES)
def test_it_gets_one_line_and_exit_code_2_and_nothing_is_written(tmp_path, capsys, command, options, message):
    assert main([command, "--out", str(tmp_path / "out"), *options.split()]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert list(tmp_path.iterdir()) == []
