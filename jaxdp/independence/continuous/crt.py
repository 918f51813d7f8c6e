"""Conditional randomisation test with a known law of X given Z. NOT PRIVATE: a reference."""

from typing import Any, ClassVar

import jax.numpy as jnp

from jaxdp import null_laws
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.independence.continuous.resampling import RandomizationTest, from_law
from jaxdp.mechanisms import Exact
from jaxdp.spec import TestSpec
from jaxdp.statistics.kernel_ridge import low_rank


@frozen_pytree
class CRT(RandomizationTest):
    """Conditional randomisation test (Candes et al. 2018) of X independent of Y given Z. NOT PRIVATE.

    Statistic: T_0 = sum_i r_i e_i and the same for m resamples of X; x, y of shape (n,).
    Residuals of Y are those of a low-rank fit where it is certified to 1e-4 (float64: 1e-10), which cannot touch the
    level. P-value: (1 + #{T_j >= T_0})/(m + 1), exact at any n. Privacy: none (epsilon infinite); refuses release keys.
    """

    mechanism: Any = Exact()

    regress: ClassVar[Any] = staticmethod(low_rank.krr_residuals)
    spec: ClassVar[TestSpec] = TestSpec(
        name="crt",
        summary="non-private reference for a known law of X given Z, NOT PRIVATE",
        private=False,
        from_domain=from_law,
        needs=("law",),
        alternatives="covariance of X and Y given Z",
        needs_all="it resamples the whole column X many times",
        theory="docs/theory/crt.md",
    )
    gradient_free = null_laws.RANK

    def default_winsorize(self, num_records):
        return 1e3

    def sensitivity(self, num_records):
        return Sensitivity(jnp.inf, Norm.LINF, Relation.REPLACE_ONE)

    def p_value(self, key, release):
        observed, copies = release.value
        return null_laws.monte_carlo(observed, copies)

    def estimate(self, release):
        """T_0."""
        return release.value[0]
