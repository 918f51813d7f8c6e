"""The contract of a test, checked on the examples of its spec: what anybody's own test must keep.

A check can refute a claim; it can't prove one. What it needs to know stands in the spec: data, null, fields, the share
of each bound that an attack reaches.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import catalogue, core
from jaxdp._base.amounts import spent
from jaxdp.audit import bounds, cases, gradients
from jaxdp.audit.attack import ROUNDING, SLACK, attack, attack_rows
from jaxdp.audit.cases import Configured
from jaxdp.data.dataset import Data
from jaxdp.randomness import keys
from jaxdp.simulate import power
from jaxdp.spec import DECISION, P_VALUE, Columns

RECORDS, NULL_RECORDS = 60, 200
REPLICATES, LEVEL = 400, 0.05
LANES, SPREAD_BUDGET = 6, 4.0  # replicates whose gradients are checked, at a budget that spreads their p-values
ROWS_REACH = 0.95  # of what single records reach, since stages release to the later ones what rounds otherwise
FALSE_ALARM = 1e-5  # probability that a test at its level is called broken
CLOSE = 2e-3  # relative; float32 programs that add up in another order


@dataclasses.dataclass(frozen=True)
class Finding:
    """One check on one example: what was checked, and what is wrong ("" if nothing is)."""

    check: str
    example: str
    wrong: str = ""
    note: str = ""

    def __str__(self) -> str:
        label = f" [{self.example}]" if self.example else ""
        return f"{'BROKEN' if self.wrong else 'ok':7s}{self.check}{label}{': ' if self.wrong or self.note else ''}" + (
            self.wrong or self.note
        )


@dataclasses.dataclass(frozen=True)
class Contract:
    """What was checked of a test. holds: whether nothing is wrong."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        return not any(finding.wrong for finding in self.findings)

    def __str__(self) -> str:
        verdict = "keeps the contract as far as these checks see" if self.holds else "BREAKS THE CONTRACT"
        return "\n".join([f"{self.name} {verdict}", *(f"  {finding}" for finding in self.findings)])


def check_contract(test: Any, *, seed: int = 0) -> Contract:
    """Checks a test on every example of its spec, on made-up data.

    test: a name of the catalogue, "package.module:Class", or a class with a spec.
    Checked: `jit` and `vmap` give what a plain run gives; bad values change neither shapes nor finiteness; the cost is
    the budget asked for; a release draws certified noise; an attack passes no declared bound, no public range, and
    reaches the share of each bound that `reaches` states (not for `coupled` examples, which `jaxdp.audit.audit` runs
    whole); another z changes the statistic, or data with a z are refused; flags are among those that the class names;
    sums of chunks are those of the whole and give the statistic; the level on `null`; gradients of p-values in all
    numbers that have one
    (`PrivateTest.no_gradient`) are those of finite differences.
    Errors: ValueError for a test without examples.
    """
    entry = entry_of(test)
    if not cases.of(entry):
        raise ValueError(
            f"{entry.name} has no example data: give its spec examples=(jaxdp.Example(data),), data being a function "
            "(key, n) -> Data."
        )
    found = []
    for configured in cases.of(entry):
        one = _Checked(configured, jax.random.key(seed))
        checks = {"bounds": _bounds} if configured.example.bounds_only else CHECKS
        for name, check in checks.items():
            for wrong, note in check(one):
                found.append(Finding(name, configured.example.label, wrong, note))
    return Contract(entry.name, tuple(found))


def entry_of(test) -> catalogue.Entry:
    """The entry of a name, a place, or a class with a spec."""
    if isinstance(test, catalogue.Entry):
        return test
    return catalogue.find(test) if isinstance(test, str) else catalogue.Entry(catalogue.spec_of(test), test)


