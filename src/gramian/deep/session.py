"""Training with everything around it: folders, logs, checkpoints, resume, interruption."""

import json
import math
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from gramian.deep.arms import parse_arm
from gramian.deep.checkpoint import KEPT, Checkpoint, Checkpoints
from gramian.deep.config import Config, RunSpec, Settings, settings_from
from gramian.deep.display import Display
from gramian.deep.games import find_game
from gramian.deep.heldout import HeldOut
from gramian.deep.logs import RunLog, add_provenance, provenance, write_config, write_status
from gramian.deep.memory import memory_bill
from gramian.deep.networks import parameter_shapes
from gramian.deep.replay import bytes_needed
from gramian.deep.schedules import crossed
from gramian.deep.tensorboard import TensorBoard
from gramian.deep.trainer import Episode, Trainer, make_environments, network_spec
from gramian.errors import UserError, WorkFailed
from gramian.files import output_folder, replace_text

FORMAT = 1
POPULATION = "population.json"
LEARNER_COPIES = 6
"""Online and target weights, Adam's two moments, a gradient and a temporary of the optimiser."""


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
        That step Atari's emulators; 0 takes one for each core.
    dtype
        Of the networks.

    Returns
    -------
    Path
        ``out``.

    Raises
    ------
    UserError
        If ``out`` holds a population already or cannot be written, or if the memory does not suffice.
    KeyboardInterrupt
        On Ctrl-C, after a checkpoint has been saved.
    """
    folder = Path(out)
    if (folder / POPULATION).exists():
        raise UserError(
            f"'{folder}' holds a population already; go on with --resume '{folder}', or name another folder"
        )
    session = _Session(config, folder, device, replay_device, checkpoint_replay, tensorboard, threads, dtype)
    output_folder(folder)
    replace_text(folder / POPULATION, json.dumps(_population(config, checkpoint_replay, dtype), indent=1) + "\n")
    session.run(None)
    return folder


def resume(
    out: Path | str, *, device: str = "auto", replay_device: str = "auto", tensorboard: bool = False, threads: int = 0
) -> Path:
    """Go on with the population in folder ``out`` from its newest whole checkpoint, or from its beginning.

    Raises
    ------
    UserError
        If there is no population in ``out``.
    """
    folder = Path(out)
    config, checkpoint_replay, dtype = read_population(folder)
    checkpoint = Checkpoints(folder, [run.name for run in config.runs])
    session = _Session(config, folder, device, replay_device, checkpoint_replay, tensorboard, threads, dtype)
    session.checkpoints = checkpoint
    session.run(checkpoint.load())
    return folder


def read_population(folder: Path) -> tuple[Config, bool, torch.dtype]:
    """The population that was begun in ``folder``, whether its replay is saved, and its precision."""
    try:
        saved = json.loads((folder / POPULATION).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"'{folder}' holds no population; --resume takes the folder that was given as --out") from error
    settings = settings_from(saved["settings"], f"'{folder / POPULATION}'")
    runs = tuple(run_from(run, settings) for run in saved["runs"])
    return Config(saved["preset"], settings, runs), saved["checkpoint_replay"], getattr(torch, saved["dtype"])


def run_from(saved: Mapping[str, Any], settings: Settings) -> RunSpec:
    """A run as `population.json` and ``config.toml`` describe it."""
    arm = parse_arm(saved["arm"], settings.kappa)
    return RunSpec(find_game(saved["game"]), arm, saved["seed"], saved.get("learning_rate"))


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
    ) -> None:
        self.config, self.folder = config, folder
        self.device = pick_device(device)
        self.replay_device = self.device if replay_device == "auto" else pick_device(replay_device)
        self.checkpoint_replay, self.tensorboard, self.dtype = checkpoint_replay, tensorboard, dtype
        self.checkpoints = Checkpoints(folder, [run.name for run in config.runs])
        self.environments = make_environments(config, threads)
        self._print_memory_bill()
        if tensorboard:
            TensorBoard.check_installed()

    def _print_memory_bill(self) -> None:
        """Say what will be allocated, and stop here if it is more than there is."""
        settings, runs = self.config.settings, len(self.config.runs)
        observation = self.environments.observation
        network = network_spec(self.config, observation, int(self.environments.actions.max()))
        parameters = sum(math.prod(shape) for shape in parameter_shapes(network).values())
        items: dict[torch.device, dict[str, int]] = {self.device: {}, self.replay_device: {}}
        items[self.device]["learner"] = LEARNER_COPIES * runs * parameters * self.dtype.itemsize
        if settings.representation_period_agent_steps:
            games = len({run.game for run in self.config.runs})
            held_out = games * settings.representation_states * observation.stack * observation.frame_bytes
            items[self.device]["held-out states"] = held_out
        items[self.replay_device][f"replay of {runs} × {settings.replay_capacity:,} transitions"] = bytes_needed(
            observation, runs, settings.envs_per_run, settings.replay_capacity
        )
        for device, parts in items.items():
            advice = "lower --replay-capacity or train fewer runs at once"
            print(memory_bill(parts, device, advice), file=sys.stderr)

    def run(self, checkpoint: Checkpoint | None) -> None:
        """Train to the end, to an interruption or to a failure; the folders say which it was."""
        names = [run.name for run in self.config.runs]
        folders = {name: self.folder / name for name in names}
        record = provenance(self.device)
        for run, name in zip(self.config.runs, names, strict=True):
            folders[name].mkdir(exist_ok=True)
            write_config(folders[name], self.config, run)
            add_provenance(folders[name], record)

        trainer = Trainer(
            self.config, self.environments, device=self.device, replay_device=self.replay_device, dtype=self.dtype
        )
        self.diverged: dict[int, int] = {}
        if checkpoint is not None:
            trainer.restore(checkpoint.shared, [checkpoint.runs[name] for name in names], checkpoint.segments)
            self.diverged = {int(run): at for run, at in checkpoint.counters["diverged"].items()}
        self.trainer = trainer
        self.held_out = HeldOut(self.config, self.device)
        with ExitStack() as open_things:
            open_things.callback(trainer.close)
            self.logs = []
            for name in names:
                lengths = checkpoint.log_lengths if checkpoint is not None else None
                own = None if lengths is None else {k.name: v for k, v in _below(lengths, name)}
                log = RunLog(folders[name], own)
                open_things.callback(log.close)
                self.logs.append(log)
            self.display = open_things.enter_context(Display(self.config, trainer.agent_steps))
            self._remember_returns()
            self.board = None
            if self.tensorboard:
                self.board = TensorBoard(folders.values())
                open_things.callback(self.board.close)
            self._status("running")
            try:
                self._loop(checkpoint.agent_steps if checkpoint is not None else None)
            except OSError as error:
                self._fail(error)

    def _loop(self, saved_at: int | None) -> None:
        trainer, settings = self.trainer, self.config.settings
        began, first = time.monotonic(), trainer.agent_steps
        with _interruption() as interrupted:
            while not trainer.done and len(self.diverged) < len(self.config.runs):
                before = trainer.agent_steps
                for episode in trainer.step():
                    self._episode(episode)
                now = trainer.agent_steps
                if crossed(settings.metrics_period_agent_steps, before, now):
                    self._metrics(time.monotonic() - began, now - first)
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
                    raise KeyboardInterrupt
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
        if not trainer.learner.updates:
            return
        numbers = trainer.diagnose()
        common = {
            "frames": trainer.frames,
            "agent_steps": trainer.agent_steps,
            "updates": trainer.learner.updates,
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
        for run, update in enumerate(trainer.diverged_at()):
            if update >= 0 and run not in self.diverged:
                self.diverged[run] = update
                self.display.state(run, f"diverged at update {update:,}")
                self._write_status(run, "running")

    def _representation(self) -> None:
        trainer = self.trainer
        common: dict[str, float] = {
            "frames": trainer.frames,
            "agent_steps": trainer.agent_steps,
            "updates": trainer.learner.updates,
        }
        for run, values in enumerate(self.held_out.measure(trainer.learner)):
            if run not in self.diverged:
                self.logs[run].representation(common | values)
                if self.board is not None:
                    for name, value in values.items():
                        self.board.add(run, f"held_out/{name}", value, trainer.frames)

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
            counters={"updates": trainer.learner.updates, "diverged": self.diverged},
            log_lengths=lengths,
            shared=trainer.state(),
            runs=dict(zip(names, trainer.run_states(), strict=True)),
            segments=trainer.segments(self.checkpoints.segments_end) if with_replay else (),
            segments_from=trainer.replay.oldest if with_replay else None,
            kept=1 if final else KEPT,
        )
        self._status("running")

    def _status(self, state: str) -> None:
        for run in range(len(self.config.runs)):
            self._write_status(run, state)

    def _write_status(self, run: int, state: str, reason: str = "") -> None:
        if run in self.diverged:
            state, reason = "diverged", f"not finite at update {self.diverged[run]}"
        folder = self.folder / self.config.runs[run].name
        write_status(folder, state, self.trainer.agent_steps, reason)  # type: ignore[arg-type]

    def _fail(self, error: OSError) -> None:
        last = self.checkpoints.newest_step
        kept = f"the checkpoint at agent step {last:,} is whole" if last is not None else "there is no checkpoint yet"
        why = (error.strerror or str(error)).lower()
        reason = f"cannot write to '{self.folder}': {why}; {kept}"
        try:
            for run in range(len(self.config.runs)):
                self._write_status(run, "failed", reason)
        except OSError:
            pass  # the disk that failed is the one that the status would go to
        raise WorkFailed(f"{reason}; make room and go on with --resume '{self.folder}'") from error

    def _remember_returns(self) -> None:
        """Show the last returns of a resumed run from its log."""
        for run, log in enumerate(self.logs):
            lines = (log.folder / "episodes.csv").read_text(encoding="utf-8").splitlines()
            column = lines[0].split(",").index("raw_return") if lines else 0
            for line in lines[1:][-100:]:
                self.display.episode(run, float(line.split(",")[column]))


def _below(lengths: Mapping[str, int], name: str) -> Iterator[tuple[Path, int]]:
    return ((Path(path), length) for path, length in lengths.items() if Path(path).parent.name == name)


def _population(config: Config, checkpoint_replay: bool, dtype: torch.dtype) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "preset": config.preset,
        "checkpoint_replay": checkpoint_replay,
        "dtype": str(dtype).removeprefix("torch."),
        "runs": [
            {"game": run.game.name, "arm": str(run.arm), "seed": run.seed}
            | ({} if run.learning_rate is None else {"learning_rate": run.learning_rate})
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
        print("stopping after this step; saving a checkpoint", file=sys.stderr, flush=True)

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
