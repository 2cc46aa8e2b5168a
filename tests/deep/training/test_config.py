import re
from dataclasses import fields
from importlib.resources import files

import pytest

from gramian.core.errors import UserError
from gramian.core.games import find_game
from gramian.deep.agent.arms import Arm, parse_arm
from gramian.deep.training.agents import PLAIN
from gramian.deep.training.config import (
    Config,
    RunSpec,
    Settings,
    check_preset,
    load_preset,
    population,
    preset_names,
    settings_from,
)
from gramian.deep.training.schedules import epsilon_at, updates_at


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_or_its_base_sets_every_value_and_names_its_source(name):
    lines = (files("gramian") / "presets" / f"{name}.toml").read_text().splitlines()
    values = [line for line in lines if re.match(r"\w+ = ", line)]
    assert all(re.search(r"  ?# \S", line) for line in values)
    set_here = {line.split(" = ")[0] for line in values}
    agent = {"agent", *PLAIN} - {"n_step", "double_q"}  # of plain DQN, where they are not named
    assert "base" in set_here or {field.name for field in fields(Settings)} - {"environment", *agent} <= set_here
    assert isinstance(load_preset(name), Settings)


DOPAMINE = {"dopamine", "dopamine-c51", "dopamine-qr", "dopamine-iqn", "dopamine-rainbow"}


@pytest.mark.parametrize(
    ("kind", "fitting"),
    [
        ("atari", {"author", "nature", "smoke", "full-rainbow", *DOPAMINE}),
        ("minatar", {"minatar", "minatar-qr", "minatar-rainbow", "smoke"}),
        ("cartpole", {"cartpole", "gym", "smoke", "tiny"}),
        ("gym", {"gym"}),
    ],
)
def test_a_preset_is_for_the_games_whose_emulators_it_sets(kind, fitting):
    for name in preset_names():
        if name in fitting:
            check_preset(name, kind)
        else:
            with pytest.raises(UserError, match=f"preset '{name}' is for games of .*, not of {kind}; choose "):
                check_preset(name, kind)


def test_a_preset_of_ones_own_that_sets_no_emulator_is_for_all_games(tmp_path):
    preset = tmp_path / "mine.toml"
    preset.write_text("n_step = 3\n")
    check_preset(str(preset), "atari")
    preset.write_text("[environment.minatar]\nsticky_probability = 0.0\n")
    check_preset(str(preset), "minatar")
    with pytest.raises(UserError, match=r"for games of minatar, not of atari"):
        check_preset(str(preset), "atari")
    preset.write_text("[environment.atarii]\nframe_skip = 4\n")
    with pytest.raises(UserError, match="did you mean 'atari'"):
        check_preset(str(preset), "atari")


def test_the_settled_readings_of_the_presets():
    author, nature, dopamine = (load_preset(name) for name in ("author", "nature", "dopamine"))
    assert (author.target_period_agent_steps, dopamine.target_period_agent_steps) == (10_000, 8_000)
    assert nature.target_period_agent_steps == 10_000 * nature.update_period_agent_steps
    assert (author.epsilon_final, nature.epsilon_final, dopamine.epsilon_final) == (0.02, 0.1, 0.01)
    assert (author.kappa, author.adam_epsilon) == (10.24, 1.5e-4)
    assert dopamine.environment.atari.sticky_probability == 0.25
    assert not dopamine.terminal_on_life_loss
    assert nature.environment.atari.noop_max == 30


