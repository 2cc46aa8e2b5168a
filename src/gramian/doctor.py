"""``gramian doctor``: whether all that the package needs is here, and gives the numbers that it should.

A check is one line: what was found and, where something is wrong, what mends it. A check imports what it needs itself,
so that a base install, or a broken one, is told what it lacks.
"""

import contextlib
import importlib.util
import io
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Literal

State = Literal["ok", "note", "skip", "wrong"]
"""``note``: works, with something to know; ``skip``: cannot be checked here."""

WIDTH = 80
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
OLDEST_TORCH = (2, 6)
EXTRAS: dict[str, tuple[str, ...]] = {
    "lab": (
        "ale_py", "gymnasium", "imageio_ffmpeg", "matplotlib", "numba", "PIL", "plotly", "polars", "rich",
        "safetensors", "scipy", "tomli_w", "tyro",
    ),
    "ray": ("ray",),
    "sb3": ("stable_baselines3",),
    "tensorboard": ("tensorboard",),
    "wandb": ("wandb",),
    "trackio": ("trackio",),
    "jax": ("jax",),
}  # fmt: skip
"""The modules that each extra brings."""
LEAST_DISK_BYTES = 2 * 10**9
LEAST_MEMORY_BYTES = 2 * 10**9
ATARI_MEMORY_BYTES = 8 * 10**9
"""For the author's preset: a replay of a million frames takes 7.1 GB."""
GRAPH_TOLERANCE = 1e-5
"""Largest relative difference of weights after ten updates: rounding, not another update."""


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    state: State
    what: str
    remedy: str = ""


def doctor() -> int:
    """Check this machine: Python, torch, CUDA, extras, games, disk, memory, threads, and that runs repeat exactly."""
    wrong = 0
    for name, check in CHECKS.items():
        try:
            finding = check()
        except Exception as error:  # whatever breaks, the other checks are made
            finding = Finding("wrong", f"{type(error).__name__}: {' '.join(str(error).split())}")
        wrong += finding.state == "wrong"
        print(line(name, finding), flush=True)
    print("nothing is wrong" if not wrong else f"{wrong} of {len(CHECKS)} checks found something wrong")
    return 1 if wrong else 0


def line(name: str, finding: Finding) -> str:
    """One line of at most 80 columns; what was found is cut where it is too long, the remedy is not."""
    start = f"{finding.state:<5}  {name:<13}  "
    end = f": {finding.remedy}" if finding.remedy else ""
    room = WIDTH - len(start) - len(end)
    what = finding.what if len(finding.what) <= room else finding.what[: max(0, room - 1)] + "…"
    return start + what + end


def check_python() -> Finding:
    """A version that the package is tested with, and that need not compile torch's sources at every start."""
    version, shown = sys.version_info[:2], platform.python_version()
    if version < OLDEST_PYTHON:
        return Finding("wrong", shown, "install Python 3.11, 3.12 or 3.13")
    if version > NEWEST_PYTHON:
        return Finding("note", f"{shown}: not tested", "Python 3.11 to 3.13 are")
    torch = importlib.util.find_spec("torch")
    if sys.dont_write_bytecode and torch is not None and torch.cached and not Path(torch.cached).exists():
        return Finding("note", f"{shown}, keeps no bytecode: slow to start", "let it write .pyc")
    return Finding("ok", shown)


def check_torch() -> Finding:
    """A torch that is new enough, and that multiplies."""
    mend = "pip install --force-reinstall torch"
    if importlib.util.find_spec("torch") is None:
        return Finding("wrong", "not installed", "pip install torch")
    try:
        import torch

        identity = torch.eye(4)
        works = bool((identity @ identity == identity).all())
    except Exception as error:  # a library that does not fit the machine can raise anything
        return Finding("wrong", f"does not load ({' '.join(str(error).split())})", mend)
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < OLDEST_TORCH:
        return Finding("wrong", f"{torch.__version__} is too old", "pip install --upgrade 'torch>=2.6'")
    return Finding("ok", torch.__version__) if works else Finding("wrong", "multiplies wrongly", mend)


def check_cuda() -> Finding:
    """A GPU that torch can use; or that there is none."""
    import torch

    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        return Finding("ok", f"{torch.cuda.get_device_name()}, {free / 1e9:.0f} of {total / 1e9:.0f} GB free")
    if shutil.which("nvidia-smi") is None:
        return Finding("ok", "no GPU; everything runs on the CPU")
    if torch.version.cuda is None:
        return Finding("wrong", "a GPU, but torch without CUDA", "see pytorch.org/get-started")
    return Finding("wrong", f"torch's CUDA {torch.version.cuda} sees no GPU", "update the driver")


def check_extra(extra: str) -> Finding:
    """The packages of an extra."""
    missing = [module for module in EXTRAS[extra] if importlib.util.find_spec(module) is None]
    if not missing:
        return Finding("ok", "installed")
    what = "not installed" if len(missing) == len(EXTRAS[extra]) else f"no {', '.join(missing)}"
    return Finding("note", what, f"pip install 'gramian[{extra}]'")


