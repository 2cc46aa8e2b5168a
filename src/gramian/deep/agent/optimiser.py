"""Adam for a population: every run has its own learning rate, and may be left out of a step."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.optim.adam import adam


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma & Ba 2015) with decoupled weight decay (Loshchilov & Hutter 2019), on rows ``[P, N]``.

    For run p with gradient g at its t-th step,

        θ ← θ(1 - α_p·wd);   m ← β₁m + (1 - β₁)g;   v ← β₂v + (1 - β₂)g²
        θ ← θ - α_p · m/(1 - β₁ᵗ) / (√(v/(1 - β₂ᵗ)) + ε)

    which is ``torch.optim.AdamW``, and without weight decay ``torch.optim.Adam``.

    Attributes
    ----------
    learning_rates
        α, float64 ``[P]``.
    betas, epsilon, weight_decay
        β₁ and β₂, ε, wd.
    max_grad_norm
        A run's gradient g is first scaled to at most this norm, as by ``torch.nn.utils.clip_grad_norm_``.
    """

    learning_rates: Tensor
    betas: tuple[float, float]
    epsilon: float
    weight_decay: float = 0.0
    max_grad_norm: float | None = None

    def select(self, runs: slice) -> "Adam":
        """The optimiser of some runs of the population."""
        return replace(self, learning_rates=self.learning_rates[runs])

    def step(
        self,
        parameters: Tensor,
        gradients: Tensor,
        mean: Tensor,
        square: Tensor,
        *,
        number: Tensor,
        norms: Tensor,
        active: Tensor,
    ) -> None:
        """Take one step, in place.

        Parameters
        ----------
        parameters, mean, square
            θ, m and v, ``[P, N]``, changed in place.
        gradients
            g, ``[P, N]``; used up.
        number
            t of each run, int64 ``[P]``, 1 at the first step.
        norms
            ‖g‖ of each run, ``[P]``; finite for active runs.
        active
            bool ``[P]``. The other runs stay as they are to the last bit, whatever their gradient, NaN included.
        """
        if parameters.device.type == "cpu" and not torch.compiler.is_compiling():
            for run in active.nonzero().flatten().tolist():
                if self.max_grad_norm is not None:
                    gradients[run] *= min(1.0, self.max_grad_norm / (float(norms[run]) + 1e-6))
                self._step_fused(run, *(tensor[run] for tensor in (parameters, gradients, mean, square, number)))
            return
        # The coefficients are float64: in float32 1 - 0.999 has but four digits.
        beta1, beta2 = self.betas
        chosen = active.double()
        rates = self.learning_rates * chosen
        correction1, correction2 = (1 - beta ** number.double() for beta in self.betas)
        root = correction2.sqrt()
        scale = chosen
        if self.max_grad_norm is not None:
            scale = torch.where(active, (self.max_grad_norm / (norms.double() + 1e-6)).clamp(max=1), 0.0)

        def column(values: Tensor) -> Tensor:
            return values.to(parameters.dtype).unsqueeze(1)

        # A factor of zero would leave NaN as it is. (Masking the rows by torch.where costs several times these passes.)
        gradients.nan_to_num_(0.0, 0.0, 0.0).mul_(column(scale))
        mean.lerp_(gradients, column((1 - beta1) * chosen))
        square.mul_(column(1 - (1 - beta2) * chosen)).addcmul_(gradients, gradients, value=1 - beta2)
        # The gradients have done their work: their memory takes the step, and none need be fetched.
        step = torch.sqrt(square, out=gradients).add_(column(self.epsilon * root))
        torch.div(mean, step, out=step)
        if self.weight_decay:
            parameters.mul_(column(1 - rates * self.weight_decay))
        parameters.addcmul_(step, column(rates * root / correction1), value=-1)

    def _step_fused(
        self, run: int, parameters: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, number: Tensor
    ) -> None:
        """The step of one run by torch's kernel for the CPU: one pass over the memory instead of a dozen."""
        adam(
            [parameters],
            [gradient],
            [mean],
            [square],
            [],
            [number.float() - 1],
            fused=True,
            decoupled_weight_decay=True,
            amsgrad=False,
            beta1=self.betas[0],
            beta2=self.betas[1],
            lr=self.learning_rates[run].item(),
            weight_decay=self.weight_decay,
            eps=self.epsilon,
            maximize=False,
        )
