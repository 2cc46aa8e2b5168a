"""An agent is a name for settings: which go first, which cannot be, and that each trains, resumes, loads and plays."""

from dataclasses import asdict, replace

import pytest

from gramian.cli.options import TrainOptions
from gramian.core.errors import UserError
from gramian.core.games import find_game
from gramian.deep.agent.arms import Arm
from gramian.deep.agent.heads import Head
from gramian.deep.runs.evaluation import evaluate
from gramian.deep.runs.listing import list_runs
from gramian.deep.runs.load import load_run
from gramian.deep.training.agents import head_of
from gramian.deep.training.config import Config, RunSpec, Settings, load_preset, population, settings_from
from gramian.deep.training.session import read_population, train
from tests.deep.sessions import small

AGENTS = ("dqn", "c51", "qr", "iqn", "rainbow", "full-rainbow")
NAMES = ("agent", "n_step", "prioritized", "double_q", "dueling", "noisy")


def parts(settings):
    return tuple(getattr(settings, name) for name in NAMES)


@pytest.mark.parametrize(
    ("values", "base", "expected"),
    [
        ({}, "author", ("dqn", 1, False, False, False, False)),
        ({"agent": "c51"}, "author", ("c51", 1, False, False, False, False)),
        ({"agent": "rainbow"}, "author", ("rainbow", 3, True, False, False, False)),
        ({"agent": "full-rainbow"}, "author", ("full-rainbow", 3, True, True, True, True)),
        ({"agent": "rainbow", "n_step": 5}, "author", ("rainbow", 5, True, False, False, False)),
        ({"agent": "rainbow", "prioritized": False}, "author", ("rainbow", 3, False, False, False, False)),
        ({"dueling": True, "noisy": True}, "author", ("dqn", 1, False, False, True, True)),
        ({"agent": "qr"}, "dopamine-qr", ("qr", 3, True, False, False, False)),  # the preset's own: nothing changes
        ({"agent": "iqn"}, "dopamine-qr", ("iqn", 1, False, False, False, False)),
        ({"agent": "dqn"}, "full-rainbow", ("dqn", 1, False, False, False, False)),
    ],
)
def test_an_option_goes_before_the_agent_and_the_agent_before_the_preset(values, base, expected):
    assert parts(settings_from(values, "a file", load_preset(base))) == expected


def test_the_command_lines_agent_sets_the_defaults_of_the_other_options():
    settings = TrainOptions.defaults(["--games", "seaquest", "--agent", "full-rainbow"]).settings
    assert parts(settings) == ("full-rainbow", 3, True, True, True, True)
    with pytest.raises(UserError, match="unknown agent 'rainbw'; did you mean 'rainbow'"):
        TrainOptions.defaults(["--games", "seaquest", "--agent", "rainbw"])


ALONE = {
    "dqn": {"double_q": True, "dueling": True, "noisy": True, "n_step": 5, "prioritized": True},
    "c51": {"atoms": 21, "v_max": 5.0, "importance_exponent": 1.0},
    "qr": {"quantiles": 32, "priority_exponent": 0.7},
    "iqn": {"tau_samples": 8, "target_tau_samples": 8, "acting_tau_samples": 8},
}


