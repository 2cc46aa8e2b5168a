"""Training with everything around it: folders, logs, checkpoints, resume, interruption."""

import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import torch

from gramian.core.errors import UserError, WorkFailed
from gramian.core.files import locked, output_folder, replace_text
from gramian.core.games import find_game
from gramian.deep.agent.arms import parse_arm
from gramian.deep.agent.networks import NetworkSpec, parameter_shapes
from gramian.deep.engines.graphs import Execution, nothing, pick_execution
from gramian.deep.engines.rounding import caution
from gramian.deep.replay.device import bytes_needed
from gramian.deep.training.checkpoint import KEPT, Checkpoint, Checkpoints
from gramian.deep.training.config import Config, RunSpec, Settings, settings_from
from gramian.deep.training.display import Display
from gramian.deep.training.heldout import HeldOut
from gramian.deep.training.logs import RunLog, State, add_provenance, provenance, write_config, write_status
from gramian.deep.training.memory import available_bytes, memory_bill
from gramian.deep.training.schedules import crossed
from gramian.deep.training.tensorboard import TensorBoard
from gramian.deep.training.trainer import Episode, Trainer, make_environments, network_spec

FORMAT = 1
POPULATION = "population.json"
DTYPES = {"float32": torch.float32, "float64": torch.float64}
STATUS_INTERVAL_S = 5.0
"""Seconds between two looks that others can take at a run: its logs so far and its status."""
LOCK = "lock"
"""Held by the process at work on a population."""
LEARNER_COPIES = 7
"""Online, target and acting weights, Adam's two moments, a gradient and a temporary of the optimiser."""
REPLAY_SHARE = 0.9
"""Largest share of a GPU's free memory that a replay may take; the learner needs some too."""


def train(
    config: Config,
    out: Path | str,
    *,
    device: str = "auto",
    replay_device: str = "auto",
    checkpoint_replay: bool = True,
    tensorboard: bool = False,
    threads: int = 0,
    dtype: torch.dtype = torch.float32,
    execution: Execution | Literal["auto"] = "auto",
    command: Sequence[str] | None = None,
    alive: Callable[[], object] = nothing,
) -> Path:
    """Train a population in a new folder.

    Parameters
    ----------
    config
        What to train.
    out
        Folder of the population; each run gets its own below it.
    device
        ``cpu``, ``cuda`` or ``auto``.
    replay_device
        Where the replay lies; ``auto`` is the learner's device.
    checkpoint_replay
        Save the replay with the checkpoints. Without it a resume begins with an empty replay, so that the run is no
        longer the one that was never interrupted.
    tensorboard
        Write TensorBoard's files too.
    threads
        Processes that play Atari; 0 takes one for each core. With 1 the process that learns may play itself; see
        `gramian.deep.training.trainer.plays_itself`.
    dtype
        Of the networks.
    execution
        How the work of a step reaches a GPU; see `gramian.deep.engines.graphs`.
    command
        What was called, for ``provenance.json``; the command of this process where it is left away.
    alive
        Called after every step, and at every file of a checkpoint: a sign of life, for whoever watches over the
        process.

    Returns
    -------
    Path
        ``out``.

    Raises
    ------
    UserError
        If ``out`` holds a population already or cannot be written, or if the memory does not suffice.
    WorkFailed
        If the disk fails. What was saved stays. (A run that diverges is an outcome: its status says so.)
    KeyboardInterrupt
        On Ctrl-C or SIGTERM, after a checkpoint has been saved.

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import replace
    >>> from gramian import deep
    >>> settings = replace(deep.load_preset("tiny"), frames=200)
    >>> runs = deep.population(["cartpole"], [deep.Arm("dqn"), deep.Arm("gram", 0.01)], seeds=[0])
    >>> out = train(deep.Config("tiny", settings, runs), tempfile.mkdtemp())
    >>> sorted(path.parent.name for path in out.glob("*/episodes.csv"))
    ['cartpole-dqn-s0', 'cartpole-gram-k0.01-s0']
    """
    folder = Path(out)
    if (folder / POPULATION).exists():
        raise UserError(
            f"'{folder}' holds a population already; go on with --resume '{folder}', or name another folder"
        )
    session = _Session(
        config, folder, device, replay_device, checkpoint_replay, tensorboard, threads, dtype, execution, command, alive
    )
    output_folder(folder)
    with locked(folder / LOCK):
        replace_text(folder / POPULATION, json.dumps(_population(config, checkpoint_replay, dtype), indent=1) + "\n")
        session.run(None)
    return folder


