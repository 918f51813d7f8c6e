"""Whole causal searches as subjects of an audit: neighbours found by attack, the released graph as the outcome."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base.places import loaded
from jaxdp.audit.epsilon import Bound, lower_bound, outcomes_bound
from jaxdp.audit.pairs import gaussian_rho
from jaxdp.core import AdditiveMechanism, Norm, Relation, Sensitivity
from jaxdp.data.dataset import ORDINAL, Column
from jaxdp.data.records import Records, as_records
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.decision_query import default_query
from jaxdp.discovery.methods.pc import pc
from jaxdp.discovery.spec import AUDITED_DELTA, AUDITED_Z, SearchAudit, find, searches
from jaxdp.independence.ranks.conditional_kendall import ConditionalKendall
from jaxdp.mechanisms.sparse_vector import SparseVector
from jaxdp.noise.recorder import Tape
from jaxdp.noise.source import FloatNoise
from jaxdp.randomness import keys
from jaxdp.randomness.keys import RecordedKey
from jaxdp.statistics.neighbours.neighbour_order import priorities

SIGNS = (-1.0, 1.0)  # a released number is looked at by its sign alone
LEAST = 64  # runs of a batch; more by factors of 4, so that few programs are compiled


@dataclasses.dataclass(eq=False)
class _Path(Tape):
    """A tape that plays scripted answers and notes what each run drew in their place.

    script: which branch each call takes; the first one from where it ends. widths: how many branches each call has.
    given: answers of the first calls, the same in every run, which are no branches.
    """

    script: list[int] = dataclasses.field(default_factory=list)
    drawn: list[Any] = dataclasses.field(default_factory=list)
    widths: list[int] = dataclasses.field(default_factory=list)
    given: list[int] = dataclasses.field(default_factory=list)

    def ahead(self, law):
        return np.asarray(self.given.pop(0))[()] if self.given else None

    def play(self, law, value, parameters, key, output):
        if not law.outputs_released:
            return output  # nobody sees it: each run goes on with its own
        additive = isinstance(law, AdditiveMechanism)
        if output.dtype == bool and output.ndim == 0:
            answers: tuple = (False, True)
            branch = output
        elif additive and output.ndim == 0:
            answers, branch = SIGNS, output >= 0.0
        elif additive and output.ndim == 1:
            scale = float(law.scale(Sensitivity(float(parameters[0]), law.norm, Relation.REPLACE_ONE)))
            answers = tuple(scale * np.array(sides) for sides in itertools.product(SIGNS, repeat=len(value)))
            branch = jnp.sum((output >= 0.0) * jnp.asarray(2 ** np.arange(len(value))[::-1]))
        elif jnp.issubdtype(output.dtype, jnp.integer) and output.ndim == 0:
            answers, branch = tuple(range(len(value))), output
        else:
            raise NotImplementedError(f"a walk can't branch on {law.name} of shape {np.shape(value)}.")
        if len(self.drawn) == len(self.script):
            self.script.append(0)
        self.drawn.append(jnp.asarray(branch, jnp.int32))
        self.widths.append(len(answers))
        return np.asarray(answers[self.script[len(self.drawn) - 1]])[()]


def walk(search, data, keys, outcome, given: Sequence[int] = ()) -> np.ndarray:
    """The outcomes of independent runs search(key, data), one per key: objects (runs,).

    outcome: released result -> hashable. Simulation keys; what the search draws later, and the outcome, may depend on
    released numbers by their signs alone.
    given: answers of the first selections: the law of the rest, given them.
    """
    found = np.empty(len(keys), object)
    todo = [((), np.arange(len(keys)))]
    while todo:
        prefix, runs = todo.pop()
        padded = runs[np.arange(LEAST * 4 ** max(0, math.ceil(math.log(len(runs) / LEAST, 4)))) % len(runs)]
        path, released, drawn = _follow(search, data, keys[padded], prefix, given)
        left = np.ones(len(runs), bool)
        for place, taken in enumerate(path.script):
            for branch in range(path.widths[place]) if place >= len(prefix) else ():
                leaving = left & (drawn[: len(runs), place] == branch)
                if branch != taken and leaving.any():
                    todo.append(((*path.script[:place], branch), runs[leaving]))
            left &= drawn[: len(runs), place] == taken
        for run in runs[left]:
            found[run] = outcome(released)
    return found


def _follow(search, data, keys, prefix, given):
    """One path: its tape, the released result on it, and what each run drew, (runs, calls)."""
    kept = {}

    def one(key):
        path = _Path(script=list(prefix), given=list(given))
        kept["released"] = search(RecordedKey(key, path), data)
        kept["path"] = path
        return jnp.stack([*path.drawn, jnp.int32(0)])

    with jax.debug_key_reuse(False):
        drawn = np.asarray(jax.vmap(one)(keys))
    return kept["path"], kept["released"], drawn


RECORDS = 100
TABLES, ROUNDS = 400, 10  # of the evolution of a pair; the first round is random
TRIED = 5  # evolved neighbours of a pilot
RARE = (3, 4, 5, 6)  # records in which all columns are 1, the others 0: one less, and all queries rise
PILOT = 1 << 12  # runs of the pilot on each side
BATCH = 1 << 18
LEVELS = (2, 2, 2)


def _subjects(flawed: bool) -> dict[str, SearchAudit]:
    """The audits that the searches say, by name, with the functions in place of their places."""
    return {
        f"{name}-{audit.label}" if audit.label else name: _subject(function, audit)
        for name, function in searches().items()
        for audit in function.spec.audits  # type: ignore[attr-defined]
        if audit.flawed == flawed
    }


def _subject(function: Callable, audit: SearchAudit) -> SearchAudit:
    build = loaded(audit.build) or (lambda epsilon: functools.partial(function, epsilon=epsilon, **audit.options))
    return dataclasses.replace(audit, build=build, neighbours=loaded(audit.neighbours))


def noisy_marginals(epsilon: float):
    """`marginal_pc` at the rho that is (epsilon, AUDITED_DELTA)-DP."""
    return functools.partial(find("marginal_pc"), rho=gaussian_rho(epsilon, AUDITED_DELTA))


def _pc(epsilon: float):
    """Four tests of Kendall's at a quarter of the budget."""
    test = ConditionalKendall(epsilon=epsilon / 4)
    return functools.partial(pc, test=test, max_tests=4, level=0.05)


