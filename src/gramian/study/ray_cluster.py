"""The executor of a Ray cluster: one task for each population.

Ray places the tasks, notices when a worker or a node dies, and takes the task up again elsewhere; the population then
goes on from its last checkpoint. The study's folder must lie on a path that all nodes see.
"""

import logging
import os
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gramian.core.errors import UserError, WorkFailed
from gramian.deep.training.provenance import own_command
from gramian.study.cost import Hardware
from gramian.study.worker import FUNCTIONS, SAVING_S, Outcome, not_stopped, perform

_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}


def connect(address: str) -> None:
    """Join the Ray cluster at ``host:port`` or ``auto``; where it is empty, one that runs here, else one is started."""
    if find_spec("ray") is None:
        raise UserError("--executor ray needs Ray; it comes with: pip install 'gramian[ray]'")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if ray.is_initialized():
        return
    wanted = address or os.environ.get("RAY_ADDRESS", "")
    try:
        if wanted != "local":
            with suppress(*(() if wanted else (ConnectionError,))):
                ray.init(address=wanted or "auto", **_QUIET)
                return
        _start_on_loopback()
    except (ConnectionError, ValueError, RuntimeError) as error:
        why = " ".join(str(error).split())
        raise UserError(f"cannot join a Ray cluster at {address or 'this machine'!r}: {why}") from error


def _start_on_loopback() -> None:
    """Start a cluster that no other machine can reach: who reaches one can run programs in it."""
    import ray
    from ray._private import ray_constants

    # Ray takes the machine's own address instead of 127.0.0.1 where this is on, as it is on Linux
    os.environ[ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR] = "0"
    ray_constants.ENABLE_RAY_CLUSTER = False
    ray.init(address="local", _node_ip_address="127.0.0.1", include_dashboard=False, **_QUIET)


def ray_hardware(device: str) -> Hardware:
    """What the cluster has, as a task on one of its nodes finds it; ``auto`` is CUDA where any node has a GPU."""
    import ray

    nodes = [node for node in ray.nodes() if node["Alive"]]
    total = ray.cluster_resources()
    gpus, cores = int(total.get("GPU", 0)), max(1, int(total.get("CPU", 1)))
    if device == "cuda" and not gpus:
        raise UserError("device 'cuda' is not there: no node of the Ray cluster has a GPU; choose cpu or auto")
    cuda = gpus > 0 and device != "cpu"
    found = _ask("probe", {"device": "cuda" if cuda else "cpu"}, num_gpus=1 if cuda else 0)
    return Hardware(
        device=found["device"],
        name=found["name"],
        places=gpus if cuda else cores,
        units=gpus if cuda else len(nodes),
        free_bytes=found["free_bytes"],
        cores=cores,
    )


