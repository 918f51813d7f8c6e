"""Is what windows of neighbours found also what X and Y add that jump with Z? Read off one more released sum.

Symbols: T = the sum over windows, T_s = the same with the records dealt out to s = r^d classes, so that windows are r
times as wide; g = 1/(r - 1), W = (1 + g) T - g T_s, D = T_s - T (docs/theory/ordered_neighbours.md#roughness).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

SHARES = {"windows": 0.75, "coarse": 0.25}  # of the budget
FLAG = "curvature"
RATIOS = {2: 4}  # r; given more columns of Z windows that wide span whole trends
LEVEL = 0.05  # of the finding that has to be there without what jumps add, and of the doubt that they add something
AFFORDABLE = 1 / 8  # noise of the whole budget over the null variance, up to which the share is hardly missed
FEWEST_WINDOWS = 7 / 8  # of all, that classes leave
FEWEST_RECORDS = 1000  # below, windows four times as wide span whole trends
CORRECTED_RATE = 17 / 9  # null variance of W, in those of T, were T and T_s independent and of one variance
MAX_CORRECTED_RATE = 4 / 3  # measured: the largest of W, in the largest of T (#roughness)


def num_classes(depth: int) -> int:
    """s, for windows that are r times as wide; 1 where there is no check."""
    return RATIOS.get(depth, 1) ** depth


def is_worth_it(num_records: int, depth: int, strata: int, size: int, noise_over_null: float) -> bool:
    """Whether the check is made without being asked for; public.

    size: m. noise_over_null: variance of the noise that the whole budget would put on T over the null variance of T.
    """
    lost = num_classes(depth) * strata * (size - 1) / num_records
    enough = num_records >= FEWEST_RECORDS and lost <= 1 - FEWEST_WINDOWS
    return depth in RATIOS and enough and noise_over_null <= AFFORDABLE


class Doubt(NamedTuple):
    """What a released check says.

    fine, coarse: T and T_s. p_value: of W. agrees: whether W and T have one sign. coarser: one-sided p-value of D, in
    the direction of T.
    """

    fine: Any
    coarse: Any
    p_value: Any
    agrees: Any
    coarser: Any


def doubt(value, budget, sensitivity, null_variance, largest, depth: int) -> Doubt:
    """Of the released sums {"windows": T, "coarse": T_s}; null_variance: of T without noise, at most `largest`."""
    law, gain = budget["windows"], 1.0 / (RATIOS[depth] - 1.0)
    fine, coarse = value["windows"], value["coarse"]
    scales = jnp.stack([jnp.asarray(budget[name].scale(sensitivity[name])) for name in ("windows", "coarse")])
    corrected, added = (1.0 + gain) * fine - gain * coarse, (coarse - fine) * jnp.sign(fine)
    sd = jnp.sqrt(null_variance)
    sd_corrected = jnp.sqrt(jnp.minimum(CORRECTED_RATE * null_variance, MAX_CORRECTED_RATE * largest))
    two_sided = law.combined_p_value(added, sd, scales)
    return Doubt(
        fine,
        coarse,
        law.combined_p_value(corrected, sd_corrected, scales * jnp.array([1.0 + gain, gain])),
        jnp.sign(corrected) == jnp.sign(fine),
        jnp.where(added > 0.0, 0.5 * two_sided, 1.0 - 0.5 * two_sided),
    )


def is_raised(found: Doubt, pairs: int = 1):
    """Whether T could be what jumps of X and Y make of true independence; pairs: of columns, T that of one of them."""
    return ~(found.agrees & (found.p_value * pairs <= LEVEL)) | (found.coarser <= LEVEL)


def flag(found: Doubt, pairs: int, depth: int) -> dict[str, str]:
    """The flag with its sentence; {} where a finding is also there without what jumps would add."""
    if not bool(is_raised(found, pairs)):
        return {}
    p_value = min(1.0, pairs * float(found.p_value)) if bool(found.agrees) else 1.0
    return {
        FLAG: f"Roughness, released: windows {RATIOS[depth]} times as wide in Z add up to {float(found.coarse):.4g} "
        f"where the test's own add up to {float(found.fine):.4g}; without what jumps of X and Y would add to both, "
        f"p = {p_value:.2g}."
    }
