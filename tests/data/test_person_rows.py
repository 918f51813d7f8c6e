"""Several rows of a person: which of them are drawn, the mean over draws, and what an answer says of them."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_files_and_units import UNITS

import jaxdp
from jaxdp import core
from jaxdp.audit import attack, cases, contract
from jaxdp.data.dataset import Column, Domain
from jaxdp.data.person_rows import DRAWS, PersonRows
from jaxdp.data.units import Units
from jaxdp.independence.tables.noisy_table import SpreadOfPersons
from jaxdp.privacy import Cost, Relation
from jaxdp.results import Release


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
    def total(self, function, key):
        moved = jax.tree.map(lambda x: x.swapaxes(0, 1), self.draws)
        return jax.tree.map(lambda value: jnp.sum(value, 0), jax.lax.map(lambda draw: function(key, draw), moved))

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


def mixed_levels(m=40, levels=(2, 3, 4), seed=0):
    """Draws of persons with coded columns z, x and y, and the codes (3, m, DRAWS)."""
    random = np.random.default_rng(seed)
    turns = np.arange(DRAWS) % random.integers(1, 6, m)[:, None]
    codes = [np.take_along_axis(random.integers(0, count, (m, DRAWS)), turns, 1) for count in levels]
    z, x, y = (values.astype(float) for values in codes)
    return PersonRows(jaxdp.Data(x, y, z[..., None])), np.array(codes)


def spread_stage(table, cells):
    """What judges the table with these released cells."""
    released = Release(value=cells, sensitivity=table.sensitivity(1), cost=Cost.none(Relation.REPLACE_ONE))
    return SpreadOfPersons(mechanism=jaxdp.Laplace(epsilon=1.0), table=table, released=released)


def spread_of_a_level(squares, weight, own, other, usual):
    """G by one level's squares (m,) in units in which single rows have the usual mean, and the most that one adds.

    own: (strata,). other: (strata, c).
    """
    lengths = 1 - 2 * other + np.sum(other**2, axis=1)[:, None]
    raised = usual / np.sum(weight * own * (1 - own) * np.sum(other * lengths, axis=1))
    most = min(raised * np.max(np.maximum(own, 1 - own)[:, None] ** 2 * lengths), 12.0)
    return np.sum(np.minimum(raised * squares, most)), most


def test_the_spread_of_persons_is_that_of_their_mean_interactions_or_of_one_level_of_them():
    rows, (z, x, y) = mixed_levels()
    cells = np.random.default_rng(1).uniform(10.0, 200.0, (2, 3, 4))
    weight = cells.sum((1, 2)) / cells.sum()
    p, q = cells.sum(2) / cells.sum((1, 2))[:, None], cells.sum(1) / cells.sum((1, 2))[:, None]
    each = (np.eye(3)[x] - p[z])[..., :, None] * (np.eye(4)[y] - q[z])[..., None, :]
    usual = np.sum(weight * (1 - np.sum(p**2, axis=1)) * (1 - np.sum(q**2, axis=1)))

    def expected(mean):
        squares = mean**2
        of_rows = [spread_of_a_level(squares[:, a].sum(1), weight, p[:, a], q, usual) for a in range(3)]
        of_columns = [spread_of_a_level(squares[:, :, b].sum(1), weight, q[:, b], p, usual) for b in range(4)]
        sums, most = zip(*of_rows, *of_columns, strict=True)
        unit = max(1.0, max(most) / 4.0)
        return max(np.sum(squares), *sums) / unit, unit

    with jax.enable_x64(True):
        stage = spread_stage(jaxdp.StratifiedTable(epsilon=1.0, levels=(3, 4), strata=(2,)), cells)
        found = core.exact_statistic(stage, jax.random.key(0), rows)
        value, unit = expected(np.mean(each, axis=1))
        np.testing.assert_allclose(found, value, rtol=1e-12)
        one = jax.tree.map(lambda leaf: leaf[:, 0], rows.draws)
        np.testing.assert_allclose(stage.statistic(None, one), expected(each[:, 0])[0], rtol=1e-12)
        table, larger = stage.of_records(
            dataclasses.replace(stage.released, value=found, num_records=40, sensitivity=stage.sensitivity(40))
        )
    part = min(unit * (float(found) + 4.0) / (40 * usual), 1.0)  # 4: one scale of the noise
    np.testing.assert_allclose(larger.num_records, 40 / part, rtol=1e-6)
    np.testing.assert_allclose(larger.value, cells / part, rtol=1e-6)
    np.testing.assert_allclose(larger.sensitivity.bound, 2.0 / part, rtol=1e-6)
    assert table.num_null == jaxdp.StratifiedTable(epsilon=1.0).num_null


@pytest.mark.full
@pytest.mark.optimised
@pytest.mark.parametrize("cls", [jaxdp.NoisyTableChi2, pytest.param(jaxdp.ProjectedChi2, marks=pytest.mark.nightly)])
def test_a_level_whose_persons_never_change_is_judged_by_those(cls):
    """A tenth of the persons say one thing in all rows, the others something else in each: .22 to .25 were rejected."""
    levels = Domain((Column("categorical", 3),), (Column("categorical", 3),))

    def p_value(key):
        keys = jax.random.split(key, 5)
        fixed = jax.random.uniform(keys[0], (3000, 1)) < 0.1
        x = jnp.where(fixed, 2, jax.random.randint(keys[1], (3000, DRAWS), 0, 2))
        y = jnp.where(fixed, *(jax.random.randint(keys[2 + k], (3000, n), 0, 3) for k, n in enumerate((1, DRAWS))))
        rows = PersonRows(jaxdp.Data(x.astype(float), y.astype(float), None, levels))
        return core.run_opened(cls(epsilon=1.0), core.source_from_key(keys[4]), rows).p_value

    found = jax.jit(jax.vmap(p_value))(jax.random.split(jax.random.key(0), 150))
    assert jnp.mean(found <= 0.05) <= 0.1


def test_ordered_levels_are_judged_by_their_midranks_where_these_vary_more(monkeypatch):
    """X and Y of a person go up together in all rows: the rank correlation varies as of single rows, not the rest."""
    monkeypatch.setattr(jaxdp.NoisyTableChi2, "counts_ranks", lambda self: True)
    random = np.random.default_rng(2)
    high = random.integers(0, 2, (2, 300, 1))
    x, y = 2 * high + random.integers(0, 2, (2, 300, DRAWS))
    cells = np.full((4, 4), 300 / 16.0)
    scores = (np.arange(4) + 0.5) / 4 - 0.5
    with jax.enable_x64(True):
        stage = spread_stage(jaxdp.NoisyTableChi2(epsilon=1.0, levels=(4, 4)), cells)
        rows = PersonRows(jaxdp.Data(x.astype(float), y.astype(float)))
        found = float(core.exact_statistic(stage, jax.random.key(0), rows))
        monkeypatch.setattr(jaxdp.NoisyTableChi2, "counts_ranks", lambda self: False)
        whole = float(core.exact_statistic(stage, jax.random.key(0), rows))
    own = np.mean(scores[x] * scores[y], axis=1) ** 2
    np.testing.assert_allclose(found, np.sum(own) * (0.75 / np.mean(scores**2)) ** 2, rtol=1e-6)
    assert found > 1.5 * whole


@pytest.mark.parametrize("rare", [1.0, 0.5])
def test_a_replaced_person_moves_the_spread_by_its_bound_and_no_more(rare):
    """A person whose rows all hold what nobody else holds, in all draws or in half of them."""
    many = np.zeros((9, DRAWS))
    changed = many.copy()
    changed[4, : int(rare * DRAWS)] = 1.0
    cells = np.array([[1e9, 0.0], [0.0, 0.0]])
    with jax.enable_x64(True):
        stage = spread_stage(jaxdp.NoisyTableChi2(epsilon=1.0, levels=(2, 2)), cells)
        before, after = (float(stage.statistic_of_persons(None, PersonRows(jaxdp.Data(v, v)))) for v in (many, changed))
        bound = stage.sensitivity(9)
    assert after - before <= float(bound.bound)
    np.testing.assert_allclose(after - before, 4.0 * rare**2, rtol=1e-6)


def test_a_replaced_person_moves_the_spread_of_midranks_by_its_bound_and_no_more(monkeypatch):
    """Beside rare levels a square of midranks would be 4.9, in units in which no other square is above 4."""
    monkeypatch.setattr(jaxdp.NoisyTableChi2, "counts_ranks", lambda self: True)
    margin = np.array([0.33, 0.33, 0.33, 0.01])
    with jax.enable_x64(True):
        # so few records that nothing is said of single levels
        stage = spread_stage(jaxdp.NoisyTableChi2(epsilon=1.0, levels=(4, 4)), 40.0 * np.outer(margin, margin))

        def found(last):
            values = np.ones((9, DRAWS))
            values[:5] = 3.0  # the midranks decide: the rest of the records makes both sums alike
            values[5] = last
            return float(stage.statistic_of_persons(None, PersonRows(jaxdp.Data(values, values))))

        assert 0.99 * 4.0 <= found(3.0) - found(1.0) <= float(stage.sensitivity(9).bound)


@pytest.mark.parametrize("share", [0.3, 0.01])
def test_a_replaced_person_moves_the_spread_of_a_level_by_its_bound_and_no_more(share):
    """A rare level's square is up to 60 times that of the whole table, cut at 12, and released in units of 3."""
    margin = np.array([(1.0 - share) / 2, (1.0 - share) / 2, share])
    with jax.enable_x64(True):
        stage = spread_stage(jaxdp.NoisyTableChi2(epsilon=1.0, levels=(3, 3)), 1e6 * np.outer(margin, margin))

        def found(last):
            x, y = np.ones((9, DRAWS)), np.ones((9, DRAWS))
            x[:6], y[:6] = 2.0, 2.0
            x[5], y[5] = last
            return float(stage.statistic_of_persons(None, PersonRows(jaxdp.Data(x, y))))

        values = [found(pair) for pair in itertools.product(range(3), repeat=2)]
    bound = float(stage.sensitivity(9).bound)
    assert np.ptp(values) <= bound
    assert np.ptp(values) >= (0.9 * bound if share < 0.1 else 0.0)


