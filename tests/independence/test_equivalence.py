"""Two one-sided tests of one release: is the effect surely smaller than a margin?"""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp import catalogue, core
from jaxdp.ask import effects
from jaxdp.ask.independence import Query
from jaxdp.cli.main import main
from jaxdp.data.dataset import BINARY, Column, Data, Domain
from jaxdp.independence import effect_sizes
from jaxdp.independence.equivalence import equivalence, takes_margins

GROUPS = Domain((Column(),), (Column(BINARY, 2),))
LINE = Domain((Column(),), (Column(),))
KNOWN = {"bounds": {"dose": (-4, 4), "other": (-4, 4)}, "levels": {"group": [0, 1], "site": ["a", "b", "c"]}}
WITH_PIVOT = {"mean-difference": GROUPS, "linear-regression": LINE, "partial-correlation": LINE}
SURVIVAL = {"days": {"kind": "continuous", "bounds": [0, 10]}, "died": {"kind": "binary", "levels": [0, 1]}}
SURVIVAL |= {"arm": {"kind": "binary", "levels": [0, 1]}}


def table(difference=0.0, size=2000):
    rng = np.random.default_rng(1)
    group = rng.integers(0, 2, size)
    dose = np.clip(difference * group + rng.normal(size=size), -4, 4)
    site = np.array(["a", "b", "c"])[rng.integers(0, 3, size)]
    return {"group": group, "dose": dose, "other": np.clip(rng.normal(size=size), -4, 4), "site": site}


def asked(margin, method="t-test", difference=0.0, **more):
    how = {"x": "group", "y": "dose", "epsilon": 4.0, "key": jax.random.key(3), **KNOWN, **more}
    return jaxdp.test(table(difference), method=method, margin=margin, **how)


def released(name, key, n=800, slope=0.1):
    """(test, shapes, release, result) of made-up data."""
    domain = WITH_PIVOT[name]
    keys = jax.random.split(key, 3)
    x = jax.random.uniform(keys[0], (n,), minval=-1.0)
    y = (jax.random.uniform(keys[1], (n,)) < 0.4) * 1.0 if domain is GROUPS else 0.3 * jax.random.normal(keys[1], (n,))
    x = x * 0.7 + slope * y
    data = Data(jnp.clip(x, -1, 1), jnp.clip(y, -1, 1), None, domain)
    test = catalogue.find(name).build(2.0, domain)
    result = core.run(test, keys[2], data)
    return test, core.public_shapes(data), result.release, result


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "mean-difference" else pytest.mark.full) for n in WITH_PIVOT]
)
def test_the_one_sided_tests_are_of_the_pivot_of_the_interval(name):
    with jax.enable_x64(True):
        test, shapes, release, result = released(name, jax.random.key(0))
        at = jax.jit(functools.partial(test.one_sided, shapes, release))
        for end, place in zip(result.interval, (0, 1), strict=True):
            assert float(at(float(end))[place]) == pytest.approx(0.025, abs=2e-5)  # one side of a 95 % interval
        low, high = map(float, at(0.0))
        assert low + high == pytest.approx(1.0)
        assert 2.0 * min(low, high) == pytest.approx(float(result.p_value), rel=1e-6)
        grid = [float(at(float(place))[0]) for place in np.linspace(-0.6, 0.6, 7)]
        assert grid == sorted(grid)  # "at most this" is the more credible, the larger this is


def test_the_p_value_is_that_of_the_worse_side():
    with jax.enable_x64(True):
        test, shapes, release, _ = released("mean-difference", jax.random.key(0))
        wide, narrow = (equivalence(test, shapes, release, margin) for margin in (0.8, 0.02))
        assert wide.p_value < 1e-3 < 0.05 < narrow.p_value
        assert wide.p_value == max(wide.above, wide.below)
        assert wide.above == float(test.one_sided(shapes, release, -0.8)[0])
        assert wide.below == float(test.one_sided(shapes, release, 0.8)[1])


