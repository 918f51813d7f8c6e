"""One place charges: what fails on blank records fails before it is paid, and what fails later says what was paid."""

import inspect
import re
import signal
import sqlite3
from pathlib import Path

import jax
import numpy as np
import pytest
import queries

import jaxdp
from jaxdp import catalogue, charge, core, discovery
from jaxdp.accounting import PureFilter
from jaxdp.audit import cases
from jaxdp.data.dataset import BINARY, CONTINUOUS, Column
from jaxdp.data.records import Records
from jaxdp.discovery.engine import session
from jaxdp.discovery.methods import pc
from jaxdp.discovery.spec import searches
from jaxdp.independence import pair_by_pair
from jaxdp.interop import PrivateQueries

ROOT = Path(jaxdp.__file__).parent
DELTA = 1e-6
PRIVATE = [
    name
    for name, entry in catalogue.entries().items()
    if entry.spec.private and cases.of(entry) and hasattr(entry.cls, "p_value")  # what `run` takes
]


class Account:
    """Takes any cost, and remembers what it was charged."""

    def __init__(self):
        self.charges = []

    def require(self, cost):
        """Everything is affordable."""

    def charge(self, method, cost, key):
        self.charges.append(method)


RELEASING = ((core, "_execute"), (session.Session, "graph"))  # what every answer needs, of tests and of searches


class Fault(MemoryError):
    """What a test injects."""


def failing(*arguments, **options):
    raise Fault


def failing_later(function):
    """The function, which fails from its second call on."""
    calls = []

    def called(*arguments, **options):
        calls.append(1)
        if len(calls) > 1:
            raise Fault
        return function(*arguments, **options)

    return called


def test_no_other_file_charges():
    found = {
        path.relative_to(ROOT).as_posix(): len(re.findall(r"\.charge\(", path.read_text()))
        for path in sorted(ROOT.rglob("*.py"))
    }
    assert {name for name, number in found.items() if number} == {"charge.py", "accounting/ledger.py"}
    assert found["accounting/ledger.py"] == 1  # a ledger that writes down what was asked


@pytest.mark.full
@pytest.mark.parametrize("name", PRIVATE)
def test_a_fault_in_the_statistic_costs_nothing(name, monkeypatch):
    example = cases.find(name)
    rows = max(60, example.example.min_records)
    test, data = example.build(1.0, rows), example.example.data(jax.random.key(0), rows)
    monkeypatch.setattr(core, "_statistic", failing)
    for cls in {type(test), type(getattr(core.specialize(test, data), "first", core.specialize(test, data)))}:
        if not getattr(cls, "one_program", True):
            monkeypatch.setattr(cls, "statistic", failing)
    account = Account()
    with pytest.raises(Fault):
        jaxdp.run(test, jaxdp.fresh_key(), jax.tree.map(np.asarray, data), ledger=account)
    assert account.charges == []


@pytest.fixture
def pair():
    x = np.random.default_rng(0).uniform(-1, 1, 60)
    return jaxdp.Data(x, x[::-1].copy())


def test_a_fault_in_the_p_value_costs_nothing_and_later_ones_name_the_charge(pair, monkeypatch):
    account, test = Account(), jaxdp.PartitionGCM(epsilon=1.0)
    monkeypatch.setattr(core, "_answer", failing)
    with pytest.raises(Fault) as before:
        jaxdp.run(test, jaxdp.fresh_key(), pair, ledger=account)
    assert account.charges == []
    assert charge.describe(before.value) == ""
    monkeypatch.undo()
    monkeypatch.setattr(core, "_answer", failing_later(core._answer))
    with pytest.raises(Fault) as after:
        jaxdp.run(test, jaxdp.fresh_key(), pair, ledger=account)
    assert account.charges == ["partition-gcm"]
    assert "partition-gcm was charged (epsilon=1" in charge.describe(after.value)
    assert "asking again is charged again" in charge.describe(after.value)


def test_all_pairs_of_any_test(monkeypatch):
    account, values = Account(), np.random.default_rng(0).uniform(-1, 1, (60, 3))
    monkeypatch.setattr(core, "_answer", failing)
    with pytest.raises(Fault):
        jaxdp.all_pairs(jaxdp.ConditionalSpearman(epsilon=1.0), jaxdp.fresh_key(), values, ledger=account)
    assert account.charges == []


def test_queries_of_other_libraries(monkeypatch):
    account, budget = Account(), PureFilter(epsilon=2.0)
    queries = PrivateQueries(jaxdp.PartitionGCM(epsilon=1.0), records(), budget=budget, ledger=account)
    monkeypatch.setattr(core, "_answer", failing)
    with pytest.raises(Fault):
        queries.p_value(0, 1)
    assert account.charges == []
    assert float(budget.spent.epsilon) == 0.0


