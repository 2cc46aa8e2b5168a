"""Heads: what the outputs of a network say of the return, and the TD loss that goes with it. Pure functions.

| kind | outputs of an action | Q(s, a) | TD loss | source |
| --- | --- | --- | --- | --- |
| ``scalar`` | Q itself | | Huber or squared | Mnih et al. 2015 |
| ``categorical`` | logits of Z atoms on a fixed support | Σ_i z_i p_i | cross entropy (C51) | Bellemare et al. 2017 |
| ``quantile`` | Z quantiles, at τ_i = (i + ½)/Z | their mean | quantile Huber (QR) | Dabney et al. 2018a |
| ``implicit`` | a quantile at each of N random τ | their mean | quantile Huber (IQN) | Dabney et al. 2018b |

`targets` makes the target of a transition from the outputs of the target network at (s', a*); `td_losses` compares the
outputs at (s, a) with it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from gramian.deep.choices import HeadKind, TDLoss


@dataclass(frozen=True)
class Head:
    """The head of a network, common to all runs of a population.

    Attributes
    ----------
    kind
        See the table of this module.
    size
        Z: atoms or quantiles; for ``implicit`` N, the τ of the online network in an update; 1 for ``scalar``.
    support
        First and last atom of a ``categorical`` head.
    target_size, acting_size
        For ``implicit``: τ of the target network, and τ that an action is chosen by.
    dueling
        Outputs are a value and advantages minus their mean over the actions (Wang et al. 2016).
    noisy
        Dense layers have factorised Gaussian noise (Fortunato et al. 2018).
    """

    kind: HeadKind = "scalar"
    size: int = 1
    support: tuple[float, float] = (-10.0, 10.0)
    target_size: int = 64
    acting_size: int = 32
    dueling: bool = False
    noisy: bool = False

    @property
    def outputs(self) -> int:
        """Outputs of the network for one action."""
        return 1 if self.kind == "implicit" else self.size

    def atoms(self, like: Tensor) -> Tensor:
        """The support z, ``[Z]``, with the type and on the device of ``like``."""
        return torch.linspace(*self.support, self.size, dtype=like.dtype, device=like.device)

    def midpoints(self, count: int, like: Tensor) -> Tensor:
        """τ_i = (i + ½)/count, ``[1, count]``."""
        return (torch.arange(count, dtype=like.dtype, device=like.device) + 0.5).unsqueeze(0) / count


def values(head: Head, outputs: Tensor) -> Tensor:
    """Q from outputs ``[..., Z]``: ``[...]``; of a scalar head the outputs themselves."""
    if head.kind == "scalar":
        return outputs
    if head.kind == "categorical":
        return expected(head, outputs.softmax(-1))
    return outputs.mean(-1)  # here and below: quantiles, of both kinds


def targets(head: Head, rewards: Tensor, discounts: Tensor, following: Tensor) -> Tensor:
    """The target of r + γᵐ Z(s', a*): values ``[P, B]``, probabilities or quantiles ``[P, B, Z]``.

    ``discounts`` are γᵐ, 0 where s' is terminal; ``following`` the outputs of the target network at (s', a*).
    """
    if head.kind == "scalar":
        return rewards + discounts * following
    rewards, discounts = rewards.unsqueeze(-1), discounts.unsqueeze(-1)
    if head.kind == "categorical":
        return project(head, rewards + discounts * head.atoms(following), following.softmax(-1))
    return rewards + discounts * following


def expected(head: Head, targets: Tensor) -> Tensor:
    """The mean of targets: ``[P, B]``."""
    if head.kind == "scalar":
        return targets
    return (targets * head.atoms(targets)).sum(-1) if head.kind == "categorical" else targets.mean(-1)


def project(head: Head, places: Tensor, probabilities: Tensor) -> Tensor:
    """Probabilities of the support's atoms for a distribution on other places.

    Both are ``[..., Z]``. A place is clipped to the support; its probability is shared by the two atoms beside it, in
    proportion to nearness.
    """
    low, high = head.support
    step = (high - low) / (head.size - 1)
    distances = (places.clamp(low, high).unsqueeze(-2) - head.atoms(places).unsqueeze(-1)).abs() / step  # [..., Z, Z]
    return ((1 - distances).clamp(min=0) * probabilities.unsqueeze(-2)).sum(-1)


def td_losses(head: Head, loss: TDLoss, outputs: Tensor, taus: Tensor | None, targets: Tensor) -> Tensor:
    """The TD loss of each sample, ``[P, B]``, from the outputs at (s, a) and what `targets` gives.

    ``loss`` is that of a scalar head: ``huber``, ½δ² up to |δ| = 1 and |δ| - ½ beyond, or ``squared``, δ². ``taus`` are
    those of quantiles, ``[P, Z]`` or ``[1, Z]``.
    """
    if head.kind == "scalar":
        of_values = functional.huber_loss if loss == "huber" else functional.mse_loss
        return of_values(outputs, targets, reduction="none")
    if head.kind == "categorical":
        return -(targets * outputs.log_softmax(-1)).sum(-1)
    assert taus is not None
    return quantile_huber(outputs, taus, targets)


def quantile_huber(quantiles: Tensor, taus: Tensor, targets: Tensor) -> Tensor:
    """Σ_i mean_j |τ_i - 1{δ_ij < 0}| · huber(δ_ij) with δ_ij = target_j - quantile_i, ``[P, B]``.

    The arguments are ``[P, B, N]``, ``[P, N]`` or ``[1, N]``, and ``[P, B, M]``.
    """
    errors = targets.unsqueeze(2) - quantiles.unsqueeze(3)  # [P, B, N, M]
    sizes = errors.abs()
    huber = torch.where(sizes <= 1, 0.5 * errors.square(), sizes - 0.5)
    shares = (taus[:, None, :, None] - (errors < 0).to(errors.dtype)).abs()
    return (shares * huber).mean(3).sum(2)
