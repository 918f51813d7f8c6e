"""PoissonRegression: the range of its scores and squares, its model, the variance it counts, intervals, refusals."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from replicated_slopes import (
    answers_of,
    check_intervals,
    check_level,
    check_margins,
    check_refused,
    check_units,
    columns_without_records,
    farthest,
    near_start,
    of_grid,
    simulated_stages,
)
from scipy.stats import binom

import jaxdp
from jaxdp.data.dataset import BINARY, CATEGORICAL, ORDINAL, Column, Data, Domain
from jaxdp.independence.continuous import poisson_regression, regression_examples, regression_test
from jaxdp.mechanisms import Gaussian, Laplace
from jaxdp.statistics.regression_families import POISSON
from jaxdp.statistics.regression_scores import Start, Sums

VISITS = Column(name="visits", from_zero=True)
ATTACKED = 0.9  # a unit that were this small would be seen


def start_of(values, y, euclidean: bool = False) -> Start:
    """About moments without noise; y on [0, 1]."""
    all_of_it = np.column_stack([np.ones(len(values)), values, 2.0 * y - 1.0])
    return Start.about(jnp.asarray(all_of_it.T @ all_of_it / len(values)), 1e-6, euclidean, POISSON)


def counts(seed: int, n: int, slopes, most: float = 30.0, mean: float = 1.0, extra: float = 0.0):
    """Correlated columns (n, d), X the last, and Y over its upper end."""
    rng = np.random.default_rng(seed)
    values = 0.8 * rng.normal(size=(n, len(slopes))) + 0.6 * rng.normal(size=(n, 1))
    expected = mean * np.exp(values @ np.array(slopes))
    expected = expected * rng.gamma(1.0 / extra, extra, n) if extra else expected
    return values, np.minimum(rng.poisson(expected), most) / most


def likeliest(values, y):
    """(slopes, the constant first; standard errors by the sandwich) by Poisson maximum likelihood."""
    design, slopes = np.column_stack([np.ones(len(values)), values]), np.zeros(values.shape[1] + 1)
    slopes[0] = np.log(y.mean())
    for _ in range(25):
        mean = np.exp(design @ slopes)
        back = np.linalg.inv((design * mean[:, None]).T @ design)
        slopes = slopes + back @ design.T @ (y - mean)
    squares = (design * ((y - mean) ** 2)[:, None]).T @ design
    return slopes, np.sqrt(np.diag(back @ squares @ back))


def sums_of(start: Start, values, y) -> Sums:
    """Without noise."""
    p = len(start.slopes)
    every = np.asarray(start.of(jnp.asarray(values), jnp.asarray(y))).sum(0)
    parts = jnp.asarray(every[:p]), jnp.asarray(every[p : 2 * p])
    return Sums.of(start, *parts, (1e-6,) * 3, 2.0, len(values), squares=jnp.asarray(every[2 * p]))


@pytest.mark.parametrize("reach", [1.0, 1.7])
@pytest.mark.parametrize("euclidean", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4, 9])
@pytest.mark.parametrize("rate", [0.03, 0.1])
def test_no_two_records_differ_by_more_than_the_units_and_some_by_nearly_as_much(euclidean, count, reach, rate):
    p, slopes = count + 1, np.append(np.log(rate), np.full(count, 1e-4))
    with jax.enable_x64(True):
        fields = {"shift": jnp.zeros(count), "reach": jnp.asarray(reach), "family": POISSON}
        about = near_start(slopes, euclidean, **fields)
        found = of_grid(about, 1601, 41)
        # of the information records reach the whole bound only where the mean is at the cap
        at_cap = rate / float(POISSON.largest(about))
    # and of the squares of many columns, with most of them near the constant, less
    leasts = ATTACKED, 0.9 * at_cap, 0.7 if count == 9 else ATTACKED
    check_units(np.split(found, (p, 2 * p), axis=1), leasts, euclidean, count)


@pytest.mark.parametrize("euclidean", [False, True])
def test_where_means_reach_their_cap_records_stay_within_the_units(euclidean):
    rng = np.random.default_rng(5)
    with jax.enable_x64(True):
        for _ in range(40):
            slopes = np.append(rng.uniform(-4.0, 0.5), rng.normal(size=3) * rng.uniform(0.0, 2.0))
            fields = {"shift": jnp.asarray(rng.normal(size=3)), "reach": jnp.asarray(rng.uniform(1.0, 2.0))}
            about = near_start(slopes, euclidean, family=POISSON, **fields)
            near = rng.uniform(-1.0, 1.0, (3000, 3)) * rng.uniform(0.02, 1.0, (3000, 1))
            y = rng.choice([0.0, 0.5, 1.0], 3000)
            found = np.asarray(about.of(jnp.asarray(near), jnp.asarray(y)))
            for part in np.split(found, (4, 8), axis=1):
                assert farthest(part, euclidean) <= 1.0 + 1e-12


def test_weights_depend_on_the_columns_alone():
    """A score is linear in Y, so that it has no mean at the true slopes."""
    with jax.enable_x64(True):
        start = jax.tree.map(jnp.asarray, regression_examples.poisson_start())
        near = jnp.asarray(np.random.default_rng(1).uniform(-1.0, 1.0, (500, 2)))
        none, half, all_of_it = (np.asarray(start.of(near, jnp.full(500, y)))[:, :6] for y in (0.0, 0.5, 1.0))
    assert 0.5 * (none + all_of_it) == pytest.approx(half, abs=1e-12)
    assert np.array_equal(none[:, 3:], all_of_it[:, 3:]), "the information does not see Y"


def test_the_normal_model_is_that_of_many_normal_records():
    rng = np.random.default_rng(3)
    slopes, shift = np.array([-2.0, 0.4, -0.3]), np.array([0.3, -0.2])
    z = np.column_stack([np.ones(2_000_000), rng.normal(size=(2_000_000, 2)) - shift])
    mean = np.exp(z @ slopes)
    with jax.enable_x64(True):
        value, products = POISSON.moments(jnp.asarray(slopes), jnp.asarray(shift))
    assert np.asarray(value) == pytest.approx(z.T @ mean / len(z), abs=1e-3)
    assert np.asarray(products) == pytest.approx((z * mean[:, None]).T @ z / len(z), abs=1e-3)


def test_a_start_from_moments_of_normal_columns_is_the_true_model():
    values, y = counts(1, 1_000_000, (0.3, -0.4))
    with jax.enable_x64(True):
        start = start_of(values, y)
        of_columns = np.asarray(start.slopes[1:] @ start.root)
        whitened = (values - np.asarray(start.mean)) @ np.asarray(start.root).T
    assert of_columns == pytest.approx([0.3, -0.4], abs=0.01)
    mean = np.exp(float(start.slopes[0]) + whitened @ np.asarray(start.slopes[1:]))
    assert np.mean(mean) == pytest.approx(np.mean(y), rel=0.01)
    assert float(start.dispersion) == pytest.approx(1.0 / 30.0, rel=0.05), "that of Poisson's law, in units of Y"
    assert np.mean(mean[:, None] * whitened, axis=0) == pytest.approx([0.0, 0.0], abs=1e-3), "weighed by their means"


@pytest.mark.parametrize("euclidean", [False, True])
@pytest.mark.parametrize("extra", [0.0, 1.0])
def test_without_noise_slope_and_width_are_near_those_of_maximum_likelihood_with_the_sandwich(euclidean, extra):
    values, y = counts(2, 40_000, (0.2, -0.2, 0.1, 0.3), extra=extra)
    known, errors = likeliest(values, y)
    with jax.enable_x64(True):
        start, off = start_of(values, y, euclidean), []
        for _ in range(3):
            found = sums_of(start, values, y)
            off.append(abs(float(found.slope * start.root[-1, -1]) - known[-1]) / errors[-1])
            squared = found.dispersion(found.slope) * found.pivot(found.slope)[3]
            _, sd, _, information = found.pivot(found.slope)
            start = found.improved()
    assert off[0] < 1.5
    assert off[2] < 0.6
    alone, whole = (float(part / information * start.root[-1, -1]) / errors[-1] for part in (squared**0.5, sd))
    assert 0.95 < alone < 1.2, "what the weights cost"
    assert alone < whole, "what is allowed for besides"


def about_known(squares, noise: float = 1e-6) -> Sums:
    """Sums of which the information of X is 100 about a start of no slopes, and these squares in units of a model."""
    start = jax.tree.map(jnp.asarray, regression_examples.poisson_start())
    of_information = jnp.array([0.0, 0.0, 100.0]) / start.units[1]
    modelled = 100.0 * float(start.dispersion) / float(start.unit_of_squares)
    scales = (1e-6, 1e-6, noise * modelled)
    return Sums.of(start, jnp.zeros(3), of_information, scales, 1.0, 1000, squares=jnp.asarray(squares * modelled))


@pytest.mark.parametrize(
    ("squares", "noise", "counted"),
    [
        (0.5, 1e-6, 1.0),
        (1.2, 1e-6, 1.2),
        (4.0, 1e-6, 4.0),
        (1.0, 0.3, 1.3),
        (-3.0, 2.0, 1.0),
        (1.0, 9.0, 1.5),
        (9.0, 2.0, 7.0),
    ],
)
def test_the_variance_is_the_model_or_what_the_squares_say_above_their_noise(squares, noise, counted):
    with jax.enable_x64(True):
        found = about_known(squares, noise)
        modelled = found.start.dispersion
        assert float(found.dispersion(jnp.asarray(0.0)) / modelled) == pytest.approx(counted, rel=1e-3)


def test_overdispersed_counts_have_the_interval_of_the_sandwich_and_not_poissons():
    """Variance mostly where X is far, and five times Poisson's: moments of Y alone would say less."""
    rng = np.random.default_rng(8)
    values = rng.normal(size=(40_000, 2))
    spread = np.where(np.abs(values[:, 1]) > 1.5, 4.0, 0.2)
    y = np.minimum(rng.poisson(rng.gamma(1.0 / spread, spread) * 1.5), 40.0) / 40.0
    known, errors = likeliest(values, y)
    with jax.enable_x64(True):
        found = sums_of(start_of(values, y), values, y)
        _, sd, _, information = found.pivot(jnp.asarray(0.0))
        by_moments = jnp.sqrt(found.start.dispersion * information)
        told, less = (float(part / information * found.start.root[-1, -1]) / errors[-1] for part in (sd, by_moments))
    assert less < 0.85
    assert 0.93 < told < 1.15
    assert abs(known[-1]) < 4.0 * errors[-1]


