import errno
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace

import pytest

from gramian import __version__, cli
from gramian.cli import COMMANDS, Command, main
from gramian.core.errors import UserError
from gramian.core.statistics import REPLICATES
from gramian.deep.runs import evaluation
from gramian.representation import gather


def in_a_process(*arguments, **variables):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)


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
    assert in_a_process("-c", probe).stdout.splitlines()[-1] == "[]"


def test_an_older_python_gets_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 10, 14))
    assert main(["train"]) == 2
    assert capsys.readouterr().err == "gramian: commands need Python 3.11 or newer, and this is 3.10\n"


def test_python_dash_m_gramian_is_the_command():
    assert in_a_process("-m", "gramian", "--version").stdout == f"gramian {__version__}\n"


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.options])
def test_a_command_without_arguments_gets_its_defaults_or_one_line_on_what_is_required(name):
    try:
        assert isinstance(cli.parse(name, []), cli.load(COMMANDS[name].options))
    except UserError as error:
        lacking = str(error)
    else:
        return
    assert lacking.startswith(f"Missing from gramian {name}: ")
    assert "\n" not in lacking


def test_every_command_shows_its_options_within_the_width_of_the_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    for name in COMMANDS:
        with pytest.raises(SystemExit) as leaving:
            main([*name.split(), "--help"])
        assert leaving.value.code == 0
        shown = capsys.readouterr().out
        assert f"usage: gramian {name}" in shown
        assert all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("dmo", "unknown command 'dmo'; did you mean 'demo'?"),
        ("regression --seeds 1", "Unrecognized options: --seeds, 1; did you mean --seed?"),
        ("regression --zzz", "Unrecognized options: --zzz"),
        ("regression --steps x", "cannot read --steps: 'x' is not a whole number; expected --steps INT"),
        ("regression --steps 1.5", "cannot read --steps: '1.5' is not a whole number; expected --steps INT"),
        ("regression --steps", "a value is missing; expected --steps INT"),
        ("regression --steps 0", "steps is 0; it must be at least 1"),
        ("train --execution x", "'x' is not a choice; expected --execution {eager,graphed,compiled,auto}"),
        ("runs", "Missing from gramian runs: FOLDER"),
        ("analyze", "Missing from gramian analyze: --out PATH"),
        ("regression --out ''", "--out is empty; name a folder, or '.' for this one"),
        ("mountain-car --out=", "--out is empty; name a folder, or '.' for this one"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(arguments, complaint, capsys):
    assert main([word.strip("'") for word in arguments.split()]) == 2
    assert capsys.readouterr() == ("", f"gramian: {complaint}\n")


def test_large_numbers_may_be_written_short():
    options = cli.parse("train", ["--frames", "20M", "--seeds", "1e3", "7"])
    assert (options.settings.frames, options.seeds) == (20_000_000, (1000, 7))


@pytest.mark.parametrize(
    ("command", "given", "games", "arms"),
    [
        ("train", "--games pong breakout --arms dqn gram", ("pong", "breakout"), ("dqn", "gram")),
        ("train", "--game pong --arm dqn --game=breakout --arm gram", ("pong", "breakout"), ("dqn", "gram")),
        ("train", "pong breakout --seeds 1 2 --arm dqn gram", ("pong", "breakout"), ("dqn", "gram")),
        ("bench", "--runs 2 pong --tf32 True --arm gram", ("pong",), ("gram",)),
        ("bench", "--games pong --arm=dqn --arm=gram", ("pong",), ("dqn", "gram")),
    ],
)
def test_games_and_arms_are_spelled_the_same_everywhere(command, given, games, arms):
    options = cli.parse(command, given.split())
    assert (options.games, options.arms) == (games, arms)


@pytest.mark.parametrize("command", ["study plan", "study run"])
@pytest.mark.parametrize("given", ["--games pong breakout", "--game pong --game breakout"])
def test_a_study_spells_games_as_training_does(command, given):
    assert cli.parse(command, f"paper {given} --out x".split()).games == ("pong", "breakout")


@pytest.mark.parametrize(
    ("given", "expected"),
    [("--tf32", True), ("--no-tf32", False), ("--tf32 True", True), ("--tf32 False", False), ("--tf32 None", True)],
)
def test_a_flag_may_be_spelled_with_its_value(given, expected):
    assert cli.parse("bench", ["pong", *given.split()]).tf32 is expected


def test_defaults_that_commands_share_with_each_other_or_with_functions_are_the_same():
    everything = {name: cli.load(command.options) for name, command in COMMANDS.items() if command.options}
    with_device = [kind for kind in everything.values() if "device" in kind.__dataclass_fields__]
    assert len(with_device) == 6
    assert {kind.__dataclass_fields__["device"].default for kind in with_device} == {"auto"}
    own = {name: everything[name].__dataclass_fields__["at_once"].default for name in ("evaluate", "analyze")}
    assert own == {"evaluate": evaluation.AT_ONCE, "analyze": gather.AT_ONCE}
    assert everything["study report"].__dataclass_fields__["replicates"].default == REPLICATES


def test_options_are_read_without_what_takes_long_to_import():
    probe = (
        "import sys; from gramian.cli import COMMANDS, load; [load(c.options) for c in COMMANDS.values() if c.options];"
        "print(sorted({'torch', 'matplotlib', 'scipy.stats', 'polars', 'plotly'} & set(sys.modules)))"
    )
    assert in_a_process("-c", probe).stdout == "[]\n"


@pytest.fixture(scope="module")
def bash_completion():
    return in_a_process("-m", "gramian", "completion", "bash").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "replies"),
    [
        ("gramian st", "study"),
        ("gramian study re", "report"),
        ("gramian train --lear", "--learning-rate"),
        ("gramian train --execution gr", "graphed"),
        ("gramian study run smoke --with", "--within-min"),
    ],
)
def test_bash_completes_commands_and_options(bash_completion, words, replies):
    script = f"{bash_completion}\nCOMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _tyro_gramian\n"
    completed = subprocess.run(
        ["bash", "--norc"], input=script + 'echo "${COMPREPLY[*]}"', capture_output=True, text=True
    )
    assert (completed.stdout, completed.stderr) == (f"{replies}\n", "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_offered_every_command(shell, capsys):
    assert main(["completion", shell]) == 0
    shown = capsys.readouterr().out
    assert all(name.split()[-1] in shown for name in COMMANDS)


def test_a_missing_extra_is_named_with_its_pip_command(monkeypatch, capsys):
    monkeypatch.setitem(COMMANDS, "far", Command("needs what is not there", "gramian.far:far", "gramian.far:Far"))
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
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "gramian.deep.envs.gym", raising=False)
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
    own = {"function": "tests.test_cli:never", "options": "tests.test_cli:NoOptions"}
    monkeypatch.setitem(COMMANDS, name, replace(COMMANDS[name], **own))
    for package in COMMANDS[name].late:
        with monkeypatch.context() as without:
            without.setitem(sys.modules, package, None)
            assert main(name.split()) == 2
        assert f"'{name}' needs the package '{package}', which is not installed" in capsys.readouterr().err