@pytest.mark.parametrize("name", queries.EVERY)
def test_every_call_about_a_table(name, monkeypatch, tmp_path):
    account = Account()
    for module, part in RELEASING:
        monkeypatch.setattr(module, part, failing)
    with pytest.raises(Fault):
        queries.EVERY[name].ask(tmp_path, ledger=account)
    assert account.charges == []


@pytest.mark.parametrize("name", queries.EVERY)
def test_every_call_says_what_a_ledger_is(name, tmp_path):
    with pytest.raises(TypeError, match=r"such as jaxdp.Ledger.open.*got str"):
        queries.EVERY[name].ask(tmp_path, ledger="study.db")


def test_a_run_says_what_a_ledger_is(pair):
    with pytest.raises(TypeError, match=r"such as jaxdp.Ledger.open.*got PosixPath"):
        jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), jaxdp.fresh_key(), pair, ledger=Path("study.db"))


@pytest.mark.full
@pytest.mark.parametrize("name", queries.EVERY)
def test_every_call_explains_a_charge_that_gave_nothing(name, monkeypatch, tmp_path):
    """What fails in the words or pictures of an answer, after the release."""
    account, asked = Account(), queries.EVERY[name]
    for module in {inspect.getmodule(asked.answer), inspect.getmodule(asked.query)}:
        if hasattr(module, asked.answer.__name__):
            monkeypatch.setattr(module, asked.answer.__name__, failing)
    with pytest.raises(Fault) as found:
        asked.ask(tmp_path, ledger=account)
    assert len(account.charges) == 1
    assert f"{account.charges[0]} was charged" in charge.describe(found.value)


def records(*kinds):
    generator = np.random.default_rng(0)
    columns = [Column(kind, 2 * (kind == BINARY), f"v{place}") for place, kind in enumerate(kinds or [BINARY] * 3)]
    values = [generator.integers(0, 2, 60) if c.levels else generator.uniform(-1, 1, 60) for c in columns]
    return Records(np.stack(values, axis=1), tuple(columns))


KINDS = ([BINARY] * 3, [CONTINUOUS, BINARY, CONTINUOUS], [CONTINUOUS] * 3)


def accepted(search):
    """Records of columns that the search takes."""
    for found in (records(*kinds) for kinds in KINDS):
        if search.spec.accepts(found.levels):
            return found
    raise AssertionError(f"{search.spec.name} takes none of these columns: add some that it takes to KINDS.")


def started(name, account):
    """A search under a release key; None where it opens none."""
    search = searches()[name]
    data = accepted(search)
    needs = search.spec.needs
    settings = {"rho": 0.7} if "rho" in needs else {"epsilon": 1.0}
    if "delta" in needs:
        settings["delta"] = DELTA
    if name == "pc":
        settings = {"test": jaxdp.ConditionalKendall(epsilon=0.25), "max_tests": 5}
    return search(jaxdp.fresh_key(), data, ledger=account, **settings)


@pytest.mark.full
@pytest.mark.parametrize("name", list(searches()))
def test_a_fault_in_a_search_costs_nothing(name, monkeypatch):
    """At its very end, or in its first query where whole searches are not rehearsed."""
    account = Account()
    monkeypatch.setattr(session.Session, "graph", failing)
    for module in (pc, pair_by_pair.core):
        monkeypatch.setattr(module, "run_opened", failing)
    try:
        started(name, account)
    except ValueError:
        assert searches()[name].spec.true_epsilon  # for simulations alone
    except Fault:
        pass
    else:
        raise AssertionError("nothing failed")
    assert account.charges == []


@pytest.mark.full
def test_a_search_that_fails_after_its_charge_goes_on_from_what_it_paid(tmp_path, monkeypatch):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    asked = {"epsilon": 1.0, "ledger": ledger, "keep": tmp_path / "answers.jsonl"}
    monkeypatch.setattr(session.Session, "graph", failing_later(session.Session.graph))
    with pytest.raises(Fault) as found:
        discovery.table_pc(jaxdp.fresh_key(), records(), **asked)
    assert "answers.jsonl, and what was charged and answered is used, not paid again" in charge.describe(found.value)
    monkeypatch.undo()
    graph = discovery.table_pc(jaxdp.fresh_key(), records(), **asked)
    assert float(graph.cost.epsilon) == 1.0
    assert len(ledger.rows()) == 1


class Interrupting(sqlite3.Connection):
    """Ctrl-C as Python raises it: before, in or after COMMIT of the first charge."""

    moment = ""

    def execute(self, statement, *arguments):
        moment = Interrupting.moment if statement == "COMMIT" else ""
        if moment == "before":
            Interrupting.moment = ""
            raise KeyboardInterrupt
        found = super().execute(statement, *arguments)
        if moment == "in":  # the handler runs when COMMIT returns
            Interrupting.moment = ""
            signal.raise_signal(signal.SIGINT)
        return found


@pytest.fixture
def interrupted_at(monkeypatch, interruptible):
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *path, **how: connect(*path, factory=Interrupting, **how))
    yield lambda moment: setattr(Interrupting, "moment", moment)
    Interrupting.moment = ""