def test_what_weights_may_do_to_a_bent_log_mean_widens_by_the_slope_and_never_at_slope_zero():
    with jax.enable_x64(True):
        found = about_known(1.0)
        far = dataclasses.replace(found, start=dataclasses.replace(found.start, reach=jnp.asarray(2.0)))
        sds = {one: [float(one_found.pivot(jnp.asarray(one))[1]) for one_found in (found, far)] for one in (0.0, 0.3)}
    assert sds[0.0][0] == pytest.approx((100.0 * float(found.start.dispersion)) ** 0.5, rel=1e-6)
    assert sds[0.3][0] > 1.03 * sds[0.3][1], "less where weights reach farther"


@pytest.mark.parametrize(
    ("x", "y", "z", "told"),
    [
        ((Column(CATEGORICAL, 3, "site"),), (VISITS,), (), "site has 3 levels without an order: declare the two"),
        ((Column(), Column()), (VISITS,), (), "there are 2: ask about one at a time"),
        ((Column(),), (Column(BINARY, 2, "ill"),), (), "ill has levels: change the schema"),
        ((Column(),), (Column(CATEGORICAL, 4, "cause"),), (), "cause has levels: change the schema"),
        ((Column(),), (Column(name="weight"),), (), "the range of weight begins elsewhere"),
        ((Column(),), (Column(ORDINAL, 4, "grade"),), (), "the range of grade begins elsewhere"),
        ((Column(),), (Column(name="cost", logarithmic=True),), (), "cost is read by its logarithm"),
        ((Column(),), (VISITS, VISITS), (), "there are more columns"),
        ((Column(),), (VISITS,), (Column(),) * 11, "up to 10 columns of Z fixed"),
    ],
)
def test_other_columns_are_refused_in_one_sentence_before_anything_is_charged(tmp_path, x, y, z, told):
    assert told in poisson_regression.refusal(Domain(x, y, z))
    check_refused(
        jaxdp.PoissonRegression(epsilon=1.0), columns_without_records(x, y, z), tmp_path, "poisson-regression"
    )


