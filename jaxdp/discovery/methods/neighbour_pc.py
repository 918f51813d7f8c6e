"""Max-min selection on continuous columns by sums over neighbours: relations that bend, spreads, products.

Theory: docs/theory/neighbour_pc.md. The draws are those of `max_min_pc`; the score is that of `BandGCM` and sizes.
Symbols: u = (value - centre)/scale, psi(t) = clip(t/c, -1, 1), S = sum over pairs of neighbours. Scores are private.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp._base.bounded import power_of_two
from jaxdp.core import Account, Relation, release_opened
from jaxdp.data.dataset import CATEGORICAL, CONTINUOUS, Data, equally_spaced
from jaxdp.data.records import Records, as_records
from jaxdp.discovery.engine.checkpoint import described
from jaxdp.discovery.engine.directions import Rule, Trust
from jaxdp.discovery.engine.hardly_nearer import hardly_nearer
from jaxdp.discovery.engine.knowledge import Knowledge, known
from jaxdp.discovery.engine.max_min_budget import Budget, Shares
from jaxdp.discovery.engine.max_min_scores import MaxMinScores
from jaxdp.discovery.engine.near_copies import near_copies
from jaxdp.discovery.engine.session import Session, searched
from jaxdp.discovery.engine.skeleton import CIQuery
from jaxdp.discovery.graph import Graph
from jaxdp.discovery.methods.max_min_pc import ALL, CUBE_SHARES, DIRECTIONS, DRAWS, SHARES, STOP, Bounds, Selection
from jaxdp.discovery.methods.moment_pc import weakest_line
from jaxdp.discovery.spec import Levels, SearchAudit, SearchSpec, Setting, coded, search
from jaxdp.independence.continuous.band_gcm import BAND_L1
from jaxdp.independence.continuous.band_order import NEIGHBORS
from jaxdp.independence.continuous.moment_stages import NORMAL_QUARTILE, PrivateCentres, PrivateScales
from jaxdp.randomness import keys
from jaxdp.randomness.keys import Key
from jaxdp.statistics.neighbours import bands, hilbert, neighbour_order
from jaxdp.statistics.neighbours.soft_sign import finite

WIDTH = 0.5  # c, in units of the scale of a column
CHANCE = 2.25  # null sds below which a sum counts as nothing
MAX_NEIGHBORS = 4
MAX_SET = 2  # columns of a conditioning set whose order is drawn
SENSITIVITY = BAND_L1  # of every score, replace-one


class NeighbourScores:
    """q(i, j | S): the largest |S| of a feature of i and a feature of j, less 2.25 null sds.

    values (n, d); centre, scale: (d,), public or released. Features: value and size; of a column of unordered levels an
    indicator of each. Order of the records: drawn at random for the empty set, by the value of one column, along a
    Hilbert curve for two.
    unordered: levels of each column of unordered ones, whose values are equally spaced on [-1, 1]; 0 for the others.
    """

    def __init__(self, values, centre: np.ndarray, scale: np.ndarray, unordered: Sequence[int] = ()):
        count, self._num_columns = values.shape
        levels = tuple(unordered) or (0,) * self._num_columns
        with jax.enable_x64(True):
            given = jnp.asarray(values, float)
            self._u, self._features = _standardised(given, jnp.asarray(centre), jnp.asarray(scale))
            if any(levels):
                self._features = _with_indicators(given, self._features, levels)
            self._priority = neighbour_order.priorities(None, count)
        self._k = _num_neighbors(count)
        self._chance = null_level(count)
        self.looks = (self._features.shape[1] // self._num_columns) ** 2  # pairs of features of a pair of columns

    def __call__(self, queries: Sequence[CIQuery]) -> tuple[np.ndarray, np.ndarray]:
        """q of each query, float64, and zeros: no variation is looked at."""
        values, places = np.zeros(len(queries)), dict[tuple[int, ...], list[int]]()
        for place, (_, _, given) in enumerate(queries):
            places.setdefault(given, []).append(place)
        for given, asked in places.items():
            rows = _covering([queries[place][:2] for place in asked])
            found = self._sums(given, rows)
            for place in asked:
                i, j, _ = queries[place]
                values[place] = found[rows.index(i), j] if i in rows else found[rows.index(j), i]
        return values, np.zeros(len(queries))

    def _sums(self, given: tuple[int, ...], rows: list[int]) -> np.ndarray:
        """q of each of these columns and every column, (rows, d)."""
        padded = rows + rows[:1] * (power_of_two(len(rows)) - len(rows))  # few shapes, few programs
        with jax.enable_x64(True):
            order = _order(self._u[:, list(given)], self._priority)
            found = _largest(self._features, order, jnp.asarray(padded), self._k, self._num_columns)
        return np.asarray(found, float)[: len(rows)] - self._chance


def _num_neighbors(num_records: int) -> int:
    return min(next(k for below, k in NEIGHBORS if num_records < below), MAX_NEIGHBORS)


def null_level(num_records: int) -> float:
    """What is subtracted from every sum: 2.25 null standard deviations."""
    return CHANCE * math.sqrt(bands.null_variance(num_records, _num_neighbors(num_records)))


def rounding(num_records: int) -> float:
    """Bound on the rounding error of a score: sums are exact, and one number is subtracted."""
    return 4.0 * num_records * bands.UNIT_ROUNDOFF


def _covering(pairs: list[tuple[int, int]]) -> list[int]:
    """Columns such that every pair holds one: a column that many pairs share comes first."""
    chosen: list[int] = []
    while pairs:
        places, counts = np.unique(np.array(pairs), return_counts=True)
        chosen.append(int(places[np.argmax(counts)]))
        pairs = [pair for pair in pairs if chosen[-1] not in pair]
    return chosen


@jax.jit
def _standardised(values, centre, scale):
    """u (n, d) and the features u, |u| (n, 2 d), in units of a column's scale."""
    u = finite(finite(values - centre[None]) / scale[None])
    return u, jnp.concatenate([u, jnp.abs(u)], axis=1)


