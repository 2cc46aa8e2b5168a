"""A run in an environment of Gymnasium is one as any other."""

from pathlib import Path

import numpy as np
import pytest

from gramian.cli import main
from gramian.deep.agent.arms import Arm
from gramian.deep.runs.load import load_run
from gramian.deep.training.session import train
from tests.deep.sessions import small

VECTOR, PIXELS = "gym:tests.deep.envs.made:Vector-v0", "gym:tests.deep.envs.made:Pixels-v0"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    arms = (Arm("dqn"), Arm("gram", 0.0), Arm("gram", 0.1))
    return train(small(VECTOR, arms, [0], frames=400), tmp_path_factory.mktemp("gym") / "runs")


def of_arm(folder, arm):
    (run,) = folder.glob(f"*-{arm}-s0")
    return run


def test_kappa_0_is_the_plain_agent(trained):
    plain, zero, penalised = (load_run(of_arm(trained, arm)).parameters for arm in ("dqn", "gram-k0.0", "gram-k0.1"))
    assert all(np.array_equal(plain[name], zero[name]) for name in plain)
    assert any(not np.array_equal(plain[name], penalised[name]) for name in plain)


def test_it_is_evaluated_and_recorded(trained, tmp_path):
    run = of_arm(trained, "dqn")
    assert (
        main(["evaluate", str(run), "--episodes", "3", "--out", str(tmp_path), "--record", str(tmp_path / "x.gif")])
        == 0
    )
    assert len((tmp_path / "evaluation.csv").read_text().splitlines()) == 4
    assert (tmp_path / "x.gif").stat().st_size > 100


def test_images_are_learned_from_with_the_network_of_atari(tmp_path):
    arguments = ["--games", PIXELS, "--arms", "gram:0.1", "--frames", "120", "--prefill-agent-steps", "100"]
    arguments += [
        "--replay-capacity",
        "200",
        "--representation-period-agent-steps",
        "0",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(["train", *arguments]) == 0
    (folder,) = (path.parent for path in Path(tmp_path / "out").glob("*/config.toml"))
    assert load_run(folder).network.kind == "nature"
    assert 'preset = "gym"' in (folder / "config.toml").read_text()