def triples(records: int = 1200):
    """Neighbours on which the absolute value of Definition 6 moves by 1.57, whatever the number of records.

    The third column gives all records but three a stratum of their own. Those three rise together in the other two
    columns, S = 3; on the neighbour the first is discordant with the second and tied with the third, S = 0.
    """
    identity = np.maximum(np.arange(records) - 2, 0)
    side = (3 * np.arange(records)) // records
    values = np.stack([side, side, identity], axis=1).astype(np.int32)
    values[:3, 0] = values[:3, 1] = (0, 1, 2)
    other = values.copy()
    other[0] = (2, 0, 0)
    return tuple(as_records(rows, (3, 3, records - 2)) for rows in (values, other))


def rising():
    """Three binary columns whose scores, and smallest scores over sets, all rise with one record."""
    tables = [76, 11, 12, 1, 0, 0, 0, 0], [76, 11, 12, 0, 0, 0, 0, 1]
    return tuple(_records(np.reshape(table, LEVELS)) for table in tables)


def turning():
    """Three binary columns: one record takes the score of the first two columns away and gives it to another pair."""
    tables = [0, 0, 99, 0, 0, 0, 0, 1], [0, 0, 99, 0, 1, 0, 0, 0]
    return tuple(_records(np.reshape(table, LEVELS)) for table in tables)


def corners():
    """Three columns of three ordered levels: one record moves from a corner of the cube into its middle."""
    values = np.random.default_rng(0).integers(0, 3, (RECORDS, 3)).astype(np.int32)
    other = values.copy()
    values[0], other[0] = 2, 1
    columns = tuple(Column(ORDINAL, 3, f"v{place}") for place in range(3))
    return tuple(Records(rows, columns) for rows in (values, other))


