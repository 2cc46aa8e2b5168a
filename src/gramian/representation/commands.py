"""``gramian analyze``."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import tyro

from gramian.errors import WorkFailed
from gramian.representation.analysis import SUMMARY, analyze
from gramian.representation.gather import AT_ONCE


@dataclass(frozen=True)
class AnalyzeOptions:
    """Which runs to compare, and on how many states."""

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN [RUN …]")]
    """Folders of the runs: OUT/<run>."""
    out: Path
    """Folder for tables, figures and summary.md."""
    states: int = 1_000_000
    """States of each run."""
    epsilon: float = 0.01
    """Share of random actions."""
    seed: int = 0
    """Another seed gives other games."""
    at_once: int = AT_ONCE
    """Games that are played side by side."""
    device: str = "cpu"
    """cpu, cuda or auto."""


def analyze_command(options: AnalyzeOptions) -> int:
    """Let trained runs play, and compare what their features look like: tables, figures and a summary."""
    torch.set_num_threads(1)  # more than one starve the emulators
    try:
        folder = analyze(
            options.runs,
            options.out,
            states=options.states,
            epsilon=options.epsilon,
            seed=options.seed,
            at_once=options.at_once,
            device=options.device,
        )
    except OSError as error:
        raise WorkFailed(f"cannot write to '{options.out}': {(error.strerror or str(error)).lower()}") from error
    print((folder / SUMMARY).read_text(encoding="utf-8"))
    print(f"tables and figures in {folder}", file=sys.stderr)
    return 0
