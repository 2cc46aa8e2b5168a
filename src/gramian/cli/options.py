"""The options of the commands on games, studies and reports: their one vocabulary.

Each class, read by tyro, is a command's options; its docstring is what ``--help`` begins with. This module imports
neither torch nor a learner, so that help and bad input are answered at once.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Self

import tyro

from gramian.core.arms import PLAIN
from gramian.core.errors import UserError
from gramian.core.games import Kind, find_game
from gramian.deep.choices import Execution
from gramian.deep.envs.options import EnvironmentOptions
from gramian.deep.training.boards import BoardName
from gramian.deep.training.config import Settings, load_preset, settings_from

PRESET_FOR: dict[Kind, str] = {"atari": "author", "minatar": "minatar", "cartpole": "cartpole", "gym": "gym"}
"""The preset for each kind of game where none is named."""

WITH_RESUME = (
    "--resume", "--device", "--replay-device", "--log", "--tensorboard", "--execution", "--torch-threads", "--help",
)  # fmt: skip
"""Options that have a meaning for a population that was begun."""

SHORTEST_STALL_MIN = 1.0
"""Starting and compiling take some time too."""


def _preset_settings(arguments: Sequence[str]) -> tuple[str, Settings, str | None]:
    """The preset that ``arguments`` name or whose games they name, its settings, and the folder to resume, if any."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    first.add_argument("--games", nargs="*")
    for option in ("--preset", "--resume", "--agent"):
        first.add_argument(option)
    try:
        chosen, _ = first.parse_known_args(arguments)
    except argparse.ArgumentError:  # a missing value, of which tyro complains
        return "", Settings(), None
    default = PRESET_FOR[find_game(chosen.games[0]).kind] if chosen.games else "author"
    preset = default if chosen.preset is None else chosen.preset
    named = {} if chosen.agent is None else {"agent": chosen.agent}
    return preset, settings_from(named, "--agent", load_preset(preset)), chosen.resume


@dataclass(frozen=True)
class TrainOptions:
    """Train a population of runs: games × arms × seeds.

    Every value of the preset can be overridden; the defaults shown are the preset's.
    """

    games: Annotated[tuple[str, ...], tyro.conf.arg(metavar="GAME [GAME …]")] = ()
    """The paper's or ALE's names (seaquest, SpaceInvaders), minatar/breakout, cartpole, or gym:ID for any environment
    of Gymnasium with vectors (or images as Atari's) to see and discrete actions, as gym:LunarLander-v3."""
    arms: Annotated[tuple[str, ...], tyro.conf.arg(metavar="ARM [ARM …]")] = ()
    """KIND[:KAPPA][:uncentered] with KIND none (or dqn), decor, gram, gram-unbiased, norm, cross, l2, dr3, isotropy,
    correlation, gram-permuted, vicreg or sigreg; several joined by +, as gram:0.08+norm:0.2."""
    seeds: Annotated[tuple[int, ...], tyro.conf.arg(metavar="SEED [SEED …]")] = (0,)
    """One run for each. Games × arms × seeds make one population."""
    preset: str = ""
    """author, nature, dopamine, minatar, cartpole, gym, smoke, tiny, dopamine-c51, dopamine-qr, dopamine-iqn,
    dopamine-rainbow, full-rainbow, minatar-qr, minatar-rainbow, or your own .toml; the default goes with the game."""
    out: Path | None = None
    """Folder of the population; each run gets its own below it."""
    resume: Path | None = None
    """Go on with the population in this folder, the one that was given as --out; takes no other settings."""
    device: str = "auto"
    """cpu, cuda or auto."""
    replay_device: str = "auto"
    """Where the replay lies: cpu, cuda, or auto for the learner's device if it fits there."""
    checkpoint_replay: bool = True
    """Save the replay with the checkpoints, so that a resumed run is the one that was never interrupted."""
    log: tuple[BoardName, ...] = ()
    """Where live curves go too, offline and without an account: tensorboard, wandb, trackio (extras of these names)."""
    tensorboard: bool = False
    """The same as --log tensorboard."""
    execution: Execution | Literal["auto"] = "auto"
    """How the work reaches a GPU: eager, graphed (as CUDA graphs) or compiled (and graphed); auto is compiled."""
    torch_threads: int = 1
    """Threads of torch on the CPU: more than one starve the emulators."""
    settings: Annotated[Settings, tyro.conf.arg(name="")] = field(default_factory=Settings)

    @classmethod
    def defaults(cls, arguments: Sequence[str]) -> Self:
        """The options of the preset that ``arguments`` name, for the command line to override."""
        preset, settings, resume = _preset_settings(arguments)
        if resume is not None:
            for option in (argument.partition("=")[0] for argument in arguments if argument.startswith("--")):
                if option not in WITH_RESUME:
                    raise UserError(f"--resume goes on with what was begun; omit {option}")
        return cls(preset=preset, settings=settings)


