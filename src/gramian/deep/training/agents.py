"""Agents by name: a head, and the settings that go with it.

| agent | head | other settings | source |
| --- | --- | --- | --- |
| ``dqn`` | scalar | | Mnih et al. 2015 |
| ``c51`` | categorical | | Bellemare et al. 2017 |
| ``qr`` | quantile | | Dabney et al. 2018a |
| ``iqn`` | implicit | | Dabney et al. 2018b |
| ``rainbow`` | categorical | 3 steps, prioritised replay | Castro et al. 2018 |
| ``full-rainbow`` | categorical | the same, double Q, dueling, noisy | Hessel et al. 2018 |

Every one of these settings can also be set alone, and goes before the agent's. The agent's go before the preset's: to
name an agent other than the preset's sets all of them.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from gramian.core.errors import UserError, unknown
from gramian.core.games import Kind
from gramian.deep.choices import HeadKind

if TYPE_CHECKING:
    from gramian.deep.agent.heads import Head

AgentName = Literal["dqn", "c51", "qr", "iqn", "rainbow", "full-rainbow"]
AGENTS: tuple[str, ...] = get_args(AgentName)

PLAIN: Mapping[str, Any] = {
    "n_step": 1,
    "double_q": False,
    "dueling": False,
    "noisy": False,
    "prioritized": False,
    "priority_exponent": 0.5,
    "importance_exponent": 0.5,
    "atoms": 51,
    "v_min": 0.0,
    "v_max": 0.0,
    "quantiles": 200,
    "tau_samples": 64,
    "target_tau_samples": 64,
    "acting_tau_samples": 32,
}
"""The settings that make an agent, as plain DQN has them."""
_RAINBOW = {"n_step": 3, "prioritized": True}
_PARTS: dict[str, tuple[HeadKind, Mapping[str, Any]]] = {
    "dqn": ("scalar", {}),
    "c51": ("categorical", {}),
    "qr": ("quantile", {}),
    "iqn": ("implicit", {}),
    "rainbow": ("categorical", _RAINBOW),
    "full-rainbow": ("categorical", {**_RAINBOW, "double_q": True, "dueling": True, "noisy": True}),
}
_OWN: dict[HeadKind, tuple[tuple[str, ...], str]] = {
    "categorical": (("atoms", "v_min", "v_max"), "atoms"),
    "quantile": (("quantiles",), "fixed quantiles"),
    "implicit": (("tau_samples", "target_tau_samples", "acting_tau_samples"), "random quantiles"),
}
"""Settings that belong to one head, and what the others lack."""
_LARGEST_RETURN: dict[Kind, float] = {"atari": 10.0, "minatar": 100.0, "cartpole": 100.0, "gym": 100.0}
"""Where the support of a categorical head ends if no other is asked for, as in Dopamine's settings for these games."""


def agent_parts(agent: str) -> dict[str, Any]:
    """The settings that naming an agent sets."""
    return {"agent": agent, **PLAIN, **_parts(agent)[1]}


def check_agent(settings: Mapping[str, Any]) -> None:
    """Refuse settings that cannot be, or that the agent's head does not have."""
    agent = settings["agent"]
    kind = _parts(agent)[0]
    for head, (names, what) in _OWN.items():
        for name in names:
            if head != kind and settings[name] != PLAIN[name]:
                raise UserError(f"{name} is {settings[name]}, but agent {agent!r} has no {what}; omit {name}")
            if isinstance(PLAIN[name], int) and settings[name] < (least := 2 if name == "atoms" else 1):
                raise UserError(f"{name} is {settings[name]}; it must be at least {least}")
    low, high = settings["v_min"], settings["v_max"]
    if (low, high) != (0, 0) and not -math.inf < low < high < math.inf:
        raise UserError(f"v_min is {low} and v_max {high}; v_min must be less than v_max, and both finite")


def head_of(settings: Mapping[str, Any], game: Kind) -> "Head":
    """The head of an agent that plays a kind of game."""
    from gramian.deep.agent.heads import Head

    kind = _parts(settings["agent"])[0]
    shape: dict[str, Any] = {"dueling": settings["dueling"], "noisy": settings["noisy"]}
    if kind == "categorical":
        low, high = settings["v_min"], settings["v_max"]
        largest = _LARGEST_RETURN[game]
        shape |= {"size": settings["atoms"], "support": (low, high) if low < high else (-largest, largest)}
    elif kind == "quantile":
        shape |= {"size": settings["quantiles"]}
    elif kind == "implicit":
        sizes = ("tau_samples", "target_tau_samples", "acting_tau_samples")
        shape |= dict(zip(("size", "target_size", "acting_size"), (settings[name] for name in sizes), strict=True))
    return Head(kind, **shape)


def _parts(agent: str) -> tuple[HeadKind, Mapping[str, Any]]:
    if agent not in _PARTS:
        raise unknown("agent", agent, AGENTS)
    return _PARTS[agent]
