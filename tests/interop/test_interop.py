"""Adapters: one budget, repeats free, exhaustion as chosen, protocols. The real libraries: test_plugins.py."""

import copy
import math
import pickle
import re
import warnings

import jax
import numpy as np
import pytest
import scipy.stats

import jaxdp
from jaxdp import interop
from jaxdp._base.owner import OWNER, OwnerWarning
from jaxdp.accounting.ledger import BudgetExhausted, Ledger
from jaxdp.core import Cost, Relation
from jaxdp.data import networks
from jaxdp.data.records import as_records
from jaxdp.simulate.designs.networks import sample_network

TEST = jaxdp.ConditionalKendall(epsilon=5.0)


@pytest.fixture(scope="module")
def records():
    return sample_network(jax.random.key(3), networks.load("cancer"), 20_000)


def asked(records, **settings):
    return interop.PrivateQueries(TEST, records, key=jax.random.key(1), **settings)


def test_repeats_are_free_and_equal(records):
    queries = asked(records, epsilon=10.0)
    first = queries.p_value(2, 3, (0, 1))
    assert queries.p_value(3, 2, [1, 0, 1]) == first
    assert queries.by_name("Xray", "Cancer", ["Smoker", "Pollution"]) == first
    assert float(queries.spent.epsilon) == pytest.approx(5.0)
    row = queries.rows[0]
    assert (row.pair, row.given, row.epsilon, row.mode) == (
        ("Cancer", "Xray"),
        ("Pollution", "Smoker"),
        pytest.approx(5.0),
        "simulation",
    )


