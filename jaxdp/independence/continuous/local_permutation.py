"""PrivLPT: local permutation test, a private decision with exact level.

Theory: docs/theory/local_permutation.md.
"""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp import null_laws
from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.independence import builders
from jaxdp.independence.continuous.coarse_cells import WithinCells
from jaxdp.mechanisms import RankThreshold, Split
from jaxdp.spec import DECISION, Planning, TestSpec, on_a_line
from jaxdp.statistics import partition
from jaxdp.statistics.winsorize import best_level

REFERENCE_BOUND = 2.0  # T_0 = sum x_i y_i with |x|, |y| <= 1
PERMUTED_BOUND = 6.0  # uniform permutations of neighbours couple by delete and insert, 3 each


def _from_domain(cls, epsilon, domain, options):
    """On a schema's [-1, 1] nothing is winsorised: values are not centred, so that a column off centre would be cut."""
    fields = {} if domain is None else {"winsorize": 1.0}
    return cls(epsilon=epsilon, level=options.level, num_cells=options.num_cells, **fields)


@frozen_pytree
class LocalPermutation(WithinCells):
    """Private local permutation test of X independent of Y given Z; releases the decision only.

    Statistic: T_0 = sum x_i y_i and T_j = sum x_i y_pi_j(i) for uniform permutations pi_j within the public
    cells of Z; x, y winsorised to [-1, 1], of shape (n,).
    Sensitivity: 2 for T_0 and 6 for T_j (coupled permutations), replace-one neighbours, Linf.
    Privacy: epsilon-DP for the decision at `level`; two-sided runs each side at (level/2, epsilon/2).
    P-value: `level` if rejected, else 1 (valid: P(p <= t) <= t). Exact level at any n and number of
    permutations if X is independent of Y given the cell; no variance estimate is needed.

    Refused unless accept_coarse_cells: two or more continuous columns of Z, which cells cut too coarsely.

    num_permutations: m >= 1/level - 1 (two-sided: 2/level - 1). reference, num_cells: as in `PartitionGCM`.
    """

    level: float = jax.tree.static(default=0.05)
    num_permutations: int = jax.tree.static(default=199)
    alternative: str = jax.tree.static(default="two-sided")
    reference: Any = None
    num_cells: int | None = jax.tree.static(default=None)
    winsorize: ArrayLike | None = None
    scale_x: ArrayLike = 1.0
    scale_y: ArrayLike = 1.0

    spec: ClassVar[TestSpec] = TestSpec(
        name="local-permutation",
        needs_all="it permutes records among their neighbours",
        summary="decision at --level only; exact level at any n if X and Y are independent in each cell of Z",
        publishes=DECISION,
        from_domain=_from_domain,
        options=("level", "num_cells"),
        assumption=builders.WITHIN_CELLS,
        alternatives="covariance of X and Y given Z",
        accepts=on_a_line,
        planning=Planning("continuous:local_permutation_power", narrow=True, gaussian=False),
        theory="docs/theory/local_permutation.md",
    )
    gradient_free = null_laws.DECISION

    def __post_init__(self):
        super().__post_init__()
        check.in_range(0.0, 1.0, level=self.level)
        check.one_of(("two-sided", "greater", "less"), alternative=self.alternative)
        check.at_least(1, num_permutations=self.num_permutations)
        enough_copies(self.num_permutations, self._side_level(), "num_permutations")

    def mechanism_in_force(self):
        if self.mechanism is not None:
            return self.mechanism
        share = 1.0 / len(self._sides())
        mechanism = RankThreshold(epsilon=check.share(self.epsilon, share), level=self._side_level())
        return Split(parts=dict.fromkeys(self._sides(), mechanism))

    def specialize(self, shapes):
        """This test. Errors: `CoarseCells` before anything is spent."""
        if shapes.z is not None:
            self.refuse_coarse_cells(partition.columns_of_z(shapes))
        return self

    def statistic(self, key, data):
        """Dict side -> (T_0, T of shape (m,)); `less` carries the opposite sign."""
        scores = [_one_column(array, name) for array, name in ((data.x, "x"), (data.y, "y"))]
        tau = self._level_of(data.x.shape[0])
        x = partition.clip_to(scores[0], tau * self.scale_x)
        y = partition.clip_to(scores[1], tau * self.scale_y)
        target = partition.target_cells(x.shape[0], self.num_cells)
        cell, _ = partition.cells_of(data, target, self.reference)
        order = jnp.argsort(cell)
        x, y, cell = x[order], y[order], cell[order]

        def permuted(number):
            bits = jax.random.bits(jax.random.fold_in(key, number), cell.shape)
            return jnp.dot(x, jax.lax.sort((cell, bits, y), num_keys=2)[2], precision="highest")

        copies = jax.lax.map(permuted, jnp.arange(self.num_permutations), batch_size=8)
        observed = jnp.dot(x, y, precision="highest")
        both = {"greater": (observed, copies), "less": (-observed, -copies)}
        return {side: both[side] for side in self._sides()}

    def sensitivity(self, num_records):
        error = 2.0 * num_records**2 * 2.0**-53
        parts = tuple(
            Sensitivity(bound, Norm.LINF, Relation.REPLACE_ONE, error, -1.0 * num_records, 1.0 * num_records)
            for bound in (REFERENCE_BOUND, PERMUTED_BOUND)
        )
        return dict.fromkeys(self._sides(), parts)

    def p_value(self, key, release):
        return null_laws.decision(self.estimate(release), self.level)

    def estimate(self, release):
        """True where independence is rejected."""
        rejected = False
        for side in self._sides():
            rejected = rejected | release.value[side]
        return rejected

    def axis_bins(self, data, release=None):
        """Public description of the cells of z, for people (`partition.AxisBins` for each column)."""
        return partition.axis_bins(data, partition.target_cells(data.x.shape[0], self.num_cells), self.reference)

    def _sides(self) -> tuple[str, ...]:
        return ("greater", "less") if self.alternative == "two-sided" else (self.alternative,)

    def _side_level(self) -> float:
        return self.level / len(self._sides())

    def _level_of(self, num_records: int):
        if self.winsorize is not None:
            return self.winsorize
        epsilon = check.positive_or_nan(self.epsilon if self.epsilon is not None else 1.0)
        scale = len(self._sides()) * (REFERENCE_BOUND + PERMUTED_BOUND) / epsilon
        return best_level(num_records, 2.0 * scale**2)


def enough_copies(count: int, level: float, name: str) -> None:
    """Raises if a rank test at this level could never reject."""
    needed = int(-(-1.0 // level)) - 1 if level > 0 else 0
    if (count + 1) * level < 1.0 - 1e-9:
        raise ValueError(f"{name}={count} can never reject at level {level}; use at least {needed}.")


def _one_column(values, name: str):
    if partition.num_columns(values) != 1:
        raise ValueError(f"{name} must have one column here, got {partition.num_columns(values)}.")
    return jnp.ravel(partition.as_matrix(values))