BY_PERSON = ("band-gcm", "noisy-table", "projected-chi2", "stratified-table", "quantile-table")


@pytest.mark.parametrize("name", BY_PERSON)
@pytest.mark.full
def test_no_bound_of_a_test_by_person_is_passed(name):
    first = cases.of(contract.catalogue.find(name))[0]
    fields = {**(first.example.fields or {}), "by_person": True}
    example = dataclasses.replace(first.example, fields=fields, attack_tightness=1.0)
    one = contract._Checked(dataclasses.replace(first, example=example), jax.random.key(0))
    rows = contract.attacked_rows(one, contract.attacked(one))
    assert any("persons" in path or "SpreadOfPersons" in path for path in rows)
    for best in rows.values():
        assert best.share <= 1.0 + attack.ROUNDING
        assert best.outside == 0.0


def band_of(x, y, z):
    """The statistic of band-gcm by person, and its test."""
    data = PersonRows(jaxdp.Data(x, y, z))
    test = core.specialize(jaxdp.BandGCM(epsilon=1.0, by_person=True, caliper=2.0), data)
    with jax.enable_x64(True):
        return core.exact_statistic(test, jax.random.key(0), data), test


def test_the_second_moment_of_pairs_is_that_of_the_mean_half_sum_of_each_person():
    random = np.random.default_rng(3)
    x, z = random.uniform(-0.2, 0.2, (2, 120, DRAWS))
    found, test = band_of(x, x, z)
    halves = np.zeros((120, DRAWS))
    for t in range(DRAWS):
        order = np.argsort(z[:, t])
        for first, second in itertools.pairwise(order):
            width = float(test.scale_x) / 2
            psi = np.clip((x[first, t] - x[second, t]) / width, -1, 1)
            halves[[first, second], t] += 0.5 * psi**2
    np.testing.assert_allclose(found["band"], np.mean(np.sum(halves, axis=0)) / 2, rtol=1e-4)
    np.testing.assert_allclose(found["persons"], np.sum(np.mean(halves, axis=1) ** 2), rtol=1e-4)


