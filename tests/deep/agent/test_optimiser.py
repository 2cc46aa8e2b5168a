import pytest
import torch

from gramian.deep.agent.optimiser import Adam

RATES = (0.1, 0.003, 0.0)


def gradients(steps, runs=3, width=7):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(steps, runs, width, generator=generator, dtype=torch.float64) * 3


def trained(adam, grads, actives=None):
    theta = torch.linspace(-1, 1, grads[0].numel(), dtype=grads.dtype).view_as(grads[0]).clone()
    mean, square = torch.zeros_like(theta), torch.zeros_like(theta)
    history = []
    for number, grad in enumerate(grads, start=1):
        active = torch.ones(len(theta), dtype=torch.bool) if actives is None else actives[number - 1]
        norms, t = torch.linalg.vector_norm(grad, dim=1), torch.full((len(theta),), number)
        adam.step(theta, grad.clone(), mean, square, number=t, norms=norms, active=active)
        history.append((theta.clone(), mean.clone(), square.clone()))
    return history


@pytest.mark.parametrize("max_grad_norm", [None, 2.0])
@pytest.mark.parametrize("weight_decay", [0.0, 0.2])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-6)])
def test_every_run_equals_torch_optim(weight_decay, max_grad_norm, dtype, tolerance):
    grads = gradients(50).to(dtype)
    betas, epsilon = (0.9, 0.999), 1e-8
    adam = Adam(torch.tensor(RATES, dtype=torch.float64), betas, epsilon, weight_decay, max_grad_norm)
    theta, mean, square = trained(adam, grads)[-1]
    for run, rate in enumerate(RATES):
        parameter = torch.nn.Parameter(torch.linspace(-1, 1, 21, dtype=dtype).view(3, 7)[run].clone())
        optimiser = torch.optim.AdamW([parameter], lr=rate, betas=betas, eps=epsilon, weight_decay=weight_decay)
        if not weight_decay:
            optimiser = torch.optim.Adam([parameter], lr=rate, betas=betas, eps=epsilon)
        for grad in grads:
            parameter.grad = grad[run].clone()
            if max_grad_norm is not None:
                torch.nn.utils.clip_grad_norm_([parameter], max_grad_norm)
            optimiser.step()
        moments = optimiser.state[parameter]
        for ours, theirs in ((theta, parameter.detach()), (mean, moments["exp_avg"]), (square, moments["exp_avg_sq"])):
            torch.testing.assert_close(ours[run], theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf, 1e200])
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1, "max_grad_norm": 1.0}])
def test_an_inactive_run_keeps_every_bit_and_the_others_do_not_notice(bad, options):
    adam = Adam(torch.tensor(RATES, dtype=torch.float64), (0.9, 0.999), 1e-8, **options)
    healthy = gradients(6)
    sick = healthy.clone()
    sick[3:, 1] = bad
    actives = [torch.tensor([True, number < 3, True]) for number in range(6)]
    with_sick, without = trained(adam, sick, actives), trained(adam, healthy)
    for tensor, before in zip(with_sick[-1], with_sick[2], strict=True):
        assert torch.equal(tensor[1], before[1])
    for tensor, expected in zip(with_sick[-1], without[-1], strict=True):
        assert torch.equal(tensor[[0, 2]], expected[[0, 2]])
