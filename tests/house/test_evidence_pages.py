"""Tables of evidence that are made from records: the page holds what the command writes, and a table needs no more."""

import pytest

from experiments.evidence.coverage import laws
from experiments.evidence.large_tables import __main__ as large


def test_the_page_of_coverage_holds_the_tables_of_laws():
    page = laws.PAGE.read_text(encoding="utf-8")
    assert laws.tables() in page, "python -m experiments.evidence.coverage.laws --table writes it anew"


def test_a_table_of_large_tables_asks_for_no_folder(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["large_tables", "--table"])
    large.main()
    assert "|" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["large_tables"])
    with pytest.raises(SystemExit):
        large.main()
    assert "--folder" in capsys.readouterr().err