def interrupted(ask):
    with pytest.raises(KeyboardInterrupt) as found:
        ask()
    return charge.describe(found.value)


def asked_of(ledger):
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, 2, 200).tolist() for name in "xy"}
    return lambda **how: jaxdp.test(table, x="x", y="y", levels={name: [0, 1] for name in table}, ledger=ledger, **how)


@pytest.mark.parametrize(("moment", "spent", "says"), [("before", 0.0, "was not charged"), ("in", 0.5, "was charged")])
def test_an_interrupted_charge_says_whether_it_was_made_and_where_to_look(
    moment, spent, says, tmp_path, interrupted_at
):
    """It was a bare KeyboardInterrupt, whether or not the charge was on disk."""
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    interrupted_at(moment)
    told = interrupted(lambda: asked_of(ledger)(epsilon=0.5))
    assert ledger.spent.epsilon == spent
    assert told.startswith(f"quantile-table {says} (epsilon=0.5")
    assert f"jaxdp ledger show {ledger.path}" in told
    assert (charge.STANDS in told) == (spent > 0)
    assert told.count("charged (epsilon") == 1


def test_an_interrupt_once_the_charge_has_returned(pair, monkeypatch, tmp_path):
    ledger, reserve = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0), jaxdp.Ledger.reserve

    def interrupting(*arguments, **options):
        reserve(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(jaxdp.Ledger, "reserve", interrupting)
    test = jaxdp.PartitionGCM(epsilon=0.5)
    told = interrupted(lambda: jaxdp.run(test, jaxdp.fresh_key(), pair, ledger=ledger))
    assert ledger.spent.epsilon == 0.5
    assert told.startswith("partition-gcm was charged (epsilon=0.5")


def test_a_charge_that_nobody_can_look_up_may_have_been_made(pair, monkeypatch, tmp_path, interrupted_at):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    monkeypatch.setattr(jaxdp.Ledger, "holds", failing)  # the lookup is interrupted too, or the disk is gone
    interrupted_at("in")
    told = interrupted(lambda: asked_of(ledger)(epsilon=0.5))
    assert told.startswith("quantile-table may have been charged (epsilon=0.5")
    assert f"jaxdp ledger show {ledger.path}" in told
    account = Account()
    account.charge = lambda *charged: (_ for _ in ()).throw(KeyboardInterrupt)
    told = interrupted(lambda: jaxdp.run(jaxdp.PartitionGCM(epsilon=1.0), jaxdp.fresh_key(), pair, ledger=account))
    assert "may have been charged (epsilon=1" in told
    assert "ask the account that you gave" in told


def test_a_refusal_says_no_more_than_it_did(pair, tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    key = jaxdp.fresh_key()
    ledger.charge("another", jaxdp.core.Cost(epsilon=0.1), key)
    with (
        pytest.raises(ValueError, match="charged before") as found,
        charge.paid(ledger, "m", jaxdp.core.Cost(epsilon=0.1), key, mode="release", rehearse=None),
    ):
        pass
    assert charge.describe(found.value) == ""
    with pytest.raises(jaxdp.accounting.BudgetExhausted) as exhausted, charge.explaining(ledger) as account:
        account.charge("m", jaxdp.core.Cost(epsilon=2.0), jaxdp.fresh_key())
    assert charge.STANDS not in charge.describe(exhausted.value)


def test_accounts_that_are_charged_together_say_which_were(pair, tmp_path, interrupted_at):
    ledger, budget = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0), PureFilter(epsilon=2.0)
    interrupted_at("before")
    test, both = jaxdp.PartitionGCM(epsilon=0.5), charge.Several(budget, ledger)
    told = interrupted(lambda: jaxdp.run(test, jaxdp.fresh_key(), pair, ledger=both))
    assert (float(budget.spent.epsilon), ledger.spent.epsilon) == (0.5, 0.0)
    assert "partition-gcm was not charged (epsilon=0.5" in told
    assert "partition-gcm was charged (epsilon=0.5" in told
    assert "may have been charged" not in told


def test_an_interrupted_search_that_keeps_its_answers_says_one_thing(tmp_path, monkeypatch):
    """It said that asking again is charged again, and that it is not."""
    ledger, keep = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0), jaxdp.Ledger.keep

    def interrupting(*arguments):
        keep(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(jaxdp.Ledger, "keep", interrupting)
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, 2, 200).tolist() for name in "xyz"}
    levels, how = {name: [0, 1] for name in table}, {"ledger": ledger, "keep": tmp_path / "answers.jsonl"}
    told = interrupted(lambda: jaxdp.discover(table, levels=levels, epsilon=1.0, method="table_pc", **how))
    assert "is used, not paid again" in told
    assert charge.PAID_AGAIN not in told
    assert told.count("table_pc was charged") == 1
