"""A test that does not condition on Z answers no question given Z, whoever asks; none answers what it does not fit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import catalogue
from jaxdp._base.pytree import frozen_pytree
from jaxdp.cli.main import main
from jaxdp.core import Norm, PrivateTest, Relation, Sensitivity
from jaxdp.data.records import Records
from jaxdp.examples import Example
from jaxdp.independence.recommended import Recommended
from jaxdp.interop import PrivateQueries
from jaxdp.simulate import examples
from jaxdp.spec import TestSpec

GENERATOR = np.random.default_rng(0)
Z = GENERATOR.uniform(-1, 1, 300)
TABLE = {
    "x": np.clip(Z + 0.1 * GENERATOR.normal(size=300), -1, 1),
    "y": np.clip(Z + 0.1 * GENERATOR.normal(size=300), -1, 1),
    "z": Z,
    "of_three": GENERATOR.choice(["a", "b", "c"], 300),
}
KNOWN = {"bounds": dict.fromkeys("xyz", (-1, 1)), "levels": {"of_three": ["a", "b", "c"]}}
BLIND = ["micr-laplace", "mice-laplace", "micr-geometric", "subsample-aggregate", "quantile-table"]


class Unpaid:
    """An account of which nothing may be asked."""

    def require(self, *arguments):
        raise AssertionError("the account was asked")

    charge = require


@pytest.mark.parametrize("method", BLIND)
def test_calls_refuse_before_the_charge(method):
    how = {"given": "z", "epsilon": 1.0, "method": method, "ledger": Unpaid(), **KNOWN}
    with pytest.raises(ValueError, match="whether x and y are independent given z: leave them out, or use another"):
        jaxdp.test(TABLE, x="x", y="y", **how)
    with pytest.raises(ValueError, match="does not condition on other columns"):
        jaxdp.test_pairs(TABLE, columns=["x", "y"], **how)


ON_A_LINE = "numbers, ordered levels or two levels"


@pytest.mark.parametrize(
    ("method", "x", "taken"),
    [
        ("test-of-tests", "of_three", f"x of {ON_A_LINE} and y of {ON_A_LINE}."),
        ("score-test", "x", f"x of ordered levels or two levels and y of {ON_A_LINE}."),
        ("noisy-table", "x", "x of levels and y of levels."),
        ("stratified-table", "x", "x of levels and y of levels given levels."),
        ("contrast-gcm", "x", "x of any kind and y of any kind given several columns of numbers."),
    ],
)
def test_columns_that_a_test_does_not_fit(method, x, taken):
    asked = f"{method} cannot test whether {x} and y are independent: it takes {taken} {x} has .* Use another method"
    with pytest.raises(ValueError, match=asked):
        jaxdp.test(TABLE, x=x, y="y", epsilon=1.0, method=method, ledger=Unpaid(), **KNOWN)


def test_a_test_given_other_columns_wants_some():
    with pytest.raises(ValueError, match="is a test given other columns"):
        jaxdp.test(TABLE, x="x", y="y", epsilon=1.0, method="band-gcm", ledger=Unpaid(), **KNOWN)


@pytest.mark.parametrize("method", BLIND)
def test_runs_and_queries_of_other_libraries_refuse(method):
    test = catalogue.find(method).build(1.0)
    data = jaxdp.Data(*(TABLE[name] for name in "xyz"))
    for key in (jax.random.key(0), jaxdp.fresh_key()):
        with pytest.raises(ValueError, match="does not use z, so it cannot test"):
            jaxdp.run(test, key, data)
    values = np.stack([TABLE[name] for name in "xyz"], axis=1), [0, 0, 0]
    with pytest.raises(ValueError, match=r"does not condition on other columns.*max_given=0"):
        PrivateQueries(test, values[0], levels=values[1], epsilon=2.0)
    queries = PrivateQueries(test, values[0], levels=values[1], epsilon=2.0, exhausted="dependent")
    assert queries.p_value(0, 1, (2,)) == 0.0  # as chosen, and free
    assert float(queries.spent.epsilon) == 0.0


def test_simulations_refuse(tmp_path, capsys):
    asked = ["--method", "micr-laplace", "--design", "shah-peters", "--n", "100", "--epsilon", "1", "--effect", "0"]
    assert main(["simulate", *asked, "--replicates", "8", "--out", str(tmp_path)]) == 2
    assert "does not use z" in capsys.readouterr().err


@frozen_pytree
class Blind(PrivateTest):
    """A made-up test whose statistic does not see z."""

    spec = TestSpec(
        name="blind",
        summary="made up",
        accepts=lambda domain: not domain.z,
        examples=(Example(examples.continuous, attack_tightness=1.0),),
    )

    def mechanism_in_force(self):
        return jaxdp.Laplace(self.epsilon)

    def statistic(self, key, data):
        return jnp.sum(jnp.clip(data.x * data.y, -1.0, 1.0))

    def sensitivity(self, num_records):
        return Sensitivity(2.0, Norm.L1, Relation.REPLACE_ONE, 1e-9, -1.0 * num_records, 1.0 * num_records)

    def p_value(self, key, release):
        return self.mechanism_in_force().null_p_value(release.value, 10.0, release.sensitivity)


@frozen_pytree
class SaysThatItSees(Blind):
    """The same, which says that it conditions on z."""

    uses_z = True


def test_a_test_of_ones_own():
    entry = catalogue.Entry(Blind.spec, Blind)
    with pytest.raises(ValueError, match="blind does not condition on other columns"):
        entry.build(1.0, jaxdp.data.Domain((jaxdp.data.Column(),), (jaxdp.data.Column(),), (jaxdp.data.Column(),)))
    with pytest.raises(ValueError, match=r"blind does not use z.*uses_z = True in its class"):
        jaxdp.run(Blind(epsilon=1.0), jax.random.key(0), examples.continuous(jax.random.key(1), 50))


@pytest.mark.full
def test_the_contract_finds_a_test_that_ignores_z(some_checks):
    broken = [f for f in some_checks(SaysThatItSees, "z").findings if f.wrong]
    assert [f.wrong for f in broken] == ["it says uses_z, and another z changes nothing"]


def mixed():
    """Two continuous columns, two coded ones, and an unordered one."""
    coded = np.column_stack([Z > 0, GENERATOR.integers(0, 2, 300)])
    values = np.column_stack([TABLE["x"], Z, coded, GENERATOR.integers(0, 3, 300)])
    return Records(
        values.astype(np.float32),
        tuple(
            jaxdp.data.Column(kind, levels, name)
            for kind, levels, name in zip(
                ["continuous", "continuous", "binary", "binary", "categorical"], [0, 0, 2, 2, 3], "abcde", strict=True
            )
        ),
    )


def test_a_search_refuses_a_test_that_does_not_fit_its_columns_before_it_pays():
    band, kendall = jaxdp.BandGCM(epsilon=0.5), jaxdp.ConditionalKendall(epsilon=0.5)
    for test, told in (
        (
            band,
            "band-gcm takes no query about a and b alone, which it tests given other columns only: take Recommended",
        ),
        (
            kendall,
            "conditional-kendall takes no query about a and e alone, columns that it is not made for: take Recommend",
        ),
    ):
        with pytest.raises(ValueError, match=told):
            jaxdp.discovery.pc(jax.random.key(0), mixed(), test=test, max_tests=50, max_order=1, ledger=Unpaid())
    with pytest.raises(ValueError, match="conditional-kendall takes no query about a and e alone"):
        PrivateQueries(kendall, mixed(), epsilon=2.0)
    with pytest.raises(
        ValueError, match=r"band-gcm takes no query .* given more than 1 of the other columns: give max"
    ):
        PrivateQueries(band, mixed(), epsilon=2.0)


def test_queries_that_a_test_does_not_fit_are_free():
    band = jaxdp.BandGCM(epsilon=0.5)
    queries = PrivateQueries(band, mixed(), epsilon=2.0, max_given=1, key=jax.random.key(3))
    with pytest.raises(ValueError, match="band-gcm takes no query about a and b alone"):
        queries.by_name("a", "b")
    assert float(queries.spent.epsilon) == 0.0
    queries.by_name("a", "c", ["b"])
    assert float(queries.spent.epsilon) == 0.5
    chosen = PrivateQueries(band, mixed(), epsilon=2.0, exhausted="dependent", key=jax.random.key(3))
    assert chosen.by_name("a", "b") == 0.0
    assert float(chosen.spent.epsilon) == 0.0


def test_the_recommended_test_answers_every_query_of_a_search():
    graph = jaxdp.discovery.pc(jax.random.key(0), mixed(), test=Recommended(epsilon=20.0), max_tests=60, max_order=1)
    assert graph.complete
    assert any(decision.given for decision in graph.decisions)