def test_too_few_records_are_refused_before_the_charge(tmp_path):
    told = r"with 200 records at this epsilon the noise hides .* times as many records"
    check_refused(
        jaxdp.PoissonRegression(epsilon=1.0), regression_examples.counts(jax.random.key(0), 200), tmp_path, told
    )


@pytest.mark.parametrize(
    ("z", "told"),
    [
        ((), r"hides how Y follows X; give about \d+ times as many records, or as large an epsilon\.$"),
        ((Column(),), r"hides how Y follows X given 1 column; .* or hold fewer columns fixed\.$"),
        ((Column(CATEGORICAL, 5, "site"), Column()), r"given 2 columns; .* or hold fewer columns fixed\.$"),
    ],
)
def test_a_refusal_of_few_records_counts_the_columns_held_fixed(z, told):
    """Neither X, nor the constant, nor the indicators of levels are among them, and without Z none can be left out."""
    held = np.zeros((50, len(z))) if z else None
    data = Data(np.zeros(50), np.zeros(50), held, Domain((Column(),), (VISITS,), z))
    with pytest.raises(ValueError, match=told):
        jaxdp.run(jaxdp.PoissonRegression(epsilon=0.1), jax.random.key(0), data)


def patients(n: int):
    rng = np.random.default_rng(4)
    age, sex = rng.uniform(20.0, 80.0, n), rng.integers(0, 2, n)
    dose = np.clip(0.05 * age + rng.normal(size=n), 0.0, 10.0)
    visits = np.minimum(rng.poisson(np.exp(0.3 * dose - 0.01 * age + 0.4 * sex - 0.5)), 12)
    return {"age": age, "sex": sex, "dose": dose, "visits": visits}