@dataclasses.dataclass(frozen=True)
class _Checked:
    """A test on one of its examples."""

    configured: Configured
    key: Any

    @property
    def entry(self):
        return self.configured.entry

    @property
    def example(self):
        return self.configured.example

    def test(self, epsilon: float = 1.0, num_records: int = RECORDS):
        return self.configured.build(epsilon, max(num_records, self.example.min_records))

    def data(self, number: int = 0, num_records: int = RECORDS):
        return self.example.data(jax.random.fold_in(self.key, number), max(num_records, self.example.min_records))

    @property
    def public(self) -> tuple[str, ...]:
        """Columns that neighbours share."""
        groups = ("y",) if self.entry.spec.columns is Columns.GROUPS else ()
        return tuple(dict.fromkeys((*groups, *self.entry.cls.public_columns)))

    @functools.cached_property
    def plain(self):
        """A simulated run in plain Python."""
        return core.run(self.test(), self._key(1), self.data())

    def _key(self, number: int):
        return jax.random.fold_in(jax.random.clone(self.key), 1000 + number)


Found = Iterator[tuple[str, str]]  # (what is wrong or "", a note or "")


def _p_values(one: _Checked) -> Found:
    p_value = np.asarray(one.plain.p_value)
    good = bool(np.all((p_value >= 0) & (p_value <= 1)))
    yield ("" if good else "a p-value lies outside [0, 1] or is NaN"), ""


def _flags(one: _Checked) -> Found:
    """The flags of an answer are among those that the test names, so that each can be measured."""
    test, shapes = one.test(), core.public_shapes(one.data())
    rule = test.validity(shapes)
    with jax.debug_key_reuse(False):
        raised = [*(rule.flags if rule is not None else ()), *test.released_flags(shapes, one.plain.release)]
    unsaid = sorted(set(raised) - set(test.flags))
    wrong = f"an answer carries flags that the class does not name in flags = (...): {', '.join(unsaid)}"
    yield (wrong if unsaid else ""), ""


def _jit(one: _Checked) -> Found:
    compiled = jax.jit(core.run)(one.test(), one._key(1), one.data())
    yield _apart(compiled.p_value, one.plain.p_value, "jax.jit(jaxdp.run) and jaxdp.run"), ""


def _vmap(one: _Checked) -> Found:
    test, seeds = one.test(), jnp.arange(3)

    def run(seed):
        key = jax.random.fold_in(one._key(2), seed)
        return core.run(test, key, one.example.data(jax.random.fold_in(key, 1), _rows(one))).p_value

    together, in_turn = (jax.jit(way)(seeds) for way in (jax.vmap(run), functools.partial(jax.lax.map, run)))
    yield _apart(together, in_turn, "jax.vmap and jax.lax.map"), ""


def _rows(one: _Checked) -> int:
    return max(RECORDS, one.example.min_records)


def _apart(first, second, what: str) -> str:
    first, second = np.asarray(first), np.asarray(second)
    if first.shape == second.shape and np.allclose(first, second, rtol=CLOSE, atol=1e-5, equal_nan=True):
        return ""
    return f"{what} give different p-values"


def _bad_values(one: _Checked) -> Found:
    """NaN, infinite and huge entries, or codes that no level has, in every private column."""
    result = core.run(one.test(), one._key(3), _spoiled(one.data(), one.public))
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(result.release.value)]
    if shapes != [np.shape(leaf) for leaf in jax.tree.leaves(one.plain.release.value)]:
        yield "bad values in the data change the shape of what is released", ""
    if _reads_missing(one):
        yield "", "the statistic gives NaN a meaning, but gets 0 in its place: if it is meant, say reads_missing = True"
    finite = bool(np.all(np.isfinite(np.asarray(result.p_value))))
    yield ("" if finite else "bad values in the data (NaN, infinity, unknown codes) make the p-value NaN"), ""


