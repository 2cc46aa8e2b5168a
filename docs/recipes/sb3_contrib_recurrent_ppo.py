"""RecurrentPPO of sb3-contrib: its batches of sequences are padded, and the padding does not count."""

import sys

from sb3_contrib import RecurrentPPO

import gramian  # +

agent_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000

model = RecurrentPPO("MlpLstmPolicy", "CartPole-v1", n_steps=min(128, agent_steps), batch_size=64, seed=0)
reg = gramian.attach(model.policy.value_net, ratio=0.1, on="input", inject=True)  # +
batches = model.rollout_buffer.get  # +


def masked_batches(batch_size=None):  # +
    """Batches of the rollout; the rows of each that are no padding are set just before it is used."""
    for batch in batches(batch_size):  # +
        reg.mask = batch.mask > 0  # +
        yield batch  # +


model.rollout_buffer.get = masked_batches  # +

model.learn(agent_steps)
reg.check()
print("penalty", float(reg.last.value), "ratio", float(reg.last.ratio), "kappa", float(reg.kappa))
