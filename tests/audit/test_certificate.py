"""The certificate against the exact law of the bits that the sampler compares."""

import decimal
import itertools
import math
from fractions import Fraction

import exact_laws as laws
import jax
import numpy as np
import pytest

from jaxdp.core import Norm, Relation, Sensitivity
from jaxdp.noise import certificate, discrete_gaussian, lattice, samplers

pytestmark = pytest.mark.optimised

ESCAPE = 9  # bits; the released mechanisms use 50, whose tables are too long to enumerate


@pytest.fixture
def short_tables(monkeypatch):
    monkeypatch.setattr(certificate, "ESCAPE_BITS", ESCAPE)


@pytest.mark.parametrize(("rate", "count"), [(Fraction(1, 16), 10), (Fraction(1), 6), (Fraction(3, 7), 12)])
def test_enumerated_law_keeps_its_rate(rate, count):
    table = certificate.geometric_digits(rate, count)
    law = certificate.law_of(table)
    assert law == laws.two_sided_law(table)
    assert sum(law.values()) == 1
    losses = [laws.log(law[k] / law[k + 1]) for k in range(2**count)]
    assert max(losses) <= rate + table.error
    assert min(losses) >= rate - table.error - Fraction(1, 10**12) * (count > 9)
    far = laws.log(law[0] / law[2**count])
    assert abs(far - rate * 2**count) <= table.error + 2 * Fraction(math.exp(-float(rate) * 2**count))
    assert table.error < Fraction(1, 10**15)


def test_thresholds_against_a_series():
    # exp by its Taylor series in fractions, with a remainder bound: independent of `decimal`
    for rate, count in ((Fraction(1, 1000), 12), (Fraction(1, 3), 5)):
        table = certificate.geometric_digits(rate, count)
        for i, (threshold, bits) in enumerate(table.digits):
            x, term, total = rate * 2**i, Fraction(1), Fraction(1)
            for k in range(1, 120):
                term *= x / k
                total += term
            probability = 1 / (1 + total)
            assert abs(Fraction(threshold, 2**bits) - probability) <= Fraction(1, 2**bits)


@pytest.mark.parametrize(
    ("epsilon", "moves"), [(Fraction(1), 2), (Fraction(1, 2), 1), (Fraction(5, 2), 3), (Fraction(8), 1)]
)
def test_additive_release_is_pure_dp_for_every_pair_and_output(short_tables, epsilon, moves):
    low, high = 0, 12
    facts, table = certificate.additive("laplace", Fraction(moves), epsilon, Fraction(1), low, high, 1)
    releases = {q: laws.additive_law(facts, table, q, ESCAPE) for q in range(low, high + 1)}
    assert all(sum(law.values()) == 1 for law in releases.values())
    assert all(min(law.values()) > 0 for law in releases.values())
    worst = 0
    for q, other in itertools.combinations(releases, 2):
        loss = laws.worst_loss(releases[q], releases[other])
        assert loss <= facts.rate * (other - q) + table.error + Fraction(1, 2 ** (ESCAPE + 1))
        if other - q <= moves:
            assert loss <= facts.epsilon
            worst = max(worst, loss)
    assert facts.epsilon <= epsilon
    assert worst >= Fraction(97, 100) * epsilon


def test_vector_release_is_pure_dp_in_l1(short_tables):
    facts, table = certificate.additive("laplace", Fraction(2), Fraction(1), Fraction(1), 0, 2, 2)
    releases = {q: laws.additive_law(facts, table, q, ESCAPE) for q in range(3)}
    one = {(a, b): laws.worst_loss(releases[a], releases[b]) for a in range(3) for b in range(3)}
    pairs = [(a, b, c, d) for a, b, c, d in itertools.product(range(3), repeat=4) if abs(a - c) + abs(b - d) <= 2]
    assert max(one[a, c] + one[b, d] for a, b, c, d in pairs) <= facts.epsilon <= 1


