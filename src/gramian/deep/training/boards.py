"""Live curves beside the logs of a run: TensorBoard, Weights & Biases and trackio, extras of the same names."""

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextvars import Context
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol

from gramian.core.errors import UserError, unknown

BoardName = Literal["tensorboard", "wandb", "trackio"]


class Board(Protocol):
    """A place where curves are drawn while runs train."""

    def add(self, run: int, values: Mapping[str, float], frames: int) -> None:
        """Add a point to each of a run's curves, by name."""

    def close(self) -> None:
        """Write what is pending."""


class TensorBoard:
    """Files below ``<run>/tensorboard``; points beyond ``frames``, of a process that was killed, are dropped."""

    def __init__(self, folders: Sequence[Path], frames: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writers = [SummaryWriter(folder / "tensorboard", purge_step=frames or None) for folder in folders]

    def add(self, run: int, values: Mapping[str, float], frames: int) -> None:
        """Add a point to each of a run's curves, by name."""
        for name, value in values.items():
            self._writers[run].add_scalar(name, value, frames)

    def close(self) -> None:
        """Write what is pending."""
        for writer in self._writers:
            writer.close()


class _RunsThatLog:
    """Runs of a library that have ``log`` and ``finish``."""

    _runs: list[Any]

    def add(self, run: int, values: Mapping[str, float], frames: int) -> None:
        self._runs[run].log({**values, "frames": frames})

    def close(self) -> None:
        for run in self._runs:
            run.finish()


class WandB(_RunsThatLog):
    """Runs of Weights & Biases below ``<run>/wandb``, offline and without an account unless WANDB_MODE says otherwise.

    The project is named after the population's folder. A resume makes a further run of the same name.
    """

    def __init__(self, folders: Sequence[Path], frames: int) -> None:  # noqa: ARG002
        import wandb

        self._runs = []
        for folder in folders:
            run = wandb.init(
                project=folder.absolute().parent.name,
                name=folder.name,
                dir=folder,
                mode=os.environ.get("WANDB_MODE", "offline"),  # type: ignore[arg-type]
                reinit="create_new",
                settings=wandb.Settings(silent=True, console="off"),
            )
            run.define_metric("*", step_metric="frames")
            self._runs.append(run)


class Trackio(_RunsThatLog):
    """Runs of trackio in its own local folder, which TRACKIO_DIR names; ``trackio show`` draws them.

    The project is named after the population's folder. A resume goes on with the run of the same name.
    """

    def __init__(self, folders: Sequence[Path], frames: int) -> None:
        import trackio

        options: dict[str, Any] = {"resume": "allow" if frames else "never", "embed": False}
        options |= {"auto_log_gpu": False, "auto_log_cpu": False}
        with contextlib.redirect_stdout(sys.stderr):
            # each in a context of its own: init finishes the run that was begun before it in the same one
            self._runs = [
                Context().run(trackio.init, folder.absolute().parent.name, folder.name, **options) for folder in folders
            ]


BOARDS: dict[str, type[TensorBoard | WandB | Trackio]] = {
    "tensorboard": TensorBoard,
    "wandb": WandB,
    "trackio": Trackio,
}


def check_boards(names: Sequence[str]) -> None:
    """Raise a UserError for a name that is not in `BOARDS`, or a package that is not installed."""
    for name in names:
        if name not in BOARDS:
            raise unknown("log", name, BOARDS)
        if find_spec(name) is None:
            raise UserError(
                f"the log '{name}' needs the package '{name}'; it comes with: pip install 'gramian[{name}]'"
            )


def open_boards(names: Sequence[str], folders: Sequence[Path], frames: int) -> list[Board]:
    """The boards by name, for runs in ``folders`` that have got as far as ``frames``."""
    return [BOARDS[name](folders, frames) for name in dict.fromkeys(names)]
