"""DQN with TorchRL's loss module: the penalty on what goes into the head of the network."""

import sys

import torch
from tensordict.nn import TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs.libs.gym import GymEnv
from torchrl.modules import EGreedyModule, QValueActor
from torchrl.objectives import DQNLoss, SoftUpdate

import gramian  # +

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000

torch.manual_seed(0)
env = GymEnv("CartPole-v1")
env.set_seed(0)
body = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
head = nn.Linear(128, 2)
actor = QValueActor(nn.Sequential(body, head), in_keys=["observation"], spec=env.action_spec)
explore = EGreedyModule(env.action_spec, eps_init=1.0, eps_end=0.05, annealing_num_steps=10_000)
loss_module = DQNLoss(actor, action_space=env.action_spec, delay_value=True, double_dqn=True)
loss_module.make_value_estimator(gamma=0.99)
target_updater = SoftUpdate(loss_module, eps=0.995)
optimizer = torch.optim.Adam(loss_module.parameters(), lr=5e-4)
memory = TensorDictReplayBuffer(storage=LazyTensorStorage(10_000), batch_size=64)

reg = gramian.attach(head, ratio=0.1, on="input", inject=True)  # +

policy = TensorDictSequential(actor, explore)
for transitions in Collector(env, policy, frames_per_batch=50, total_frames=agent_steps):
    memory.extend(transitions)
    explore.step(transitions.numel())
    for _ in range(20):
        td_loss = loss_module(memory.sample())["loss"]
        optimizer.zero_grad()
        td_loss.backward()
        optimizer.step()
        target_updater.step()

reg.check()
print("penalty", float(reg.last.value), "ratio", float(reg.last.ratio), "kappa", float(reg.kappa))