@pytest.mark.parametrize(("coordinates", "epsilon", "moves"), [(1, 1, 2), (2, 1, 3), (3, 2, 4), (6, 8, 40)])
def test_max_norm_release_is_pure_dp_at_every_distance(short_tables, coordinates, epsilon, moves):
    """Neighbours change the max-norm by at most `moves`; the loss stays below the claim and reaches it."""
    facts, table = certificate.max_norm(Fraction(moves), Fraction(epsilon), Fraction(1), 0, 12, coordinates)
    assert facts.epsilon <= epsilon
    near, floor = laws.max_norm_laws(facts, table, coordinates, ESCAPE)
    ratios = [
        (near[k] + floor) / (near[min(k + moves, len(near) - 1)] + floor)
        for k in range(certificate.least_radius(coordinates), len(near))
    ]
    worst = laws.log(max(ratios))
    assert worst <= facts.epsilon
    assert worst >= Fraction(9, 10) * epsilon
    assert all(one >= other for one, other in itertools.pairwise(near))


def test_max_norm_noise_without_its_least_radius_is_not_private(short_tables, monkeypatch):
    """A radius that starts at 0 has too much mass in its smallest cubes."""
    facts, table = certificate.max_norm(Fraction(4), Fraction(2), Fraction(1), 0, 12, 6)
    monkeypatch.setattr(certificate, "least_radius", lambda coordinates: 0)
    near, floor = laws.max_norm_laws(facts, table, 6, ESCAPE)
    assert laws.log((near[0] + floor) / (near[4] + floor)) > 2


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(3)])
def test_selection_is_pure_dp_for_all_small_scores(short_tables, epsilon):
    facts, table = certificate.one_sided("argmax_exponential", Fraction(1), epsilon, Fraction(1), 3, factor=2)
    every = {s: laws.selection_law(table, s, ESCAPE) for s in itertools.product((-40, -1, 0, 1), repeat=3)}
    worst = max(
        laws.worst_loss(every[s], every[t])
        for s, t in itertools.combinations(every, 2)
        if max(abs(a - b) for a, b in zip(s, t, strict=True)) <= 1
    )
    assert worst <= facts.epsilon <= epsilon
    assert worst >= Fraction(9, 10) * epsilon


def test_rank_decision_is_pure_dp(short_tables):
    # reference and others move by one step each: two steps in all
    facts, table = certificate.one_sided("rank_at_most", Fraction(2), Fraction(2), Fraction(1), 2, factor=1)
    assert len(table.digits) <= 5
    worst = 0
    for count in (0, 1):
        for start in ((0, (0, 0)), (-4, (0, 1)), (3, (-1, 2)), (25, (0, 0))):
            base = laws.rank_law(table, start[0], start[1], count, ESCAPE)
            for moved in itertools.product((-1, 0, 1), repeat=3):
                others = [o + m for o, m in zip(start[1], moved[1:], strict=True)]
                loss = laws.worst_loss(base, laws.rank_law(table, start[0] + moved[0], others, count, ESCAPE))
                assert loss <= facts.epsilon <= 2
                worst = max(worst, loss)
    assert worst >= Fraction(9, 10) * 2


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(4)])
def test_exponential_mechanism_law_and_bounds(epsilon):
    moves = Fraction(3)
    facts, table = certificate.exponential(moves, epsilon, Fraction(1), 4, escape_bits=30, rounds=64)
    scores = [(0, 3, 7, -90), (3, 0, 4, -93), (0, 0, 0, 0), (-3, 3, -3, 3), (10**6, 0, 5, 5), (10**6 - 3, 3, 2, 8)]
    found = [laws.proposal_law(table, s, 30, 64) for s in scores]
    for a, b in ((0, 1), (2, 3), (4, 5)):
        assert laws.worst_loss(found[a], found[b]) <= facts.epsilon <= epsilon
    assert laws.worst_loss(found[2], found[3]) >= Fraction(1, 2) * epsilon
    weights = np.exp(float(epsilon) / 6 * (np.array(scores[0]) - 7.0))
    assert np.allclose([float(p) for p in found[0].values()], weights / weights.sum(), atol=1e-8)
    assert facts.rho <= epsilon**2 / 8


@pytest.mark.parametrize("bits", [1, 7, 63, 64, 65, 128, 192])
def test_limbs_are_most_significant_first(bits):
    number = (1 << bits) - 3 if bits > 2 else 1
    limbs = samplers.limbs_of(number, 3)
    assert sum(limb << 64 * (2 - i) for i, limb in enumerate(limbs)) == number


def random_words(rows: int, size: int, number: int):
    return np.array(samplers.limbs_of(number, rows), np.uint64)[:, None].repeat(size, 1)


