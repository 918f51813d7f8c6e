"""A search that is interrupted goes on: nothing paid twice, no answer drawn again, no key on disk."""

import json
import shutil
import signal
import subprocess
import sys
import warnings

import jax
import numpy as np
import pytest

import jaxdp
from jaxdp import discovery
from jaxdp._base.owner import OwnerWarning
from jaxdp.accounting.ledger import LedgerError
from jaxdp.data.dataset import CONTINUOUS, Column
from jaxdp.data.records import Records, as_records
from jaxdp.discovery.engine.checkpoint import Checkpoint
from jaxdp.randomness import keys

PLACE = "answers.jsonl"


def coded(n=3000, d=5, seed=0):
    """A chain of binary columns."""
    generator = np.random.default_rng(seed)
    values = np.zeros((n, d), np.int32)
    values[:, 0] = generator.integers(0, 2, n)
    for j in range(1, d):
        values[:, j] = np.where(generator.random(n) < 0.8, values[:, j - 1], generator.integers(0, 2, n))
    return as_records(values, (2,) * d)


def search(key, path, *, epsilon=1.0, prune="guarded", **settings):
    """A search with several draws of every kind."""
    return discovery.max_min_pc(key, coded(), epsilon=epsilon, prune=prune, keep=path, **settings)


class Killed(BaseException):
    """What no search catches."""


def stop_after(monkeypatch, count):
    """Ends the process's search once so many answers are on disk, before it uses the last of them."""
    play = Checkpoint.play

    def once(self, *arguments):
        found = play(self, *arguments)
        if self.given > count:
            raise Killed
        return found

    monkeypatch.setattr(Checkpoint, "play", once)


def answers(ledger, path):
    return ledger.checkpoint(json.loads(path.read_text())["txid"])


def interrupted(monkeypatch, path, count, key=None, **settings):
    with monkeypatch.context() as patched:
        stop_after(patched, count)
        with pytest.raises(Killed):
            search(jaxdp.fresh_key() if key is None else key, path, **settings)


def test_a_search_that_was_stopped_goes_on_with_the_numbers_it_released_and_pays_once(monkeypatch, tmp_path):
    ledger, path = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0), tmp_path / PLACE
    interrupted(monkeypatch, path, 3, ledger=ledger)
    before = answers(ledger, path)
    assert len(before) == 4
    interrupted(monkeypatch, path, 5, ledger=ledger)
    graph = search(jaxdp.fresh_key(), path, ledger=ledger)
    after = answers(ledger, path)
    assert after[:4] == before
    assert len(after) > 6
    assert [row.epsilon for row in ledger.rows()] == [1.0]
    ledger.verify()
    outputs = [json.loads(row)["output"] for row in after]
    assert [decision.value for decision in graph.decisions] in outputs  # the contrasts of directions follow it
    again = search(jaxdp.fresh_key(), path, ledger=ledger)
    assert [decision.value for decision in again.decisions] == [decision.value for decision in graph.decisions]
    assert answers(ledger, path) == after


@pytest.mark.parametrize("with_ledger", [True, False])
def test_a_search_that_goes_on_warns_that_its_table_is_not_checked(monkeypatch, tmp_path, with_ledger):
    """Answers of one table were used with another of the same shape, without a word."""
    how = {"ledger": jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)} if with_ledger else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        interrupted(monkeypatch, tmp_path / PLACE, 3, **how)
    with pytest.warns(OwnerWarning, match="cannot check that the table is the one that was read then"):
        search(jaxdp.fresh_key(), tmp_path / PLACE, **how)


def test_a_graph_that_went_on_is_the_one_that_was_not_stopped(monkeypatch, tmp_path):
    whole = search(jax.random.key(1), None)
    interrupted(monkeypatch, tmp_path / PLACE, 4, jax.random.key(1))
    graph = search(jax.random.key(1), tmp_path / PLACE)
    np.testing.assert_array_equal(graph.skeleton, whole.skeleton)
    np.testing.assert_allclose(*([d.value for d in found.decisions] for found in (graph, whole)), rtol=1e-5)


