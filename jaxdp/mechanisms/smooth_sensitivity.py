"""Noise calibrated to a smooth sensitivity: Cauchy and Student t (pure), Laplace and Gaussian (with a delta).

Source: Nissim, Raskhodnikova and Smith 2007; appendix F of the Priv-PC paper; docs/theory/medians.md. A
function S of the data is `decay`-smooth if log S moves by at most `decay` between neighbours and S bounds the
local sensitivity. Released: value + width S Z. The pair of neighbours that matters has value apart by at
most min(S, S') and log S by at most `decay`.

Numerics of all four laws, in both modes: the smooth sensitivity is rounded up to a public ladder (by 10 % at most, plus
one lattice step of about 2^-11 of the public range), the center down to the lattice, the output to the nearest step and
into the range. Releases draw from exact tables with a certificate (docs/theory/smooth_sensitivity.md).
"""

import functools
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp._base import check
from jaxdp._base.amounts import spent
from jaxdp._base.printed import printed
from jaxdp._base.pytree import frozen_pytree
from jaxdp.core import Norm
from jaxdp.mechanisms.law import ApproximateBudget, Law, PureBudget
from jaxdp.noise import floats, lattice
from jaxdp.noise.certificate import exact
from jaxdp.noise.smooth import ladder, rungs
from jaxdp.noise.smooth.ladder import SmoothLaw
from jaxdp.noise.smooth.scaled_cauchy import CauchyLaw, StudentLaw
from jaxdp.noise.smooth.scaled_normal import GaussianLaw, LaplaceLaw


def smooth_sensitivity(values, decay, lower, upper):
    """`decay`-smooth sensitivity of the median of values (m,) in [lower, upper]; the lower median for even m.

    max over i <= median place <= j, i < j, of (x_j - x_i) exp(-decay (j - i - 1)), where x_0 = lower and
    x_{m+1} = upper: j - i - 1 replaced values can move the median across that gap
    (docs/theory/medians.md#smooth-sensitivity-of-the-median; the paper's formula with exp(-k decay) in the place of its
    exp(-k epsilon)). O(m^2).
    """
    count = values.shape[0]
    middle = (count + 1) // 2
    ordered = jnp.sort(jnp.clip(values, lower, upper))
    ends = jnp.stack([jnp.asarray(lower, ordered.dtype), jnp.asarray(upper, ordered.dtype)])
    padded = jnp.concatenate([ends[:1], ordered, ends[1:]])
    left, right = padded[: middle + 1][:, None], padded[middle:][None, :]
    place_left, place_right = jnp.arange(middle + 1)[:, None], jnp.arange(middle, count + 2)[None, :]
    replaced = place_right - place_left - 1
    # in the precision of the values: a float32 decay is a smoothness too, a float32 exponential is not smooth enough
    factor = jnp.exp(-jnp.asarray(decay, ordered.dtype) * replaced)
    gaps = jnp.where(replaced >= 0, (right - left) * factor, 0.0)
    return jnp.max(gaps)