@jax.jit
def _order(u, priority):
    """Record numbers in the order of zero, one or two columns; ties by priority."""
    if u.shape[1] < 2:
        return neighbour_order.order_by_value(u[:, 0] if u.shape[1] else jnp.zeros(len(u)), priority)
    bits = min(neighbour_order.spare_bits(len(u)) // u.shape[1], hilbert.WORD_BITS)
    high, low = hilbert.hilbert_key(jax.scipy.stats.norm.cdf(u), bits)
    return neighbour_order.order_by_words(high, low, bits * u.shape[1], priority)


@functools.partial(jax.jit, static_argnames=("levels",))
def _with_indicators(values, features, levels: tuple[int, ...]):
    """The features of `_standardised`, where columns of unordered levels have an indicator of each level instead.

    (n, m d), m the most levels, at least 2; columns of fewer features have zeros in the place of the rest.
    """
    depth, most = len(levels), max(2, *levels)
    codes = jnp.round((values + 1.0) * 0.5 * (jnp.maximum(jnp.asarray(levels), 2) - 1)[None])
    blocks = []
    for feature in range(most):
        indicators = (codes == feature).astype(features.dtype)
        own = features[:, feature * depth : (feature + 1) * depth] if feature < 2 else jnp.zeros_like(indicators)
        blocks.append(jnp.where((jnp.asarray(levels) > 0)[None], indicators, own))
    return jnp.concatenate(blocks, axis=1)


@functools.partial(jax.jit, static_argnames=("num_neighbors", "depth"))
def _largest(features, order, rows, num_neighbors: int, depth: int):
    """The largest |S| of any feature of each row's column and any feature of each column, (rows, d).

    features: (n, m d), the first feature of all d columns, the second of all, to the m-th.
    """
    each = features.shape[1] // depth
    (ordered,) = neighbour_order.in_order(order, features)
    chosen = ordered[:, jnp.concatenate([rows + depth * feature for feature in range(each)])]

    def near(first, second):
        del second
        return jnp.ones(ordered[first].shape[:1])[:, None]

    sums = jnp.abs(bands.band_sum(chosen, ordered, near, num_neighbors, (WIDTH, WIDTH)))
    return jnp.max(sums.reshape(each, len(rows), each, depth), axis=(0, 2))


BEFOREHAND = Fraction(1, 10)  # of the budget, for centres and scales of continuous columns, half each
ARROWS = Rule(
    reversal=4.0, trust=Trust(5.49, 5.89, per_few=14.03, per_noise=0.67)
)  # chosen and measured: docs/theory/neighbour_pc.md#arrows
LOUD = 0.016  # noise of a further draw, in shares of the records, above which `moment_pc` found more of lines
FAR = 0.4  # of the weakest line of `moment_pc`, below which this search found more of lines all the same
MAX_VALUES = 20_000_000  # of a table, from which on the orders of all sets take minutes
LINE_SUM = 0.96  # T/n per share of records to move: E psi psi = 0.61 r for normal differences, half of it per record
# released number of two continuous columns per record from which on they may be copies: r about 0.97 where others are
# related to them, 0.75 by themselves
COPY = 0.26
MODEL = (
    "Finds relations of any smooth shape: lines, bends, changes of spread; not waves within a column's standard "
    "deviation. Conditioning sets hold at most two columns."
)
HARDLY_NEARER = 0.048  # weakest line from which on graphs of random models are as far as no edges (0.97 to 1 of it)


def _continuous(levels: Levels) -> bool:
    return len(levels) > 1 and 0 in levels


def _noise(setting: Setting) -> float:
    """Scale of the noise of a further draw, as a share of the records.

    With the share that a rho has also for a pure epsilon, whose draws have more: `LOUD`, `FAR` and `HARDLY_NEARER` were
    measured with it.
    """
    budget = Budget.of(setting.epsilon, setting.delta, Relation.REPLACE_ONE)
    share = _with_columns(SHARES[ALL]).forward / math.ceil(DRAWS[budget.pure] * setting.num_columns)
    return budget.draw_scale(share, SENSITIVITY) / max(setting.num_records, 1)


def _weakest(setting: Setting) -> float:
    """A line that a draw just finds, as the share of records to move for independence: one scale of the noise above
    2.25 null sds. Two normal columns of correlation r have a sum of 0.30 n r and a share of asin(r)/pi to move.
    Coded columns alone have searches of their own."""
    if coded(setting.levels):
        return math.inf
    return min(1.0, (_noise(setting) + null_level(setting.num_records) / max(setting.num_records, 1)) / LINE_SUM)


def trust(setting: Setting) -> Trust:
    """Of arrows, by what is public: number of columns, and noise (docs/discovery.md#arrow-shares)."""
    return ARROWS.trust.at(setting.num_columns, noise_per_column(setting))


def noise_per_column(setting: Setting) -> float:
    """Of a further draw, in thousandths of the records: as many draws share the budget as there are columns."""
    return 1000.0 * _noise(setting) / setting.num_columns


def _rank(setting: Setting) -> int:
    """First where this search equals one of lines on lines (measured), else last: draws are quiet, or those numbers
    are far noisier that `moment_pc` divides its budget over."""
    values = setting.num_records * setting.num_columns
    equal = _noise(setting) <= LOUD or _weakest(setting) <= FAR * weakest_line(setting)
    return 0 if values <= MAX_VALUES and equal else 2


@search(
    SearchSpec(
        "neighbour_pc",
        "max-min selection by sums over neighbours: bends and lines; recommended for continuous and mixed columns",
        accepts=_continuous,
        error=_weakest,
        rank=_rank,
        because=lambda setting: "it detects bends as well as lines, and as many lines as moment_pc at this budget",
        takes=("delta", "directions", "max_order", "knowledge", "keep"),
        max_order=MAX_SET,
        audits=(SearchAudit(neighbours="jaxdp.audit.searches:alternating", given=(2048,) * 3 + (80,) * 3),),
    )
)
def neighbour_pc(
    key: Key,
    data: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    directions: float | None = None,
    max_order: int = MAX_SET,
    stop: float = STOP,
    knowledge: Knowledge | None = None,
    levels: Sequence[int] | None = None,
    ledger: Account | None = None,
    keep: str | os.PathLike | None = None,
) -> Graph:
    """Graph of continuous and mixed columns by private draws of edges; its score detects bends, spreads and products.

    Score of columns i, j given S: records in the order of S (random, by a column, along a Hilbert curve of two), the
    largest absolute sum over neighbours of psi(difference in i) psi(difference in j), each column by its value or by
    its distance from a private centre, less 2.25 null standard deviations. The draws are those of `max_min_pc`: a
    spanning tree, further edges by the largest smallest score over conditioning sets, one noisy number for each edge.
    data: as for `moment_pc`; continuous columns on [-1, 1] (bounds may be wide: centres and scales are private, a tenth
    of the budget), columns of two or of ordered levels as equally spaced numbers; of more than two unordered levels,
    an indicator of each level takes the place of value and size.
    delta: 0 is pure epsilon; above, zCDP within (epsilon, delta). max_order: 0, 1 or 2 columns in a conditioning set.
    directions, stop, knowledge, keep: as in `max_min_pc`.
    The graph's decisions hold the released number of each edge and its q-value. `moment_pc` needs less data where
    relations are lines.
    Privacy: epsilon-DP, or (epsilon, delta)-DP by zCDP, under replace-one; every score moves by at most 3
    (docs/theory/neighbour_pc.md#sensitivity). Memory: about 64 bytes per value.
    Errors: ValueError before data are read (budget, no continuous column).
    """
    keys.admit(key, data)
    records = as_records(data, levels)
    check.at_least(0, max_order=max_order)
    if max_order > MAX_SET:
        raise ValueError(
            f"max_order must be at most {MAX_SET}, got {max_order}: no order of records is near in more columns."
        )
    check.non_negative(stop=stop)
    _require_fit(records)
    budget = Budget.of(epsilon, delta, Relation.REPLACE_ONE, cube=True)
    directions = DIRECTIONS if directions is None else directions
    check.in_range(-1.0, 1.0, directions=directions)
    check.non_negative(directions=directions)
    shares = _with_columns((CUBE_SHARES if budget.pure else SHARES)[ALL].with_directions(directions))
    facts = known(knowledge, records.names)
    asked = described(records, Relation.REPLACE_ONE, knowledge=knowledge, max_order=max_order, stop=stop, shares=shares)

    def found(session, records):
        centre, scale = _centres_and_scales(session, records, budget)
        scores = NeighbourScores(_values(records), centre, scale, _unordered(records))
        size = records.num_records
        null = (null_level(size) / CHANCE, CHANCE)
        setting = Setting(tuple(records.levels), size, epsilon, delta)
        arrows = dataclasses.replace(ARROWS, trust=trust(setting))
        bounds = Bounds(SENSITIVITY, SENSITIVITY, rounding(size), size, null, scores.looks, arrows=arrows)
        found = MaxMinScores((0,) * len(records.columns), scores, max_order, facts)
        graph = Selection(session, records, budget, shares, facts, found, bounds, drawn=2).graph(ALL, stop)
        copies = [
            (told.i, told.j)
            for told in graph.decisions
            if told.value is not None
            and told.value >= COPY * size
            and {records.levels[told.i], records.levels[told.j]} == {0}
        ]
        cautions = hardly_nearer(setting, _weakest, HARDLY_NEARER), near_copies(records.names, copies, clear=False)
        notes = (*cautions, MODEL, graph.note)
        return dataclasses.replace(graph, note=" ".join(filter(None, notes)))

    return searched(
        key, "neighbour_pc", budget.cost(), records, found, ledger=ledger, keep=keep, asked=asked, knowledge=knowledge
    )


def _with_columns(shares: Shares) -> Shares:
    """The same shares of what centres and scales leave."""
    tree, forward, prune, directions = (
        part * (1 - BEFOREHAND) for part in (shares.tree, shares.forward, shares.prune, shares.directions)
    )
    return Shares(tree, forward, prune, directions, BEFOREHAND)


def _unordered(records: Records) -> tuple[int, ...]:
    """Levels of each column of more than two unordered ones, 0 for the others."""
    return tuple(c.levels if c.kind == CATEGORICAL and c.levels > 2 else 0 for c in records.columns)


def _values(records: Records) -> np.ndarray:
    """All columns on [-1, 1], (n, d)."""
    values = np.asarray(records.values, float)
    coded = np.array([column.kind != CONTINUOUS for column in records.columns])
    return np.where(coded, equally_spaced(values, [column.levels for column in records.columns]), values)


def _continuous_columns(data):
    return data.x


def _centres_and_scales(session: Session, records: Records, budget: Budget) -> tuple[np.ndarray, np.ndarray]:
    """Released medians and standard deviations (of normal columns) of the continuous columns; 0 and 1 of the others."""
    places = [place for place, column in enumerate(records.columns) if column.kind == CONTINUOUS]
    centre, scale = np.zeros(len(records.columns)), np.ones(len(records.columns))
    values = np.asarray(records.values, float)[:, places]
    data = Data(values, values)
    fields: dict[str, Any] = {"columns": _continuous_columns, "num_columns": len(places)}
    first = PrivateCentres(mechanism=budget.whole.share(BEFOREHAND / 2), **fields)
    centre[places] = np.asarray(first.chosen(release_opened(first, session.source.fold_in(1), data)))
    second = PrivateScales(mechanism=budget.whole.share(BEFOREHAND / 2), centres=centre[places], **fields)
    chosen = np.asarray(second.chosen(release_opened(second, session.source.fold_in(2), data)))
    scale[places] = chosen / NORMAL_QUARTILE
    return centre, scale


def _require_fit(records: Records) -> None:
    if not _continuous(records.levels):
        raise ValueError("neighbour_pc needs two columns, one of them continuous; for coded columns use max_min_pc.")
