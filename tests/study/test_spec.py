import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from gramian.core.errors import UserError
from gramian.core.games import PAPER_TITLES
from gramian.deep.training.config import load_preset, settings_from
from gramian.study.plan import make_plan
from gramian.study.spec import load_study, parse_study, study_names
from tests.study.studies import tiny

RESULTS = Path(__file__).parents[2] / "results"


def parsed(text):
    return parse_study(text, "study 'x'")


def test_cells_are_games_times_arms_times_seeds_in_this_order():
    names = [cell.name for cell in parsed(tiny(seeds=2)).cells]
    assert names == [f"cartpole-{arm}-s{seed}" for arm in ("dqn", "decor-k0.01", "gram-k0.01") for seed in (0, 1)]


def test_an_arm_expands_to_its_kappas_and_centrings():
    spec = parsed(tiny(arms='[[arms]]\nkind = "gram"\nkappas = [0.1, 1]\ncentered = [true, false]\n'))
    assert [str(arm) for arm in spec.arms] == ["gram:0.1", "gram:1.0", "gram:0.1:uncentered", "gram:1.0:uncentered"]


def test_a_combination_is_one_arm_of_a_factorial_design():
    arms = "".join(f'[[arms]]\nkind = "{kind}"\n' for kind in ("none", "gram:0.1", "norm:0.2", "norm:0.2+gram:0.1"))
    spec = parsed(tiny(arms=arms))
    assert [str(arm) for arm in spec.arms] == ["dqn", "gram:0.1", "norm:0.2", "gram:0.1+norm:0.2"]


def test_an_arm_may_have_a_label_and_games_of_its_own():
    arms = '[[arms]]\nkind = "dqn"\n' + "".join(
        f'[[arms]]\nkind = "gram"\nkappa = {kappa}\nlabel = "gram"\ngames = ["{game}"]\n'
        for kappa, game in ((0.1, "cartpole"), (1, "pong"))
    )
    spec = parsed(tiny(seeds=1, arms=arms).replace('["cartpole"]\nseeds', '["cartpole", "pong"]\nseeds'))
    assert [(cell.name, cell.label) for cell in spec.cells] == [
        ("cartpole-dqn-s0", ""), ("cartpole-gram-k0.1-s0", "gram"),
        ("pong-dqn-s0", ""), ("pong-gram-k1.0-s0", "gram"),
    ]  # fmt: skip


def test_an_arm_may_have_learning_rates_and_settings_of_its_own():
    spec = parse_study(
        'preset = "minatar"\ngames = ["minatar/breakout"]\nseeds = [3]\n[[arms]]\nkind = "dqn"\n'
        '[[arms]]\nkind = "dqn"\nlearning_rates = [1e-5, 1e-3]\n'
        '[[arms]]\nkind = "dqn"\nsettings = { layer_norm = true, weight_decay = 0.01 }',
        "a study",
    )
    assert [run.name.removeprefix("minatar-breakout-") for run in spec.cells] == [
        "dqn-s3",
        "dqn-lr1e-05-s3",
        "dqn-lr0.001-s3",
        "dqn-layer-norm-weight-decay0.01-s3",
    ]
    plan = make_plan(spec, largest=9, device="cpu", torch_threads=1, checkpoint_replay=True)
    own, changed = (plan.config(population).settings for population in plan.populations)
    assert [len(population.runs) for population in plan.populations] == [3, 1]
    assert own == spec.settings
    assert changed == replace(spec.settings, layer_norm=True, weight_decay=0.01)


@pytest.mark.parametrize(
    ("arm", "complaint"),
    [
        ("settings = { layer_nrm = true }", "unknown key in settings 'layer-nrm' of an arm of a study: 'layer_nrm'"),
        ("settings = { frames = 5 }", "frames in settings of an arm of a study must be the same for all arms"),
        ("learning_rates = [1e-5, 1e-5]", "arm 'dqn lr 1e-05' stands twice in a study"),
        ("learning_rates = [-1.0]", "learning_rate is -1; it must be a finite number, 0 or more"),
    ],
)
def test_settings_of_an_arm_that_cannot_be_are_one_line(arm, complaint):
    text = f'preset = "minatar"\ngames = ["minatar/breakout"]\nseeds = [3]\n[[arms]]\nkind = "dqn"\n{arm}'
    with pytest.raises(UserError, match=re.escape(complaint)):
        _ = parse_study(text, "a study").cells


