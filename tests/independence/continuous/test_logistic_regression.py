"""LogisticRegression: the range of its scores, the normal model behind its fit, intervals, level, refusals."""

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
    near_start,
    of_grid,
    simulated_stages,
)
from scipy.stats import binom

import jaxdp
from jaxdp.ask.independence import Query
from jaxdp.data.dataset import BINARY, CATEGORICAL, Column, Data, Domain
from jaxdp.independence.continuous import logistic_regression, regression_examples, regression_test
from jaxdp.mechanisms import Gaussian, Laplace
from jaxdp.statistics import regression_families, regression_scores
from jaxdp.statistics.regression_scores import Start, Sums

YES = Column(BINARY, 2, "ill")


def columns(seed: int, n: int, count: int):
    """Correlated columns, one of them skewed, X the last; n (n, count)."""
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(n, count)) + 0.7 * rng.normal(size=(n, 1))
    found[:, 0] = np.exp(0.5 * found[:, 0])
    return found


def start_of(values, y, euclidean: bool = False) -> Start:
    """About moments without noise."""
    all_of_it = np.column_stack([np.ones(len(values)), values, 2.0 * y - 1.0])
    return Start.about(jnp.asarray(all_of_it.T @ all_of_it / len(values)), 1e-6, euclidean)


def likeliest(values, y):
    """(slopes with the constant first, standard errors) by maximum likelihood."""
    design, slopes = np.column_stack([np.ones(len(values)), values]), np.zeros(values.shape[1] + 1)
    for _ in range(25):
        chance = 1.0 / (1.0 + np.exp(-design @ slopes))
        information = (design * (chance * (1.0 - chance))[:, None]).T @ design
        slopes += np.linalg.solve(information, design.T @ (y - chance))
    return slopes, np.sqrt(np.diag(np.linalg.inv(information)))


@pytest.mark.parametrize("euclidean", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4, 9])
def test_no_two_records_differ_by_more_than_the_units_and_some_by_nearly_as_much(euclidean, count):
    with jax.enable_x64(True):
        found = of_grid(near_start(np.append(0.01, np.full(count, 0.005)), euclidean), 201, 81)
    check_units(np.split(found, 2, axis=1), (0.9, 0.8), euclidean, count)


def test_the_normal_model_is_that_of_many_normal_records():
    rng = np.random.default_rng(3)
    slopes = np.array([-0.8, 0.9, -0.5])
    z = np.column_stack([np.ones(2_000_000), rng.normal(size=(2_000_000, 2))])
    chance = 1.0 / (1.0 + np.exp(-z @ slopes))
    with jax.enable_x64(True):
        value, products = regression_families.normal_model(jnp.asarray(slopes))
        again = regression_families.normal_start(jnp.asarray(chance.mean()), jnp.asarray(z[:, 1:].T @ chance / len(z)))
    assert np.asarray(value) == pytest.approx(z.T @ chance / len(z), abs=2e-3)
    assert np.asarray(products) == pytest.approx((z * (chance * (1.0 - chance))[:, None]).T @ z / len(z), abs=2e-3)
    assert np.asarray(again) == pytest.approx(slopes, abs=5e-3)


@pytest.mark.parametrize("euclidean", [False, True])
def test_without_noise_the_slope_is_near_the_likeliest_one_and_nearer_after_a_round(euclidean):
    values = columns(1, 40_000, 4)
    rng = np.random.default_rng(2)
    eta = values @ np.array([0.4, -0.5, 0.3, 0.8]) - 1.0
    y = 1.0 * (rng.random(len(values)) < 1.0 / (1.0 + np.exp(-eta)))
    known, errors = likeliest(values, y)
    with jax.enable_x64(True):
        start, off = start_of(values, y, euclidean), []
        for _ in range(3):
            both = np.asarray(start.of(jnp.asarray(values), jnp.asarray(y))).sum(0)
            found = Sums.of(start, jnp.asarray(both[:5]), jnp.asarray(both[5:]), (1e-6, 1e-6), 2.0, len(values))
            off.append(abs(float(found.slope * start.root[-1, -1]) - known[-1]) / errors[-1])
            _, sd, _, information = found.pivot(found.slope)
            start = found.improved()
    assert off[0] < 1.5
    assert off[2] < 0.4
    alone, whole = (float(part / information * start.root[-1, -1]) / errors[-1] for part in (information**0.5, sd))
    assert 0.97 < alone < 1.25, "what the weights cost"
    assert alone < whole, "what is allowed for besides"


