"""Tables of persons with several rows: how much less than tables of single rows they vary, released beside them.

Symbols: p, q = margins of a stratum of the released table, e_a = unit vector of a row's level, u_i = mean over draws of
(e_a - p)(e_b - q)' of person i, G = sum |u_i|^2 or the same of the rows or columns of u_i for one level, whichever is
largest over what it is for single rows, D = G over that (docs/theory/persons.md#tables); s, t = midranks of ordered
levels, centred.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import PrivateTest, Relation, Sensitivity
from jaxdp.data.person_rows import DRAWS, PersonRows
from jaxdp.results import Release, bare
from jaxdp.statistics.tables.noisy_table_statistics import TINY, midranks, nearest_shares, shares

SPREAD = 4.0  # |u|^2 <= |e_a - p|^2 |e_b - q|^2 <= 2 * 2: what one person adds to G, with any rows
SHARE = 0.15  # of the budget of a table, for G
HEAVIEST = 3.0 * SPREAD  # what one person adds to the sum of a level, at most; all if 3 % of the records have it
SEEN = 3.0  # sds of its noise that the records of a level must be, for its sum to say something
MAX_NOISE = 0.07  # of G for single rows of evenly spread levels: with more of it one row of each person counts
RAISED = 256  # by which the rounding of a square may be raised with it: of a level that the table's noise does not hide
UNIT_ROUNDOFF = 2.0**-53


def shows_spread(mechanism: Any, shape: tuple[int, int], num_records: int) -> bool:
    """Whether noise leaves G to be seen, by public numbers; a traced budget counts as epsilon 1."""
    part = mechanism.share(SHARE)
    scale = part.scale(Sensitivity(SPREAD, part.norm, Relation.REPLACE_ONE))
    if not check.is_concrete(scale):
        scale = SPREAD / SHARE
    even = num_records * (1.0 - 1.0 / shape[0]) * (1.0 - 1.0 / shape[1])
    return bool(np.asarray(scale) <= MAX_NOISE * even)


def on_table(stage: SpreadOfPersons, query: Any, released: Release) -> SpreadOfPersons:
    """The second stage, with the table that the first released."""
    return dataclasses.replace(stage, table=query, released=bare(released))


@frozen_pytree
class SpreadOfPersons(PrivateTest):
    """Second stage of a test of one noisy table: G of persons, by which the table is judged.

    Statistic: G = sum over persons of |mean over draws of (e_a - p)(e_b - q)'|^2, given the released margins, or the
    same of one level of x or y, as a share of what it is for single rows, or of two ordered columns that of their
    midranks, by which the rank correlation varies: the largest, in units that the released table decides.
    Sensitivity: 4, one person replaced with all rows (docs/theory/persons.md#tables). Privacy: that of the mechanism.
    P-value, effect: those of the table of m/D records: the table over D, with the noise of a cell over D.

    table: the test of the table. released: its release.
    """

    table: Any = None
    released: Any = None

    method: ClassVar[str] = "SpreadOfPersons"
    averages_rows: ClassVar[bool] = True
    uses_z: ClassVar[bool] = True  # where its table does, whose own word was asked before
    gradient_free = null_laws.RANK

    def statistic(self, key, data):
        """G of persons with one row each."""
        return self.statistic_of_persons(key, PersonRows(jax.tree.map(lambda leaf: leaf[:, None], data)))

    def statistic_of_persons(self, key, rows):
        """G, without a table for each person: |u|^2 is a mean over pairs of draws of products of two inner products."""
        p, q = self._margins()
        stratum, a, b = jax.vmap(self.table.codes_of, in_axes=1)(rows.draws)
        count = len(a)

        def add(number, found):
            one, other = number // count, number % count
            here, there = stratum[one], stratum[other]
            of_p, of_q = _products(p[here], p[there], a[one], a[other]), _products(q[here], q[there], b[one], b[other])
            by_row, by_column = found
            rows_of, columns_of = of_p * jnp.sum(of_q, axis=1)[:, None], of_q * jnp.sum(of_p, axis=1)[:, None]
            return by_row + rows_of, by_column + columns_of

        zero = jnp.zeros((a.shape[1], p.shape[1]), float), jnp.zeros((a.shape[1], q.shape[1]), float)
        by_row, by_column = jax.lax.fori_loop(0, count * count, add, zero)
        found = jnp.sum(jnp.clip(jnp.sum(by_row, axis=1) / count**2, 0.0, SPREAD))
        for squares, (raised, most) in zip((by_row, by_column), self._levels(), strict=True):
            found = jnp.maximum(
                found, jnp.max(jnp.sum(jnp.clip(squares / count**2 * raised[None], 0.0, most[None]), axis=0))
            )
        if self.table.counts_ranks():
            s, t = midranks(p), midranks(q)
            ranks = jnp.mean(s[stratum, a] * t[stratum, b], axis=0) ** 2
            own = self._of_single(jnp.sum(p * s**2, axis=1) * jnp.sum(q * t**2, axis=1))
            raised = ranks * self._usual() / jnp.maximum(own, TINY)
            found = jnp.maximum(found, jnp.sum(jnp.clip(raised, 0.0, SPREAD)))
        return found / self._unit()

    def _usual(self):
        """The mean of |u|^2 over single rows."""
        p, q = self._margins()
        return self._of_single((1.0 - jnp.sum(p**2, axis=1)) * (1.0 - jnp.sum(q**2, axis=1)))

    def _levels(self):
        """Of the levels of x and of y: by what their squares are raised, so that their mean over single rows is the
        usual one, and the most that one person adds then, cut at `HEAVIEST`; 0 for levels that the table's noise hides.
        """
        p, q = self._margins()
        cells, usual = self._counts(), self._usual()
        noise = self.table.mechanism_in_force().variance(self.released.sensitivity)
        found = []
        for own, other in ((p, q), (q, p)):
            squared = jnp.sum(other**2, axis=1, keepdims=True)
            raised = usual / jnp.maximum(self._of_single(own * (1.0 - own) * (1.0 - squared)), TINY)
            longest = jnp.max(1.0 - 2.0 * other + squared, axis=1, keepdims=True)  # |e_b - q|^2
            most = raised * jnp.max(jnp.maximum(1.0 - own, own) ** 2 * longest, axis=0)
            records = jnp.sum(cells) * self._of_single(own)
            seen = records > SEEN * jnp.sqrt(noise * cells.shape[0] * other.shape[1])
            found.append((raised, jnp.where(seen, jnp.minimum(most, HEAVIEST), 0.0)))
        return found

    def _unit(self):
        """By what G is divided, so that one person moves it by no more than `SPREAD`."""
        return jnp.maximum(1.0, jnp.max(jnp.concatenate([most for _, most in self._levels()])) / SPREAD)

    def _of_single(self, in_strata):
        """The mean over the records of what this is in each stratum, the first axis."""
        return jnp.tensordot(shares(jnp.sum(self._counts(), axis=(1, 2))), in_strata, 1)

    def _margins(self):
        """p (strata, r) and q (strata, c)."""
        cells = self._counts()
        return nearest_shares(jnp.sum(cells, axis=2)), nearest_shares(jnp.sum(cells, axis=1))

    def _counts(self):
        cells = jnp.asarray(self.released.value, float)
        return cells.reshape(-1, *cells.shape[-2:])

    def sensitivity(self, num_records):
        return Sensitivity(
            bound=SPREAD,
            norm=self.mechanism_in_force().norm,
            relation=Relation.REPLACE_ONE,
            error=HEAVIEST * num_records * (num_records + RAISED) * UNIT_ROUNDOFF,
            lower=0.0,
            upper=SPREAD * num_records,
        )

    def of_records(self, release):
        """The test of the table, and its release as of the m/D records that it varies as."""
        guard = self.mechanism_in_force().scale(release.sensitivity)
        part = self._unit() * (release.value + guard) / (release.num_records * jnp.maximum(self._usual(), TINY))
        part = jnp.clip(part, 1.0 / DRAWS, 1.0)
        larger = dataclasses.replace(
            self.released,
            value=self.released.value / part,
            sensitivity=jax.tree.map(lambda number: number / part, self.released.sensitivity),
            num_records=release.num_records / part,
        )
        return self.table, larger

    def interpret(self, key, release):
        """As the test of the table has it, but for a table, which is told as it was released."""
        table, larger = self.of_records(release)
        found = table.interpret(key, larger)
        return found._replace(estimate=self.released.value) if found.estimate is larger.value else found


def _products(here, there, one, other):
    """Entries of e_one - p times those of e_other - p', (n, levels), p and p' in the rows of `here` and `there`."""
    own, others = (jax.nn.one_hot(codes, here.shape[1], dtype=here.dtype) for codes in (one, other))
    return (own - here) * (others - there)