def test_an_old_copy_of_the_folder_gets_the_answers_that_were_given_since(monkeypatch, tmp_path):
    ledger, path, copy = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0), tmp_path / PLACE, tmp_path / "copy"
    interrupted(monkeypatch, path, 2, ledger=ledger)
    shutil.copy(path, copy)
    first = search(jaxdp.fresh_key(), path, ledger=ledger)
    second = search(jaxdp.fresh_key(), copy, ledger=ledger)
    assert [d.value for d in first.decisions] == [d.value for d in second.decisions]
    assert [row.epsilon for row in ledger.rows()] == [1.0]


def test_an_answer_of_a_charge_is_given_once(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    txid = ledger.charge("max_min_pc", jaxdp.core.Cost(epsilon=1.0), jaxdp.fresh_key())
    assert ledger.checkpoint("another") is None
    assert ledger.checkpoint(txid) == []
    ledger.keep(txid, 0, "a")
    for number in (0, 2):
        with pytest.raises(LedgerError, match="another run"):
            ledger.keep(txid, number, "b")
    with pytest.raises(LedgerError, match="another run"):
        ledger.keep("another", 0, "b")
    ledger.keep(txid, 1, "b")
    assert jaxdp.Ledger.open(ledger.path).checkpoint(txid) == ["a", "b"]
    with ledger._connection() as connected:
        for statement in ("UPDATE answer SET content = 'c'", "DELETE FROM answer"):
            with pytest.raises(Exception, match="only grows"):
                connected.execute(statement)
    ledger.verify()


def test_another_query_does_not_go_on_with_these_answers(monkeypatch, tmp_path):
    path = tmp_path / PLACE
    interrupted(monkeypatch, path, 1)
    for change in ({"epsilon": 2.0}, {"prune": "keep"}, {"knowledge": discovery.Knowledge(forbidden=[("v0", "v1")])}):
        with pytest.raises(ValueError, match="answers of another search"):
            search(jaxdp.fresh_key(), path, **change)
    with pytest.raises(ValueError, match="its mode is release"):
        search(jax.random.key(0), path)
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    with pytest.raises(ValueError, match="its ledger is False"):
        search(jaxdp.fresh_key(), path, ledger=ledger)
    assert ledger.rows() == []
    path.write_text("mine\n")
    with pytest.raises(ValueError, match="no file of kept answers"):
        search(jaxdp.fresh_key(), path)
    assert path.read_text() == "mine\n"


def test_mistakes_before_a_charge_leave_nothing_behind(tmp_path):
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=0.5)
    with pytest.raises(jaxdp.accounting.BudgetExhausted):
        search(jaxdp.fresh_key(), tmp_path / PLACE, ledger=ledger)
    with pytest.raises(ValueError, match="svt_pc keeps no answers"):
        discovery.discover(jaxdp.fresh_key(), coded(), epsilon=1.0, method="svt_pc", keep=tmp_path / PLACE)
    assert not (tmp_path / PLACE).exists()


def test_an_unfinished_line_is_cut_off_and_one_process_holds_the_file(monkeypatch, tmp_path):
    path = tmp_path / PLACE
    interrupted(monkeypatch, path, 2)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"law": "argm')
    with jaxdp.discovery.engine.checkpoint.keeping(path) as kept:
        assert len(kept.answers) == 3
        with pytest.raises(ValueError, match="another process"):
            search(jaxdp.fresh_key(), path)
    assert path.read_bytes() == whole


