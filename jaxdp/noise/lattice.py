"""Exact noise on an integer lattice, for releases.

A statistic is clipped into its public range, rounded down to a multiple of the lattice step, and meets
integer noise whose law is known bit by bit (`digits`) and certified on the host (`certificate`).
Each function returns the released value and the `Certificate` of the draw.
"""

import dataclasses
import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp._base import check
from jaxdp._base.kept_programs import kept_jit
from jaxdp.noise import certificate, discrete_gaussian, samplers
from jaxdp.noise.certificate import ESCAPE_BITS, Certificate, DigitTable, exact, floor_log2
from jaxdp.noise.smooth import ladder

SELECTION_LIMIT = 4096  # outcomes of an exponential mechanism: its work grows like 64 times their number
PROPOSAL_ESCAPE_BITS = 30
ROUNDS = 64
SPARSE_RESOLUTION = 20  # finer than elsewhere: family-wise levels are tails far out, which follow the scale closely
_CLIP = 2**52  # steps; scores beyond lose nothing, since clipping is 1-Lipschitz


def laplace(key, value, sensitivity, epsilon):
    """value + two-sided geometric noise on the lattice, of scale reach/epsilon; L1 bound.

    Returns float64 multiples of the step, of the value's shape.
    """
    value = _float64(value)
    plan = plan_laplace(value.size, sensitivity, epsilon)
    return add(key, value, plan), plan.facts


def geometric(key, value, sensitivity, epsilon):
    """Integer value + two-sided geometric noise with P(k) proportional to exp(-epsilon |k|/bound); L1 bound.

    Returns float64 integers, of the value's shape. Errors: TypeError unless the dtype is an integer one: flooring
    a number that isn't whole moves it by one step more than its bound.
    """
    value = jnp.asarray(value)
    if not jnp.issubdtype(value.dtype, jnp.integer):
        raise TypeError(
            f"geometric noise is for whole numbers, got {value.dtype}: cast counts with .astype(int), or use Laplace."
        )
    value = value.astype(np.float64)
    plan = plan_geometric(value.size, sensitivity, epsilon)
    return add(key, value, plan), plan.facts


@dataclasses.dataclass(frozen=True)
class Plan:
    """All that additive noise needs besides key and value: public, fixed before data are read."""

    exponent: int
    low: list[int]
    high: list[int]
    facts: Certificate
    table: DigitTable


def plan_laplace(size: int, sensitivity, epsilon) -> Plan:
    """Lattice, window and certificate of Laplace noise on `size` coordinates."""
    epsilon, reach = exact(epsilon, "epsilon"), reach_of(sensitivity, size)
    exponent = floor_log2(min(reach, reach / epsilon) / size) - certificate.RESOLUTION
    step = Fraction(2) ** exponent
    # floor moves a difference by less than one step per coordinate
    moves = Fraction(math.floor(reach / step) + size)
    low, high = window(sensitivity, step)
    facts, table = certificate.additive("laplace", moves, epsilon, step, min(low), max(high), size)
    return Plan(exponent, low, high, facts, table)


def plan_geometric(size: int, sensitivity, epsilon) -> Plan:
    """Window and certificate of geometric noise on `size` integers."""
    epsilon, bound = exact(epsilon, "epsilon"), exact(sensitivity.bound, "the sensitivity's bound")
    reach = reach_of(sensitivity, size)
    moves = bound if reach == bound else Fraction(math.floor(reach) + size)
    low, high = window(sensitivity, Fraction(1))
    facts, table = certificate.additive("geometric", moves, epsilon, Fraction(1), min(low), max(high), size)
    return Plan(0, low, high, facts, table)


