"""Warnings about penalties that do nothing: attached, but not active while the process trains."""

import gc
import warnings
import weakref
from typing import TYPE_CHECKING

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from gramian.attach.attachment import Attachment

OPTIMISER_STEPS = 100
"""Steps of any optimiser of the process after which a penalty that was not active is warned about."""

EVALUATION = "it ran in evaluation mode; call .train() on the model before the update"
NO_GRADIENTS = "it ran without gradients, as to act or for target values"
DETACHED = (
    "its features needed no gradient: there are no trained weights below them (a layer that only flattens, frozen "
    "weights), or the host detached them"
)
VMAP = (
    "it ran inside torch.func.vmap, where hooks see no gradient; with TorchRL pass deactivate_vmap=True to the loss "
    "module"
)
FEW = "its batches had too few samples"
REFUSED = "when= refused every pass, or reg.paused() was on"
NOT_ADDED = "reg.loss() was never called; add it to the loss, or attach with inject=True"
UNCALLED = (
    "the module never ran. A slice such as net[:-1] is a new container, load() makes a new model and .forward() runs "
    "no hooks: attach to a layer that the training model calls"
)
GONE = "it was active before, and its module no longer runs; after load() attach to a layer of the new model"


class Watch:
    """Counts the optimiser steps of the process since an attachment's penalty was last active.

    It outlives the attachment: that of ``attach(net[:-1], …)`` is collected at once, and has to be warned about.
    """

    def __init__(self, attachment: "Attachment", where: str) -> None:
        self.entered = False
        """Set whenever the penalty enters the training."""
        self._attachment = weakref.ref(attachment)
        self._where = where
        self._seen: dict[str, int] = {}
        self._idle = 0
        self._was_active = False
        self._warned = False
        _watch(self)

    def saw(self, reason: str) -> None:
        """Note why a forward pass was not active."""
        if not torch.compiler.is_compiling():
            self._seen[reason] = self._seen.get(reason, 0) + 1

    def stop(self) -> None:
        """Watch no longer."""
        _WATCHES.discard(self)

    def problem(self) -> str | None:
        """Why the penalty is not active, or None where it has been within the last 100 optimiser steps."""
        self._look()
        if self._was_active and self._idle < OPTIMISER_STEPS:
            return None
        since = f"in {self._idle} optimiser steps" if self._idle else "so far"
        # A module that acts too says little by that; other reasons say more.
        seen = {reason: count for reason, count in self._seen.items() if reason != NO_GRADIENTS} or self._seen
        reasons = "; ".join(f"{reason} ({count} passes)" for reason, count in seen.items())
        never = GONE if self._was_active else UNCALLED
        return f"gramian.attach: the penalty on {self._where} was not active {since}: {reasons or never}"

    def step(self) -> None:
        """One optimiser step of the process."""
        self._idle += 1
        self._look()
        if self._idle < OPTIMISER_STEPS or self._warned:
            return
        gc.collect()  # a model that was dropped may wait for it
        if self._attachment() is None and self._was_active:
            self.stop()  # it went with its model
            return
        self._warned = True
        warnings.warn(str(self.problem()), stacklevel=2)

    def _look(self) -> None:
        if self.entered:
            self.entered, self._was_active, self._idle = False, True, 0
            self._seen.clear()


_WATCHES: set[Watch] = set()
_HANDLES: list[RemovableHandle] = []


def _watch(watch: Watch) -> None:
    _WATCHES.add(watch)
    if not _HANDLES:
        _HANDLES.append(register_optimizer_step_post_hook(_after_step))


def _after_step(*_: object) -> None:
    # In a compiled step the counts would be constants, and each new count would compile it again.
    if not torch.compiler.is_compiling():
        for watch in tuple(_WATCHES):
            watch.step()
