"""Every mistake on the command line: exit code 2, one line on standard error, never a value of the data."""

import json
import math

import pytest

from jaxdp.cli.main import main

CANARIES = ("31337.125", "zanzibar", "-0.0625125")
SCHEMA = {
    "columns": {
        "dose": {"kind": "continuous", "bounds": [0, 10], "missing": 1},
        "effect": {"kind": "continuous", "bounds": [-5, 5]},
        "age": {"kind": "continuous", "bounds": [18, 90]},
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "grade": {"kind": "ordinal", "levels": [1, 2, 3]},
        "absent": {"kind": "continuous", "bounds": [0, 1]},
    }
}
HEADER = "dose,effect,age,sex,grade"
ROWS = [f"{i % 10}.5,{(i * 7) % 5 - 2},{20 + i},{'fm'[i % 2]},{i % 3 + 1}" for i in range(40)]
ROWS[3] = "31337.125,-0.0625125,77,zanzibar,2"
TABLE = "\n".join([HEADER, *ROWS]) + "\n"


class Case:
    """One mistake: changed options (None removes one), a changed table or a changed schema."""

    def __init__(self, options=(), *, table=TABLE, schema=None, schema_name="s.json", extra=(), prepare=None):
        self.options, self.table, self.schema = dict(options), table, SCHEMA if schema is None else schema
        self.schema_name, self.extra, self.prepare = schema_name, extra, prepare

    def arguments(self, folder):
        data, schema = folder / "data.csv", folder / self.schema_name
        _write(data, self.table)
        _write(schema, self.schema if isinstance(self.schema, str | bytes) else json.dumps(self.schema))
        if self.prepare is not None:
            self.prepare(folder)
        options = {"--x": "dose", "--y": "effect", "--given": "age,sex", "--epsilon": "1", "--seed": "1"}
        options |= {"--method": "partition-gcm"}  # the default asks for a hundred records
        options |= {"--schema": str(schema), "--out": str(folder / "out")}
        options |= {
            name: None if value is None else value.replace("DIR", str(folder)) for name, value in self.options.items()
        }
        data_argument = options.pop("DATA", str(data))
        chosen = [part for name, value in options.items() if value is not None for part in (f"{name}={value}",)]
        return ["test", *([] if data_argument is None else [data_argument]), *chosen, *self.extra]


def _write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def column(**entry):
    """The schema with another entry for `dose`; a key of value None is removed."""
    merged = {**SCHEMA["columns"]["dose"], **entry}
    dose = {name: value for name, value in merged.items() if value is not None}
    return {"columns": {**SCHEMA["columns"], "dose": dose}}


def discrete(**entry):
    """The schema with `dose` as a discrete column."""
    return column(**{"kind": "categorical", "bounds": None, "missing": None, "levels": ["a", "b"], **entry})


def _make_file(name, content=""):
    return lambda folder: _write(folder / name, content)