def sums_about(start: Start, scores, information, num_records: int = 1000) -> Sums:
    """With hardly any noise."""
    return Sums.of(start, jnp.asarray(scores), jnp.asarray(information), (1e-6, 1e-6), 2.0, num_records)


def test_a_round_moves_the_start_no_farther_than_it_may_and_not_at_all_without_information():
    with jax.enable_x64(True):
        start = jax.tree.map(jnp.asarray, regression_examples.logistic_start())
        far = sums_about(start, [5.0, 500.0, 300.0], [0.0, -20.0, 20.0], 200).improved()
        near = sums_about(start, [0.0, 0.1, 0.2], [0.0, 0.0, 20.0], 200).improved()
        hidden = sums_about(start, [5.0, 500.0, 300.0], [0.0, 0.0, 1e-9]).improved()
    assert np.linalg.norm(far.slopes - start.slopes) == pytest.approx(regression_scores.LONGEST)
    assert 0.0 < np.linalg.norm(near.slopes - start.slopes) < 0.1
    assert np.array_equal(hidden.slopes, start.slopes)


def test_only_before_the_last_round_may_weights_reach_farther_and_only_where_noise_is_little():
    with jax.enable_x64(True):
        start = jax.tree.map(jnp.asarray, regression_examples.logistic_start())

        def reach(noise: float, share: float):
            found = Sums.of(start, jnp.zeros(3), jnp.array([0.0, 0.0, 300.0]), (noise, noise), 2.0, 4000)
            return float(found.improved(share).reach)

        ends = [reach(0.01, 4.0), reach(0.01, 0.0), reach(20.0, 4.0)]
        some = [reach(noise, 4.0) for noise in (7.5, 7.0, 6.0)]
    widest = regression_families.Logistic.widest
    assert ends == [widest, 1.0, 1.0]
    assert 1.0 < some[0] < some[1] < some[2] < widest


@pytest.mark.parametrize("euclidean", [False, True])
@pytest.mark.parametrize("reach", [1.3, 1.6])
def test_weights_that_reach_farther_keep_the_units(euclidean, reach):
    with jax.enable_x64(True):
        found = of_grid(near_start(np.full(4, 0.005), euclidean, reach=jnp.asarray(reach)), 201, 81)
    check_units(np.split(found, 2, axis=1), (0.9, 0.8), euclidean, 7)


def test_the_others_have_no_more_information_than_the_records_that_there_are():
    """A column with two ends and no middle: twice as many count for X as there are records."""
    with jax.enable_x64(True):
        start = jax.tree.map(jnp.asarray, regression_examples.logistic_start())
        _, of_information = start.units
        about = [0.0, 0.0, 0.25 * 2000.0 / of_information]
        found = sums_about(start, [0.0, 0.0, 0.0], about)
        _, products = found._expected(start.slopes)
    assert float(products[-1, -1]) == pytest.approx(500.0)
    assert np.diag(np.asarray(products))[:2] == pytest.approx([250.0, 250.0], rel=1e-6)


def test_the_interval_counts_that_the_others_moved_by_a_modelled_information():
    with jax.enable_x64(True):
        start = jax.tree.map(jnp.asarray, regression_examples.logistic_start())
        pivots = [sums_about(start, [0.0, other, 0.0], [0.0, -4.0, 20.0], 200).pivot(0.0) for other in (0.0, 4.0)]
    at_start, moved = (float(sd / jnp.sqrt(information)) for _, sd, _, information in pivots)
    assert at_start == pytest.approx(1.0, abs=1e-6)
    assert moved > 1.2