PUBLIC = {"bounds": {"age": (20, 80), "dose": (0, 10), "visits": (0, 12)}, "levels": {"sex": [0, 1]}}


@pytest.mark.parametrize(("x", "given", "true"), [("dose", ["age", "sex"], 0.3), ("sex", ["age", "dose"], 0.4)])
@pytest.mark.parametrize("named", ["poisson-regression", "poisson"])
def test_a_query_gives_the_log_rate_ratio_in_the_units_of_x(x, given, true, named):
    answer = jaxdp.test(
        patients(20_000), x=x, y="visits", given=given, epsilon=2.0, method=named, **PUBLIC, key=jax.random.key(2)
    )
    low, high = answer.interval
    assert answer.content["method"] == "poisson-regression"
    assert low < true < high
    assert high - low < 0.5
    told = " ".join("\n".join(answer.sentences()).split())
    assert "log rate ratio of visits clipped to [0, 12]" in told
    assert f"rate ratio {np.exp(low):.3g} to {np.exp(high):.3g}" in told


def test_counts_declared_by_their_levels_are_as_good():
    public = {"bounds": {k: v for k, v in PUBLIC["bounds"].items() if k != "visits"}, "levels": PUBLIC["levels"]}
    schema = jaxdp.Schema.from_dict(
        {
            "columns": {
                **{name: {"kind": "continuous", "bounds": list(ends)} for name, ends in public["bounds"].items()},
                "sex": {"kind": "binary", "levels": [0, 1]},
                "visits": {"kind": "ordinal", "levels": list(range(13))},
            }
        }
    )
    answers = [
        jaxdp.test(
            patients(20_000), x="dose", y="visits", epsilon=2.0, method="poisson", key=jax.random.key(2), **how
        ).interval
        for how in ({"schema": schema}, PUBLIC)
    ]
    assert answers[0] == pytest.approx(answers[1], rel=1e-6)


