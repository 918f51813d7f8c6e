"""A ledger file in other hands: ordinary SQL, copies, files put in its place, full disks, earlier versions."""

import json
import resource
import secrets
import shutil
import sqlite3
import subprocess
import sys

import pytest

import jaxdp
from jaxdp.accounting import ledger_chain, ledger_file
from jaxdp.accounting.ledger import BudgetExhausted, Ledger, LedgerError
from jaxdp.cli.main import main
from jaxdp.core import Relation
from jaxdp.mechanisms import Laplace


def spend(ledger, epsilon):
    return ledger.reserve("m", epsilon=epsilon, digest=secrets.token_hex(32))


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "l.db", epsilon=1.0, delta=1e-6)
    spend(made, 0.5)
    spend(made, 0.25)
    return made


def charge_as_stated(path):
    """A charge under the relation that the file states."""
    opened = Ledger.open(path)
    opened.reserve("m", epsilon=0.01, relation=opened.relation, digest=secrets.token_hex(32))


def sql(ledger, *statements, rules=True):
    """Runs statements as another program would; rules=False takes the triggers away first and puts them back."""
    connected = sqlite3.connect(ledger.path, isolation_level=None)
    try:
        triggers = connected.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in () if rules else triggers:
            connected.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connected.execute(statement)
        for _, text in () if rules else triggers:
            connected.execute(text)
    finally:
        connected.close()


def columns(ledger, table, changed):
    """The columns of a table as a SELECT list, some replaced by expressions."""
    connected = sqlite3.connect(ledger.path)
    names = [row[1] for row in connected.execute(f"PRAGMA table_info({table})")]
    connected.close()
    return ", ".join(str(changed.get(name, name)) for name in names)


BUDGETS = {
    "more granted": {"epsilon_total": "1000 * epsilon_total"},
    "nothing spent": {"epsilon_spent": "0"},
    "another relation": {"relation": "'add_or_remove_one'"},
    "another id": {"ledger": "'0'"},
}
CHARGES = {
    "a cheap charge": {"epsilon": "0", "cumulative_epsilon": "0"},
    "another relation": {"relation": "'add_or_remove_one'"},
    "another number": {"number": "number + 1"},
    "another key": {"number": "number + 7", "digest": "'0'"},
    "another transaction": {"number": "number + 7", "txid": "'0'"},
    "a later number, the same key and transaction": {"number": "number + 2"},
}


