"""Comparators, budgets inside searches, separating sets of em_pc, rank-permutation tests on mixed columns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import discovery, interop, published
from jaxdp.accounting.convert import subsampled_gaussian_multiplier
from jaxdp.accounting.optimal import optimal_epsilon
from jaxdp.data import networks
from jaxdp.data.dataset import CATEGORICAL, Column
from jaxdp.data.records import Records, as_records
from jaxdp.discovery.engine.counts import Counts
from jaxdp.discovery.engine.decision_query import default_query
from jaxdp.discovery.engine.skeleton import find_skeleton
from jaxdp.discovery.methods import em_pc
from jaxdp.noise.source import FloatNoise
from jaxdp.published.curate import order_budgets
from jaxdp.simulate.designs.networks import sample_network


@pytest.fixture(scope="module")
def cancer():
    return sample_network(jax.random.key(0), networks.load("cancer"), 20_000)


@pytest.fixture(scope="module")
def collider():
    """a -> c <- b, d independent."""
    rng = np.random.default_rng(4)
    a, b, d = rng.integers(0, 2, (3, 20_000))
    c = np.where(rng.random(20_000) < 0.15, rng.integers(0, 2, 20_000), a | b)
    return as_records(np.stack([a, b, c, d], axis=1), (2, 2, 2, 2), ("a", "b", "c", "d"))


def exact_skeleton(records, max_order):
    counts, query = Counts(records), default_query(4.0, records.num_records)

    def ask(queries):
        return list(query.values(counts, queries) >= 0)

    return find_skeleton(len(records.columns), ask, max_order=max_order, batched=True).adjacency


@pytest.mark.parametrize("total", [0.5, 3.0, 40.0])
def test_order_budgets_minimise_the_weighted_error(total):
    from scipy.optimize import minimize

    queries, weights, margin = [28.0, 30.0, 12.0], [3.0, 2.0, 1.0], 20.0
    found = order_budgets(total, queries, weights, margin)

    def error(e):
        return np.sum(np.array(weights) * queries * np.exp(-margin * np.array(e)))

    assert np.dot(found, queries) == pytest.approx(total, rel=1e-12)
    best = minimize(
        error,
        np.full(3, total / sum(queries)),
        bounds=[(0, None)] * 3,
        constraints={"type": "eq", "fun": lambda e: np.dot(e, queries) - total},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert error(found) <= best.fun * (1 + 1e-6)


def test_adaptive_budgets_stay_within_the_total_and_reach_the_exact_search(cancer):
    graph = published.adaptive_pc(jax.random.key(1), cancer, epsilon=1.0)
    spent = [item.epsilon for item in graph.decisions]
    assert sum(spent) <= 1.0
    assert len(set(spent)) > 1  # budgets differ between orders
    assert float(graph.cost.epsilon) == 1.0
    sure = published.adaptive_pc(jax.random.key(1), cancer, epsilon=1e6)
    assert np.array_equal(sure.skeleton, exact_skeleton(cancer, 2))


def test_adaptive_pc_releases_and_charges(cancer, tmp_path):
    ledger = jaxdp.Ledger.create(str(tmp_path / "l.db"), epsilon=2.0)
    few = as_records(np.asarray(cancer.values)[:2000, :3], (2, 2, 2))
    graph = published.adaptive_pc(jaxdp.fresh_key(), few, epsilon=2.0, ledger=ledger)
    assert graph.mode == "release"
    assert float(ledger.spent.epsilon) == pytest.approx(2.0)


def test_sub_sampled_gaussian_noise_is_what_the_accountant_allows(cancer):
    from dp_accounting import dp_event, privacy_accountant, rdp

    noise = subsampled_gaussian_multiplier(1.0, 1e-6, num_records=20_000, subset=20_000, rounds=50)

    def spent(multiplier):
        accountant = rdp.RdpAccountant(neighboring_relation=privacy_accountant.NeighboringRelation.REPLACE_ONE)
        return accountant.compose(dp_event.GaussianDpEvent(multiplier), 50).get_epsilon(1e-6)

    assert spent(noise) <= 1.0 < spent(0.97 * noise)
    # rho-zCDP of 50 rounds converts to about the same epsilon
    assert jaxdp.accounting.zcdp_epsilon(25.0 / noise**2, 1e-6) == pytest.approx(1.0, rel=0.03)
    sure = published.gaussian_pc(jax.random.key(1), cancer, epsilon=500.0, delta=1e-6, max_order=2)
    assert np.array_equal(sure.skeleton, exact_skeleton(cancer, 2))
    short = published.gaussian_pc(jax.random.key(1), cancer, epsilon=1.0, delta=1e-6, max_tests=3)
    assert not short.complete
    assert short.num_tests == 3
    assert (float(short.cost.epsilon), float(short.cost.delta)) == (1.0, 1e-6)
    with pytest.raises(ValueError, match="comparator"):
        published.gaussian_pc(jaxdp.fresh_key(), cancer, epsilon=1.0, delta=1e-6)


def test_exponential_calls_pick_each_owner_once_and_release_its_set(collider):
    owners = np.array([0, 0, 1, 2, 2])
    scores = np.array([50.0, 60.0, -80.0, 40.0, 70.0])
    assert sorted(em_pc.removals(FloatNoise(jax.random.key(0)), scores, 1e3, owners=owners)) == [1, 4]
    graph = discovery.em_pc(jax.random.key(2), collider, epsilon=1e4)
    assert set(graph.directed) == {("a", "c"), ("b", "c")}
    assert graph.undirected == []


def test_picks_of_pairs_follow_the_exponential_mechanism():
    """Two owners that are sure to go: the first pick has weights exp(e s/2), e = (1/2)(8)/2 = 2."""
    owners, scores = np.array([0, 0, 1]), np.array([30.0, 29.5, 29.0])
    runs = 200
    first = [em_pc.removals(FloatNoise(jax.random.key(seed)), scores, 8.0, owners=owners)[0] for seed in range(runs)]
    weights = np.exp(2.0 * (scores - scores.max()) / 2.0)
    for position, probability in enumerate(weights / weights.sum()):
        spread = 4.9 * np.sqrt(probability * (1 - probability) / runs)  # two-sided 1e-6
        assert abs(np.mean(np.array(first) == position) - probability) <= spread


def mixed(n=1500):
    """x -> y continuous, x -> s three levels, t alone."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, n)
    y = np.clip(0.8 * x + 0.1 * rng.normal(size=n), -1, 1)
    s = np.digitize(x + 0.2 * rng.normal(size=n), [-0.4, 0.4])
    t = rng.integers(0, 2, n)
    return as_records(jnp.asarray(np.stack([x, y, s, t], axis=1)), (0, 0, 3, 2), ("x", "y", "s", "t"))


