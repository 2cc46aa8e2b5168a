"""The command line: the only place where everything is wired.

A command is a function of one frozen dataclass. The dataclass, read by tyro, is its options; the function does the
work and returns the exit code. A command that must run where no extra is installed takes no options. Options are
imported when a command is named, its function when it runs: ``gramian --help`` needs no extra, and no help needs torch.

Exit codes: 0 done, 1 the work ran and something in it failed, 2 bad input, 130 interrupted.
"""

import contextlib
import inspect
import io
import os
import re
import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from itertools import zip_longest
from threading import current_thread, main_thread
from typing import Any

from gramian import __version__
from gramian.cli.spelling import spelled
from gramian.core.errors import UserError, WorkFailed, unknown

OLDEST = (3, 11)
"""Python of the commands, and of what the extra ``lab`` is for."""


@dataclass(frozen=True)
class Command:
    """Where a command lives, what it is for and which extra it needs."""

    summary: str
    function: str
    """``module:name`` of a function that takes one options dataclass, or nothing, and returns the exit code."""
    options: str = ""
    """``module:name`` of that dataclass; empty where the base install suffices, without anything to parse options."""
    late: tuple[str, ...] = ()
    """Modules that it imports when most of its work is done: that they are there is seen to first, unless its options
    say ``--no-figures``."""