@pytest.mark.optimised
@pytest.mark.full
def test_the_level_at_the_margin():
    """Lognormal responses, shifted by the margin in one group, within the bounds for nearly all."""
    n, half, margin, runs = 1000, 6.0, 0.3 / 6.0, 1000
    test = jaxdp.MeanDifference(epsilon=2.0)

    def run(key):
        keys = jax.random.split(key, 3)
        group = jax.random.bernoulli(keys[0], 0.5, (n,))
        response = jnp.exp(0.5 * jax.random.normal(keys[1], (n,))) + 0.3 * group
        data = Data(response / half - 1.0, 1.0 * group, None, GROUPS)
        release = core.run(test, keys[2], data).release
        shapes = core.public_shapes(data)
        return [
            jnp.maximum(test.one_sided(shapes, release, -m)[0], test.one_sided(shapes, release, m)[1])
            for m in (margin, 4 * margin)
        ]

    at, wide = jax.lax.map(run, jax.random.split(jax.random.key(4), runs), batch_size=50)
    assert stats.binomtest(int((at <= 0.05).sum()), runs, 0.05, alternative="greater").pvalue > 1e-3
    assert (at <= 0.05).mean() > 0.01  # a test that never says it would pass the line above
    assert (wide <= 0.05).mean() > 0.95


def test_a_group_too_small_for_an_interval_is_not_equivalent():
    data = Data(jnp.zeros(100), jnp.zeros(100), None, GROUPS)
    test = jaxdp.MeanDifference(epsilon=0.1)
    with jax.enable_x64(True):
        result = core.run(test, jax.random.key(1), data)
        shapes = core.public_shapes(data)
        assert np.isnan(float(result.interval[0]))
        assert equivalence(test, shapes, result.release, 2.0).p_value == 1.0


def test_the_answer_says_that_the_difference_is_small():
    answer = asked(0.5)
    found = answer.content["equivalence"]
    assert found["margin"] == 0.5
    assert found["found"]
    assert found["p_value"] == max(found["above"], found["below"]) < 0.05
    told = f"The difference of the means is less than 0.5 in size (p = {found['p_value']:.3g})"
    assert told in found["sentence"]
    assert any(told in sentence for sentence in answer.sentences())
    assert told in answer._repr_html_()
    same = asked(None)
    assert "equivalence" not in same.content
    for name in ("p_value", "effect", "interval", "epsilon"):  # the same release, at no further cost
        assert same.content[name] == answer.content[name]


@pytest.mark.parametrize("margin", [0.06, 0.09, 0.5])
def test_the_verdict_is_told_with_the_interval_that_decides_about_it(margin):
    """0.09 lies within the 95 % interval, which alone was shown, and beyond the one of 90 %."""
    answer = asked(margin)
    found, outer = answer.content["equivalence"], answer.interval
    low, high = found["interval"]
    assert found["coverage"] == pytest.approx(0.9)
    assert outer[0] < low < high < outer[1]
    assert (-margin <= low) and (high <= margin) if found["found"] else (low < -margin or high > margin)
    lies = "lies" if found["found"] else "does not lie"
    told = f"its 90 % interval, {low:.3g} to {high:.3g}, {lies} between -{margin:g} and {margin:g}"
    assert told in found["sentence"]
    drawn = effects.drawn(answer.content, 0.0)
    assert drawn.inner == (low, high, found["coverage"])


def test_a_one_sided_p_value_does_not_fall_where_a_margin_is_wider():
    """Of a pivot whose p-values rise again beyond 1; of hazard ratios .08 of releases had such."""

    def of_pivot(effect):
        at_least = jnp.where(effect > 1.0, 0.3, jnp.where(effect > 0.5, 0.01, 0.5))
        return 1.0 - at_least, at_least

    at = [effect_sizes.credible(of_pivot, effect, 3.0, jnp.asarray(False)) for effect in (0.0, 0.7, 2.0)]
    assert [float(at_least) for _, at_least in at] == pytest.approx([0.5, 0.3, 0.3])
    assert [float(at_most) for at_most, _ in at] == pytest.approx([0.5, 0.99, 0.99])
    assert list(map(float, effect_sizes.credible(of_pivot, 0.7, 3.0, jnp.asarray(True)))) == [1.0, 1.0]


