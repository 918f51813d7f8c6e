"""Plug-ins in the real libraries, with their defaults: scripts/test-plugins makes their environment and runs this."""

import contextlib
import re
import warnings
from pathlib import Path

import jax
import networkx
import numpy as np
import pytest

import jaxdp
from jaxdp import interop
from jaxdp.data import networks
from jaxdp.simulate.designs.networks import sample_network

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]

TEST = jaxdp.ConditionalKendall(epsilon=5.0)
LEVEL = 0.01
PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "other_libraries.md"


@pytest.fixture(scope="module")
def records():
    return sample_network(jax.random.key(3), networks.load("cancer"), 20_000)


@pytest.fixture
def queries(records):
    return interop.PrivateQueries(TEST, records, key=jax.random.key(1), epsilon=500.0)


@pytest.fixture
def frame(records):
    import pandas

    return pandas.DataFrame(np.asarray(records.values), columns=list(records.names))


def ours(queries):
    """Our search on the same answers: it asks nothing new where the other search asked the same way."""
    return jaxdp.discovery.pc(jax.random.key(0), None, test=queries, level=LEVEL)


def skeleton(edges):
    return {frozenset(edge) for edge in edges}


def test_causal_learn_with_its_defaults(records):
    from causallearn.search.ConstraintBased.PC import pc

    interop.causal_learn_test("jaxdp-test")
    codes = np.asarray(records.values)
    settings = {"test": TEST, "columns": records.columns, "epsilon": 500.0, "key": jax.random.key(5)}
    graph = pc(codes, LEVEL, indep_test="jaxdp-test", **settings)
    spends = graph.test.queries.rows
    assert len(spends) == len({(row.pair, row.given) for row in spends}) > 5
    private = jaxdp.discovery.pc(jax.random.key(0), records, test=graph.test, level=LEVEL)
    assert np.array_equal(np.asarray(graph.G.graph) != 0, private.skeleton)
    assert len(graph.test.queries.rows) == len(spends)  # our search asked nothing new
    with pytest.raises(ValueError, match="cache"):
        type(graph.test)(codes, "cache.json", test=TEST, columns=records.columns, epsilon=1.0)


def test_causal_learn_runs_fci_on_the_same_answers(records, queries):
    from causallearn.search.ConstraintBased.FCI import fci

    interop.causal_learn_test("jaxdp-fci")
    found, _ = fci(np.asarray(records.values), "jaxdp-fci", LEVEL, queries=queries, show_progress=False)
    assert np.array_equal(np.asarray(found.graph) != 0, ours(queries).skeleton)


def test_pgmpy_with_its_defaults(queries, frame):
    from pgmpy.causal_discovery import PC

    found = PC(ci_test=interop.pgmpy_ci_test(queries), significance_level=LEVEL, show_progress=False).fit(frame)
    paid = len(queries.rows)
    assert skeleton(found.causal_graph_.edges()) == skeleton(ours(queries).edges)
    assert len(queries.rows) == paid > 5


def test_the_older_search_of_pgmpy_says_how_and_runs_in_threads(queries, frame):
    from pgmpy.estimators import PC

    search, ci_test = PC(frame), interop.pgmpy_ci_test(queries)
    with pytest.raises(RuntimeError, match=r"sent to another process.*in_threads"):
        search.estimate(ci_test=ci_test, significance_level=LEVEL, n_jobs=2)
    assert not queries.rows
    with interop.in_threads():
        found = search.estimate(ci_test=ci_test, significance_level=LEVEL)
    assert skeleton(found.edges()) == skeleton(ours(queries).edges)


