import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from gramian import cli, doctor
from gramian.cli import main
from gramian.core import host_memory
from gramian.deep.envs.minatar import MinAtarGames
from gramian.doctor import CHECKS, EXTRAS, Finding, line

ROOT = Path(__file__).parent.parent
LAB = ", ".join(f"'{module}': None" for module in EXTRAS["lab"])


@pytest.fixture
def without(monkeypatch):
    """Pretend that modules are not installed."""
    found = importlib.util.find_spec

    def pretend(*modules):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in modules else found(name))

    return pretend


def broken(*_arguments, **_keywords):
    raise OSError("libcudart.so: file\nnot found")


@pytest.mark.slow
def test_every_check_passes_or_is_skipped_on_a_machine_that_has_everything(capsys):
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [text.split()[1] for text in lines[:-1]] == list(CHECKS)
    assert all(text.split()[0] in ("ok", "note", "skip") for text in lines[:-1])
    assert lines[-1] == "nothing is wrong"


def test_something_wrong_gives_exit_code_1_and_is_counted(monkeypatch, capsys):
    checks = {"disk": lambda: Finding("wrong", "full", "free some"), "python": lambda: Finding("ok", "3.11")}
    monkeypatch.setattr(doctor, "CHECKS", checks)
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "wrong  disk           full: free some",
        "ok     python         3.11",
        "1 of 2 checks found something wrong",
    ]


def test_a_check_that_breaks_is_wrong_and_the_others_are_made(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "CHECKS", {"disk": broken, "python": lambda: Finding("ok", "3.11")})
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.splitlines()[0] == "wrong  disk           OSError: libcudart.so: file not found"


def test_a_long_finding_is_cut_to_80_columns_and_its_remedy_is_whole():
    text = line("determinism", Finding("wrong", "x" * 100, "test the memory"))
    assert len(text) == 80
    assert text.endswith("x…: test the memory")


def test_it_takes_no_options(capsys):
    assert main(["doctor", "--fast"]) == 2
    assert capsys.readouterr().err == "gramian: 'doctor' takes no options; omit --fast\n"


def test_the_extras_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    distributions = {"PIL": "pillow", "ale_py": "ale-py", "imageio_ffmpeg": "imageio-ffmpeg", "tomli_w": "tomli-w"}
    distributions |= {"stable_baselines3": "stable-baselines3"}
    extras = project["optional-dependencies"]
    for extra, modules in EXTRAS.items():
        wanted = {entry.partition(">")[0] for entry in extras[extra]} - {"gramian[lab]", "torch"}
        assert {distributions.get(module, module) for module in modules} == wanted
    assert f"Programming Language :: Python :: 3.{doctor.NEWEST_PYTHON[1]}" in project["classifiers"]
    assert f"torch>={doctor.OLDEST_TORCH[0]}.{doctor.OLDEST_TORCH[1]}" in extras["lab"]


def test_the_commands_and_the_doctor_ask_for_the_same_python():
    assert doctor.OLDEST_PYTHON == cli.OLDEST


@pytest.mark.parametrize(("version", "state"), [((3, 10), "wrong"), ((3, 12), "ok"), ((3, 14), "note")])
def test_python(version, state, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
    assert doctor.check_python().state == state


@pytest.mark.parametrize(
    ("kept_from_now_on", "compiled_before", "state"),
    [(True, True, "ok"), (True, False, "ok"), (False, True, "ok"), (False, False, "note")],
)
def test_a_python_that_compiles_torch_at_every_start_is_noted(
    tmp_path, monkeypatch, kept_from_now_on, compiled_before, state
):
    monkeypatch.setattr(sys, "version_info", (3, 12, 3, "final", 0))
    monkeypatch.setattr(sys, "dont_write_bytecode", not kept_from_now_on)
    package = tmp_path / "torch" / "__init__.py"
    package.parent.mkdir()
    package.write_text("")
    if compiled_before:
        py_compile.compile(str(package))
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: importlib.util.spec_from_file_location(name, str(package))
    )
    finding = doctor.check_python()
    assert finding.state == state
    assert len(doctor.line("python", finding)) <= doctor.WIDTH


def test_torch_that_is_missing_old_or_broken(monkeypatch, without):
    monkeypatch.setattr(torch, "__version__", "2.5.1+cpu")
    assert doctor.check_torch() == Finding("wrong", "2.5.1+cpu is too old", "pip install --upgrade 'torch>=2.6'")
    monkeypatch.setattr(torch, "eye", broken)
    assert doctor.check_torch() == Finding(
        "wrong", "does not load (libcudart.so: file not found)", "pip install --force-reinstall torch"
    )
    without("torch")
    assert doctor.check_torch() == Finding("wrong", "not installed", "pip install torch")


