"""What was run and with what: settings, versions and machines of a study, as pairs of words."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gramian.study.store import Study

_KINDS = ("atari", "minatar", "cartpole")


def settings_table(study: Study) -> list[tuple[str, str]]:
    """Every setting with its value, or its values and the number of runs of each where runs differ.

    Settings of emulators that no run of the study uses are left out.

    Examples
    --------
    >>> import polars as pl
    >>> runs = pl.DataFrame({"run": ["a", "b"], "game": ["pong", "pong"]})
    >>> settings = {"a": {"gamma": 0.99, "n_step": 1}, "b": {"gamma": 0.99, "n_step": 3}}
    >>> settings_table(Study(runs, pl.DataFrame(), pl.DataFrame(), settings))
    [('gamma', '0.99'), ('n_step', '1 (1 run), 3 (1 run)')]
    """
    kinds = {_kind(game) for game in study.runs["game"].to_list()}
    counts: dict[str, Counter[str]] = {}
    for settings in study.settings.values():
        for name, value in _flat(settings):
            parts = name.split(".")
            if parts[0] == "environment" and len(parts) > 1 and parts[1] in _KINDS and parts[1] not in kinds:
                continue
            counts.setdefault(name, Counter())[_text(value)] += 1
    return [(name, _counted(values)) for name, values in counts.items()]


def provenance_table(study: Study) -> list[tuple[str, str]]:
    """Versions, commits, hardware and dates of every process that worked on the study."""
    counts: dict[str, Counter[str]] = {}
    started: list[str] = []

    def count(name: str, value: object) -> None:
        if value not in (None, "", []):
            counts.setdefault(name, Counter())[_text(value)] += 1

    for records in study.provenance.values():
        for record in records if isinstance(records, list) else []:
            for name, value in record.get("versions", {}).items():
                count(name, value)
            git = record.get("git") or {}
            count("commit", git.get("commit", "") + (" with changes" if git.get("diff_sha256") else ""))
            for name in ("device", "machine", "system", "cores"):
                count(name, record.get("hardware", {}).get(name))
            count("imported from", record.get("imported_from"))
            count("SHA-256 of the import", record.get("sha256"))
            started += [str(record["started"])] if "started" in record else []
    # a run cannot be repeated without its commit: none is left out
    table = [(name, _counted(values, most=len(values) if name == "commit" else 5)) for name, values in counts.items()]
    if started:
        table.append(("processes started", f"{min(started)} to {max(started)}"))
    return table


def commands(study: Study) -> list[tuple[str, int]]:
    """Every command that worked on the study, as it can be typed again, and on how many runs; most runs first.

    Examples
    --------
    >>> import polars as pl
    >>> own = [{"command": ["__main__.py", "study", "run", "my study.toml"]}]
    >>> empty = pl.DataFrame()
    >>> commands(Study(empty, empty, empty, provenance={"a": own, "b": own * 2}))
    [("gramian study run 'my study.toml'", 2)]
    """
    counts: Counter[str] = Counter()
    for records in study.provenance.values():
        own = records if isinstance(records, list) else []
        noted = [record.get("command") for record in own if isinstance(record, dict)]
        counts.update(list(dict.fromkeys(_command(words) for words in noted if isinstance(words, list) and words)))
    return counts.most_common()


def _command(words: Sequence[object]) -> str:
    """A command for a shell; ``python -m gramian`` has once been noted by the name of its file."""
    program, *options = map(str, words)
    return shlex.join(["gramian" if program == "__main__.py" else program, *options])


def _kind(game: str) -> str:
    return "minatar" if game.startswith("minatar/") else "cartpole" if game == "cartpole" else "atari"


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _counted(values: Counter[str], most: int = 12) -> str:
    if len(values) == 1:
        return next(iter(values))
    shown = [f"{value} ({count} run{'' if count == 1 else 's'})" for value, count in values.most_common(most)]
    return ", ".join(shown) + ("" if len(values) <= most else f" and {len(values) - most} more")