def gaussian(key, value, sensitivity, rho):
    """value + discrete Gaussian noise on the lattice, of sd reach/sqrt(2 rho); L2 (or L1) bound.

    Returns float64 multiples of the step, of the value's shape.
    """
    value = _float64(value)
    rho, reach = exact(rho, "rho"), reach_of(sensitivity, value.size)
    exponent = discrete_gaussian.step_exponent(reach, rho, value.size)
    step = Fraction(2) ** exponent
    low, high = window(sensitivity, step)
    moves = reach / step + _root_above(value.size)
    facts, tables = discrete_gaussian.gaussian(moves**2, rho, step, min(low), max(high), value.size)
    rows = tables.tables[0].shape[1] * len(tables.bases) + 3
    draw = functools.partial(
        samplers.gaussian, tables=tables.tables, window=_ends(facts), bases=tables.bases, escape_bits=ESCAPE_BITS
    )
    released = _in_passes(key, rows, draw, _steps(value, exponent, low, high))
    return _scaled(released, exponent).reshape(value.shape), facts


def max_norm(key, value, sensitivity, epsilon):
    """value + noise of density proportional to exp(-epsilon max |x_j|/reach) on the lattice, one vector; Linf bound.

    Returns float64 multiples of the step, of the value's shape. A radius, one-sided geometric draws added up, and a
    uniform point of the cube of that radius (docs/theory/lattice_noise.md#max-norm).
    """
    value = _float64(value)
    epsilon, reach = exact(epsilon, "epsilon"), reach_of(sensitivity, value.size)
    exponent = floor_log2(min(reach, reach / epsilon)) - certificate.RESOLUTION
    step = Fraction(2) ** exponent
    moves = Fraction(math.floor(reach / step) + 1)
    low, high = window(sensitivity, step)
    facts, table = certificate.max_norm(moves, epsilon, step, min(low), max(high), value.size)
    key_radius, key_point, key_escape = jax.random.split(key, 3)
    total = jnp.sum(_one_sided_noise(key_radius, table, value.size + 1))
    most = 2 ** len(table.digits) - 1
    radius = certificate.least_radius(value.size) + jnp.minimum(total, most), total <= most
    bits, spare = samplers.random_bits(key_point, 3 * value.size), samplers.random_bits(key_escape, 1)
    steps = _steps(value, exponent, low, high).reshape(value.size)
    released = samplers.in_cube(bits, spare, steps, radius, _ends(facts), escape_bits=ESCAPE_BITS, size=value.size)
    return _scaled(released, exponent).reshape(value.shape), facts


def argmax_exponential(key, scores, sensitivity, epsilon):
    """argmax of lattice scores + one-sided geometric noise of mean about 2 reach/epsilon; Linf bound."""
    scores = _scores(scores)
    epsilon, reach = exact(epsilon, "epsilon"), reach_of(sensitivity, scores.size)
    exponent = floor_log2(min(reach, reach / epsilon)) - certificate.RESOLUTION
    step = Fraction(2) ** exponent
    moves = Fraction(math.floor(reach / step) + 1)
    facts, table = certificate.one_sided("argmax_exponential", moves, epsilon, step, scores.size, factor=2)
    key_noise, key_escape = jax.random.split(key)
    noise = _one_sided_noise(key_noise, table, scores.size)
    steps = _clipped_steps(scores, exponent)
    spare = samplers.random_bits(key_escape, 2)
    return samplers.selected(spare, steps, noise, _mask(scores.size), escape_bits=ESCAPE_BITS), facts


