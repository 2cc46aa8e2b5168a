import errno
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import get_type_hints

import pytest

from gramian import __version__, cli
from gramian.cli import COMMANDS, Command, main
from gramian.core.errors import UserError


def test_version_and_help_exit_0_and_name_every_command(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"gramian {__version__}\n"
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)


def test_version_and_help_need_neither_torch_nor_any_extra():
    probe = (
        "import sys; from gramian.cli import main; main(['--version']); main(['--help']); "
        "print(sorted({'torch', 'tyro', 'rich', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_python_dash_m_gramian_is_the_command():
    done = subprocess.run([sys.executable, "-m", "gramian", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"gramian {__version__}\n"


WITH_OPTIONS = [name for name, command in COMMANDS.items() if command.extra]


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_a_command_without_arguments_gets_its_defaults_or_one_line_on_what_is_required(name):
    function = cli._load(COMMANDS[name])
    try:
        options = cli._parse(function, [], prog=f"gramian {name}")
    except UserError as error:
        lacking = str(error)
    else:
        (kind,) = (hint for at, hint in get_type_hints(function).items() if at != "return")
        assert isinstance(options, kind)
        return
    assert lacking.startswith(f"Missing from gramian {name}: ")
    assert "\n" not in lacking


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["claims", "--help"], "usage: gramian claims"), (["runs"], "gramian: Missing from gramian runs: FOLDER")],
)
def test_a_command_works_in_a_process_of_its_own(arguments, said, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "gramian", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert "Traceback" not in done.stderr
    assert said in done.stdout + done.stderr


def test_every_command_shows_its_options(capsys):
    for name in COMMANDS:
        with pytest.raises(SystemExit) as leaving:
            main([*name.split(), "--help"])
        assert leaving.value.code == 0
        assert f"usage: gramian {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["dmo"], "gramian: unknown command 'dmo'; did you mean 'demo'?\n"),
        (["regression", "--seeds", "1"], "gramian: Unrecognized options: --seeds, 1; did you mean --seed?\n"),
        (
            ["regression", "--steps", "x"],
            "gramian: Error parsing --steps: invalid literal for int() with base 10: 'x'; expected --steps INT\n",
        ),
        (["regression", "--steps", "0"], "gramian: steps is 0; it must be at least 1\n"),
        (["regression", "--out", ""], "gramian: --out is empty; name a folder, or '.' for this one\n"),
        (["mountain-car", "--out="], "gramian: --out is empty; name a folder, or '.' for this one\n"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(arguments, complaint, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err == complaint
    assert captured.out == ""


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_one_line_does_not_depend_on_what_the_terminal_can_draw(encoding):
    done = subprocess.run(
        [sys.executable, "-m", "gramian", "regression", "--seeds", "1"],
        capture_output=True,
        text=True,
        env={"PYTHONIOENCODING": encoding, "PYTHONPATH": ":".join(sys.path), "COLUMNS": "40"},
    )
    assert done.returncode == 2
    assert done.stderr == "gramian: Unrecognized options: --seeds, 1; did you mean --seed?\n"


def test_a_missing_extra_is_named_with_its_pip_command(monkeypatch, capsys):
    monkeypatch.setitem(COMMANDS, "far", Command("needs what is not there", "gramian.far:far", extra="ray"))
    monkeypatch.setattr(cli, "import_module", _without("ray"))
    assert main(["far"]) == 2
    assert capsys.readouterr().err == (
        "gramian: 'far' needs the package 'ray', which is not installed; it comes with: pip install 'gramian[ray]'\n"
    )


def _without(package):
    def import_module(name):
        if name == "tyro":
            return
        raise ModuleNotFoundError(name=f"{package}.sub")

    return import_module


def test_an_extra_that_is_missed_in_the_middle_of_the_work_is_named_too(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "gymnasium.envs.classic_control.cartpole", None)
    monkeypatch.delitem(sys.modules, "gramian.deep.envs.cartpole", raising=False)
    assert main(["train", "--game", "cartpole", "--arm", "gram", "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err.endswith(
        "gramian: 'train' needs the package 'gymnasium', which is not installed; "
        "it comes with: pip install 'gramian[lab]'\n"
    )
    assert not (tmp_path / "run").exists()


@dataclass(frozen=True)
class NoOptions:
    """Of a command that must not run."""


def never(options: NoOptions) -> int:
    """What must not run."""
    raise AssertionError(options)


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.late])
def test_a_package_that_is_needed_late_is_missed_before_the_work(name, monkeypatch, capsys):
    monkeypatch.setitem(COMMANDS, name, replace(COMMANDS[name], function="tests.test_cli:never"))
    for package in COMMANDS[name].late:
        with monkeypatch.context() as without:
            without.setitem(sys.modules, package, None)
            assert main(name.split()) == 2
        assert f"'{name}' needs the package '{package}', which is not installed" in capsys.readouterr().err


def test_the_help_of_a_command_is_not_indented(capsys):
    with pytest.raises(SystemExit):
        main(["demo", "--help"])
    assert "\nWrites index.html into --out." in capsys.readouterr().out


def test_interruption_exits_130(monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_dispatch", interrupted)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "gramian: interrupted\n"


def test_a_disk_that_is_full_in_the_middle_of_the_work_gets_one_line_and_exit_code_1(monkeypatch, tmp_path, capsys):
    pytest.importorskip("numba")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "cell.npz"))

    monkeypatch.setattr("numpy.savez", full)
    assert main(["regression", "--quick", "--runs", "1", "--steps", "10", "--out", str(tmp_path / "out")]) == 1
    (*_, line) = capsys.readouterr().err.strip().splitlines()
    assert line == f"gramian: '{tmp_path / 'cell.npz'}': no space left on device"
