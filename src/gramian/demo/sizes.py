"""How much the demo does: everything that its time depends on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiments; the defaults take a few minutes on two cores."""

    regression_runs: int = 1_000
    """Of the regression; with its steps, the paper's."""
    regression_steps: int = 20_000
    car_runs: int = 20
    """Of every arm, step size and λ on Mountain Car."""
    car_episodes: int = 30
    car_most_steps: int = 2_000
    """Longest episode."""
    car_step_sizes: tuple[float, ...] = (0.3, 0.7, 1.1)
    """As α·k·d."""
    car_lambdas: tuple[float, ...] = (0.01, 0.1, 1.0)
    car_control_lambdas: tuple[float, ...] = (0.1, 1.0)
    """λ of the controls that have one."""
    study: str = "demo"
    """Name or path of the study that is trained."""
    states: int = 50_000
    """States of every trained run that its features are measured on."""
    replicates: int = 2_000
    """Bootstrap replicates of the report."""