def test_p_values_below_the_range_of_float32_are_ordered_and_never_zero():
    """A search that compares p-values (which edge is the strongest) gets no ties at 0; the log says no `p = 0`."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 4000)
    strong, stronger = (np.where(rng.random(4000) < share, 1 - x, x) for share in (0.25, 0.2))
    table = np.stack([x, strong, stronger], axis=1)
    queries = asked(table, epsilon=10.0, levels=(2, 2, 2))
    assert 0.0 < queries.p_value(0, 2) < queries.p_value(0, 1) < 1e-46
    assert "p = 0 " not in queries.log()


BITS = np.stack([np.arange(2000) % 2, np.where(np.arange(2000) % 7, np.arange(2000) % 2, 0)], axis=1)


@pytest.mark.parametrize(
    ("table", "levels", "told"),
    [
        (BITS + 1, (2, 2), "1000 of 2000 cells of column 'v0' (and 1 more) are none of its codes 0 to 1"),
        (np.where(BITS > 0, 2.0, BITS), (2, 2), "1000 of 2000 cells of column 'v0' (and 1 more) are none of its"),
        (BITS + 0.5, (3, 3), "2000 of 2000 cells of column 'v0' (and 1 more) are none of its codes 0 to 2"),
        (jax.numpy.asarray(BITS * 1.0 + [0, 3]), (0, 0), "2000 of 2000 cells of column 'v1' are no numbers from -1 to"),
    ],
)
def test_arrays_in_another_coding_warn_their_owner_before_anything_is_paid(table, levels, told):
    """Codes 1 and 2 of two levels became one level: p was .78 where codes 0 and 1 give 3e-70, without a word."""
    with pytest.warns(OwnerWarning) as caught:
        asked(table, epsilon=10.0, levels=levels)
    assert [told in str(one.message) and OWNER in str(one.message) for one in caught] == [True]
    search = jaxdp.discovery.svt_pc if levels[0] else jaxdp.discovery.moment_pc
    with pytest.warns(OwnerWarning, match="cells of column"):
        search(jax.random.key(0), table, epsilon=1.0, levels=levels)


def test_arrays_in_their_coding_with_a_few_outliers_and_traced_ones_warn_nobody():
    few = BITS.copy()
    few[:20] = 7
    rounded = np.where(BITS > 0, np.float32(1.0000002), np.float32(-1.0000002))
    with warnings.catch_warnings():
        warnings.simplefilter("error", OwnerWarning)
        for table, levels in ((BITS, (2, 2)), (few, (2, 2)), (BITS * 1.0, (2, 2)), (rounded, (0, 0))):
            asked(table, epsilon=10.0, levels=levels)
        one = jax.jit(lambda values: as_records(values, (2, 2)).values.sum())
        assert one(BITS + 1) == jax.vmap(one)(BITS[None] + 1)[0] == (BITS + 1).sum()


@pytest.mark.parametrize(("policy", "p_value"), [("dependent", 0.0), ("independent", 1.0)])
def test_exhaustion_answers_as_chosen_in_advance(records, policy, p_value):
    queries = asked(records, epsilon=5.0, exhausted=policy)
    queries.p_value(2, 3)
    assert queries.p_value(0, 1) == p_value
    assert len(queries.rows) == 1
    assert float(queries.spent.epsilon) <= 5.0
    with pytest.raises(BudgetExhausted):
        asked(records, epsilon=4.0).p_value(0, 1)


@pytest.mark.parametrize(("policy", "count"), [("dependent", 73), ("independent", 10)])
def test_a_search_whose_budget_ran_out_says_how_many_answers_are_the_policy(records, policy, count):
    """Its graph said `complete` and the budget that was granted; print(queries) was the same before and after."""
    test = jaxdp.ConditionalKendall(epsilon=0.25)
    queries = interop.PrivateQueries(test, records, epsilon=0.6, exhausted=policy, key=jax.random.key(1))
    before = str(queries)
    assert "not asked" not in before
    graph = jaxdp.discovery.pc(jax.random.key(2), None, test=queries, level=0.01)
    assert graph.num_tests == count
    told = f"{count - 2} of {count} queries were not asked of the data, since the budget was spent: they count as "
    assert f"{told}{policy}." in graph.note
    assert told in str(graph).replace("\n", " ")
    assert told in graph._repr_html_()
    assert graph.to_dict()["complete"] is False
    assert told in graph.to_dict()["note"]
    assert "complete  no\n" in str(graph)
    assert graph.cost == queries.guarantee
    assert float(queries.spent.epsilon) == pytest.approx(0.5)
    assert sum(item.value is None for item in graph.decisions) == count - 2
    assert told in str(queries)
    assert f"{told}{policy}." in queries.log()
    assert len(queries.unasked) == count - 2


def test_a_search_within_its_budget_is_complete(records):
    queries = asked(records, epsilon=500.0, exhausted="dependent")
    graph = jaxdp.discovery.pc(jax.random.key(2), None, test=queries, level=0.01)
    assert graph.complete
    assert "not asked" not in f"{graph} {queries} {queries.log()}"
    assert graph.cost == queries.guarantee
    assert len(queries.rows) < 50


def test_queries_that_the_test_does_not_take_are_told_apart(records):
    queries = asked(records, epsilon=5.0, exhausted="dependent", max_given=0)
    queries.p_value(0, 1, (2,))
    assert queries.log() == (
        "1 of 1 query was not asked of the data, since the test does not take it: it counts as dependent."
    )
    queries.p_value(0, 1)
    queries.p_value(0, 2)
    queries.p_value(0, 3)
    assert queries.log().splitlines()[-1] == (
        "3 of 4 queries were not asked of the data, 1 since the test does not take it and 2 since the budget was "
        "spent: they count as dependent."
    )


@pytest.mark.parametrize(
    ("described", "told"),
    [
        ({"names": ("a", "a", "c")}, "two columns are called 'a': give each a name of its own"),
        ({"names": ("a", "b")}, "names must be 3 texts, one for each of levels, got 2"),
        ({"names": ("a", "b", 3)}, "names must be 3 texts, one for each of levels, got"),
        ({"names": "abc"}, "names must be 3 texts, one for each of levels, got"),
        ({"levels": (2, 2, 2.9)}, "levels must be whole numbers >= 0"),
        ({"levels": (2, 2, -3)}, "levels must be whole numbers >= 0"),
        ({"levels": (2, 2, True)}, "levels must be whole numbers >= 0"),
        ({"levels": (2, 2, math.nan)}, "levels must be whole numbers >= 0"),
        ({"levels": (2, 2, "3")}, "levels must be whole numbers >= 0"),
        ({"levels": 2}, "levels must be whole numbers >= 0"),
    ],
)
def test_names_and_levels_that_do_not_describe_the_columns_are_refused(described, told):
    """Two columns of one name were taken, and the first was asked; 2.9 levels were 2."""
    table = np.zeros((100, 3), int)
    with pytest.raises(ValueError, match=re.escape(told)) as refused:
        asked(table, epsilon=10.0, **({"levels": (2, 2, 2), "names": ("a", "b", "c")} | described))
    assert str(refused.value).count(".") - str(refused.value).count("2.9") == 1
    with pytest.raises(ValueError, match="give each a name of its own"):
        asked((table, [jaxdp.data.Column("binary", 2, "a")] * 3), epsilon=10.0)


def test_levels_may_be_whole_numbers_of_other_types():
    table = np.zeros((100, 3), int)
    levels = {"levels": np.array([2.0, 2.0, 0.0]), "names": np.array(["a", "b", "c"])}
    queries = asked(table, epsilon=10.0, max_given=0, **levels)
    assert queries.records.levels == (2, 2, 0)


def test_pgmpy_may_name_one_column_or_none_as_given(records):
    queries = asked(records, epsilon=20.0)
    ci_test = interop.pgmpy_ci_test(queries)
    ci_test("Cancer", "Xray", "Smoker")
    one = ci_test.p_value_
    ci_test("Cancer", "Xray", ["Smoker"])
    assert ci_test.p_value_ == one == queries.by_name("Cancer", "Xray", "Smoker")
    ci_test("Cancer", "Xray", None)
    assert ci_test.p_value_ == queries.by_name("Cancer", "Xray")
    assert len(queries.rows) == 2


def test_copies_share_the_budget_and_pickling_is_refused(records):
    queries = asked(records, epsilon=10.0)
    assert copy.deepcopy(interop.pgmpy_ci_test(queries)).queries is queries
    assert copy.copy(queries) is queries
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(queries)


def test_releases_are_charged_to_the_ledger(records, tmp_path):
    ledger = Ledger.create(str(tmp_path / "l.db"), epsilon=5.0)
    queries = interop.PrivateQueries(TEST, records, epsilon=100.0, ledger=ledger, exhausted="dependent")
    queries.p_value(2, 3)
    assert queries.p_value(0, 1) == 0.0
    assert float(ledger.spent.epsilon) == pytest.approx(5.0)
    assert float(queries.spent.epsilon) == pytest.approx(5.0)
    assert queries.rows[0].mode == "release"


def test_mistakes(records):
    for settings, message in (({}, "one of them"), ({"epsilon": 1.0, "budget": object()}, "one of them")):
        with pytest.raises(ValueError, match=message):
            asked(records, **settings)
    with pytest.raises(TypeError, match="private test"):
        interop.PrivateQueries(print, records, epsilon=1.0)
    with pytest.raises(TypeError, match=r"jaxdp.Ledger.open\(path\)"):
        asked(records, epsilon=1.0, ledger="study.db")
    with pytest.raises(ValueError, match="works once"):
        interop.PrivateQueries(TEST, records, epsilon=1.0, key=jaxdp.fresh_key())
    queries = asked(records, epsilon=5.0)
    for query in ((0, 0), (0, 1, (1,)), (0, 9)):
        with pytest.raises(ValueError, match="different columns"):
            queries.p_value(*query)
    with pytest.raises(ValueError, match="not among"):
        queries.by_name("Cancer", "zip")
    assert not queries.rows


def test_adapters_in_another_process_hold_nothing_and_say_so(records):
    queries = asked(records, epsilon=10.0)
    adapters = [
        interop.pgmpy_ci_test(queries),
        interop.dowhy_test(queries),
        interop.dodiscover_test(queries),
        interop.tigramite_test(queries),
    ]
    for adapter in adapters:
        assert copy.deepcopy(adapter) is adapter
        sent = pickle.dumps(adapter)
        assert len(sent) < 200
        with pytest.raises(RuntimeError, match=rf"{type(adapter).__name__} was sent to another process.*in_threads"):
            pickle.loads(sent)("Cancer", "Xray", ())


def test_a_stand_in_table_names_the_columns_and_holds_no_record(records):
    pytest.importorskip("pandas")
    queries = asked(records, epsilon=10.0)
    table, ask = interop.stand_in(queries), interop.dowhy_test(queries)
    assert list(table.columns) == list(queries.names)
    assert len(table.drop_duplicates()) == 1
    p_value = ask(table["Cancer"].values, table["Xray"].values, table[["Smoker", "Pollution"]].values)
    assert p_value == queries.by_name("Xray", "Cancer", ["Smoker", "Pollution"])
    assert ask(table["Cancer"].values, table[["Xray"]].values) == queries.by_name("Xray", "Cancer")
    assert len(queries.rows) == 2
    codes = np.asarray(records.values)
    for columns in ((codes[:, 0], codes[:, 1]), (codes[:8, 0], codes[:8, 1]), (np.full(8, 0.5), np.ones(8))):
        with pytest.raises(ValueError, match="stand_in"):
            ask(*columns)
    with pytest.raises(ValueError, match="two columns"):
        ask(table[["Cancer", "Xray"]].values, table["Smoker"].values)
    assert len(queries.rows) == 2


def test_dodiscover_asks_by_names(records):
    queries = asked(records, epsilon=10.0)
    ci_test = interop.dodiscover_test(queries)
    statistic, p_value = ci_test.test(None, {"Xray"}, {"Cancer"}, {"Smoker"})
    assert math.isnan(statistic)
    assert p_value == queries.by_name("Cancer", "Xray", ["Smoker"])
    assert ci_test.test(None, "Xray", "Cancer")[1] == queries.by_name("Cancer", "Xray")
    with pytest.raises(ValueError, match="two columns"):
        ci_test.test(None, {"Xray", "Smoker"}, {"Cancer"})


def test_tigramite_asks_without_lags(records):
    queries = asked(records, epsilon=10.0)
    ci_test = interop.tigramite_test(queries)
    score, p_value, dependent = ci_test.run_test([(2, 0)], [(3, 0)], [(0, 0)], alpha_or_thres=0.05)
    assert p_value == queries.p_value(2, 3, (0,))
    assert score == pytest.approx(scipy.stats.norm.isf(max(p_value, 1e-300) / 2))
    assert dependent == (p_value <= 0.05)
    assert ci_test.run_test([(2, 0)], [(3, 0)], [(0, 0)]) == (score, p_value)
    for lagged in (([(2, -1)], [(3, 0)], [], 0), ([(2, 0)], [(3, 0)], [(1, -2)], 0), ([(2, 0)], [(3, 0)], [], 2)):
        with pytest.raises(ValueError, match="no lags"):
            ci_test.run_test(*lagged)
    assert len(queries.rows) == 1


def test_the_log_says_what_was_asked_and_paid(records):
    queries = asked(records, epsilon=10.0)
    assert queries.log() == "nothing asked yet"
    queries.by_name("Xray", "Cancer", ["Smoker"])
    queries.by_name("Xray", "Cancer", "Smoker")  # one name, which was read as six letters
    queries.by_name("Pollution", "Smoker")
    first, second, total = queries.log().splitlines()
    assert "Cancer and Xray given Smoker  p = " in first
    assert first.endswith("epsilon 5, 5 so far")
    assert "Pollution and Smoker " in second
    assert second.endswith("epsilon 5, 10 so far")
    assert total.startswith("2 queries to conditional-kendall, epsilon=")
    assert total.endswith("NOT PRIVATE: simulation")


def test_events_need_costs_of_one_relation():
    event = interop.dp_event(Cost(epsilon=1.0), Cost(epsilon=np.inf, rho=0.5), Cost(epsilon=2.0, rho=0.1))
    kinds = [type(part).__name__ for part in event.events]
    assert kinds == ["RandomizedResponseDpEvent", "ZCDpEvent", "RandomizedResponseDpEvent"]
    assert event.events[0].noise_parameter == pytest.approx(2 / (1 + math.e))
    assert len(interop.dp_event(Cost(epsilon=np.array([1.0, 2.0]))).events) == 2
    with pytest.raises(ValueError, match="do not add up"):
        interop.dp_event(Cost(epsilon=1.0), Cost(epsilon=1.0, relation=Relation.ADD_OR_REMOVE_ONE))
    with pytest.raises(ValueError, match="not private"):
        interop.dp_event(Cost(epsilon=np.inf))
    alone = interop.dp_event(Cost(epsilon=np.inf, rho=0.5))
    assert [type(part).__name__ for part in alone.events] == ["ZCDpEvent", "RandomizedResponseDpEvent"]
    for wrong in ((1.0,), ()):
        with pytest.raises(TypeError, match="results, releases or costs"):
            interop.dp_event(*wrong)


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ADD_OR_REMOVE_ONE])
def test_an_accountant_of_another_relation_refuses_normal_noise(relation):
    rdp = pytest.importorskip("dp_accounting.rdp")
    from dp_accounting import NeighboringRelation, UnsupportedEventError
    from dp_accounting.dp_event import ZCDpEvent

    event = interop.dp_event(Cost(epsilon=np.inf, rho=0.1, relation=relation))
    for other in (NeighboringRelation.REPLACE_ONE, NeighboringRelation.ADD_OR_REMOVE_ONE):
        accountant = rdp.RdpAccountant(neighboring_relation=other)
        if other.name == relation.name:  # what carries the relation costs nothing
            plain = rdp.RdpAccountant(neighboring_relation=other).compose(ZCDpEvent(rho=0.1))
            assert accountant.compose(event).get_epsilon(1e-6) == plain.get_epsilon(1e-6)
        else:
            with pytest.raises(UnsupportedEventError):
                accountant.compose(event)


@pytest.mark.parametrize(
    "asked_for", [((0.7, 1.2), ()), (("0", "1"), ()), ((True, 0), ()), ((0, None), ()), ((0, 1), (2.5,))]
)
def test_a_column_is_a_whole_number_and_nothing_like_one(records, asked_for):
    """(0.7, 1.2) and ("0", "1") were answered, and paid for, as columns 0 and 1."""
    (x, y), given = asked_for
    queries = asked(records, epsilon=10.0)
    with pytest.raises(TypeError, match="a column is its position, a whole number from 0"):
        queries.p_value(x, y, given)
    assert float(queries.spent.epsilon) == 0.0
    assert queries.p_value(np.int64(0), 1.0) == queries.p_value(0, 1)


def test_a_ledger_that_another_process_empties_in_between_spends_no_budget(records, tmp_path, monkeypatch):
    """The budget in memory was charged first, and stayed charged for an answer that nobody got."""
    ledger = Ledger.create(tmp_path / "l.db", epsilon=6.0)
    queries = interop.PrivateQueries(TEST, records, epsilon=20.0, ledger=ledger, exhausted="independent")
    charge_it = Ledger.charge

    def another_first(self, *arguments, **more):
        charge_it(Ledger.open(tmp_path / "l.db"), "another", Cost(epsilon=5.0), jaxdp.fresh_key())
        return charge_it(self, *arguments, **more)

    monkeypatch.setattr(Ledger, "charge", another_first)
    assert queries.p_value(0, 1) == 1.0
    assert float(queries.spent.epsilon) == 0.0
    assert float(ledger.spent.epsilon) == 5.0