def alternating(count: int = 40):
    """Three continuous columns that rise and fall together along the order of the empty set, and one record that turns
    the first of them round."""
    values = np.empty((count, 3))
    values[np.argsort(np.asarray(priorities(None, count)), kind="stable")] = np.resize([0.4, -0.4], count)[:, None]
    other = values.copy()
    other[count // 2, 0] *= -1.0
    columns = tuple(Column(name=f"v{place}") for place in range(3))
    return tuple(Records(rows, columns) for rows in (values, other))


# PC takes a test, and so has no budget of its own
SEARCHES = {**_subjects(flawed=False), "pc": SearchAudit(build=_pc, walked=False, pilot="adaptive_pc")}
FLAWED_SEARCHES = _subjects(flawed=True)  # as published, at the epsilon that the authors claim


def released(graph):
    """What an audit looks at: the answered queries in order, whether the search came to its end, and the edges.

    Of numbers that weigh edges: their signs, since the level by which edges stay is out of reach of so few records.
    """
    weighed = any(_weighs(d) for d in graph.decisions)
    answered = tuple((d.i, d.j, d.given, d.value >= 0.0 if _weighs(d) else d.independent) for d in graph.decisions)
    return (answered, graph.complete, () if weighed else tuple(graph.edges))


def _weighs(decision) -> bool:
    return decision.value is not None and decision.epsilon is None


def outcomes(subject: SearchAudit, search, records, key, runs: int, release: bool = False) -> np.ndarray:
    """Outcomes of independent runs, objects (runs,)."""
    if release:
        found = [released(search(part, records)) for part in keys.fresh_key().split(runs)]
    elif subject.walked:
        batches = jax.random.split(key, -(-runs // BATCH))
        sizes = [min(BATCH, runs - start) for start in range(0, runs, BATCH)]
        return np.concatenate(
            [
                walk(search, records, jax.random.split(part, size), released, subject.given)
                for part, size in zip(batches, sizes, strict=True)
            ]
        )
    else:
        with jax.debug_key_reuse(False):
            each = jax.random.split(key, runs)
            found = [released(search(each[run], records)) for run in range(runs)]
    result = np.empty(runs, object)
    result[:] = found
    return result


def sampled_bound(subject: SearchAudit, search, pair, key, runs: int, *, alpha: float, release: bool = False) -> Bound:
    """Lower bound on the true epsilon of a search from `runs` runs in all on two neighbours."""
    if subject.one_release and not release:
        return _of_numbers(search, pair, key, runs, alpha, subject.delta)
    sides = [
        outcomes(subject, search, records, part, runs // 2, release)
        for part, records in zip(jax.random.split(key), pair, strict=True)
    ]
    names = {name: number for number, name in enumerate(dict.fromkeys(itertools.chain(*sides)))}
    first, second = (np.array([names[name] for name in side]) for side in sides)
    return outcomes_bound(first, second, alpha=alpha, delta=subject.delta)


def _of_numbers(search, pair, key, runs: int, alpha: float, delta: float) -> Bound:
    """Bound from the numbers that one draw of noise releases, by the loss of Laplace noise: all that follows from them
    says no more."""
    key_tapes, *sides = jax.random.split(key, 3)
    calls = []
    for records in pair:
        tape = Tape()
        with jax.debug_key_reuse(False):
            search(RecordedKey(key_tapes, tape), records)
        calls.append(tape.calls)
    (first,), (second,) = calls
    reach, epsilon = (float(parameter) for parameter in first.parameters)
    values = [np.asarray(call.value, float) for call in (first, second)]
    move, (low, high) = np.sign(values[1] - values[0]), np.sort(values, axis=0)
    losses = []
    for part, value in zip(sides, values, strict=True):
        many = jnp.broadcast_to(jnp.asarray(value, float), (runs // 2, *value.shape))
        noisy = FloatNoise(part).draw(first.law, many, Sensitivity(reach, Norm.L1, Relation.REPLACE_ONE))
        inside = np.clip(np.asarray(noisy, float), low, high) * move
        losses.append(inside.reshape(len(inside), -1).sum(axis=1) * epsilon / reach)
    return lower_bound(*losses, alpha=alpha, delta=delta, low_bits=False)


def worst_neighbours(subject: SearchAudit, key, count: int = 5) -> list[tuple[Any, Any]]:
    """The `count` most telling pairs of records that an attack finds, best first.

    Evolution of tables of three binary columns and a move of one record, by what a sparse vector at epsilon 1 says of
    the three marginal queries; these pairs and some of rare records then run through the search itself or one
    like it, and the bounds they reach decide.
    """
    if subject.neighbours is not None:
        return [subject.neighbours()]
    key_tables, key_pilot = jax.random.split(key)
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key_tables)).tolist())
    tables = [*_evolved(generator), *(_rare(count) for count in RARE)]
    pairs = [tuple(_records(table) for table in pair) for pair in tables]
    subject = SEARCHES[subject.pilot] if subject.pilot else subject
    bounds = [
        sampled_bound(subject, subject.build(1.0), pair, part, 2 * PILOT, alpha=0.05).epsilon
        for pair, part in zip(pairs, jax.random.split(key_pilot, len(pairs)), strict=True)
    ]
    return [pairs[place] for place in np.argsort(bounds, kind="stable")[::-1][:count]]


def _rare(count: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` records of ones among zeros, and one less: all queries move together, from below 0 to above at 5."""
    tables = np.zeros((2, 8), int)
    tables[0, [0, -1]], tables[1, [0, -1]] = (RECORDS - count, count), (RECORDS - count + 1, count - 1)
    return tables[0].reshape(LEVELS), tables[1].reshape(LEVELS)


def _evolved(generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """The best pairs of neighbouring tables after some rounds of change, one of each table."""
    noise = _sieve_noise(generator)
    scored: list[tuple[float, np.ndarray, np.ndarray]] = []
    for number in range(ROUNDS):
        parents = [table for _, table, _ in scored[:TRIED]]
        for _ in range(TABLES):
            table = _changed(generator, parents[generator.integers(len(parents))]) if number else _random(generator)
            other = _changed(generator, table, most=1)
            scored.append((_told_apart(_queries(table), _queries(other), noise), table, other))
        scored.sort(key=lambda found: -found[0])
    best = {table.tobytes(): (table, other) for _, table, other in reversed(scored)}
    return list(best.values())[::-1][:TRIED]


def _random(generator):
    return generator.multinomial(RECORDS, generator.dirichlet(np.full(8, generator.choice([0.2, 0.5, 1.0])))).reshape(
        LEVELS
    )


def _changed(generator, table, most: int = 10):
    """The table with up to `most` records of one cell moved to another."""
    source = generator.choice(np.flatnonzero(table))
    target = generator.choice(np.delete(np.arange(8), source))
    moved, other = min(int(generator.integers(1, most + 1)), table.flat[source]), table.copy()
    other.flat[source] -= moved
    other.flat[target] += moved
    return other


def _queries(table):
    return default_query(AUDITED_Z, RECORDS).values(Counts(_records(table)), [(0, 1, ()), (0, 2, ()), (1, 2, ())])


def _sieve_noise(generator):
    """What a sparse vector at epsilon 1 adds to three queries, less the noise of its threshold: (runs, 3)."""
    threshold, query = (float(scale) for scale in SparseVector(epsilon=1.0, max_above=3).scales())
    return query * (generator.exponential(size=(4000, 3)) - 1.0) - threshold * (
        generator.exponential(size=(4000, 1)) - 1.0
    )


def _told_apart(first, second, noise) -> float:
    """The log ratio of the most telling answers to three queries, less two standard errors of so many runs."""
    best = 0.0
    laws = [np.bincount((values + noise >= 0.0) @ (1, 2, 4), minlength=8) / len(noise) for values in (first, second)]
    order = np.argsort((laws[0] + 1e-3) / (laws[1] + 1e-3))
    for cut in range(1, 8):
        for part in (order[:cut], order[cut:]):
            p, q = sorted(float(law[part].sum()) for law in laws)
            if p > 0.0:
                best = max(best, math.log(q / p) - 2.0 * math.sqrt((1 / p + 1 / q) / len(noise)))
    return best


def _records(table):
    """Coded records with this joint table."""
    cells = np.repeat(np.arange(table.size), table.ravel())
    return as_records(np.stack(np.unravel_index(cells, table.shape), axis=1).astype(np.int32), table.shape)
