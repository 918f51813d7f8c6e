"""The ledger in one process: exact sums, refusals before data are read, single-use keys, damage found."""

import copy
import csv
import math
import os
import pickle
import secrets
import sqlite3
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdp
from jaxdp import core
from jaxdp._base.pytree import frozen_pytree
from jaxdp.accounting.ledger import RELATIONS, BudgetExhausted, Ledger, LedgerError
from jaxdp.core import Cost, Norm, PrivateTest, Relation, Sensitivity, run
from jaxdp.mechanisms import Gaussian, Laplace
from jaxdp.privacy import Claim
from jaxdp.randomness import keys


def spend(ledger, epsilon=0.0, **amounts):
    return ledger.reserve("m", epsilon=epsilon, digest=secrets.token_hex(32), **amounts)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "l.db", epsilon=1.0, delta=1e-6)


def test_public_names():
    assert jaxdp.Ledger is Ledger
    assert jaxdp.BudgetExhausted is BudgetExhausted
    assert jaxdp.accounting.Ledger is Ledger


def test_create_and_open(ledger):
    again = Ledger.open(ledger.path)
    spend(ledger, 0.25, delta=1e-9)
    assert (again.total.epsilon, again.total.delta, again.total.rho) == (1.0, 1e-6, None)
    assert (again.spent.epsilon, again.spent.delta, again.spent.rho) == (0.25, 1e-9, None)
    assert (again.remaining.epsilon, again.remaining.delta) == (0.75, 9.99e-7)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    assert [entry.name for entry in ledger.path.parent.iterdir()] == ["l.db"], "a ledger at rest is one file"


