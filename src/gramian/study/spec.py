"""What a study is: a TOML file with games, arms, seeds and a preset.

| key | meaning |
| --- | --- |
| ``title`` | a line for tables and reports |
| ``preset`` | a shipped preset, or the path of your own ``.toml``, seen from the study's file |
| ``frames`` | emulator frames of a run; the preset's if omitted |
| ``games``, ``seeds`` | lists; every game is played with every arm from every seed |
| ``[[arms]]`` | ``kind``, ``kappa`` or ``kappas`` (the preset's if omitted), ``centered`` (one value or a list) |
| ... | or a combination in ``kind`` alone, as ``"gram:0.08+norm:0.2"`` |
| ... | ``label``: what tables call the arm, as ``"norm (matched)"``; ``games``: those that it plays, if not all |
| ... | ``learning_rates``: an arm for each; ``settings``: a table of its own, as ``layer_norm = true`` |
| ``[settings]`` | other values of the preset to override, named as in a preset |
| ``[evaluation]`` | ``games`` and ``seeds`` that are kept for evaluation: none of them may occur in the study |
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from gramian.core.arms import Arm, arm_label, kind_of, parse_arm
from gramian.core.errors import UserError, unknown
from gramian.core.games import find_game
from gramian.core.typed import from_table
from gramian.deep.training.config import RunSpec, Settings, load_preset, settings_from

_STUDIES = files("gramian") / "studies"
_COMMON = {"frames", "agent", "environment", "kappa", "learning_rate"}
_ELSEWHERE = "an arm's κ and learning rates are kappas and learning_rates beside its kind"


@dataclass(frozen=True)
class Evaluation:
    """Games and seeds that what is chosen in a study will be judged on, and that the study must not touch."""

    games: tuple[str, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class _ArmTable:
    """A table of ``[[arms]]``."""

    kind: str
    kappa: float | None = None
    kappas: tuple[float, ...] = ()
    centered: bool | tuple[bool, ...] | None = None
    label: str = ""
    games: tuple[str, ...] = ()
    learning_rates: tuple[float, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _StudyTable:
    """The file of a study."""

    preset: str
    games: tuple[str, ...]
    seeds: tuple[int, ...]
    arms: tuple[_ArmTable, ...]
    title: str = ""
    frames: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    evaluation: Evaluation | None = None


@dataclass(frozen=True)
class StudyArm:
    """An arm of a study with its label and its games; arms of different games may share a label."""

    arm: Arm
    label: str
    """Empty where the arm is called what it is."""
    games: tuple[str, ...]
    learning_rate: float | None = None
    """Where it differs from the study's."""
    variant: str = ""
    """Names its settings in `StudySpec.variants`; empty where they are the study's."""


@dataclass(frozen=True)
class StudySpec:
    """A study, read and checked."""

    title: str
    preset: str
    games: tuple[str, ...]
    """As `gramian.core.games` names them."""
    entries: tuple[StudyArm, ...]
    seeds: tuple[int, ...]
    settings: Settings = field(repr=False)
    """The preset's with everything that the study overrides."""
    evaluation: Evaluation | None = None
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings of arms that have some of their own, by the name that their runs carry."""

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Every arm, once."""
        return tuple(dict.fromkeys(entry.arm for entry in self.entries))

    @property
    def cells(self) -> tuple[RunSpec, ...]:
        """Games × arms × seeds, in this order."""
        return tuple(
            RunSpec(
                find_game(game),
                entry.arm,
                seed,
                entry.learning_rate,
                entry.label,
                entry.variant,
                agent=self.settings.agent,
            )
            for game in self.games
            for entry in self.entries
            if game in entry.games
            for seed in self.seeds
        )

    def part(self, games: Sequence[str], seeds: Sequence[int]) -> "StudySpec":
        """These games and seeds of the study alone, in its own order; all of them where none are named."""
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
    """The options that take this part of a study; none for all of it."""
    games = ("--games", *part.games) if part.games != whole.games else ()
    seeds = ("--seeds", *map(str, part.seeds)) if part.seeds != whole.seeds else ()
    return " ".join(games + seeds)


def study_names() -> list[str]:
    """The studies that the package ships."""
    return sorted(entry.name.removesuffix(".toml") for entry in _STUDIES.iterdir() if entry.name.endswith(".toml"))


def read_study_text(name: str) -> tuple[str, Path]:
    """The text of a study, shipped or of your own (``.toml``), and the folder that its own preset is seen from."""
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
    """A shipped study by its name, or one of your own by the path of its TOML file."""
    text, base = read_study_text(name)
    return parse_study(text, f"study '{name}'", base)