def resume(
    out: Path | str,
    *,
    device: str = "auto",
    replay_device: str = "auto",
    tensorboard: bool = False,
    threads: int = 0,
    execution: Execution | Literal["auto"] = "auto",
    command: Sequence[str] | None = None,
    alive: Callable[[], object] = nothing,
) -> Path:
    """Go on with the population in folder ``out`` from its newest whole checkpoint, or from its beginning.

    Raises
    ------
    UserError
        If there is no population in ``out``.

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import replace
    >>> from gramian import deep
    >>> settings = replace(deep.load_preset("tiny"), frames=200)
    >>> runs = deep.population(["cartpole"], [deep.Arm("dqn")], seeds=[0])
    >>> out = deep.train(deep.Config("tiny", settings, runs), tempfile.mkdtemp())
    >>> resume(out) == out  # nothing is left to do
    True
    """
    folder = Path(out)
    config, checkpoint_replay, dtype = read_population(folder)
    session = _Session(
        config, folder, device, replay_device, checkpoint_replay, tensorboard, threads, dtype, execution, command, alive
    )
    with locked(folder / LOCK):
        session.run(session.checkpoints.load(report=lambda line: print(f"gramian: {line}", file=sys.stderr)))
    return folder


def read_population(folder: Path) -> tuple[Config, bool, torch.dtype]:
    """The population that was begun in ``folder``, whether its replay is saved, and its precision.

    Raises
    ------
    UserError
        If there is none, or if it cannot be read.
    """
    path = folder / POPULATION
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        if saved["format"] != FORMAT:
            raise UserError(f"'{path}' has format {saved['format']}, not {FORMAT}; use the version that wrote it")
        settings = settings_from(saved["settings"], f"'{path}'")
        runs = tuple(run_from(run, settings) for run in saved["runs"])
        return Config(saved["preset"], settings, runs), saved["checkpoint_replay"], DTYPES[saved["dtype"]]
    except OSError as error:
        raise UserError(f"'{folder}' holds no population; --resume takes the folder that was given as --out") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"'{path}' is damaged ({error!r}); remove '{folder}' to train it anew") from error


def run_from(saved: Mapping[str, Any], settings: Settings) -> RunSpec:
    """A run as `population.json` and ``config.toml`` describe it."""
    arm = parse_arm(saved["arm"], settings.kappa)
    return RunSpec(find_game(saved["game"]), arm, saved["seed"], saved.get("learning_rate"), saved.get("label", ""))


