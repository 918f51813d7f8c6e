"""Several rows of a person: which of them are drawn, the mean over draws, and what an answer says of them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_files_and_units import UNITS

import jaxdp
from jaxdp import core
from jaxdp.audit import attack, cases, contract
from jaxdp.data.person_rows import DRAWS, PersonRows
from jaxdp.data.units import Units


def drawn(ids, rows="all", draws=8, hidden=False):
    units = Units(hidden)
    for part in np.array_split(np.array(ids, object), 3):
        units.add(list(part))
    return units.chosen(rows, draws)


def test_every_row_of_a_unit_is_drawn_equally_often_up_to_one():
    ids = ["b"] * 3 + ["a"] * 5 + ["b"] + ["c"]
    chosen = drawn(ids)
    assert [{ids[row] for row in unit} for unit in chosen] == [{"a"}, {"b"}, {"c"}]
    for unit, rows in zip(chosen, (5, 4, 1), strict=True):
        counts = np.unique(unit, return_counts=True)[1]
        assert (len(counts), counts.sum()) == (rows, 8)
        assert np.ptp(counts) <= 1
    assert drawn(ids, "first", 1)[:, 0].tolist() == [3, 0, 9]
    assert np.all(drawn(ids, "first") == drawn(ids, "first")[:, :1])


def test_one_row_of_many_is_as_likely_as_any_other():
    first = drawn([f"{unit}" for unit in range(4000) for _ in range(5)], "random", 1)[:, 0] % 5
    assert np.all(np.abs(np.bincount(first, minlength=5) - 800) < 5 * np.sqrt(800 * 0.8))
    hidden = [drawn(["a"] * 50, "random", 1, hidden=True)[0, 0] for _ in range(12)]
    assert len(set(hidden)) > 3  # by a secret: the id and the table do not tell which


def test_rows_of_other_units_do_not_change_what_is_drawn():
    """The proof fixes the draws of all persons but one; another number of rows must not shift theirs."""
    before = drawn(["a"] * 4 + ["b"] * 3 + ["c"] * 6)
    for more in (1, 9):
        after = drawn(["a"] * 4 + ["b"] * more + ["c"] * 6)
        np.testing.assert_array_equal(before[0], after[0])
        np.testing.assert_array_equal(before[2] - 7, after[2] - 4 - more)


def several(m=60, rows=4, seed=0):
    """A table of persons with unequal numbers of rows."""
    random = np.random.default_rng(seed)
    ids = np.repeat(np.arange(m), random.integers(1, rows + 1, m))
    v, w = random.uniform(0, 100, (2, len(ids)))
    return {"person": ids, "v": v, "w": w}


def test_the_statistic_is_the_mean_over_draws():
    data = jaxdp.Schema.from_dict(UNITS).read(several(), x="v", y="w", draws=DRAWS)
    assert isinstance(data, PersonRows)
    assert data.draws.x.shape == (60, DRAWS)
    test = core.specialize(jaxdp.PartitionGCM(epsilon=1.0), data)
    with jax.enable_x64(True):
        whole = core.exact_statistic(test, jax.random.key(0), data)
        each = [
            core.exact_statistic(test, jax.random.key(0), jax.tree.map(lambda leaf, t=t: leaf[:, t], data.draws))
            for t in range(DRAWS)
        ]
    for name, value in whole.items():
        np.testing.assert_allclose(value, np.mean([one[name] for one in each], axis=0), rtol=1e-12)
    assert np.ptp([float(one["covariance"]) for one in each]) > 0.1


def test_one_row_each_is_the_test_without_units():
    table = {**several(rows=1), "person": np.arange(60)}
    data = jaxdp.Schema.from_dict(UNITS).read(table, x="v", y="w")
    rows = PersonRows.of_draws([data] * DRAWS)
    found, plain = (jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), jax.random.key(3), one).p_value for one in (rows, data))
    np.testing.assert_allclose(found, plain, rtol=1e-5)


def test_a_release_counts_the_rounding_of_the_mean():
    rows = jaxdp.Schema.from_dict(UNITS).read(several(), x="v", y="w", draws=DRAWS)
    one = jax.tree.map(lambda leaf: leaf[:, 0], rows.draws)
    test = jaxdp.PartitionGCM(epsilon=1.0)
    found, plain = (jaxdp.release(test, jaxdp.fresh_key(), data) for data in (rows, one))
    for name in ("covariance", "variance"):
        more, less = found.sensitivity[name], plain.sensitivity[name]
        assert float(more.bound) == float(less.bound)
        largest = max(np.max(np.abs(less.lower)), np.max(np.abs(less.upper)))
        np.testing.assert_allclose(more.error - less.error, DRAWS * 2.0**-52 * largest, rtol=1e-3)
    assert float(found.cost.epsilon) == float(plain.cost.epsilon)


AVERAGED = [entry for entry in contract.catalogue.offered().values() if entry.cls.averages_rows]


@pytest.mark.parametrize("entry", AVERAGED, ids=[entry.name for entry in AVERAGED])
@pytest.mark.full
def test_no_bound_is_passed_by_persons_and_each_is_reached(entry):
    one = contract._Checked(cases.of(entry)[0], jax.random.key(0))
    found = contract.attacked(one)
    rows = contract.attacked_rows(one, found)
    assert set(rows) == set(found)
    for path, best in rows.items():
        assert best.share <= 1.0 + attack.ROUNDING
        assert best.outside == 0.0
        assert best.share >= contract.ROWS_REACH * found[path][0].share


def test_a_mean_that_forgets_to_divide_passes_its_bound(monkeypatch):
    def total(self, function):
        return jax.tree.map(
            lambda value: jnp.sum(value, 0), jax.lax.map(function, jax.tree.map(lambda x: x.swapaxes(0, 1), self.draws))
        )

    entry = contract.catalogue.find("band-gcm")
    one = contract._Checked(cases.of(entry)[0], jax.random.key(0))
    found = contract.attacked(one)
    monkeypatch.setattr(PersonRows, "mean", total)
    contract.bounds._statistics.clear_cache()
    try:
        assert max(best.share for best in contract.attacked_rows(one, found).values()) > 2.0
    finally:
        contract.bounds._statistics.clear_cache()


def second_moment(table):
    """The statistic of partition-gcm by person, x and y in [-1, 1] as they are, and its sensitivity."""
    data = jaxdp.Schema.from_dict(UNITS).read(table, x="v", y="w", draws=DRAWS)
    test = core.specialize(jaxdp.PartitionGCM(epsilon=1.0, by_person=True, winsorize=1.0), data)
    with jax.enable_x64(True):
        return core.exact_statistic(test, jax.random.key(0), data), test.sensitivity(core.num_records(data))


LONGER = {3: 1, 1: 3, 2: 50}  # rows of the replaced person: before, after


@pytest.mark.parametrize("before", LONGER)
def test_a_list_of_rows_of_another_length_reaches_the_bound_of_the_second_moment(before):
    others = several(m=11)

    def with_person(values):
        extra = {"person": [99] * len(values), "v": values, "w": values}
        return {name: np.concatenate([others[name], extra[name]]) for name in others}

    (first, bounds), (second, _) = (second_moment(with_person(v)) for v in ([50.0] * before, [100.0] * LONGER[before]))
    for name, bound in bounds.items():
        moved = abs(float(first[name]) - float(second[name]))
        assert moved <= bound.bound * (1 + 1e-9)
        assert name != "persons" or moved >= 0.9 * bound.bound


def test_the_second_moment_is_that_of_the_mean_product_of_each_person():
    table = several(m=40)
    found, _ = second_moment(table)
    x, y = table["v"] / 50 - 1, table["w"] / 50 - 1
    units = Units()
    units.add(list(table["person"]))
    drawn_rows = units.chosen("all", DRAWS)
    np.testing.assert_allclose(found["persons"], np.sum(np.mean((x * y)[drawn_rows], axis=1) ** 2), rtol=1e-6)
    one = {"person": np.arange(len(x)), "v": table["v"], "w": table["w"]}
    np.testing.assert_allclose(second_moment(one)[0]["persons"], np.sum((x * y) ** 2), rtol=1e-6)


def test_persons_with_several_rows_are_judged_by_their_second_moment_where_means_are_released():
    schema = jaxdp.Schema.from_dict(UNITS)
    rows = schema.read(several(m=200), x="v", y="w", draws=DRAWS)
    one = schema.read(several(m=200), x="v", y="w")

    def parts(data, **fields):
        return set(jaxdp.release(jaxdp.PartitionGCM(epsilon=1.0, **fields), jax.random.key(0), data).value)

    assert parts(rows, standardize=True) == {"covariance", "variance", "persons"}
    for data, fields in ((one, {"standardize": True}), (rows, {}), (rows, {"standardize": True, "by_person": False})):
        assert parts(data, **fields) == {"covariance", "variance"}
    with pytest.raises(ValueError, match="by_person takes one region, got num_regions=2"):
        jaxdp.PartitionGCM(epsilon=1.0, by_person=True, num_regions=2)
    own = type("Own", (jaxdp.PartitionGCM,), {"statistic": lambda self, key, data: None, "averages_rows": True})
    assert own(epsilon=1.0, standardize=True).of_persons(None).by_person is None


@pytest.mark.parametrize(("persons", "epsilon", "share"), [(200, 1.0, 0.95), (2000, 1.0, 0.87), (2000, 0.2, 0.95)])
def test_the_variance_gets_a_share_where_noise_would_not_hide_it(persons, epsilon, share):
    rows = jaxdp.Schema.from_dict(UNITS).read(several(m=persons), x="v", y="w", draws=DRAWS)
    test = core.specialize(jaxdp.PartitionGCM(epsilon=epsilon, by_person=True), rows)
    assert float(test.mechanism_in_force()["covariance"].epsilon) == pytest.approx(share * epsilon)
    traced = jax.jit(lambda test: test.mechanism_in_force()["covariance"].epsilon)(test)
    assert float(traced) == pytest.approx(share * epsilon)
    assert float(core.cost_of(test, rows).epsilon) <= epsilon


def test_tests_that_do_not_average_refuse_before_they_read():
    rows = jaxdp.Schema.from_dict(UNITS).read(several(), x="v", y="w", draws=DRAWS)
    with pytest.raises(ValueError, match=r"quantile-table takes one row of each person.*partition-gcm"):
        jaxdp.run(jaxdp.QuantileTable(epsilon=1.0), jax.random.key(0), rows)
    flat = PersonRows(dataclasses.replace(rows.draws, y=rows.draws.y[:, :3]))
    with pytest.raises(ValueError, match=r"as many draws in each, got x \(60, 16\), y \(60, 3\)"):
        jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), jax.random.key(0), flat)
    assert "60" in repr(rows)
    assert str(np.asarray(rows.draws.x)[0, 0])[:6] not in repr(rows)


def test_a_subclass_with_a_statistic_of_its_own_must_say_that_it_averages():
    """The bound holds for any statistic, but the level of another one is another claim."""
    paper = contract.catalogue.find("conditional-kendall-paper").cls
    assert issubclass(paper, type(jaxdp.ConditionalKendall(epsilon=1.0)).__mro__[1])
    assert not paper.averages_rows
    assert jaxdp.ConditionalKendall.averages_rows
    own = type("Own", (jaxdp.PartitionGCM,), {"statistic": lambda self, key, data: None})
    same = type("Same", (jaxdp.PartitionGCM,), {})
    assert (own.averages_rows, same.averages_rows) == (False, True)


def test_answers_say_which_rows_count():
    def ask(rows, method="partition-gcm"):
        how = {"x": "v", "y": "w", "epsilon": 1.0, "schema": UNITS, "key": jax.random.key(1)}
        return jaxdp.test(several(), rows=rows, method=method, **how).content

    said = {rows: ask(rows)["unit"] for rows in (None, "all", "random", "first")}
    assert said[None] == said["all"]
    assert "counts once with all of its rows" in said["all"]
    assert "one of its rows, drawn at random" in said["random"]
    assert "the first of its rows" in said["first"]
    table = ask("all", "quantile-table")
    assert "one of its rows, drawn at random" in table["unit"]
    assert table["n"] == 60


def test_rows_are_named_and_need_a_unit():
    ask = {"x": "v", "y": "w", "epsilon": 1.0, "key": jax.random.key(1)}
    with pytest.raises(ValueError, match="rows must be 'first', 'random', 'all', got 'last'"):
        jaxdp.test(several(), rows="last", schema=UNITS, **ask)
    with pytest.raises(ValueError, match="rows = 'random' needs a unit"):
        jaxdp.test(several(), rows="random", schema={"columns": UNITS["columns"]}, **ask)


@pytest.mark.full
@pytest.mark.parametrize("rows", ["all", "first"])
def test_queries_that_take_one_row_say_which(rows):
    def ask(call, table, **more):
        return call(table, epsilon=1.0, schema=UNITS, key=jax.random.key(1), rows=rows, **more)

    words = {"all": "one of its rows, drawn at random", "first": "the first of its rows"}[rows]
    assert words in " ".join(repr(ask(jaxdp.test_pairs, several())).split())
    assert words in ask(jaxdp.mic, several(), x="v", y="w").content["unit"]
    assert words in ask(jaxdp.describe, several()).content["unit"]
    assert words in ask(jaxdp.discover, several(200)).note