def argmax_gumbel(key, scores, sensitivity, epsilon):
    """The exponential mechanism exp(epsilon score/(2 reach)) on lattice scores, by proposals; Linf bound.

    Same law as argmax of scores + Gumbel noise: a fixed number of uniform proposals, each accepted with
    probability exp(-rate (max score - score)). Costs epsilon and at most epsilon^2/8 of zCDP.
    """
    scores = _scores(scores)
    if scores.size > SELECTION_LIMIT:
        raise ValueError(
            f"the exponential mechanism takes at most {SELECTION_LIMIT} scores in a release, got {scores.size}; "
            "use ReportNoisyMax."
        )
    epsilon, reach = exact(epsilon, "epsilon"), reach_of(sensitivity, scores.size)
    exponent = floor_log2(min(reach, reach / epsilon)) - certificate.RESOLUTION
    step = Fraction(2) ** exponent
    moves = Fraction(math.floor(reach / step) + 1)
    facts, table = certificate.exponential(
        moves, epsilon, step, scores.size, escape_bits=PROPOSAL_ESCAPE_BITS, rounds=ROUNDS
    )
    key_round, key_escape = jax.random.split(key)
    layout, thresholds = samplers.layout_of(table.digits), samplers.packed(table.digits)
    steps, mask = _clipped_steps(scores, exponent), _mask(scores.size)
    missing = jnp.full((int(mask) + 1 - scores.size,), -1, np.int64)
    deficits = jnp.concatenate([jnp.max(steps) - steps, missing])
    draw = functools.partial(samplers.proposals, deficits=deficits, thresholds=thresholds, mask=mask, layout=layout)
    index, accepted = _in_passes(key_round, samplers.rows_of(layout) + 1, draw, size=ROUNDS * (int(mask) + 1))
    spare = samplers.random_bits(key_escape, 2)
    other = samplers.anywhere(spare[1], np.int64(0), np.int64(scores.size - 1), mask)
    failed = ~jnp.any(accepted) | samplers.escapes(spare[0], PROPOSAL_ESCAPE_BITS)
    return jnp.where(failed, other, index[jnp.argmax(accepted)]), facts


def rank_at_most(key, reference, others, scale_numerator, epsilon, count):
    """Whether at most `count` of the noisy `others` reach the noisy `reference`; decision only.

    scale_numerator: how far reference and others move together (sum of their Linf reaches).
    """
    values = _scores(jnp.concatenate([jnp.atleast_1d(_float64(reference)), _float64(others)]))
    epsilon, reach = exact(epsilon, "epsilon"), exact(scale_numerator, "the sensitivity's bound")
    exponent = floor_log2(min(reach, reach / epsilon)) - certificate.RESOLUTION
    step = Fraction(2) ** exponent
    moves = Fraction(math.floor(reach / step) + 2)
    facts, table = certificate.one_sided("rank_at_most", moves, epsilon, step, outcomes=2, factor=1)
    key_noise, key_escape = jax.random.split(key)
    noise = _two_sided_noise(key_noise, table, values.size)
    spare, steps = samplers.random_bits(key_escape, 2), _clipped_steps(values, exponent)
    return samplers.ranked(spare, steps, noise, count=int(count), escape_bits=ESCAPE_BITS), facts


@dataclasses.dataclass(frozen=True)
class SparsePlan:
    """All that sparse vector needs besides keys and queries: public. shift: what makes both noises central."""

    exponent: int
    shift: int
    two_sided: bool
    facts: Certificate
    tables: certificate.SparseTables


def plan_sparse(sensitivity, budgets, above: int, two_sided: bool) -> SparsePlan:
    """Lattice and certificate of sparse vector with budgets (threshold, each yes-answer); Linf bound."""
    first, each = (exact(part, "epsilon") for part in budgets)
    return _plan_sparse(reach_of(sensitivity, 1), first, each, above, two_sided)


@functools.lru_cache(maxsize=64)
def _plan_sparse(reach: Fraction, first: Fraction, each: Fraction, above: int, two_sided: bool) -> SparsePlan:
    exponent = floor_log2(min(reach, reach / first, 2 * reach / each)) - SPARSE_RESOLUTION
    step = Fraction(2) ** exponent
    moves = Fraction(math.floor(reach / step) + 1)
    facts, tables = certificate.sparse_vector(moves, first, each, step, above)
    shift = 0 if two_sided else round(1 / tables.query.rate - 1 / tables.threshold.rate)
    return SparsePlan(exponent, shift, two_sided, facts, tables)


def sparse_threshold(key, threshold, plan: SparsePlan):
    """(center, noisy threshold) in steps, int64: where noiseless queries would fire, and where noisy ones do."""
    threshold = _float64(threshold)
    center = jnp.ceil(jnp.clip(jnp.ldexp(threshold, -plan.exponent), -_CLIP, _CLIP)).astype(np.int64) + plan.shift
    table = plan.tables.threshold
    return center, center + (_two_sided_noise if plan.two_sided else _one_sided_noise)(key, table, 1)[0]


