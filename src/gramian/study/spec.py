"""What a study is: a TOML file with games, arms, seeds and a preset.

| key | meaning |
| --- | --- |
| ``title`` | a line for tables and reports |
| ``preset`` | a shipped preset, or the path of your own ``.toml``, seen from the study's file |
| ``frames`` | emulator frames of a run; the preset's where it is left away |
| ``games``, ``seeds`` | lists; every game is played with every arm from every seed |
| ``[[arms]]`` | ``kind``, ``kappa`` or ``kappas`` (the preset's where left away), ``centered`` (one value or a list) |
| ... | ``label``: what tables call the arm, as ``"norm (matched)"``; ``games``: those that it plays, if not all |
| ``[settings]`` | other values of the preset to override, named as in a preset |
| ``[evaluation]`` | ``games`` and ``seeds`` that are kept for evaluation: none of them may occur in the study |
"""

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from gramian.core.arms import Arm, kind_of, parse_arm
from gramian.core.errors import UserError, unknown
from gramian.core.games import find_game
from gramian.deep.training.config import RunSpec, Settings, load_preset, settings_from

_STUDIES = files("gramian") / "studies"
_ARM_KEYS = ("kind", "kappa", "kappas", "centered", "label", "games")
_KEYS = ("title", "preset", "frames", "games", "seeds", "arms", "settings", "evaluation")


