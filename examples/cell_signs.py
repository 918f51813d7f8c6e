"""A private test in one file: is X independent of Y given Z, judged by the signs of the covariances within cells?

jaxdp test trial.csv --schema trial.toml --x dose --y response --given age --epsilon 1 --method cell_signs:CellSigns
"""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp

import jaxdp
from jaxdp.mechanisms import Laplace
from jaxdp.statistics import partition


def design(key, n, effect):
    """A confounder Z of X and Y, and an effect of X on Y; effect 0 is the hypothesis."""
    return jaxdp.simulate.sine_confounder(key, n, effect=effect)


def example(key, n):
    """Data on which the test has something to find."""
    return design(key, n, 0.5)


def null(key, n):
    """Data under the hypothesis."""
    return design(key, n, 0.0)


@jaxdp.private_test
class CellSigns(jaxdp.PrivateTest):
    """Private test of X independent of Y given Z: how many cells of Z have a positive covariance, less the others.

    Statistic: Z-space is cut into public cells; S = sum over cells of the sign of sum (x - mean)(y - mean). x, y: (n,).
    Sensitivity: 4 in L1 for replace-one neighbours: a record leaves one cell and enters another, and each of the two
    signs moves by at most 2.
    Privacy: epsilon-DP (Laplace noise on S).
    P-value: two-sided, exact for the noise; S given the cells is a sum of independent signs with mean near 0 under the
    hypothesis, and K, the number of cells, bounds its variance.
    """

    num_cells: int = jax.tree.static(default=20)

    uses_z: ClassVar = True  # the statistic conditions on data.z; without this, data with a z are refused
    spec: ClassVar = jaxdp.TestSpec(
        name="cell-signs",
        summary="signs of the covariances within cells; an example",
        columns=jaxdp.Columns.SCORES,
        alternatives="covariance of X and Y given Z that has the same sign everywhere",
        planning=jaxdp.Planning(gaussian=False),
        examples=(jaxdp.Example(example, null=null, attack_tightness=1.0),),
    )
    default_mechanism = Laplace

    def statistic(self, key, data):
        """Private: S, a number."""
        del key
        cell, count = partition.cells_of(data, self.num_cells, None, None)
        sizes = partition.cell_counts(cell, count, float)
        x, y = (partition.center(partition.clip_to(v[:, None], 1e6), cell, sizes)[:, 0] for v in (data.x, data.y))
        return jnp.sum(jnp.sign(jax.ops.segment_sum(x * y, cell, count)))

    def sensitivity(self, num_records):
        """Data-free: 4 in L1, whatever the number of records."""
        del num_records
        return jaxdp.Sensitivity(
            4.0, jaxdp.Norm.L1, jaxdp.Relation.REPLACE_ONE, lower=-self.num_cells, upper=self.num_cells
        )

    def p_value(self, key, release):
        """Public: sees the noisy S alone."""
        del key
        return self.mechanism_in_force().null_p_value(release.value, math.sqrt(self.num_cells), release.sensitivity)