def test_sampler_compares_with_exactly_these_thresholds():
    table = certificate.geometric_digits(Fraction(1, 3), 7)
    layout, thresholds = samplers.layout_of(table.digits), samplers.packed((*table.digits, table.zero))
    assert sum(layout) == 7
    assert len(layout) == 2
    with jax.enable_x64(True):
        for hit in range(-1, 7):
            # digit `hit` lies just below its threshold, all others exactly on theirs
            numbers = [(t - (i == hit), bits) for i, (t, bits) in enumerate(table.digits)]
            for zero in (table.zero[0] - 1, table.zero[0]):
                for sign in (0, 2**63):
                    rows = np.array([*samplers.packed(numbers), *samplers.limbs_of(zero, 2), sign], np.uint64)[:, None]
                    magnitude = 1 + (2**hit if hit >= 0 else 0)
                    expected = 0 if zero < table.zero[0] else -magnitude if sign else magnitude
                    assert samplers.two_sided(rows, thresholds, layout).tolist() == [expected]


def test_lexicographic_comparison_of_wide_integers():
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        for _ in range(200):
            width = int(rng.integers(1, 4))
            # few distinct limbs, so that ties in the leading limb are common
            a, b = rng.integers(0, 3, (2, width)).astype(np.uint64) + np.uint64(2**64 - 3)
            number = [sum(int(limb) << 64 * (width - 1 - i) for i, limb in enumerate(side)) for side in (a, b)]
            assert bool(samplers.below(a[:, None], b[:, None])[0]) == (number[0] < number[1])


def test_escape_and_window_masks():
    with jax.enable_x64(True):
        words = np.array([0, 2**14 - 1, 2**14, 2**64 - 1], np.uint64)
        assert samplers.escapes(words, 50).tolist() == [True, True, False, False]
        points = samplers.anywhere(np.arange(64, dtype=np.uint64), np.int64(-5), np.int64(20), np.uint64(31))
        assert sorted(set(points.tolist())) == list(range(-5, 21))


def test_binary_search_of_tables():
    rng = np.random.default_rng(1)
    for entries in (1, 2, 3, 7, 8, 100):
        table = np.sort(rng.integers(0, 2**63, entries).astype(np.uint64))
        probes = np.concatenate([table, table - np.uint64(1), [np.uint64(0), np.uint64(2**64 - 1)]])
        with jax.enable_x64(True):
            found = samplers.table_draw(probes[None, :], table[:, None])
        assert found.tolist() == [int(np.sum(table <= probe)) for probe in probes]


def table_atoms(table) -> list[Fraction]:
    """P(|x| = m) of a Gaussian table."""
    cumulative = [Fraction(sum(int(limb) << 64 * (2 - i) for i, limb in enumerate(row)), 2**192) for row in table]
    cumulative.append(Fraction(1))
    return [b - a for a, b in zip([Fraction(0), *cumulative[:-1]], cumulative, strict=True)]


def signed(atoms: list[Fraction], x: int) -> Fraction:
    return Fraction(0) if abs(x) >= len(atoms) else atoms[abs(x)] / (2 if x else 1)


def gaussian_weight(x: int, variance: Fraction) -> Fraction:
    with decimal.localcontext(decimal.Context(prec=100)):
        exponent = -Fraction(x * x) / (2 * variance)
        return Fraction((decimal.Decimal(exponent.numerator) / decimal.Decimal(exponent.denominator)).exp())


def test_gaussian_table_has_the_discrete_gaussian_law():
    variance = Fraction(37, 3)
    tables = discrete_gaussian.gaussian_tables(variance)
    assert tables.bases == (1,)
    atoms = table_atoms(tables.tables[0])
    total = sum(gaussian_weight(x, variance) for x in range(-200, 201))
    gaps = [abs(signed(atoms, x) - gaussian_weight(x, variance) / total) for x in range(tables.reach + 1)]
    assert 2 * sum(gaps) <= tables.table_error
    assert tables.table_error < Fraction(1, 2**180)


def test_convolved_gaussian_is_as_close_as_certified():
    variance = Fraction(64**2) + 1024 * Fraction(25, 2)
    tables = discrete_gaussian.gaussian_tables(variance)
    assert tables.bases == (1, 32)
    fine, coarse = (table_atoms(table) for table in tables.tables)
    total = 1 + 2 * sum(gaussian_weight(x, variance) for x in range(1, 2200))
    for x in (0, 1, 17, 100, 333, 700):
        law = sum(signed(fine, x - 32 * y) * signed(coarse, y) for y in range(-len(coarse), len(coarse)))
        gap = abs(laws.log(law / (gaussian_weight(x, variance) / total)))
        assert gap <= tables.shape_error + tables.table_error * 2**160
    assert tables.shape_error < Fraction(1, 10**23)