def test_what_weights_may_do_to_bent_log_odds_widens_by_the_slope_and_never_at_slope_zero():
    with jax.enable_x64(True):
        start = jax.tree.map(jnp.asarray, regression_examples.logistic_start(slopes=(0.0, 0.0, 0.3)))
        near = sums_about(start, [0.0] * 3, [0.0, 0.0, 40.0], 200)
        far = dataclasses.replace(near, start=dataclasses.replace(start, reach=jnp.asarray(1.6)))
        variance = [[float(found.pivot(slope)[1]) ** 2 for found in (near, far)] for slope in (0.0, 0.3)]
        information = float(near.pivot(0.3)[3])
    assert variance[0][0] == pytest.approx(variance[0][1])
    assert variance[1][0] - information == pytest.approx((0.04 * 0.3 * information) ** 2, rel=1e-6)
    assert variance[1][1] - information == pytest.approx((0.04 * 0.3 * information) ** 2 / 1.6**4, rel=1e-6)


@pytest.mark.full
def test_behind_every_end_of_an_interval_slopes_are_rejected():
    """Of these sums one interval in four ended where the search did, with slopes behind that fit as well."""
    rng, count = np.random.default_rng(0), 60
    numbers = np.column_stack([rng.normal(size=(count, 3)) * 150.0, rng.normal(size=(count, 2)) * 60.0])
    numbers = np.column_stack([numbers, rng.uniform(150.0, 440.0, count), rng.uniform(5.0, 20.0, count)])

    def ends(numbers):
        start = jax.tree.map(jnp.asarray, regression_examples.logistic_start(slopes=(-0.5, 0.4, 0.2)))
        of_scores, of_information = start.units
        scores, information = numbers[:3] * start.weights, numbers[3:6] * start._row_weights
        scales = numbers[6] / of_scores, 0.5 * numbers[6] / of_information
        found = Sums.of(start, scores / of_scores, information / of_information, scales, 2.0, 2000)
        law = regression_test.Law(found, Laplace(1.0))
        low, high = law.effect()[2]
        return low, jax.vmap(law.p_value)(jnp.stack([low - 0.02, high + 0.02]))

    with jax.enable_x64(True):
        low, behind = map(np.asarray, jax.jit(jax.vmap(ends))(jnp.asarray(numbers)))
    given = ~np.isnan(low)
    assert np.sum(given) > 15
    assert np.all(behind[given] < 0.05)


@pytest.mark.parametrize(
    ("x", "y", "z", "told"),
    [
        ((Column(CATEGORICAL, 3, "site"),), (YES,), (), "site has 3 levels without an order: declare the two"),
        ((Column(), Column()), (YES,), (), "there are 2: ask about one at a time"),
        ((Column(),), (Column(CATEGORICAL, 3, "cause"),), (), "cause has 3: name two, the second of which is the yes"),
        ((Column(),), (Column(BINARY, 1, "ill"),), (), "ill has 1: name two"),
        ((Column(),), (Column(name="weight"),), (), "weight is continuous: name two"),
        ((Column(),), (YES,), (Column(),) * 11, "up to 10 columns of Z fixed"),
        ((Column(),), (YES,), (Column(CATEGORICAL, 12),), "there are 11: leave some out"),
    ],
)
def test_other_columns_are_refused_in_one_sentence_before_anything_is_charged(tmp_path, x, y, z, told):
    assert told in logistic_regression.refusal(Domain(x, y, z))
    check_refused(
        jaxdp.LogisticRegression(epsilon=1.0), columns_without_records(x, y, z), tmp_path, "logistic-regression"
    )


def test_too_few_records_are_refused_before_the_charge(tmp_path):
    told = r"with 200 records at this epsilon the noise hides .* times as many records"
    check_refused(
        jaxdp.LogisticRegression(epsilon=1.0),
        regression_examples.logistic_answers(jax.random.key(0), 200),
        tmp_path,
        told,
    )