def sparse_answers(key, queries, center, noisy, plan: SparsePlan):
    """Whether each query (k,) with fresh noise reaches the noisy threshold, bool (k,): private until capped."""
    queries, table = _float64(queries), plan.tables.query
    steps = jnp.clip(_clipped_steps(queries, plan.exponent), center - plan.tables.clip, center + plan.tables.clip)
    layout, zero = samplers.layout_of(table.digits), (table.zero,) if plan.two_sided else ()
    draw = functools.partial(
        samplers.crossed,
        limit=noisy,
        thresholds=samplers.packed((*table.digits, *zero)),
        layout=layout,
        two_sided_law=plan.two_sided,
        escape_bits=ESCAPE_BITS,
    )
    return _in_passes(key, samplers.rows_of(layout) + (5 if plan.two_sided else 2), draw, steps)


def smooth(key, center, rung, sensitivity, law):
    """Integer center + noise of the scale of a rung of the public ladder, as float64 multiples of the step.

    law: of the ladder (`smooth_ladder.SmoothLaw`). sensitivity: the public range; outputs are clipped into it.
    """
    if jnp.ndim(center) != 0:
        raise ValueError(f"noise of private scale is for one number at a time, got shape {jnp.shape(center)}.")
    exponent = ladder.step_exponent(exact(sensitivity.lower, "lower"), exact(sensitivity.upper, "upper"))
    (low,), (high,) = window(sensitivity, Fraction(2) ** exponent)
    found = ladder.ladder(law, exponent, low, high)
    bits = samplers.random_bits(key, 2)
    released = samplers.laddered(bits, center, rung, found.table, (np.int64(low), np.int64(high)))
    return _scaled(released, exponent), found.facts


def reach_of(sensitivity, size: int) -> Fraction:
    """How far the computed statistic can move: bound + 2 error in the norm of the sensitivity.

    `error` bounds each coordinate; it counts `size` times in L1 and its root in L2, so that it is safe too
    if it already bounds the norm.
    """
    if size < 1:
        raise ValueError("a release needs at least one value.")
    bound = exact(sensitivity.bound, "the sensitivity's bound")
    error = exact(
        np.max(np.asarray(sensitivity.error)) if check.is_concrete(sensitivity.error) else sensitivity.error, "error"
    )
    if bound <= 0 or error < 0:
        raise ValueError(f"a release needs a sensitivity > 0 and an error >= 0, got {float(bound)} and {float(error)}.")
    factor = {"l1": size, "l2": _root_above(size), "linf": 1}[sensitivity.norm.value]
    return bound + 2 * factor * error


def window(sensitivity, step: Fraction) -> tuple[list[int], list[int]]:
    """The public range in lattice steps: lower ends rounded down and upper ends rounded up, as lists."""
    if sensitivity.lower is None or sensitivity.upper is None:
        raise ValueError(
            "a release needs the public range of the statistic: give Sensitivity(..., lower=, upper=), "
            "or use a simulation key."
        )
    low = [math.floor(exact(v, "lower") / step) for v in np.ravel(_public(sensitivity.lower, "lower"))]
    high = [math.ceil(exact(v, "upper") / step) for v in np.ravel(_public(sensitivity.upper, "upper"))]
    if max(low) > min(high) and any(a > b for a, b in zip(low, high, strict=False)):
        raise ValueError(f"lower must be <= upper, got {sensitivity.lower} and {sensitivity.upper}.")
    return low, high


def _public(value, name: str) -> np.ndarray:
    if not check.is_concrete(value):
        raise ValueError(f"{name} is traced, but releases run outside jit: call run without jax.jit around it.")
    return np.asarray(value, np.float64)


def _root_above(size: int) -> int:
    """Smallest integer >= sqrt(size)."""
    return math.isqrt(size - 1) + 1