def _reads_missing(one: _Checked) -> bool:
    """Whether a statistic of one stage has a finite value of its own for data with NaN, which no run hands to it."""
    data = one.data()
    query = core.specialize(one.test(), data)
    if isinstance(query, core.Sequential) or query.reads_missing or one.example.label:
        return False

    def left_out(leaf):
        return leaf.at[:4].set(jnp.nan) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    missing = jax.tree.map(left_out, data)
    key = one._key(3)
    with jax.debug_key_reuse(False):
        raw, given = (jax.tree.leaves(of(query, key, missing)) for of in (type(query).statistic, core.exact_statistic))
    values = [(np.asarray(mine), np.asarray(theirs)) for mine, theirs in zip(raw, given, strict=True)]
    return all(np.all(np.isfinite(mine)) for mine, _ in values) and not all(np.allclose(*pair) for pair in values)


def _spoiled(data, public: tuple[str, ...]):
    def spoil(path, leaf):
        if getattr(path[0], "name", "") in public:
            return leaf
        real = jnp.issubdtype(leaf.dtype, jnp.floating)
        worst = (jnp.nan, jnp.inf, -jnp.inf, 1e30) if real else (-1, -999, 99, 2**31 - 1)
        return leaf.at[:4].set(jnp.asarray(worst[: len(leaf)], leaf.dtype).reshape(-1, *[1] * (leaf.ndim - 1)))

    return jax.tree_util.tree_map_with_path(spoil, data)


def _cost(one: _Checked) -> Found:
    """The cost, known before the data are read, is the budget asked for."""
    if not one.entry.spec.private:
        return
    epsilon, self_priced = 0.75, one.example.cost_ratio != (1.0, 1.0) or not one.configured.claims_epsilon
    planned = core.cost_of(one.test(epsilon), one.data())
    charged = core.run(one.test(epsilon), one._key(4), one.data()).cost
    if float(charged.epsilon) > float(planned.epsilon) * (1 + 1e-6):
        yield "a run costs more than what is charged before it", ""
    asked = float(planned.epsilon)
    if not self_priced and not asked <= epsilon * (1 + 1e-6):
        yield f"epsilon={epsilon} costs {spent(asked)}", ""
    low, high = one.example.cost_ratio
    if self_priced and one.configured.claims_epsilon and not low * epsilon * (1 - 1e-6) <= asked <= high * epsilon:
        yield f"epsilon={epsilon} costs {spent(asked)}, price= says {low:g} to {high:g} times as much", ""
    yield "", ("" if asked >= low * epsilon * (1 - 1e-6) else f"epsilon={epsilon} spends {spent(asked)} only")


def _release(one: _Checked) -> Found:
    if not one.entry.spec.private:
        return
    data = jax.tree.map(np.asarray, one.data())
    try:
        result = core.run(one.test(), keys.fresh_key(), data)
    except (ValueError, TypeError, RuntimeError, NotImplementedError) as error:
        yield f"a release fails: {error}", ""
        return
    p_value = np.asarray(result.p_value)
    good = result.mode == keys.RELEASE and bool(np.all((p_value >= 0) & (p_value <= 1)))
    yield ("" if good else "a release gives no p-value in [0, 1]"), ""


def _bounds(one: _Checked) -> Found:
    """An attack on every declared bound of every stage."""
    if one.example.coupled:
        yield "", "the statistic resamples or has stages: audit whole runs by jaxdp audit"
        return
    found = attacked(one)
    yield from _judged(found)
    if one.entry.cls.averages_rows and isinstance(one.data(), Data):
        rows = attacked_rows(one, found)
        least = {path: None if wanted is None else ROWS_REACH * wanted for path, (_, wanted) in found.items()}
        judged = {path: (best, least[path]) for path, best in rows.items()}
        yield from _judged(judged, "persons with several rows: ")


def _judged(found: Mapping[str, tuple[bounds.Reached, float | None]], where: str = "") -> Found:
    for path, (reached, wanted) in found.items():
        name = where + (path or "the bound")
        if reached.share > 1.0 + ROUNDING:
            yield f"{name}: neighbours move the statistic by {reached.share:.4f} of what is declared", ""
        elif reached.outside > 0:
            yield f"{name}: a value leaves its public range", ""
        elif wanted is not None and reached.share < wanted - SLACK:
            yield f"{name}: the attack reaches {reached.share:.4f}, the spec says {wanted}", ""
        else:
            yield "", f"{name} is reached to {reached.share:.4f}"