def patients(n: int):
    rng = np.random.default_rng(4)
    age, sex = rng.uniform(20.0, 80.0, n), rng.integers(0, 2, n)
    dose = np.clip(0.05 * age + rng.normal(size=n), 0.0, 10.0)
    ill = rng.random(n) < 1.0 / (1.0 + np.exp(-(0.5 * dose - 0.02 * age + 0.7 * sex - 1.0)))
    return {"age": age, "sex": sex, "dose": dose, "ill": np.array(["no", "yes"])[1 * ill]}


PUBLIC = {"bounds": {"age": (20, 80), "dose": (0, 10)}, "levels": {"ill": ["no", "yes"], "sex": [0, 1]}}


@pytest.mark.parametrize(("x", "given", "true"), [("dose", ["age", "sex"], 0.5), ("sex", ["age", "dose"], 0.7)])
@pytest.mark.parametrize("named", ["logistic-regression", "logit"])
def test_a_query_gives_the_log_odds_ratio_in_the_units_of_x(x, given, true, named):
    answer = jaxdp.test(
        patients(20_000), x=x, y="ill", given=given, epsilon=2.0, method=named, **PUBLIC, key=jax.random.key(2)
    )
    low, high = answer.interval
    assert answer.content["method"] == "logistic-regression"
    assert low < true < high
    assert high - low < 0.6
    told = " ".join("\n".join(answer.sentences()).split())
    assert "log odds ratio of ill = yes" in told
    assert f"odds ratio {np.exp(low):.3g} to {np.exp(high):.3g}" in told


@pytest.mark.parametrize(("most", "told"), [(10, False), (40, True)])
def test_an_answer_says_where_bounds_leave_room_for_a_far_tail(most, told):
    """Doses lie about 2.5 with an sd of 1.3."""
    public = PUBLIC | {"bounds": {"age": (20, 80), "dose": (0, most)}}
    answer = jaxdp.test(
        patients(20_000),
        x="dose",
        y="ill",
        given=["age", "sex"],
        epsilon=2.0,
        method="logit",
        **public,
        key=jax.random.key(2),
    )
    assert answer.interval is not None
    assert (regression_test.TAIL in answer.content["effect_notes"]) == told
    assert ("standard deviations from its middle" in " ".join("\n".join(answer.sentences()).split())) == told


@pytest.mark.full
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_the_note_about_a_far_tail_advises_a_logarithm_only_where_there_is_none(scale):
    rng = np.random.default_rng(4)
    spread = rng.normal(size=20_000)
    dose = np.exp(spread) if scale == "log" else 0.5 + 0.3 * np.abs(spread)
    ill = rng.random(20_000) < 1.0 / (1.0 + np.exp(-spread))
    most = {"linear": [0.01, 20.0], "log": [1e-8, 1e8]}[scale]
    columns = {
        "dose": {"kind": "continuous", "bounds": most, "scale": scale},
        "ill": {"kind": "binary", "levels": [0, 1]},
    }
    answer = jaxdp.test(
        {"dose": dose, "ill": 1 * ill},
        x="dose",
        y="ill",
        epsilon=4.0,
        method="logit",
        schema={"columns": columns},
        key=jax.random.key(2),
    )
    note = answer.content["effect_notes"][regression_test.TAIL]
    assert "closer bounds" in note
    assert ("scale =" in note) == (scale == "linear")


def test_rows_in_which_everybody_says_no_are_answered_without_an_interval():
    table = {**patients(20_000), "ill": np.full(20_000, "no")}
    answer = jaxdp.test(
        table,
        x="dose",
        y="ill",
        given="age",
        epsilon=1.0,
        method="logistic-regression",
        **PUBLIC,
        key=jax.random.key(2),
    )
    assert answer.p_value == 1.0
    assert answer.interval is None or np.isnan(answer.interval[0])
    assert logistic_regression.LITTLE in answer.content["effect_notes"]
    assert answer.missed()["power"] == "Nothing could have been found, however strong; the answer says why."


