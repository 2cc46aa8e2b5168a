import hashlib
import json
import shutil

import pytest
import torch

from gramian.core.errors import UserError
from gramian.deep.training.checkpoint import Checkpoints, compress, decompress, latest_weights

RUN = "pong-dqn-s0"


def save(checkpoints, step, segments=(), segments_from=None):
    log = checkpoints.folder / RUN / "episodes.csv"
    log.parent.mkdir(exist_ok=True)
    log.write_text("frames\n")
    checkpoints.save(
        step,
        counters={"updates": step // 4},
        logs={f"{RUN}/episodes.csv": (7, hashlib.sha256(b"frames\n").hexdigest())},
        shared={"stack": torch.full((3,), step)},
        runs=[{"online.w": torch.full((2, 2), float(step))}],
        segments=[(first, end, {"frames": torch.arange(first, end)}) for first, end in segments],
        segments_from=segments_from,
    )


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_run_is_written_before_the_next_is_asked_for(tmp_path):
    names = ["pong-dqn-s0", "pong-dqn-s1"]

    def weights():
        for number, name in enumerate(names):
            assert all((tmp_path / before / "checkpoints" / "1000.safetensors").exists() for before in names[:number])
            assert not (tmp_path / name / "checkpoints" / "1000.safetensors").exists()
            yield {"online.w": torch.full((2,), float(number))}

    for name in names:
        (tmp_path / name).mkdir()
    checkpoints = Checkpoints(tmp_path, names)
    checkpoints.save(1000, counters={}, logs={}, shared={"x": torch.zeros(1)}, runs=weights())
    assert [checkpoints.load().runs[name]["online.w"][0].item() for name in names] == [0.0, 1.0]


def test_what_was_saved_is_loaded(tmp_path):
    save(Checkpoints(tmp_path, [RUN]), 1000, segments=[(0, 5), (5, 9)], segments_from=0)
    loaded = Checkpoints(tmp_path, [RUN]).load()
    assert loaded.agent_steps == 1000
    assert loaded.counters == {"updates": 250}
    assert loaded.log_lengths == {f"{RUN}/episodes.csv": 7}
    assert torch.equal(loaded.shared["stack"], torch.full((3,), 1000))
    assert torch.equal(loaded.runs[RUN]["online.w"], torch.full((2, 2), 1000.0))
    assert torch.cat([segment["frames"] for segment in loaded.segments]).tolist() == list(range(9))


def test_there_is_a_sign_of_life_at_every_file_that_is_written_checked_or_read(tmp_path):
    seen = []
    checkpoints = Checkpoints(tmp_path, [RUN], lambda: seen.append(len(files(tmp_path))))
    save(checkpoints, 1000, segments=[(0, 5), (5, 9)], segments_from=0)
    assert seen == [1, 2, 3, 4]  # a log, and one file more each time
    seen.clear()
    loaded = checkpoints.load()
    assert len(seen) == 4
    assert len(list(loaded.segments)) == 2
    assert len(seen) == 6


def test_a_folder_without_checkpoints_has_none(tmp_path):
    assert Checkpoints(tmp_path, [RUN]).load() is None
    assert Checkpoints(tmp_path, [RUN]).newest_step is None


def test_the_last_two_are_kept_with_the_segments_that_they_need(tmp_path):
    checkpoints = Checkpoints(tmp_path, [RUN])
    save(checkpoints, 10, segments=[(0, 10)], segments_from=0)
    save(checkpoints, 20, segments=[(10, 20)], segments_from=5)
    save(checkpoints, 30, segments=[(20, 30)], segments_from=15)
    assert files(tmp_path / "checkpoints") == [
        "20.json",
        "20.safetensors",
        "30.json",
        "30.safetensors",
        "replay-0-10.zz",  # the checkpoint at 20 needs it still
        "replay-10-20.zz",
        "replay-20-30.zz",
    ]
    save(checkpoints, 40, segments=[(30, 40)], segments_from=25)
    assert "replay-0-10.zz" not in files(tmp_path / "checkpoints")
    assert files(tmp_path / RUN / "checkpoints") == ["30.safetensors", "40.safetensors"]


def test_a_segment_is_written_once_and_shared(tmp_path):
    checkpoints = Checkpoints(tmp_path, [RUN])
    save(checkpoints, 10, segments=[(0, 10)], segments_from=0)
    before = (tmp_path / "checkpoints" / "replay-0-10.zz").stat()
    assert checkpoints.segments_end == 10
    save(checkpoints, 20, segments=[(10, 20)], segments_from=0)
    after = (tmp_path / "checkpoints" / "replay-0-10.zz").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert len(Checkpoints(tmp_path, [RUN]).load().segments) == 2


@pytest.mark.parametrize(
    "victim", ["checkpoints/20.json", "checkpoints/20.safetensors", f"{RUN}/checkpoints/20.safetensors"]
)
@pytest.mark.parametrize("damage", ["truncated", "altered", "removed"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(tmp_path, victim, damage):
    checkpoints = Checkpoints(tmp_path, [RUN])
    save(checkpoints, 10)
    save(checkpoints, 20)
    path = tmp_path / victim
    data = path.read_bytes()
    if damage == "removed":
        path.unlink()
    else:
        middle = len(data) // 2
        path.write_bytes(data[:middle] if damage == "truncated" else data[:middle] + b"\0\1\2" + data[middle + 3 :])
    if victim.endswith("json") and damage == "removed":  # a checkpoint without manifest does not exist
        assert Checkpoints(tmp_path, [RUN]).load().agent_steps == 10
        return
    with pytest.warns(UserWarning, match="checkpoint at agent step 20 is damaged"):
        assert Checkpoints(tmp_path, [RUN]).load().agent_steps == 10


@pytest.mark.parametrize(
    ("victim", "old", "new", "said"),
    [
        (f"{RUN}/episodes.csv", "frames", "frimes", "pong-dqn-s0/episodes.csv is not what was written"),
        (f"{RUN}/episodes.csv", "frames", "fram", "pong-dqn-s0/episodes.csv is shorter than it was"),
        (f"{RUN}/episodes.csv", None, None, r"No such file or directory: .*episodes\.csv"),
        (
            "checkpoints/20.json",
            '"pong-dqn-s0/episodes.csv": 7',
            '"pong-dqn-s0/episodes.csv": 5',
            "its manifest is not",
        ),
        ("checkpoints/20.json", '"updates": 5', '"updates": 6', "its manifest is not what was written"),
    ],
)
def test_an_altered_or_missing_log_and_an_altered_manifest_are_named(tmp_path, victim, old, new, said):
    save(Checkpoints(tmp_path, [RUN]), 20)
    path = tmp_path / victim
    if old is None:
        path.unlink()
    else:
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    with pytest.warns(UserWarning, match=said), pytest.raises(UserError, match="is whole; remove"):
        Checkpoints(tmp_path, [RUN]).load()


def test_a_checkpoint_of_a_version_without_checksums_of_logs_is_used(tmp_path):
    save(Checkpoints(tmp_path, [RUN]), 20)
    path = tmp_path / "checkpoints" / "20.json"
    old = {name: value for name, value in json.loads(path.read_text()).items() if name not in ("log_sums", "sha256")}
    path.write_text(json.dumps(old))
    assert Checkpoints(tmp_path, [RUN]).load().agent_steps == 20


def test_a_run_s_folder_that_is_gone_is_not_made_again(tmp_path):
    checkpoints = Checkpoints(tmp_path, [RUN])
    save(checkpoints, 10)
    shutil.rmtree(tmp_path / RUN)
    with pytest.raises(FileNotFoundError):
        checkpoints.save(20, counters={}, logs={}, shared={"x": torch.zeros(1)}, runs=[{}])
    assert not (tmp_path / RUN).exists()


def test_a_damaged_segment_damages_all_checkpoints_that_need_it(tmp_path):
    checkpoints = Checkpoints(tmp_path, [RUN])
    save(checkpoints, 10, segments=[(0, 10)], segments_from=0)
    save(checkpoints, 20, segments=[(10, 20)], segments_from=0)
    (tmp_path / "checkpoints" / "replay-0-10.zz").write_bytes(b"")
    with pytest.warns(UserWarning, match="damaged"), pytest.raises(UserError, match="is whole; remove"):
        Checkpoints(tmp_path, [RUN]).load()


def test_what_a_killed_process_left_half_done_is_removed_by_the_next_checkpoint(tmp_path):
    checkpoints = Checkpoints(tmp_path, [RUN])
    save(checkpoints, 10)
    (tmp_path / "checkpoints" / "replay-10-99.zz").write_bytes(b"orphan")
    (tmp_path / RUN / "checkpoints" / ".20-abc.safetensors").write_bytes(b"half")
    (tmp_path / "checkpoints" / "notes of my own.txt").write_text("kept")
    save(checkpoints, 20)
    left = files(tmp_path)
    assert "checkpoints/notes of my own.txt" in left
    assert "checkpoints/replay-10-99.zz" not in left
    assert f"{RUN}/checkpoints/.20-abc.safetensors" not in left


def test_a_failed_write_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path, [RUN])
    save(checkpoints, 10)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gramian.deep.training.checkpoint.replace_text", full)
    with pytest.raises(OSError, match="No space left"):
        save(checkpoints, 20)
    assert Checkpoints(tmp_path, [RUN]).load().agent_steps == 10


def test_a_format_of_the_future_is_named(tmp_path):
    save(Checkpoints(tmp_path, [RUN]), 10)
    path = tmp_path / "checkpoints" / "10.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    with pytest.raises(UserError, match="checkpoint format 99 is not 1"):
        Checkpoints(tmp_path, [RUN]).load()


def test_compression_of_several_chunks_round_trips(monkeypatch):
    monkeypatch.setattr("gramian.deep.training.checkpoint.CHUNK_BYTES", 1000)
    data = bytes(range(256)) * 50
    assert decompress(compress(data)) == data
    assert decompress(compress(b"")) == b""
    with pytest.raises(ValueError, match="cut short"):
        decompress(compress(data)[:-1])


def test_the_newest_weights_of_a_run_are_found(tmp_path):
    checkpoints = Checkpoints(tmp_path, [RUN])
    save(checkpoints, 900)
    save(checkpoints, 1000)
    assert latest_weights(tmp_path / RUN).name == "1000.safetensors"
    with pytest.raises(UserError, match="holds no checkpoint"):
        latest_weights(tmp_path / "nothing")