@pytest.mark.parametrize("threads", [False, True])
def test_dowhy_falsifies_a_graph(queries, threads):
    from dowhy.gcm.falsify import FalsifyConst, validate_lmc

    graph = networkx.DiGraph(
        [("Pollution", "Cancer"), ("Smoker", "Cancer"), ("Cancer", "Xray"), ("Cancer", "Dyspnoea")]
    )
    ask, table = interop.dowhy_test(queries), interop.stand_in(queries)
    tests = {"independence_test": ask, "conditional_independence_test": ask, "significance_level": LEVEL}
    if threads:
        with pytest.raises(RuntimeError, match=r"sent to another process.*in_threads"):
            validate_lmc(graph, table, **tests, include_unconditional=True, n_jobs=2)
        assert not queries.rows
    with interop.in_threads() if threads else contextlib.nullcontext():
        found = validate_lmc(graph, table, **tests, include_unconditional=True, n_jobs=2 if threads else 1)
    asked = {(frozenset(row.pair), frozenset(row.given)) for row in queries.rows}
    assert (frozenset({"Xray", "Dyspnoea"}), frozenset({"Cancer"})) in asked
    assert found[FalsifyConst.N_TESTS] >= len(asked) > 5
    below = sum(row.p_value <= LEVEL for row in queries.rows)
    assert (found[FalsifyConst.N_VIOLATIONS] == 0) == (below == 0)


def test_tigramite_searches_a_table_without_time(queries):
    from tigramite.data_processing import DataFrame
    from tigramite.pcmci import PCMCI

    table = DataFrame(interop.stand_in(queries).to_numpy(), var_names=list(queries.names))
    search = PCMCI(table, cond_ind_test=interop.tigramite_test(queries))
    found = search.run_pcalg_non_timeseries_data(pc_alpha=LEVEL)
    marks = found["graph"].reshape(5, 5)
    assert np.array_equal(marks != "", ours(queries).skeleton)
    paid = len(queries.rows)
    assert paid > 5
    with pytest.raises(ValueError, match="no lags"):
        search.run_pcmci(tau_max=1)
    assert len(queries.rows) == paid


def test_a_measurement_of_opendp_releases_and_is_charged():
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    x = np.linspace(-1.0, 1.0, 200)
    data = jaxdp.Data(x, x)
    measurement = interop.opendp_measurement(jaxdp.PartitionGCM(epsilon=0.5), data)
    result = measurement(data)
    assert result.mode == "release"
    assert float(result.cost.epsilon) == measurement.map(1) == 0.5
    assert 1.5 <= measurement.map(3) <= 1.5 + 1e-12
    with pytest.raises(dp.OpenDPException, match="form that the measurement was made for"):
        measurement(jaxdp.Data(x[:10], x[:10]))
    concentrated = interop.opendp_measurement(jaxdp.PartitionGCM(mechanism=jaxdp.Gaussian(rho=0.125)), data)
    assert 0.5 <= concentrated.map(2) <= 0.5 + 1e-12
    space = measurement.input_domain, measurement.input_metric
    queryable = dp.c.make_adaptive_composition(*space, dp.max_divergence(), d_in=1, d_mids=[0.5, 0.5])(data)
    first, second = queryable(measurement), queryable(measurement)
    assert first.p_value != second.p_value
    with pytest.raises(dp.OpenDPException, match="out of queries"):
        queryable(measurement)


def test_events_of_dp_accounting_cost_no_less():
    from dp_accounting import NeighboringRelation, rdp

    x = np.linspace(-1.0, 1.0, 200)
    result = jaxdp.run(jaxdp.PartitionGCM(epsilon=0.5), jax.random.key(0), jaxdp.Data(x, x))
    accountant = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    accountant.compose(interop.dp_event(*[result] * 50))
    together = accountant.get_epsilon(1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = jaxdp.accounting.optimal_epsilon(0.5, 50, 1e-6)
    assert exact <= together < 25.0


def test_every_block_of_the_page_runs():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.S | re.M)
    assert {"dowhy", "tigramite", "opendp", "pgmpy", "causallearn"} <= set(
        re.findall(r"(?:from|import) (\w+)", "".join(blocks))
    )
    names = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