def test_separation_has_no_interval_and_a_small_p_value():
    table = patients(20_000)
    table["ill"] = np.array(["no", "yes"])[1 * (table["dose"] > 3.0)]
    answer = jaxdp.test(
        table, x="dose", y="ill", epsilon=4.0, method="logistic-regression", **PUBLIC, key=jax.random.key(2)
    )
    assert answer.interval is None or np.isnan(answer.interval[0])
    assert answer.content["effect_notes"]


@pytest.mark.parametrize(("counted", "uneven"), [(950.0, False), (1900.0, False), (2100.0, True)])
def test_where_more_records_count_than_there_are_of_columns_as_modelled_there_is_no_interval(counted, uneven):
    """About slopes of 0 a column of sd 1 has an information of a quarter of its records, here of 1000."""
    with jax.enable_x64(True):
        start = jax.tree.map(jnp.asarray, regression_examples.logistic_start())
        of_scores, of_information = start.units
        sums = sums_about(start, [0.0, 0.0, 100.0 / of_scores], [0.0, 0.0, 0.25 * counted / of_information])
        law = regression_test.Law(sums, Laplace(1.0))
        null, _, interval = law.effect()
        sides, found = law.one_sided(0.1), sums.uneven
    assert float(null) < 1e-4
    assert bool(found) == uneven
    assert bool(np.isnan(interval[0])) == uneven
    assert (float(sides[0]) == float(sides[1]) == 1.0) == uneven


@pytest.mark.parametrize(("slope", "steep"), [(2.9, False), (3.0, False), (3.1, True)])
def test_where_rounds_move_the_start_beyond_its_steepest_there_is_no_interval(slope, steep):
    with jax.enable_x64(True):
        start = jax.tree.map(jnp.asarray, regression_examples.logistic_start(slopes=(0.0, 0.6 * slope, 0.8 * slope)))
        law = regression_test.Law(sums_about(start, [0.0, 0.0, 0.0], [0.0, 0.0, 40.0]), Laplace(1.0))
        _, _, interval = law.effect()
        sides = law.one_sided(0.1)
    assert bool(np.isnan(interval[0])) == steep
    assert (float(sides[0]) == float(sides[1]) == 1.0) == steep


TESTS = {
    "laplace": jaxdp.LogisticRegression(epsilon=1.0),
    "gaussian": jaxdp.LogisticRegression(mechanism=Gaussian(0.02)),
}


answers = answers_of(TESTS, regression_examples.logistic_answers, 4000)


@pytest.mark.optimised
def test_intervals_leave_out_zero_exactly_where_the_p_value_is_below_a_twentieth_and_hold_the_slope():
    power, _ = (
        check_intervals(answers("laplace", slope, count), slope / regression_examples.HALF, 0.7)
        for slope, count in ((0.12, 100), (0.25, 200))
    )
    assert 0.2 < power < 0.95


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize("name", TESTS)
def test_level_given_z(name):
    check_level(answers, name, 400)


def few_in_the_tail(key, n: int) -> Data:
    """One record in twenty says yes, most of them in the far tail of Z, with which X goes; X has no slope."""
    key_x, key_z, key_y = jax.random.split(key, 3)
    normal = jax.random.normal(key_z, (n,))
    x = jnp.clip(0.5 * normal + 0.75**0.5 * jax.random.normal(key_x, (n,)), -4.0, 4.0)
    z = jnp.clip(jnp.exp(normal), 0.0, 20.0)
    y = jax.random.uniform(key_y, (n,)) < jax.nn.sigmoid(0.3 * z - 3.8)
    return Data(x / 4.0, 1.0 * y, (z / 10.0 - 1.0)[:, None], regression_examples.ANSWERS_GIVEN_ONE)


