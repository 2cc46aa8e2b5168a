"""``gramian completion``."""

import io
import re
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any, Literal, Union

import tyro

from gramian import cli

Shell = Literal["bash", "zsh", "fish"]


@dataclass(frozen=True)
class CompletionOptions:
    """Print what makes a shell complete the commands of gramian and their options.

    bash: put source <(gramian completion bash) into ~/.bashrc.

    zsh: gramian completion zsh > a folder of $fpath, as _gramian.

    fish: gramian completion fish > ~/.config/fish/completions/gramian.fish.
    """

    shell: tyro.conf.Positional[Shell]
    """bash, zsh or fish."""


def completion_command(options: CompletionOptions) -> int:
    """See `CompletionOptions`."""
    script = io.StringIO()
    with redirect_stdout(script), suppress(SystemExit):
        tyro.cli(_whole(), prog="gramian", args=["--tyro-print-completion", options.shell])
    # a line break in the description of an option would be offered as a word
    print(re.sub(r"^COMPLETION_SPEC = .*$", _on_one_line, script.getvalue(), flags=re.MULTILINE), end="")
    return 0


def _whole() -> Any:
    """All commands as one type that tyro knows: the words of a command are subcommands within each other."""
    groups: dict[str, dict[str, Any]] = {}
    for name, command in cli.COMMANDS.items():
        kind = cli.load(command.options) if command.options else make_dataclass(name, [])
        group, _, word = name.rpartition(" ")
        groups.setdefault(group, {})[word] = Annotated[
            kind, tyro.conf.subcommand(word, description=command.summary, prefix_name=False)
        ]
    top = groups.pop("")
    for group, commands in groups.items():
        inner = make_dataclass(group, [("command", Annotated[_any(commands), tyro.conf.arg(name="")])])
        top[group] = Annotated[inner, tyro.conf.subcommand(group, prefix_name=False)]
    return _any(top)


def _on_one_line(descriptions: re.Match[str]) -> str:
    return descriptions.group().replace(r"\n", " ")


def _any(kinds: Mapping[str, Any]) -> Any:
    return Union[tuple(kinds.values())]  # noqa: UP007  the members are known only now