def test_the_file_holds_no_key(monkeypatch, tmp_path):
    taken, path = [], tmp_path / PLACE
    take = keys.ReleaseKey._take
    monkeypatch.setattr(keys.ReleaseKey, "_take", lambda self: taken.append(take(self)) or taken[-1])
    search(jaxdp.fresh_key(), path)
    text = path.read_text().lower()
    assert len(taken) == 1
    assert taken[0].hex() not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert {frozenset(line) for line in lines[1:]} == {frozenset({"law", "parameters", "shape", "output"})}


@pytest.mark.parametrize("method", [pytest.param("moment_pc", marks=pytest.mark.full), "table_pc"])
def test_searches_of_one_release_keep_it(method, tmp_path):
    generator = np.random.default_rng(0)
    values = np.clip(generator.normal(size=(500, 3)) / 4, -1, 1)
    continuous = Records(values, tuple(Column(CONTINUOUS, 0, f"v{j}") for j in range(3)))
    records = continuous if method == "moment_pc" else coded(500, 3)
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    graphs = [
        discovery.discover(jaxdp.fresh_key(), records, method=method, epsilon=1.0, keep=tmp_path / PLACE, ledger=ledger)
        for _ in range(2)
    ]
    assert [d.value for d in graphs[0].decisions] == [d.value for d in graphs[1].decisions]
    assert len(ledger.rows()) == 1


def written(folder, records):
    """CSV and schema of coded records."""
    names = records.names
    rows = [",".join(names), *(",".join(map(str, row)) for row in np.asarray(records.values).tolist())]
    (folder / "d.csv").write_text("\n".join(rows) + "\n")
    schema = "".join(f'[columns.{name}]\nkind = "binary"\nlevels = ["0", "1"]\n' for name in names)
    (folder / "s.toml").write_text(schema)