def test_discrete_columns_are_numbers_on_one_scale_for_tests_of_numbers():
    records = mixed(50)
    data = records.query(0, 2, (3,), scores=True)
    assert set(np.unique(data.y)) <= {-1.0, 0.0, 1.0}
    assert data.domain.y[0].levels == 3
    assert np.array_equal(records.query(0, 2).y, records.values[:, 2])


def test_codes_without_a_schema_are_in_order_and_categorical_columns_are_not():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (400, 3))
    codes[:, 1] = np.where(rng.uniform(size=400) < 0.8, codes[:, 0], codes[:, 1])
    settings = {"test": jaxdp.ConditionalKendall(epsilon=4.0), "max_tests": 10, "max_order": 0}
    graph = discovery.pc(jax.random.key(0), codes, levels=(3, 3, 3), **settings)
    assert set(graph.edges) == {("v0", "v1")}
    nominal = Records(codes, tuple(Column(CATEGORICAL, 3, name) for name in "abc"))
    with pytest.raises(ValueError, match="takes no query about a and b alone"):
        discovery.pc(jax.random.key(0), nominal, **settings)


@pytest.mark.full
@pytest.mark.parametrize(
    "test", [jaxdp.LocalPermutation(epsilon=8.0, winsorize=1.0, level=0.02, num_permutations=99)], ids=["permutation"]
)
def test_mixed_columns_with_local_permutations(test):
    graph = discovery.pc(jax.random.key(0), mixed(), test=test, level=0.02, max_tests=20, max_order=0)
    assert set(graph.edges) == {("x", "y"), ("x", "s"), ("y", "s")}
    assert float(graph.cost.epsilon) == pytest.approx(160.0)


@pytest.mark.full
def test_equal_rounds_compose_by_the_exact_optimum(cancer):
    test = jaxdp.ConditionalKendall(epsilon=0.05)
    settings = {"test": test, "max_tests": 100, "max_order": 0}
    summed = discovery.pc(jax.random.key(0), cancer, **settings)
    best = discovery.pc(jax.random.key(0), cancer, delta=1e-6, **settings)
    each = jaxdp.core.cost_of(test, cancer.query(0, 1)).epsilon
    assert float(summed.cost.epsilon) == pytest.approx(100 * each)
    assert float(best.cost.epsilon) == optimal_epsilon(float(each), 100, 1e-6) < 0.6 * float(summed.cost.epsilon)
    assert float(best.cost.delta) == 1e-6
    assert np.array_equal(summed.skeleton, best.skeleton)
    concentrated = jaxdp.ConditionalKendall(mechanism=jaxdp.Gaussian(rho=0.1))
    with pytest.raises(ValueError, match="pure epsilon"):
        discovery.pc(jax.random.key(0), cancer, test=concentrated, max_tests=5, delta=1e-6)


