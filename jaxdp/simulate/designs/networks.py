"""Forward sampling of discrete Bayesian networks on the device."""

import jax
import jax.numpy as jnp

from jaxdp._base import check
from jaxdp.data.networks import Network
from jaxdp.data.records import Records


def sample_network(key: jax.Array, network: Network, n: int) -> Records:
    """n independent records of the network: int32 codes (n, d) in the network's column order and state order."""
    check.at_least(1, n=n)
    columns: dict[str, jax.Array] = {}
    for variable_key, name in zip(jax.random.split(key, len(network.names)), network.order, strict=True):
        variable = network.variables[name]
        edges = jnp.cumsum(jnp.asarray(variable.probabilities, float), axis=-1)[..., :-1]
        row = edges[tuple(columns[parent] for parent in variable.parents)]
        position = jax.random.uniform(variable_key, (n, 1))
        columns[name] = jnp.sum(position >= jnp.broadcast_to(row, (n, edges.shape[-1])), axis=-1).astype(jnp.int32)
    return Records(jnp.stack([columns[name] for name in network.names], axis=1), network.columns)
