"""What the conditional randomisation tests share: T_j = sum_i r_i^(j) e_i for X and its resamples.

r^(j) are residuals of X (j = 0) or of a resample (j >= 1) from the known mean, winsorised to [-1, 1];
e are residuals of Y: Y itself (winsorised), or kernel ridge residuals of it.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import PrivateTest
from jaxdp.data import conditioning
from jaxdp.data.coding import ColumnRule
from jaxdp.data.columns import CONTINUOUS
from jaxdp.independence.continuous.validity import Validity, law_rule
from jaxdp.statistics import conditional_law, partition
from jaxdp.statistics.kernel_ridge.ridge import krr_residuals


def in_own_units(law, x: Sequence[ColumnRule], z: Sequence[ColumnRule]):
    """A law in the columns' own units as one of x and z as a schema scales and codes them (docs/theory/crt.md#units).

    x, z: the schema's rules.
    Errors: ValueError for columns whose own units no law can be stated in.
    """
    if not hasattr(law, "clipped_moments"):
        return law  # the test says what a law is
    if len(x) != 1 or x[0].needs_indicators:
        raise ValueError("a law of X given Z needs one column X of numbers, of ordered or of two levels.")
    if x[0].logarithmic:
        raise ValueError(
            f"the law of X given Z is one of the numbers of {x[0].name!r}, and the schema scales their logarithm: "
            "declare it without scale, or use a column of logarithms."
        )
    for rule in (*x, *z):
        if rule.counts_in_steps and _are_numbers(rule.levels):
            raise ValueError(
                f"the levels of {rule.name!r} are numbers that do not rise in equal steps, and are coded as if they "
                "did, so that no law can be stated in them: declare it continuous, with bounds."
            )
    starts = np.cumsum([0, *(len(conditioning.columns(rule)) for rule in z)])  # a date is more than its own column
    first, step = _units(x[0])
    return conditional_law.ScaledLaw(
        law=law,
        x=(first, step) if x[0].is_continuous else (first + x[0].half_range, x[0].half_range),
        z=np.array([_units(rule) for rule in z]).T,
        places=tuple(starts[: len(z)].tolist()),
        logarithms=tuple(rule.logarithmic for rule in z),
    )


def _units(rule: ColumnRule) -> tuple[float, float]:
    """What 0 and a step of 1 are in the column's own units: of numbers on [-1, 1] (or their logarithm), or of codes."""
    if rule.is_continuous:
        ends = map(math.log, (rule.lower, rule.upper)) if rule.logarithmic else (rule.lower, rule.upper)
        return 0.5 * sum(ends), rule.half_range
    return (float(rule.levels[0]), rule.spacing) if rule.spacing else (0.0, 1.0)


def _are_numbers(levels: Sequence) -> bool:
    try:
        return all(math.isfinite(float(level)) for level in levels)
    except ValueError:
        return False


def from_law(cls, epsilon, domain, options):
    """Builder of tests that need the known law of X given Z; a decision is made at the level asked for."""
    names = {field.name for field in dataclasses.fields(cls)}
    fields = {"level": options.level} if "level" in names else {}
    return cls(law=options.law, **({"epsilon": epsilon} if cls.spec.private else {}), **fields)


