"""SAC with TorchRL's loss module: the penalty on its critics; the actor that is trained through them is left alone."""

import sys

import torch
from tensordict.nn import TensorDictModule
from tensordict.nn.distributions import NormalParamExtractor
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs.libs.gym import GymEnv
from torchrl.modules import ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import SACLoss, SoftUpdate

import gramian  # +

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000

torch.manual_seed(0)
env = GymEnv("Pendulum-v1")
env.set_seed(0)


class Critic(nn.Module):
    """Q(s, a) with a head of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
        self.head = nn.Linear(128, 1)

    def forward(self, observation: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        """Values ``[n, 1]``."""
        return self.head(self.body(torch.cat([observation, action], -1)))


critic = Critic()
policy_net = nn.Sequential(nn.Linear(3, 128), nn.ReLU(), nn.Linear(128, 2), NormalParamExtractor())
policy = TensorDictModule(policy_net, in_keys=["observation"], out_keys=["loc", "scale"])
bounds = {"low": env.action_spec.space.low, "high": env.action_spec.space.high}
actor = ProbabilisticActor(
    policy, spec=env.action_spec, in_keys=["loc", "scale"], distribution_class=TanhNormal, distribution_kwargs=bounds
)
value = ValueOperator(critic, in_keys=["observation", "action"])
loss_module = SACLoss(actor, value, num_qvalue_nets=2, deactivate_vmap=True)  # + hooks see no gradient inside vmap
target_updater = SoftUpdate(loss_module, eps=0.995)
optimizer = torch.optim.Adam(loss_module.parameters(), lr=3e-4)
memory = TensorDictReplayBuffer(storage=LazyTensorStorage(10_000), batch_size=64)

only = gramian.depends_only_on(loss_module.qvalue_network_params)  # +
reg = gramian.attach(critic.head, ratio=0.1, on="input", inject=True, when=only)  # +

for transitions in Collector(env, actor, frames_per_batch=50, total_frames=agent_steps):
    memory.extend(transitions)
    for _ in range(50):
        losses = loss_module(memory.sample())
        optimizer.zero_grad()
        sum(losses[name] for name in ("loss_actor", "loss_qvalue", "loss_alpha")).backward()
        optimizer.step()
        target_updater.step()

reg.check()
print("penalty", float(reg.last.value), "ratio", float(reg.last.ratio), "kappa", float(reg.kappa))
