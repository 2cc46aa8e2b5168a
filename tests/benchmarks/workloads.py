"""Workloads that take a moment."""

from benchmarks.contestants import Workload


def tiny(contestant="gramian", game="minatar/breakout", preset="minatar", **changes):
    values = {
        "runs": 1,
        "arms": ("dqn",),
        "envs_per_run": 1,
        "capacity": 64,
        "prefill_agent_steps": 64,
        "device": "cpu",
        "warm_up_s": 0.0,
    }
    return Workload(contestant, game, preset, **(values | changes))