CASES = {
    # arguments
    "no x": Case({"--x": None}),
    "no y": Case({"--y": None}),
    "no data": Case({"DATA": None}),
    "no schema": Case({"--schema": None}),
    "no epsilon": Case({"--epsilon": None}),
    "unknown option": Case({"--colour": "red"}),
    "epsilon zero": Case({"--epsilon": "0"}),
    "epsilon negative": Case({"--epsilon": "-1"}),
    "epsilon nan": Case({"--epsilon": "nan"}),
    "epsilon infinite": Case({"--epsilon": "inf"}),
    "epsilon subnormal": Case({"--epsilon": "1e-310"}),
    "epsilon below float32": Case({"--epsilon": "1e-45"}),
    "epsilon too small": Case({"--epsilon": "1e-9"}),
    "epsilon too large": Case({"--epsilon": "1e15"}),
    "epsilon text": Case({"--epsilon": "one"}),
    "level zero": Case({"--level": "0"}),
    "level above one": Case({"--level": "1.5"}),
    "level nan": Case({"--level": "nan"}),
    "unknown method": Case({"--method": "magic"}),
    "private method without its option": Case({"--set": "ridge=1"}),
    "seed negative": Case({"--seed": "-1"}),
    "seed fractional": Case({"--seed": "1.5"}),
    "seed beyond 32 bits": Case({"--seed": str(2**32)}),
    "non-private method without seed": Case({"--method": "gcm", "--seed": None}),
    "residual scale zero": Case({"--set": "residual_scale=0"}),
    "residual scales too many": Case({"--set": "residual_scale=1,2,3"}),
    "cells zero": Case({"--set": "num_cells=0"}),
    "cells fractional": Case({"--set": "num_cells=2.5"}),
    "lengthscale negative": Case({"--method": "gcm", "--set": "lengthscale=-1"}),
    "ledger missing": Case({"--seed": None, "--ledger": "DIR/none.db"}),
    "ledger in a simulation": Case({"--ledger": "DIR/data.csv"}),
    "ledger is another file": Case({"--seed": None, "--ledger": "DIR/data.csv"}),
    "out is a file": Case({"--out": "DIR/data.csv"}),
    "out below a file": Case({"--out": "DIR/data.csv/deeper"}),
    # columns
    "x empty": Case({"--x": ""}),
    "given with a hole": Case({"--given": "age,,sex"}),
    "x not in schema": Case({"--x": "doze"}),
    "y not in schema": Case({"--y": "unheard"}),
    "given not in schema": Case({"--given": "age,shoe"}),
    "x not in header": Case({"--x": "absent"}),
    "x is y": Case({"--y": "dose"}),
    "x is given": Case({"--given": "dose"}),
    "given twice": Case({"--given": "age,age"}),
    "two x for a decision": Case({"--method": "local-permutation", "--x": "dose,grade"}),
    # data file
    "data missing": Case({"DATA": "no-such.csv"}),
    "data is a folder": Case({"DATA": "/"}),
    "data empty": Case(table=""),
    "data blank": Case(table="\n\n"),
    "header only": Case(table=HEADER + "\n"),
    "no header": Case(table="\n".join(ROWS)),
    "too few rows": Case(table="\n".join([HEADER, *ROWS[:5]])),
    "wrong delimiter": Case(table=TABLE.replace(",", ";")),
    "tabs": Case(table=TABLE.replace(",", "\t")),
    "row too short": Case(table=TABLE + "31337.125,1\n"),
    "row too long": Case(table=TABLE + "1,2,3,f,1,31337.125\n"),
    "header twice": Case(table=TABLE.replace("effect", "dose", 1)),
    "unknown header twice": Case(table=TABLE.replace("grade", "sex", 1)),
    "open quote": Case(table=TABLE + '1,2,3,"zanzibar,1\n'),
    "not UTF-8": Case(table=TABLE.encode() + b"1,2,3,zanzibar\xff\xfe,1\n"),
    "UTF-16": Case(table=TABLE.encode("utf-16")),
    "endless field": Case(table=TABLE + f"1,2,3,{'zanzibar' * 20_000},1\n"),
    # schema file
    "schema missing": Case({"--schema": "no-such.toml"}),
    "schema is a folder": Case({"--schema": "/"}),
    "schema not UTF-8": Case(schema=b"\xff\xfe", schema_name="s.toml"),
    "schema not TOML": Case(schema="[columns.dose\nkind = 1", schema_name="s.toml"),
    "schema TOML key twice": Case(schema="[columns.dose]\nkind='binary'\nkind='binary'", schema_name="s.toml"),
    "schema not JSON": Case(schema="{columns: }"),
    "schema JSON key twice": Case(schema='{"columns": {"dose": {}, "dose": {}}}'),
    "schema is a list": Case(schema=[]),
    "schema empty": Case(schema={}),
    "schema without columns": Case(schema={"columns": {}}),
    "schema unknown key": Case(schema={**SCHEMA, "colums": {}}),
    "schema delimiter too long": Case(schema={**SCHEMA, "delimiter": ";;"}),
    "schema delimiter a quote": Case(schema={**SCHEMA, "delimiter": '"'}),
    "column not a table": Case(schema={"columns": {"dose": "continuous"}}),
    "column unknown key": Case(schema=column(bound=[0, 1])),
    "column without kind": Case(schema=column(kind=None)),
    "column unknown kind": Case(schema=column(kind="numeric")),
    "column kind a number": Case(schema=column(kind=3)),
    "bounds missing": Case(schema=column(bounds=None)),
    "bounds reversed": Case(schema=column(bounds=[10, 0])),
    "bounds equal": Case(schema=column(bounds=[1, 1])),
    "bounds nan": Case(schema=column(bounds=[0, math.nan])),
    "bounds infinite": Case(schema=column(bounds=[0, math.inf])),
    "bounds too wide": Case(schema=column(bounds=[-1.7e308, 1.7e308], missing=None)),
    "bounds too close": Case(schema=column(bounds=[0, 5e-324], missing=None)),
    "bounds huge integer": Case(schema=column(bounds=[0, 10**400])),
    "bounds three": Case(schema=column(bounds=[0, 1, 2])),
    "bounds one number": Case(schema=column(bounds=3)),
    "bounds text": Case(schema=column(bounds=["0", "1"])),
    "bounds boolean": Case(schema=column(bounds=[False, True])),
    "scale unknown": Case(schema=column(scale="sqrt")),
    "scale log with zero": Case(schema=column(scale="log")),
    "levels with scale": Case(schema=discrete(scale="log")),
    "missing outside bounds": Case(schema=column(missing=11)),
    "missing text": Case(schema=column(missing="low")),
    "continuous with levels": Case(schema=column(levels=["a", "b"])),
    "continuous with other": Case(schema=column(other=1)),
    "levels missing": Case(schema=discrete(levels=None)),
    "levels with bounds": Case(schema=discrete(bounds=[0, 1])),
    "levels a text": Case(schema=discrete(levels="ab")),
    "levels single": Case(schema=discrete(levels=["a"])),
    "levels twice": Case(schema=discrete(levels=["a", "b", "a "])),
    "levels twice as numbers": Case(schema=discrete(levels=[1, 2, 1.0])),
    "levels boolean": Case(schema=discrete(levels=[False, True])),
    "levels nan": Case(schema=discrete(levels=[1, math.nan])),
    "levels nested": Case(schema=discrete(levels=[["a"], "b"])),
    "binary with three levels": Case(schema=discrete(kind="binary", levels=["a", "b", "c"])),
    "missing not a level": Case(schema=discrete(missing="c")),
    "missing level of another type": Case(schema=discrete(levels=[0, 1], missing=True)),
    "other not a level": Case(schema=discrete(other="c")),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_one_line_and_exit_code_2(name, tmp_path, capsys):
    code = main(CASES[name].arguments(tmp_path))
    printed = capsys.readouterr()
    assert code == 2, printed
    assert printed.out == ""
    assert printed.err.endswith("\n")
    assert printed.err.count("\n") == 1, printed.err
    assert printed.err.startswith("jaxdp: error: ")
    assert not any(canary in printed.err for canary in CANARIES), printed.err
    assert "Traceback" not in printed.err
    assert not (tmp_path / "out" / "result.json").exists()


SHARED = {"DATA", "--schema", "--epsilon", "--seed", "--ledger", "--out", "--colour"}  # of all commands with data
OTHERS = {
    "discover": ["--columns=dose,effect,age,sex"],
    "mic --all-pairs": ["--columns=dose,effect,age"],
    "mic": ["--x=dose", "--y=effect"],
}


@pytest.mark.parametrize("command", OTHERS)
def test_the_other_commands_refuse_the_same_files_and_budgets(command, tmp_path, capsys):
    words = command.split()
    tried = 0
    for number, (name, case) in enumerate(CASES.items()):
        if set(case.options) - SHARED or (command == "discover" and name == "too few rows"):
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        given = [part for part in case.arguments(folder)[1:] if not part.startswith(("--x=", "--y=", "--given="))]
        assert main([*words[:1], *given, *words[1:], *OTHERS[command]]) == 2, name
        printed = capsys.readouterr()
        assert printed.out == "", name
        assert printed.err.startswith("jaxdp: error: "), name
        assert printed.err.count("\n") == 1, (name, printed.err)
        assert not any(canary in printed.err for canary in CANARIES), (name, printed.err)
        tried += 1
    assert tried >= 80


@pytest.mark.parametrize(
    "argv",
    [
        ["dance"],
        ["test"],
        ["--loud"],
        ["report", "/no/such/folder"],
        ["demo", "--epsilon", "-1"],
        ["demo", "--seed", "x"],
        ["plan", "--method", "magic", "--epsilon", "1", "--effect", "0.2", "--power", "0.8"],
        ["plan", "--method", "partition-gcm", "--epsilon", "-1", "--effect", "0.2", "--power", "0.8"],
        ["plan", "--method", "partition-gcm", "--epsilon", "1", "--effect", "0.2", "--power", "1.5"],
        ["plan", "--method", "partition-gcm"],
        ["plan", "--schema", "no-such.toml", "--x", "a", "--y", "b", "--epsilon", "1", "--effect", "0.2"],
        ["simulate", "--method", "magic", "--design", "sine"],
        ["simulate", "--method", "partition-gcm", "--design", "triangle"],
        ["simulate", "--method", "partition-gcm", "--design", "sine", "--replicates", "0"],
        ["simulate", "--method", "partition-gcm", "--design", "sine", "--n", "ten"],
        ["simulate", "--method", "partition-gcm", "--design", "sine", "--task", "3", "--of", "2"],
        ["simulate", "--method", "partition-gcm", "--design", "sine", "--epsilon", "0"],
        ["audit", "magic", "--epsilon", "1"],
        ["audit", "laplace", "--epsilon", "nan"],
        ["audit", "laplace", "--epsilon", "1", "--runs", "-5"],
        ["ledger", "show", "no-such.db"],
        ["ledger", "create", "/no/such/folder/l.db", "--epsilon", "1"],
        ["ledger", "dance"],
    ],
    ids=" ".join,
)
def test_mistakes_without_files(argv, capsys):
    assert main(argv) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1


def test_the_table_is_long_enough():
    assert len(CASES) >= 40


def test_the_unchanged_case_is_accepted(tmp_path, capsys):
    # Otherwise every case above could fail for a reason of its own.
    assert main(Case().arguments(tmp_path)) == 0
    assert "NOT PRIVATE" in capsys.readouterr().out
    assert (tmp_path / "out" / "result.json").is_file()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("bounds missing", "bounds = [LOW, HIGH]"),
        ("levels missing", "levels = ["),
        ("x not in schema", "did you mean 'dose'?"),
        ("wrong delimiter", 'delimiter = ";"'),
        ("tabs", 'delimiter = "\\t"'),
        ("column unknown key", "did you mean 'bounds'?"),
        ("unknown method", "jaxdp methods"),
        ("ledger missing", "jaxdp ledger create"),
        ("header twice", "number 1 and number 2"),
        ("row too short", "row 41"),
    ],
)
def test_the_line_says_what_to_do(name, hint, tmp_path, capsys):
    main(CASES[name].arguments(tmp_path))
    assert hint in capsys.readouterr().err


def test_an_internal_error_shows_no_text_of_its_own(tmp_path, capsys, monkeypatch):
    def explode(*_, **__):
        return float("zanzibar")

    monkeypatch.setattr("jaxdp.data.readers.pieces", explode)
    assert main(Case().arguments(tmp_path)) == 1
    error = capsys.readouterr().err
    assert "internal error, ValueError" in error
    assert "zanzibar" not in error
    assert error.count("\n") == 1


def test_an_exhausted_budget_is_exit_code_3(tmp_path, capsys, monkeypatch):
    from jaxdp.accounting.ledger import BudgetExhausted

    def refuse(*_, **__):
        raise BudgetExhausted("the ledger has epsilon=0 left and this run costs epsilon=1.")

    monkeypatch.setattr("jaxdp.core.run", refuse)
    assert main(Case().arguments(tmp_path)) == 3
    assert capsys.readouterr().err.count("\n") == 1