def parse_study(text: str, where: str, base: Path | None = None) -> StudySpec:
    """Read a study from TOML; ``where`` names it in complaints, ``base`` is the folder that its preset is seen from."""
    try:
        table = from_table(_StudyTable, tomllib.loads(text), where)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{where} is not valid TOML: {error}") from error
    preset = table.preset
    own = preset.endswith(".toml") and not Path(preset).is_absolute()
    settings = load_preset(str((base or Path()) / preset) if own else preset)
    overrides = table.settings
    if table.frames is not None:
        if "frames" in overrides:
            raise UserError(f"frames stands twice in {where}, at the top and in [settings]; keep one")
        overrides = {"frames": table.frames, **overrides}
    settings = settings_from(overrides, f"settings of {where}", settings)

    games, seeds = _games(table.games, where), _seeds(table.seeds, where)
    arms = tuple(arm for entry in table.arms for arm in _study_arms(entry, settings.kappa, games, where))
    for game in games:
        playing = [arm for arm in arms if game in arm.games]
        names = [arm_label(vars(arm) | {"label": ""}) for arm in playing]
        _once(names, "arm", where)
        _once([arm.label or name for arm, name in zip(playing, names, strict=True)], "label", where)
        if not playing:
            raise UserError(f"game {game!r} in {where} has no arm; take it out, or add it to the games of an arm")
    kept = table.evaluation
    if kept is not None:
        kept = Evaluation(_games(kept.games, where), _seeds(kept.seeds, where))
        for what, both in (("game", set(games) & set(kept.games)), ("seed", set(seeds) & set(kept.seeds))):
            if both:
                raise UserError(
                    f"{what} {min(both)!r} is kept for evaluation and stands in {where}; take it out of one"
                )
    variants = {_variant(entry.settings): entry.settings for entry in table.arms if entry.settings}
    for name, changed in variants.items():
        if fixed := sorted(changed.keys() & _COMMON):
            raise UserError(f"{fixed[0]} in settings of an arm of {where} must be the same for all arms; {_ELSEWHERE}")
        settings_from(changed, f"settings {name!r} of an arm of {where}", settings)
    return StudySpec(table.title or preset, preset, games, arms, seeds, settings, kept, variants)


def _study_arms(entry: _ArmTable, default_kappa: float, games: tuple[str, ...], where: str) -> list[StudyArm]:
    """The arms that one ``[[arms]]`` table stands for, its κs × its centrings, with their label and their games."""
    of_arm = f"of arm {entry.kind!r} in {where}"
    if entry.kappa is not None and entry.kappas:
        raise UserError(f"arm {entry.kind!r} in {where} has both kappa and kappas; keep one")
    arm = parse_arm(entry.kind, default_kappa)
    if arm.terms and (entry.kappa is not None or entry.kappas or entry.centered is not None):
        raise UserError(f"arm {entry.kind!r} in {where} is a combination; write its κs and centring in its kind")
    kappas = entry.kappas or (arm.kappa if entry.kappa is None else entry.kappa,)
    given = arm.centered if entry.centered is None else entry.centered
    centrings = given if isinstance(given, tuple) else (given,)
    if entry.centered is not None and not arm.centered:
        raise UserError(f"arm {entry.kind!r} has no centring; omit 'centered' in {where}")
    arms = [replace(arm, kappa=kappa, centered=centered) for centered in centrings for kappa in kappas]
    rates = entry.learning_rates or (None,)
    if entry.label and len(arms) * len(rates) > 1:
        stands = f"stands for {len(arms) * len(rates)} arms"
        one = "learning rate" if len(rates) > 1 else "kappa"
        raise UserError(f"label {of_arm} is {entry.label!r} and {stands}; give it one {one}")
    if entry.label and kind_of(entry.label) != arm.kind:
        raise UserError(f"label {of_arm} is {entry.label!r}; it must begin with {arm.kind!r}, as '{arm.kind} (mine)'")
    only = _games(entry.games, f"arm {entry.kind!r} of {where}") or games
    if strange := [game for game in only if game not in games]:
        raise unknown(f"game {of_arm}:", strange[0], games)
    variant = _variant(entry.settings)
    return [StudyArm(arm, entry.label, only, rate, variant) for arm in arms for rate in rates]


def _variant(settings: Mapping[str, Any]) -> str:
    """Settings of an arm as the names of its runs have them.

    Examples
    --------
    >>> _variant({"layer_norm": True, "weight_decay": 0.01, "network": "mlp"})
    'layer-norm-weight-decay0.01-network-mlp'
    """
    words = []
    for name, value in settings.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(option if value else f"no-{option}")
        else:
            words.append(f"{option}-{value}" if isinstance(value, str) else f"{option}{value!r}")
    return "-".join(words)


def _games(names: Sequence[str], where: str) -> tuple[str, ...]:
    games = tuple(find_game(name).name for name in names)
    _once(games, "game", where)
    return games


def _seeds(seeds: tuple[int, ...], where: str) -> tuple[int, ...]:
    for seed in seeds:
        if not 0 <= seed < 2**63:
            raise UserError(f"a seed in {where} is {seed}; it must be a whole number from 0 to 2^63 - 1")
    _once(seeds, "seed", where)
    return seeds


def _once(names: Sequence[object], what: str, where: str) -> None:
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise UserError(f"{what} {twice[0]!r} stands twice in {where}; name it once")
