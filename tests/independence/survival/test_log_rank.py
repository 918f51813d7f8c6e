"""LogRank: the identity behind its scores, their range over all cells, level under unequal censoring, refusals."""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp.ask.independence import Query
from jaxdp.cli.main import main
from jaxdp.data.dataset import BINARY, CATEGORICAL, Column, Data, Domain
from jaxdp.independence.survival import kaplan_meier, survival_examples
from jaxdp.independence.survival import log_rank as private
from jaxdp.statistics import log_rank
from jaxdp.statistics.log_rank import BINS, Curves
from jaxdp.statistics.survival_curves import DRAWS, survival_curves

BINARY_BOUND = 1e-4
SHAPE = (private.PAIR, *private.OF_TIME)
EVENT = Column(BINARY, 2, "died")
TWO = Column(BINARY, 2, "arm")


def drawn_table(seed: int = 0, records: int = 4000):
    """A table of two groups whose shares at risk change with the time."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, records)
    time, gone = rng.exponential(0.8, records), rng.exponential(np.where(group, 0.5, 2.0))
    seen = np.minimum(np.minimum(time, gone), 1.0)
    of_bin, event = log_rank.codes(2.0 * seen - 1.0, (time <= gone).astype(float))
    table = np.zeros(SHAPE)
    np.add.at(table, (group, of_bin.astype(int), event.astype(int)), 1.0)
    return table


def by_hand(table):
    """At risk by group, events by group, O - E of the textbook; a censored record counts half in its bin."""
    at_risk = np.cumsum(table.sum(2)[:, ::-1], axis=1)[:, ::-1][:, :BINS] - 0.5 * table[:, :BINS, 0]
    events = table[:, :BINS, 1]
    return at_risk, events, (events[1] - at_risk[1] / at_risk.sum(0) * events.sum(0)).sum()


def curves(seed: int = 1, blocks: int = 12, **replaced) -> Curves:
    rng = np.random.default_rng(seed)
    known = survival_examples.KNOWN
    fields = {
        "hazard": rng.uniform(0.0, 2.0 / BINS, (1, blocks)),
        "share": rng.uniform(0.2, 0.8, (1, 1, blocks)),
        **replaced,
    }
    return Curves(
        counted=np.ones((1, blocks)),
        events=np.full((1, blocks), 50.0),
        covariance=np.zeros((1, 1, blocks, 1, blocks)),
        weight=np.ones(1),
        mean=known.mean,
        variance=known.variance,
        crowded=known.crowded,
        ends=np.stack([fields["share"]] * 2, axis=1),
        sudden=np.zeros((1, blocks)),
        count_variance=known.count_variance,
        **fields,
    )


def test_scores_add_up_to_the_log_rank_numerator_and_a_product_of_errors():
    with jax.enable_x64(True):
        table, about = drawn_table(), curves()
        at_risk, events, numerator = by_hand(table)
        shares, hazards = np.asarray(about._shares)[0, 0], np.repeat(about.hazard[0], BINS // 12)
        total = at_risk.sum(0)
        product = total * (at_risk[1] / total - shares) * (events.sum(0) / total - hazards)
        found = float(jnp.sum(table * about.scores()[0, ..., 0]))
    assert found == pytest.approx(numerator + product.sum(), rel=1e-9)
    assert abs(product.sum()) > 1.0, "the errors are large enough to be seen"


def test_without_noise_the_released_sum_is_the_log_rank_numerator():
    with jax.enable_x64(True):
        table = drawn_table()
        about = Curves.of(log_rank.blocked(jnp.asarray(table)[None], 48), table.sum(), 1e-9)
        found = float(jnp.sum(table * about.scores()[0, ..., 0]))
    *_, numerator = by_hand(table)
    assert found == pytest.approx(numerator, abs=0.05 * np.sqrt(table.sum() / 8))


def test_scores_of_two_records_differ_by_the_range_at_most_and_reach_it():
    test = jaxdp.LogRank(epsilon=1.0, **survival_examples.ABOUT_KNOWN_CURVES)
    possible = np.ones(SHAPE, bool)
    possible[:, BINS, 1] = False  # no event at the end
    records = np.eye(possible.size)[possible.ravel()].reshape(-1, 1, *SHAPE)
    found = np.stack(jax.tree.leaves(jax.jit(lambda tables: jax.lax.map(test.finish, tables))(records)), axis=1)
    spread = np.ptp(found, axis=0)
    assert np.all(spread <= 1.0 + 1e-5)
    assert np.all(spread >= 0.99)


def test_a_record_moves_the_counts_by_two():
    query = jaxdp.LogRank(epsilon=1.0).specialize(survival_examples.times(jax.random.key(0), 50)).first
    before, after = (query.statistic(None, data) for data in survival_examples.worst_pairs()[0])
    assert float(jnp.sum(jnp.abs(before - after))) == float(query.sensitivity(4).bound) == 2.0


def test_a_time_at_the_upper_bound_is_no_event():
    of_bin, event = log_rank.codes(np.array([-1.0, 0.999, 1.0]), np.array([1.0, 1.0, 1.0]))
    assert of_bin.tolist() == [0, BINS - 1, BINS]
    assert event.tolist() == [1, 1, 0]


def test_time_and_event_come_in_either_order():
    data = survival_examples.times(jax.random.key(3), 400)
    turned = Data(data.x, data.y[:, ::-1], None, Domain(data.domain.x, data.domain.y[::-1]))
    found = [jaxdp.run(jaxdp.LogRank(epsilon=1.0), jax.random.key(5), one) for one in (data, turned)]
    assert float(found[0].p_value) == float(found[1].p_value)


@pytest.mark.parametrize(
    ("x", "y", "z", "told"),
    [
        ((Column(CATEGORICAL, 9, "site"),), (Column(), EVENT), (), "site has 9; name or merge levels"),
        ((Column(BINARY, 1, "arm"),), (Column(), EVENT), (), "arm has 1; name or merge levels"),
        ((Column(name="dose"),), (Column(), EVENT), (), "dose is continuous: cut it at public values"),
        ((TWO,), (Column(), Column(CATEGORICAL, 3, "cause")), (), "cause has 3 levels"),
        ((TWO,), (Column(),), (), "two columns as Y"),
        ((TWO,), (EVENT, EVENT), (), "two columns as Y"),
        ((TWO,), (Column(), EVENT), (Column(name="age"),), "cut age at public values into levels, or leave it out"),
        ((TWO,), (Column(), EVENT), (Column(CATEGORICAL, 17),), "at most 16 strata, and the levels of Z make 17"),
    ],
)
def test_other_columns_are_refused_in_one_sentence_before_anything_is_charged(tmp_path, x, y, z, told):
    wide = lambda part: (20,) if len(part) == 1 else (20, len(part))  # noqa: E731
    data = Data(np.zeros(wide(x)), np.zeros(wide(y)), np.zeros((20, 1)) if z else None, Domain(x, y, z))
    ledger = jaxdp.Ledger.create(tmp_path / "ledger.json", epsilon=5.0)
    refused = private.refusal(data.domain)
    assert told in refused
    assert not refused.endswith(".")
    with pytest.raises(ValueError, match="log-rank"):
        jaxdp.run(jaxdp.LogRank(epsilon=1.0), jaxdp.fresh_key(), data, ledger=ledger)
    assert float(ledger.spent.epsilon) == 0.0


def test_an_event_column_of_three_levels_is_refused_by_a_query():
    table = {"arm": ["a", "b"] * 10, "days": np.arange(20.0), "cause": ["no", "flu", "other", "no"] * 5}
    with pytest.raises(ValueError, match="cause has 3 levels: name two, the second of which is the event"):
        jaxdp.test(
            table,
            x="arm",
            y=["days", "cause"],
            epsilon=1.0,
            method="log-rank",
            bounds={"days": (0.0, 30.0)},
            levels={"arm": ["a", "b"], "cause": ["no", "flu", "other"]},
            key=jax.random.key(0),
        )


def trial(records: int, ratio: float, rate: float = 1.0):
    """A table of a trial: days to death in two arms, with censoring that differs."""
    rng = np.random.default_rng(4)
    arm = rng.integers(0, 2, records)
    death, gone = rng.exponential(1.0 / (rate * ratio**arm)), rng.exponential(np.where(arm, 1.5, 4.0))
    return {
        "arm": np.array(["control", "drug"])[arm],
        "days": np.round(365.0 * np.minimum(death, gone)),
        "died": np.array(["no", "yes"])[(death <= gone).astype(int)],
    }


def asked(table, epsilon: float, **more):
    public = {
        "bounds": {"days": (0.0, 730.0)},
        "levels": {"arm": ["control", "drug"], "died": ["no", "yes"]},
        "key": jax.random.key(2),
    }
    return jaxdp.test(table, x="arm", y=["days", "died"], epsilon=epsilon, method="log-rank", **public, **more)


def test_a_query_gives_the_log_hazard_ratio_and_says_of_what():
    answer = asked(trial(3000, 0.6), 2.0)
    low, high = answer.interval
    assert answer.p_value < 0.001
    assert low < np.log(0.6) < high < 0.0
    assert "log hazard ratio of died = yes, arm = drug against control" in " ".join(
        "\n".join(answer.sentences()).split()
    )


OUTCOME = {
    "arm": {"kind": "binary", "levels": ["control", "drug"]},
    "died": {"kind": "binary", "levels": ["no", "yes"]},
    "days": {"kind": "continuous", "bounds": [0, 730]},
    "survival": {"kind": "survival", "time": "days", "event": "died"},
}


@pytest.mark.parametrize("y", ["survival", ["days", "died"], ["died", "days"]])
def test_times_and_events_that_the_schema_declares_are_compared_by_log_rank(y):
    table, schema = trial(2000, 0.5), jaxdp.Schema.from_dict({"columns": OUTCOME})
    answer = jaxdp.test(table, x="arm", y=y, epsilon=2.0, schema=schema, key=jax.random.key(2))
    assert answer.content["method"] == "log-rank"
    assert answer.p_value < 0.01
    if y != ["died", "days"]:
        assert answer.p_value == pytest.approx(asked(table, 2.0).p_value, rel=1e-6)


def test_the_command_takes_a_declared_outcome_as_y_and_as_nothing_else(tmp_path, capsys):
    table, schema, data = trial(400, 0.5), tmp_path / "s.json", tmp_path / "t.csv"
    schema.write_text(json.dumps({"columns": OUTCOME}))
    lines = zip(*(table[name] for name in ("arm", "days", "died")), strict=True)
    data.write_text("arm,days,died\n" + "".join(",".join(map(str, line)) + "\n" for line in lines))
    asked_of = [
        "test",
        str(data),
        "--schema",
        str(schema),
        "--epsilon",
        "2",
        "--seed",
        "1",
        "--out",
        str(tmp_path / "o"),
    ]
    assert main([*asked_of, "--x", "arm", "--y", "survival"]) == 0
    assert json.loads((tmp_path / "o" / "result.json").read_text())["method"] == "log-rank"
    assert main([*asked_of, "--x", "survival", "--y", "arm"]) == 2
    assert "name it as y, by itself" in capsys.readouterr().err


def test_declared_times_and_events_are_ordinary_columns_elsewhere():
    schema = jaxdp.Schema.from_dict({"columns": OUTCOME})
    assert schema.names == ("arm", "died", "days")
    for y in ("died", "days"):
        undeclared = jaxdp.Schema.from_dict({"columns": {k: v for k, v in OUTCOME.items() if k != "survival"}})
        assert (
            Query.of(schema, x="arm", y=y, epsilon=1.0).entry is Query.of(undeclared, x="arm", y=y, epsilon=1.0).entry
        )
    assert Query.of(undeclared, x="arm", y=["days", "died"], epsilon=1.0).entry.name != "log-rank"
    for said in ({"x": "survival", "y": "arm"}, {"x": "arm", "y": ["survival", "died"]}):
        with pytest.raises(
            ValueError, match="'survival' stands for the times 'days' and the events 'died': name it as"
        ):
            Query.of(schema, **said, epsilon=1.0)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"time": "died"}, "time must name a column of this schema that is continuous, with bounds, got 'died'"),
        ({"event": "days"}, "event must name a column of this schema that is of two levels, the second"),
        ({"event": "deaths"}, "event must name a column of this schema"),
        ({"event": None}, "event must name a column of this schema"),
        ({"bounds": [0, 1]}, "column 'survival' has an unknown key 'bounds'"),
    ],
)
def test_an_outcome_is_checked_when_the_schema_is_read(more, told):
    with pytest.raises(ValueError, match=told):
        jaxdp.Schema.from_dict({"columns": OUTCOME | {"survival": {**OUTCOME["survival"], **more}}})


def test_too_few_events_are_said_from_the_release_alone():
    answer = asked(trial(300, 1.0, rate=0.01), 0.5)
    assert answer.content["interval"] is None or np.isnan(answer.interval[0])
    assert private.FEW_EVENTS in answer.content["effect_notes"]
    assert answer.p_value > 0.01


def drawn(key, n: int, ratio: float) -> Data:
    return survival_examples.times(key, n, ratio)


@pytest.mark.optimised
def test_intervals_leave_out_zero_exactly_where_the_p_value_is_below_a_twentieth():
    test = jaxdp.LogRank(epsilon=1.0)

    @jax.jit
    @jax.vmap
    def answer(key):
        found = jaxdp.run(test, key, drawn(jax.random.fold_in(key, 1), 500, 1.3))
        return found.p_value, *found.interval

    p, low, high = map(np.asarray, answer(jax.random.split(jax.random.key(6), 200)))
    known = ~np.isnan(low)
    assert np.mean(known) > 0.9
    assert np.array_equal(((low > 0) | (high < 0))[known], (p < 0.05)[known])
    assert 0.2 < np.mean(p < 0.05) < 0.9


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_level_under_unequal_censoring(epsilon):
    design = functools.partial(drawn, n=500, ratio=1.0)
    found = jaxdp.power.rejection_rate(jaxdp.LogRank(epsilon=epsilon), design, jax.random.key(5), 2000).rejections
    assert found <= stats.binom.ppf(1 - BINARY_BOUND, 2000, 0.05)


@pytest.mark.full
@pytest.mark.optimised
def test_power_at_a_hazard_ratio_of_one_and_a_half():
    design = functools.partial(drawn, n=1000, ratio=1.5)
    found = jaxdp.power.rejection_rate(jaxdp.LogRank(epsilon=1.0), design, jax.random.key(7), 1000).rate
    assert found > 0.8


def kept_table(records: int):
    """Counts of a table whose curves differ between the groups, without noise; and its textbook curves."""
    table = drawn_table(9, records)
    at_risk = np.cumsum(table.sum(2)[:, ::-1], axis=1)[:, ::-1][:, :BINS] - 0.5 * table[:, :BINS, 0]
    return table, np.cumprod(1.0 - table[:, :BINS, 1] / at_risk, axis=1)


def test_without_noise_the_curves_are_those_of_kaplan_and_meier():
    table, textbook = kept_table(20_000)
    blocks = 12
    with jax.enable_x64(True):
        counts = log_rank.blocked(jnp.asarray(table)[None], blocks)[0]
        found = survival_curves(counts, table.sum(), jnp.zeros((DRAWS, *counts.shape)), log_rank.ends(blocks))
    ends = textbook[:, BINS // blocks - 1 :: BINS // blocks]
    assert np.asarray(found.survival)[:, 1:] == pytest.approx(ends, abs=0.004)
    greenwood = 1.96 * np.sqrt(ends * (1.0 - ends) / np.asarray(table).sum((1, 2))[:, None])
    width = 0.5 * np.asarray(found.high - found.low)[:, 1:]
    assert np.all(width > greenwood), "a band of whole curves is wider than intervals of single places"
    assert np.all(width < 3.0 * greenwood)
    assert np.all(np.diff(np.asarray(found.low)) <= 1e-12)
    assert np.all(np.diff(np.asarray(found.high)) <= 1e-12)


@pytest.mark.optimised
def test_bands_hold_whole_curves():
    records, replicates, times = 2000, 300, 200
    alive = lambda group, t: np.exp(-0.9 * t) if group else 1.0 - 0.7 * t  # noqa: E731
    rng = np.random.default_rng(11)
    group = rng.random((replicates, records)) < 0.4
    chance = rng.random(group.shape)
    death, gone = np.where(group, -np.log(chance) / 0.9, chance / 0.7), rng.exponential(np.where(group, 0.8, 4.0))
    seen = np.minimum(np.minimum(death, gone), 1.0)
    of_bin, event = log_rank.codes(2.0 * seen - 1.0, (death <= gone).astype(float))
    place = np.ravel_multi_index((group.astype(int), of_bin.astype(int), event.astype(int)), SHAPE)
    tables = np.stack([np.bincount(one, minlength=np.prod(SHAPE)) for one in place]).reshape(-1, *SHAPE)
    with jax.enable_x64(True):
        domain = Domain((TWO,), (Column(), EVENT))
        shapes = Data(*(jax.ShapeDtypeStruct(shape, float) for shape in ((records,), (records, 2))), None, domain)
        test = jaxdp.LogRank(epsilon=1.0).specialize(shapes)
        query, bound = dataclasses.replace(test.first, of=None), test.first.sensitivity(records)

        def one(both):
            counts = log_rank.blocked(both[1][None], test.second.blocks)[0]
            counts = counts + query.mechanism.noise(both[0], bound, counts.shape)
            return kaplan_meier.estimated(query, bound, counts, records, log_rank.ends(test.second.blocks))

        found = jax.lax.map(one, (jax.random.split(jax.random.key(1), replicates), jnp.asarray(tables, float)))
    blocks, t = test.second.blocks, np.linspace(0.0, 1.0, times)
    ends = log_rank.ends(blocks)
    low = np.asarray(found.low)[:, :, np.searchsorted(ends, t)]
    high = np.asarray(found.high)[:, :, np.searchsorted(ends, t, side="right") - 1]
    truth = np.stack([alive(group, t) for group in (0, 1)])
    held = np.all((low <= truth) & (truth <= high), axis=2).sum(0)
    assert np.all(held >= stats.binom.ppf(BINARY_BOUND, replicates, 0.95))
    assert np.all(np.median(high - low, axis=0)[:, times // 2] < 0.4), "and say something"


def test_a_band_goes_on_where_nobody_is_left_at_risk():
    table, _ = kept_table(300)
    table[:, BINS // 2 :] = 0.0
    with jax.enable_x64(True):
        counts = log_rank.blocked(jnp.asarray(table)[None], 12)[0]
        noise = 2.0 * jax.random.laplace(jax.random.key(0), (DRAWS, *counts.shape))
        found = survival_curves(counts, table.sum(), noise, log_rank.ends(12))
    survival, low, high = (np.asarray(part) for part in (found.survival, found.low, found.high))
    assert np.all(np.isnan(survival[:, -1]))
    assert np.all(low[:, -1] == 0.0)
    assert np.all(np.isfinite(high))
    assert np.isnan(found.difference) == (float(found.until) < 0.5)


def test_an_answer_has_the_curve_of_each_group_in_days(tmp_path):
    answer = asked(trial(3000, 0.6), 2.0)
    curves = answer.to_dict()["curves"]
    control, drug = curves["groups"]
    assert (control["name"], drug["name"]) == ("arm = control", "arm = drug")
    assert (control["at"][0], control["at"][-1], curves["over"]) == (0.0, 730.0, "days")
    middle = int(np.argmin(np.abs(np.array(control["at"]) - 365.0)))
    assert abs(control["at"][middle] - 365.0) < 30.0
    for group, rate in ((control, 1.0), (drug, 0.6)):
        alive = np.exp(-rate * control["at"][middle] / 365.0)
        assert group["low"][middle] < alive < group["high"][middle]
        assert group["low"][middle] < group["value"][middle] < group["high"][middle]
    told = " ".join("\n".join(answer.sentences()).split())
    place = f"days {control['at'][middle]:.4g}"
    assert f"Share without died = yes at {place}: arm = control {control['value'][middle]:.2f} (band" in told
    assert answer.plot().save(tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_the_curves_are_a_function_of_the_release_alone():
    answer, again = asked(trial(600, 0.6), 1.0), asked(trial(600, 1.0), 1.0)
    columns = [[answer.schema.rule(name) for name in part] for part in (["arm"], ["days", "died"])]
    blank = Data(np.zeros(600), np.zeros((600, 2)), None, Domain((TWO,), (Column(), EVENT)))
    found = jaxdp.LogRank(epsilon=1.0).released_curves(blank, answer.release, *columns)
    assert found["groups"] == answer.content["curves"]["groups"]
    assert found["groups"] != again.content["curves"]["groups"]


def test_without_noise_the_difference_is_that_of_areas_below_the_curves():
    table, textbook = kept_table(20_000)
    with jax.enable_x64(True):
        counts = log_rank.blocked(jnp.asarray(table)[None], 24)[0]
        found = survival_curves(counts, table.sum(), jnp.zeros((DRAWS, *counts.shape)), log_rank.ends(24))
    steps = np.concatenate([np.ones((2, 1)), textbook], axis=1)
    areas = 0.5 * (steps[:, 1:] + steps[:, :-1]) @ np.diff(log_rank.ends(BINS))
    assert float(found.until) == 1.0
    assert np.asarray(found.means) == pytest.approx(areas, abs=0.002)
    (low,), (difference,), (high,) = found.low_difference, found.difference, found.high_difference
    assert float(difference) == pytest.approx(areas[1] - areas[0], abs=0.002)
    assert low < difference < high


def test_an_answer_has_the_difference_of_restricted_means_in_days():
    answer = asked(trial(3000, 0.6), 2.0)
    found = answer.to_dict()["curves"]["restricted_means"]
    control, drug = (365.0 * (1.0 - np.exp(-rate * 730.0 / 365.0)) / rate for rate in (1.0, 0.6))
    low, high = found["interval"]
    assert found["until"] == 730.0
    assert low < drug - control < high
    assert 10.0 < high - low < 120.0
    assert found["difference"] == pytest.approx(found["means"][1] - found["means"][0])
    told = " ".join("\n".join(answer.sentences()).split())
    assert "Restricted mean days without died = yes, up to 730: arm = control" in told
    assert f"95 % interval {low:.3g} to {high:.3g}." in told


def test_no_difference_is_given_where_a_curve_ends_early():
    found = asked(trial(400, 1.0), 0.5).to_dict()["curves"]
    assert "restricted_means" not in found
    assert not any("Restricted" in sentence for sentence in found["sentences"])


@pytest.mark.parametrize("y", ["survival", ["days", "died"]])
@pytest.mark.parametrize(
    ("asked_of", "told"),
    [
        ({"x": "dose"}, "X must be one column of 2 to 8 levels, and dose is continuous: cut it"),
        ({"x": "dose", "sees": "any"}, "dose is continuous: cut it"),
        ({"x": "arm", "given": "dose"}, "cut dose at public values into levels, or leave it out"),
        ({"x": "arm", "given": ["site", "ward"]}, "at most 16 strata, and the levels of Z make 18 together"),
        ({"x": "city"}, "city has 9; name or merge levels"),
        ({"x": ["arm", "dose"]}, "X must be one column of 2 to 8 levels, and there are more columns"),
    ],
)
def test_an_outcome_that_log_rank_cannot_ask_about_goes_to_no_test_of_plain_numbers(tmp_path, y, asked_of, told):
    columns = OUTCOME | {
        "dose": {"kind": "continuous", "bounds": [0, 1]},
        "site": {"kind": "categorical", "levels": ["p", "q", "r"]},
        "ward": {"kind": "categorical", "levels": [str(level) for level in range(6)]},
        "city": {"kind": "categorical", "levels": [str(level) for level in range(9)]},
    }
    schema, table = jaxdp.Schema.from_dict({"columns": columns}), trial(200, 1.0)
    table |= {"dose": np.linspace(0.0, 1.0, 200), "site": np.array(["p", "q", "r", "p"] * 50), "ward": ["1"] * 200}
    table["city"] = table["ward"]
    ledger = jaxdp.Ledger.create(tmp_path / "ledger.json", epsilon=5.0)
    with pytest.raises(ValueError, match=told) as refused:
        jaxdp.test(table, y=y, epsilon=1.0, schema=schema, ledger=ledger, **asked_of)
    assert "of the time and the event as plain columns, such as" in str(refused.value), "the other way out"
    assert float(ledger.spent.epsilon) == 0.0
    asked_of = {name: asked for name, asked in asked_of.items() if name != "sees"}
    named = Query.of(schema, y=y, epsilon=1.0, method="partition-gcm", **asked_of)
    assert named.entry.name == "partition-gcm"


@pytest.mark.optimised
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_a_simulation_runs_the_blocks_that_a_release_takes(epsilon):
    design = functools.partial(drawn, n=700, ratio=1.5)
    of_release = jaxdp.LogRank(epsilon=epsilon).specialize(design(jax.random.key(0))).second.blocks
    assert of_release != jaxdp.LogRank(epsilon=1.0).specialize(design(jax.random.key(0))).second.blocks
    tests = [jaxdp.LogRank(epsilon=epsilon, **fields) for fields in ({}, {"blocks": of_release})]
    found = [np.asarray(jaxdp.power.p_values(test, design, jax.random.key(1), 20)) for test in tests]
    assert np.array_equal(*found)


def weeks(key, n: int, mean: float, most: float, ratio: float, unequal: bool) -> Data:
    """Exponential times within [0, most]; the second group may be followed for 12 weeks at most, the first for ever."""
    keys = jax.random.split(key, 3)
    group = jax.random.bernoulli(keys[0], 0.5, (n,)).astype(int)
    event = mean * jax.random.exponential(keys[1], (n,)) / jnp.where(group == 1, ratio, 1.0)
    until = jnp.where(unequal & (group == 1), 12.0 * jax.random.uniform(keys[2], (n,)), 1e9)
    time = jnp.clip(2.0 * jnp.minimum(event, until) / most - 1.0, -1.0, 1.0)
    return Data(group, jnp.stack([time, 1.0 * (event <= until)], axis=1), None, Domain((TWO,), (Column(), EVENT)))


def of_weeks(epsilon: float, replicates: int, *design):
    test = jaxdp.LogRank(epsilon=epsilon)

    @jax.jit
    def every(keys):
        def one(key):
            found = jaxdp.run(test, key, weeks(jax.random.fold_in(key, 1), *design))
            return found.p_value, *found.interval

        return jax.lax.map(one, keys, batch_size=20)

    return map(np.asarray, every(jax.random.split(jax.random.key(3), replicates)))


@pytest.mark.optimised
def test_level_where_nearly_all_leave_in_a_small_part_of_the_bounds():
    """It was about a half, with groups that are followed for different times, and a third for the same time."""
    p, _, _ = of_weeks(0.5, 100, 4000, 6.0, 182.0, 1.0, True)
    assert np.sum(p < 0.05) <= stats.binom.isf(BINARY_BOUND, 100, 0.05)


@pytest.mark.optimised
def test_the_interval_holds_a_ratio_of_two_where_a_tenth_of_the_bounds_is_a_typical_time():
    """.7 held it on the grid of 96 bins: within one bin it is not known who came first."""
    p, low, high = of_weeks(4.0, 100, 10_000, 30.0, 182.0, 2.0, False)
    assert np.all(p < 0.05)
    held = np.sum((low <= np.log(2.0)) & (np.log(2.0) <= high))
    assert held >= stats.binom.ppf(BINARY_BOUND, 100, 0.95)


@pytest.mark.optimised
def test_effects_are_found_and_held_where_a_typical_time_is_a_twentieth_of_the_bounds():
    """On bins of equal width in the time nothing was found: intervals were 2.1 wide."""
    p, low, high = of_weeks(1.0, 100, 4000, 8.0, 182.0, 2.0, False)
    assert np.mean(p < 0.05) > 0.98
    assert np.median(high - low) < 0.25
    held = np.sum((low <= np.log(2.0)) & (np.log(2.0) <= high))
    assert held >= stats.binom.ppf(BINARY_BOUND, 100, 0.95)


def test_bins_have_equal_width_in_the_root_of_the_time_or_in_its_logarithm_where_the_schema_scales_by_it():
    share, places = np.array([0.01, 0.25, 0.81, 1.0]), np.array([0.1, 0.5, 0.9])
    for even, expected in ((False, places), (True, share[:3])):
        of_bin, _ = log_rank.codes(2.0 * share - 1.0, np.ones(4), even)
        assert of_bin.tolist() == [*np.floor(expected * BINS + 1e-9), BINS]
        edges = log_rank.ends(BINS, even)
        inside, _ = log_rank.codes(edges[1:] + edges[:-1] - 1.0, np.ones(BINS), even)
        assert inside.tolist() == list(range(BINS)), "the middle of a bin lies between its ends"
        assert log_rank.ends(12, even) == pytest.approx(edges[:: BINS // 12])


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_times_on_a_logarithmic_scale_are_cut_evenly_on_it(scale):
    columns = {**OUTCOME, "days": {"kind": "continuous", "bounds": [1, 10_000], "scale": scale}}
    schema = jaxdp.Schema.from_dict({"columns": columns})
    table = trial(2000, 0.6)
    table["days"] = np.maximum(table["days"], 1.0)
    answer = jaxdp.test(table, x="arm", y="survival", epsilon=2.0, schema=schema, key=jax.random.key(2))
    at = np.array(answer.to_dict()["curves"]["groups"][0]["at"])
    assert (at[0], at[-1]) == pytest.approx((1.0, 10_000.0))
    assert np.diff(np.log(at) if scale == "log" else np.sqrt(at - 1.0), 2) == pytest.approx(0.0, abs=1e-9)
    assert answer.interval[0] < np.log(0.6) < answer.interval[1] < 0.0
    assert ("restricted_means" in answer.to_dict()["curves"]) is False


def test_the_mean_of_the_squares_is_known_where_the_groups_differ():
    """Of scores about the hazard of all: with a ratio they scatter less than O - E does about its mean."""
    rng = np.random.default_rng(3)
    group = rng.integers(0, 2, 40_000)
    of_bin, event = log_rank.codes(rng.exponential(1.0 / 12.0 / 2.0**group) * 2.0 - 1.0, np.ones(40_000))
    table = np.zeros((1, *SHAPE))
    np.add.at(table[0], (group, of_bin.astype(int), event.astype(int)), 1.0)
    with jax.enable_x64(True):
        about = Curves.of(log_rank.blocked(jnp.asarray(table), 48), table.sum(), 1e-9)
        squares = float(jnp.sum(table * about.scores()[..., 0] ** 2))
        at = {ratio: jnp.array([np.log(ratio)]) for ratio in (1.0, 2.0)}
        expected = {ratio: float(about.expected_squares(one)) for ratio, one in at.items()}
        spread = {ratio: float(about.spread(one)[0, 0]) for ratio, one in at.items()}
    assert expected[2.0] == pytest.approx(squares, rel=0.03)
    assert expected[1.0] == pytest.approx(spread[1.0])
    assert spread[2.0] > 1.25 * expected[2.0]


def test_what_may_change_within_a_block_counts_where_many_leave_in_it_alone():
    """Two groups; shares of 1/2 and of less at the end of the first block."""
    share, calm = jnp.full((1, 6), 0.5), np.full((2, 13), 50.0)
    calm[:, -1] = 300.0
    crowd = np.array(calm)
    crowd[0, 0], crowd[1, 0] = 300.0, 900.0
    none, some = (log_rank._bent(jnp.asarray(counts), share, 1.0) for counts in (calm, crowd))
    assert float(none[0]) == 0.0
    start = abs(1750.0 / 2900.0 - 0.5)
    assert float(some[0]) == pytest.approx(1200.0 * start)


@pytest.mark.parametrize(("mean", "said"), [(0.5, True), (8.0, False)])
def test_an_answer_about_crowded_times_says_so(mean, said):
    rng = np.random.default_rng(0)
    time = np.minimum(rng.exponential(mean, 2000), 182.0)
    table = {"arm": rng.integers(0, 2, 2000), "days": time, "died": np.ones(2000, int)}
    public = {"bounds": {"days": (0, 182)}, "levels": {"arm": [0, 1], "died": [0, 1]}}
    answer = jaxdp.test(table, x="arm", y=["days", "died"], method="log-rank", epsilon=1.0, **public)
    assert said == (private.CROWDED in answer.content.get("effect_notes", {}))
    assert "When a record is censored says nothing" in " ".join(" ".join(answer.sentences()).split())


@pytest.mark.parametrize(("end", "has_interval"), [(60, False), (15, True)])
def test_a_ratio_has_no_interval_where_one_group_is_followed_for_a_shorter_time(end, has_interval):
    """Its share at risk falls to nothing within a block, of which the noisy counts say too little: bounds say more."""
    rng = np.random.default_rng(5)
    group = rng.random(20_000) < 0.5
    time = 25.0 * rng.exponential(size=group.size) * np.exp(-0.8 * group)
    left = np.where(group, 15.0, 60.0)
    columns = {
        "days": {"kind": "continuous", "bounds": [0, end]},
        "died": {"kind": "binary", "levels": ["no", "yes"]},
        "arm": {"kind": "binary", "levels": ["a", "b"]},
    }
    table = {
        "days": np.minimum(time, left),
        "died": np.where(time < left, "yes", "no"),
        "arm": np.where(group, "b", "a"),
    }
    how = {"x": "arm", "y": ["days", "died"], "method": "log-rank", "epsilon": 4.0, "key": jax.random.key(1)}
    answer = jaxdp.test(table, schema={"columns": columns}, **how)
    assert answer.p_value < 1e-6
    assert ("one group leaves almost at once" in " ".join(str(answer).split())) is not has_interval
    assert (answer.interval is not None and answer.interval[0] <= 0.8 <= answer.interval[1]) is has_interval