def test_filters_inside_a_search_stop_it(cancer):
    budget = jaxdp.accounting.ApproximateFilter(epsilon=1.0, delta=1e-6)
    queries = interop.PrivateQueries(
        jaxdp.ConditionalKendall(epsilon=0.02), cancer, budget=budget, key=jax.random.key(9)
    )
    graph = discovery.pc(jax.random.key(0), None, test=queries, level=0.01)
    assert (float(graph.cost.epsilon), float(graph.cost.delta)) == (1.0, 1e-6)
    assert graph.num_tests >= len(queries.rows)
    tight = interop.PrivateQueries(jaxdp.ConditionalKendall(epsilon=0.25), cancer, epsilon=1.0, key=jax.random.key(9))
    stopped = discovery.pc(jax.random.key(0), None, test=tight, level=0.01)
    assert not stopped.complete
    assert len(tight.rows) == 4
    assert all(stopped.skeleton[i, j] for i, j in stopped.untested)


def test_searches_count_their_queries_on_a_terminal(cancer, monkeypatch):
    import tqdm

    from jaxdp.discovery.engine.skeleton import terminal_progress

    counted = []

    class Bar:
        def __init__(self, **settings):
            assert settings["delay"] == 2.0
            assert settings["disable"] is None  # tqdm's rule: only on a terminal

        def update(self, count):
            counted.append(count)

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    for search in (discovery.table_pc, discovery.svt_pc, discovery.em_pc):
        counted.clear()
        with terminal_progress():
            graph = search(jax.random.key(0), cancer, epsilon=10.0)
        assert sum(counted) == graph.num_tests
    counted.clear()
    discovery.table_pc(jax.random.key(0), cancer, epsilon=10.0)
    assert not counted


def permutation_variance(size, rows, columns):
    """Exact variance of S/(n + 5/2) given both margins with ties (Kendall 1970, section 4.4)."""
    t, u = np.array(rows, float), np.array(columns, float)
    pairs, triples = lambda x: np.sum(x * (x - 1)), lambda x: np.sum(x * (x - 1) * (x - 2))

    def weighted(x):
        return np.sum(x * (x - 1) * (2 * x + 5))

    value = (size * (size - 1) * (2 * size + 5) - weighted(t) - weighted(u)) / 18
    value += pairs(t) * pairs(u) / (2 * size * (size - 1))
    if size > 2:
        value += triples(t) * triples(u) / (9 * size * (size - 1) * (size - 2))
    return value / (size + 2.5) ** 2


def test_the_variance_is_exact_in_strata_of_every_size():
    from jaxdp.statistics import concordance

    for size in (2, 3, 4, 5, 8, 12, 30):
        margins = [(a, b, size - a - b) for a in range(size) for b in range(size - a + 1) if 0 <= size - a - b < size]
        margins = [margin for margin in margins if max(margin) < size]
        if size > 8:
            margins = margins[:: len(margins) // 12]
        for rows in margins:
            for columns in margins:
                # any table with these margins: north-west corner rule
                table, left, up = np.zeros((3, 3), int), list(rows), list(columns)
                for i in range(3):
                    for j in range(3):
                        table[i, j] = min(left[i], up[j])
                        left[i] -= table[i, j]
                        up[j] -= table[i, j]
                found = float(concordance.kendall_variance(concordance.strata_of_table(table[None])))
                assert found == pytest.approx(permutation_variance(size, rows, columns), rel=1e-12)


def test_a_search_inside_a_compiled_program_is_refused():
    codes, asked = np.random.default_rng(0).integers(0, 2, (60, 3)), {"epsilon": 1.0, "levels": (2, 2, 2)}
    with pytest.raises(TypeError, match=r"table_pc decides on the host .* outside jax.jit, jax.vmap and jax.grad"):
        jax.jit(lambda values: discovery.table_pc(jax.random.key(0), values, **asked).skeleton)(codes)
    for search in (discovery.table_pc, discovery.max_min_pc, discovery.moment_pc):
        for transformed in (jax.jit, jax.grad):
            with pytest.raises(TypeError, match=rf"{search.spec.name} decides on the host .* outside jax.jit"):
                transformed(lambda epsilon: search(jax.random.key(0), codes, **asked | {"epsilon": epsilon}))(1.0)  # noqa: B023
