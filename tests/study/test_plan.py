import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.core.arms import Arm
from gramian.core.errors import UserError
from gramian.core.games import PAPER_TITLES
from gramian.deep.runs.load import load_run
from gramian.deep.training.config import population
from gramian.study.manifest import PLAN, read_planned
from gramian.study.plan import check_same, pack, read_plan, write_plan
from gramian.study.spec import load_study, parse_study
from gramian.study.store import read_study
from gramian.study.worker import perform
from tests.study.studies import ARMS, plan_of, planned, tiny


@given(games=st.integers(1, 12), arms=st.integers(1, 4), seeds=st.integers(1, 4), largest=st.integers(1, 40))
def test_packing_keeps_every_cell_once_in_order_and_never_exceeds_the_limit(games, arms, seeds, largest):
    kinds = [Arm("dqn"), Arm("gram", 1.0), Arm("decor", 1.0), Arm("norm", 1.0)][:arms]
    cells = population(PAPER_TITLES[:games], kinds, range(seeds))
    packed = pack(cells, largest)
    assert [cell for runs in packed for cell in runs] == list(cells)
    sizes = [len(runs) for runs in packed]
    assert max(sizes) <= largest
    if arms * seeds <= largest:  # a game stays whole, and populations differ by one game at most
        assert all(size % (arms * seeds) == 0 for size in sizes)
        assert max(sizes) - min(sizes) <= arms * seeds


def test_populations_hold_observations_of_one_shape():
    spec = load_study("minatar")
    assert [entry.games for entry in plan_of(spec, largest=1000).populations] == [[game] for game in spec.games]


def test_there_are_as_many_populations_as_can_be_trained_at_once():
    assert len(plan_of(load_study("paper"), largest=441, at_once=8).populations) >= 8


def test_a_plan_is_the_same_whenever_it_is_made(tmp_path):
    planned(tmp_path / "a")
    planned(tmp_path / "b")
    assert (tmp_path / "a" / PLAN).read_bytes() == (tmp_path / "b" / PLAN).read_bytes()


def test_a_plan_reads_back_as_it_was(tmp_path):
    text = tiny(arms='[[arms]]\nkind = "gram"\nkappas = [0.1, 0.30000000000000004]\ncentered = [true, false]\n')
    assert planned(tmp_path / "study", text) == read_plan(tmp_path / "study")


def test_labels_are_in_the_plan_and_in_the_folders_of_the_runs(tmp_path):
    text = tiny(seeds=1, frames=60).replace('"gram"', '"gram"\nlabel = "gram (mine)"')
    plan = planned(tmp_path / "study", text)
    assert [run.label for run in read_plan(tmp_path / "study").populations[0].runs] == ["", "", "gram (mine)"]
    assert perform(str(tmp_path / "study"), plan.populations[0].id, 1)["state"] == "done"
    assert "gram (mine)" in read_study(tmp_path / "study").runs["arm"].to_list()
    assert ("cartpole", "gram (mine)", 0) in read_planned(tmp_path / "study").cells
    run = next((tmp_path / "study").rglob("config.toml")).parent.parent / "cartpole-gram-k0.01-s0"
    assert load_run(run).spec.label == "gram (mine)"


def test_learning_rates_and_settings_of_arms_are_in_the_plan_and_in_the_folders_of_the_runs(tmp_path):
    text = """preset = "tiny"\ngames = ["cartpole"]\nseeds = [0]
    [[arms]]\nkind = "dqn"\nlearning_rates = [1e-3, 1e-2]
    [[arms]]\nkind = "dqn"\nsettings = { layer_norm = true }"""
    plan = planned(tmp_path / "study", text)
    assert read_plan(tmp_path / "study") == plan
    for one in plan.populations:
        assert perform(str(tmp_path / "study"), one.id, 1)["state"] == "done"
    arms = {"dqn layer-norm", "dqn lr 0.001", "dqn lr 0.01"}
    assert set(read_study(tmp_path / "study").runs["arm"]) == arms
    assert read_planned(tmp_path / "study").cells.keys() == {("cartpole", arm, 0) for arm in arms}
    (run,) = (tmp_path / "study").rglob("cartpole-dqn-layer-norm-s0")
    assert load_run(run).network.layer_norm