@pytest.mark.parametrize(("draws", "least"), [(DRAWS, 3.0), (DRAWS // 2, 1.0)])
def test_a_replaced_person_moves_the_second_moment_of_pairs_within_its_bound(draws, least):
    """All pairs agree; the person leaves two neighbours that are alike, and comes between two of whom none agrees."""
    z = np.tile(np.linspace(-0.9, 0.9, 120)[:, None], DRAWS)
    x = np.where(np.arange(120)[:, None] % 2, 1.0, -1.0) * np.ones((1, DRAWS))
    moved_x, moved_y, moved_z = x.copy(), x.copy(), z.copy()
    moved_x[6, :draws], moved_y[6, :draws], moved_z[6, :draws] = 4.0, -4.0, (z[60, 0] + z[61, 0]) / 2
    (first, test), (second, _) = band_of(x, x, z), band_of(moved_x, moved_y, moved_z)
    change = float(first["persons"]) - float(second["persons"])
    assert least <= change <= test.sensitivity(120)["persons"].bound


@pytest.mark.parametrize(
    ("test", "persons", "every"),
    [
        (jaxdp.BandGCM(epsilon=1.0), 300, False),
        (jaxdp.BandGCM(epsilon=1.0), 2000, True),
        (jaxdp.BandGCM(epsilon=0.1), 2000, False),
        (jaxdp.BandGCM(epsilon=1.0, variance="released"), 2000, False),
        (jaxdp.NoisyTableChi2(epsilon=1.0, levels=(3, 3)), 300, False),
        (jaxdp.NoisyTableChi2(epsilon=1.0, levels=(3, 3)), 2000, True),
        (jaxdp.NoisyTableChi2(epsilon=0.1, levels=(3, 3)), 2000, False),
    ],
)
def test_the_second_moment_is_released_where_public_numbers_promise_a_gain(test, persons, every):
    column = np.zeros((persons, DRAWS))
    z = None if isinstance(test, jaxdp.NoisyTableChi2) else column
    data = PersonRows(jaxdp.Data(column, column, z))
    assert bool(test.of_persons(data.shapes).by_person) == every
    assert float(core.cost_of(test, data).epsilon) <= float(test.epsilon) * (1 + 1e-12)
    assert isinstance(core.specialize(test, data), core.Sequential) == (every and z is None)
    assert test.every_row(data.shapes) == (every or z is not None)


def test_all_rows_of_persons_are_asked_about_given_levels():
    rng = np.random.default_rng(4)
    person = np.repeat(np.arange(1500), 3)
    table = {"who": person.astype(str), **{name: np.array(list("pqr"))[rng.integers(0, 3, 4500)] for name in "abz"}}
    columns = {name: {"kind": "categorical", "levels": list("pqr")} for name in "abz"}
    public = {"schema": {"unit": "who", "columns": columns}, "key": jax.random.key(1)}
    answer = jaxdp.test(table, x="a", y="b", given=["z"], epsilon=4.0, rows="all", **public)
    assert answer.method == "stratified-table"
    assert answer.content["n"] == 1500
    assert answer.p_value > 1e-3
    assert float(answer.cost.epsilon) == pytest.approx(4.0)


def test_where_noise_would_hide_the_spread_one_row_of_each_person_makes_the_table():
    rows, (_, x, y) = mixed_levels(200)
    rows = PersonRows(dataclasses.replace(rows.draws, z=None))
    test = core.specialize(jaxdp.NoisyTableChi2(epsilon=1.0, levels=(3, 4)), rows)
    found = core.exact_statistic(test, jax.random.key(0), rows)
    np.testing.assert_array_equal(found, np.histogram2d(x[:, 0], y[:, 0], (range(4), range(5)))[0])


def test_tests_that_do_not_average_refuse_before_they_read():
    rows = jaxdp.Schema.from_dict(UNITS).read(several(), x="v", y="w", draws=DRAWS)
    with pytest.raises(ValueError, match=r"kruskal-wallis takes one row of each person.*partition-gcm"):
        jaxdp.run(jaxdp.KruskalWallis(epsilon=1.0), jax.random.key(0), rows)
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
    assert "one of its rows, drawn at random" in table["unit"]  # of so few persons
    assert table["n"] == 60


def test_an_answer_by_a_table_of_many_persons_says_that_all_rows_count():
    how = {"x": "v", "y": "w", "epsilon": 1.0, "schema": UNITS, "key": jax.random.key(1)}
    content = jaxdp.test(several(2000, 9), **how).content
    assert (content["method"], content["n"]) == ("quantile-table", 2000)
    assert "counts once with all of its rows" in content["unit"]
    assert content["epsilon"] == 1.0
    low, high = content["interval"]
    assert low <= content["effect"] <= high
    assert high - low < 0.1  # of 2000 independent records 0.12


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
    counted = {"all": "once with all of its rows", "first": words}[rows]
    assert counted in ask(jaxdp.describe, several()).content["unit"]
    assert words in ask(jaxdp.discover, several(200)).note
