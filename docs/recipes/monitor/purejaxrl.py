"""A loss in the style of PureJaxRL with a penalty on its features: compiled, for several seeds at once."""

import sys

import jax
import jax.numpy as jnp

from gramian import jax_penalties
from gramian.representation import measures

updates = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
KAPPA, GAMMA, RATE, INPUTS, WIDTH, ACTIONS, BATCH = 0.1, 0.99, 1e-2, 4, 64, 2, 32


def network(params, observations):
    """Action values and the last hidden features."""
    hidden = jax.nn.relu(observations @ params["w1"] + params["b1"])
    features = jax.nn.relu(hidden @ params["w2"] + params["b2"])
    return features @ params["w3"], features


def loss_fn(params, target_params, batch):
    """Mean squared TD error plus κ times the penalty; the features beside it."""
    values, features = network(params, batch["observation"])
    chosen = jnp.take_along_axis(values, batch["action"][:, None], 1)[:, 0]
    next_values, _ = network(target_params, batch["next_observation"])
    target = batch["reward"] + GAMMA * (1 - batch["done"]) * next_values.max(1)
    td_loss = jnp.square(chosen - jax.lax.stop_gradient(target)).mean()
    return td_loss + KAPPA * jax_penalties.gram_penalty(features), features


def make_batch(rng):
    """Transitions of a toy problem: the sign of the first number says which action is rewarded."""
    keys = jax.random.split(rng, 3)
    observation = jax.random.normal(keys[0], (BATCH, INPUTS))
    action = jax.random.randint(keys[1], (BATCH,), 0, ACTIONS)
    reward = jnp.where((observation[:, 0] > 0) == (action == 1), 1.0, 0.0)
    next_observation = jax.random.normal(keys[2], (BATCH, INPUTS))
    return {
        "observation": observation,
        "action": action,
        "reward": reward,
        "next_observation": next_observation,
        "done": jnp.ones(BATCH),
    }


def train(rng):
    """One run: a scan of updates. Returns the losses and the features of the last batch."""
    keys = jax.random.split(rng, 4)
    sizes = {"w1": (INPUTS, WIDTH), "w2": (WIDTH, WIDTH), "w3": (WIDTH, ACTIONS)}
    params = {
        name: jax.random.normal(key, size) / jnp.sqrt(size[0])
        for key, (name, size) in zip(keys, sizes.items(), strict=False)
    }
    params |= {"b1": jnp.zeros(WIDTH), "b2": jnp.zeros(WIDTH)}

    def update(params, key):
        (loss, features), gradient = jax.value_and_grad(loss_fn, has_aux=True)(params, params, make_batch(key))
        return jax.tree.map(lambda w, g: w - RATE * g, params, gradient), (loss, features)

    _, (losses, features) = jax.lax.scan(update, params, jax.random.split(keys[3], updates))
    return losses, features[-1]


losses, features = jax.jit(jax.vmap(train))(jax.random.split(jax.random.key(0), 2))
for seed, phi in enumerate(features):  # the measures take JAX arrays
    print(f"seed {seed}: loss {losses[seed, -1]:.3f}, effective rank {measures.effective_rank(phi):.1f}")