class RayExecutor:
    """Tasks on the cluster that this process has joined; Ray reserves ``num_cpus``, … and the node's memory for each.

    Ray takes up a population that failed, or whose process or node died, ``retries`` times. ``at_once`` is the most
    tasks that Ray is given at the same time; 0 gives it all.
    """

    def __init__(
        self,
        retries: int,
        emulator_threads: int,
        stall_s: float = 0.0,
        *,
        num_cpus: float,
        num_gpus: float,
        memory_bytes: int,
        at_once: int = 0,
    ) -> None:
        self.emulator_threads, self._stall_s, self._at_once = emulator_threads, stall_s, at_once
        self._placed = {"num_cpus": num_cpus, "num_gpus": num_gpus, "memory": memory_bytes}
        self._retries = retries
        self._pending: dict[Any, str] = {}
        self._given_up: dict[str, float] = {}
        """Since when."""
        self._cancelled: set[Any] = set()
        self._check_feasible()

    def _check_feasible(self) -> None:
        """Ray waits for ever for a node that can take a task; better to say at once that there is none."""
        import ray

        names = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
        needed = {names[name]: amount for name, amount in self._placed.items() if amount}
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if not any(all(node.get(name, 0) >= amount for name, amount in needed.items()) for node in nodes):
            asked = ", ".join(f"{name} {amount:,}" for name, amount in needed.items())
            raise UserError(f"no node of the Ray cluster has what a population needs ({asked}); lower --population")

    def call(self, function: str, **arguments: Any) -> Any:
        """Let some node do something, with the resources of a population."""
        return _ask(function, arguments, **self._placed)

    def run(self, study: Path, populations: Sequence[str]) -> Iterator[Outcome]:
        """Do the populations; gives what came of each as it becomes known."""
        import ray

        task = ray.remote(_perform).options(
            **self._placed, max_retries=self._retries, retry_exceptions=[WorkFailed], name="population"
        )
        waiting = deque(populations)
        while waiting or self._pending:
            while waiting and not 0 < self._at_once <= len(self._pending):
                population = waiting.popleft()
                if population in self._given_up:
                    yield Outcome(population, "stopped")
                    continue
                asked = task.remote(str(study), population, self.emulator_threads, own_command(), self._stall_s)
                self._pending[asked] = population
            if not self._pending:
                break
            (finished, *_), _ = ray.wait(list(self._pending), num_returns=1)
            population = self._pending.pop(finished)
            try:
                yield Outcome(**ray.get(finished))
            except ray.exceptions.RayError as error:
                given_up = population in self._given_up
                yield Outcome(population, "stopped") if given_up else Outcome(population, "failed", _reason(error))

    def stop(self, population: str) -> None:
        """Do no more of a population than to save it; called again later than `SAVING_S`, not even that."""
        import ray

        waited_s = time.monotonic() - self._given_up.setdefault(population, time.monotonic())
        for task in [task for task, name in list(self._pending.items()) if name == population]:
            if waited_s > SAVING_S:
                print(not_stopped(1, SAVING_S), file=sys.stderr)
                ray.cancel(task, force=True)
            elif task not in self._cancelled:  # told twice, a task would not wait for what it is saving
                self._cancelled.add(task)
                ray.cancel(task, force=False)

    def close(self) -> None:
        """Tell the tasks that are left to stop; those at work save first, but the wait is bounded."""
        import ray

        for task in self._pending:
            ray.cancel(task, force=False)
        if self._pending:
            _, late = ray.wait(list(self._pending), num_returns=len(self._pending), timeout=SAVING_S)
            if late:
                print(not_stopped(len(late), SAVING_S), file=sys.stderr)
            for task in late:
                ray.cancel(task, force=True)
            self._pending.clear()
        ray.shutdown()


def _reason(error: Exception) -> str:
    """Why a task failed: what it raised, or what Ray says of its process or node."""
    import ray

    if isinstance(error, ray.exceptions.RayTaskError):
        return " ".join(str(error.cause).split())
    return f"{type(error).__name__}: {' '.join(str(error).split()).partition('. ')[0]}"


def _ask(function: str, arguments: dict[str, Any], **placed: float) -> Any:
    import ray

    try:
        reply = ray.get(ray.remote(_call).options(**placed).remote(function, arguments))
    except ray.exceptions.WorkerCrashedError as error:
        raise UserError(f"the Ray worker that was to {function} died, again and again; its log tells more") from error
    if "complaint" in reply:
        raise UserError(reply["complaint"])
    return reply["result"]


def _call(function: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """On a node: one of `gramian.study.worker.FUNCTIONS`."""
    try:
        return {"result": FUNCTIONS[function](**arguments)}
    except UserError as error:
        return {"complaint": str(error)}


def _perform(study: str, population: str, emulator_threads: int, command: list[str], stall_s: float) -> dict[str, Any]:
    """On a node: do a population; a failure is raised, so that Ray tries again."""
    outcome = perform(study, population, emulator_threads, command, stall_s)
    if outcome["state"] == "failed":
        raise WorkFailed(outcome["reason"])
    return outcome