def renyi(first, other, order: float) -> float:
    """Renyi divergence of two laws on the same points."""
    terms = order * np.log(first) + (1 - order) * np.log(other)
    return (np.max(terms) + np.log(np.sum(np.exp(terms - np.max(terms))))) / (order - 1)


def test_gaussian_certificate_against_renyi_divergences():
    moves, rho = 3, Fraction(1, 8)
    facts, tables = discrete_gaussian.gaussian(Fraction(moves**2), rho, Fraction(1), 0, 3, 1)
    assert facts.rho <= rho
    assert tables.bases == (1,)
    atoms = np.array([float(signed(table_atoms(tables.tables[0]), x)) for x in range(tables.reach + 1)])
    law = np.concatenate([atoms[:0:-1], atoms])
    escape, points = 2.0**-50, law.size + moves
    first = (1 - escape) * np.pad(law, (0, moves)) + escape / points
    other = (1 - escape) * np.pad(law, (moves, 0)) + escape / points
    for order in (1.001, 1.5, 2.0, 8.0, 64.0):
        divergence = renyi(first, other, order)
        assert divergence <= float(facts.rho) * order + 1e-9
        assert order > 8 or divergence >= 0.999 * float(rho) * order


def test_robust_rho_covers_the_worst_perturbation():
    rng = np.random.default_rng(2)
    for rho, error in ((0.5, 1e-3), (0.02, 1e-4), (2.0, 1e-2)):
        bound = float(certificate.robust_rho(Fraction(rho), Fraction(error)))
        x = np.arange(-400, 401) / 20.0
        law = np.exp(-((x - np.sqrt(2 * rho)) ** 2) / 2), np.exp(-(x**2) / 2)
        for _ in range(20):
            sign = np.sign(x - rng.normal() * 2)
            first, other = law[0] * np.exp(error * sign / 2), law[1] * np.exp(-error * sign / 2)
            first, other = first / first.sum(), other / other.sum()
            for order in (1.0001, 1.01, 1.1, 2.0, 10.0):
                divergence = renyi(first, other, order)
                assert divergence <= bound * order


def sensitivity(bound=2.0, norm=Norm.L1, **others):
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, **{"lower": -50.0, "upper": 50.0, **others})


def test_certified_epsilon_is_just_below_the_budget():
    for epsilon in (0.01, 0.1, 1.0, 8.0):
        for bound, error, size in ((2.0, 0.0, 1), (1e-3, 1e-9, 3), (37.0, 1e-6, 200)):
            reach = lattice.reach_of(sensitivity(bound, error=error), size)
            assert reach == Fraction(bound) + 2 * size * Fraction(error)
            exponent = certificate.floor_log2(min(reach, reach / Fraction(epsilon)) / size) - 10
            moves = Fraction(math.floor(reach / Fraction(2) ** exponent) + size)
            facts, table = certificate.additive("laplace", moves, Fraction(epsilon), Fraction(1), -(10**6), 10**6, size)
            assert facts.rate * moves + min(size, moves) * table.error < facts.epsilon <= Fraction(epsilon)
            assert facts.epsilon > Fraction(epsilon) * (1 - Fraction(1, 10**9))


def test_error_is_counted_in_the_norm():
    assert lattice.reach_of(sensitivity(1.0, Norm.L2, error=0.25), 9) == 1 + 2 * 3 * Fraction(1, 4)
    assert lattice.reach_of(sensitivity(1.0, Norm.LINF, error=0.25), 9) == 1 + 2 * Fraction(1, 4)


def test_dyadic_rounding_has_the_right_side():
    value = Fraction(1, 3)
    assert certificate.dyadic_below(value) < value < certificate.dyadic_above(value)
    assert certificate.dyadic_above(value) - certificate.dyadic_below(value) < Fraction(1, 2**90)
    for exponent in (-7, 0, 9):
        assert certificate.floor_log2(Fraction(2) ** exponent) == exponent
        assert certificate.floor_log2(Fraction(2) ** exponent * Fraction(99, 100)) == exponent - 1