@pytest.mark.full
@pytest.mark.optimised
def test_level_where_the_few_who_say_yes_are_in_the_far_tail_of_z():
    """It was .53 before the modelled rows of the information were counted."""

    @jax.jit
    def every(keys):
        def one(key):
            data = few_in_the_tail(jax.random.fold_in(key, 1), 10_000)
            return jaxdp.run(jaxdp.LogisticRegression(epsilon=1.0), key, data).p_value, jnp.mean(data.y)

        return jax.lax.map(one, keys, batch_size=20)

    p, rate = map(np.asarray, every(jax.random.split(jax.random.key(8), 100)))
    assert 0.04 < np.mean(rate) < 0.06
    assert np.sum(p < 0.05) <= binom.isf(1e-4, 100, 0.05)


def test_private_centres_are_chosen_where_public_numbers_say_that_they_are_more_than_noise():
    data = [regression_examples.logistic_answers(jax.random.key(0), n) for n in (500, 5000)]
    firsts = [
        type(jaxdp.LogisticRegression(epsilon=1.0, enforce_rule=False).specialize(one).first).__name__ for one in data
    ]
    assert firsts == ["MomentMatrix", "PrivateCentres"]


def test_more_rounds_cost_no_more_than_one():
    data = regression_examples.logistic_answers(jax.random.key(0), 300_000)
    found = jaxdp.run(jaxdp.LogisticRegression(epsilon=1.0), jax.random.key(1), data)
    assert len(found.release.earlier) == 5, "centres, scales, moments and two rounds"
    assert float(found.cost.epsilon) == pytest.approx(1.0, rel=1e-6)


def test_numbers_and_levels_of_the_answer_are_read_with_the_schema():
    schema = jaxdp.Schema.from_dict(
        {"columns": {"a": {"kind": "continuous", "bounds": [0, 1]}, "b": {"kind": "binary", "levels": ["n", "y"]}}}
    )
    with pytest.raises(ValueError, match="a is continuous: name two"):
        Query.of(schema, x="b", y="a", epsilon=1.0, method="logistic-regression")


def test_margins_are_about_the_log_odds_ratio():
    check_margins(
        jaxdp.LogisticRegression(epsilon=4.0), regression_examples.logistic_answers(jax.random.key(0), 20_000, 0.2)
    )


@pytest.mark.parametrize(("n", "stages"), [(1500, 3), (5000, 4), (300_000, 5)])
def test_a_simulation_takes_as_many_rounds_as_a_release(n, stages):
    """It traces the budget, which decides how many there are: with it unknown there were always two more."""
    assert simulated_stages(jaxdp.LogisticRegression(epsilon=1.0), regression_examples.logistic_answers, n) == stages


@pytest.mark.optimised
@pytest.mark.parametrize("kind", ["binary", "continuous"])
def test_a_rare_x_is_rejected_no_more_than_any_and_its_effect_is_found(kind):
    """Noise moved the start in early rounds, and six of ten true nulls were rejected."""
    yes = {"kind": "binary", "levels": [0, 1]}
    x_is = yes if kind == "binary" else {"kind": "continuous", "bounds": [0, 1]}
    schema = {"columns": {"x": x_is, "y": yes, "z": {"kind": "continuous", "bounds": [0, 1]}}}
    rng, n, found = np.random.default_rng(3), 20_000, {0.0: 0, -1.5: 0}
    for slope in found:
        for run in range(10):
            x, z = (rng.random(n) < 0.02).astype(int), rng.random(n)
            y = (rng.random(n) < 1.0 / (1.0 + np.exp(1.0 - 3.0 * z - slope * x))).astype(int)
            how = {"x": "x", "y": "y", "given": "z", "method": "logistic-regression", "schema": schema}
            answer = jaxdp.test({"x": x, "y": y, "z": z}, **how, epsilon=4.0, key=jax.random.key(run))
            assert answer.interval is None or np.isnan(answer.interval[0])
            assert "uneven columns" in answer.content["effect_notes"]
            found[slope] += answer.p_value < 0.05
    assert found[0.0] <= 2
    assert found[-1.5] >= 9
