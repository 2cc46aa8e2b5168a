"""Watch the features of a TorchRL agent: the trainer logs what the hook returns."""

import sys

import torch
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs.libs.gym import GymEnv
from torchrl.modules import QValueActor
from torchrl.objectives import DQNLoss
from torchrl.record.loggers import CSVLogger
from torchrl.trainers import ReplayBufferTrainer, Trainer

import gramian

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000

torch.manual_seed(0)
env = GymEnv("CartPole-v1")
body = nn.Sequential(nn.Linear(4, 64), nn.ReLU())
actor = QValueActor(nn.Sequential(body, nn.Linear(64, 2)), in_keys=["observation"], spec=env.action_spec)
loss_module = DQNLoss(actor, action_space=env.action_spec, delay_value=False)
trainer = Trainer(
    collector=Collector(env, actor, frames_per_batch=50, total_frames=agent_steps),
    total_frames=agent_steps,
    frame_skip=1,
    optim_steps_per_batch=10,
    loss_module=loss_module,
    optimizer=torch.optim.Adam(loss_module.parameters(), lr=5e-4),
    logger=CSVLogger("cartpole", log_dir="logs"),
    log_interval=50,
    progress_bar=False,
)
memory = TensorDictReplayBuffer(storage=LazyTensorStorage(10_000), batch_size=64)
ReplayBufferTrainer(memory, flatten_tensordicts=True).register(trainer)

watch = gramian.monitor(body, every=100)
trainer.register_op("post_steps_log", lambda _batch: watch.latest())
trainer.train()