def test_a_gpu_that_torch_cannot_use(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert doctor.check_cuda().state == "ok"
    monkeypatch.setattr(shutil, "which", lambda _: "nvidia-smi")
    monkeypatch.setattr(torch.version, "cuda", None)
    assert doctor.check_cuda() == Finding("wrong", "a GPU, but torch without CUDA", "see pytorch.org/get-started")
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    assert doctor.check_cuda() == Finding("wrong", "torch's CUDA 12.8 sees no GPU", "update the driver")


def test_a_gpu_is_shown_with_its_memory(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (7 * 10**9, 8 * 10**9))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Test GPU")
    assert doctor.check_cuda() == Finding("ok", "Test GPU, 7 of 8 GB free")


def test_missing_extras_are_named_with_the_pip_install_that_brings_them(without):
    without("ray", "polars")
    assert doctor.check_extra("ray") == Finding("note", "not installed", "pip install 'gramian[ray]'")
    assert doctor.check_extra("lab") == Finding("note", "no polars", "pip install 'gramian[lab]'")


def test_games_that_do_not_load(monkeypatch, tmp_path, without):
    import ale_py.roms

    paths = {"pong": None, "qbert": tmp_path / "absent.bin"}
    real = ale_py.roms.get_rom_path
    monkeypatch.setattr(ale_py.roms, "get_rom_path", lambda game: paths[game] if game in paths else real(game))
    assert doctor.check_emulator() == Finding(
        "wrong", "2 of 49 games do not load (pong, qbert)", "pip install --force-reinstall ale-py"
    )
    without("ale_py")
    assert doctor.check_emulator() == Finding("skip", "not looked at", "pip install 'gramian[lab]'")


def test_minatar_that_does_not_play(monkeypatch, without, capsys):
    monkeypatch.setattr(MinAtarGames, "start", broken)
    monkeypatch.setattr(doctor, "CHECKS", {"minatar": doctor.check_minatar})
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.startswith("wrong  minatar        OSError: libcudart.so")
    without("numba")
    assert doctor.check_minatar().state == "skip"


def test_a_full_disk(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**8))
    assert doctor.check_disk() == Finding("wrong", "0.1 GB free in this folder", "free 2 GB, or give --out elsewhere")


@pytest.mark.parametrize(("free", "state"), [(10**9, "wrong"), (4 * 10**9, "note"), (64 * 10**9, "ok")])
def test_memory(free, state, monkeypatch):
    monkeypatch.setattr(host_memory, "available_host_bytes", lambda: free)
    assert doctor.check_memory().state == state


@pytest.mark.parametrize(
    ("asked", "state"), [("", "wrong"), ("two", "wrong"), ("100000", "wrong"), ("1", "ok"), (None, "ok")]
)
def test_threads(asked, state, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    found = doctor.check_threads()
    assert found.state == state
    assert found.remedy == ("export OMP_NUM_THREADS=1" if state == "wrong" else "")


def test_two_runs_that_differ(monkeypatch, without):
    runs = iter([{"metrics.csv": b"1", "episodes.csv": b"1"}, {"metrics.csv": b"2", "episodes.csv": b"1"}])
    monkeypatch.setattr(doctor, "_short_run", lambda: next(runs))
    assert doctor.check_determinism() == Finding("wrong", "two equal runs differ in metrics.csv", "test the memory")
    without("safetensors")
    assert doctor.check_determinism().state == "skip"


def test_a_short_run_has_logs_and_weights_and_is_silent(capfd):
    found = doctor._short_run()
    assert {"episodes.csv", "metrics.csv"} < found.keys()
    assert any(name.endswith(".safetensors") for name in found)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("difference", "state"), [(0.0, "ok"), (1e-6, "ok"), (0.1, "wrong"), (float("nan"), "wrong"), (None, "skip")]
)
def test_graphs(difference, state, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: difference is not None)
    monkeypatch.setattr("gramian.deep.engines.compare", lambda _device: difference)
    assert doctor.check_graphs().state == state


@pytest.mark.slow
def test_a_base_install_is_told_what_each_extra_would_bring_and_nothing_is_wrong():
    probe = (
        f"import sys; sys.modules.update({{{LAB}, 'ray': None}})\n"
        "from gramian.cli import main; sys.exit(main(['doctor']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1", "COLUMNS": "80"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert "note   [lab]          not installed: pip install 'gramian[lab]'" in lines
    assert "note   [ray]          not installed: pip install 'gramian[ray]'" in lines
    assert "skip   determinism    not looked at: pip install 'gramian[lab]'" in lines
    assert all(len(text) <= 80 for text in lines)
