"""Tuning: gradients against differences, the price on false alarms, the table of levels, the check of the level."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp import tune
from jaxdp.simulate import power
from jaxdp.simulate.designs.confounder import sine_confounder
from jaxdp.simulate.engine.replicates import Design
from jaxdp.statistics.winsorize import best_level
from jaxdp.tune import descent, search, sieve, winsorising
from jaxdp.tune.objective import without_effect
from jaxdp.tune.search import ranked_options
from jaxdp.tune.tunable import LEAVES, at, start_of

STEEP = functools.partial(sine_confounder, n=40, effect=0.3, sign=1.0, z_sd=1.0, noise_sd=0.3)
# docs/theory/partition_gcm.md#winsorising; the entries whose last digit is off by more than 1 % are exact here.
TABLE = {
    (100, 0.5): 0.0947,
    (100, 1): 0.27,
    (100, 2): 0.57,
    (100, 7): 1.24,
    (300, 0.5): 0.22,
    (300, 1): 0.50,
    (300, 2): 0.8536,
    (300, 7): 1.53,
    (1000, 0.5): 0.46,
    (1000, 1): 0.81,
    (1000, 2): 1.18,
    (1000, 7): 1.85,
    (1e4, 0.5): 1.05,
    (1e4, 1): 1.43,
    (1e4, 2): 1.79,
    (1e4, 7): 2.41,
    (1e5, 0.5): 1.6701,
    (1e5, 1): 2.02,
    (1e5, 2): 2.37,
    (1e5, 7): 2.94,
}


def slope(function, point, name, step=1e-5):
    """Central difference in every entry of one leaf."""
    value = np.asarray(point[name], float)
    found = np.zeros(value.size)
    for entry in range(value.size):
        move = step * (np.arange(value.size) == entry).reshape(value.shape)
        ends = [float(function({**point, name: jnp.asarray(value + sign * move)})) for sign in (1.0, -1.0)]
        found[entry] = (ends[0] - ends[1]) / (2.0 * step)
    return found.reshape(value.shape)


GRADIENT_CASES = {
    "partition": (
        lambda: jaxdp.PartitionGCM(epsilon=3.0, num_cells=3, winsorize=0.9, weights=jnp.array([0.9, 0.5, -0.3])),
        ("winsorize", "split", "scale_x", "scale_y", "weights"),
    ),
    "kernel": (
        lambda: jaxdp.PrivateGCM(epsilon=30.0, ridge=0.7, kernel=jaxdp.RBF(lengthscale=0.8), scale_x=2.0, scale_y=2.0),
        ("ridge", "bandwidth"),
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("case", GRADIENT_CASES)
def test_gradient_against_finite_differences_for_every_leaf_of_a_test(case):
    make, names = GRADIENT_CASES[case]
    with jax.enable_x64(True):
        test = make()
        design = Design.of(functools.partial(sine_confounder, n=30, effect=0.8))
        sample = tune.Sample.draw((design, without_effect(design)), jax.random.key(0), 8)
        # a price at which the penalty is active: its kink is away from this point
        objective = jax.jit(lambda point: tune.SoftPower(price=0.7, softness=0.2)(at(test, point), sample))
        point = start_of(test, names, 30)
        gradient = jax.jit(jax.grad(objective))(point)
        for name in names:
            expected = slope(objective, point, name)
            np.testing.assert_allclose(np.asarray(gradient[name]), expected, rtol=1e-4, atol=1e-8, err_msg=name)
            assert np.any(np.abs(expected) > 1e-6), name


def test_every_leaf_of_the_table_has_a_gradient_case():
    assert {name for _, names in GRADIENT_CASES.values() for name in names} == set(LEAVES)


@pytest.mark.full
def test_gradient_against_finite_differences_for_budgets_sub_sampling_and_the_share():
    margins = np.array([3.0, 20.0, 60.0, -5.0, -30.0, -80.0, -200.0])
    with jax.enable_x64(True):
        functions = {
            "sieve": lambda p: sieve.expected_errors(sieve.settings_at((p[0], p[3]), 0.5), margins, 2.0),
            "orders": lambda p: sieve.order_errors(
                jax.nn.softmax(p[:3]), jnp.array([9.0, 5.0, 4.0]), jnp.array([6.0, 4.0, 2.0])
            ),
            "sub-sampling": lambda p: tune.noise_objective(p[0], 0.8),
            "share": lambda p: winsorising.split_objective(200.0, 1.0, 0.05, 5.0)(1.5 + p[0]),
            "share, uncorrected": lambda p: winsorising.split_objective(200.0, 1.0, 0.05, 5.0, False)(1.5 + p[0]),
            "level and share": lambda p: winsorising.joint_objective(200.0, 1.0, 0.05, 5.0)[1]((p[1], 1.5 + p[0])),
        }
        point = jnp.array([0.3, -0.2, 0.5, 3.0])
        for name, function in functions.items():
            compiled = jax.jit(function)
            found = np.asarray(jax.grad(compiled)(point))
            expected = slope(lambda p, f=compiled: f(p["p"]), {"p": point}, "p")
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9, err_msg=name)
            assert np.any(np.abs(expected) > 1e-4), name


@pytest.mark.full
def test_the_winsorising_level_matches_the_table():
    n, epsilon = np.array(list(TABLE)).T
    with jax.enable_x64(True):
        epsilons = np.linspace(0.2, 5.0, 400)
        both = tune.winsorising_level(np.append(n, np.full(400, 500.0)), np.append(epsilon, epsilons))
        found, many = np.split(np.asarray(both), [n.size])
        exact = np.asarray(jax.vmap(best_level)(n, 2.0 * (8.0 / (0.85 * epsilon)) ** 2))
    np.testing.assert_allclose(found, list(TABLE.values()), rtol=0.02)
    np.testing.assert_allclose(found, exact, rtol=2e-3)  # the top is flat: 1e-3 in tau is 1e-6 in efficiency
    assert np.all(np.diff(many) > 0)  # less noise, less clipping


@pytest.mark.full
@pytest.mark.optimised
def test_the_epsilon_split_matches_the_table():
    # integrated, not drawn: no seed
    assert tune.epsilon_split(1000, 1.0) == pytest.approx(0.85, rel=0.10)


@pytest.mark.nightly
@pytest.mark.optimised
def test_the_epsilon_split_over_the_table():
    """Within a tenth of the default 0.85 in 16 of 20 cells; in the others more, as 0.85 is not the optimum there."""
    found = {cell: tune.epsilon_split(*cell) for cell in TABLE}
    beyond = {cell for cell, share in found.items() if abs(share / 0.85 - 1.0) > 0.10}
    assert beyond == {(1e4, 0.5), (1e5, 0.5), (1e5, 1), (1e5, 2)}
    assert all(0.93 < found[cell] < 0.97 for cell in beyond)
    # the p-value without the correction needs a better known variance where epsilon is large
    assert tune.epsilon_split(100, 7.0, correct_level=False) < 0.7 < found[100, 7] < 0.8


def test_the_share_hardly_matters_between_085_and_095_and_hurts_below_07():
    with jax.enable_x64(True):
        decide = tune.SoftPower()
        tau, effect = float(best_level(1000.0, 2.0 * (8.0 / 0.85) ** 2)), 0.145
        rate = jax.jit(lambda s, e: winsorising.limit_rate((jnp.log(tau), s), 1000.0, 1.0, e, decide))
        logits = {s: np.log(s / (1 - s)) for s in (0.6, 0.85, 0.9, 0.95)}
        power = {s: float(rate(logit, effect)) for s, logit in logits.items()}
        alarms = float(rate(logits[0.6], 0.0))
    assert max(power.values()) - min(power[0.85], power[0.9], power[0.95]) < 0.02
    assert power[0.6] < power[0.85] - 0.04
    assert alarms == pytest.approx(float(decide.allowed()), abs=1e-3)  # much budget for V: a valid test


def climb(price, sample, test, steps=5):
    """Bandwidth and soft rates (power, false alarms) before and after."""
    objective, start = tune.SoftPower(price=price, batch_size=16), start_of(test, ("bandwidth",), 40)
    points, _ = _climb(objective, test, jax.tree.map(lambda v: v[None], start), sample, steps)
    tuned = at(test, jax.tree.map(lambda leaf: leaf[0], points))
    return float(tuned.kernel.lengthscale), np.asarray(_rates(objective, tuned, sample)), float(objective.allowed())


@functools.partial(jax.jit, static_argnums=4)
def _climb(objective, test, starts, sample, steps):
    return descent.ascend(lambda point: objective(at(test, point), sample), starts, steps=steps)


_rates = jax.jit(lambda objective, test, sample: objective.rates(test, sample))


@pytest.mark.full
def test_unconstrained_soft_power_stops_conditioning_on_z_and_the_price_prevents_it():
    design = Design.of(STEEP)
    sample = tune.Sample.draw((design, without_effect(design)), jax.random.key(0), 24)
    test = jaxdp.GCM(ridge=0.01, kernel=jaxdp.RBF(lengthscale=0.5))
    bandwidth, rates, allowed = climb(0.0, sample, test)
    assert bandwidth > 5.0  # ten times the start and the sd of Z: the fit is flat
    assert rates[1] > 5.0 * allowed  # and every null is rejected
    bandwidth, rates, allowed = climb(20.0, sample, test)
    assert bandwidth < 1.0
    assert rates[1] <= 1.2 * allowed


HUNDRED = functools.partial(sine_confounder, n=100, effect=0.7, complexity=2.0, sign=-1.0)


@pytest.fixture(scope="module")
def widely_winsorised():
    """A default that is far too wide for 100 records, and the same test tuned."""
    default = jaxdp.PartitionGCM(epsilon=1.0, winsorize=2.5)
    jax.config.update("jax_disable_most_optimizations", True)  # as in the tests, which share its programs
    tuned = tune.tune(
        default,
        ["winsorize"],
        design=HUNDRED,
        nulls=(),
        key=jax.random.key(5),
        replicates=64,
        steps=8,
        restarts=1,
        optimizer="adam",
        check_replicates=4000,
    )
    return default, tuned


@pytest.mark.full
def test_a_tuned_test_says_what_it_was_tuned_on_and_keeps_its_cost(widely_winsorised):
    default, tuned = widely_winsorised
    assert tuned.accepted
    assert tuned.gain > 0.1
    assert tuned.values["winsorize"] < tuned.default_values["winsorize"]
    assert all(check.holds for check in tuned.checks)
    assert tuned.power.replicates == 4000
    assert tuned.tuned_on["design"] == "sine_confounder(n=100, effect=0.7, complexity=2.0, sign=-1.0)"
    assert tuned.tuned_on["seed"] == [0, 5]
    assert "softness" in tuned.tuned_on["objective"]
    data = sine_confounder(jax.random.key(0), 100)
    split = LEAVES["split"].put(default, jnp.float32(0.9))
    costs = [float(jaxdp.core.cost_of(t, data).epsilon) for t in (tuned.test, split)]
    np.testing.assert_allclose(costs, 1.0, rtol=1e-6)
    assert "tuned on sine_confounder" in str(tuned)
    concentrated = LEAVES["split"].put(jaxdp.PartitionGCM(mechanism=jaxdp.Gaussian(rho=0.5)), jnp.float32(0.9))
    assert float(jaxdp.core.cost_of(concentrated, data).rho) == pytest.approx(0.5)
    assert LEAVES["split"].get(concentrated, 100) == pytest.approx(0.9)


@pytest.mark.full
def test_a_tuned_test_keeps_its_level_and_gains_power_on_a_design_it_was_not_tuned_on(widely_winsorised):
    tests = widely_winsorised[0], widely_winsorised[1].test
    other = functools.partial(HUNDRED, complexity=4.0, sign=1.0)  # another wave and sign; the smaller effect below
    counts = {
        effect: [
            power.rejection_rate(test, functools.partial(other, effect=effect), jax.random.key(8), 4000)
            for test in tests
        ]
        for effect in (0.0, 0.6)
    }
    level = [count.rejections for count in counts[0.0]]
    allowed = stats.binom.ppf(1 - 1e-6, 4000, 0.055)  # the limit law's own excess at 100 records
    assert max(level) <= allowed
    assert counts[0.6][1].rate > counts[0.6][0].rate + 0.08


@pytest.mark.full
def test_the_check_runs_as_many_replicates_as_fit_into_its_time(widely_winsorised):
    tests, key = (widely_winsorised[0], widely_winsorised[1].test), jax.random.key(9)
    few, many = (search._paired(tests, Design.of(HUNDRED), key, 4000, seconds) for seconds in (0.0, 1e6))
    assert (few.shape, many.shape) == ((2, 2000), (2, 4000))
    np.testing.assert_array_equal(few, many[:, :2000])
    assert search._paired(tests, Design.of(HUNDRED), key, 1000, 0.0).shape == (2, 1000)


def test_a_seventh_of_a_point_of_level_is_refused_at_the_default_size_of_the_check():
    """PartitionGCM at a share of 0.88 rejects 0.0537 of the nulls, by default 0.0522 (284 and 132 of 10^5 alone)."""
    random, refused = np.random.default_rng(3), {2000: 0, 20_000: 0}
    for replicates in refused:
        for _ in range(200):
            both, tuned, default, _ = random.multinomial(replicates, [0.05087, 0.00284, 0.00132, 0.94497])
            rejects = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [both, tuned, default], axis=0).T
            rejects = np.concatenate([rejects, np.ones((2, replicates - rejects.shape[1]))], axis=1)
            refused[replicates] += not tune.LevelCheck.of("null", *rejects, 0.05).holds
    assert refused[20_000] >= 185
    assert refused[2000] < 100


def test_the_level_check_compares_both_tests_on_the_same_replicates():
    random = np.random.default_rng(0)
    default = random.uniform(size=20_000)
    worse = np.where(default < 0.06, 0.8 * default, default)  # rejects where the default does, and a little more
    check = tune.LevelCheck.of("null", worse, default, 0.05)
    assert (check.only_default, check.holds) == (0, False)
    assert check.only_tuned == check.tuned.rejections - check.default.rejections
    assert tune.LevelCheck.of("null", default, default, 0.05).holds
    shuffled = random.permutation(default)  # as many rejections, in other replicates
    assert tune.LevelCheck.of("null", shuffled, default, 0.05).holds
    assert tune.LevelCheck.of("null", 2.0 * default, default, 0.05).holds  # conservative


def count(only_tuned, only_default, both=0, replicates=100_000):
    """A level check of these counts."""

    def rate(only):
        return power.RejectionRate(both + only, replicates, 0.05)

    return tune.LevelCheck("null", rate(only_tuned), rate(only_default), only_tuned, only_default)


def test_the_excess_of_the_default_is_no_licence():
    assert not count(30, 20, both=6000).holds  # 0.0603 after 0.0602: above the level, and more often in the count
    assert not count(30, 20, both=6000).rejects_more(0.05)
    assert count(20, 30, both=6000).holds
    assert count(30, 20, both=4990).holds  # 0.0502 after 0.0501: not above the level beyond chance
    assert not count(60, 20, both=4990).holds  # but more often than the default beyond chance
    assert count(60, 20, both=4900).holds  # within the level


def test_a_small_rise_on_every_null_is_seen_on_all_of_them_together():
    each = [count(40, 28, both=4990)] * 6
    assert all(check.holds for check in each)
    together = tune.LevelCheck.together(each)
    assert (together.only_tuned, together.only_default, together.tuned.replicates) == (240, 168, 600_000)
    assert together.tuned.rejections == 6 * 5030
    assert not together.holds


def test_a_tuned_test_that_loses_power_on_a_declared_alternative_is_refused(monkeypatch):
    """Power 0.5 -> 0.8 where tuned; 0.5 -> 0.4 on the other design; null p-values of both tests are the same."""
    fair = np.linspace(0.0, 1.0, 1000)

    def rejected(share):
        return np.where(fair <= share, 0.0, 1.0)

    def paired(tests, design, key, replicates, seconds):
        effect = design.numbers["effect"]
        return {0.0: (fair, fair), 0.7: (rejected(0.8), rejected(0.5)), 0.3: (rejected(0.4), rejected(0.5))}[effect]

    monkeypatch.setattr(search, "_paired", paired)
    facts = {"tried": {}, "default_values": {}, "tried_options": {}, "default_objective": 0.0, "tuned_on": {}}
    designs = [Design.of(functools.partial(HUNDRED, effect=effect)) for effect in (0.7, 0.0)]
    for others, refused in (((0.7,), False), ((0.3, 0.7), True)):
        others = tuple(Design.of(functools.partial(HUNDRED, effect=effect)) for effect in others)
        found = search._checked(
            "default", "tuned", designs, others, 0.05, jax.random.key(0), (1000, 1.0), objective_value=0.0, **facts
        )
        assert found.test == ("default" if refused else "tuned")
        assert ("power is lost on sine_confounder(n=100, " in found.refused) == refused


def test_the_values_of_a_refused_tuning_are_those_in_force():
    rate = jaxdp.power.RejectionRate(5, 100, 0.05)
    facts = {"test": None, "tried": {"winsorize": 9.0}, "default_values": {"winsorize": 2.0}, "tuned_on": {}}
    facts |= {"tried_options": {"num_cells": 1}, "objective": 0.0, "default_objective": 0.0, "checks": ()}
    refused = tune.Tuned(**facts, power=rate, default_power=rate, refused="refused: the level breaks on a null")
    assert (refused.values, refused.options) == ({"winsorize": 2.0}, {})
    accepted = tune.Tuned(**facts, power=rate, default_power=rate)
    assert (accepted.values, accepted.options) == ({"winsorize": 9.0}, {"num_cells": 1})


@pytest.mark.nightly
def test_a_tuned_test_that_breaks_the_level_is_refused():
    default = jaxdp.PartitionGCM(epsilon=20.0, scale_x=0.3, scale_y=0.3)
    tuned = tune.tune(
        default,
        (),
        design=functools.partial(STEEP, n=100),
        nulls=(),
        grid={"num_cells": (1,)},  # one cell: Z is not conditioned on
        key=jax.random.key(6),
        replicates=16,
        price=0.0,
        check_replicates=300,
    )
    assert not tuned.accepted
    assert "level breaks" in tuned.refused
    assert tuned.test == default
    assert tuned.gain == 0.0


@pytest.mark.full
def test_the_grid_of_choices_uses_common_random_numbers():
    design = Design.of(functools.partial(sine_confounder, n=60, effect=0.9))
    sample = tune.Sample.draw((design, without_effect(design)), jax.random.key(0), 64)
    test = jaxdp.PartitionGCM(epsilon=5.0)
    # 30 cells of two records lose half of the degrees of freedom
    ranked = ranked_options(tune.SoftPower(), test, sample, {"num_cells": (8, 30)})
    assert [option for option, _ in ranked] == [{"num_cells": 8}, {"num_cells": 30}]
    assert ranked[0][1] > ranked[1][1]
    assert [option for option, _ in ranked_options(tune.SoftPower(), test, sample, {})] == [{}]


def parabola(key, n, effect):
    """y is a share `effect` of a parabola in x, on the square."""
    x, noise = jax.random.uniform(key, (2, n), minval=-1.0, maxval=1.0)
    return jaxdp.Data(x, effect * (2.0 * x**2 - 1.0) + (1.0 - effect) * noise)


@pytest.mark.nightly
def test_the_grid_chooses_cells_and_master_factor_of_mic():
    tuned = tune.tune(
        jaxdp.MICrLaplace(epsilon=1.0, num_null=99, max_cells=4.0),  # 2 x 2 cells do not see a parabola
        (),
        design=functools.partial(parabola, n=100, effect=0.7),
        nulls=(),
        key=jax.random.key(0),
        grid={"max_cells": (4.0, 8.0), "c": (1.0, 3.0)},
        replicates=64,
        check_replicates=1000,
    )
    assert tuned.accepted
    assert tuned.options["max_cells"] == 8.0
    assert tuned.gain > 0.1


@pytest.mark.full
def test_sieve_settings_make_fewer_errors_than_the_published_split():
    margins = np.concatenate([np.linspace(40.0, 1200.0, 20), -np.linspace(40.0, 1200.0, 300)])
    tuned = tune.sieve_settings(1.0, margins, 25)
    assert tuned.threshold + tuned.query + tuned.examine == pytest.approx(1.0 / 25)
    assert "320 public guesses of margins" in tuned.tuned_on
    assert tuned.sieve_share == pytest.approx(25.0 * (tuned.threshold + tuned.query))
    published = tune.SieveSettings(threshold=0.25 / 25, query=0.25 / 25, examine=0.5 / 25, tweak=0.0)
    errors = [float(tune.expected_errors(settings, margins, 25)) for settings in (tuned, published)]
    assert errors[0] < 0.5 * errors[1]


def test_expected_errors_against_draws():
    settings = tune.SieveSettings(threshold=0.3, query=0.5, examine=0.6, tweak=1.5)
    margins, random = np.array([1.0, 6.0, -1.0, -6.0]), np.random.default_rng(1)
    rho, nu = ((random.exponential(size=(200_000, 4)) - 1.0) * scale for scale in (1 / 0.3, 2 / 0.5))
    x = random.laplace(size=(200_000, 4)) / 0.6
    fires = (margins + nu >= -1.5 + rho) & (margins + x >= 0.0)
    wrong = np.where(margins >= 0.0, ~fires, fires).mean()
    assert float(tune.expected_errors(settings, margins, 100.0)) == pytest.approx(wrong, abs=3e-3)


def test_order_budgets_add_up_and_beat_an_even_division():
    margins, counts = np.array([20.0, 10.0, 5.0]), np.array([6.0, 12.0, 12.0])
    budgets = tune.order_budgets(3.0, margins, counts)
    assert float(counts @ budgets) == pytest.approx(3.0)
    # at the optimum a little more budget buys the same everywhere: margin exp(-margin budget) is one number
    assert np.ptp(np.log(margins) - margins * budgets) < 1e-4
    even = np.full(3, 3.0 / counts.sum())
    assert float(tune.order_errors(budgets, margins, counts)) < float(tune.order_errors(even, margins, counts))


def test_mistakes_are_named():
    design = functools.partial(sine_confounder, n=20, effect=0.5)
    with pytest.raises(ValueError, match=r"leaves of .* must be some of"):
        tune.tune(jaxdp.PartitionGCM(epsilon=1.0), ["magic"], design=design, key=jax.random.key(0))
    with pytest.raises(ValueError, match=r"leaves of .* must be some of"):
        tune.tune(jaxdp.PartitionGCM(epsilon=1.0), ["ridge"], design=design, key=jax.random.key(0))
    with pytest.raises(ValueError, match="effect"):
        tune.tune(
            jaxdp.PartitionGCM(epsilon=1.0), ["split"], design=lambda k: sine_confounder(k, 20), key=jax.random.key(0)
        )
    with pytest.raises(ValueError, match="optimizer must be"):
        descent.ascend(lambda p: -(p**2), jnp.ones(1), steps=2, optimizer="newton")


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        ({"num_cells": []}, "num_cells has no option"),
        ({"num_bins": [4]}, "PartitionGCM has no field 'num_bins'; it has .*num_cells"),
    ],
)
def test_a_grid_without_options_or_of_no_field_is_refused_in_a_sentence(grid, says):
    """They were an IndexError and the TypeError of a constructor."""
    with pytest.raises(ValueError, match=says):
        tune.tune(jaxdp.PartitionGCM(epsilon=1.0), (), design=STEEP, key=jax.random.key(0), grid=grid)