@pytest.mark.parametrize(("agent", "option"), [(agent, option) for agent in ALONE for option in ALONE[agent]])
def test_every_option_of_an_agent_can_be_set_alone(agent, option):
    plain = settings_from({"agent": agent}, "a file")
    alone = settings_from({"agent": agent, option: ALONE[agent][option]}, "a file")
    assert alone == replace(plain, **{option: ALONE[agent][option]}) != plain


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("dopamine-c51", {"learning_rate": 2.5e-4, "adam_epsilon": 3.125e-4, "n_step": 1, "prioritized": False}),
        ("dopamine-qr", {"learning_rate": 5e-5, "adam_epsilon": 3.125e-4, "n_step": 3, "prioritized": True}),
        ("dopamine-iqn", {"learning_rate": 5e-5, "adam_epsilon": 3.125e-4, "n_step": 3, "prioritized": False}),
        ("dopamine-rainbow", {"learning_rate": 6.25e-5, "adam_epsilon": 1.5e-4, "n_step": 3, "prioritized": True}),
        ("full-rainbow", {"learning_rate": 6.25e-5, "epsilon_initial": 0.01, "noisy": True, "double_q": True}),
        ("minatar-rainbow", {"learning_rate": 2.5e-4, "n_step": 3, "replay_capacity": 100_000}),
    ],
)
def test_presets_of_agents_hold_what_dopamine_has(preset, expected):
    settings = load_preset(preset)
    assert {name: getattr(settings, name) for name in expected} == expected
    if preset not in ("minatar-rainbow", "minatar-qr"):
        assert (settings.network, settings.target_period_agent_steps, settings.epsilon_final) == (
            "dopamine",
            8_000,
            0.01,
        )


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"agent": "rainbw"}, "unknown agent 'rainbw'; did you mean 'rainbow'?"),
        ({"agent": "iqn", "v_min": -5.0}, "v_min is -5.0, but agent 'iqn' has no atoms; omit v_min"),
        ({"agent": "qr", "atoms": 11}, "atoms is 11, but agent 'qr' has no atoms; omit atoms"),
        ({"quantiles": 11}, "quantiles is 11, but agent 'dqn' has no fixed quantiles; omit quantiles"),
        ({"agent": "qr", "tau_samples": 8}, "tau_samples is 8, but agent 'qr' has no random quantiles"),
        ({"agent": "c51", "atoms": 0}, "atoms is 0; it must be at least 2"),
        ({"agent": "qr", "quantiles": 0}, "quantiles is 0; it must be at least 1"),
        ({"agent": "iqn", "acting_tau_samples": -1}, "acting_tau_samples is -1; it must be at least 1"),
        ({"agent": "c51", "v_min": 1.0, "v_max": 1.0}, "v_min is 1.0 and v_max 1.0; v_min must be less than v_max"),
        ({"agent": "c51", "v_min": 3.0}, "v_min is 3.0 and v_max 0.0; v_min must be less than v_max"),
        ({"agent": "c51", "v_max": float("inf")}, "v_min must be less than v_max, and both finite"),
        ({"agent": "rainbow", "priority_exponent": -1.0}, "priority_exponent is -1"),
        ({"agent": "rainbow", "importance_exponent": float("nan")}, "importance_exponent is nan"),
        ({"agent": "rainbow", "dueling": 1}, "dueling in a file is 1; it must be of type bool"),
    ],
)
def test_what_cannot_be_is_named_with_what_would_be_right(values, complaint):
    with pytest.raises(UserError) as error:
        settings_from(values, "a file")
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_the_support_is_the_games_unless_another_is_given():
    c51 = settings_from({"agent": "c51"}, "a file")
    assert [head_of(vars(c51), kind).support[1] for kind in ("atari", "minatar", "cartpole")] == [10, 100, 100]
    own = replace(c51, v_min=0.0, v_max=3.0)
    assert head_of(vars(own), "atari") == Head("categorical", 51, (0.0, 3.0))


def test_a_base_is_a_preset_that_is_shipped(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('base = "dopamine-qr"\nn_step = 5\n')
    settings = load_preset(str(path))
    assert (settings.agent, settings.n_step, settings.quantiles) == ("qr", 5, 200)
    path.write_text('base = "mine.toml"\n')
    with pytest.raises(UserError, match="unknown base in preset"):
        load_preset(str(path))


def test_settings_without_an_agent_are_those_of_dqn():
    names = {"agent", "dueling", "noisy", "prioritized", "atoms", "v_min", "quantiles", "tau_samples"}
    saved = {name: value for name, value in asdict(Settings()).items() if name not in names}
    assert settings_from(saved, "an old file") == Settings()


def test_the_name_of_a_run_has_its_agent():
    game = find_game("MsPacman")
    runs = [
        RunSpec(game, Arm("dqn"), 0),
        RunSpec(game, Arm("gram", 0.1), 0),
        RunSpec(game, Arm("dqn"), 0, agent="rainbow"),
        RunSpec(game, Arm("gram", 0.1), 0, 3e-4, agent="full-rainbow"),
        RunSpec(game, Arm("gram", 0.0), 0, agent="qr"),
    ]
    assert [run.name for run in runs] == [
        "ms_pacman-dqn-s0",
        "ms_pacman-gram-k0.1-s0",
        "ms_pacman-rainbow-s0",
        "ms_pacman-full-rainbow-gram-k0.1-lr0.0003-s0",
        "ms_pacman-qr-gram-k0.0-s0",
    ]


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_trains_is_listed_loads_and_plays(agent, tmp_path):
    values = {"agent": agent} | ({"quantiles": 8} if agent == "qr" else {})
    settings = settings_from(values, "a test", small(frames=400).settings)
    out = train(
        Config("smoke", settings, population(["cartpole"], [Arm("none"), Arm("gram", 0.1)], [0])), tmp_path / "p"
    )
    plain = "cartpole-dqn-s0" if agent == "dqn" else f"cartpole-{agent}-s0"
    assert plain in {summary.folder.name for summary in list_runs(out)}
    assert read_population(out)[0].runs[0].agent == agent
    run = load_run(out / plain)
    assert run.spec.agent == agent
    assert run.features([[0.0] * 4]).shape == (1, run.features_dim)
    assert len(evaluate(run, episodes=2)) == 2
    rows = (out / plain / "metrics.csv").read_text().splitlines()
    assert len(rows) > 1
    assert "nan" not in rows[-1]
