import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gramian.core.errors import UserError
from gramian.core.games import GAMES, game_name
from gramian.study.manifest import in_no_part, read_planned
from gramian.study.store import EPISODE_SCHEMA, RUN_SCHEMA, import_csv, read_study, write_import
from tests.study.studies import HEADER, make_run


def write_table(folder: Path, text: str) -> Path:
    path = folder / "theirs.csv"
    path.write_text(text)
    return path


def test_a_run_folder_becomes_one_row(tmp_path):
    status = {"state": "diverged", "agent_steps": 700, "reason": "not finite at update 3"}
    run = make_run(tmp_path / "populations" / "p000" / "pong-gram", arm="gram:0.5:uncentered", status=status)
    row = read_study(tmp_path).runs.row(0, named=True)
    assert row == {
        "run": "pong-gram", "game": "pong", "arm": "gram:0.5:uncentered", "kind": "gram", "kappa": 0.5,
        "centered": False, "seed": 1, "state": "diverged", "reason": "not finite at update 3", "agent_steps": 700,
        "frames_target": 8000, "preset": "author", "folder": str(run), "window": 100,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arm", "kind", "kappa", "centered"),
    [
        ("dqn", "dqn", 0.0, False),
        ("decor:10.24", "decor", 10.24, True),
        ("gram-unbiased:0.1:uncentered", "gram-unbiased", 0.1, False),
        ("l2:3.0", "l2", 3.0, False),
        ("gram:0.08+norm:0.2", "gram+norm", None, None),
        ("theirs: best", "theirs: best", None, None),
    ],
)
def test_an_arm_is_read_as_the_command_line_writes_it(tmp_path, arm, kind, kappa, centered):
    make_run(tmp_path / "run", arm=arm)
    row = read_study(tmp_path).runs.row(0, named=True)
    assert (row["kind"], row["kappa"], row["centered"]) == (kind, kappa, centered)


def test_a_label_is_what_an_arm_is_called_and_its_kappa_is_kept(tmp_path):
    make_run(tmp_path / "a", game="pong", extra='label = "gram"\n')
    make_run(tmp_path / "b", game="qbert", arm="gram:0.5", extra='label = "gram"\n')
    make_run(tmp_path / "c", extra="learning_rate = 0.001\n")
    runs = read_study(tmp_path).runs
    assert runs["arm"].to_list() == ["gram", "gram", "gram:10.24 lr 0.001"]
    assert runs["kappa"].to_list() == [10.24, 0.5, 10.24]


def test_episodes_carry_their_run_and_the_raw_return(tmp_path):
    make_run(tmp_path / "run", episodes=HEADER + "400,0,0,-20.5,-1.0,100,0\n800,0,1,3.0,1.0,100,1\n")
    episodes = read_study(tmp_path).episodes
    assert episodes.schema == pl.Schema(EPISODE_SCHEMA)
    assert episodes.rows() == [("run", "pong", "gram:10.24", 1, 400, -20.5), ("run", "pong", "gram:10.24", 1, 800, 3.0)]


def test_a_line_that_is_still_being_written_is_left_aside(tmp_path):
    make_run(tmp_path / "run", episodes=HEADER + "400,0,0,-20.5,-1.0,100,0\n800,0,1,3")
    assert read_study(tmp_path).episodes["return"].to_list() == [-20.5]


CUT = [
    (
        "episodes.csv",
        HEADER + "400,0,0,-20.5\n800,0,1,3.0,1.0,100,1\n",
        "line 2 of .*episodes.csv' has no number for clipped_return",
    ),
    ("episodes.csv", HEADER + "400,0,0,-2.0,-1.0,9,0\n800,0,1,3", "line 3 of .*episodes.csv' does not end with a newl"),
    ("metrics.csv", "frames,q\n100,0.5\n200,\n", "line 3 of .*metrics.csv' has no number for q"),
    ("representation.csv", "frames,q\n100,0.5\n200", "line 3 of .*representation.csv' does not end with a newline"),
]


