"""Power of the tests that `jaxdp test --sees KIND` chooses, without Z, given one Z and two, and of those they replace.

    python -m experiments.evidence.power [--replicates 400] [--parts NAME ...] [--out FILE]

One JSON line per (part, n, epsilon, test, alternative): rejections at level 0.05 and their Wilson interval. Columns are
scaled by public bounds of 4 sd; given Z, x and y share the wave exp(-z^2/2) sin 2z, z of sd 2 on bounds of 8 (given
two, the sum of the waves of both), and the effects are those of X's residual a on Y's: e is standard normal noise.
The part "sine design" is `jaxdp.simulate.sine_confounder` on such bounds,
for the defaults given one to three columns. Tests are built as the command line builds them.
"""

import argparse
import functools
import itertools
import json
from pathlib import Path

import jax
import jax.numpy as jnp

import jaxdp
from experiments.record import provenance
from jaxdp import catalogue
from jaxdp.data import Column, Data, Domain
from jaxdp.spec import Options

LEVEL = 0.05
ALTERNATIVES = {
    "none": 0,
    "linear 0.1": 1,
    "linear 0.25": 2,
    "quadratic 0.8": 3,
    "circle": 4,
    "product a e": 5,
    "variance exp(a/2)": 6,
    "sine 4a": 7,
}
MARGINAL = ("quantile-table", "partition-gcm", "conditional-kendall")
GIVEN_Z = ("feature-gcm", "band-gcm")
GIVEN_TWO = ("contrast-features", "contrast-gcm")
SETTINGS = ((1000, 1.0), (500, 1.0))
SETTINGS_OF_TWO = ((1000, 1.0), (4000, 1.0))


def columns(key, n: int, alternative, wave, num_z: int = 1):
    """x, y and z; `alternative` is the place of one in the list above, a float so that one program serves all."""
    key_z, key_a, key_e, key_turn = jax.random.split(key, 4)
    shape = (n,) if num_z == 1 else (n, num_z)
    z, a, e = 2 * jax.random.normal(key_z, shape), jax.random.normal(key_a, (n,)), jax.random.normal(key_e, (n,))
    turn = 2 * jnp.pi * jax.random.uniform(key_turn, (n,))
    effects = [0 * a, 0.1 * a, 0.25 * a, 0.8 * (a**2 - 1) / 2**0.5]
    ys = [*(effect + e for effect in effects), 2**0.5 * jnp.sin(turn) + 0.2 * e, a * e, jnp.exp(a / 2) * e]
    ys.append(jnp.sin(4 * a) + 0.5 * e)
    place = jnp.asarray(alternative, int)
    x = jnp.where(place == ALTERNATIVES["circle"], 2**0.5 * jnp.cos(turn) + 0.2 * a, a)
    shared = wave * jnp.sum((jnp.exp(-(z**2) / 2) * jnp.sin(2 * z)).reshape(n, num_z), axis=1)
    return (
        jnp.clip((x + shared) / 4, -1, 1),
        jnp.clip((jnp.stack(ys)[place] - shared) / 4, -1, 1),
        jnp.clip(z / 8, -1, 1),
    )


def without_z(key, n: int, alternative) -> Data:
    x, y, _ = columns(key, n, alternative, 0.0)
    return Data(x, y, None, Domain((Column(),), (Column(),)))


def given_z(key, n: int, alternative) -> Data:
    return Data(*columns(key, n, alternative, 1.0), Domain((Column(),), (Column(),), (Column(),)))


def given_two_z(key, n: int, alternative) -> Data:
    return Data(*columns(key, n, alternative, 1.0, 2), Domain((Column(),), (Column(),), (Column(), Column())))


def sine_design(key, n: int, depth: int, effect) -> Data:
    """`jaxdp.simulate.sine_confounder` on bounds of four sds, as a schema scales it."""
    drawn = jaxdp.simulate.sine_confounder(key, n, effect=effect, dim=depth)
    sides = (jnp.clip(part / 4, -1, 1) for part in (drawn.x, drawn.y))
    return Data(*sides, jnp.clip(drawn.z / 8, -1, 1), Domain((Column(),), (Column(),), (Column(),) * depth))


def sine_rows(replicates: int, done=()):
    """The default given one to three columns of Z on the sine design, n = 1000, epsilon 1."""
    for depth, effect in itertools.product((1, 2, 3), (0.0, 0.125, 0.25)):
        domain = Domain((Column(),), (Column(),), (Column(),) * depth)
        default = catalogue.default(domain)
        head = {"part": "sine design", "n": 1000, "epsilon": 1.0, "test": default.name}
        head |= {"alternative": f"effect {effect:g} given {depth}"}
        if json.dumps(head) in done:
            continue
        draw = functools.partial(sine_design, n=1000, depth=depth, effect=effect)
        test = default.build(1.0, domain, Options(num_records=1000))
        found = jaxdp.power.rejection_rate(test, draw, jax.random.key(17), replicates, level=LEVEL)
        low, high = map(float, found.interval())
        counts = {"rejections": int(found.rejections), "replicates": replicates, "rate": found.rate}
        yield head | counts | {"wilson_95": [low, high], **provenance()}


def rows(replicates: int, done=(), chosen=None):
    """One row for each setting, test and alternative of the chosen parts that is not done."""
    parts = (
        ("without z", without_z, MARGINAL, 0, SETTINGS),
        ("given z", given_z, GIVEN_Z, 1, SETTINGS),
        ("given two z", given_two_z, GIVEN_TWO, 2, SETTINGS_OF_TWO),
    )
    for part, design, names, num_z, settings in parts:
        if chosen is not None and part not in chosen:
            continue
        for n, epsilon in settings:
            for name in names:
                domain = Domain((Column(),), (Column(),), (Column(),) * num_z)
                test = catalogue.find(name).build(epsilon, domain, Options(num_records=n))
                for alternative, place in ALTERNATIVES.items():
                    head = {"part": part, "n": n, "epsilon": epsilon, "test": name, "alternative": alternative}
                    if json.dumps(head) in done:
                        continue
                    draw = functools.partial(design, n=n, alternative=float(place))
                    count = replicates * (5 if alternative == "none" else 1)
                    found = jaxdp.power.rejection_rate(test, draw, jax.random.key(17), count, level=LEVEL)
                    low, high = found.interval()
                    yield head | {
                        "rejections": int(found.rejections),
                        "replicates": count,
                        "rate": found.rate,
                        "wilson_95": [float(low), float(high)],
                        **provenance(),
                    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--parts", nargs="+", help="these parts alone, e.g. 'given two z'")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "power.jsonl")
    args = parser.parse_args()
    keys = ("part", "n", "epsilon", "test", "alternative")
    lines = args.out.read_text().splitlines() if args.out.exists() else []
    done = {json.dumps({key: json.loads(line)[key] for key in keys}) for line in lines}
    sine = sine_rows(5 * args.replicates, done) if args.parts is None or "sine design" in args.parts else ()
    for row in itertools.chain(rows(args.replicates, done, args.parts), sine):
        with args.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row["part"], row["n"], row["test"], row["alternative"], row["rate"], flush=True)


if __name__ == "__main__":
    main()
