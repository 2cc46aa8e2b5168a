import pytest

from gramian.deep.agent.arms import Arm
from gramian.deep.training.config import Config, load_preset, population
from gramian.deep.training.display import Display

CONFIG = Config("smoke", load_preset("smoke"), population(["minatar/breakout"], [Arm("dqn")], [0]))


def shown(capsys):
    return capsys.readouterr().err.splitlines()[1].split(maxsplit=1)[1]


def test_nothing_is_said_of_games_and_losses_that_there_have_not_been(capsys):
    with Display(CONFIG):
        pass
    assert shown(capsys) == "no game yet"


def test_a_run_is_shown_with_its_last_returns_and_its_loss(capsys):
    with Display(CONFIG) as display:
        for score in (10.0, 20.0):
            display.episode(0, score)
        display.metrics([0.25], [0.0])
    assert shown(capsys) == "return 15.0 (2 games), loss 0.25"


@pytest.mark.parametrize(("penalty", "said"), [(0.0, "loss 0.25"), (0.5, "loss 0.25, penalty 0.5")])
def test_a_penalty_is_shown_where_there_is_one(capsys, penalty, said):
    with Display(CONFIG) as display:
        display.metrics([0.25], [penalty])
    assert shown(capsys) == f"no game yet, {said}"