def check_emulator() -> Finding:
    """ale-py loads every one of the paper's games."""
    if importlib.util.find_spec("ale_py") is None:
        return _needs_lab()
    from ale_py import ALEInterface, LoggerMode
    from ale_py.roms import get_rom_path

    from gramian.core.games import GAMES

    def loads(game: str) -> bool:
        path = get_rom_path(game)
        if path is None or not Path(path).is_file():  # the emulator would end the process
            return False
        try:
            ALEInterface().loadROM(path)
        except (OSError, RuntimeError):
            return False
        return True

    ALEInterface.setLoggerMode(LoggerMode.Error)
    atari = [game.id for game in GAMES.values() if game.kind == "atari"]
    broken = [game for game in atari if not loads(game)]
    if broken:
        shown = f"{len(broken)} of {len(atari)} games do not load ({', '.join(broken)})"
        return Finding("wrong", shown, "pip install --force-reinstall ale-py")
    return Finding("ok", f"all {len(atari)} Atari games load")


def check_minatar() -> Finding:
    """MinAtar plays."""
    if importlib.util.find_spec("numba") is None:
        return _needs_lab()
    import numpy as np

    from gramian.core.games import MINATAR_IDS
    from gramian.deep.envs.minatar import MinAtarGames
    from gramian.deep.envs.options import MinAtarOptions

    for game in MINATAR_IDS:
        engine = MinAtarGames(game, 1, MinAtarOptions())
        engine.start(np.arange(1), np.zeros(1, np.int64))
        engine.send(np.zeros(1, np.int64))
        engine.recv()
    return Finding("ok", f"all {len(MINATAR_IDS)} games play")


def check_disk() -> Finding:
    """Free space in the current folder."""
    free = shutil.disk_usage(Path.cwd()).free
    shown = f"{free / 1e9:,.1f} GB free in this folder"
    if free < LEAST_DISK_BYTES:
        return Finding("wrong", shown, "free 2 GB, or give --out elsewhere")
    return Finding("ok", shown)


def check_memory() -> Finding:
    """Memory that can still be allocated."""
    from gramian.core.host_memory import available_host_bytes

    free = available_host_bytes()
    shown = f"{free / 1e9:,.1f} GB free"
    if free < LEAST_MEMORY_BYTES:
        return Finding("wrong", shown, "training needs 2 GB; close other programs")
    if free < ATARI_MEMORY_BYTES:
        return Finding("note", shown, "for Atari, lower --replay-capacity")
    return Finding("ok", shown)


def check_threads() -> Finding:
    """Threads of torch: more than there are cores are slower than one."""
    from gramian.core.cores import cores

    usable = cores()
    asked = os.environ.get("OMP_NUM_THREADS")
    if asked is None:
        return Finding("ok", f"{usable} cores; OMP_NUM_THREADS is not set")
    if not asked.isdecimal() or int(asked) < 1:
        return Finding("wrong", f"OMP_NUM_THREADS is '{asked}'", "export OMP_NUM_THREADS=1")
    if int(asked) > usable:
        return Finding("wrong", f"OMP_NUM_THREADS={asked} on {usable} cores", "export OMP_NUM_THREADS=1")
    return Finding("ok", f"{usable} cores, OMP_NUM_THREADS={asked}")


def check_determinism() -> Finding:
    """Two short runs are equal, byte for byte."""
    if any(importlib.util.find_spec(module) is None for module in EXTRAS["lab"]):
        return _needs_lab()
    first, second = (_short_run() for _ in range(2))
    if first != second:
        differing = sorted(name for name in first if first[name] != second.get(name))
        return Finding("wrong", f"two equal runs differ in {', '.join(differing)}", "test the memory")
    return Finding("ok", "two short runs are equal, byte for byte")


def _short_run() -> dict[str, bytes]:
    """The logs and the weights of a run of a second, which prints nothing."""
    import torch

    from gramian.deep import Arm, Config, load_preset, population, train

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    config = Config("tiny", load_preset("tiny"), population(["cartpole"], [Arm("dqn"), Arm("gram", 0.01)], [0]))
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            train(config, Path(folder) / "run", device="cpu")
            names = ("episodes.csv", "metrics.csv", "*.safetensors")
            return {path.name: path.read_bytes() for name in names for path in sorted(Path(folder).rglob(name))}
    finally:
        torch.set_num_threads(threads)


def check_graphs() -> Finding:
    """An update that is replayed as a CUDA graph is the update."""
    import torch

    if not torch.cuda.is_available():
        return Finding("skip", "no GPU: no update is replayed as a CUDA graph")
    if any(importlib.util.find_spec(module) is None for module in EXTRAS["lab"]):
        return _needs_lab()
    difference = import_module("gramian.deep.engines").compare(torch.device("cuda"))
    shown = f"a graphed update differs from an eager one by {difference:.1e}"
    if not difference <= GRAPH_TOLERANCE:
        return Finding("wrong", shown, "update torch and the driver")
    return Finding("ok", shown)


def _needs_lab() -> Finding:
    return Finding("skip", "not looked at", "pip install 'gramian[lab]'")


CHECKS: dict[str, Callable[[], Finding]] = {
    "python": check_python,
    "torch": check_torch,
    "cuda": check_cuda,
    **{f"[{extra}]": partial(check_extra, extra) for extra in EXTRAS},
    "emulator": check_emulator,
    "minatar": check_minatar,
    "disk": check_disk,
    "memory": check_memory,
    "threads": check_threads,
    "determinism": check_determinism,
    "graphs": check_graphs,
}
"""By name, in the order of the report."""