@pytest.mark.parametrize("state", ["done", "diverged"])
@pytest.mark.parametrize(("name", "text", "message"), CUT)
def test_a_damaged_log_of_a_run_that_has_ended_is_refused_with_its_line(tmp_path, name, text, message, state):
    run = make_run(tmp_path / "run", status={"state": state, "agent_steps": 200, "reason": ""})
    (run / name).write_text(text)
    with pytest.raises(UserError, match=message):
        read_study(tmp_path)


@pytest.mark.parametrize("state", ["running", "interrupted", "failed"])
def test_the_log_of_a_run_that_has_not_ended_may_end_anywhere(tmp_path, state):
    run = make_run(tmp_path / "run", status={"state": state, "agent_steps": 200, "reason": ""})
    for name, text, _ in CUT:
        (run / name).write_text(text)
    assert read_study(tmp_path).metrics["q"].to_list() == [0.5, None]


def test_a_run_that_has_only_been_configured_is_planned_and_has_no_episodes(tmp_path):
    make_run(tmp_path / "run", episodes=None)
    study = read_study(tmp_path)
    assert study.runs["state"].to_list() == ["planned"]
    assert study.episodes.is_empty()


def test_metrics_of_runs_with_different_columns_are_joined(tmp_path):
    make_run(tmp_path / "none")
    for name, text in {"a": "frames,q\n10,0.5\n", "b": "frames,q,extra\n10,nan,2\n"}.items():
        run = make_run(tmp_path / name, seed=ord(name))
        for log in ("metrics.csv", "representation.csv"):
            (run / log).write_text(text)
    metrics = read_study(tmp_path).metrics
    assert read_study(tmp_path).held_out.equals(metrics)
    assert metrics.columns == ["run", "game", "arm", "seed", "frames", "q", "extra"]
    assert metrics["extra"].to_list() == [None, 2.0]
    assert metrics["q"][0] == 0.5
    assert np.isnan(metrics["q"][1])


def test_runs_of_a_real_training_are_read(tmp_path):
    config = pytest.importorskip("gramian.deep.training.config")
    logs = pytest.importorskip("gramian.deep.training.logs")
    arms = pytest.importorskip("gramian.deep.agent.arms")
    population = config.Config(
        "smoke", config.load_preset("smoke"), config.population(["minatar/breakout"], [arms.Arm("gram", 0.5)], [4])
    )
    folder = tmp_path / population.runs[0].name
    folder.mkdir()
    logs.write_config(folder, population, population.runs[0])
    logs.write_status(folder, "done", 20_000)
    log = logs.RunLog(folder)
    log.add("episodes.csv", dict.fromkeys(logs.EPISODE_COLUMNS, 2.0))
    log.add("metrics.csv", dict.fromkeys(logs.METRIC_COLUMNS, 1.0))
    log.flush()
    log.close()
    study = read_study(tmp_path)
    assert study.runs.select("game", "arm", "seed", "state", "frames_target").row(0) == (
        "minatar/breakout", "gram:0.5", 4, "done", 20_000,
    )  # fmt: skip
    assert study.episodes["return"].to_list() == [2.0]
    assert set(logs.METRIC_COLUMNS) < set(study.metrics.columns)
    assert study.settings[population.runs[0].name]["prefill_agent_steps"] == 500


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: None, "there is no run below"),
        (lambda folder: (folder / "config.toml").write_text("game = "), "cannot read"),
        (lambda folder: (folder / "config.toml").write_text('game = "pong"'), "names no arm"),
        (lambda folder: make_run(folder / "run", episodes="a,b\n1,2\n"), "has no column 'frames'"),
        (lambda folder: make_run(folder / "run", episodes=HEADER + "x,0,0,1.0,1.0,1,0\n"), "is not a CSV table"),
        (lambda folder: (make_run(folder / "run") / "status.json").write_text("{"), "cannot read"),
        (lambda folder: (make_run(folder / "run") / "status.json").write_text("[]"), "is not the status of a run"),
        (lambda folder: make_run(folder / "run", status={}), "'.*status.json' names no state; it is not the status"),
        (lambda folder: make_run(folder / "run", status={"state": 1}), "'.*status.json' names no state"),
        (lambda folder: make_run(folder / "run", seed='"x"'), "seed in '.*' is 'x'; it must be a whole number"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path, make, message):
    make(tmp_path)
    with pytest.raises(UserError, match=message) as raised:
        read_study(tmp_path)
    assert "\n" not in str(raised.value)
    with pytest.raises(UserError, match=r"there is no folder '.*nowhere'"):
        read_study(tmp_path / "nowhere")