@dataclass(frozen=True)
class Evaluation:
    """Games and seeds that what is chosen in a study will be judged on, and that the study must not touch."""

    games: tuple[str, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class StudyArm:
    """An arm of a study, what it is called, and the games that it plays.

    With a κ of its own for each game, the arms ``gram:0.1`` of one and ``gram:0.3`` of another are the same arm
    ``gram`` to whoever compares it with ``dqn``: they have the same label.
    """

    arm: Arm
    label: str
    """Empty where the arm is called what it is."""
    games: tuple[str, ...]


@dataclass(frozen=True)
class StudySpec:
    """A study, read and checked.

    Examples
    --------
    >>> spec = parse_study('''
    ... title = "one game"
    ... preset = "smoke"
    ... games = ["minatar/breakout"]
    ... seeds = [0, 1]
    ... [[arms]]
    ... kind = "dqn"
    ... [[arms]]
    ... kind = "gram"
    ... kappas = [0.1, 1]
    ... ''', "an example")
    >>> [str(arm) for arm in spec.arms], len(spec.cells)
    (['dqn', 'gram:0.1', 'gram:1.0'], 6)
    """

    title: str
    preset: str
    games: tuple[str, ...]
    """As `gramian.core.games` names them."""
    entries: tuple[StudyArm, ...]
    seeds: tuple[int, ...]
    settings: Settings = field(repr=False)
    """The preset's with everything that the study overrides."""
    evaluation: Evaluation | None = None

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Every arm, once."""
        return tuple(dict.fromkeys(entry.arm for entry in self.entries))

    @property
    def cells(self) -> tuple[RunSpec, ...]:
        """Games × arms × seeds, in this order."""
        return tuple(
            RunSpec(find_game(game), entry.arm, seed, label=entry.label)
            for game in self.games
            for entry in self.entries
            if game in entry.games
            for seed in self.seeds
        )

    def part(self, games: Sequence[str], seeds: Sequence[int]) -> "StudySpec":
        """These games and seeds of the study alone, in its own order; all of them where none are named.

        Raises
        ------
        UserError
            If the study does not have one of them.

        Examples
        --------
        >>> paper = load_study("paper")
        >>> [cell.name for cell in paper.part(["Pong"], [2]).cells]
        ['pong-dqn-s2', 'pong-decor-k10.24-s2', 'pong-gram-k10.24-s2']
        """
        wanted = [find_game(game).name for game in games]
        if strange := [game for game in wanted if game not in self.games]:
            raise unknown("game of the study:", strange[0], self.games)
        if strange_seeds := [seed for seed in seeds if seed not in self.seeds]:
            own = ", ".join(map(str, self.seeds))
            raise UserError(f"the study has no seed {strange_seeds[0]}; it must be one of {own}")
        kept = tuple(game for game in self.games if game in wanted) or self.games
        return replace(
            self,
            games=kept,
            seeds=tuple(seed for seed in self.seeds if seed in seeds) or self.seeds,
            entries=tuple(entry for entry in self.entries if set(entry.games) & set(kept)),
        )


def part_options(part: StudySpec, whole: StudySpec) -> str:
    """The options that take this part of a study; none for all of it.

    Examples
    --------
    >>> paper = load_study("paper")
    >>> part_options(paper.part(["Pong"], [2, 0]), paper), part_options(paper, paper)
    ('--games pong --seeds 0 2', '')
    """
    games = ("--games", *part.games) if part.games != whole.games else ()
    seeds = ("--seeds", *map(str, part.seeds)) if part.seeds != whole.seeds else ()
    return " ".join(games + seeds)


def study_names() -> list[str]:
    """The studies that the package ships.

    Examples
    --------
    >>> study_names()[:3]
    ['atari-evidence', 'atari-kappa', 'atari-norm']
    """
    return sorted(entry.name.removesuffix(".toml") for entry in _STUDIES.iterdir() if entry.name.endswith(".toml"))


def read_study_text(name: str) -> tuple[str, Path]:
    """The text of a study, and the folder that its own preset's path is seen from.

    Parameters
    ----------
    name
        Name of a shipped study, or the path of a TOML file.

    Raises
    ------
    UserError
        If there is none.
    """
    if not name.endswith(".toml"):
        if name not in study_names():
            raise unknown("study", name, study_names())
        return (_STUDIES / f"{name}.toml").read_text(encoding="utf-8"), Path()
    try:
        return Path(name).read_text(encoding="utf-8"), Path(name).parent
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not a text" if isinstance(error, UnicodeDecodeError) else (error.strerror or str(error)).lower()
        stem = Path(name).stem
        advice = f"; the study that the package ships is called {stem!r}" if stem in study_names() else ""
        raise UserError(f"cannot read study '{name}': {why}{advice}") from error


def load_study(name: str) -> StudySpec:
    """A shipped study by its name, or one of your own by the path of its TOML file.

    Raises
    ------
    UserError
        If there is none, or if it holds an unknown or ill-typed value.

    Examples
    --------
    >>> len(load_study("paper").cells)
    441
    """
    text, base = read_study_text(name)
    return parse_study(text, f"study '{name}'", base)


def parse_study(text: str, where: str, base: Path | None = None) -> StudySpec:
    """Read a study.

    Parameters
    ----------
    text
        TOML.
    where
        What to call it in complaints.
    base
        The folder that the path of its own preset is seen from.

    Raises
    ------
    UserError
        For whatever is not right in it, in one line.
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{where} is not valid TOML: {error}") from error
    _known(values, _KEYS, where)
    preset = _text(_needed(values, "preset", where), f"preset in {where}")
    own = preset.endswith(".toml") and not Path(preset).is_absolute()
    settings = load_preset(str((base or Path()) / preset) if own else preset)
    overrides = _table(values.get("settings", {}), f"settings in {where}")
    if "frames" in values:
        if "frames" in overrides:
            raise UserError(f"frames stands twice in {where}, at the top and in [settings]; keep one")
        overrides = {"frames": values["frames"], **overrides}
    settings = settings_from(overrides, f"settings of {where}", settings)

    games = _games(values, where)
    seeds = _seeds(values, where)
    entries = _list(_needed(values, "arms", where), f"arms in {where}", "a list of tables: write [[arms]]")
    arms = tuple(arm for entry in entries for arm in _study_arms(entry, settings.kappa, games, where))
    for game in games:
        own = [arm for arm in arms if game in arm.games]
        _once([str(arm.arm) for arm in own], "arm", where)
        _once([arm.label or str(arm.arm) for arm in own], "label", where)
        if not own:
            raise UserError(f"game {game!r} in {where} has no arm; take it out, or add it to the games of an arm")
    return StudySpec(
        title=_text(values.get("title", preset), f"title in {where}"),
        preset=preset,
        games=games,
        entries=arms,
        seeds=seeds,
        settings=settings,
        evaluation=_evaluation(values.get("evaluation"), games, seeds, where),
    )


def _study_arms(entry: Any, default_kappa: float, games: tuple[str, ...], where: str) -> list[StudyArm]:
    """The arms that one ``[[arms]]`` table stands for, with their label and their games."""
    arms = _arms(entry, default_kappa, where)
    of_arm = f"of arm {entry['kind']!r} in {where}"
    label = ""
    if "label" in entry:
        label = _text(entry["label"], f"label {of_arm}")
        if len(arms) > 1:
            raise UserError(f"label {of_arm} is {label!r} and stands for {len(arms)} arms; give it one kappa")
        if kind_of(label) != arms[0].kind:
            raise UserError(
                f"label {of_arm} is {label!r}; it must begin with {arms[0].kind!r}, as '{arms[0].kind} (mine)'"
            )
    only = games
    if "games" in entry:
        only = _games(entry, f"arm {entry['kind']!r} of {where}")
        if strange := [game for game in only if game not in games]:
            raise unknown(f"game {of_arm}:", strange[0], games)
    return [StudyArm(arm, label, only) for arm in arms]


def _arms(entry: Any, default_kappa: float, where: str) -> list[Arm]:
    """The arms that one ``[[arms]]`` table stands for: its κs × its centrings."""
    table = _table(entry, f"arms in {where}")
    _known(table, _ARM_KEYS, f"arms of {where}")
    kind = _text(_needed(table, "kind", f"arms of {where}"), f"kind in arms of {where}")
    if "kappa" in table and "kappas" in table:
        raise UserError(f"arm {kind!r} in {where} has both kappa and kappas; keep one")
    arm = parse_arm(kind, default_kappa)
    of_arm = f"of arm {kind!r} in {where}"
    kappas = [arm.kappa]
    if "kappa" in table:
        kappas = [_number(table["kappa"], f"kappa {of_arm}")]
    elif "kappas" in table:
        kappas = [
            _number(kappa, f"a kappa {of_arm}")
            for kappa in _list(table["kappas"], f"kappas {of_arm}", "a list of numbers")
        ]
    centrings = [arm.centered]
    if "centered" in table:
        if not arm.centered:
            raise UserError(f"arm {kind!r} has no centring; leave 'centered' away in {where}")
        given = table["centered"]
        centrings = list(given) if isinstance(given, list) and given else [given]
        if not all(isinstance(centered, bool) for centered in centrings):
            raise UserError(f"centered {of_arm} is {given!r}; it must be true, false or a list of them")
    return [replace(arm, kappa=kappa, centered=centered) for centered in centrings for kappa in kappas]


def _games(values: Mapping[str, Any], where: str) -> tuple[str, ...]:
    given = _list(_needed(values, "games", where), f"games in {where}", "a list of names")
    games = tuple(find_game(_text(game, f"a game in {where}")).name for game in given)
    _once(games, "game", where)
    return games


def _seeds(values: Mapping[str, Any], where: str) -> tuple[int, ...]:
    given = _list(_needed(values, "seeds", where), f"seeds in {where}", "a list of whole numbers")
    for seed in given:
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise UserError(f"a seed in {where} is {seed!r}; it must be a whole number, 0 or more")
    _once(given, "seed", where)
    return tuple(given)


def _evaluation(given: Any, games: Collection[str], seeds: Collection[int], where: str) -> Evaluation | None:
    if given is None:
        return None
    of = f"evaluation of {where}"
    table = _table(given, of)
    _known(table, [entry.name for entry in fields(Evaluation)], of)
    kept = Evaluation(_games(table, of), _seeds(table, of))
    for what, both in (("game", set(games) & set(kept.games)), ("seed", set(seeds) & set(kept.seeds))):
        if both:
            raise UserError(f"{what} {min(both)!r} is kept for evaluation and stands in {where}; take it out of one")
    return kept


def _known(table: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    for key in table:
        if key not in names:
            raise unknown(f"key in {where}:", key, names)


def _needed(table: Mapping[str, Any], key: str, where: str) -> Any:
    if key not in table:
        raise UserError(f"{key} is missing in {where}")
    return table[key]


def _once(names: Sequence[object], what: str, where: str) -> None:
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise UserError(f"{what} {twice[0]!r} stands twice in {where}; name it once")


def _checked(holds: Callable[[Any], bool], right: str) -> Callable[[Any, str], Any]:
    def check(value: Any, where: str) -> Any:
        if not holds(value):
            raise UserError(f"{where} is {value!r}; it must be {right}")
        return value

    return check


_text = _checked(lambda value: isinstance(value, str) and value != "", "a text")
_table = _checked(lambda value: isinstance(value, dict), "a table")


def _number(value: Any, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise UserError(f"{where} is {value!r}; it must be a number")
    return float(value)


def _list(value: Any, where: str, right: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise UserError(f"{where} is {value!r}; it must be {right}, at least one")
    return value
