"""The demo in seconds."""

import subprocess
import sys

from gramian.demo.sizes import Sizes
from tests.study.studies import environment

TINY = """
title = "Tiny demo"
preset = "tiny"
frames = {frames}
games = ["cartpole"]
seeds = [0, 1]
[[arms]]
kind = "dqn"
[[arms]]
kind = "gram"
kappa = 0.1
"""


def tiny_sizes(folder, frames=300):
    """Sizes of a demo of seconds; its study is written to ``folder``."""
    study = folder / "tiny study.toml"
    study.write_text(TINY.format(frames=frames), encoding="utf-8")
    return Sizes(
        regression_runs=4,
        regression_steps=50,
        car_runs=2,
        car_episodes=2,
        car_most_steps=50,
        study=str(study),
        states=300,
        replicates=100,
    )


def start_demo(out, sizes, **variables):
    """Begin ``gramian demo`` of these sizes in a process of its own."""
    script = (
        "import sys; from gramian.cli import main; from gramian.cli import demo; from gramian.demo.sizes import *"
        "\n"
        f"demo.SIZES = {sizes!r}; sys.exit(main(['demo', '--out', {str(out)!r}]))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env=environment() | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