def test_create_refuses_to_replace(ledger):
    spend(ledger, 0.5)
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(ledger.path, epsilon=5.0)
    assert ledger.remaining.epsilon == 0.5


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_ledger_of_another_user_is_one_sentence():
    """It was a raw sqlite3.OperationalError, in the command an internal error."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        ledger, user = Ledger.create(f"{folder}/l.db", epsilon=1.0), os.geteuid()
        ledger.path.chmod(0)
        if user == 0:
            os.seteuid(65534)  # root may read everything
        try:
            for read in (lambda: ledger.spent, lambda: Ledger.open(ledger.path)):
                with pytest.raises(LedgerError, match="cannot be used: permission denied"):
                    read()
        finally:
            os.seteuid(user)


@pytest.mark.parametrize(
    "budget",
    [
        {},
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": math.inf},
        {"epsilon": math.nan},
        {"epsilon": 1e-13},
        {"epsilon": 1e8},
        {"epsilon": 1.0, "delta": -1e-9},
        {"epsilon": 1.0, "delta": 1.0},
        {"epsilon": 1.0, "delta": math.nan},
        {"rho": math.nan},
        {"epsilon": 1.0, "relation": "swap"},
    ],
)
def test_create_refuses_bad_budgets(tmp_path, budget):
    with pytest.raises(ValueError, match=r"epsilon|delta|rho|relation"):
        Ledger.create(tmp_path / "l.db", **budget)
    assert not list(tmp_path.iterdir())


def test_open_refuses_other_files(tmp_path):
    with pytest.raises(LedgerError, match="does not exist"):
        Ledger.open(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "text.db").write_text("not a data base " * 100)
    sqlite3.connect(tmp_path / "foreign.db").execute("CREATE TABLE t (a)").connection.close()
    for name in ("text.db", "foreign.db"):
        with pytest.raises(LedgerError, match="not a ledger"):
            Ledger.open(tmp_path / name)


# --- exact sums --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "each", "fit"),
    [(1.0, 0.1, 10), (0.3, 0.1, 3), (1.0, 1 / 3, 2), (1e-8, 1e-9, 10), (1e-8, 1.0000001e-9, 9), (0.7, 0.07, 10)],
)
def test_amounts_are_exact(tmp_path, total, each, fit):
    ledger = Ledger.create(tmp_path / "l.db", epsilon=total)
    for _ in range(fit):
        spend(ledger, each)
    with pytest.raises(BudgetExhausted):
        spend(ledger, each)
    assert ledger.spent.epsilon <= total
    ledger.verify()


def test_random_amounts_never_understate(tmp_path):
    rng = np.random.default_rng(0)
    ledger, exact = Ledger.create(tmp_path / "l.db", epsilon=3.0), Fraction(0)
    for amount in rng.uniform(0.0, 0.2, 60):
        try:
            spend(ledger, float(amount))
        except BudgetExhausted:
            assert exact + Fraction(repr(float(amount))) > 3 - Fraction(61, 10**12)
        else:
            exact += Fraction(repr(float(amount)))
        assert exact <= Fraction(repr(ledger.spent.epsilon)) <= 3
    assert ledger.spent.epsilon > 2.8


def test_delta_and_rho_are_budgets_too(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", epsilon=1.0, delta=1e-6, rho=0.5)
    spend(ledger, 0.1, delta=9e-7)
    spend(ledger, rho=0.4)
    for amounts, name in (({"delta": 2e-7}, "delta"), ({"rho": 0.2}, "rho")):
        with pytest.raises(BudgetExhausted, match=f"{name} .* is asked"):
            spend(ledger, 0.1, **amounts)
    assert ledger.spent.epsilon == 0.1
    assert ledger.spent.rho == 0.4


@pytest.mark.parametrize("amounts", [{"epsilon": math.inf}, {"epsilon": math.nan}, {"epsilon": -0.1}, {"delta": -1e-9}])
def test_bad_amounts_are_refused(ledger, amounts):
    with pytest.raises(ValueError, match="of a charge must be"):
        spend(ledger, **amounts)
    assert ledger.rows() == []


# --- charges with keys -------------------------------------------------------------------------------------------


def cost(epsilon, relation=Relation.REPLACE_ONE):
    return Laplace(epsilon).cost(relation)


def test_charge_writes_a_row(ledger):
    txid = ledger.charge("partition-gcm", cost(0.25), jaxdp.fresh_key(), note="x ~ y | z")
    (row,) = ledger.rows()
    assert (row.method, row.note, row.epsilon, row.delta, row.rho) == ("partition-gcm", "x ~ y | z", 0.25, 0.0, 0.0)
    assert (row.number, row.cumulative_epsilon, row.relation, row.txid) == (1, 0.25, "replace_one", txid)


def test_simulations_are_refused(ledger):
    with pytest.raises(ValueError, match="simulation cannot be charged"):
        ledger.charge("m", cost(0.1), jax.random.key(0))
    with pytest.raises(TypeError, match="key must be"):
        ledger.charge("m", cost(0.1), 7)
    assert ledger.rows() == []


def test_derived_keys_are_refused(ledger):
    with pytest.raises(TypeError, match="taken out of a release key"):
        ledger.charge("m", cost(0.1), keys.open_key(jaxdp.fresh_key()))


def test_keys_are_charged_once(ledger):
    key = jaxdp.fresh_key()
    ledger.charge("m", cost(0.1), key)
    with pytest.raises(ValueError, match="key was charged before"):
        ledger.charge("m", cost(0.1), key)
    assert len(ledger.rows()) == 1
    assert ledger.spent.epsilon == 0.1


def test_transactions_run_once(ledger):
    ledger.charge("m", cost(0.1), jaxdp.fresh_key(), txid="monday")
    assert ledger.stored("monday") is None
    ledger.store("monday", '{"p_value": 0.5}')
    with pytest.raises(ValueError, match="never run twice"):
        ledger.charge("m", cost(0.1), jaxdp.fresh_key(), txid="monday")
    assert ledger.stored("monday") == '{"p_value": 0.5}'
    with pytest.raises(ValueError, match="has its release already"):
        ledger.store("monday", "another")
    with pytest.raises(ValueError, match="never charged"):
        ledger.store("tuesday", "text")
    assert ledger.stored("tuesday") is None


@pytest.mark.parametrize(
    ("charged", "message"),
    [
        (Cost(epsilon=math.inf), "not private"),
        (Cost(epsilon=math.nan), "must be >= 0"),
        (Cost(epsilon=0.1, delta=math.nan), "delta"),
        (Gaussian(0.1).cost(Relation.REPLACE_ONE), "no rho budget"),
        (cost(0.1, Relation.ADD_OR_REMOVE_ONE), "holds under replace_one"),
    ],
)
def test_costs_that_cannot_be_counted_are_refused(ledger, charged, message):
    with pytest.raises(ValueError, match=message):
        ledger.charge("m", charged, jaxdp.fresh_key())
    assert ledger.rows() == []


def test_traced_costs_are_refused(ledger):
    key = jaxdp.fresh_key()
    with pytest.raises(RuntimeError, match="loop in Python"):
        jax.jit(lambda epsilon: ledger.charge("m", cost(epsilon), key) and epsilon)(0.1)
    assert ledger.rows() == []


def test_batched_costs_are_summed(ledger):
    ledger.charge("m", Cost(epsilon=np.full(5, 0.1)), jaxdp.fresh_key())
    assert ledger.spent.epsilon == 0.5


def test_where_a_cost_is_charged(tmp_path):
    both = Ledger.create(tmp_path / "both.db", epsilon=1.0, rho=1.0)
    both.charge("pure", cost(0.5), jaxdp.fresh_key())
    both.charge("zcdp", Gaussian(0.25).cost(Relation.REPLACE_ONE), jaxdp.fresh_key())
    assert (both.spent.epsilon, both.spent.rho) == (0.5, 0.25)
    concentrated = Ledger.create(tmp_path / "rho.db", rho=1.0)
    concentrated.charge("pure", cost(0.5), jaxdp.fresh_key())
    assert (concentrated.spent.epsilon, concentrated.spent.rho) == (None, 0.125)


CLAIM = Claim(epsilon=1.0, delta=1e-6, rho=0.0244)  # of normal noise: its rho needs no delta


@pytest.mark.parametrize(
    ("granted", "charged"),
    [
        ({"rho": 1.0}, (0.0, 0.0, 0.0244)),
        ({"rho": 1.0, "delta": 1e-5}, (0.0, 0.0, 0.0244)),
        ({"rho": 1.0, "epsilon": 2.0}, (0.0, 0.0, 0.0244)),
        ({"rho": 1.0, "epsilon": 2.0, "delta": 1e-5}, (1.0, 1e-6, 0.0)),
        ({"epsilon": 2.0, "delta": 1e-5}, (1.0, 1e-6, 0.0)),
    ],
    ids=str,
)
def test_a_claim_of_normal_noise_is_charged_in_rho_alone_or_in_epsilon_and_delta(tmp_path, granted, charged):
    """A ledger of rho was charged the delta too, and one without a delta refused what cost it .0244 of rho."""
    ledger = Ledger.create(tmp_path / "l.db", **granted)
    txid = ledger.charge("m", CLAIM, jaxdp.fresh_key(), txid="search")
    (row,) = ledger.rows()
    assert (row.epsilon, row.delta, row.rho) == charged
    assert ledger.checkpoint(txid, CLAIM) == []
    ledger.verify()


def test_a_rho_that_may_need_its_delta_is_charged_with_it(tmp_path):
    """A plain cost does not say whether its rho holds alone, nor does the sum of a claim and another cost."""
    ledger = Ledger.create(tmp_path / "l.db", rho=1.0, delta=1e-5)
    for cost in (Cost(epsilon=1.0, delta=1e-6, rho=0.0244), CLAIM + Cost(epsilon=0.0, rho=0.0)):
        ledger.charge("m", cost, jaxdp.fresh_key())
    assert [(row.delta, row.rho) for row in ledger.rows()] == [(1e-6, 0.0244)] * 2
    without = Ledger.create(tmp_path / "without.db", rho=1.0)
    with pytest.raises(BudgetExhausted, match="delta 1e-06 is asked"):
        without.charge("m", Cost(epsilon=1.0, delta=1e-6, rho=0.0244), jaxdp.fresh_key())
    with pytest.raises(ValueError, match="finite epsilon or rho"):
        without.charge("m", Claim(epsilon=1.0, delta=1e-6), jaxdp.fresh_key())
    assert without.rows() == []


def test_the_rho_of_a_claim_is_never_overspent(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", rho=0.05)
    for _ in range(2):
        ledger.charge("m", CLAIM, jaxdp.fresh_key())
    with pytest.raises(BudgetExhausted, match="rho"):
        ledger.require(CLAIM)
    assert ledger.spent.rho == 0.0488


# --- run and the ledger ------------------------------------------------------------------------------------------


class DataWereRead(Exception):
    pass


@frozen_pytree
class Reader(PrivateTest):
    """A test that stops as soon as its data are read."""

    def mechanism_in_force(self):
        return Laplace(self.epsilon)

    def statistic(self, key, data):
        raise DataWereRead

    def sensitivity(self, num_records):
        return Sensitivity(1.0, Norm.L1, Relation.REPLACE_ONE)


def test_what_fails_in_rehearsal_is_not_charged(ledger):
    with pytest.raises(DataWereRead):
        run(Reader(epsilon=0.75), jaxdp.fresh_key(), jnp.zeros(4), ledger=ledger)
    assert ledger.spent.epsilon == 0.0


def test_a_crash_after_the_charge_keeps_it(ledger, monkeypatch):
    monkeypatch.setattr(core, "rehearse", lambda test, data: None)
    with pytest.raises(DataWereRead):
        run(Reader(epsilon=0.75), jaxdp.fresh_key(), jnp.zeros(4), ledger=ledger)
    assert ledger.spent.epsilon == 0.75
    ledger.verify()


def test_exhausted_before_data_are_read(ledger):
    spend(ledger, 0.75)
    messages = []
    for data in (jnp.zeros(4), jnp.full(4, 12345.0)):
        with pytest.raises(BudgetExhausted) as caught:
            run(Reader(epsilon=0.5), jaxdp.fresh_key(), data, ledger=ledger)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "epsilon 0.5 is asked and 0.25 is left" in messages[0]
    assert ledger.spent.epsilon == 0.75


def test_a_refused_key_is_not_spent(ledger):
    spend(ledger, 1.0)
    key = jaxdp.fresh_key()
    with pytest.raises(BudgetExhausted):
        run(Reader(epsilon=0.5), key, jnp.zeros(4), ledger=ledger)
    assert not key.spent


def test_the_message_shows_how_little_is_missing(ledger):
    with pytest.raises(BudgetExhausted, match=r"epsilon 1\.000000000001 is asked and 1 is left"):
        spend(ledger, 1.0000000000000002)


def test_require_charges_nothing(ledger):
    ledger.require(cost(1.0))
    assert ledger.admits(cost(1.0))
    spend(ledger, 0.5)
    assert not ledger.admits(cost(0.6))
    with pytest.raises(BudgetExhausted):
        ledger.require(cost(0.6))
    assert ledger.spent.epsilon == 0.5


@frozen_pytree
class NoisySum(PrivateTest):
    def mechanism_in_force(self):
        return Laplace(self.epsilon)

    def statistic(self, key, data):
        return jnp.sum(data)

    def sensitivity(self, num_records):
        return Sensitivity(1.0, Norm.L1, Relation.REPLACE_ONE, lower=0.0, upper=float(num_records))

    def p_value(self, key, release):
        return jnp.asarray(1.0)


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 0.7])
def test_the_certified_epsilon_is_at_most_the_charge(tmp_path, epsilon):
    """0.1 is charged as one tenth, less than the float 0.1: the noise must honour the tenth."""
    ledger = Ledger.create(tmp_path / "l.db", epsilon=1.0)
    result = run(NoisySum(epsilon=epsilon), jaxdp.fresh_key(), jnp.zeros(4), ledger=ledger)
    certified = sum(certificate.epsilon for certificate in result.release.certificates)
    assert Fraction(repr(epsilon)) * (1 - Fraction(1, 10**9)) < certified <= Fraction(repr(epsilon))
    assert certified <= Fraction(repr(ledger.spent.epsilon))


# --- copies, threads, damage -------------------------------------------------------------------------------------


def test_copies_share_and_pickling_raises(ledger):
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"l": ledger})["l"] is ledger
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(ledger)


def test_threads_never_overspend(ledger):
    def attempt(_):
        try:
            spend(ledger, 0.1)
        except BudgetExhausted:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(40))) == 10
    ledger.verify()


FORGERIES = {
    "less spent": "UPDATE budget SET epsilon_spent = 0",
    "more granted": "UPDATE budget SET epsilon_total = 9000000000000",
    "a charge gone": "DELETE FROM charge WHERE number = 1",
    "a charge changed": "UPDATE charge SET epsilon = 0 WHERE number = 1",
}


@pytest.mark.parametrize("statement", FORGERIES.values(), ids=FORGERIES)
def test_the_file_refuses_forgeries(ledger, statement):
    spend(ledger, 0.5)
    connected = sqlite3.connect(ledger.path)
    with pytest.raises(sqlite3.IntegrityError, match="only grows"):
        connected.execute(statement)
    connected.close()
    ledger.verify()


@pytest.mark.parametrize("statement", [*FORGERIES.values(), None], ids=[*FORGERIES, "no triggers"])
def test_verify_finds_forgeries(ledger, statement):
    spend(ledger, 0.5)
    spend(ledger, 0.25)
    connected = sqlite3.connect(ledger.path)
    triggers = connected.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connected.execute(f"DROP TRIGGER {name}")
    if statement:
        connected.execute(statement)
        for _, sql in triggers:
            connected.execute(sql)
    connected.commit()
    connected.close()
    with pytest.raises(LedgerError, match="does not add up"):
        ledger.verify()


def test_a_damaged_file_is_one_clear_error(ledger):
    for _ in range(40):
        spend(ledger, 0.01)
    content = bytearray(ledger.path.read_bytes())
    content[4096 + 100 :: 7] = bytes(len(content[4096 + 100 :: 7]))
    ledger.path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"does not add up|cannot be used|not a ledger"):
        Ledger.open(ledger.path).verify()


@pytest.mark.parametrize(
    ("place", "damage"),
    [
        (b"CREATE TABLE budget", b"CREATE TA\xe2LE budget"),
        (b"CREATE TRIGGER", b"CREATE\xffTRIGGER"),
        (32, b"\0\0\1\0\0\0\0\1"),
    ],
    ids=["table", "trigger", "free pages"],
)
def test_a_damaged_file_is_one_line_without_its_bytes(ledger, place, damage):
    """SQLite's own words quote damaged text, fail to where it is no text, and list the pages on lines of their own."""
    content = ledger.path.read_bytes()
    start = place if isinstance(place, int) else content.index(place)
    ledger.path.write_bytes(content[:start] + damage + content[start + len(damage) :])
    with pytest.raises(LedgerError, match="the file is damaged") as refused:
        Ledger.open(ledger.path).verify()
    assert "\n" not in str(refused.value)


