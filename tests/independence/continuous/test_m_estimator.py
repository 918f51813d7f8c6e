"""MEstimator: known families as losses, the range of scores whatever the loss, its model, intervals, refusals."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm
from replicated_slopes import answers_of, check_intervals, check_level, check_units, farthest, near_start, of_grid

import jaxdp
from jaxdp.cli.main import main
from jaxdp.data.dataset import BINARY, CATEGORICAL, ORDINAL, Column, Data, Domain
from jaxdp.independence.continuous import m_estimator, regression_examples
from jaxdp.independence.continuous.regression_examples import exponential
from jaxdp.mechanisms import Gaussian
from jaxdp.statistics.loss_family import EDGE, Loss
from jaxdp.statistics.regression_families import LOGISTIC, POISSON
from jaxdp.statistics.regression_scores import Start, Sums

ATTACKED = 0.9  # a unit that were this small would be seen


def logit(t, y):
    return jax.nn.softplus(t) - y * t


def poisson(t, y):
    return jnp.exp(t) - y * t


def probit(t, y):
    return -y * norm.logcdf(t) - (1.0 - y) * norm.logcdf(-t)


def negative_binomial(t, y):
    return (y + 2.0) * jax.nn.softplus(t - jnp.log(2.0)) - y * t


def huber(t, y):
    return jnp.sqrt(1.0 + (t - y) ** 2)


def margin(t, y):
    return jnp.exp(-t * (2.0 * y - 1.0))


def falling(t, y):
    return jax.nn.softplus(-t) + y * t


LOSSES = {
    "logit": (logit, 0.0, 1.0),
    "poisson": (poisson, 0.0, 30.0),
    "exponential": (exponential, 0.0, 30.0),
    "probit": (probit, 0.0, 1.0),
    "negative binomial": (negative_binomial, 0.0, 30.0),
}
_units = jax.jit(lambda start: start.units)
_of, _about = jax.jit(Start.of), jax.jit(Start.about, static_argnums=(2, 3))


def start_of(values, share, family, euclidean: bool = False) -> Start:
    """About moments without noise; share: place of y in its range."""
    every = np.column_stack([np.ones(len(values)), values, 2.0 * share - 1.0])
    return _about(jnp.asarray(every.T @ every / len(values)), 1e-6, euclidean, family)


_pivot, _slope = jax.jit(Sums.pivot), jax.jit(lambda found: found.slope)


def sums_of(start: Start, values, share) -> Sums:
    """Without noise."""
    p = len(start.slopes)
    every = np.asarray(_of(start, jnp.asarray(values), jnp.asarray(share))).sum(0)
    squares = jnp.asarray(every[2 * p]) if start.family.squares else None
    parts = jnp.asarray(every[:p]), jnp.asarray(every[p : 2 * p])
    return Sums.of(start, *parts, (1e-6,) * 3, 2.0, len(values), squares=squares)


def columns(seed: int, n: int, slopes):
    """Correlated columns (n, d), X the last, and the linear predictor."""
    rng = np.random.default_rng(seed)
    values = 0.8 * rng.normal(size=(n, len(slopes))) + 0.6 * rng.normal(size=(n, 1))
    return rng, values, values @ np.array(slopes)


@pytest.mark.parametrize(
    ("name", "known", "euclidean"),
    [pytest.param("logit", LOGISTIC, True, marks=pytest.mark.full), ("poisson", POISSON, False)],
)
def test_losses_of_known_families_say_what_these_say(name, known, euclidean):
    loss, low, high = LOSSES[name]
    rng, values, t = columns(2, 20_000, (0.2, -0.2, 0.3))
    drawn = rng.poisson(np.exp(t)) if known is POISSON else 1.0 * (rng.uniform(size=len(t)) < 1.0 / (1.0 + np.exp(-t)))
    share = np.minimum(drawn, high) / high
    with jax.enable_x64(True):
        family, told = Loss.of(loss, low, high), []
        for of, unit in ((known, 1.0), (family, family.scale)):
            found = sums_of(start_of(values, share, of, euclidean), values, share)
            slope = _slope(found)
            *_, information = _pivot(found, slope)
            sampling = jnp.sqrt(found.dispersion(jnp.asarray(0.0)) / information)
            size = unit * float(found.start.root[-1, -1])
            told.append((float(slope) * size, float(sampling) * size, float(found.start.slopes[-1]) * size))
    assert family.linear
    assert family.bounded == (known is LOGISTIC)
    (slope, error, begun), (slope_here, error_here, begun_here) = told
    assert begun_here == pytest.approx(begun, rel=1e-3), "the same start"
    assert abs(slope_here - slope) < 0.1 * error
    assert error_here == pytest.approx(error, rel=0.02)


def about(family, euclidean: bool, count: int, t: float, reach: float) -> Start:
    slopes = np.append(t, np.full(count, 1e-4))
    return near_start(slopes, euclidean, shift=jnp.zeros(count), reach=jnp.asarray(reach), family=family)


@pytest.mark.parametrize(
    ("name", "count", "euclidean", "reach"),
    [("probit", 1, False, 1.0), ("exponential", 2, False, 1.5), ("negative binomial", 2, True, 1.0)],
)
def test_no_two_records_differ_by_more_than_the_units_and_some_by_nearly_as_much(name, count, euclidean, reach):
    with jax.enable_x64(True):
        family = Loss.of(*LOSSES[name])
        start = about(family, euclidean, count, 0.0 if family.bounded else -1.0, reach)
        found = of_grid(start, 801, 41, _of)
        at_cap = float(family.scores(start.slopes[0])[2] / family.largest(start))
    p, leasts = count + 1, (ATTACKED, ATTACKED * min(at_cap, 1.0), ATTACKED)
    check_units(np.split(found, (p, 2 * p), axis=1), leasts, euclidean, count)


def wild(t, y):
    """No convex loss, and no number at some t."""
    return jnp.cos(5.0 * t) * jnp.exp(0.3 * y * t) + jnp.log(t + 3.0) * y**3


@pytest.mark.parametrize(("name", "euclidean"), [("wild", False), ("poisson", True)])
def test_scores_stay_within_the_units_whatever_the_loss_and_the_start_are(name, euclidean):
    rng = np.random.default_rng(5)
    with jax.enable_x64(True):
        family = Loss(wild, 0.0, 1.0) if name == "wild" else Loss.of(*LOSSES[name])
        for _ in range(6):
            start = about(family, euclidean, 3, 0.0, rng.uniform(1.0, 2.0))
            slopes = np.append(rng.uniform(-6.0, 6.0), rng.normal(size=3) * rng.uniform(0.0, 2.0))
            start = dataclasses.replace(start, slopes=jnp.asarray(slopes), shift=jnp.asarray(rng.normal(size=3)))
            near = rng.uniform(-1.0, 1.0, (2000, 3)) * rng.uniform(0.02, 1.0, (2000, 1))
            found = np.asarray(_of(start, jnp.asarray(near), jnp.asarray(rng.choice([0.0, 0.5, 1.0], 2000))))
            if np.isnan(np.asarray(jnp.stack(_units(start)))).any():  # the public start itself has no score
                continue
            for part in np.split(found, (4, 8), axis=1):
                assert farthest(part, euclidean) <= 1.0 + 1e-9


def test_of_convex_losses_no_score_is_cut_so_that_it_has_no_mean_at_the_true_slopes():
    with jax.enable_x64(True):
        start = jax.tree.map(jnp.asarray, regression_examples.m_estimator_start())
        start = dataclasses.replace(start, slopes=start.slopes.at[1:].set(jnp.array([0.7, -0.9])))
        near = jnp.asarray(np.random.default_rng(1).uniform(-1.0, 1.0, (500, 2)))
        none, half, whole = (np.asarray(_of(start, near, jnp.full(500, y)))[:, :6] for y in (0.0, 0.5, 1.0))
    assert 0.5 * (none + whole) == pytest.approx(half, abs=1e-12)
    assert np.array_equal(none[:, 3:], whole[:, 3:]), "the information does not see Y"


@pytest.mark.parametrize("name", ["exponential", pytest.param("probit", marks=pytest.mark.full)])
def test_a_start_from_moments_of_normal_columns_is_the_true_model(name):
    loss, low, high = LOSSES[name]
    rng, values, t = columns(1, 100_000, (0.3, -0.4))
    share = 1.0 * (rng.normal(size=len(t)) < t) if name == "probit" else rng.exponential(np.exp(t - 1.0)) / high
    with jax.enable_x64(True):
        family = Loss.of(loss, low, high)
        start = start_of(values, share, family)
        of_columns = family.scale * np.asarray(start.slopes[1:] @ start.root)
        found = sums_of(start, values, share)
        residual = np.asarray(found.scores / jnp.sqrt(found.squares))
    assert of_columns == pytest.approx([0.3, -0.4], abs=0.02)
    assert np.abs(residual).max() < 8.0, "the scores have no mean about it"


def test_the_expected_scores_are_the_integral_of_the_information():
    family = Loss.of(*LOSSES["exponential"])
    with jax.enable_x64(True):
        start = dataclasses.replace(about(family, False, 2, 0.3, 1.0), shift=jnp.array([0.2, -0.1]))
        to = jnp.array([0.5, 0.2, -0.3])
        value, products = jax.jit(family.away)(start, family.model(start), to)
        by_steps = jax.jit(jax.jacfwd(lambda slopes: family.away(start, family.model(start), slopes)[0]))(to)
        straight = products @ (to - start.slopes)
    # of normal columns: the mean of z z' c, whose derivatives along the way are symmetric
    assert np.asarray(by_steps) == pytest.approx(np.asarray(products), abs=5e-3)
    assert np.asarray(value) == pytest.approx(np.asarray(straight), rel=0.2, abs=0.02)


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (3.0, "must be a function loss"),
        (None, "must be a function loss"),
        (lambda t: t, "raised TypeError"),
        (lambda t, y: float(t), "written with jax.numpy"),
        (lambda t, y: jnp.stack([t, y]), "returns float64 of shape"),
        (lambda t, y: (t, y), "one real number"),
        (lambda t, y: -((t - y) ** 2), "no least value"),
        (lambda t, y: (jax.nn.sigmoid(t) - y) ** 2, "not convex"),
        (lambda t, y: t**2, "not convex"),
        (lambda t, y: y * t - jnp.log(t), "not"),
        (lambda t, y: t * jnp.nan, "no finite gradient"),
    ],
)
def test_what_is_no_loss_is_refused_in_one_sentence_when_the_test_is_made(loss, told):
    with pytest.raises(ValueError, match=told) as refused:
        jaxdp.MEstimator(loss=loss, epsilon=1.0)
    assert str(refused.value).count(". ") == 0


def amounts(n: int):
    rng = np.random.default_rng(4)
    age, sex = rng.uniform(20.0, 80.0, n), rng.integers(0, 2, n)
    dose = np.clip(0.05 * age + rng.normal(size=n), 0.0, 10.0)
    cost = rng.gamma(2.0, 0.5, n) * np.exp(0.3 * dose - 0.01 * age + 0.4 * sex + 1.5)
    return {"age": age, "sex": sex, "dose": dose, "cost": np.minimum(cost, 100.0)}


PUBLIC = {"bounds": {"age": (20, 80), "dose": (0, 10), "cost": (0, 100)}, "levels": {"sex": [0, 1]}}
ASKED = {"x": "dose", "given": ["age", "sex"], "epsilon": 4.0, "method": "m-estimator", **PUBLIC}


def test_a_query_gives_the_slope_in_the_units_of_loss_and_schema():
    answer = jaxdp.test(amounts(20_000), y="cost", fields={"loss": exponential}, **ASKED, key=jax.random.key(2))
    low, high = answer.interval
    assert answer.content["method"] == "m-estimator"
    assert low < 0.3 < high
    assert high - low < 0.4
    told = " ".join("\n".join(answer.sentences()).split())
    assert "of the loss exponential of cost between 0 and 100 per unit of dose clipped to [0, 10]" in told
    assert json.loads(json.dumps(answer.to_dict()))["interval"] == pytest.approx([low, high])


@pytest.mark.parametrize(("loss", "y", "told"), [(huber, "cost", "is not linear in y"), (logit, "cost", "no least")])
def test_losses_that_do_not_suit_y_are_refused_before_the_charge(tmp_path, loss, y, told):
    ledger = jaxdp.Ledger.create(tmp_path / "ledger.json", epsilon=9.0)
    with pytest.raises(ValueError, match=told):
        jaxdp.test(amounts(3000), y=y, fields={"loss": loss}, ledger=ledger, **ASKED)
    assert float(ledger.spent.epsilon) == 0.0


def test_of_two_levels_any_convex_loss_is_one_of_a_share():
    shapes = Data(np.zeros(60_000), np.zeros(60_000), None, Domain((Column(),), (Column(BINARY, 2),)))
    for loss in (margin, huber):
        test = jaxdp.MEstimator(loss=loss, epsilon=1.0)
        assert not test.family.linear
        assert test.specialize(shapes).first is not None


@pytest.mark.parametrize(
    ("x", "y", "z", "told"),
    [
        ((Column(CATEGORICAL, 3, "site"),), (Column(),), (), "site has 3 levels without an order: declare the two"),
        ((Column(),), (Column(CATEGORICAL, 4, "cause"),), (), "cause has levels without an order"),
        ((Column(),), (Column(name="cost", logarithmic=True),), (), "cost is read by its logarithm"),
        ((Column(),), (Column(), Column()), (), "there are more columns"),
        ((Column(),), (Column(),), (Column(),) * 11, "up to 10 columns of Z fixed"),
    ],
)
def test_other_columns_are_refused_in_one_sentence(x, y, z, told):
    assert told in m_estimator.refusal(Domain(x, y, z))


def test_y_is_read_in_the_numbers_of_the_schema():
    rules = jaxdp.Schema.from_dict(
        {
            "columns": {
                "amount": {"kind": "continuous", "bounds": [-2, 30]},
                "grade": {"kind": "ordinal", "levels": [1, 2, 3, 4]},
                "class": {"kind": "ordinal", "levels": ["low", "middle", "high"]},
                "ill": {"kind": "binary", "levels": [1, 2]},
            }
        }
    ).rule
    ends = {name: tuple(m_estimator.read_by_loss((), (rules(name),)).values()) for name in ("amount", "grade")}
    assert ends == {"amount": (-2.0, 30.0), "grade": (1.0, 4.0)}
    assert m_estimator.read_by_loss((), (rules("class"),)) == {"low": 0.0, "high": 2.0}
    assert m_estimator.read_by_loss((), (rules("ill"),)) == {"low": 0.0, "high": 1.0}
    assert not m_estimator.refusal(Domain((Column(),), (Column(ORDINAL, 4),)))


def test_a_command_says_that_it_takes_no_function(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("a,b\n" + "0.1,0.2\n" * 30)
    rule = {"kind": "continuous", "bounds": [0, 1]}
    (tmp_path / "s.json").write_text(json.dumps({"columns": {"a": rule, "b": rule}}))
    asked = ["test", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.json"), "--x", "a", "--y", "b"]
    assert main([*asked, "--epsilon", "1", "--method", "m-estimator", "--out", str(tmp_path / "out")]) == 2
    assert "a function of Python, which no command takes" in " ".join(capsys.readouterr().err.split())


def test_a_mean_that_falls_in_t_is_modelled_with_the_sign_of_t():
    rising, down = Loss.of(logit, 0.0, 1.0), Loss.of(falling, 0.0, 1.0)
    assert (rising.falls, down.falls) == (False, True)
    shares = jnp.array([0.0, 0.25, 1.0])
    test = jaxdp.MEstimator(loss=falling, epsilon=1.0)
    assert np.asarray(test.response(shares)) == pytest.approx([1.0, 0.75, 0.0])
    points = jnp.array([-EDGE, 0.0, EDGE])
    assert np.asarray(down.mean(points)[0]) == pytest.approx(np.asarray(rising.mean(points)[0]), abs=1e-5)


TESTS = {
    "laplace": jaxdp.MEstimator(**regression_examples.LOSS, epsilon=2.0),
    "gaussian": jaxdp.MEstimator(**regression_examples.LOSS, mechanism=Gaussian(0.1)),
}


answers = answers_of(TESTS, regression_examples.amounts, 6000)


@pytest.mark.full
@pytest.mark.optimised
def test_intervals_leave_out_zero_exactly_where_the_p_value_is_below_a_twentieth_and_hold_the_slope():
    assert check_intervals(answers("laplace", 0.1, 100), 0.1 / 0.25, 0.5) > 0.2


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize("name", TESTS)
def test_level_given_z(name):
    check_level(answers, name, 300)


def test_a_release_inside_a_compiled_program_is_refused():
    test, data = jaxdp.MEstimator(**regression_examples.LOSS, epsilon=4.0), regression_examples.amounts
    with pytest.raises(RuntimeError):
        jax.jit(lambda key: jaxdp.run(test, jaxdp.fresh_key(), data(key, 100)).p_value)(jax.random.key(1))


def test_falling_levels_are_numbered_in_their_order():
    """Their numbers once went to the loss as ends of its range, low above high."""
    rng = np.random.default_rng(0)
    table = {"g": rng.uniform(-1, 1, 4000), "s": rng.integers(1, 6, 4000)}
    how = {"x": "g", "y": "s", "bounds": {"g": (-1, 1)}, "levels": {"s": [5, 4, 3, 2, 1]}, "epsilon": 4.0}
    fields = {"loss": lambda t, y: 0.5 * (t - y) ** 2}
    answer = jaxdp.test(table, **how, method="m-estimator", fields=fields, key=jax.random.key(0))
    assert answer.test.low == 0.0
    assert answer.test.high == 4.0
    assert "its levels numbered from 0" in answer.content["effect_is"]