@dataclass(frozen=True)
class BenchOptions:
    """Measure how fast a population trains here, and where the time of a step goes."""

    games: Annotated[tuple[str, ...], tyro.conf.arg(metavar="GAME [GAME …]")] = ("seaquest",)
    """As for 'gramian train'."""
    arms: Annotated[tuple[str, ...], tyro.conf.arg(metavar="ARM [ARM …]")] = (PLAIN,)
    """As for 'gramian train'."""
    runs: int = 1
    """Seeds of each game with each arm: the population has games × arms × runs."""
    agent: str = ""
    """As for 'gramian train'; the default is the preset's."""
    preset: str = ""
    """The default goes with the game."""
    envs_per_run: int = 1
    """Environments of each run."""
    replay_capacity: int = 10_000
    """Transitions kept for each run."""
    seconds: float = 10.0
    """Of each measurement."""
    device: str = "auto"
    """cpu, cuda or auto."""
    replay_device: str = "auto"
    """As for 'gramian train': cpu, cuda, or auto for the learner's device if it fits there."""
    execution: Execution | Literal["auto"] = "auto"
    """How the work reaches a GPU; auto is compiled."""
    tf32: bool = False
    """Let a GPU round products to TF32; the default is the preset's."""
    sequential: bool = False
    """Let the actors wait for the learner; the default is the preset's."""
    torch_threads: int = 1
    """Threads of torch on the CPU."""
    cores: int = 0
    """Cores for Atari's emulators, a process each; 0 takes all. With 1 a single game beside a GPU is played in the
    process that learns."""
    patience_us: int | None = None
    """Microseconds that processes spin before they sleep, when they wait for each other; by default as in training."""
    check: bool = False
    """Measure nothing: show that compiled and graphed updates of the agent, or of each agent, give the weights of eager
    ones. Needs CUDA."""

    @classmethod
    def defaults(cls, arguments: Sequence[str]) -> Self:
        """The options of the preset that ``arguments`` name, for the command line to override."""
        named = arguments if "--games" in arguments else ["--games", *cls().games, *arguments]
        preset, settings, _ = _preset_settings(named)
        return cls(preset=preset, tf32=settings.tf32, sequential=settings.sequential)


@dataclass(frozen=True)
class EvaluateOptions:
    """Let a trained run play whole games; show its raw returns and write them to evaluation.csv.

    The games are those of the training, with its settings, unless they are overridden.
    """

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Folder of the run: OUT/<run>."""
    more: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="[RUN …]")] = ()
    """Further runs to compare, with --modes."""
    episodes: int = 30
    """Whole games to play."""
    epsilon: float = 0.01
    """Share of random actions."""
    seed: int = 0
    """Another seed gives other games."""
    modes: str = ""
    """Play other modes and difficulties of an Atari game, without training in them: all, or MODE:DIFFICULTY,…"""
    record: Path | None = None
    """Make a video of the first game: a path that ends in .mp4 or .gif."""
    out: Path | None = None
    """Folder for evaluation.csv; the run's where none is named."""
    at_once: int = 16
    """Games that are played side by side."""
    device: str = "auto"
    """cpu, cuda or auto."""
    environment: Annotated[EnvironmentOptions, tyro.conf.arg(name="")] = field(default_factory=EnvironmentOptions)

    @classmethod
    def defaults(cls, arguments: Sequence[str]) -> Self:
        """The options with the settings of the run that ``arguments`` name, for the command line to override."""
        for before, argument in zip(["", *arguments], arguments, strict=False):
            if before not in ("--out", "--record") and (Path(argument) / "config.toml").is_file():
                from gramian.deep.runs.load import read_run

                return cls(tyro.MISSING, environment=read_run(Path(argument)).settings.environment)
        return cls(tyro.MISSING)