@pytest.mark.parametrize("swallowed", [False, True])
def test_interruption_exits_130_even_where_a_library_makes_another_error_of_it(swallowed, monkeypatch, capsys):
    def work(_):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            if not swallowed:
                raise
        raise RuntimeError("no compiled object yet")

    monkeypatch.setattr(cli, "_dispatch", work)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "gramian: interrupted\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ("error", "code", "said"), [(MemoryError, 1, "not enough memory"), (RecursionError, 2, "nested too deeply")]
)
def test_what_is_too_large_gets_one_line(error, code, said, monkeypatch, capsys):
    monkeypatch.setattr(cli, "_dispatch", lambda _: (_ for _ in ()).throw(error))
    assert main(["regression"]) == code
    assert said in capsys.readouterr().err


def test_a_nul_in_an_argument_gets_one_line(capsys):
    assert main(["runs", "a\0b"]) == 2
    assert capsys.readouterr().err == "gramian: 'a\\x00b' holds a NUL, which no path and no name can have; remove it\n"


def test_a_disk_that_is_full_in_the_middle_of_the_work_gets_one_line_and_exit_code_1(monkeypatch, tmp_path, capsys):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "cell.npz"))

    monkeypatch.setattr(cli, "_dispatch", full)
    assert main(["regression"]) == 1
    assert capsys.readouterr().err == f"gramian: '{tmp_path / 'cell.npz'}': no space left on device\n"