_LINEAR, _DEEP = "gramian.linear", "gramian.cli.options"
COMMANDS: dict[str, Command] = {
    "regression": Command(
        "stochastic linear regression: the paper's pair and the controls",
        "gramian.cli.linear:regression_command",
        f"{_LINEAR}.regression:Regression",
    ),
    "td": Command(
        "TD(0) on random decision processes: every form and its controls",
        "gramian.cli.linear:td_command",
        f"{_LINEAR}.td:TD",
    ),
    "mountain-car": Command(
        "linear Q-learning on Mountain Car: sweep of step size and λ",
        "gramian.cli.linear:mountain_car_command",
        f"{_LINEAR}.mountain_car:MountainCar",
    ),
    "theory": Command(
        "the propositions, checked on random decision processes",
        "gramian.cli.linear:theory_command",
        f"{_LINEAR}.theory:Theory",
    ),
    "claims": Command(
        "judge the paper's claims by the tables in results/",
        "gramian.cli.claims:claims_command",
        f"{_DEEP}:ClaimsOptions",
    ),
    "train": Command(
        "train agents with a penalty on their features", "gramian.cli.train:train_command", f"{_DEEP}:TrainOptions"
    ),
    "evaluate": Command("let a trained run play", "gramian.cli.analyze:evaluate_command", f"{_DEEP}:EvaluateOptions"),
    "bench": Command(
        "measure how fast a population trains here", "gramian.cli.bench:bench_command", f"{_DEEP}:BenchOptions"
    ),
    "runs": Command("list the runs in a folder", "gramian.cli.study:runs_command", f"{_DEEP}:RunsOptions"),
    "analyze": Command(
        "measure and compare the features of trained runs",
        "gramian.cli.analyze:analyze_command",
        f"{_DEEP}:AnalyzeOptions",
        late=("matplotlib",),
    ),
    "study plan": Command(
        "pack a study's cells and show what they cost", "gramian.cli.study:plan_command", f"{_DEEP}:PlanOptions"
    ),
    "study run": Command("do what is not done of a study", "gramian.cli.study:run_command", f"{_DEEP}:RunOptions"),
    "study status": Command("show how a study stands", "gramian.cli.study:status_command", f"{_DEEP}:StatusOptions"),
    "study report": Command(
        "write a study's report", "gramian.cli.report:report_command", f"{_DEEP}:ReportOptions", late=("plotly",)
    ),
    "study import": Command(
        "take over the table of somebody else's runs", "gramian.cli.report:import_command", f"{_DEEP}:ImportOptions"
    ),
    "study export": Command(
        "write a study's tables as a small folder without weights",
        "gramian.cli.report:export_command",
        f"{_DEEP}:ExportOptions",
    ),
    "study merge": Command(
        "put the exported parts of a study into one folder",
        "gramian.cli.report:merge_command",
        f"{_DEEP}:MergeOptions",
    ),
    "study match": Command(
        "find the κ of equal feature norm", "gramian.cli.study:match_command", f"{_DEEP}:MatchOptions"
    ),
    "study choose": Command(
        "choose κ, and write the study that judges it", "gramian.cli.study:choose_command", f"{_DEEP}:ChooseOptions"
    ),
    "demo": Command(
        "see it work: three experiments and a page in a few minutes",
        "gramian.cli.demo:demo",
        f"{_DEEP}:DemoOptions",
        late=("matplotlib", "PIL", "plotly"),
    ),
    "doctor": Command("check this machine, and say what mends what is wrong", "gramian.doctor:doctor"),
    "completion": Command(
        "print what makes a shell complete commands and options",
        "gramian.cli.completion:completion_command",
        "gramian.cli.completion:CompletionOptions",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    if sys.version_info < OLDEST:  # the rest of the package, which needs torch and numpy alone, is content with 3.10
        oldest, own = (".".join(map(str, version[:2])) for version in (OLDEST, sys.version_info))
        print(f"gramian: commands need Python {oldest} or newer, and this is {own}", file=sys.stderr)
        return 2
    arguments = list(sys.argv[1:] if argv is None else argv)
    if os.environ.get("NO_COLOR"):
        os.environ.setdefault("PYTHON_TYRO_ANSI_CODES", "False")
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal that has no Greek gets question marks, not a traceback
        sys.stdout.reconfigure(errors="replace")
    interrupts: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    listens = current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listens:
        signal.signal(signal.SIGINT, interrupt)
    try:
        return _dispatch(arguments)
    except (UserError, WorkFailed) as error:
        print(f"gramian: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    except KeyboardInterrupt as error:
        print(f"gramian: {str(error) or 'interrupted'}", file=sys.stderr)
        return 130
    except RecursionError:
        print("gramian: a file is nested too deeply to be read; it is damaged", file=sys.stderr)
        return 2
    except MemoryError:
        print("gramian: not enough memory for these sizes; choose smaller ones", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output, `head` say, has gone
        sys.stderr.close()
        return 0
    except OSError as error:  # a full disk, say: what is on it is whole
        if error.errno is None:
            raise
        where = f"'{error.filename}': " if error.filename else ""
        print(f"gramian: {where}{os.strerror(error.errno).lower()}", file=sys.stderr)
        return 1
    except Exception:
        if not interrupts:
            raise
        print(
            "gramian: interrupted", file=sys.stderr
        )  # LLVM swallows Ctrl-C in its callbacks, and numba stumbles later
        return 130
    finally:
        if listens:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _dispatch(arguments: list[str]) -> int:
    if odd := [argument for argument in arguments if "\0" in argument]:
        raise UserError(f"{odd[0]!r} holds a NUL, which no path and no name can have; remove it")
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_usage())
        return 0
    if arguments[0] in ("-V", "--version", "version"):
        print(f"gramian {__version__}")
        return 0
    name, *rest = arguments
    group = [known for known in COMMANDS if known.startswith(f"{name} ")]
    if group:
        if not rest or rest[0] in ("-h", "--help", "help"):
            print(_usage(group))
            return 0
        name, *rest = f"{name} {rest[0]}", *rest[1:]
    if name not in COMMANDS:
        choices = {known.partition(" ")[0] for known in COMMANDS}
        if name.startswith("study "):
            _check_study_command(name.removeprefix("study "), group)
        raise unknown("command", name, group or choices)
    if not COMMANDS[name].options:
        return _run_bare(name, rest)
    with _naming_what_is_missing(name):
        options = parse(name, rest)
        for module in COMMANDS[name].late if getattr(options, "figures", True) else ():
            if find_spec(module) is None:
                raise ModuleNotFoundError(name=module)
        run: Callable[[Any], int] = load(COMMANDS[name].function)
        return run(options)


def _check_study_command(word: str, commands: Sequence[str]) -> None:
    """Say what is right where a study is named in the place of a command, or something that is neither."""
    if word.endswith(".toml") or (files("gramian") / "studies" / f"{word}.toml").is_file():
        raise unknown("command", f"study {word}", commands, near=f"study run {word}")
    if not get_close_matches(word, [command.removeprefix("study ") for command in commands]):
        raise UserError(f"there is no command and no study {word!r}; 'gramian study' shows the commands")


def _usage(names: Sequence[str] = ()) -> str:
    lines = [
        "usage: gramian COMMAND [OPTIONS]",
        "",
        "Decorrelated features in reinforcement learning, through the Gram matrix.",
        "",
    ]
    if COMMANDS:
        shown = names or list(COMMANDS)
        width = max(map(len, shown))
        lines += ["commands:", *(f"  {name:<{width}}  {COMMANDS[name].summary}" for name in shown), ""]
    lines += [
        "options:",
        "  -h, --help     show this text; 'gramian COMMAND --help' shows its options",
        "  -V, --version  show the version",
    ]
    return "\n".join(lines)


@contextlib.contextmanager
def _naming_what_is_missing(name: str) -> Iterator[None]:
    """Say how to get a package that a command cannot import, whether at once or in the middle of its work."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "gramian"):
            raise
        raise UserError(
            f"'{name}' needs the package '{missing}', which is not installed; "
            f"it comes with: pip install 'gramian[{missing if missing == 'ray' else 'lab'}]'"
        ) from error


def load(place: str) -> Any:
    """What is at ``module:name``."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def _run_bare(name: str, arguments: list[str]) -> int:
    """Run a command that takes no options."""
    function: Callable[[], int] = load(COMMANDS[name].function)
    if arguments and arguments[0] in ("-h", "--help"):
        print(f"usage: gramian {name}\n\n{_wrapped(inspect.getdoc(function))}")
        raise SystemExit(0)
    if arguments:
        raise UserError(f"'{name}' takes no options; omit {' '.join(arguments)}")
    return function()


def parse(name: str, given: Sequence[str]) -> Any:
    """The options of the command ``name`` from its arguments; ``--help`` is printed, and ends the process."""
    import tyro
    from tyro import _errors

    for option, value in zip_longest(given, given[1:]):
        # An empty path would silently be the folder one stands in.
        if (option == "--out" and value == "") or option == "--out=":
            raise UserError("--out is empty; name a folder, or '.' for this one")
    prog, options = f"gramian {name}", load(COMMANDS[name].options)
    arguments = spelled(options, given)
    # Options whose defaults depend on other options (a preset) say so themselves.
    default = options.defaults(arguments) if hasattr(options, "defaults") else None

    def refuse(event: _errors.ParseErrorEvent) -> None:
        """Make one line of what tyro refuses; what is not named here it prints itself, and exits with code 2 too."""
        match event:
            case _errors.UnrecognizedArgs(tokens=tokens):
                shown = io.StringIO()
                with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
                    tyro.cli(options, args=["--help"], default=default)
                known = re.findall(r"--[\w.-]+", shown.getvalue())
                nearest = get_close_matches(tokens[0], known, n=1, cutoff=0.7)
                advice = f"; did you mean {nearest[0]}?" if nearest else ""
                raise UserError(f"Unrecognized options: {', '.join(tokens)}{advice}")
            case _errors.MissingArgs(missing_arguments=missing):
                raise UserError(f"Missing from {prog}: {', '.join(_usage_of(found.arg) for found in missing)}")
            case _errors.InstantiationFailure(message=problem, argument=argument) if argument is not None:
                raise UserError(
                    f"cannot read {argument.lowered.name_or_flags[-1]}: {problem}; expected {_usage_of(argument)}"
                )
            case _errors.InvalidChoice(value=value, argument=argument):
                raise UserError(f"{value!r} is not a choice; expected {_usage_of(argument)}")
            case _errors.BadValue(argument=argument):
                raise UserError(f"a value is missing; expected {_usage_of(argument)}")

    if {"-h", "--help"} & set(arguments):  # tyro would not wrap it
        print(_wrapped(inspect.getdoc(options)) + "\n")
    registry = tyro.constructors.ConstructorRegistry()
    number = tyro.constructors.PrimitiveConstructorSpec(
        1, "INT", lambda words: whole_number(words[0]), lambda value: isinstance(value, int), lambda value: [str(value)]
    )
    registry.primitive_rule(lambda kind: number if kind.type is int else None)
    with _errors.on_parse_error(refuse):
        return tyro.cli(options, args=arguments, prog=prog, description="", default=default, registry=registry)


def whole_number(text: str) -> int:
    """Read a whole number, which may be written in thousands (k) or millions (M) or with an exponent.

    Examples
    --------
    >>> whole_number("300_000"), whole_number("20M"), whole_number("2.5k"), whole_number("1e6")
    (300000, 20000000, 2500, 1000000)
    """
    try:
        return int(text)
    except ValueError:
        factor = {"k": 1_000, "K": 1_000, "M": 1_000_000}.get(text[-1:], 1)
        try:
            value = Decimal(text.removesuffix(text[-1]) if factor > 1 else text) * factor
        except ArithmeticError:
            value = Decimal("NaN")
        if not value.is_finite() or value != value.to_integral_value() or abs(value) >= 2**63:
            raise ValueError(f"{text!r} is not a whole number") from None
        return int(value)


def _usage_of(argument: Any) -> str:
    """``--option VALUE`` of one of tyro's arguments, or its name alone where it has no option."""
    option = argument.lowered.name_or_flags[-1]
    return f"{option} {argument.lowered.metavar}" if option.startswith("-") else argument.lowered.metavar


def _wrapped(text: str | None) -> str:
    """Paragraphs at the width of the terminal."""
    width = shutil.get_terminal_size().columns
    return "\n\n".join(textwrap.fill(paragraph, width) for paragraph in (text or "").split("\n\n"))
