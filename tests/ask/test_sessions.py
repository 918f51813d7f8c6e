"""Sessions: equal shares of a ledger fit into it, and threads share no simulated noise."""

import threading

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp.ask import session

RNG = np.random.default_rng(0)
TABLE = {name: RNG.integers(0, 2, 200).tolist() for name in ("a", "b")}
LEVELS = {name: [0, 1] for name in TABLE}


@pytest.mark.parametrize("queries", [2, 3, 7])
def test_a_ledger_pays_for_every_query_of_a_session(queries, tmp_path):
    """The last one was refused: each charge rounds up to 1e-12, and the shares were finer."""
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    asking = jaxdp.Session(TABLE, levels=LEVELS, ledger=ledger, queries=queries)
    for _ in range(queries):
        asking.test("a", "b")
    assert len(ledger.rows()) == queries
    assert ledger.remaining.epsilon <= queries * 1e-12


def test_a_session_whose_ledger_is_gone_prints_so(tmp_path):
    """`repr` raised, as `repr` of the ledger did not."""
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    asking = jaxdp.Session(TABLE, levels=LEVELS, ledger=ledger)
    ledger.path.unlink()
    assert "does not exist" in repr(asking)
    assert "columns" in repr(asking)


@pytest.mark.parametrize("total", [1e-9, 0.1, 1.0, 2.0 / 3.0, 10.0, 999.9])
def test_shares_fit_into_the_total_in_units(total):
    ledger_units = jaxdp.accounting.ledger._units
    granted = jaxdp.accounting.ledger._grant("epsilon", total)
    for queries in range(1, 60):
        share = session._share(granted / session.UNIT, queries, in_units=True)
        assert queries * ledger_units("epsilon", share, session.UNIT) <= granted
        assert share >= (1 - 1e-14) * (total / queries - 1e-12) - 1e-12
    assert session._share(1.0, 3, in_units=False) == 1 / 3 * session.ROUNDING  # simulations keep their numbers


def test_simulated_queries_of_threads_have_keys_of_their_own():
    """Two threads that began together drew the same noise."""
    asking, drawn = jaxdp.Session(TABLE, levels=LEVELS, epsilon=9.0, key=jax.random.key(1)), []
    begun = threading.Barrier(4)

    def one():
        with asking._own_key() as key:
            begun.wait()
            drawn.append(int(jax.random.key_data(key)[1]))

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 4


def test_queries_in_turn_have_the_keys_of_their_numbers_and_a_refused_one_takes_none():
    asking = jaxdp.Session(TABLE, levels=LEVELS, epsilon=9.0, key=jax.random.key(1))
    first = asking.test("a", "b", epsilon=1.0)
    with pytest.raises(ValueError, match="not in the schema"):
        asking.test("a", "c", epsilon=1.0)
    second = asking.test("a", "b", epsilon=1.0)
    for number, found in enumerate((first, second)):
        key = jax.random.fold_in(jax.random.key(1), number)
        alone = jaxdp.test(TABLE, x="a", y="b", levels=LEVELS, epsilon=1.0, key=key)
        assert found.content["statistic"] == alone.content["statistic"]


def test_one_edge_of_a_graph_is_one_edge():
    equal = {"a": TABLE["a"], "b": TABLE["a"]}
    asking = jaxdp.Session(equal, levels=LEVELS, epsilon=50.0, key=jax.random.key(0))
    assert len(asking.discover(epsilon=50.0).edges) == 1
    assert asking.asked[0].answer == "1 edge"