def test_a_value_that_is_no_text_any_more_is_not_quoted(ledger):
    spend(ledger, 0.1)
    connected = sqlite3.connect(ledger.path)
    ((chain,),) = connected.execute("SELECT chain FROM charge")
    connected.close()
    content = ledger.path.read_bytes()
    ledger.path.write_bytes(content.replace(chain[1:].encode(), b"\xff" + chain[2:].encode()))
    with pytest.raises(LedgerError, match=r"cannot be used: the file is damaged\.$"):
        Ledger.open(ledger.path).rows()


def test_the_file_itself_keeps_keys_unique(ledger):
    spend(ledger, 0.1)
    connected = sqlite3.connect(ledger.path)
    columns = [row[1] for row in connected.execute("PRAGMA table_info(charge)")]
    copied = ", ".join({"txid": "'another'", "number": "2"}.get(name, name) for name in columns)
    with pytest.raises(sqlite3.IntegrityError, match=r"UNIQUE constraint failed: charge\.digest"):
        connected.execute(f"INSERT INTO charge SELECT {copied} FROM charge")
    connected.close()


def test_the_check_constraint_bites_on_its_own(ledger):
    connected = sqlite3.connect(ledger.path)
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        connected.execute("UPDATE budget SET epsilon_spent = epsilon_total + 1")
    connected.close()


