"""The only module that touches dp-accounting: privacy loss distributions, and events for other tools."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxdp.noise.dominating import Pair

# Float64 transforms are wrong by far less than this share of delta, or this much; both count against us.
_RELATIVE_MARGIN, _ABSOLUTE_MARGIN = 1e-6, 1e-12
# Grid points per round: rounding every loss up to the grid then costs at most 0.1 % of the summed epsilon.
_POINTS_PER_ROUND, _FEWEST_POINTS, _MAX_POINTS = 1000, 10_000, 2_000_000
# Orders of Renyi divergences; any set of them gives a valid bound, and this one takes a second instead of ten.
_ORDERS = (1.5, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128)
_MIN_MULTIPLIER = 0.1  # of normal noise; below it no interesting budget is met


def pld_epsilon(counts: Mapping[float, int], delta: float) -> float:
    """Total epsilon at this delta of pure-epsilon rounds fixed in advance: {epsilon: how many}.

    Every round is replaced by the randomised response that dominates it; losses are rounded up to a grid.
    """
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as distributions

    rounds = sum(counts.values())
    summed = math.fsum(epsilon * count for epsilon, count in counts.items())
    points = min(max(rounds * _POINTS_PER_ROUND, _FEWEST_POINTS), _MAX_POINTS)
    interval = min(1e-4, summed / points)

    def dominating(epsilon: float, count: int):
        parameters = common.DifferentialPrivacyParameters(epsilon, 0.0)
        single = distributions.from_privacy_parameters(parameters, value_discretization_interval=interval)
        return single.self_compose(count)

    layer = [dominating(epsilon, count) for epsilon, count in counts.items()]
    while len(layer) > 1:  # pairs first: the transforms stay short
        pairs = [first.compose(second) for first, second in zip(layer[::2], layer[1::2], strict=False)]
        layer = pairs + (layer[-1:] if len(layer) % 2 else [])
    return float(layer[0].get_epsilon_for_delta(delta * (1 - _RELATIVE_MARGIN) - _ABSOLUTE_MARGIN))


def pure_event(epsilon: float, fixed_size: bool) -> Any:
    """A dp-accounting event that dominates every epsilon-DP release.

    Binary randomised response where neighbours have the same size. dp-accounting refuses that event
    under add-or-remove-one, where (epsilon^2/2)-zCDP stands in (Bun and Steinke 2016, Prop. 1.4).
    """
    from dp_accounting import dp_event

    if not fixed_size:
        return dp_event.ZCDpEvent(rho=math.nextafter(epsilon**2 / 2, math.inf))
    lie = 2 / (1 + math.exp(epsilon)) if epsilon < 700 else 0.0
    return dp_event.RandomizedResponseDpEvent(noise_parameter=math.nextafter(lie, 0.0), num_buckets=2)


def event_of(rows: Iterable[tuple[float, float, float]], fixed_size: bool) -> Any:
    """A ComposedDpEvent of (epsilon, delta, rho) rows, one event per non-zero entry.

    dp-accounting has no event for a bare delta: such a row holds an UnsupportedDpEvent, which
    every accountant refuses. An accountant of another neighbouring relation refuses the event.
    """
    from dp_accounting import dp_event

    events: list[Any] = []
    for epsilon, delta, rho in rows:
        if epsilon > 0:
            events.append(pure_event(epsilon, fixed_size))
        if rho > 0:
            events.append(dp_event.ZCDpEvent(rho=rho))
        if delta > 0:
            events.append(dp_event.UnsupportedDpEvent())
    if events and all(isinstance(event, dp_event.ZCDpEvent | dp_event.UnsupportedDpEvent) for event in events):
        events.append(_free_event(fixed_size))
    return dp_event.ComposedDpEvent(events=events)


def tight_event(pairs: Iterable[Pair], fixed_size: bool) -> Any:
    """A ComposedDpEvent of pairs of laws, one event for each, for `PLDAccountant` under the relation of their costs.

    Under replace-one it reads a `GaussianDpEvent` as if neighbours were twice as far apart as the multiplier says, and
    `RdpAccountant` does not: half the distance is stated, and the events at the end keep every other accountant away.
    """
    from dp_accounting import dp_event

    from jaxdp.noise import dominating  # with JAX, which a ledger does without

    def event(pair: Pair) -> Any:
        match pair:
            case dominating.Normal(distance):
                sds = (2.0 if fixed_size else 1.0) / distance
                return dp_event.GaussianDpEvent(noise_multiplier=math.nextafter(sds, 0.0))
            case dominating.Geometric(rate, moves) if not fixed_size:
                return dp_event.DiscreteLaplaceDpEvent(noise_parameter=rate, sensitivity=moves)
            case dominating.Geometric(rate, moves):
                return pure_event(math.nextafter(rate * moves, math.inf), fixed_size)
            case dominating.Pure(epsilon) if not fixed_size:  # of sensitivity 1 it is binary randomised response
                return dp_event.DiscreteLaplaceDpEvent(noise_parameter=epsilon, sensitivity=1)
            case dominating.Pure(epsilon):
                return pure_event(epsilon, fixed_size)

    # free of cost: what no accountant but PLDAccountant takes, and what that takes under one relation only
    nobody = dp_event.TruncatedSubsampledGaussianDpEvent(1, 0.0, 1, 1.0)
    still = dp_event.MixtureOfGaussiansDpEvent(standard_deviation=1.0, sensitivities=[0.0], sampling_probs=[1.0])
    relation = _free_event(fixed_size) if fixed_size else still
    return dp_event.ComposedDpEvent(events=[*map(event, pairs), nobody, relation])


def _free_event(fixed_size: bool) -> Any:
    """An event without cost that accountants take under one relation only: what is zCDP they take under any.

    The only answer of a poll that has one is refused under add-or-remove-one; a Poisson sample of nobody under
    replace-one.
    """
    from dp_accounting import dp_event

    if fixed_size:
        return dp_event.RandomizedResponseDpEvent(noise_parameter=0.5, num_buckets=1)
    return dp_event.PoissonSampledDpEvent(0.0, dp_event.GaussianDpEvent(1.0))


def event_fields(event: Any) -> dict[str, Any]:
    """An event as plain JSON values: module, class and fields, nested."""
    return _plain(event.to_named_tuple())


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(item) for name, item in value._asdict().items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


@functools.lru_cache(maxsize=64)
def subsampled_gaussian_multiplier(
    epsilon: float, delta: float, *, num_records: int, subset: int, rounds: int
) -> float:
    """Smallest noise sd, in units of the L2 sensitivity, for `rounds` adaptive answers within (epsilon, delta).

    Every answer is asked on a fresh uniform subset of fixed size; replace-one neighbours. Renyi divergences of the
    sub-sampled normal mechanism (Wang, Balle and Kasiviswanathan 2019, Theorem 27), added over the rounds.
    """
    from dp_accounting import LowerEndpointAndGuess, calibrate_dp_mechanism, dp_event, privacy_accountant, rdp

    relation = privacy_accountant.NeighboringRelation.REPLACE_ONE

    def event(multiplier: float):
        single = dp_event.GaussianDpEvent(multiplier)
        if subset < num_records:
            single = dp_event.SampledWithoutReplacementDpEvent(num_records, subset, single)
        return dp_event.SelfComposedDpEvent(single, rounds)

    def accountant():
        return rdp.RdpAccountant(_ORDERS, relation)

    # the default bracket starts at 0, where the divergence divides by zero
    bracket = LowerEndpointAndGuess(_MIN_MULTIPLIER, 10.0)
    return float(calibrate_dp_mechanism(accountant, event, epsilon, delta, bracket_interval=bracket))