def test_the_answer_does_not_say_so_of_a_difference_beyond_the_margin():
    found = asked(0.5, difference=1.0).content["equivalence"]
    assert not found["found"]
    assert (
        "It is not shown at level 0.05 that the difference of the means is less than 0.5 in size" in found["sentence"]
    )
    assert found["above"] < 1e-3  # above -0.5 alone, as for non-inferiority
    assert "above -0.5 with p = " in found["sentence"]


def test_the_margin_is_in_the_units_of_the_effect():
    tens = {**table(), "dose": 10.0 * table()["dose"]}
    one = asked(0.3).content["equivalence"]
    wide = {"bounds": {"dose": (-40, 40)}, "levels": {"group": [0, 1]}}
    how = {"x": "group", "y": "dose", "epsilon": 4.0, "key": jax.random.key(3), "method": "t-test"}
    ten = jaxdp.test(tens, margin=3.0, **how, **wide).content["equivalence"]
    assert ten["p_value"] == pytest.approx(one["p_value"], rel=1e-6)


def test_a_margin_of_ranks_is_a_distance_from_one_half():
    found = asked(0.2, "mann-whitney").content["equivalence"]
    assert found["found"]
    assert "lies above one of the other is less than 0.2 away from 0.5 (p" in found["sentence"]
    assert "above 0.3 with p" in found["sentence"]
    assert "below 0.7 with p" in found["sentence"]
    assert not asked(0.2, "mann-whitney", difference=1.5).content["equivalence"]["found"]


def test_the_one_sided_tests_of_ranks_are_of_the_pivot_of_the_interval():
    rng = np.random.default_rng(2)
    group = rng.integers(0, 2, 500)
    coded = Domain((Column(BINARY, 2),), (Column(),))
    data = Data(group, np.clip(0.2 * rng.normal(size=500) + 0.1 * group, -1, 1), None, coded)
    test = jaxdp.KruskalWallis(epsilon=1.0)
    with jax.enable_x64(True):
        result = core.run(test, jax.random.key(0), data)
        at = functools.partial(test.one_sided, core.public_shapes(data), result.release)
        for end, place in zip(result.interval, (0, 1), strict=True):
            assert float(at(float(end))[place]) == pytest.approx(0.025, abs=2e-4)
        low, high = map(float, at(0.5))
        assert low + high == pytest.approx(1.0)
        grid = [float(at(place)[0]) for place in np.linspace(0.2, 0.9, 8)]
        assert grid == sorted(grid)


def trial(size=3000, ratio=1.0):
    rng = np.random.default_rng(4)
    arm = rng.integers(0, 2, size)
    time, end = rng.exponential(6.0 / ratio**arm), rng.exponential(12.0, size)
    return {"arm": arm, "days": np.minimum(np.minimum(time, end), 10.0), "died": (time <= np.minimum(end, 10.0)) * 1}


def test_a_margin_of_a_hazard_ratio():
    how = {"x": "arm", "y": ["days", "died"], "epsilon": 2.0, "method": "log-rank"}
    how |= {"schema": jaxdp.Schema.from_dict({"columns": SURVIVAL})}
    near, far = (jaxdp.test(trial(ratio=ratio), margin=0.4, key=jax.random.key(1), **how) for ratio in (1.0, 2.0))
    assert near.content["equivalence"]["found"]
    assert not far.content["equivalence"]["found"]
    low, high = near.interval
    with jax.enable_x64(True):
        data = how["schema"].read(trial(), x="arm", y=how["y"], codes=True)
        at = functools.partial(near.test.one_sided, core.public_shapes(data), near.release)
        for end, place in ((low, 0), (high, 1)):
            assert float(at(end)[place]) == pytest.approx(0.025, abs=2e-5)


