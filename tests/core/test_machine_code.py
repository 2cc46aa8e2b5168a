"""Kernels kept on the disk: used again by the next process, never wrong, never in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gramian.core.compiled import kernel
from gramian.core.machine_code import FOLDERS_KEPT, cache_home, folder_in, sources_key

pytestmark = pytest.mark.slow

PROGRAM = """
import numpy as np
from gramian.linear.kernels import split_matrix, split_vector
matrix = np.eye(3)
split_matrix(matrix, 2, 0.6, 0.8, 1.0)
print(round((matrix @ matrix.T).trace(), 12), sum(split_matrix.stats.cache_hits.values()),
      sum(split_matrix.stats.cache_misses.values()), len(split_vector.signatures))
"""
ANSWER = "3.0"  # a rotated identity is orthogonal
COMPILED, LOADED = f"{ANSWER} 0 1 1", f"{ANSWER} 1 0 1"


def start(home, program=PROGRAM):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(home)}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program], env=environment, stdout=subprocess.PIPE, text=True
    )


def printed(home, program=PROGRAM):
    process = start(home, program)
    output, _ = process.communicate()
    assert process.returncode == 0
    return output.strip()


def test_a_second_process_compiles_nothing_and_loads_the_kernels_that_are_called_too(tmp_path):
    assert [printed(tmp_path), printed(tmp_path)] == [COMPILED, LOADED]


def test_loaded_kernels_round_like_compiled_ones(tmp_path):
    # A run on the edge of stability: one rounding more or less, and its episodes have other lengths.
    program = """
import numpy as np
from gramian.linear.learner import Arm
from gramian.linear.mountain_car import Case, MountainCar, simulate
options, stop = MountainCar(quick=True).quickened(), np.zeros(1, dtype=bool)
case = Case(0, Arm("plain", "single", 0.1), 0.9)
print([simulate(options, case, run, stop, np.zeros((0, 3)))[0] for run in range(5)])
"""
    assert printed(tmp_path, program) == printed(tmp_path, program)


def test_nothing_is_written_beside_the_sources(tmp_path):
    printed(tmp_path)
    package = Path(__file__).parents[1] / "src" / "gramian"
    assert not list(package.rglob("*.nb?"))
    assert list(tmp_path.rglob("*.nbc"))


def test_processes_that_compile_at_once_leave_code_that_the_next_can_use(tmp_path):
    processes = [start(tmp_path) for _ in range(2)]
    assert {process.communicate()[0].strip() for process in processes} <= {COMPILED, LOADED}
    assert printed(tmp_path) == LOADED


def test_without_a_folder_to_write_to_kernels_are_compiled_in_silence():
    assert printed("/dev/null/nowhere") == COMPILED


@pytest.mark.parametrize(("kind", "content"), [("nbi", b""), ("nbi", b"no code"), ("nbc", b"no code")])
def test_damaged_files_are_made_anew(tmp_path, kind, content):
    printed(tmp_path)
    for path in tmp_path.rglob(f"*.{kind}"):
        path.write_bytes(content)
    assert [printed(tmp_path), printed(tmp_path)] == [COMPILED, LOADED]


def test_a_folder_that_goes_away_meanwhile_is_no_error(tmp_path):
    program = "import shutil\nimport gramian.linear.kernels\n" + f"shutil.rmtree({str(tmp_path)!r})\n" + PROGRAM
    assert printed(tmp_path, program) == COMPILED


def test_any_change_of_a_kernel_module_changes_the_key_and_no_other_does(tmp_path):
    (tmp_path / "a").mkdir()
    keys = [sources_key(tmp_path)]
    line = "from gramian.core.compiled import kernel"
    for name, text in (("a/one.py", line), ("a/one.py", f"{line}\nX = 2"), ("a/two.py", line), ("two.py", "X = 1")):
        (tmp_path / name).write_text(text)
        keys.append(sources_key(tmp_path))
    assert len(set(keys)) == 4
    assert keys[-1] == keys[-2]


def test_the_folders_used_last_are_kept_and_nothing_else_is_touched(tmp_path):
    (tmp_path / "gramian" / "mine").mkdir(parents=True)
    for n in range(FOLDERS_KEPT + 2):
        folder = folder_in(tmp_path, f"{n:016x}")
        os.utime(folder, (n, n))
    left = sorted(path.name for path in (tmp_path / "gramian").iterdir())
    assert left == [*(f"kernels-{n:016x}" for n in range(2, FOLDERS_KEPT + 2)), "mine"]


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path):
    folder = folder_in(tmp_path, "0" * 16)
    folder.chmod(0o777)
    assert folder_in(tmp_path, "0" * 16) is None


@pytest.mark.parametrize(("named", "found"), [("/somewhere", Path("/somewhere")), ("relative", None), ("", None)])
def test_the_cache_folder_is_the_one_that_xdg_names_if_it_is_absolute(monkeypatch, named, found):
    monkeypatch.setattr("gramian.core.machine_code._config.CACHE_DIR", "")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", named)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert cache_home() == (found or Path("/home/somebody/.cache"))


def test_functions_outside_the_package_are_not_kept():
    @kernel
    def double(x):
        return 2 * x

    assert double(2) == 4
    assert double.stats.cache_path is None