# --- exports -----------------------------------------------------------------------------------------------------


def test_csv(ledger, tmp_path):
    spend(ledger, 0.1)
    spend(ledger, 0.2, delta=1e-8)
    ledger.to_csv(tmp_path / "l.csv")
    rows = list(csv.DictReader((tmp_path / "l.csv").open()))
    assert [float(row["cumulative_epsilon"]) for row in rows] == [0.1, 0.3]
    assert float(rows[1]["delta"]) == 1e-8


def test_relations_are_those_of_the_package():
    assert set(RELATIONS) == {relation.value for relation in Relation}


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ADD_OR_REMOVE_ONE])
def test_dp_event_dominates_the_charges(tmp_path, relation):
    rdp = pytest.importorskip("dp_accounting.rdp")
    neighbours = pytest.importorskip("dp_accounting").NeighboringRelation[relation.name]
    ledger = Ledger.create(tmp_path / "l.db", epsilon=5.0, rho=1.0, relation=relation)
    for _ in range(20):
        spend(ledger, 0.1, relation=relation)
    spend(ledger, rho=0.05, relation=relation)
    orders = np.linspace(6.0, 14.0, 81)  # dense, so that both search the same minimum
    accountant = rdp.RdpAccountant(orders, neighboring_relation=neighbours).compose(ledger.to_dp_event())
    if relation is Relation.REPLACE_ONE:
        costs = [Cost(epsilon=0.1)] * 20 + [Cost(epsilon=math.inf, rho=0.05)]
        ours = jaxdp.accounting.compose(costs, delta=1e-6).epsilon
    else:
        ours = jaxdp.accounting.zcdp_epsilon(20 * 0.1**2 / 2 + 0.05, 1e-6)
    assert accountant.get_epsilon(1e-6) == pytest.approx(ours, rel=1e-4)