def test_in_natural_units_the_slope_does_not_depend_on_those_of_y():
    data = regression_examples.counts(jax.random.key(0), 20_000)
    raw = 0.5 * (np.asarray(data.y) + 1.0) * regression_examples.MAX_COUNT
    found = [
        jaxdp.run(jaxdp.PoissonRegression(epsilon=4.0, most=most), jax.random.key(1), Data(data.x, y, data.z)).effect
        for most, y in ((regression_examples.MAX_COUNT, raw), (1.0, raw / regression_examples.MAX_COUNT))
    ]
    assert float(found[0]) == pytest.approx(float(found[1]), rel=1e-6)


def test_rows_without_any_count_are_answered_without_an_interval():
    table = {**patients(20_000), "visits": np.zeros(20_000)}
    answer = jaxdp.test(
        table, x="dose", y="visits", given="age", epsilon=1.0, method="poisson", **PUBLIC, key=jax.random.key(2)
    )
    assert answer.p_value == 1.0
    assert answer.interval is None or np.isnan(answer.interval[0])
    assert regression_test.LITTLE in answer.content["effect_notes"]


def test_a_mean_that_grows_beyond_what_is_looked_for_has_no_interval():
    table = patients(40_000)
    table["visits"] = 12.0 * (table["dose"] > 5.5)
    answer = jaxdp.test(table, x="dose", y="visits", epsilon=4.0, method="poisson", **PUBLIC, key=jax.random.key(2))
    assert answer.interval is None or np.isnan(answer.interval[0])
    assert answer.content["effect_notes"]


@pytest.mark.parametrize(("counted", "uneven"), [(950.0, False), (1900.0, False), (2100.0, True)])
def test_where_more_records_count_than_there_are_there_is_no_interval(counted, uneven):
    with jax.enable_x64(True):
        start = jax.tree.map(jnp.asarray, regression_examples.poisson_start())
        information = jnp.array([0.0, 0.0, regression_examples.SHARE * counted]) / start.units[1]
        sums = Sums.of(start, jnp.zeros(3), information, (1e-6,) * 3, 2.0, 1000, squares=jnp.asarray(0.0))
        law = regression_test.Law(sums, Laplace(1.0))
        _, _, interval = law.effect()
    assert bool(sums.uneven) == uneven
    assert bool(np.isnan(interval[0])) == uneven


TESTS = {"laplace": jaxdp.PoissonRegression(epsilon=2.0), "gaussian": jaxdp.PoissonRegression(mechanism=Gaussian(0.05))}


answers = answers_of(TESTS, regression_examples.counts, 6000)


@pytest.mark.optimised
def test_intervals_leave_out_zero_exactly_where_the_p_value_is_below_a_twentieth_and_hold_the_slope():
    assert 0.2 < check_intervals(answers("laplace", 0.06, 200), 0.06 / 0.25, 0.7) < 0.98


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize("name", TESTS)
def test_level_given_z(name):
    check_level(answers, name, 400)


def few_beside_z(key, n: int):
    """(z, x, counts) of which one in twenty has X, with a Z 2.3 sds higher; given Z it says nothing of Y."""
    of_x, of_z, of_y = jax.random.split(key, 3)
    x = 1.0 * (jax.random.uniform(of_x, (n,)) < 0.05)
    z = 2.3 * (x - 0.05) + jax.random.normal(of_z, (n,))
    return z, x, regression_examples.counted(jax.random.uniform(of_y, (n,)), jnp.exp(0.5 * z - 0.3), 12)