def attacked(one: _Checked) -> dict[str, tuple[bounds.Reached, float | None]]:
    """What the attack reached of every bound, and what the spec says that it reaches (None: nothing)."""
    found = attack(one.test, one.example, _sample(one), jax.random.key(0), held=one.public)
    return {path: (best, _wanted(one.example.attack_tightness, path)) for path, best in found.items()}


def attacked_rows(one: _Checked, found: Mapping[str, tuple[bounds.Reached, float | None]]) -> dict[str, bounds.Reached]:
    """What the same attack reaches where a record is a person with several rows. found: by `attacked`."""
    best = {path: reached for path, (reached, _) in found.items()}
    return attack_rows(one.test, one.example, _sample(one), best, jax.random.key(0))


def _sample(one: _Checked):
    how = one.example.search
    return None if how.rounds is None else one.data(num_records=max(how.records, one.example.min_records))


def _wanted(reaches, path: str) -> float | None:
    found = reaches.get(path) if isinstance(reaches, Mapping) else reaches
    return getattr(found, "share", found)


def _gradients(one: _Checked) -> Found:
    """Gradients of p-values in the numbers that may be tuned, and in the budget, are those of finite differences."""
    test, count = one.test(SPREAD_BUDGET), _rows(one)
    if one.entry.spec.publishes not in (P_VALUE, DECISION) or not isinstance(test, core.PrivateTest):
        return
    why = test.no_gradient(gradients.BUDGET)
    if why:
        yield "", f"none in the budget: {why}"
    data = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(one.data(number) for number in range(LANES)))
    for name, slopes in gradients.slopes_of(test, data, one._key(7), count).items():
        off = f"the gradient in {name} is {slopes.apart:.0%} off finite differences, and no_gradient gives no reason"
        yield ("" if slopes.agree else off), ("" if slopes.moves else f"{name} moves no p-value here")


def _drawn(draw, count: int, key):
    return draw(key, count)


def _level(one: _Checked) -> Found:
    from scipy.stats import binom

    if one.example.null is None or one.entry.spec.publishes not in (P_VALUE, DECISION):
        yield "", "no null in the example"
        return
    count = max(NULL_RECORDS, one.example.min_records)
    design = functools.partial(_drawn, one.example.null, count)
    p_values = power.p_values(one.test(1.0, count), design, one._key(5), REPLICATES)
    rejected = int(np.sum(np.asarray(p_values) <= LEVEL * (1 + 1e-6)))
    broken = float(binom.sf(rejected - 1, REPLICATES, LEVEL)) < FALSE_ALARM
    told = f"rejects {rejected} of {REPLICATES} nulls at level {LEVEL}"
    yield (told, "") if broken else ("", told)


def _sums(one: _Checked) -> Found:
    """Sums of chunks, in any order, are those of the whole; and they give the statistic."""
    found = compared(one.test(), _spoiled(one.data(), one.public), one._key(6))
    yield "", f"{len(found)} sums" if found else "no sums"
    for wrong in filter(None, found.values()):
        yield wrong, ""


ORDERS = 3  # in how many orders z is put before a test is said to ignore it


def _conditioning(one: _Checked) -> Found:
    """Another z changes the statistic, or the test refuses data that have one."""
    test, data = one.test(), one.data()
    if not isinstance(data, Data) or not isinstance(test, core.PrivateTest):
        return
    if not test.uses_z:
        yield _answers_given_z(test, one._key(7), dataclasses.replace(data, z=data.x)), "data with z are refused"
    elif data.z is None:
        told = "it says uses_z, and no example has a z: give one an example that has"
        yield (
            (
                ""
                if any(other.data(jax.random.key(0), _rows(one)).z is not None for other in cases.declared(one.entry))
                else told
            ),
            "",
        )
    else:
        yield ("" if _moved_by_z(one, test, data) else "it says uses_z, and another z changes nothing"), ""


