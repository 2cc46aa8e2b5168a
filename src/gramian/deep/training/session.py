"""Training with everything around it: folders, logs, checkpoints, resume, interruption."""

import json
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
from gramian.core.files import durable_folder, locked, output_folder, replace_text
from gramian.deep.choices import Execution
from gramian.deep.engines import pick_execution
from gramian.deep.training.boards import Board, check_boards, open_boards
from gramian.deep.training.checkpoint import KEPT, Checkpoint, Checkpoints, seal, sealed
from gramian.deep.training.config import Config, RunSpec, settings_from
from gramian.deep.training.display import Display
from gramian.deep.training.heldout import HeldOut
from gramian.deep.training.logs import COLUMNS, RunLog, State, write_config, write_status
from gramian.deep.training.memory import pick_device, plan_memory
from gramian.deep.training.provenance import add_provenance, provenance
from gramian.deep.training.schedules import crossed
from gramian.deep.training.trainer import Episode, Trainer, make_environments, network_spec

FORMAT = 1
POPULATION = "population.json"
DTYPES = {"float32": torch.float32, "float64": torch.float64}
STATUS_INTERVAL_S = 5.0
"""Seconds between two moments at which other processes can see a run's logs so far and its status."""
LOCK = "lock"
"""Held by the process at work on a population."""


def train(
    config: Config,
    out: Path | str,
    *,
    device: str = "auto",
    replay_device: str = "auto",
    checkpoint_replay: bool = True,
    tensorboard: bool = False,
    log: Sequence[str] = (),
    threads: int = 0,
    dtype: torch.dtype = torch.float32,
    execution: Execution | Literal["auto"] = "auto",
    command: Sequence[str] | None = None,
    alive: Callable[[], object] = lambda: None,
) -> Path:
    """Train a population in the new folder ``out``; each run gets its own below it.

    On Ctrl-C or SIGTERM a checkpoint is saved and KeyboardInterrupt raised. `WorkFailed` is raised if the disk fails, a
    file vanishes or an emulator is killed; what was saved stays. A run that diverges is an outcome: its status says so.

    Parameters
    ----------
    replay_device
        Where the replay lies; ``auto`` is the learner's device.
    checkpoint_replay
        Save the replay with the checkpoints. Without it a resume begins with an empty replay, so that the run is no
        longer the one that was never interrupted.
    log
        Where live curves go too: names of `gramian.deep.training.boards.BOARDS`; ``tensorboard`` adds that one.
    threads
        Processes that play Atari; 0 takes one for each core.
    execution
        How the work of a step reaches a GPU; see `gramian.deep.engines`.
    command
        What was called, for ``provenance.json``; by default the command of this process.
    alive
        Called after every step and at every file of a checkpoint, as a sign of life.

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
    >>> resume(out) == out  # nothing is left to do
    True
    """
    folder = Path(out)
    _refuse_population(folder)
    boards = (*log, *(["tensorboard"] if tensorboard else []))
    session = _Session(
        config, folder, device, replay_device, checkpoint_replay, boards, threads, dtype, execution, command, alive
    )
    output_folder(folder)
    with locked(folder / LOCK):
        _refuse_population(folder)  # another process may have begun one before this one held the lock
        saved = {
            "format": FORMAT,
            "preset": config.preset,
            "checkpoint_replay": checkpoint_replay,
            "dtype": str(dtype).removeprefix("torch."),
            "runs": [run.to_mapping() for run in config.runs],
            "settings": asdict(config.settings),
        }
        replace_text(folder / POPULATION, seal(saved))
        session.run(None)
    return folder


def resume(
    out: Path | str,
    *,
    device: str = "auto",
    replay_device: str = "auto",
    tensorboard: bool = False,
    log: Sequence[str] = (),
    threads: int = 0,
    execution: Execution | Literal["auto"] = "auto",
    command: Sequence[str] | None = None,
    alive: Callable[[], object] = lambda: None,
) -> Path:
    """Go on with the population in folder ``out`` from its newest whole checkpoint, or from its beginning."""
    folder = Path(out)
    config, checkpoint_replay, dtype = read_population(folder, warn=_say)
    boards = (*log, *(["tensorboard"] if tensorboard else []))
    session = _Session(
        config, folder, device, replay_device, checkpoint_replay, boards, threads, dtype, execution, command, alive
    )
    with locked(folder / LOCK):
        session.run(session.checkpoints.load(report=_say))
    return folder


