"""Live curves in TensorBoard (extra ``tensorboard``)."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from gramian.core.errors import UserError


class TensorBoard:
    """Writes each run's numbers into its folder, in TensorBoard's format.

    Points beyond ``frames``, of a process that was killed, are dropped.
    """

    def __init__(self, folders: Iterable[Path], frames: int = 0) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writers = [SummaryWriter(folder / "tensorboard", purge_step=frames or None) for folder in folders]

    @staticmethod
    def check_installed() -> None:
        """Raise a UserError if TensorBoard is not installed."""
        if find_spec("tensorboard") is None:
            raise UserError("--tensorboard needs TensorBoard; it comes with: pip install 'gramian[tensorboard]'")

    def add(self, run: int, name: str, value: float, frames: int) -> None:
        """Add a point to a run's curve."""
        self._writers[run].add_scalar(name, value, frames)

    def close(self) -> None:
        """Write what is pending."""
        for writer in self._writers:
            writer.close()
