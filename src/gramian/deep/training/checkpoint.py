"""Checkpoints of a population: plain files, written whole, checked when they are read. Nothing here runs code.

A checkpoint at agent step ``s`` of a population in folder ``OUT`` is

- ``OUT/<run>/checkpoints/<s>.safetensors``: what the run has learned, one file for each run;
- ``OUT/checkpoints/<s>.safetensors``: what the runs share: environments, observations, counters;
- ``OUT/checkpoints/replay-<first>-<end>.zz``: transitions ``[first, end)`` of the replay. Such a segment is written
  once and belongs to all checkpoints that still need it;
- ``OUT/checkpoints/<s>.json``: the manifest, which names these files and the logs so far with their sizes and SHA-256
  sums, and has a sum of its own. It is written last: a resume ignores a checkpoint without manifest.

The newest two are kept. One that is damaged is passed over for the one before it.
"""

import hashlib
import json
import re
import struct
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import safetensors.torch
from torch import Tensor

from gramian.core.errors import UserError
from gramian.core.files import durable_folder, replace_bytes, replace_text

FORMAT = 1
KEPT = 2
CHUNK_BYTES = 8 << 20
"""Segments are compressed in chunks of this size, by several threads at once."""

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read back and found whole."""

    agent_steps: int
    counters: dict[str, Any]
    """The JSON that was saved with it."""
    log_lengths: dict[str, int]
    """Bytes of each log, by its path below the population's folder."""
    shared: Tensors
    runs: dict[str, Tensors]
    segments: "Segments"


class Segments(Sequence[Tensors]):
    """Saved parts of the replay, each read when it is asked for: together they may be larger than the memory."""

    def __init__(self, paths: list[Path], alive: Callable[[], object]) -> None:
        self._paths, self._alive = paths, alive

    def __len__(self) -> int:
        return len(self._paths)

    @overload
    def __getitem__(self, index: int) -> Tensors: ...
    @overload
    def __getitem__(self, index: slice) -> "Segments": ...
    def __getitem__(self, index: int | slice) -> "Tensors | Segments":
        if isinstance(index, slice):
            return Segments(self._paths[index], self._alive)
        data = self._paths[index].read_bytes()
        self._alive()
        return safetensors.torch.load(decompress(data))


