"""Designs with discrete columns: ordered codes, mixed columns, case/control tables, queries about a network."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp.data.dataset import BINARY, CATEGORICAL, CONTINUOUS, ORDINAL, Column, Data, Domain, equally_spaced
from jaxdp.data.networks import Network, load
from jaxdp.randomness import normals
from jaxdp.simulate.designs.confounder import wave
from jaxdp.simulate.designs.networks import sample_network


def ordered_codes(latent, levels: int):
    """Codes 0, ..., levels - 1 (int32) of a latent variable: thresholds with equal standard normal mass."""
    return jnp.clip(jnp.floor(norm.cdf(latent) * levels).astype(jnp.int32), 0, levels - 1)


def level_column(levels: int, name: str = "", kind: str = ORDINAL) -> Column:
    """Description of a coded column."""
    return Column(BINARY if levels == 2 else kind, levels, name)


def discrete_confounder(
    key: jax.Array,
    n: int,
    *,
    effect: ArrayLike = 0.0,
    levels_x: int = 3,
    levels_y: int = 3,
    levels_z: tuple[int, ...] = (4,),
    slope: ArrayLike = 1.5,
) -> Data:
    """Ordered codes that depend on discrete Z: x, y int32 (n,), z int32 (n,) or (n, len(levels_z)).

    Z_j uniform on its levels; latent X = slope m(Z) + N_X, latent Y = slope m(Z) + N_Y + effect N_X with m the mean of
    the Z_j scaled to [-1, 1]; codes by thresholds of equal normal mass. effect 0: X independent of Y given Z, exactly.
    """
    check.at_least(2, levels_x=levels_x, levels_y=levels_y, levels_z=min(levels_z))
    key_z, key_x, key_y = jax.random.split(key, 3)
    sizes = np.array(levels_z)[None, :]
    z = jnp.minimum(jnp.floor(jax.random.uniform(key_z, (n, sizes.size)) * sizes).astype(jnp.int32), sizes - 1)
    middle = jnp.mean(equally_spaced(z, sizes), axis=1)
    noise_x, noise_y = normals.normal(key_x, (n,)), normals.normal(key_y, (n,))
    x = ordered_codes(slope * middle + noise_x, levels_x)
    y = ordered_codes((slope * middle + noise_y + effect * noise_x) / jnp.sqrt(1.0 + effect**2), levels_y)
    domain = Domain(
        (level_column(levels_x, "x"),),
        (level_column(levels_y, "y"),),
        tuple(level_column(int(size), f"z{j}") for j, size in enumerate(levels_z)),
    )
    return Data(x, y, z[:, 0] if sizes.size == 1 else z, domain=domain)


def mixed_confounder(
    key: jax.Array,
    n: int,
    *,
    effect: ArrayLike = 0.0,
    levels_y: int = 2,
    levels_z: int = 3,
    complexity: ArrayLike = 2.0,
    shift: ArrayLike = 0.5,
    noise_sd: ArrayLike = 1.0,
    limit: ArrayLike = 4.0,
    coded: bool = False,
) -> Data:
    """Continuous X, ordered Y, one continuous and one categorical Z; x, y of shape (n,), z (n, 2).

    Z_1 uniform on [-1, 1], Z_2 uniform on its levels. X = (f_s(2 Z_1) + shift m(Z_2) + N_X)/limit, cut to [-1, 1]; Y
    thresholds -f_s(2 Z_1) + shift m(Z_2) + N_Y + effect N_X at equal normal mass; m scales codes to [-1, 1].
    coded: y as codes 0, 1, ... instead of values equally spaced on [-1, 1].
    """
    check.at_least(2, levels_y=levels_y, levels_z=levels_z)
    key_z, key_group, key_x, key_y = jax.random.split(key, 4)
    z = jax.random.uniform(key_z, (n,), minval=-1.0, maxval=1.0)
    group = jax.random.randint(key_group, (n,), 0, levels_z)
    shared, moved = wave(2.0 * z, complexity), shift * equally_spaced(group, levels_z)
    noise_x, noise_y = noise_sd * normals.normal(key_x, (n,)), noise_sd * normals.normal(key_y, (n,))
    x = jnp.clip((shared + moved + noise_x) / limit, -1.0, 1.0)
    y = ordered_codes(moved - shared + noise_y + effect * noise_x, levels_y)
    column_y = level_column(levels_y, "y") if coded else Column(CONTINUOUS, levels_y, "y")
    domain = Domain((Column(name="x"),), (column_y,), (Column(name="z"), level_column(levels_z, "group", CATEGORICAL)))
    scaled = y if coded else equally_spaced(y, levels_y)
    return Data(x, scaled, jnp.stack([z, group.astype(z.dtype)], axis=1), domain=domain)


def case_control(
    key: jax.Array, n: int, *, effect: ArrayLike = 0.0, frequency: ArrayLike = 0.3, num_cases: int | None = None
) -> Data:
    """A 2x2 table: x in {0, 1} int32 (n,), y the public group (1 for the first num_cases records, default n // 2).

    P(x = 1) = frequency among controls and frequency + effect among cases (cut to [0, 1]).
    """
    cases = n // 2 if num_cases is None else num_cases
    check.at_least(1, num_cases=cases, num_controls=n - cases)
    y = jnp.asarray(np.repeat([1, 0], [cases, n - cases]), jnp.int32)
    rate = jnp.clip(frequency + effect * y, 0.0, 1.0)
    x = (jax.random.uniform(key, (n,)) < rate).astype(jnp.int32)
    return Data(x, y, domain=Domain((Column(BINARY, 2, "x"),), (Column(BINARY, 2, "y"),)))


def network_query(
    key: jax.Array,
    n: int,
    *,
    network: str | Network = "asia",
    x: str = "asia",
    y: str = "smoke",
    given: tuple[str, ...] = (),
) -> Data:
    """Records of a Bayesian network as the data of one query: x, y int32 (n,), z (n, len(given)) or None.

    network: a built-in name (`data.networks.names()`) or a `Network`. The hypothesis holds if `separated` says so.
    """
    network = load(network) if isinstance(network, str) else network
    records = sample_network(key, network, n)
    place = {name: j for j, name in enumerate(network.names)}
    for name in (x, y, *given):
        if name not in place:
            raise ValueError(f"the network has no variable {name!r}; it has {', '.join(network.names)}.")
    return records.query(place[x], place[y], [place[name] for name in given])


def separated(network: str | Network, x: str, y: str, given: tuple[str, ...] = ()) -> bool:
    """Whether x and y are d-separated given others, by the moral graph of their ancestors."""
    network = load(network) if isinstance(network, str) else network
    parents = {name: set(variable.parents) for name, variable in network.variables.items()}
    kept, todo = set(), [x, y, *given]
    while todo:
        name = todo.pop()
        if name not in kept:
            kept.add(name)
            todo.extend(parents[name])
    neighbours: dict[str, set[str]] = {name: set() for name in kept}
    for name in kept:
        family = [name, *parents[name]]
        for one in family:
            neighbours[one].update(other for other in family if other != one)
    seen, todo = set(given), [x]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo.extend(neighbours[name])
    return y not in seen