def test_beside_a_rare_x_that_goes_with_z_no_slope_of_the_start_bends_the_score():
    """Four times what is allowed for, before."""
    with jax.enable_x64(True):
        z, x, counts = map(np.asarray, few_beside_z(jax.random.key(0), 400_000))
        values, y = np.column_stack([z / 6.0, 2.0 * x - 1.0]), counts / 12.0
        start = start_of(values, y).about_levels()
        found = sums_of(start, values, y)
        score, sd, _, information = found.pivot(0.0)
        sampling = found.dispersion(0.0) * information
        held = bool(start.rare) and bool(found.uneven)
    assert held, "there is no slope of X, and no interval"
    assert abs(float(score)) < 2.0 * float(sd**2 - sampling) ** 0.5 + 3.0 * float(sampling) ** 0.5


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize("name", ["poisson", "loss"])
def test_level_beside_a_rare_x_that_goes_with_z(name):
    """A quarter and more of true nulls were rejected."""
    loss = jaxdp.MEstimator(loss=lambda t, y: jnp.exp(t) - y * t, high=12.0, epsilon=1.0)
    test = {"poisson": jaxdp.PoissonRegression(epsilon=1.0), "loss": loss}[name]
    domain = Domain((Column(BINARY, 2, "drug"),), (VISITS,), (Column(name="age"),))

    @jax.jit
    def every(keys):
        def one(key):
            z, x, counts = few_beside_z(jax.random.fold_in(key, 1), 50_000)
            data = Data(2.0 * x - 1.0, counts / 6.0 - 1.0, jnp.clip(z / 6.0, -1.0, 1.0)[:, None], domain)
            return jaxdp.run(test, key, data).p_value

        return jax.lax.map(one, keys, batch_size=10)

    p = np.asarray(every(jax.random.split(jax.random.key(0), 60)))
    assert np.sum(p < 0.05) <= binom.isf(1e-4, 60, 0.05)


def amounts_beside_z(key, n: int, share: float):
    """(z, x on [-1, 1], counts): amounts that a share has, whose z is higher; x says nothing given z."""
    of_x, of_z, of_amount, of_y = jax.random.split(key, 4)
    has = jax.random.bernoulli(of_x, share, (n,))
    z = jax.random.normal(of_z, (n,)) + 2.3 * has
    x = jnp.where(has, jnp.minimum(0.25 * jax.random.exponential(of_amount, (n,)) - 1.0, 1.0), -1.0)
    return z, x, regression_examples.counted(jax.random.uniform(of_y, (n,)), jnp.exp(0.5 * z - 0.3), 12)


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize(("name", "share"), [("poisson", 0.05), ("poisson", 0.15), ("loss", 0.05)])
def test_level_beside_amounts_that_few_have_and_that_go_with_z(name, share):
    """Nearly all true nulls were rejected by counts: the scale of X was that of the noise in its centre."""
    loss = jaxdp.MEstimator(loss=lambda t, y: jnp.exp(t) - y * t, high=12.0, epsilon=1.0)
    test = {"poisson": jaxdp.PoissonRegression(epsilon=1.0), "loss": loss}[name]
    domain = Domain((Column(name="dose", from_zero=True),), (VISITS,), (Column(name="age"),))

    @jax.jit
    def every(keys):
        def one(key):
            z, x, counts = amounts_beside_z(jax.random.fold_in(key, 1), 50_000, share)
            data = Data(x, counts / 6.0 - 1.0, jnp.clip(z / 6.0, -1.0, 1.0)[:, None], domain)
            found = jaxdp.run(test, key, data)
            return found.p_value, found.interval[0]

        return jax.lax.map(one, keys, batch_size=10)

    p, low = map(np.asarray, every(jax.random.split(jax.random.key(0), 60)))
    assert np.sum(p < 0.05) <= binom.isf(1e-4, 60, 0.05)
    assert np.isnan(low).all(), "an interval would be that of amounts clipped near 0"