def pick_device(name: str) -> torch.device:
    """A device by its name; ``auto`` is CUDA where there is one.

    Raises
    ------
    UserError
        If there is no such device.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f"unknown device {name!r}; choose cpu, cuda or auto") from error
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"device {name!r} is not supported; choose cpu, cuda or auto")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"device {name!r} is not there: torch {torch.__version__} sees no CUDA; choose cpu or auto")
    return device


def learner_bytes(network: NetworkSpec, runs: int, dtype: torch.dtype) -> int:
    """What the learner of a population needs, the replay apart.

    Examples
    --------
    >>> learner_bytes(NetworkSpec("mlp", (4,), actions=2, features_dim=64), 1, torch.float32)
    129080
    """
    parameters = sum(math.prod(shape) for shape in parameter_shapes(network).values())
    return LEARNER_COPIES * runs * parameters * dtype.itemsize


def place_replay(name: str, device: torch.device, size: int) -> torch.device:
    """Where a replay of ``size`` bytes lies; ``auto`` is the learner's device where it fits, and the host otherwise.

    Raises
    ------
    UserError
        If there is no such device, or if the learner cannot have its replay there.

    Examples
    --------
    >>> place_replay("auto", torch.device("cpu"), 10**9)
    device(type='cpu')
    """
    if name != "auto":
        place = pick_device(name)
        if device.type == "cpu" and place.type != "cpu":
            raise UserError("a learner on the CPU has its replay there too; leave --replay-device away")
        return place
    fits = device.type == "cpu" or size <= REPLAY_SHARE * available_bytes(device)
    return device if fits else torch.device("cpu")


class _Session:
    """One process at work on a population."""

    def __init__(
        self,
        config: Config,
        folder: Path,
        device: str,
        replay_device: str,
        checkpoint_replay: bool,
        tensorboard: bool,
        threads: int,
        dtype: torch.dtype,
        execution: Execution | Literal["auto"],
        command: Sequence[str] | None,
        alive: Callable[[], object],
    ) -> None:
        self.config, self.folder, self.command, self.alive = config, folder, command, alive
        self.device = pick_device(device)
        pick_execution(execution, self.device)
        self.checkpoint_replay, self.tensorboard, self.dtype = checkpoint_replay, tensorboard, dtype
        self.checkpoints = Checkpoints(folder, [run.name for run in config.runs], alive)
        self.environments = make_environments(config, threads, self.device)
        replay_bytes = bytes_needed(
            self.environments.observation,
            len(config.runs),
            config.settings.envs_per_run,
            config.settings.replay_capacity,
        )
        self.replay_device = place_replay(replay_device, self.device, replay_bytes)
        network = network_spec(config, self.environments.observation, int(self.environments.actions.max()))
        self._print_memory_bill(network, replay_bytes)
        if config.settings.bf16 and (said := caution(network, self.device, dtype)):
            print(f"gramian: {said}", file=sys.stderr)
        if tensorboard:
            TensorBoard.check_installed()
        self.trainer = Trainer(
            config,
            self.environments,
            device=self.device,
            replay_device=self.replay_device,
            dtype=dtype,
            execution=execution,
        )
        self.diverged: dict[int, int] = {}
        self.logs: list[RunLog] = []
        self.board: TensorBoard | None = None

    def _print_memory_bill(self, network: NetworkSpec, replay_bytes: int) -> None:
        """Say what will be allocated, and stop here if it is more than there is."""
        settings, runs = self.config.settings, len(self.config.runs)
        observation = self.environments.observation
        items: dict[torch.device, dict[str, int]] = {self.device: {}, self.replay_device: {}}
        items[self.device]["learner"] = learner_bytes(network, runs, self.dtype)
        if settings.representation_period_agent_steps:
            games = len({run.game for run in self.config.runs})
            held_out = games * settings.representation_states * observation.stack * observation.frame_bytes
            items[self.device]["held-out states"] = held_out
        items[self.replay_device][f"replay of {runs} × {settings.replay_capacity:,} transitions"] = replay_bytes
        for device, parts in items.items():
            advice = "lower --replay-capacity or train fewer runs at once"
            print(memory_bill(parts, device, advice), file=sys.stderr)

    def run(self, checkpoint: Checkpoint | None) -> None:
        """Train to the end, to an interruption or to a failure; the folders say which it was."""
        with ExitStack() as open_things:
            open_things.callback(self.trainer.close)
            try:
                self._open(checkpoint, open_things)
                self._loop(checkpoint.agent_steps if checkpoint is not None else None)
            except OSError as error:
                last = self.checkpoints.newest_step
                kept = (
                    "there is no checkpoint yet" if last is None else f"the checkpoint at agent step {last:,} is whole"
                )
                reason = f"cannot write to '{self.folder}': {(error.strerror or str(error)).lower()}; {kept}"
                self._note_failure(reason)
                raise WorkFailed(f"{reason}; make room and go on with --resume '{self.folder}'") from error
            except WorkFailed:
                raise
            except Exception as error:
                self._note_failure(f"{type(error).__name__}: {error}")
                raise

    def _open(self, checkpoint: Checkpoint | None, open_things: ExitStack) -> None:
        """Bring folders, trainer, logs and display to where the work begins."""
        names = [run.name for run in self.config.runs]
        self.held_out = HeldOut(self.config, self.device)
        record = provenance(self.device, self.command)
        for run in self.config.runs:
            (self.folder / run.name).mkdir(exist_ok=True)
            write_config(self.folder / run.name, self.config, run)
            add_provenance(self.folder / run.name, record)
        if checkpoint is not None:
            self.trainer.restore(checkpoint.shared, [checkpoint.runs[name] for name in names], checkpoint.segments)
            self.diverged = {int(run): at for run, at in checkpoint.counters["diverged"].items()}
        for name in names:
            lengths = None
            if checkpoint is not None:
                recorded = ((Path(path), length) for path, length in checkpoint.log_lengths.items())
                lengths = {path.name: length for path, length in recorded if path.parent.name == name}
            self.logs.append(RunLog(self.folder / name, lengths))
            open_things.callback(self.logs[-1].close)
        self.display = Display(self.config, self.trainer.agent_steps)
        self._remember()
        open_things.enter_context(self.display)
        if self.tensorboard:
            self.board = TensorBoard([self.folder / name for name in names], self.trainer.frames)
            open_things.callback(self.board.close)
        self._status("running")

    def _loop(self, saved_at: int | None) -> None:
        trainer, settings = self.trainer, self.config.settings
        began = shown = time.monotonic()
        first = trainer.agent_steps
        with _interruption() as interrupted:
            while not trainer.done and len(self.diverged) < len(self.config.runs):
                before = trainer.agent_steps
                for episode in trainer.step():
                    self._episode(episode)
                self.alive()
                now = trainer.agent_steps
                if crossed(settings.metrics_period_agent_steps, before, now):
                    self._metrics(time.monotonic() - began, now - first)
                    if time.monotonic() - shown > STATUS_INTERVAL_S:
                        self._let_others_see()
                        shown = time.monotonic()
                period = settings.representation_period_agent_steps
                if period and crossed(period, before, now):
                    self._representation()
                if crossed(settings.checkpoint_period_agent_steps, before, now) and not trainer.done:
                    self._save()
                    saved_at = now
                self.display.advance(now)
                if interrupted():
                    if saved_at != now:
                        self._save()
                    self._status("interrupted")
                    raise KeyboardInterrupt(f"interrupted; go on with --resume '{self.folder}'")
        self._notice_divergence()
        # Nothing goes on from here, so that the replay is not needed any more.
        if saved_at != trainer.agent_steps or self.checkpoints.segments_end is not None:
            self._save(final=True)
        self._status("done")

    def _episode(self, episode: Episode) -> None:
        if episode.run in self.diverged:
            return
        self.logs[episode.run].episode(
            frames=self.trainer.frames, **{name: value for name, value in asdict(episode).items() if name != "run"}
        )
        self.display.episode(episode.run, episode.raw_return)
        if self.board is not None:
            self.board.add(episode.run, "return", episode.raw_return, self.trainer.frames)

    def _metrics(self, seconds: float, paced: int) -> None:
        trainer = self.trainer
        for log in self.logs:
            log.timing(trainer.agent_steps, round(seconds, 3), round(paced / seconds, 1))
        if not trainer.updates or not trainer.replay.ready:
            return
        numbers = trainer.diagnose()
        common = {
            "frames": trainer.frames,
            "agent_steps": trainer.agent_steps,
            "updates": trainer.updates,
            "epsilon": trainer.epsilon,
        }
        for run, log in enumerate(self.logs):
            if run not in self.diverged:
                values = {name: float(number[run]) for name, number in numbers.items()}
                log.metrics(common | values)
                if self.board is not None:
                    for name, value in values.items():
                        self.board.add(run, name, value, trainer.frames)
        self.display.metrics(numbers["loss"].tolist(), numbers["penalty_loss"].tolist())
        self._notice_divergence()

    def _notice_divergence(self) -> None:
        """Mark runs that are not finite. Looked for at set steps alone, so that a resume changes nothing."""
        for run, update in enumerate(self.trainer.diverged_at()):
            if update >= 0 and run not in self.diverged:
                self.diverged[run] = update
                self.display.state(run, f"diverged at update {update:,}")
                self.logs[run].flush()  # nothing is added from here on: a run that has ended has whole logs
                self._write_status(run, "running")

    def _representation(self) -> None:
        trainer = self.trainer
        common: dict[str, float] = {
            "frames": trainer.frames,
            "agent_steps": trainer.agent_steps,
            "updates": trainer.updates,
        }
        for run, values in enumerate(self.held_out.measure(trainer.learner)):
            if run not in self.diverged:
                self.logs[run].representation(common | values)
                if self.board is not None:
                    for name, value in values.items():
                        self.board.add(run, f"held_out/{name}", value, trainer.frames)

    def _let_others_see(self) -> None:
        for log in self.logs:
            log.push()
        self._status("running")

    def _save(self, *, final: bool = False) -> None:
        trainer = self.trainer
        names = [run.name for run in self.config.runs]
        lengths = {
            f"{name}/{file}": length
            for name, log in zip(names, self.logs, strict=True)
            for file, length in log.flush().items()
        }
        with_replay = self.checkpoint_replay and not final
        self.checkpoints.save(
            trainer.agent_steps,
            counters={"updates": trainer.updates, "diverged": self.diverged},
            log_lengths=lengths,
            shared=trainer.state(),
            runs=trainer.run_states(),
            segments=trainer.segments(self.checkpoints.segments_end) if with_replay else (),
            segments_from=trainer.replay.oldest if with_replay else None,
            kept=1 if final else KEPT,
        )
        self._status("running")

    def _status(self, state: State) -> None:
        for run in range(len(self.config.runs)):
            self._write_status(run, state)

    def _write_status(self, run: int, state: State, reason: str = "") -> None:
        if run in self.diverged and state != "failed":
            state, reason = "diverged", f"not finite at update {self.diverged[run]}"
        write_status(self.folder / self.config.runs[run].name, state, self.trainer.agent_steps, reason)

    def _note_failure(self, reason: str) -> None:
        for run in range(len(self.config.runs)):
            with suppress(OSError):  # the disk that failed is the one that the status goes to
                self._write_status(run, "failed", reason)

    def _remember(self) -> None:
        """Show what became of a resumed run before: its last returns from its log, and whether it has diverged."""
        for run, log in enumerate(self.logs):
            log.push()
            lines = (log.folder / "episodes.csv").read_text(encoding="utf-8").splitlines()
            column = lines[0].split(",").index("raw_return")
            for line in lines[1:]:
                self.display.episode(run, float(line.split(",")[column]))
        for run, update in self.diverged.items():
            self.display.state(run, f"diverged at update {update:,}")


def _population(config: Config, checkpoint_replay: bool, dtype: torch.dtype) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "preset": config.preset,
        "checkpoint_replay": checkpoint_replay,
        "dtype": str(dtype).removeprefix("torch."),
        "runs": [
            {"game": run.game.name, "arm": str(run.arm), "seed": run.seed}
            | ({} if run.learning_rate is None else {"learning_rate": run.learning_rate})
            | ({"label": run.label} if run.label else {})
            for run in config.runs
        ],
        "settings": asdict(config.settings),
    }


@contextmanager
def _interruption() -> Iterator[Any]:
    """Count the first Ctrl-C or SIGTERM instead of stopping at once; the second one stops as usual."""
    asked = False

    def ask(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(number, before[number])
        os.write(2, b"stopping after this step; saving a checkpoint\n")  # print is not safe in a handler

    before: dict[int, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, ask)
    except ValueError:  # not the main thread: whoever owns the signals decides
        before = {}
    try:
        yield lambda: asked
    finally:
        for caught, handler in before.items():
            signal.signal(caught, handler)
