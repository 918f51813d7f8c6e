"""The studentised decision query: one number per CI query, >= 0 where the columns look independent.

Theory: docs/theory/conditional_kendall.md#decision-query: q = z sqrt(V + v0) - |U| moves by at most
Delta_U + z Delta_V/(2 sqrt(v0)), since the root is 1/(2 sqrt(v0))-Lipschitz. Each query is divided by its own
public bound, so all queries move by at most 1.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from jaxdp._base import check
from jaxdp.core import Relation
from jaxdp.data.records import Records
from jaxdp.discovery.engine import counts
from jaxdp.discovery.engine.skeleton import CIQuery
from jaxdp.independence.ranks.conditional_kendall import KENDALL_BOUNDS, VARIANCE_BOUNDS
from jaxdp.independence.ranks.rank_test import choose
from jaxdp.statistics import concordance

Z = 4.0  # threshold of searches, in null standard deviations
UNIT_ROUNDOFF = 2.0**-53
LARGE_SAMPLE = 5000
OFFSETS = (4.0, 25.0)  # v0 for n below and from 5000: it inflates the threshold by sqrt(1 + v0/V)


@dataclasses.dataclass(frozen=True)
class DecisionQuery:
    """q of a CI query, in units of its sensitivity under replace-one.

    z: threshold in standard deviations. offset: v0. rate: m/n when asked on a subset of m rows, so that
    signal and threshold shrink together (docs/theory/conditional_kendall.md#decision-query); 1 for the whole data.
    """

    z: float
    offset: float
    rate: float = 1.0

    def bound(self, query: CIQuery, levels) -> float:
        """Sensitivity of the undivided query under replace-one."""
        i, j, given = query
        pair = (levels[i], levels[j])
        move_u = choose(KENDALL_BOUNDS, pair, Relation.REPLACE_ONE, bool(given))
        move_v = choose(VARIANCE_BOUNDS, pair, Relation.REPLACE_ONE, bool(given))
        return move_u + self.z * self.rate * move_v / (2.0 * math.sqrt(self.offset))

    def value(self, tables, query: CIQuery) -> float:
        """Private: the query, divided by its bound."""
        return float(self.values(tables, [query])[0])

    def values(self, tables, queries: Sequence[CIQuery]) -> np.ndarray:
        """Private: the decision query of each CI query, divided by its bound, float64."""
        result = np.zeros(len(queries))
        for positions, batch in counts.batches(tables, queries):
            strata = concordance.strata_of_table(batch, kendall_only=True)
            binary = batch.shape[-1] <= 2  # the pair's larger number of levels
            u = concordance.kendall_u(strata, 0.0 if binary else concordance.KENDALL_OFFSET)
            v = concordance.cmh_variance(strata) if binary else concordance.kendall_variance(strata)
            undivided = self.z * np.sqrt(self.rate * v + self.offset) - np.abs(u)
            # one batch shares the levels of the pair and the size of `given`, hence the bound
            result[positions] = undivided / self.bound(queries[positions[0]], tables.levels)
        return result


def default_query(z: float, num_records: int, rate: float = 1.0) -> DecisionQuery:
    """The query with the default v0 for n records."""
    return DecisionQuery(z, OFFSETS[num_records >= LARGE_SAMPLE], rate)


def rounding(records: Records, z: float) -> float:
    """Bound on |computed - exact| of every query in float64, from public numbers.

    At most m = min(cells, n/2) strata contribute; a term of U is rounded twice, one of V less than levels + 32
    times, and the root of V + v0 (v0 >= 4) is 1/4-Lipschitz. Queries are divided by their bounds, which are >= 1.
    """
    check.non_negative(z=z)
    if 0 in records.levels:
        raise ValueError("tables need coded columns, but the data have continuous ones; give test=PartitionGCM(...).")
    strata = min(math.prod(records.levels), records.num_records // 2)
    roundings = (strata + max(records.levels) + 32.0) * (records.num_records + 16.0)
    return roundings * (1.0 + z / 2.0) * UNIT_ROUNDOFF