class Checkpoints:
    """The checkpoints of the population in ``folder`` with these runs; ``alive`` is called at every file."""

    def __init__(self, folder: Path, runs: Iterable[str], alive: Callable[[], object] = lambda: None) -> None:
        self.folder, self._alive = folder, alive
        self.runs = list(runs)
        self._own = folder / "checkpoints"
        self._segments: list[tuple[int, int]] = []
        self._whole: dict[int, dict[str, Any]] = {}
        """The files of each checkpoint that was written or found whole, with their sums."""

    @property
    def segments_end(self) -> int | None:
        """Number of the first transition that is in no segment yet; None where there are no segments."""
        return self._segments[-1][1] if self._segments else None

    @property
    def newest_step(self) -> int | None:
        """Agent step of the newest checkpoint that was written or found whole, or None."""
        return max(self._whole, default=None)

    def save(
        self,
        agent_steps: int,
        *,
        counters: Mapping[str, Any],
        logs: Mapping[str, tuple[int, str]],
        shared: Tensors,
        runs: Iterable[Tensors],
        segments: Iterable[tuple[int, int, Tensors]] = (),
        segments_from: int | None = None,
        kept: int = KEPT,
    ) -> None:
        """Write a checkpoint and drop those that are no longer kept; those before it stay if it fails.

        ``counters`` and ``shared`` are what `Checkpoint` gives back; ``logs`` have the length and SHA-256 sum of each
        log so far, by its path. Each of the ``runs`` is written before the next is taken: a large population is never
        on the host as a whole. ``segments`` are new transitions ``(first, end, tensors)``; ``segments_from`` is the
        oldest that is still needed, None where the replay is not saved.
        """
        for run in ("", *self.runs):
            durable_folder(self.folder / run / "checkpoints")
        sums = {name: known for files in self._whole.values() for name, known in files.items()}
        if segments_from is None:
            self._segments = []
        for first, end, tensors in segments:
            sums |= self._write(_segment_name(first, end), compress(safetensors.torch.save(tensors)))
            self._segments.append((first, end))
        self._segments = [(first, end) for first, end in self._segments if end > (segments_from or 0)]
        names = [f"{run}/checkpoints/{agent_steps}.safetensors" for run in self.runs]
        for name, tensors in zip(names, runs, strict=True):
            sums |= self._write(name, safetensors.torch.save(tensors))
        names.append(f"checkpoints/{agent_steps}.safetensors")
        sums |= self._write(names[-1], safetensors.torch.save(shared))
        files = {name: sums[name] for name in [*(_segment_name(*span) for span in self._segments), *names]}
        manifest = {
            "format": FORMAT,
            "agent_steps": agent_steps,
            "counters": dict(counters),
            "log_lengths": {name: length for name, (length, _) in logs.items()},
            "log_sums": {name: log_sum for name, (_, log_sum) in logs.items()},
            "segments": self._segments,
            "files": files,
        }
        replace_text(self._own / f"{agent_steps}.json", seal(manifest))
        self._whole[agent_steps] = files
        self._whole = dict(sorted(self._whole.items())[-kept:])
        self._drop_all_but_the_whole()

    def load(self, report: Callable[[str], None] = warnings.warn) -> Checkpoint | None:
        """The newest checkpoint that is whole; None where there has never been one, an error where none is whole.

        One that is damaged, or whose logs are not what they were, is reported, passed over and removed.
        """
        steps = self._steps()
        for step in reversed(steps):
            try:
                checkpoint = self._read(step)
            except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError, zlib.error) as error:
                report(f"the checkpoint at agent step {step:,} is damaged ({error}); the one before it is used")
                continue
            for damaged in (other for other in steps if other > step):
                (self._own / f"{damaged}.json").unlink()
            self._remember_older(step)
            return checkpoint
        if steps:
            raise UserError(f"no checkpoint in '{self._own}' is whole; remove '{self._own.parent}' to train it anew")
        return None

    def _remember_older(self, newest: int) -> None:
        """Keep the checkpoint before the one in use, if its manifest can be read; its files are checked when needed."""
        for step in (step for step in self._steps() if step < newest):
            try:
                self._whole[step] = dict(json.loads((self._own / f"{step}.json").read_text(encoding="utf-8"))["files"])
            except (ValueError, KeyError, TypeError):
                continue

    def _read(self, step: int) -> Checkpoint:
        manifest = json.loads((self._own / f"{step}.json").read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise UserError(f"checkpoint format {manifest['format']} is not {FORMAT}; use the version that wrote it")
        if not sealed(manifest):
            raise ValueError("its manifest is not what was written")
        for name, expected in manifest["files"].items():
            self._alive()
            if _sum((self.folder / name).read_bytes()) != expected:
                raise ValueError(f"{name} is not what was written")
        sums = manifest.get("log_sums", {})  # which earlier versions did not write
        for name, length in manifest["log_lengths"].items():
            with (self.folder / name).open("rb") as log:
                data = log.read(length)
            if len(data) < length:
                raise ValueError(f"{name} is shorter than it was")
            if name in sums and hashlib.sha256(data).hexdigest() != sums[name]:
                raise ValueError(f"{name} is not what was written")
        self._whole[step] = manifest["files"]
        self._segments = [(first, end) for first, end in manifest["segments"]]
        return Checkpoint(
            agent_steps=manifest["agent_steps"],
            counters=manifest["counters"],
            log_lengths=manifest["log_lengths"],
            shared=safetensors.torch.load_file(self._own / f"{step}.safetensors"),
            runs={
                run: safetensors.torch.load_file(self.folder / run / "checkpoints" / f"{step}.safetensors")
                for run in self.runs
            },
            segments=Segments([self.folder / _segment_name(*span) for span in self._segments], self._alive),
        )

    def _write(self, name: str, data: bytes) -> dict[str, Any]:
        self._alive()
        replace_bytes(self.folder / name, data)
        return {name: _sum(data)}

    def _steps(self) -> list[int]:
        return sorted(int(path.stem) for path in self._own.glob("*.json") if path.stem.isdigit())

    def _drop_all_but_the_whole(self) -> None:
        """Remove the files of checkpoints that are not kept, and what a killed process left half done."""
        kept = {self.folder / name for files in self._whole.values() for name in files}
        kept |= {self._own / f"{step}.json" for step in self._whole}
        for folder in (self._own, *(self.folder / run / "checkpoints" for run in self.runs)):
            for path in folder.iterdir():
                if _OURS.fullmatch(path.name) and path not in kept:
                    path.unlink()


_OURS = re.compile(r"\d+\.(json|safetensors)|replay-\d+-\d+\.zz|\.[\d-]+-\w+\.(json|safetensors)|\.replay-.*\.zz")
"""Names of the files written here, and of their temporaries; nothing else in the folder is touched."""


def latest_weights(run: Path) -> Path:
    """The newest weights in a run's folder."""
    found = [path for path in (run / "checkpoints").glob("*.safetensors") if path.stem.isdigit()]
    if not found:
        raise UserError(f"'{run}' holds no checkpoint; name the folder of a run that has saved one")
    return max(found, key=lambda path: int(path.stem))


def read_weights(run: Path) -> tuple[int, Tensors]:
    """The newest weights in a run's folder, held against their checksum if there is one, and their agent step."""
    path = latest_weights(run)
    step = int(path.stem)
    manifest = run.resolve().parent / "checkpoints" / f"{step}.json"
    try:
        data = path.read_bytes()
        if manifest.exists():
            sums = json.loads(manifest.read_text(encoding="utf-8"))["files"]
            if _sum(data) != sums.get(f"{run.resolve().name}/checkpoints/{path.name}", _sum(data)):
                raise ValueError("it is not what was written")
        return step, safetensors.torch.load(data)
    except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
        raise UserError(f"the weights '{path}' are damaged ({error}); remove them to use those before them") from error


def compress(data: bytes) -> bytes:
    """Compress in chunks, several at a time: the length of each chunk, then the chunk."""
    view = memoryview(data)
    chunks = [view[start : start + CHUNK_BYTES] for start in range(0, len(view), CHUNK_BYTES)]
    with ThreadPoolExecutor() as pool:  # zlib lets other threads run
        packed = list(pool.map(lambda chunk: zlib.compress(chunk, 1), chunks))
    return b"".join(part for chunk in packed for part in (struct.pack("<Q", len(chunk)), chunk))


def decompress(data: bytes) -> bytes:
    """Undo `compress`."""
    with ThreadPoolExecutor() as pool:
        return b"".join(pool.map(zlib.decompress, _chunks(memoryview(data))))


def _chunks(view: memoryview) -> Iterator[memoryview]:
    start = 0
    while start < len(view):
        (length,) = struct.unpack_from("<Q", view, start)
        if start + 8 + length > len(view):
            raise ValueError("the segment is cut short")
        yield view[start + 8 : start + 8 + length]
        start += 8 + length


def seal(record: Mapping[str, Any]) -> str:
    """A record as JSON, with the SHA-256 sum of its other values."""
    return json.dumps({**record, "sha256": _record_sum(record)}, indent=1) + "\n"


def sealed(record: Mapping[str, Any]) -> bool:
    """Whether a record is what `seal` made of it; also where it has no sum, as in earlier versions."""
    return "sha256" not in record or record["sha256"] == _record_sum(record)


def _record_sum(record: Mapping[str, Any]) -> str:
    values = {name: value for name, value in json.loads(json.dumps(record)).items() if name != "sha256"}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _segment_name(first: int, end: int) -> str:
    return f"checkpoints/replay-{first}-{end}.zz"


def _sum(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