@pytest.mark.parametrize("verb", ["REPLACE", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT"])
@pytest.mark.parametrize(
    ("table", "changed"),
    [*(("budget", change) for change in BUDGETS.values()), *(("charge", change) for change in CHARGES.values())],
)
def test_replace_changes_nothing(ledger, verb, table, changed):
    rows, spent, total = ledger.rows(), ledger.spent, ledger.total
    with pytest.raises(sqlite3.IntegrityError, match=r"only grows|UNIQUE constraint"):
        sql(ledger, f"{verb} INTO {table} SELECT {columns(ledger, table, changed)} FROM {table}")
    again = Ledger.open(ledger.path)
    assert (again.rows(), again.spent, again.total, again.relation) == (rows, spent, total, "replace_one")
    ledger.verify()


@pytest.mark.parametrize("repeated", ["txid", "digest"])
@pytest.mark.parametrize("verb", ["REPLACE", "INSERT"])
def test_a_charge_that_continues_the_last_one_cannot_take_the_place_of_an_older(ledger, verb, repeated):
    changed = {"number": "3", "epsilon": "0", "cumulative_epsilon": "750000000000", "txid": "'t'", "digest": "'d'"}
    del changed[repeated]
    with pytest.raises(sqlite3.IntegrityError, match=f"UNIQUE constraint failed: charge.{repeated}"):
        sql(ledger, f"{verb} INTO charge SELECT {columns(ledger, 'charge', changed)} FROM charge WHERE number = 1")
    assert len(ledger.rows()) == 2


@pytest.mark.parametrize("verb", ["UPDATE", "UPDATE OR REPLACE", "UPDATE OR IGNORE"])
@pytest.mark.parametrize(
    "change",
    [
        "charge SET number = 1 WHERE number = 2",
        "charge SET digest = (SELECT digest FROM charge WHERE number = 1) WHERE number = 2",
        "charge SET epsilon = 0",
        "charge SET relation = 'add_or_remove_one'",
        "charge SET chain = '0'",
        "charge SET release = x'00'",
        "budget SET relation = 'add_or_remove_one'",
        "budget SET epsilon_spent = 0",
        "budget SET epsilon_spent = epsilon_total",
        "budget SET head = '0'",
    ],
)
def test_updates_change_nothing(ledger, verb, change):
    rows, spent = ledger.rows(), ledger.spent
    with pytest.raises(sqlite3.IntegrityError, match="only grows"):
        sql(ledger, f"{verb} {change}")
    assert (ledger.rows(), ledger.spent, ledger.relation) == (rows, spent, "replace_one")


def test_rows_have_no_hidden_number_to_replace_them_by(ledger):
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        sql(ledger, "UPDATE OR REPLACE charge SET rowid = 1 WHERE number = 2")


@pytest.mark.parametrize(
    "values",
    [
        "3, 't', 'd', '', 'm', '', '', '', '', 'replace_one', 10, 10, 0, 0, 0, 0, '', NULL",
        "3, 't', 'd', '', 'm', '', '', '', '', 'replace_one', 500000000000, 1250000000000, 0, 0, 0, 0, '', NULL",
    ],
    ids=["running totals", "overspent"],
)
def test_charges_by_hand_must_continue_the_last_one_within_the_total(ledger, values):
    with pytest.raises(sqlite3.IntegrityError, match="only grows"):
        sql(ledger, f"INSERT INTO charge VALUES ({values})")


FORGERIES = {
    "relation": ["UPDATE budget SET relation = 'add_or_remove_one'"],
    "relation everywhere": [f"UPDATE {table} SET relation = 'replace_attribute'" for table in ("budget", "charge")],
    "total": ["UPDATE budget SET epsilon_total = 1000 * epsilon_total"],
    "id": ["UPDATE budget SET ledger = '0'"],
    "no charges": ["DELETE FROM charge", "UPDATE budget SET epsilon_spent = 0"],
    "the last charge": ["DELETE FROM charge WHERE number = 2", "UPDATE budget SET epsilon_spent = 500000000000"],
    "the first charge": [
        "DELETE FROM charge WHERE number = 1",
        "UPDATE charge SET number = 1, cumulative_epsilon = epsilon",
        "UPDATE budget SET epsilon_spent = 250000000000",
    ],
    "a method": ["UPDATE charge SET method = 'other' WHERE number = 1"],
    "no row of totals": ["DELETE FROM budget"],
}


@pytest.mark.parametrize("statements", FORGERIES.values(), ids=FORGERIES)
def test_verify_and_the_next_charge_find_what_was_done_without_the_rules(ledger, statements):
    sql(ledger, *statements, rules=False)
    with pytest.raises(LedgerError, match=r"does not add up|not the file that was opened|no row of totals"):
        ledger.verify()
    with pytest.raises(LedgerError, match=r"does not add up|no row of totals"):
        Ledger.open(ledger.path).verify()
    with pytest.raises(LedgerError):
        charge_as_stated(ledger.path)


def test_a_changed_relation_is_found_in_a_new_ledger_too(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", epsilon=1.0)
    ledger.verify()
    sql(ledger, "UPDATE budget SET relation = 'add_or_remove_one'", rules=False)
    with pytest.raises(LedgerError, match="does not add up"):
        Ledger.open(ledger.path).verify()


def test_a_charge_in_the_middle_is_found_by_verify(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", epsilon=1.0)
    for _ in range(9):
        spend(ledger, 0.01)
    sql(ledger, "UPDATE charge SET note = 'other' WHERE number = 5", rules=False)
    with pytest.raises(LedgerError, match="seal of charge 5 is broken"):
        ledger.verify()


def test_rules_taken_away_stop_the_next_charge(ledger):
    sql(ledger, "DROP TRIGGER charge_stays")
    with pytest.raises(LedgerError, match=r"its rules .* were changed"):
        spend(ledger, 0.01)


def test_a_file_rewritten_with_all_its_seals_is_found_by_a_seal_noted_elsewhere(ledger):
    """Nothing inside the file can find this, as `docs/accounting.md` says; a seal outside it does."""
    noted = ledger.seal
    spend(ledger, 0.125)
    ledger.verify(noted)
    connected = sqlite3.connect(ledger.path)
    connected.row_factory = sqlite3.Row
    grant = dict(connected.execute("SELECT * FROM budget").fetchone())
    connected.close()
    grant["epsilon_total"] *= 1000
    statements, seal = [f"UPDATE budget SET epsilon_total = {grant['epsilon_total']}"], ledger_chain.genesis(grant)
    with ledger_file.connection(ledger.path, LedgerError) as connected:
        for charge in ledger_file.charges(connected):
            seal = ledger_chain.link(seal, charge)
            statements.append(f"UPDATE charge SET chain = '{seal}' WHERE number = {charge['number']}")
    sql(ledger, *statements, f"UPDATE budget SET head = '{seal}'", rules=False)
    forged = Ledger.open(ledger.path)
    forged.verify()
    with pytest.raises(LedgerError, match="the seal noted earlier"):
        forged.verify(noted)
    with pytest.raises(LedgerError, match="not the file that was opened"):
        spend(ledger, 0.01)


# --- copies and files put in its place ---------------------------------------------------------------------------


def test_a_copy_of_the_file_alone_shows_every_charge(ledger, tmp_path):
    reader = sqlite3.connect(ledger.path)  # somebody looks at the file meanwhile
    reader.execute("SELECT * FROM charge").fetchone()
    spend(ledger, 0.125)
    shutil.copy(ledger.path, tmp_path / "copy.db")
    reader.close()
    assert Ledger.open(tmp_path / "copy.db").spent.epsilon == 0.875


def test_a_file_that_another_program_put_into_log_mode_goes_back(ledger, tmp_path):
    sql(ledger, "PRAGMA journal_mode = WAL")
    spend(ledger, 0.125)
    assert [path.name for path in tmp_path.iterdir()] == ["l.db"]
    connected = sqlite3.connect(ledger.path)
    assert connected.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
    connected.close()
    shutil.copy(ledger.path, tmp_path / "copy.db")
    assert Ledger.open(tmp_path / "copy.db").spent.epsilon == 0.875


def test_an_object_does_not_spend_a_file_made_again(ledger):
    ledger.path.unlink()
    with pytest.raises(LedgerError, match="does not exist"):
        spend(ledger, 0.1)
    fresh = Ledger.create(ledger.path, epsilon=1.0)
    for attempt in (lambda: spend(ledger, 0.1), lambda: ledger.spent, lambda: ledger.verify()):
        with pytest.raises(LedgerError, match="not the file that was opened"):
            attempt()
    assert fresh.rows() == []


@pytest.mark.parametrize("in_place", [True, False])
def test_an_object_does_not_spend_a_backup_put_back(ledger, tmp_path, in_place):
    shutil.copy(ledger.path, tmp_path / "backup.db")
    spend(ledger, 0.125)
    if in_place:
        ledger.path.write_bytes((tmp_path / "backup.db").read_bytes())
    else:
        (tmp_path / "backup.db").replace(ledger.path)
    with pytest.raises(LedgerError, match="set back to an earlier state"):
        spend(ledger, 0.1)


def test_two_objects_of_one_file_spend_in_turn(ledger):
    other = Ledger.open(ledger.path)
    for turn in (other, ledger, other):
        spend(turn, 0.05)
    assert ledger.spent.epsilon == pytest.approx(0.9)
    with pytest.raises(BudgetExhausted):
        spend(ledger, 0.2)


# --- disks and versions ------------------------------------------------------------------------------------------


def test_a_disk_without_room_is_named(tmp_path):
    program = (
        "import resource, sys; from jaxdp.accounting.ledger import Ledger\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))\n"
        "Ledger.create(sys.argv[1], epsilon=1.0)"
    )
    for size in (0, 5000):
        command = [sys.executable, "-c", program, str(tmp_path / "l.db"), str(size)]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
        assert "LedgerError: ledger" in said
        assert "cannot be created: the disk" in said
        assert "version" not in said
        assert list(tmp_path.iterdir()) == []


def test_a_charge_on_a_full_disk_is_not_acknowledged(ledger):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(LedgerError, match="cannot be used: the disk"):
            spend(ledger, 0.1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    ledger.verify()
    assert ledger.spent.epsilon == 0.75


def test_files_of_other_versions_are_named(ledger):
    sql(ledger, "PRAGMA user_version = 1")
    with pytest.raises(LedgerError, match=r"an earlier version of jaxdp.* epsilon 0\.25, delta 1e-06 is left"):
        Ledger.open(ledger.path)
    sql(ledger, "PRAGMA user_version = 3")
    with pytest.raises(LedgerError, match="a later version"):
        Ledger.open(ledger.path)


# --- what was asked ----------------------------------------------------------------------------------------------


def test_every_charge_says_what_was_asked(ledger, capsys):
    account = ledger.asked(columns="dose ~ response | age", source="trial.csv", result="out/test")
    cost = Laplace(0.125).cost(Relation.REPLACE_ONE)
    account.require(cost)
    account.charge("partition-gcm", cost, jaxdp.fresh_key())
    row = ledger.rows()[-1]
    assert (row.method, row.columns, row.source, row.result) == (
        "partition-gcm",
        "dose ~ response | age",
        "trial.csv",
        "out/test",
    )
    assert main(["ledger", "show", str(ledger.path)]) == 0
    assert "dose ~ response | age of trial.csv -> out/test" in capsys.readouterr().out
    sql(ledger, "UPDATE charge SET source = 'other.csv' WHERE number = 3", rules=False)
    assert main(["ledger", "show", str(ledger.path)]) == 2
    assert "does not add up" in capsys.readouterr().err


def test_the_command_prints_a_seal_and_takes_it_back(ledger, tmp_path, capsys):
    assert main(["ledger", "verify", str(ledger.path)]) == 0
    seal = capsys.readouterr().out.split("seal ")[1].split(":")[0]
    spend(ledger, 0.01)
    assert main(["ledger", "verify", str(ledger.path), "--seal", seal]) == 0
    assert main(["ledger", "verify", str(ledger.path), "--seal", f" {seal.upper()}"]) == 0
    capsys.readouterr()
    assert main(["ledger", "verify", str(ledger.path), "--seal", "0" * 64]) == 2
    assert "rewritten since" in capsys.readouterr().err
    assert main(["ledger", "verify", str(ledger.path), "--seal", seal[:20]]) == 2
    assert "64 hexadecimal digits, got 20" in capsys.readouterr().err
    assert main(["ledger", "export", str(ledger.path), "--out", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out" / "ledger.json").read_text())["charges"][0]["source"] == ""
