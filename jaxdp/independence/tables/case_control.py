"""What all tests of a case/control table share: public groups, two counts, an exact null law.

Setting (docs/theory/unit_circle.md#setting): y says who is a case (1) or a control (0) and is public; x is
each person's private attribute, 0 or 1. Neighbours differ in one person's x. A test is a function
`score(c11, c10)` of the two counts plus noise; its p-value is the largest exact tail over the null rates.
"""

import dataclasses
import functools
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import core
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import PrivateTest, Relation, Sensitivity, method_of
from jaxdp.independence import noise_law
from jaxdp.mechanisms import Laplace
from jaxdp.spec import Columns, TestSpec, at_level, two_by_two
from jaxdp.statistics.tables import binomial
from jaxdp.statistics.tables.unit_circle import Groups

of_groups = functools.partial(
    TestSpec,
    columns=Columns.GROUPS,
    from_domain=at_level,
    options=("level",),
    alternatives="any dependence of two binary columns",
    accepts=two_by_two,
)  # the spec of such a test


@frozen_pytree
class CaseControlTest(PrivateTest):
    """Base of the 2x2 tests with public groups. Subclasses add `score`, `move` and `score_range`.

    num_cases, num_controls: public group sizes; taken from y if left out (inside `jit` they must be given).
    level: significance level the statistic is tuned for; the p-value is valid at every level.
    """

    num_cases: int | None = jax.tree.static(default=None)
    num_controls: int | None = jax.tree.static(default=None)
    level: float = jax.tree.static(default=0.05)

    public_columns: ClassVar[tuple[str, ...]] = ("y",)
    default_mechanism: ClassVar[type] = Laplace

    def __post_init__(self):
        super().__post_init__()
        check.in_range(0.0, 0.5, level=self.level)
        for name in ("num_cases", "num_controls"):
            if getattr(self, name) is not None:
                check.at_least(1, **{name: getattr(self, name)})
        if (self.num_cases is None) != (self.num_controls is None):
            raise ValueError(
                f"num_cases and num_controls go together, got {self.num_cases} and {self.num_controls}; "
                "give both, or neither to count them in y."
            )

    def score(self, exposed_cases, exposed_controls):
        """The statistic as a function of the two counts; broadcasts."""
        raise NotImplementedError

    def move(self):
        """How far `score` moves when one count moves by 1."""
        raise NotImplementedError

    def score_range(self):
        """Public (lower, upper) of `score`."""
        raise NotImplementedError

    def rounding(self, ends):
        """Bound on |computed - exact| in float64: fewer than 16 operations on numbers no larger than the range."""
        return 2.0**-49 * (jnp.abs(ends[0]) + jnp.abs(ends[1]) + 1.0)

    @property
    def groups(self) -> Groups:
        """The public group sizes."""
        if self.num_cases is None or self.num_controls is None:
            raise ValueError(
                "num_cases and num_controls are not known yet; give them, or call specialize with the data."
            )
        return Groups(self.num_cases, self.num_controls)

    def specialize(self, shapes):
        """Reads the public group sizes from the public y where they are not given."""
        if len(shapes.x.shape) != 1 or len(shapes.y.shape) != 1:
            raise ValueError(f"{method_of(self)} tests one binary x against one public group label y of shape (n,).")
        if shapes.domain is not None:
            _require_binary(method_of(self), (*shapes.domain.x, *shapes.domain.y))
        if shapes.z is not None:
            raise ValueError(f"{method_of(self)} has no conditional form: z must be None.")
        counted = _group_sizes(shapes.y)
        if self.num_cases is not None:
            if counted is not None and counted != self.groups:
                raise ValueError(f"num_cases and num_controls say {tuple(self.groups)}, y says {tuple(counted)}.")
            return self
        if counted is None:
            raise ValueError(f"inside jit {method_of(self)} needs num_cases= and num_controls= (public group sizes).")
        return dataclasses.replace(self, num_cases=counted.cases, num_controls=counted.controls)

    def statistic(self, key, data):
        """The score of the table, a scalar."""
        return self.of_counts(*self.counts(data))

    def of_counts(self, exposed_cases, exposed_controls):
        """The statistic as a function of the two counts: the score, unless a test releases more."""
        return self.score(exposed_cases, exposed_controls)

    @classmethod
    def settled_by(cls, labels) -> dict[str, int]:  # type: ignore[override]
        """The fields that the public labels y settle, from pieces of them, (m,) each."""
        sizes = np.sum([[np.sum(piece > 0.5), np.sum(~(piece > 0.5))] for piece in labels], axis=0)
        return {"num_cases": int(sizes[0]), "num_controls": int(sizes[1])}

    def partial(self, chunk, num_records=None):
        """(c11, c10), int64."""
        exposed, case = (np.asarray(values) > 0.5 for values in (chunk.x, chunk.y))
        return np.array([np.sum(exposed & case), np.sum(exposed & ~case)], np.int64)

    def finish(self, totals):
        with jax.enable_x64(True):
            counts = np.clip(totals, 0, np.array(self.groups)).astype(float)
            return jax.tree.map(np.asarray, self.of_counts(jnp.asarray(counts[0]), jnp.asarray(counts[1])))

    def needs_all(self, shapes, of_persons=False):
        order = type(self).__mro__
        own = next(k for k, cls in enumerate(order) if "statistic" in vars(cls))
        return "" if order[own] is CaseControlTest else core.NO_SUM

    def counts(self, data):
        """(c11, c10): people with x = 1 among the cases and the controls."""
        exposed, case = (jnp.asarray(values) > 0.5 for values in (data.x, data.y))

        def count(mask, most):
            return jnp.clip(jnp.sum(mask, dtype=jnp.int32), 0, most)

        cases, controls = count(exposed & case, self.num_cases), count(exposed & ~case, self.num_controls)
        return cases.astype(float), controls.astype(float)

    def sensitivity(self, num_records):
        if num_records != self.groups.total:
            raise ValueError(f"num_cases + num_controls must be the {num_records} rows, got {tuple(self.groups)}.")
        return self.sensitivity_of(self.mechanism_in_force(), self.move(), self.score_range())

    def sensitivity_of(self, mechanism, move, ends):
        """The sensitivity of a score with this move and public range, in the mechanism's norm."""
        lower, upper = ends
        bare = Sensitivity(move, mechanism.norm, Relation.REPLACE_ATTRIBUTE, self.rounding(ends))
        room = noise_law.margin(mechanism, bare)
        return dataclasses.replace(bare, lower=lower - room, upper=upper + room)

    def p_value(self, key, release):
        return self.null_tail(release.value, release.sensitivity)

    def null_tail(self, value, sensitivity, rates=None, mechanism=None):
        """max over null rates of P(score + noise >= value), exact for counts and noise; value of any shape."""
        mechanism = self.mechanism_in_force() if mechanism is None else mechanism
        survival = noise_law.survival(mechanism, sensitivity, method_of(self))
        rates = binomial.rates(self.groups) if rates is None else rates

        def one(v):
            return binomial.largest_tail(self.score, survival, v, self.groups, rates)

        value = jnp.asarray(value, float)
        tail = jax.lax.map(one, value.ravel()).reshape(value.shape) if value.ndim else one(value)
        # Release noise saturates at the window's edges: the lower edge holds everything below it.
        return jnp.clip(jnp.where(value <= sensitivity.lower, 1.0, tail), 0.0, 1.0)

    def critical_value(self, level: float | None = None):
        """The value from which on the test rejects at `level` (default: its own), a scalar."""
        sensitivity = self.sensitivity(self.groups.total)
        survival = noise_law.survival(self.mechanism_in_force(), sensitivity, method_of(self))
        bracket = (sensitivity.lower, sensitivity.upper)
        level = self.level if level is None else level
        rates = binomial.rates(self.groups)
        return binomial.critical_value(self.score, survival, level, self.groups, rates, bracket)


def _group_sizes(y) -> Groups | None:
    """Cases and controls in a concrete y; None for a traced one."""
    if not check.is_concrete(y):
        return None
    case = np.asarray(y) > 0.5
    sizes = Groups(int(case.sum()), int((~case).sum()))
    if min(sizes) < 1:
        raise ValueError(f"y must name at least one case and one control, got {sizes.cases} and {sizes.controls}.")
    return sizes


def _require_binary(method: str, columns) -> None:
    for column in columns:
        if column.levels != 2:
            named = f" {column.name!r}" if column.name else ""
            raise ValueError(f"{method} needs binary x and y, column{named} has {column.levels or 'no'} levels.")