@dataclass(frozen=True)
class AnalyzeOptions:
    """Let trained runs play, and compare what their features look like: tables, figures and a summary."""

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN [RUN …]")]
    """Folders of the runs: OUT/<run>, or the folder of a whole study; or what was written of other runs before."""
    out: Path
    """Folder for tables, figures and summary.md."""
    states: int = 1_000_000
    """States of each run."""
    epsilon: float = 0.01
    """Share of random actions."""
    seed: int = 0
    """Another seed gives other games."""
    at_once: int = 64
    """Games that are played side by side."""
    device: str = "auto"
    """cpu, cuda or auto."""
    figures: bool = True
    """Draw figures, which needs matplotlib; 'gramian study report' draws them from the tables too."""


@dataclass(frozen=True)
class RunsOptions:
    """List the runs below a folder: how far they are, and the mean raw return of their last 100 games."""

    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
    """Every run below it is shown, also of exported studies."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where a study is trained, and how its cells are packed."""

    study: tyro.conf.Positional[str]
    """paper, controls, kappa, minatar, demo, smoke or another that the package ships, or your own .toml."""
    games: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="GAME [GAME …]")] = None
    """Only these of its games, for a study that is run in parts. Decided when the study is planned."""
    seeds: Annotated[tuple[int, ...] | None, tyro.conf.arg(metavar="SEED [SEED …]")] = None
    """Only these of its seeds. Decided when the study is planned."""
    executor: Literal["local", "ray"] = "local"
    """Processes of this machine, or a Ray cluster (extra 'ray')."""
    ray_address: str = ""
    """host:port of a Ray cluster; if omitted, one that runs here is taken, or else one is started."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """What the learners run on; decided when the study is planned."""
    workers: int = 0
    """Populations that are trained at the same time; 0 takes one for each GPU or core, as far as memory goes."""
    population: int = 0
    """Most runs of a population; 0 takes what fits into the memory. Decided when the study is planned."""
    torch_threads: int = 0
    """Threads of torch for each population on the CPU, 1 where it is 0. Decided when the study is planned."""
    checkpoint_replay: bool = True
    """Save the replay, so that a resumed run is the one that was never interrupted. Decided with the plan."""
    rate: float = 0.0
    """Agent steps a second of a population, for the cost; 0 measures it."""
    measure_s: float = 3.0
    """Seconds to measure the rate of each kind of population."""
    stall_min: float = 30.0
    """Minutes without a step after which a process that trains is taken for hung, and killed; 0 for never."""

    def __post_init__(self) -> None:
        for name in ("games", "seeds"):
            if getattr(self, name) == ():
                raise UserError(f"--{name} is empty; name some of the study's {name}, or omit it for all")
        for name in ("workers", "population", "torch_threads", "rate", "stall_min"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UserError(
                    f"--{name.replace('_', '-')} is {getattr(self, name)}; it must be 0 or more, and finite"
                )
        if 0 < self.stall_min < SHORTEST_STALL_MIN:
            raise UserError(
                f"--stall-min is {self.stall_min}; it must be {SHORTEST_STALL_MIN:g} or more, or 0 for never"
            )
        if not 0 < self.measure_s < math.inf:
            raise UserError(f"--measure-s is {self.measure_s}; it must be more than 0, and finite")
        if self.ray_address and self.executor != "ray":
            raise UserError("--ray-address is for --executor ray; add it, or omit the address")


@dataclass(frozen=True, kw_only=True)
class PlanOptions(Placement):
    """Show what a study costs and how its cells are packed; write the plan where --out is given."""

    out: Path | None = None
    """Folder to write the plan to; if omitted, it is only shown."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(Placement):
    """Do what is not done of a study: games × arms × seeds."""

    out: Path
    """Folder of the study, on a path that all nodes see; where there is one already, the run goes on with it."""
    retries: int = 2
    """How often a population that failed, hung or was killed is taken up again."""
    within_min: float = 0.0
    """Minutes after which all that is being trained is saved, and the study ends. Where not all can be finished by
    then, at the rate of the last two minutes, some of it is stopped before, so that the rest is. 0 for no such end."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("retries", "within_min"):
            if not getattr(self, name) >= 0:
                raise UserError(f"--{name.replace('_', '-')} is {getattr(self, name)}; it must be 0 or more")


@dataclass(frozen=True, kw_only=True)
class StatusOptions:
    """Show how a study stands, or the parts of one in the folders below."""

    folder: tyro.conf.Positional[Path]
    """The one that was given as --out, or one with the parts of a study in it."""
    once: bool = False
    """Show it once, as text, and end; so it is where the output is no terminal."""


@dataclass(frozen=True, kw_only=True)
class MatchOptions:
    """Show at which κ each penalty leaves features of the same mean norm as an arm does.

    The norm is the mean ‖φ‖ over the last quarter of training, a geometric mean over games and seeds; then in every
    game by itself. Between two κ of the grid it is interpolated, linearly in log κ and log norm.
    """

    folder: tyro.conf.Positional[Path]
    """A study with a grid of κ for each penalty, or the folder above the parts of one."""
    arm: str
    """KIND[:KAPPA][:uncentered], one of the study's arms."""