@pytest.mark.parametrize(
    ("mean", "square", "backwards", "piled"),
    [
        (0.0, 0.18, 1.0, False),
        (-0.3, 0.2, 1.0, False),
        (0.3, 0.2, 1.0, True),
        (0.4, 0.2, -1.0, True),
        (0, 0.1, 1, True),
    ],
)
def test_numbers_are_piled_up_where_their_clipped_mean_and_square_are_those_of_no_column_with_two_tails(
    mean, square, backwards, piled
):
    values, y = counts(0, 400, [0.2, 0.3])
    start = start_of(values / 4.0, y)
    assert bool(start.about_numbers(mean, square, backwards, far=True).piled) == piled
    near = start.about_numbers(mean, square, backwards, far=False)
    assert not near.piled, "bounds that are near leave nothing far out"
    assert near.slopes[-1] == start.slopes[-1]


def test_more_rounds_cost_no_more_than_one():
    data = regression_examples.counts(jax.random.key(0), 300_000)
    found = jaxdp.run(jaxdp.PoissonRegression(epsilon=1.0), jax.random.key(1), data)
    assert len(found.release.earlier) == 5, "centres, scales, moments and two rounds"
    assert float(found.cost.epsilon) == pytest.approx(1.0, rel=1e-6)


def test_margins_are_about_the_log_rate_ratio():
    check_margins(jaxdp.PoissonRegression(epsilon=4.0), regression_examples.counts(jax.random.key(0), 20_000, 0.1))


def test_a_simulation_takes_as_many_rounds_as_a_release():
    assert simulated_stages(jaxdp.PoissonRegression(epsilon=1.0), regression_examples.counts, 300_000) == 5


@pytest.mark.optimised
@pytest.mark.full
def test_a_skewed_column_of_z_does_not_hide_a_slope_from_many_records():
    """Steps of rounds overshot beside it, and weights reached too far: nothing was found, but in fewer records."""
    rng, n = np.random.default_rng(8), 50_000
    z = np.minimum(rng.lognormal(0.0, 1.0, n), 20.0)
    x = np.clip(0.5 * (np.log(z) + np.sqrt(3.0) * rng.normal(size=n)), -4.0, 4.0)
    y = np.minimum(rng.poisson(np.exp(0.05 + 0.1 * z + 0.3 * x)), 20)
    how = {"bounds": {"z": (0, 20), "x": (-4, 4), "y": (0, 20)}, "method": "poisson-regression", "epsilon": 4.0}
    table = {"z": z, "x": x, "y": 1.0 * y}
    for seed in range(2):
        found = jaxdp.test(table, x="x", y="y", given="z", key=jax.random.key(seed), **how).to_dict()
        assert found["p_value"] < 0.001
        assert found["interval"][0] < 0.3 < found["interval"][1]


def skewed(key, n, slope):
    """X has a lognormal law and says nothing of Y, whose mean is a two hundredth of its bound."""
    keys = jax.random.split(key, 3)
    z = jnp.clip(jax.random.normal(keys[0], (n,)), -3.0, 3.0)
    x = jnp.clip(jnp.exp(0.8 * jax.random.normal(keys[1], (n,))), 0.0, 6.0)
    y = jax.random.poisson(keys[2], 0.2 * jnp.exp(0.4 * z + slope * x))
    return Data(x / 3.0 - 1.0, jnp.minimum(y, 40.0), z / 3.0)


@pytest.mark.optimised
def test_a_start_that_noise_has_chosen_rejects_no_more_true_nulls_than_the_level_says():
    """Beside a skewed X a start with a slope of noise had .027 of its p-values below .001, down to 1e-8."""
    p, _, _ = answers_of({"": jaxdp.PoissonRegression(epsilon=4.0, most=40.0)}, skewed, 5000)("", 0.0, 400)
    assert np.sum(p < 0.001) <= binom.isf(1e-3, 400, 0.001)
    assert np.sum(p < 0.01) <= binom.isf(1e-3, 400, 0.01)
