"""How tests are built from a schema's columns, where several tests share it: guesses of residual sds, kernel fields."""

from __future__ import annotations

from typing import Any

from jaxdp.data.dataset import Column
from jaxdp.spec import Options
from jaxdp.statistics.kernel_ridge.kernels import RBF

# Public guesses of the residual sd, in units of the [-1, 1] scaling, that tests winsorise by.
# Continuous: the smallest guess whose measured level stayed at or below 0.06 in every setting of
# experiments/evidence/residual_scale (0.1 reached 0.078); for residual sds of 0.1 and more it loses at most 0.10 of
# power.
CONTINUOUS_RESIDUAL_SCALE = 0.2
# Two-valued columns sit on -1 and 1 and ordered ones between: their sd is that of the coding itself.
DISCRETE_RESIDUAL_SCALE = 0.5

WITHIN_CELLS = (
    "Within each public cell of Z, the means of X and Y are nearly constant. If it is public knowledge that Z "
    'lies mostly in a part of its bounds, write scale = "log" or narrower bounds.'
)
ACCURATE_FIT = (
    "Kernel ridge regression on Z removes what Z explains of X and of Y; a poor fit makes false findings more frequent."
)
KERNEL_OPTIONS = ("ridge", "lengthscale")
KERNEL_COPIES = 4  # n x n float64 arrays alive at once in kernel ridge regression


def residual_scale(columns: tuple[Column, ...]) -> float:
    """The default guess for these columns of x or y; the smallest where they differ."""
    guesses = (DISCRETE_RESIDUAL_SCALE if column.levels else CONTINUOUS_RESIDUAL_SCALE for column in columns)
    return min(guesses, default=CONTINUOUS_RESIDUAL_SCALE)


def kernel_fields(options: Options) -> dict[str, Any]:
    """Fields of kernel methods that the options set."""
    fields: dict[str, Any] = {} if options.ridge is None else {"ridge": options.ridge}
    if options.lengthscale is not None:
        fields["kernel"] = RBF(lengthscale=options.lengthscale)
    return fields


def kernel_memory(num_records: int) -> int:
    """Bytes of the n x n float64 arrays that kernel ridge regression holds at once."""
    return KERNEL_COPIES * 8 * num_records**2