def _float64(value):
    value = jnp.asarray(value)
    if value.dtype != np.float64:
        if not jnp.issubdtype(value.dtype, jnp.integer) and value.dtype != bool:
            raise TypeError(
                f"a release needs a float64 statistic, got {value.dtype}: compute it under jax.enable_x64(True)."
            )
        value = value.astype(np.float64)
    return value


def _scores(scores):
    scores = _float64(scores)
    if scores.ndim != 1:
        raise ValueError(f"one selection takes one vector of scores, got shape {scores.shape}; release each by itself.")
    return scores


def _steps(value, exponent: int, low, high):
    """floor(value/step) clipped into the public range, int64; exact, since the step is a power of two."""
    low, high = (np.array(ends, np.float64) for ends in (low, high))
    low, high = (ends.reshape(value.shape) if ends.size == value.size else ends[0] for ends in (low, high))
    return _floored(value, exponent, low, high)


@kept_jit
def _floored(value, exponent, low, high):
    steps = jnp.floor(jnp.ldexp(value, -exponent))
    return jnp.clip(jnp.where(jnp.isnan(steps), low, steps), low, high).astype(np.int64)


def _clipped_steps(scores, exponent: int):
    return _steps(scores, exponent, [-_CLIP], [_CLIP])


@kept_jit
def _scaled(steps, exponent):
    return jnp.ldexp(steps.astype(np.float64), exponent)


def _mask(points: int):
    """2^w - 1 with 2^w >= points, w >= 1."""
    return np.uint64(2 ** max(1, (points - 1).bit_length()) - 1)


def _ends(facts: Certificate):
    """The output window and a mask that covers it."""
    assert facts.low is not None
    assert facts.high is not None
    return np.int64(facts.low), np.int64(facts.high), _mask(facts.high - facts.low + 1)


def add(key, value, plan: Plan):
    """The value, float64 of any shape, on the plan's lattice with its noise."""
    layout, thresholds = samplers.layout_of(plan.table.digits), samplers.packed((*plan.table.digits, plan.table.zero))
    draw = functools.partial(
        samplers.released, thresholds=thresholds, window=_ends(plan.facts), layout=layout, escape_bits=ESCAPE_BITS
    )
    steps = _steps(value, plan.exponent, plan.low, plan.high)
    released = _in_passes(key, samplers.rows_of(layout) + 5, draw, steps)
    return _scaled(released, plan.exponent).reshape(value.shape)


def _two_sided_noise(key, table: DigitTable, size: int):
    layout, thresholds = samplers.layout_of(table.digits), samplers.packed((*table.digits, table.zero))
    draw = functools.partial(samplers.two_sided_noise, thresholds=thresholds, layout=layout)
    return _in_passes(key, samplers.rows_of(layout) + 3, draw, size=size)


def _one_sided_noise(key, table: DigitTable, size: int):
    layout, thresholds = samplers.layout_of(table.digits), samplers.packed(table.digits)
    draw = functools.partial(samplers.one_sided_noise, thresholds=thresholds, layout=layout)
    return _in_passes(key, samplers.rows_of(layout), draw, size=size)


def _in_passes(key, rows: int, draw, value=None, size: int | None = None):
    """draw(bits, value=, size=) over all entries, in passes whose length is a power of two; results are flat.

    Padding to powers of two keeps the number of compiled programs small; the extra draws are dropped.
    """
    if value is not None:
        size = value.size
        value = value if value.ndim == 1 else value.reshape(size)
    assert size is not None
    length = min(samplers.LARGEST, 1 << (size - 1).bit_length())
    passes = -(-size // length)
    keys = [key] if passes == 1 else jax.random.split(key, passes)
    short = passes * length - size
    padded = value if value is None or not short else jnp.pad(value, (0, short))
    parts = []
    for i in range(passes):
        given = {} if padded is None else {"value": padded if passes == 1 else padded[i * length : (i + 1) * length]}
        parts.append(draw(samplers.random_bits(keys[i], rows * length), size=length, **given))
    if passes == 1:
        return jax.tree.map(lambda array: array[:size], parts[0]) if size < length else parts[0]
    return jax.tree.map(lambda *arrays: jnp.concatenate(arrays)[:size], *parts)