def test_an_imported_table_reads_back_as_the_same_study(tmp_path):
    rows = "\n".join(
        f"{arm},Pong,{seed},{at * 1000},{at + seed / 3!r}" for arm in "ab" for seed in (0, 1) for at in range(5)
    )
    path = write_table(tmp_path, "arm,game,seed,frames,return\n" + rows + "\n")
    imported = write_import(path, tmp_path / "study")
    read = read_study(tmp_path / "study")
    assert read.episodes.equals(imported.episodes)
    assert read.runs.drop("folder").equals(imported.runs.drop("folder"))
    assert read.runs.schema == pl.Schema(RUN_SCHEMA)


def test_the_spellings_of_a_game_are_one_game(tmp_path):
    spellings = {
        "pong": ["Pong", "pong", "ALE/Pong-v5", "PongNoFrameskip-v4", "PongDeterministic-v0", "Pong-ram-v4"],
        "space_invaders": ["SpaceInvaders", "space_invaders", "Space Invaders", "ALE/SpaceInvaders-v5"],
        "minatar/space_invaders": ["MinAtar/SpaceInvaders-v1", "minatar/space_invaders", "MinAtar/SpaceInvaders-v0"],
        "cartpole": ["CartPole-v1", "cartpole", "CartPole"],
        "Skiing": ["ALE/Skiing-v5", "Skiing", "SkiingNoFrameskip-v4"],
        "CartPole-v0": ["CartPole-v0"],
        "Hopper-v2": ["Hopper-v2"],
        "Hopper-v3": ["Hopper-v3"],
    }
    names = [name for own in spellings.values() for name in own]
    rows = "".join(f"a,{name},{seed},10,1\n" for seed, name in enumerate(names))
    found = import_csv(write_table(tmp_path, "arm,game,seed,frames,return\n" + rows)).runs.sort("seed")["game"]
    assert found.to_list() == [game for game, own in spellings.items() for _ in own]


@pytest.mark.parametrize("rows", ["episodes", "points"])
def test_two_spellings_of_the_game_of_a_run_are_a_clash(tmp_path, rows):
    path = write_table(tmp_path, "arm,game,seed,frames,return\na,Pong,0,10,1\na,Pong,1,10,1\na,ALE/Pong-v5,0,20,2\n")
    with pytest.raises(
        UserError, match=r"line 4 of .* has game 'ALE/Pong-v5', and 'Pong' on line 2, which are the sam"
    ):
        import_csv(path, rows=rows)