@frozen_pytree
class RandomizationTest(PrivateTest):
    """Common fields of the conditional randomisation tests.

    law: known law of X given Z (`jaxdp.GaussianLaw`, `jaxdp.BernoulliLaw`, or your own `ConditionalLaw`), in the
        numbers of the data; `jaxdp.test` takes one in the columns' own units. It is asked about one record at a time
        and clipped, so the sensitivity holds for any law; the level needs the true one.
    num_resamples: m. alternative: 'two-sided' ranks |T|, 'greater' ranks T, 'less' ranks -T.
    winsorize: limit of the X residual in units of law.spread() and of y in units of scale_y; the default
        weighs clipping against noise. scale_y: public guess of the spread of y.
    kernel, ridge: kernel ridge regression of y on z; no kernel means no regression (any statistic is valid). A kernel
        of your own must be positive semidefinite with k(z, z) <= 1 for every z: its word is taken for the sensitivity.
    """

    law: Any = None
    num_resamples: int = jax.tree.static(default=199)
    alternative: str = jax.tree.static(default="two-sided")
    winsorize: ArrayLike | None = None
    scale_y: ArrayLike = 1.0
    kernel: Any = None
    ridge: ArrayLike = 10.0
    num_columns: tuple[int, int, int] = jax.tree.static(default=(1, 1, 1))

    reads_missing: ClassVar[bool] = True
    uses_z: ClassVar[bool] = True
    regress: ClassVar[Any] = staticmethod(krr_residuals)
    needs_law: ClassVar[str] = "jaxdp.GaussianLaw(function=mean_of_x, noise_sd=1.0)"

    def __post_init__(self):
        super().__post_init__()
        if self.law is None:
            raise ValueError(
                f"{type(self).__name__} needs law=, the known law of X given Z, such as {self.needs_law}; "
                "without one use PartitionGCM."
            )
        if not hasattr(self.law, "clipped_moments"):
            raise TypeError(
                f"law must be a jaxdp.ConditionalLaw, such as {self.needs_law}, got {type(self.law).__name__}."
            )
        check.at_least(1, num_resamples=self.num_resamples)
        check.one_of(("two-sided", "greater", "less"), alternative=self.alternative)
        check.positive(ridge=self.ridge, scale_y=self.scale_y)
        if self.winsorize is not None:
            check.positive(winsorize=self.winsorize)

    def specialize(self, shapes):
        """Notes how many columns there are; refuses data without z."""
        if shapes.z is None:
            raise ValueError(f"{type(self).__name__} needs z, which the law of X is conditional on.")
        scaled = shapes.domain is not None and any(c.kind == CONTINUOUS and c.levels for c in shapes.domain.x)
        if scaled and isinstance(self.law, conditional_law.BernoulliLaw):
            raise ValueError(
                "BernoulliLaw is of an x of 0 and 1, and these data were read with levels of x from -1 to 1: ask with "
                "jaxdp.test, which takes it, or give x as 0 and 1."
            )
        return partition.with_column_counts(self, shapes)

    def validity(self, data) -> Validity:
        """How wrong the law may be, for data (or shapes) of this size; public."""
        return law_rule(data.x.shape[0], self._noise_share(data.x.shape[0]))

    def _noise_share(self, num_records: int) -> float:
        """Smallest variance that noise adds to the statistic, as a share of its own; 0 is safe."""
        return 0.0

    def default_winsorize(self, num_records: int):
        """Winsorising level in units of the spread."""
        raise NotImplementedError

    def limits(self, num_records: int):
        """Clipping limits of the X residual and of y."""
        tau = self.default_winsorize(num_records) if self.winsorize is None else self.winsorize
        return tau * self.law.spread(), tau * self.scale_y

    def residual_of_y(self, data):
        """Winsorised y, or its kernel ridge residuals; shape (n,)."""
        y = column(partition.clip_to(partition.as_matrix(data.y), self.limits(data.x.shape[0])[1]), "y")
        if self.kernel is None:
            return y
        return self.regress(self.kernel, self.ridge, partition.as_matrix(data.z), y[:, None])[:, 0]

    def statistic(self, key, data):
        """(T_0, T) with T of shape (m,), folded by the alternative."""
        mean = self._means(data)
        score = self._score(data, mean)

        def resampled(number):
            return score(conditional_law.draws(self.law, jax.random.fold_in(key, number), data.z, mean))

        copies = jax.lax.map(resampled, jnp.arange(self.num_resamples), batch_size=64)
        observed = score(column(partition.as_matrix(data.x), "x"))
        return self._fold(observed), self._fold(copies)

    def statistic_of_resamples(self, data, resamples):
        """(T_0, T) for given resamples (m, n) of x instead of drawn ones: one product, whatever m.

        Row j must be drawn from the law given data.z, independently of data.x and data.y; `num_resamples` is not used.
        """
        resamples = jnp.asarray(resamples)
        if resamples.ndim != 2 or resamples.shape[1] != data.x.shape[0]:
            raise ValueError(f"resamples must have shape (m, {data.x.shape[0]}), got {resamples.shape}.")
        score = self._score(data, self._means(data))
        observed = score(column(partition.as_matrix(data.x), "x"))
        return self._fold(observed), self._fold(score(resamples))

    def _means(self, data):
        # behind a barrier: XLA would compute the mean anew for every resample
        return jax.lax.optimization_barrier(conditional_law.means(self.law, data.z))

    def _score(self, data, mean):
        """Function from x, shape (..., n), to sum_i r_i e_i; mean: the law's, (n,)."""
        limit, residual_y = self.limits(data.x.shape[0])[0], self.residual_of_y(data)

        def score(x):
            centred = x - mean.reshape((1,) * (x.ndim - 1) + mean.shape)
            return jnp.matmul(partition.clip_to(centred, limit), residual_y, precision="highest")

        return score

    def _fold(self, values):
        return {"two-sided": jnp.abs, "greater": jnp.positive, "less": jnp.negative}[self.alternative](values)


def column(values, name: str):
    """The one column of a matrix (n, 1), as (n,)."""
    if values.shape[1] != 1:
        raise ValueError(f"{name} must have one column here, got {values.shape[1]}; test one column at a time.")
    return values[:, 0]