class Refusing:
    """An account that must not be charged."""

    def require(self, cost):
        raise AssertionError("asked for money")

    charge = require


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ({"method": "quantile-table"}, "quantile-table has no p-value for a margin.* or mean-difference or"),
        ({"method": "winsorised-mean-difference"}, "winsorised-mean-difference has no p-value for a margin"),
        ({"method": None}, "quantile-table has no p-value for a margin"),
        ({"margin": 0.0}, "margin must be a finite number > 0"),
        ({"margin": -1.0}, "margin must be a finite number > 0"),
        ({"margin": float("nan")}, "margin must be a finite number > 0"),
        ({"method": "mann-whitney", "margin": 0.5}, "margin must be below 0.5, got 0.5"),
        ({"method": "mean-difference", "margin": 1e3}, "margin must be below .*, got 1000: no effect"),
        ({"method": "linear-regression", "margin": 1e3}, "margin must be below .*, got 1000: no effect"),
        ({"method": "partial-correlation", "margin": 1.5}, "margin must be below 1, got 1.5"),
        ({"margin": float("inf")}, "margin must be a finite number > 0"),
        ({"x": "site", "method": "linear-regression"}, "a margin is about one effect"),
        (
            {"x": "site", "method": "kruskal-wallis"},
            "a margin is about one effect, and kruskal-wallis has none or several for",
        ),
        ({"x": ["dose", "group"], "y": "other", "method": "linear-regression"}, "a margin is about one effect"),
    ],
)
def test_a_margin_that_has_no_meaning_is_refused_before_anything_is_charged(said, what):
    how = {"x": "group", "y": "dose", "method": "t-test", "margin": 0.5, **said}
    with pytest.raises(ValueError, match=what):
        jaxdp.test(table(), epsilon=1.0, ledger=Refusing(), **KNOWN, **how)
    with pytest.raises(TypeError, match="margin must be one number"):
        jaxdp.test(
            table(),
            epsilon=1.0,
            ledger=Refusing(),
            **KNOWN,
            **{**how, "x": "group", "y": "dose", "margin": "two", "method": "t-test"},
        )


def test_tests_with_a_pivot_say_so_by_defining_it():
    declared = {entry.name for entry in catalogue.entries().values() if takes_margins(entry.cls)}
    assert declared >= set(WITH_PIVOT)
    assert all(catalogue.find(name).spec.effect for name in declared)
    assert jaxdp.PrivateTest.one_sided(None, None, None, 0.0) is None


def test_the_command_line(tmp_path, capsys):
    columns = {name: values for name, values in table(size=600).items() if name != "site"}
    rows = zip(*columns.values(), strict=True)
    (tmp_path / "d.csv").write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    schema = '[columns.group]\nkind = "binary"\nlevels = ["0", "1"]\n'
    schema += "".join(f'[columns.{name}]\nkind = "continuous"\nbounds = [-4, 4]\n' for name in ("dose", "other"))
    (tmp_path / "s.toml").write_text(schema)
    files = [str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out")]
    how = ["--epsilon", "4", "--margin", "1", "--seed", "1"]
    assert main(["test", *files, "--x", "group", "--y", "dose", "--method", "t-test", *how]) == 0
    assert "  margin     The difference of the means is less than 1 in size (p = " in capsys.readouterr().out
    content = json.loads((tmp_path / "out" / "result.json").read_text())
    assert content["equivalence"]["found"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "The difference of the means is less than 1 in size" in page
    assert main(["test", *files, "--all-pairs", *how, "--overwrite"]) != 0
    assert "--margin goes with --x and --y" in capsys.readouterr().err


def test_the_query_keeps_the_margin_as_a_number():
    from jaxdp.data.schema import Schema

    schema = Schema.from_dict(
        {"columns": {"g": {"kind": "binary", "levels": [0, 1]}, "v": {"kind": "continuous", "bounds": [0, 9]}}}
    )
    query = Query.of(schema, x="g", y="v", epsilon=1.0, method="t-test", margin=1)
    assert query.margin == 1.0
    assert isinstance(query.margin, float)