def test_a_part_of_a_study_has_its_cells_in_its_order_and_no_arm_that_plays_none_of_its_games():
    spec = parse_study(
        'preset = "smoke"\ngames = ["pong", "minatar/breakout"]\nseeds = [3, 1, 2]\n'
        '[[arms]]\nkind = "dqn"\n[[arms]]\nkind = "l2"\ngames = ["pong"]\n',
        "a test",
    )
    part = spec.part(["minatar/breakout"], [2, 3])
    assert [str(arm) for arm in part.arms] == ["dqn"]
    assert [cell.name for cell in part.cells] == ["minatar-breakout-dqn-s3", "minatar-breakout-dqn-s2"]
    assert spec.part([], []) == spec
    with pytest.raises(UserError, match=r"^unknown game of the study: 'minatar/freeway'; .*'minatar/breakout'"):
        spec.part(["minatar/freeway"], [])
    with pytest.raises(UserError, match=r"^the study has no seed 0; it must be one of 3, 1, 2$"):
        spec.part([], [0])


def test_an_arm_without_kappa_takes_the_presets():
    assert parsed(tiny()).arms[2].kappa == load_preset("tiny").kappa


def test_frames_and_settings_override_the_preset_and_nothing_else_changes():
    spec = parsed(tiny(500, 77, "[settings]\nn_step = 3\n[settings.environment.cartpole]\nmax_episode_steps = 7"))
    settings = spec.settings
    assert (settings.frames, settings.n_step, settings.environment.cartpole.max_episode_steps) == (77, 3, 7)
    assert settings.batch_size == load_preset("tiny").batch_size


