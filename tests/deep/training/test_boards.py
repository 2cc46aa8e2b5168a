"""Live curves reach TensorBoard, Weights & Biases and trackio, without an account."""

import os
import sqlite3
import sys
from importlib.util import find_spec

import pytest

from gramian.cli import main
from gramian.core.arms import Arm
from gramian.core.errors import UserError
from gramian.deep.training import boards
from gramian.deep.training.session import train
from tests.deep.sessions import small


def tensorboard_points(out):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (folder,) = out.glob("*/tensorboard")
    events = EventAccumulator(str(folder))
    events.Reload()
    return [(point.step, point.value) for point in events.Scalars("feature_norm")]


def trackio_points(out):
    with sqlite3.connect(next((out.parent / "trackio").glob("*.db"))) as database:
        return database.execute(
            "select json_extract(metrics, '$.frames'), json_extract(metrics, '$.feature_norm') from metrics "
            "where json_extract(metrics, '$.feature_norm') is not null order by 1"
        ).fetchall()


READ = {"tensorboard": tensorboard_points, "trackio": trackio_points}


@pytest.fixture
def without_account(tmp_path, monkeypatch):
    for variable in ("WANDB_MODE", "WANDB_API_KEY", "HF_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    if find_spec("trackio") is not None:  # it reads the name of its folder when it is imported
        monkeypatch.setattr("trackio.utils.TRACKIO_DIR", tmp_path / "trackio")
        monkeypatch.setattr("trackio.sqlite_storage.TRACKIO_DIR", tmp_path / "trackio")


def logged(out):
    """Frames and ‖φ‖ of the run's own log."""
    (log,) = out.glob("*/metrics.csv")
    heading, *rows = (line.split(",") for line in log.read_text().splitlines())
    return [(int(row[0]), float(row[heading.index("feature_norm")])) for row in rows]


@pytest.mark.slow
@pytest.mark.usefixtures("without_account")
@pytest.mark.parametrize("name", READ)
@pytest.mark.filterwarnings("ignore")
def test_the_curves_are_those_of_the_log(name, tmp_path):
    pytest.importorskip(name)
    out = train(small(frames=400, seeds=[0], arms=[Arm("dqn")]), tmp_path / "run", log=(name,))
    expected, found = logged(out), READ[name](out)
    assert [frames for frames, _ in found] == [frames for frames, _ in expected]
    assert [value for _, value in found] == pytest.approx([value for _, value in expected], rel=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("without_account")
def test_the_offline_file_of_wandb_has_the_numbers_of_the_log(tmp_path):
    wandb = pytest.importorskip("wandb")
    out = train(small(frames=400, seeds=[0], arms=[Arm("dqn")]), tmp_path / "run", log=("wandb",))
    wandb.teardown()  # its own process writes the file, and ends with ours
    (path,) = out.glob("*/wandb/offline-run-*/*.wandb")
    saved = path.read_bytes()
    assert all(repr(value)[:12].encode() in saved for _, value in logged(out))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_option_tensorboard_is_that_log(tmp_path):
    pytest.importorskip("tensorboard")
    words = "train --game cartpole --arm none --preset tiny --frames 400 --tensorboard --out"
    assert main([*words.split(), str(tmp_path / "run")]) == 0
    assert list(tmp_path.glob("run/*/tensorboard/events*"))


def test_every_run_of_a_population_has_its_own_curves(tmp_path):
    pytest.importorskip("tensorboard")
    train(small(frames=400, seeds=[0]), tmp_path / "run", log=("tensorboard", "tensorboard"), tensorboard=True)
    assert len(list(tmp_path.glob("run/*/tensorboard/events*"))) == 2


@pytest.mark.parametrize("name", boards.BOARDS)
def test_a_log_that_is_not_installed_names_its_extra(name, tmp_path, monkeypatch):
    monkeypatch.setattr(boards, "find_spec", lambda module: None if module == name else find_spec(module))
    with pytest.raises(UserError, match=rf"pip install 'gramian\[{name}\]'"):
        train(small(frames=400), tmp_path / "run", log=(name,))
    assert not (tmp_path / "run").exists()


def test_an_unknown_log_is_refused(tmp_path):
    with pytest.raises(UserError, match="unknown log 'tensorbord'; did you mean 'tensorboard'"):
        train(small(frames=400), tmp_path / "run", log=("tensorbord",))


def test_nothing_of_a_log_is_imported_unasked(tmp_path):
    before = {name for name in boards.BOARDS if name in sys.modules}
    train(small(frames=200, seeds=[0]), tmp_path / "run")
    assert {name for name in boards.BOARDS if name in sys.modules} == before
    assert os.environ.get("WANDB_MODE") is None
