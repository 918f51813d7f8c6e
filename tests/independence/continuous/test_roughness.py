"""ContrastGCM's check of roughness: when it is made, what it flags, and what a finding without a flag is worth."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from experiments.evidence.level import nulls
from jaxdp import catalogue, core
from jaxdp.data.dataset import BINARY, Column, Domain
from jaxdp.independence import null_curve
from jaxdp.independence.continuous import roughness
from jaxdp.independence.pairs import AllPairs
from jaxdp.independence.recommended import Recommended
from jaxdp.spec import Options
from jaxdp.statistics.neighbours import neighbour_order

TEST = jaxdp.ContrastGCM(epsilon=1.0)


def shapes(n, depth=2, levels=0):
    columns = (Column(),) * depth + ((Column("categorical", levels),) if levels else ())
    domain = Domain((Column(),), (Column(),), columns)
    return jaxdp.Data(*(jax.ShapeDtypeStruct(s, float) for s in ((n,), (n,), (n, len(columns)))), domain)


@pytest.mark.parametrize(
    ("n", "epsilon", "depth", "levels", "checked"),
    [
        (2080, 1.0, 2, 0, False),
        (2100, 1.0, 2, 0, True),
        (1000, 1.4, 2, 0, False),
        (1000, 1.5, 2, 0, True),
        (999, 8.0, 2, 0, False),
        (10_000, 0.4, 2, 0, False),
        (10_000, 0.5, 2, 0, True),
        (2600, 2.0, 2, 7, False),  # classes of every level would be too small
        (2700, 2.0, 2, 7, True),
        (100_000, 8.0, 3, 0, False),
    ],
)
def test_it_is_made_where_its_share_is_hardly_missed(n, epsilon, depth, levels, checked):
    test, data = dataclasses.replace(TEST, epsilon=epsilon), shapes(n, depth, levels)
    assert core.specialize(test, data).check_roughness is checked
    rule = test.validity(data)
    assert rule.flags == (() if checked else ("curvature",))
    assert rule.verdict == ("run" if checked else "flag")
    assert ("checks for jumps" in rule.sentence) is checked


def test_a_mechanism_of_another_kind_is_judged_by_its_noise():
    for rho, checked in ((0.2, False), (0.3, True)):
        test = jaxdp.ContrastGCM(mechanism=jaxdp.Gaussian(rho))
        assert core.specialize(test, shapes(2000)).check_roughness is checked


def test_three_columns_have_no_check():
    with pytest.raises(ValueError, match=r"check_roughness is for 2 continuous columns of z, got 3"):
        core.specialize(dataclasses.replace(TEST, check_roughness=True), shapes(5000, 3))


def test_classes_have_equal_sizes_and_follow_the_priorities_alone():
    priority = neighbour_order.priorities(jax.random.key(3), 1003)
    found = np.asarray(neighbour_order.classes(priority, 16))
    assert set(np.bincount(found)) == {62, 63}
    tied = np.asarray(neighbour_order.classes(jnp.zeros(32, jnp.uint32), 16))
    np.testing.assert_array_equal(tied, np.arange(32) % 16)


def doubts(fine, coarse, epsilon=1.0, n=4000, pairs=1):
    test = dataclasses.replace(core.specialize(TEST, shapes(n)), epsilon=epsilon, check_roughness=True)
    value = {"windows": jnp.asarray(fine), "coarse": jnp.asarray(coarse)}
    found = roughness.doubt(value, test.mechanism_in_force(), test.sensitivity(n), 1.5 * n, 1.5 * n, 2)
    return found, np.asarray(roughness.is_raised(found, pairs))


def test_what_grows_with_the_windows_is_doubted_and_what_does_not_is_not():
    fine = np.array([400.0, -400.0, 400.0, 400.0, 100.0, 230.0])
    coarse = np.array([400.0, -400.0, 1600.0, -400.0, 100.0, 230.0])
    found, raised = doubts(fine, coarse)
    # jumps make T_s four times T, so that nothing is left of T; 100 is too little to be there without the check's noise
    np.testing.assert_array_equal(raised, [False, False, True, False, True, False])
    assert float(found.p_value[2]) == pytest.approx(1.0)
    assert doubts(fine, coarse, pairs=6)[1][5]
    assert roughness.flag(jax.tree.map(lambda part: part[0], found), 1, 2) == {}
    told = roughness.flag(jax.tree.map(lambda part: part[2], found), 1, 2)
    assert list(told) == ["curvature"]
    assert "windows 4 times as wide in Z add up to 1600 where the test's own add up to 400" in told["curvature"]


@pytest.mark.parametrize("jumps", [0.0, 1.0, 2.0, 4.0, 8.0])
def test_a_finding_without_a_flag_is_as_rare_as_the_level_says_whatever_jumps_add(jumps):
    """Sums of the charged variances about b and 4 b: without the check up to all of these nulls are found."""
    rng, count, n = np.random.default_rng(7), 20_000, 4000
    sd = np.sqrt(1.5 * n)
    fine, coarse = sd * (np.array([[1.0], [4.0]]) * jumps + rng.normal(size=(2, count)) * np.sqrt(0.7))
    fine, coarse = fine + rng.laplace(scale=14 / 0.75, size=count), coarse + rng.laplace(scale=14 / 0.25, size=count)
    test = core.specialize(TEST, shapes(n))
    mechanism, sensitivity = test.mechanism_in_force()["windows"], test.sensitivity(n)["windows"]
    rejected = np.asarray(mechanism.null_p_value(jnp.asarray(fine), sd, sensitivity)) <= 0.05
    assert np.mean(rejected & ~doubts(fine, coarse)[1]) <= 0.05 + 4 * np.sqrt(0.05 / count)
    if jumps >= 4.0:
        assert np.mean(rejected) > 0.95


def table(name, n, seed):
    x, y, z = nulls.samples(nulls.find(name), n, 2, 1, seed, codes=False)
    return x[0], y[0], z[0]


def test_steps_are_flagged_and_dependence_is_not():
    rng, n, domain = np.random.default_rng(5), 2000, nulls.domain_of(nulls.find("steps"), 2)
    test = jaxdp.ContrastGCM(epsilon=2.0)
    z = rng.uniform(-1, 1, (n, 2))
    own, other = 0.25 * rng.normal(size=(2, n))
    dependent = 0.3 * z[:, 0] + own, 0.2 * z[:, 1] + 0.6 * own + 0.8 * other, z
    for columns, flags in ((table("steps", n, 3), ["curvature"]), (dependent, [])):
        data = jaxdp.Data(*columns, domain)
        result = core.run(test, jax.random.key(1), data)
        assert float(result.p_value) < 1e-3
        assert set(result.release.value) == {"windows", "coarse"}
        assert list(test.released_flags(core.public_shapes(data), result.release)) == flags


def test_of_several_pairs_the_strongest_is_asked_about():
    rng, n = np.random.default_rng(6), 4000
    x, y, z = table("steps", n, 4)
    own = 0.25 * rng.normal(size=n)
    data = jaxdp.Data(np.stack([own, x], axis=1), np.stack([own + 0.1 * rng.normal(size=n), y], axis=1), z)
    domain = Domain((Column(),) * 2, (Column(),) * 2, (Column(),) * 2)
    test = jaxdp.ContrastGCM(epsilon=8.0)
    for pairs, flags in ((slice(None), []), (slice(1, None), ["curvature"])):
        part = dataclasses.replace(data, x=data.x[:, pairs], y=data.y[:, pairs])
        part = dataclasses.replace(part, domain=Domain(domain.x[pairs], domain.y[pairs], domain.z))
        result = core.run(test, jax.random.key(1), part)
        assert list(test.released_flags(core.public_shapes(part), result.release)) == flags


def test_an_answer_says_what_the_check_found():
    x, y, z = table("steps", 2200, 3)
    columns = {"x": x, "y": y, "a": z[:, 0], "b": z[:, 1]}
    answer = jaxdp.test(
        columns,
        x="x",
        y="y",
        given=["a", "b"],
        epsilon=2.0,
        bounds=dict.fromkeys(columns, (-1, 1)),
        key=jax.random.key(2),
    )
    rule = answer.content["level_rule"]
    assert (rule["verdict"], rule["flags"]) == ("flag", ["curvature"])
    assert "Roughness, released: windows 4 times as wide" in rule["sentence"]


def test_columns_of_levels_are_checked_too():
    data = shapes(3000)
    coins = dataclasses.replace(data, domain=Domain((Column(BINARY, 2),), (Column(),), (Column(),) * 2))
    assert core.specialize(TEST, coins).check_roughness is True


def test_one_of_many_has_no_check():
    several = jaxdp.Data(jax.ShapeDtypeStruct((4000, 3), float), None, jax.ShapeDtypeStruct((4000, 2), float))
    assert core.specialize(AllPairs(test=TEST), several).test.check_roughness is False
    assert core.specialize(Recommended(epsilon=1.0), shapes(4000)).check_roughness is False
    rng = np.random.default_rng(8)
    columns = {name: rng.uniform(-1, 1, 2500) for name in "xyzab"}
    pairs = jaxdp.test_pairs(
        columns,
        columns=["x", "y", "z"],
        given=["a", "b"],
        epsilon=8.0,
        bounds=dict.fromkeys(columns, (-1, 1)),
        key=jax.random.key(2),
    )
    assert "A quarter of the budget" not in pairs.content["level_rule"]["sentence"]


@pytest.mark.parametrize(("n", "epsilon", "checked"), [(1500, 4.0, True), (4000, 0.5, False)])
def test_a_builder_settles_it_before_a_budget_is_traced(n, epsilon, checked):
    """With a budget of 1 both would be decided the other way."""
    built = catalogue.find("contrast-gcm").build(epsilon, shapes(n).domain, Options(num_records=n))

    @jax.jit
    def specialized(test):
        return jnp.asarray(core.specialize(test, shapes(n)).check_roughness)

    assert built.check_roughness is bool(specialized(built)) is checked
    traced = jaxdp.ContrastGCM(epsilon=epsilon)
    assert bool(specialized(traced)) is not checked
    x, y, z = np.split(np.random.default_rng(9).uniform(-1, 1, (n, 4)), [1, 2], axis=1)
    data = jaxdp.Data(x[:, 0], y[:, 0], z, shapes(n).domain)
    release = jax.jit(lambda test: core.run(test, jax.random.key(1), data).release)(traced)
    told = traced.released_flags(core.public_shapes(data), release)  # by the form that the release has
    assert bool(told) is not checked


@pytest.mark.parametrize("checked", [False, True])
def test_the_null_law_is_drawn_of_the_sum_and_its_squares_stay(checked):
    test = dataclasses.replace(TEST, check_roughness=checked)
    result = core.run(test, jax.random.key(4), _uniform(1000))
    curve = null_curve.null_curve(test, result)
    assert curve is not None
    assert curve.statistic == pytest.approx(float(result.statistic))
    assert curve.tail(np.array([abs(curve.statistic)]))[0] == pytest.approx(float(result.p_value), rel=1e-3)


def test_the_null_variance_follows_the_squares_between_its_floor_and_the_largest():
    release = core.run(TEST, jax.random.key(5), _uniform(1000)).release
    test = core.specialize(TEST, _uniform(1000))
    found = [
        float(test._null_variance(dataclasses.replace(release, value=jnp.array([0.0, half]))))
        for half in (0.0, 300.0, 1e4)
    ]
    assert found == pytest.approx([750.0, 1.8 * 600.0, 1500.0])


def _uniform(n):
    x, y, z = np.split(np.random.default_rng(12).uniform(-1, 1, (n, 4)), [1, 2], axis=1)
    return jaxdp.Data(x[:, 0], y[:, 0], z, shapes(n).domain)