def test_a_preset_of_your_own_is_seen_from_the_studys_file(tmp_path):
    (tmp_path / "mine.toml").write_text("frames = 77\n")
    (tmp_path / "study.toml").write_text(tiny().replace('"tiny"', '"mine.toml"').replace("frames = 300\n", ""))
    assert load_study(str(tmp_path / "study.toml")).settings.frames == 77


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("seeds =", "seed =", "unknown key in study 'x': 'seed'; did you mean 'seeds'?"),
        ('"dqn"', '"dqn"\nkapa = 1', "unknown key in entry 1 of arms in study 'x': 'kapa'; did you mean 'kappa'?"),
        ('"decor"', '"dekor"', "unknown arm 'dekor'; did you mean 'decor'?"),
        ('["cartpole"]', '["cartpol"]', "unknown game 'cartpol'; did you mean 'cartpole'?"),
        ('["cartpole"]', '"pong"', "games in study 'x' is 'pong'; it must be a list of str, at least one"),
        ('["cartpole"]', "[]", "games in study 'x' is []; it must be a list of str, at least one"),
        ('["cartpole"]', '["cartpole", "CartPole"]', "game 'cartpole' stands twice in study 'x'; name it once"),
        ("[0, 1]", "[0, 0]", "seed 0 stands twice in study 'x'; name it once"),
        ("[0, 1]", "[0.5]", "entry 1 of seeds in study 'x' is 0.5; it must be of type int"),
        ("[0, 1]", "[-1]", "a seed in study 'x' is -1; it must be a whole number from 0 to 2^63 - 1"),
        ('"tiny"', '"tinny"', "unknown preset 'tinny'; did you mean 'tiny'?"),
        ('preset = "tiny"\n', "", "preset is missing in study 'x'"),
        ("frames = 300", 'frames = "many"', "frames in study 'x' is 'many'; it must be of type int"),
        ('"gram"', '"gram"\nlabel = 3', "label in entry 3 of arms in study 'x' is 3; it must be of type str"),
        (
            '"gram"',
            '"gram"\nlabel = "best"',
            "label of arm 'gram' in study 'x' is 'best'; it must begin with 'gram', as 'gram (mine)'",
        ),
        (
            '"gram"',
            '"gram"\nkappas = [1, 2]\nlabel = "gram"',
            "label of arm 'gram' in study 'x' is 'gram' and stands for 2 arms; give it one kappa",
        ),
        (
            '"gram"',
            '"gram"\nkappa = 1\nlabel = "gram"\n[[arms]]\nkind = "gram"\nlabel = "gram"',
            "label 'gram' stands twice in study 'x'; name it once",
        ),
        ('"gram"', '"gram"\ngames = ["pong"]', "unknown game of arm 'gram' in study 'x': 'pong'; choose from cartpole"),
        ('"gram"', '"gram"\nkappa = "big"', "kappa in entry 3 of arms in study 'x' is 'big'; it must be of type float"),
        ('"gram"', '"gram"\nkappa = -1', "kappa of arm 'gram' is -1.0; it must be a finite number, 0 or more"),
        ('"gram"', '"gram"\nkappa = 1\nkappas = [1]', "arm 'gram' in study 'x' has both kappa and kappas; keep one"),
        (
            '"gram"',
            '"gram"\ncentered = "no"',
            "centered in entry 3 of arms in study 'x' is 'no'; it must be of type bool or a list of bool, at least one",
        ),
        ('"gram"', '"l2"\ncentered = false', "arm 'l2' has no centring; omit 'centered' in study 'x'"),
        (
            '"gram"',
            '"gram+l2:2"\nkappa = 1',
            "arm 'gram+l2:2' in study 'x' is a combination; write its κs and centring in its kind",
        ),
        ('"gram"', '"decor"', "arm 'decor:0.01' stands twice in study 'x'; name it once"),
        ('"dqn"', '"dqn"\nkappa = 1', "arm 'dqn' has no penalty, so its kappa cannot be 1.0; choose 'gram'"),
        ('"Tiny"', "Tiny", "study 'x' is not valid TOML: Invalid value (at line 1, column 9)"),
    ],
)
def test_bad_input_gets_one_line(old, new, complaint):
    assert old in tiny()
    with pytest.raises(UserError) as raised:
        parsed(tiny().replace(old, new))
    assert str(raised.value) == complaint


def test_frames_may_not_stand_twice():
    with pytest.raises(UserError, match="frames stands twice in study 'x'"):
        parsed(tiny(extra="[settings]\nframes = 1\n"))


def test_games_and_seeds_that_are_kept_for_evaluation_may_not_be_used():
    kept = '[evaluation]\ngames = ["{}"]\nseeds = [{}]\n'
    assert parsed(tiny(extra=kept.format("pong", 7))).evaluation.seeds == (7,)
    with pytest.raises(UserError, match="game 'cartpole' is kept for evaluation and stands in study 'x'"):
        parsed(tiny(extra=kept.format("cartpole", 7)))
    with pytest.raises(UserError, match="seed 1 is kept for evaluation"):
        parsed(tiny(extra=kept.format("pong", 1)))


def test_a_file_that_cannot_be_read_is_named_and_a_shipped_study_of_that_name_too():
    with pytest.raises(UserError, match=r"cannot read study 'studies/smoke.toml': .*ships is called 'smoke'"):
        load_study("studies/smoke.toml")
    with pytest.raises(UserError, match="unknown study 'smok'; did you mean 'smoke'"):
        load_study("smok")


def test_the_papers_study_is_49_games_three_arms_three_seeds_20m_frames():
    spec = load_study("paper")
    assert len(spec.games) == len(PAPER_TITLES) == 49
    assert [arm.kind for arm in spec.arms] == ["dqn", "decor", "gram"]
    assert (spec.settings, len(spec.cells)) == (load_preset("author"), 441)


PLANS = {
    "atari-evidence": "atari/study/s0",
    "atari-kappa": "atari/kappa/breakout",
    "atari-norm": "atari/study/norm",
    "atari49": "atari49/study/b01",
}