@dataclass(frozen=True, kw_only=True)
class ChooseOptions:
    """Choose the κ of every penalty, and write the study that judges the choice on the games kept for it."""

    folders: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="FOLDER [FOLDER …]")]
    """Studies with a grid of κ for each penalty and games in [evaluation]; of one in parts, the folder above them."""
    out: Path
    """File to write the study to: .toml."""
    title: str = ""
    """Of the study."""
    frames: int = 0
    """Of a run; those of the tuning studies where it is 0."""
    matched: str = "norm"
    """Penalty that is also judged at the κ of gram's mean feature norm; none where empty."""
    decor: bool = True
    """Add decor, which is the same number as gram, at its κ."""
    also: Annotated[tuple[str, ...], tyro.conf.arg(metavar="ARM [ARM …]")] = ()
    """Further arms for all games: KIND[:KAPPA][:uncentered]."""

    def __post_init__(self) -> None:
        if not self.folders:
            raise UserError("no study to choose from; name at least one folder")
        if self.out.suffix != ".toml":
            raise UserError(f"--out is '{self.out}'; it must be the name of a .toml file")
        if self.frames < 0:
            raise UserError(f"--frames is {self.frames}; it must be 0 or more")


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Write the report of a study: a page, figures and tables."""

    folder: tyro.conf.Positional[Path]
    """Of a study, a population, a run, an import or an export."""
    out: Path
    """Folder for index.html, figures, scores.csv, features.csv, table.md and table.tex."""
    human: Literal["atari-57", "nature"] = "atari-57"
    """Table of human and random scores that Atari scores are normalised with."""
    baseline: str = PLAIN
    """Arm that the others are compared with."""
    control: str = ""
    """Arm that they are compared with besides, in a section of its own; 'norm (matched)', where the study has it."""
    replicates: int = 2_000
    """Bootstrap replicates."""
    seed: int = 0
    """Of the bootstrap."""
    title: str = ""
    """Of the page; the study's own if omitted."""
    analysis: Path | None = None
    """What 'gramian analyze' has written of these runs; FOLDER/analysis, where there is one, unless it is given."""
    frames: int = 0
    """Look at the first so many frames of every run; a run that has come so far counts as done. 0 for all of them."""
    small: bool = False
    """A page without scripts, its figures as pictures in it: a fraction of the size, and nothing to explore."""


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Import a tidy table of somebody else, so that it can be reported like a study."""

    table: tyro.conf.Positional[Path]
    """CSV file with the columns arm, game, seed, frames, return."""
    out: Path
    """Folder to write it to; 'gramian study report' reads it from there."""
    rows: Literal["episodes", "points"] = "episodes"
    """A row is a training episode, of which a score takes the last 100, or a point of a curve, a mean already."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Write what a report reads of a study, its tables and its analysis, as a small folder without weights."""

    folder: tyro.conf.Positional[Path]
    """Of a study, of its parts, of a population or of a run."""
    out: Path
    """Folder to write to, new or empty; 'gramian study report' reads it from there."""


@dataclass(frozen=True, kw_only=True)
class MergeOptions:
    """Put the exported parts of a study into one folder; of a run made twice the one that is done is kept."""

    parts: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="PART [PART …]")]
    """Folders of the parts of one study, or exports of them."""
    out: Path
    """Folder to write to, new or empty; 'gramian study status' says what is missing in it."""


@dataclass(frozen=True)
class ClaimsOptions:
    """Judge every claim of the paper by the tables and write the page and its details."""

    results: Path = Path("results")
    """Folder of the tables."""
    out: Path = Path("docs/claims.md")
    """The page; its details stand beside it, in claims-details.md."""


@dataclass(frozen=True)
class DemoOptions:
    """See it work: regression, Mountain Car and DQN with and without the Gram penalty, in a few minutes on two cores.

    Writes index.html into --out. Interrupted, it goes on where it stopped when it is called again.
    """

    out: Path = Path("demo")
    """Folder for index.html and everything it is made from; what is done there already is not done again."""