def read_population(folder: Path, warn: Callable[[str], object] = str) -> tuple[Config, bool, torch.dtype]:
    """The population in ``folder``, whether its replay is saved, its precision; warns where there are no checksums."""
    path = folder / POPULATION
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        if saved["format"] != FORMAT:
            raise UserError(f"'{path}' has format {saved['format']}, not {FORMAT}; use the version that wrote it")
        if not sealed(saved):
            raise ValueError("it is not what was written")
        if "sha256" not in saved:
            warn(f"'{folder}' has no checksums of its settings and logs: they are used as they are")
        settings = settings_from(saved["settings"], f"'{path}'")
        runs = tuple(RunSpec.from_mapping(run, settings) for run in saved["runs"])
        return Config(saved["preset"], settings, runs), saved["checkpoint_replay"], DTYPES[saved["dtype"]]
    except OSError as error:
        raise UserError(f"'{folder}' holds no population; --resume takes the folder that was given as --out") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"'{path}' is damaged ({error!r}); remove '{folder}' to train it anew") from error


def _refuse_population(folder: Path) -> None:
    if (folder / POPULATION).exists():
        raise UserError(
            f"'{folder}' holds a population already; go on with --resume '{folder}', or name another folder"
        )


def _say(line: str) -> None:
    print(f"gramian: {line}", file=sys.stderr)


