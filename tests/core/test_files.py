from pathlib import Path

import pytest

from gramian.core import files
from gramian.core.errors import UserError
from gramian.core.files import durable_folder, output_folder, replace_text, replacing


def test_replace_text_writes_the_whole_file_and_nothing_else(tmp_path):
    replace_text(tmp_path / "a.csv", "x\n")
    replace_text(tmp_path / "a.csv", "y\n")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.csv", "y\n")]


def test_a_failed_block_keeps_the_old_file_and_leaves_no_temporary_one(tmp_path):
    target = tmp_path / "a.csv"
    replace_text(target, "old\n")

    def write_and_fail():
        with replacing(target) as temporary:
            temporary.write_text("new\n")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_fail()
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.csv", "old\n")]


def test_replaced_files_have_the_permissions_of_ordinary_ones(tmp_path):
    replace_text(tmp_path / "a", "x")
    (tmp_path / "b").write_text("x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_new_folder_is_brought_to_the_disk_with_its_parent(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(files, "_sync", synced.append)
    for _ in range(2):
        durable_folder(tmp_path / "checkpoints")
    assert (tmp_path / "checkpoints").is_dir()
    assert synced == [tmp_path]


def test_output_folder_creates_missing_parents(tmp_path):
    assert output_folder(tmp_path / "a" / "b").is_dir()


def test_output_folder_below_a_file_is_an_error_that_leaves_nothing_behind(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write to folder"):
        output_folder(tmp_path / "file" / "sub" / "sub")
    with pytest.raises(UserError, match="it is a file"):
        output_folder(tmp_path / "file")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs Linux's /proc, which is read-only even for root")
def test_output_folder_that_cannot_be_written_is_an_error():
    with pytest.raises(UserError, match="cannot write to folder"):
        output_folder("/proc/gramian")