def median(values):
    """The lower median of values (m,)."""
    return jnp.sort(values)[(values.shape[0] + 1) // 2 - 1]


@frozen_pytree
class _SmoothNoise(Law):
    """Base: `perturb` takes a pair (center, smooth sensitivity) of scalars, both private, and a public range.

    Released: center + width S Z, rounded and clipped into the range.
    """

    epsilon: Any

    name: ClassVar[str] = "smooth"
    norm: ClassVar[Norm] = Norm.L1
    outputs_released: ClassVar[bool] = True

    def decay(self):
        """Smoothness that the sensitivity must have: below that of the ladder by 2^-20 of it, also in float32."""
        return self.ladder_decay() * (1.0 - 2.0**-20)

    def ladder_decay(self):
        """Smoothness that is paid for; a float for a concrete budget."""
        raise NotImplementedError

    def width(self):
        """Noise scale per unit of smooth sensitivity."""
        raise NotImplementedError

    def draws(self, key, shape=()):
        """Standard noise Z."""
        raise NotImplementedError

    def law(self) -> SmoothLaw:
        """The exact law and its budget, for releases."""
        raise NotImplementedError

    def noise(self, key, smooth, shape=()):
        """Noise alone, before rounding; smooth broadcasts with shape."""
        return self.width() * smooth * self.draws(key, shape)

    def null(self, key, value, lower, upper):
        """Float draws of the law of `perturb` for public values in a public range: null distributions."""
        return rungs.smooth_draws(key, value, lower, upper, self)

    def require(self, sensitivity) -> None:
        rungs.require_range(sensitivity)

    def float_draw(self, key, value, sensitivity):
        return self.null(key, value, sensitivity.lower, sensitivity.upper)

    def lattice_draw(self, key, value, sensitivity):
        law, (center, scale) = self.law(), value
        steps, rung, *_ = rungs.smooth_grid(center, scale, sensitivity.lower, sensitivity.upper, self.ladder_decay())
        return lattice.smooth(key, steps.astype(jnp.int64), rung.astype(jnp.int64), sensitivity, law)

    def parameters(self, sensitivity) -> tuple:
        """The width of the range, which bounds the moves of both numbers, and epsilon."""
        return sensitivity.upper - sensitivity.lower, self.epsilon

    @classmethod
    def distance(cls, first, second) -> float:
        return float(np.max(np.abs(np.asarray(first, float) - np.asarray(second, float))))


@frozen_pytree
class SmoothCauchy(PureBudget, _SmoothNoise):
    """Cauchy noise, exactly calibrated.

    Privacy: epsilon-DP for every `decay`-smooth sensitivity if and only if, with s = 1/width,
    cosh(epsilon) >= max(1 + s^2/2, cosh(decay) + s^2 exp(-decay)/2): the largest log-likelihood ratio of two
    Cauchy laws is their hyperbolic distance (docs/theory/medians.md#cauchy-noise). By default
    decay = ln(2 cosh(epsilon) - 1) and s = 2 sinh(epsilon/2), where both conditions bind.
    """

    epsilon: ArrayLike
    smoothness: ArrayLike | None = None

    def __post_init__(self):
        check.positive(epsilon=self.epsilon)
        if self.smoothness is not None and check.is_concrete(self.smoothness) and check.is_concrete(self.epsilon):
            check.positive(smoothness=self.smoothness)
            if float(np.max(self.smoothness)) >= float(np.min(self.epsilon)):
                raise ValueError(f"smoothness must be < epsilon for Cauchy noise, got {printed(self.smoothness)}.")

    def ladder_decay(self):
        if self.smoothness is not None:
            return check.budget(self.smoothness)
        epsilon = check.budget(self.epsilon)
        if isinstance(epsilon, float):  # on the host, where a release reads it
            return math.log1p(4.0 * math.sinh(0.5 * epsilon) ** 2)
        return jnp.log1p(4.0 * jnp.sinh(0.5 * epsilon) ** 2)

    def law(self):
        return CauchyLaw(exact(check.budget(self.epsilon), "epsilon"), exact(self.ladder_decay(), "smoothness"))

    def width(self):
        epsilon = check.positive_or_nan(self.epsilon)
        still = 2.0 * jnp.sinh(0.5 * epsilon)
        if self.smoothness is None:
            return 1.0 / still
        beta = jnp.asarray(self.smoothness)
        moving = jnp.sqrt(2.0 * jnp.exp(beta) * (jnp.cosh(epsilon) - jnp.cosh(beta)))
        return 1.0 / jnp.minimum(still, moving)

    def draws(self, key, shape=()):
        return jax.random.cauchy(key, shape)


@frozen_pytree
class SmoothStudent(PureBudget, _SmoothNoise):
    """Student t noise.

    Privacy: epsilon-DP with epsilon = s (nu + 1)/(2 sqrt(nu)) + decay max(1, nu), s = 1/width
    (docs/theory/medians.md#student-noise; below nu = 1 the densities at the centre are apart by the whole ratio of
    scales); the budget is halved over the two terms. Releases need an odd whole number of degrees nu, whose law is an
    arctangent and a rational function.
    """

    epsilon: ArrayLike
    degrees: float = jax.tree.static(default=3.0)

    def __post_init__(self):
        check.positive(epsilon=self.epsilon, degrees=self.degrees)

    def ladder_decay(self):
        return check.budget(self.epsilon) / (2.0 * max(1.0, self.degrees))

    def width(self):
        return (self.degrees + 1.0) / (math.sqrt(self.degrees) * check.positive_or_nan(self.epsilon))

    def law(self):
        if self.degrees % 2.0 != 1.0:
            raise ValueError(
                f"Student noise is released with an odd whole number of degrees, got {self.degrees:g}; give 3.0, say."
            )
        epsilon = exact(check.budget(self.epsilon), "epsilon")
        return StudentLaw(epsilon, exact(self.ladder_decay(), "smoothness"), int(self.degrees))

    def draws(self, key, shape=()):
        return jax.random.t(key, self.degrees, shape)


@frozen_pytree
class _SmoothApproximate(ApproximateBudget, _SmoothNoise):
    """Base of the (epsilon, delta) laws: the width is the smallest whose exact delta is small enough.

    smoothness, noise_width: published or own parameters; refused unless their exact delta is at most `delta`.
    """

    epsilon: float = jax.tree.static()
    delta: float = jax.tree.static()
    smoothness: float | None = jax.tree.static(default=None)
    noise_width: float | None = jax.tree.static(default=None)

    exact_law: ClassVar[Any]

    def _default_decay(self) -> float:
        raise NotImplementedError

    @staticmethod
    def hockey_stick(shift, ratio, epsilon: float):
        """Integral of max(p - e^epsilon q, 0) for the standard law p and its shifted and scaled copy q."""
        raise NotImplementedError

    def __post_init__(self):
        check.positive(epsilon=self.epsilon)
        check.in_range(0.0, 1.0, delta=self.delta)
        if self.smoothness is not None:
            check.positive(smoothness=self.smoothness)
        if self.noise_width is not None:
            check.positive(noise_width=self.noise_width)
            true = self.true_delta(self.noise_width, self.ladder_decay(), self.epsilon)
            if true > self.delta * (1.0 + 1e-9):
                raise ValueError(
                    f"{type(self).__name__} with noise_width={self.noise_width:.6g} and "
                    f"smoothness={self.ladder_decay():.6g} has delta={spent(true, 3)} at "
                    f"epsilon={spent(self.epsilon)}, more than the {spent(self.delta)} asked for; "
                    "leave both out for the calibrated ones."
                )

    def ladder_decay(self) -> float:
        return self._default_decay() if self.smoothness is None else float(self.smoothness)

    def law(self):
        budget = (exact(value, "the budget") for value in (self.epsilon, self.delta, self.ladder_decay(), self.width()))
        return self.exact_law(*budget)

    def width(self):
        if self.noise_width is not None:
            return self.noise_width
        law: Any = type(self)
        return _calibrated(law, self.epsilon, self.delta, self.ladder_decay())

    @classmethod
    def true_delta(cls, width: float, decay: float, epsilon: float) -> float:
        """Largest hockey-stick divergence over the ratios of scales on the ladder, each at its largest shift."""
        split = ladder.rungs_per_decay(decay)
        ratio = np.exp(decay / split * np.arange(-split, split + 1))
        return float(np.max(cls.hockey_stick(np.minimum(1.0, ratio) / width, ratio, epsilon)))


@frozen_pytree
class SmoothLaplace(_SmoothApproximate):
    """Laplace noise.

    Privacy: (epsilon, delta)-DP with decay = epsilon/(2 ln(2/delta)) and the smallest width whose exact
    hockey-stick divergence is at most delta: 1.44 at epsilon 1, delta 1e-6, against the textbook's 2/epsilon.
    The paper's smoothness epsilon ln(1/delta)/2 is a misprint: its true delta is about 1 (`paper`).
    """

    exact_law: ClassVar[Any] = LaplaceLaw

    def _default_decay(self):
        return self.epsilon / (2.0 * math.log(2.0 / self.delta))

    def draws(self, key, shape=()):
        return floats.laplace(key, shape)

    @classmethod
    def paper(cls, epsilon: float, delta: float):
        """Definition 10 as printed. Always raises, with the delta that is true for it."""
        return cls(
            epsilon=epsilon, delta=delta, smoothness=epsilon * math.log(1.0 / delta) / 2.0, noise_width=2.0 / epsilon
        )

    @staticmethod
    def hockey_stick(shift, ratio, epsilon: float):
        """Integral of max(p - e^epsilon q, 0) for p = Laplace(0, 1), q = Laplace(shift, ratio); exact, (g,)."""
        # log(p/q) is linear between the two centres and beyond them: one root at most on each piece.
        shift, ratio = np.broadcast_arrays(shift, ratio)

        def loss(x):
            return np.abs(x - shift) / ratio - np.abs(x) + np.log(ratio) - epsilon

        far = 2000.0 * np.ones_like(shift)
        total = np.zeros_like(shift)
        for low, high in ((-far, np.zeros_like(shift)), (np.zeros_like(shift), shift), (shift, far)):
            at_low, at_high = loss(low), loss(high)
            change = np.where(at_low == at_high, 1.0, at_high - at_low)
            root = np.clip(low - at_low * (high - low) / change, low, high)
            start, end = np.where(at_low > 0, low, root), np.where(at_high > 0, high, root)
            keep = (at_low > 0) | (at_high > 0)
            mass_p = _laplace_mass(start, end)
            mass_q = _laplace_mass((start - shift) / ratio, (end - shift) / ratio)
            total += np.where(keep, mass_p - math.exp(epsilon) * mass_q, 0.0)
        return total


@frozen_pytree
class SmoothGaussian(_SmoothApproximate):
    """Gaussian noise.

    Privacy: (epsilon, delta)-DP with decay = epsilon/(4 (1 + ln(2/delta))) and the smallest width whose exact
    hockey-stick divergence is at most delta: 5.90 at epsilon 1, delta 1e-6 and decay 0.0161. The paper's
    parameters have true delta 5.5e-4 where 1e-6 is asked (`paper`).
    """

    exact_law: ClassVar[Any] = GaussianLaw

    def _default_decay(self):
        return self.epsilon / (4.0 * (1.0 + math.log(2.0 / self.delta)))

    def draws(self, key, shape=()):
        return floats.gaussian(key, shape)

    @classmethod
    def paper(cls, epsilon: float, delta: float):
        """Definition 10 as printed. Raises with the delta that is true for it."""
        log = math.log(1.0 / delta)
        return cls(epsilon=epsilon, delta=delta, smoothness=epsilon / (2.0 * log), noise_width=math.sqrt(log) / epsilon)

    @staticmethod
    def hockey_stick(shift, ratio, epsilon: float):
        """Integral of max(p - e^epsilon q, 0) for p = N(0, 1), q = N(shift, ratio^2); exact, (g,)."""
        from scipy.special import ndtr

        shift, ratio = np.broadcast_arrays(shift, ratio)
        # log(p/q) - epsilon = a x^2 + b x + c; positive between the roots (a < 0) or beyond them (a > 0).
        a = 0.5 / ratio**2 - 0.5
        b = -shift / ratio**2
        c = 0.5 * shift**2 / ratio**2 + np.log(ratio) - epsilon
        a = np.where(np.abs(a) < 1e-14, 1e-14, a)
        discriminant = b * b - 4.0 * a * c
        half = np.sqrt(np.maximum(discriminant, 0.0))
        # Stable roots: the larger one in size first, the other from their product c/a.
        outer = -0.5 * (b + np.where(b >= 0, half, -half))
        first, second = outer / a, np.where(outer == 0, 0.0, c / np.where(outer == 0, 1.0, outer))
        low, high = np.minimum(first, second), np.maximum(first, second)

        def over(f):
            return f(high) - f(low)

        def beyond(f):
            return f(low) + f(-high)

        p_in, q_in = over(ndtr), over(lambda x: ndtr((x - shift) / ratio))
        p_out = beyond(ndtr)
        q_out = ndtr((low - shift) / ratio) + ndtr(-(high - shift) / ratio)
        grow = math.exp(epsilon)
        inside, outside = p_in - grow * q_in, p_out - grow * q_out
        none = discriminant <= 0
        return np.where(a < 0, np.where(none, 0.0, inside), np.where(none, 1.0 - grow, outside))


def _laplace_mass(start, end):
    """Laplace(0, 1) probability of [start, end], without cancellation in the tails."""
    flip = start > 0
    low, high = np.where(flip, -end, start), np.where(flip, -start, end)

    def below(x):
        return np.where(x < 0, 0.5 * np.exp(-np.abs(x)), 1.0 - 0.5 * np.exp(-np.abs(x)))

    return np.where(end > start, below(high) - below(low), 0.0)


@functools.lru_cache(maxsize=64)
def _calibrated(law: Any, epsilon: float, delta: float, decay: float) -> float:
    """Smallest width with true delta at most `delta`, to 1e-6 relative, on the safe side."""
    low, high = 1e-3, 1.0
    while law.true_delta(high, decay, epsilon) > delta:
        low, high = high, 2.0 * high
        if high > 1e6:
            raise ValueError(
                f"smoothness={decay:g} is too large for epsilon={spent(epsilon)}, delta={spent(delta)}: no width works."
            )
    while high / low > 1.0 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if law.true_delta(middle, decay, epsilon) > delta else (low, middle)
    return high
