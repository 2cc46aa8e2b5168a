"""What the logs record of a learner: a batch looked at closely, beside the training and without changing it.

Features are raw (uncentred) whatever the arm.

| name | of a batch of n transitions |
| --- | --- |
| ``loss``, ``td_loss``, ``penalty_loss`` | J, its TD part, and κ · penalty |
| ``penalty`` | the arm's penalty without κ; 0 where κ = 0; of a combination the κ-weighted mean |
| ``td_error`` | mean_n abs(Q(s_n, a_n) - y_n), y_n the mean of the target where it is a distribution |
| ``q`` | mean_n Q(s_n, a_n), the mean of a distribution |
| ``feature_norm`` | mean_n ‖φ_n‖ |
| ``feature_cross`` | mean over n ≠ m of (φ_n·φ_m)²; NaN for n = 1 |
| ``feature_std`` | Σ_i of the standard deviation of φ_i over the batch, √(mean_n (φ_ni - mean φ_i)²) |
| ``active_features`` | share of the n·d entries of Φ that are not zero |
| ``grad_norm_head``, ``grad_norm_body`` | norm of the gradient of J with respect to the head, to the body |
| ``grad_norm_head_td``, ``grad_norm_body_td`` | the same of the TD part alone |
| ``grad_norm_head_penalty``, ``grad_norm_body_penalty`` | the same of κ · penalty alone |

Gradients are those of the loss, before `max_grad_norm` and Adam.
"""

import torch
from torch import Tensor

from gramian.deep.agent.batch import Batch
from gramian.deep.agent.heads import expected
from gramian.deep.agent.losses import Objective
from gramian.deep.agent.state import Layout, State
from gramian.penalties import gram_terms


def diagnose(objective: Objective, layout: Layout, state: State, batch: Batch) -> dict[str, Tensor]:
    """The quantities of this module's table by name, ``[P]`` each on the device of the parameters, without graph."""
    counter = state.updates.unsqueeze(1)
    targets = objective.targets(layout.views(state.online), layout.views(state.target), batch, counter)
    with torch.enable_grad():
        leaves = {name: view.detach().requires_grad_() for name, view in layout.views(state.online).items()}
        seen = objective.evaluate(leaves, targets, batch, counter)
        td, penalty = (
            _gradient(layout, leaves, seen.losses.components[name], keep_graph=name == "td")
            for name in ("td", "penalty")
        )
    features = seen.features.detach()
    samples = features.shape[1]
    numbers = {
        "loss": seen.losses.total,
        "td_loss": seen.losses.components["td"],
        "penalty_loss": seen.losses.components["penalty"],
        "penalty": seen.penalties,
        "td_error": (seen.values - expected(objective.model.spec.head, targets)).abs().mean(1),
        "q": seen.values.mean(1),
        "feature_norm": features.norm(dim=2).mean(1),
        # gram_terms divides the sum over the pairs by n²
        "feature_cross": gram_terms(features, centered=False).cross * samples / (samples - 1)
        if samples > 1
        else torch.full_like(seen.penalties, torch.nan),
        "feature_std": features.std(dim=1, correction=0).sum(1),
        "active_features": (features != 0).to(features.dtype).mean((1, 2)),
    }
    for part, places in (("head", slice(layout.body_size, None)), ("body", slice(0, layout.body_size))):
        numbers[f"grad_norm_{part}"] = (td[:, places] + penalty[:, places]).norm(dim=1)
        numbers[f"grad_norm_{part}_td"] = td[:, places].norm(dim=1)
        numbers[f"grad_norm_{part}_penalty"] = penalty[:, places].norm(dim=1)
    return {name: number.detach() for name, number in numbers.items()}


def _gradient(layout: Layout, leaves: dict[str, Tensor], losses: Tensor, *, keep_graph: bool) -> Tensor:
    """Rows ``[P, N]``, zero for parameters that the losses do not depend on."""
    if not losses.requires_grad:  # no run has a penalty
        return layout.flatten({name: torch.zeros_like(leaf) for name, leaf in leaves.items()})
    found = torch.autograd.grad(losses.sum(), list(leaves.values()), retain_graph=keep_graph, materialize_grads=True)
    return layout.flatten(dict(zip(leaves, found, strict=True)))