def test_a_plan_is_written_once(tmp_path):
    plan = planned(tmp_path / "study")
    before = (tmp_path / "study" / PLAN).read_bytes()
    with pytest.raises(UserError, match="holds a study already; name another folder"):
        write_plan(tmp_path / "study", plan, tiny())
    assert (tmp_path / "study" / PLAN).read_bytes() == before


def test_what_cannot_be_trained_is_refused_when_it_is_planned():
    spec = parse_study(tiny(extra="[settings]\nbatch_size = 2\n", arms='[[arms]]\nkind = "gram-unbiased"\n'), "x")
    with pytest.raises(UserError, match="batch_size is 2; it must be at least 4"):
        plan_of(spec)


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (tiny(seeds=3), "holds a part of this study; give --seeds 0 1, or name another folder"),
        (tiny(seeds=3, frames=301), "holds another study: it has no run 'cartpole-decor-k0.01-s2'"),
        (tiny(arms=ARMS + '[[arms]]\nkind = "norm"\n'), "holds another study: it has no run 'cartpole-norm"),
        (tiny(seeds=1), "it also has the run 'cartpole-decor-k0.01-s1'"),
        (
            tiny().replace('"gram"', '"gram"\nlabel = "gram (mine)"'),
            r"its run 'cartpole-gram-k0.01-s0' has the label '', not 'gram \(mine\)'",
        ),
        (tiny(frames=301), "its frames is 300, not 301"),
        (
            tiny(extra="[settings.environment.cartpole]\nmax_episode_steps = 7"),
            "its environment.cartpole.max_episode_steps is 500, not 7",
        ),
    ],
)
def test_another_study_in_the_same_folder_is_refused_by_its_first_difference(tmp_path, changed, complaint):
    plan = planned(tmp_path / "study")
    with pytest.raises(UserError, match=complaint):
        check_same(tmp_path / "study", plan, parse_study(changed, "x"))


def test_a_folder_without_study_and_a_damaged_plan_are_named(tmp_path):
    with pytest.raises(UserError, match="holds no study; name the folder that was given as --out"):
        read_plan(tmp_path)
    (tmp_path / PLAN).write_text("{")
    with pytest.raises(UserError, match=r"plan.json' is damaged"):
        read_plan(tmp_path)
    (tmp_path / PLAN).write_text(json.dumps({"format": 99}))
    with pytest.raises(UserError, match="has format 99, not 1"):
        read_plan(tmp_path)
    (tmp_path / PLAN).write_text(json.dumps({"format": 1}))
    with pytest.raises(UserError, match=r"plan.json' is not the plan of a study: KeyError\('settings'\)"):
        read_plan(tmp_path)


@pytest.mark.parametrize("ids", [[], ["p000", "p000"]])
def test_a_plan_whose_populations_share_a_folder_is_refused(tmp_path, ids):
    planned(tmp_path / "study")
    plan = json.loads((tmp_path / "study" / PLAN).read_text())
    plan["populations"] = [plan["populations"][0] | {"id": name} for name in ids]
    (tmp_path / "study" / PLAN).write_text(json.dumps(plan))
    for read in (read_plan, read_planned):
        with pytest.raises(UserError, match="each with an id of its own"):
            read(tmp_path / "study")


@pytest.mark.parametrize("name", ["../../../x", "/x", "..", "", "a\0b", 3])
def test_a_population_of_a_name_that_no_file_can_have_is_never_trained(tmp_path, name):
    planned(tmp_path / "study")
    plan = json.loads((tmp_path / "study" / PLAN).read_text())
    plan["populations"][0]["id"] = name
    (tmp_path / "study" / PLAN).write_text(json.dumps(plan))
    for read in (read_plan, read_planned):
        with pytest.raises(UserError, match=r"which no file can have|it must be of type str"):
            read(tmp_path / "study")
    assert perform(str(tmp_path / "study"), str(name), 1)["state"] == "failed"