@pytest.mark.parametrize("name", preset_names())
def test_schedules_at_their_ends(name):
    settings = load_preset(name)
    start = settings.prefill_agent_steps
    end = start + settings.epsilon_decay_agent_steps
    assert epsilon_at(settings, 0) == epsilon_at(settings, start - 1) == 1
    assert epsilon_at(settings, start) == settings.epsilon_initial
    assert epsilon_at(settings, end) == epsilon_at(settings, 10 * end) == settings.epsilon_final
    middle = (settings.epsilon_initial + settings.epsilon_final) / 2
    assert epsilon_at(settings, (start + end) // 2) == pytest.approx(middle, abs=1e-3)
    assert updates_at(settings, start) == 0
    assert updates_at(settings, start + settings.update_period_agent_steps) == 1


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"bf16": True}, "bf16 in a file is True; updates in bfloat16 were removed: omit bf16"),
        ({"learning_rat": 1.0}, "unknown key in a file: 'learning_rat'; did you mean 'learning_rate'?"),
        ({"n_step": 1.5}, "n_step in a file is 1.5; it must be of type int"),
        ({"n_step": True}, "n_step in a file is True; it must be of type int"),
        ({"double_q": 1}, "double_q in a file is 1; it must be of type bool"),
        ({"loss": "hubber"}, "unknown loss in a file: 'hubber'; did you mean 'huber'?"),
        ({"environment": {"atari": {"noop": 3}}}, "did you mean 'noop_max'?"),
        ({"environment": 3}, "environment in a file is 3; it must be a table"),
        ({"gamma": 1.5}, "gamma is 1.5; it must be between 0 and 1"),
        ({"batch_size": 0}, "batch_size is 0; it must be at least 1"),
        ({"learning_rate": float("nan")}, "learning_rate is nan; it must be a finite number, 0 or more"),
        ({"target_period_agent_steps": 3}, "must be a multiple of the update period 4"),
        (
            {"prefill_agent_steps": 11, "n_step": 3, "envs_per_run": 4},
            "prefill_agent_steps is 11; it must be at least 12",
        ),
        ({"replay_capacity": 1}, "replay_capacity is 1; it must be more than 1"),
        ({"priority_exponent": -0.5}, "priority_exponent is -0.5; it must be a finite number, 0 or more"),
        ({"adam_epsilon": 0.0}, "adam_epsilon is 0; it must be more than 0"),
    ],
)
def test_bad_values_are_named_with_what_would_be_right(values, complaint):
    with pytest.raises(UserError) as error:
        settings_from(values, "a file")
    assert complaint in str(error.value)


def test_a_whole_number_is_a_fine_float():
    assert settings_from({"learning_rate": 1}, "a file").learning_rate == 1.0


def test_the_setting_of_earlier_versions_is_read_as_false():
    assert settings_from({"bf16": False}, "a file") == Settings()


def test_a_preset_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("n_step = 3\n[environment.atari]\nnoop_max = 7\n")
    settings = load_preset(str(path))
    assert (settings.n_step, settings.environment.atari.noop_max) == (3, 7)
    path.write_text("n_step = \n")
    with pytest.raises(UserError, match="is not valid TOML"):
        load_preset(str(path))
    with pytest.raises(UserError, match="cannot read preset"):
        load_preset(str(tmp_path / "other.toml"))
    with pytest.raises(UserError, match="did you mean 'author'"):
        load_preset("autor")


def test_the_names_of_runs_tell_them_apart():
    game = find_game("MsPacman")
    runs = [
        RunSpec(game, Arm("dqn"), 0),
        RunSpec(game, Arm("gram", 0.1), 0),
        RunSpec(game, Arm("gram", 0.1, centered=False), 0),
        RunSpec(game, Arm("gram", 0.1), 1),
        RunSpec(game, Arm("gram", 0.1), 1, learning_rate=3e-4),
        RunSpec(game, parse_arm("norm:0.2+gram:0.1:uncentered", 0.0), 1),
    ]
    assert [run.name for run in runs] == [
        "ms_pacman-dqn-s0",
        "ms_pacman-gram-k0.1-s0",
        "ms_pacman-gram-k0.1-uncentered-s0",
        "ms_pacman-gram-k0.1-s1",
        "ms_pacman-gram-k0.1-lr0.0003-s1",
        "ms_pacman-gram-k0.1-uncentered+norm-k0.2-s1",
    ]


def test_populations_that_cannot_be():
    settings = Settings()
    with pytest.raises(UserError, match="at least one run"):
        Config("author", settings, ())
    with pytest.raises(UserError, match="'pong-dqn-s0' stands twice"):
        Config("author", settings, population(["pong", "Pong"], [Arm("dqn")], [0]))
    with pytest.raises(UserError, match="cannot share a population"):
        Config("author", settings, population(["pong", "cartpole"], [Arm("dqn")], [0]))
    with pytest.raises(UserError, match="seed is -1"):
        population(["pong"], [Arm("dqn")], [-1])
    small = settings_from({"batch_size": 3}, "a file")
    with pytest.raises(UserError, match="batch_size is 3; it must be at least 4"):
        Config("author", small, population(["pong"], [Arm("gram-unbiased", 1.0)], [0]))


def test_frames_become_agent_steps():
    runs = population(["pong"], [Arm("dqn")], [0])
    assert Config("author", settings_from({"frames": 4001}, "a file"), runs).agent_steps == 1001
    several = settings_from({"frames": 4001, "envs_per_run": 8}, "a file")
    assert Config("author", several, runs).agent_steps == 1008
    cartpole = population(["cartpole"], [Arm("dqn")], [0])
    assert Config("author", settings_from({"frames": 4001}, "a file"), cartpole).agent_steps == 4001
