"""The null law of a released statistic as a curve, for pictures: p-value as a function of the statistic."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import null_laws
from jaxdp._base.kept_programs import kept_jit
from jaxdp.core import Release, Result

AGREEMENT = 1e-3
POINTS = 512  # of the curve, at a time


@dataclasses.dataclass(frozen=True)
class NullCurve:
    """A released number and its law under independence: tail(t (m,)) = P(|statistic| >= t), noise included."""

    statistic: float
    tail: Callable[[np.ndarray], np.ndarray]
    label: str


def null_curve(test, result: Result) -> NullCurve | None:
    """The curve behind a two-sided p-value of one number; None where there is none.

    test: as given to `run`. Everything used is released or public; the other released values stay fixed.
    """
    curve: NullCurve | None = None
    entry, label = (test.spec and test.spec.shown) or ("", "")
    if not entry and label and np.size(result.statistic) == 1:
        curve = _normal_curve(result, label)
    elif entry and test.epsilon is not None:
        curve = _entry_curve(test, result, entry, label)
    if curve is None:
        return None
    p_value = float(np.asarray(result.p_value))
    reproduced = float(curve.tail(np.array([abs(curve.statistic)]))[0])
    # A p-value that this law does not reproduce (Monte Carlo, Bonferroni) has no such curve.
    return curve if abs(reproduced - p_value) <= AGREEMENT * p_value + 1e-12 else None


def _normal_curve(result: Result, label: str) -> NullCurve:
    statistic = float(np.ravel(np.asarray(result.statistic))[0])
    return NullCurve(statistic, lambda t: np.asarray(null_laws.normal(np.asarray(t, float), 1.0)), label)


def _entry_curve(test, result: Result, name: str, label: str) -> NullCurve | None:
    release = result.release
    name, _, place = name.partition("/")
    parts = release.value if isinstance(release.value, dict) else {name: release.value}
    shown = np.asarray(parts.get(name, ()))
    if shown.ndim != 1 if place else shown.size != 1:  # of several pairs of columns
        return None
    index = (int(place),) if place else ()
    final = dataclasses.replace(test, epsilon=stage_epsilons(release)[-1])
    bare = dataclasses.replace(release, certificates=(), earlier=())  # static, and no input of a p-value

    def tail(t):
        t = np.asarray(t, float)
        length = -(-t.size // POINTS) * POINTS  # one shape, so that one program serves the number and the curve
        padded = np.resize(t, length).reshape(-1, POINTS)
        return np.concatenate([np.asarray(_p_values(final, bare, part, name, index)) for part in padded])[: t.size]

    return NullCurve(float(shown[index].item()), tail, label)


@functools.partial(kept_jit, quickly=True, static_argnums=(3, 4))
def _p_values(test, release: Release, values, name: str, index: tuple[int, ...]):
    """P-values of the release with its entry `name`, there at `index`, replaced by each of the values.

    All are arguments, none is built into the program, which may be kept on disk.
    """
    key = jax.random.key(0)  # not drawn from: these p-values are formulas

    def p_value(value):
        several = isinstance(release.value, dict)
        if index:
            value = jnp.asarray(release.value[name] if several else release.value).at[index].set(value)
        changed = {**release.value, name: value} if several else value
        return test.p_value(key, dataclasses.replace(release, value=changed))

    return jax.vmap(p_value)(values)


def stage_epsilons(release: Release) -> list[float]:
    """What each stage of a release cost, the last stage last."""
    earlier = [float(np.asarray(stage.cost.epsilon)) for stage in release.earlier]
    return [*earlier, float(np.asarray(release.cost.epsilon)) - sum(earlier)]
