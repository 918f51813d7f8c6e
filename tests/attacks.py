"""The attack of the contract suite: how much of each bound of a case is reached, and what that must be."""

import dataclasses
import functools

import jax
import numpy as np

from jaxdp import core
from jaxdp.audit import attack as attacks
from jaxdp.audit import bounds
from jaxdp.audit.attack import ROUNDING, SLACK
from jaxdp.examples import CAUGHT, BestKnown

STAGE_KEY = 5  # what stages release to the ones after them


def attack(case):
    """Path of every bound of every stage -> what was reached of it: by the worst pairs, and by search."""
    return attacks.attack(case.test, case.example, _sample(case), jax.random.key(STAGE_KEY), held=case.fixed)


def _sample(case):
    search = case.example.search
    return None if search.rounds is None else _drawn(case.data, max(search.records, case.example.min_records))


@functools.cache
def _drawn(draw, n):
    with jax.enable_x64(True):
        return draw(jax.random.key(0), n)


def declared(case):
    """`reaches` by path; the path of the only bound of one stage is empty."""
    reaches = case.example.attack_tightness
    return reaches if isinstance(reaches, dict) else {"": reaches}


def check(case, found):
    """No bound is passed, no value leaves its range, and every bound is reached as far as the case says."""
    wanted = declared(case)
    assert set(found) == set(wanted), (
        f"bounds of {case.name} are {sorted(found)}, attack_tightness= speaks of {sorted(wanted)}"
    )
    for path, reached in found.items():
        share = wanted[path].share if isinstance(wanted[path], BestKnown) else wanted[path]
        assert reached.share <= 1.0 + ROUNDING, (
            f"{case.name} {path} moves by {reached.share:.4f} of its bound: its sensitivity is too small"
        )
        assert reached.outside == 0.0, (
            f"{case.name} {path} leaves its public range by {reached.outside:.3g}: widen lower= or upper="
        )
        assert reached.share >= share - SLACK, (
            f"{case.name} {path}: {reached.share:.4f} of the bound, attack_tightness= says {share}. Make the "
            "pair of the proof by hand (worst_pairs= of its Example), or tighten the bound; where neither is possible, "
            "attack_tightness=BestKnown(share, because)"
        )
        assert isinstance(wanted[path], BestKnown) or share > CAUGHT, (
            f"attack_tightness={share} of {case.name} {path} finds no bound that is a tenth too small: make worse "
            "pairs by hand (worst_pairs=), or say why there are none: BestKnown(share, because)"
        )
        assert np.isfinite(reached.share)


def caught(case):
    """Paths of the bounds that are reached beyond `CAUGHT`."""
    return [path for path, share in declared(case).items() if not isinstance(share, BestKnown)]


def stages(case):
    """class -> query of every stage that an attack of the case looks at."""
    with jax.enable_x64(True):
        data = case.example.pairs()[0][0] if _sample(case) is None else _sample(case)
        return {type(query): query for _, query in attacks.stages(case.test, data, jax.random.key(STAGE_KEY))}


def understate(case, factor, setattr):
    """Every stage of the case declares `factor` times its sensitivity; setattr: (class, name, value).

    Returns whether a statistic changes with it, and so its programs.
    """
    has_other_statistics = False
    for kind, query in stages(case).items():
        if hasattr(query.mechanism_in_force(), "decay"):  # a smooth sensitivity is part of the statistic
            setattr(kind, "statistic", _with_less_noise(kind.statistic, factor))
            bounds._statistics.clear_cache()
            has_other_statistics = True
        else:
            setattr(kind, "sensitivity", _scaled(kind.sensitivity, factor))
    return has_other_statistics


def _scaled(sensitivity, factor):
    def scaled(self, num_records):
        return jax.tree.map(
            lambda part: dataclasses.replace(part, bound=factor * part.bound),
            sensitivity(self, num_records),
            is_leaf=lambda node: isinstance(node, core.Sensitivity),
        )

    return scaled


def _with_less_noise(statistic, factor):
    def scaled(self, key, data):
        value, smooth = statistic(self, key, data)
        return value, factor * smooth

    return scaled