def test_names_of_the_package_are_those_of_its_games():
    for name, game in GAMES.items():
        assert game_name(name) == game_name(game.title) == name


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,g,x,10,1", "line 3 of '.*': seed is 'x'; it must be a whole number"),
        ("a,g,0,-5,1", "line 3 of '.*': frames is '-5'; it must be a number, 0 or more"),
        ("a,g,0,10,nan", "line 3 of '.*': return is 'nan'; it must be a finite number"),
        ("a,g,0,10,", "line 3 of '.*': return is ''; it must be a finite number"),
        (",g,0,10,1", "line 3 of '.*': arm is ''; it must be a name"),
    ],
)
def test_a_wrong_value_in_an_import_is_named_with_its_line_and_nothing_is_written(tmp_path, line, message):
    path = write_table(tmp_path, f"arm,game,seed,frames,return\na,g,0,10,1\n{line}\n")
    with pytest.raises(UserError, match=message):
        write_import(path, tmp_path / "study")
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no column 'arm'|has no rows"),
        ("arm,game,seed,frames\na,g,0,1\n", "has no column 'return'"),
        ("arm,game,seed,frames,return\n", "has no rows"),
        ("arm,game,seed,frames,return,seed\na,g,0,1,2,3\n", "has more than one column 'seed'"),
        ("arm,game,seed,frames,return\na,g,0,1,2\na,g,0,1,2,3\n", "line 3 has 6 fields and the header has 5"),
        ('arm,game,seed,frames,return,note\na,g,0,1,2,"x\ny"\na,g,x,1,2,z\n', "line 4 of '.*': seed is 'x'"),
    ],
)
def test_an_import_that_is_no_such_table_is_refused(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        import_csv(write_table(tmp_path, text))


def test_a_second_import_does_not_overwrite_the_first(tmp_path):
    path = write_table(tmp_path, "arm,game,seed,frames,return\na,g,0,10,1\n")
    write_import(path, tmp_path / "study")
    with pytest.raises(UserError, match="holds an imported table already"):
        write_import(path, tmp_path / "study")


def test_hostile_names_of_an_import_make_no_paths(tmp_path):
    path = write_table(tmp_path, 'arm,game,seed,frames,return\n"../../x","<script>alert(1)</script>",0,10,1\n')
    write_import(path, tmp_path / "study")
    assert sorted(p.name for p in (tmp_path / "study").iterdir()) == ["imported.csv", "imported.json"]
    assert read_study(tmp_path / "study").runs["game"].to_list() == ["<script>alert(1)</script>"]


def test_planned_cells_carry_the_reason_of_their_populations_failure(tmp_path):
    plan = {
        "title": "t",
        "populations": [
            {"id": "p000", "runs": [{"game": "pong", "arm": "dqn", "seed": 0}]},
            {"id": "p001", "runs": [{"game": "pong", "arm": "dqn", "seed": 1}]},
        ],
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "populations").mkdir()
    lines = [{"event": "started"}, {"event": "failed", "reason": "out of memory"}]
    (tmp_path / "populations" / "p001.attempts.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    assert read_planned(tmp_path).cells == {("pong", "dqn", 0): "", ("pong", "dqn", 1): "out of memory"}


def test_the_parts_of_a_study_are_planned_together(tmp_path):
    for seed in (0, 1):
        (tmp_path / f"part-{seed}" / "populations").mkdir(parents=True)
        plan = {"title": "t", "populations": [{"id": "p000", "runs": [{"game": "pong", "arm": "dqn", "seed": seed}]}]}
        (tmp_path / f"part-{seed}" / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "part-1" / "populations" / "p000.attempts.jsonl").write_text('{"event": "failed", "reason": "hung"}\n')
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "plan.json").write_text("somebody else's")
    planned = read_planned(tmp_path)
    assert planned.title == "t"
    assert planned.cells == {("pong", "dqn", 0): "", ("pong", "dqn", 1): "hung"}


def write_part(folder, game, seed, whole):
    (folder / "populations").mkdir(parents=True)
    runs = [
        {"game": game, "arm": "gram:0.1", "label": "gram", "seed": seed},
        {"game": game, "arm": "dqn", "seed": seed},
    ]
    (folder / "plan.json").write_text(json.dumps({"title": "t", "populations": [{"id": "p000", "runs": runs}]}))
    (folder / "study.toml").write_text(whole)


WHOLE = """# This folder holds a part of it: --games Pong --seeds 0
games = ["Pong", "qbert"]
seeds = [0, 1]
arms = [{kind = "dqn"}, {kind = "gram", kappa = 0.1, label = "gram"}]
"""


def test_cells_of_a_study_that_are_in_none_of_its_parts_are_missed(tmp_path):
    write_part(tmp_path / "a", "pong", 0, WHOLE)
    assert set(read_planned(tmp_path / "a").cells) == {("pong", "gram", 0), ("pong", "dqn", 0)}  # a part by itself
    write_part(tmp_path / "b", "pong", 1, WHOLE)
    left = [("qbert", arm, seed) for arm in ("dqn", "gram") for seed in (0, 1)]
    assert in_no_part(tmp_path) == left
    cells = read_planned(tmp_path).cells
    assert len(cells) == 8
    assert [cell for cell, reason in cells.items() if reason == "in no part of the study"] == left


@pytest.mark.parametrize(
    "whole",
    [WHOLE.partition("\n")[2], WHOLE.replace('kind = "dqn"', 'kind = "dqn", games = ["pong"]'), WHOLE + "games"],
    ids=["no part", "an arm of some games", "damaged"],
)
def test_where_it_is_not_known_what_the_parts_are_of_nothing_is_missed(tmp_path, whole):
    for seed in (0, 1):
        write_part(tmp_path / f"s{seed}", "pong", seed, whole)
    assert in_no_part(tmp_path) == []


@pytest.mark.parametrize("line", ["[]", "null", "3", '"failed"', '{"event": "fai'])
def test_a_last_line_of_the_attempts_that_is_none_gives_no_reason(tmp_path, line):
    plan = {"populations": [{"id": "p000", "runs": [{"game": "pong", "arm": "dqn", "seed": 0}]}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "populations").mkdir()
    (tmp_path / "populations" / "p000.attempts.jsonl").write_text('{"event": "started"}\n' + line)
    assert read_planned(tmp_path).cells == {("pong", "dqn", 0): ""}


def test_a_plan_that_is_none_is_refused(tmp_path):
    (tmp_path / "plan.json").write_text("[1]")
    with pytest.raises(UserError, match="is not the plan of a study"):
        read_planned(tmp_path)


def test_two_points_of_a_curve_at_one_frame_are_refused_with_their_lines(tmp_path):
    path = tmp_path / "theirs.csv"
    path.write_text("arm,game,seed,frames,return\na,Pong,0,100,1\na,Pong,1,100,1\na,Pong,0,100,2\n")
    with pytest.raises(UserError, match=r"line 4 of '.*': arm 'a', game 'pong', seed 0 has a point at 100 .* line 2"):
        import_csv(path, rows="points")
    assert import_csv(path).episodes.height == 3


def test_hidden_folders_below_the_given_one_are_not_read(tmp_path):
    make_run(tmp_path / ".all" / "seen")
    make_run(tmp_path / ".all" / ".trash" / "unseen")
    assert read_study(tmp_path / ".all").runs["run"].to_list() == ["seen"]


def test_rows_of_an_import_are_episodes_or_points_by_frames_and_a_short_run_did_not_finish(tmp_path):
    rows = "2,hello,10.0,Pong,a,1e6\n1,,10.0,Pong,a,10\n3,,1,Pong,a,5e5\n"
    path = write_table(tmp_path, "return,note,seed,game,arm,frames\n" + rows)
    study = import_csv(path)
    assert study.episodes.filter(seed=10).select("game", "frames", "return").rows() == [
        ("pong", 10, 1.0),
        ("pong", 1_000_000, 2.0),
    ]
    assert study.runs.sort("seed").select("state", "reason", "window").rows() == [
        ("interrupted", "ends at 500000 of 1000000 frames", 100),
        ("done", "", 100),
    ]
    write_import(path, tmp_path / "study", rows="points")
    assert read_study(tmp_path / "study").runs["window"].to_list() == [1, 1]
    with pytest.raises(UserError, match=r"cannot read .*none\.csv.: no such file"):
        import_csv(tmp_path / "none.csv")