@pytest.mark.parametrize(("study", "folder"), PLANS.items())
def test_a_published_study_has_the_settings_that_it_was_run_with(study, folder):
    ran = json.loads((RESULTS / folder / "plan.json").read_text())["settings"]
    settings = load_study(study).settings
    differing = {"frames"} if study == "atari-kappa" else set()  # which was run with half of them
    # what a plan does not name had its default
    assert settings == replace(settings_from(ran, "a plan"), **{name: getattr(settings, name) for name in differing})


def test_the_controls_are_added_to_the_papers_study():
    paper, controls = load_study("paper"), load_study("controls")
    assert set(paper.cells) < set(controls.cells)
    assert {arm.kind for arm in controls.arms} == {"dqn", "decor", "gram", "gram-unbiased", "norm", "cross", "l2"}


def test_kappa_is_chosen_on_the_same_grid_for_every_penalty_and_apart_from_the_evaluation():
    spec = load_study("kappa")
    grids = {}
    for arm in spec.arms:
        grids.setdefault((arm.kind, arm.centered), []).append(arm.kappa)
    assert grids.pop(("dqn", False)) == [0.0]
    assert len({tuple(grid) for grid in grids.values()}) == 1
    assert (min(grids["gram", True]), max(grids["gram", True])) == (0.01, 30)
    for kind in ("decor", "gram", "gram-unbiased", "norm", "cross"):
        assert {(kind, True), (kind, False)} <= grids.keys()
    assert set(spec.games) | set(spec.evaluation.games) == set(load_study("paper").games)
    assert not set(spec.games) & set(spec.evaluation.games)
    assert spec.evaluation.seeds == load_study("paper").seeds


def test_the_folds_of_minatar_swap_their_games_and_try_every_penalty_alike():
    a, b = load_study("minatar-kappa-a"), load_study("minatar-kappa-b")
    assert (set(a.games), set(b.games)) == (set(b.evaluation.games), set(a.evaluation.games))
    assert (a.arms, a.seeds, a.settings) == (b.arms, b.seeds, b.settings)
    grids = {}
    for arm in a.arms:
        grids.setdefault(arm.kind, []).append(arm.kappa)
    assert grids.pop("dqn") == [0.0]
    assert set(grids) == {"gram", "gram-unbiased", "norm", "cross"}
    assert len({tuple(grid) for grid in grids.values()}) == 1


def test_the_kappa_of_the_atari_evidence_is_chosen_on_other_games_under_the_same_settings():
    tuning, evidence = load_study("atari-kappa"), load_study("atari-evidence")
    assert set(tuning.evaluation.games) == set(evidence.games)
    assert tuning.evaluation.seeds == evidence.seeds
    assert tuning.settings == evidence.settings


def test_the_norm_penalty_at_another_kappa_can_be_laid_beside_the_atari_evidence():
    more, evidence = load_study("atari-norm"), load_study("atari-evidence")
    assert (more.games, more.seeds, more.settings) == (evidence.games, evidence.seeds, evidence.settings)
    assert not {cell.name for cell in more.cells} & {cell.name for cell in evidence.cells}


@pytest.mark.parametrize("name", study_names())
def test_every_shipped_study_has_all_its_cells(name):
    spec = load_study(name)
    assert len({cell.name for cell in spec.cells}) == len(spec.games) * len(spec.entries) * len(spec.seeds)


def test_the_controls_of_minatar_try_as_many_learning_rates_as_kappas_were_tried():
    spec, tuned = load_study("minatar-controls"), load_study("minatar-kappa-a")
    own = [entry for entry in spec.entries if entry.arm.kind == "dqn" and not entry.variant]
    rates = sorted(entry.learning_rate or spec.settings.learning_rate for entry in own)
    kappas = sorted(arm.kappa for arm in tuned.arms if arm.kind == "gram")
    assert [rate / rates[0] for rate in rates] == pytest.approx([kappa / kappas[0] for kappa in kappas])
    assert len(spec.cells) == 5 * 12 * 10
