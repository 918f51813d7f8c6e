"""The attack of the contract suite: how much of each bound of a case is reached, and what that must be."""

import dataclasses
import functools

import jax
import numpy as np

from jaxdp import core
from jaxdp.audit import bounds
from jaxdp.spec import CAUGHT, BestKnown, loaded

ROUNDING = 1e-9
SLACK = 1e-3  # of a declared share: rounding errors are part of the bound that is reached
STAGE_KEY = 5  # what stages release to the ones after them


def attack(case):
    """Path of every bound of every stage -> what was reached of it: by the worst pairs, and by search."""
    found = {}
    with jax.enable_x64(True):
        pairs, search = case.example.pairs(), case.example.search
        sample = [] if search.rounds is None else [_sample(case.data, search.records)]
        groups = {str(core.public_shapes(data)): (data, []) for data in sample}
        for before, after in pairs:
            groups.setdefault(str(core.public_shapes(before)), (before, []))[1].append((before, after))
        for number, (data, starts) in enumerate(groups.values()):
            for prefix, query in _stages(case, data):
                act = _searched if sample and number == 0 else _reached
                reached = act(case, query, starts)
                found = bounds.larger(found, {_path(prefix, name): best for name, best in reached.items()})
    return found


@functools.cache
def _sample(draw, n):
    with jax.enable_x64(True):
        return draw(jax.random.key(0), n)


def _stages(case, data):
    every = [*bounds.stages(case.test(1.0, core.num_records(data)), data, jax.random.key(STAGE_KEY))]
    return [("" if len(every) == 1 else name, query) for name, query in every]


def _path(prefix, name):
    return ".".join(part for part in (prefix, name) if part)


def _searched(case, query, starts):
    search = case.example.search
    return bounds.search(
        query,
        case.data,
        search.records,
        fixed=(*case.fixed, *search.held),
        starts=starts,
        replace=loaded(search.replace),
        view=loaded(search.view),
        rounds=search.rounds,
    )


def _reached(case, query, pairs):
    return bounds.reached_by(query, pairs, view=loaded(case.example.search.view))


def declared(case):
    """`reaches` by path; the path of the only bound of one stage is empty."""
    reaches = case.example.reaches
    return reaches if isinstance(reaches, dict) else {"": reaches}


def check(case, found):
    """No bound is passed, no value leaves its range, and every bound is reached as far as the case says."""
    wanted = declared(case)
    assert set(found) == set(wanted), f"bounds of {case.name} are {sorted(found)}, reaches= speaks of {sorted(wanted)}"
    for path, reached in found.items():
        share = wanted[path].share if isinstance(wanted[path], BestKnown) else wanted[path]
        assert reached.share <= 1.0 + ROUNDING, f"{case.name} {path} moves by {reached.share:.4f} of its bound"
        assert reached.outside == 0.0, f"{case.name} {path} leaves its public range by {reached.outside:.3g}"
        assert reached.share >= share - SLACK, f"{case.name} {path}: {reached.share:.4f} of the bound, not {share}"
        assert isinstance(wanted[path], BestKnown) or share > CAUGHT
        assert np.isfinite(reached.share)


def caught(case):
    """Paths of the bounds that are reached beyond `CAUGHT`."""
    return [path for path, share in declared(case).items() if not isinstance(share, BestKnown)]


def understate(case, factor, setattr):
    """Every stage of the case declares `factor` times its sensitivity; setattr: (class, name, value)."""
    with jax.enable_x64(True):
        queries = {type(query): query for _, query in _stages(case, _data_of(case))}
    for kind, query in queries.items():
        if hasattr(query.budget(), "decay"):  # a smooth sensitivity is part of the statistic
            setattr(kind, "statistic", _with_less_noise(kind.statistic, factor))
            bounds._statistics.clear_cache()
        else:
            setattr(kind, "sensitivity", _scaled(kind.sensitivity, factor))


def _data_of(case):
    search = case.example.search
    return case.example.pairs()[0][0] if search.rounds is None else _sample(case.data, search.records)


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
