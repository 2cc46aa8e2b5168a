"""Schedules: functions of the number of agent steps."""

from gramian.deep.training.config import Settings


def epsilon_at(settings: Settings, agent_steps: int) -> float:
    """Share of random actions at an agent step: 1 in the prefill, then a linear decay, then the final value.

    Examples
    --------
    >>> settings = Settings(prefill_agent_steps=100, epsilon_decay_agent_steps=1000, epsilon_final=0.02)
    >>> [epsilon_at(settings, t) for t in (0, 99, 100, 600, 1100, 5000)]
    [1.0, 1.0, 1.0, 0.51, 0.02, 0.02]
    """
    decayed = agent_steps - settings.prefill_agent_steps
    if decayed < 0:
        return 1.0
    if decayed >= settings.epsilon_decay_agent_steps:
        return settings.epsilon_final
    share = decayed / settings.epsilon_decay_agent_steps
    return settings.epsilon_initial + share * (settings.epsilon_final - settings.epsilon_initial)


def updates_at(settings: Settings, agent_steps: int) -> int:
    """Number of updates that are due once so many agent steps have been taken.

    Examples
    --------
    >>> settings = Settings(prefill_agent_steps=100, update_period_agent_steps=4)
    >>> [updates_at(settings, t) for t in (100, 103, 104, 108)]
    [0, 0, 1, 2]
    """
    return max(0, agent_steps - settings.prefill_agent_steps) // settings.update_period_agent_steps


def crossed(period: int, before: int, now: int) -> bool:
    """Whether a multiple of ``period`` lies in (before, now]."""
    return now // period > before // period