class _Session:
    """One process at work on a population."""

    def __init__(
        self,
        config: Config,
        folder: Path,
        device: str,
        replay_device: str,
        checkpoint_replay: bool,
        boards: Sequence[str],
        threads: int,
        dtype: torch.dtype,
        execution: Execution | Literal["auto"],
        command: Sequence[str] | None,
        alive: Callable[[], object],
    ) -> None:
        self.config, self.folder, self.command, self.alive = config, folder, command, alive
        self.folders = [folder / run.name for run in config.runs]
        check_boards(boards)
        self.device = pick_device(device)
        pick_execution(execution, self.device)
        self.checkpoint_replay, self.board_names = checkpoint_replay, boards
        self.checkpoints = Checkpoints(folder, [run.name for run in config.runs], alive)
        self.environments = make_environments(config, threads, self.device)
        observation = self.environments.observation
        network = network_spec(config, observation, int(self.environments.actions.max()))
        advice = "lower --replay-capacity or train fewer runs at once"
        place, bill = plan_memory(config, observation, network, self.device, replay_device, advice, dtype)
        print("\n".join(bill), file=sys.stderr)
        self.trainer = Trainer(
            config,
            self.environments,
            device=self.device,
            replay_device=place,
            dtype=dtype,
            execution=execution,
        )
        if self.trainer.engine.remark:
            _say(self.trainer.engine.remark)
        self.diverged: dict[int, int] = {}
        """The update at which each run that diverged was not finite."""
        self.logs: list[RunLog] = []
        self.boards: list[Board] = []

    def run(self, checkpoint: Checkpoint | None) -> None:
        """Train to the end, to an interruption or to a failure; the folders say which it was."""
        with ExitStack() as open_things:
            open_things.callback(self.trainer.close)
            try:
                self._open(checkpoint, open_things)
                self._loop(checkpoint.agent_steps if checkpoint is not None else None)
            except (OSError, WorkFailed) as error:
                last = self.checkpoints.newest_step
                kept = (
                    "there is no checkpoint yet" if last is None else f"the checkpoint at agent step {last:,} is whole"
                )
                remedy = f"go on with --resume '{self.folder}'"
                if isinstance(error, FileNotFoundError):
                    reason = f"'{error.filename}' has vanished; {kept}"
                elif isinstance(error, OSError):
                    reason = f"cannot write to '{self.folder}': {(error.strerror or str(error)).lower()}; {kept}"
                    remedy = f"make room and {remedy}"
                else:
                    reason = f"{error}; {kept}"
                self._note_failure(reason)
                raise WorkFailed(f"{reason}; {remedy}") from error
            except Exception as error:
                self._note_failure(f"{type(error).__name__}: {error}")
                raise

    def _open(self, checkpoint: Checkpoint | None, open_things: ExitStack) -> None:
        """Bring folders, trainer, logs and display to where the work begins."""
        self.held_out = HeldOut(self.config, self.device)
        record = provenance(self.device, self.command)
        for folder, run in zip(self.folders, self.config.runs, strict=True):
            durable_folder(folder)
            write_config(folder, self.config, run)
            add_provenance(folder, record)
        if checkpoint is not None:
            runs = [checkpoint.runs[run.name] for run in self.config.runs]
            self.trainer.restore(checkpoint.shared, runs, checkpoint.segments)
            self.diverged = {int(run): at for run, at in checkpoint.counters["diverged"].items()}
        self.display = Display(self.config, self.trainer.agent_steps)
        for number, folder in enumerate(self.folders):
            lengths = None
            if checkpoint is not None:
                recorded = ((Path(path), length) for path, length in checkpoint.log_lengths.items())
                lengths = {path.name: length for path, length in recorded if path.parent.name == folder.name}
            self.logs.append(RunLog(folder, lengths))
            open_things.callback(self.logs[-1].close)
            self.logs[-1].push()
            heading, *rows = (folder / "episodes.csv").read_text(encoding="utf-8").splitlines()
            column = heading.split(",").index("raw_return")
            for row in rows:
                self.display.episode(number, float(row.split(",")[column]))
        for number, update in self.diverged.items():
            self.display.state(number, f"diverged at update {update:,}")
        open_things.enter_context(self.display)
        self.boards = open_boards(self.board_names, self.folders, self.trainer.frames)
        for board in self.boards:
            open_things.callback(board.close)
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
                        for log in self.logs:
                            log.push()
                        self._status("running")
                        shown = time.monotonic()
                period = settings.representation_period_agent_steps
                if period and crossed(period, before, now):
                    for run, values in enumerate(self.held_out.measure(trainer.learner)):
                        self._add(run, "representation.csv", values, "held_out/")
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
        for folder in self.folders:
            for name in (*COLUMNS, "config.toml", f"checkpoints/{trainer.agent_steps}.safetensors"):
                (folder / name).stat()  # a run is only done if every file is there
        self._status("done")

    def _episode(self, episode: Episode) -> None:
        if episode.run in self.diverged:
            return
        self.logs[episode.run].add("episodes.csv", {"frames": self.trainer.frames, **asdict(episode)})
        self.display.episode(episode.run, episode.raw_return)
        for board in self.boards:
            board.add(episode.run, {"return": episode.raw_return}, self.trainer.frames)

    def _metrics(self, seconds: float, paced: int) -> None:
        trainer = self.trainer
        timing = {"seconds": round(seconds, 3), "agent_steps_per_second": round(paced / seconds, 1)}
        for log in self.logs:
            log.add("timing.csv", {"agent_steps": trainer.agent_steps, **timing})
        if not trainer.updates or not trainer.replay.ready:
            return
        numbers = trainer.diagnose()
        for run in range(len(self.logs)):
            self._add(run, "metrics.csv", {name: float(number[run]) for name, number in numbers.items()})
        self.display.metrics(numbers["loss"].tolist(), numbers["penalty_loss"].tolist())
        self._notice_divergence()

    def _add(self, run: int, file: str, values: Mapping[str, float], curve: str = "") -> None:
        """Add a row to a run's log, and to its live curves, unless it has diverged."""
        if run in self.diverged:
            return
        trainer = self.trainer
        counters = {"frames": trainer.frames, "agent_steps": trainer.agent_steps, "updates": trainer.updates}
        self.logs[run].add(file, {**counters, "epsilon": trainer.epsilon, **values})
        for board in self.boards:
            board.add(run, {f"{curve}{name}": value for name, value in values.items()}, trainer.frames)

    def _notice_divergence(self) -> None:
        """Mark runs that are not finite. Looked for at set steps alone, so that a resume changes nothing."""
        for run, update in enumerate(self.trainer.diverged_at()):
            if update >= 0 and run not in self.diverged:
                self.diverged[run] = update
                self.display.state(run, f"diverged at update {update:,}")
                self.logs[run].flush()  # nothing is added from here on: a run that has ended has whole logs
                self._write_status(run, "running")

    def _save(self, *, final: bool = False) -> None:
        trainer = self.trainer
        with_replay = self.checkpoint_replay and not final
        self.checkpoints.save(
            trainer.agent_steps,
            counters={"updates": trainer.updates, "diverged": self.diverged},
            logs={f"{log.folder.name}/{file}": flushed for log in self.logs for file, flushed in log.flush().items()},
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
        write_status(self.folders[run], state, self.trainer.agent_steps, reason)

    def _note_failure(self, reason: str) -> None:
        for run in range(len(self.config.runs)):
            with suppress(OSError):  # the disk that failed is the one that the status goes to
                self._write_status(run, "failed", reason)


@contextmanager
def _interruption() -> Iterator[Callable[[], bool]]:
    """Note the first Ctrl-C or SIGTERM instead of stopping at once; the second one stops as usual."""
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
    except ValueError:  # not the main thread: the thread that owns the signals decides
        before = {}
    try:
        yield lambda: asked
    finally:
        for caught, handler in before.items():
            signal.signal(caught, handler)