COMMAND = """
import os, signal, sys
from jaxdp.discovery.engine.checkpoint import Checkpoint
play, last = Checkpoint.play, int(sys.argv.pop(1))
def once(self, *arguments):
    found = play(self, *arguments)
    if self.given == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return found
Checkpoint.play = once
from jaxdp.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.full
@pytest.mark.parametrize("strict", [False, True])
def test_a_killed_command_goes_on_in_its_folder(tmp_path, strict):
    from jaxdp.cli.main import main

    written(tmp_path, coded())
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0)
    command = ["discover", str(tmp_path / "d.csv"), "--schema", str(tmp_path / "s.toml"), "--epsilon", "1"]
    command += ["--method", "max_min_pc", "--ledger", str(ledger.path), "--out", str(tmp_path / "out")]
    command += ["--strict"] * strict
    run = subprocess.run([sys.executable, "-c", COMMAND, "3", *command], capture_output=True, timeout=300, check=False)
    assert run.returncode == -signal.SIGKILL, run.stderr.decode()
    txid = ledger.rows()[0].txid
    before = ledger.checkpoint(txid)
    assert len(before) == 3
    assert main(command) == 0
    assert ledger.checkpoint(txid)[:3] == before
    assert [row.epsilon for row in ledger.rows()] == [1.0]
    assert not (tmp_path / "out" / PLACE).exists()
    assert (tmp_path / "out/graph.json").exists()
    assert main(command) == 3 if not strict else main([*command, "--overwrite"]) == 3


def test_a_charge_pays_for_the_search_that_it_was_made_for_alone(monkeypatch, tmp_path):
    """Neither the name of a small charge in a file of answers, nor a small charge under its name, buys a large one."""
    ledger, path = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=0.01), tmp_path / PLACE
    small = ledger.charge("a small release", jaxdp.core.Cost(epsilon=0.001), jaxdp.fresh_key())
    interrupted(monkeypatch, path, 2, epsilon=10.0, ledger=jaxdp.Ledger.create(tmp_path / "large.db", epsilon=10.0))
    header = json.loads(path.read_text())
    path.write_text(json.dumps(header | {"txid": small}) + "\n")
    with pytest.raises(ValueError, match="changed by hand"):
        search(jaxdp.fresh_key(), path, epsilon=10.0, ledger=ledger)
    ledger.charge("under its name", jaxdp.core.Cost(epsilon=0.001), jaxdp.fresh_key(), txid=header["txid"])
    path.write_text(json.dumps(header) + "\n")
    with pytest.raises(LedgerError, match="another cost"):
        search(jaxdp.fresh_key(), path, epsilon=10.0, ledger=ledger)
    assert ledger.checkpoint(header["txid"]) == []
    assert [row.epsilon for row in ledger.rows()] == [0.001, 0.001]


def test_a_finished_call_in_python_leaves_no_file_and_the_next_one_is_new_and_paid(tmp_path):
    ledger, path = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=2.0), tmp_path / PLACE
    rng, how = np.random.default_rng(0), {"epsilon": 1.0, "ledger": ledger, "keep": path}
    for _ in range(2):
        table = {name: rng.integers(0, 2, 300).tolist() for name in ("a", "b")}
        jaxdp.discover(table, levels={"a": [0, 1], "b": [0, 1]}, **how)
        assert not path.exists()
    assert [row.epsilon for row in ledger.rows()] == [1.0, 1.0]


def test_answers_are_of_one_schema(monkeypatch, tmp_path):
    path, rng = tmp_path / PLACE, np.random.default_rng(0)
    table = {name: rng.normal(size=800).tolist() for name in ("a", "b")}

    def ask(half_width):
        bounds = dict.fromkeys(table, (-half_width, half_width))
        return jaxdp.discover(table, bounds=bounds, epsilon=1.0, method="moment_pc", keep=path)

    with monkeypatch.context() as patched:
        stop_after(patched, 1)
        with pytest.raises(Killed):
            ask(4.0)
    with pytest.raises(ValueError, match="its schema is"):
        ask(200.0)
    assert ask(4.0).complete


def test_a_search_that_keeps_no_answers_is_charged_where_a_place_for_them_was_offered(tmp_path, monkeypatch):
    """`jaxdp discover` offers one always; the automatic choice may be a search whose noise stays secret."""
    monkeypatch.setattr("jaxdp.discovery.choose.best", lambda setting: discovery.spec.find("svt_pc"))
    values = np.random.default_rng(0).integers(0, 5, (300, 4))
    table = {f"c{j}": values[:, j] for j in range(4)}
    schema = {"columns": {name: {"kind": "ordinal", "levels": list(range(5))} for name in table}}
    ledger = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=3.0)
    for number in (1, 2):
        found = jaxdp.discover(table, schema=schema, epsilon=1.0, ledger=ledger, keep=tmp_path / PLACE)
        assert found.method == "svt_pc"
        assert ledger.spent.epsilon == pytest.approx(number)
        assert not (tmp_path / PLACE).exists()


def test_a_failure_of_such_a_search_is_not_said_to_be_free_the_next_time(tmp_path):
    kept = Checkpoint(ledger=jaxdp.Ledger.create(tmp_path / "l.db", epsilon=3.0))
    assert kept.after_failure == "asking again is charged again"


def test_a_call_that_forgets_the_ledger_or_cannot_pay_leaves_the_file_that_names_the_charge(monkeypatch, tmp_path):
    """It was deleted, and the right call was charged again."""
    ledger, path = jaxdp.Ledger.create(tmp_path / "l.db", epsilon=1.0), tmp_path / PLACE
    interrupted(monkeypatch, path, 3, ledger=ledger)
    named = path.read_text()
    small = jaxdp.Ledger.create(tmp_path / "small.db", epsilon=0.1)
    with pytest.raises(ValueError, match="holds the answers of another search"):
        search(jaxdp.fresh_key(), path)
    with pytest.raises(Exception, match=r"exhausted|small"):
        search(jaxdp.fresh_key(), path, ledger=small)
    assert path.read_text() == named
    search(jaxdp.fresh_key(), path, ledger=ledger)
    assert ledger.spent.epsilon == pytest.approx(1.0)