def _answers_given_z(test, key, data) -> str:
    try:
        core.run(test, key, data)
    except ValueError:
        return ""
    return "it answers a question given z, and does not say that it conditions on z (uses_z)"


def _moved_by_z(one: _Checked, test, data) -> bool:
    """Whether the statistic of any stage is another for z in another order; the noise is the same."""
    released = _stages_of(one.plain.release)
    first = [np.reshape(part, (core.num_records(data), -1))[:, 0] for part in (data.x, data.z)]
    like_x = np.argsort(first[1])[np.argsort(np.argsort(first[0]))]  # moves decisions, which few orders do
    drawn = (jax.random.permutation(one._key(8 + number), like_x.size) for number in range(ORDERS))
    for order in (*drawn, like_x):
        other = core.run(test, one._key(1), dataclasses.replace(data, z=data.z[order]))
        if not _equal(_stages_of(other.release), released):
            return True
    return False


def _stages_of(release) -> list:
    return [stage.value for stage in (*release.earlier, release)]


def _equal(first, second) -> bool:
    return jax.tree.all(jax.tree.map(lambda a, b: bool(np.array_equal(a, b, equal_nan=True)), first, second))


CUTS = (1, 7, 100)  # into how many chunks records are cut


def compared(test, data, key) -> dict[str, str]:
    """What is wrong with the sums of each stage that has them, by the stage's name; "" where nothing is."""
    found: dict[str, str] = {}
    with jax.enable_x64(True):
        data = jax.tree.map(np.asarray, data)
        data = data.without_names() if hasattr(data, "without_names") else data
        query = core.specialize(test, data)
        while True:
            stage = query.first if isinstance(query, core.Sequential) else query
            if stage.needs_all(core.public_shapes(data)):
                return found
            found[core.method_of(stage)] = _sums_of(stage, data, key)
            if not isinstance(query, core.Sequential):
                return found
            key, own = jax.random.split(key)
            released = core.release(stage, own, data)
            query = core.specialize(query.then(query.second, stage, released), data)
    return found


def _sums_of(stage, data, key) -> str:
    count, data = core.num_records(data), core.finite(stage, data)
    whole = stage.partial(data)
    for cuts in CUTS:
        order = np.random.default_rng(cuts).permutation(count)
        parts = [
            stage.partial(jax.tree.map(lambda leaf, rows=rows: leaf[rows], data), count)
            for rows in np.array_split(order, min(cuts, count))
        ]
        if not jax.tree.all(jax.tree.map(np.array_equal, functools.reduce(stage.merge, parts), whole)):
            return f"the sums of {len(parts)} chunks are not those of the whole"
    room = jax.tree.map(
        lambda part: 1e-9 + float(part.error) + stage.lattice * count,
        stage.sensitivity(count),
        is_leaf=lambda node: isinstance(node, core.Sensitivity),
    )
    exact, finished = core.exact_statistic(stage, key, data), stage.finish(whole)
    close = jax.tree.map(_within, room, exact, finished)
    return "" if jax.tree.all(close) else "the statistic that the sums give is not `statistic`"


def _within(most: float, first, second) -> bool:
    first, second = np.asarray(first, float), np.asarray(second, float)
    return first.shape == second.shape and bool(np.max(np.abs(first - second), initial=0.0) <= most)


CHECKS: dict[str, Callable[[_Checked], Found]] = {
    "p-values": _p_values,
    "flags": _flags,
    "jit": _jit,
    "vmap": _vmap,
    "bad values": _bad_values,
    "cost": _cost,
    "release": _release,
    "bounds": _bounds,
    "z": _conditioning,
    "sums": _sums,
    "level": _level,
    "gradients": _gradients,
}
